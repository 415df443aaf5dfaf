//! What a sample is made from: picks, taken modulo the number of choices where they are used.
//!
//! Any plan makes a valid kernel, so that shrinking never leaves the valid ones.

use super::SampleConfig;
use proptest::collection::vec;
use proptest::prelude::*;

/// A kernel.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Value of the parameter `n`, at least 1.
    pub n: i64,
    /// Value of the parameter `m`, at least 1.
    pub m: i64,
    /// Where the values of arrays come from.
    pub seed: u64,
    /// Nests in order.
    pub nests: Vec<NestPlan>,
    /// Nests of a known form, after the others.
    pub idioms: Vec<IdiomPlan>,
    /// Whether an `out` argument is written at the end.
    pub output: bool,
    /// Picks the launches that the parts are in, where there are to be any; 0 leaves one.
    pub launches: u8,
    /// Picks other names for the parts of the kernel; 0 leaves them as they are.
    pub names: u64,
}

/// Nests of a known form: a sum in a scalar, values handed over in an array or in the columns of
/// one, a recurrence, a sum over earlier iterations, a sum of products, a scalar that is shared.
#[derive(Clone, Debug)]
pub struct IdiomPlan {
    /// Picks the form.
    pub kind: u8,
    /// The outer loop.
    pub outer: RangePlan,
    /// The loop inside.
    pub inner: RangePlan,
    /// Picks the array it writes.
    pub target: u8,
    /// Picks the index along each axis.
    pub index: [u8; 2],
    /// Picks `+`, `max`, `min`, `*`.
    pub op: u8,
    /// What is summed or handed over.
    pub value: ExprPlan,
}

/// A nest of loops with statements at any depth.
#[derive(Clone, Debug)]
pub struct NestPlan {
    /// Loops, outer first; those without a statement inside are left out.
    pub loops: Vec<RangePlan>,
    /// Statements in order.
    pub statements: Vec<StatementPlan>,
}

/// A loop or the loop of a reduction.
#[derive(Clone, Copy, Debug)]
pub struct RangePlan {
    /// Picks `n`, `m` or a constant.
    pub extent: u8,
    /// Picks the shape: the whole range first.
    pub shape: u8,
    /// Picks a condition on a loop around or on parameters, and whether a loop of constant length
    /// is unrolled: neither first.
    pub condition: u8,
}

/// A statement.
#[derive(Clone, Debug)]
pub struct StatementPlan {
    /// Picks how many loops are around it.
    pub depth: u8,
    /// Whether it stands after the deeper loops.
    pub after: bool,
    /// Picks the array it writes.
    pub target: u8,
    /// Picks the index along each axis.
    pub index: [u8; 2],
    /// Picks `=`, `+=`, `*=`, `min=`, `max=`.
    pub op: u8,
    /// The value.
    pub value: ExprPlan,
    /// Picks a condition, if there is one.
    pub predicate: Option<u8>,
    /// Whether the value passes through a scalar temporary.
    pub staged: bool,
}

/// A right-hand side: a real, or an integer where one is needed.
#[derive(Clone, Debug)]
pub enum ExprPlan {
    /// Picks a number between -1 and 1.
    Literal(u8),
    /// Picks an array and its indices.
    Load(u8, [u8; 2]),
    /// Picks a loop, whose value is cast.
    Loop(u8),
    /// The negative.
    Negate(Box<ExprPlan>),
    /// Picks `+`, `-`, `*`, `min`, `max`.
    Binary(u8, Box<ExprPlan>, Box<ExprPlan>),
    /// Picks a bounded function.
    Call(u8, Box<ExprPlan>),
    /// Picks a condition; then the two values.
    Choose(u8, Box<ExprPlan>, Box<ExprPlan>),
    /// Picks the operator; then a loop and the body.
    Reduce(u8, RangePlan, Box<ExprPlan>),
    /// Picks arithmetic of literals, perhaps over a loop.
    Literals(u8, RangePlan),
    /// What the plan is for integers, as a real.
    Integer(Box<ExprPlan>),
    /// The value rounded to `f32`.
    Single(Box<ExprPlan>),
}

