//! A maximum and the sums of exponentials below it in one pass: an online softmax of rows, and attention without a
//! row of weights in memory (flash attention).
//!
//! Weights that are stored are computed where they are used, and the loops of all sums begin with that over what
//! the maximum is taken of. Then [`RescaleReduction`] makes one loop of them, which is proved up to the rounding of
//! sums that are scaled.

use crate::draft::{Draft, Tried};
use kingpost_algebra::primitives::RescaleReduction;
use kingpost_ir::{
    AddressSpace, AxisTag, Expr, InameId, Insn, InsnId, Kernel, MathFn, Node, UpdateOp, VarKind,
};
use kingpost_steps::tree::{inames_of, insns_of, siblings};
use kingpost_steps::{Refusal, TransformError};
use kingpost_transforms::primitives::{
    AssignToRule, BufferWrites, ContractArray, ExpandArray, ExpandRule, ExtractRule, FuseLoops, MoveInsns,
    PrecomputeRule, PrefetchArray, SetAddressSpace, SplitArrayAxis, SplitIname, SplitLives, Tag,
};

/// Iterations between two rescalings: their scores and weights stay with a row.
const BLOCK: i64 = 16;

/// Iterations of a loop that is written out.
const WRITTEN_OUT: i64 = 64;

/// A loop that takes a maximum, which is used after it.
struct Maximum {
    /// The loop directly around, if there is one.
    around: Option<String>,
    along: String,
    max: String,
}

/// An instruction that stores what depends on the maximum in a temporary.
struct Weights {
    insn: String,
    var: String,
    /// Whether it reads the temporary.
    in_place: bool,
}

/// A sum of exponentials below the maximum.
struct Sum {
    insn: String,
    var: String,
    /// The loops around the instruction, from the body of the maximum's loop inwards.
    loops: Vec<String>,
    /// Which of them goes over what the maximum is taken of.
    along: usize,
}

