//! Matrices whose rows are owned on cells that are turned, compared with an evaluation of the form that shares no
//! code with lowering and code generation, and with other assemblies.

#![allow(clippy::unwrap_used)]

use crate::systems::devices;
use kingpost_fem::element::CellShape;
use kingpost_fem::mesh::Mesh;
use kingpost_fem::numbering::NumberingOrder;
use kingpost_fem::sparse::CsrPattern;
use kingpost_forms::form::{
    Form, FormError, FunctionSpace, Inputs, action, coefficient, constant, div, ds, dx, exp, grad, inner,
    test, trial,
};
use kingpost_forms::lowering::{
    LoweringOptions, MatrixResult, MeshForm, NumberedMesh, OwnerCells, RowOwners,
};
use kingpost_forms::reference;
use kingpost_runtime::{Device, buffer_of, download_values};
use kingpost_sample::{Random, is_long_run, of_run, seed};
use kingpost_solve::{
    Arrays, AssemblyStrategy, FormPrograms, FoundPattern, MatrixAssembly, Patterns, RowOptions, run,
};
use kingpost_strategies::{Mapping, OwnedRows};
use std::collections::BTreeMap;

const ORDER: NumberingOrder = NumberingOrder::OF_MATRICES;
const TURNED: AssemblyStrategy = owned(OwnerCells::Turned, false);
const STRIPS: AssemblyStrategy = owned(OwnerCells::Strips, false);

const fn owned(cells: OwnerCells, packed: bool) -> AssemblyStrategy {
    AssemblyStrategy::OwnedRows(Some(RowOptions { cells, packed }))
}

fn lowered(form: &Form, matrix: MatrixResult) -> Result<MeshForm, FormError> {
    Ok(MeshForm::new(form, &LoweringOptions::new("tangent").with_matrix(matrix))?.in_order(ORDER))
}

/// A matrix by a coefficient and a constant, both of which vary.
fn form_of(space: &FunctionSpace) -> Form {
    let (u, v) = (trial(space), test(space));
    let stiffness = inner(grad(u.clone()), grad(v.clone())) * constant("kappa") * dx();
    match space.is_vector() {
        // blocks that are not symmetric
        true => stiffness + div(u) * inner(coefficient("w", space), v) * dx(),
        false => stiffness + coefficient("w", space) * u * v * dx(),
    }
}

fn mapping(owners: u64) -> Mapping {
    OwnedRows { owners }.into()
}

/// The entries on a device, by a pattern that the host or the device has found.
fn assembled(
    device: &dyn Device,
    (form, mesh, inputs): (&Form, &Mesh, &Inputs),
    (strategy, owners): (AssemblyStrategy, u64),
    is_found: bool,
) -> (CsrPattern, Vec<f64>) {
    let (sparse, mut arrays) = (lowered(form, MatrixResult::Sparse).unwrap(), Arrays::default());
    let of_host = sparse.patterns(mesh).unwrap();
    let matrix = strategy.matrix_of(&sparse, &NumberedMesh::new(mesh), &of_host[0]).unwrap();
    let found = FoundPattern::find(device, &sparse, mesh, matrix, &mut arrays).unwrap();
    let are_strips = matches!(matrix, MatrixResult::OwnedRows(o) if o.cells == OwnerCells::Strips);
    assert_eq!(found.is_none(), are_strips, "the host finds strips alone");
    let patterns = match &found {
        Some(found) if is_found => Patterns::from(found),
        Some(_) | None => Patterns::from(&of_host),
    };
    let lowered = lowered(form, matrix).unwrap();
    let programs = FormPrograms::compile(device, lowered, &|_| vec![mapping(owners)]).unwrap();
    let of = inputs.of(programs.form().form());
    let assembly = MatrixAssembly::new(device, &programs, mesh, &of, patterns, &[], &mut arrays).unwrap();
    // every entry is overwritten
    let values = buffer_of(device, &vec![f64::NAN; of_host[0].columns.len()]).unwrap();
    let mut calls = Vec::new();
    assembly.assemble(&[], &values, &mut calls);
    run(device, &calls).unwrap();
    (of_host.into_iter().next().unwrap(), download_values(device, &values).unwrap())
}

