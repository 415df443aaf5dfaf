//! Which mapping is the default of what, and where it comes from.
#![allow(clippy::unwrap_used, clippy::panic)]

use super::super::candidates::with_fewer_modes;
use super::*;
use crate::tuning::{CaseMesh, FormCase};
use crate::{Errors, Measurement, Outcome, RECORD_VERSION, Workload};
use kingpost_fem::element::CellShape;
use kingpost_fem::quadrature::QuadratureScheme;
use kingpost_forms::form::{Form, FunctionSpace, coefficient, dx, grad, inner, test, trial};
use kingpost_forms::lowering::{
    LoweredForm, LoweredKernel, LoweringOptions, MatrixResult, TabulatedOptions, lower, lower_tabulated,
    tabulate,
};
use kingpost_ir::text;
use kingpost_kernels::Operator;
use kingpost_primitives::schedule;
use kingpost_primitives::steps;
use kingpost_sample::{is_long_run, of_run};
use kingpost_strategies::Combinator;
use kingpost_strategies::relowered;
use kingpost_strategies::{
    CellBlocks, ConstantCells, FactorisedCells, FactorisedLines, FewestOperations, InOrbits, ListedCells,
    LoopLanes, Objective, PointTiles, Rules, SingleCell, StagedCells, StraightCells, SummedCells,
};

fn device(name: &str, backend: Backend, arch: &str) -> DeviceInfo {
    DeviceInfo {
        name: name.into(),
        backend,
        index: 0,
        driver: String::new(),
        compute_units: 132,
        max_work_group_size: 1024,
        max_work_item_sizes: [1024, 1024, 64],
        max_grid: [1 << 30; 3],
        local_mem_bytes: 232_448,
        private_mem_bytes: None,
        global_mem_bytes: 1 << 37,
        fp64: true,
        int64_atomics: true,
        clock_mhz: 1980,
        arch: arch.into(),
        vector_bytes: 64,
        core_cache_bytes: 0,
        uuid: None,
    }
}

/// Of a processor with AVX-512, as [`device`] says.
fn tiles() -> Mapping {
    Mapping::from(PointTiles { cells: 8, sums: 16 })
}

fn lowered(operator: Operator, dim: usize, degree: usize, scheme: QuadratureScheme) -> FormCase {
    let options = LoweringOptions::new(operator.kernel_name(dim, degree)).with_scheme(scheme);
    let lowered = lower(&operator.form(dim, degree).unwrap(), &options).unwrap();
    FormCase::new(operator.action_name(dim, degree), lowered, CaseMesh::Unit(2)).unwrap()
}

fn record(case: &FormCase, name: &str, parameters: Mapping, median_s: f64) -> Record {
    let measurement = Measurement {
        setup: None,
        kernel: String::new(),
        errors: Errors { small: 0.0, measured: 0.0 },
        runs: 15,
        median_s,
        min_s: median_s,
        max_s: median_s,
        joules: None,
        cut_short: false,
        resources: None,
        executed_flops: None,
    };
    let device = DeviceModel {
        name: name.into(),
        description: String::new(),
        clock_mhz: 0,
        dram_bytes_per_s: 1.0,
        local_bytes_per_s: None,
        fp64_flops_per_s: 1.0,
        source: String::new(),
        occupancy: None,
    };
    Record {
        version: RECORD_VERSION,
        workload: Workload { ..case.workload.clone() },
        device,
        parameters,
        rank: None,
        predicted_s: None,
        outcome: Outcome::Measured(measurement),
        seed: 0,
        unix_s: 0,
    }
}

fn imported(form: &Form, matrix: MatrixResult) -> LoweredKernel {
    let tabulated = tabulate(form, &LoweringOptions::new("mine")).unwrap();
    let options = TabulatedOptions { matrix, ..TabulatedOptions::default() };
    lower_tabulated(&tabulated, &options).unwrap().remove(0)
}

