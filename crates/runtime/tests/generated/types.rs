//! The type of each part of an expression: what a literal is depends on what stands around it.

use super::{devices, run};
use kingpost_codegen::{CodegenError, Options, Target, generate};
use kingpost_interp::{Memory, Value, interpret};
use kingpost_ir::text::parse;
use kingpost_ir::{Class, Flag, Kernel, ScalarType, UpdateOp};
use kingpost_runtime::cuda::nvrtc;
use kingpost_runtime::{Backend, Cache, Device};
use std::fmt::Write;

/// Runs a kernel everywhere; the results must be equal to the bit, except that any nan is like any
/// other.
pub fn agree(kernel: &Kernel, memory: &Memory, devices: &[Box<dyn Device>]) -> Memory {
    let mut expected = memory.clone();
    interpret(kernel, &mut expected).unwrap_or_else(|e| panic!("{e}\n{kernel}"));
    for device in devices {
        for (name, found) in run(device.as_ref(), kernel, memory) {
            let expected = expected.get(&name).unwrap();
            assert_eq!(
                format!("{expected:?}"),
                format!("{found:?}"),
                "`{name}` on {}\n{kernel}",
                device.info().name
            );
        }
    }
    expected
}

/// The value of an expression of literals, stored in each real type and as an operand with each.
fn check(expression: &str, expected: f64, devices: &[Box<dyn Device>]) {
    let mut text = String::from(
        "kernel k\n\narg y: f64[3] inout\narg z: f32[2] inout\narg one: f32 in\narg unit: f64 in\n\n",
    );
    // each reduction needs inames of its own
    let fresh = |k: usize| expression.replace('K', &format!("k{k}")).replace('L', &format!("l{k}"));
    let _ = writeln!(text, "s0: y[0] = {}", fresh(0));
    let _ = writeln!(text, "s1: y[1] = unit*{}", fresh(1));
    let _ = writeln!(text, "s2: y[2] = f64({})", fresh(2));
    let _ = writeln!(text, "s3: z[0] = {}", fresh(3));
    let _ = writeln!(text, "s4: z[1] = {}*one", fresh(4));
    let kernel = parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let memory = Memory::new()
        .value("y", vec![0.0_f64; 3])
        .value("z", vec![0.0_f32; 2])
        .value("one", 1.0_f32)
        .value("unit", 1.0);
    let found = agree(&kernel, &memory, devices);
    assert_eq!(found.f64s("y").unwrap(), [expected; 3], "{expression}");
}

#[test]
fn integer_literals_inside_real_arithmetic() {
    let devices = devices();
    for (expression, expected) in [
        ("(sum(K in 0..3: 1)/sum(L in 0..2: 1))", 1.5),
        ("(0.5*floor_div(min(7, 8), 3))", 1.0),
        ("(0.5*(select(1 < 2, 7, 8) mod 3))", 0.5),
        ("(1/3)", 1.0 / 3.0),
        ("(floor_div(7, 2)/(5 mod 3))", 1.5),
        ("(max(min(7, 8), 2)/4)", 1.75),
        ("(-(sum(K in 0..7: 1))/2)", -3.5),
        ("(select(sum(K in 0..2: 1) < 3, 1, 0.25)/(3 - 1))", 0.5),
        ("(minimum(K in 0..4: 3)/2 + 0.25)", 1.75),
        ("sqrt(sum(K in 0..4: 1))", 2.0),
        ("max(sum(K in 0..3: 1), 0.5)", 3.0),
        ("fmod(sum(K in 0..7: 1), 4)", 3.0),
        ("(floor_div(-7, 2)*0.5)", -2.0),
        ("(7*3 - 2*9007199254740993/9007199254740993)", 19.0),
    ] {
        check(expression, expected, &devices);
    }
}

