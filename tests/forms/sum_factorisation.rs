//! Sum factorisation derived from the contraction of a tensor product, step by step: what every
//! step leaves computes the same, and needs as many operations as the closed formulas say (Orszag
//! 1980). The chapter `sum_factorisation` of the book tells the same steps.

#![allow(clippy::unwrap_used, clippy::panic)] // how a test fails

use crate::support::compiled;
use kingpost::Loaded;
use kingpost::Mapping;
use kingpost::analysis::stats::statistics;
use kingpost::codegen::{Options, Target, generate};
use kingpost::forms::CellKernel;
use kingpost::forms::element::CellShape::{Hexahedron, Quadrilateral};
use kingpost::forms::form::{FunctionSpace, Inputs, coefficient, dx, grad, inner, test};
use kingpost::forms::lowering::{LoweringOptions, MeshForm};
use kingpost::forms::mesh::Mesh;
use kingpost::forms::numbering::Numbering;
use kingpost::forms::program::{CellLoop, CellProgram, NotAnAction};
use kingpost::forms::strategies::{FactorisedLines, FactorisedPlanes, sum_factorise};
use kingpost::forms::tabulated::IntegralType;
use kingpost::interp::{Memory, interpret};
use kingpost::ir::{Kernel, text};
use kingpost::runtime::open;
use kingpost::transforms::Step;
use kingpost::transforms::primitives::{
    DistributeLoop, ExpandArray, FactorOut, Hoist, InterchangeInames, MoveInsns, RealiseReduction,
};
use kingpost::transforms::schedule::Loop;
use kingpost::tuning::transform;
use kingpost_sample::of_run;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The contraction with `q` points and `p` nodes along each axis.
fn contraction(p: u64, q: u64) -> Kernel {
    let text = format!(
        "kernel contraction\nparam ne: i32\nassume ne >= 1\narg u: f64[ne, {p}, {p}, {p}] in\n\
         arg B: f64[{q}, {p}] in\narg y: f64[ne, {q}, {q}, {q}] inout\n\n\
         for e in 0..ne\n  for i in 0..{q}\n    for j in 0..{q}\n      for k in 0..{q}\n        \
         s: y[e, i, j, k] += sum(l in 0..{p}, m in 0..{p}, n in 0..{p}: B[i, l]*B[j, m]*B[k, n]*u[e, l, m, n])\n"
    );
    text::parse(&text).unwrap_or_else(|e| panic!("{}", e.render(&text)))
}

/// Operations of a cell with `p` nodes and `q` points along each axis.
type Operations = fn(p: u64, q: u64) -> u64;

/// Steps, and what a cell needs after them.
struct Stage {
    what: &'static str,
    steps: Vec<Step>,
    operations: Operations,
}

macro_rules! steps {
    ($($step:expr),* $(,)?) => { vec![$(Step::from($step)),*] };
}

fn stages() -> Vec<Stage> {
    let stage = |what, steps, operations| Stage { what, steps, operations };
    vec![
        // three products and a sum a term, and a sum a point
        stage("as it is written", Vec::new(), |p, q| q.pow(3) * (4 * p.pow(3) + 1)),
        stage("nested sums", steps![FactorOut::of_reduction("m"), FactorOut::of_reduction("n")], |p, q| {
            q.pow(3) * (2 * (p.pow(3) + p.pow(2) + p) + 1)
        }),
        stage(
            "loops",
            steps![
                RealiseReduction::new("l").in_place(),
                RealiseReduction::new("m").into_temporary("p"),
                RealiseReduction::new("n").into_temporary("q"),
            ],
            |p, q| 2 * q.pow(3) * (p.pow(3) + p.pow(2) + p),
        ),
        stage(
            "a nest for each contraction",
            steps![
                InterchangeInames::new("j", "k"),
                InterchangeInames::new("i", "k"),
                InterchangeInames::new("i", "j"),
                ExpandArray::new("q", ["l", "m"]),
                ExpandArray::new("p", ["l"]),
                distribute("m", ["p_update"], ["m_p"]),
                MoveInsns::before(["p_init"], "m_p"),
                distribute("l", ["p_init", "s_update"], ["l_p", "l_y"]),
            ],
            |p, q| 2 * q.pow(3) * (p.pow(3) + p.pow(2) + p),
        ),
        stage("the first cut", steps![Hoist::new(["l"]), Hoist::new(["l"])], |p, q| {
            2 * (q * p.pow(3) + q.pow(3) * (p.pow(2) + p))
        }),
        stage("the second cut", steps![Hoist::new(["l_p"])], |p, q| {
            2 * (q * p.pow(3) + q.pow(2) * p.pow(2) + q.pow(3) * p)
        }),
    ]
}

