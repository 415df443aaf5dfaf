//! Forms applied on parts of a mesh, each with a device of its own, against one device.

#![allow(clippy::unwrap_used)] // how a test fails

use kingpost_fem::mesh::{FacetSide, Mesh};
use kingpost_fem::numbering::Numbering;
use kingpost_fem::sparse::{CsrPart, CsrPattern};
use kingpost_forms::form::Form;
use kingpost_forms::form::{
    FunctionSpace, Inputs, Measure, Region, action, coefficient, dS, dot, ds, dx, grad, inner, jump, test,
    trial,
};
use kingpost_forms::lowering::{LoweringOptions, MeshForm};
use kingpost_runtime::{Device, buffer_of, download_values, open};
use kingpost_sample::{Random, is_long_run, of_run};
use kingpost_solve::{
    Arrays, Communicator, ConjugateGradients, Constraints, DeviceForm, FormOperator, FormPrograms, Halo,
    HostCommunicator, LinearOptions, Operator, PartForm, PartFormOperator, PartLayout, PartMesh, Partition,
    Preconditioning, PrescribedValues, Queue, SolveError, boundary, facet_dofs, in_parts, layouts,
};
use kingpost_strategies::Mapping;

const DEGREE: usize = 2;

/// The tag of some cells.
const CORNER: i32 = 7;
/// The tag of facets on the boundary.
const LEFT: i32 = 1;
/// The tag of facets between cells.
const MIDDLE: i32 = 3;

/// A square of triangles, of which those at a corner have a tag, as have the edges on the left and
/// those in the middle, across the cut between two parts.
fn tagged_square(n: usize) -> Mesh {
    let id = |i: usize, j: usize| j * (n + 1) + i + 1;
    let points = (0..=n).flat_map(|j| (0..=n).map(move |i| (i, j)));
    let at = |k: usize| k as f64 / n as f64;
    let nodes: Vec<String> = points.map(|(i, j)| format!("{} {} {} 0", id(i, j), at(i), at(j))).collect();
    let edge = |tag: i32, a: usize, b: usize| format!("1 2 {tag} {tag} {a} {b}");
    let left = (0..n).map(|j| edge(LEFT, id(0, j), id(0, j + 1)));
    let middle = (0..n).map(|i| edge(MIDDLE, id(i, n / 2), id(i + 1, n / 2)));
    let cells = (0..n * n).flat_map(|k| {
        let (i, j) = (k % n, k / n);
        let tag = if i + j < 2 { CORNER } else { 8 };
        let [a, b, c, d] = [id(i, j), id(i + 1, j), id(i, j + 1), id(i + 1, j + 1)];
        [[a, b, d], [a, d, c]].map(|[a, b, c]| format!("2 2 {tag} 1 {a} {b} {c}"))
    });
    let elements: Vec<String> = left.chain(middle).chain(cells).collect();
    let elements = elements.iter().zip(1..).map(|(e, k)| format!("{k} {e}")).collect::<Vec<_>>();
    let text = format!(
        "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n{}\n{}\n$EndNodes\n$Elements\n{}\n{}\n$EndElements\n",
        nodes.len(),
        nodes.join("\n"),
        elements.len(),
        elements.join("\n")
    );
    Mesh::from_gmsh(text.as_bytes()).unwrap()
}

/// `∇v·(1 + u²)∇p + v p` of a given `u`, on a space of vectors, and `2 v p` on the boundary; with
/// jumps of gradients over facets between cells, which read both of them; with more of all of these
/// where a mesh has tags.
fn form(space: &FunctionSpace, How { has_jumps, has_tags, .. }: How) -> Form {
    let u = coefficient("u", space);
    let (p, v) = (trial(space), test(space));
    let kappa = 1.0 + dot(u.clone(), u);
    let mut form = (kappa * inner(grad(p.clone()), grad(v.clone())) + inner(p.clone(), v.clone())) * dx()
        + 2.0 * inner(p.clone(), v.clone()) * ds();
    if has_jumps {
        form = form + 0.05 * inner(jump(grad(p.clone())), jump(grad(v.clone()))) * dS();
    }
    if has_tags {
        form = form
            + 3.0 * inner(p.clone(), v.clone()) * dx().with_tag(CORNER)
            + 4.0 * inner(p.clone(), v.clone()) * ds().with_tag(LEFT)
            + 0.3 * inner(jump(grad(p)), jump(grad(v))) * dS().with_tag(MIDDLE);
    }
    action(form, coefficient("du", space))
}

