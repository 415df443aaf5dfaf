//! Inputs of an imported form on a perturbed unit mesh.

use super::{Array, CsrPattern, Imported};
use crate::lowering::LoweredRole;
use crate::tabulated::{IntegralType, Precision, ReferenceCell, Role, Space, TabulatedError, Transform};
use purlin_interp::Value;
use std::collections::BTreeMap;

/// Arrays of all arguments of a form on a mesh.
#[derive(Clone, Debug)]
pub struct UnitInputs {
    /// Arrays by the name of their argument; those of listed entities by kernel.
    pub arrays: BTreeMap<String, Array>,
    /// The entities of each kernel: its arrays beside [`UnitInputs::arrays`].
    pub entities: Vec<BTreeMap<String, Array>>,
    /// Number of cells.
    pub cells: usize,
    /// How each space is numbered, for people.
    pub numbering: String,
}

impl UnitInputs {
    /// The arrays of a kernel.
    #[must_use]
    pub fn of(&self, kernel: usize) -> BTreeMap<String, Array> {
        let mut arrays = self.arrays.clone();
        arrays.extend(self.entities.get(kernel).cloned().unwrap_or_default());
        arrays
    }
}

/// A regular mesh of the unit interval, square or cube: vertices on a lattice.
struct Lattice {
    cell: ReferenceCell,
    /// Vertices of the cells, each a point of the lattice.
    cells: Vec<Vec<Vec<usize>>>,
    divisions: usize,
}

/// The orders in which axes may be walked.
fn orders(dim: usize) -> Vec<Vec<usize>> {
    match dim {
        1 => vec![vec![0]],
        2 => vec![vec![0, 1], vec![1, 0]],
        _ => vec![vec![0, 1, 2], vec![0, 2, 1], vec![1, 0, 2], vec![1, 2, 0], vec![2, 0, 1], vec![2, 1, 0]],
    }
}

impl Lattice {
    /// Simplices are those of Kuhn's subdivision: one a path along the axes.
    fn new(cell: ReferenceCell, divisions: usize) -> Self {
        let dim = cell.dim();
        let corner = |k: usize| -> Vec<usize> {
            (0..dim).map(|axis| k / divisions.pow(axis as u32) % divisions).collect()
        };
        let corners = (0..divisions.pow(dim as u32)).map(corner);
        let cells = match cell.is_simplex() {
            true => corners.flat_map(|c| orders(dim).into_iter().map(move |o| path(&c, &o))).collect(),
            false => corners.map(|c| block(&c)).collect(),
        };
        Self { cell, cells, divisions }
    }

    /// A point of a cell, in units of the lattice. All cells are affine, so that vertices at the
    /// ends of the reference axes say all.
    fn point(&self, cell: usize, reference: &[f64]) -> Vec<f64> {
        let vertices = &self.cells[cell];
        let mut point: Vec<f64> = vertices[0].iter().map(|v| *v as f64).collect();
        for (k, xi) in reference.iter().enumerate() {
            let end = &vertices[if self.cell.is_simplex() { k + 1 } else { 1 << k }];
            for (axis, p) in point.iter_mut().enumerate() {
                *p += xi * (end[axis] as f64 - vertices[0][axis] as f64);
            }
        }
        point
    }

    fn vertex_number(&self, vertex: &[usize]) -> usize {
        vertex.iter().rev().fold(0, |n, v| n * (self.divisions + 1) + v)
    }

    /// The cells and local numbers of all facets, by their vertices.
    fn facets(&self) -> Vec<Vec<(usize, usize)>> {
        let mut facets: BTreeMap<Vec<usize>, Vec<(usize, usize)>> = BTreeMap::new();
        for (c, vertices) in self.cells.iter().enumerate() {
            for (f, facet) in facet_vertices(self.cell).iter().enumerate() {
                let mut key: Vec<usize> = facet.iter().map(|v| self.vertex_number(&vertices[*v])).collect();
                key.sort_unstable();
                facets.entry(key).or_default().push((c, f));
            }
        }
        facets.into_values().collect()
    }

    /// The orientation of a facet in a cell: reflected + 2 * rotations.
    fn state(&self, cell: usize, facet: usize) -> i32 {
        let list = facet_vertices(self.cell)[facet];
        let v: Vec<usize> = list.iter().map(|k| self.vertex_number(&self.cells[cell][*k])).collect();
        // the vertices of a quadrilateral, around it
        let around = match v[..] {
            [a, b, c, d] => vec![a, b, d, c],
            _ => v,
        };
        let n = around.len();
        match n {
            0 | 1 => 0,
            2 => i32::from(around[0] > around[1]),
            _ => {
                let first = (0..n).min_by_key(|k| around[*k]).unwrap_or(0);
                let (before, after) = (around[(first + n - 1) % n], around[(first + 1) % n]);
                2 * first as i32 + i32::from(after > before)
            }
        }
    }
}