/// A real made of literals has the type of its context, which a cast is not.
#[test]
fn literals_take_the_type_of_their_context() {
    let devices = devices();
    let text = "kernel k\n\narg x: f32[1] in\narg y: f64[1] inout\narg z: f32[6] inout\n\n\
                s0: z[0] = f32(16777217.0 - 16777216.0)\n\
                s1: z[1] = 16777217.0 - 16777216.0\n\
                s2: z[2] = x[0]*sum(k in 0..20000000: 1.0)\n\
                s3: z[3] = x[0] + (16777217.0 - 16777216.0)\n\
                s4: z[4] = f32(sum(l in 0..20000000: 1.0) - 19999999.0)\n\
                s5: z[5] = f32(9007199791611905)\n\
                s6: y[0] = x[0] + f64(x[0])*(16777217.0 - 16777216.0)\n";
    let kernel = parse(text).unwrap();
    let memory =
        Memory::new().value("x", vec![1.0_f32]).value("y", vec![0.0_f64]).value("z", vec![0.0_f32; 6]);
    let found = agree(&kernel, &memory, &devices);
    // 2^53 + 2^29 + 1 lies just above the middle of two `f32`; as an `f64` it is the middle
    let up = 9_007_200_328_482_816.0;
    assert_eq!(found.get("z").unwrap().to_f64(), [1.0, 0.0, 16_777_216.0, 1.0, 1.0, up]);
    assert_eq!(found.f64s("y").unwrap(), [2.0]);
}

/// Functions of OpenCL are overloaded: arguments of two types are ambiguous.
#[test]
fn updates_of_one_type_by_another() {
    let devices = devices();
    let reals = (ScalarType::F64, ScalarType::F32);
    let integers = (ScalarType::I64, ScalarType::I32);
    for (wide, narrow) in [reals, integers] {
        for op in ["min=", "max=", "+=", "*="] {
            for tag in ["", " {atomic}"] {
                let text = format!(
                    "kernel k\n\nparam n: i32\narg y: {wide}[n] inout\narg b: {narrow}[n] in\n\n\
                     for i in 0..n\n  s: y[i] {op} b[i]{tag}\n"
                );
                let Ok(kernel) = parse(&text) else { panic!("{text}") };
                let memory = Memory::new().param("n", 3);
                let memory = match wide {
                    ScalarType::F64 => {
                        memory.value("y", vec![0.5, -2.0, 3.0]).value("b", vec![1.5_f32, -4.0, 2.0])
                    }
                    _ => memory.value("y", vec![1_i64, -5, 3]).value("b", vec![2_i32, -6, 1]),
                };
                agree(&kernel, &memory, &devices);
            }
        }
    }
}

/// Elements of 16 bits are read as 32: as indices, in sums that leave 16 bits, as bounds, over lanes,
/// in tables.
#[test]
fn elements_of_16_bits() {
    let devices = devices();
    let text = "kernel k\n\nparam n: i32\narg map: i16[n] in\narg far: i16[8] in\narg x: f64[n] in\n\
                table few: i16[3] constant\narg y: f64[n] inout\narg z: i64[n] inout\narg w: i32[8] inout\n\
                arg c: f64[n] inout\ntemp end: i32 private\n\n\
                table few = [-32768, 7, 32767]\n\n\
                for i in 0..n {g.0}\n  s: y[i] = x[map[i]] + few[i mod 3]/2.0\n\
                \x20 t: z[i] = i64(map[i])*30000*30000 + few[2]\n  u: end = map[i]\n\
                \x20 for k in 0..end\n    v: c[i] += 1.0\n\
                for l in 0..8 {vector}\n  r: w[l] = far[l]*far[l] - far[7 - l]\n";
    let text = text.replace("few[i mod 3]/2.0", "f64(few[i mod 3])/2.0");
    let kernel = parse(&text).unwrap_or_else(|e| panic!("{}", e.render(&text)));
    let memory = Memory::new()
        .param("n", 5)
        .value("map", vec![4_i16, 0, 3, 1, 2])
        .value("far", vec![-32768_i16, 32767, 200, -200, 0, 1, -1, 181])
        .value("x", vec![0.5, 1.5, 2.5, 3.5, 4.5])
        .value("y", vec![0.0; 5])
        .value("z", vec![0_i64; 5])
        .value("w", vec![0_i32; 8])
        .value("c", vec![0.0; 5]);
    let found = agree(&kernel, &memory, &devices);
    assert_eq!(found.f64s("c").unwrap(), [4.0, 0.0, 3.0, 1.0, 2.0]);
    assert_eq!(found.get("z").unwrap().to_i64().unwrap()[0], 3_600_032_767);
    assert_eq!(found.get("w").unwrap().to_i64().unwrap()[0], 1_073_741_643);
}