/// A form without the name of an operator has the mapping of the operator of its sizes; one far
/// from all has what suits most, and one without a cell program the group that suits those.
#[test]
fn forms_of_known_sizes_share_the_mapping() {
    let card = device("NVIDIA H200", Backend::Cuda, "sm_90");
    let space = FunctionSpace::scalar(CellShape::Tetrahedron, 4);
    let (u, v) = (coefficient("w", &space), test(&space));
    let form = (1 + &u) * inner(grad(&u), grad(&v)) * dx().with_degree(6);
    let lowered = imported(&form, MatrixResult::Cells);
    let sought = Sought { case: None, dim: 3 };
    let found = known(&lowered, sought, &card, &[]);
    let case = "laplace.3D.P4".to_owned();
    assert_eq!(found[0].source, Source::Similar { device: "NVIDIA H200", case });
    assert_eq!(
        found[0].source.to_string(),
        "the best on an NVIDIA H200 for `laplace.3D.P4`, whose sizes are nearest"
    );
    let names: Vec<String> = found.iter().map(|k| k.mapping.to_string()).collect();
    let tiles = "32x4 work-items, 23 points, tiles 23x35 and 35x23, staged";
    assert_eq!(names, [tiles, "straight cells, 64 a group", "single cell, 32 a group"]);
    for known in &found {
        transform(&lowered, &known.mapping).unwrap();
    }
    // the best for these sizes combines degrees of freedom in orbits, which a kernel whose geometry is in
    // tables of vertices has not
    let space = FunctionSpace::scalar(CellShape::Tetrahedron, 3);
    let laplace = inner(grad(coefficient("u", &space)), grad(test(&space))) * dx();
    let lowered = imported(&laplace, MatrixResult::Cells);
    let found = known(&lowered, sought, &card, &[]);
    assert_eq!(found[0].mapping, Mapping::from(StraightCells::new(32)).with_modes());
    transform(&lowered, &found[0].mapping).unwrap();
    // many more functions than any operator has
    let spaces = FunctionSpace::vector(CellShape::Triangle, 1);
    let many = (0..8).map(|k| coefficient(format!("c{k}"), &spaces));
    let product = many.map(|c| inner(grad(&c), grad(&c))).reduce(|a, b| a * b).unwrap();
    let form = product * test(&FunctionSpace::scalar(CellShape::Triangle, 1)) * dx().with_degree(1);
    let lowered = imported(&form, MatrixResult::Cells);
    let found = known(&lowered, Sought { case: None, dim: 2 }, &card, &[]);
    let straight = Mapping::from(StraightCells::new(64));
    assert_eq!(found[0], Known { mapping: straight, source: Source::Usual("NVIDIA H200") });
}

/// Facets, one at a time on a processor, except for matrices of one result; on other devices as before.
#[test]
fn facets_are_quick_to_compile() {
    use kingpost_forms::form::{avg, dS, ds, jump};
    let host = device("AMD EPYC", Backend::C, "x86_64");
    let card = device("NVIDIA H200", Backend::Cuda, "sm_90");
    let space = FunctionSpace::discontinuous(CellShape::Triangle, 2);
    let (u, w, v) = (coefficient("u", &space), trial(&space), test(&space));
    let one = Mapping::from(ConstantCells { cells: 1 });
    let facets = |mapping| Known { mapping, source: Source::Facets };
    let lanes = Known { mapping: tiles(), source: Source::Lanes };
    let tiles_of_one = Mapping::from(PointTiles { cells: 1, sums: 32 });
    let longer = FunctionSpace::discontinuous(CellShape::Triangle, 3);
    let of_vectors = FunctionSpace::vector(CellShape::Triangle, 3);
    let cases = [
        (jump(&u) * jump(&v) * dS(), facets(one.clone())),
        (&u * &v * ds(), facets(one)),
        // one result over both sides
        (jump(&w) * jump(&v) * dS(), facets(tiles_of_one.clone())),
        // 6 columns, 10, and 10 for each of two components
        (&w * &v * ds(), lanes.clone()),
        (trial(&longer) * test(&longer) * ds(), facets(tiles_of_one)),
        (inner(trial(&of_vectors), test(&of_vectors)) * ds(), lanes.clone()),
        (avg(&u) * avg(&u) * dS(), lanes),
    ];
    for (form, expected) in cases {
        let lowered = imported(&form, MatrixResult::Cells);
        let sought = Sought { case: None, dim: 2 };
        let found = known(&lowered, sought, &host, &[]);
        assert_eq!(found[0], expected, "{form}");
        mapped(&lowered, &found[0].mapping, &host, &Options::default()).unwrap();
        let on_card = known(&lowered, sought, &card, &[]);
        assert!(on_card.iter().all(|k| k.source != Source::Facets), "{form}");
    }
}

