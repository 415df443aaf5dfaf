//! Kernels whose names mean something to the compilers of the targets, and labels that would be
//! code.

use super::{Random, compare, devices, random_memory, run};
use kingpost_codegen::{Options, Target, generate};
use kingpost_interp::interpret;
use kingpost_ir::Kernel;
use kingpost_ir::text::parse;
use kingpost_ir::verify::is_name;
use kingpost_runtime::{Cache, cuda::nvrtc};
use kingpost_sample::seed;
use std::collections::{BTreeMap, BTreeSet};

/// Names of each class that a target knows or that the printers use: macros of C and OpenCL,
/// functions of OpenCL and C, keywords of C++, what CUDA declares, names of the printers, first
/// letters that belong to the implementation.
const NAMES: [&str; 44] = [
    "HUGE_VAL",
    "M_PI",
    "NULL",
    "INT_MAX",
    "INT32_MAX",
    "SIZE_MAX",
    "INFINITY",
    "CLK_LOCAL_MEM_FENCE",
    "rotate",
    "mad",
    "any",
    "shuffle",
    "prefetch",
    "remainder",
    "rint",
    "modf",
    "expf",
    "atan2pi",
    "vload4",
    "barrier",
    "get_global_id",
    "memcpy",
    "xor",
    "template",
    "linux",
    "double4",
    "wchar_t",
    "atomicAdd",
    "threadIdx",
    "rnorm3d",
    "cudaSuccess",
    "dim3",
    "norm",
    "main",
    "g0",
    "groups_0",
    "args",
    "grid",
    "local_memory",
    "kingpost_x",
    "__x",
    "_K",
    "_",
    "int_",
];

/// Labels that a language could read as more than a comment, and one with names of its own.
const LABELS: [&str; 8] =
    [r"C:\\tmp\\", "what??/", r"x\u{a}y[0] = 1.0;", "*/", r"\\ ", r"\u{d}", r#"a\"b"#, "größer"];

/// Names of buffers that are no identifiers, or that a target knows.
const BUFFERS: [&str; 6] = ["my buffer", "", "9 lives", "long", "__x", r"a\\"];

/// Parts of the kernel that have a name.
const ROLES: usize = 14;

/// A kernel with everything that has a name; `name` gives those of the roles.
fn kernel(name: impl Fn(usize) -> String, label: &str, buffer: &str) -> Kernel {
    let template = r#"kernel N0

param N1: i32
arg N2: f64[N1] in
arg N3: i32[N1] in
arg N4: f64[N1] inout
arg N5: f64[N1] out
arg N6: f64 in
temp N7: f64 private
temp N8: f64[4] private storage("BUFFER")
temp N9: f64[5] private storage("BUFFER")
table N10: f64[4] constant

for N11 in 0..N1 {g.0}
  gather: N7 = exp(N2[N11]) {"LABEL"}
  for N12 in 0..4
    s1: N8[N12] = N10[N12]*N7 + N6
  s2: N5[N11] = sum(N13 in 0..4: N8[N13]*f64(N13)) + fmin(N2[N11], f64(floor_div(N11, 3) + (N11 mod 2)))
  for j in 0..5
    s3: N9[j] = N7*f64(j)
  s4: N4[N3[N11]] += N9[3] {atomic, "LABEL"}

table N10 = [0.5, 0.25, 2.0, 1.0]
"#;
    let mut text = template.replace("LABEL", label).replace("BUFFER", buffer);
    for role in (0..ROLES).rev() {
        text = text.replace(&format!("N{role}"), &format!("\u{1}{role}\u{1}"));
    }
    for role in 0..ROLES {
        text = text.replace(&format!("\u{1}{role}\u{1}"), &name(role));
    }
    parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// The kernel compiles for every target, and computes the same wherever it can run.
fn check(kernel: &Kernel, random: &mut Random) {
    let param = kernel.vars.values().next().unwrap().name.clone();
    let mut memory = random_memory(kernel, &BTreeMap::from([(param, 4)]), random);
    let map = kernel.vars.values().nth(2).unwrap().name.clone();
    memory.set(map, vec![2, 0, 2, 3]);
    let mut expected = memory.clone();
    interpret(kernel, &mut expected).unwrap();
    for device in devices() {
        compare(&expected, &run(&*device, kernel, &memory)).unwrap_or_else(|e| panic!("{e}\n{kernel}"));
    }
    match nvrtc::version() {
        Ok(_) => {
            let program = generate(kernel, Target::Cuda, &Options::default()).unwrap();
            nvrtc::compile_for("sm_90", &program.entry, &program.source, &Cache::from_environment())
                .unwrap_or_else(|e| panic!("{e}\n{}", program.source));
        }
        Err(e) => eprintln!("skipped: {e}"),
    }
}

/// Each name is that of each part of a kernel, one part at a time.
#[test]
fn names_that_targets_know_are_renamed() {
    assert_eq!(NAMES.iter().collect::<BTreeSet<_>>().len(), NAMES.len());
    let mut random = Random(seed());
    // every name in some roles; in all of them in a long run
    let step = if super::is_long_run() { 1 } else { 16 };
    for shift in (0..NAMES.len()).step_by(step) {
        // 3 and 44 have no common factor, so that neighbours differ from kernel to kernel
        let name = |role: usize| NAMES[(shift + 3 * role) % NAMES.len()].to_owned();
        check(&kernel(name, "plain", "buffer"), &mut random);
    }
}

/// Names drawn from all words that some compiler knows.
#[test]
fn words_of_the_targets_are_renamed() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../codegen/src/names/words.txt");
    let text = std::fs::read_to_string(file).unwrap();
    let words: Vec<&str> = text.lines().filter(|w| is_name(w)).collect();
    let mut random = Random(seed());
    for _ in 0..super::cases(6) {
        let mut drawn: Vec<String> = Vec::new();
        while drawn.len() < ROLES {
            let word = words[(random.next() % words.len() as u64) as usize].to_owned();
            if !drawn.contains(&word) {
                drawn.push(word);
            }
        }
        check(&kernel(|role| drawn[role].clone(), "plain", "buffer"), &mut random);
    }
}

#[test]
fn labels_and_names_of_buffers_are_no_code() {
    let mut random = Random(seed());
    for (k, label) in LABELS.iter().enumerate() {
        let name = |role: usize| format!("name{role}");
        check(&kernel(name, label, BUFFERS[k % BUFFERS.len()]), &mut random);
    }
}
