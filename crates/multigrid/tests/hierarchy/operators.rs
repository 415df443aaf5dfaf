//! Every operation of a level against dense matrices that share no code with the kernels.

#![allow(clippy::unwrap_used)]

use kingpost_fem::element::{CellShape, ElementFamily, FiniteElement, LagrangeElement, LagrangeVariant};
use kingpost_fem::mesh::Mesh;
use kingpost_fem::quadrature::{QuadratureScheme, rule};
use kingpost_forms::form::{FunctionSpace, Inputs, dx, grad, inner, test, trial};
use kingpost_forms::lowering::{LoweringOptions, MatrixResult, MeshForm};
use kingpost_interp::{Memory, interpret};
use kingpost_multigrid::kernels::{Blocks, Operation, Variant, plain};
use kingpost_multigrid::schedules::{Structure, schedule};
use kingpost_multigrid::{
    Dimension, Element, Hierarchy, HierarchyOptions, Line, MultigridError, Order, Precision, TensorTables,
    Which,
};
use kingpost_runtime::{Backend, open};
use kingpost_sample::is_long_run;
use nalgebra::DVector;

use crate::reference::{
    CASES, Random, dense, dense_colour, devices, element, every_device, inner_numbers, is_inner, largest,
    patches,
};

#[test]
fn colours_and_residuals_equal_dense_ones() {
    for device in every_device() {
        // compilers of OpenCL take longer than the solves: one case of each dimension
        let all = is_long_run() || device.info().backend != Backend::OpenCl;
        for (dimension, degree, cells) in CASES.into_iter().filter(|(_, degree, _)| all || *degree == 2) {
            let element = element(dimension, degree);
            let mut random = Random(77 + degree as u64);
            let levels = Hierarchy::new(&*device, element, cells).unwrap();
            let finest = levels.levels() - 1;
            let [x, b] = [(); 2].map(|()| inner_numbers(&mut random, element, cells));
            levels.set(finest, Which::Solution, &x).unwrap();
            levels.set(finest, Which::RightHandSide, &b).unwrap();
            let (mut x, b) = (DVector::from_vec(x), DVector::from_vec(b));
            let a = dense(element, cells);
            for colour in 0..1 << dimension.axes() {
                levels.smooth_colours(finest, colour..colour + 1).unwrap();
                dense_colour(&a, &patches(element, cells, colour), &mut x, &b);
                let error = largest(&levels.solution(finest).unwrap(), x.as_slice());
                // 1e-11: condition numbers of patches reach 1e3
                assert!(error < 1e-11, "{dimension:?} Q{degree}, colour {colour}: {error}");
            }
            levels.compute_residual(finest).unwrap();
            let mut expected = &b - &a * &x;
            let (side, axes) = (element.nodes_of_side(cells), dimension.axes());
            (0..expected.len()).filter(|i| !is_inner(*i, side, axes)).for_each(|i| expected[i] = 0.0);
            // in units of the right-hand side: one patch leaves no residual but roundings
            let off = DVector::from_vec(levels.residual(finest).unwrap()) - expected;
            let error = off.amax() / b.amax();
            assert!(error < 1e-11, "{dimension:?} Q{degree}: residual {error}");
        }
    }
}

#[test]
fn restriction_is_the_transpose_of_prolongation() {
    for device in devices() {
        for (dimension, degree, cells) in [(Dimension::Two, 3, 4), (Dimension::Three, 2, 4)] {
            let element = element(dimension, degree);
            let mut random = Random(5);
            let levels = Hierarchy::new(&*device, element, cells).unwrap();
            let finest = levels.levels() - 1;
            let coarse = inner_numbers(&mut random, element, cells / 2);
            let fine = inner_numbers(&mut random, element, cells);
            // the residual of a zero solution is the right-hand side
            levels.set(finest, Which::RightHandSide, &fine).unwrap();
            levels.clear(finest).unwrap();
            levels.compute_residual(finest).unwrap();
            levels.restrict(finest).unwrap();
            let restricted = levels.right_hand_side(finest - 1).unwrap();
            levels.set(finest - 1, Which::Solution, &coarse).unwrap();
            levels.prolongate(finest).unwrap();
            let prolongated = levels.solution(finest).unwrap();
            let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
            let (left, right) = (dot(&restricted, &coarse), dot(&fine, &prolongated));
            assert!((left - right).abs() < 1e-12 * left.abs().max(1.0), "{left} and {right}");
        }
    }
}

