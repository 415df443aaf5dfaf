//! Why a mesh was refused.

use crate::element::{CellShape, ElementError, ElementFamily};
use kingpost_capacity::OutOfMemory;
use thiserror::Error;

/// Why a mesh was refused. Cells are counted from 0; messages about files also give the file's own
/// tag.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum MeshError {
    /// A list does not hold whole rows.
    #[error("`{list}` has {length} entries, which are not whole rows of {row}")]
    Rows {
        /// Which list.
        list: &'static str,
        /// Its length.
        length: usize,
        /// The length of a row.
        row: usize,
    },
    /// There are no cells.
    #[error("the mesh has no cells; mesh the surface or the volume, and save its elements")]
    Empty,
    /// There is not one tag a cell.
    #[error("{tags} tags for {cells} cells: give one a cell, or none at all")]
    Tags {
        /// The number of tags.
        tags: usize,
        /// The number of cells.
        cells: usize,
    },
    /// A coordinate is infinite or not a number.
    #[error("vertex {vertex} has a coordinate that is not finite")]
    NotFinite {
        /// The vertex.
        vertex: usize,
    },
    /// A cell names a vertex that does not exist.
    #[error("cell {cell} has vertex {vertex}, but there are only {n_vertices} vertices")]
    NoSuchVertex {
        /// The cell.
        cell: usize,
        /// The vertex it names.
        vertex: u32,
        /// The number of vertices.
        n_vertices: usize,
    },
    /// A cell that is asked for does not exist.
    #[error("there is no cell {cell}: found {n_cells} cells, counted from 0")]
    NoSuchCell {
        /// The cell.
        cell: usize,
        /// The number of cells.
        n_cells: usize,
    },
    /// A cell is flat.
    #[error(
        "cell {cell} is degenerate: determinant {determinant:e} with a longest edge of {longest_edge:e}; remesh, or merge its vertices"
    )]
    Degenerate {
        /// The cell.
        cell: usize,
        /// The determinant of its edge vectors.
        determinant: f64,
        /// The length of its longest edge.
        longest_edge: f64,
    },
    /// The map of a cell is mirrored in one part of it and not in another.
    #[error(
        "cell {cell} turns inside out: its map has determinants of both signs; check the order of its vertices, or remesh"
    )]
    InsideOut {
        /// The cell.
        cell: usize,
    },
    /// The element of the cells' maps is no continuous element with nodes on their shape.
    #[error(
        "cells of shape {shape} cannot be mapped by {element}; needed a continuous Lagrange element on that shape"
    )]
    Geometry {
        /// The shape of the cells.
        shape: CellShape,
        /// The family of the element given.
        element: ElementFamily,
    },
    /// The element of the cells' maps does not exist.
    #[error(transparent)]
    Element(#[from] ElementError),
    /// A node at a corner is not where the vertex is.
    #[error(
        "cell {cell} has node {node} at its vertex {vertex}, and they are different points; needed the same"
    )]
    Corner {
        /// The cell.
        cell: usize,
        /// The vertex.
        vertex: u32,
        /// The node.
        node: u32,
    },
    /// Two cells share a facet and lie on the same side of it.
    #[error(
        "cells {other} and {cell} lie on the same side of a facet they share; one is a duplicate, or they overlap"
    )]
    Overlap {
        /// The later cell.
        cell: usize,
        /// The earlier cell.
        other: usize,
    },
    /// The mesh has more vertices or cells than 32-bit numbers can name, or none.
    #[error("{n} divisions of the unit {domain}: from 1 to {max} are supported")]
    Divisions {
        /// `interval`, `square` or `cube`.
        domain: &'static str,
        /// The number asked for.
        n: usize,
        /// The highest number supported.
        max: usize,
    },
    /// Cells cannot be divided.
    #[error("{cells} cells cannot be divided: {why}")]
    NotRefined {
        /// The number of cells.
        cells: usize,
        /// What they are, and what was needed.
        why: &'static str,
    },
    /// There is no memory for the mesh.
    #[error(transparent)]
    Memory(#[from] OutOfMemory),
}
