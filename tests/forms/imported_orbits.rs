//! Imported forms on degrees of freedom in orbits: their tables are put along symmetric directions.
#![allow(clippy::unwrap_used, clippy::panic)] // what a failed test does

use crate::support::{compiled, of_run};
use kingpost::codegen::{Options, generate};
use kingpost::forms::CellKernel;
use kingpost::forms::import::Imported;
use kingpost::forms::lowering::TabulatedOptions;
use kingpost::forms::numbering::NumberingOrder;
use kingpost::forms::strategies::{InOrbits, StraightCells};
use kingpost::forms::tabulated::{Arithmetic, MathFunction, Node, Relation, TabulatedForm};
use kingpost::forms::{Combinator, relowered};
use kingpost::interp::{Memory, interpret};
use kingpost::runtime::open;
use kingpost::tuning::transform;
use kingpost::{Loaded, Mapping, Random, RelativeError};

fn read(name: &str) -> TabulatedForm {
    let path = format!("{}/crates/forms/tests/tabulated/{name}.json", env!("CARGO_MANIFEST_DIR"));
    TabulatedForm::from_json(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn imported(form: TabulatedForm) -> Imported {
    Imported::new(form, &TabulatedOptions::default()).unwrap()
}

fn straight() -> Mapping {
    StraightCells::new(5).into()
}

fn in_orbits(points: bool) -> Mapping {
    InOrbits { points, ..InOrbits::default() }.before(straight())
}

fn memory(imported: &Imported, seed: u64) -> Memory {
    let mut random = Random::new(seed);
    // small values keep the determinants of deformation gradients positive
    let mut draw = || 0.05 * random.numbers(1)[0];
    let unit = imported.unit_inputs(2, NumberingOrder::FirstTouch, &mut draw).unwrap();
    imported.bind(0, &unit.of(0)).unwrap()
}

/// Forms of UFL, whose nodes are in the order of basix, under the mappings of the forms of Rust.
#[test]
fn results_are_those_of_the_kernel_as_it_is() {
    let seed = Random::fresh_seed();
    let cases = [
        ("laplace", in_orbits(false)),
        ("vector_mass", in_orbits(false)),
        ("laplace", in_orbits(true)),
        ("hyperelasticity", in_orbits(true)),
    ];
    for (name, mapping) in of_run(cases, &[0, 3]) {
        let imported = imported(read(name));
        let own = &imported.kernels[0];
        let place = format!("{name}, {mapping}, seed {seed}");
        let given = memory(&imported, seed);
        let mut expected = given.clone();
        interpret(&own.kernel, &mut expected).unwrap();
        let (kernel, recipe) = transform(own, &mapping).unwrap_or_else(|e| panic!("{place}: {e}"));
        let again = relowered(own, &recipe.lowering).unwrap().unwrap();
        assert_eq!(recipe.apply(again.kernel()).unwrap(), kernel);
        let device = open("c").unwrap();
        let program = generate(&kernel, device.info().backend.target(), &Options::default()).unwrap();
        let loaded = Loaded::compiled(&*device, compiled(&*device, &program), &given).unwrap();
        loaded.launch().unwrap();
        let output = &imported.form.outputs[0].name;
        let found = loaded.f64s(output).unwrap();
        let error = RelativeError::between(&found, expected.f64s(output).unwrap());
        assert!(error.is_within(1e-12), "{place}: {error:?}");
    }
}

/// The degrees of freedom of a cell on vertices, edges, faces and in the interior, by their nodes.
#[test]
fn parts_are_those_of_the_nodes() {
    let imported = imported(read("laplace"));
    let columns = imported.form.spaces[1].columns as u64;
    let parts = imported.kernels[0].entity_parts().unwrap();
    assert_eq!(parts.iter().sum::<u64>(), columns, "{parts:?}");
    assert_eq!(parts[0], imported.form.cell.n_vertices() as u64);
}

#[test]
fn what_depends_on_the_reference_cell_is_refused() {
    let refused = |change: &dyn Fn(&mut TabulatedForm)| {
        let mut form = read("laplace");
        change(&mut form);
        transform(&imported(form).kernels[0], &in_orbits(false)).unwrap_err().to_string()
    };
    let determinant = |form: &TabulatedForm| {
        let is_abs = |n: &Node| matches!(n, Node::Math(MathFunction::Abs, _));
        form.integrals[0].nodes.iter().position(is_abs).unwrap()
    };
    // twice the factor |det J|, which another reference cell scales
    let message = refused(&|form| {
        let abs = determinant(form);
        for k in 0..form.integrals[0].terms.len() {
            let factor = form.integrals[0].terms[k].factor;
            form.integrals[0].nodes.push(Node::Arithmetic(Arithmetic::Multiply, factor, abs));
            form.integrals[0].terms[k].factor = form.integrals[0].nodes.len() - 1;
        }
    });
    assert!(message.contains("found an integrand that depends on the reference cell"), "{message}");
    let message = refused(&|form| {
        let abs = determinant(form);
        let factor = form.integrals[0].terms[0].factor;
        let nodes = &mut form.integrals[0].nodes;
        nodes.push(Node::Literal(1e-6));
        nodes.push(Node::Compare(Relation::Less, abs, nodes.len() - 1));
        nodes.push(Node::Select(nodes.len() - 1, factor, factor));
        form.integrals[0].terms[0].factor = nodes.len() - 1;
    });
    assert!(message.contains("found a comparison of what depends on the reference cell"), "{message}");
    let message = refused(&|form| form.spaces[1].nodes = None);
    assert!(message.contains("are not where permutations"), "{message}");
}
