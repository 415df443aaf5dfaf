//! Patterns that a device finds, compared with those of the host, entry by entry.

#![allow(clippy::unwrap_used)]

use crate::systems::{devices, every_device};
use kingpost_fem::element::CellShape;
use kingpost_fem::mesh::Mesh;
use kingpost_fem::numbering::Numbering;
use kingpost_fem::sparse::{CsrPart, CsrPattern};
use kingpost_forms::form::{Form, FunctionSpace, Inputs, div, ds, dx, grad, inner, test, trial};
use kingpost_forms::lowering::{LoweringOptions, MatrixResult, MeshForm};
use kingpost_runtime::{Buffer, Device, buffer_of, download_values, upload_values};
use kingpost_sample::Random;
use kingpost_solve::{
    Arrays, AssemblyStrategy, Constraints, CsrOperator, FormPrograms, FoundPattern, MatrixAssembly,
    PatternKernels, Patterns, PrescribedValues, SolveError, boundary, boundary_by, run,
};
use kingpost_strategies::Mapping;

/// Compares all arrays.
fn compare(device: &dyn Device, kernels: &PatternKernels, sizes: [usize; 2], part: &CsrPart<'_>, what: &str) {
    let [height, width] = part.extents;
    let expected = CsrPattern::of_rows(sizes[0], sizes[1], height, width, part.rows, part.columns).unwrap();
    let found = kernels.find(device, sizes, part).unwrap();
    let list = |buffer: &Buffer| download_values::<i32>(device, buffer).unwrap();
    assert_eq!(list(&found.row_starts), expected.row_starts, "{what}");
    assert_eq!((found.rows, found.entries), (sizes[0], expected.columns.len()), "{what}");
    assert_eq!(list(&found.columns), expected.columns, "{what}");
    assert_eq!(list(&found.positions), *expected.positions(), "{what}");
    let terms = expected.row_terms();
    assert_eq!(list(&found.term_entities), terms.entities, "{what}");
    assert_eq!(list(&found.term_rows), terms.rows, "{what}");
    let starts: Vec<i32> = (0..=sizes[0])
        .map(|row| part.rows.iter().filter(|number| (**number as usize) < row).count() as i32)
        .collect();
    assert_eq!(list(&found.term_starts), starts, "{what}");
}

#[test]
fn patterns_of_meshes_are_those_of_the_host() {
    let mesh = Mesh::unit_cube(4).unwrap();
    for device in every_device() {
        let kernels = PatternKernels::new(&*device).unwrap();
        for degree in [1, 2] {
            let numbering = Numbering::new(&mesh, degree).unwrap();
            let (map, width) = (numbering.dofs(), numbering.dofs_per_cell());
            let n = *map.iter().max().unwrap() as usize + 1;
            let part = CsrPart { extents: [width, width], rows: map, columns: map };
            compare(&*device, &kernels, [n, n], &part, &format!("{}, P{degree}", device.info().name));
        }
    }
}

#[test]
fn boundaries_are_those_of_the_host() {
    let bracket = concat!(env!("CARGO_MANIFEST_DIR"), "/../../meshes/bracket.msh");
    let shapes =
        [CellShape::Triangle, CellShape::Quadrilateral, CellShape::Tetrahedron, CellShape::Hexahedron];
    let unit = shapes.iter().flat_map(|shape| [1, 3].map(|n| Mesh::unit(*shape, n).unwrap()));
    let meshes: Vec<Mesh> = unit.chain([Mesh::read_gmsh(bracket.as_ref()).unwrap()]).collect();
    for device in devices() {
        for mesh in &meshes {
            let found = boundary_by(&*device, mesh).unwrap().unwrap();
            let name = &device.info().name;
            assert_eq!(found, mesh.boundary(), "{name}, {} {}", mesh.shape(), mesh.n_cells());
            assert_eq!(boundary(&*device, mesh).unwrap(), found, "{name}");
        }
    }
}

#[test]
fn patterns_of_random_maps_are_those_of_the_host() {
    let mut random = Random::new();
    for device in devices() {
        let kernels = PatternKernels::new(&*device).unwrap();
        // one entity, more rows than a block, numbers that an entity has twice, rows that nobody has
        for (entities, [height, width], sizes) in
            [(1, [1, 1], [1, 1]), (1, [3, 2], [5, 4]), (300, [2, 3], [700, 90]), (97, [4, 4], [6, 9])]
        {
            let mut map = |n: usize, below: usize| -> Vec<i32> {
                (0..n).map(|_| random.int(0, below as i64) as i32).collect()
            };
            let (rows, columns) = (map(entities * height, sizes[0]), map(entities * width, sizes[1]));
            let part = CsrPart { extents: [height, width], rows: &rows, columns: &columns };
            let what = format!("{}, {entities} entities, seed {}", device.info().name, random.seed);
            compare(&*device, &kernels, sizes, &part, &what);
        }
    }
}

