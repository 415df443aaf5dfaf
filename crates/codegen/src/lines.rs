//! What each line of a source is for.

use crate::ast::{Fence, HostStmt};
use crate::barriers;
use crate::function::Function;
use crate::print::{self, Mark, Marked};
use crate::target::TargetDescription;
use kingpost_analysis::Analysis;
use kingpost_analysis::placement::{Barrier, Scope};
use kingpost_ir::{InsnId, Kernel};
use std::collections::BTreeSet;

/// A line of a source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// The statements that it computes something for, in textual order.
    pub insns: Vec<String>,
    /// The statements in the loop or under the condition that it opens or ends.
    pub around: Vec<String>,
    /// What a barrier on it separates; none where there is no barrier.
    pub barrier: Option<Vec<Separated>>,
}

/// Two statements that a barrier separates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Separated {
    /// What must be finished.
    pub source: String,
    /// What may then start.
    pub sink: String,
    /// The variable between them.
    pub var: String,
    /// The loop, if the second one is in a later iteration of it.
    pub carrier: Option<String>,
    /// The work-items that wait for each other.
    pub scope: Scope,
}

/// A function and its kernel.
pub(crate) struct Part<'a> {
    pub(crate) function: &'a Function,
    pub(crate) kernel: &'a Kernel,
    pub(crate) barriers: Vec<Barrier>,
}

/// The lines of the source of some functions.
pub(crate) fn of_source(
    parts: &[Part<'_>],
    host: Option<(&Function, &[HostStmt])>,
    target: &'static TargetDescription,
    contraction: bool,
) -> Vec<Line> {
    let functions: Vec<&Function> = parts.iter().map(|part| part.function).collect();
    let source = print::marked(&functions, host, target, contraction);
    let mut starts: Vec<usize> = vec![0];
    starts.extend(source.text.match_indices('\n').map(|(at, _)| at + 1));
    starts.pop(); // nothing follows the last line
    let mut lines = vec![None; starts.len()];
    // what is inside comes first
    for mark in &source.marks {
        let part = &parts[mark.function];
        let line = part.line(mark);
        let first = starts.partition_point(|start| *start < mark.bytes.start);
        let end = starts.partition_point(|start| *start < mark.bytes.end);
        for here in &mut lines[first..end] {
            here.get_or_insert_with(|| line.clone());
        }
    }
    lines.into_iter().map(Option::unwrap_or_default).collect() // others are for no statement
}

impl Part<'_> {
    fn line(&self, mark: &Mark) -> Line {
        match &mark.of {
            Marked::Insns(insns) => Line { insns: self.names(insns), ..Line::default() },
            Marked::Around(insns) => Line { around: self.names(insns), ..Line::default() },
            Marked::Barrier(fence) => Line { barrier: Some(self.separated(fence)), ..Line::default() },
        }
    }

    fn names(&self, insns: &BTreeSet<InsnId>) -> Vec<String> {
        let in_order = self.kernel.schedule().into_iter().map(|(id, _)| id);
        in_order.filter(|id| insns.contains(id)).map(|id| self.kernel.insns[id].name.clone()).collect()
    }

    fn separated(&self, fence: &Fence) -> Vec<Separated> {
        let kernel = self.kernel;
        let mut all = self.barriers.clone();
        all.extend(Analysis::of(kernel).reuse());
        let met = barriers::met(kernel, &all, fence);
        let separated = |sync: Barrier| Separated {
            source: kernel.insns[sync.source].name.clone(),
            sink: kernel.insns[sync.sink].name.clone(),
            var: kernel.vars[sync.var].name.clone(),
            carrier: sync.carrier.map(|l| kernel.inames[l].name.clone()),
            scope: sync.scope,
        };
        met.into_iter().map(separated).collect()
    }
}