/// In single precision every operation does the same up to rounding.
#[test]
fn single_precision_is_double_precision_rounded() {
    for device in devices() {
        for (dimension, degree, cells) in [CASES[1], CASES[4], CASES[5]] {
            let element = element(dimension, degree);
            let single = HierarchyOptions { precision: Precision::Single, ..HierarchyOptions::default() };
            let levels = Hierarchy::with(&*device, element, cells, single).unwrap();
            let double = Hierarchy::new(&*device, element, cells).unwrap();
            let finest = levels.levels() - 1;
            let mut random = Random(4);
            let [x, b] = [(); 2].map(|()| inner_numbers(&mut random, element, cells));
            for levels in [&levels, &double] {
                levels.set(finest, Which::Solution, &x).unwrap();
                levels.set(finest, Which::RightHandSide, &b).unwrap();
                levels.v_cycle(finest, Order::Forward).unwrap();
            }
            let error = largest(&levels.solution(finest).unwrap(), &double.solution(finest).unwrap());
            // 1e-4: roundings of 6e-8 times the condition of a patch, below 1e3
            assert!(error > 1e-12 && error < 1e-4, "{element:?}: {error}");
            levels.set(finest, Which::Solution, &x).unwrap();
            let norm = levels.residual_norm(finest).unwrap();
            let expected: f64 = levels.residual(finest).unwrap().iter().map(|r| r * r).sum::<f64>().sqrt();
            // sums in another order
            assert!((norm - expected).abs() <= 1e-12 * expected, "{norm} and {expected}");
        }
    }
}

/// v·Pw = w·Pv, if the second smoothing step takes the colours backward; not otherwise.
#[test]
fn a_cycle_is_symmetric_if_it_smooths_backward_after() {
    let device = open("c").unwrap();
    for (dimension, degree, cells) in [(Dimension::Two, 2, 8), (Dimension::Three, 2, 4)] {
        let element = element(dimension, degree);
        let levels = Hierarchy::new(&*device, element, cells).unwrap();
        let finest = levels.levels() - 1;
        let mut random = Random(9);
        let [v, w] = [(); 2].map(|()| inner_numbers(&mut random, element, cells));
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let apart = |after: Order| {
            let cycle = |b: &[f64]| {
                levels.set(finest, Which::RightHandSide, b).unwrap();
                levels.clear(finest).unwrap();
                levels.v_cycle(finest, after).unwrap();
                levels.solution(finest).unwrap()
            };
            let (pv, pw) = (cycle(&v), cycle(&w));
            (dot(&v, &pw) - dot(&w, &pv)).abs() / dot(&v, &pv)
        };
        assert!(apart(Order::Backward) < 1e-12, "{}", apart(Order::Backward));
        assert!(apart(Order::Forward) > 1e-9);
    }
}

/// The inputs of right-hand sides that are products, of errors, and of deformed meshes.
fn with_products(memory: Memory, element: Element, n: usize, random: &mut Random) -> Memory {
    let tables = Line::new(element.degree).unwrap().points();
    let memory = memory
        .value("values", tables.values.entries)
        .value("slopes", tables.slopes.entries)
        .value("linear", tables.linear.entries)
        .value("weights", tables.weights);
    let points = element.degree + 2;
    let axes = element.dimension.axes();
    let rows = n.pow(element.dimension.axes() as u32 - 1);
    [
        ("line", element.nodes_of_side(n)),
        ("B", points * (element.degree + 1)),
        ("w", points),
        ("exact", n * points),
        ("squares", rows),
        ("vertices", axes * (n + 1).pow(axes as u32)),
        ("kappa", (2 * n).pow(axes as u32)),
        ("factors", axes * (n - 1).pow(axes as u32)),
    ]
    .into_iter()
    .fold(memory.value("factor", 0.3), |memory, (name, length)| memory.value(name, random.numbers(length)))
}

