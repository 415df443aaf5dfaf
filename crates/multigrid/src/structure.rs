//! How a kernel is mapped onto a device: the choices, and the fastest that are known.

use crate::operation::{Operation, Variant};
use crate::{Dimension, Element, Precision, mesh_plans, planes};
use kingpost_runtime::Backend;
use serde::{Deserialize, Serialize};

/// How a kernel is mapped onto a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Structure {
    /// A patch or cell a work-group of one work-item, its arrays private: processors.
    Blocks,
    /// A patch or cell a work-group, a work-item for each node of a layer, which goes through the
    /// layers; those at the boundary of a patch wait while it is solved for: *Basic* with the
    /// two-dimensional structure of Cui et al. 2024, Figure 5 and Table 5.
    Layers,
    /// A work-item for each node of a patch or cell: the three-dimensional structure of Figure 5,
    /// in two dimensions the same as layers.
    Nodes,
    /// Layers with their inner nodes numbered one after the other: *Linear indexing* of
    /// Cui et al. 2024, §4.1.1. Of the smoother alone.
    Linear,
    /// Beyond the publication: a work-item for each line of nodes, which it contracts in registers,
    /// and matrices as operands of constant memory. Of smoother and residual alone.
    Lines {
        /// Patches or cells of a work-group.
        patches: u32,
        /// Groups of a compute unit that the compiler leaves registers for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resident_groups: Option<u32>,
        /// Sums of two products as two updates: each a multiplication fused with an addition, in
        /// place of a multiplication, a fused one and an addition.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        separate_terms: bool,
        /// Corrections are added by atomic updates, for whose old values nobody waits.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        atomic: bool,
        /// Successive patches of a group, the next of which is copied while one is solved for. Of the
        /// fused kernel alone.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ahead: Option<u32>,
    },
    /// Beyond the publication: a patch a work-group, contractions by FP64 matrix instructions of
    /// tiles that are filled up with zeros. Of the fused kernel in double precision alone, in three
    /// dimensions, where the inner nodes of a patch fill as many tiles as all: degrees 2, 3, 5, 6,
    /// 7.
    Instructions {
        /// Sub-groups of a patch, each with as many of its planes: a power of two, of two planes at
        /// least.
        sub_groups: u32,
        /// Even and odd parts instead of nodes, so that matrices have two blocks: half of the
        /// instructions. Of lines of two tiles alone: degrees 5, 6, 7.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        parities: bool,
        /// Groups of a compute unit that the compiler leaves registers for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resident_groups: Option<u32>,
        /// Successive patches of a group, the next of which is copied while one is solved for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ahead: Option<u32>,
    },
    /// Beyond the publication: a patch a work-group, two planes of its lines a sub-group, their
    /// even and odd parts contracted by FP64 matrix instructions, with what faces add as the last
    /// part. Of the blended kernel alone, in double precision and three dimensions, of degrees 5 to
    /// 7, on at most 128 cells a side.
    Planes {
        /// Groups of a compute unit that the compiler leaves registers for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resident_groups: Option<u32>,
    },
}

impl Structure {
    /// Lines with a given number of patches or cells a work-group, nothing else.
    #[must_use]
    pub const fn lines(patches: u32) -> Self {
        Self::Lines { patches, resident_groups: None, separate_terms: false, atomic: false, ahead: None }
    }

    /// Lines with as many patches of an element as were fastest on a card.
    #[must_use]
    pub const fn fastest_lines(element: Element) -> Self {
        Self::lines(patches(element))
    }

    /// Lines of the blended kernel that were the fastest of an element on an H200
    /// (results/h200/cui_2024.md, 2026-11-29).
    const fn fastest_blended(element: Element) -> Self {
        let (patches, resident_groups) = match (element.dimension, element.degree) {
            (Dimension::Three, 1) => (16, None),
            (Dimension::Three, 2) => (8, None),
            (Dimension::Three, 3 | 6) => (1, None),
            (Dimension::Three, 5) => (1, Some(6)),
            (Dimension::Three, _) => (2, None),
            (Dimension::Two, _) => (patches(element), None),
        };
        Self::Lines { patches, resident_groups, separate_terms: false, atomic: false, ahead: None }
    }

    /// This structure, or the fastest that has no bound on the cells a side where there are more.
    pub(crate) const fn for_cells(self, element: Element, cells: usize) -> Self {
        let is_bounded = matches!(self, Self::Planes { .. });
        if is_bounded && cells > planes::MOST_CELLS { Self::fastest_blended(element) } else { self }
    }

