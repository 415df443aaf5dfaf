//! A schedule in the making: steps that are tried, kept where the model says that they pay, and the
//! reasons of those that are not.

use crate::asked::Asked;
use crate::model::{Machine, cycles};
use kingpost_ir::{AddressSpace, Affine, Assumption, AxisTag, Constraint, InameId, InsnId, Kernel, Node};
use kingpost_ir::{VarKind, Variable};
use kingpost_steps::tree::{insns_of, loop_body};
use kingpost_steps::{Primitive, Refusal, Schedule, TransformError};
use kingpost_transforms::primitives::{Reschedule, SetAddressSpace};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A step or a group of steps: what came of it.
pub(crate) type Tried<T = ()> = Result<T, TransformError>;

/// A schedule, its predicted time, and what was considered on the way.
#[derive(Clone, Debug)]
pub(crate) struct Draft<'a> {
    pub(crate) schedule: Schedule,
    pub(crate) cycles: f64,
    pub(crate) params: &'a BTreeMap<String, i64>,
    pub(crate) machine: Cow<'a, Machine>,
    /// A line for each idea.
    pub(crate) considered: Vec<String>,
    /// What isl was asked for these drafts.
    pub(crate) asked: Arc<Asked>,
    /// After tiles in pieces that were taken, the next best.
    pub(crate) next_pieces: Option<NextPieces>,
}

/// Tiles in pieces that are yet to be made.
#[derive(Clone, Debug)]
pub(crate) struct NextPieces {
    /// The schedule before them.
    pub(crate) parted: Schedule,
    /// The bands, each with the order of its loops.
    pub(crate) bands: Vec<(Reschedule, Vec<usize>)>,
}

impl<'a> Draft<'a> {
    pub(crate) fn new(kernel: &Kernel, params: &'a BTreeMap<String, i64>, machine: &'a Machine) -> Self {
        let cycles = cycles(kernel, params, machine);
        let machine = Cow::Borrowed(machine);
        Self {
            schedule: Schedule::of(kernel),
            cycles,
            params,
            machine,
            considered: Vec::new(),
            asked: Arc::default(),
            next_pieces: None,
        }
    }

    /// The program as it is written, with temporaries that no target can declare in memory that is
    /// passed.
    ///
    /// # Errors
    /// A bug.
    pub(crate) fn written(
        kernel: &Kernel,
        params: &'a BTreeMap<String, i64>,
        machine: &'a Machine,
    ) -> Tried<Self> {
        let mut draft = Self::new(kernel, params, machine);
        for var in kernel.vars.values().filter(|var| is_of_any_size(kernel, var)) {
            let step = SetAddressSpace::new(&var.name, AddressSpace::Global);
            draft.restart(&format!("`{}`, of any size, in memory", var.name), |d| d.make(step))?;
        }
        Ok(draft)
    }

    pub(crate) fn kernel(&self) -> &Kernel {
        self.schedule.kernel()
    }

    pub(crate) fn make<P: Primitive>(&mut self, primitive: P) -> Tried<P::Made> {
        self.schedule.make(primitive)
    }

    /// The cycles that the model predicts of what there is now.
    pub(crate) fn predicted(&self) -> f64 {
        cycles(self.kernel(), self.params, &self.machine)
    }

    /// Tries an idea as if all lines were in the innermost cache: the model takes the time of a line
    /// for the same wherever it lies, although processors fetch the next lines of a row ahead.
    ///
    /// # Errors
    /// As the idea.
    pub(crate) fn in_cache(&mut self, idea: impl FnOnce(&mut Self) -> Tried) -> Tried {
        let machine = self.machine.clone();
        self.machine.to_mut().caches.clear();
        self.cycles = self.predicted();
        let done = idea(self);
        self.machine = machine;
        self.cycles = self.predicted();
        done
    }

    /// Applies the steps of an idea. They stay where all are legal and the model says that they pay;
    /// else what was before stays, and the reason is noted.
    ///
    /// # Errors
    /// A bug: what no idea may pass over.
    pub(crate) fn consider(&mut self, idea: &str, steps: impl FnOnce(&mut Self) -> Tried) -> Tried<bool> {
        let before = (self.schedule.clone(), self.cycles);
        let why = match refusable(steps(self))? {
            Err(error) => format!("refused: {error}"),
            Ok(()) => {
                let cycles = self.predicted();
                let ratio = format!("predicted {:.3} of the time before", cycles / before.1);
                if cycles < 0.98 * before.1 {
                    self.cycles = cycles;
                    self.considered.push(format!("{idea}: taken, {ratio}"));
                    return Ok(true);
                }
                format!("left, {ratio}")
            }
        };
        (self.schedule, self.cycles) = before;
        self.considered.push(format!("{idea}: {why}"));
        Ok(false)
    }

