//! Imported forms under the strategies that take them, in C and OpenCL, against the interpreter.
//!
//! The forms are those of `crates/forms/tests/tabulated`, on unit meshes.
#![allow(clippy::unwrap_used, clippy::panic)] // what a failed test does

use crate::support::{compiled, is_long_run, of_run};
use kingpost::analysis::stats::statistics;
use kingpost::codegen::{Options, generate};
use kingpost::forms::CellKernel;
use kingpost::forms::import::{Imported, from_json, from_json_with};
use kingpost::forms::lowering::{LoweredRole, MatrixResult, TabulatedOptions};
use kingpost::forms::numbering::NumberingOrder;
use kingpost::forms::program::CellProgram;
use kingpost::forms::strategies::{
    FactorisedCells, FactorisedLines, MultiLevelTiling, PointTiles, SingleCell, StagedCells, StagedTiling,
    SummedCells, is_functional, tensor_dimension,
};
use kingpost::forms::tabulated::{Precision, Role, Space};
use kingpost::forms::tiling::{TilingParameters, TilingSizes};
use kingpost::interp::{Memory, interpret};
use kingpost::ir::{Kernel, ScalarType};
use kingpost::runtime::open;
use kingpost::tuning::transform;
use kingpost::{Loaded, Mapping, Random, RelativeError, laid_out, staged_tiling_sizes, tiling_sizes};

/// Sums of some hundred products in f64 in another order.
const TOLERANCE: f64 = 1e-11;

fn read(name: &str) -> String {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/crates/forms/tests/tabulated/");
    std::fs::read_to_string(format!("{dir}{name}.json")).unwrap()
}

fn memory(imported: &Imported, kernel: usize, divisions: usize) -> Memory {
    let mut random = Random::new(7);
    // small values keep the determinants of deformation gradients positive
    let mut draw = || 0.05 * random.numbers(1)[0];
    let unit = imported.unit_inputs(divisions, NumberingOrder::FirstTouch, &mut draw).unwrap();
    imported.bind(kernel, &unit.of(kernel)).unwrap_or_else(|e| panic!("{e}"))
}

fn outputs(imported: &Imported, kernel: usize) -> Vec<String> {
    let arguments = imported.kernels[kernel].arguments.iter();
    let outputs = arguments.filter(|a| matches!(a.role, LoweredRole::Output { .. }));
    outputs.map(|a| a.name.clone()).collect()
}

/// Results of a device, of either precision.
fn found(kernel: &Kernel, memory: &Memory, outputs: &[String], place: &str) -> Vec<f64> {
    let device = open(place).unwrap();
    let program = generate(kernel, device.info().backend.target(), &Options::default()).unwrap();
    let loaded = Loaded::compiled(&*device, compiled(&*device, &program), &laid_out(kernel, memory)).unwrap();
    loaded.launch().unwrap();
    outputs.iter().flat_map(|name| loaded.value(name).unwrap().to_f64()).collect()
}

/// Tiles of about half of each size.
fn tiling(sizes: &TilingSizes) -> TilingParameters {
    let half = |n: u64| n.div_ceil(2);
    let quad_tile = half(sizes.quadrature_points);
    TilingParameters {
        cells: 4,
        work_items_per_cell: 2,
        quad_tile,
        eval_rows: half(quad_tile),
        eval_cols: sizes.trial.iter().map(|s| half(s.nodes)).collect(),
        quad_rows: half(sizes.test.nodes),
        quad_cols: half(quad_tile),
    }
}

/// Mappings that take a kernel: of one that can be tiled all kinds, or else two of them; of other
/// cell programs all but tilings.
fn mappings(kernel: &dyn CellKernel, all_kinds: bool) -> Vec<Mapping> {
    let mut all = vec![Mapping::from(SingleCell { cells: 8 })];
    if is_functional(kernel) {
        all.push(Mapping::from(SummedCells { cells: 6, constant_tables: true }));
    }
    if tensor_dimension(kernel.kernel()).is_some() {
        all.push(Mapping::from(FactorisedCells { cells: 4 }));
    }
    let Ok(program) = kernel.program() else { return all };
    let is_tiled = program.tiled(kernel.kernel()).is_ok();
    if !is_tiled || all_kinds {
        all.push(Mapping::from(StagedCells { cells: 8, constant_tables: false }));
        all.push(Mapping::from(PointTiles { cells: 8, sums: 4 }));
    }
    if is_tiled {
        all.push(Mapping::from(StagedTiling(tiling(&staged_tiling_sizes(kernel).unwrap()))));
        if all_kinds {
            all.push(Mapping::from(MultiLevelTiling(tiling(&tiling_sizes(kernel).unwrap()))));
        }
    }
    all
}

