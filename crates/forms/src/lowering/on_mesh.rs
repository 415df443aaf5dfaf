//! Forms on any spaces as kernels with the arrays of a mesh.

use super::numbered::{NumberedMesh, NumberedSpace, numbered_space};
use super::tabulate::Tabulated;
use super::{
    LoweredKernel, LoweredRole, LoweringOptions, MatrixResult, TabulatedOptions, Turns, lower_tabulated,
    tabulated_of,
};
use crate::array::Array;
use crate::form::{Coefficient, Constant, Form, FormError, FunctionSpace, Inputs, expand};
use crate::grid::Grid;
use crate::tabulated::{IntegralType, TabulatedForm};
use kingpost_fem::mesh::Mesh;
use kingpost_fem::numbering::{ComposedNumbering, NumberingOrder};
use kingpost_fem::sparse::{CsrPart, CsrPattern, longest_row};
use kingpost_interp::Value;
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// A form on any spaces, lowered, with what its arguments are on a mesh: a kernel for the integrals
/// over all cells, over the boundary, over the facets between cells, and over each part of them.
///
/// ```
/// use kingpost_fem::element::{CellShape, ElementFamily};
/// use kingpost_forms::form::*;
/// use kingpost_forms::lowering::{LoweringOptions, MeshForm};
/// use kingpost_fem::mesh::Mesh;
/// use kingpost_interp::interpret;
///
/// // the flux through the boundary of each cell
/// let cell = CellShape::Triangle;
/// let flux = coefficient("flux", &FunctionSpace::of(cell, ElementFamily::RaviartThomas, 1));
/// let form = div(flux) * test(&FunctionSpace::discontinuous(cell, 0)) * dx();
/// let form = MeshForm::new(&form, &LoweringOptions::new("outflow"))?;
///
/// let mesh = Mesh::unit_square(1)?; // two triangles, which share the edge of number 1
/// let through_one = Inputs::new().field("flux", vec![0.0, 1.0, 0.0, 0.0, 0.0]);
/// let mut memory = form.bind(0, &mesh, &through_one)?;
/// interpret(&form.kernels()[0].kernel, &mut memory)?;
/// let y = memory.f64s("y").unwrap_or_default();
/// assert!((y[0].abs() - 1.0).abs() < 1e-14 && (y[0] + y[1]).abs() < 1e-14);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A bilinear form becomes what [`LoweringOptions::with_matrix`] says: the entries of a sparse
/// matrix, whose rows and columns [`MeshForm::patterns`] gives, a matrix of each entity, or the
/// diagonal.
///
/// ```
/// use kingpost_fem::element::CellShape;
/// use kingpost_forms::form::*;
/// use kingpost_forms::lowering::{LoweringOptions, MatrixResult, MeshForm};
/// use kingpost_fem::mesh::Mesh;
/// use kingpost_interp::interpret;
///
/// let space = FunctionSpace::scalar(CellShape::Triangle, 1);
/// let stiffness = inner(grad(trial(&space)), grad(test(&space))) * dx();
/// let options = LoweringOptions::new("stiffness").with_matrix(MatrixResult::Cells);
/// let form = MeshForm::new(&stiffness, &options)?;
/// let mut memory = form.bind(0, &Mesh::unit_square(1)?, &Inputs::new())?;
/// interpret(&form.kernels()[0].kernel, &mut memory)?;
/// let first = &memory.f64s("y").unwrap_or_default()[..9]; // of the first triangle
/// assert!(first.iter().sum::<f64>().abs() < 1e-15 && (first[0] - 0.5).abs() < 1e-15);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct MeshForm {
    form: Form,
    pub(super) tabulated: TabulatedForm,
    kernels: Vec<LoweredKernel>,
    /// Of the tabulated form; that of the position is the first.
    pub(super) spaces: Vec<FunctionSpace>,
    /// Of the tabulated form, which has the position before them.
    pub(super) coefficients: Vec<Coefficient>,
    pub(super) constants: Vec<Constant>,
    pub(super) order: NumberingOrder,
}

/// The degrees of freedom of the rows and columns of a matrix to which kernels add.
pub struct MatrixMaps {
    /// Degrees of freedom of the rows and of the columns.
    pub sizes: [usize; 2],
    /// Components of each, which are rows and columns of the matrix.
    pub components: [usize; 2],
    /// By kernel, degrees of freedom of an entity and their numbers: of the rows and of the columns.
    pub parts: Vec<([usize; 2], [MatrixMap; 2])>,
}

/// The degrees of freedom of entities.
pub enum MatrixMap {
    /// Of all cells.
    All(NumberedSpace, Arc<ComposedNumbering>),
    /// Of those that a kernel lists.
    Listed(Vec<i32>),
}