/// Four elements of a type, near its ends where these wrap, and four values to update them by.
fn elements_and_values(ty: ScalarType) -> [Value; 2] {
    let (lo, hi) = ty.ends().map_or((0, 0), |(lo, hi)| (lo as i64, hi as i64));
    let integers = |values: [i64; 4]| Value::of_bits(ty, &values);
    match ty.class() {
        // sums and products of those of 16 bits are rounded
        Class::Real => {
            [[0.5, -2.0, 3.0, 1024.0], [1.5, -4.03125, 2.0, f64::NAN]].map(|v| Value::of_reals(ty, &v))
        }
        Class::Complex => [
            [0.5, -2.0, 3.0, 0.25, -1.0, -0.0, 0.0, 1024.0],
            [1.5, -4.0, 2.0, 0.5, 0.0, f64::NAN, -3.0, 0.125],
        ]
        .map(|v| Value::of_reals(ty, &v)),
        // what is stored fits
        Class::Exact => [integers([5, 7, hi - 3, lo + 3]), integers([2, 1, 1, 1])],
        Class::Word => [integers([hi, 0, hi - 3, 12345]), integers([hi, 7, 5, hi - 1])],
        Class::Truth | Class::Record => [[0, 1, 0, 1], [0, 0, 1, 1]].map(integers),
    }
}

/// Every type with every operator that it has, in the order of the loop and by work-items at once: the
/// interpreter, C and OpenCL agree, and CUDA compiles.
#[test]
fn every_type_and_update() {
    let devices = devices();
    let nvrtc = nvrtc::version().inspect_err(|reason| println!("skipped: cuda: {reason}")).is_ok();
    let mut compared = 0;
    for ty in ScalarType::ALL {
        let [elements, values] = elements_and_values(ty);
        let updates = UpdateOp::ALL.into_iter().map(|op| (op.is_logical(), op.update_symbol()));
        let all: Vec<(bool, &str)> = [(ty == ScalarType::Bool, "=")].into_iter().chain(updates).collect();
        for (logical, symbol) in all {
            for atomic in [false, true] {
                let atomic = atomic && symbol != "=";
                let tag = if atomic { " {atomic}" } else { "" };
                let text = format!(
                    "kernel k\n\narg y: {ty}[4] inout\narg b: {ty}[4] in\narg z: {ty}[4] inout\n\
                     temp t: {ty} private\n\nfor i in 0..4 {{g.0}}\n  s: y[i] {symbol} b[i]{tag}\n  \
                     r: t = b[i]\n  u: t {symbol} y[i]\n  v: z[i] = t\n"
                );
                let kernel = parse(&text);
                let orders = ty.is_complex() && matches!(symbol, "min=" | "max=");
                assert_eq!(kernel.is_ok(), logical == (ty == ScalarType::Bool) && !orders, "{text}");
                let Ok(kernel) = kernel else { continue };
                let memory = Memory::new()
                    .value("y", elements.clone())
                    .value("b", values.clone())
                    .value("z", Value::zeros(ty, 4));
                // what `t` holds may not fit
                let Ok(_) = interpret(&kernel, &mut memory.clone()) else {
                    panic!("{text}");
                };
                let product = atomic && ty.is_complex() && symbol == "*=";
                if product {
                    for target in Target::ALL {
                        let code = generate(&kernel, *target, &Options::default());
                        assert!(matches!(code, Err(CodegenError::ComplexAtomic { .. })), "{text}");
                    }
                    continue;
                }
                let refused = atomic && ty.bytes() < 4;
                for device in &devices {
                    if refused && device.info().backend != Backend::C {
                        continue;
                    }
                    agree(&kernel, &memory, std::slice::from_ref(device));
                    compared += 1;
                }
                let cuda = generate(&kernel, Target::Cuda, &Options::default().with_trust(true));
                if refused {
                    assert!(matches!(cuda, Err(CodegenError::NarrowAtomic { .. })), "{text}");
                } else if nvrtc {
                    let source = cuda.unwrap().source;
                    let compiled = nvrtc::compile_for("sm_90", "k", &source, &Cache::from_environment());
                    assert!(compiled.is_ok(), "{source}\n{:?}", compiled.err());
                }
            }
        }
    }
    assert!(compared >= 90, "{compared}");
}