/// What schedules make of the plain kernels, by the interpreter.
#[test]
fn schedules_keep_what_kernels_compute() {
    for operation in Operation::ALL {
        for (dimension, degree, n) in [(Dimension::Two, 2, 3), (Dimension::Three, 1, 3)] {
            let element = element(dimension, degree);
            let kernel = plain(operation, element, Precision::Double).unwrap();
            let lines = [1, 3].map(Structure::lines);
            let of_patches = [&[Structure::Linear], &lines[..]].concat();
            let more = match operation {
                Operation::Smooth => &of_patches[..],
                Operation::SmoothBlended if dimension == Dimension::Three => &lines[..],
                Operation::PatchResidual | Operation::PatchSolve => &of_patches[1..],
                Operation::MeshResidual | Operation::MeshSolve | Operation::MeshLoad => &lines[..],
                _ => &[],
            };
            for structure in [&[Structure::Blocks, Structure::Layers], more].concat() {
                let mapped = schedule(operation, element, structure, Precision::Double).unwrap();
                let mut random = Random(3);
                let mut memory = Memory::new().param("n", n).value("scale", 0.7);
                let places = [("r0", 1), ("r1", 1), ("r2", 1)]; // of point Gauss–Seidel
                for (name, value) in [("c0", 1), ("c1", 0), ("c2", 1)].into_iter().chain(places) {
                    memory = memory.param(name, value);
                }
                let (fine, coarse) = (element.nodes(2 * n as usize), element.nodes(n as usize));
                let of_fine = |operation, name: &str| {
                    matches!((operation, name), (Operation::Prolongate, "x") | (Operation::Restrict, "r"))
                };
                for name in ["x", "b", "r", "res", "xc", "rc"] {
                    let length = if of_fine(operation, name) { fine } else { coarse };
                    memory = memory.value(name, random.numbers(length));
                }
                let line = Line::new(degree).unwrap();
                let (mass, stiffness) = match operation.blocks() {
                    Blocks::Patches | Blocks::Points => (&line.mass, &line.stiffness),
                    Blocks::Cells => (&line.cell_mass, &line.cell_stiffness),
                };
                for (name, matrix) in
                    [("A", stiffness), ("M", mass), ("P", &line.prolongation), ("S", &line.eigenvectors)]
                {
                    memory = memory.value(name, matrix.entries.clone());
                }
                memory = memory.value("lambda", line.eigenvalues.clone());
                for (name, matrix) in [("T", &line.to_modes()), ("blend", &line.blend), ("flux", &line.flux)]
                {
                    memory = memory.value(name, matrix.entries.clone());
                }
                memory = memory.value("inverses", line.inverses(dimension));
                memory = memory.value("V", line.inverse(dimension).entries);
                memory = with_products(memory, element, n as usize, &mut random);
                let of_column = match operation {
                    Operation::Load => element.nodes_of_side(n as usize),
                    _ => n as usize * (degree + 2),
                };
                memory = memory.value("column", random.numbers(of_column));
                let run = |kernel| {
                    let mut memory = memory.clone().of_kernel(kernel);
                    interpret(kernel, &mut memory).unwrap();
                    memory
                };
                let (before, after) = (run(&kernel), run(mapped.kernel()));
                for written in ["x", "b", "r", "res", "rc", "squares"] {
                    let (before, after) = (before.get(written), after.get(written));
                    assert_eq!(before, after, "{operation:?} {structure:?}");
                }
            }
        }
    }
}

