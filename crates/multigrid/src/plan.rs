//! Lines of the kernels on Cartesian meshes.

use crate::Dimension;
use crate::operation::Operation;

/// A contraction: the loop over its results, the loops over lines from outside in, and what a line
/// reads.
pub(crate) type Contraction = (&'static str, &'static [&'static str], &'static [&'static str]);

/// Two nests over the same lines, and the array between them with the first of its axes along lanes.
pub(crate) type Fused = (&'static [&'static str], &'static [&'static str], (&'static str, u32));

/// What a kernel has of this structure.
pub(crate) struct Plan {
    pub(crate) contractions: &'static [Contraction],
    /// Loops that copy the nodes to local memory, from outside in.
    pub(crate) copies: &'static [&'static str],
    /// Neighbouring nests over the same lines, and the array between them that becomes a line, with
    /// the first of its axes that go.
    pub(crate) fused: &'static [Fused],
    /// Arrays whose lives take turns in a buffer.
    pub(crate) turns: &'static [&'static [&'static str]],
    /// Arrays that take turns in a buffer line by line, each line where the one it comes
    /// from was.
    pub(crate) places: &'static [&'static [&'static str]],
}

const SMOOTH_2D: [Contraction; 6] = [
    ("i_0", &["j_0"], &["u"]),
    ("j_1", &["i_1"], &["mu", "au"]),
    ("j_2", &["i_2"], &[]),
    ("i_3", &["j_3"], &["s0"]),
    ("i_4", &["j_4"], &[]),
    ("j_5", &["i_5"], &["s2"]),
];

const SMOOTH_3D: [Contraction; 9] = [
    ("i_0", &["k_0", "j_0"], &["u"]),
    ("j_1", &["k_1", "i_1"], &["mu", "au"]),
    ("k_2", &["j_2", "i_2"], &["mm", "ma"]),
    ("k_3", &["j_3", "i_3"], &[]),
    ("j_4", &["k_4", "i_4"], &["s0"]),
    ("i_5", &["k_5", "j_5"], &["s1"]),
    ("i_6", &["k_6", "j_6"], &[]),
    ("j_7", &["k_7", "i_7"], &["s3"]),
    ("k_8", &["j_8", "i_8"], &["s4"]),
];

/// Of the solution alone, whose first contraction reads the residual from local memory.
const SOLVE_2D: [Contraction; 4] = [
    ("j_2", &["i_2"], &["r"]),
    ("i_3", &["j_3"], &["s0"]),
    ("i_4", &["j_4"], &[]),
    ("j_5", &["i_5"], &["s2"]),
];

const SOLVE_3D: [Contraction; 6] = [
    ("k_3", &["j_3", "i_3"], &["r"]),
    ("j_4", &["k_4", "i_4"], &["s0"]),
    ("i_5", &["k_5", "j_5"], &["s1"]),
    ("i_6", &["k_6", "j_6"], &[]),
    ("j_7", &["k_7", "i_7"], &["s3"]),
    ("k_8", &["j_8", "i_8"], &["s4"]),
];

/// The plan of an operation on cells of a Cartesian mesh.
pub(crate) const fn plan(operation: Operation, dimension: Dimension) -> Plan {
    match (operation, dimension) {
        (Operation::PatchSolve | Operation::MeshSolve, Dimension::Two) => Plan {
            contractions: &SOLVE_2D,
            copies: &["j_1", "i_1"],
            fused: &[(&["j_3"], &["j_4"], ("s1", 0))],
            turns: &[&["r", "s2"]],
            places: &[&["r", "s0", "s2"]],
        },
        (Operation::PatchSolve | Operation::MeshSolve, Dimension::Three) => Plan {
            contractions: &SOLVE_3D,
            copies: &["k_2", "j_2", "i_2"],
            fused: &[(&["k_5", "j_5"], &["k_6", "j_6"], ("s2", 0))],
            turns: &[&["r", "s1", "s4"], &["s0", "s3"]],
            places: &[&["r", "s0", "s1", "s3", "s4"]],
        },
        (Operation::Smooth, Dimension::Two) => Plan {
            contractions: &SMOOTH_2D,
            copies: &["j_u", "i_u"],
            fused: &[(&["i_1"], &["i_2"], ("r", 1)), (&["j_3"], &["j_4"], ("s1", 0))],
            turns: &[&["u", "s0"], &["mu", "s2"]],
            places: &[&["u", "mu", "s0", "s2"]],
        },
        (Operation::Smooth, Dimension::Three) => Plan {
            contractions: &SMOOTH_3D,
            copies: &["k_u", "j_u", "i_u"],
            fused: &[
                (&["j_2", "i_2"], &["j_3", "i_3"], ("r", 1)),
                (&["k_5", "j_5"], &["k_6", "j_6"], ("s2", 0)),
            ],
            turns: &[&["u", "mm", "s1", "s4"], &["mu", "s0", "s3"]],
            places: &[&["u", "mu", "mm", "s0", "s1", "s3", "s4"], &["au", "ma"]],
        },
        // of a residual
        (_, Dimension::Two) => Plan {
            contractions: SMOOTH_2D.split_at(2).0,
            copies: &["j_u", "i_u"],
            fused: &[],
            turns: &[],
            places: &[&["u", "mu"]],
        },
        (_, Dimension::Three) => Plan {
            contractions: SMOOTH_3D.split_at(3).0,
            copies: &["k_u", "j_u", "i_u"],
            fused: &[],
            turns: &[&["u", "mm"]],
            places: &[&["u", "mu", "mm"], &["au", "ma"]],
        },
    }
}
