//! Contractions by FP64 matrix instructions: how the elements of this study are dealt out.

use super::nest::Steps;
use kingpost::prelude::Schedule;
use kingpost::transforms::instruction_lines::InstructionLines;

/// Lines of an element that a tile has.
const TILE: i64 = 8;

/// Sub-groups of an element, each with four planes of eight, or two of sixteen nodes.
pub fn sub_groups(nodes: usize) -> i64 {
    if nodes as i64 == TILE { 2 } else { nodes as i64 / 2 }
}

/// One sub-group for an element of eight planes.
pub fn few_sub_groups(nodes: usize) -> i64 {
    if nodes as i64 == TILE { 1 } else { sub_groups(nodes) }
}

/// The contractions of BP3.5, each with lines along the axis that is contracted.
pub fn contract_all(s: &mut Schedule, lines: &mut InstructionLines) -> Steps {
    for (nest, terms) in [
        (["k_sum", "j_sum", "i_sum"], "lr"),
        (["c_sum", "b_sum", "a_sum"], "mr"),
        (["k_s_sum", "i_s_sum", "j_s_sum"], "ls"),
        (["c_s_sum", "a_s_sum", "b_s_sum"], "ms"),
        (["j_t_sum", "i_t_sum", "k_t_sum"], "lt"),
        (["b_t_sum", "a_t_sum", "c_t_sum"], "mt"),
    ] {
        lines.contract(s, nest, terms)?;
    }
    Ok(())
}
