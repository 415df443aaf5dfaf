//! Kernel text and generated source of one case of each operator under the single-cell strategy,
//! and the kernel text after each step of a recipe: one snapshot a fact, in `tests/snapshots`.
//!
//! `INSTA_UPDATE=always cargo nextest run -p kingpost --test snapshots` writes what changed; review
//! it like code.

#![allow(clippy::unwrap_used)]

use kingpost::codegen::{ArgKind, Options, Program, Target, generate};
use kingpost::forms::lowering::{LoweringOptions, lower};
use kingpost::ir::Kernel;
use kingpost::ir::text::{PrintOptions, TableStyle, print, print_with};
use kingpost::kernels::Operator;
use kingpost::{Mapping, transform};
use std::fmt::Write;

/// One case of each operator, both dimensions, degrees 2 to 4.
const CASES: [(Operator, usize, usize); 5] = [
    (Operator::Mass, 2, 2),
    (Operator::Helmholtz, 2, 3),
    (Operator::Laplace, 3, 4),
    (Operator::Elasticity, 3, 2),
    (Operator::Hyperelasticity, 2, 2),
];

const TARGETS: [(Target, &str); 3] = [(Target::Cuda, "cuda"), (Target::OpenCl, "opencl"), (Target::C, "c")];

/// The kernel as lowered, named like `laplace_3d_p4`.
fn lowered((operator, dim, degree): (Operator, usize, usize)) -> Kernel {
    let name = format!("{operator}_{dim}d_p{degree}");
    lower(&operator.form(dim, degree).unwrap(), &LoweringOptions::new(name)).unwrap().kernel
}

fn mapped(case: (Operator, usize, usize)) -> Kernel {
    transform(&lowered(case), &Mapping::single_cell()).unwrap().0
}

/// The text of a kernel without the values of its tables.
///
/// Their last bits may differ between processors with and without fused multiply-add; they are
/// checked against an independent tabulation where the elements are.
fn text(kernel: &Kernel) -> String {
    let text = print_with(kernel, PrintOptions { tables: TableStyle::Abridged });
    let without_values = |line: &str| match line.split_once(" = [") {
        Some((table, _)) if table.starts_with("table ") => format!("{table} = [...]\n"),
        Some(_) | None => format!("{line}\n"),
    };
    text.lines().map(without_values).collect()
}

/// The source of a program after its launch plan.
fn shown(program: &Program) -> String {
    let plan = &program.plan;
    let ([g0, g1, g2], [l0, l1, l2]) = (&plan.grid, &plan.block);
    let mut text = format!("entry {}\ngrid {g0}, {g1}, {g2}\nblock {l0}, {l1}, {l2}\n", program.entry);
    writeln!(text, "local {} bytes, features {:?}", plan.local_bytes, plan.features).unwrap();
    for arg in &plan.args {
        let kind = match &arg.kind {
            ArgKind::Param => "parameter".to_owned(),
            ArgKind::Scalar => "scalar".to_owned(),
            ArgKind::Buffer { len, access } => format!("buffer of {len}, {access:?}").to_lowercase(),
            ArgKind::Table(data) => format!("table of {}", data.len()),
            ArgKind::Scratch { len, zeroed: false } => format!("scratch of {len}"),
            ArgKind::Scratch { len, zeroed: true } => {
                format!("scratch of {len}, zeroed before the first launch")
            }
        };
        writeln!(text, "argument {}: {} {kind}", arg.name, arg.ty).unwrap();
    }
    for condition in &plan.preconditions {
        writeln!(text, "needs {}", condition.text).unwrap();
    }
    text + "\n" + &program.source
}

/// Compares with `tests/snapshots/NAME.snap`.
fn check(name: &str, text: &str) {
    let is_plain = |word: &str| !text.contains(word);
    assert!(
        ["/home/", "/root", "/tmp", "/usr", env!("CARGO_MANIFEST_DIR")].into_iter().all(is_plain),
        "{name} holds a path of this machine:\n{text}"
    );
    insta::with_settings!({prepend_module_to_snapshot => false, omit_expression => true}, {
        insta::assert_snapshot!(name, text);
    });
}

fn check_case(case: (Operator, usize, usize)) {
    let kernel = mapped(case);
    let name = &kernel.name;
    check(&format!("{name}.kernel"), &text(&kernel));
    for (target, ending) in TARGETS {
        let program = generate(&kernel, target, &Options::default()).unwrap();
        check(&format!("{name}.{ending}"), &shown(&program));
    }
}

#[test]
fn mass_on_triangles() {
    check_case(CASES[0]);
}

#[test]
fn helmholtz_on_triangles() {
    check_case(CASES[1]);
}

#[test]
fn laplace_on_tetrahedra() {
    check_case(CASES[2]);
}

#[test]
fn elasticity_on_tetrahedra() {
    check_case(CASES[3]);
}

#[test]
fn hyperelasticity_on_triangles() {
    check_case(CASES[4]);
}

#[test]
fn every_operator_has_a_case() {
    assert!(Operator::ALL.iter().all(|operator| CASES.iter().any(|(o, _, _)| o == operator)));
}

#[test]
fn laplace_step_by_step() {
    let kernel = lowered((Operator::Laplace, 2, 2));
    let (last, recipe) = transform(&kernel, &Mapping::single_cell()).unwrap();
    check("steps_of_laplace_2d_p2.0", &format!("as lowered\n\n{}", text(&kernel)));
    let trace = recipe.trace(&kernel).unwrap();
    for (k, (step, result)) in trace.iter().enumerate() {
        check(&format!("steps_of_laplace_2d_p2.{}", k + 1), &format!("{step}\n\n{}", text(result)));
    }
    // Replaying the recipe step by step ends where the strategy did.
    assert_eq!(trace.last().map(|(_, result)| result), Some(&last));
}

/// Everything that is printed of a case, from the form on.
fn everything(case: (Operator, usize, usize)) -> String {
    let kernel = mapped(case);
    let mut all = print(&kernel) + &kernel.content_hash();
    for (target, _) in TARGETS {
        all += &shown(&generate(&kernel, target, &Options::default()).unwrap());
    }
    all
}

#[test]
fn generating_again_gives_the_same_bytes_on_any_thread() {
    let first: Vec<String> = CASES.into_iter().map(everything).collect();
    // Each thread starts elsewhere, so that what was made before a case on the same thread differs.
    let others: Vec<Vec<String>> = std::thread::scope(|scope| {
        let start =
            |k: usize| move || (0..CASES.len()).map(|c| everything(CASES[(c + k) % CASES.len()])).collect();
        let threads: Vec<_> = (0..3).map(|k| scope.spawn(start(k))).collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    for (k, other) in others.iter().enumerate() {
        for (c, again) in other.iter().enumerate() {
            let case = (c + k) % CASES.len();
            assert!(*again == first[case], "{:?} on thread {k}:\n{again}", CASES[case]);
        }
    }
}
