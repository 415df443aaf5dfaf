//! Reading the roles of a kernel from the tags of its instructions; no name matters.

use super::derive::{BlockRoles, EvaluationRoles, Roles};
use super::{CellLoop, CellProgram, NotAnAction, stage};
use purlin_ir::{InameId, Insn, InsnId, Kernel};
use purlin_transforms::schedule::{Loop, Statement};

impl CellProgram {
    /// Reads the roles of a kernel's parts from the tags of its instructions ([`stage`]) and their
    /// accesses.
    ///
    /// # Errors
    /// What is missing: an instruction of a stage, a loop of constant length, one element vector.
    pub fn read(kernel: &Kernel) -> Result<Self, NotAnAction> {
        Reader { kernel, schedule: kernel.schedule() }.roles()?.program(kernel)
    }
}

impl CellLoop {
    /// Reads the instructions tagged `scatter`, and the outermost loop around the first of them.
    ///
    /// # Errors
    /// No such instruction, or no loop around it.
    pub fn read(kernel: &Kernel) -> Result<Self, NotAnAction> {
        Self::around(kernel, stage::SCATTER)
    }

    /// The same with another tag.
    ///
    /// # Errors
    /// As [`CellLoop::read`].
    pub fn around(kernel: &Kernel, tag: &str) -> Result<Self, NotAnAction> {
        let reader = Reader { kernel, schedule: kernel.schedule() };
        let commits = reader.stage(tag, false)?;
        let cell = reader.loops_of(commits[0]).first().copied();
        let cell =
            cell.ok_or_else(|| reader.refuse(format!("no loop is around what has the tag `{tag}`")))?;
        let commits = commits.into_iter().map(|i| Statement::named(reader.name(i))).collect();
        Ok(Self { cell: Loop::named(reader.loop_name(cell)), commits })
    }
}

struct Reader<'k> {
    kernel: &'k Kernel,
    schedule: Vec<(InsnId, Vec<InameId>)>,
}

type Found<T> = Result<T, NotAnAction>;

