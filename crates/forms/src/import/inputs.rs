//! Inputs of an imported form on a mesh.

use super::{Array, Imported};
use crate::grid::{Grid, NodeKey};
use crate::lowering::{LoweredKernel, LoweredRole};
use crate::tabulated::{IntegralType, Role, Space, TabulatedError, Transform};
use kingpost_fem::element::CellShape;
use kingpost_fem::mesh::{Mesh, MeshCounts};
use kingpost_fem::numbering::NumberingOrder;
use kingpost_fem::sparse::{CsrPart, CsrPattern};
use kingpost_interp::Value;
use std::collections::BTreeMap;

/// Arrays of all arguments of a form on a mesh.
#[derive(Clone, Debug)]
pub struct MeshInputs {
    /// Arrays by the name of their argument; those of listed entities by kernel.
    pub arrays: BTreeMap<String, Array>,
    /// The entities of each kernel: its arrays besides [`MeshInputs::arrays`].
    pub entities: Vec<BTreeMap<String, Array>>,
    /// Number of cells.
    pub cells: usize,
    /// How each space is numbered, for people.
    pub numbering: String,
    /// The order of the numbers of all spaces but that of the position: by dimension only where cells share them.
    pub order: NumberingOrder,
}

impl MeshInputs {
    /// The arrays of a kernel.
    #[must_use]
    pub fn of(&self, kernel: usize) -> BTreeMap<String, Array> {
        let mut arrays = self.arrays.clone();
        arrays.extend(self.entities.get(kernel).cloned().unwrap_or_default());
        arrays
    }
}

/// The vertices of a reference cell.
fn vertices(cell: CellShape) -> Vec<Vec<f64>> {
    cell.vertices().chunks_exact(cell.dim()).map(<[f64]>::to_vec).collect()
}

/// A numbering of a space: the map, and a node of a cell for each number.
struct Numbered {
    map: Vec<i32>,
    nodes: Vec<(usize, usize)>,
    by_nodes: bool,
}

/// Degrees of freedom with the same node are one, if the space says its nodes; else each cell has
/// its own.
fn number(space: &Space, nodes: Option<&[Vec<f64>]>, grid: &Grid<'_>, order: NumberingOrder) -> Numbered {
    let cells = 0..grid.n_cells();
    let of_cell = |cell: usize| (0..space.columns).map(move |column| (cell, column));
    let Some(nodes) = nodes else {
        let own: Vec<(usize, usize)> = cells.flat_map(of_cell).collect();
        return Numbered { map: (0..own.len() as i32).collect(), nodes: own, by_nodes: false };
    };
    let key = grid.keys(nodes);
    let (mut map, mut first, mut dims) = (Vec::new(), Vec::new(), Vec::new());
    let mut numbers: BTreeMap<(NodeKey, usize), i32> = BTreeMap::new();
    for cell in cells {
        // several degrees of freedom may have one node
        let mut seen: BTreeMap<NodeKey, usize> = BTreeMap::new();
        for node in 0..nodes.len() {
            let key = key(cell, node);
            let dim = grid.dim_of(&key);
            let occurrence = seen.entry(key.clone()).or_insert(0);
            let next = numbers.len() as i32;
            let number = *numbers.entry((key, *occurrence)).or_insert(next);
            if number == next {
                first.push((cell, node));
                dims.push(dim);
            }
            *occurrence += 1;
            map.push(number);
        }
    }
    if order.is_by_dimension() {
        let (new, old) = by_dimension(&dims);
        map.iter_mut().for_each(|number| *number = new[*number as usize]);
        first = old.into_iter().map(|number| first[number]).collect();
    }
    Numbered { map, nodes: first, by_nodes: true }
}

/// The numbers that [`NumberingOrder::ByDimension`] gives for those by first touch, and the other way round.
fn by_dimension(dims: &[usize]) -> (Vec<i32>, Vec<usize>) {
    let mut old: Vec<usize> = (0..dims.len()).collect();
    // edges, faces, cells, vertices; the sort keeps the order of first touch among equals
    old.sort_by_key(|number| (dims[*number] + 3) % 4);
    let mut new = vec![0; dims.len()];
    old.iter().enumerate().for_each(|(place, number)| new[*number] = place as i32);
    (new, old)
}