/// A kernel of another card, or of none.
#[test]
fn kernels_that_are_not_tiled_have_a_group_of_their_own() {
    let text = include_str!("../../../../forms/tests/tabulated/laplace_matrix.json");
    let lowered = kingpost_forms::import::from_json(text).unwrap().kernels.remove(0);
    let sought = Sought { case: None, dim: 3 };
    let first = |device| known(&lowered, sought, &device, &[]).swap_remove(0);
    let card = first(device("NVIDIA H200", Backend::Cuda, "sm_90"));
    let group = Mapping::from(ConstantCells { cells: 128 });
    assert_eq!(card, Known { mapping: group, source: Source::Usual("NVIDIA H200") });
    let host = device("a processor", Backend::C, "x86_64");
    let on_host = |lowered: &LoweredKernel| {
        let attempt = |k: &Known| mapped(lowered, &k.mapping, &host, &Options::default());
        super::first(known(lowered, sought, &host, &[]), attempt).unwrap().0
    };
    let fewest = HostVectors::of(&host).fewest(Objective::Operations);
    assert_eq!(on_host(&lowered), Known { mapping: fewest, source: Source::Operations });
    let functional = include_str!("../../../../forms/tests/tabulated/energy.json");
    let functional = kingpost_forms::import::from_json(functional).unwrap().kernels.remove(0);
    assert_eq!(on_host(&functional), Known { mapping: tiles(), source: Source::Lanes });
    // and whatever the device: this one has no local memory
    let small = DeviceInfo { local_mem_bytes: 0, ..device("a card", Backend::Cuda, "sm_80") };
    let space = FunctionSpace::scalar(CellShape::Triangle, 2);
    let form = inner(grad(coefficient("u", &space)), grad(test(&space))) * dx();
    let lowered = imported(&form, MatrixResult::Cells);
    let staged = Mapping::from(StagedCells { cells: 32, constant_tables: false });
    let refused = mapped(&lowered, &staged, &small, &Options::default()).unwrap_err().to_string();
    assert_eq!(
        refused,
        "generate: staged cells, 32 a group: found 0 bytes of local memory on the device, needed 3568"
    );
}

#[test]
fn functionals_are_summed_in_groups() {
    let text = include_str!("../../../../forms/tests/tabulated/energy.json");
    let lowered = kingpost_forms::import::from_json(text).unwrap().kernels.remove(0);
    let sought = Sought { case: None, dim: 2 };
    let card = device("another card", Backend::Cuda, "sm_80");
    let attempt = |k: &Known| mapped(&lowered, &k.mapping, &card, &Options::default());
    let (chosen, _) = super::first(known(&lowered, sought, &card, &[]), attempt).unwrap();
    let mapping = Mapping::from(SummedCells { cells: 128, constant_tables: true });
    assert_eq!(chosen, Known { mapping, source: Source::Sums });
    let host = device("a processor", Backend::C, "x86_64");
    assert!(known(&lowered, sought, &host, &[]).iter().all(|k| k.source != Source::Sums));
}

/// What takes fewer products over modes is summed over them, on cards and on processors; what takes
/// as many has no weights over modes, which is enough for a processor.
#[test]
fn forms_with_fewer_modes_than_points_have_modes() {
    let card = device("NVIDIA H200", Backend::Cuda, "sm_90");
    let host = device("a processor", Backend::C, "x86_64");
    let text = include_str!("../../../../forms/tests/tabulated/curl_curl.json");
    let lowered = kingpost_forms::import::from_json(text).unwrap().kernels.remove(0);
    let sought = Sought { case: None, dim: 3 };
    let found = known(&lowered, sought, &card, &[]).swap_remove(0);
    let straight = Mapping::from(StraightCells::new(64)).with_modes();
    assert_eq!(found, Known { mapping: straight, source: Source::Usual("NVIDIA H200") });
    transform(&lowered, &found.mapping).unwrap();
    let on_host = Known { mapping: tiles().with_modes(), source: Source::Modes };
    assert_eq!(known(&lowered, sought, &host, &[])[0], on_host);
    // four points and four modes
    let space = FunctionSpace::scalar(CellShape::Tetrahedron, 1);
    let mass = imported(&(coefficient("u", &space) * test(&space) * dx()), MatrixResult::Cells);
    assert!(with_fewer_modes(&mass).is_none());
    assert_eq!(known(&mass, sought, &host, &[])[0], on_host);
}

