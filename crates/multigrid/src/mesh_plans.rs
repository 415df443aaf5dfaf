//! Lines of the kernels on cells whose vertices lie anywhere.

use crate::operation::Operation;
use crate::plan::{Contraction, Plan};
use crate::{Dimension, Element};

const RESIDUAL_2D: [Contraction; 9] = [
    ("i_0", &["j_0"], &["u"]),
    ("j_1", &["i_1"], &["t0"]),
    ("i_2", &["j_2"], &["t1"]),
    ("j_3", &["i_3"], &["t1"]),
    ("j_4", &["i_4"], &[]),
    ("j_5", &["i_5"], &[]),
    ("i_6", &["j_6"], &["f0"]),
    ("i_7", &["j_7"], &[]),
    ("j_8", &["i_8"], &["z0"]),
];

const RESIDUAL_3D: [Contraction; 13] = [
    ("i_0", &["k_0", "j_0"], &["u"]),
    ("j_1", &["k_1", "i_1"], &["t0"]),
    ("k_2", &["j_2", "i_2"], &["t1"]),
    ("i_3", &["k_3", "j_3"], &["t2"]),
    ("j_4", &["k_4", "i_4"], &["t2"]),
    ("k_5", &["j_5", "i_5"], &["t2"]),
    ("k_6", &["j_6", "i_6"], &[]),
    ("k_7", &["j_7", "i_7"], &[]),
    ("j_8", &["k_8", "i_8"], &["f1"]),
    ("i_9", &["k_9", "j_9"], &["f0"]),
    ("i_10", &["k_10", "j_10"], &[]),
    ("j_11", &["k_11", "i_11"], &["z0"]),
    ("k_12", &["j_12", "i_12"], &["z1"]),
];

const LOAD_2D: [Contraction; 5] = [
    ("i_0", &["j_0"], &["u"]),
    ("j_1", &["i_1"], &["t0"]),
    ("j_2", &["i_2"], &[]),
    ("i_3", &["j_3"], &["f"]),
    ("j_4", &["i_4"], &["z0"]),
];

const LOAD_3D: [Contraction; 7] = [
    ("i_0", &["k_0", "j_0"], &["u"]),
    ("j_1", &["k_1", "i_1"], &["t0"]),
    ("k_2", &["j_2", "i_2"], &["t1"]),
    ("k_3", &["j_3", "i_3"], &[]),
    ("i_4", &["k_4", "j_4"], &["f"]),
    ("j_5", &["k_5", "i_5"], &["z0"]),
    ("k_6", &["j_6", "i_6"], &["z1"]),
];

/// The plan of the residual, or of integrals of a function. Slopes along the last axis, the metric and the
/// transpose of the slopes are one nest: what lies between them stays in registers.
pub(crate) const fn plan(operation: Operation, dimension: Dimension) -> Plan {
    let is_residual = matches!(operation, Operation::MeshResidual);
    match (is_residual, dimension) {
        (true, Dimension::Two) => Plan {
            contractions: &RESIDUAL_2D,
            copies: &["j_u", "i_u"],
            fused: &[
                (&["i_3"], &["i_4"], ("g1", 1)),
                (&["i_3"], &["i_5"], ("f1", 1)),
                (&["j_6"], &["j_7"], ("y0", 0)),
            ],
            turns: &[&["u", "t0", "t1", "y", "z0"], &["g0", "f0"]],
            places: &[&["u", "t0", "t1", "y", "z0"], &["g0", "f0"]],
        },
        (true, Dimension::Three) => Plan {
            contractions: &RESIDUAL_3D,
            copies: &["k_u", "j_u", "i_u"],
            fused: &[
                (&["j_5", "i_5"], &["j_6", "i_6"], ("g2", 1)),
                (&["j_5", "i_5"], &["j_7", "i_7"], ("f2", 1)),
                (&["k_9", "j_9"], &["k_10", "j_10"], ("y0", 0)),
            ],
            turns: &[&["u", "t0", "t1", "t2", "y", "z0", "z1"], &["g0", "f0"], &["g1", "f1"]],
            places: &[&["u", "t0", "t1", "t2", "y", "z0", "z1"], &["g0", "f0"], &["g1", "f1"]],
        },
        (false, Dimension::Two) => Plan {
            contractions: &LOAD_2D,
            copies: &["j_u", "i_u"],
            fused: &[(&["i_1"], &["i_2"], ("t1", 1))],
            turns: &[&["u", "t0", "f", "z0"]],
            places: &[&["u", "t0", "f", "z0"]],
        },
        (false, Dimension::Three) => Plan {
            contractions: &LOAD_3D,
            copies: &["k_u", "j_u", "i_u"],
            fused: &[(&["j_2", "i_2"], &["j_3", "i_3"], ("t2", 1))],
            turns: &[&["u", "t0", "t1", "f", "z0", "z1"]],
            places: &[&["u", "t0", "t1", "f", "z0", "z1"]],
        },
    }
}

/// Cells of a work-group: a hundred work-items, or those of one cell.
pub(crate) const fn cells(element: Element) -> u32 {
    let m = element.degree as u32 + 1;
    let lines = match element.dimension {
        Dimension::Two => m,
        Dimension::Three => m * m,
    };
    match 128 / lines {
        0 => 1,
        32.. => 32,
        cells => cells,
    }
}
