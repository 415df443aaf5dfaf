//! The fewest operations a cell: sums over quadrature points in advance where that takes fewer.

use super::decided;
use super::sharing::{eliminate_all, eliminate_sharing, fewest_symbols};
use super::zero_blocks::{operations, skip_zero_blocks};
use crate::strategy::mapping::Mapping;
use crate::strategy::{Arguments, Combinator, MappingError, Stopped, Work};
use kingpost_forms::CellKernel;
use kingpost_forms::program::CellProgram;
use kingpost_ir::{Kernel, VarKind};
use kingpost_primitives::monomials::{Monomial, monomials};
use kingpost_primitives::primitives::{MirrorTriangle, PreEvaluateLoop, RemoveUnusedVars, SumMoments};
use kingpost_primitives::{Schedule, TransformError};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap};
use std::fmt;

/// What [`FewestOperations`] minimises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Objective {
    /// Operations; tables stay below the threshold (Luporini et al. 2017, §4.1).
    #[default]
    Operations,
    /// Operations and cache misses: where tables exceed the threshold, each of their bytes costs as
    /// much as [`OPERATIONS_PER_BYTE`] operations.
    OperationsAndMisses,
}

/// Operations that take as long as a byte of a table that a cell reads from the next level of
/// cache: 16 operations a cycle (two fused multiply-adds of four lanes) and 32 bytes a cycle, what a
/// core of recent x86 processors does at best.
pub const OPERATIONS_PER_BYTE: f64 = 0.5;

/// A monomial of a quadrature loop, and whether its sum may be evaluated in advance.
///
/// # Source
/// Luporini et al. 2017, §4.1, step 1 of Algorithm 3, and §4.2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Considered {
    /// The monomial.
    pub monomial: Monomial,
    /// The fewest symbols that cover all products of two of them, by the integer program of sharing
    /// elimination: as many multiplications are left in the innermost loop. None where there is no
    /// product.
    pub factorised: Option<usize>,
    /// The increase factor `ι`.
    pub increase: u64,
    /// What evaluation in advance takes more than sharing elimination, operations in the innermost
    /// loops (`θ`).
    pub theta: i64,
    /// Whether the monomial is one of those (`P`) of which all bipartitions are tried.
    pub is_possible: bool,
}

impl fmt::Display for Considered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |of: &[String]| of.iter().map(|t| format!("`{t}`")).collect::<Vec<_>>().join(", ");
        let m = &self.monomial;
        write!(f, "monomial of {} over `{}`", names(&m.tables), m.iname)?;
        match (m.basis, m.functions.len()) {
            (_, 0) => {}
            (Some(n), k) => write!(f, " with {}, {k} of {n} basis functions", names(&m.functions))?,
            (None, _) => write!(f, " with {}, not all polynomials", names(&m.functions))?,
        }
        match self.increase {
            u64::MAX => write!(f, ": points {}", m.points)?,
            increase => write!(f, ": increase {increase}, points {}, theta {}", m.points, self.theta)?,
        }
        match (self.is_possible, self.theta < 0) {
            (true, _) => write!(f, ", may be evaluated in advance")?,
            (false, true) => write!(f, ", keeps its points: its factors do not leave the loop")?,
            (false, false) => write!(f, ", keeps its points")?,
        }
        match self.factorised {
            Some(n) => {
                let plural = |n: usize| if n == 1 { "" } else { "s" };
                let of = m.pairs.len();
                write!(f, "; integer program: {n} symbol{} for {of} product{}", plural(n), plural(of))
            }
            None => Ok(()),
        }
    }
}

/// A choice of monomials whose sums are evaluated in advance, and what it takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Bipartition {
    /// The steps that evaluate sums in advance, of whole loops or of some of their monomials.
    pub in_advance: Vec<PreEvaluateLoop>,
    /// The steps that take products of tables out of loops with points.
    pub moments: Vec<SumMoments>,
    /// Operations of a cell.
    pub operations: u64,
    /// Tables that are read, bytes.
    pub bytes: u64,
    /// The objective; infinite where tables exceed the threshold.
    pub cost: f64,
}

