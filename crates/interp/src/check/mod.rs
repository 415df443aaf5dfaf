//! What is given at launch, checked without computing: assumptions, and accesses that no proof
//! covers.
//!
//! An access stays open before the launch where its index, a bound or a condition is read from
//! memory. With the values, the smallest and the largest entry of each map decide most of
//! them in one pass over the map; what they leave open is followed instance by instance, by the
//! instructions that indices, bounds and conditions depend on and by no others.

mod ranges;
mod slice;

use super::ascending;
use super::error::InterpError;
use super::injective;
use super::lists;
use super::lower::lower;
use super::machine::Machine;
use super::memory::Memory;
use super::outside;
use super::store;
use super::symmetry;
use kingpost_ir::ids::{Id, InsnId, VarId};
use kingpost_ir::kernel::{Assumption, Kernel};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// An access to an array, and whether it is proved to stay in bounds for all parameters that the
/// assumptions allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessProof {
    /// The instruction.
    pub insn: InsnId,
    /// Whether there is a proof.
    pub proved: bool,
}

/// What [`check_launch`] found in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaunchReport {
    /// Assumptions on the parameters that hold.
    pub params: usize,
    /// Arrays that are injective as assumed.
    pub injective: Vec<String>,
    /// Arrays whose entries ascend as assumed.
    pub ascending: Vec<String>,
    /// Arrays whose entries are outside ranges as assumed.
    pub outside: Vec<String>,
    /// Arrays that are symmetric as assumed.
    pub symmetric: Vec<String>,
    /// Maps whose lists hold their values as assumed.
    pub listed: Vec<String>,
    /// Arrays that are assumed injective, ascending, outside a range, symmetric or to have lists,
    /// and that the kernel fills itself: nothing is known of them.
    pub unchecked: Vec<String>,
    /// Accesses that stay inside their arrays for all parameters that the assumptions allow.
    pub proved: usize,
    /// Accesses that stay inside as the smallest and the largest entry of each map do.
    pub ranged: usize,
    /// Accesses of which every instance stays inside.
    pub followed: usize,
}

impl fmt::Display for LaunchReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = |names: &[String]| names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ");
        let Self { proved, ranged, followed, .. } = self;
        write!(
            f,
            "{} accesses inside their arrays ({proved} for all parameters, {ranged} by the range of the maps, \
             {followed} instance by instance)",
            proved + ranged + followed
        )?;
        if self.params > 0 {
            write!(f, "; {} assumptions on parameters hold", self.params)?;
        }
        if !self.injective.is_empty() {
            write!(f, "; injective: {}", named(&self.injective))?;
        }
        if !self.ascending.is_empty() {
            write!(f, "; ascending: {}", named(&self.ascending))?;
        }
        if !self.outside.is_empty() {
            write!(f, "; outside ranges: {}", named(&self.outside))?;
        }
        if !self.symmetric.is_empty() {
            write!(f, "; symmetric: {}", named(&self.symmetric))?;
        }
        if !self.listed.is_empty() {
            write!(f, "; with lists: {}", named(&self.listed))?;
        }
        if !self.unchecked.is_empty() {
            write!(f, "; filled by the kernel and not checked: {}", named(&self.unchecked))?;
        }
        Ok(())
    }
}

/// The variables whose values [`check_launch`] looks at: those of assumptions, and what the accesses
/// without a proof depend on.
///
/// # Errors
/// Parameters that are missing or break an assumption.
pub fn launch_inputs(
    kernel: &Kernel,
    params: &BTreeMap<String, i64>,
    accesses: &[AccessProof],
) -> Result<BTreeSet<VarId>, InterpError> {
    let mut program = lower(kernel, params)?;
    let mut inputs = slice::reduce_to(&mut program, &open(accesses));
    for assumption in &kernel.assumptions {
        match assumption {
            Assumption::Params(_) | Assumption::Defined(..) => {}
            Assumption::Injective(var) | Assumption::Ascending(var) => inputs.extend([*var]),
            Assumption::Outside(outside) => inputs.extend(outside.inputs(kernel)),
            Assumption::Symmetric(assumed) => inputs.extend([assumed.var]),
            Assumption::Lists(lists) => inputs.extend(lists.vars()),
        }
    }
    Ok(inputs)
}