#[test]
fn entries_are_those_of_the_reference() {
    let seed = seed();
    let (triangle, tetrahedron) = (CellShape::Triangle, CellShape::Tetrahedron);
    let cases = [
        (FunctionSpace::scalar(tetrahedron, 1), Mesh::unit_cube(3).unwrap()),
        (FunctionSpace::scalar(tetrahedron, 2), Mesh::unit_cube(2).unwrap()),
        (FunctionSpace::vector(tetrahedron, 1), Mesh::unit_cube(2).unwrap()),
        (FunctionSpace::scalar(triangle, 3), Mesh::unit_square(3).unwrap()),
        (FunctionSpace::scalar(triangle, 1), Mesh::unit_square(3).unwrap()),
        (FunctionSpace::scalar(tetrahedron, 3), Mesh::unit_cube(1).unwrap()),
    ];
    let [taken, taken_as_strips] = if is_long_run() { [cases.len(); 2] } else { [2, 1] };
    let numbered = || cases.iter().enumerate();
    let turned = numbered().take(taken).map(|case| (TURNED, case));
    let of_vertices = numbered().filter(|(_, (space, _))| space.degree() == 1).map(|case| (STRIPS, case));
    let of_vertices = of_vertices.take(taken_as_strips);
    let scalars = |cells, n| {
        let of = numbered().filter(|(_, (space, _))| !space.is_vector()).take(n);
        of.map(move |case| (owned(cells, true), case))
    };
    let packed = scalars(OwnerCells::Strips, 1).chain(scalars(OwnerCells::Turned, 2));
    let packed = packed.chain(scalars(OwnerCells::Mapped, 1));
    let mut references: BTreeMap<usize, Vec<Vec<f64>>> = BTreeMap::new();
    for (place, (strategy, (case, (space, mesh)))) in turned.chain(of_vertices).chain(packed).enumerate() {
        let form = form_of(space);
        let n = lowered(&form, MatrixResult::Sparse).unwrap().n_columns(mesh).unwrap();
        let inputs = Inputs::new().in_order(ORDER).constant("kappa", [1.7]);
        let inputs = inputs.field("w", Random::of(seed).reals(n));
        let of_vector = action(form.clone(), coefficient("du", space));
        // most of the time goes into them, and strategies share them
        let reference = references.entry(case).or_insert_with(|| {
            let column = |j| {
                let mut unit = vec![0.0; n];
                unit[j] = 1.0;
                let inputs = inputs.clone().field("du", unit).of(&of_vector);
                reference::action(&of_vector, mesh, &inputs).unwrap()
            };
            (0..n).map(column).collect()
        });
        let largest = reference.iter().flatten().fold(0.0_f64, |most, x| most.max(x.abs()));
        let one = |(k, _): &(usize, _)| is_long_run() || k % 2 == place % 2;
        for (k, device) in devices().into_iter().enumerate().filter(one) {
            let is_found = (place / 2 + k) % 2 == 0;
            let are_packed = matches!(strategy, AssemblyStrategy::OwnedRows(Some(o)) if o.packed);
            let mapped = (strategy, if are_packed { 64 } else { [16, 12][k % 2] });
            let (pattern, values) = assembled(&*device, (&form, mesh, &inputs), mapped, is_found);
            for (j, expected) in reference.iter().enumerate() {
                for (i, expected) in expected.iter().enumerate() {
                    let row = pattern.row_starts[i] as usize..pattern.row_starts[i + 1] as usize;
                    let entry = row.into_iter().find(|at| pattern.columns[*at] as usize == j);
                    let found = entry.map_or(0.0, |at| values[at]);
                    let error = (found - expected).abs() / largest;
                    // sums of a dozen products over two dozen cells
                    assert!(
                        error <= 1e-12,
                        "{strategy}, {space} on {} cells, {}: [{i}, {j}] off by {error:e}, seed {seed}",
                        mesh.n_cells(),
                        device.info().name
                    );
                }
            }
        }
    }
}

/// Rows differ in length, and no two cells have one shape.
#[test]
fn an_unstructured_mesh_has_the_entries_of_a_lookup_table() {
    let bracket = concat!(env!("CARGO_MANIFEST_DIR"), "/../../meshes/bracket.msh");
    let mesh = Mesh::read_gmsh(bracket.as_ref()).unwrap();
    let packed = owned(OwnerCells::Strips, true);
    let cases = [(TURNED, 1), (packed, 1), (STRIPS, 1), (TURNED, 2)];
    for (k, (strategy, degree)) in of_run(cases.into_iter().enumerate(), &[1]) {
        let space = FunctionSpace::scalar(CellShape::Tetrahedron, degree);
        // its rows add up to zero, which strips make use of
        let form = inner(grad(trial(&space)), grad(test(&space))) * constant("kappa") * dx();
        let inputs = Inputs::new().in_order(ORDER).constant("kappa", [1.7]);
        let device = devices().swap_remove(0);
        let (pattern, found) = assembled(&*device, (&form, &mesh, &inputs), (strategy, 64), k == 0);
        let programs =
            FormPrograms::compile(&*device, lowered(&form, MatrixResult::Sparse).unwrap(), &|_| {
                vec![Mapping::single_cell()]
            });
        let (programs, mut arrays) = (programs.unwrap(), Arrays::default());
        let (of, patterns) = (inputs.of(programs.form().form()), [pattern]);
        let assembly =
            MatrixAssembly::new(&*device, &programs, &mesh, &of, &patterns, &[], &mut arrays).unwrap();
        let values = buffer_of(&*device, &vec![f64::NAN; found.len()]).unwrap();
        let mut calls = Vec::new();
        assembly.assemble(&[], &values, &mut calls);
        run(&*device, &calls).unwrap();
        let expected: Vec<f64> = download_values(&*device, &values).unwrap();
        let largest = expected.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
        let far = found.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        // sums of a dozen products over two dozen cells
        assert!(largest > 0.0 && far <= 1e-12 * largest, "{strategy}, P{degree}: {far} of {largest}");
    }
}

