//! Runs the iterations of a loop in the order of a partition, by inputs whose rows are in that order.

use super::list_elements::size;
use super::pass_blocks::pattern;
use kingpost_analysis::Analysis;
use kingpost_ir::{
    Access, Affine, Assumption, Direction, Expr, InameId, Insn, Kernel, VarId, VarKind, Variable,
};
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::keeps::Keeps;
use kingpost_steps::lists::{Definition, RowOrder};
use kingpost_steps::lookup;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::ORDER;
use kingpost_steps::proofs::any_order::{Together, check_any_order};
use kingpost_steps::proofs::bounds::{CONSTANT_BOUNDS, check_constant_value};
use kingpost_steps::refusal::Refusal;
use kingpost_steps::run::NOT_CALLED;
use kingpost_steps::schedule::Array;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// Runs the iterations of `iname` in an order in which blocks of `block` of them are compact: the
/// inputs whose rows an iteration names are passed with their rows in that order.
///
/// # Rewrite
/// ```text
/// for c in 0..n                          =>  for c in 0..n
///   s: y[map[c, 0]] += w[c]*u[map[c, 1]]       s: y[map_rows[c, 0]] += w_rows[c]*u[map_rows[c, 1]]
/// ```
/// An iteration has the place of the mean of the points to which its row of `map` leads. The set of
/// all is cut in two across its longest side, at a multiple of the block, and so on. The order is
/// found before the launch, once for all launches with the same map ([`ReorderRows::order`]), and
/// iterations of a block keep theirs. Lists of a map ([`ListElements`](super::ListElements)) then are
/// short.
///
/// With `places`, blocks are rows that repeat the numbers of `map` in one pattern, as the cells of a
/// cube do: [`PassBlocks`](super::PassBlocks) has such blocks. Each begins with the first row that is
/// left, and goes on with the first ones that fit; a map without them is refused before the launch.
///
/// # Precondition
/// The loop is `0..n`, inside nothing that changes `n`, and `n` is the length of the map and of the
/// inputs that it reads by its iteration. Nothing else depends on its iteration: it occurs as the
/// first index of inputs alone, neither in other expressions nor in bounds. So an iteration
/// computes what its rows say, wherever they lie. The loop carries no dependence, as for
/// [`ReverseIname`](super::ReverseIname), so that iterations may run in any order. Updates that
/// commute may be reordered. Places are those of `block` rows of all columns of the map, and each row but
/// the first shares one with those before it.
///
/// # Errors
/// Unknown names, names that are taken, places of other blocks or columns, a `map` or `points` that is
/// no input, another mention of the iteration with its instruction, a dependence that the loop carries,
/// with two instances.
///
/// # Elsewhere
/// OP2 renumbers sets by a partition; recursive coordinate bisection (Berger & Bokhari 1987).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReorderRows {
    /// The loop.
    pub iname: String,
    /// The input of integers whose row leads to the points of an iteration.
    pub map: String,
    /// The input of coordinates, a point a row.
    pub points: String,
    /// Iterations that should be close to each other.
    pub block: i64,
    /// The place of each entry of a block of the map among its numbers, row by row, if all blocks are to
    /// have these; none if they are to be compact.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<Vec<u32>>,
}

impl ReorderRows {
    /// Reorders `iname` in compact blocks of `block`, by the `points` of the rows of `map`.
    pub fn new(
        iname: impl Into<String>,
        map: impl Into<String>,
        points: impl Into<String>,
        block: i64,
    ) -> Self {
        Self { iname: iname.into(), map: map.into(), points: points.into(), block, places: Vec::new() }
    }

    /// The same in blocks whose rows of the map have these places.
    #[must_use]
    pub fn in_pattern(mut self, places: Vec<Vec<u32>>) -> Self {
        self.places = places;
        self
    }

    /// The order, and the inputs that are passed in it.
    ///
    /// # Errors
    /// As the step.
    pub fn order(&self, kernel: &Kernel) -> Result<RowOrder, Refusal> {
        let proof = self.check(&Analysis::of(kernel))?;
        let columns = |name: &str| {
            let shape = &kernel.vars[lookup::var(kernel, name)?].shape;
            let columns: i64 = shape.iter().skip(1).filter_map(Affine::as_constant).product();
            size(columns, kernel)
        };
        let copies = proof.inputs.iter().map(|v| {
            let name = kernel.vars[*v].name.clone();
            (name.clone(), copy_name(&name))
        });
        let places = Some(&self.places).filter(|places| !places.is_empty());
        Ok(RowOrder {
            map: self.map.clone(),
            pattern: places.map(|places| pattern(places)).transpose()?,
            columns: columns(&self.map)?,
            points: self.points.clone(),
            dimension: columns(&self.points)?,
            block: size(self.block, kernel)?,
            copies: copies.collect(),
        })
    }
}

