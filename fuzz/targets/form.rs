//! No form makes checking, printing, expanding or lowering panic; what is lowered is a kernel that
//! reads back.
//!
//! The form language is Rust: the bytes are operations on a stack of expressions, so that every
//! input is a form.

#![no_main]

use libfuzzer_sys::fuzz_target;
use kingpost_fem::element::CellShape;
use kingpost_forms::form::*;
use kingpost_forms::lowering::{LoweringOptions, lower};

/// Operations of one form: derivatives of deep nests grow fast.
const OPERATIONS: usize = 24;

/// The top of the stack, or something simple.
fn pop(stack: &mut Vec<Expr>) -> Expr {
    stack.pop().unwrap_or_else(|| Expr::from(2.0))
}

fn leaf(byte: u8, cell: CellShape) -> Expr {
    let degree = usize::from(byte >> 6);
    match byte % 12 {
        0 => test(&FunctionSpace::scalar(cell, degree)),
        1 => test(&FunctionSpace::vector(cell, degree)),
        2 => trial(&FunctionSpace::scalar(cell, degree)),
        3 => coefficient("u", &FunctionSpace::scalar(cell, degree)),
        4 => coefficient("w", &FunctionSpace::vector(cell, degree)),
        5 => coordinate(cell),
        6 => constant(["c", "n_cells", "for", "u"][usize::from(byte >> 6)]),
        7 => vector_constant("b", usize::from(byte >> 5)),
        8 => identity(usize::from(byte >> 6)),
        9 => Expr::from(f64::from(byte) - 100.0),
        10 => constant_with_default("k", 0.0),
        _ => coefficient("u", &FunctionSpace::scalar(CellShape::Tetrahedron, 1)),
    }
}

fn unary(byte: u8, a: Expr) -> Expr {
    match byte % 18 {
        0 => -a,
        1 => grad(a),
        2 => div(a),
        3 => curl(a),
        4 => tr(a),
        5 => det(a),
        6 => inv(a),
        7 => sym(a),
        8 => transpose(a),
        9 => variable(a),
        10 => exp(a),
        11 => ln(a),
        12 => sqrt(a),
        13 => sin(a),
        14 => cos(a),
        15 => a.pow(f64::from(byte / 18) - 6.0),
        16 => a.component(usize::from(byte >> 6), usize::from(byte >> 7)),
        _ => a[usize::from(byte >> 6)].clone(),
    }
}

fn binary(byte: u8, a: Expr, b: Expr) -> Expr {
    match byte % 14 {
        0 => a + b,
        1 => a - b,
        2 => a * b,
        3 => a / b,
        4 => inner(a, b),
        5 => dot(a, b),
        6 => outer(a, b),
        7 => diff(a, b),
        8 => a.pow(b),
        9 => conditional(lt(a.clone(), 1.0), a, b),
        10 => as_vector([a, b]),
        11 => as_matrix(2, [a.clone(), b.clone(), b, a]),
        12 => gateaux(&a, &b, &Expr::from(1.0)),
        _ => conditional(eq(&a, &b), b, a),
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((head, data)) = data.split_first() else { return };
    let cell = if head % 2 == 0 { CellShape::Triangle } else { CellShape::Tetrahedron };
    let mut stack = Vec::new();
    for pair in data.chunks_exact(2).take(OPERATIONS) {
        let made = match pair[0] % 4 {
            0 => leaf(pair[1], cell),
            1 => unary(pair[1], pop(&mut stack)),
            2 => {
                let (a, b) = (pop(&mut stack), pop(&mut stack));
                binary(pair[1], a, b)
            }
            // again: expressions are graphs
            _ => stack.get(usize::from(pair[1]) % stack.len().max(1)).cloned().unwrap_or_else(|| leaf(pair[1], cell)),
        };
        stack.push(made);
    }
    let measure = if head & 4 == 0 { dx() } else { dx().with_degree(usize::from(head >> 4)) };
    let integrand = pop(&mut stack);
    let mut form: Form = integrand * measure;
    if head & 2 != 0 {
        form = derivative(form, pop(&mut stack), pop(&mut stack));
    }
    assert!(!form.to_string().is_empty());
    let _ = (form.cell().is_ok(), form.quadrature_degrees().is_ok());
    if form.check().is_err() {
        return;
    }
    // a rule of high degree has thousands of points: only sizes would grow
    let degrees = form.quadrature_degrees().unwrap_or_default();
    let options = LoweringOptions::new("fuzzed");
    let options = if degrees.iter().any(|d| *d > 6) { options.with_degree(6) } else { options };
    match lower(&form, &options) {
        Ok(lowered) => {
            assert_eq!(lowered.kernel.verify(), Ok(()));
            let text = lowered.kernel.to_string();
            assert_eq!(kingpost_ir::text::parse(&text).as_ref(), Ok(&lowered.kernel));
        }
        Err(FormError::Bug(bug)) => panic!("{bug}"),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