#[test]
fn what_is_no_strip_is_refused() {
    let mesh = Mesh::unit_cube(1).unwrap();
    let space = |degree| FunctionSpace::scalar(CellShape::Tetrahedron, degree);
    let mass = |space: &FunctionSpace| trial(space) * test(space);
    let strips = |longest| MatrixResult::OwnedRows(RowOwners::new(OwnerCells::Strips, longest));
    let refused = |form: &Form, longest| lowered(form, strips(longest)).unwrap_err().to_string();
    let quadratic = refused(&(mass(&space(2)) * dx()), 30);
    assert!(
        quadratic.contains("degrees of freedom that are not at vertices, needed degree 1"),
        "{quadratic}"
    );
    let curved = refused(&(mass(&space(1)) * exp(coefficient("w", &space(1))) * dx()), 30);
    assert!(curved.contains("rules that are not exact"), "{curved}");
    let facets = refused(&(mass(&space(1)) * ds()), 30);
    assert!(facets.contains("found an integral over facets"), "{facets}");
    let bound = |longest| {
        let form = lowered(&(mass(&space(1)) * dx()), strips(longest)).unwrap();
        form.bind(0, &mesh, &Inputs::new().in_order(ORDER)).map(|_| ())
    };
    let error = bound(3).unwrap_err().to_string();
    assert!(error.contains("rows of at most [8] entries, and the form was lowered for rows of"), "{error}");
    bound(8).unwrap();
}

#[test]
fn what_cannot_be_turned_is_refused() {
    let mesh = Mesh::unit_cube(1).unwrap();
    let space = |degree| FunctionSpace::scalar(CellShape::Tetrahedron, degree);
    let mass = |space: &FunctionSpace| trial(space) * test(space);
    let turned = MatrixResult::OwnedRows(RowOwners::new(OwnerCells::Turned, 30));
    let refused = |form: &Form| lowered(form, turned).unwrap_err().to_string();
    assert!(refused(&(mass(&space(4)) * dx())).contains("needed Lagrange elements of degree 1 to 3"));
    let curved = refused(&(mass(&space(1)) * exp(coefficient("w", &space(1))) * dx()));
    assert!(curved.contains("rules that are not exact"), "{curved}");
    let other = refused(&(mass(&space(1)) * coefficient("w", &space(2)) * dx()));
    assert!(other.contains("turned cells and `w`, which is not of the space of the matrix"), "{other}");
    let two = refused(&(trial(&space(1)) * test(&space(2)) * dx()));
    assert!(two.contains("turned cells and two spaces"), "{two}");
    let facets = refused(&(mass(&space(1)) * ds()));
    assert!(facets.contains("found an integral over facets"), "{facets}");
    // numbers of edges between those of vertices
    let form = lowered(&(mass(&space(2)) * dx()), turned).unwrap().in_order(NumberingOrder::FirstTouch);
    let error = form.bind(0, &mesh, &Inputs::new()).unwrap_err().to_string();
    assert!(error.contains("number them by dimension"), "{error}");
    let short = MatrixResult::OwnedRows(RowOwners::new(OwnerCells::Turned, 3));
    let form = lowered(&(mass(&space(1)) * dx()), short).unwrap();
    let error = form.bind(0, &mesh, &Inputs::new().in_order(ORDER)).unwrap_err().to_string();
    assert!(error.contains("rows of at most [8, 0, 0, 0] entries, and the form was lowered"), "{error}");
    let packed = MatrixResult::OwnedRows(RowOwners { packed: true, ..RowOwners::new(OwnerCells::Turned, 8) });
    let vectors = FunctionSpace::vector(CellShape::Tetrahedron, 1);
    let form = inner(trial(&vectors), test(&vectors)) * dx();
    let error = lowered(&form, packed).unwrap_err().to_string();
    assert!(error.contains("packed rows of 3 components, needed one"), "{error}");
    // a group of other owners than those whose rows lie together
    let form = lowered(&(mass(&space(1)) * dx()), packed).unwrap();
    let error = mapping(32).apply(&form.kernels()[0]).unwrap_err().to_string();
    assert!(error.contains("owners of a group is 32, needed 64, whose rows are packed"), "{error}");
}
