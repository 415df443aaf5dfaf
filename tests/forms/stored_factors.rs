//! Factors at points that are computed once for a mesh: the same results, in the interpreter and in C.
#![allow(clippy::unwrap_used, clippy::panic)] // how a test fails

use crate::support::{bent_mesh, of_run};
use kingpost::codegen::Options;
use kingpost::forms::element::CellShape;
use kingpost::forms::import::Imported;
use kingpost::forms::lowering::{LoweringOptions, TabulatedOptions, tabulate};
use kingpost::forms::numbering::NumberingOrder;
use kingpost::forms::strategies::{
    ConstantCells, FactorCopy, FactorisedCells, FactorisedLines, StoredFactors,
};
use kingpost::interp::{Memory, interpret};
use kingpost::ir::{AddressSpace, Kernel};
use kingpost::kernels::{BakeOff, Operator};
use kingpost::runtime::open;
use kingpost::transforms::lists::Definition;
use kingpost::{Loaded, Mapping, Problem, Random, definitions, set_up, transform};
use kingpost::{codegen::generate, laid_out};

/// A bake-off problem on a perturbed mesh with random values, and what the kernel as it is written
/// makes of them.
fn case(problem: BakeOff, cell: CellShape) -> (Imported, Memory, Vec<f64>) {
    let options = LoweringOptions::new("action");
    let form = tabulate(&problem.action_on(cell, 2), &options).unwrap();
    let form = Imported::new(form, &TabulatedOptions::default()).unwrap();
    let mut random = Random::new(7);
    let inputs = form.unit_inputs(3, NumberingOrder::FirstTouch, &mut || random.number()).unwrap();
    let memory = form.bind(0, &inputs.of(0)).unwrap();
    let mut written = memory.clone();
    interpret(&form.kernels[0].kernel, &mut written).unwrap();
    let expected = written.f64s("y").unwrap().to_vec();
    (form, memory, expected)
}

/// Sums of some hundred products in double precision, in another order.
fn assert_near(found: &[f64], expected: &[f64]) {
    let largest = expected.iter().fold(0.0_f64, |m, y| m.max(y.abs()));
    assert_eq!(found.len(), expected.len());
    for (a, b) in found.iter().zip(expected) {
        assert!((a - b).abs() <= 1e-12 * largest, "{a} {b}");
    }
}

fn names(definitions: &[Definition]) -> Vec<String> {
    definitions.iter().flat_map(Definition::results).collect()
}

/// Copies of all factors stand before everything else, in the memory that the mapping says.
fn has_copies_first(kernel: &Kernel, mapping: &Mapping, count: usize) {
    assert!(mapping.get::<StoredFactors>().is_some(), "{mapping}");
    let space = match mapping.find::<FactorisedLines>().and_then(|lines| lines.factors) {
        Some(FactorCopy::Private) => AddressSpace::Private,
        Some(FactorCopy::Local) => AddressSpace::Local,
        None => return,
    };
    for (insn, _) in kernel.schedule().into_iter().take(count) {
        let insn = &kernel.insns[insn];
        assert!(insn.name.starts_with("fetch_e"), "{} in\n{kernel}", insn.name);
        assert_eq!(kernel.vars[insn.lhs.var].space, space, "{kernel}");
    }
}