#[test]
fn what_does_not_nest_is_refused() {
    let device = open("c").unwrap();
    let two = element(Dimension::Two, 2);
    for cells in [0, 1, 3, 12] {
        let refused = Hierarchy::new(&*device, two, cells).err().unwrap();
        assert!(matches!(refused, MultigridError::Cells { .. }), "{refused}");
    }
    assert!(matches!(Element::new(Dimension::Three, 0), Err(MultigridError::Degree { degree: 0, .. })));
    let huge = Hierarchy::new(&*device, element(Dimension::Three, 8), 1 << 20).err().unwrap();
    assert!(matches!(huge, MultigridError::Memory { .. }), "{huge}");
    let levels = Hierarchy::new(&*device, two, 2).unwrap();
    let short = levels.set(0, Which::RightHandSide, &[1.0]).err().unwrap();
    assert!(matches!(short, MultigridError::Length { found: 1, needed: 25 }), "{short}");
}

/// The kernels of Table 4 do what the fused one does, colour by colour.
#[test]
fn variants_of_the_smoother_agree() {
    for device in devices() {
        for (dimension, degree, cells) in [CASES[1], CASES[3], CASES[4]] {
            let element = element(dimension, degree);
            let structures = match device.info().backend {
                Backend::C => vec![Structure::Blocks],
                Backend::OpenCl | Backend::Cuda => {
                    let (resident_groups, separate_terms) = (Some(2), true);
                    let (atomic, ahead) = (true, None);
                    let separate =
                        Structure::Lines { patches: 1, resident_groups, separate_terms, atomic, ahead };
                    let ahead = Structure::Lines {
                        patches: 2,
                        resident_groups: None,
                        separate_terms,
                        atomic: false,
                        ahead: Some(2),
                    };
                    vec![Structure::Layers, Structure::lines(2), separate, ahead]
                }
            };
            let fused = Hierarchy::new(&*device, element, cells).unwrap();
            for (structure, variant) in structures.iter().flat_map(|s| {
                [Variant::Fused, Variant::Blended, Variant::Global, Variant::Separate, Variant::Inverse]
                    .map(|variant| (*s, variant))
            }) {
                let options = HierarchyOptions {
                    variant: Some(variant),
                    smoother: Some(structure),
                    ..HierarchyOptions::default()
                };
                let other = Hierarchy::with(&*device, element, cells, options).unwrap();
                let finest = fused.levels() - 1;
                let mut random = Random(degree as u64);
                let [x, b] = [(); 2].map(|()| inner_numbers(&mut random, element, cells));
                for levels in [&fused, &other] {
                    levels.set(finest, Which::Solution, &x).unwrap();
                    levels.set(finest, Which::RightHandSide, &b).unwrap();
                }
                for colour in 0..1 << dimension.axes() {
                    fused.smooth_colours(finest, colour..colour + 1).unwrap();
                    other.smooth_colours(finest, colour..colour + 1).unwrap();
                    let error = largest(&other.solution(finest).unwrap(), &fused.solution(finest).unwrap());
                    // 1e-11: condition numbers of patches reach 1e3
                    assert!(error < 1e-11, "{variant:?} {structure:?} {element:?}, {colour}: {error}");
                }
            }
        }
    }
}

/// The nodes of an element in lexicographic order, the last axis slowest.
fn lexicographic(shape: CellShape, degree: usize) -> Vec<usize> {
    let element = LagrangeElement::new(shape, degree).unwrap();
    let point = |node: usize| element.points()[node * shape.dim()..][..shape.dim()].iter().rev();
    let mut nodes: Vec<usize> = (0..element.dim()).collect();
    nodes.sort_by(|a, b| point(*a).partial_cmp(point(*b)).unwrap());
    nodes
}