impl Imported {
    /// Arrays of all arguments on the unit interval, square or cube with a given number of divisions a side,
    /// its points moved smoothly so that no two cells are alike. `random` draws from [-1, 1).
    ///
    /// Degrees of freedom are numbered by the points of a space's nodes, in the given order. Where a space has
    /// none each cell has its own, and in forms with interior facets, because nodes do not say whether a
    /// function jumps there. Entities are all those of their kind, whatever their subdomain.
    ///
    /// # Errors
    /// [`TabulatedError::Unsupported`] of pyramids, and if the space of the position has neither nodes nor
    /// one column a vertex; [`TabulatedError::UnitMesh`] and [`TabulatedError::Mesh`] of more
    /// divisions or degrees of freedom than 32 bits can number, [`TabulatedError::Memory`], all
    /// before anything is made.
    pub fn unit_inputs(
        &self,
        divisions: usize,
        order: NumberingOrder,
        random: &mut dyn FnMut() -> f64,
    ) -> Result<MeshInputs, TabulatedError> {
        let divisions = divisions.max(1);
        let cell = self.form.cell;
        if cell == CellShape::Pyramid {
            return Err(TabulatedError::Unsupported {
                place: "cell".into(),
                what: format!("a unit mesh of cells of a {cell}"),
                hint: "take a mesh of a file".into(),
            });
        }
        self.check_inputs(&MeshCounts::unit(cell, divisions)?)?;
        self.inputs(&Grid::lattice(cell, divisions, self.form.gdim), order, random)
    }

    /// Arrays of all arguments on a mesh, numbered as by [`Imported::unit_inputs`]. The entities of
    /// a subdomain are those whose tag is its number.
    ///
    /// # Errors
    /// [`TabulatedError::Mesh`] if the mesh has other cells than the form, more curved ones, or no
    /// entity of a subdomain; the others as for the unit mesh.
    pub fn mesh_inputs(
        &self,
        mesh: &Mesh,
        order: NumberingOrder,
        random: &mut dyn FnMut() -> f64,
    ) -> Result<MeshInputs, TabulatedError> {
        let form = &self.form;
        let refused = |found: String, needed: String| Err(TabulatedError::Mesh { found, needed });
        if form.cell != mesh.shape() {
            return refused(format!("cells of kind `{}`", mesh.shape()), format!("`{}`", form.cell));
        }
        let dim = form.cell.dim();
        if form.gdim != dim {
            let needed = format!("a mesh in {} dimensions, which Gmsh files cannot give", form.gdim);
            return refused(format!("cells in {dim} dimensions"), needed);
        }
        let (degree, columns) = (mesh.geometry_degree(), mesh.cell_nodes(0).len());
        let position = form.functions.iter().find(|f| f.role == Role::Coordinates);
        if let Some(position) = position.map(|f| &form.spaces[f.space])
            && position.columns < columns
        {
            let needed = format!(
                "at most {} nodes a cell, as the positions of the form have; export the form on such cells",
                position.columns
            );
            return refused(format!("cells of degree {degree}, of {columns} nodes each"), needed);
        }
        self.check_inputs(&MeshCounts::of(mesh))?;
        self.inputs(&Grid::mesh(mesh), order, random)
    }

