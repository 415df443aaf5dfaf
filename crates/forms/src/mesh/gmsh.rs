//! Reading Gmsh MSH 4.1 files, text and binary.
//!
//! Our own reader, because `mshio` reports a malformed file without a line and does not name the
//! element that is at fault; the part of the format that a first-order mesh needs is small.
//!
//! # Source
//! Gmsh reference manual, "MSH file format", version 4.1.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use thiserror::Error;

use super::cursor::{Cursor, Place};
use super::{Mesh, MeshError};
use crate::element::CellShape;

/// Why a Gmsh file was refused.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum GmshError {
    /// The file cannot be read.
    #[error("cannot read `{path}`: {source}")]
    Io {
        /// The path as given.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// Something stands where something else should.
    #[error("{place}: expected {expected}, found {found}")]
    Syntax {
        /// Where.
        place: Place,
        /// What the format asks for.
        expected: &'static str,
        /// What stands there.
        found: String,
    },
    /// A section has no end.
    #[error("{place}: section `${section}` is never closed by `$End{section}`")]
    Unclosed {
        /// Where the section starts.
        place: Place,
        /// Its name.
        section: String,
    },
    /// The file is of another version or kind.
    #[error("{place}: {found} is not supported; save the mesh as MSH 4.1 (`gmsh -format msh41`)")]
    Format {
        /// Where.
        place: Place,
        /// What was found.
        found: String,
    },
    /// There are no two- or three-dimensional elements.
    #[error(
        "the file has no triangles or tetrahedra; mesh it in 2 or 3 dimensions (`gmsh -3`) and save those cells"
    )]
    NoCells,
    /// An element of the mesh's dimension is not a straight triangle or tetrahedron.
    #[error("element {element} is a {kind}; only first-order triangles and tetrahedra are supported")]
    Unsupported {
        /// The element's tag in the file.
        element: u64,
        /// What it is.
        kind: &'static str,
    },
    /// An element type that the manual does not list.
    #[error("{place}: element type {number} is not known; save triangles or tetrahedra")]
    UnknownType {
        /// Where.
        place: Place,
        /// The number found.
        number: i32,
    },
    /// Two nodes have one tag.
    #[error("node {node} is defined twice")]
    DuplicateNode {
        /// The tag.
        node: u64,
    },
    /// An element names a node that the file does not define.
    #[error("element {element} has node {node}, which the file does not define")]
    UnknownNode {
        /// The element's tag in the file.
        element: u64,
        /// The tag of the node.
        node: u64,
    },
    /// A mesh of triangles leaves the plane z = 0.
    #[error("node {node} has z = {z}, but a mesh of triangles must lie in the plane z = 0")]
    NotPlanar {
        /// The tag of the node.
        node: u64,
        /// Its third coordinate.
        z: f64,
    },
    /// A cell is degenerate, or overlaps another.
    #[error("element {element}: {source}")]
    Cell {
        /// The element's tag in the file.
        element: u64,
        /// What is wrong, by the number of the cell.
        source: MeshError,
    },
    /// The cells do not make a mesh.
    #[error(transparent)]
    Mesh(#[from] MeshError),
}

impl Mesh {
    /// Reads a file in Gmsh's MSH 4.1 format; see [`Mesh::from_gmsh`].
    ///
    /// # Errors
    /// [`GmshError::Io`] if the file cannot be read, else those of [`Mesh::from_gmsh`].
    pub fn read_gmsh(path: &Path) -> Result<Self, GmshError> {
        let bytes = std::fs::read(path)
            .map_err(|source| GmshError::Io { path: path.display().to_string(), source })?;
        Self::from_gmsh(&bytes)
    }

