//! Proposals of isl's scheduler, as steps: a nest of bands instead of the text's loops.

use crate::draft::{Draft, Tried, refusable};
use kingpost_analysis::Analysis;
use kingpost_analysis::deps::DependenceKind;
use kingpost_analysis::polyhedral::Side;
use kingpost_ir::{InsnId, Kernel, Node, UpdateOp};
use kingpost_isl::{
    Affine, Constraint, IslError, Objective, ScheduleTree, Scheduling, Set, SetSpace, with_operation_limit,
};
use kingpost_steps::TransformError;
use kingpost_steps::tree::insns_of;
use kingpost_transforms::primitives::{Band, DistributeLoop, MoveInsns, Part, Reschedule, TileBand};
use std::collections::BTreeMap;

/// Operations that isl may take for a schedule: some seconds.
const OPERATIONS: u64 = 30_000_000;

/// Length of a tile in isl's own examples, along each loop.
const TILE: i64 = 32;

/// The scheduler takes parameters for this large at least, so that it need not care for short loops.
/// Steps do not: they are proved for all.
const USUAL: i64 = 4;

/// An outermost band of isl's schedule.
pub(crate) struct OuterBand {
    /// What makes it.
    pub(crate) step: Reschedule,
    /// Whether its loops may stand in any order.
    pub(crate) permutable: bool,
    /// Whether one of its loops is parallel.
    pub(crate) parallel: bool,
}

impl Draft<'_> {
    /// Puts the statements of each part of the program that isl orders by loops of their own into these.
    ///
    /// # Errors
    /// A bug, a step that is refused.
    pub(crate) fn reschedule(&mut self, objective: Objective) -> Tried {
        self.parted_bands(objective)?.into_iter().try_for_each(|band| self.make(band.step).map(|_| ()))
    }

    /// The same, and tiles of the loops that may stand in any order: what isl makes of the program alone.
    ///
    /// # Errors
    /// A bug, a step that is refused.
    pub(crate) fn reschedule_in_tiles(&mut self) -> Tried {
        for OuterBand { step, permutable, .. } in self.parted_bands(Objective::default())? {
            let loops = step.loops.clone();
            self.make(step)?;
            if permutable && loops.len() > 1 {
                let sizes = vec![TILE; loops.len()];
                self.make(TileBand::new(loops, sizes))?;
            }
        }
        Ok(())
    }

    /// The outermost bands of isl's schedule, after each loop that holds statements of several is
    /// distributed.
    ///
    /// # Errors
    /// A bug, a loop that cannot be distributed, a failure of the solver.
    pub(crate) fn parted_bands(&mut self, objective: Objective) -> Tried<Vec<OuterBand>> {
        let tree = self.tree(objective)?;
        let parts: Vec<Vec<String>> =
            branches(&tree, self.kernel()).into_iter().map(|(statements, _)| statements).collect();
        let roots: Vec<String> = self.kernel().body.iter().map(|node| self.name_of(node)).collect();
        let steps = self.schedule.recipe().steps.len();
        for root in roots {
            self.part(&root, &|name| parts.iter().position(|all| all.iter().any(|s| s == name)))?;
        }
        if self.schedule.recipe().steps.len() == steps {
            return Ok(self.bands_of(&tree));
        }
        // loops that were distributed have other names now
        Ok(self.bands_of(&self.tree(objective)?))
    }

    /// The outermost bands of isl's schedule.
    fn bands_of(&self, tree: &ScheduleTree) -> Vec<OuterBand> {
        let branches = branches(tree, self.kernel());
        let mut names = Names { kernel: self.kernel().clone(), next: 0 };
        let mut steps = Vec::new();
        for (statements, tree) in branches {
            let roots = self.roots_of(&statements);
            let ScheduleTree::Band(band) = tree else { continue };
            let Band { loops, maps, then } = names.band(band, &statements);
            let step = Reschedule { subtree: roots, loops, maps, then };
            let parallel = band.parallel.contains(&true);
            steps.push(OuterBand { step, permutable: band.permutable, parallel });
        }
        steps
    }

    /// isl's order of all instances.
    fn tree(&self, objective: Objective) -> Tried<ScheduleTree> {
        let ask = || {
            with_operation_limit(OPERATIONS, || tree(&self.schedule.analysis(), objective)).map_err(
                |error: IslError| TransformError {
                    operation: "ask isl's scheduler".into(),
                    cause: error.into(),
                },
            )
        };
        self.asked.answer(self.kernel(), objective).get_or_init(ask).clone()
    }

    /// Distributes a loop, and those that it holds, so that each is in one branch.
    fn part(&mut self, name: &str, branch: &dyn Fn(&str) -> Option<usize>) -> Tried {
        let nested: Vec<String> = self.body(name).iter().map(|node| self.name_of(node)).collect();
        for inner in nested {
            self.part(&inner, branch)?;
        }
        let kernel = self.kernel();
        let of = |node: &Node| {
            let first = insns_of(std::slice::from_ref(node)).into_iter().next();
            first.and_then(|s| branch(&kernel.insns[s].name))
        };
        let body = self.body(name);
        let cuts = body.windows(2).filter(|pair| of(&pair[0]) != of(&pair[1]));
        let cuts: Vec<String> = cuts.map(|pair| self.name_of(&pair[1])).collect();
        if cuts.is_empty() {
            return Ok(());
        }
        let mut order: Vec<(Option<usize>, String)> =
            body.iter().map(|node| (of(node), self.name_of(node))).collect();
        let in_text = order.clone();
        order.sort_by_key(|(branch, _)| *branch);
        let Err(refused) = refusable(self.make(DistributeLoop::new(name, cuts)))? else { return Ok(()) };
        if order == in_text {
            return Err(refused);
        }
        // the order of the branches is another one
        for pair in order.windows(2) {
            self.make(MoveInsns::after([&pair[1].1], &pair[0].1)).map_err(|_| refused.clone())?;
        }
        let later = order.windows(2).filter(|pair| pair[0].0 != pair[1].0).map(|pair| pair[1].1.clone());
        self.make(DistributeLoop::new(name, later.collect::<Vec<_>>())).map(|_| ())
    }

    /// The statements at the root that hold these instructions.
    fn roots_of(&self, statements: &[String]) -> Vec<String> {
        let kernel = self.kernel();
        let holds = |node: &&Node| {
            let insns: Vec<InsnId> = insns_of(std::slice::from_ref(*node));
            insns.iter().any(|s| statements.contains(&kernel.insns[*s].name))
        };
        kernel.body.iter().filter(holds).map(|node| self.name_of(node)).collect()
    }
}

