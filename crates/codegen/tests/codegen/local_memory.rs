//! Where arrays of more local memory than a CUDA kernel may declare are; facts cannot say it,
//! because they run on devices that have less.
use kingpost_codegen::{Options, Program, Target, generate};
use kingpost_ir::text;

/// A kernel that exchanges what it stores in two arrays of `s` and `t` numbers and a short one.
fn program(s: usize, t: usize) -> Program {
    generated("k", s, t, Target::Cuda)
}

fn generated(first_line: &str, s: usize, t: usize, target: Target) -> Program {
    let kernel = format!(
        "kernel {first_line}\n\narg a: f64[32] inout\ntemp s: f64[{s}] local\ntemp t: f64[{t}] local\n\
         temp u: f32[64] local\n\nfor i in 0..32 {{l.0}}\n  load_s: s[90*i] = a[i]\n  \
         load_t: t[96*i] = a[i]\n  load_u: u[2*i] = 1.0\nfor j in 0..32 {{l.0}}\n  \
         use: a[j] = s[90*(31 - j)] + t[96*(31 - j)] + f64(u[2*(31 - j)])\n"
    );
    generate(&text::parse(&kernel).unwrap(), target, &Options::default()).unwrap()
}

#[test]
fn a_kernel_declares_what_fits_smallest_first() {
    let program = program(3072, 4000);
    for line in [
        "    __shared__ double s[3072];\n",
        "    extern __shared__ double local_memory[];\n    double *const t = (double *)local_memory;\n",
        "    __shared__ float u[64];\n",
    ] {
        assert!(program.source.contains(line), "{}", program.source);
    }
    assert_eq!(program.plan.local_bytes, 8 * (3072 + 4000) + 4 * 64);
    assert_eq!(program.plan.dynamic_local_bytes, 8 * 4000);
}

#[test]
fn arrays_that_do_not_fit_follow_each_other() {
    let program = program(6200, 6200);
    let parts = "    double *const s = (double *)local_memory;\n    \
                 double *const t = (double *)((char *)local_memory + 49600);\n";
    assert!(program.source.contains(parts), "{}", program.source);
    assert_eq!(program.plan.dynamic_local_bytes, 2 * 8 * 6200);
}

#[test]
fn what_fits_is_declared() {
    let program = program(2973, 3000);
    assert!(!program.source.contains("extern __shared__"), "{}", program.source);
    assert_eq!(program.plan.dynamic_local_bytes, 0);
}

/// In the order of their declarations, whether they fit or not; other targets declare them.
#[test]
fn dynamic_memory_holds_all_arrays() {
    for (s, t) in [(3072, 4000), (2973, 3000)] {
        let all = generated("k {dynamic_local}", s, t, Target::Cuda);
        let parts = format!(
            "    extern __shared__ double local_memory[];\n    double *const s = (double *)local_memory;\n    \
             double *const t = (double *)((char *)local_memory + {});\n    \
             float *const u = (float *)((char *)local_memory + {});\n",
            8 * s,
            8 * (s + t)
        );
        assert!(all.source.contains(&parts), "{}", all.source);
        assert!(!all.source.contains("    __shared__"), "{}", all.source);
        let bytes = 8 * (s + t) as u64 + 4 * 64;
        assert_eq!((all.plan.local_bytes, all.plan.dynamic_local_bytes), (bytes, bytes));
    }
    for target in [Target::OpenCl, Target::C] {
        let [plain, dynamic] = ["k", "k {dynamic_local}"].map(|first| generated(first, 2973, 3000, target));
        assert_eq!(plain.source, dynamic.source);
        assert_eq!(dynamic.plan.dynamic_local_bytes, 0);
    }
}