impl fmt::Display for ReorderRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { iname, map, points, block, places } = self;
        match places.is_empty() {
            true => write!(f, "reorder `{iname}` in compact blocks of {block} by the `{points}` of `{map}`"),
            false => write!(f, "reorder `{iname}` in blocks of {block} rows of `{map}` in one pattern"),
        }
    }
}

/// Rows are those of all iterations.
const ALL_ROWS: Obligation = Obligation::new(
    "reorder_rows.all_rows",
    "the loop is `0..n`, and the map and inputs that it indexes have `n` rows",
);

/// What an iteration computes depends on its rows alone.
const ROWS_ALONE: Obligation = Obligation::new(
    "reorder_rows.rows_alone",
    "the iteration occurs as the first index of inputs alone, which nothing writes",
);

/// What the order is made of is there before.
const KNOWN: Obligation = Obligation::new(
    "reorder_rows.known",
    "the map is an input of integers and the points are an input of reals, with constant rows",
);

/// A loop whose iterations know their rows alone.
pub struct Reordered {
    iname: InameId,
    /// The inputs that it indexes, in the order of the kernel.
    inputs: BTreeSet<VarId>,
}

impl Primitive for ReorderRows {
    const NAME: &'static str = "reorder_rows";
    const SUMMARY: &'static str =
        "Runs iterations in compact blocks, by inputs with their rows in that order.";

    type Proof = Reordered;
    type Made = Vec<Array>;

    const OBLIGATIONS: &'static [Obligation] =
        &[ALL_ROWS, ROWS_ALONE, KNOWN, NOT_CALLED, CONSTANT_BOUNDS, ORDER];
    const KEEPS: Keeps = Keeps::REASSOCIATED;
    const DEFINES: bool = true;

    fn check(&self, analysis: &Analysis) -> Result<Reordered, Refusal> {
        let kernel = analysis.kernel();
        let iname = lookup::iname(kernel, &self.iname)?;
        if self.block < 1 {
            return Err(Refusal::argument("block", format!("{}", self.block), "at least 1"));
        }
        self.check_known(kernel)?;
        self.check_places(kernel)?;
        let inputs = self.inputs(kernel, iname)?;
        let range = kernel.inames[iname].domain.as_guarded_range(iname);
        let n = range.filter(|r| r.lo == Affine::constant(0) && r.guard.is_empty()).map(|r| r.hi);
        let map = lookup::var(kernel, &self.map)?;
        let other = inputs.iter().chain([&map]).find(|v| Some(&kernel.vars[**v].shape[0]) != n.as_ref());
        ALL_ROWS.require(other.is_none(), || {
            let [name, rows] = other.map_or_else(Default::default, |v| {
                let var = &kernel.vars[*v];
                [var.name.clone(), kernel.show_affine(&var.shape[0]).to_string()]
            });
            format!(
                "`{}` does not take all {rows} rows of `{name}`; reorder a loop `0..n`, by a map and over inputs with \
                 `n` rows",
                kernel.show_domain(iname, &kernel.inames[iname].domain)
            )
        })?;
        for var in &inputs {
            lookup::free(kernel, &copy_name(&kernel.vars[*var].name))?;
        }
        let last = n.unwrap_or_else(|| Affine::constant(0)).plus_constant(-1);
        let backward = last.minus(&Affine::iname(iname));
        check_constant_value(kernel, iname, &backward)?;
        check_any_order(analysis, iname, &backward, Together::Iteration, &|source, sink| {
            format!("distribute `{source}` and `{sink}` first, or keep `{}` in this order", self.iname)
        })?;
        Ok(Reordered { iname, inputs })
    }

