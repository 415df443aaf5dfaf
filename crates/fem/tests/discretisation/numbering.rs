//! Numberings: continuity across facets, exact interpolation, counts.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};

use kingpost_fem::element::{
    CellShape, ElementFamily, FiniteElement, LagrangeElement, LagrangeVariant, Pullback, Reorientation,
    vertex_order,
};
use kingpost_fem::mesh::Mesh;
use kingpost_fem::numbering::{Numbering, NumberingError, NumberingOrder};
use kingpost_sample::{is_long_run, of_run};
use proptest::prelude::Rng;
use proptest::test_runner::{RngAlgorithm, TestRng};

/// Fresh numbers on every run; a failure prints what it needs to be understood.
struct Random(TestRng);

impl Random {
    fn new() -> Self {
        let nanos = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos();
        let mut seed = [0; 32];
        seed[..16].copy_from_slice(&nanos.to_le_bytes());
        println!("seed {nanos}");
        Self(TestRng::from_seed(RngAlgorithm::ChaCha, &seed))
    }

    fn unit(&mut self) -> f64 {
        f64::from(self.0.next_u32()) / f64::from(u32::MAX)
    }

    fn below(&mut self, n: usize) -> usize {
        self.0.next_u32() as usize % n
    }

    fn shuffled(&mut self, n: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..n).collect();
        for i in (1..n).rev() {
            order.swap(i, self.below(i + 1));
        }
        order
    }

    /// A point of the simplex by its `n` barycentric coordinates.
    fn barycentric(&mut self, n: usize) -> Vec<f64> {
        let parts: Vec<f64> = (0..n).map(|_| 0.05 + self.unit()).collect();
        let total: f64 = parts.iter().sum();
        parts.iter().map(|p| p / total).collect()
    }
}

/// The mesh with its vertices renumbered and the vertices of each cell permuted evenly, all at
/// random.
fn scrambled(mesh: &Mesh, random: &mut Random) -> Mesh {
    let dim = mesh.shape().dim();
    let order = random.shuffled(mesh.n_vertices());
    let mut coordinates = vec![0.0; mesh.coordinates().len()];
    for (old, new) in order.iter().enumerate() {
        coordinates[new * dim..(new + 1) * dim].copy_from_slice(mesh.vertex(old as u32));
    }
    let mut cells = Vec::new();
    for cell in random.shuffled(mesh.n_cells()) {
        let permutation = loop {
            let permutation = random.shuffled(dim + 1);
            let inversions = (0..=dim).flat_map(|j| (0..j).map(move |i| (i, j)));
            if inversions.filter(|(i, j)| permutation[*i] > permutation[*j]).count() % 2 == 0 {
                break permutation;
            }
        };
        cells.extend(permutation.iter().map(|i| order[mesh.cell(cell)[*i] as usize] as u32));
    }
    Mesh::new(mesh.shape(), coordinates, cells, None).unwrap()
}

fn meshes(random: &mut Random) -> Vec<Mesh> {
    let unit = [Mesh::unit_square(3).unwrap(), Mesh::unit_cube(2).unwrap()];
    unit.iter().flat_map(|mesh| [mesh.clone(), scrambled(mesh, random)]).collect()
}

/// The value at a point of a cell, given by barycentric coordinates of its vertices, of the
/// function with these coefficients.
fn evaluate(numbering: &Numbering, cell: usize, barycentric: &[f64], coefficients: &[f64]) -> f64 {
    let table = numbering.element().tabulate(&barycentric[1..], 0).unwrap();
    table.values.iter().zip(numbering.cell(cell)).map(|(v, dof)| v * coefficients[*dof as usize]).sum()
}

/// For each interior facet, by its ascending vertices, the cells on its two sides.
fn interior_facets(mesh: &Mesh) -> Vec<(Vec<u32>, Vec<usize>)> {
    let mut facets: BTreeMap<Vec<u32>, Vec<usize>> = BTreeMap::new();
    for cell in 0..mesh.n_cells() {
        for facet in mesh.shape().entities(mesh.shape().dim() - 1) {
            let mut vertices: Vec<u32> = facet.iter().map(|v| mesh.cell(cell)[*v]).collect();
            vertices.sort_unstable();
            facets.entry(vertices).or_default().push(cell);
        }
    }
    facets.into_iter().filter(|(_, cells)| cells.len() == 2).collect()
}