/// Every type over lanes.
#[test]
fn every_type_over_lanes() {
    let devices = devices();
    let nvrtc = nvrtc::version().is_ok();
    for ty in ScalarType::ALL {
        let symbol = if ty == ScalarType::Bool { "or=" } else { "+=" };
        let text = format!(
            "kernel k\n\narg x: {ty}[2, 4] in\narg y: {ty}[2, 4] inout\narg z: {ty}[2, 4] inout\n\
             temp t: {ty}[4] private\n\nfor g in 0..2 {{g.0}}\n  for l in 0..4 {{vector}}\n    \
             s: t[l] = x[g, l]\n    r: y[g, l] = t[l]\n    q: z[g, l] {symbol} t[l]\n"
        );
        let kernel = parse(&text).unwrap_or_else(|e| panic!("{}", e.render(&text)));
        let numbers: Vec<f64> = (0..8 * ty.parts() as i32).map(|k| f64::from(k % 2 + k / 4)).collect();
        let integers: Vec<i64> = numbers.iter().map(|x| *x as i64).collect();
        let value =
            if ty.part().is_real() { Value::of_reals(ty, &numbers) } else { Value::of_bits(ty, &integers) };
        let memory =
            Memory::new().value("x", value.clone()).value("y", Value::zeros(ty, 8)).value("z", value);
        agree(&kernel, &memory, &devices);
        if nvrtc {
            let source =
                generate(&kernel, Target::Cuda, &Options::default().with_trust(true)).unwrap().source;
            let compiled = nvrtc::compile_for("sm_90", "k", &source, &Cache::from_environment());
            assert!(compiled.is_ok(), "{source}\n{:?}", compiled.err());
        }
    }
}

/// The values of some expressions of complex numbers, and the kernel that computes them in a type.
fn complex_rows(ty: ScalarType, rows: &[&str]) -> (Kernel, Memory) {
    let other = if ty == ScalarType::C64 { ScalarType::C128 } else { ScalarType::C64 };
    let real = ty.part();
    let mut text = format!(
        "kernel k\n\narg a: {ty} in\narg z: {ty}[6] in\narg w: {other}[6] in\narg b: {real}[6] in\n\
         arg y: {ty}[{}, 6] out\n\nfor i in 0..6 {{g.0}}\n",
        rows.len()
    );
    for (k, row) in rows.iter().enumerate() {
        let loads = [("A", "a"), ("B", "b[i]"), ("Z", "z[i]"), ("W", "w[i]"), ("R(", &format!("{real}("))];
        let row =
            loads.iter().fold(row.replace('K', &format!("k{k}")), |row, (from, to)| row.replace(from, to));
        let _ = writeln!(text, "  s{k}: y[{k}, i] = {ty}({row})");
    }
    // both sides of the cuts, which the sign of a zero tells
    let numbers = [1.5, -2.0, -4.0, 0.0, -4.0, -0.0, 0.0, 0.0, 0.25, 1e-3, -3.0, 4.0];
    let memory = Memory::new()
        .value("a", Value::of_reals(ty, &[0.75, -1.25]))
        .value("z", Value::of_reals(ty, &numbers))
        .value("w", Value::of_reals(other, &numbers.map(|x| x / 3.0)))
        .value("b", Value::of_reals(real, &[2.0, -1.0, 0.5, 3.0, 1.0, -0.25]));
    (parse(&text).unwrap_or_else(|e| panic!("{}", e.render(&text))), memory)
}

