//! Even–odd products with the eigenvectors of a line, which are even or odd.

use crate::Steps;
use kingpost_ir::Kernel;
use kingpost_primitives::Schedule;
use kingpost_primitives::primitives::{
    CombineOrbits, DistributeLoop, DropZeroTerms, ExpandArray, InterchangeInames, PeelIname,
};

/// A sum over the nodes or modes of a line; its table has a row for each mode.
#[derive(Clone, Copy)]
pub(crate) struct Halves {
    /// The loop over results.
    pub(crate) results: &'static str,
    /// The loop over terms inside it.
    pub(crate) terms: &'static str,
    /// What reads the sum.
    pub(crate) behind: &'static str,
    /// Values of nodes that become modes, in a private array; modes become nodes where there is
    /// none.
    pub(crate) nodes: Option<&'static str>,
}

/// Takes sums and differences of opposite nodes; modes are the even ones, and then the odd ones,
/// one fewer. Blocks of the table are proved to be zero then, and left out. Given are the numbers
/// of sums and of even modes.
///
/// # Source
/// Solomonoff 1992, for matrices of differentiation.
pub(crate) fn halve(s: &mut Schedule, halves: Halves, (nodes_even, modes_even): (usize, usize)) -> Steps {
    let Halves { results, terms, behind, nodes } = halves;
    let sum = format!("r_{terms}");
    let sums = format!("{results}_sum");
    s.apply(ExpandArray::new(&sum, [results]))?;
    let names = vec![sums.clone(), format!("{results}_out")];
    s.make(DistributeLoop { names, ..DistributeLoop::new(results, [terms, behind]) })?;
    let (of_nodes, of_modes) = match nodes {
        Some(values) => {
            combine(s, values, nodes_even)?;
            (terms, sums.as_str())
        }
        None => {
            s.apply(InterchangeInames::new(&sums, terms))?;
            combine(s, &sum, nodes_even)?;
            (sums.as_str(), terms)
        }
    };
    // the node in the middle has no difference
    let middle = s.make(PeelIname::last(of_nodes, 1))?;
    drop_zeros(s, &sum, middle.name())?;
    let odd = s.make(PeelIname::last(of_modes, modes_even as i64 - 1))?;
    drop_zeros(s, &sum, odd.name())?;
    drop_zeros(s, &sum, of_modes)
}

/// Takes opposite elements together; the one in the middle is its own opposite.
fn combine(s: &mut Schedule, array: &str, even: usize) -> Steps {
    let opposite = (0..even as u32).map(|node| vec![node, 2 * even as u32 - 2 - node]);
    // what the symmetry makes zero is zero up to rounding
    s.make(CombineOrbits { rounded: true, ..CombineOrbits::new(array, opposite.collect::<Vec<_>>()) })
        .map(drop)
}

/// Removes the updates of a sum in a loop that add nothing but zeros.
fn drop_zeros(s: &mut Schedule, sum: &str, within: &str) -> Steps {
    for name in updates(s.kernel(), sum, within) {
        s.attempt(DropZeroTerms::new(name))?; // refused where an entry is not zero
    }
    Ok(())
}

/// Their names: a step makes others of them.
fn updates(kernel: &Kernel, sum: &str, within: &str) -> Vec<String> {
    let schedule = kernel.schedule();
    let of = schedule.iter().filter(|(insn, loops)| {
        let data = &kernel.insns[*insn];
        kernel.vars[data.lhs.var].name.starts_with(sum)
            && data.update_op().is_some()
            && kernel.iname(within).is_some_and(|l| loops.contains(&l))
    });
    of.map(|(insn, _)| kernel.insns[*insn].name.clone()).collect()
}