    /// The fastest that is known of an operation on an architecture of a backend, such as `sm_90`.
    ///
    /// On a Hopper card the fused kernel in three dimensions is of matrix instructions at degree 7
    /// in double precision, and of lines with atomic corrections and separate terms at others
    /// (results/h200/cui_2024.md, 2026-11-26).
    #[must_use]
    pub fn of(
        (backend, arch): (Backend, &str),
        operation: Operation,
        element: Element,
        precision: Precision,
    ) -> Self {
        if (backend, operation) == (Backend::Cuda, Operation::Smooth)
            && arch.starts_with("sm_90")
            && let Some(fastest) = Self::on_hopper(element, precision)
        {
            return fastest;
        }
        let cube = (element.dimension, precision) == (Dimension::Three, Precision::Double);
        if (backend, operation) == (Backend::Cuda, Operation::SmoothBlended)
            && arch.starts_with("sm_90")
            && cube
            && element.degree == 7
        {
            return Self::Planes { resident_groups: Some(3) };
        }
        match (backend, operation) {
            (Backend::C, _) => Self::Blocks,
            (
                Backend::OpenCl | Backend::Cuda,
                Operation::Smooth
                | Operation::PatchResidual
                | Operation::PatchSolve
                | Operation::MeshSolve
                | Operation::Residual,
            ) => Self::fastest_lines(element),
            (Backend::OpenCl | Backend::Cuda, Operation::SmoothBlended) => Self::fastest_blended(element),
            (Backend::OpenCl | Backend::Cuda, Operation::MeshResidual | Operation::MeshLoad) => {
                Self::lines(mesh_plans::cells(element))
            }
            (
                Backend::OpenCl | Backend::Cuda,
                Operation::Copy
                | Operation::PatchInverse
                | Operation::Point
                | Operation::Prolongate
                | Operation::Restrict
                | Operation::Load
                | Operation::SquaredError,
            ) => Self::Layers,
        }
    }

    /// The fastest of the fused kernel on an H200, where that is not [`Self::fastest_lines`].
    fn on_hopper(element: Element, precision: Precision) -> Option<Self> {
        let lines = |patches, resident_groups| Self::Lines {
            patches,
            resident_groups,
            separate_terms: true,
            atomic: true,
            ahead: None,
        };
        match (element.dimension, element.degree, precision) {
            (Dimension::Three, 2, Precision::Double) => Some(lines(4, None)),
            (Dimension::Three, 3, Precision::Double) => Some(lines(2, Some(2))),
            (Dimension::Three, 4, Precision::Double) => Some(lines(1, Some(3))),
            (Dimension::Three, 5 | 8, Precision::Double) => Some(lines(2, None)),
            (Dimension::Three, 6, Precision::Double) => Some(lines(4, Some(3))),
            (Dimension::Three, 7, Precision::Double) => Some(Self::Instructions {
                sub_groups: 8,
                parities: true,
                resident_groups: Some(2),
                ahead: None,
            }),
            (Dimension::Three, 3, Precision::Single) => Some(lines(4, None)),
            (Dimension::Three, 7, Precision::Single) => Some(lines(2, Some(3))),
            (Dimension::Two | Dimension::Three, _, _) => None,
        }
    }

    /// The structure for an operation of a smoother: this one where it works on patches, else the fastest.
    #[must_use]
    pub fn of_smoother(
        self,
        on: (Backend, &str),
        operation: Operation,
        element: Element,
        precision: Precision,
    ) -> Self {
        if matches!(
            operation,
            Operation::Smooth | Operation::SmoothBlended | Operation::PatchResidual | Operation::PatchSolve
        ) {
            return self;
        }
        Self::of(on, operation, element, precision)
    }
}

impl Variant {
    /// The fastest that is known of those with the results of [`Variant::Fused`] on an architecture
    /// of a backend: blended values on a Hopper card in three dimensions and double precision from
    /// degree 5 on. Below, a step on the finest mesh is 1.03 to 1.29 times as fast, but solves with
    /// their small meshes are not (results/h200/cui_2024.md, 2026-11-30).
    #[must_use]
    pub fn fastest((backend, arch): (Backend, &str), element: Element, precision: Precision) -> Self {
        let measured = (element.dimension, precision) == (Dimension::Three, Precision::Double);
        if backend == Backend::Cuda
            && arch.starts_with("sm_90")
            && measured
            && (5..=8).contains(&element.degree)
        {
            Self::Blended
        } else {
            Self::Fused
        }
    }
}

/// Patches of a work-group that were fastest on an H200 (results/h200/cui_2024.md, 2026-11-24).
const fn patches(element: Element) -> u32 {
    match (element.dimension, element.degree) {
        (Dimension::Two, 1 | 2 | 4 | 5) | (Dimension::Three, 1) => 16,
        (Dimension::Two, 6) | (Dimension::Three, 3 | 5 | 7 | 8) => 2,
        (Dimension::Two, _) | (Dimension::Three, 2) => 8,
        (Dimension::Three, 6) => 4,
        (Dimension::Three, _) => 1,
    }
}