/// Operations on complex numbers and functions of them, within the rounding of fused products and a few
/// ulp of functions. The sides of a cut are far apart.
#[test]
fn complex_numbers_are_those_of_the_interpreter() {
    let devices = devices();
    let rows = [
        "Z*A",
        "Z/A",
        "A - Z",
        "Z + B",
        "B - Z",
        "Z - B",
        "B*Z",
        "Z/B",
        "B/Z",
        "2 - Z",
        "-Z",
        "conj(Z)",
        "exp(Z)",
        "log(Z)",
        "sqrt(Z)",
        "sin(Z)",
        "cos(Z)",
        "pow(Z, A)",
        "pow(Z, 3)",
        "pow(Z, -2)",
        "pow(B, A)",
        "complex(imag(Z), abs(Z))",
        "select(Z == A or real(Z) < 0.0, A, Z*A)",
        "select(Z != A, B, Z)",
        "W",
        "c64(W)",
        "Z*c64(W)",
        "sum(K in 0..3: Z*complex(0.5, R(K)))",
        "product(K in 0..3: Z)",
        "complex(0.1, 0.2)*Z",
        "complex(R(1), 2)/Z",
    ];
    for ty in [ScalarType::C64, ScalarType::C128] {
        let (kernel, memory) = complex_rows(ty, &rows);
        let mut expected = memory.clone();
        interpret(&kernel, &mut expected).unwrap();
        for device in &devices {
            super::compare(&expected, &run(device.as_ref(), &kernel, &memory)).unwrap();
        }
        compiles(&kernel);
    }
}

/// NVRTC compiles the code of a kernel, where there is one.
fn compiles(kernel: &Kernel) {
    if nvrtc::version().is_ok() {
        let source = generate(kernel, Target::Cuda, &Options::default()).unwrap().source;
        let compiled = nvrtc::compile_for("sm_90", "k", &source, &Cache::from_environment());
        assert!(compiled.is_ok(), "{source}\n{:?}", compiled.err());
    }
}

/// Complex numbers go part by part from one work-item to another, and into sums of many.
#[test]
fn work_items_exchange_complex_numbers() {
    let devices = devices();
    for ty in [ScalarType::C64, ScalarType::C128] {
        let text = format!(
            "kernel k\n\narg x: {ty}[4, 8] in\narg y: {ty}[4, 8] out\narg s: {ty}[2] inout\n\
             temp held: {ty}[8] subgroup\ntemp shared: {ty}[8] local\n\nfor g in 0..4 {{g.0}}\n  \
             for l in 0..8 {{l.0}}\n    a: held[l] = x[g, l]*2\n    b: shared[l] = conj(x[g, l])\n  \
             for m in 0..8 {{l.0}}\n    c: y[g, m] = held[7 - m] - shared[(m + 1) mod 8]\n    \
             d: s[g mod 2] += x[g, m] {{atomic}}\n"
        );
        let kernel = parse(&text).unwrap_or_else(|e| panic!("{}", e.render(&text)));
        // sums of small whole numbers are exact in any order
        let numbers: Vec<f64> = (0..64).map(|k| f64::from(k * 7 % 19 - 9)).collect();
        let memory = Memory::new()
            .value("x", Value::of_reals(ty, &numbers))
            .value("s", Value::of_reals(ty, &[1.0, -2.0, 0.5, 3.0]));
        agree(&kernel, &memory, &devices);
        compiles(&kernel);
    }
}