fn check_continuity(mesh: &Mesh, degree: usize, facets: &[(Vec<u32>, Vec<usize>)], random: &mut Random) {
    let numbering = Numbering::new(mesh, degree).unwrap();
    let coefficients: Vec<f64> = (0..numbering.n_dofs()).map(|_| 2.0 * random.unit() - 1.0).collect();
    for (vertices, cells) in facets {
        let weights = random.barycentric(vertices.len());
        let sides: Vec<f64> = cells
            .iter()
            .map(|cell| {
                let place = |v: &u32| vertices.iter().position(|w| w == v).map_or(0.0, |i| weights[i]);
                let barycentric: Vec<f64> = mesh.cell(*cell).iter().map(place).collect();
                evaluate(&numbering, *cell, &barycentric, &coefficients)
            })
            .collect();
        // 1e-12: two sums of at most 84 terms of size at most 10, with tables good to 1e-13.
        assert!(
            (sides[0] - sides[1]).abs() < 1e-12,
            "{} P{degree} facet {vertices:?}: {sides:?}",
            mesh.shape()
        );
    }
}

#[test]
fn functions_are_continuous_across_facets() {
    let mut random = Random::new();
    for mesh in meshes(&mut random) {
        let facets = interior_facets(&mesh);
        assert!(facets.len() > 20);
        for degree in 1..=LagrangeElement::max_degree(mesh.shape()) {
            check_continuity(&mesh, degree, &facets, &mut random);
        }
    }
}

#[test]
fn functions_are_continuous_on_the_bracket() {
    let mut random = Random::new();
    let mesh = Mesh::from_gmsh(include_bytes!("../../../../meshes/bracket.msh")).unwrap();
    let mut facets = interior_facets(&mesh);
    for degree in 1..=6 {
        // a sample of facets for each degree: every one costs two tabulations
        let sample = if is_long_run() { 300 } else { 20 };
        for i in 0..sample {
            let j = i + random.below(facets.len() - i);
            facets.swap(i, j);
        }
        check_continuity(&mesh, degree, &facets[..sample], &mut random);
    }
}

#[test]
fn polynomials_are_interpolated_exactly() {
    let mut random = Random::new();
    for mesh in meshes(&mut random) {
        let dim = mesh.shape().dim();
        for degree in 1..=LagrangeElement::max_degree(mesh.shape()) {
            let numbering = Numbering::new(&mesh, degree).unwrap();
            let slope: Vec<f64> = (0..dim).map(|_| random.unit()).collect();
            let f =
                |x: &[f64]| (0.3 + x.iter().zip(&slope).map(|(x, s)| x * s).sum::<f64>()).powi(degree as i32);
            let coefficients: Vec<f64> = numbering.dof_points(&mesh).chunks(dim).map(f).collect();
            for cell in 0..mesh.n_cells() {
                let barycentric = random.barycentric(dim + 1);
                let found = evaluate(&numbering, cell, &barycentric, &coefficients);
                let expected = f(&mesh.point(cell, &barycentric[1..]));
                let scale = 3.3_f64.powi(degree as i32);
                // 1e-12 of the largest value: a sum of at most 84 terms with tables good to 1e-13.
                assert!((found - expected).abs() < 1e-12 * scale, "{} P{degree}", mesh.shape());
            }
        }
    }
}

/// Numbers of edges and of triangles, by brute force.
fn count_entities(mesh: &Mesh) -> (usize, usize) {
    let count = |entities: &[&[usize]]| {
        let mut all = BTreeSet::new();
        for cell in 0..mesh.n_cells() {
            for entity in entities {
                all.insert(entity.iter().map(|v| mesh.cell(cell)[*v]).collect::<BTreeSet<_>>());
            }
        }
        all.len()
    };
    (count(mesh.shape().edges()), count(mesh.shape().faces()))
}

