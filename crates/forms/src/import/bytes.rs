//! What the inputs of an imported form take in memory, before any of them is made.

use super::Imported;
use crate::grid::{dim_of_support, weights};
use crate::lowering::{LoweredKernel, LoweredRole};
use crate::tabulated::{IntegralType, TabulatedError};
use kingpost_capacity::check_memory;
use kingpost_fem::mesh::MeshCounts;

/// Copies of the arrays that are alive at once: as they are made, those of a kernel, what the
/// interpreter makes of them, and those of a device on the host.
const COPIES: u64 = 4;

/// Bytes of a number for degrees of freedom in the table by nodes, without the vertices that it is
/// known by, which take 16 bytes each.
const TABLE_ENTRY: u64 = 96;

/// Sizes of a space on a mesh.
struct SpaceSize {
    /// Degrees of freedom.
    dofs: u64,
    /// Bytes while they are numbered.
    table: u64,
}

/// The product of sizes, or the largest number.
fn product(sizes: impl IntoIterator<Item = u64>) -> u64 {
    sizes.into_iter().fold(1, u64::saturating_mul)
}

impl Imported {
    /// Whether all arrays of the form on a mesh can be numbered with 32 bits, and fit in the memory
    /// of this machine.
    ///
    /// # Errors
    /// [`TabulatedError::Mesh`], [`TabulatedError::Memory`].
    pub(super) fn check_inputs(&self, counts: &MeshCounts) -> Result<(), TabulatedError> {
        let mut spaces = Vec::new();
        for place in 0..self.form.spaces.len() {
            spaces.push(self.space_size(place, counts)?);
        }
        let (form, cells) = (&self.form, counts.cells);
        let refused = |what: String| {
            let needed = format!(
                "at most {}, which 32-bit maps can name; use fewer cells or a lower degree",
                i32::MAX
            );
            Err(TabulatedError::Mesh { found: what, needed })
        };
        let is_beyond = |n: u64| i32::try_from(n).is_err();
        if is_beyond(cells) {
            return refused(format!("{cells} cells"));
        }
        for (space, size) in form.spaces.iter().zip(&spaces) {
            let dofs = size.dofs.saturating_mul(space.block as u64);
            if is_beyond(dofs) {
                return refused(format!("about {dofs} degrees of freedom of the space `{}`", space.name));
            }
        }
        let mut arrays = counts.bytes();
        let mut tables = 0_u64;
        for (space, size) in form.spaces.iter().zip(&spaces) {
            let columns = (space.columns + space.transforms.len()) as u64;
            arrays = arrays.saturating_add(product([4, cells, columns]));
            // the cell and node of each degree of freedom stay until all arrays are made
            tables = tables.saturating_add(size.table).saturating_add(product([16, size.dofs]));
        }
        let number = self.number_bytes();
        for function in &form.functions {
            let block = form.spaces[function.space].block as u64;
            arrays = arrays.saturating_add(product([number, spaces[function.space].dofs, block]));
        }
        for kernel in &self.kernels {
            let (own, table) = self.kernel_size(kernel, counts, &spaces);
            arrays = arrays.saturating_add(own);
            tables = tables.saturating_add(table);
        }
        let needed = arrays.saturating_mul(COPIES).saturating_add(tables);
        check_memory("the arrays of the form", needed, "use fewer cells or a lower degree")?;
        Ok(())
    }

    /// Bytes of a number, or of a double where it is smaller: positions may be doubles.
    fn number_bytes(&self) -> u64 {
        self.form.scalar.ty().bytes().max(8)
    }

    fn space_size(&self, place: usize, counts: &MeshCounts) -> Result<SpaceSize, TabulatedError> {
        let Some(nodes) = self.nodes(place)? else {
            let dofs = counts.cells.saturating_mul(self.form.spaces[place].columns as u64);
            return Ok(SpaceSize { dofs, table: 0 });
        };
        let shape = counts.shape;
        let mut of_dims = vec![0_u64; shape.dim() + 1];
        for node in &nodes {
            // as nodes are told from each other when they are numbered
            let support = weights(shape, node).iter().filter(|w| w.abs() > 1e-6).count();
            of_dims[dim_of_support(shape, support)] += 1;
        }
        let (mut dofs, mut table) = (0_u64, 0_u64);
        for (dim, nodes) in of_dims.into_iter().enumerate().filter(|(_, nodes)| *nodes > 0) {
            let of_cell = shape.entities(dim).len() as u64;
            let all = counts.entities(dim).saturating_mul(nodes.div_ceil(of_cell));
            let support = if shape.is_simplex() { dim as u64 + 1 } else { 1 << dim };
            dofs = dofs.saturating_add(all);
            table = table.saturating_add(product([all, TABLE_ENTRY + 16 * support]));
        }
        Ok(SpaceSize { dofs, table })
    }

    /// Bytes of the arrays of a kernel, and of what they are made from.
    fn kernel_size(&self, kernel: &LoweredKernel, counts: &MeshCounts, spaces: &[SpaceSize]) -> (u64, u64) {
        let (form, cell) = (&self.form, counts.shape);
        let facets = counts.entities(cell.dim() - 1);
        let sides_of_cells = counts.cells.saturating_mul(cell.facets().len() as u64);
        // every facet of every cell by its vertices, sorted
        let keys = product([48, sides_of_cells]).saturating_add(product([64, facets]));
        let (entities, sides, table) = match kernel.over {
            IntegralType::Cell => (counts.cells, 1, 0),
            IntegralType::ExteriorFacet => (facets.saturating_mul(2).saturating_sub(sides_of_cells), 1, keys),
            IntegralType::InteriorFacet => (facets, 2, keys),
        };
        let mut arrays = product([12, entities, sides]);
        let mut matrices = 0_u64;
        for argument in &kernel.arguments {
            let output = match argument.role {
                LoweredRole::Output { output } | LoweredRole::Positions { output } => output,
                _ => continue,
            };
            if let Some(space) = kernel.result_space(form, output) {
                let block = form.spaces[space].block as u64;
                arrays = arrays.saturating_add(product([self.number_bytes(), spaces[space].dofs, block]));
                continue;
            }
            let extent =
                |space: &usize| (form.spaces[*space].columns * form.spaces[*space].block) as u64 * sides;
            let of_entity = product(form.outputs[output].spaces.iter().map(extent));
            arrays = arrays.saturating_add(product([self.number_bytes(), entities, of_entity]));
            matrices = matrices.saturating_add(product([16, entities, of_entity]));
        }
        (arrays, table.saturating_add(matrices))
    }
}