impl fmt::Display for Bipartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |of: &[String]| of.iter().map(|t| format!("`{t}`")).collect::<Vec<_>>().join(", ");
        let step = |step: &PreEvaluateLoop| match step.tables.as_slice() {
            [] => format!("`{}`", step.iname),
            tables => format!("{} over `{}`", names(tables), step.iname),
        };
        match self.in_advance.as_slice() {
            [] => write!(f, "all loops keep their points")?,
            steps => write!(f, "in advance {}", steps.iter().map(step).collect::<Vec<_>>().join("; "))?,
        }
        for step in &self.moments {
            write!(f, ", {step}")?;
        }
        write!(f, ": {} operations, tables of {} bytes", self.operations, self.bytes)?;
        if self.cost.is_infinite() { write!(f, ", above the threshold") } else { Ok(()) }
    }
}

/// Evaluates the sums of those monomials in advance for which the objective is smaller then, and
/// eliminates the sharing of what is left.
///
/// Of a symmetric matrix, one triangle is computed. Step 1 leaves monomials to their points for which
/// `θ` is not negative, or whose functions would have to be expanded in sums of their degrees of
/// freedom. The bipartition of the others is the best of all within the threshold; operations of each
/// are counted on the kernel that it makes. Beyond the document, what keeps its points sums moments of
/// the factors that change with the point, where this takes fewer operations.
///
/// # Errors
/// A step that is refused; no refusal is one where a loop keeps its points.
///
/// # Source
/// Luporini et al. 2017, §3.3, §3.4, and Algorithm 3 in §4.1; the comments name its steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FewestOperations {
    /// What tables may occupy in all, bytes, where they occupied less before (the threshold `T_H` of
    /// Constraint 2).
    #[serde(default = "FewestOperations::memory")]
    pub memory: u64,
    /// What is minimised.
    #[serde(default)]
    pub objective: Objective,
}

impl FewestOperations {
    /// Bytes that tables of sums may occupy if nothing else is said: the second-level cache of the
    /// processor of Luporini et al. 2017, §7.1.
    pub const MEMORY: u64 = 256 << 10;

    const fn memory() -> u64 {
        Self::MEMORY
    }
}

impl fmt::Display for FewestOperations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let misses = match self.objective {
            Objective::Operations => "",
            Objective::OperationsAndMisses => " and misses",
        };
        write!(f, "fewest operations{misses}, tables of {} bytes", self.memory)
    }
}

impl Arguments for FewestOperations {
    const NAME: &'static str = "fewest_operations";
    const SUMMARY: &'static str = "Sums over quadrature points in advance where that takes fewer operations.";
}

impl Combinator for FewestOperations {
    fn apply(&self, on: &mut Work<'_>, then: &Mapping) -> Result<(), Stopped> {
        let form = on.form();
        fewest_operations(on.schedule(), &*form.program()?, *self)?;
        on.go_on(then)
    }

    /// Also the monomials, and the sets of them that may be evaluated in advance.
    fn decisions(&self, form: &dyn CellKernel) -> Result<Vec<String>, MappingError> {
        let (kernel, program) = (form.kernel(), form.program()?);
        let monomials = considered(kernel, &program)?;
        let (_, _, shared) = eliminate_sharing(kernel)?;
        let all = bipartitions(kernel, &program, *self)?;
        let lines = monomials.iter().map(ToString::to_string);
        let lines = lines.chain(shared.iter().map(ToString::to_string));
        Ok(lines.chain(all.iter().map(ToString::to_string)).collect())
    }
}

/// The monomials of a kernel, as [`FewestOperations`] considers them.
///
/// # Errors
/// An integer program that the solver gives up.
///
/// # Source
/// Luporini et al. 2017, §4.1, step 1 of Algorithm 3, and §4.2.
pub fn considered(kernel: &Kernel, program: &CellProgram) -> Result<Vec<Considered>, MappingError> {
    let found = decided(kernel, |s| {
        mirror(s, program)?;
        monomials_of(s, program)
    });
    Ok(found?.0)
}