/// Sums of squares and cubes are taken axis by axis: on a card by the work-items of a cell.
#[test]
fn squares_and_cubes_are_factorised() {
    for (cell, degree, cells) in
        of_run([(CellShape::Hexahedron, 2, 2), (CellShape::Quadrilateral, 1, 16)], &[1])
    {
        let space = FunctionSpace::scalar(cell, degree);
        let form = inner(grad(coefficient("u", &space)), grad(test(&space))) * dx();
        let lowered = imported(&form, MatrixResult::Cells);
        let sought = Sought { case: None, dim: cell.dim() };
        let found = |device: &DeviceInfo| {
            let attempt = |k: &Known| mapped(&lowered, &k.mapping, device, &Options::default());
            super::super::known::first(known(&lowered, sought, device, &[]), attempt).unwrap().0
        };
        let factorised = |mapping| Known { mapping, source: Source::Factorised };
        let card = found(&device("NVIDIA H200", Backend::Cuda, "sm_90"));
        assert_eq!(
            card,
            factorised(Mapping::from(FactorisedLines { cells, literal_tables: false, factors: None }))
        );
        assert_eq!(
            found(&device("a processor", Backend::C, "x86_64")),
            factorised(Mapping::from(FactorisedCells { cells: 8 }))
        );
    }
}

/// What a shipped mapping needs to suit a kernel.
fn kind(mapping: &Mapping) -> &'static str {
    match mapping.name() {
        "dynamic_local" | "map_runs" => mapping.then().map_or("nothing", kind),
        "rules" => "rules",
        "orbits" => "orbits",
        "modes" | "matrix_cells" | "matrix_groups" => "modes",
        _ => "points",
    }
}

/// What a mapping makes of a form, its recipe makes of the texts of both: as JSON and as a schedule, of
/// the kernel that they say they start from.
fn replays(form: &LoweredForm, mapping: &Mapping, case: &str) {
    let (kernel, recipe) = transform(form, mapping).unwrap_or_else(|e| panic!("{case}: {mapping}: {e}"));
    let read = steps().recipe(&recipe.to_json().unwrap()).unwrap();
    assert_eq!(read, recipe, "{case}: {mapping}");
    let start =
        relowered(form, &read.lowering).unwrap().map_or_else(|| form.kernel.clone(), |f| f.kernel().clone());
    let lowers = mapping.find::<Rules>().is_some() || mapping.find::<InOrbits>().is_some();
    assert_eq!(lowers, !read.lowering.is_empty(), "{case}: {mapping}");
    let start = text::parse(&start.to_string()).unwrap();
    let replayed = read.apply(&start).unwrap_or_else(|e| panic!("{case}: {mapping}: {e}"));
    assert!(replayed == kernel, "{case}: {mapping}:\n{replayed}\n{kernel}");
    // what the steps of the text are, without their proofs once more
    let script = steps().script(&schedule::print(&recipe)).unwrap();
    assert_eq!(script.lowering(), recipe.lowering, "{case}: {mapping}");
}

/// The dimensions and degrees of the shipped cases of an operator.
fn shipped_degrees() -> impl Iterator<Item = (usize, usize)> {
    (1..=8).map(|degree| (2, degree)).chain((1..=6).map(|degree| (3, degree)))
}

/// The mappings that are shipped for a case.
fn shipped_for(case: &str) -> Vec<Mapping> {
    let lines = SHIPPED[0].2.lines().filter_map(|line| line.strip_prefix(case)?.strip_prefix(' '));
    lines.map(|mapping| serde_json::from_str(mapping).unwrap()).collect()
}

