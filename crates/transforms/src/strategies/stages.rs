//! The stages of an operator action, found by their tags (Kulkarni & Klöckner 2025, Algorithm 2).

use crate::primitives::{FuseLoops, MoveInsns, Place};
use crate::recipe::Recipe;
use purlin_ir::{AddressSpace, Expr, InameId, Insn, InsnId, Kernel, Node, ScalarType, VarId, VarKind};

/// A kernel that is no operator action as Algorithm 2 has it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAnAction {
    /// A stage is missing, or not as the algorithm has it.
    #[error(
        "the kernel `{kernel}` is no operator action of known stages: {found}; kernels of forms have them, with the tags of lowering"
    )]
    Stages {
        /// Name of the kernel.
        kernel: String,
        /// What is missing or unexpected.
        found: String,
    },
    /// An action whose terms are integrated by several quadrature rules.
    #[error(
        "the kernel `{kernel}` has {rules} quadrature loops, and this mapping tiles one: integrate all terms by one \
         rule, of the largest degree, or map one cell to a work-item"
    )]
    Rules {
        /// Name of the kernel.
        kernel: String,
        /// Number of quadrature loops.
        rules: usize,
    },
}

/// The loops, variables and instructions of an operator action by their roles.
///
/// The stages are the tags `gather`, `geometry`, `evaluation`, `pointwise`, `quadrature`, `scatter`, and `init` for
/// instructions that zero the results of a stage. Everything is found from these tags and the accesses of the
/// instructions that carry them; no name matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stages {
    /// The loop over cells.
    pub cell: String,
    /// The loop over quadrature points.
    pub quad: String,
    /// One for each function whose values or derivatives are evaluated, in textual order.
    pub fields: Vec<Field>,
    /// First instruction of the pointwise stage.
    pub pointwise: String,
    /// Temporaries of a cell that the quadrature loop reads: Jacobian terms, coordinates.
    pub per_cell: Vec<String>,
    /// The evaluation results that the quadrature stage reads (*e* in the source).
    pub evaluated: Vec<String>,
    /// Name of the test function, or of the element vector.
    pub test: String,
    /// The loop over test functions, around the small matrix-vector products of the quadrature stage.
    pub rows: String,
    /// Number of test functions.
    pub row_count: i64,
    /// The matrices of the quadrature stage (Ψ).
    pub matrices: Vec<String>,
    /// Number of those products.
    pub products: usize,
    /// The element vector.
    pub element_vector: String,
    /// Type of its elements.
    pub ty: ScalarType,
    /// Its components: one for a scalar test function.
    pub components: i64,
    /// The loop that zeroes the element vector.
    pub zero: String,
    /// The loop of the scatter.
    pub scatter: String,
    /// The instructions of the scatter.
    pub commits: Vec<String>,
    /// The first statement in the loop over cells that gathers no function that is evaluated.
    pub first: String,
    /// The loops behind it that gather one.
    pub late_gathers: Vec<String>,
    /// All loops that gather one, in textual order, which need not be that of the functions.
    pub gathers: Vec<String>,
    /// Number of quadrature points.
    pub quad_count: i64,
}

/// Functions that are evaluated in one loop over degrees of freedom: one, until [`Stages::with_shared_columns`] joins
/// those with the same matrices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name of the first in the form.
    pub name: String,
    /// The loop over the local degrees of freedom.
    pub dofs: String,
    /// Number of iterations of that loop.
    pub dof_count: i64,
    /// The degrees of freedom of each function.
    pub gathered: Vec<Gathered>,
    /// The matrices they are evaluated with (Φ).
    pub matrices: Vec<String>,
    /// Their values and derivatives.
    pub results: Vec<String>,
    /// Instructions that zero them.
    pub inits: Vec<String>,
}

/// The degrees of freedom of a function in a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gathered {
    /// The array.
    pub array: String,
    /// Components: none for a scalar function.
    pub components: Option<i64>,
    /// The loop that gathers them.
    pub gather: String,
    /// Its instructions, one a component.
    pub insns: Vec<String>,
}