fn distribute<const N: usize>(iname: &str, before: [&str; N], names: [&str; N]) -> DistributeLoop {
    DistributeLoop { names: names.map(str::to_owned).to_vec(), ..DistributeLoop::new(iname, before) }
}

/// Calls `each` with the kernel after every stage.
fn derive(p: u64, q: u64, each: &mut dyn FnMut(&Stage, &Kernel)) {
    let mut kernel = contraction(p, q);
    for stage in stages() {
        for step in &stage.steps {
            kernel = step.apply(&kernel).unwrap_or_else(|e| panic!("{e}\n{kernel}"));
        }
        each(&stage, &kernel);
    }
}

/// Pseudo-random numbers between -1 and 1.
fn memory(ne: u64, p: u64, q: u64) -> Memory {
    let mut state = kingpost_sample::seed();
    let mut values = |n: u64| {
        let next = |_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / 2f64.powi(52) - 1.0
        };
        (0..n).map(next).collect::<Vec<f64>>()
    };
    let memory = Memory::new().param("ne", ne as i64);
    memory.value("u", values(ne * p.pow(3))).value("B", values(q * p)).value("y", values(ne * q.pow(3)))
}

/// `1e-13`: sums of `p^3 <= 64` products of numbers below 1, in another order.
fn assert_close(expected: &[f64], found: &[f64], what: &str) {
    assert_eq!(expected.len(), found.len(), "{what}");
    let differ = expected.iter().zip(found).position(|(a, b)| (a - b).abs() > 1e-13);
    assert_eq!(differ, None, "{what}: element of {expected:?} and {found:?}");
}

/// The contraction by its definition.
fn reference(memory: &Memory, ne: u64, p: u64, q: u64) -> Vec<f64> {
    let [u, b] = ["u", "B"].map(|name| memory.f64s(name).unwrap());
    let mut y = memory.f64s("y").unwrap().to_vec();
    let at = |i: u64, l: u64| b[(i * p + l) as usize];
    let points = (0..ne).flat_map(|e| (0..q.pow(3)).map(move |point| (e, point)));
    for ((e, point), y) in points.zip(&mut y) {
        let (i, j, k) = (point / (q * q), point / q % q, point % q);
        for node in 0..p.pow(3) {
            let (l, m, n) = (node / (p * p), node / p % p, node % p);
            *y += at(i, l) * at(j, m) * at(k, n) * u[(e * p.pow(3) + node) as usize];
        }
    }
    y
}

#[test]
fn every_stage_computes_the_contraction() {
    let device = open("c").unwrap();
    for (ne, p, q) in [(1, 1, 1), (2, 2, 3), (3, 4, 3)] {
        let inputs = memory(ne, p, q);
        let expected = reference(&inputs, ne, p, q);
        derive(p, q, &mut |stage, kernel| {
            let what = format!("{} with {p} nodes and {q} points\n{kernel}", stage.what);
            let mut memory = inputs.clone();
            interpret(kernel, &mut memory).unwrap_or_else(|e| panic!("{e}, {what}"));
            assert_close(&expected, memory.f64s("y").unwrap(), &what);
            let program = generate(kernel, Target::C, &Options::default()).unwrap();
            let executable = compiled(&*device, &program);
            let loaded = Loaded::compiled(&*device, executable, &inputs).unwrap();
            loaded.launch().unwrap();
            assert_close(&expected, &loaded.f64s("y").unwrap(), &what);
        });
    }
}

