//! Schedules: steps that apply as they are asked for, return handles to what they made, and are
//! recorded.
//!
//! ```
//! use purlin_transforms::Schedule;
//! use purlin_ir::AxisTag;
//!
//! let kernel = purlin_ir::text::parse(
//!     "kernel scale\nparam n: i32\narg y: f64[n] inout\n\nfor i in 0..n\n  s: y[i] = 2.0*y[i]\n",
//! )?;
//! let mut s = Schedule::of(&kernel);
//! let [block, item] = s.split("i", 128)?;
//! s.tag(&block, AxisTag::Group(0))?;
//! s.tag(&item, AxisTag::Local(0))?;
//! assert_eq!(s.recipe().steps.len(), 3);
//! assert_eq!(s.recipe().apply(&kernel)?, *s.kernel());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A step that is refused leaves the schedule as it was. The text form of a schedule is that of
//! [`Script`].

mod made;
mod named;
mod script;

pub use made::{Array, Handles, Loop, Made, RuleHandle, Statement};
pub(crate) use script::{Arguments, fields_of, is_word};
pub use script::{Choice, Script, ScriptError, ScriptProblem, parse_file, print};

use crate::expected::Expected;
use crate::obligation::Obligation;
use crate::primitive::Primitive;
use crate::primitives::{
    DistributeLoop, ExpandArray, FuseLoops, InterchangeInames, PassValues, PrefetchArray, RealiseReduction,
    Rename, SplitIname, TagIname, UnrollIname, VectoriseIname,
};
use crate::recipe::{Lowering, Recipe};
use crate::refusal::{Refusal, TransformError};
use crate::step::Step;
use purlin_analysis::{Analysis, Known};
use purlin_ir::{AddressSpace, AxisTag, InameId, Kernel, Node};

/// Loops are reordered within a nest.
pub const NEST: Obligation = Obligation::new(
    "nest",
    "each of the loops is directly inside another one of them, but for the outermost",
);

/// A kernel under transformation, and the steps that led to it.
#[derive(Clone, Debug)]
pub struct Schedule {
    known: Known,
    recipe: Recipe,
}

impl PartialEq for Schedule {
    fn eq(&self, other: &Self) -> bool {
        let Self { known, recipe } = self;
        known.kernel() == other.known.kernel() && *recipe == other.recipe
    }
}

impl Eq for Schedule {}

type Applied<T> = Result<T, TransformError>;

impl Schedule {
    /// The schedule of a kernel to which nothing has been done.
    pub fn of(kernel: &Kernel) -> Self {
        Self { known: Known::of(kernel.clone()), recipe: Recipe::default() }
    }

    /// The kernel as it is now.
    pub fn kernel(&self) -> &Kernel {
        self.known.kernel()
    }

