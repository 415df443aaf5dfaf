//! Bounds and conditions that parameters may take beyond 64 bits: computed right, or refused at the
//! launch.

use super::types::agree;
use super::{devices, launched};
use kingpost_codegen::{Options, Target, generate};
use kingpost_interp::Memory;
use kingpost_ir::text::parse;

/// `y` counts the instances; parameters that work, and those that are refused with the part that
/// does not fit.
fn check(body: &str, works: &[(i64, i64)], refused: &[(i64, i64, &str)]) {
    let devices = devices();
    for tag in ["", " {g.0}"] {
        let text = format!(
            "kernel k\n\nparam n: i64\nparam s: i32\narg y: f64[1] inout\n\n{}",
            body.replace("TAG", if body.contains("..min") { tag } else { "" })
        );
        let kernel = parse(&text).unwrap_or_else(|e| panic!("{}", e.render(&text)));
        let memory = |n, s| Memory::new().param("n", n).param("s", s).value("y", vec![0.0]);
        for (n, s) in works {
            agree(&kernel, &memory(*n, *s), &devices);
        }
        for (n, s, part) in refused {
            for device in &devices {
                let error = launched(device.as_ref(), &kernel, &memory(*n, *s)).unwrap_err().to_string();
                assert!(error.contains(part), "{n}, {s}: {error}\n{text}");
            }
        }
    }
}

#[test]
fn a_bound_of_a_32_bit_parameter() {
    check(
        "for i in 0..min(1099511627776*s, 10)TAG\n  a: y[0] += 1.0 {atomic}\n",
        &[(0, -5), (0, 0), (0, 1), (0, 8_388_607)],
        &[
            (0, 16_777_216, "`1099511627776*s` does not fit 64 bits with s = 16777216; use smaller sizes"),
            (0, -16_777_216, "`1099511627776*s` does not fit 64 bits with s = -16777216; use smaller sizes"),
        ],
    );
}

#[test]
fn sums_of_a_64_bit_parameter() {
    const LAST: i64 = i64::MAX;
    check(
        "for i in 0..min(n + 1, 10)TAG\n  a: y[0] += 1.0 {atomic}\n",
        &[(3, 0), (-7, 0), (LAST - 1, 0), (i64::MIN, 0)],
        &[(LAST, 0, "does not fit 64 bits with n = 9223372036854775807")],
    );
    check(
        "for i in 0..min(n - s, 10)TAG\n  a: y[0] += 1.0 {atomic}\n",
        &[(3, 1), (3, 7), (LAST - 5, -3), (i64::MIN + 9, 3)],
        &[
            (LAST, -1, "with n = 9223372036854775807, s = -1"),
            (i64::MIN, 1, "with n = -9223372036854775808, s = 1"),
        ],
    );
}

/// Partial sums count, in whatever order they are: the whole may fit all the same.
#[test]
fn conditions_of_loops_and_parameters() {
    check(
        "for i in 0..7TAG where 3*i + 4*n < 4*n + 2*s\n  a: y[0] += 1.0 if 1 <= 2*i + s {atomic}\n",
        &[(3, 1), (1 << 60, 4)],
        &[],
    );
    check(
        "for i in 0..7 where 3*i + 4*n < 9*s\n  a: y[0] += 1.0 {atomic}\n",
        &[(3, 2), (1 << 60, 4), (-(1 << 60), 4)],
        &[(1 << 61, 1, "does not fit 64 bits with n = 2305843009213693952")],
    );
}

/// The range of a loop is known at the launch, and that of the loops inside.
#[test]
fn nests_over_64_bits() {
    check(
        "for i in n..n + 3\n  for j in 4*i..4*i + 2\n    for k in 3*j - 12*n - 20..min(3*j - 12*n, 9)\n      a: y[0] += 1.0 {atomic}\n",
        &[(0, 0), (-9, 0), (1 << 58, 0)],
        &[
            (1 << 61, 0, "does not fit 64 bits with n = 2305843009213693952"),
            (-(1 << 61) - 4, 0, "does not fit 64 bits with n = "),
        ],
    );
    check(
        "for i in n..n + 70 where i mod 7 == 3\n  a: y[0] += 1.0 {atomic}\n",
        &[(0, 0), (5, 0), (i64::MAX - 90, 0)],
        &[(i64::MAX - 71, 0, "does not fit 64 bits with n = 9223372036854775736")],
    );
}

/// What types, bounds and assumptions keep within 64 bits is not checked again.
#[test]
fn no_needless_conditions() {
    let conditions = |text: &str| {
        let kernel = parse(text).unwrap_or_else(|e| panic!("{}", e.render(text)));
        let conditions = generate(&kernel, Target::C, &Options::default()).unwrap().plan.preconditions;
        conditions.into_iter().map(|c| c.text).filter(|text| text.ends_with("64 bits")).collect::<Vec<_>>()
    };
    let loops = "arg y: f64 inout\nASSUME\nfor i in 0..n\n  for j in 3*i..min(n, 3*i + 9)\n    s: y += 1.0 if 7*i + n < 4*j\n";
    let of = |ty: &str, assume: &str| {
        conditions(&format!("kernel k\n\nparam n: {ty}\n{}", loops.replace("ASSUME", assume)))
    };
    assert_eq!(of("i32", ""), Vec::<String>::new());
    assert_eq!(of("i64", "assume n >= 0\nassume n <= 1000000000000"), Vec::<String>::new());
    assert_ne!(of("i64", ""), Vec::<String>::new());
    let plain = "kernel k\n\nparam n: i64\narg y: f64[n] inout\n\nfor i in 0..n\n  s: y[i] += 1.0\n";
    assert_eq!(conditions(plain), Vec::<String>::new());
}