#[test]
fn operations_are_those_of_the_closed_formulas() {
    let ne = 3;
    for (p, q) in [(1, 1), (2, 3), (4, 4), (8, 9), (16, 17)] {
        derive(p, q, &mut |stage, kernel| {
            let counted = statistics(kernel, &BTreeMap::from([("ne".to_owned(), ne)])).unwrap();
            assert!(counted.exact(), "{}\n{kernel}", stage.what);
            let expected = ne as u64 * (stage.operations)(p, q);
            assert_eq!(counted.flops(), expected, "{} with {p} nodes and {q} points\n{kernel}", stage.what);
        });
    }
}

/// What a strategist would write by hand.
#[test]
fn the_derived_nest_is_the_factorised_one() {
    let mut last = String::new();
    derive(8, 9, &mut |_, kernel| last = kernel.to_string());
    insta::assert_snapshot!(last);
}

/// A mass action with the tables of tensor products in the order of their axes: `p` nodes and `q`
/// points along each axis.
fn mass(p: usize, q: usize, dim: u32) -> Kernel {
    let matrix = |i: usize, l: usize| (1.0 + (i * p + l) as f64).sin();
    let digit = |n: usize, size: usize, k: u32| n / size.pow(k) % size;
    let [points, nodes] = [q, p].map(|n| n.pow(dim));
    let entry = |i: usize, j: usize| (0..dim).map(|k| matrix(digit(i, q, k), digit(j, p, k))).product();
    let entries: Vec<f64> = (0..points * nodes).map(|n| entry(n / nodes, n % nodes)).collect();
    let text: Vec<String> = entries.iter().map(|value| format!("{value:?}")).collect();
    let text = format!(
        "kernel mass\nparam ne: i32\nassume ne >= 1\narg w: f64[ne, {points}] in\narg u: f64[ne, {nodes}] in\n\
         arg y: f64[ne, {nodes}] out\ntemp v: f64 private\ntemp r: f64 private\n\
         table T: f64[{points}, {nodes}] global\n\nfor e in 0..ne\n  for i in 0..{nodes}\n    zero: y[e, i] = 0.0\n  \
         for point in 0..{points}\n    init: v = 0.0\n    for j in 0..{nodes}\n      \
         eval: v += T[point, j]*u[e, j]\n    scale: r = v*w[e, point]\n    \
         for t in 0..{nodes}\n      test: y[e, t] += T[point, t]*r\n\ntable T = [{}]\n",
        text.join(", ")
    );
    text::parse(&text).unwrap_or_else(|e| panic!("{}", e.render(&text)))
}

/// Runs two kernels from the same inputs in the interpreter, the second in C, too, and compares.
fn assert_same(before: &Kernel, after: &Kernel, inputs: &Memory) {
    let [mut expected, mut found] = [inputs.clone(), inputs.clone()];
    interpret(before, &mut expected).unwrap();
    interpret(after, &mut found).unwrap_or_else(|e| panic!("{e}\n{after}"));
    let expected = expected.f64s("y").unwrap();
    let size = expected.iter().fold(1.0, |most: f64, y| most.max(y.abs()));
    let device = open("c").unwrap();
    let program = generate(after, Target::C, &Options::default()).unwrap();
    let loaded = Loaded::compiled(&*device, compiled(&*device, &program), inputs).unwrap();
    loaded.launch().unwrap();
    for found in [found.f64s("y").unwrap(), &loaded.f64s("y").unwrap()] {
        // 1e-12: tables are certified to 1e-14, and sums have fewer than 64 terms an axis
        let differ = expected.iter().zip(found).position(|(a, b)| (a - b).abs() > 1e-12 * size);
        assert_eq!(differ, None, "{expected:?}\n{found:?}\n{after}");
    }
}

