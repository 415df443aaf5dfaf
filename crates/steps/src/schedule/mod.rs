//! Schedules: steps that apply as they are asked for, return handles to what they made, and are
//! recorded.
//!
//! ```
//! use kingpost_steps::Schedule;
//! use kingpost_transforms::primitives::{SplitIname, Tag};
//! use kingpost_ir::AxisTag;
//!
//! let kernel = kingpost_ir::text::parse(
//!     "kernel scale\nparam n: i32\narg y: f64[n] inout\n\nfor i in 0..n\n  s: y[i] = 2.0*y[i]\n",
//! )?;
//! let mut s = Schedule::of(&kernel);
//! let [block, item] = s.make(SplitIname::new("i", 128))?;
//! s.apply(Tag::new(&block, AxisTag::Group(0)))?;
//! s.apply(Tag::new(&item, AxisTag::Local(0)))?;
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
pub use script::{Applied, AppliedStep, Choice, Script, ScriptError, ScriptProblem, heading, print};
pub use script::{Arguments, fields_of, is_word};

use crate::expected::Expected;
use crate::primitive::{Primitive, kept_unplaced, placed_in_the_end};
use crate::recipe::{Lowering, Recipe};
use crate::refusal::TransformError;
use crate::step::Step;
use kingpost_analysis::{Analysis, Known};
use kingpost_ir::Kernel;

/// A kernel under transformation, and the steps that led to it.
#[derive(Clone, Debug)]
pub struct Schedule {
    known: Known,
    recipe: Recipe,
    /// Whether [`Schedule::together`] checks the placement after the steps that are made now.
    placed_later: bool,
}

impl PartialEq for Schedule {
    fn eq(&self, other: &Self) -> bool {
        let Self { known, recipe, placed_later: _ } = self;
        known.kernel() == other.known.kernel() && *recipe == other.recipe
    }
}

impl Eq for Schedule {}

type Outcome<T> = Result<T, TransformError>;

impl Schedule {
    /// The schedule of a kernel to which nothing has been done.
    pub fn of(kernel: &Kernel) -> Self {
        Self { known: Known::of(kernel.clone()), recipe: Recipe::default(), placed_later: false }
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
    pub fn apply(&mut self, step: impl Into<Step>) -> Outcome<Made> {
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
    /// use kingpost_steps::Schedule;
    /// use kingpost_transforms::primitives::SplitIname;
    ///
    /// let kernel = kingpost_ir::text::parse("kernel k\narg y: f64[64] inout\n\nfor i in 0..64\n  s: y[i] = 0.0\n")?;
    /// let mut s = Schedule::of(&kernel);
    /// let [block, item] = s.make(SplitIname { outer: Some("block".into()), ..SplitIname::new("i", 8) })?;
    /// assert_eq!([block.name(), item.name()], ["block", "i_i"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The step as it was asked for and why it is refused; the schedule stays as it was.
    pub fn make<P: Primitive>(&mut self, primitive: P) -> Outcome<P::Made> {
        let (after, made) = match self.placed_later {
            true => primitive.apply_keeping(&self.analysis(), kept_unplaced),
            false => primitive.apply_to(&self.analysis()),
        }?;
        self.known = after;
        self.recipe.steps.push(primitive.into());
        Ok(made)
    }

    /// Makes steps, by [`Schedule::make`], whose placement is checked once, after the last of them:
    /// of many statements on the axes of a launch each check takes long.
    ///
    /// # Errors
    /// The first step that is refused, or the last one if the placement breaks a dependence then;
    /// the schedule stays as it was.
    pub fn together<T>(&mut self, steps: impl FnOnce(&mut Self) -> Outcome<T>) -> Outcome<T> {
        let mut draft = Self { placed_later: true, ..self.clone() };
        let made = steps(&mut draft)?;
        draft.placed_later = self.placed_later;
        if !draft.placed_later
            && let Some(last) = draft.recipe.steps.last()
        {
            let refused = |cause| TransformError { operation: last.to_string(), cause };
            placed_in_the_end(&draft.analysis()).map_err(refused)?;
        }
        *self = draft;
        Ok(made)
    }

    /// [`Schedule::make`] where the step fits; `None`, and no step, where it does not or cannot be
    /// decided.
    ///
    /// ```
    /// use kingpost_steps::Schedule;
    /// use kingpost_transforms::primitives::FuseLoops;
    ///
    /// let kernel = kingpost_ir::text::parse("kernel k\narg y: f64[64] inout\n\nfor i in 0..64\n  s: y[i] = 0.0\nfor j in 0..8\n  r: y[j] = 1.0\n")?;
    /// let mut s = Schedule::of(&kernel);
    /// assert!(s.attempt(FuseLoops::new("i", "j"))?.is_none()); // not the same values
    /// assert!(s.attempt(FuseLoops::new("i", "k")).is_err()); // there is no loop `k`
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Unknown names, arguments that make no sense, a bug, a failure of isl: what no strategy may
    /// pass over.
    pub fn attempt<P: Primitive>(&mut self, primitive: P) -> Outcome<Option<P::Made>> {
        match self.make(primitive) {
            Ok(made) => Ok(Some(made)),
            Err(error) if error.is_misfit() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// What exists because of the steps so far, as a strategy that composes them knows.
    ///
    /// # Errors
    /// [`Refusal::Internal`](crate::Refusal::Internal) with the kernel: a bug of the strategy.
    pub fn expected<T>(&self, found: Option<T>, what: &str) -> Outcome<T> {
        found.expected(what, self.kernel()).map_err(|cause| {
            let operation = format!("compose step {}", self.recipe.steps.len() + 1);
            TransformError { operation, cause }
        })
    }

    /// Says what the form was lowered with that the kernel is of, if nothing was done to it.
    pub fn start_from(&mut self, lowering: &[Lowering]) {
        if self.recipe.steps.is_empty() && self.recipe.lowering.is_empty() {
            self.recipe.lowering = lowering.to_vec();
        }
    }

    /// Applies every step of a recipe and records it.
    ///
    /// # Errors
    /// The first step that is refused; those before it stay applied.
    pub fn replay(&mut self, recipe: &Recipe) -> Outcome<()> {
        self.start_from(&recipe.lowering);
        recipe.steps.iter().try_for_each(|step| self.apply(step.clone()).map(|_| ()))
    }
}
