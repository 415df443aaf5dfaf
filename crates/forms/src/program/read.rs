//! Reading the roles of a kernel from the tags of its instructions; no name matters.

use super::derive::{BlockRoles, EvaluationRoles, ProductRoles, ResultRoles, Roles, SumRoles};
use super::{CellLoop, CellProgram, NotAnAction, stage};
use kingpost_ir::{Expr, InameId, Insn, InsnId, Kernel, VarId};
use kingpost_primitives::schedule::{Loop, Statement};

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
    /// Reads the instructions tagged `scatter`, and the outermost loop around the first of them;
    /// what each of its iterations adds to elements of its own needs no care.
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
        let shared = commits.into_iter().filter(|i| !reader.is_own(*i, cell));
        let commits = shared.map(|i| Statement::named(reader.name(i))).collect();
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
        let scatters = self.stage(stage::SCATTER, false)?;
        let cell = self.loops_of(scatters[0]).first().copied();
        let cell = cell.ok_or_else(|| self.refuse("the scatter is not inside a loop over cells".into()))?;
        let products = self.stage(stage::QUADRATURE, false)?;
        let zeroes = self.stage(stage::QUADRATURE, true)?;
        let (numbers, vectors): (Vec<InsnId>, Vec<InsnId>) =
            scatters.iter().partition(|i| self.loops_of(**i).len() == 1);
        let results = self.results(&vectors, &zeroes)?;
        let sums = numbers.iter().map(|i| self.sum(*i, &zeroes)).collect::<Found<_>>()?;
        let arrays: Vec<VarId> = zeroes.iter().map(|i| self.insn(*i).lhs.var).collect();
        let mut quads: Vec<InameId> = Vec::new();
        for product in &products {
            let quad = self.loops_of(*product).get(1).copied();
            let quad = quad.ok_or_else(|| {
                self.refuse("the quadrature is not in a loop inside that over cells".into())
            })?;
            if quads.last() != Some(&quad) {
                quads.push(quad);
            }
        }
        self.check_stages_are_in(&quads)?;
        let blocks = quads.iter().map(|quad| self.block(*quad, &products, &arrays)).collect::<Found<_>>()?;
        let (transforms, result_transforms) = self.transforms(&products);
        let commits = scatters.iter().copied().filter(|i| !self.is_own(*i, cell)).collect::<Vec<_>>();
        Ok(Roles {
            cell: self.loop_name(cell),
            gathers: self.names(&self.tagged(stage::GATHER, false)),
            geometry: self.names(&self.tagged(stage::GEOMETRY, false)),
            transforms,
            result_transforms,
            blocks,
            results,
            sums,
            commits: self.names(&commits),
        })
    }

    /// The element vectors and matrices, in the order of their scatters.
    fn results(&self, scatters: &[InsnId], zeroes: &[InsnId]) -> Found<Vec<ResultRoles>> {
        let mut results: Vec<(VarId, Vec<InsnId>)> = Vec::new();
        for insn in scatters {
            let mut read = None;
            self.insn(*insn).rhs.for_each(&mut |e| {
                if let Expr::Load(access) = e {
                    read.get_or_insert(access.var);
                }
            });
            let array = read.ok_or_else(|| self.refuse("the scatter reads no element vector".into()))?;
            match results.iter_mut().find(|(var, _)| *var == array) {
                Some((_, insns)) => insns.push(*insn),
                None => results.push((array, vec![*insn])),
            }
        }
        results.into_iter().map(|(array, commits)| self.result(array, &commits, zeroes)).collect()
    }

    /// What an update of a functional adds, and what zeroes that.
    fn sum(&self, commit: InsnId, zeroes: &[InsnId]) -> Found<SumRoles> {
        let commit_name = self.name(commit);
        let Expr::Load(added) = &self.insn(commit).rhs else {
            return Err(self.refuse(format!("`{commit_name}` adds no variable to a functional")));
        };
        let name = &self.kernel.vars[added.var].name;
        let zero = zeroes.iter().find(|i| self.insn(**i).lhs.var == added.var);
        let zero = zero.ok_or_else(|| self.refuse(format!("nothing zeroes `{name}`")))?;
        Ok(SumRoles { zero: self.name(*zero).to_owned(), commit: commit_name.to_owned() })
    }

    fn result(&self, array: VarId, commits: &[InsnId], zeroes: &[InsnId]) -> Found<ResultRoles> {
        let own: Vec<InsnId> = zeroes.iter().copied().filter(|i| self.insn(*i).lhs.var == array).collect();
        let name = &self.kernel.vars[array].name;
        let (scatter, scatter_columns) = match commits.first().map_or(0, |i| self.loops_of(*i).len()) {
            3 => {
                let loops = self.loops(commits, 3, "scatter")?;
                (loops[1], Some(loops[2]))
            }
            _ => (self.loops(commits, 2, "scatter")?[1], None),
        };
        let depth = if scatter_columns.is_some() { 3 } else { 2 };
        if own.is_empty() {
            return Err(self.refuse(format!("nothing zeroes `{name}`")));
        }
        let zero = self.loops(&own, depth, "zeroing of the element vector")?[1];
        Ok(ResultRoles {
            zero: self.loop_name(zero),
            zeroes: self.names(&own),
            scatter: self.loop_name(scatter),
            scatter_columns: scatter_columns.map(|l| self.loop_name(l)),
            commits: self.names(commits),
        })
    }

    /// The transforms of gathered degrees of freedom, and those of results, which are after the
    /// products.
    fn transforms(&self, products: &[InsnId]) -> (Vec<String>, Vec<String>) {
        let place = |insn: &InsnId| self.schedule.iter().position(|(i, _)| i == insn);
        let first = products.iter().filter_map(place).min();
        let all = self.tagged(stage::TRANSFORM, false);
        let (inputs, results): (Vec<InsnId>, Vec<InsnId>) = all.into_iter().partition(|i| place(i) < first);
        (self.names(&inputs), self.names(&results))
    }

    fn block(&self, quad: InameId, products: &[InsnId], arrays: &[VarId]) -> Found<BlockRoles> {
        let is_inside = |i: &InsnId| self.loops_of(*i).get(1) == Some(&quad);
        let (sums, inside): (Vec<InsnId>, Vec<InsnId>) = products
            .iter()
            .copied()
            .filter(is_inside)
            .partition(|i| self.loops_of(*i).len() == 2 && self.insn(*i).lhs.index.is_empty());
        let mut rows: Vec<(InameId, Vec<InsnId>)> = Vec::new();
        for insn in &inside {
            let Some(l) = self.loops_of(*insn).get(2).copied() else {
                return Err(self.refuse("the quadrature is not in one nest of 3 loops".into()));
            };
            match rows.iter_mut().find(|(known, _)| *known == l) {
                Some((_, insns)) => insns.push(*insn),
                None => rows.push((l, vec![*insn])),
            }
        }
        let products = rows.iter().map(|(rows, insns)| self.products(*rows, insns, arrays));
        let products = products.collect::<Found<Vec<_>>>()?;
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
        let [pointwise, sums] = [&pointwise, &sums].map(|insns| self.names(insns));
        Ok(BlockRoles { quad, evaluations, pointwise, products, sums })
    }

    /// The instructions of a loop over test functions: those that add to an element vector or
    /// matrix, and before those to a matrix, what is the same in a row.
    fn products(&self, rows: InameId, insns: &[InsnId], arrays: &[VarId]) -> Found<ProductRoles> {
        let (sums, partials): (Vec<InsnId>, Vec<InsnId>) =
            insns.iter().copied().partition(|i| arrays.contains(&self.insn(*i).lhs.var));
        let columns = match sums.first().map_or(0, |i| self.loops_of(*i).len()) {
            4 => Some(self.loops(&sums, 4, "quadrature")?[3]),
            _ => {
                self.loops(&sums, 3, "quadrature")?;
                None
            }
        };
        Ok(ProductRoles {
            rows: self.loop_name(rows),
            columns: columns.map(|l| self.loop_name(l)),
            partials: self.names(&partials),
            insns: self.names(&sums),
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

    /// Whether each iteration of a loop updates elements of its own, found by their first index.
    fn is_own(&self, insn: InsnId, cell: InameId) -> bool {
        self.insn(insn).lhs.index.first() == Some(&Expr::Iname(cell))
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