impl Stages {
    /// Finds the stages of a kernel.
    ///
    /// # Errors
    /// What is missing: an instruction of a stage, a loop of constant length, one element vector.
    pub fn of(kernel: &Kernel) -> Result<Self, NotAnAction> {
        Finder { kernel, schedule: kernel.schedule() }.stages()
    }

    /// The same with functions of the same matrices evaluated in one loop, and the steps that make it so.
    pub fn with_shared_columns(mut self) -> (Self, Recipe) {
        let mut recipe = Recipe::default();
        let mut joined: Vec<Field> = Vec::new();
        for field in std::mem::take(&mut self.fields) {
            let same = |f: &Field| (f.dof_count, &f.matrices) == (field.dof_count, &field.matrices);
            let last = joined.len().wrapping_sub(1);
            let Some((k, first)) = joined.iter_mut().enumerate().find(|(_, f)| same(f)) else {
                joined.push(field);
                continue;
            };
            let to = Place::Before(first.dofs.clone());
            recipe = recipe.then(MoveInsns { statements: field.inits.clone(), to });
            if k != last {
                // the loops of other functions stand between
                recipe = recipe.then(MoveInsns::after([&field.dofs], &first.dofs));
            }
            recipe = recipe.then(FuseLoops { first: first.dofs.clone(), second: field.dofs });
            first.gathered.extend(field.gathered);
            first.results.extend(field.results);
            first.inits.extend(field.inits);
        }
        self.fields = joined;
        (self, recipe)
    }
}

struct Finder<'k> {
    kernel: &'k Kernel,
    schedule: Vec<(InsnId, Vec<InameId>)>,
}

type Found<T> = Result<T, NotAnAction>;

impl<'k> Finder<'k> {
    fn stages(&self) -> Found<Stages> {
        let scatter = self.stage("scatter", false)?;
        let [cell, scatter_loop] = self.loops(&scatter, 2, "scatter")?[..] else {
            return Err(self.refuse("the scatter is not directly inside a loop over cells".into()));
        };
        let pointwise = self.stage("pointwise", false)?;
        self.check_rules(&pointwise)?;
        let quad = self.loops(&pointwise, 2, "pointwise")?[1];
        let quadrature = self.stage("quadrature", false)?;
        let rows = self.loops(&quadrature, 3, "quadrature")?[2];
        let zeroes = self.stage("quadrature", true)?;
        let zero = self.loops(&zeroes, 2, "zeroing of the element vector")?[1];
        let element_vector = self.one_target(&quadrature, "quadrature")?;
        let fields = self.fields()?;
        let name = |v: &VarId| self.kernel.vars[*v].name.clone();
        let arrays = fields.iter().flat_map(|f| &f.gathered);
        let gathered: Vec<VarId> = arrays.filter_map(|g| self.kernel.var(&g.array)).collect();
        let mut per_cell = self.written(&["gather", "geometry"]);
        per_cell.retain(|v| !gathered.contains(v) && self.is_read_in(*v, quad));
        let mut evaluated = self.read_by(&quadrature, |v| v.kind == VarKind::Temporary);
        evaluated.retain(|v| *v != element_vector);
        let matrices = self.read_by(&quadrature, |v| matches!(v.kind, VarKind::Table(_)));
        let statements = self.statements(cell);
        let is_gather = |s: &&String| fields.iter().flat_map(|f| &f.gathered).any(|g| g.gather == **s);
        let gathers: Vec<String> = statements.iter().filter(is_gather).cloned().collect();
        let first = statements.iter().position(|s| !gathers.contains(s));
        let (first, late) =
            first.map_or((String::new(), &[][..]), |k| (statements[k].clone(), &statements[k..]));
        let late_gathers = late.iter().filter(|s| gathers.contains(s)).cloned().collect();
        Ok(Stages {
            cell: self.loop_name(cell),
            quad: self.loop_name(quad),
            pointwise: self.insn(pointwise[0]).name.clone(),
            test: self.function(&quadrature).unwrap_or_else(|| name(&element_vector)),
            products: quadrature.len(),
            ty: self.kernel.vars[element_vector].ty,
            components: self.components(element_vector).unwrap_or(1),
            per_cell: per_cell.iter().map(name).collect(),
            evaluated: evaluated.iter().map(name).collect(),
            rows: self.loop_name(rows),
            row_count: self.length(rows)?,
            matrices: matrices.iter().map(name).collect(),
            element_vector: name(&element_vector),
            zero: self.loop_name(zero),
            scatter: self.loop_name(scatter_loop),
            commits: scatter.iter().map(|i| self.insn(*i).name.clone()).collect(),
            first,
            late_gathers,
            gathers,
            quad_count: self.length(quad)?,
            fields,
        })
    }