/// The matrix of a cell as the form gives it is the sum of tensor products of the matrices that
/// kernels take.
#[test]
fn matrices_of_forms_are_sums_of_tensor_products() {
    for (shape, dimension, degree) in [
        (CellShape::Quadrilateral, Dimension::Two, 1),
        (CellShape::Quadrilateral, Dimension::Two, 4),
        (CellShape::Hexahedron, Dimension::Three, 2),
    ] {
        let family = ElementFamily::Lagrange(LagrangeVariant::GllWarped);
        let space = FunctionSpace::of(shape, family, degree);
        let exact = dx().with_degree(2 * degree + 2);
        let form = inner(grad(trial(&space)), grad(test(&space))) * exact;
        let options = LoweringOptions::new("stiffness").with_matrix(MatrixResult::Cells);
        let form = MeshForm::new(&form, &options).unwrap();
        let mut memory = form.bind(0, &Mesh::unit(shape, 1).unwrap(), &Inputs::new()).unwrap();
        interpret(&form.kernels()[0].kernel, &mut memory).unwrap();
        let nodes = lexicographic(shape, degree);
        let entries = memory.f64s("y").unwrap();
        let at = |row: &usize, column: &usize| entries[row * nodes.len() + column];
        let line = Line::new(degree).unwrap();
        let n = degree + 1;
        let along = |node: usize, axis: usize| node / n.pow(axis as u32) % n;
        let axes = dimension.axes();
        for (row, from) in nodes.iter().enumerate() {
            for (column, to) in nodes.iter().enumerate() {
                let factor = |axis: usize, derived: usize| {
                    let of = if axis == derived { &line.cell_stiffness } else { &line.cell_mass };
                    of.at(along(row, axis), along(column, axis))
                };
                let product = |derived: usize| (0..axes).map(|axis| factor(axis, derived)).product::<f64>();
                let needed: f64 = (0..axes).map(product).sum();
                // 1e-13: sums over at most 49 points, entries up to 4
                assert!((at(from, to) - needed).abs() < 1e-13, "{shape} {degree}");
            }
        }
    }
}

/// Tables of squares and cubes are products of those of a line up to the highest degree; those of
/// triangles, of nodes elsewhere and of another rule are refused.
#[test]
fn tables_of_forms_are_products() {
    let element =
        |shape, variant, degree| FiniteElement::new(shape, ElementFamily::Lagrange(variant), degree).unwrap();
    let gll = LagrangeVariant::GllWarped;
    for degree in 1..=15 {
        assert!(TensorTables::of_degree(degree).is_ok(), "{degree}");
    }
    let tables = |degree| TensorTables::of_degree(degree).unwrap();
    for degree in [1, 3] {
        let rule = rule(CellShape::Hexahedron, 2 * degree, QuadratureScheme::Default).unwrap();
        tables(degree).certify(&element(CellShape::Hexahedron, gll, degree), &rule).unwrap();
    }
    let square = CellShape::Quadrilateral;
    let mut points = rule(square, 6, QuadratureScheme::Default).unwrap();
    let elsewhere =
        tables(3).certify(&element(square, LagrangeVariant::Equispaced, 3), &points).err().unwrap();
    assert!(matches!(elsewhere, MultigridError::NoProduct { function: Some(_), .. }), "{elsewhere}");
    let cubic = element(square, gll, 3);
    let refused = tables(2).certify(&cubic, &points).err().unwrap();
    assert!(matches!(&refused, MultigridError::NoRows { of, .. } if of == "nodes"), "{refused}");
    points.weights[1] *= 1.0 + 1e-9;
    let refused = tables(3).certify(&cubic, &points).err().unwrap();
    assert!(matches!(refused, MultigridError::NoProduct { function: None, .. }), "{refused}");
    points.points[3] += 1e-6;
    let refused = tables(3).certify(&cubic, &points).err().unwrap();
    assert!(refused.to_string().contains("the points of"), "{refused}");
    let triangle = rule(CellShape::Triangle, 4, QuadratureScheme::Default).unwrap();
    let refused = tables(2).certify(&element(CellShape::Triangle, gll, 2), &triangle).err().unwrap();
    assert!(matches!(&refused, MultigridError::NoRows { of, .. } if of == "nodes"), "{refused}");
}