    /// What is known of the kernel as it is now.
    pub fn analysis(&self) -> Analysis<'_> {
        self.known.analysis()
    }

    /// The steps so far.
    pub fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    /// The kernel and the steps.
    pub fn finish(self) -> (Kernel, Recipe) {
        (self.known.into_kernel(), self.recipe)
    }

    /// Applies a step and records it; returns handles to what it made.
    ///
    /// # Errors
    /// The step as it was asked for and why it is refused; the schedule stays as it was.
    pub fn apply(&mut self, step: impl Into<Step>) -> Applied<Made> {
        let step = step.into();
        let (after, made) = step.apply_to(&self.analysis())?;
        let made = Made::of(&made, self.kernel(), after.kernel());
        self.known = after;
        self.recipe.steps.push(step);
        Ok(made)
    }

    /// Applies a primitive and records it; returns the handles of its type.
    ///
    /// ```
    /// use purlin_transforms::{Schedule, primitives::SplitIname};
    ///
    /// let kernel = purlin_ir::text::parse("kernel k\narg y: f64[64] inout\n\nfor i in 0..64\n  s: y[i] = 0.0\n")?;
    /// let mut s = Schedule::of(&kernel);
    /// let [block, item] = s.make(SplitIname { outer: Some("block".into()), ..SplitIname::new("i", 8) })?;
    /// assert_eq!([block.name(), item.name()], ["block", "i_i"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The step as it was asked for and why it is refused; the schedule stays as it was.
    pub fn make<P: Primitive>(&mut self, primitive: P) -> Applied<P::Made> {
        let (after, made) = primitive.apply_to(&self.analysis())?;
        self.known = after;
        self.recipe.steps.push(primitive.into());
        Ok(made)
    }

    /// Cuts what computes the temporaries `vars` off the kernel, from the inputs `from` alone: they become
    /// inputs. Returns the kernel that computes them, every loop in sequence; the two in turn do what the
    /// kernel did. Inputs that an earlier cut made may be among `from`, so that a kernel becomes a sequence
    /// of launches.
    ///
    /// ```
    /// use purlin_transforms::Schedule;
    ///
    /// let kernel = purlin_ir::text::parse(
    ///     "kernel k
    /// arg x: f64[8] in
    /// arg y: f64[8] out
    /// temp t: f64[8] private
    ///
    /// for i in 0..8
    ///   s: t[i] = 2.0*x[i]
    /// for j in 0..8
    ///   r: y[j] = t[7 - j]
    /// ",
    /// )?;
    /// let mut last = Schedule::of(&kernel);
    /// let first = Schedule::of(&last.cut_off(["t"], ["x"])?);
    /// assert!(first.kernel().to_string().contains("arg t: f64[8] out"));
    /// assert!(last.kernel().to_string().contains("arg t: f64[8] in"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`PassValues`]; the schedule stays as it was.
    pub fn cut_off<S: Into<String>, T: Into<String>>(
        &mut self,
        vars: impl IntoIterator<Item = S>,
        from: impl IntoIterator<Item = T>,
    ) -> Applied<Kernel> {
        let pass = PassValues::new(vars, from);
        let refused = |cause| TransformError { operation: pass.to_string(), cause };
        let definition = pass.defining_kernel(self.kernel()).map_err(refused)?;
        self.make(pass)?;
        Ok(definition)
    }

    /// [`Schedule::make`] where the step fits; `None`, and no step, where it does not or cannot be decided.
    ///
    /// ```
    /// use purlin_transforms::{Schedule, primitives::FuseLoops};
    ///
    /// let kernel = purlin_ir::text::parse("kernel k\narg y: f64[64] inout\n\nfor i in 0..64\n  s: y[i] = 0.0\nfor j in 0..8\n  r: y[j] = 1.0\n")?;
    /// let mut s = Schedule::of(&kernel);
    /// assert!(s.attempt(FuseLoops::new("i", "j"))?.is_none()); // not the same values
    /// assert!(s.attempt(FuseLoops::new("i", "k")).is_err()); // there is no loop `k`
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Unknown names, arguments that make no sense, a bug, a failure of isl: what no strategy may pass over.
    pub fn attempt<P: Primitive>(&mut self, primitive: P) -> Applied<Option<P::Made>> {
        match self.make(primitive) {
            Ok(made) => Ok(Some(made)),
            Err(error) if error.is_misfit() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// What exists because of the steps so far, as a strategy that composes them knows.
    ///
    /// # Errors
    /// [`Refusal::Internal`] with the kernel: a bug of the strategy.
    pub fn expected<T>(&self, found: Option<T>, what: &str) -> Applied<T> {
        found.expected(what, self.kernel()).map_err(|cause| {
            let operation = format!("compose step {}", self.recipe.steps.len() + 1);
            TransformError { operation, cause }
        })
    }

    /// Says what the form was lowered with that the kernel is of, if nothing was done to it.
    pub(crate) fn start_from(&mut self, lowering: &[Lowering]) {
        if self.recipe.steps.is_empty() && self.recipe.lowering.is_empty() {
            self.recipe.lowering = lowering.to_vec();
        }
    }

    /// Applies every step of a recipe and records it.
    ///
    /// # Errors
    /// The first step that is refused; those before it stay applied.
    pub fn replay(&mut self, recipe: &Recipe) -> Applied<()> {
        self.start_from(&recipe.lowering);
        recipe.steps.iter().try_for_each(|step| self.apply(step.clone()).map(|_| ()))
    }

    /// Splits a loop into blocks of `factor` iterations: the loop over blocks, and the loop inside
    /// a block.
    ///
    /// # Errors
    /// Those of [`SplitIname`].
    pub fn split(&mut self, iname: impl Into<String>, factor: i64) -> Applied<[Loop; 2]> {
        self.make(SplitIname::new(iname, factor))
    }

    /// Says where the iterations of a loop run; `unroll` and `vector` are checked as such.
    ///
    /// # Errors
    /// Those of [`TagIname`], [`UnrollIname`] and [`VectoriseIname`].
    pub fn tag(&mut self, iname: impl Into<String>, tag: AxisTag) -> Applied<()> {
        match tag {
            AxisTag::Unrolled => self.apply(UnrollIname::new(iname)),
            AxisTag::Vector => self.apply(VectoriseIname::new(iname)),
            AxisTag::Sequential | AxisTag::Rolled | AxisTag::Group(_) | AxisTag::Local(_) => {
                self.apply(TagIname::new(iname, tag))
            }
        }
        .map(|_| ())
    }

    /// Writes out the iterations of a loop.
    ///
    /// # Errors
    /// Those of [`UnrollIname`].
    pub fn unroll(&mut self, iname: impl Into<String>) -> Applied<()> {
        self.tag(iname, AxisTag::Unrolled)
    }

    /// Nests the loops of a perfect nest in this order, outer first, by interchanges of neighbours.
    ///
    /// # Errors
    /// A name that is no loop, loops that are not one directly inside another, and those of
    /// [`InterchangeInames`]. The schedule stays as it was.
    pub fn reorder<I: Into<String>>(&mut self, order: impl IntoIterator<Item = I>) -> Applied<()> {
        let order: Vec<String> = order.into_iter().map(Into::into).collect();
        let operation = format!("reorder {}", quoted(&order));
        let refused = |cause| TransformError { operation: operation.clone(), cause };
        let mut draft = self.clone();
        for k in 0..order.len() {
            loop {
                let nest = draft.nest(&order).map_err(refused)?;
                let at = nest.iter().position(|name| *name == order[k]).unwrap_or(k);
                if at <= k {
                    break;
                }
                draft.apply(InterchangeInames::new(&nest[at - 1], &nest[at]))?;
            }
        }
        *self = draft;
        Ok(())
    }

    /// The names of a nest in today's order, if each of the loops is directly inside another.
    fn nest(&self, names: &[String]) -> Result<Vec<String>, Refusal> {
        let wanted =
            names.iter().map(|n| crate::lookup::iname(self.kernel(), n)).collect::<Result<Vec<_>, _>>()?;
        let mut found: Vec<InameId> = Vec::new();
        let mut nodes = self.kernel().body.as_slice();
        while let Some((l, body)) = next_loop(nodes, &wanted, found.is_empty()) {
            found.push(l);
            nodes = body;
        }
        let all = wanted.iter().all(|l| found.contains(l)) && found.len() == wanted.len();
        let name = |l: &InameId| self.kernel().inames[*l].name.clone();
        match all {
            true => Ok(found.iter().map(name).collect()),
            false => Err(NEST.unfit(format!(
                "{} are not a nest of loops, one directly inside the other; name each loop of such a nest once",
                quoted(names)
            ))),
        }
    }

    /// Copies what an iteration of `at` reads of an array to a temporary.
    ///
    /// # Errors
    /// Those of [`PrefetchArray`].
    pub fn prefetch(
        &mut self,
        array: impl Into<String>,
        at: impl Into<String>,
        space: AddressSpace,
    ) -> Applied<Array> {
        Ok(self.make(PrefetchArray::new(array, at, space))?.temporary)
    }

    /// Turns the reduction over a loop into a loop that accumulates in a temporary.
    ///
    /// # Errors
    /// Those of [`RealiseReduction`].
    pub fn realise(&mut self, iname: impl Into<String>, accumulator: impl Into<String>) -> Applied<Array> {
        let accumulator = accumulator.into();
        self.apply(RealiseReduction::new(iname).into_temporary(&accumulator))?;
        Ok(Array::named(accumulator))
    }

    /// Gives a temporary an axis for each of some loops.
    ///
    /// # Errors
    /// Those of [`ExpandArray`].
    pub fn expand<I: Into<String>>(
        &mut self,
        array: impl Into<String>,
        loops: impl IntoIterator<Item = I>,
    ) -> Applied<()> {
        self.apply(ExpandArray::new(array, loops)).map(|_| ())
    }

    /// Distributes a loop over the parts of its body; a part begins before each of the named
    /// statements or loops.
    ///
    /// # Errors
    /// Those of [`DistributeLoop`].
    pub fn distribute<I: Into<String>>(
        &mut self,
        iname: impl Into<String>,
        before: impl IntoIterator<Item = I>,
    ) -> Applied<Vec<Loop>> {
        self.make(DistributeLoop::new(iname, before))
    }

    /// Fuses two neighbouring loops; the first one's name stays.
    ///
    /// # Errors
    /// Those of [`FuseLoops`].
    pub fn fuse(&mut self, first: impl Into<String>, second: impl Into<String>) -> Applied<Loop> {
        let first = first.into();
        self.apply(FuseLoops::new(&first, second))?;
        Ok(Loop::named(first))
    }

    /// Gives a loop another name.
    ///
    /// # Errors
    /// Those of [`Rename`].
    pub fn rename_loop(&mut self, iname: impl Into<String>, name: impl Into<String>) -> Applied<Loop> {
        let name = name.into();
        self.apply(Rename::iname(iname, &name))?;
        Ok(Loop::named(name))
    }
}

/// The loop in `nodes` that belongs to a nest; everywhere below while none has been found, else
/// directly inside.
fn next_loop<'k>(nodes: &'k [Node], wanted: &[InameId], first: bool) -> Option<(InameId, &'k [Node])> {
    let loops = nodes.iter().filter_map(|node| match node {
        Node::Loop(l, body) => Some((*l, body.as_slice())),
        Node::Insn(_) => None,
    });
    if first {
        return loops.into_iter().find_map(|(l, body)| {
            if wanted.contains(&l) { Some((l, body)) } else { next_loop(body, wanted, true) }
        });
    }
    match nodes {
        [Node::Loop(l, body)] if wanted.contains(l) => Some((*l, body)),
        _ => None,
    }
}

fn quoted(names: &[String]) -> String {
    names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(" ")
}