#[test]
fn counts_are_those_of_the_entities() {
    let mut random = Random::new();
    for mesh in meshes(&mut random) {
        let (edges, faces) = count_entities(&mesh);
        let solids = if mesh.shape() == CellShape::Tetrahedron { mesh.n_cells() } else { 0 };
        assert_eq!(mesh.n_vertices() + faces, edges + solids + 1, "Euler's formula of a ball");
        for degree in 1..=LagrangeElement::max_degree(mesh.shape()) {
            let (a, b, c) = (degree - 1, degree.saturating_sub(2), degree.saturating_sub(3));
            let expected = mesh.n_vertices() + edges * a + faces * (a * b / 2) + solids * (a * b * c / 6);
            let numbering = Numbering::new(&mesh, degree).unwrap();
            assert_eq!(numbering.n_dofs(), expected);
            let used: BTreeSet<i32> = numbering.dofs().iter().copied().collect();
            assert_eq!(used.len(), expected, "every number is used");
            assert_eq!((used.first(), used.last()), (Some(&0), Some(&(expected as i32 - 1))));
        }
    }
}

#[test]
fn unit_meshes_have_the_nodes_of_a_lattice() {
    for (mesh, n) in [(Mesh::unit_square(5).unwrap(), 5_usize), (Mesh::unit_cube(3).unwrap(), 3)] {
        for degree in 1..=LagrangeElement::max_degree(mesh.shape()) {
            let expected = (n * degree + 1).pow(mesh.shape().dim() as u32);
            assert_eq!(Numbering::new(&mesh, degree).unwrap().n_dofs(), expected);
        }
    }
}

#[test]
fn numbers_are_given_in_order_of_first_touch() {
    let numbering = Numbering::new(&Mesh::unit_cube(2).unwrap(), 4).unwrap();
    let mut top = -1;
    for cell in 0..48 {
        let new = numbering.cell(cell).iter().filter(|dof| **dof > top).count() as i32;
        let highest = *numbering.cell(cell).iter().max().unwrap();
        assert!(highest <= top + new, "a cell's new numbers follow those given before");
        top = top.max(highest);
    }
}

/// The numbers that one thread gives, cell by cell, and the states of the cells.
fn one_by_one(mesh: &Mesh, element: &FiniteElement, order: NumberingOrder) -> (Vec<i32>, Vec<i32>) {
    let (shape, mut found) = (mesh.shape(), Vec::new());
    let (mut owners, mut numbers, mut states) = (BTreeMap::new(), Vec::new(), Vec::new());
    let reorientations: Vec<_> = (0..=shape.dim()).map(|dim| element.reorientation(dim)).collect();
    for cell in 0..mesh.n_cells() {
        for dim in (0..=shape.dim()).filter(|dim| element.dofs_per_entity(*dim) > 0) {
            for (which, entity) in shape.entities(dim).iter().enumerate() {
                let vertices: Vec<u32> = entity.iter().map(|v| mesh.cell(cell)[*v]).collect();
                let mut key = vertices.clone();
                key.sort_unstable();
                owners.entry((dim, key.clone())).or_insert((cell, which));
                found.push((dim, key, vertex_order(&vertices)));
            }
        }
    }
    // who has its numbers before whom
    let place = |dim: usize, (cell, which): (usize, usize)| match order {
        NumberingOrder::FirstTouch => [0, cell, dim, which, 0],
        NumberingOrder::ByDimension => [(dim + 3) % 4, cell, which, 0, 0],
        NumberingOrder::ByEntity | NumberingOrder::ByBlock if dim > 0 => {
            [(dim + 3) % 4, cell / 128, which, cell, 0]
        }
        NumberingOrder::ByEntity | NumberingOrder::ByBlock => [3, cell, which, 0, 0],
    };
    let mut ordered: Vec<_> =
        owners.iter().map(|((dim, key), owner)| (place(*dim, *owner), *dim, key)).collect();
    ordered.sort_unstable();
    let (mut first, mut next) = (BTreeMap::new(), 0);
    for (_, dim, key) in ordered {
        first.insert((dim, key.clone()), next);
        next += element.dofs_per_entity(dim) as i32;
    }
    for (dim, key, turn) in found {
        let (first, size) = (first[&(dim, key)], element.dofs_per_entity(dim));
        let place = |k: usize| match &reorientations[dim] {
            Reorientation::Permutations(p) => p[turn][k] as i32,
            Reorientation::None | Reorientation::Matrices(_) => k as i32,
        };
        numbers.extend((0..size).map(|k| first + place(k)));
        if matches!(&reorientations[dim], Reorientation::Matrices(_)) {
            states.push(turn as i32);
        }
    }
    (numbers, states)
}