/// The vertices from a corner along the axes in an order.
fn path(corner: &[usize], order: &[usize]) -> Vec<Vec<usize>> {
    let mut vertices = vec![corner.to_vec()];
    for axis in order {
        let mut next = vertices[vertices.len() - 1].clone();
        next[*axis] += 1;
        vertices.push(next);
    }
    vertices
}

/// The vertices of a square or cube, the first axis fastest.
fn block(corner: &[usize]) -> Vec<Vec<usize>> {
    let vertex = |k: usize| corner.iter().enumerate().map(|(axis, c)| c + (k >> axis & 1)).collect();
    (0..1 << corner.len()).map(vertex).collect()
}

/// The vertices of the facets of a reference cell, as UFL and basix have them.
fn facet_vertices(cell: ReferenceCell) -> &'static [&'static [usize]] {
    match cell {
        ReferenceCell::Interval => &[&[0], &[1]],
        ReferenceCell::Triangle => &[&[1, 2], &[0, 2], &[0, 1]],
        ReferenceCell::Tetrahedron => &[&[1, 2, 3], &[0, 2, 3], &[0, 1, 3], &[0, 1, 2]],
        ReferenceCell::Quadrilateral => &[&[0, 1], &[0, 2], &[1, 3], &[2, 3]],
        ReferenceCell::Hexahedron => {
            &[&[0, 1, 2, 3], &[0, 1, 4, 5], &[0, 2, 4, 6], &[1, 3, 5, 7], &[2, 3, 6, 7], &[4, 5, 6, 7]]
        }
    }
}

/// The vertices of a reference cell.
fn vertices(cell: ReferenceCell) -> Vec<Vec<f64>> {
    let dim = cell.dim();
    let is_end = |k: usize, axis: usize| match cell.is_simplex() {
        true => k == axis + 1,
        false => k >> axis & 1 == 1,
    };
    let vertex = |k: usize| (0..dim).map(|axis| f64::from(u8::from(is_end(k, axis)))).collect();
    (0..cell.vertices()).map(vertex).collect()
}

/// A numbering of a space on a lattice: the map, and the point of each number.
struct Numbered {
    map: Vec<i32>,
    points: Vec<Vec<f64>>,
    by_nodes: bool,
}

/// Degrees of freedom with the same node are one, if the space says its nodes; else each cell has
/// its own.
fn number(space: &Space, nodes: Option<&[Vec<f64>]>, lattice: &Lattice) -> Numbered {
    let mut map = Vec::new();
    let mut points = Vec::new();
    let Some(nodes) = nodes else {
        let n = lattice.cells.len() * space.columns;
        return Numbered { map: (0..n as i32).collect(), points: vec![Vec::new(); n], by_nodes: false };
    };
    let mut numbers: BTreeMap<(Vec<i64>, usize), i32> = BTreeMap::new();
    for cell in 0..lattice.cells.len() {
        let mut seen: BTreeMap<Vec<i64>, usize> = BTreeMap::new();
        for node in nodes {
            let point = lattice.point(cell, node);
            // nodes of one lattice are further apart than 2^-20 of a cell, roundings far closer
            let key: Vec<i64> = point.iter().map(|p| (p * f64::from(1 << 20)).round() as i64).collect();
            let occurrence = seen.entry(key.clone()).or_insert(0);
            let next = numbers.len() as i32;
            let number = *numbers.entry((key, *occurrence)).or_insert(next);
            if number == next {
                points.push(point);
            }
            *occurrence += 1;
            map.push(number);
        }
    }
    Numbered { map, points, by_nodes: true }
}