/// Tables of complex numbers in every address space, at indices that are numbers and others. What is expected
/// is computed here, of whole numbers and halves, exactly.
#[test]
fn tables_of_complex_numbers() {
    let devices = devices();
    let table = [[1.0, -0.5], [0.0, 2.0], [-3.0, 0.0], [0.5, 0.5]];
    let x = [[2.0, 1.0], [-1.0, 4.0], [0.0, -2.0]];
    let times = |a: [f64; 2], b: [f64; 2]| [a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]];
    let mut products = [[0.0; 2]; 3];
    for (sum, x) in products.iter_mut().zip(x) {
        for entry in table {
            let term = times(entry, x);
            *sum = [sum[0] + term[0], sum[1] + term[1]];
        }
        let last = times(table[3], table[0]);
        *sum = [sum[0] + last[0], sum[1] - last[1]];
    }
    for ty in [ScalarType::C64, ScalarType::C128] {
        for space in ["global", "constant", "literal"] {
            let text = format!(
                "kernel k\n\narg x: {ty}[3] in\narg y: {ty}[3] out\ntable t: {ty}[4] {space}\n\
                 table one: {ty}[1] {space}\n\nfor i in 0..3 {{g.0}}\n  \
                 a: y[i] = sum(k in 0..4: t[k]*x[i]) + conj(t[3]*one[0])\n\n\
                 table t = [complex(1.0, -0.5), 2i, -3, complex(0.5, 0.5)]\ntable one = [complex(1.0, -0.5)]\n"
            );
            let kernel = parse(&text).unwrap_or_else(|e| panic!("{}", e.render(&text)));
            let memory = Memory::new().value("x", Value::of_reals(ty, x.as_flattened()));
            let found = agree(&kernel, &memory, &devices);
            assert_eq!(found.get("y"), Some(&Value::of_reals(ty, products.as_flattened())), "{text}");
            compiles(&kernel);
        }
    }
}

/// The limit of an extremum does not fit the type of the element, and the result does.
#[test]
fn extrema_of_bytes_with_wide_values() {
    let devices = devices();
    let text = "kernel k\n\narg y: i8[2] inout\narg z: u8[2] inout\narg b: i64[2] in\n\n\
                for i in 0..2\n  s: y[i] max= i32(b[i])\n  r: z[i] max= i32(b[i]) if b[i] < 0\n";
    let kernel = parse(text).unwrap_or_else(|e| panic!("{}", e.render(text)));
    let memory =
        Memory::new().value("y", vec![5_i8, -128]).value("z", vec![200_u8, 1]).value("b", vec![-1000_i64, 7]);
    let found = agree(&kernel, &memory, &devices);
    assert_eq!(found.get("y"), Some(&Value::I8(vec![5, 7])));
    assert_eq!(found.get("z"), Some(&Value::U8(vec![200, 1])));
}

/// The values of expressions in a type of results.
fn table(ty: ScalarType, rows: &[(&str, Value)], devices: &[Box<dyn Device>]) {
    let mut text = format!(
        "kernel k\n\narg a: u32[1] in\narg b: u32 in\narg c: u64[1] in\narg i: i32[1] in\narg x: f64[1] in\n\
         arg q: bool[4] in\narg y: {ty}[{}] inout\n\n",
        rows.len()
    );
    for (k, (expression, _)) in rows.iter().enumerate() {
        let expression = expression
            .replace("A", "a[0]")
            .replace("C", "c[0]")
            .replace("I", "i[0]")
            .replace("X", "x[0]")
            .replace("K", &format!("k{k}"));
        let _ = writeln!(text, "s{k}: y[{k}] = {expression}");
    }
    let kernel = parse(&text).unwrap_or_else(|e| panic!("{}", e.render(&text)));
    let memory = Memory::new()
        .value("a", vec![u32::MAX])
        .value("b", 7_u32)
        .value("c", vec![u64::MAX])
        .value("i", vec![-7_i32])
        .value("x", vec![5.5])
        .value("q", [true, false, true, true].map(Flag::from).to_vec())
        .value("y", Value::zeros(ty, rows.len()));
    let found = agree(&kernel, &memory, devices);
    let found = found.get("y").unwrap();
    for (k, (expression, expected)) in rows.iter().enumerate() {
        assert_eq!(
            (found.integer(k), found.to_f64()[k]),
            (expected.integer(0), expected.to_f64()[0]),
            "{expression}"
        );
    }
}