/// Meshes of more cells and vertices than a thread takes at a time, and smaller ones.
#[test]
fn numbers_of_all_threads_are_those_of_one() {
    let mut random = Random::new();
    let mut meshes = meshes(&mut random);
    meshes.extend([
        turned(CellShape::Tetrahedron, 10, &mut random),
        turned(CellShape::Hexahedron, 3, &mut random),
    ]);
    meshes.extend([
        turned(CellShape::Quadrilateral, 40, &mut random),
        Mesh::unit(CellShape::Interval, 9).unwrap(),
    ]);
    for mesh in &meshes {
        let shape = mesh.shape();
        let lagrange = [1, 2, LagrangeElement::max_degree(shape).min(4)];
        let mut elements: Vec<FiniteElement> = lagrange
            .iter()
            .map(|degree| LagrangeElement::new(shape, *degree).unwrap().as_element().clone())
            .collect();
        if shape.is_simplex() && shape.dim() > 1 {
            let curl = FiniteElement::new(shape, ElementFamily::NedelecFirst, 2).unwrap();
            elements.extend([
                curl,
                FiniteElement::discontinuous(shape, ElementFamily::RaviartThomas, 1).unwrap(),
            ]);
        }
        for (k, element) in elements.iter().enumerate() {
            let orders = [NumberingOrder::FirstTouch, NumberingOrder::ByDimension, NumberingOrder::ByEntity];
            for order in of_run(orders, &[k % 3]) {
                let numbering = Numbering::of_in_order(mesh, element, order).unwrap();
                let (dofs, states) = one_by_one(mesh, element, order);
                assert!(numbering.dofs() == dofs, "{shape}, degree {}, {order}", element.degree());
                assert!(numbering.states() == states, "{shape}, degree {}, {order}", element.degree());
                assert_eq!(numbering.n_dofs() as i32, dofs.iter().max().unwrap() + 1);
            }
        }
    }
}

#[test]
fn refuses_a_degree_without_element() {
    let mesh = Mesh::unit_cube(1).unwrap();
    let error = Numbering::new(&mesh, 7).unwrap_err();
    assert!(matches!(error, NumberingError::Element(_)));
    assert_eq!(error.to_string(), "Lagrange degree 7 on a tetrahedron: supported are 1 to 6");
}

/// The orders in which a cell may list its vertices: turns and reflections of the reference cell.
fn symmetries(shape: CellShape) -> Vec<Vec<usize>> {
    let dim = shape.dim();
    let mut axes: Vec<Vec<usize>> = vec![vec![]];
    let entries = if shape.is_simplex() { dim + 1 } else { dim };
    for _ in 0..entries {
        let longer = |p: &Vec<usize>| {
            let p = p.clone();
            (0..entries).filter(|i| !p.contains(i)).map(|i| [&p[..], &[i]].concat()).collect::<Vec<_>>()
        };
        axes = axes.iter().flat_map(longer).collect();
    }
    if shape.is_simplex() {
        return axes;
    }
    let corner = |p: &Vec<usize>, flips: usize, v: usize| {
        (0..dim).map(|axis| ((v >> p[axis]) & 1 ^ (flips >> axis) & 1) << axis).sum()
    };
    let of = |p: &Vec<usize>| {
        let p = p.clone();
        (0..1 << dim)
            .map(move |flips| (0..shape.n_vertices()).map(|v| corner(&p, flips, v)).collect())
            .collect::<Vec<_>>()
    };
    axes.iter().flat_map(of).collect()
}