#[test]
fn stored_factors_give_the_same_results() {
    let lines = |factors| Mapping::from(FactorisedLines { cells: 2, literal_tables: false, factors });
    let then = [
        Mapping::from(FactorisedCells { cells: 2 }),
        lines(None),
        lines(Some(FactorCopy::Private)),
        lines(Some(FactorCopy::Local)),
    ];
    let device = open("c").unwrap();
    for (problem, cell, count) in [
        (BakeOff::Bp1, CellShape::Hexahedron, 1),
        (BakeOff::Bp5, CellShape::Hexahedron, 6),
        (BakeOff::Bp3, CellShape::Quadrilateral, 3),
    ] {
        let (form, memory, expected) = case(problem, cell);
        let lowered = &form.kernels[0];
        let few: &[usize] = if count == 6 { &[2, 3] } else { &[0, 1] };
        for mapping in of_run(then.clone().map(Mapping::with_stored_factors), few) {
            let (kernel, recipe) = transform(lowered, &mapping).unwrap();
            let definitions = definitions(lowered, &recipe).unwrap();
            assert_eq!(names(&definitions).len(), count, "{definitions:?}");
            // nothing of the mesh but maps of degrees of freedom is left
            assert!(!kernel.insns.values().any(|i| i.name.starts_with("gather_x")), "{kernel}");
            has_copies_first(&kernel, &mapping, count);
            let mut given = memory.clone();
            for definition in &definitions {
                let Definition::Kernel(definition) = definition else { panic!("{definition:?}") };
                interpret(definition, &mut given).unwrap();
            }
            interpret(&kernel, &mut given).unwrap();
            assert_near(given.f64s("y").unwrap(), &expected);
            let mut given = memory.clone();
            let setup = set_up(&*device, &definitions, &mut given).unwrap();
            assert_eq!(setup.inputs, count);
            let program = generate(&kernel, device.info().backend.target(), &Options::default()).unwrap();
            let loaded = Loaded::new(&*device, &program, &laid_out(&kernel, &given)).unwrap();
            loaded.launch().unwrap();
            assert_near(&loaded.f64s("y").unwrap(), &expected);
        }
    }
}

/// On simplices a cell has the same factors at all points: those of the values of functions over modes,
/// where they are few, else what the integrand reads of the geometry.
#[test]
fn cells_of_simplices_store_what_is_the_same_at_all_points() {
    let device = open("c").unwrap();
    for (operator, dim, degree, modes, names_of) in [
        (Operator::Mass, 3, 1, true, "e0_u_q"),
        (Operator::Laplace, 2, 1, true, "e0_u_d0 e0_u_d1 e1_u_d1"),
        (Operator::Laplace, 2, 2, false, "abs_det inv_00 inv_01 inv_10 inv_11"),
        (Operator::Hyperelasticity, 2, 1, false, "abs_det inv_00 inv_01 inv_10 inv_11"),
    ] {
        let problem = Problem::operator(operator, degree, None, bent_mesh(dim, 2), 3).unwrap();
        let expected = problem.reference().unwrap();
        let mapping = Mapping::from(ConstantCells { cells: 4 }).with_stored_factors();
        let mapping = if modes { mapping.with_modes() } else { mapping };
        let (kernel, recipe) = transform(&problem.lowered, &mapping).unwrap();
        let definitions = definitions(&problem.lowered, &recipe).unwrap();
        let mut stored = names(&definitions);
        stored.sort();
        assert_eq!(stored.join(" "), names_of, "{operator} {dim}-D P{degree}");
        assert!(!kernel.insns.values().any(|i| i.name.starts_with("gather_x")), "{kernel}");
        let mut memory = problem.memory.clone();
        set_up(&*device, &definitions, &mut memory).unwrap();
        let program = generate(&kernel, device.info().backend.target(), &Options::default()).unwrap();
        let loaded = Loaded::new(&*device, &program, &laid_out(&kernel, &memory)).unwrap();
        loaded.launch().unwrap();
        assert_near(&loaded.f64s(problem.output()).unwrap(), &expected);
        interpret(&kernel, &mut memory).unwrap();
        assert_near(memory.f64s(problem.output()).unwrap(), &expected);
    }
}

/// The factors of a nonlinear integrand depend on the function.
#[test]
fn a_nonlinear_integrand_keeps_its_geometry() {
    let space = Operator::Hyperelasticity.space_on(CellShape::Hexahedron, 1);
    let form =
        tabulate(&Operator::Hyperelasticity.action_on(&space), &LoweringOptions::new("action")).unwrap();
    let form = Imported::new(form, &TabulatedOptions::default()).unwrap();
    let mapping = Mapping::from(FactorisedCells { cells: 1 }).with_stored_factors();
    let refusal = transform(&form.kernels[0], &mapping).unwrap_err().to_string();
    assert!(refusal.contains("collect_factors."), "{refusal}");
}