/// The sets of monomials that [`FewestOperations`] chooses from, in the order in which they are
/// tried.
///
/// # Errors
/// An integer program that the solver gives up.
///
/// # Source
/// Luporini et al. 2017, §4.1, Algorithm 3, steps 1 to 3.
pub fn bipartitions(
    kernel: &Kernel,
    program: &CellProgram,
    args: FewestOperations,
) -> Result<Vec<Bipartition>, MappingError> {
    let found = decided(kernel, |s| {
        mirror(s, program)?;
        Ok(tried(s, program, args)?.into_iter().map(|(choice, _)| choice).collect())
    });
    Ok(found?.0)
}

/// The steps.
fn fewest_operations(s: &mut Schedule, program: &CellProgram, args: FewestOperations) -> Result<(), Stopped> {
    mirror(s, program)?;
    // step 4
    let all = tried(s, program, args)?.into_iter();
    if let Some((_, best)) = all.reduce(|a, b| if b.0.cost < a.0.cost { b } else { a }) {
        *s = best;
    }
    // step 5
    s.attempt(RemoveUnusedVars {})?; // refused where all are used
    let before = s.clone();
    eliminate_all(s)?;
    // mappings read the roles of a kernel, which it may lose
    if CellProgram::read(s.kernel()).is_err() && CellProgram::read(before.kernel()).is_ok() {
        *s = before;
    }
    match CellProgram::read(s.kernel()) {
        Ok(_) => Ok(()), // mappings tile its loops
        Err(_) => Ok(skip_zero_blocks(s)?),
    }
}

/// Computes one triangle of each symmetric matrix.
fn mirror(s: &mut Schedule, program: &CellProgram) -> Result<(), TransformError> {
    for result in program.results.iter().filter(|r| r.columns.is_some()) {
        s.attempt(MirrorTriangle::new(result.array.name()))?; // refused where the matrix is not symmetric
    }
    Ok(())
}

/// Step 1: the monomials, and which of them may be evaluated in advance.
fn monomials_of(s: &Schedule, program: &CellProgram) -> Result<Vec<Considered>, Stopped> {
    let mut all = Vec::new();
    let mut programs: HashMap<BTreeSet<(String, String)>, usize> = HashMap::new();
    for monomial in program.blocks.iter().flat_map(|b| monomials(s.kernel(), b.quad.name())) {
        let increase = monomial.increase();
        // a multiplication and an addition each
        let factorised = match monomial.pairs.len() {
            0 => None,
            _ => Some(match programs.get(&monomial.pairs) {
                Some(known) => *known,
                None => {
                    let found = fewest_symbols(&monomial.pairs)?;
                    programs.insert(monomial.pairs.clone(), found);
                    found
                }
            }),
        };
        let kept = factorised.map_or(monomial.products, |symbols| monomial.elements * symbols as u64);
        let [pre, se] =
            [(increase, monomial.products), (monomial.points, kept)].map(|(a, b)| (2 * b).saturating_mul(a));
        let theta = i64::try_from(i128::from(pre) - i128::from(se)).unwrap_or(i64::MAX);
        let is_possible = increase < monomial.points
            && theta < 0
            && monomial.functions.is_empty()
            && s.clone().attempt(step_of(&monomial))?.is_some();
        all.push(Considered { monomial, factorised, increase, theta, is_possible });
    }
    Ok(all)
}

/// The step that evaluates a monomial in advance.
fn step_of(monomial: &Monomial) -> PreEvaluateLoop {
    PreEvaluateLoop::new(&monomial.iname).of_tables(&monomial.tables)
}

