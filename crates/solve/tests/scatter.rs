//! Actions whose cells add to what they share by atomic updates, by colour, or by sums over a
//! transposed map. On simplices they are compared with an evaluation of the form that shares no code with
//! lowering and code generation, on squares and cubes with the interpreter.

#![allow(clippy::unwrap_used)]

use purlin_codegen::{Options, Target, generate};
use purlin_forms::Mapping;
use purlin_forms::element::CellShape;
use purlin_forms::form::{Form, FunctionSpace, Inputs, coefficient, ds, dx, grad, inner, test};
use purlin_forms::lowering::{LoweringOptions, MeshForm, VectorResult};
use purlin_forms::mesh::Mesh;
use purlin_forms::reference;
use purlin_interp::interpret;
use purlin_runtime::{Device, buffer_of, download_values, open};
use purlin_sample::Random;
use purlin_solve::{Arrays, DeviceForm, FormPrograms, run};

const ALL: [VectorResult; 3] = [VectorResult::Assembled, VectorResult::Coloured, VectorResult::Entities];

/// Devices that are always there, and a card where there is one.
fn devices() -> Vec<Box<dyn Device>> {
    let mut all = vec![open("c").unwrap(), open("opencl").unwrap()];
    match open("cuda") {
        Ok(card) => all.push(card),
        Err(_) => println!("skipped: no CUDA device"),
    }
    all
}

/// A unit square or cube whose inner vertices are moved.
fn moved(shape: CellShape, n: usize) -> Mesh {
    let unit = Mesh::unit(shape, n).unwrap();
    let dim = shape.dim();
    let inside = |x: &[f64]| x.iter().all(|c| 0.01 < *c && *c < 0.99);
    let nodes = unit.nodes().chunks(dim).flat_map(|x| {
        let by = if inside(x) { 0.05 } else { 0.0 };
        x.iter().enumerate().map(move |(axis, c)| c + by * (7.0 * c + axis as f64).sin()).collect::<Vec<_>>()
    });
    let nodes: Vec<f64> = nodes.collect();
    let cells = (0..unit.n_cells()).flat_map(|cell| unit.cell_nodes(cell).to_vec());
    Mesh::new(shape, nodes, cells.collect(), None).unwrap()
}

/// The action of the identity minus the Laplacian.
fn helmholtz(space: &FunctionSpace) -> Form {
    let u = coefficient("u", space);
    let v = test(space);
    (inner(grad(u.clone()), grad(v.clone())) + inner(u, v)) * dx()
}

fn lowered(form: &Form, vector: VectorResult) -> MeshForm {
    MeshForm::new(form, &LoweringOptions::new("action").with_vector(vector)).unwrap()
}

/// The action on a device, twice: the second time on what the first one left.
fn twice(device: &dyn Device, form: MeshForm, mesh: &Mesh, u: &[f64], mapping: &Mapping) -> [Vec<f64>; 2] {
    let programs = FormPrograms::compile(device, form, &|_| vec![mapping.clone()]).unwrap();
    let inputs = Inputs::new().field("u", u.to_vec()).of(programs.form().form());
    let arrays = &mut Arrays::default();
    let action = DeviceForm::new(device, &programs, mesh, &inputs, &[], &["u"], arrays).unwrap();
    let (from, to) = (buffer_of(device, u).unwrap(), buffer_of(device, &vec![0.0; u.len()]).unwrap());
    let mut calls = Vec::new();
    action.add_to(&[&from], &to, &mut calls);
    assert_eq!(calls.len(), action.n_launches());
    [(); 2].map(|()| {
        run(device, &calls).unwrap();
        download_values(device, &to).unwrap()
    })
}

/// The kernel as it is written.
fn interpreted(form: &Form, mesh: &Mesh, inputs: &Inputs) -> Vec<f64> {
    let form = lowered(form, VectorResult::Assembled);
    let mut memory = form.bind(0, mesh, inputs).unwrap();
    interpret(&form.kernels()[0].kernel, &mut memory).unwrap();
    memory.f64s("y").unwrap().to_vec()
}

