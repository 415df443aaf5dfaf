//! The pattern of the matrix of a form, as its device finds it, and what kernels read of it.

use crate::pattern::steps;
use crate::texts::{compiled, text};
use crate::{Arrays, Call, DevicePattern, PatternKernels, SolveError, run};
use kingpost_fem::mesh::Mesh;
use kingpost_fem::numbering::ComposedNumbering;
use kingpost_fem::sparse::{CsrPattern, SLICE, Slices, SlotPacking};
use kingpost_forms::form::FormError;
use kingpost_forms::lowering::{
    BoundKernel, LoweredRole, MatrixMap, MatrixResult, MeshArray, MeshForm, NumberedSpace, OwnerCells,
    RowOwners, SparseCount, SparseList,
};
use kingpost_runtime::{Backend, Buffer, Device, RuntimeError, buffer_of, download_values};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// The pattern of a form's matrix, of which a device has found the rows and the places of entities.
///
/// The host knows the rows, and no entity: these stay on the device. Of scalars it knows where rows start, and columns
/// [when it reads them](FoundPattern::read_columns).
pub struct FoundPattern {
    rows: [CsrPattern; 1],
    blocks: DevicePattern,
    components: [usize; 2],
    n_entities: usize,
    extents: [usize; 2],
    /// The degree of freedom of each of an entity's rows.
    rows_of: Arc<Buffer>,
    /// Where the entry on the diagonal of each row stands, once something asks for it.
    diagonal: OnceLock<Arc<Buffer>>,
}

/// The patterns of a matrix, one a kernel: of the host, or one that a device has found.
#[derive(Clone, Copy)]
pub struct Patterns<'p> {
    /// By kernel; one that was found has no entities, and of scalars no columns unless they were read.
    pub rows: &'p [CsrPattern],
    found: Option<&'p FoundPattern>,
}

impl<'p> From<&'p [CsrPattern]> for Patterns<'p> {
    fn from(rows: &'p [CsrPattern]) -> Self {
        Self { rows, found: None }
    }
}

impl<'p> From<&'p Vec<CsrPattern>> for Patterns<'p> {
    fn from(rows: &'p Vec<CsrPattern>) -> Self {
        Self { rows, found: None }
    }
}

impl<'p, const N: usize> From<&'p [CsrPattern; N]> for Patterns<'p> {
    fn from(rows: &'p [CsrPattern; N]) -> Self {
        Self { rows, found: None }
    }
}

impl<'p> From<&'p FoundPattern> for Patterns<'p> {
    fn from(found: &'p FoundPattern) -> Self {
        Self { rows: &found.rows, found: Some(found) }
    }
}

/// The patterns of the matrix of a form, found where that is fastest: on a card, or else on the host.
pub struct FormPatterns {
    of_host: Vec<CsrPattern>,
    found: Option<FoundPattern>,
}

impl FormPatterns {
    /// The patterns of a form on a mesh, for kernels that were lowered to a `matrix`.
    ///
    /// # Errors
    /// As [`FoundPattern::find`].
    pub fn new<'m>(
        device: &dyn Device,
        form: &MeshForm,
        mesh: &'m Mesh,
        matrix: MatrixResult,
        arrays: &mut Arrays<'m>,
    ) -> Result<Self, SolveError> {
        let found = match device.info().backend {
            Backend::Cuda => FoundPattern::find(device, form, mesh, matrix, arrays)?,
            // a processor sorts faster by threads of the host
            Backend::C | Backend::OpenCl => None,
        };
        let of_host = if found.is_some() { Vec::new() } else { form.patterns_on(&arrays.numbered(mesh))? };
        Ok(Self { of_host, found })
    }

    /// By kernel, with what the device knows.
    #[must_use]
    pub fn all(&self) -> Patterns<'_> {
        self.found.as_ref().map_or_else(|| Patterns::from(&self.of_host), Patterns::from)
    }

    /// Copies the columns of one that the device has found to the host.
    ///
    /// # Errors
    /// As [`FoundPattern::read_columns`].
    pub fn read_columns(&mut self, device: &dyn Device) -> Result<(), SolveError> {
        self.found.as_mut().map_or(Ok(()), |found| found.read_columns(device))
    }

    /// The one that the device has found.
    #[must_use]
    pub const fn found(&self) -> Option<&FoundPattern> {
        self.found.as_ref()
    }
}