fn programs(device: &dyn Device, form: &Form) -> FormPrograms {
    let form = MeshForm::new(form, &LoweringOptions::new("acts")).unwrap();
    FormPrograms::compile(device, form, &|_| vec![Mapping::single_cell()]).unwrap()
}

fn pattern(numbering: &Numbering, components: usize) -> CsrPattern {
    let (n, k, map) = (numbering.n_dofs(), numbering.dofs_per_cell(), numbering.dofs());
    let part = CsrPart { extents: [k, k], rows: map, columns: map };
    CsrPattern::of_components([n, n], [components, components], &[part]).unwrap().remove(0)
}

/// The unknowns of prescribed degrees of freedom.
fn prescribed(dofs: impl Iterator<Item = i32>, components: usize) -> PrescribedValues {
    let of_dof = |dof: i32| (0..components as i32).map(move |k| dof * components as i32 + k);
    let unknowns: Vec<i32> = dofs.flat_map(of_dof).collect();
    PrescribedValues { values: vec![0.0; unknowns.len()], unknowns }
}

/// A product with `x`, and the solution of `A x = b` from zero.
type Results = [Vec<f64>; 2];

/// An operator on a device with a right-hand side, likewise.
fn results(
    device: &dyn Device,
    communicator: &dyn Communicator,
    operator: &dyn Operator,
    b: &[f64],
) -> Result<Results, SolveError> {
    let n = operator.size();
    let (b, x) = (buffer_of(device, b)?, device.allocate(8 * n as u64)?);
    let mut queue = Queue::new();
    operator.apply(&b, &x, &mut queue);
    communicator.perform(&queue)?;
    let product = download_values(device, &x)?;
    let options = LinearOptions { relative: 1e-12, ..LinearOptions::default() };
    let solver = ConjugateGradients::new(device, n, options)?;
    let one = buffer_of(device, &vec![1.0; n])?;
    let report = solver.solve_over(communicator, operator, Preconditioning::Diagonal(&one), &b, &x)?;
    assert!(report.converged() && report.iterations() > 10, "{report:?}");
    Ok([product, download_values(device, &x)?])
}

/// How a form is computed on parts.
#[derive(Clone, Copy, Debug, Default)]
struct How {
    /// Whether each cell is of one part.
    has_sums: bool,
    has_jumps: bool,
    has_tags: bool,
}

struct Whole {
    mesh: Mesh,
    numbering: Numbering,
    space: FunctionSpace,
    fixed: Vec<i32>,
    boundary: Vec<FacetSide>,
    u: Vec<f64>,
    b: Vec<f64>,
}

impl Whole {
    fn new(mesh: Mesh, components: usize) -> Self {
        let numbering = Numbering::new(&mesh, DEGREE).unwrap();
        let space = match components {
            1 => FunctionSpace::scalar(mesh.shape(), DEGREE),
            _ => FunctionSpace::vector(mesh.shape(), DEGREE),
        };
        let device = open("c").unwrap();
        let boundary = boundary(&*device, &mesh).unwrap();
        let fixed = facet_dofs(&mesh, &numbering, &boundary, &|point| point[0] < 0.5);
        let n = numbering.n_dofs() * components;
        let mut random = Random::new();
        let (u, b) = (random.reals(n), random.reals(n));
        Self { mesh, numbering, space, fixed, boundary, u, b }
    }

    fn components(&self) -> usize {
        self.space.components()
    }

    fn on_one(&self, device: &dyn Device, how: How) -> Results {
        let programs = programs(device, &form(&self.space, how));
        let inputs = Inputs::new().field("u", self.u.clone()).field("du", self.u.clone());
        let arrays = &mut Arrays::default();
        let form =
            DeviceForm::new(device, &programs, &self.mesh, &inputs, &[], &["u", "du"], arrays).unwrap();
        let values = prescribed(self.fixed.iter().copied(), self.components());
        let constraints =
            Constraints::new(device, &pattern(&self.numbering, self.components()), &values).unwrap();
        let u = buffer_of(device, &self.u).unwrap();
        let operator = FormOperator::new(device, self.u.len(), &form, &constraints, &u).unwrap();
        let alone = &kingpost_solve::Alone::new(device);
        results(device, alone, &operator, &self.b).unwrap()
    }

