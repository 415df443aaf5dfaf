//! Groups that start in order and wait for values of earlier ones.
use kingpost_codegen::plan::ArgKind;
use kingpost_codegen::{CodegenError, Options, Program, Target, generate};
use kingpost_ir::{ScalarType, text};

/// Each group adds its value to that of the group before.
fn generated(ty: &str, target: Target) -> Result<Program, CodegenError> {
    let kernel = format!(
        "kernel k {{ordered_groups}}\n\nparam n: i32\narg x: {ty}[n] in\narg y: {ty}[n] inout\ntemp t: {ty}[n + 1] \
         global\ntemp v: {ty} private\n\nfor b in 0..n {{g.0}}\n  z: v = x[b]\n  r: v = t[b] if 0 < b\n  s: t[b + 1] = \
         v + x[b]\n  u: y[b] = v\n"
    );
    generate(&text::parse(&kernel).unwrap(), target, &Options::default())
}

#[test]
fn opencl_has_no_such_groups() {
    assert_eq!(
        generated("f64", Target::OpenCl).unwrap_err().to_string(),
        "groups wait for values of earlier ones, and nothing promises that a group of opencl goes on meanwhile; print it \
         for cuda, hip or c, or split the launch there"
    );
}

#[test]
fn a_host_runs_groups_in_order() {
    let source = generated("f64", Target::C).unwrap().source;
    assert!(!source.contains("omp") && source.contains("for (int32_t b = 0; b < groups_0; ++b)"), "{source}");
}

/// An element has a word with the number of the launch for each 32 bits, after those of the launch.
#[test]
fn elements_carry_the_number_of_their_launch() {
    for (ty, words) in [("f32", 1), ("i32", 1), ("u32", 1), ("f64", 2), ("i64", 2), ("u64", 2)] {
        let program = generated(ty, Target::Cuda).unwrap();
        let spec = program.plan.args.iter().find(|spec| spec.name == "t").unwrap();
        let ArgKind::Scratch { len, zeroed } = &spec.kind else { panic!("{spec:?}") };
        let elements = len.eval(&[("n".to_owned(), 10)].into()).unwrap();
        assert_eq!((spec.ty, spec.aligned, *zeroed, elements), (ScalarType::U64, 16, true, 2 + words * 11));
        let vector = if words == 2 { ".v2" } else { "" };
        for part in [
            "    unsigned long long *t) // [(n + 1)], words with the number of their launch\n".to_owned(),
            "atomicAdd((&t[0]), 1ull)".to_owned(),
            "    const int b = (int)turn[0];\n".to_owned(),
            format!("ld.relaxed.gpu{vector}.u64"),
            format!("st.relaxed.gpu{vector}.u64"),
        ] {
            assert!(program.source.contains(&part), "{part}\n{}", program.source);
        }
    }
}

/// Groups that need not wait start as they like.
#[test]
fn groups_that_wait_for_nobody_take_no_numbers() {
    let kernel = "kernel k {ordered_groups}\n\nparam n: i32\narg y: f64[n] inout\n\nfor b in 0..n {g.0}\n  s: y[b] *= 2.0\n";
    for target in Target::ALL {
        let kernel = text::parse(kernel).unwrap();
        let program = generate(&kernel, *target, &Options::default()).unwrap();
        assert!(!program.source.contains("turn"), "{}", program.source);
    }
}