/// Random plans.
pub fn arbitrary_plan(config: SampleConfig) -> impl Strategy<Value = Plan> {
    let most = 1..=config.extent.max(1);
    let nests = (1..=config.nests.max(1)).prop_flat_map(move |nests| {
        let statements = (config.statements / nests).max(1);
        vec(nest(config, statements), nests)
    });
    let idioms = vec(idiom(config), 0..=config.idioms);
    let names = prop_oneof![3 => Just(0), 1 => any::<u64>()];
    let launches = if config.launches { any::<u8>().boxed() } else { Just(0).boxed() };
    let whole = (any::<bool>(), launches, names);
    (most.clone(), most, any::<u64>(), nests, idioms, whole).prop_map(
        |(n, m, seed, nests, idioms, (output, launches, names))| Plan {
            n,
            m,
            seed,
            nests,
            idioms,
            output,
            launches,
            names,
        },
    )
}

fn idiom(config: SampleConfig) -> impl Strategy<Value = IdiomPlan> {
    let target = (any::<u8>(), any::<[u8; 2]>());
    (any::<u8>(), range(), range(), target, any::<u8>(), expression(config)).prop_map(
        |(kind, outer, inner, (target, index), op, value)| IdiomPlan {
            kind,
            outer,
            inner,
            target,
            index,
            op,
            value,
        },
    )
}

fn nest(config: SampleConfig, statements: usize) -> impl Strategy<Value = NestPlan> {
    let loops = vec(range(), 1..=config.depth.max(1));
    let statements = vec(statement(config), 1..=statements);
    (loops, statements).prop_map(|(loops, statements)| NestPlan { loops, statements })
}

fn range() -> impl Strategy<Value = RangePlan> {
    any::<[u8; 3]>().prop_map(|[extent, shape, condition]| RangePlan { extent, shape, condition })
}

fn statement(config: SampleConfig) -> impl Strategy<Value = StatementPlan> {
    let predicate =
        if config.predicates { proptest::option::of(any::<u8>()).boxed() } else { Just(None).boxed() };
    let place = (any::<u8>(), any::<bool>(), any::<u8>(), any::<[u8; 2]>());
    (place, any::<u8>(), expression(config), predicate, any::<bool>()).prop_map(
        |((depth, after, target, index), op, value, predicate, staged)| StatementPlan {
            depth,
            after,
            target,
            index,
            op,
            value,
            predicate,
            staged,
        },
    )
}

fn expression(config: SampleConfig) -> impl Strategy<Value = ExprPlan> {
    let leaf = prop_oneof![
        1 => any::<u8>().prop_map(ExprPlan::Literal),
        4 => (any::<u8>(), any::<[u8; 2]>()).prop_map(|(array, index)| ExprPlan::Load(array, index)),
        1 => any::<u8>().prop_map(ExprPlan::Loop),
        1 => (any::<u8>(), range()).prop_map(|(k, range)| ExprPlan::Literals(k, range)),
    ];
    leaf.prop_recursive(3, 10, 2, move |inner| {
        let one = inner.clone().prop_map(Box::new);
        let two = (one.clone(), one.clone());
        let reductions = u32::from(config.reductions);
        let body = if config.reductions {
            one.clone().boxed()
        } else {
            Just(Box::new(ExprPlan::Literal(0))).boxed()
        };
        prop_oneof![
            6 => (any::<u8>(), two.clone()).prop_map(|(op, (a, b))| ExprPlan::Binary(op, a, b)),
            1 => one.clone().prop_map(ExprPlan::Negate),
            1 => one.clone().prop_map(ExprPlan::Integer),
            1 => one.clone().prop_map(ExprPlan::Single),
            2 => (any::<u8>(), one).prop_map(|(f, a)| ExprPlan::Call(f, a)),
            1 => (any::<u8>(), two).prop_map(|(c, (a, b))| ExprPlan::Choose(c, a, b)),
            3 * reductions + 1 => (any::<u8>(), range(), body).prop_map(move |(op, range, body)| {
                if config.reductions { ExprPlan::Reduce(op, range, body) } else { ExprPlan::Negate(body) }
            }),
        ]
    })
}
