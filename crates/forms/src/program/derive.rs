//! From the roles of loops and instructions to those of arrays, with sizes.

use super::{
    Block, CellLoop, CellProgram, CellSum, ElementResult, Evaluation, Gather, NotAnAction, Products,
};
use kingpost_ir::{AddressSpace, Expr, InameId, Insn, InsnId, Kernel, VarId, VarKind, Variable};
use kingpost_primitives::schedule::{Array, Loop, Statement};
use std::collections::BTreeSet;

/// Loops and instructions by role, as lowering writes them or the tags of a text say; each list in
/// textual order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Roles {
    pub(crate) cell: String,
    /// Instructions that gather.
    pub(crate) gathers: Vec<String>,
    pub(crate) geometry: Vec<String>,
    /// Instructions that transform gathered degrees of freedom, and results.
    pub(crate) transforms: Vec<String>,
    pub(crate) result_transforms: Vec<String>,
    pub(crate) blocks: Vec<BlockRoles>,
    /// Element vectors and matrices, in the order of their scatters.
    pub(crate) results: Vec<ResultRoles>,
    /// Numbers of functionals, in the order of their updates.
    pub(crate) sums: Vec<SumRoles>,
    /// The instructions that add to what cells share.
    pub(crate) commits: Vec<String>,
}

/// The instructions that zero a number of a cell and add it to a functional.
#[derive(Clone, Debug, Default)]
pub(crate) struct SumRoles {
    pub(crate) zero: String,
    pub(crate) commit: String,
}

