//! Reading Gmsh MSH 4.1 and 2.2 files, text and binary.
//!
//! Our own reader, because `mshio` reads 4.1 alone, reports a malformed file without a line and
//! does not name the element that is at fault.
//!
//! # Source
//! Gmsh reference manual, "MSH file format", versions 4.1 and 2.2.

mod blocks;
mod cursor;
mod error;
mod file;
mod flat;
mod groups;
mod kind;
mod nodes;
mod v22;
mod v41;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use super::incidence::{EntityKey, entity_key};
use super::{CellTags, FacetSide, FacetTag, Mesh, MeshError, Placement};
use crate::element::{CellShape, ElementFamily, FiniteElement, LagrangeVariant};
use kingpost_capacity::check_memory;

pub use blocks::{GmshBlock, GmshBlocks};
use cursor::{Cursor, shown};
pub use error::{GmshError, Place};
use file::{Element, File, Node};
use groups::Cell;
use kind::{CellKind, Kind};

impl Mesh {
    /// Reads a file in Gmsh's MSH format 4.1 or 2.2; see [`Mesh::from_gmsh`].
    ///
    /// # Errors
    /// [`GmshError::Io`] if the file cannot be read, else those of [`Mesh::from_gmsh`].
    pub fn read_gmsh(path: &Path) -> Result<Self, GmshError> {
        let io = |source| GmshError::Io { path: path.display().to_string(), source };
        // a file that says how long it is is refused before it is read, and a device never ends
        let length = std::fs::metadata(path).map_err(io)?.len();
        check_memory("the mesh of the file", length.saturating_mul(COPIES), HELP)?;
        Self::from_gmsh(&kingpost_files::read(path, kingpost_files::MESH_LIMIT).map_err(io)?)
    }

    /// A mesh from the content of a Gmsh file, MSH 4.1 or 2.2, text or little-endian binary.
    ///
    /// The cells are the elements of the highest dimension in the file, in its order: lines,
    /// triangles, tetrahedra, quadrangles or hexahedra of order 1 to 4, or prisms or pyramids of order 1
    /// or 2, all of one kind and order.
    /// Elements of one dimension less tag facets; others, and nodes of no cell, are dropped. The tags
    /// of a cell or facet are the physical groups that it belongs to, all of them, whatever their
    /// sign; what is in no group has no tag. Parts of a partitioned mesh have the groups that the
    /// file lists for them.
    ///
    /// Lines need to lie on a straight line and surfaces in a plane, anywhere in space, within
    /// rounding. Where they leave the first axis or the plane z = 0 their coordinates are those of
    /// an isometry: x and y where z is constant, x and z where y is, y and z where x is, and else
    /// lengths along directions close to two axes, as [`Mesh::placement`] says.
    ///
    /// ```
    /// use kingpost_fem::mesh::Mesh;
    ///
    /// let file = b"$MeshFormat\n4.1 0 8\n$EndMeshFormat
    /// $Nodes\n1 3 1 9\n2 1 0 3\n1\n2\n9\n0 0 0\n1 0 0\n0 1 0\n$EndNodes
    /// $Elements\n1 1 1 1\n2 1 2 1\n1 1 2 9\n$EndElements\n";
    /// let mesh = Mesh::from_gmsh(file)?;
    /// assert_eq!(mesh.cells(), [0, 1, 2]);
    /// # Ok::<(), kingpost_fem::mesh::GmshError>(())
    /// ```
    ///
    /// # Errors
    /// [`GmshError`]: malformed text with its line (or byte), unsupported cells and cells of
    /// several kinds by their tag, degenerate ones and those that overlap by their tag and number,
    /// surfaces that curve in space by a node.
    pub fn from_gmsh(bytes: &[u8]) -> Result<Self, GmshError> {
        let mut file = File::default();
        let mut cursor = Cursor::new(bytes);
        file.header(&mut cursor)?;
        while let Some(word) = cursor.word() {
            file.section(word, &mut cursor)?;
        }
        file.assemble()
    }
}

/// How many times as large as its file a mesh is while it is read: a line of some twenty bytes
/// becomes an element with its nodes, and a cell with the keys of its facets.
const COPIES: u64 = 12;

const HELP: &str = "use a smaller mesh";