impl Reader<'_> {
    fn roles(&self) -> Found<Roles> {
        let commits = self.stage(stage::SCATTER, false)?;
        let [cell, scatter] = self.loops(&commits, 2, "scatter")?[..] else {
            return Err(self.refuse("the scatter is not directly inside a loop over cells".into()));
        };
        let products = self.stage(stage::QUADRATURE, false)?;
        let zeroes = self.stage(stage::QUADRATURE, true)?;
        let zero = self.loops(&zeroes, 2, "zeroing of the element vector")?[1];
        let mut quads: Vec<InameId> = Vec::new();
        for product in &products {
            let quad = self.loops(&[*product], 3, "quadrature")?[1];
            if quads.last() != Some(&quad) {
                quads.push(quad);
            }
        }
        self.check_stages_are_in(&quads)?;
        let blocks = quads.into_iter().map(|quad| self.block(quad, &products)).collect::<Found<_>>()?;
        Ok(Roles {
            cell: self.loop_name(cell),
            gathers: self.names(&self.tagged(stage::GATHER, false)),
            geometry: self.names(&self.tagged(stage::GEOMETRY, false)),
            zero: self.loop_name(zero),
            zeroes: self.names(&zeroes),
            blocks,
            scatter: self.loop_name(scatter),
            commits: self.names(&commits),
            test: self.function(&products),
        })
    }

    fn block(&self, quad: InameId, products: &[InsnId]) -> Found<BlockRoles> {
        let is_inside = |i: &InsnId| self.loops_of(*i).get(1) == Some(&quad);
        let products: Vec<InsnId> = products.iter().copied().filter(is_inside).collect();
        let rows = self.loops(&products, 3, "quadrature")?[2];
        let pointwise: Vec<InsnId> =
            self.stage(stage::POINTWISE, false)?.into_iter().filter(is_inside).collect();
        let quad = self.loop_name(quad);
        if pointwise.is_empty() {
            return Err(self.refuse(format!("no instruction in `{quad}` has the tag `{}`", stage::POINTWISE)));
        }
        self.loops(&pointwise, 2, "pointwise")?;
        let evaluation: Vec<InsnId> =
            self.tagged(stage::EVALUATION, false).into_iter().filter(is_inside).collect();
        let mut dofs: Vec<InameId> = Vec::new();
        for insn in &evaluation {
            let l = self.loops(&[*insn], 3, "evaluation")?[2];
            if !dofs.contains(&l) {
                dofs.push(l);
            }
        }
        let evaluations = dofs.into_iter().map(|l| self.evaluation(l, &evaluation)).collect();
        Ok(BlockRoles {
            quad,
            evaluations,
            pointwise: self.names(&pointwise),
            rows: self.loop_name(rows),
            products: self.names(&products),
        })
    }

    fn evaluation(&self, dofs: InameId, evaluation: &[InsnId]) -> EvaluationRoles {
        let is_own = |i: &InsnId| self.loops_of(*i).get(2) == Some(&dofs);
        let own: Vec<InsnId> = evaluation.iter().copied().filter(is_own).collect();
        let targets: Vec<_> = own.iter().map(|i| self.insn(*i).lhs.var).collect();
        let mut inits = self.tagged(stage::EVALUATION, true);
        inits.retain(|i| targets.contains(&self.insn(*i).lhs.var));
        EvaluationRoles {
            function: self.function(&own).unwrap_or_else(|| self.loop_name(dofs)),
            dofs: self.loop_name(dofs),
            products: self.names(&own),
            inits: self.names(&inits),
        }
    }

    /// Evaluations and pointwise groups are in loops that also hold products.
    fn check_stages_are_in(&self, quads: &[InameId]) -> Found<()> {
        for tag in [stage::EVALUATION, stage::POINTWISE] {
            for insn in self.tagged(tag, false) {
                let quad = self.loops_of(insn).get(1);
                if quad.is_none_or(|l| !quads.contains(l)) {
                    return Err(self.refuse(format!(
                        "`{}` has the tag `{tag}` and is in no loop with products, which have the tag `{}`",
                        self.name(insn),
                        stage::QUADRATURE
                    )));
                }
            }
        }
        Ok(())
    }

    /// The instructions of a stage in textual order, those tagged `init` or the others.
    fn tagged(&self, tag: &str, init: bool) -> Vec<InsnId> {
        let wanted = |i: &Insn| i.tags.contains(tag) && i.tags.contains(stage::INIT) == init;
        self.schedule.iter().map(|(i, _)| *i).filter(|i| wanted(&self.kernel.insns[*i])).collect()
    }

    /// The same, at least one.
    fn stage(&self, tag: &str, init: bool) -> Found<Vec<InsnId>> {
        let found = self.tagged(tag, init);
        if found.is_empty() {
            let init = if init { " and `init`" } else { "" };
            return Err(self.refuse(format!("no instruction has the tag `{tag}`{init}")));
        }
        Ok(found)
    }

    /// The loops around instructions, the same for all of them and as many as needed.
    fn loops(&self, insns: &[InsnId], depth: usize, stage: &str) -> Found<&[InameId]> {
        let first = insns.first().map_or(&[][..], |i| self.loops_of(*i));
        if first.len() != depth || insns.iter().any(|i| self.loops_of(*i) != first) {
            return Err(self.refuse(format!("the {stage} is not in one nest of {depth} loops")));
        }
        Ok(first)
    }

    fn loops_of(&self, insn: InsnId) -> &[InameId] {
        self.schedule.iter().find(|(i, _)| *i == insn).map_or(&[], |(_, l)| l.as_slice())
    }

    /// The function of the form that instructions belong to.
    fn function(&self, insns: &[InsnId]) -> Option<String> {
        let mut tags = insns.iter().flat_map(|i| &self.insn(*i).tags);
        tags.find_map(|t| t.strip_prefix(stage::OF)).map(str::to_owned)
    }

    fn insn(&self, insn: InsnId) -> &Insn {
        &self.kernel.insns[insn]
    }

    fn name(&self, insn: InsnId) -> &str {
        &self.kernel.insns[insn].name
    }

    fn names(&self, insns: &[InsnId]) -> Vec<String> {
        insns.iter().map(|i| self.name(*i).to_owned()).collect()
    }

    fn loop_name(&self, iname: InameId) -> String {
        self.kernel.inames[iname].name.clone()
    }

    fn refuse(&self, found: String) -> NotAnAction {
        NotAnAction { kernel: self.kernel.name.clone(), found }
    }
}