    /// The values at quadrature points are all computed in one loop.
    fn check_rules(&self, pointwise: &[InsnId]) -> Found<()> {
        let mut loops: Vec<&[InameId]> = pointwise.iter().map(|i| self.loops_of(*i)).collect();
        loops.sort_unstable();
        loops.dedup();
        match loops.len() > 1 && loops.iter().all(|l| l.len() == 2 && l[0] == loops[0][0]) {
            true => Err(NotAnAction::Rules { kernel: self.kernel.name.clone(), rules: loops.len() }),
            false => Ok(()),
        }
    }

    fn fields(&self) -> Found<Vec<Field>> {
        let evaluation = self.stage("evaluation", false)?;
        let mut loops: Vec<InameId> = Vec::new();
        for insn in &evaluation {
            let dofs = self.loops(&[*insn], 3, "evaluation")?[2];
            if !loops.contains(&dofs) {
                loops.push(dofs);
            }
        }
        loops.into_iter().map(|dofs| self.field(dofs, &evaluation)).collect()
    }

    fn field(&self, dofs: InameId, evaluation: &[InsnId]) -> Found<Field> {
        let own: Vec<InsnId> =
            evaluation.iter().copied().filter(|i| self.loops_of(*i).get(2) == Some(&dofs)).collect();
        let gathered = match self.read_by(&own, |v| v.kind == VarKind::Temporary && !v.shape.is_empty())[..] {
            [one] => one,
            _ => {
                let dofs = self.loop_name(dofs);
                return Err(self
                    .refuse(format!("the evaluation over `{dofs}` reads no one array of gathered values")));
            }
        };
        let targets: Vec<VarId> = own.iter().map(|i| self.insn(*i).lhs.var).collect();
        let name = |v: VarId| self.kernel.vars[v].name.clone();
        let mut results: Vec<String> = Vec::new();
        for v in &targets {
            if !results.contains(&name(*v)) {
                results.push(name(*v));
            }
        }
        let inits = self.stage("evaluation", true)?;
        let inits = inits.into_iter().map(|i| self.insn(i)).filter(|i| targets.contains(&i.lhs.var));
        Ok(Field {
            name: self.function(&own).unwrap_or_else(|| self.loop_name(dofs)),
            dofs: self.loop_name(dofs),
            dof_count: self.length(dofs)?,
            gathered: vec![self.gathered(gathered)?],
            matrices: self
                .read_by(&own, |v| matches!(v.kind, VarKind::Table(_)))
                .into_iter()
                .map(name)
                .collect(),
            results,
            inits: inits.map(|i| i.name.clone()).collect(),
        })
    }

