//! Infinities and nans in code: literals, tables, and minima and maxima, which ignore a nan.

use super::devices;
use super::types::agree;
use kingpost_interp::{Memory, Value};
use kingpost_ir::text::parse;

const NAN: f64 = f64::NAN;
const INF: f64 = f64::INFINITY;

fn values(ty: &str, reals: &[f64]) -> Value {
    match ty {
        "f32" => Value::F32(reals.iter().map(|x| *x as f32).collect()),
        _ => Value::F64(reals.to_vec()),
    }
}

/// Every pair of a nan, the infinities and two numbers, as an update, an operation and a reduction.
#[test]
fn extrema_ignore_a_nan() {
    let devices = devices();
    let kinds = [NAN, INF, -INF, 1.5, -2.0];
    let before: Vec<f64> = kinds.iter().flat_map(|a| [*a; 5]).collect();
    let terms: Vec<f64> = kinds.iter().cycle().take(25).copied().collect();
    for ty in ["f64", "f32"] {
        for (op, function, reduction) in [("min=", "min", "minimum"), ("max=", "max", "maximum")] {
            for (tag, space) in
                [("", ""), (" {atomic}", ""), ("", " {g.0}"), (" {atomic}", " {g.0}"), ("", " {vector}")]
            {
                let extent = if space == " {vector}" { "24" } else { "25" };
                let text = format!(
                    "kernel k\n\nparam n: i32\narg y: {ty}[25] inout\narg z: {ty}[25] inout\narg w: {ty}[25] inout\n\
                     arg b: {ty}[25] in\nassume n >= 0\nassume n <= 25\n\nfor i in 0..{extent}{space}\n  s: y[i] {op} b[i]{tag}\n  \
                     t: z[i] = {function}(z[i], {function}(nan, b[i]))\n  \
                     u: w[i] = {reduction}(k in i..min(n, i + 2): b[k]*1.0)\n"
                );
                let kernel = parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
                let memory = Memory::new()
                    .param("n", 23)
                    .value("y", values(ty, &before))
                    .value("z", values(ty, &before))
                    .value("w", values(ty, &before))
                    .value("b", values(ty, &terms));
                let found = agree(&kernel, &memory, &devices);
                // nan ignored on either side, kept where both are
                let y = found.get("y").unwrap().to_f64();
                assert!(y[0].is_nan() && y[3] == 1.5 && y[15] == 1.5, "{y:?}");
                let (w, nothing) = (found.get("w").unwrap().to_f64(), if op == "min=" { INF } else { -INF });
                assert_eq!(w[23], nothing);
            }
        }
    }
}

#[test]
fn literals_and_tables_of_infinities_and_nans() {
    let devices = devices();
    for ty in ["f64", "f32"] {
        for space in ["global", "constant"] {
            let text = format!(
                "kernel k\n\narg x: {ty}[1] in\narg y: {ty}[9] inout\ntable w: {ty}[4] {space}\n\n\
                 for i in 0..4\n  s: y[i] = w[i]\n\
                 a: y[4] = nan\nb: y[5] = -inf\nc: y[6] = x[0]*inf\nd: y[7] = x[0] + nan\n\
                 e: y[8] = select(x[0] < inf, min(x[0], nan), -nan)\n\n\
                 table w = [nan, inf, -inf, 0.5]\n"
            );
            let kernel = parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
            let memory = Memory::new().value("x", values(ty, &[-1.5])).value("y", values(ty, &[0.0; 9]));
            let y = agree(&kernel, &memory, &devices).get("y").unwrap().to_f64();
            let expected = [NAN, INF, -INF, 0.5, NAN, -INF, -INF, NAN, -1.5];
            assert_eq!(format!("{y:?}"), format!("{expected:?}"));
        }
    }
}

/// A literal that its type rounds to infinity.
#[test]
fn literals_beyond_single_precision() {
    let text = "kernel k\n\narg x: f32[1] in\narg y: f32[3] inout\n\n\
                a: y[0] = 1e300\nb: y[1] = x[0] - 1e39\nc: y[2] = f32(-1e300)\n";
    let kernel = parse(text).unwrap();
    let memory = Memory::new().value("x", vec![1.0_f32]).value("y", vec![0.0_f32; 3]);
    let found = agree(&kernel, &memory, &devices());
    assert_eq!(found.get("y").unwrap().to_f64(), [INF, -INF, -INF]);
}

/// GCC 12 makes 0 of the first one where functions may not set `errno`; pocl's compilers fold others wrongly.
#[test]
fn functions_of_a_nan_are_none_in_c() {
    let text = "kernel k\n\narg x: f64[4] in\narg y: f64[4] inout\n\nfor i in 0..4\n  s: y[i] *= cos(atan(nan))*x[i]\n  \
                t: y[i] *= tanh(nan)\n";
    let ones = || Value::F64(vec![1.0; 4]);
    let memory = Memory::new().value("x", ones()).value("y", ones());
    let found = agree(&parse(text).unwrap(), &memory, &devices()[..1]);
    assert!(found.get("y").unwrap().to_f64().iter().all(|v| v.is_nan()));
}