#[test]
fn words_are_integers_modulo_a_power_of_two() {
    let devices = devices();
    let rows = [
        ("A + 1", 0_u32),
        ("A*A", 1),
        ("b - A", 8),
        ("-b", 0_u32.wrapping_sub(7)),
        ("floor_div(A, b)", u32::MAX / 7),
        ("trunc_div(A, b)", u32::MAX / 7),
        ("A mod b", u32::MAX % 7),
        ("trunc_rem(A, 10)", u32::MAX % 10),
        ("shl(b, 30)", 7 << 30),
        ("shl(b, 3 + I + 7)", 7 << 3),
        ("shr(A, 28)", 15),
        ("shr(A, b)", u32::MAX >> 7),
        ("bit_not(b)", !7),
        ("bit_xor(A, b)", u32::MAX ^ 7),
        ("bit_and(A, 255) + bit_or(b, 8)", 255 + 15),
        ("min(A, b)", 7),
        ("max(A, b)", u32::MAX),
        ("select(A < b, 3, b)", 7),
        ("u32(I)", 0_u32.wrapping_sub(7)),
        ("u32(5000000000)", 5_000_000_000_u64 as u32),
        ("u32(C)", u32::MAX),
        ("u32(X)", 5),
        ("u32(I < 0)", 1),
        ("sum(K in 0..3: A)", 0_u32.wrapping_sub(3)),
        ("product(K in 0..3: A)", u32::MAX),
        ("maximum(K in 0..0: A)", 0),
        ("minimum(K in 0..0: A)", u32::MAX),
    ];
    table(ScalarType::U32, &rows.map(|(e, v)| (e, v.into())), &devices);
    let rows = [
        ("C + 1", 0_u64),
        ("C*C", 1),
        ("shl(C, 63)", 1 << 63),
        ("shr(C, 60)", 15),
        ("u64(I)", 0_u64.wrapping_sub(7)),
        ("floor_div(C, 3)", u64::MAX / 3),
        ("max(C, 1)", u64::MAX),
        ("A + C", u64::from(u32::MAX).wrapping_add(u64::MAX)),
        ("u64(A)*u64(A)", u64::from(u32::MAX).pow(2)),
        ("bit_not(C)", 0),
        ("select(C < 1, 0, C - 1)", u64::MAX - 1),
        ("minimum(K in 0..0: C)", u64::MAX),
    ];
    table(ScalarType::U64, &rows.map(|(e, v)| (e, v.into())), &devices);
}

#[test]
fn bits_and_quotients_of_exact_integers() {
    let devices = devices();
    let rows = [
        ("bits(A)", -1_i64),
        ("i64(A)", u32::MAX.into()),
        ("bits(C)", -1),
        ("i32(b)", 7),
        ("shr(I, 1)", -4),
        ("shr(I, I + 8)", -4),
        ("shl(I, 3)", -56),
        ("shl(I, I + 9)", -28),
        ("shl(1, I + 47)", 1 << 40),
        ("bit_and(I, 255)", 249),
        ("bit_and(I, -8)", -8),
        ("bit_or(I, 1)", -7),
        ("bit_xor(I, 5)", -7 ^ 5),
        ("bit_not(I)", 6),
        ("trunc_div(I, 2)", -3),
        ("trunc_rem(I, 2)", -1),
        ("trunc_div(-2147483648, -1 + 0*I)", 1 << 31),
        ("floor_div(I, 2)", -4),
        ("I mod 2", 1),
        ("i32(I < 0) + i32(q[1])", 1),
        ("sum(K in 0..4: i32(q[K]))", 3),
    ];
    table(ScalarType::I64, &rows.map(|(e, v)| (e, v.into())), &devices);
    let rows = [
        ("X mod -2.0", -0.5),
        ("-X mod 2.0", 0.5),
        ("X mod 2", 1.5),
        ("f64(C)", u64::MAX as f64),
        ("f64(A)", f64::from(u32::MAX)),
        ("f64(q[0])", 1.0),
        ("f64(f32(C))", f64::from(u64::MAX as f32)),
        ("f64(f32(X) mod f32(-2.0))", -0.5),
    ];
    table(ScalarType::F64, &rows.map(|(e, v)| (e, v.into())), &devices);
    let rows = [
        ("any(K in 0..4: q[K])", true),
        ("all(K in 0..4: q[K])", false),
        ("any(K in 0..0: q[K])", false),
        ("all(K in 0..0: q[K])", true),
        ("not q[0] or I < 0 and q[2]", true),
        ("true", true),
        ("C < 1", false),
        ("b < A", true),
    ];
    table(ScalarType::Bool, &rows.map(|(e, v)| (e, Flag::from(v).into())), &devices);
}