/// The order of all instances that isl proposes.
fn tree(analysis: &Analysis<'_>, objective: Objective) -> Result<ScheduleTree, IslError> {
    let (kernel, poly) = (analysis.kernel(), analysis.polyhedral());
    let mut domains = Vec::new();
    for (insn, data) in kernel.insns.iter() {
        let dims = poly.names(poly.loops(insn), Side::Source);
        let space = SetSpace::new(&dims, &poly.params).with_tuple(&data.name);
        domains.push(Set::from_disjuncts(&space, &poly.instances(insn, Side::Source).0)?);
    }
    let usual = poly.params.iter().map(|p| Constraint::non_negative(Affine::name(p).offset(-USUAL)));
    let known: Vec<Constraint> = usual.chain(poly.context.iter().cloned()).collect();
    let context = Set::from_constraints(&SetSpace::new::<&str, _>(&[], &poly.params), &known)?;
    let mut problem = Scheduling::of(domains).with_context(context);
    for dependence in analysis.dependences()? {
        let pairs = dependence.relation()?;
        if dependence.carries_value() {
            problem = problem.close(pairs.clone());
        }
        // sums stay in order, so that results are the same to the last bit
        let free = match (dependence.kind, kernel.insns[dependence.source].update_op()) {
            (DependenceKind::Update, Some(UpdateOp::Min | UpdateOp::Max | UpdateOp::Or | UpdateOp::And)) => {
                true
            }
            (DependenceKind::Update, Some(UpdateOp::Named(operator))) => operator.is_proved(),
            (_, Some(_) | None) => false,
        };
        if !free {
            problem = problem.ordered(pairs);
        }
    }
    problem.compute(objective)
}

/// The parts of a tree that run one after the other.
fn branches<'t>(tree: &'t ScheduleTree, kernel: &Kernel) -> Vec<(Vec<String>, &'t ScheduleTree)> {
    match tree {
        ScheduleTree::Sequence(parts) | ScheduleTree::Set(parts) => {
            parts.iter().map(|part| (part.statements.clone(), &part.tree)).collect()
        }
        ScheduleTree::Leaf | ScheduleTree::Band(_) => {
            vec![(kernel.insns.iter().map(|(_, insn)| insn.name.clone()).collect(), tree)]
        }
    }
}

/// Names of new loops.
struct Names {
    kernel: Kernel,
    next: usize,
}

impl Names {
    fn loops(&mut self, count: usize) -> Vec<String> {
        let mut found = Vec::with_capacity(count);
        while found.len() < count {
            let name = format!("c{}", self.next);
            self.next += 1;
            if self.kernel.is_free_name(&name) {
                found.push(name);
            }
        }
        found
    }

    fn band(&mut self, band: &kingpost_isl::Band, statements: &[String]) -> Band {
        let mut made = Band::new(self.loops(band.parallel.len()));
        for (statement, rows) in band.rows.iter().filter(|(s, _)| statements.contains(s)) {
            made.maps.insert(statement.clone(), rows.iter().map(text).collect());
        }
        made.then = self.parts(&band.inner, statements);
        made
    }

    fn parts(&mut self, tree: &ScheduleTree, statements: &[String]) -> Vec<Part> {
        match tree {
            // what isl leaves open is as in the text
            ScheduleTree::Leaf => {
                let in_text =
                    insns_of(&self.kernel.body).into_iter().map(|s| self.kernel.insns[s].name.clone());
                in_text.filter(|name| statements.contains(name)).map(Part::Statement).collect()
            }
            ScheduleTree::Band(band) => vec![Part::Band(self.band(band, statements))],
            ScheduleTree::Sequence(parts) | ScheduleTree::Set(parts) => {
                parts.iter().flat_map(|part| self.parts(&part.tree, &part.statements)).collect()
            }
        }
    }
}

/// A row as the language writes it.
fn text(row: &Affine) -> String {
    let mut sum: BTreeMap<String, i64> = BTreeMap::new();
    for (name, c) in &row.terms {
        *sum.entry(name.clone()).or_default() += c;
    }
    for (div, c) in &row.divs {
        let quotient = format!("floor_div({}, {})", text(&div.numerator), div.denominator);
        *sum.entry(quotient).or_default() += c;
    }
    sum.retain(|_, c| *c != 0);
    let terms = sum.iter().map(|(name, c)| match c {
        1 => name.clone(),
        c => format!("{c}*{name}"),
    });
    let constant = (row.constant != 0 || sum.is_empty()).then(|| row.constant.to_string());
    terms.chain(constant).collect::<Vec<_>>().join(" + ")
}