impl Draft<'_> {
    /// Sums exponentials in the loop that takes the maximum below which they are.
    ///
    /// # Errors
    /// A bug.
    pub(crate) fn pass_once(&mut self) -> Tried {
        for maximum in self.maxima() {
            self.restart(&format!("the sums below `{}` in one pass", maximum.max), |d| d.one_pass(&maximum))?;
        }
        Ok(())
    }

    /// Writes out loops of constant length, so that arrays of a work-item are in registers.
    ///
    /// # Errors
    /// A bug.
    pub(crate) fn write_out_constant(&mut self) -> Tried {
        let kernel = self.kernel();
        let is_short = |l: &InameId| {
            let range = kernel.inames[*l].domain.as_guarded_range(*l);
            let length = range.and_then(|range| range.length().as_constant());
            kernel.inames[*l].tag == AxisTag::Sequential && length.is_some_and(|n| n <= WRITTEN_OUT)
        };
        let loops: Vec<InameId> = inames_of(kernel, &kernel.body).into_iter().filter(is_short).collect();
        let names: Vec<String> = loops.into_iter().map(|l| kernel.inames[l].name.clone()).collect();
        self.restart("write out loops of constant length", |d| d.make(Tag::all(names, AxisTag::Unrolled)))
    }

    fn maxima(&self) -> Vec<Maximum> {
        fn walk(kernel: &Kernel, nodes: &[Node], around: Option<InameId>, found: &mut Vec<Maximum>) {
            for (at, node) in nodes.iter().enumerate() {
                let Node::Loop(along, body) = node else { continue };
                let later = insns_of(&nodes[at + 1..]);
                let is_used = |insn: &&Insn| {
                    insn.update_op() == Some(UpdateOp::Max)
                        && !insn.lhs.index.iter().any(|e| e.mentions(*along))
                        && later.iter().any(|s| kernel.insns[*s].rhs.loads(insn.lhs.var))
                };
                let top = insns_of(body).into_iter().map(|s| &kernel.insns[s]).find(is_used);
                let name = |l: InameId| kernel.inames[l].name.clone();
                match top {
                    Some(top) => found.push(Maximum {
                        around: around.map(name),
                        along: name(*along),
                        max: kernel.vars[top.lhs.var].name.clone(),
                    }),
                    None => walk(kernel, body, Some(*along), found),
                }
            }
        }
        let mut found = Vec::new();
        walk(self.kernel(), &self.kernel().body, None, &mut found);
        found
    }

    /// What stands after the loop of a maximum in the same body.
    fn after(&self, along: &str) -> &[Node] {
        let kernel = self.kernel();
        let is_it = |node: &Node| matches!(node, Node::Loop(l, _) if kernel.inames[*l].name == along);
        let nodes = siblings(&kernel.body, &is_it).unwrap_or(&[]);
        let at = nodes.iter().position(is_it);
        at.map_or(&[], |at| &nodes[at + 1..])
    }

    fn one_pass(&mut self, maximum: &Maximum) -> Tried {
        while let Some(Weights { insn, var, in_place }) = self.stored_weights(maximum) {
            if in_place {
                self.separate_scores(maximum, &insn, &var)?;
            }
            self.compute_where_used(&var)?;
        }
        let sums = self.sums_below(maximum)?;
        let mut loops: Vec<String> = Vec::new();
        for Sum { loops: around, along, .. } in &sums {
            let pass = around[*along].clone();
            for outer in around[..*along].iter().rev() {
                self.carry_in(outer, &pass)?;
            }
            if !loops.contains(&pass) {
                loops.push(pass);
            }
        }
        let [block, _] = self.make(SplitIname::new(&maximum.along, BLOCK))?;
        for pass in loops {
            self.make(SplitIname::new(pass, BLOCK))?;
        }
        let mut vars: Vec<&String> = sums.iter().map(|sum| &sum.var).collect();
        vars.dedup();
        let step = RescaleReduction::new(&maximum.max, vars.iter().copied(), block.name());
        self.make(step)?;
        self.keep_scores(block.name())?;
        if let [first, _, ..] = sums.as_slice() {
            self.share_weights(maximum, first, block.name())?;
        }
        if let Some(around) = &maximum.around {
            self.keep_row(around, block.name(), &vars)?;
        }
        Ok(())
    }

    fn stored_weights(&self, maximum: &Maximum) -> Option<Weights> {
        let kernel = self.kernel();
        let max = kernel.var(&maximum.max)?;
        let later = insns_of(self.after(&maximum.along)).into_iter().map(|s| &kernel.insns[s]);
        later.filter(|insn| insn.update_op().is_none() && insn.rhs.loads(max)).find_map(|insn| {
            let var = &kernel.vars[insn.lhs.var];
            matches!(var.kind, VarKind::Temporary).then(|| Weights {
                insn: insn.name.clone(),
                var: var.name.clone(),
                in_place: insn.rhs.loads(insn.lhs.var),
            })
        })
    }

    fn insn(&self, name: &str) -> Option<&Insn> {
        let kernel = self.kernel();
        kernel.insn(name).map(|insn| &kernel.insns[insn])
    }

    fn compute_where_used(&mut self, var: &str) -> Tried {
        let rule = self.make(AssignToRule::new(var))?;
        self.make(ExpandRule::new(rule.name()))
    }

    /// Gives the scores an array of their own, where weights take their places.
    fn separate_scores(&mut self, maximum: &Maximum, insn: &str, var: &str) -> Tried {
        let kernel = self.kernel();
        let Some(read) = self.insn(insn).and_then(|insn| {
            let own = insn.reads().into_iter().find(|access| access.var == insn.lhs.var)?;
            Some(kernel.show_access(own).to_string())
        }) else {
            return Err(no_sums(&maximum.max));
        };
        let stored = kernel.insn(insn);
        let holds =
            |node: &&Node| insns_of(std::slice::from_ref(*node)).into_iter().any(|s| Some(s) == stored);
        let nodes = self.after(&maximum.along);
        let between: Vec<String> =
            nodes.iter().take_while(|node| !holds(node)).map(|node| self.name_of(node)).collect();
        let Some(Node::Loop(iname, body)) = nodes.iter().find(holds) else {
            return Err(no_sums(&maximum.max));
        };
        let weigh = kernel.inames[*iname].name.clone();
        let next = body.iter().skip_while(|node| !holds(node)).nth(1).map(|node| self.name_of(node));
        if let Some(next) = next {
            self.distribute(&weigh, vec![next])?;
        }
        let derived = |name: &str| vec![format!("fetch_{name}")];
        let score = self.schedule.fresh_with(&format!("{var}_score"), derived);
        let copy = PrefetchArray::new(var, &weigh, AddressSpace::Private).into_temporary(&score);
        self.make(copy.only_reads([read]))?;
        self.make(SetAddressSpace::new(&score, AddressSpace::Global))?;
        self.make(ExpandArray::new(&score, [&weigh]))?;
        self.distribute(&weigh, vec![insn.to_owned()])?;
        if !between.is_empty() {
            self.make(MoveInsns::before(between, &maximum.along))?;
        }
        self.make(FuseLoops::new(&maximum.along, &weigh))?;
        let suffix = self.schedule.fresh(&maximum.along);
        self.make(SplitLives::new(&maximum.along, suffix).of([var]))?;
        self.compute_where_used(&score)
    }

    /// The sums of what depends on the maximum, with loops over what that is taken of.
    fn sums_below(&self, maximum: &Maximum) -> Tried<Vec<Sum>> {
        let kernel = self.kernel();
        let (Some(max), Some(along)) = (kernel.var(&maximum.max), kernel.iname(&maximum.along)) else {
            return Err(no_sums(&maximum.max));
        };
        let values = |l: InameId| kernel.inames[l].domain.as_guarded_range(l);
        let mut found = Vec::new();
        for (insn, loops) in paths(self.after(&maximum.along)) {
            let insn = &kernel.insns[insn];
            if insn.update_op() != Some(UpdateOp::Add) || !insn.rhs.loads(max) {
                continue;
            }
            let same = loops.iter().position(|l| values(*l) == values(along));
            found.push(Sum {
                insn: insn.name.clone(),
                var: kernel.vars[insn.lhs.var].name.clone(),
                along: same.ok_or_else(|| no_sums(&maximum.max))?,
                loops: loops.into_iter().map(|l| kernel.inames[l].name.clone()).collect(),
            });
        }
        if found.is_empty() { Err(no_sums(&maximum.max)) } else { Ok(found) }
    }

    /// Keeps what a block computes of scores in private memory.
    fn keep_scores(&mut self, block: &str) -> Tried {
        let kernel = self.kernel();
        let written = self.insns(block).into_iter().map(|s| kernel.insns[s].lhs.var);
        let mut scores: Vec<(String, u32)> = written
            .map(|v| &kernel.vars[v])
            .filter(|v| matches!(v.kind, VarKind::Temporary) && !v.shape.is_empty())
            .map(|v| (v.name.clone(), v.shape.len() as u32))
            .collect();
        scores.sort();
        scores.dedup();
        for (var, axes) in scores {
            for axis in 0..axes {
                self.attempt(|d| {
                    d.make(SplitArrayAxis::new(&var, axis, BLOCK))?;
                    d.make(ContractArray::new(&var, axis))?;
                    d.make(SetAddressSpace::new(&var, AddressSpace::Private))
                })?;
            }
        }
        Ok(())
    }

    /// Computes the weights of a block once for several sums.
    fn share_weights(&mut self, maximum: &Maximum, sum: &Sum, block: &str) -> Tried {
        let kernel = self.kernel();
        let (Some(max), Some(insn)) = (kernel.var(&maximum.max), self.insn(&sum.insn)) else { return Ok(()) };
        let inner = inames_of(kernel, self.body(block));
        let (mut weight, mut moved) = (None, Vec::new());
        insn.rhs.for_each(&mut |e| {
            if matches!(e, Expr::Call(MathFn::Exp | MathFn::Exp2, _)) && e.loads(max) {
                weight.get_or_insert_with(|| e.clone());
            }
        });
        let Some(weight) = weight else { return Ok(()) };
        weight.for_each(&mut |e| {
            if let Expr::Iname(l) = e
                && inner.contains(l)
                && !moved.contains(l)
            {
                moved.push(*l);
            }
        });
        let [place] = moved.as_slice() else { return Ok(()) };
        let (rule, param) = (self.schedule.fresh("weight"), self.schedule.fresh("at"));
        let mut named = kernel.clone();
        named.inames[*place].name.clone_from(&param);
        let template = named.show_expr(&weight).to_string();
        self.attempt(|d| {
            let rule = d.make(ExtractRule::new(rule, [param], template))?;
            let step = PrecomputeRule::new(rule.name(), block, AddressSpace::Private);
            d.make(step.exactly()).map(|_| ())
        })
    }

    /// Keeps what belongs to a row in private memory: its sums, and what it reads again for each block.
    fn keep_row(&mut self, around: &str, block: &str, sums: &[&String]) -> Tried {
        let kernel = self.kernel();
        let (Some(row), Some(pass)) = (kernel.iname(around), kernel.iname(block)) else { return Ok(()) };
        let mut again: Vec<(String, String)> = Vec::new();
        for access in self.insns(block).into_iter().flat_map(|s| kernel.insns[s].reads()) {
            let moves = |l: InameId| access.index.iter().any(|e| e.mentions(l));
            let var = &kernel.vars[access.var];
            let read = (var.name.clone(), kernel.show_access(access).to_string());
            if matches!(var.kind, VarKind::Argument(_))
                && moves(row)
                && !moves(pass)
                && !again.contains(&read)
            {
                again.push(read);
            }
        }
        for sum in sums {
            let is_array = self.kernel().var(sum).is_some_and(|v| !self.kernel().vars[v].shape.is_empty());
            if is_array {
                let step = BufferWrites::new(*sum, around, AddressSpace::Private);
                self.attempt(|d| d.make(step).map(|_| ()))?;
            }
        }
        for (var, text) in again.into_iter().filter(|(var, _)| !sums.contains(&var)) {
            let step = PrefetchArray::new(var, around, AddressSpace::Private).only_reads([text]);
            self.attempt(|d| d.make(step).map(|_| ()))?;
        }
        Ok(())
    }

    /// Applies steps that an idea can do without.
    pub(crate) fn attempt(&mut self, steps: impl FnOnce(&mut Self) -> Tried) -> Tried {
        let before = self.schedule.clone();
        if let Err(refused) = steps(self) {
            self.pass(refused)?;
            self.schedule = before;
        }
        Ok(())
    }
}

/// The instructions in some statements, each with the loops around it.
fn paths(nodes: &[Node]) -> Vec<(InsnId, Vec<InameId>)> {
    let mut found = Vec::new();
    for node in nodes {
        match node {
            Node::Insn(insn) => found.push((*insn, Vec::new())),
            Node::Loop(l, body) => found.extend(paths(body).into_iter().map(|(insn, mut loops)| {
                loops.insert(0, *l);
                (insn, loops)
            })),
        }
    }
    found
}

fn no_sums(max: &str) -> TransformError {
    let cause = Refusal::argument(
        "sums",
        format!("no later loop over the same values sums up what depends on `{max}`"),
        "loops that do",
    );
    TransformError { operation: "sum in one pass".into(), cause }
}