/// Reals of 16 bits are computed with as `f32`, and rounded to the nearest even one where they are stored:
/// all targets have the same bits.
#[test]
fn reals_of_16_bits_are_storage() {
    let devices = devices();
    // every kind of number, the middles between neighbours, what overflows and what vanishes
    let mut values: Vec<f32> =
        [0.0, -0.0, 1.0, 65504.0, 65519.9, 65520.0, 3.4e38, 1e-8, 2.9e-8, 3.0e-8, 6e-5, 1e-40]
            .into_iter()
            .chain([f32::INFINITY, f32::NEG_INFINITY, f32::NAN])
            .collect();
    let mut random = super::Random(7);
    values.extend((0..400).map(|_| f32::from_bits(random.next() as u32)));
    values.extend((0..400).map(|_| f32::from_bits(0x3800_0000 + (random.next() % (1 << 25)) as u32)));
    values.extend((0..100_u32).map(|k| f32::from_bits(0x3F80_0000 + (k << 12))));
    let n = values.len();
    for ty in [ScalarType::F16, ScalarType::Bf16] {
        let text = format!(
            "kernel k\n\nparam n: i32\narg x: f32[n] in\narg y: {ty}[n] inout\narg z: f32[n] inout\n\
             arg total: {ty} inout\ntable few: {ty}[3] constant\ntemp t: {ty} private\n\n\
             table few = [0.5, -1.5, 0.1]\n\nfor i in 0..n {{g.0}}\n  a: y[i] = x[i]\n  b: t = -x[i]\n  \
             c: z[i] = f32({ty}(x[i]*few[i mod 3])) + t\ntotal += few[2] if 0 < n\n"
        );
        let kernel = parse(&text).unwrap_or_else(|e| panic!("{}", e.render(&text)));
        let memory = Memory::new()
            .param("n", n as i64)
            .value("x", values.clone())
            .value("y", Value::zeros(ty, n))
            .value("z", vec![0.0_f32; n])
            .value("total", Value::of_reals(ty, &[2048.0]));
        let found = agree(&kernel, &memory, &devices);
        let rounded = Value::of_reals(ty, &values.iter().map(|x| f64::from(*x)).collect::<Vec<_>>());
        let (found, rounded) = (found.get("y").unwrap().to_f64(), rounded.to_f64());
        assert_eq!(format!("{found:?}"), format!("{rounded:?}"));
    }
}

/// A word looks affine and wraps: `w + 1` of the largest one is 0, whatever a proof of integers says.
#[test]
fn an_index_made_of_words() {
    let devices = devices();
    let text = "kernel k\n\narg w: u32 in\narg v: u64[1] in\narg x: f64[3] in\narg y: f64[3] inout\n\n\
                s: y[0] = x[i64(w + 1)] + 10.0\nr: y[i64(v[0] + 2)] = x[i64(shr(w, 30)) - 1] if w + 1 < w\n\
                q: y[2] = select(w + 1 <= w, 1.0, 2.0)\n";
    let kernel = parse(text).unwrap_or_else(|e| panic!("{}", e.render(text)));
    let memory = Memory::new()
        .value("w", u32::MAX)
        .value("v", vec![u64::MAX])
        .value("x", vec![1.0, 2.0, 3.0])
        .value("y", vec![0.0; 3]);
    let found = agree(&kernel, &memory, &devices);
    assert_eq!(found.f64s("y").unwrap(), [11.0, 3.0, 1.0]);
}
