//! Everything that a file has of cells: of any kinds, anywhere in space.

use super::file::{Element, File};
use super::kind::{CellKind, Kind};
use super::{COPIES, Cursor, GmshError, HELP};
use kingpost_capacity::check_memory;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

/// The cells of a Gmsh file, of one or of several kinds, with all its groups: what a form needs
/// that is compiled for each kind of cell, and for surfaces and curves that no
/// [`Mesh`](super::Mesh) can hold.
///
/// Cells are the elements of the highest dimension. They are not checked to make a mesh.
///
/// ```
/// use kingpost_fem::mesh::GmshBlocks;
///
/// // a square and a triangle that stands on it
/// let file = b"$MeshFormat\n4.1 0 8\n$EndMeshFormat
/// $Nodes\n1 5 1 5\n2 1 0 5\n1\n2\n3\n4\n5\n0 0 0\n1 0 0\n1 1 0\n0 1 0\n0 1 1\n$EndNodes
/// $Elements\n2 2 1 2\n2 1 3 1\n1 1 2 3 4\n2 2 2 1\n2 3 4 5\n$EndElements\n";
/// let found = GmshBlocks::new(file)?;
/// assert_eq!((found.blocks[0].cell, &found.blocks[0].nodes[..]), ("quadrilateral", &[0, 1, 3, 2][..]));
/// assert_eq!((found.blocks[1].cell, &found.blocks[1].nodes[..]), ("triangle", &[2, 3, 4][..]));
/// # Ok::<(), kingpost_fem::mesh::GmshError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct GmshBlocks {
    /// The dimension of the cells.
    pub dim: usize,
    /// The positions in space of the nodes of cells, [nodes, 3] row-major, in the order of the
    /// file.
    pub positions: Vec<f64>,
    /// The cells, a block for each kind, in the order in which the file has the kinds first.
    pub blocks: Vec<GmshBlock>,
    /// The corners of elements of one dimension less that are in groups, and the groups of each.
    pub facets: Vec<(Vec<u32>, BTreeSet<i32>)>,
    /// The names of groups, with their dimensions and numbers.
    pub names: BTreeMap<String, (usize, i32)>,
}

/// The cells of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct GmshBlock {
    /// Basix's name of the cell, such as `prism`.
    pub cell: &'static str,
    /// The order of its nodes.
    pub order: usize,
    /// The nodes of each cell in basix's order, [cells, nodes] row-major.
    pub nodes: Vec<u32>,
    /// The cells of each physical group, ascending.
    pub groups: BTreeMap<i32, Vec<u32>>,
}

impl GmshBlocks {
    /// Reads a file in Gmsh's MSH format 4.1 or 2.2.
    ///
    /// # Errors
    /// As [`GmshBlocks::new`]; [`GmshError::Io`].
    pub fn read(path: &Path) -> Result<Self, GmshError> {
        let io = |source| GmshError::Io { path: path.display().to_string(), source };
        let length = std::fs::metadata(path).map_err(io)?.len();
        check_memory("the mesh of the file", length.saturating_mul(COPIES), HELP)?;
        Self::new(&kingpost_files::read(path, kingpost_files::MESH_LIMIT).map_err(io)?)
    }

    /// The cells in the content of a file.
    ///
    /// # Errors
    /// [`GmshError`]: malformed text with its line (or byte), cells of a kind that is not
    /// supported, nodes that are missing, twice there or not finite, by their tags.
    pub fn new(bytes: &[u8]) -> Result<Self, GmshError> {
        let mut file = File::default();
        let mut cursor = Cursor::new(bytes);
        file.header(&mut cursor)?;
        while let Some(word) = cursor.word() {
            file.section(word, &mut cursor)?;
        }
        file.blocks()
    }
}

impl File {
    fn blocks(self) -> Result<GmshBlocks, GmshError> {
        let dim = self.elements.iter().map(|e| e.kind.dim).max().unwrap_or(0);
        let mut by_kind: Vec<(Kind, Vec<&Element>)> = Vec::new();
        for element in self.elements.iter().filter(|e| e.kind.dim == dim) {
            match by_kind.iter_mut().find(|(kind, _)| kind.is(&element.kind)) {
                Some((_, elements)) => elements.push(element),
                None => by_kind.push((element.kind, vec![element])),
            }
        }
        if dim == 0 {
            return Err(GmshError::NoCells);
        }
        let places = self.places()?;
        let mut used = vec![false; self.nodes.len()];
        let mut found = Vec::new();
        for (kind, elements) in by_kind {
            let Some(of_cell @ CellKind { shape, order, places: own }) = kind.cell else {
                let element = elements.first().map_or(0, |e| e.element);
                return Err(GmshError::Unsupported { element, kind: kind.name });
            };
            let cells = self.grouped(of_cell, elements);
            let at = self.used_nodes(own, &cells, &places)?;
            at.iter().for_each(|place| used[*place] = true);
            let mut groups: BTreeMap<i32, Vec<u32>> = BTreeMap::new();
            for (number, cell) in (0..).zip(&cells) {
                let own: BTreeSet<i32> = cell.groups.iter().copied().collect();
                own.into_iter().for_each(|group| groups.entry(group).or_default().push(number));
            }
            found.push((shape.name(), order, at, groups));
        }
        let mut positions = Vec::new();
        let mut numbers = vec![None; self.nodes.len()];
        for (place, (node, point)) in self.nodes.iter().enumerate().filter(|(place, _)| used[*place]) {
            if !point.iter().all(|x| x.is_finite()) {
                return Err(GmshError::NotFinite { node: *node });
            }
            numbers[place] = Some((positions.len() / 3) as u32);
            positions.extend_from_slice(point);
        }
        let numbered = |at: Vec<usize>| at.into_iter().filter_map(|place| numbers[place]).collect();
        let block = |(cell, order, at, groups)| GmshBlock { cell, order, nodes: numbered(at), groups };
        let blocks = found.into_iter().map(block).collect();
        let facets = self.grouped_facets(dim, &places, &numbers);
        Ok(GmshBlocks { dim, positions, blocks, facets, names: self.names })
    }

    /// The corners of elements of one dimension less, each once, with their groups.
    fn grouped_facets(
        &self,
        dim: usize,
        places: &HashMap<u64, usize>,
        numbers: &[Option<u32>],
    ) -> Vec<(Vec<u32>, BTreeSet<i32>)> {
        let mut found: BTreeMap<Vec<u32>, BTreeSet<i32>> = BTreeMap::new();
        for element in self.elements.iter().filter(|e| e.kind.dim + 1 == dim) {
            let groups = self.groups_of(element);
            // the corners come first, of whatever kind the element is
            let corners = self.corners_of(element).iter().take(element.kind.corners());
            let vertices: Option<Vec<u32>> = corners.map(|node| numbers[*places.get(node)?]).collect();
            if let Some(mut vertices) = vertices.filter(|_| !groups.is_empty()) {
                vertices.sort_unstable();
                found.entry(vertices).or_default().extend(groups);
            }
        }
        found.into_iter().collect()
    }
}