    /// What a part owns of the whole, by the unknowns of the whole.
    fn on_part(
        &self,
        device: &dyn Device,
        communicator: &dyn Communicator,
        (part, layout): (&PartMesh, &PartLayout),
        how: How,
    ) -> Result<(Vec<usize>, Results), SolveError> {
        let components = self.components();
        let whole =
            |unknown: usize| part.dofs[unknown / components] as usize * components + unknown % components;
        let of_mesh = |v: &[f64]| (0..part.dofs.len() * components).map(|k| v[whole(k)]).collect::<Vec<_>>();
        let owned: Vec<usize> = layout.owned.iter().map(|unknown| whole(*unknown as usize)).collect();
        let u = of_mesh(&self.u);
        let inputs = Inputs::new().field("u", u.clone()).field("du", u.clone());
        let programs = programs(device, &form(&self.space, how));
        let form = PartForm::new(device, &programs, (part, layout, &self.boundary), &inputs, &["u", "du"])?;
        let fixed = (0..).zip(&part.dofs).filter(|(_, dof)| self.fixed.contains(dof)).map(|(place, _)| place);
        let fixed = prescribed(fixed, components);
        let constraints = Constraints::without_matrix(device, part.dofs.len() * components, &fixed)?;
        let (u, halo) =
            (buffer_of(device, &u)?, if how.has_sums { Halo::with_sums } else { Halo::new }(device, layout)?);
        let operator = PartFormOperator::new(device, &form, &constraints, (vec![&u, &u], 1), &halo)?;
        let b: Vec<f64> = owned.iter().map(|unknown| self.b[*unknown]).collect();
        Ok((owned, results(device, communicator, &operator, &b)?))
    }

    /// Each cell in one part, and degrees of freedom in the first of their cells.
    fn parts_of_cells(&self, parts: usize) -> (Vec<PartMesh>, Vec<PartLayout>) {
        let n = self.mesh.n_cells();
        let part_of = |cell: usize| cell * parts / n;
        let all: Vec<u32> = (0..n).map(|cell| part_of(cell) as u32).collect();
        let partition = Partition::of_cells(&self.numbering, &all, parts).unwrap();
        let refused = Partition::of_cells(&self.numbering, &all[1..], parts).err().unwrap();
        assert!(matches!(refused, SolveError::Length { what: "parts of cells", .. }), "{refused}");
        let cells = |part| (0..n).filter(|cell| part_of(*cell) == part).collect();
        let mesh = |part| PartMesh::of_cells(&self.mesh, &self.numbering, cells(part)).unwrap();
        let meshes: Vec<PartMesh> = (0..parts).map(mesh).collect();
        let layouts = layouts(&partition, &meshes, self.components());
        (meshes, layouts)
    }

    fn parts(&self, parts: usize, has_neighbours: bool) -> (Vec<PartMesh>, Vec<PartLayout>) {
        let dim = self.mesh.shape().dim();
        let partition = Partition::bisect(&self.numbering.dof_points(&self.mesh), dim, parts).unwrap();
        let of_part = if has_neighbours { PartMesh::with_neighbours } else { PartMesh::new };
        let mesh = |part| of_part(&self.mesh, &self.numbering, &partition, part).unwrap();
        let meshes: Vec<PartMesh> = (0..parts).map(mesh).collect();
        let layouts = layouts(&partition, &meshes, self.components());
        (meshes, layouts)
    }

    fn on_parts(&self, devices: &[&dyn Device], how: How) -> Results {
        let (meshes, layouts) = if how.has_sums {
            self.parts_of_cells(devices.len())
        } else {
            self.parts(devices.len(), how.has_jumps)
        };
        let communicators = HostCommunicator::of_devices(devices);
        let all = communicators.into_iter().zip(devices).zip(meshes.iter().zip(&layouts));
        type OfPart<'p> = ((HostCommunicator<'p>, &'p &'p dyn Device), (&'p PartMesh, &'p PartLayout));
        let of_part =
            |((communicator, device), part): OfPart<'_>| self.on_part(*device, &communicator, part, how);
        let has_ended = |error: &_| matches!(error, SolveError::PartEnded { .. });
        let found = in_parts(all, of_part, of_part, has_ended).unwrap();
        let mut whole = [(); 2].map(|()| vec![f64::NAN; self.u.len()]);
        for (owned, results) in found {
            for (whole, result) in whole.iter_mut().zip(results) {
                owned.iter().zip(result).for_each(|(unknown, value)| whole[*unknown] = value);
            }
        }
        whole
    }
}