/// One with modes or matrix instructions has one over points after it, one with other rules has one
/// with those of the kernel, one with orbits one without; one with lists has one after it that needs
/// no setup.
#[test]
fn what_is_shipped_has_what_suits_others_behind_it() {
    let mut shipped = 0;
    for operator in Operator::ALL {
        for (dim, degree) in shipped_degrees() {
            let case = operator.action_name(dim, degree);
            let mappings = shipped_for(&case);
            let plain = mappings.iter().skip_while(|m| m.needs().setup);
            let kinds: Vec<&str> = plain.map(kind).collect();
            let modes = ["modes", "points"];
            let orders = [
                &["points"][..],
                &modes,
                &["rules", "modes", "points"],
                &["orbits", "modes", "points"],
                &["orbits", "points"],
            ];
            assert!(orders.contains(&&kinds[..]), "{case}: {kinds:?}");
            shipped += mappings.len();
        }
    }
    let lines = SHIPPED[0].2.lines().filter(|line| !line.starts_with('#'));
    assert_eq!(lines.count(), shipped);
}

/// Every mapping that is shipped for an operator can be applied to the kernel that it is for, and its
/// recipe replays; so does that of what [`jit`](crate::jit()) takes. With the other quadrature rules, too.
fn what_is_shipped_replays(operator: Operator) {
    let card = device("NVIDIA H100 80GB HBM3", Backend::Cuda, "sm_90");
    let (all, most) = match is_long_run() {
        true => (8, 3),
        // of vectors and higher degrees it takes five times as long
        false => (if operator == Operator::Laplace { 2 } else { 1 }, 0),
    };
    for (dim, degree) in shipped_degrees() {
        let case = operator.action_name(dim, degree);
        let mappings = shipped_for(&case);
        let schemes = [(QuadratureScheme::XiaoGimbutas, all), (QuadratureScheme::Default, most)];
        for (scheme, _) in schemes.into_iter().filter(|(_, last)| degree <= *last) {
            let lowered = lowered(operator, dim, degree, scheme);
            let form = &lowered.lowered;
            let known = known(form, Sought { case: Some(&case), dim }, &card, &[]);
            assert_eq!(known[0].source, Source::Shipped("NVIDIA H200"), "{case}");
            assert_eq!(known[0].mapping, mappings[0], "{case}");
            let attempt = |k: &Known| mapped(form, &k.mapping, &card, &Options::default());
            let of_jit = first(without_setup(known), attempt).unwrap().0.mapping;
            let sought = Sought { case: Some(&case), dim };
            let own =
                [&BY_ENTITY, &BY_BLOCK, &UNSTRUCTURED].map(|known| of_case(known, sought, &card).unwrap().0);
            let own: Vec<Mapping> = own.into_iter().flatten().map(|known| known.mapping).collect();
            let others = mappings.iter().chain(&own).filter(|mapping| **mapping != of_jit);
            for mapping in others.chain([&of_jit]) {
                replays(form, mapping, &case);
            }
        }
    }
}

#[test]
fn what_is_shipped_for_mass_replays() {
    what_is_shipped_replays(Operator::Mass);
}

#[test]
fn what_is_shipped_for_helmholtz_replays() {
    what_is_shipped_replays(Operator::Helmholtz);
}

#[test]
fn what_is_shipped_for_laplace_replays() {
    what_is_shipped_replays(Operator::Laplace);
}

#[test]
fn what_is_shipped_for_elasticity_replays() {
    what_is_shipped_replays(Operator::Elasticity);
}

#[test]
fn what_is_shipped_for_hyperelasticity_replays() {
    what_is_shipped_replays(Operator::Hyperelasticity);
}

#[test]
fn what_was_tuned_here_comes_first() {
    let lowered = lowered(Operator::Laplace, 3, 1, QuadratureScheme::Default);
    let (kernel, name) = (&lowered.lowered.kernel, lowered.workload.case.clone());
    let host = device("a processor", Backend::C, "x86_64");
    let sought = Sought { case: Some(&name), dim: 3 };
    let of = |records: &[Record]| known(kernel, sought, &host, records).swap_remove(0);
    assert_eq!(of(&[]), Known { mapping: tiles().with_modes(), source: Source::Modes });
    let cells = |cells| Mapping::from(SingleCell { cells });
    let slow = record(&lowered, "a processor", cells(8), 2.0);
    let fast = record(&lowered, "a processor", cells(16), 1.0);
    let elsewhere = record(&lowered, "another one", cells(64), 0.5);
    let mut coarser = record(&lowered, "a processor", cells(4), 0.1);
    coarser.workload.kernel = "another rule".into();
    assert_eq!(of(std::slice::from_ref(&coarser)), Known { mapping: cells(4), source: Source::SameCase });
    // the record of a file's kernel has its parameters after the hash
    let mut of_file = record(&lowered, "a processor", cells(32), 0.9);
    of_file.workload.kernel.push_str(" n_cells=8");
    let tuned = Known { mapping: cells(32), source: Source::Tuned { median_s: 0.9 } };
    assert_eq!(of(&[fast.clone(), of_file]), tuned);
    // so do trials of other numbers, if these are asked for
    let mut numbered = record(&lowered, "a processor", cells(128), 0.05);
    numbered.workload.numbering = crate::tuning::numbering(NumberingOrder::ByEntity);
    let records = [slow, elsewhere, coarser, fast, numbered];
    let found = known(kernel, sought, &host, &records);
    assert_eq!(found[0], Known { mapping: cells(16), source: Source::Tuned { median_s: 1.0 } });
    let by_entity = by_entity(kernel, sought, &host, &records, found.clone());
    assert_eq!(by_entity[0], Known { mapping: cells(128), source: Source::Tuned { median_s: 0.05 } });
    assert_eq!(by_entity[1..], found);
}