/// The loops that zero and scatter an element vector, or the rows of a matrix.
#[derive(Clone, Debug, Default)]
pub(crate) struct ResultRoles {
    pub(crate) zero: String,
    pub(crate) zeroes: Vec<String>,
    pub(crate) scatter: String,
    /// The loop over the columns of a matrix.
    pub(crate) scatter_columns: Option<String>,
    pub(crate) commits: Vec<String>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct BlockRoles {
    pub(crate) quad: String,
    pub(crate) evaluations: Vec<EvaluationRoles>,
    pub(crate) pointwise: Vec<String>,
    pub(crate) products: Vec<ProductRoles>,
    /// Additions to numbers.
    pub(crate) sums: Vec<String>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct ProductRoles {
    pub(crate) rows: String,
    /// Of a matrix: the loop over its columns, and what is computed before it.
    pub(crate) columns: Option<String>,
    pub(crate) partials: Vec<String>,
    pub(crate) insns: Vec<String>,
}

impl BlockRoles {
    /// Instructions that read what the pointwise group made.
    fn readers(&self) -> Vec<String> {
        self.products.iter().flat_map(|p| p.partials.iter().chain(&p.insns)).cloned().collect()
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct EvaluationRoles {
    pub(crate) function: String,
    pub(crate) dofs: String,
    pub(crate) products: Vec<String>,
    pub(crate) inits: Vec<String>,
}

type Found<T> = Result<T, NotAnAction>;

impl Roles {
    /// The cell program of these loops and instructions of a kernel.
    ///
    /// # Errors
    /// A loop whose length is no constant, an evaluation that reads several arrays, products that
    /// are added to several arrays.
    pub(crate) fn program(self, kernel: &Kernel) -> Found<CellProgram> {
        Deriving { kernel, schedule: kernel.schedule() }.program(self)
    }
}

struct Deriving<'k> {
    kernel: &'k Kernel,
    schedule: Vec<(InsnId, Vec<InameId>)>,
}

impl Deriving<'_> {
    fn program(&self, roles: Roles) -> Found<CellProgram> {
        let mut gathered: Vec<VarId> = Vec::new();
        for e in roles.blocks.iter().flat_map(|b| &b.evaluations) {
            let input = self.input(e)?;
            if !gathered.contains(&input) {
                gathered.push(input);
            }
        }
        let mut gathers =
            gathered.into_iter().map(|v| self.gather(v, &roles.gathers)).collect::<Found<Vec<_>>>()?;
        gathers.sort_by_key(|g| self.position(g.insns.first().map_or("", |i| i.name())));
        let results = roles.results.iter().map(|r| self.result(r)).collect::<Found<Vec<_>>>()?;
        let sums = roles.sums.iter().map(|sum| self.sum(sum)).collect::<Found<Vec<_>>>()?;
        if results.is_empty() && sums.is_empty() {
            return Err(self.refuse("nothing zeroes an element vector".into()));
        }
        let blocks = roles.blocks.iter().map(|b| self.block(b, &gathers, &results));
        let blocks = blocks.collect::<Found<Vec<_>>>()?;
        let written = roles.gathers.iter().chain(&roles.geometry).map(|i| self.insn(i).map(|i| i.lhs.var));
        let mut per_cell = Vec::new();
        let read = self.read_in(roles.blocks.iter().filter_map(|b| self.kernel.iname(&b.quad)).collect());
        for var in written.collect::<Found<Vec<_>>>()? {
            let array = self.array(var);
            let private = self.kernel.vars[var].space == AddressSpace::Private;
            let evaluated = gathers.iter().any(|g| g.array == array);
            if private && !evaluated && !per_cell.contains(&array) && read.contains(&var) {
                per_cell.push(array);
            }
        }
        let shares_tables = self.shares_tables(&roles)?;
        let cells = CellLoop { cell: Loop::named(roles.cell), commits: statements(&roles.commits) };
        Ok(CellProgram {
            cells,
            gathers,
            per_cell,
            transforms: statements(&roles.transforms),
            results,
            sums,
            result_transforms: statements(&roles.result_transforms),
            blocks,
            shares_tables,
        })
    }

    fn sum(&self, roles: &SumRoles) -> Found<CellSum> {
        let scalar = self.array(self.insn(&roles.zero)?.lhs.var);
        let [zero, commit] = [&roles.zero, &roles.commit].map(Statement::named);
        Ok(CellSum { scalar, zero, commit })
    }

    fn result(&self, roles: &ResultRoles) -> Found<ElementResult> {
        let first = roles.zeroes.first().map(|i| self.insn(i)).transpose()?.map(|i| i.lhs.var);
        let first = first.ok_or_else(|| self.refuse("nothing zeroes an element vector".into()))?;
        let second = self.components(first);
        let (components, columns) = match roles.scatter_columns {
            None => (second.unwrap_or(1), None),
            Some(_) => (1, second),
        };
        Ok(ElementResult {
            array: self.array(first),
            ty: self.kernel.vars[first].ty,
            components,
            count: self.length(&roles.zero)?,
            columns,
            zero: Loop::named(&roles.zero),
            scatter: Loop::named(&roles.scatter),
            scatter_columns: roles.scatter_columns.as_ref().map(Loop::named),
            commits: statements(&roles.commits),
        })
    }

    fn block(&self, roles: &BlockRoles, gathers: &[Gather], results: &[ElementResult]) -> Found<Block> {
        let evaluation = |e: &EvaluationRoles| self.evaluation(e, gathers);
        let mut factors = self.read_by(&roles.readers(), |v| v.kind == VarKind::Temporary)?;
        let mut own = Vec::new();
        let inside = roles.evaluations.iter().flat_map(|e| &e.products).chain(&roles.pointwise);
        for insn in inside {
            own.push(self.array(self.insn(insn)?.lhs.var));
        }
        factors.retain(|v| own.contains(v));
        Ok(Block {
            quad: Loop::named(&roles.quad),
            points: self.length(&roles.quad)?,
            evaluations: roles.evaluations.iter().map(evaluation).collect::<Found<_>>()?,
            pointwise: statements(&roles.pointwise),
            factors,
            products: roles.products.iter().map(|p| self.products(p, results)).collect::<Found<_>>()?,
            sums: statements(&roles.sums),
        })
    }

    fn products(&self, roles: &ProductRoles, results: &[ElementResult]) -> Found<Products> {
        let mut targets = Vec::new();
        for insn in &roles.insns {
            let target = self.array(self.insn(insn)?.lhs.var);
            if !targets.contains(&target) {
                targets.push(target);
            }
        }
        let place = match &targets[..] {
            [target] => results.iter().position(|r| r.array == *target),
            _ => None,
        };
        let rows = &roles.rows;
        let result = place.ok_or_else(|| self.refuse(format!("`{rows}` adds to no one element vector")))?;
        let mut partials = Vec::new();
        for insn in &roles.partials {
            partials.push(self.array(self.insn(insn)?.lhs.var));
        }
        let all: Vec<String> = roles.partials.iter().chain(&roles.insns).cloned().collect();
        Ok(Products {
            result,
            rows: Loop::named(rows),
            count: self.length(rows)?,
            columns: roles.columns.as_ref().map(Loop::named),
            partials,
            insns: statements(&roles.insns),
            tables: self.read_by(&all, |v| matches!(v.kind, VarKind::Table(_)))?,
        })
    }

    fn evaluation(&self, roles: &EvaluationRoles, gathers: &[Gather]) -> Found<Evaluation> {
        let input = self.array(self.input(roles)?);
        let mut outputs = Vec::new();
        for insn in &roles.products {
            let output = self.array(self.insn(insn)?.lhs.var);
            if !outputs.contains(&output) {
                outputs.push(output);
            }
        }
        Ok(Evaluation {
            function: roles.function.clone(),
            dofs: Loop::named(&roles.dofs),
            count: self.length(&roles.dofs)?,
            inputs: gathers.iter().position(|g| g.array == input).into_iter().collect(),
            tables: self.read_by(&roles.products, |v| matches!(v.kind, VarKind::Table(_)))?,
            outputs,
            inits: statements(&roles.inits),
        })
    }

    /// The array of gathered values that an evaluation reads.
    fn input(&self, roles: &EvaluationRoles) -> Found<VarId> {
        let is_gathered = |v: &Variable| v.kind == VarKind::Temporary && !v.shape.is_empty();
        match self.read_by(&roles.products, is_gathered)?[..] {
            [ref one] => {
                self.kernel.var(one.name()).ok_or_else(|| self.refuse(format!("there is no `{one}`")))
            }
            _ => {
                let dofs = &roles.dofs;
                Err(self
                    .refuse(format!("the evaluation over `{dofs}` reads no one array of gathered values")))
            }
        }
    }

    /// A gathered variable with the instructions that gather it and the loop around them.
    fn gather(&self, var: VarId, gathers: &[String]) -> Found<Gather> {
        // transforms write it outside the nest
        let is_gather = |id: &InsnId| gathers.contains(&self.kernel.insns[*id].name);
        let writes = |id: &InsnId| self.kernel.insns[*id].lhs.var == var && is_gather(id);
        let writers: Vec<_> = self.schedule.iter().filter(|(id, _)| writes(id)).collect();
        let [_, dofs] = writers.first().map_or(&[][..], |(_, loops)| loops)[..] else {
            return Err(self.refuse("the gather is not in one nest of 2 loops".into()));
        };
        if writers.iter().any(|(_, loops)| loops.get(1) != Some(&dofs)) {
            return Err(self.refuse("the gather is not in one nest of 2 loops".into()));
        }
        let dofs = &self.kernel.inames[dofs].name;
        let insns = writers.iter().map(|(id, _)| Statement::named(&self.kernel.insns[*id].name));
        Ok(Gather {
            array: self.array(var),
            dofs: Loop::named(dofs),
            count: self.length(dofs)?,
            components: self.components(var),
            insns: insns.collect(),
        })
    }

    /// Components of an array of degrees of freedom; none of a scalar function.
    fn components(&self, var: VarId) -> Option<i64> {
        match &self.kernel.vars[var].shape[..] {
            [_, components] => components.as_constant(),
            _ => None,
        }
    }

    /// Variables that instructions read outside indices, in order of appearance.
    fn read_by(&self, insns: &[String], wanted: impl Fn(&Variable) -> bool) -> Found<Vec<Array>> {
        let mut found = Vec::new();
        for insn in insns {
            self.insn(insn)?.rhs.for_each(&mut |e| {
                if let Expr::Load(a) = e
                    && wanted(&self.kernel.vars[a.var])
                    && !found.contains(&self.array(a.var))
                {
                    found.push(self.array(a.var));
                }
            });
        }
        Ok(found)
    }

    /// Whether no table of the products is read through an index from memory.
    fn shares_tables(&self, roles: &Roles) -> Found<bool> {
        let evaluations = roles.blocks.iter().flat_map(|b| &b.evaluations).flat_map(|e| &e.products);
        let mut shared = true;
        let readers: Vec<String> = roles.blocks.iter().flat_map(BlockRoles::readers).collect();
        for insn in evaluations.chain(&readers) {
            self.insn(insn)?.rhs.for_each(&mut |e| {
                if let Expr::Load(access) = e
                    && matches!(self.kernel.vars[access.var].kind, VarKind::Table(_))
                {
                    let loads = |index: &Expr| {
                        let mut found = false;
                        index.for_each(&mut |e| found |= matches!(e, Expr::Load(_)));
                        found
                    };
                    shared &= !access.index.iter().any(loads);
                }
            });
        }
        Ok(shared)
    }

    /// The variables that the instructions in some loops read.
    fn read_in(&self, loops: Vec<InameId>) -> BTreeSet<VarId> {
        let inside = self.schedule.iter().filter(|(_, own)| own.iter().any(|l| loops.contains(l)));
        inside.flat_map(|(i, _)| self.kernel.insns[*i].reads()).map(|a| a.var).collect()
    }

    fn position(&self, insn: &str) -> usize {
        let is_it = |id: &InsnId| self.kernel.insns[*id].name == insn;
        self.schedule.iter().position(|(id, _)| is_it(id)).unwrap_or(usize::MAX)
    }

    fn array(&self, var: VarId) -> Array {
        Array::named(&self.kernel.vars[var].name)
    }

    fn insn(&self, name: &str) -> Found<&Insn> {
        let id = self.kernel.insn(name).ok_or_else(|| self.refuse(format!("there is no `{name}`")))?;
        Ok(&self.kernel.insns[id])
    }

    fn length(&self, name: &str) -> Found<i64> {
        let range = self.kernel.iname(name).and_then(|i| self.kernel.inames[i].domain.as_range(i));
        let length =
            range.and_then(|(lo, hi)| if lo.as_constant() == Some(0) { hi.as_constant() } else { None });
        length.ok_or_else(|| self.refuse(format!("`{name}` does not run from 0 to a constant")))
    }

    fn refuse(&self, found: String) -> NotAnAction {
        NotAnAction { kernel: self.kernel.name.clone(), found }
    }
}

fn statements(names: &[String]) -> Vec<Statement> {
    names.iter().map(Statement::named).collect()
}