    /// Applies the steps of an idea that later ones build on, whatever the model says of them alone.
    ///
    /// # Errors
    /// A bug.
    pub(crate) fn restart(&mut self, idea: &str, steps: impl FnOnce(&mut Self) -> Tried) -> Tried {
        let before = self.schedule.clone();
        let line = match refusable(steps(self))? {
            Err(error) => {
                self.schedule = before;
                format!("{idea}: refused: {error}")
            }
            Ok(()) => {
                let now = self.predicted();
                let ratio = now / self.cycles;
                self.cycles = now;
                format!("{idea}: taken, predicted {ratio:.3} of the time before")
            }
        };
        self.considered.push(line);
        Ok(())
    }

    /// The loops that hold instructions and no other loops but those that are written out, outer
    /// loops of each first.
    pub(crate) fn innermost(&self) -> Vec<Vec<String>> {
        let kernel = self.kernel();
        let mut found = Vec::new();
        walk(kernel, &kernel.body, &mut Vec::new(), &mut found);
        found
    }

    /// The statements of the loop of this name.
    pub(crate) fn body(&self, name: &str) -> &[Node] {
        let kernel = self.kernel();
        kernel.iname(name).and_then(|iname| loop_body(&kernel.body, iname)).unwrap_or(&[])
    }

    /// What a step names a statement by.
    pub(crate) fn name_of(&self, node: &Node) -> String {
        match node {
            Node::Loop(iname, _) => self.kernel().inames[*iname].name.clone(),
            Node::Insn(insn) => self.kernel().insns[*insn].name.clone(),
        }
    }

    /// The instructions in the loop of this name.
    pub(crate) fn insns(&self, name: &str) -> Vec<InsnId> {
        insns_of(self.body(name))
    }
}

/// Whether a private temporary has as many elements as parameters say, and nothing else bounds them.
fn is_of_any_size(kernel: &Kernel, var: &Variable) -> bool {
    matches!(var.kind, VarKind::Temporary)
        && var.space == AddressSpace::Private
        && !var.shape.iter().all(|extent| is_bounded(kernel, extent))
}

/// Whether assumptions bound each parameter of an extent by a constant, as code that declares private
/// memory needs it.
fn is_bounded(kernel: &Kernel, extent: &Affine) -> bool {
    extent.terms().iter().all(|(atom, c)| {
        kernel.assumptions.iter().any(|assumption| {
            let Assumption::Params(constraint) = assumption else { return false };
            let of_it_alone = |e: &Affine| e.terms().len() == 1 && e.coefficient(atom) != 0;
            match constraint {
                Constraint::NonNegative(e) => of_it_alone(e) && e.coefficient(atom).signum() == -c.signum(),
                Constraint::Zero(e) => of_it_alone(e),
            }
        })
    })
}

/// What steps made, or why they were refused.
///
/// # Errors
/// A bug: what no idea may pass over.
pub(crate) fn refusable<T>(tried: Tried<T>) -> Tried<Tried<T>> {
    match tried {
        Err(error) if matches!(error.cause, Refusal::Internal(_)) => Err(error),
        Ok(_) | Err(_) => Ok(tried),
    }
}

/// Whether a loop runs one iteration after the other, and is no straight-line code.
pub(crate) fn is_sequential(kernel: &Kernel, iname: InameId) -> bool {
    match kernel.inames[iname].tag {
        AxisTag::Sequential | AxisTag::Rolled => true,
        AxisTag::Unrolled | AxisTag::Vector | AxisTag::Launch | AxisTag::Group(_) | AxisTag::Local(_) => {
            false
        }
    }
}

fn walk(kernel: &Kernel, nodes: &[Node], around: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
    for node in nodes {
        let Node::Loop(iname, body) = node else { continue };
        around.push(kernel.inames[*iname].name.clone());
        if is_sequential(kernel, *iname) && !body.iter().any(|node| holds_loops(kernel, node)) {
            found.push(around.clone());
        } else {
            walk(kernel, body, around, found);
        }
        around.pop();
    }
}

fn holds_loops(kernel: &Kernel, node: &Node) -> bool {
    match node {
        Node::Insn(_) => false,
        Node::Loop(iname, body) => {
            is_sequential(kernel, *iname) || body.iter().any(|node| holds_loops(kernel, node))
        }
    }
}