impl Patterns<'_> {
    /// What the device has for a kernel to which a form was lowered, if it found the pattern.
    ///
    /// # Errors
    /// A kernel that reads what the device does not find; no memory, a failing driver.
    pub(crate) fn places<'m>(
        &self,
        device: &dyn Device,
        (form, matrix): (&MeshForm, MatrixResult),
        mesh: &'m Mesh,
        arrays: &mut Arrays<'m>,
    ) -> Result<Option<Places>, SolveError> {
        self.found.map(|found| found.places(device, (form, matrix), mesh, arrays)).transpose()
    }
}

/// What a kernel reads of a pattern, on the device.
pub(crate) enum Places {
    /// Where each entry of an entity's matrix stands.
    Lookup(Arc<Buffer>),
    Owned(Pairs),
}

/// The pairs of degrees of freedom and entities, as [`OwnedRows`](kingpost_fem::sparse::OwnedRows) has them.
pub(crate) struct Pairs {
    n_owners: usize,
    n_pairs: usize,
    firsts: Arc<Buffer>,
    counts: Arc<Buffer>,
    entities: Arc<Buffer>,
    rows: Arc<Buffer>,
    slots: Arc<Buffer>,
    /// The columns of all rows, if these are of scalars.
    columns: Option<Arc<Buffer>>,
    /// Where cells are turned: owners by dimension, and the positions of vertices in their order.
    turned: Option<([Range<usize>; 4], Arc<Buffer>)>,
}

/// What the device has for an argument.
pub(crate) enum Found {
    Count(usize),
    Array(Arc<Buffer>),
}

impl Places {
    /// What an argument of a kernel gets, if the device has found it.
    pub(crate) fn of(&self, bound: &BoundKernel<'_>, name: &str) -> Option<Found> {
        let role = bound.role(name)?;
        let array = |buffer: &Arc<Buffer>| Some(Found::Array(Arc::clone(buffer)));
        match (self, role) {
            (Self::Lookup(positions), LoweredRole::Positions { .. }) => array(positions),
            (Self::Owned(pairs), LoweredRole::EntityCount) => Some(Found::Count(pairs.n_pairs)),
            (Self::Owned(pairs), LoweredRole::EntityCells) => array(&pairs.entities),
            (Self::Owned(pairs), LoweredRole::SparseList { list, .. }) => match list {
                SparseList::PairRows => array(&pairs.rows),
                SparseList::PairFirsts => array(&pairs.firsts),
                SparseList::PairCounts => array(&pairs.counts),
                SparseList::Slots => array(&pairs.slots),
                SparseList::Columns => pairs.columns.as_ref().and_then(array),
                SparseList::RowStarts | SparseList::EntityRows | SparseList::EntityColumns => None,
            },
            (Self::Owned(pairs), LoweredRole::SparseCount { count, .. }) => {
                let owners = |dim: usize| pairs.turned.as_ref().and_then(|(owners, _)| owners.get(dim));
                match count {
                    SparseCount::Owners => Some(Found::Count(pairs.n_owners)),
                    SparseCount::FirstOf { dim } => owners(dim).map(|own| Found::Count(own.start)),
                    SparseCount::OwnersOf { dim } => owners(dim).map(|own| Found::Count(own.len())),
                    SparseCount::Rows | SparseCount::SearchSteps => None,
                }
            }
            (Self::Owned(pairs), LoweredRole::VertexPoints) => {
                pairs.turned.as_ref().and_then(|(_, points)| array(points))
            }
            (Self::Lookup(_) | Self::Owned(_), _) => None,
        }
    }
}

