//! Demands on small cases, and orders by them.
#![allow(clippy::unwrap_used)] // what a failed test does

use super::*;
use crate::known_devices;
use crate::tuning::candidates_on_mesh;
use kingpost_fem::numbering::NumberingOrder;
use kingpost_forms::lowering::{LoweringOptions, lower};
use kingpost_kernels::Operator;
use kingpost_strategies::{ConstantCells, ListedCells, StraightCells};

fn case(operator: Operator, dim: usize, degree: usize, divisions: usize) -> FormCase {
    let lowered = lower(&operator.form(dim, degree).unwrap(), &LoweringOptions::new("k")).unwrap();
    FormCase::new("a case", lowered, CaseMesh::Unit(divisions)).unwrap()
}

/// Of the unit mesh of a case all groups but the last are full.
#[test]
fn updates_are_those_of_the_launch() {
    let case = case(Operator::Mass, 2, 1, 40);
    let cells = case.workload.size as f64;
    let demand = |mapping: &Mapping| SampleMeshes::new(&case, Target::Cuda).demand(mapping).unwrap();
    let direct = demand(&Mapping::from(ConstantCells { cells: 128 }));
    let updates = direct.traffic.reductions.elements / cells;
    assert!((updates - 3.0).abs() < 0.01, "{updates} updates a cell");
    assert!((direct.groups - cells / 128.0).abs() <= 1.0, "{direct:?}");
    // each degree of freedom of a group once: more than half a cell's, as groups have borders
    let lists = ListedCells { cells: 128, items: 128, compact: true, ..ListedCells::default() };
    let listed = demand(&Mapping::from(lists));
    let updates = listed.traffic.reductions.elements / cells;
    assert!((0.5..1.0).contains(&updates), "{updates} updates a cell");
    assert!(listed.traffic.local_rounds > 0.0 && direct.traffic.local_rounds == 0.0);
    // sums by places take no atomic update of local memory
    let summed = demand(&Mapping::from(ListedCells { places: true, ..lists }));
    assert_eq!(summed.traffic.local_atomics, 0.0);
    // stored geometry leaves the gather of vertices out: a number of a cell takes its place
    let stored = demand(&Mapping::from(ListedCells { stored: true, ..lists }));
    assert!(stored.traffic.reads.instructions < listed.traffic.reads.instructions);
    assert!(stored.traffic.reads.sectors < listed.traffic.reads.sectors);
}

#[test]
fn candidates_are_in_the_order_of_their_times_and_none_is_lost() {
    let models = known_devices().unwrap();
    let device = models.iter().find(|m| m.name == "H200").unwrap();
    let model = ThroughputModel::new(device).unwrap();
    let case = case(Operator::Laplace, 2, 4, 16);
    let impossible = Mapping::from(ListedCells { cells: 64, items: 1, ..ListedCells::default() });
    let mappings =
        [impossible.clone(), Mapping::single_cell(), Mapping::from(StraightCells::new(32)).with_modes()];
    let candidates: Vec<_> = mappings.iter().cloned().map(Candidate::unranked).collect();
    let ordered = by_prediction(candidates, &case, &model);
    let ranks: Vec<_> = ordered.iter().map(|c| c.rank).collect();
    assert_eq!(ranks, [Some(1), Some(2), None]);
    assert!(ordered[0].predicted_s < ordered[1].predicted_s, "{ordered:?}");
    assert_eq!(ordered[0].parameters, mappings[2], "straight-line code beats a stride of a cell");
    assert_eq!(ordered[2].parameters, impossible, "a list without room has no prediction");
}

/// Edges of P5 have as many degrees of freedom as a sector has numbers: updates of edges by
/// themselves touch whole sectors where these begin one each.
#[test]
fn numbering_by_dimension_touches_fewer_sectors() {
    let case = case(Operator::Mass, 2, 5, 16);
    let together = Mapping::from(StraightCells::new(32));
    let in_parts = together.with_parts(&case.lowered.entity_parts().unwrap()).unwrap();
    let sectors = |case: &FormCase, mapping: &Mapping| {
        let demand = SampleMeshes::new(case, Target::Cuda).demand(mapping).unwrap();
        demand.traffic.reductions.sectors / case.workload.size as f64
    };
    let [by_dimension, by_entity] = [&together, &in_parts].map(|mapping| sectors(&case, mapping));
    let by_touch = sectors(&case.in_order(NumberingOrder::FirstTouch), &together);
    assert!(by_dimension < by_touch, "{by_dimension} and {by_touch} sectors a cell");
    assert!(by_entity < 0.9 * by_dimension, "{by_entity} and {by_dimension} sectors a cell");
}