#[test]
fn numbers_by_entity_have_mappings_of_their_own() {
    let card = device("NVIDIA H200", Backend::Cuda, "sm_90a");
    let sought = Sought { case: Some("laplace.3D.P3"), dim: 3 };
    let lowered = lowered(Operator::Laplace, 3, 3, QuadratureScheme::XiaoGimbutas).lowered;
    let others = known(&lowered, sought, &card, &[]);
    let found = by_entity(&lowered, sought, &card, &[], others.clone());
    let parts = [4, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1];
    assert_eq!(found[0].mapping.with_parts(&parts).as_ref(), Some(&found[0].mapping));
    assert_eq!(found[1..], others);
}

#[test]
fn numbers_by_block_have_mappings_of_their_own() {
    let card = device("NVIDIA H200", Backend::Cuda, "sm_90a");
    let sought = Sought { case: Some("laplace.3D.P1"), dim: 3 };
    let lowered = lowered(Operator::Laplace, 3, 1, QuadratureScheme::XiaoGimbutas).lowered;
    let others = known(&lowered, sought, &card, &[]);
    let found = by_block(&lowered, sought, &card, &[], others.clone());
    assert!(found[0].mapping.find::<CellBlocks>().is_some(), "{found:?}");
    assert_eq!(found[1..], others);
}

/// Lists stand there with several sizes of room, the smallest one first.
#[test]
fn meshes_of_neighbours_have_mappings_of_their_own() {
    let card = device("NVIDIA H200", Backend::Cuda, "sm_90a");
    let sought = Sought { case: Some("laplace.3D.P2"), dim: 3 };
    let case = lowered(Operator::Laplace, 3, 2, QuadratureScheme::XiaoGimbutas);
    let others = known(&case.lowered, sought, &card, &[]);
    let found = unstructured(&case.lowered, sought, &card, &[], others.clone());
    let (own, rest) = found.split_at(found.len() - others.len());
    assert_eq!(rest, others);
    let room: Vec<u64> = own.iter().map(|k| k.mapping.find::<ListedCells>().unwrap().items).collect();
    assert!(room.len() > 1 && room.is_sorted(), "{room:?}");
    // a trial on a unit mesh says nothing of these, one on a mesh of a file comes first
    let cells = |cells| Mapping::from(SingleCell { cells });
    let unit = record(&case, "NVIDIA H200", cells(16), 0.1);
    let mut of_file = record(&case, "NVIDIA H200", cells(32), 0.2);
    of_file.workload.data = Some("bracket.msh".into());
    let found = unstructured(&case.lowered, sought, &card, &[unit, of_file], others);
    assert_eq!(found[0], Known { mapping: cells(32), source: Source::Tuned { median_s: 0.2 } });
    assert_eq!(found[1..=own.len()], *own);
}