/// Whether a device finds what the kernel of a form reads.
const fn is_found(matrix: MatrixResult) -> bool {
    match matrix {
        MatrixResult::Sparse => true,
        MatrixResult::OwnedRows(owners) => !matches!(owners.cells, OwnerCells::Strips),
        MatrixResult::Cells
        | MatrixResult::Searched
        | MatrixResult::SymmetricHalf
        | MatrixResult::Coloured
        | MatrixResult::Rowwise
        | MatrixResult::Diagonal => false,
    }
}

impl FoundPattern {
    /// The pattern of the matrix of a form on a mesh, whose maps go to the device once, for kernels that
    /// were lowered to a lookup table or to owned rows. None of other ones, of a form that adds to its
    /// matrix by several kernels or on a part of the cells, and where 32 bits or the memory of the device do
    /// not suffice for the lists that are sorted: the host takes these.
    ///
    /// # Errors
    /// As [`MeshForm::patterns`]; a failing driver.
    pub fn find<'m>(
        device: &dyn Device,
        form: &MeshForm,
        mesh: &'m Mesh,
        matrix: MatrixResult,
        arrays: &mut Arrays<'m>,
    ) -> Result<Option<Self>, SolveError> {
        let on = arrays.numbered(mesh);
        let maps = form.matrix_maps(&on)?;
        let [(extents, [MatrixMap::All(of_rows, rows), MatrixMap::All(of_columns, columns)])] =
            &maps.parts[..]
        else {
            return Ok(None);
        };
        let (sizes, components, n_entities) = (maps.sizes, maps.components, mesh.n_cells());
        if !is_found(matrix) || n_entities == 0 || extents.contains(&0) {
            return Ok(None);
        }
        let mut find = || -> Result<Self, SolveError> {
            let mut map = |space: &NumberedSpace, numbering: &ComposedNumbering| {
                arrays.of_mesh(device, mesh, MeshArray::Map(space.clone()), || numbering.dofs())
            };
            let (rows_of, columns_of) = (map(of_rows, rows)?, map(of_columns, columns)?);
            let kernels = PatternKernels::new(device)?;
            let terms = match arrays.take_terms(mesh, of_rows) {
                Some(terms) => terms,
                None => kernels.terms(device, (&rows_of, sizes[0]), n_entities, extents[0])?,
            };
            let maps = (*extents, [&*rows_of, &*columns_of], terms);
            let mut blocks = kernels.find_from(device, sizes, n_entities, maps)?;
            let starts = std::mem::take(&mut blocks.starts);
            let at = match components {
                [1, 1] => Vec::new(),
                _ => download_values(device, &blocks.columns)?,
            };
            let rows = [CsrPattern::of_block_rows(starts, at, components)];
            let diagonal = OnceLock::new();
            Ok(Self { rows, blocks, components, n_entities, extents: *extents, rows_of, diagonal })
        };
        match find() {
            Ok(found) if i32::try_from(found.blocks.entries * components[0] * components[1]).is_ok() => {
                Ok(Some(found))
            }
            // 32 bits do not count the numbers, of which the host says how many there are
            Ok(_) | Err(SolveError::Form(FormError::Discretisation(_))) => Ok(None),
            Err(SolveError::Runtime(RuntimeError::Allocation { .. })) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The rows of the matrix; those of scalars without columns, unless they were read.
    #[must_use]
    pub const fn rows(&self) -> &CsrPattern {
        &self.rows[0]
    }

    /// The rows on the device, if they are those of scalars: their starts and their columns.
    #[must_use]
    pub fn on_device(&self) -> Option<[Arc<Buffer>; 2]> {
        let lists = || [&self.blocks.row_starts, &self.blocks.columns].map(Arc::clone);
        (self.components == [1, 1]).then(lists)
    }

    /// Copies the columns of all rows to the host, if it has none.
    ///
    /// # Errors
    /// No memory, a failing driver.
    pub fn read_columns(&mut self, device: &dyn Device) -> Result<(), SolveError> {
        if self.components == [1, 1] && self.rows[0].columns.is_empty() {
            self.rows[0].columns = download_values(device, &self.blocks.columns)?;
        }
        Ok(())
    }

    /// Where the entry on the diagonal of each row of scalars stands, on the device.
    ///
    /// # Errors
    /// [`SolveError::NoDiagonal`]; no memory, a failing driver.
    pub(crate) fn diagonal(&self, device: &dyn Device) -> Result<Arc<Buffer>, SolveError> {
        if let Some(known) = self.diagonal.get() {
            return Ok(Arc::clone(known));
        }
        let (n, n_entries) = (self.blocks.rows, self.blocks.entries);
        if n_entries == 0 && n > 0 {
            return Err(SolveError::NoDiagonal { row: 0 });
        }
        let integers = |n: usize| device.allocate(4 * n as u64);
        let [diagonal, missing, before] = [integers(n)?, integers(n + 1)?, integers(n + 1)?];
        device.fill(&missing, 0)?;
        let kernel = compiled(device, text!("diagonal_places"))?;
        let longest = self.rows[0].longest_row();
        let sizes = [("n", n), ("n_entries", n_entries), ("steps", steps(longest))];
        let arrays: [(&str, &Buffer); 4] = [
            ("row_starts", &self.blocks.row_starts),
            ("columns", &self.blocks.columns),
            ("diagonal", &diagonal),
            ("missing", &missing),
        ];
        run(device, &[Call::of(&kernel, &sizes, &arrays)])?;
        if PatternKernels::new(device)?.add_up(device, &missing, n + 1, &before)?.0 > 0 {
            let places: Vec<i32> = download_values(device, &diagonal)?;
            let row = places.iter().position(|place| *place < 0);
            return row.map_or_else(
                || Err(FormError::Bug("a diagonal that is missing nowhere".into()).into()),
                |row| Err(SolveError::NoDiagonal { row }),
            );
        }
        Ok(Arc::clone(self.diagonal.get_or_init(|| Arc::new(diagonal))))
    }

    fn places<'m>(
        &self,
        device: &dyn Device,
        (form, matrix): (&MeshForm, MatrixResult),
        mesh: &'m Mesh,
        arrays: &mut Arrays<'m>,
    ) -> Result<Places, SolveError> {
        if matrix == MatrixResult::Sparse {
            return Ok(Places::Lookup(self.lookup(device)?));
        }
        let packing = matrix.packing().ok_or(SolveError::Assembly)?;
        if !matches!(matrix, MatrixResult::OwnedRows(RowOwners { cells: OwnerCells::Turned, .. })) {
            let as_they_are = vec![(0..self.extents[1] as u32).collect(); self.extents[0]];
            return Ok(Places::Owned(self.pairs(device, packing, &as_they_are)?));
        }
        let owners = form.owners(&arrays.numbered(mesh))?;
        let points = self.vertex_points(device, owners[0].clone(), mesh, arrays)?;
        let pairs = self.pairs(device, packing, &form.turns()?.columns)?;
        Ok(Places::Owned(Pairs { turned: Some((owners, points)), ..pairs }))
    }

    /// The positions of vertices, of which these are the degrees of freedom, in the order of these.
    fn vertex_points<'m>(
        &self,
        device: &dyn Device,
        vertices: Range<usize>,
        mesh: &'m Mesh,
        arrays: &mut Arrays<'m>,
    ) -> Result<Arc<Buffer>, SolveError> {
        let cells = arrays.uploaded(mesh, MeshArray::Cells, || buffer_of(device, mesh.all_cell_nodes()))?;
        let nodes = arrays.uploaded(mesh, MeshArray::Nodes, || buffer_of(device, mesh.nodes()))?;
        let (dim, n_nodes) = (mesh.shape().dim(), mesh.n_vertices());
        let points = device.allocate(8 * mesh.nodes().len() as u64)?;
        let kernel = compiled(device, text!("vertex_points"))?;
        let sizes = [
            ("n", self.blocks.rows),
            ("n_points", vertices.len()),
            ("first", vertices.start),
            ("n_items", self.n_entities * self.extents[0]),
            ("n_entities", self.n_entities),
            ("height", mesh.shape().n_vertices()),
            ("n_nodes", n_nodes),
            ("dim", dim),
        ];
        let arrays: [(&str, &Buffer); 6] = [
            ("starts", &self.blocks.term_starts),
            ("term_entities", &self.blocks.term_entities),
            ("term_rows", &self.blocks.term_rows),
            ("cells", &cells),
            ("nodes", &nodes),
            ("points", &points),
        ];
        run(device, &[Call::of(&kernel, &sizes, &arrays)])?;
        Ok(Arc::new(points))
    }

    /// Where each entry of an entity's matrix stands.
    fn lookup(&self, device: &dyn Device) -> Result<Arc<Buffer>, SolveError> {
        let ([height, width], [high, wide]) = (self.extents, self.components);
        if [high, wide] == [1, 1] {
            return Ok(Arc::clone(&self.blocks.positions));
        }
        let kernel = compiled(device, text!("places_of_components"))?;
        let places = device.allocate(4 * (self.n_entities * height * high * width * wide) as u64)?;
        let sizes = [("n", self.blocks.rows), ("n_entities", self.n_entities), ("height", height)];
        let sizes = [&sizes[..], &[("width", width), ("high", high), ("wide", wide)]].concat();
        let arrays: [(&str, &Buffer); 4] = [
            ("rows_of", &self.rows_of),
            ("row_starts", &self.blocks.row_starts),
            ("blocks", &self.blocks.positions),
            ("places", &places),
        ];
        run(device, &[Call::of(&kernel, &sizes, &arrays)])?;
        Ok(Arc::new(places))
    }

    /// The pairs of degrees of freedom and entities, whose columns stand in the order of `turns`.
    fn pairs(
        &self,
        device: &dyn Device,
        packing: SlotPacking,
        turns: &[Vec<u32>],
    ) -> Result<Pairs, SolveError> {
        let refused = |e: kingpost_fem::sparse::PatternError| FormError::Discretisation(e.to_string());
        let starts: Vec<i32> = download_values(device, &self.blocks.term_starts)?;
        let Slices { firsts, counts, n_pairs } = Slices::of(&starts).map_err(refused)?;
        let slices: Vec<i32> = firsts.iter().step_by(SLICE).copied().collect();
        let ([height, width], words) = (self.extents, packing.words(self.extents[1]));
        let [entities, rows] = [device.allocate(4 * n_pairs as u64)?, device.allocate(4 * n_pairs as u64)?];
        let slots = device.allocate(4 * (words * n_pairs) as u64)?;
        let of_slices = buffer_of(device, &slices)?;
        let turns = buffer_of(device, &turns.concat())?;
        let kernel = compiled(device, text!("own_pairs"))?;
        let sizes = [
            ("n", self.blocks.rows),
            ("n_pairs", n_pairs),
            ("n_slices", slices.len()),
            ("n_items", self.n_entities * height),
            ("n_entities", self.n_entities),
            ("height", height),
            ("width", width),
            ("words", words),
            ("per_word", packing.slots()),
            ("radix", packing.radix().unwrap_or(1) as usize),
            ("components", self.components[1]),
            ("steps", steps(slices.len())),
        ];
        let arrays: [(&str, &Buffer); 10] = [
            ("slices", &of_slices),
            ("turns", &turns),
            ("starts", &self.blocks.term_starts),
            ("term_entities", &self.blocks.term_entities),
            ("term_rows", &self.blocks.term_rows),
            ("row_starts", &self.blocks.row_starts),
            ("places", &self.blocks.positions),
            ("entities", &entities),
            ("rows", &rows),
            ("slots", &slots),
        ];
        run(device, &[Call::of(&kernel, &sizes, &arrays)])?;
        Ok(Pairs {
            n_owners: firsts.len(),
            n_pairs,
            firsts: Arc::new(buffer_of(device, &firsts)?),
            counts: Arc::new(buffer_of(device, &counts)?),
            entities: Arc::new(entities),
            rows: Arc::new(rows),
            slots: Arc::new(slots),
            columns: self.on_device().map(|[_, columns]| columns),
            turned: None,
        })
    }
}
