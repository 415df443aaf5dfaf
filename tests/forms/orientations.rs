//! Cells of either orientation: reference, kernels and code agree on them, and the action is that
//! of the mesh.
#![allow(clippy::unwrap_used)]

use kingpost::codegen::{Options, generate};
use kingpost::forms::form::Inputs;
use kingpost::forms::lowering::{ArgumentRole, LoweredForm, LoweringOptions, lower};
use kingpost::forms::mesh::Mesh;
use kingpost::forms::numbering::Numbering;
use kingpost::forms::reference;
use kingpost::interp::interpret;
use kingpost::kernels::Operator;
use kingpost::{Loaded, Mapping, RelativeError, transform};
use std::collections::BTreeMap;

/// As in the tests of all actions: sums of at most some hundred products, relative to the largest
/// entry.
const TOLERANCE: f64 = 1e-12;

/// The mesh with two vertices of every third cell swapped, another pair each time.
fn with_turned_cells(mesh: &Mesh) -> Mesh {
    let corners = mesh.shape().n_vertices();
    let mut cells = mesh.cells().to_vec();
    for (k, cell) in cells.chunks_mut(corners).enumerate().filter(|(k, _)| k % 3 == 0) {
        cell.swap(k % corners, (k + 1) % corners);
    }
    let turned = Mesh::new(mesh.shape(), mesh.coordinates().to_vec(), cells, None).unwrap();
    assert!((0..turned.n_cells()).any(|c| turned.determinant(c) < 0.0));
    turned
}

/// A smooth function of the point, for component `c` of field `f`: the same function whatever the
/// numbering.
fn function(point: &[f64], f: usize, c: usize) -> f64 {
    let phase: f64 = point.iter().zip([1.1, 2.3, 0.7]).map(|(x, k)| k * x).sum();
    0.3 * (phase + f as f64 + 0.5 * c as f64).sin()
}

/// Values of all fields of the form at the nodes of the mesh.
fn inputs(lowered: &LoweredForm, mesh: &Mesh, points: &[f64]) -> Inputs {
    let mut inputs = Inputs::new();
    let fields = lowered.arguments.iter().filter_map(|a| match &a.role {
        ArgumentRole::Coefficient(coefficient) => Some(coefficient),
        _ => None,
    });
    for (f, coefficient) in fields.enumerate() {
        let nodes = points.chunks(mesh.shape().dim());
        let at = |p| (0..coefficient.space.components()).map(move |c| function(p, f, c));
        inputs = inputs.field(&coefficient.name, nodes.flat_map(at).collect());
    }
    inputs
}

/// A result by the node it belongs to, in units that no rounding of a coordinate moves.
fn by_node(points: &[f64], dim: usize, result: &[f64]) -> BTreeMap<Vec<i64>, Vec<f64>> {
    let width = result.len() * dim / points.len();
    let key = |p: &[f64]| p.iter().map(|x| (x * 1e6).round() as i64).collect();
    points.chunks(dim).zip(result.chunks(width)).map(|(p, y)| (key(p), y.to_vec())).collect()
}

#[test]
fn actions_are_the_same_on_cells_of_either_orientation() {
    let device = kingpost::runtime::open("c").unwrap();
    for (operator, dim) in Operator::ALL.into_iter().flat_map(|o| [(o, 2), (o, 3)]) {
        let degree = 3;
        let case = operator.action_name(dim, degree);
        let plain = if dim == 2 { Mesh::unit_square(2) } else { Mesh::unit_cube(1) }.unwrap();
        let form = operator.form(dim, degree).unwrap();
        let lowered = lower(&form, &LoweringOptions::new("action")).unwrap();
        let (kernel, _) = transform(&lowered.kernel, &Mapping::single_cell()).unwrap();
        let program = generate(&kernel, device.info().backend.target(), &Options::default()).unwrap();
        let mut results = Vec::new();
        for mesh in [with_turned_cells(&plain), plain] {
            let points = Numbering::new(&mesh, degree).unwrap().dof_points(&mesh);
            let inputs = inputs(&lowered, &mesh, &points);
            let expected = reference::action(&lowered.form, &mesh, &inputs).unwrap();
            let mut memory = lowered.bind(&mesh, &inputs).unwrap();
            let loaded = Loaded::new(&*device, &program, &memory).unwrap();
            loaded.launch().unwrap();
            let compiled = loaded.f64s("y").unwrap();
            interpret(&lowered.kernel, &mut memory).unwrap();
            for (who, found) in [("interpreter", memory.f64s("y").unwrap()), ("C", &compiled)] {
                let error = RelativeError::between(found, &expected);
                assert!(error.is_within(TOLERANCE), "{case}, {who}: {error:?}");
            }
            results.push(by_node(&points, dim, &expected));
        }
        let [turned, plain] = &results[..] else { unreachable!() };
        assert!(turned.keys().eq(plain.keys()), "{case}");
        let flat = |r: &BTreeMap<_, Vec<f64>>| r.values().flatten().copied().collect::<Vec<f64>>();
        let error = RelativeError::between(&flat(turned), &flat(plain));
        assert!(error.is_within(TOLERANCE), "{case}: {error:?}");
    }
}