/// All bipartitions, and the kernels that they make.
fn tried(
    s: &Schedule,
    program: &CellProgram,
    args: FewestOperations,
) -> Result<Vec<(Bipartition, Schedule)>, Stopped> {
    let all = monomials_of(s, program)?;
    let possible: Vec<&Monomial> =
        all.iter().filter(|c| c.is_possible).map(|c| &c.monomial).take(MAX_MONOMIALS).collect();
    // steps 2 and 3
    let mut found = Vec::new();
    for chosen in 0..1_u32 << possible.len() {
        let chosen = possible.iter().enumerate().filter(|(k, _)| chosen >> k & 1 == 1);
        let chosen: Vec<&Monomial> = chosen.map(|(_, monomial)| *monomial).collect();
        let mut made = s.clone();
        let mut in_advance = Vec::new();
        for step in steps(&all, &chosen) {
            made.make(step.clone())?;
            in_advance.push(step);
        }
        let with_moments = moments(&made, program)?;
        let (operations, bytes, cost) = cost(s, &made, args);
        let steps = in_advance.clone();
        let kept = Bipartition { in_advance: steps, moments: Vec::new(), operations, bytes, cost };
        found.push((kept, made));
        if let Some((moments, made)) = with_moments {
            let (operations, bytes, cost) = self::cost(s, &made, args);
            found.push((Bipartition { in_advance, moments, operations, bytes, cost }, made));
        }
    }
    Ok(found)
}

/// The steps that evaluate some monomials in advance: of a loop all of whose monomials are chosen, one
/// without the loop.
fn steps(all: &[Considered], chosen: &[&Monomial]) -> Vec<PreEvaluateLoop> {
    let mut steps: Vec<PreEvaluateLoop> = Vec::new();
    for monomial in chosen {
        let of_loop = || all.iter().map(|c| &c.monomial).filter(|m| m.iname == monomial.iname);
        let whole = PreEvaluateLoop::new(&monomial.iname);
        match of_loop().all(|m| chosen.contains(&m)) {
            true if steps.contains(&whole) => {}
            true => steps.push(whole),
            false => steps.push(step_of(monomial)),
        }
    }
    steps
}

/// The steps that make moments, and the kernel after them.
type WithMoments = Option<(Vec<SumMoments>, Schedule)>;

/// The kernel with moments instead of products of tables, wherever that takes fewer operations,
/// and the steps; none where it never does.
fn moments(s: &Schedule, program: &CellProgram) -> Result<WithMoments, TransformError> {
    let (mut steps, mut best) = (Vec::new(), s.clone());
    let mut least = operations(s);
    for quad in program.blocks.iter().map(|b| b.quad.name()).filter(|q| s.kernel().iname(q).is_some()) {
        for step in SumMoments::possible(s.kernel(), quad) {
            // the kernel of many factors takes seconds to write, and more operations
            if step.least_operations(&best.analysis()).is_ok_and(|bound| bound >= least) {
                continue;
            }
            let mut tried = best.clone();
            if tried.attempt(step.clone())?.is_some() && operations(&tried) < least {
                least = operations(&tried);
                best = tried;
                steps.push(step);
            }
        }
    }
    Ok((!steps.is_empty()).then_some((steps, best)))
}

/// Most monomials of which all sets are tried; what comes after keeps its points.
const MAX_MONOMIALS: usize = 6;

/// Operations, bytes of tables, and the objective of a kernel, for one cell; what exceeds the
/// threshold, and the tables before, is never best.
fn cost(before: &Schedule, s: &Schedule, args: FewestOperations) -> (u64, u64, f64) {
    let (operations, bytes) = (operations(s), table_bytes(s.kernel()));
    let exceeds = bytes > args.memory.max(table_bytes(before.kernel()));
    let misses = match args.objective {
        _ if !exceeds => 0.0,
        Objective::Operations => f64::INFINITY,
        Objective::OperationsAndMisses => OPERATIONS_PER_BYTE * bytes as f64,
    };
    (operations, bytes, operations as f64 + misses)
}

/// Bytes of the tables that some instruction reads.
fn table_bytes(kernel: &Kernel) -> u64 {
    let is_read = |id| kernel.insns.values().any(|insn| insn.loads(id));
    let tables = kernel.vars.iter().filter(|(id, v)| matches!(v.kind, VarKind::Table(_)) && is_read(*id));
    let entries = tables.map(|(_, v)| {
        let VarKind::Table(values) = &v.kind else { return 0 };
        values.len() as u64 * v.ty.bytes()
    });
    entries.sum()
}