/// Each kernel of a form under each mapping that takes it; their names.
fn check(name: &str, imported: &Imported, all_kinds: bool) -> Vec<String> {
    check_within(TOLERANCE, name, imported, all_kinds)
}

fn check_within(tolerance: f64, name: &str, imported: &Imported, all_kinds: bool) -> Vec<String> {
    let divisions = [5, 3, 2][imported.form.cell.dim() - 1];
    let mut done = Vec::new();
    for (k, lowered) in imported.kernels.iter().enumerate() {
        let memory = memory(imported, k, divisions);
        let outputs = outputs(imported, k);
        if let Ok(program) = &lowered.program {
            assert_eq!(CellProgram::read(&lowered.kernel).as_ref(), Ok(program), "{name}");
        }
        let mut expected = memory.clone();
        interpret(&lowered.kernel, &mut expected).unwrap();
        let expected: Vec<f64> =
            outputs.iter().flat_map(|name| expected.get(name).unwrap().to_f64()).collect();
        assert!(expected.iter().any(|v| v.abs() > 1e-9), "{name}");
        let mappings = mappings(lowered, all_kinds);
        for (m, mapping) in mappings.iter().enumerate() {
            let (kernel, _) = transform(lowered, mapping)
                .unwrap_or_else(|e| panic!("{name}, kernel `{}`, {mapping}: {e}", lowered.kernel.name));
            // in OpenCL the last one, which has most barriers; all of them in a long run
            let places = if is_long_run() || m + 1 == mappings.len() { &["c", "opencl"][..] } else { &["c"] };
            for place in places {
                let error = RelativeError::between(&found(&kernel, &memory, &outputs, place), &expected);
                assert!(error.is_within(tolerance), "{name}, {mapping}, {place}: {error:?}");
            }
            done.push(format!("{} {mapping}", lowered.kernel.name));
        }
    }
    done
}

macro_rules! samples {
    ($($name:ident $mappings:literal),* $(,)?) => {
        $(#[test] fn $name() {
            let imported = from_json(&read(stringify!($name))).unwrap();
            let done = check(stringify!($name), &imported, $mappings > 2);
            assert_eq!(done.len(), $mappings, "{done:?}");
        })*
    };
}

samples! {
    block_stokes 3, curl_curl 3, energy 9, face_penalty 3, hyperelasticity 2, interior_penalty 11, laplace 5,
    laplace_matrix 3, mixed_poisson 3, stokes 3, vector_mass 5,
}

/// Tables of cubes are products in any precision, with numbers that are real or complex: sums take
/// as many operations in `f32` as in `f64`.
#[test]
fn sums_are_factorised_in_every_precision() {
    // sums of some hundred products in f32, with tables of six digits
    let runs = [(Precision::F64, None), (Precision::F32, Some(2e-5)), (Precision::C128, Some(TOLERANCE))];
    let mut operations = Vec::new();
    // compilers take most of the time
    for (scalar, tolerance) in of_run(runs, &[0, 1]) {
        let mut form = from_json(&read("collocated")).unwrap().form;
        form.scalar = scalar;
        let imported = Imported::new(form, &TabulatedOptions::default()).unwrap();
        let lowered = &imported.kernels[0];
        let (memory, outputs) = (memory(&imported, 0, 1), outputs(&imported, 0));
        let mut expected = memory.clone();
        interpret(&lowered.kernel, &mut expected).unwrap();
        let expected: Vec<f64> =
            outputs.iter().flat_map(|name| expected.get(name).unwrap().to_f64()).collect();
        let mappings = [
            Mapping::from(FactorisedCells { cells: 4 }),
            Mapping::from(FactorisedLines { cells: 2, literal_tables: false, factors: None }),
        ];
        for (m, mapping) in mappings.into_iter().enumerate() {
            let (kernel, _) =
                transform(lowered, &mapping).unwrap_or_else(|e| panic!("{scalar:?}, {mapping}: {e}"));
            let places = of_run(["c", "opencl"], if m == 0 { &[0] } else { &[] });
            for (place, tolerance) in places.into_iter().flat_map(|place| Some((place, tolerance?))) {
                let error = RelativeError::between(&found(&kernel, &memory, &outputs, place), &expected);
                assert!(error.is_within(tolerance), "{scalar:?}, {mapping}, {place}: {error:?}");
            }
            operations.push((scalar, statistics(&kernel, memory.params()).unwrap().flops()));
        }
    }
    let [of_f64, of_f32] = [Precision::F64, Precision::F32].map(|scalar| -> Vec<u64> {
        operations.iter().filter(|(of, _)| *of == scalar).map(|(_, flops)| *flops).collect()
    });
    assert_eq!(of_f64, of_f32);
}