/// The entries of the matrix of a form, by the pattern of the host or by that of the device.
fn assembled(
    device: &dyn Device,
    form: &Form,
    mesh: &Mesh,
    strategy: AssemblyStrategy,
    is_found: bool,
) -> Vec<f64> {
    let lowered = |matrix| MeshForm::new(form, &LoweringOptions::new("tangent").with_matrix(matrix)).unwrap();
    let mut arrays = Arrays::default();
    let pattern_of = lowered(strategy.pattern());
    let of_host = pattern_of.patterns(mesh).unwrap();
    let found = FoundPattern::find(device, &pattern_of, mesh, strategy.matrix(0), &mut arrays).unwrap();
    let mut found = found.unwrap();
    assert_eq!(found.rows().n_entries(), of_host[0].n_entries());
    found.read_columns(device).unwrap();
    assert_eq!(found.rows().row_starts, of_host[0].row_starts);
    assert_eq!(found.rows().columns, of_host[0].columns);
    assert_eq!(found.rows().by_blocks(), of_host[0].by_blocks());
    let patterns = if is_found { Patterns::from(&found) } else { Patterns::from(&of_host) };
    let form = lowered(strategy.matrix(of_host[0].longest_row()));
    let programs = FormPrograms::compile(device, form, &|_| vec![Mapping::single_cell()]).unwrap();
    let before = device.traffic();
    let assembly =
        MatrixAssembly::new(device, &programs, mesh, &Inputs::new(), patterns, &[], &mut arrays).unwrap();
    let copied = device.traffic().since(before).to_device;
    if is_found && strategy == AssemblyStrategy::LookupTable {
        // the nodes and cells of the geometry; the map was there, and the table was never on the host
        assert_eq!(copied, (8 * mesh.nodes().len() + 4 * mesh.cells().len()) as u64);
    }
    let matrix = match is_found {
        true => CsrOperator::of_found(device, &found).unwrap(),
        false => CsrOperator::new(device, &of_host[0]).unwrap(),
    };
    let mut calls = Vec::new();
    assembly.assemble(&[], matrix.values(), &mut calls);
    run(device, &calls).unwrap();
    download_values(device, matrix.values()).unwrap()
}

#[test]
fn kernels_assemble_by_patterns_that_a_device_has_found() {
    let mesh = Mesh::unit_cube(3).unwrap();
    for device in devices() {
        for (components, degree) in [(1, 1), (1, 2), (3, 1)] {
            let space = match components {
                1 => FunctionSpace::scalar(CellShape::Tetrahedron, degree),
                _ => FunctionSpace::vector(CellShape::Tetrahedron, degree),
            };
            let (u, v) = (trial(&space), test(&space));
            let stiffness = inner(grad(u.clone()), grad(v.clone())) * dx();
            // blocks that are not symmetric
            let form = if components == 1 { stiffness } else { stiffness + div(u) * div(v) * dx() };
            for strategy in [AssemblyStrategy::LookupTable, AssemblyStrategy::OWNED_ROWS] {
                let of = |is_found| assembled(&*device, &form, &mesh, strategy, is_found);
                let (found, expected) = (of(true), of(false));
                let largest = expected.iter().fold(0.0_f64, |largest, value| largest.max(value.abs()));
                let far = found.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                // 1e-15: terms of an entry may be added up in any order
                let close = found.len() == expected.len() && far <= 1e-15 * 24.0 * largest;
                assert!(close, "{strategy}, {components} of P{degree}: {far} of {largest}");
            }
        }
    }
}

#[test]
fn what_a_device_does_not_find_is_left_to_the_host() {
    let device = kingpost_runtime::open("c").unwrap();
    let space = FunctionSpace::scalar(CellShape::Triangle, 1);
    let mass = |measure| trial(&space) * test(&space) * measure;
    let mesh = Mesh::unit_square(2).unwrap();
    let is_found = |form: Form, matrix| {
        let form = MeshForm::new(&form, &LoweringOptions::new("mass")).unwrap();
        FoundPattern::find(&*device, &form, &mesh, matrix, &mut Arrays::default()).unwrap().is_some()
    };
    assert!(is_found(mass(dx()), MatrixResult::Sparse));
    assert!(!is_found(mass(dx()), MatrixResult::Coloured), "no lists for it");
    assert!(!is_found(mass(ds()), MatrixResult::Sparse), "a list of facets");
    assert!(!is_found(mass(dx()) + mass(ds()), MatrixResult::Sparse), "two kernels");
}

