//! Strides that are parameters: whether they keep elements apart is proved, or checked at the launch.

use super::{devices, launched};
use kingpost_codegen::{Options, Target, generate};
use kingpost_interp::{Memory, Value};
use kingpost_ir::text::parse;
use kingpost_runtime::{Device, RuntimeError};

const KERNEL: &str = "\
kernel scaled

param n: i32
param m: i32
param s: i64
param t: i64
param q: i64
param r: i64
arg x: f64[n, m] in strides(q, r)
arg y: f64[n, m] inout strides(s, t)
ASSUMED
for i in 0..n {g.0}
  for j in 0..m
    a: y[i, j] += 3.0*x[i, j]
";

/// Extents, strides of what is written, and of what is read.
type Sizes = ([i64; 2], [i64; 2], [i64; 2]);

fn memory((extents, written, read): Sizes, x: &[f64], y: &[f64]) -> Memory {
    let all = [extents, written, read].concat();
    let mut memory = Memory::new().value("x", x.to_vec()).value("y", y.to_vec());
    ["n", "m", "s", "t", "q", "r"]
        .into_iter()
        .zip(all)
        .for_each(|(name, value)| memory.set_param(name, value));
    memory
}

/// The result and the inputs in memory that has `room` elements each.
fn run(assumed: &str, sizes: Sizes, room: usize) -> Vec<Result<(), RuntimeError>> {
    let ([n, m], [s, t], [q, r]) = sizes;
    let kernel = parse(&KERNEL.replace("ASSUMED", assumed)).unwrap();
    let x: Vec<f64> = (0..room).map(|k| 1.0 + k as f64).collect();
    let y: Vec<f64> = (0..room).map(|k| 1000.0 * k as f64).collect();
    let mut wanted = y.clone();
    for (i, j) in (0..n).flat_map(|i| (0..m).map(move |j| (i, j))) {
        wanted[(i * s + j * t) as usize] += 3.0 * x[(i * q + j * r) as usize];
    }
    let memory = memory(sizes, &x, &y).of_kernel(&kernel);
    let on = |device: Box<dyn Device>| {
        let found = launched(device.as_ref(), &kernel, &memory)?;
        assert_eq!(found["y"], Value::F64(wanted.clone()), "{sizes:?} on {}", device.info().name);
        Ok(())
    };
    devices().into_iter().map(on).collect()
}

#[test]
fn elements_that_lie_apart() {
    for sizes in [
        ([4, 3], [3, 1], [3, 1]),  // row by row
        ([4, 3], [1, 4], [1, 5]),  // column by column
        ([4, 3], [6, 2], [10, 3]), // every other one
        ([4, 3], [2, 8], [0, 1]),  // one row, read again and again
        ([4, 3], [5, 1], [1, 1]),  // windows
        ([1, 3], [0, 2], [0, 0]),  // an axis of one element has any stride
        ([4, 1], [1, -7], [2, -7]),
        ([0, 3], [0, 0], [0, 0]), // nothing
    ] {
        run("", sizes, 50).into_iter().for_each(|result| result.unwrap());
    }
}

#[test]
fn elements_that_share_a_place() {
    let all = [
        (([4, 3], [1, 1], [3, 1]), "y"),
        (([4, 3], [2, 1], [3, 1]), "y"),
        (([4, 3], [0, 1], [3, 1]), "y"),
        (([4, 3], [1, 3], [3, 1]), "y"),
        (([1, 3], [0, 0], [3, 1]), "y"),
        (([4, 3], [3, 1], [3, -1]), "x"),
    ];
    for ((extents, written, read), wrong) in all {
        let kernel = parse(&KERNEL.replace("ASSUMED", "")).unwrap();
        let room = vec![1.0; 50];
        for device in devices() {
            let memory = memory((extents, written, read), &room, &room);
            let error = launched(device.as_ref(), &kernel, &memory).unwrap_err();
            let RuntimeError::Strides { array, .. } = &error else { panic!("{error}") };
            assert_eq!(array, wrong, "{error}");
        }
    }
    let kernel = parse(&KERNEL.replace("ASSUMED", "")).unwrap();
    let memory = memory(([4, 3], [2, 1], [3, 1]), &[1.0; 50], &[1.0; 50]);
    let error = launched(devices()[0].as_ref(), &kernel, &memory).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`scaled` relies on `strides(s, t) of y[n, m] keep elements apart`, which fails with m = 3, n = 4, s = 2, t = 1; \
         pass an array whose elements lie apart, such as a copy"
    );
}

/// What is assumed is checked as it is written, and proves the rest.
#[test]
fn what_is_proved_is_not_checked_again() {
    let conditions = |assumed: &str| {
        let kernel = parse(&KERNEL.replace("ASSUMED", assumed)).unwrap();
        let plan = generate(&kernel, Target::C, &Options::default()).unwrap().plan;
        let of_array = |c: kingpost_codegen::Precondition| c.array.map(|array| (array, c.text));
        plan.preconditions.into_iter().filter_map(of_array).map(|(array, _)| array).collect::<Vec<_>>()
    };
    assert_eq!(conditions(""), ["x", "x", "y", "y", "y"]);
    assert_eq!(conditions("assume q >= 0\nassume r >= 0\nassume t >= 1"), ["y", "y"]);
    let proved = "param d: i64 = t*m\nassume q >= 0\nassume r >= 0\nassume t >= 1\nassume s >= d";
    assert_eq!(conditions(proved), [""; 0]);
    for written in [[7, 2], [6, 2]] {
        run(proved, ([4, 3], written, [3, 1]), 50).into_iter().for_each(|result| result.unwrap());
    }
    let kernel = parse(&KERNEL.replace("ASSUMED", proved)).unwrap();
    let memory = memory(([4, 3], [5, 2], [3, 1]), &[1.0; 50], &[1.0; 50]).of_kernel(&kernel);
    let error = launched(devices()[0].as_ref(), &kernel, &memory).unwrap_err();
    assert!(matches!(error, RuntimeError::Precondition { .. }), "{error}");
}