impl Imported {
    /// Arrays of all arguments on the unit interval, square or cube with so many divisions a side,
    /// its points moved smoothly so that no two cells are alike. `random` draws from [-1, 1).
    ///
    /// Degrees of freedom are numbered by the points of a space's nodes. Where a space has none each
    /// cell has its own, and in forms with interior facets, because nodes do not say whether a
    /// function jumps there. Entities are all those of their kind, whatever their subdomain.
    ///
    /// # Errors
    /// [`TabulatedError::Unsupported`] if the space of the position has neither nodes nor one column
    /// a vertex.
    pub fn unit_inputs(
        &self,
        divisions: usize,
        random: &mut dyn FnMut() -> f64,
    ) -> Result<UnitInputs, TabulatedError> {
        let form = &self.form;
        let lattice = Lattice::new(form.cell, divisions.max(1));
        let cells = lattice.cells.len();
        let mut arrays = BTreeMap::new();
        let mut numbered = Vec::new();
        for (place, space) in form.spaces.iter().enumerate() {
            let n = number(space, self.nodes(place)?.as_deref(), &lattice);
            arrays.insert(space.map_name(), Array::new([cells, space.columns], n.map.clone()));
            if !space.transforms.is_empty() {
                let mut states: Vec<i32> = Vec::new();
                for transform in (0..cells).flat_map(|_| &space.transforms) {
                    let n = state_count(transform);
                    states.push((((random() + 1.0) / 2.0 * n as f64) as usize % n) as i32);
                }
                arrays.insert(space.states_name(), Array::new([cells, space.transforms.len()], states));
            }
            numbered.push(n);
        }
        for function in &form.functions {
            let (space, n) = (&form.spaces[function.space], &numbered[function.space]);
            let values: Vec<f64> = match function.role {
                Role::Coordinates => {
                    n.points.iter().flat_map(|p| position(p, divisions, form.gdim)).collect()
                }
                Role::Coefficient => (0..n.points.len() * space.block).map(|_| random()).collect(),
            };
            let shape =
                if space.block == 1 { vec![n.points.len()] } else { vec![n.points.len(), space.block] };
            arrays.insert(function.argument_name().to_owned(), self.reals(shape, values));
        }
        for constant in &form.constants {
            let values = (0..constant.size()).map(|_| 1.0 + 0.5 * random()).collect();
            arrays.insert(constant.name.clone(), self.reals(constant.shape.clone(), values));
        }
        let mut entities: Vec<BTreeMap<String, Array>> =
            self.kernels.iter().map(|k| entities(&lattice, k.over, !k.subdomains.is_empty())).collect();
        for (kernel, arrays) in self.kernels.iter().zip(&mut entities) {
            for argument in &kernel.arguments {
                if let LoweredRole::Output { output } = argument.role
                    && let Some(space) = kernel.result_space(form, output)
                {
                    let (n, block) = (numbered[space].points.len(), form.spaces[space].block);
                    let shape = if block == 1 { vec![n] } else { vec![n, block] };
                    arrays.insert(argument.name.clone(), self.reals(shape, vec![0.0; n * block]));
                }
                if let LoweredRole::Positions { output } = argument.role {
                    let pattern = self.pattern(kernel.over, arrays, output, &numbered, cells)?;
                    let n = pattern.columns.len();
                    arrays.insert(argument.name.clone(), pattern.positions_array());
                    arrays.insert(form.outputs[output].name.clone(), self.reals(vec![n], vec![0.0; n]));
                }
            }
        }
        let numbering = self.described(&numbered);
        Ok(UnitInputs { arrays, entities, cells, numbering })
    }

    /// The pattern of the matrix that a kernel adds to.
    fn pattern(
        &self,
        over: IntegralType,
        entities: &BTreeMap<String, Array>,
        output: usize,
        numbered: &[Numbered],
        cells: usize,
    ) -> Result<CsrPattern, TabulatedError> {
        let name = if over == IntegralType::Cell { "listed_cells" } else { "facet_cells" };
        let of_entities: Vec<usize> = match entities.get(name).map(|a| &a.values) {
            Some(Value::I32(list)) => list.iter().map(|c| *c as usize).collect(),
            Some(_) | None => (0..cells).collect(),
        };
        let sides = if over == IntegralType::InteriorFacet { 2 } else { 1 };
        let numbers = |space: usize| -> Vec<i32> {
            let (n, block) = (self.form.spaces[space].columns, self.form.spaces[space].block as i32);
            let dofs = of_entities.iter().flat_map(|c| &numbered[space].map[c * n..(c + 1) * n]);
            dofs.flat_map(|d| (0..block).map(move |c| d * block + c)).collect()
        };
        let Some([test, trial]) = self.form.outputs.get(output).map(|o| &o.spaces[..]) else {
            return Err(TabulatedError::invalid("output", output, "the place of a bilinear form"));
        };
        let size = |space: usize| numbered[space].points.len() * self.form.spaces[space].block;
        let extent = |space: usize| sides * self.form.spaces[space].columns * self.form.spaces[space].block;
        let (rows, columns) = (numbers(*test), numbers(*trial));
        CsrPattern::of_rows(size(*test), size(*trial), extent(*test), extent(*trial), &rows, &columns)
    }