impl MatrixMap {
    /// The numbers, `[entities, dofs]` row-major.
    #[must_use]
    pub fn values(&self) -> &[i32] {
        match self {
            Self::All(_, numbering) => numbering.dofs(),
            Self::Listed(numbers) => numbers,
        }
    }
}

impl MeshForm {
    /// Lowers a functional, a linear or a bilinear form.
    ///
    /// # Errors
    /// As [`tabulate`](super::tabulate) and [`lower_tabulated`].
    pub fn new(form: &Form, options: &LoweringOptions) -> Result<Self, FormError> {
        let (form, pulled, Tabulated { form: tabulated, spaces }) = tabulated_of(form, options)?;
        let is_turned = options.matrix.is_turned();
        let kernels = lower_tabulated(
            &tabulated,
            &TabulatedOptions {
                is_exact: is_turned && expand(&form)?.inexact().is_none(),
                matrix: options.matrix,
                vector: options.vector,
                cell_values: options.cell_values.clone(),
                ..TabulatedOptions::default()
            },
        )?;
        let coefficients = pulled.graph.coefficients().iter().map(|c| Coefficient::clone(c)).collect();
        let constants = pulled.graph.constants().iter().map(|c| Constant::clone(c)).collect();
        let order = NumberingOrder::FirstTouch;
        Ok(Self { form, tabulated, kernels, spaces, coefficients, constants, order })
    }

    /// The same kernels with degrees of freedom, rows and columns in another order than that of first
    /// touch; [`Inputs::in_order`] has to say the same.
    #[must_use]
    pub fn in_order(self, order: NumberingOrder) -> Self {
        Self { order, ..self }
    }

    /// The form with the measures that were used.
    #[must_use]
    pub const fn form(&self) -> &Form {
        &self.form
    }

    /// The form as tables and a scalar graph.
    #[must_use]
    pub const fn tabulated(&self) -> &TabulatedForm {
        &self.tabulated
    }

    /// The kernels, one for the integrals over the same part of the mesh, in the order in which
    /// the form has the parts first. Each adds to the result; matrices of entities are those of each
    /// kernel.
    #[must_use]
    pub fn kernels(&self) -> &[LoweredKernel] {
        &self.kernels
    }

    /// Name of the argument of a kernel that takes the result.
    #[must_use]
    pub fn output(&self, kernel: usize) -> &str {
        let is_output = |role: LoweredRole| matches!(role, LoweredRole::Output { .. });
        let arguments = self.kernels.get(kernel).map_or(&[][..], |k| &k.arguments);
        arguments.iter().find(|a| is_output(a.role)).map_or("y", |a| a.name.as_str())
    }

    /// Whether the result is the entries of a sparse matrix.
    #[must_use]
    pub fn is_sparse(&self) -> bool {
        self.tabulated.rank == 2 && self.kernels.iter().all(|k| k.matrix.is_sparse())
    }

    /// The pattern of the matrix of a bilinear form on a mesh, with the places of the matrices of
    /// each kernel's entities: the same rows and columns for all of them.
    ///
    /// # Errors
    /// As [`MeshForm::bind`]; a form that is not bilinear.
    pub fn patterns(&self, mesh: &Mesh) -> Result<Vec<CsrPattern>, FormError> {
        self.patterns_on(&NumberedMesh::new(mesh))
    }

    /// As [`MeshForm::patterns`], with the numberings that the mesh has.
    ///
    /// # Errors
    /// As [`MeshForm::patterns`].
    pub fn patterns_on(&self, on: &NumberedMesh<'_>) -> Result<Vec<CsrPattern>, FormError> {
        let refused = |e: &dyn std::fmt::Display| FormError::Discretisation(e.to_string());
        let MatrixMaps { sizes, components, parts } = self.matrix_maps(on)?;
        let parts: Vec<CsrPart<'_>> = parts
            .iter()
            .map(|(extents, [rows, columns])| CsrPart {
                extents: *extents,
                rows: rows.values(),
                columns: columns.values(),
            })
            .collect();
        let patterns = CsrPattern::of_components(sizes, components, &parts).map_err(|e| refused(&e))?;
        let is_half = self.kernels.iter().any(|kernel| kernel.matrix == MatrixResult::SymmetricHalf);
        let upper = |pattern: CsrPattern| match is_half {
            true => pattern.upper().map_err(|e| refused(&e)),
            false => Ok(pattern),
        };
        patterns.into_iter().map(upper).collect()
    }

    /// Components of a degree of freedom of the test and of the trial function; none of other forms
    /// than bilinear ones.
    #[must_use]
    pub fn components(&self) -> Option<[usize; 2]> {
        match self.tabulated.outputs.first().map(|o| &o.spaces[..]) {
            Some([test, trial]) => Some([*test, *trial].map(|space| self.tabulated.spaces[space].block)),
            Some(_) | None => None,
        }
    }

