//! The type of each part of an expression: what a literal is depends on what stands around it.

use super::{devices, run};
use purlin_interp::{Memory, interpret};
use purlin_ir::text::parse;
use purlin_ir::{Kernel, ScalarType};
use purlin_runtime::Device;
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