impl File {
    fn header(&mut self, cursor: &mut Cursor) -> Result<(), GmshError> {
        match cursor.word() {
            Some(b"$MeshFormat") => {}
            Some(b"$NOD") => {
                let found = "version `1` (`$NOD`)".to_owned();
                return Err(GmshError::Format { place: cursor.place(), found });
            }
            other => return Err(cursor.error("$MeshFormat", shown(other))),
        }
        let version = cursor.word().map(String::from_utf8_lossy).unwrap_or_default();
        self.old = version == "2.2";
        if version != "4.1" && !self.old {
            let version: String = version.chars().take(30).collect();
            let found = format!("version `{}`", version.escape_debug());
            return Err(GmshError::Format { place: cursor.place(), found });
        }
        self.binary = match cursor.int()? {
            0 => false,
            1 => true,
            other => {
                return Err(GmshError::Format { place: cursor.place(), found: format!("file type {other}") });
            }
        };
        let size = cursor.int()?;
        if size != 8 {
            return Err(GmshError::Format { place: cursor.place(), found: format!("data size {size}") });
        }
        if self.binary {
            cursor.end_of_line();
            cursor.binary = true;
            let one = cursor.int()?;
            if one != 1 {
                return Err(GmshError::Format { place: cursor.place(), found: "big-endian data".to_owned() });
            }
        }
        cursor.mark("$EndMeshFormat")
    }

    /// Reads the section that starts with `word`.
    fn section(&mut self, word: &[u8], cursor: &mut Cursor) -> Result<(), GmshError> {
        let name = String::from_utf8_lossy(word).into_owned();
        let Some(name) = name.strip_prefix('$') else {
            let found = format!("`{}`", name.chars().take(30).collect::<String>().escape_debug());
            return Err(cursor.error("the start of a section", found));
        };
        if self.binary {
            match name {
                "Entities" | "PartitionedEntities" | "Nodes" | "Elements" => cursor.end_of_line(),
                _ => {}
            }
        }
        match name {
            "Entities" if !self.old => {
                v41::entities(self, cursor)?;
                cursor.mark("$EndEntities")
            }
            "PhysicalNames" => self.physical_names(cursor),
            "PartitionedEntities" if !self.old => {
                v41::partitioned_entities(self, cursor)?;
                cursor.mark("$EndPartitionedEntities")
            }
            // what stands instead of nodes must not be skipped
            "ParametricNodes" => {
                let version = if self.old { "2.2" } else { "4.1" };
                Err(GmshError::Section { place: cursor.place(), section: name.to_owned(), version })
            }
            "Nodes" => {
                if self.old {
                    v22::nodes(self, cursor)?
                } else {
                    v41::nodes(self, cursor)?
                }
                cursor.mark("$EndNodes")
            }
            "Elements" => {
                if self.old {
                    v22::elements(self, cursor)?
                } else {
                    v41::elements(self, cursor)?
                }
                cursor.mark("$EndElements")
            }
            other => cursor.skip_section(other),
        }
    }

    fn corners_of(&self, element: &Element) -> &[u64] {
        &self.corners[element.first..element.first + element.kind.nodes]
    }

    /// The elements of the highest dimension, and the kind that all of them are.
    fn cells(&self) -> Result<(CellKind, Vec<&Element>), GmshError> {
        let dim = self.elements.iter().map(|e| e.kind.dim).max().unwrap_or(0);
        let cells: Vec<&Element> = self.elements.iter().filter(|e| e.kind.dim == dim).collect();
        let Some(first) = cells.first().filter(|_| dim > 0) else { return Err(GmshError::NoCells) };
        let unsupported = |e: &Element| GmshError::Unsupported { element: e.element, kind: e.kind.name };
        if let Some(other) = cells.iter().find(|e| e.kind.cell.is_none()) {
            return Err(unsupported(other));
        }
        let kind = first.kind.cell.ok_or_else(|| unsupported(first))?;
        let Some((other, of)) = cells.iter().find_map(|e| Some((e, e.kind.cell.filter(|k| *k != kind)?)))
        else {
            return Ok((kind, cells));
        };
        Err(GmshError::Mixed {
            element: other.element,
            kind: of.described(),
            first: first.element,
            first_kind: kind.described(),
        })
    }

    fn assemble(self) -> Result<Mesh, GmshError> {
        let (kind, elements) = self.cells()?;
        let cells = self.grouped(kind, elements);
        let places = self.places()?;
        let used = self.used_nodes(kind.places, &cells, &places)?;
        let nodes: Vec<&Node> = used.iter().map(|place| &self.nodes[*place]).collect();
        let placement = flat::placement(kind.shape, &nodes)?;
        let n = kind.places.len();
        let corners = kind.shape.n_vertices();
        let vertices: Vec<usize> = used.chunks_exact(n).flat_map(|nodes| nodes[..corners].to_vec()).collect();
        let (coordinates, numbers) = self.numbered(kind.shape, placement.as_ref(), &vertices);
        let mesh = Mesh::new(kind.shape, coordinates, numbers, None);
        let mut mesh = mesh.map_err(|source| by_element(source, &cells))?;
        if kind.order > 1 {
            let family = ElementFamily::Lagrange(LagrangeVariant::Equispaced);
            let element = FiniteElement::new(kind.shape, family, kind.order).map_err(MeshError::from)?;
            let (coordinates, numbers) = self.numbered(kind.shape, placement.as_ref(), &used);
            let curved = mesh.with_nodes(element, coordinates, numbers);
            mesh = curved.map_err(|source| by_element(source, &cells))?;
        }
        let vertex_of: HashMap<usize, u32> =
            vertices.iter().copied().zip(mesh.cells.iter().copied()).collect();
        mesh.facet_tags = self.facet_tags(&mesh, &places, &vertex_of);
        mesh.placement = placement;
        if cells.iter().any(|cell| !cell.groups.is_empty()) {
            mesh.tags = Some(CellTags::new(cells.iter().map(|cell| &*cell.groups)));
        }
        Ok(mesh)
    }