    /// The degrees of freedom of the rows and columns of each kernel's entities.
    ///
    /// # Errors
    /// As [`MeshForm::patterns`].
    pub fn matrix_maps(&self, on: &NumberedMesh<'_>) -> Result<MatrixMaps, FormError> {
        let refused = |e: &dyn std::fmt::Display| FormError::Discretisation(e.to_string());
        let (Some([test, trial]), Some(components)) =
            (self.tabulated.outputs.first().map(|o| &o.spaces[..]), self.components())
        else {
            let found = match self.tabulated.rank {
                0 => "a functional",
                _ => "a linear form",
            };
            return Err(refused(&format!("the pattern of a matrix: found {found}, needed a bilinear form")));
        };
        let spaces = [*test, *trial].map(|space| &self.spaces[space]);
        let numbered = |space: &FunctionSpace| -> Result<_, FormError> {
            Ok((numbered_space(space, self.order)?, on.numbering(space, self.order)?))
        };
        let numberings = [numbered(spaces[0])?, numbered(spaces[1])?];
        let mut parts = Vec::new();
        for kernel in &self.kernels {
            let entities =
                Grid::mesh(on.mesh()).entities(kernel.over, &kernel.subdomains).map_err(|e| refused(&e))?;
            let cells = cells_of(&entities);
            let maps = numberings.each_ref().map(|(space, numbering)| match cells {
                None => MatrixMap::All(space.clone(), Arc::clone(numbering)),
                Some(cells) => {
                    let of_cell = |cell: &i32| numbering.cell(*cell as usize);
                    MatrixMap::Listed(cells.par_iter().flat_map_iter(of_cell).copied().collect())
                }
            });
            parts.push((numberings.each_ref().map(|(_, n)| sides(kernel) * n.dofs_per_cell()), maps));
        }
        Ok(MatrixMaps { sizes: numberings.each_ref().map(|(_, n)| n.n_dofs()), components, parts })
    }

    /// The numbering of the test function's degrees of freedom: where the vectors of entities are added.
    ///
    /// # Errors
    /// A mesh that the test function's space has no numbering on; a functional.
    pub fn result_numbering(&self, on: &NumberedMesh<'_>) -> Result<Arc<ComposedNumbering>, FormError> {
        let test = self.tabulated.outputs.first().and_then(|o| o.spaces.first().copied());
        let test = test.ok_or_else(|| FormError::Discretisation("a functional has no map".into()))?;
        on.numbering(&self.spaces[test], self.order)
    }

    /// The degrees of freedom of a coefficient in each cell, of those on the mesh: what kernels take of
    /// [`with_cell_values`](LoweringOptions::with_cell_values).
    ///
    /// # Shapes and units
    /// `values` as in [`MeshForm::bind`]; the result is `[cells, columns, components]`.
    ///
    /// # Errors
    /// [`FormError::Missing`] for a name that no coefficient has, [`FormError::Length`], a mesh that the
    /// space has no numbering on.
    pub fn cell_values(&self, name: &str, mesh: &Mesh, values: &[f64]) -> Result<Vec<f64>, FormError> {
        let coefficient = self.coefficients.iter().find(|c| c.name == name).ok_or_else(|| {
            let known: Vec<String> = self.coefficients.iter().map(|c| format!("`{}`", c.name)).collect();
            FormError::Missing { name: name.into(), needed: format!("a coefficient: {}", known.join(", ")) }
        })?;
        let numbering = NumberedMesh::new(mesh).numbering(&coefficient.space, self.order)?;
        let inputs = Inputs::new().field(name, values.to_vec());
        let values = inputs.checked_field(coefficient, numbering.n_dofs())?;
        let components = values.len().checked_div(numbering.n_dofs()).unwrap_or(1);
        let of_dof = |dof: &i32| &values[*dof as usize * components..][..components];
        Ok(numbering.dofs().iter().flat_map(of_dof).copied().collect())
    }

    /// The longest rows of degrees of freedom at vertices, on edges, on faces and in cells, for
    /// [`OwnerCells::Turned`](super::OwnerCells::Turned).
    ///
    /// # Errors
    /// As [`MeshForm::owners`].
    pub fn longest_rows(&self, on: &NumberedMesh<'_>, pattern: &CsrPattern) -> Result<[usize; 4], FormError> {
        let owners = self.owners(on)?;
        let [block, _] = self.components().ok_or_else(|| {
            FormError::Discretisation("rows of a form that has no matrix: needed a bilinear form".into())
        })?;
        Ok(owners.map(|own| match own.is_empty() {
            true => 0,
            false => longest_row(&pattern.row_starts[block * own.start..=block * own.end]),
        }))
    }

