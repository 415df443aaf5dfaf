//! The map of a cell in terms of what the kernel computes: its derivative, and what follows from it.

use super::directions::Directions;
use super::entity::side_suffix;
use super::symbol::Symbol;
use crate::form::{Comparison, MathFunction, Scalar, ScalarGraph, ScalarId, tensor};
use crate::tabulated::Side;
use kingpost_fem::element::CellShape;
use std::collections::BTreeMap;

/// The derivative of the map of a cell.
#[derive(Clone)]
pub(super) struct Geometry {
    side: Option<Side>,
    /// `det J`.
    pub(super) determinant: ScalarId,
    /// J, [physical axis, direction].
    pub(super) jacobian: Vec<ScalarId>,
    /// `1 / det J` of the directions.
    pub(super) reciprocal: ScalarId,
    /// Inverse of J, [direction, physical axis].
    pub(super) inverse: Vec<ScalarId>,
    facet: Option<FacetGeometry>,
}

/// What the derivative of the map of a cell makes of the normal of a reference facet.
#[derive(Clone)]
pub(super) struct FacetGeometry {
    /// The unit normal.
    pub(super) normal: Vec<ScalarId>,
    /// Length of the reference normal's image `J^-T n`, by which facets are stretched more than
    /// cells.
    pub(super) stretch: ScalarId,
}

/// The cells whose maps are differentiated.
#[derive(Clone, Copy)]
pub(super) struct Frame {
    pub(super) cell: CellShape,
    /// Whether the map of a cell has one derivative at all points.
    pub(super) is_affine: bool,
    /// Along what; along the axes where maps are not affine.
    pub(super) directions: Directions,
}

impl Geometry {
    /// The geometry of the cell on a side; what it is made of gets names.
    pub(super) fn new(
        graph: &mut ScalarGraph,
        named: &mut BTreeMap<ScalarId, String>,
        Frame { cell, is_affine, directions }: Frame,
        side: Option<Side>,
    ) -> Self {
        let (dim, end) = (cell.dim(), side_suffix(side));
        let symbol = |graph: &mut ScalarGraph, s: Symbol| graph.insert(Scalar::Symbol(s.place(dim, side)));
        let mut own = BTreeMap::new();
        let mut jacobian = Vec::new();
        for (i, k) in (0..dim).flat_map(|i| (0..dim).map(move |k| (i, k))) {
            let entry = if directions == Directions::Symmetric {
                let vertex = |v| Scalar::Symbol(Symbol::Vertex(v, i).place(dim, side));
                directions.along(graph, cell, k, &vertex)
            } else if is_affine {
                let (end, start) =
                    (symbol(graph, Symbol::Vertex(k + 1, i)), symbol(graph, Symbol::Vertex(0, i)));
                graph.subtract(end, start)
            } else {
                symbol(graph, Symbol::Jacobian(i, k))
            };
            own.insert(entry, format!("jac_{i}{k}{end}"));
            jacobian.push(entry);
        }
        let spanned = tensor::determinant(graph, &jacobian, dim);
        let one = graph.literal(1.0);
        let reciprocal = graph.divide(one, spanned);
        let mut determinant = spanned;
        if directions == Directions::Symmetric {
            own.insert(spanned, format!("det_directions{end}"));
            let share = graph.literal(1.0 / directions.volume(cell));
            determinant = graph.multiply(share, spanned);
        }
        own.insert(determinant, format!("det_jac{end}"));
        own.insert(reciprocal, format!("rec_det{end}"));
        let mut inverse = Vec::new();
        for (k, i) in (0..dim).flat_map(|k| (0..dim).map(move |i| (k, i))) {
            let cofactor = tensor::cofactor(graph, &jacobian, dim, i, k);
            let entry = graph.multiply(cofactor, reciprocal);
            own.insert(entry, format!("inv_{k}{i}{end}"));
            inverse.push(entry);
        }
        // A negated difference is the difference the other way round: one name for it, too.
        for (entry, name) in own.clone() {
            let negated = graph.negate(entry);
            own.entry(negated).or_insert_with(|| format!("neg_{name}"));
        }
        named.extend(own);
        Self { side, determinant, jacobian, reciprocal, inverse, facet: None }
    }

    /// The geometry of a facet: `n = J^-T m / |J^-T m|` for the outward normal `m` of the reference
    /// facet, also where `det J` is negative.
    pub(super) fn facet(
        &mut self,
        graph: &mut ScalarGraph,
        named: &mut BTreeMap<ScalarId, String>,
        dim: usize,
    ) -> FacetGeometry {
        if let Some(known) = &self.facet {
            return known.clone();
        }
        let (side, end) = (self.side, side_suffix(self.side));
        let symbol = |k| Scalar::Symbol(Symbol::ReferenceNormal(k).place(dim, side));
        let reference: Vec<ScalarId> = (0..dim).map(|k| graph.insert(symbol(k))).collect();
        let mut image = Vec::new();
        for i in 0..dim {
            let products =
                (0..dim).map(|k| graph.multiply(self.inverse[k * dim + i], reference[k])).collect();
            image.push(tensor::sum(graph, products));
        }
        let squares = image.iter().map(|x| graph.multiply(*x, *x)).collect();
        let square = tensor::sum(graph, squares);
        let stretch = graph.math(MathFunction::Sqrt, square);
        named.insert(stretch, format!("stretch{end}"));
        let mut normal = Vec::new();
        for (i, x) in image.iter().enumerate() {
            let component = graph.divide(*x, stretch);
            named.insert(component, format!("normal_{i}{end}"));
            normal.push(component);
        }
        self.facet.insert(FacetGeometry { normal, stretch }).clone()
    }
}

/// `|a|`.
pub(super) fn absolute(graph: &mut ScalarGraph, a: ScalarId) -> ScalarId {
    let (zero, negated) = (graph.literal(0.0), graph.negate(a));
    graph.conditional(Comparison::GreaterEqual, [a, zero, a, negated])
}

/// The largest distance of two vertices of the simplex on a side.
pub(super) fn diameter(graph: &mut ScalarGraph, dim: usize, side: Option<Side>) -> ScalarId {
    let mut largest = graph.literal(0.0);
    for (a, b) in (0..=dim).flat_map(|a| (0..a).map(move |b| (a, b))) {
        let mut squares = Vec::new();
        for axis in 0..dim {
            let symbol = |vertex| Scalar::Symbol(Symbol::Vertex(vertex, axis).place(dim, side));
            let (a, b) = (graph.insert(symbol(a)), graph.insert(symbol(b)));
            let difference = graph.subtract(a, b);
            squares.push(graph.multiply(difference, difference));
        }
        let square = tensor::sum(graph, squares);
        largest = graph.conditional(Comparison::Greater, [square, largest, square, largest]);
    }
    graph.math(MathFunction::Sqrt, largest)
}
