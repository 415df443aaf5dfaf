//! Temporaries of which every iteration gets its own, so that they order nothing.

use crate::draft::{Draft, Tried, refusable};
use kingpost_ir::{Access, AddressSpace, InameId, InsnId, Kernel, Node, VarId, VarKind};
use kingpost_steps::tree::insns_of;
use kingpost_steps::{Refusal, TransformError};
use kingpost_transforms::primitives::{
    AssignToRule, CutIname, DistributeLoop, ExpandArray, ExpandRule, MapInames, PrefetchArray,
    SetAddressSpace, SplitLives,
};

/// Most operations and operands of a program whose temporaries are computed where they are read: stencils
/// in a row have as many times more as they have points.
const MOST_TERMS: usize = 400;

impl Draft<'_> {
    /// Computes the elements of temporaries where they are read, so that no launch writes them for another.
    ///
    /// # Errors
    /// A bug; that there is no such temporary.
    pub(super) fn compute_where_read(&mut self) -> Tried {
        let kernel = self.kernel();
        let is_array = |v: &VarId| {
            matches!(kernel.vars[*v].kind, VarKind::Temporary) && !kernel.vars[*v].shape.is_empty()
        };
        let vars: Vec<String> =
            kernel.vars.ids().filter(is_array).map(|v| kernel.vars[v].name.clone()).collect();
        let operation = "compute where read".to_owned();
        let cause = Refusal::argument("temporaries", "no array of one definition", "one that is");
        let (mut refused, mut done) = (TransformError { operation, cause }, false);
        for var in vars {
            let before = self.schedule.clone();
            let tried =
                self.make(AssignToRule::new(&var)).and_then(|rule| self.make(ExpandRule::new(rule.name())));
            match refusable(tried.map(drop))? {
                Ok(()) if terms(self.kernel()) <= MOST_TERMS => done = true,
                Ok(()) => self.schedule = before,
                Err(why) => {
                    self.schedule = before;
                    refused = why;
                }
            }
        }
        if done { Ok(()) } else { Err(refused) }
    }

    /// Gives the iterations of loops temporaries of their own where they carry nothing but reuse from
    /// one to the next.
    ///
    /// # Errors
    /// A bug.
    pub(super) fn expand_temporaries(&mut self) -> Tried {
        let body = self.kernel().body.clone();
        self.split_lives(&body)?;
        let kernel = self.kernel();
        let is_temporary = |v: &VarId| matches!(kernel.vars[*v].kind, VarKind::Temporary);
        let vars: Vec<String> =
            kernel.vars.ids().filter(is_temporary).map(|v| kernel.vars[v].name.clone()).collect();
        for var in vars {
            let mut loops = self.around_uses(&var);
            let before = self.schedule.clone();
            let space = self.kernel().var(&var).map(|v| self.kernel().vars[v].space);
            let moves = !loops.is_empty() && space != Some(AddressSpace::Global);
            if moves && let Err(refused) = self.make(SetAddressSpace::new(&var, AddressSpace::Global)) {
                self.pass(refused)?;
                continue;
            }
            let mut expanded = false;
            while !loops.is_empty() && !expanded {
                match self.make(ExpandArray::new(&var, loops.clone())) {
                    Ok(()) => expanded = true,
                    Err(refused) => self.pass(refused)?,
                }
                loops.pop();
            }
            if !expanded {
                self.schedule = before;
            }
        }
        Ok(())
    }

    /// Copies arrays that are read elsewhere than where they are written, as long as they have their first
    /// values: these wait for nothing.
    ///
    /// # Errors
    /// A bug; that there is nothing to copy.
    pub(super) fn copy_first_values(&mut self) -> Tried {
        let kernel = self.kernel();
        let written: Vec<&Access> = kernel.insns.values().map(|insn| &insn.lhs).collect();
        let mut reads: Vec<(String, String)> = Vec::new();
        for access in kernel.insns.values().flat_map(|insn| insn.reads()) {
            let var = &kernel.vars[access.var];
            let read = (var.name.clone(), kernel.show_access(access).to_string());
            let is_changed = written.iter().any(|w| w.var == access.var) && !written.contains(&access);
            if is_changed && !var.shape.is_empty() && !reads.contains(&read) {
                reads.push(read);
            }
        }
        let operation = "copy first values".to_owned();
        let cause =
            Refusal::argument("arrays", "no array is read elsewhere than it is written", "one that is");
        let (mut refused, mut copied) = (TransformError { operation, cause }, false);
        for (var, text) in reads {
            let derived =
                |name: &str| vec![format!("fetch_{name}"), format!("{name}_0"), format!("{name}_1")];
            let first = self.schedule.fresh_with(&format!("{var}_first"), derived);
            let step = PrefetchArray::whole(&var, AddressSpace::Global).into_temporary(first);
            match refusable(self.make(step.only_reads([text])))? {
                Ok(_) => copied = true,
                Err(why) => refused = why,
            }
        }
        if copied { Ok(()) } else { Err(refused) }
    }

    /// Runs two loops of each nest, of which `around` others are around, along their diagonals.
    ///
    /// # Errors
    /// Loops that are none of a perfect nest; a diagonal that breaks an order.
    pub(crate) fn skew_outer(&mut self, around: usize) -> Tried {
        for node in self.kernel().body.clone() {
            let nest = self.perfect_nest(&node);
            if let Some([outer, inner]) = nest.get(around..around + 2) {
                self.make(MapInames::new([outer, inner], [vec![1, 1], vec![1, 0]]))?;
            }
        }
        Ok(())
    }

    /// Cuts the loops inside the outermost one of each perfect nest before and after its value, and gives
    /// each part a nest: what all iterations read of one row and one column is written in nests of its own.
    ///
    /// # Errors
    /// A loop that has no iteration on one side; an order that the nests would break.
    pub(super) fn cut_at_outer(&mut self) -> Tried {
        for node in self.kernel().body.clone() {
            let nest = self.perfect_nest(&node);
            let Some((outer, inner)) = nest.split_first() else { continue };
            for l in inner.iter().rev() {
                self.make(CutIname::new(l, outer))?;
                self.make(CutIname::new(l, format!("{outer} + 1")))?;
            }
            for l in self.names_in(outer) {
                self.distribute_all(&l)?;
            }
        }
        Ok(())
    }

    /// Gives each statement of a loop, and of those that it holds, a nest of its own.
    fn distribute_all(&mut self, name: &str) -> Tried {
        for inner in self.names_in(name) {
            self.distribute_all(&inner)?;
        }
        match self.names_in(name).split_first() {
            Some((_, later)) if !later.is_empty() => {
                self.make(DistributeLoop::new(name, later.to_vec())).map(|_| ())
            }
            Some(_) | None => Ok(()),
        }
    }

    pub(super) fn names_in(&self, name: &str) -> Vec<String> {
        self.body(name).iter().map(|node| self.name_of(node)).collect()
    }

    /// The loops of a statement that hold nothing else, outer ones first.
    pub(super) fn perfect_nest(&self, node: &Node) -> Vec<String> {
        let mut nest = Vec::new();
        let mut nodes = std::slice::from_ref(node);
        while let [only @ Node::Loop(_, body)] = nodes {
            nest.push(self.name_of(only));
            nodes = body;
        }
        nest
    }

    /// Gives each loop of a body temporaries of its own, where no value passes from one to the other.
    fn split_lives(&mut self, nodes: &[Node]) -> Tried {
        let loops: Vec<(String, &Vec<Node>)> = nodes
            .iter()
            .filter_map(|node| match node {
                Node::Loop(_, body) => Some((self.name_of(node), body)),
                Node::Insn(_) => None,
            })
            .collect();
        for (name, body) in loops {
            if nodes.len() > 1 && self.uses_temporaries(&name) {
                let stem = self.schedule.fresh(&name);
                if let Err(refused) = self.make(SplitLives::new(&name, stem)) {
                    self.pass(refused)?;
                }
            }
            self.split_lives(body)?;
        }
        Ok(())
    }

    fn uses_temporaries(&self, name: &str) -> bool {
        let kernel = self.kernel();
        let written = self.insns(name).into_iter().map(|s| kernel.insns[s].lhs.var);
        written.into_iter().any(|v| matches!(kernel.vars[v].kind, VarKind::Temporary))
    }

    /// The loops around all uses of a variable, outer ones first.
    fn around_uses(&self, var: &str) -> Vec<String> {
        let kernel = self.kernel();
        let Some(var) = kernel.var(var) else { return Vec::new() };
        let uses = |s: InsnId| {
            let insn = &kernel.insns[s];
            insn.lhs.var == var || insn.reads().iter().any(|access| access.var == var)
        };
        let mut around: Vec<InameId> = Vec::new();
        let mut nodes: &[Node] = &kernel.body;
        loop {
            let using: Vec<&Node> = nodes
                .iter()
                .filter(|node| insns_of(std::slice::from_ref(*node)).into_iter().any(uses))
                .collect();
            let [Node::Loop(iname, body)] = using.as_slice() else { break };
            around.push(*iname);
            nodes = body;
        }
        around.into_iter().map(|l| kernel.inames[l].name.clone()).collect()
    }
}

/// The operations and operands of all instructions.
fn terms(kernel: &Kernel) -> usize {
    let mut count = 0;
    for insn in kernel.insns.values() {
        insn.expressions().for_each(|e| e.for_each(&mut |_| count += 1));
    }
    count
}