    /// The degrees of freedom at vertices, on edges, on faces and in cells, of a form whose cells
    /// can be turned.
    ///
    /// # Errors
    /// As [`Turns::of`]; those of one dimension that do not follow each other.
    pub fn owners(&self, on: &NumberedMesh<'_>) -> Result<[Range<usize>; 4], FormError> {
        let dims = self.turns()?.dims;
        let numbering = self.result_numbering(on)?;
        let n_dofs = numbering.n_dofs();
        if dims.iter().all(|dim| *dim == 0) {
            return Ok([0..n_dofs, 0..0, 0..0, 0..0]);
        }
        let none = [[i32::MAX, -1]; 4];
        let joined = |a: [[i32; 2]; 4], b: [[i32; 2]; 4]| {
            [0, 1, 2, 3].map(|dim| [a[dim][0].min(b[dim][0]), a[dim][1].max(b[dim][1])])
        };
        let of_cells = numbering.dofs().par_chunks(dims.len().max(1)).fold(
            || none,
            |mut bounds, dofs| {
                for (dof, dim) in dofs.iter().zip(&dims) {
                    bounds[*dim] = [bounds[*dim][0].min(*dof), bounds[*dim][1].max(*dof)];
                }
                bounds
            },
        );
        let owners = of_cells.reduce(|| none, joined).map(|[first, last]| match last {
            -1 => 0..0,
            last => first as usize..last as usize + 1,
        });
        // numbers that are all taken once, in ranges that have as many in all, follow each other in
        // each
        if owners.iter().map(ExactSizeIterator::len).sum::<usize>() != n_dofs {
            let message = "assembly by the owners of rows on turned cells: found degrees of freedom of edges among \
                           those of vertices, needed those of one dimension in a row; number them by dimension, or \
                           use owned rows";
            return Err(FormError::Discretisation(message.into()));
        }
        Ok(owners)
    }

    /// How the cells of a degree of freedom are turned.
    ///
    /// # Errors
    /// As [`Turns::of`]; a form that is no matrix.
    pub fn turns(&self) -> Result<Turns, FormError> {
        match self.tabulated.outputs.first().map(|output| &output.spaces[..]) {
            Some([test, _]) => Turns::of(self.tabulated.cell, &self.tabulated.spaces[*test]),
            Some(_) | None => Err(FormError::Discretisation("a form that is no matrix has no owners".into())),
        }
    }

    /// Number of columns of the matrix of a bilinear form on a mesh; 0 of other forms.
    ///
    /// # Errors
    /// A mesh that the trial function's space has no numbering on.
    pub fn n_columns(&self, mesh: &Mesh) -> Result<usize, FormError> {
        match self.tabulated.outputs.first().map(|o| &o.spaces[..]) {
            Some([_, trial]) => {
                let numbering = NumberedMesh::new(mesh).numbering(&self.spaces[*trial], self.order)?;
                Ok(numbering.n_dofs() * self.tabulated.spaces[*trial].block)
            }
            Some(_) | None => Ok(0),
        }
    }

    pub(super) fn check_geometry(&self, mesh: &Mesh) -> Result<(), FormError> {
        let (found, needed) = (mesh.geometry_degree(), self.spaces[0].degree());
        if found != needed {
            return Err(FormError::Discretisation(format!(
                "the maps of the mesh's cells are of degree {found}, needed {needed}, for which the form was \
                 lowered; set `with_geometry_degree({found})` in its options"
            )));
        }
        let own = self.spaces[0].base().0.element().map_err(|e| FormError::Discretisation(e.to_string()))?;
        let theirs = mesh.geometry_element().map_err(|e| FormError::Discretisation(e.to_string()))?;
        if own != theirs.into() {
            let message = "the nodes of the mesh's cells are no equispaced Lagrange nodes, as Gmsh's are; \
                           interpolate them";
            return Err(FormError::Discretisation(message.into()));
        }
        Ok(())
    }
}

/// How many cells an entity of a kernel has.
pub(super) fn sides(kernel: &LoweredKernel) -> usize {
    match kernel.over {
        IntegralType::Cell | IntegralType::ExteriorFacet => 1,
        IntegralType::InteriorFacet => 2,
    }
}

/// The cells of the entities, both of an interior facet; none if entities are all cells.
pub(super) fn cells_of(entities: &BTreeMap<String, Array>) -> Option<&[i32]> {
    match entities.get("listed_cells").or(entities.get("facet_cells")).map(|a| &a.values) {
        Some(Value::I32(list)) => Some(list),
        Some(_) | None => None,
    }
}
