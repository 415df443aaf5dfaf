//! Actions whose cells add to what they share by atomic updates, by colour, or by sums over a
//! transposed map. On simplices they are compared with an evaluation of the form that shares no
//! code with lowering and code generation, on squares and cubes with the interpreter.

#![allow(clippy::unwrap_used)]

use crate::systems::every_device;
use kingpost_codegen::{Options, Target, generate};
use kingpost_fem::element::CellShape;
use kingpost_fem::mesh::Mesh;
use kingpost_forms::form::{Form, FunctionSpace, Inputs, coefficient, ds, dx, grad, inner, test};
use kingpost_forms::lowering::{LoweringOptions, MeshForm, NumberedMesh, VectorResult};
use kingpost_forms::reference;
use kingpost_interp::interpret;
use kingpost_runtime::{Device, buffer_of, download_values};
use kingpost_sample::{Random, of_run};
use kingpost_solve::{Arrays, DeviceForm, FormPrograms, run};
use kingpost_strategies::Mapping;
use kingpost_strategies::{ConstantCells, FactorisedLines, StagedCells};

const ALL: [VectorResult; 3] = [VectorResult::Assembled, VectorResult::Coloured, VectorResult::Entities];

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

/// The action on a device, twice: the second time on what the first one left. The result has `n`
/// entries.
fn twice(
    device: &dyn Device,
    form: MeshForm,
    mesh: &Mesh,
    (u, n): (&[f64], usize),
    mapping: &Mapping,
) -> [Vec<f64>; 2] {
    let programs = FormPrograms::compile(device, form, &|_| vec![mapping.clone()]).unwrap();
    let inputs = Inputs::new().field("u", u.to_vec()).of(programs.form().form());
    let arrays = &mut Arrays::default();
    let action = DeviceForm::new(device, &programs, mesh, &inputs, &[], &["u"], arrays).unwrap();
    let (from, to) = (buffer_of(device, u).unwrap(), buffer_of(device, &vec![0.0; n]).unwrap());
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

/// Spaces, cells a side and mappings.
fn cases() -> [(FunctionSpace, usize, Mapping); 4] {
    let lines = |cells| Mapping::from(FactorisedLines { cells, literal_tables: false, factors: None });
    let scalar = |shape, degree| FunctionSpace::scalar(shape, degree);
    // compilers take long for higher degrees
    [
        (scalar(CellShape::Hexahedron, 1), 3, lines(2)),
        (FunctionSpace::vector(CellShape::Hexahedron, 1), 2, Mapping::from(ConstantCells { cells: 8 })),
        (scalar(CellShape::Quadrilateral, 3), 3, lines(3)),
        (
            scalar(CellShape::Tetrahedron, 2),
            2,
            Mapping::from(StagedCells { cells: 8, constant_tables: true }),
        ),
    ]
}

#[test]
fn all_scatters_add_the_same() {
    let mut random = Random::new();
    let seed = random.seed;
    for (k, (space, n, mapping)) in cases().into_iter().enumerate() {
        let mesh = moved(space.cell(), n);
        let form = helmholtz(&space);
        let on = NumberedMesh::new(&mesh);
        let n_dofs = lowered(&form, VectorResult::Assembled).result_numbering(&on).unwrap().n_dofs();
        let u = random.reals(n_dofs * space.components());
        let inputs = Inputs::new().field("u", u.clone()).of(&form);
        let expected = match space.cell().is_simplex() {
            true => reference::action(&form, &mesh, &inputs).unwrap(),
            false => interpreted(&form, &mesh, &inputs),
        };
        let largest = expected.iter().fold(0.0_f64, |most, y| most.max(y.abs()));
        for (d, device) in every_device().iter().enumerate() {
            // on each device another one of them
            for vector in of_run(ALL, &[(k + d) % 3]) {
                let found = twice(&**device, lowered(&form, vector), &mesh, (&u, u.len()), &mapping);
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

/// The coefficient by its values in each cell, instead of those of the mesh.
fn by_cells(form: &Form, vector: VectorResult) -> MeshForm {
    let options = LoweringOptions::new("action").with_vector(vector).with_cell_values(["u"]);
    MeshForm::new(form, &options).unwrap()
}

/// What cells read of their own is what the map gathers, as scalars and vectors, in the order of
/// the axes and in that of the element.
#[test]
fn values_of_cells_give_what_gathered_ones_give() {
    let mut random = Random::new();
    let seed = random.seed;
    for (space, n, mapping) in cases().into_iter().skip(1) {
        let mesh = moved(space.cell(), n);
        let form = helmholtz(&space);
        let on = NumberedMesh::new(&mesh);
        let numbering = lowered(&form, VectorResult::Entities).result_numbering(&on).unwrap();
        let (map, n_dofs) = (numbering.dofs(), numbering.n_dofs());
        let components = space.components();
        let u = random.reals(n_dofs * components);
        let expected = interpreted(&form, &mesh, &Inputs::new().field("u", u.clone()));
        let largest = expected.iter().fold(0.0_f64, |most, y| most.max(y.abs()));
        for (device, vector) in every_device().iter().zip([VectorResult::Assembled, VectorResult::Entities]) {
            let given = by_cells(&form, vector);
            let values = given.cell_values("u", &mesh, &u).unwrap();
            assert_eq!(values.len(), map.len() * components);
            let found = twice(&**device, given, &mesh, (&values, u.len()), &mapping);
            for (times, found) in [1.0, 2.0].into_iter().zip(&found) {
                let errors = found.iter().zip(&expected).map(|(y, expected)| (y - times * expected).abs());
                let error = errors.fold(0.0, f64::max) / largest;
                // sums of some hundred products
                assert!(error < 1e-12, "{space} {vector:?} {mapping}: {error:e}; seed {seed}");
            }
        }
    }
}

/// Vectors of cells go in and out: the kernel has no map, and cells that differ have results that
/// differ.
#[test]
fn an_action_on_vectors_of_cells_has_no_map() {
    let space = FunctionSpace::scalar(CellShape::Hexahedron, 1);
    let (form, mesh) = (helmholtz(&space), moved(CellShape::Hexahedron, 2));
    let action = by_cells(&form, VectorResult::Entities);
    let kernel = &action.kernels()[0].kernel;
    assert!(kernel.to_string().contains("u_cell[i_gather_u] = u[cell, "), "{kernel}");
    let maps = kernel.vars.values().filter(|v| v.name.starts_with("dofs") || v.name == "n_dofs");
    assert_eq!(maps.count(), 0, "{kernel}");
    // no continuous function: one in the third of the cells, where the sum over the cell is its volume
    let mut u = vec![0.0; 8 * 8];
    u[16..24].fill(1.0);
    let mut memory = action.bind(0, &mesh, &Inputs::new().field("u", u)).unwrap();
    interpret(kernel, &mut memory).unwrap();
    let y = memory.f64s("y").unwrap();
    let of_cell = |cell: usize| y[8 * cell..][..8].iter().sum::<f64>();
    for cell in (0..8).filter(|cell| *cell != 2) {
        assert!(y[8 * cell..][..8].iter().all(|y| *y == 0.0), "cell {cell}");
    }
    assert!((0.05..0.3).contains(&of_cell(2)), "{}", of_cell(2));
}

#[test]
fn values_of_cells_of_another_name_or_length_are_refused() {
    let space = FunctionSpace::vector(CellShape::Hexahedron, 1);
    let (form, mesh) = (helmholtz(&space), moved(CellShape::Hexahedron, 2));
    let options = LoweringOptions::new("action").with_cell_values(["v"]);
    let message = MeshForm::new(&form, &options).unwrap_err().to_string();
    assert!(message.contains("found no coefficient of this name, needed one of them: `u`"), "{message}");
    let options = LoweringOptions::new("action").with_vector(VectorResult::Coloured).with_cell_values(["u"]);
    let message = MeshForm::new(&form, &options).unwrap_err().to_string();
    assert!(message.contains("found a vector by colours"), "{message}");
    let action = by_cells(&form, VectorResult::Entities);
    let too_few = Inputs::new().field("u", vec![0.0; 81]); // those of the mesh
    let message = action.bind(0, &mesh, &too_few).unwrap_err().to_string();
    assert!(
        message.contains("192 numbers: 8 degrees of freedom of 3 components in each of 8 cells"),
        "{message}"
    );
    let message = action.cell_values("v", &mesh, &[0.0; 81]).unwrap_err().to_string();
    assert!(message.contains("a coefficient: `u`"), "{message}");
}

/// Facets read the values of the cell that they are of, coefficients of which some are of the mesh.
#[test]
fn facets_read_values_of_their_cells() {
    let space = FunctionSpace::scalar(CellShape::Hexahedron, 2);
    let (u, w) = (coefficient("u", &space), coefficient("w", &space));
    let form = u * w * test(&space) * ds();
    let mesh = moved(CellShape::Hexahedron, 2);
    let options = LoweringOptions::new("flux");
    let gathered = MeshForm::new(&form, &options).unwrap();
    let given = MeshForm::new(&form, &options.with_cell_values(["w"])).unwrap();
    let mut random = Random::new();
    let (u, w) = (random.reals(125), random.reals(125));
    let values = given.cell_values("w", &mesh, &w).unwrap();
    let of = |form: &MeshForm, w: &[f64]| {
        let inputs = Inputs::new().field("u", u.clone()).field("w", w.to_vec());
        let mut memory = form.bind(0, &mesh, &inputs).unwrap();
        interpret(&form.kernels()[0].kernel, &mut memory).unwrap();
        memory.f64s("y").unwrap().to_vec()
    };
    assert_eq!(of(&given, &values), of(&gathered, &w));
}

/// A work-item for each line of a cell: what makes the other two right is proved, and no update is
/// atomic.
#[test]
fn colours_and_stored_vectors_need_no_atomic_update() {
    let form = helmholtz(&FunctionSpace::scalar(CellShape::Hexahedron, 1));
    for vector in ALL {
        let lowered = lowered(&form, vector);
        let mapping = Mapping::from(FactorisedLines { cells: 2, literal_tables: false, factors: None });
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