    /// Where each node stands in the file.
    fn places(&self) -> Result<HashMap<u64, usize>, GmshError> {
        let mut places = HashMap::with_capacity(self.nodes.len());
        for (place, (node, _)) in self.nodes.iter().enumerate() {
            if places.insert(*node, place).is_some() {
                return Err(GmshError::DuplicateNode { node: *node });
            }
        }
        Ok(places)
    }

    /// The places of the nodes of the cells in basix's order, [cells, nodes]: `own` are those of a
    /// cell.
    fn used_nodes(
        &self,
        own: &[usize],
        cells: &[Cell<'_>],
        places: &HashMap<u64, usize>,
    ) -> Result<Vec<usize>, GmshError> {
        let mut used = Vec::with_capacity(cells.len() * own.len());
        for Cell { element: cell, .. } in cells {
            let nodes = self.corners_of(cell);
            for place in own {
                let node = nodes[*place];
                let unknown = GmshError::UnknownNode { element: cell.element, node };
                used.push(*places.get(&node).ok_or(unknown)?);
            }
        }
        Ok(used)
    }

    /// The coordinates of the nodes at these places, each once in the order of the file, and their
    /// numbers among them.
    fn numbered(
        &self,
        shape: CellShape,
        placement: Option<&Placement>,
        used: &[usize],
    ) -> (Vec<f64>, Vec<u32>) {
        let mut numbers = vec![u32::MAX; self.nodes.len()];
        used.iter().for_each(|place| numbers[*place] = 0);
        let mut coordinates = Vec::new();
        for (number, (_, point)) in numbers.iter_mut().zip(&self.nodes).filter(|(n, _)| **n == 0) {
            *number = (coordinates.len() / shape.dim()) as u32;
            match placement {
                Some(placement) => coordinates.extend(placement.coordinates(point)),
                None => coordinates.extend_from_slice(&point[..shape.dim()]),
            }
        }
        (coordinates, used.iter().map(|place| numbers[*place]).collect())
    }

    /// The tags of facets of the mesh; elements that are no facets are dropped.
    fn facet_tags(
        &self,
        mesh: &Mesh,
        places: &HashMap<u64, usize>,
        vertex_of: &HashMap<usize, u32>,
    ) -> Vec<FacetTag> {
        let dim = mesh.shape().dim();
        let mut tags: BTreeMap<EntityKey, BTreeSet<i32>> = BTreeMap::new();
        for element in self.elements.iter().filter(|e| e.kind.dim + 1 == dim) {
            let vertex = |node: &u64| vertex_of.get(places.get(node)?).copied();
            let nodes = self.corners_of(element);
            let vertices: Option<Vec<u32>> = nodes.iter().take(element.kind.corners()).map(vertex).collect();
            let groups = self.groups_of(element);
            if let Some(vertices) = vertices.filter(|_| !groups.is_empty()) {
                tags.entry(entity_key(vertices)).or_default().extend(groups);
            }
        }
        if tags.is_empty() {
            return Vec::new();
        }
        let tagged = mesh.of_facets(|sides| Some((FacetSide::from(&sides[0]), tags.get(&sides[0].key)?)));
        let of_side = |(side, tags): (FacetSide, &BTreeSet<i32>)| {
            tags.iter().map(move |tag| FacetTag { side, tag: *tag }).collect::<Vec<_>>()
        };
        let mut tags: Vec<FacetTag> = tagged.into_iter().flat_map(of_side).collect();
        tags.sort_unstable();
        tags
    }
}

/// What is wrong with a mesh, with the tag of the element if it is one cell.
fn by_element(source: MeshError, cells: &[Cell<'_>]) -> GmshError {
    match source {
        MeshError::Degenerate { cell, .. }
        | MeshError::Overlap { cell, .. }
        | MeshError::InsideOut { cell }
        | MeshError::Corner { cell, .. } => GmshError::Cell { element: cells[cell].element.element, source },
        MeshError::Rows { .. }
        | MeshError::Empty
        | MeshError::Tags { .. }
        | MeshError::NotFinite { .. }
        | MeshError::NoSuchVertex { .. }
        | MeshError::NoSuchCell { .. }
        | MeshError::Geometry { .. }
        | MeshError::Element(_)
        | MeshError::Divisions { .. }
        | MeshError::NotRefined { .. }
        | MeshError::Memory(_) => GmshError::Mesh(source),
    }
}