/// Runs a kernel in the interpreter, and one whose work-items share cells in OpenCL.
fn assert_shared(before: &Kernel, shared: &Kernel, inputs: &Memory) {
    let mut expected = inputs.clone();
    interpret(before, &mut expected).unwrap();
    let Ok(device) = open("opencl").map_err(|e| println!("skipped: {e}")) else { return };
    let program = generate(shared, Target::OpenCl, &Options::default()).unwrap();
    let loaded = Loaded::compiled(&*device, compiled(&*device, &program), inputs).unwrap();
    loaded.launch().unwrap();
    let (expected, found) = (expected.f64s("y").unwrap(), loaded.f64s("y").unwrap());
    let size = expected.iter().fold(1.0, |most: f64, y| most.max(y.abs()));
    // 1e-12: tables are certified to 1e-14, and sums have fewer than 64 terms an axis
    let differ = expected.iter().zip(&found).position(|(a, b)| (a - b).abs() > 1e-12 * size);
    assert_eq!(differ, None, "{expected:?}\n{found:?}\n{shared}");
}

/// A kernel whose loop over cells is `e`, without a scatter.
struct OverElements<'k>(&'k Kernel);

impl CellKernel for OverElements<'_> {
    fn kernel(&self) -> &Kernel {
        self.0
    }

    fn cell_loop(&self) -> Result<Cow<'_, CellLoop>, NotAnAction> {
        Ok(Cow::Owned(CellLoop { cell: Loop::named("e"), commits: Vec::new() }))
    }

    fn program(&self) -> Result<Cow<'_, CellProgram>, NotAnAction> {
        self.0.program()
    }

    fn over(&self) -> Option<IntegralType> {
        self.0.over()
    }
}

/// Rows and columns in the same order, as no rule of a form has them.
#[test]
fn work_items_share_cells() {
    for (p, q, dim) in of_run([(2, 3, 2), (3, 4, 2), (2, 2, 3), (3, 4, 3)], &[0, 2]) {
        let before = mass(p, q, dim);
        let lines =
            |literal_tables| Mapping::from(FactorisedLines { cells: 2, literal_tables, factors: None });
        let planes = Mapping::from(FactorisedPlanes { cells: 2 });
        for mapping in [planes, lines(false), lines(true)] {
            let mapped = mapping.apply(&OverElements(&before));
            let (after, recipe) = mapped.unwrap_or_else(|e| panic!("{p} {q} {dim}: {e}"));
            assert_eq!(recipe.apply(&before).as_ref(), Ok(&after));
            let number = |k: u64| (k as f64).cos();
            let values = |n: usize| (0..3 * n.pow(dim) as u64).map(number).collect::<Vec<f64>>();
            let inputs = Memory::new().param("ne", 3).value("w", values(q)).value("u", values(p));
            assert_shared(&before, &after, &inputs);
        }
    }
}

#[test]
fn the_strategy_factorises_evaluation_and_test() {
    for (p, q, dim) in of_run([(2, 3, 2), (2, 2, 3), (3, 4, 3)], &[0, 1]) {
        let before = mass(p, q, dim);
        let (after, recipe) = sum_factorise(&before).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(recipe.apply(&before).as_ref(), Ok(&after));
        let [points, nodes] = [q, p].map(|n| n.pow(dim) as u64);
        let ne = 2;
        let number = |k: u64| (k as f64).cos();
        let values = |n: u64| (0..n).map(number).collect::<Vec<f64>>();
        let inputs = Memory::new().param("ne", ne as i64);
        let inputs = inputs.value("w", values(ne * points)).value("u", values(ne * nodes));
        assert_same(&before, &after, &inputs);
        // the same sums axis by axis, there and back, and a product a point
        let sums: u64 = (0..dim).map(|k| (q as u64).pow(k + 1) * (p as u64).pow(dim - k)).sum();
        let counted = statistics(&after, &BTreeMap::from([("ne".to_owned(), ne as i64)])).unwrap();
        assert!(counted.exact());
        assert_eq!(counted.flops(), ne * (2 * 2 * sums + points), "{after}");
    }
}