/// A unit mesh with its vertices moved and renumbered, and each cell turned or mirrored, at random.
fn turned(shape: CellShape, n: usize, random: &mut Random) -> Mesh {
    let mesh = Mesh::unit(shape, n).unwrap();
    let dim = shape.dim();
    let orders = symmetries(shape);
    let order = random.shuffled(mesh.n_vertices());
    let mut coordinates = vec![0.0; mesh.coordinates().len()];
    for (old, new) in order.iter().enumerate() {
        for (axis, x) in mesh.vertex(old as u32).iter().enumerate() {
            coordinates[new * dim + axis] = x + 0.1 / n as f64 * (random.unit() - 0.5);
        }
    }
    let mut cells = Vec::new();
    for cell in random.shuffled(mesh.n_cells()) {
        let symmetry = &orders[random.below(orders.len())];
        cells.extend(symmetry.iter().map(|i| order[mesh.cell(cell)[*i] as usize] as u32));
    }
    Mesh::new(shape, coordinates, cells, None).unwrap()
}

/// The value in a cell at a reference point of the function with these coefficients.
fn value(mesh: &Mesh, numbering: &Numbering, cell: usize, at: &[f64], coefficients: &[f64]) -> Vec<f64> {
    let element = numbering.element();
    let (dim, size) = (mesh.shape().dim(), element.value_size());
    let mut local: Vec<f64> = numbering.cell(cell).iter().map(|dof| coefficients[*dof as usize]).collect();
    numbering.to_local(cell, &mut local);
    let table = element.tabulate(at, 0).unwrap();
    let reference = nalgebra::DVector::from_fn(size, |c, _| {
        local.iter().enumerate().map(|(dof, x)| x * table.value(0, 0, dof, c)).sum::<f64>()
    });
    let jacobian = nalgebra::DMatrix::from_row_slice(dim, dim, &mesh.jacobian(cell, at));
    let mapped = match element.pullback() {
        Pullback::Identity => reference,
        Pullback::ContravariantPiola => &jacobian * reference / jacobian.determinant(),
        Pullback::CovariantPiola => jacobian.try_inverse().unwrap().transpose() * reference,
    };
    mapped.as_slice().to_vec()
}