    /// The nodes of a space; those of the position are the vertices if nothing else is said.
    fn nodes(&self, place: usize) -> Result<Option<Vec<Vec<f64>>>, TabulatedError> {
        let (form, space) = (&self.form, &self.form.spaces[place]);
        let is_position = form.functions.iter().any(|f| f.role == Role::Coordinates && f.space == place);
        let jumps = form.integrals.iter().any(|i| i.over == IntegralType::InteriorFacet);
        match &space.nodes {
            Some(_) if jumps && !is_position => Ok(None),
            Some(nodes) => Ok(Some(nodes.clone())),
            None if !is_position => Ok(None),
            None if space.columns == form.cell.vertices() => Ok(Some(vertices(form.cell))),
            None => Err(TabulatedError::Unsupported {
                place: format!("spaces[{place}].nodes"),
                what: "a mesh of curved cells without nodes".into(),
                hint: "give the reference points of the columns as `nodes`".into(),
            }),
        }
    }

    fn reals(&self, shape: Vec<usize>, values: Vec<f64>) -> Array {
        match self.form.scalar {
            Precision::F64 => Array::new(shape, values),
            Precision::F32 => Array::new(shape, values.into_iter().map(|v| v as f32).collect::<Vec<f32>>()),
        }
    }

    fn described(&self, numbered: &[Numbered]) -> String {
        let names = |by_nodes: bool| -> Vec<String> {
            let spaces = self.form.spaces.iter().zip(numbered).filter(|(_, n)| n.by_nodes == by_nodes);
            spaces.map(|(s, _)| format!("`{}`", s.name)).collect()
        };
        match (names(true), names(false)) {
            (nodes, own) if own.is_empty() => format!("{} numbered by nodes", nodes.join(", ")),
            (nodes, own) if nodes.is_empty() => format!("{} numbered cell by cell", own.join(", ")),
            (nodes, own) => {
                format!("{} numbered by nodes, {} cell by cell", nodes.join(", "), own.join(", "))
            }
        }
    }
}

fn state_count(transform: &Transform) -> usize {
    transform.matrices.shape().first().copied().unwrap_or(1).max(1)
}

/// A point of the lattice in space: moved by less than a tenth of a cell, and curved out of the
/// plane where space has more dimensions than cells.
fn position(point: &[f64], divisions: usize, gdim: usize) -> Vec<f64> {
    let n = divisions as f64;
    let wave: f64 = point.iter().enumerate().map(|(axis, p)| (1.7 + axis as f64) * p + 0.3).sum();
    let moved = point.iter().enumerate().map(|(axis, p)| (p + 0.04 * (wave + axis as f64).sin()) / n);
    let out = (point.len()..gdim).map(|axis| 0.2 / n * (0.8 * wave + axis as f64).cos());
    moved.chain(out).take(gdim).collect()
}

/// The arrays of the entities of a kernel.
fn entities(lattice: &Lattice, over: IntegralType, listed: bool) -> BTreeMap<String, Array> {
    let sides = match over {
        IntegralType::Cell => {
            let cells: Vec<i32> = (0..lattice.cells.len() as i32).collect();
            let list = listed.then(|| ("listed_cells".to_owned(), Array::new([cells.len()], cells)));
            return list.into_iter().collect();
        }
        IntegralType::ExteriorFacet => 1,
        IntegralType::InteriorFacet => 2,
    };
    let facets: Vec<Vec<(usize, usize)>> =
        lattice.facets().into_iter().filter(|cells| cells.len() == sides).collect();
    let shape = if sides == 1 { vec![facets.len()] } else { vec![facets.len(), 2] };
    let list = |value: &dyn Fn(usize, usize) -> i32| {
        let values: Vec<i32> = facets.iter().flatten().map(|(c, f)| value(*c, *f)).collect();
        Array { shape: shape.clone(), values: Value::from(values) }
    };
    let mut arrays = BTreeMap::new();
    arrays.insert("facet_cells".to_owned(), list(&|c, _| c as i32));
    arrays.insert("local_facets".to_owned(), list(&|_, f| f as i32));
    if sides == 2 {
        arrays.insert("facet_states".to_owned(), list(&|c, f| lattice.state(c, f)));
    }
    arrays
}