/// Tables of forms on squares and cubes are tensor products in the order of the axes: those of the
/// function, and of the geometry.
#[test]
fn the_strategy_factorises_forms() {
    let cases = [(Quadrilateral, 1), (Quadrilateral, 3), (Hexahedron, 1), (Hexahedron, 2)];
    for (shape, degree) in of_run(cases, &[1, 2]) {
        let space = FunctionSpace::scalar(shape, degree);
        let (u, v) = (coefficient("u", &space), test(&space));
        let mesh = Mesh::unit(shape, 2).unwrap();
        let forms = [
            ("mass", &u * &v * dx().with_degree(6)),
            ("nonlinear", &u * inner(grad(&u), grad(&v)) * dx().with_degree(6)),
        ];
        for (name, form) in forms {
            let what = format!("{name} on {space}");
            let lowered = MeshForm::new(&form, &LoweringOptions::new(name)).unwrap();
            let n = Numbering::new(&mesh, degree).unwrap().n_dofs();
            let inputs = Inputs::new().field("u", (0..n).map(|k| (k as f64).sin()).collect::<Vec<_>>());
            let (before, memory) = (&lowered.kernels()[0].kernel, lowered.bind(0, &mesh, &inputs).unwrap());
            let (after, _) = sum_factorise(before).unwrap_or_else(|e| panic!("{what}: {e}"));
            assert_same(before, &after, &memory);
            if name == "nonlinear" {
                let planes = Mapping::from(FactorisedPlanes { cells: 3 });
                let lines = Mapping::from(FactorisedLines { cells: 3, literal_tables: false, factors: None });
                for mapping in [planes, lines] {
                    let (shared, _) = transform(&lowered.kernels()[0], &mapping)
                        .unwrap_or_else(|e| panic!("{what}, {mapping}: {e}"));
                    assert_shared(before, &shared, &memory);
                }
            }
            let flops = |kernel: &Kernel| statistics(kernel, memory.params()).unwrap().flops();
            let (was, is) = (flops(before), flops(&after));
            assert!(is < was, "{what}: {is} operations, before {was}\n{after}");
        }
    }
}

/// Lines of squares and of cubes take other work-items.
#[test]
fn lines_of_squares_and_cubes_are_refused_together() {
    let matrix = [0.75, 0.25, 0.5, 0.5];
    let product = |dim: u32| -> String {
        let n = 2_usize.pow(dim);
        let entry = |q: usize, j: usize| -> f64 {
            (0..dim).map(|k| matrix[2 * (q >> k & 1) + (j >> k & 1)]).product()
        };
        (0..n * n).map(|at| format!("{:?}", entry(at / n, at % n))).collect::<Vec<_>>().join(", ")
    };
    let kernel = format!(
        "kernel both\nparam ne: i32\nassume ne >= 1\narg u: f64[ne, 4] in\narg w: f64[ne, 8] in\n\
         arg y: f64[ne, 4] inout\narg z: f64[ne, 8] inout\ntable T: f64[4, 4] global\n\
         table S: f64[8, 8] global\n\nfor e in 0..ne\n  for i in 0..4\n    for j in 0..4\n      \
         s: y[e, i] += T[i, j]*u[e, j]\n  for k in 0..8\n    for l in 0..8\n      \
         t: z[e, k] += S[k, l]*w[e, l]\n\ntable T = [{}]\n\ntable S = [{}]\n",
        product(2),
        product(3)
    );
    let kernel = text::parse(&kernel).unwrap_or_else(|e| panic!("{}", e.render(&kernel)));
    let lines = Mapping::from(FactorisedLines { cells: 2, literal_tables: false, factors: None });
    let refused = lines.apply(&OverElements(&kernel)).unwrap_err().to_string();
    assert!(refused.starts_with("tables are tensor products of two axes and of three"), "{refused}");
}

#[test]
fn the_strategy_names_what_is_missing() {
    let kernel = contraction(2, 3);
    let message = sum_factorise(&kernel).unwrap_err().to_string();
    assert_eq!(
        message,
        "no update is a contraction with a table that is a tensor product; order its rows and columns by axes"
    );
}