    fn inputs(
        &self,
        grid: &Grid<'_>,
        order: NumberingOrder,
        random: &mut dyn FnMut() -> f64,
    ) -> Result<MeshInputs, TabulatedError> {
        let form = &self.form;
        let cells = grid.n_cells();
        let mut arrays = BTreeMap::new();
        let mut numbered = Vec::new();
        for (place, space) in form.spaces.iter().enumerate() {
            let n = number(space, self.nodes(place)?.as_deref(), grid, order);
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
        let ty = form.scalar.ty();
        let drawn = |n: usize, random: &mut dyn FnMut() -> f64| {
            Value::of_reals(ty, &(0..n * ty.parts()).map(|_| random()).collect::<Vec<f64>>())
        };
        for function in &form.functions {
            let (space, n) = (&form.spaces[function.space], &numbered[function.space]);
            let values = match function.role {
                Role::Coordinates => {
                    let nodes = self.nodes(function.space)?.unwrap_or_default();
                    let points: Vec<f64> = grid.points(&nodes, &n.nodes).into_iter().flatten().collect();
                    Value::of_reals(ty.part(), &points)
                }
                Role::Coefficient => drawn(n.nodes.len() * space.block, random),
            };
            let shape = if space.block == 1 { vec![n.nodes.len()] } else { vec![n.nodes.len(), space.block] };
            arrays.insert(function.argument_name().to_owned(), Array::new(shape, values));
        }
        for constant in &form.constants {
            let values = drawn(constant.size(), &mut || 1.0 + 0.5 * random());
            arrays.insert(constant.name.clone(), Array::new(constant.shape.clone(), values));
        }
        let of_kernel = |k: &LoweredKernel| self.of_kernel(k, grid, &numbered);
        let entities = self.kernels.iter().map(of_kernel).collect::<Result<_, _>>()?;
        let (order, numbering) = (self.order_of(&numbered, order), self.described(&numbered, order));
        Ok(MeshInputs { arrays, entities, cells, numbering, order })
    }

    /// The arrays that a kernel has for itself: its entities and results.
    fn of_kernel(
        &self,
        kernel: &LoweredKernel,
        grid: &Grid<'_>,
        numbered: &[Numbered],
    ) -> Result<BTreeMap<String, Array>, TabulatedError> {
        let form = &self.form;
        let mut arrays = grid.entities(kernel.over, &kernel.subdomains)?;
        for argument in &kernel.arguments {
            if let LoweredRole::Output { output } = argument.role
                && let Some(space) = kernel.result_space(form, output)
            {
                let (n, block) = (numbered[space].nodes.len(), form.spaces[space].block);
                let shape = if block == 1 { vec![n] } else { vec![n, block] };
                arrays.insert(
                    argument.name.clone(),
                    Array::new(shape, Value::zeros(self.form.scalar.ty(), n * block)),
                );
            }
            if let LoweredRole::Positions { output } = argument.role {
                let pattern = self.pattern(kernel.over, &arrays, output, numbered, grid.n_cells())?;
                let n = pattern.columns.len();
                arrays.insert(argument.name.clone(), Array::positions(&pattern));
                arrays.insert(
                    form.outputs[output].name.clone(),
                    Array::new([n], Value::zeros(self.form.scalar.ty(), n)),
                );
            }
        }
        Ok(arrays)
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
        let size = |space: usize| numbered[space].nodes.len() * self.form.spaces[space].block;
        let extent = |space: usize| sides * self.form.spaces[space].columns * self.form.spaces[space].block;
        let (rows, columns) = (numbers(*test), numbers(*trial));
        let part = CsrPart { extents: [extent(*test), extent(*trial)], rows: &rows, columns: &columns };
        Ok(CsrPattern::of_part([size(*test), size(*trial)], [1, 1], part)?)
    }

    /// The nodes of a space; those of the position are the vertices if nothing else is said.
    pub(super) fn nodes(&self, place: usize) -> Result<Option<Vec<Vec<f64>>>, TabulatedError> {
        let (form, space) = (&self.form, &self.form.spaces[place]);
        let is_position = form.functions.iter().any(|f| f.role == Role::Coordinates && f.space == place);
        let jumps = form.integrals.iter().any(|i| i.over == IntegralType::InteriorFacet);
        match &space.nodes {
            Some(_) if jumps && !is_position => Ok(None),
            Some(nodes) => Ok(Some(nodes.clone())),
            None if !is_position => Ok(None),
            None => {
                let straight = Some(form.cell).filter(|shape| shape.n_vertices() == space.columns);
                let unknown = || TabulatedError::Unsupported {
                    place: format!("spaces[{place}].nodes"),
                    what: "a mesh of curved cells without nodes".into(),
                    hint: "give the reference points of the columns as `nodes`".into(),
                };
                straight.map(|shape| Some(vertices(shape))).ok_or_else(unknown)
            }
        }
    }

    /// The order that numbers have which were asked for in one.
    fn order_of(&self, numbered: &[Numbered], order: NumberingOrder) -> NumberingOrder {
        let functions = self.form.functions.iter().filter(|f| f.role == Role::Coefficient);
        let results = self.form.outputs.iter().flat_map(|output| &output.spaces);
        let mut spaces = functions.map(|f| f.space).chain(results.copied());
        match order {
            // nodes do not say which entity of its cell each of them is on
            NumberingOrder::ByDimension | NumberingOrder::ByEntity | NumberingOrder::ByBlock
                if spaces.all(|space| numbered[space].by_nodes) =>
            {
                NumberingOrder::ByDimension
            }
            NumberingOrder::FirstTouch
            | NumberingOrder::ByDimension
            | NumberingOrder::ByEntity
            | NumberingOrder::ByBlock => NumberingOrder::FirstTouch,
        }
    }

    fn described(&self, numbered: &[Numbered], order: NumberingOrder) -> String {
        let by_nodes = match order {
            NumberingOrder::FirstTouch => "by nodes",
            NumberingOrder::ByDimension | NumberingOrder::ByEntity | NumberingOrder::ByBlock => {
                "by nodes and dimension"
            }
        };
        let names = |by_nodes: bool| -> Vec<String> {
            let spaces = self.form.spaces.iter().zip(numbered).filter(|(_, n)| n.by_nodes == by_nodes);
            spaces.map(|(s, _)| format!("`{}`", s.name)).collect()
        };
        match (names(true), names(false)) {
            (nodes, own) if own.is_empty() => format!("{} numbered {by_nodes}", nodes.join(", ")),
            (nodes, own) if nodes.is_empty() => format!("{} numbered cell by cell", own.join(", ")),
            (nodes, own) => {
                format!("{} numbered {by_nodes}, {} cell by cell", nodes.join(", "), own.join(", "))
            }
        }
    }
}

fn state_count(transform: &Transform) -> usize {
    transform.matrices.shape().first().copied().unwrap_or(1).max(1)
}