/// A candidate that is the default comes to the front; one that is none of them is added there.
#[test]
fn the_default_is_tried_first() {
    let device = kingpost_runtime::open("c").unwrap();
    let vectors = HostVectors::of(device.info());
    let form = Operator::Mass.form(2, 1).unwrap();
    let form = lower(&form, &LoweringOptions::new("mass")).unwrap();
    let sought = Sought { case: Some("mass.2D.P1"), dim: 2 };
    let first = |candidates: &[&Candidate]| {
        let candidates = candidates.iter().copied().cloned().collect();
        default_first(candidates, &form, sought, &*device)
    };
    let (single, default) =
        (Candidate::unranked(Mapping::single_cell()), Candidate::unranked(vectors.tiles().with_modes()));
    assert_eq!(first(&[&single]), [default.clone(), single.clone()]);
    let ranked = Candidate { rank: Some(3), ..default };
    let other = Candidate::unranked(Mapping::from(ConstantCells { cells: 32 }));
    assert_eq!(first(&[&single, &other, &ranked]), [ranked, single, other]);
    let more = with_vectors(vec![Candidate::unranked(vectors.tiles())], &form, device.info());
    assert_eq!(more, vectors.candidates(&form));
}

/// As many cells as a vector has lanes, as many sums as half of its registers; the fewest
/// operations for matrices of cells where they are far fewer, and not for actions.
#[test]
fn mappings_are_as_wide_as_the_vectors_of_a_processor() {
    let wide = |vector_bytes, arch: &str| {
        let core_cache_bytes = if vector_bytes == 32 { 512 << 10 } else { 0 };
        DeviceInfo { vector_bytes, core_cache_bytes, ..device("a processor", Backend::C, arch) }
    };
    let of = |device: &DeviceInfo| HostVectors::of(device);
    let tiles = |cells, sums| Mapping::from(PointTiles { cells, sums });
    assert_eq!(of(&wide(64, "x86_64")).tiles(), tiles(8, 16));
    assert_eq!(of(&wide(32, "x86_64")).tiles(), tiles(4, 8));
    assert_eq!(of(&wide(16, "x86_64")).tiles(), tiles(2, 8));
    assert_eq!(of(&wide(16, "aarch64")).tiles(), tiles(2, 16));
    let host = wide(32, "x86_64");
    let matrices = |degree| {
        let space = FunctionSpace::scalar(CellShape::Tetrahedron, degree);
        let form = inner(grad(trial(&space)), grad(test(&space))) * dx();
        imported(&form, MatrixResult::Cells)
    };
    let sought = Sought { case: None, dim: 3 };
    let laplace = matrices(2);
    let fewest = FewestOperations { memory: 512 << 10, objective: Objective::Operations };
    let fewest = fewest.before(tiles(4, 8));
    assert_eq!(
        known(&laplace, sought, &host, &[])[0],
        Known { mapping: fewest.clone(), source: Source::Operations }
    );
    let tried: Vec<Mapping> = of(&host).candidates(&laplace).into_iter().map(|c| c.parameters).collect();
    for mapping in [tiles(4, 8), tiles(4, 16), tiles(4, 4), fewest, Mapping::from(LoopLanes { lanes: 4 })] {
        assert!(tried.contains(&mapping), "{mapping}");
    }
    let action = lowered(Operator::Laplace, 3, 2, QuadratureScheme::Default).lowered;
    assert_eq!(of(&host).fewest_if_worthwhile(&action), None);
}

/// Of another form, in the parts of this one; of maps that anyone numbers, together.
#[test]
fn transfers_have_the_parts_of_their_form() {
    let p3 = lowered(Operator::Laplace, 2, 3, QuadratureScheme::Default).lowered;
    let straight = |parts: &[u64]| {
        let mapping = Mapping::from(StraightCells { cells: 64, whole_groups: false, parts: parts.to_vec() });
        mapping.with_modes().with_orbits()
    };
    assert_eq!(in_own_parts(&p3, straight(&[3, 12, 6])), straight(&[3, 6, 1]));
    assert_eq!(in_own_parts(&p3, straight(&[])), straight(&[]));
    assert_eq!(in_own_parts(&p3, Mapping::single_cell()), Mapping::single_cell());
    // a kernel of a file does not say which degrees of freedom are those of vertices
    assert_eq!(in_own_parts(&p3.kernel, straight(&[3, 12, 6])), straight(&[]));
    let known = |mapping| Known { mapping, source: Source::SameCase };
    let setup = Mapping::from(ConstantCells { cells: 128 }).with_stored_factors();
    let found = without_setup(vec![known(setup), known(straight(&[3, 6, 1])), known(Mapping::single_cell())]);
    assert_eq!(found, [known(straight(&[])), known(Mapping::single_cell())]);
}