#[test]
fn parts_apply_what_the_whole_applies() {
    let names = ["c", "opencl", "c"];
    let pool = names.map(|name| open(name).unwrap());
    let devices = pool.each_ref().map(|device| &**device);
    let cases = [
        (Mesh::unit_square(6).unwrap(), 2, 2),
        (tagged_square(6), 1, 2),
        (tagged_square(4), 2, 3),
        (Mesh::unit_square(3).unwrap(), 1, 3),
        (Mesh::unit_cube(2).unwrap(), 3, 2),
    ];
    for (k, (mesh, components, parts)) in of_run(cases.into_iter().enumerate(), &[2, 4]) {
        let with_tags = How { has_jumps: true, has_tags: mesh.tags().is_some(), has_sums: false };
        let whole = Whole::new(mesh, components);
        let ways = [How::default(), How { has_sums: true, ..How::default() }, with_tags];
        let taken = |way: &usize| is_long_run() || (way + k).is_multiple_of(2);
        for how in (0..ways.len()).filter(taken).map(|way| ways[way]) {
            let expected = whole.on_one(devices[0], how);
            let found = whole.on_parts(&devices[..parts], how);
            // sums in another order, and a residual of 1e-12 times a condition below 1e4
            for ((expected, found), tolerance) in expected.iter().zip(&found).zip([1e-12, 1e-8]) {
                let largest = expected.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
                let worst = expected.iter().zip(found).map(|(a, b)| (a - b).abs());
                let worst = worst.fold(0.0, |most: f64, error| if error <= most { most } else { error });
                assert!(
                    worst <= tolerance * largest,
                    "{parts} parts, {components} components, {how:?}: {worst:e}"
                );
            }
        }
    }
}

#[test]
fn integrals_over_facets_whose_cells_are_not_there_are_refused() {
    let whole = Whole::new(Mesh::unit_square(6).unwrap(), 1);
    let (meshes, layouts) = whole.parts(2, false);
    let space = &whole.space;
    let on_facets = inner(jump(coefficient("du", space)), jump(test(space))) * dS();
    let device = open("c").unwrap();
    let programs = programs(&*device, &on_facets);
    let inputs = Inputs::new().field("du", vec![0.0; meshes[0].dofs.len()]);
    let refused =
        PartForm::new(&*device, &programs, (&meshes[0], &layouts[0], &whole.boundary), &inputs, &["du"]);
    let refused = refused.err().unwrap();
    assert!(
        refused.to_string().contains("make the parts' meshes by `PartMesh::with_neighbours`"),
        "{refused}"
    );
}

/// A tag that one part alone has is no mistake; one that the mesh has not, or has of other
/// entities, is.
#[test]
fn tags_that_the_mesh_has_not_are_refused() {
    // the cells of the corner end before the cut
    let whole = Whole::new(tagged_square(6), 1);
    let (meshes, layouts) = whole.parts(2, true);
    let device = open("c").unwrap();
    let has_corner = |part: &PartMesh| part.mesh.tags().is_some_and(|tags| tags.all().contains(&CORNER));
    assert_eq!(meshes.iter().map(has_corner).collect::<Vec<_>>(), [true, false]);
    let (w, v) = (coefficient("du", &whole.space), test(&whole.space));
    let of = |part: usize, measure: Measure| {
        let integrand = match measure.region() {
            Region::InteriorFacets => inner(jump(w.clone()), jump(v.clone())),
            Region::Cells | Region::BoundaryFacets => inner(w.clone(), v.clone()),
        };
        let programs = programs(&*device, &(integrand * measure));
        let inputs = Inputs::new().field("du", vec![0.0; meshes[part].dofs.len()]);
        let on = (&meshes[part], &layouts[part], &whole.boundary[..]);
        PartForm::new(&*device, &programs, on, &inputs, &["du"]).err().map(|e| e.to_string())
    };
    for part in 0..2 {
        for measure in [dx().with_tag(CORNER), ds().with_tag(LEFT)] {
            assert_eq!(of(part, measure), None);
        }
        for (measure, found) in [
            (dx().with_tag(9), "found no cells of tag 9"),
            (dx().with_tag(LEFT), "found no cells of tag 1"),
            (dS().with_tag(LEFT), "found no interior facets of tag 1"),
            (ds().with_tag(MIDDLE), "found no boundary facets of tag 3"),
        ] {
            let refused = of(part, measure).unwrap();
            assert!(refused.contains(found), "{refused}");
        }
    }
}
