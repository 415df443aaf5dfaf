//! Loops in another order: one that is around others becomes the innermost one.

use crate::draft::{Draft, Tried, is_sequential, refusable};
use kingpost_ir::{AddressSpace, Affine, Atom, AxisTag, InsnId, Node, VarId, VarKind, Variable};
use kingpost_steps::TransformError;
use kingpost_steps::tree::insns_of;
use kingpost_transforms::primitives::{
    AssignToRule, Band, CutIname, DistributeLoop, ExpandArray, FuseLoops, InterchangeInames, MapInames, Part,
    Reschedule, SetAddressSpace, SplitIname, SplitLives, Tag, Tail,
};
use std::collections::BTreeSet;

impl Draft<'_> {
    /// Brings the loop `around` inside the loop `inner`, which it holds: through each loop between
    /// them, after it is distributed over what else it holds. Returns its name there.
    pub(crate) fn carry_in(&mut self, around: &str, inner: &str) -> Tried<String> {
        let mut carried = around.to_owned();
        loop {
            let body = self.body(&carried);
            let Some(at) = body.iter().position(|node| self.leads_to(node, inner)) else {
                return Ok(carried); // it is inside
            };
            let (first, last) = (at == 0, at + 1 == body.len());
            let next = self.name_of(&body[at]);
            let after = body.get(at + 1).map(|node| self.name_of(node));
            if !(first && last) {
                let cuts = (!first).then(|| next.clone()).into_iter().chain(after.filter(|_| !last));
                let made = self.distribute(&carried, cuts.collect())?;
                if !first {
                    carried.clone_from(&made[0]);
                }
            }
            self.make(InterchangeInames::new(&carried, &next))?;
            if next == inner {
                return Ok(carried);
            }
        }
    }

    /// Whether a statement is the loop of this name, or holds it.
    fn leads_to(&self, node: &Node, name: &str) -> bool {
        match node {
            Node::Insn(_) => false,
            Node::Loop(iname, body) => {
                self.kernel().inames[*iname].name == name || body.iter().any(|node| self.leads_to(node, name))
            }
        }
    }

    /// Distributes a loop. Where temporaries carry nothing but reuse from one iteration to the next,
    /// each iteration gets its own.
    pub(crate) fn distribute(&mut self, name: &str, cuts: Vec<String>) -> Tried<Vec<String>> {
        let step = DistributeLoop::new(name, cuts);
        let made = match self.make(step.clone()) {
            Ok(made) => made,
            Err(refused) => {
                if !self.expand(name, &refused)? {
                    return Err(refused);
                }
                self.make(step)?
            }
        };
        Ok(made.iter().map(|l| l.name().to_owned()).collect())
    }

    /// Gives the temporaries that are written in a loop an axis for it.
    fn expand(&mut self, name: &str, refused: &TransformError) -> Tried<bool> {
        let vars = self.temporaries_in(name);
        for var in &vars {
            let outside = self.is_used_outside(var, name);
            let var = match outside {
                true => {
                    let lives = SplitLives::new(name, name).of([var]);
                    self.make(lives)?.first().map_or(var.clone(), |array| array.name().to_owned())
                }
                false => var.clone(),
            };
            if self.kernel().var(&var).is_some_and(|v| self.kernel().vars[v].space == AddressSpace::Private) {
                self.make(SetAddressSpace::new(&var, AddressSpace::Global))?;
            }
            self.make(ExpandArray::new(&var, [name])).map_err(|_| refused.clone())?;
        }
        Ok(!vars.is_empty())
    }

    /// Temporaries that instructions in a loop write, at places that the loop does not move.
    pub(crate) fn temporaries_in(&self, name: &str) -> Vec<String> {
        let kernel = self.kernel();
        let Some(iname) = kernel.iname(name) else { return Vec::new() };
        let written: BTreeSet<VarId> = self.insns(name).iter().map(|s| kernel.insns[*s].lhs.var).collect();
        let is_temporary = |v: &VarId| matches!(kernel.vars[*v].kind, VarKind::Temporary);
        let stays = |v: &VarId| {
            self.insns(name).iter().all(|s| {
                let lhs = &kernel.insns[*s].lhs;
                lhs.var != *v || !lhs.index.iter().any(|e| e.as_affine().is_some_and(|e| e.mentions(iname)))
            })
        };
        let found = written.into_iter().filter(is_temporary).filter(stays);
        found.map(|v| kernel.vars[v].name.clone()).collect()
    }

    pub(crate) fn is_used_outside(&self, var: &str, name: &str) -> bool {
        let kernel = self.kernel();
        let inside: BTreeSet<InsnId> = self.insns(name).into_iter().collect();
        let Some(var) = kernel.var(var) else { return false };
        let uses = |s: &InsnId| {
            let insn = &kernel.insns[*s];
            insn.lhs.var == var || insn.reads().iter().any(|access| access.var == var)
        };
        insns_of(&kernel.body).iter().any(|s| !inside.contains(s) && uses(s))
    }

    /// Computes values of arrays in memory again where they are used, and does not store them.
    ///
    /// # Errors
    /// A bug.
    pub(crate) fn compute_again(&mut self) -> Tried {
        let kernel = self.kernel();
        let is_stored = |v: &&Variable| {
            matches!(v.kind, VarKind::Temporary) && v.space == AddressSpace::Global && !v.shape.is_empty()
        };
        let stored: Vec<String> = kernel.vars.values().filter(is_stored).map(|v| v.name.clone()).collect();
        for var in stored {
            self.consider(&format!("compute `{var}` again where it is used"), |d| {
                d.make(AssignToRule::new(&var)).map(|_| ())
            })?;
        }
        Ok(())
    }

    /// Updates as soon as what they add is known, where an innermost loop collects it when it is
    /// needed: `for j { for k < j: x[j] += f(x[k]); … x[j] … }` becomes `for j { … x[j] …; for k > j:
    /// x[k] += f(x[j]) }`, whose innermost loop waits for nothing.
    ///
    /// # Errors
    /// A bug.
    pub(crate) fn push_updates(&mut self) -> Tried {
        for nest in self.innermost() {
            let [.., outer, inner] = nest.as_slice() else { continue };
            self.consider(&format!("updates of `{outer}` by `{inner}` as soon as they are known"), |d| {
                d.push(outer, inner)
            })?;
        }
        Ok(())
    }

    fn push(&mut self, outer: &str, inner: &str) -> Tried {
        let Err(refused) = refusable(self.push_all(outer, inner))? else { return Ok(()) };
        // what is summed up may have to start before the first update
        let starts = self.body(outer).first().map(|node| self.name_of(node));
        if starts.is_none_or(|first| first == inner) {
            return Err(refused);
        }
        let made = self.distribute(outer, vec![inner.to_owned()])?;
        made.first().map_or(Err(refused), |rest| self.push_all(rest, inner))
    }

    fn push_all(&mut self, outer: &str, inner: &str) -> Tried {
        let (body, kernel) = (self.body(outer), self.kernel());
        if body.len() == 1
            || body.iter().any(|node| matches!(node, Node::Loop(i, _) if kernel.inames[*i].name != inner))
        {
            return self.carry_in(outer, inner).map(|_| ());
        }
        let names = self.free_names(2);
        let mut step = Reschedule::new([outer], [names[0].clone()]);
        let mut then = Vec::new();
        for name in body.iter().map(|node| self.name_of(node)).filter(|name| name != inner) {
            step = step.map(&name, [outer]);
            then.push(Part::Statement(name));
        }
        // what others need is known after all statements of an iteration
        let mut updates = Band::new([names[1].clone()]);
        for insn in self.insns(inner) {
            let insn = kernel.insns[insn].name.clone();
            step = step.map(&insn, [inner]);
            updates.maps.insert(insn, vec![outer.to_owned()]);
        }
        then.push(Part::Band(updates));
        self.make(step.then(then)).map(|_| ())
    }

    /// Makes the loop that suits the innermost instructions best the innermost one, in each nest.
    ///
    /// # Errors
    /// A bug.
    pub(crate) fn order_loops(&mut self) -> Tried {
        for nest in self.innermost() {
            let Some((inner, around)) = nest.split_last() else { continue };
            let mut best: Option<Draft<'_>> = None;
            for outer in around.iter().rev() {
                let mut draft = self.clone();
                draft.considered.clear();
                let taken = draft.consider(&format!("carry `{outer}` into `{inner}`"), |d| {
                    d.carry_in(outer, inner).map(|_| ())
                })?;
                self.considered.append(&mut draft.considered);
                if taken && best.as_ref().is_none_or(|best| draft.cycles < best.cycles) {
                    best = Some(draft);
                }
            }
            if let Some(best) = best {
                (self.schedule, self.cycles) = (best.schedule, best.cycles);
            }
        }
        Ok(())
    }

    /// Fuses neighbours that go over the same values, where that saves lines.
    ///
    /// # Errors
    /// A bug.
    pub(crate) fn fuse_loops(&mut self) -> Tried {
        let mut at = 0;
        loop {
            let pairs = self.neighbours();
            let Some((first, second)) = pairs.get(at).cloned() else { return Ok(()) };
            let taken = self.consider(&format!("fuse `{first}` and `{second}`"), |d| {
                d.make(FuseLoops::new(&first, &second)).map(|_| ())
            })?;
            if !taken {
                at += 1;
            }
        }
    }

    /// Loops that stand one directly after the other.
    fn neighbours(&self) -> Vec<(String, String)> {
        fn walk(draft: &Draft<'_>, nodes: &[Node], found: &mut Vec<(String, String)>) {
            for pair in nodes.windows(2) {
                if let [a @ Node::Loop(..), b @ Node::Loop(..)] = pair {
                    found.push((draft.name_of(a), draft.name_of(b)));
                }
            }
            for node in nodes {
                if let Node::Loop(_, body) = node {
                    walk(draft, body, found);
                }
            }
        }
        let mut found = Vec::new();
        walk(self, &self.kernel().body, &mut found);
        found
    }

    /// Iterations of outer loops together in one of the innermost loop: what they read of the same
    /// elements is loaded once, and sums of different elements are added up at the same time.
    ///
    /// # Errors
    /// A bug.
    pub(crate) fn block_registers(&mut self, factors: &[i64]) -> Tried {
        let inner: Vec<String> =
            self.innermost().into_iter().filter_map(|nest| nest.last().cloned()).collect();
        for inner in inner {
            let mut left = factors;
            let mut tried = BTreeSet::new();
            while let Some((factor, rest)) = left.split_first() {
                // what was written out is inside now, and loops around may have other names
                let nest = self.innermost().into_iter().find(|nest| nest.last() == Some(&inner));
                let outer = nest.iter().flatten().rev().skip(1).find(|l| !tried.contains(*l)).cloned();
                let Some(outer) = outer else { break };
                let mut blocks = None;
                if self.consider(&format!("{factor} iterations of `{outer}` in one of `{inner}`"), |d| {
                    blocks = Some(d.jam(&outer, *factor)?);
                    Ok(())
                })? {
                    left = rest;
                    tried.extend(blocks);
                }
                tried.insert(outer);
            }
        }
        Ok(())
    }

    /// Splits a loop, and brings the loop inside a block into all innermost loops that it holds, where
    /// it is written out. Returns the loop over blocks.
    fn jam(&mut self, outer: &str, factor: i64) -> Tried<String> {
        let name = |end: &str| Some(self.kernel().fresh_name(&format!("{outer}{end}")));
        let (outer_name, inner) = (name("_o"), name("_i"));
        let split = SplitIname { outer: outer_name, inner, ..SplitIname::new(outer, factor) };
        let [blocks, within] = self.make(split.with_tail(Tail::Peel))?;
        let before = self.schedule.clone();
        if let Err(refused) = refusable(self.write_out_inside(within.name()))? {
            self.schedule = before;
            if !matches!(refusable(self.jam_before_block(within.name()))?, Ok(true)) {
                return Err(refused);
            }
        }
        Ok(blocks.name().to_owned())
    }

    /// Writes out the iterations of a block in loops that go up to each of them, as those over a triangle, as
    /// far as its first one: what these iterations need of each other comes after that.
    fn jam_before_block(&mut self, block: &str) -> Tried<bool> {
        let mut below = Vec::new();
        for (inner, first) in self.triangles(block) {
            let made = self.make(CutIname::new(&inner, first))?;
            if made.len() == 2 {
                let parts = self.distribute(block, vec![made[0].name().to_owned(), inner])?;
                below.extend(parts.first().cloned());
            }
        }
        below.iter().try_for_each(|part| self.write_out_inside(part))?;
        Ok(!below.is_empty())
    }

    /// The loops directly inside a block that end at its iteration, and where they end at the first one.
    fn triangles(&self, block: &str) -> Vec<(String, String)> {
        let kernel = self.kernel();
        let Some(iname) = kernel.iname(block) else { return Vec::new() };
        let end = |node: &Node| {
            let Node::Loop(inner, _) = node else { return None };
            let (_, end) = kernel.inames[*inner].domain.as_range(*inner)?;
            let steep = end.coefficient(&Atom::Iname(iname));
            let first = end.minus(&Affine::iname(iname).times(steep));
            let fits = steep > 0 && !first.mentions(iname);
            fits.then(|| (kernel.inames[*inner].name.clone(), kernel.show_affine(&first).to_string()))
        };
        self.body(block).iter().filter_map(end).collect()
    }

    pub(crate) fn write_out_inside(&mut self, part: &str) -> Tried {
        let kernel = self.kernel();
        let is_nest = |node: &Node| match node {
            Node::Loop(iname, _) => is_sequential(kernel, *iname),
            Node::Insn(_) => false,
        };
        let body = self.body(part);
        if !body.iter().any(is_nest) {
            return self.make(Tag::new(part, AxisTag::Unrolled));
        }
        if let [only] = body {
            let through = self.name_of(only);
            self.make(InterchangeInames::new(part, &through))?;
            return self.write_out_inside(part);
        }
        // each loop separately, and what stands between loops
        let cuts = body.windows(2).filter(|pair| pair.iter().any(is_nest)).map(|pair| self.name_of(&pair[1]));
        let made = self.distribute(part, cuts.collect())?;
        [part.to_owned()].iter().chain(&made).try_for_each(|part| self.write_out_inside(part))
    }

    /// Runs a nest of two loops, of which the inner one waits for itself, along its diagonals.
    ///
    /// # Errors
    /// A bug.
    pub(crate) fn skew_waves(&mut self) -> Tried {
        for nest in self.innermost() {
            let [.., outer, inner] = nest.as_slice() else { continue };
            if self.body(outer).len() != 1 {
                continue;
            }
            for (rows, what) in [([[1, 1], [1, 0]], "sum"), ([[2, 1], [1, 0]], "double")] {
                let taken = self
                    .consider(&format!("run `{outer}` and `{inner}` along the {what} of both"), |d| {
                        d.make(MapInames::new([outer, inner], rows.map(Vec::from))).map(|_| ())
                    })?;
                if taken {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Blocks of the innermost loop around the loops that read the same elements again, as large as a
    /// cache holds.
    ///
    /// # Errors
    /// A bug.
    pub(crate) fn tile_caches(&mut self) -> Tried {
        for nest in self.innermost() {
            let Some((inner, around)) = nest.split_last() else { continue };
            let mut best: Option<Draft<'_>> = None;
            for (k, outer) in around.iter().enumerate().rev().take(3) {
                for size in [256, 1024] {
                    let mut draft = self.clone();
                    draft.considered.clear();
                    let idea = format!("blocks of {size} of `{inner}` around `{outer}`");
                    let taken = draft.consider(&idea, |d| {
                        let [block, _] = d.make(SplitIname::new(inner, size))?;
                        for through in around[k..].iter().rev() {
                            d.carry_out(through, block.name())?;
                        }
                        Ok(())
                    })?;
                    self.considered.append(&mut draft.considered);
                    if taken && best.as_ref().is_none_or(|best| draft.cycles < best.cycles) {
                        best = Some(draft);
                    }
                }
            }
            if let Some(best) = best {
                (self.schedule, self.cycles) = (best.schedule, best.cycles);
            }
        }
        Ok(())
    }

    /// Brings the loop `inner` around `outer`, which is directly around it.
    fn carry_out(&mut self, outer: &str, inner: &str) -> Tried {
        let body = self.body(outer);
        if body.len() == 1 {
            return self.make(InterchangeInames::new(outer, inner)).map(|_| ());
        }
        self.carry_in(outer, inner).map(|_| ())
    }
}