    /// The instructions of a stage in textual order, those tagged `init` or the others.
    fn stage(&self, tag: &str, init: bool) -> Found<Vec<InsnId>> {
        let wanted = |i: &Insn| i.tags.contains(tag) && i.tags.contains("init") == init;
        let found: Vec<_> =
            self.schedule.iter().map(|(i, _)| *i).filter(|i| wanted(&self.kernel.insns[*i])).collect();
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

    fn insn(&self, insn: InsnId) -> &Insn {
        &self.kernel.insns[insn]
    }

    fn one_target(&self, insns: &[InsnId], stage: &str) -> Found<VarId> {
        let first = self.insn(insns[0]).lhs.var;
        match insns.iter().all(|i| self.insn(*i).lhs.var == first) {
            true => Ok(first),
            false => Err(self.refuse(format!("the {stage} writes several arrays"))),
        }
    }

    /// Names of the statements of the loop over cells.
    fn statements(&self, cell: InameId) -> Vec<String> {
        let name = |node: &Node| match node {
            Node::Loop(l, _) => self.loop_name(*l),
            Node::Insn(i) => self.insn(*i).name.clone(),
        };
        crate::tree::loop_body(&self.kernel.body, cell).unwrap_or_default().iter().map(name).collect()
    }

    /// The function of the form that instructions belong to.
    fn function(&self, insns: &[InsnId]) -> Option<String> {
        let mut tags = insns.iter().flat_map(|i| &self.insn(*i).tags);
        tags.find_map(|t| t.strip_prefix("of_")).map(str::to_owned)
    }

    /// Components of an array of degrees of freedom; none of a scalar function.
    fn components(&self, var: VarId) -> Option<i64> {
        match &self.kernel.vars[var].shape[..] {
            [_, components] => components.as_constant(),
            _ => None,
        }
    }

    /// A gathered variable with the instructions that gather it and the loop around them.
    fn gathered(&self, var: VarId) -> Found<Gathered> {
        let writers: Vec<InsnId> =
            self.schedule.iter().map(|(i, _)| *i).filter(|i| self.insn(*i).lhs.var == var).collect();
        Ok(Gathered {
            array: self.kernel.vars[var].name.clone(),
            components: self.components(var),
            gather: self.loop_name(self.loops(&writers, 2, "gather")?[1]),
            insns: writers.iter().map(|i| self.insn(*i).name.clone()).collect(),
        })
    }

    /// Variables that instructions read outside of indices, in order of appearance.
    fn read_by(&self, insns: &[InsnId], wanted: impl Fn(&purlin_ir::Variable) -> bool) -> Vec<VarId> {
        let mut found = Vec::new();
        for insn in insns {
            self.insn(*insn).rhs.for_each(&mut |e| {
                if let Expr::Load(a) = e
                    && wanted(&self.kernel.vars[a.var])
                    && !found.contains(&a.var)
                {
                    found.push(a.var);
                }
            });
        }
        found
    }

    /// Private temporaries that instructions of some stages write, in order of appearance.
    fn written(&self, stages: &[&str]) -> Vec<VarId> {
        let mut found = Vec::new();
        for (insn, _) in &self.schedule {
            let insn = self.insn(*insn);
            let var = insn.lhs.var;
            let here = stages.iter().any(|t| insn.tags.contains(*t));
            let private = self.kernel.vars[var].space == AddressSpace::Private;
            if here && private && !found.contains(&var) {
                found.push(var);
            }
        }
        found
    }

    fn is_read_in(&self, var: VarId, iname: InameId) -> bool {
        let inside = self.schedule.iter().filter(|(_, l)| l.contains(&iname));
        inside.into_iter().any(|(i, _)| self.insn(*i).reads().iter().any(|a| a.var == var))
    }

    fn loop_name(&self, iname: InameId) -> String {
        self.kernel.inames[iname].name.clone()
    }

    fn length(&self, iname: InameId) -> Found<i64> {
        let range = self.kernel.inames[iname].domain.as_range(iname);
        let length =
            range.and_then(|(lo, hi)| if lo.as_constant() == Some(0) { hi.as_constant() } else { None });
        length.ok_or_else(|| {
            let name = self.loop_name(iname);
            self.refuse(format!("`{name}` does not run from 0 to a constant"))
        })
    }

    fn refuse(&self, found: String) -> NotAnAction {
        NotAnAction::Stages { kernel: self.kernel.name.clone(), found }
    }
}