/// Numbered along the cells, the same edge of consecutive cells is one run, on tetrahedra, too,
/// whose cells of one kind in a row own one to three new edges each.
#[test]
fn transfers_by_entity_touch_fewer_sectors_of_numbers_by_entity() {
    let case = case(Operator::Mass, 3, 2, 32);
    let mapping = |parts: &[u64]| Mapping::from(StraightCells::new(32)).with_parts(parts).unwrap();
    let [by_dimension, by_entity] = [mapping(&[4, 6]), mapping(&[4, 1, 1, 1, 1, 1, 1])];
    let sectors = |case: &FormCase, mapping: &Mapping| {
        let demand = SampleMeshes::new(case, Target::Cuda).demand(mapping).unwrap();
        demand.traffic.reductions.sectors / case.workload.size as f64
    };
    let before = [&by_dimension, &by_entity].map(|mapping| sectors(&case, mapping));
    let case = case.in_order(NumberingOrder::ByEntity);
    let after = [&by_dimension, &by_entity].map(|mapping| sectors(&case, mapping));
    assert!(after[1] < 0.8 * before[0].min(before[1]), "{before:?}, {after:?} sectors a cell");
}

#[test]
fn transfers_by_entity_are_tried_where_numbers_are_by_entity() {
    let models = known_devices().unwrap();
    let device = models.iter().find(|m| m.name == "H200").unwrap();
    let case = case(Operator::Mass, 3, 2, 3).in_order(NumberingOrder::ByEntity);
    let tried = candidates_on_mesh(&case, device, 48 << 10, 1).unwrap();
    let parts = [4, 1, 1, 1, 1, 1, 1];
    assert!(tried.iter().any(|c| c.parameters.with_parts(&parts).as_ref() == Some(&c.parameters)));
}

#[test]
fn a_matrix_instruction_of_half_the_terms_counts_half() {
    let case = case(Operator::Mass, 2, 1, 3);
    let demand = SampleMeshes::new(&case, Target::Cuda).demand(&Mapping::single_cell()).unwrap();
    assert_eq!(demand.matrix_instructions(), 0.0);
    let calls = [("mma_m16n8k8_f64".to_owned(), 3.0), ("mma_m16n8k4_f64".to_owned(), 2.0)];
    let traffic = Traffic { calls: calls.into_iter().collect(), ..demand.traffic.clone() };
    assert_eq!(Demand { traffic, ..demand }.matrix_instructions(), 4.0);
}

#[test]
fn values_that_registers_do_not_hold_come_last() {
    let models = known_devices().unwrap();
    let device = models.iter().find(|m| m.name == "H200").unwrap();
    let model = ThroughputModel::new(device).unwrap();
    let case = case(Operator::Laplace, 2, 2, 3);
    let demand =
        SampleMeshes::new(&case, Target::Cuda).demand(&Mapping::from(StraightCells::new(32))).unwrap();
    // six degrees of freedom, six results and five numbers of the geometry in double precision
    assert!((20..64).contains(&demand.traffic.live_words), "{demand:?}");
    let fits = model.verdict(&demand);
    let traffic = Traffic { live_words: 400, ..demand.traffic.clone() };
    let spilled = model.verdict(&Demand { traffic, ..demand.clone() });
    assert_eq!((fits.spills, spilled.spills), (false, true));
    assert!(fits.order(&spilled).is_lt());
    // few sub-groups on a unit take longer, as does code that leaves the instruction cache
    assert!(spilled.seconds > fits.seconds);
    let traffic = Traffic { code: 100_000, ..demand.traffic.clone() };
    assert!(model.verdict(&Demand { traffic, ..demand.clone() }).seconds > fits.seconds);
}

/// AMD's compilers keep private arrays that are declared together, and a vector unit has no work of others.
#[test]
fn wavefronts_have_private_arrays_and_a_vector_unit_each() {
    let models = known_devices().unwrap();
    let device = models.iter().find(|m| m.name == "MI300X").unwrap();
    let model = ThroughputModel::new(device).unwrap();
    let case = case(Operator::Laplace, 2, 2, 3);
    let demand = SampleMeshes::new(&case, Target::Hip).demand(&Mapping::single_cell()).unwrap();
    let traffic = Traffic { array_words: 256, ..demand.traffic.clone() };
    let fits = Demand { traffic, ..demand.clone() };
    let traffic = Traffic { array_words: 257, ..demand.traffic.clone() };
    let large = Demand { traffic, ..demand };
    assert_eq!([&fits, &large].map(|d| model.verdict(d).spills), [false, true]);
    // half of the units have nothing to do where local memory holds two wavefronts
    let with = |local_bytes: u64| Demand { local_bytes, ..fits.clone() };
    let of =
        |demand: &Demand, name: &str| model.parts(demand).into_iter().find(|(n, _)| *n == name).unwrap().1;
    let [four, two] = [with(16 << 10), with(32 << 10)];
    for (name, factor) in [("arithmetic", 2.0), ("issue", 2.0), ("memory", 1.0)] {
        assert!((of(&two, name) / of(&four, name) - factor).abs() < 1e-12, "{name}");
    }
}