#[test]
fn a_strategy_says_why_it_does_not_take_a_kernel() {
    let imported = from_json(&read("energy")).unwrap();
    let mapping = Mapping::from(MultiLevelTiling(TilingParameters {
        cells: 4,
        work_items_per_cell: 2,
        quad_tile: 2,
        eval_rows: 2,
        eval_cols: vec![2],
        quad_rows: 2,
        quad_cols: 2,
    }));
    let error = transform(&imported.kernels[0], &mapping).unwrap_err().to_string();
    let expected = "transform: the kernel `energy` is no operator action of known stages: the result of a cell is a \
                    number, which the strategies `single_cell`, `staged_cells` and `point_tiles` take; kernels of forms \
                    have them, with the tags of lowering";
    assert_eq!(error, expected);
}

#[test]
fn what_is_not_tiled_says_why() {
    let refused =
        |name: &str| tiling_sizes(&from_json(&read(name)).unwrap().kernels[0]).unwrap_err().to_string();
    let said = |name: &str, why: &str| {
        format!(
            "the kernel `{name}` is no operator action of known stages: {why}, which the strategies `single_cell`, \
             `staged_cells` and `point_tiles` take; kernels of forms have them, with the tags of lowering"
        )
    };
    for (name, why) in [
        ("energy", "the result of a cell is a number"),
        ("laplace_matrix", "the result of a cell is a matrix"),
        ("block_stokes", "a cell has several results"),
        ("curl_curl", "degrees of freedom are transformed by the orientation of cells"),
        ("mixed_poisson", "degrees of freedom are transformed by the orientation of cells"),
    ] {
        assert_eq!(refused(name), said(name, why));
    }
}

/// A subdomain of cells is tiled like all of them; facets are not, and say so.
#[test]
fn parts_of_the_mesh_are_mapped() {
    let mut form = from_json(&read("laplace")).unwrap().form;
    form.integrals[0].subdomains = vec![3];
    let imported = Imported::new(form, &TabulatedOptions::default()).unwrap();
    let done = check("laplace on a subdomain", &imported, false);
    assert_eq!(done.len(), 2, "{done:?}");
    assert!(done[1].starts_with("laplace_cells_3 4x2 work-items"), "{done:?}");

    let facets = &from_json(&read("interior_penalty")).unwrap().kernels[1];
    let tiled = |staged: bool| {
        let p = TilingParameters {
            cells: 4,
            work_items_per_cell: 2,
            quad_tile: 3,
            eval_rows: 3,
            eval_cols: vec![6],
            quad_rows: 6,
            quad_cols: 3,
        };
        let mapping =
            if staged { Mapping::from(StagedTiling(p)) } else { Mapping::from(MultiLevelTiling(p)) };
        transform(facets, &mapping).unwrap_err().to_string()
    };
    let expected = "transform: the kernel `interior_penalty_exterior_facets_1` is no operator action of known stages: \
                    each facet reads entries of the tables of its own, which the strategies `single_cell`, \
                    `staged_cells` and `point_tiles` take; kernels of forms have them, with the tags of lowering";
    assert_eq!([tiled(true), tiled(false)], [expected, expected]);
}

#[test]
fn only_functionals_are_summed() {
    let refused = |name: &str| {
        let mapping = Mapping::from(SummedCells { cells: 8, constant_tables: false });
        transform(&from_json(&read(name)).unwrap().kernels[0], &mapping).unwrap_err().to_string()
    };
    let end = "; kernels of forms have them, with the tags of lowering";
    assert_eq!(
        refused("laplace"),
        format!(
            "transform: the kernel `laplace` is no operator action of known stages: `scatter_y` adds to an element of \
             each cell, needed one number for all cells; take another strategy{end}"
        )
    );
    assert_eq!(
        refused("laplace_matrix"),
        format!(
            "transform: the kernel `laplace_matrix` is no operator action of known stages: each cell stores a result of \
             its own, which the strategy `single_cell` takes{end}"
        )
    );
}

#[test]
fn a_diagonal_is_that_of_the_matrices() {
    let options = TabulatedOptions { matrix: MatrixResult::Diagonal, ..TabulatedOptions::default() };
    let text = read("laplace_matrix");
    let (diagonal, matrices) = (from_json_with(&text, &options).unwrap(), from_json(&text).unwrap());
    let run = |imported: &Imported| {
        let mut memory = memory(imported, 0, 2);
        interpret(&imported.kernels[0].kernel, &mut memory).unwrap();
        memory
    };
    let (found, all) = (run(&diagonal), run(&matrices));
    let map = found.get("p2_dofs").unwrap().to_f64();
    let found = found.get("y").unwrap().to_f64();
    let mut expected = vec![0.0; found.len()];
    for (k, dof) in map.iter().enumerate() {
        expected[*dof as usize] += all.get("y").unwrap().to_f64()[k * 10 + k % 10];
    }
    assert!(RelativeError::between(&found, &expected).is_within(TOLERANCE));
}