/// The instructions with accesses that no proof covers.
fn open(accesses: &[AccessProof]) -> BTreeSet<InsnId> {
    accesses.iter().filter(|a| !a.proved).map(|a| a.insn).collect()
}

/// Checks what a kernel is about to be launched with: its assumptions on parameters and maps, and
/// every access that could leave its array. `accesses` are all of the kernel's, and what is proved
/// of them without values; `kingpost_analysis::Analysis::check_launch` supplies them.
///
/// Values that neither an index nor a bound or condition depends on are not looked at, and need not
/// be there.
///
/// # Errors
/// What the interpreter would refuse: an assumption that the parameters break, two entries of an
/// array that is assumed injective or symmetric, an instance that leaves an array with the entries
/// that led it there, parameters or maps that are missing or do not fit; more instances to be followed
/// than seconds allow.
pub fn check_launch(
    kernel: &Kernel,
    memory: &Memory,
    accesses: &[AccessProof],
) -> Result<LaunchReport, InterpError> {
    check_launch_within(kernel, memory, accesses, CHECK_STEPS)
}

/// Instances and loop iterations that a check follows: some seconds.
const CHECK_STEPS: u64 = 200_000_000;

/// [`check_launch`] in this many steps.
pub(crate) fn check_launch_within(
    kernel: &Kernel,
    memory: &Memory,
    accesses: &[AccessProof],
    limit: u64,
) -> Result<LaunchReport, InterpError> {
    let mut program = lower(kernel, memory.params())?;
    let unchecked = injective::check_injective(kernel, &program, memory)?;
    let unordered = ascending::check_ascending(kernel, &program, memory)?;
    let within = outside::check_outside(kernel, &program, memory)?;
    let asymmetric = symmetry::check_symmetric(kernel, &program, memory)?;
    let unlisted = lists::check_lists(kernel, &program, memory)?;
    let mut report = LaunchReport::default();
    for assumption in &kernel.assumptions {
        match assumption {
            Assumption::Params(_) => report.params += 1,
            Assumption::Defined(..) => {} // computed, and not checked
            Assumption::Injective(var) => {
                let list =
                    if unchecked.contains(var) { &mut report.unchecked } else { &mut report.injective };
                list.push(kernel.vars[*var].name.clone());
            }
            Assumption::Ascending(var) => {
                let list =
                    if unordered.contains(var) { &mut report.unchecked } else { &mut report.ascending };
                list.push(kernel.vars[*var].name.clone());
            }
            Assumption::Outside(outside) => {
                let known = !within.contains(&outside.array);
                let list = if known { &mut report.outside } else { &mut report.unchecked };
                list.push(kernel.vars[outside.array].name.clone());
            }
            Assumption::Symmetric(assumed) => {
                let var = assumed.var;
                let list =
                    if asymmetric.contains(&var) { &mut report.unchecked } else { &mut report.symmetric };
                list.push(kernel.vars[var].name.clone());
            }
            Assumption::Lists(lists) => {
                let known = !unlisted.contains(&lists.map);
                let list = if known { &mut report.listed } else { &mut report.unchecked };
                list.push(kernel.vars[lists.map].name.clone());
            }
        }
    }
    let mut ranges = ranges::Ranges::new(kernel, &program, memory);
    let follow: BTreeSet<InsnId> =
        open(accesses).into_iter().filter(|i| !ranges.stays_inside(&program.statements[i.index()])).collect();
    for access in accesses {
        match access.proved {
            true => report.proved += 1,
            false if follow.contains(&access.insn) => report.followed += 1,
            false => report.ranged += 1,
        }
    }
    if !follow.is_empty() {
        let wanted = slice::reduce_to(&mut program, &follow);
        let slots = store::load_some(kernel, &program, memory, &|v| wanted.contains(&v))?;
        let mut nobody = ();
        let mut machine = Machine::new(kernel, &program, slots, &mut nobody, limit);
        let refused = |fault: InterpError| {
            if let InterpError::StepLimit { at, limit } = fault {
                return InterpError::CheckLimit { at, limit };
            }
            fault
        };
        machine.run(&program.body).map_err(|fault| refused(*fault))?;
    }
    Ok(report)
}