/// What of a value two cells share: all of it, its normal component, or its tangential ones.
fn shared(mesh: &Mesh, pullback: Pullback, side: kingpost_fem::mesh::FacetSide, value: &[f64]) -> Vec<f64> {
    let (shape, cell) = (mesh.shape(), side.cell as usize);
    let mut vertices: Vec<u32> =
        shape.facets()[side.facet as usize].iter().map(|v| mesh.cell(cell)[*v]).collect();
    vertices.sort_unstable();
    let edge = |i: usize| -> Vec<f64> {
        let ends = mesh.vertex(vertices[i]).iter().zip(mesh.vertex(vertices[0]));
        ends.map(|(a, b)| a - b).collect()
    };
    let dot = |a: &[f64]| a.iter().zip(value).map(|(x, y)| x * y).sum::<f64>();
    match (pullback, shape.dim()) {
        (Pullback::Identity, _) => value.to_vec(),
        (Pullback::CovariantPiola, dim) => (1..dim).map(|i| dot(&edge(i))).collect(),
        (Pullback::ContravariantPiola, 2) => {
            let t = edge(1);
            vec![dot(&[-t[1], t[0]])]
        }
        (Pullback::ContravariantPiola, _) => {
            let (a, b) = (edge(1), edge(2));
            let normal = [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
            vec![dot(&normal)]
        }
    }
}

fn check_conformity(mesh: &Mesh, element: &FiniteElement, random: &mut Random) {
    let numbering = Numbering::of(mesh, element).unwrap();
    let coefficients: Vec<f64> = (0..numbering.n_dofs()).map(|_| 2.0 * random.unit() - 1.0).collect();
    let (shape, dim) = (mesh.shape(), mesh.shape().dim());
    let mut size = 0.0_f64;
    let interior: Vec<_> =
        mesh.facets().into_iter().filter_map(|facet| Some((facet, facet.other?))).collect();
    // a sample for each element: every one costs two tabulations
    for _ in 0..25 {
        let (facet, other) = interior[random.below(interior.len())];
        let own = shape.facets()[facet.side.facet as usize];
        // weights of the facet's vertices: of a square, products along its axes
        let weights: Vec<f64> = match own.len() {
            4 => {
                let (s, t) = (random.unit(), random.unit());
                vec![(1.0 - s) * (1.0 - t), s * (1.0 - t), (1.0 - s) * t, s * t]
            }
            n => random.barycentric(n),
        };
        let vertices: Vec<u32> = own.iter().map(|v| mesh.cell(facet.side.cell as usize)[*v]).collect();
        let values = [facet.side, other].map(|side| {
            let cell = side.cell as usize;
            let mut at = vec![0.0; dim];
            for (local, vertex) in mesh.cell(cell).iter().enumerate() {
                let weight = vertices.iter().position(|v| v == vertex).map_or(0.0, |i| weights[i]);
                let corner = &shape.vertices()[local * dim..(local + 1) * dim];
                at.iter_mut().zip(corner).for_each(|(x, c)| *x += weight * c);
            }
            let value = value(mesh, &numbering, cell, &at, &coefficients);
            shared(mesh, element.pullback(), side, &value)
        });
        for (a, b) in values[0].iter().zip(&values[1]) {
            size = size.max(a.abs());
            // 1e-10: sums of some hundred terms of some tens, by inverses of small cells
            assert!(
                (a - b).abs() < 1e-10 * (1.0 + a.abs()),
                "{} {} {facet:?}",
                element.family(),
                element.degree()
            );
        }
    }
    assert!(size > 0.0, "nothing was compared");
}

/// Degrees of freedom of neighbours agree for every family, however cells are turned or mirrored.
#[test]
fn functions_of_every_family_conform_across_facets() {
    let mut random = Random::new();
    let vectors = [
        ElementFamily::RaviartThomas,
        ElementFamily::BrezziDouglasMarini,
        ElementFamily::NedelecFirst,
        ElementFamily::NedelecSecond,
    ];
    for (shape, n, top) in [
        (CellShape::Interval, 8, 6),
        (CellShape::Triangle, 3, 5),
        (CellShape::Tetrahedron, 2, 5),
        (CellShape::Quadrilateral, 4, 5),
        (CellShape::Hexahedron, 3, 4),
    ] {
        let top = if is_long_run() { top } else { top.min(3) };
        // of few cells none may be mirrored
        let is_mirrored = |mesh: &Mesh| (0..mesh.n_cells()).any(|cell| mesh.determinant(cell) < 0.0);
        let mesh = std::iter::repeat_with(|| turned(shape, n, &mut random)).find(is_mirrored).unwrap();
        let lagrange = [LagrangeVariant::Equispaced, LagrangeVariant::GllWarped, LagrangeVariant::GllIsaac];
        for family in lagrange.map(ElementFamily::Lagrange).into_iter().chain(vectors) {
            let Some((_, high)) = family.degrees(shape) else { continue };
            for degree in 1..=top.min(high) {
                let element = FiniteElement::new(shape, family, degree).unwrap();
                check_conformity(&mesh, &element, &mut random);
            }
        }
    }
}

#[test]
fn discontinuous_spaces_share_nothing() {
    let mesh = Mesh::unit_cube(1).unwrap();
    let family = ElementFamily::Lagrange(LagrangeVariant::Legendre);
    let element = FiniteElement::discontinuous(CellShape::Tetrahedron, family, 2).unwrap();
    let numbering = Numbering::of(&mesh, &element).unwrap();
    assert_eq!(numbering.dofs(), (0..60).collect::<Vec<i32>>());
    assert!(numbering.transforms().is_empty() && numbering.states().is_empty());
    assert!(numbering.dof_points(&mesh).is_empty(), "moments are at no point");
    let error = Numbering::of(&Mesh::unit_square(1).unwrap(), &element).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the mesh has cells of shape triangle, and the element is on a tetrahedron; needed one shape"
    );
}

/// The dimension of the entity of each degree of freedom of a cell.
fn dimensions(element: &FiniteElement) -> Vec<usize> {
    let of_dim = |dim: usize| element.shape().entities(dim).len() * element.dofs_per_entity(dim);
    (0..=element.shape().dim()).flat_map(|dim| std::iter::repeat_n(dim, of_dim(dim))).collect()
}