#[test]
fn all_scatters_add_the_same() {
    let mut random = Random::new();
    let seed = random.seed;
    let lines = |cells| Mapping::FactorisedLines { cells, literal_tables: false };
    let scalar = |shape, degree| FunctionSpace::scalar(shape, degree);
    // compilers take long for higher degrees
    let cases = [
        (scalar(CellShape::Hexahedron, 2), 2, lines(2)),
        (FunctionSpace::vector(CellShape::Hexahedron, 1), 2, Mapping::ConstantCells { cells: 8 }),
        (scalar(CellShape::Quadrilateral, 3), 3, lines(3)),
        (scalar(CellShape::Tetrahedron, 2), 2, Mapping::StagedCells { cells: 8, constant_tables: true }),
    ];
    for (space, n, mapping) in cases {
        let mesh = moved(space.cell(), n);
        let form = helmholtz(&space);
        let (_, n_dofs) = lowered(&form, VectorResult::Assembled).result_map(&mesh).unwrap();
        let u = random.reals(n_dofs * space.components());
        let inputs = Inputs::new().field("u", u.clone()).of(&form);
        let expected = match space.cell().is_simplex() {
            true => reference::action(&form, &mesh, &inputs).unwrap(),
            false => interpreted(&form, &mesh, &inputs),
        };
        let largest = expected.iter().fold(0.0_f64, |most, y| most.max(y.abs()));
        for device in devices() {
            for vector in ALL {
                let found = twice(&*device, lowered(&form, vector), &mesh, &u, &mapping);
                for (times, found) in [1.0, 2.0].into_iter().zip(&found) {
                    for (i, (y, expected)) in found.iter().zip(&expected).enumerate() {
                        let error = (y - times * expected).abs() / largest;
                        // sums of some hundred products
                        assert!(
                            error < 1e-12,
                            "{space} {vector:?} {mapping}: [{i}] off by {error:e}; seed {seed}"
                        );
                    }
                }
            }
        }
    }
}

/// A work-item for each line of a cell: what makes the other two right is proved, and no update is
/// atomic.
#[test]
fn colours_and_stored_vectors_need_no_atomic_update() {
    let form = helmholtz(&FunctionSpace::scalar(CellShape::Hexahedron, 2));
    for vector in ALL {
        let lowered = lowered(&form, vector);
        let mapping = Mapping::FactorisedLines { cells: 2, literal_tables: false };
        let (kernel, _) = mapping.apply(&lowered.kernels()[0]).unwrap();
        let source = generate(&kernel, Target::Cuda, &Options::default()).unwrap().source;
        assert_eq!(source.contains("atomicAdd"), vector == VectorResult::Assembled, "{source}");
    }
}

#[test]
fn cells_that_share_a_degree_of_freedom_are_refused_as_one_colour() {
    let space = FunctionSpace::scalar(CellShape::Hexahedron, 1);
    let form = lowered(&helmholtz(&space), VectorResult::Coloured);
    let mesh = moved(CellShape::Hexahedron, 2);
    let inputs = Inputs::new().field("u", vec![1.0; 27]).of(form.form());
    let mut memory = form.bind(0, &mesh, &inputs).unwrap();
    let message = interpret(&form.kernels()[0].kernel, &mut memory).unwrap_err().to_string();
    assert!(message.contains("injective"), "{message}");
}

#[test]
fn facets_are_refused() {
    let space = FunctionSpace::scalar(CellShape::Hexahedron, 1);
    let form = coefficient("u", &space) * test(&space) * ds();
    for vector in [VectorResult::Coloured, VectorResult::Entities] {
        let options = LoweringOptions::new("flux").with_vector(vector);
        let message = MeshForm::new(&form, &options).unwrap_err().to_string();
        assert!(message.contains("found an integral over facets, needed all cells"), "{message}");
    }
}