#[test]
fn maps_that_are_wrong_are_refused() {
    let device = kingpost_runtime::open("c").unwrap();
    let kernels = PatternKernels::new(&*device).unwrap();
    let refused = |sizes, extents, rows: &[i32], columns: &[i32]| -> SolveError {
        kernels.find(&*device, sizes, &CsrPart { extents, rows, columns }).err().unwrap()
    };
    let error = refused([3, 3], [2, 2], &[0, 3], &[0, 1]);
    assert_eq!(error.to_string(), "a map with the number 3: needed 0 to 2");
    let error = refused([3, 3], [2, 2], &[0, 1], &[-1, 1]);
    assert_eq!(error.to_string(), "a map with the number -1: needed 0 to 2");
    let error = refused([3, 3], [2, 2], &[0, 1], &[0, 1, 2]);
    assert_eq!(error.to_string(), "`map of columns` has 3 entries, needed 2");
    let error = refused([3, 3], [2, 2], &[], &[]);
    assert_eq!(error.to_string(), "a map of 0 numbers of 2 an entity: needed some entities");
    let error = refused([i32::MAX as usize, 3], [1, 1], &[0], &[0]);
    assert_eq!(
        error.to_string(),
        "2147487743 numbers of a pattern: needed at most 2147483647, as 32 bits count"
    );
}

/// What prescribed values make of a matrix and a right-hand side.
#[test]
fn constraints_of_found_patterns_are_those_of_the_host() {
    let mesh = Mesh::unit_cube(3).unwrap();
    let mut random = Random::new();
    for device in devices() {
        for degree in [1, 2] {
            let space = FunctionSpace::scalar(CellShape::Tetrahedron, degree);
            let form = inner(grad(trial(&space)), grad(test(&space))) * dx();
            let options = LoweringOptions::new("tangent").with_matrix(MatrixResult::Sparse);
            let form = MeshForm::new(&form, &options).unwrap();
            let mut arrays = Arrays::default();
            let found = FoundPattern::find(&*device, &form, &mesh, MatrixResult::Sparse, &mut arrays);
            let (found, of_host) = (found.unwrap().unwrap(), form.patterns(&mesh).unwrap());
            let (n, n_entries) = (of_host[0].row_starts.len() - 1, of_host[0].n_entries());
            let mut reals = |n: usize| -> Vec<f64> { (0..n).map(|_| random.int(-99, 99) as f64).collect() };
            let (entries, b, u) = (reals(n_entries), reals(n), reals(n));
            let mut unknowns: Vec<i32> = (0..n as i32).filter(|_| random.int(0, 3) == 0).collect();
            for is_ordered in [true, false] {
                if !is_ordered {
                    unknowns.reverse();
                }
                let values = unknowns.iter().map(|unknown| f64::from(unknown % 7)).collect();
                let values = PrescribedValues { unknowns: unknowns.clone(), values };
                let changed = |constraints: Constraints, matrix: CsrOperator| -> [Vec<f64>; 2] {
                    upload_values(&*device, matrix.values(), &entries).unwrap();
                    let [b, u] = [&b, &u].map(|list| buffer_of(&*device, list).unwrap());
                    let mut calls = vec![constraints.measure_gap(&u, 1.0)];
                    calls.extend(constraints.lift(matrix.values(), &b));
                    calls.extend(constraints.eliminate(matrix.values()));
                    run(&*device, &calls).unwrap();
                    [matrix.values(), &b].map(|list| download_values(&*device, list).unwrap())
                };
                let expected = changed(
                    Constraints::new(&*device, &of_host[0], &values).unwrap(),
                    CsrOperator::new(&*device, &of_host[0]).unwrap(),
                );
                let on_device = changed(
                    Constraints::of_found(&*device, &found, &values).unwrap(),
                    CsrOperator::of_found(&*device, &found).unwrap(),
                );
                let what = format!("{}, P{degree}, {is_ordered}, seed {}", device.info().name, random.seed);
                assert_eq!(on_device, expected, "{what}");
            }
            let refused = |unknowns: Vec<i32>| {
                let values = PrescribedValues { values: vec![0.0; unknowns.len()], unknowns };
                let error = Constraints::of_found(&*device, &found, &values).err();
                assert!(matches!(error, Some(SolveError::Prescribed { .. })), "{error:?}");
            };
            refused(vec![1, 1]);
            refused(vec![0, n as i32]);
            refused(vec![-1, 0]);
        }
    }
}