/// Both orders number the same degrees of freedom, and one by dimension has those of edges first, of
/// vertices last, and each dimension in order of first touch.
fn check_orders(mesh: &Mesh, element: &FiniteElement) {
    let touched = Numbering::of(mesh, element).unwrap();
    let sorted = Numbering::of_in_order(mesh, element, NumberingOrder::ByDimension).unwrap();
    assert_eq!((touched.order(), sorted.order()), (NumberingOrder::FirstTouch, NumberingOrder::ByDimension));
    assert_eq!((touched.states(), touched.n_dofs()), (sorted.states(), sorted.n_dofs()));
    let dimensions = dimensions(element);
    // by number in order of first touch
    let mut known = vec![None; touched.n_dofs()];
    for ((old, new), dim) in touched.dofs().iter().zip(sorted.dofs()).zip(dimensions.iter().cycle()) {
        let entry = (*dim, *new);
        assert_eq!(*known[*old as usize].get_or_insert(entry), entry, "cells agree");
    }
    let of = |dim: usize| known.iter().flatten().filter(move |(d, _)| *d == dim).map(|(_, new)| *new);
    let in_order: Vec<i32> = [1, 2, 3, 0].into_iter().flat_map(of).collect();
    assert_eq!(in_order, (0..touched.n_dofs() as i32).collect::<Vec<_>>());
    let (old, new) = (touched.dof_points(mesh), sorted.dof_points(mesh));
    for (from, (_, to)) in known.iter().flatten().enumerate() {
        let point = |points: &[f64], k: usize| points.chunks(mesh.shape().dim()).nth(k).map(<[f64]>::to_vec);
        assert_eq!(point(&old, from), point(&new, *to as usize));
    }
}

#[test]
fn orders_differ_by_a_permutation() {
    for mesh in meshes(&mut Random::new()) {
        let shape = mesh.shape();
        for degree in [1, 3, LagrangeElement::max_degree(shape)] {
            check_orders(&mesh, LagrangeElement::new(shape, degree).unwrap().as_element());
        }
        for family in [ElementFamily::RaviartThomas, ElementFamily::NedelecFirst] {
            check_orders(&mesh, &FiniteElement::new(shape, family, 2).unwrap());
        }
    }
}

/// Sectors of four numbers that groups of 32 work-items touch, each with one number, of the degrees of
/// freedom of one dimension: consecutive work-items have consecutive ones of a cell.
fn sectors(numbering: &Numbering, dim: usize) -> usize {
    let dimensions = dimensions(numbering.element());
    let of_dim = numbering.dofs().iter().zip(dimensions.iter().cycle()).filter(|(_, d)| **d == dim);
    let dofs: Vec<i32> = of_dim.map(|(dof, _)| *dof).collect();
    dofs.chunks(32).map(|group| group.iter().map(|dof| dof / 4).collect::<BTreeSet<_>>().len()).sum()
}

/// Where a block of an edge or a face is as long as a sector, it is one sector if dimensions are
/// numbered apart; vertices in between shift it across two.
#[test]
fn blocks_lie_within_sectors_if_dimensions_are_apart() {
    for (mesh, degree) in [(Mesh::unit_square(8).unwrap(), 5), (Mesh::unit_cube(3).unwrap(), 5)] {
        let touched = Numbering::new(&mesh, degree).unwrap();
        let sorted = Numbering::new_in_order(&mesh, degree, NumberingOrder::ByDimension).unwrap();
        let edges = mesh.n_cells() * mesh.shape().entities(1).len();
        let first = dimensions(sorted.element()).iter().position(|dim| *dim == 1).unwrap();
        let starts = |cell: usize| (0..mesh.shape().entities(1).len()).map(move |e| (cell, first + 4 * e));
        for (cell, at) in (0..mesh.n_cells()).flat_map(starts) {
            let block: BTreeSet<i32> = sorted.cell(cell)[at..at + 4].iter().map(|dof| dof / 4).collect();
            assert_eq!(block.len(), 1, "cell {cell}");
        }
        // eight edges a group of 32
        assert!(sectors(&sorted, 1) <= edges.div_ceil(8) * 8);
        assert!(4 * sectors(&touched, 1) > 5 * sectors(&sorted, 1), "{}", sectors(&touched, 1));
        // interiors of successive cells are one run
        let interior = mesh.shape().dim();
        let run = dimensions(sorted.element()).iter().filter(|dim| **dim == interior).count();
        assert!(sectors(&sorted, interior) <= (mesh.n_cells() * run).div_ceil(32) * 9);
        assert!(sectors(&touched, interior) > sectors(&sorted, interior));
    }
}