    /// A mesh from the content of a Gmsh file, MSH 4.1, text or little-endian binary.
    ///
    /// The cells are the elements of the highest dimension in the file, in its order; elements of
    /// lower dimension and nodes of no cell are dropped. A cell's tag is the first physical group
    /// of its geometric entity, or else that entity's tag.
    ///
    /// ```
    /// use purlin_forms::mesh::Mesh;
    ///
    /// let file = b"$MeshFormat\n4.1 0 8\n$EndMeshFormat
    /// $Nodes\n1 3 1 9\n2 1 0 3\n1\n2\n9\n0 0 0\n1 0 0\n0 1 0\n$EndNodes
    /// $Elements\n1 1 1 1\n2 1 2 1\n1 1 2 9\n$EndElements\n";
    /// let mesh = Mesh::from_gmsh(file)?;
    /// assert_eq!(mesh.cells(), [0, 1, 2]);
    /// # Ok::<(), purlin_forms::mesh::GmshError>(())
    /// ```
    ///
    /// # Errors
    /// [`GmshError`]: malformed text with its line (or byte), unsupported cells by their tag,
    /// degenerate ones and those that overlap by their tag and number.
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

/// What is kept of a file.
#[derive(Default)]
struct File {
    binary: bool,
    /// The first physical group of a surface or volume, by dimension and tag.
    groups: BTreeMap<(usize, i32), i32>,
    /// Tag and coordinates.
    nodes: Vec<(u64, [f64; 3])>,
    triangles: Vec<Cell>,
    tetrahedra: Vec<Cell>,
    /// The first element of dimension 2 and 3 that is not supported: tag and kind.
    unsupported: [Option<(u64, &'static str)>; 2],
}

struct Cell {
    element: u64,
    entity: i32,
    /// The fourth is unused in a triangle.
    nodes: [u64; 4],
}

impl File {
    fn header(&mut self, cursor: &mut Cursor) -> Result<(), GmshError> {
        cursor.mark("$MeshFormat")?;
        let version = cursor.word().map(String::from_utf8_lossy).unwrap_or_default();
        if version != "4.1" {
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
                "Entities" | "Nodes" | "Elements" => cursor.end_of_line(),
                _ => {}
            }
        }
        match name {
            "Entities" => {
                self.entities(cursor)?;
                cursor.mark("$EndEntities")
            }
            "Nodes" => {
                self.nodes(cursor)?;
                cursor.mark("$EndNodes")
            }
            "Elements" => {
                self.elements(cursor)?;
                cursor.mark("$EndElements")
            }
            other => cursor.skip_section(other),
        }
    }

    fn entities(&mut self, cursor: &mut Cursor) -> Result<(), GmshError> {
        let mut counts = [0; 4];
        for count in &mut counts {
            *count = cursor.size()?;
        }
        for (dim, count) in counts.into_iter().enumerate() {
            for _ in 0..count {
                let tag = cursor.int()?;
                // A point has its coordinates, everything else its bounding box.
                for _ in 0..if dim == 0 { 3 } else { 6 } {
                    cursor.real()?;
                }
                for place in 0..cursor.size()? {
                    let group = cursor.int()?;
                    if place == 0 {
                        self.groups.insert((dim, tag), group);
                    }
                }
                if dim > 0 {
                    for _ in 0..cursor.size()? {
                        cursor.int()?;
                    }
                }
            }
        }
        Ok(())
    }

    fn nodes(&mut self, cursor: &mut Cursor) -> Result<(), GmshError> {
        let blocks = cursor.size()?;
        for _ in 0..3 {
            cursor.size()?;
        }
        for _ in 0..blocks {
            let dim = cursor.int()?;
            cursor.int()?;
            let parameters = if cursor.int()? == 0 { 0 } else { dim };
            let count = cursor.size()?;
            let first = self.nodes.len();
            // Pushed one by one: a count that the file does not live up to ends at its end, not in
            // a huge allocation.
            for _ in 0..count {
                self.nodes.push((cursor.size()?, [0.0; 3]));
            }
            for (_, point) in &mut self.nodes[first..] {
                for x in point {
                    *x = cursor.real()?;
                }
                for _ in 0..parameters {
                    cursor.real()?;
                }
            }
        }
        Ok(())
    }

    fn elements(&mut self, cursor: &mut Cursor) -> Result<(), GmshError> {
        let blocks = cursor.size()?;
        for _ in 0..3 {
            cursor.size()?;
        }
        for _ in 0..blocks {
            cursor.int()?;
            let entity = cursor.int()?;
            let number = cursor.int()?;
            let Some(kind) = Kind::of(number) else {
                return Err(GmshError::UnknownType { place: cursor.place(), number });
            };
            for _ in 0..cursor.size()? {
                self.element(kind, entity, cursor)?;
            }
        }
        Ok(())
    }

    fn element(&mut self, kind: Kind, entity: i32, cursor: &mut Cursor) -> Result<(), GmshError> {
        let element = cursor.size()?;
        let mut nodes = [0; 4];
        for i in 0..kind.nodes {
            let node = cursor.size()?;
            if let Some(place) = nodes.get_mut(i) {
                *place = node;
            }
        }
        match (kind.dim, kind.nodes) {
            (2, 3) => self.triangles.push(Cell { element, entity, nodes }),
            (3, 4) => self.tetrahedra.push(Cell { element, entity, nodes }),
            (dim @ 2..=3, _) => {
                self.unsupported[dim - 2].get_or_insert((element, kind.name));
            }
            _ => {}
        }
        Ok(())
    }

    fn assemble(self) -> Result<Mesh, GmshError> {
        let solid = !self.tetrahedra.is_empty() || self.unsupported[1].is_some();
        if let Some((element, kind)) = self.unsupported[usize::from(solid)] {
            return Err(GmshError::Unsupported { element, kind });
        }
        let (shape, cells) = match solid {
            true => (CellShape::Tetrahedron, &self.tetrahedra),
            false => (CellShape::Triangle, &self.triangles),
        };
        if cells.is_empty() {
            return Err(GmshError::NoCells);
        }
        let (coordinates, vertices) = self.used_nodes(shape, cells)?;
        let tag = |cell: &Cell| *self.groups.get(&(shape.dim(), cell.entity)).unwrap_or(&cell.entity);
        let tags = cells.iter().map(tag).collect();
        Mesh::new(shape, coordinates, vertices, Some(tags)).map_err(|source| match source {
            MeshError::Degenerate { cell, .. }
            | MeshError::Overlap { cell, .. }
            | MeshError::InsideOut { cell }
            | MeshError::Corner { cell, .. } => GmshError::Cell { element: cells[cell].element, source },
            MeshError::Rows { .. }
            | MeshError::Empty
            | MeshError::Tags { .. }
            | MeshError::NotFinite { .. }
            | MeshError::NoSuchVertex { .. }
            | MeshError::Geometry { .. }
            | MeshError::Divisions { .. }
            | MeshError::Memory { .. } => GmshError::Mesh(source),
        })
    }

    /// The coordinates of the nodes that the cells use, in the order of the file, and the cells'
    /// vertices among them.
    fn used_nodes(&self, shape: CellShape, cells: &[Cell]) -> Result<(Vec<f64>, Vec<u32>), GmshError> {
        let mut places = HashMap::with_capacity(self.nodes.len());
        for (place, (node, _)) in self.nodes.iter().enumerate() {
            if places.insert(*node, place).is_some() {
                return Err(GmshError::DuplicateNode { node: *node });
            }
        }
        let mut used = vec![false; self.nodes.len()];
        let mut corners = Vec::with_capacity(cells.len() * shape.n_vertices());
        for cell in cells {
            for node in &cell.nodes[..shape.n_vertices()] {
                let unknown = GmshError::UnknownNode { element: cell.element, node: *node };
                let place = *places.get(node).ok_or(unknown)?;
                used[place] = true;
                corners.push(place);
            }
        }
        let mut numbers = vec![0; self.nodes.len()];
        let mut coordinates = Vec::new();
        for (place, (_, point)) in self.nodes.iter().enumerate().filter(|(place, _)| used[*place]) {
            numbers[place] = (coordinates.len() / shape.dim()) as u32;
            coordinates.extend_from_slice(&point[..shape.dim()]);
        }
        if shape == CellShape::Triangle {
            self.check_planar(&used, &coordinates)?;
        }
        Ok((coordinates, corners.iter().map(|place| numbers[*place]).collect()))
    }

    fn check_planar(&self, used: &[bool], coordinates: &[f64]) -> Result<(), GmshError> {
        let size = coordinates.iter().fold(0.0_f64, |size, x| size.max(x.abs()));
        for ((node, [_, _, z]), _) in self.nodes.iter().zip(used).filter(|(_, used)| **used) {
            // 1e-12: what a rotation of the geometry into the plane leaves by rounding.
            if z.is_nan() || z.abs() > 1e-12 * size {
                return Err(GmshError::NotPlanar { node: *node, z: *z });
            }
        }
        Ok(())
    }
}

/// What an element type's number stands for.
#[derive(Clone, Copy)]
struct Kind {
    dim: usize,
    nodes: usize,
    name: &'static str,
}

impl Kind {
    fn of(number: i32) -> Option<Self> {
        const LINE: &str = "line";
        const CURVED_TRIANGLE: &str = "triangle of higher order";
        const CURVED_TETRAHEDRON: &str = "tetrahedron of higher order";
        const QUADRANGLE: &str = "quadrangle";
        const HEXAHEDRON: &str = "hexahedron";
        const PRISM: &str = "prism";
        const PYRAMID: &str = "pyramid";
        let (dim, nodes, name) = match number {
            1 => (1, 2, LINE),
            2 => (2, 3, "triangle"),
            3 => (2, 4, QUADRANGLE),
            4 => (3, 4, "tetrahedron"),
            5 => (3, 8, HEXAHEDRON),
            6 => (3, 6, PRISM),
            7 => (3, 5, PYRAMID),
            8 => (1, 3, LINE),
            9 => (2, 6, CURVED_TRIANGLE),
            10 => (2, 9, QUADRANGLE),
            11 => (3, 10, CURVED_TETRAHEDRON),
            12 => (3, 27, HEXAHEDRON),
            13 => (3, 18, PRISM),
            14 => (3, 14, PYRAMID),
            15 => (0, 1, "point"),
            16 => (2, 8, QUADRANGLE),
            17 => (3, 20, HEXAHEDRON),
            18 => (3, 15, PRISM),
            19 => (3, 13, PYRAMID),
            20 => (2, 9, CURVED_TRIANGLE),
            21 => (2, 10, CURVED_TRIANGLE),
            22 => (2, 12, CURVED_TRIANGLE),
            23 | 24 => (2, 15, CURVED_TRIANGLE),
            25 => (2, 21, CURVED_TRIANGLE),
            26 => (1, 4, LINE),
            27 => (1, 5, LINE),
            28 => (1, 6, LINE),
            29 => (3, 20, CURVED_TETRAHEDRON),
            30 => (3, 35, CURVED_TETRAHEDRON),
            31 => (3, 56, CURVED_TETRAHEDRON),
            92 => (3, 64, HEXAHEDRON),
            93 => (3, 125, HEXAHEDRON),
            _ => return None,
        };
        Some(Self { dim, nodes, name })
    }
}