    fn edit(&self, kernel: &mut Kernel, proof: &Reordered) -> Vec<Array> {
        let mut copies = Vec::new();
        for var in &proof.inputs {
            let original = kernel.vars[*var].clone();
            let copy = kernel.vars.push(Variable { name: copy_name(&original.name), ..original });
            if kernel.assumptions.contains(&Assumption::Injective(*var)) {
                kernel.assumptions.push(Assumption::Injective(copy));
            }
            copies.push((*var, copy));
        }
        let moved = |access: &Access| {
            let by_iteration = access.index.first() == Some(&Expr::Iname(proof.iname));
            let copy = copies.iter().find(|(var, _)| by_iteration && *var == access.var);
            copy.map(|(_, copy)| Access::new(*copy, access.index.clone()))
        };
        for insn in kernel.insns.values_mut() {
            insn.map_expressions(&mut |e| match e {
                Expr::Load(access) => Expr::Load(moved(&access).unwrap_or(access)),
                other => other,
            });
        }
        copies.into_iter().map(|(_, copy)| Array::named(&kernel.vars[copy].name)).collect()
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let input = |v: &Variable| v.kind == VarKind::Argument(Direction::In) && !v.shape.is_empty();
        let map = p.of(&draw::vars(kernel, |v| input(v) && v.ty.is_exact()))?;
        let points = p.of(&draw::vars(kernel, |v| input(v) && v.ty.is_real()))?;
        let block = p.between(1, 4);
        let all = draw::loops(kernel).into_iter().map(|l| Self::new(l, &map, &points, block));
        draw::possible(kernel, all.collect(), p)
    }

    fn definition(&self, kernel: &Kernel) -> Result<Option<Definition>, Refusal> {
        self.order(kernel).map(|order| Some(Definition::Rows(order)))
    }
}

fn copy_name(name: &str) -> String {
    format!("{name}_rows")
}

impl ReorderRows {
    fn check_known(&self, kernel: &Kernel) -> Result<(), Refusal> {
        for (name, real) in [(&self.map, false), (&self.points, true)] {
            let data = &kernel.vars[lookup::var(kernel, name)?];
            let constant = data.shape.iter().skip(1).all(|e| e.as_constant().is_some_and(|e| e >= 1));
            let input = data.kind == VarKind::Argument(Direction::In) && !data.shape.is_empty();
            KNOWN.require(input && constant && data.ty.is_real() == real, || {
                let what = if real { "reals" } else { "integers" };
                format!("`{name}` is no input of {what} with rows of constant length; name one that is")
            })?;
        }
        Ok(())
    }

    /// Places are those of blocks of the map, whose rows are found by what they share.
    fn check_places(&self, kernel: &Kernel) -> Result<(), Refusal> {
        if self.places.is_empty() {
            return Ok(());
        }
        let pattern = pattern(&self.places)?;
        let columns = match &kernel.vars[lookup::var(kernel, &self.map)?].shape[..] {
            [_, columns] => columns.as_constant(),
            _ => None,
        };
        let of_map = columns == Some(pattern.columns() as i64) && self.block == pattern.rows().len() as i64;
        if of_map && pattern.is_connected() {
            return Ok(());
        }
        let found = format!("{} rows of {} columns", pattern.rows().len(), pattern.columns());
        let needed = format!(
            "{} rows of all columns of `{}`, each with a place of those before it",
            self.block, self.map
        );
        Err(Refusal::argument("places", found, &needed))
    }

    /// The inputs that are indexed by the loop.
    fn inputs(&self, kernel: &Kernel, iname: InameId) -> Result<BTreeSet<VarId>, Refusal> {
        let mut found = BTreeSet::new();
        for insn in kernel.insns.values() {
            let (mentions, rows) = self.mentions(kernel, insn, iname, &mut found);
            ROWS_ALONE.require(mentions == rows, || {
                format!(
                    "`{}` depends on `{}` otherwise than by rows of inputs; expand temporaries and compute with \
                     the iteration after this step, or pass an input that holds it",
                    insn.name, self.iname
                )
            })?;
            NOT_CALLED.require(mentions == 0 || insn.callee.is_none(), || {
                format!("`{}` belongs to a call; inline the call first", insn.name)
            })?;
        }
        let bound = kernel.inames.iter().find(|(id, i)| *id != iname && i.domain.mentions(iname));
        ROWS_ALONE.forbid(bound, |(_, inner)| {
            format!("the bounds of `{}` depend on `{}`; read them from an input", inner.name, self.iname)
        })?;
        Ok(found)
    }

    /// How often an instruction mentions the loop, and how often as a row of an input.
    fn mentions(
        &self,
        kernel: &Kernel,
        insn: &Insn,
        iname: InameId,
        found: &mut BTreeSet<VarId>,
    ) -> (usize, usize) {
        let (mut mentions, mut rows) = (0, 0);
        for e in insn.expressions() {
            e.for_each(&mut |e| {
                if *e == Expr::Iname(iname) {
                    mentions += 1;
                }
                if let Expr::Load(access) = e
                    && access.index.first() == Some(&Expr::Iname(iname))
                    && kernel.vars[access.var].kind == VarKind::Argument(Direction::In)
                {
                    found.insert(access.var);
                    rows += 1;
                }
            });
        }
        (mentions, rows)
    }
}