#[test]
fn each_sub_element_has_a_kernel_that_is_tiled() {
    let options = TabulatedOptions { split_results: true, ..TabulatedOptions::default() };
    let split = from_json_with(&read("block_stokes"), &options).unwrap();
    let done = check("block_stokes", &split, true);
    assert_eq!(done.len(), 10, "{done:?}");
    let names: Vec<&str> = split.kernels.iter().map(|k| k.kernel.name.as_str()).collect();
    assert_eq!(names, ["block_stokes_0", "block_stokes_1"]);
}

#[test]
fn sparse_matrices_are_assembled_by_atomics() {
    for name in ["laplace_matrix", "stokes"] {
        let options = TabulatedOptions { matrix: MatrixResult::Sparse, ..TabulatedOptions::default() };
        let imported = from_json_with(&read(name), &options).unwrap();
        assert_eq!(check(name, &imported, true).len(), 3);
    }
}

/// The Laplace form on cells whose position is a quadratic function, like the coefficient.
fn curved() -> Imported {
    let mut form = from_json(&read("laplace")).unwrap().form;
    let space = Space { name: "x2".into(), block: 2, ..form.spaces[1].clone() };
    form.spaces.push(space);
    let x = form.functions.iter().position(|f| f.role == Role::Coordinates).unwrap();
    form.functions[x].space = 2;
    let integral = &mut form.integrals[0];
    let names: Vec<String> = integral.tables.iter().map(|t| t.name.clone()).collect();
    for e in integral.evaluations.iter_mut().filter(|e| e.function == x) {
        let axis = &names[e.table][names[e.table].rfind("_d").unwrap()..];
        e.table = names.iter().position(|n| n.starts_with("p2") && n.ends_with(axis)).unwrap();
    }
    Imported::new(form, &TabulatedOptions::default()).unwrap()
}

#[test]
fn curved_cells_are_tiled() {
    let imported = curved();
    let program = imported.kernels[0].program.as_ref().unwrap();
    let evaluated: Vec<&str> = program.blocks[0].evaluations.iter().map(|e| e.function.as_str()).collect();
    assert!(evaluated.contains(&"x") && evaluated.contains(&"u"), "{evaluated:?}");
    assert_eq!(check("curved laplace", &imported, true).len(), 5);
}

#[test]
fn vector_elements_are_tiled() {
    let mut form = from_json(&read("curl_curl")).unwrap().form;
    // cells of one orientation have nothing to transform
    form.spaces[1].transforms.clear();
    let imported = Imported::new(form, &TabulatedOptions::default()).unwrap();
    assert_eq!(check("curl curl", &imported, false).len(), 2);
}

#[test]
fn sub_elements_of_one_array_are_tiled() {
    // both components of the second array are columns of one map
    let mut form = from_json(&read("mixed_poisson")).unwrap().form;
    form.spaces[1].transforms.clear();
    let options = TabulatedOptions { split_results: true, ..TabulatedOptions::default() };
    let imported = Imported::new(form, &options).unwrap();
    let program = imported.kernels[0].program.as_ref().unwrap();
    assert_eq!(program.gathers.len(), 2, "{:?}", program.gathers);
    assert_eq!(check("mixed Poisson", &imported, false).len(), 4);
}

#[test]
fn complex_numbers_under_every_mapping() {
    // 2e-5: sums of some hundred products in f32 in another order
    let (single, double) = ((Precision::C64, 2e-5), (Precision::C128, TOLERANCE));
    for (name, (scalar, tolerance), kernels) in
        [("laplace", double, 2), ("interior_penalty", single, 8), ("energy", double, 9)]
    {
        let mut form = from_json(&read(name)).unwrap().form;
        form.scalar = scalar;
        let imported = Imported::new(form, &TabulatedOptions::default()).unwrap();
        // positions, and what is gathered and computed of them
        let mut positions = imported.kernels.iter().flat_map(|k| k.kernel.vars.values());
        assert!(positions.all(|v| !v.name.starts_with('x') || !v.ty.is_complex()), "{name}");
        let done = check_within(tolerance, name, &imported, false);
        assert_eq!(done.len(), kernels, "{done:?}");
    }
}

#[test]
fn single_precision_under_every_mapping() {
    for (name, kernels) in [("laplace", 2), ("interior_penalty", 8), ("energy", 9)] {
        let mut form = from_json(&read(name)).unwrap().form;
        form.scalar = Precision::F32;
        let imported = Imported::new(form, &TabulatedOptions::default()).unwrap();
        assert!(imported.kernels.iter().all(|k| k.kernel.vars.values().all(|v| v.ty != ScalarType::F64)));
        // 2e-5: sums of some hundred products in f32 in another order
        let done = check_within(2e-5, name, &imported, false);
        assert_eq!(done.len(), kernels, "{done:?}");
    }
}
