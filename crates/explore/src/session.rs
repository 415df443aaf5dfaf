//! A kernel under transformation, as programs ask for it: steps that could be applied, what came of those
//! that were, refusals as data, and the way back.

use crate::data::{Array as ArrayState, Dependence, Refused, Statement as StatementState};
use crate::dependences::dependences;
use crate::refusal::refused;
use crate::statements::{arrays, statements};
use crate::text::Text;
use kingpost_ir::{Kernel, VarKind};
use kingpost_isl::IslError;
use kingpost_primitives::draw::Inputs;
use kingpost_primitives::refusal::{PLACEMENT, STORAGE};
use kingpost_primitives::schedule::{
    Applied, Array, Choice, Loop, RuleHandle, ScriptProblem, Statement, print,
};
use kingpost_primitives::{
    Made, PrimitiveInfo, Recipe, Reliance, Schedule, Script, ScriptError, Step, TransformError, steps,
};
use serde::Serialize;
use std::collections::BTreeMap;

/// A kernel and the steps that were applied to it, with the way back.
///
/// ```
/// use kingpost_explore::Session;
/// use kingpost_primitives::{schedule::Choice, steps};
///
/// let kernel = kingpost_ir::text::parse("kernel k\narg y: f64[64] inout\n\nfor i in 0..64\n  s: y[i] = 0.0\n")?;
/// let mut session = Session::of(&kernel);
/// let done = session.apply(&steps().script("split_iname(i, factor: 8)")?, &Choice::default())?;
/// assert_eq!(done[0].made.loops, ["i_o", "i_i"]);
/// let refused = session.apply(&steps().script("tag(i, g.0)")?, &Choice::default()).unwrap_err();
/// assert_eq!(refused.refused.map(|why| why.kind), Some("unknown"));
/// assert_eq!(session.undo(1)?, ["split_iname(i, factor: 8)"]);
/// assert_eq!(session.kernel(), &kernel);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Session {
    /// The schedule before any step, and after each call that applied some.
    schedules: Vec<Schedule>,
    now: Schedule,
}

/// What came of a line of a schedule, or of a step of a recipe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Done {
    /// The steps as the text of a schedule has them: one, or those of a combined step.
    pub steps: Vec<String>,
    /// The same in words.
    pub says: Vec<String>,
    /// What they made.
    pub made: Names,
    /// The conditions of their legality, each met: ids and words. [`kingpost_steps::Proved`] has what shows it.
    pub obligations: Vec<(&'static str, &'static str)>,
    /// What they keep of the results.
    pub keeps: Vec<String>,
    /// What they take for granted of declared operators, and how far that is proved.
    pub laws: Vec<String>,
}

/// Handles by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Names {
    /// Arrays and scalars.
    pub arrays: Vec<String>,
    /// Loops, outer first.
    pub loops: Vec<String>,
    /// Substitution rules.
    pub rules: Vec<String>,
    /// Instructions.
    pub insns: Vec<String>,
}

/// A step that would be accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Legal {
    /// As the text of a schedule has it.
    pub step: String,
    /// As JSON.
    pub json: Step,
    /// What it would make.
    pub made: Names,
}

/// The steps of a primitive that were tried on a kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Tried {
    /// The primitive.
    pub primitive: &'static str,
    /// Those that would be accepted.
    pub legal: Vec<Legal>,
    /// Those that are refused, and why.
    pub refused: Vec<(String, Refused)>,
    /// Whether all arguments were tried that the primitive draws; it may take others, too.
    pub complete: bool,
}

/// What a kernel is made of.
#[derive(Clone, Debug, Serialize)]
pub struct Parts {
    /// Its parameters.
    pub params: Vec<String>,
    /// Its other variables.
    pub arrays: BTreeMap<String, ArrayState>,
    /// Its statements in textual order, with the loops around them.
    pub insns: Vec<StatementState>,
}

/// Steps that were not applied; the session stays as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{message}")]
pub struct NotApplied {
    /// The step or the line of the schedule, from 1.
    pub line: usize,
    /// The step that was refused, where it has a form of its own.
    pub step: Option<String>,
    /// The refusal in words.
    pub message: String,
    /// The same as data; nothing where the line itself is wrong.
    pub refused: Option<Refused>,
    /// The kernel that the step met.
    pub kernel: String,
}

/// Fewer steps than are to be undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there are {there} calls to undo, not {asked}; each takes back all steps of one call")]
pub struct NothingToUndo {
    /// Calls that are asked for.
    pub asked: usize,
    /// Calls there are.
    pub there: usize,
}

impl Session {
    /// A kernel without a step.
    #[must_use]
    pub fn of(kernel: &Kernel) -> Self {
        Self { schedules: Vec::new(), now: Schedule::of(kernel) }
    }

    /// The kernel as it is now.
    pub fn kernel(&self) -> &Kernel {
        self.now.kernel()
    }

    /// The kernel before any step.
    pub fn written(&self) -> &Kernel {
        self.schedules.first().unwrap_or(&self.now).kernel()
    }

    /// The steps so far.
    pub fn recipe(&self) -> &Recipe {
        self.now.recipe()
    }

    /// Applies all steps of a script, or none.
    ///
    /// # Errors
    /// The line that is refused, with the refusal as data.
    pub fn apply(&mut self, script: &Script, choice: &Choice) -> Result<Vec<Done>, Box<NotApplied>> {
        let mut next = self.now.clone();
        let applied = script.extend(&mut next, choice).map_err(|e| Box::new(NotApplied::from(e)))?;
        Ok(self.commit(next, &applied))
    }

    /// Applies all steps of a recipe, or none.
    ///
    /// # Errors
    /// The step that is refused, with the refusal as data.
    pub fn replay(&mut self, recipe: &Recipe) -> Result<Vec<Done>, Box<NotApplied>> {
        let (mut next, mut applied) = (self.now.clone(), Vec::new());
        next.start_from(&recipe.lowering);
        for (number, step) in recipe.steps.iter().enumerate() {
            let (before, first) = (next.kernel().clone(), next.recipe().steps.len());
            match next.apply(step.clone()) {
                Ok(made) => applied.push(Applied { line: number + 1, before, first, made }),
                Err(error) => return Err(Box::new(NotApplied::of(number + 1, Some(step), &error, &before))),
            }
        }
        Ok(self.commit(next, &applied))
    }

    fn commit(&mut self, next: Schedule, applied: &[Applied]) -> Vec<Done> {
        let all = &next.recipe().steps;
        let ends = applied.iter().skip(1).map(|a| (a.first, &a.before)).chain([(all.len(), next.kernel())]);
        let done = applied.iter().zip(ends).map(|(a, (end, after))| done(a, &all[a.first..end], after));
        let done = done.collect();
        self.schedules.push(std::mem::replace(&mut self.now, next));
        done
    }

    /// Takes the steps of the last calls back, and says which these are.
    ///
    /// # Errors
    /// Fewer calls than that.
    pub fn undo(&mut self, calls: usize) -> Result<Vec<String>, NothingToUndo> {
        let there = self.schedules.len();
        let at = there.checked_sub(calls).ok_or(NothingToUndo { asked: calls, there })?;
        let Some(earlier) = self.schedules.drain(at..).next() else { return Ok(Vec::new()) };
        let undone = std::mem::replace(&mut self.now, earlier);
        Ok(texts(&undone.recipe().steps[self.now.recipe().steps.len()..]))
    }

    /// The arguments with which a primitive could be applied to the kernel as it is now, each tried.
    ///
    /// `limit` is the maximum number of combinations of arguments; `inputs` has what the kernel would be run
    /// with, for primitives that need a value.
    pub fn tried(&self, primitive: &PrimitiveInfo, inputs: &dyn Inputs, limit: usize) -> Tried {
        let (all, complete) = primitive.draw_all(self.kernel(), inputs, limit);
        let (mut legal, mut not) = (Vec::new(), Vec::new());
        let analysis = self.now.analysis();
        for step in all {
            match step.apply_to(&analysis) {
                Ok((after, made)) => {
                    let made = Names::of(&Made::of(&made, self.kernel(), after.kernel()));
                    legal.push(Legal { step: text(&step), json: step, made });
                }
                Err(error) => not.push((text(&step), refused(&error))),
            }
        }
        Tried { primitive: primitive.name, legal, refused: not, complete }
    }

    /// What the kernel is made of as it is now.
    pub fn parts(&self) -> Parts {
        let kernel = self.kernel();
        let params = kernel.vars.values().filter(|var| var.kind == VarKind::Param);
        Parts {
            params: params.map(|var| var.name.clone()).collect(),
            arrays: arrays(kernel),
            insns: statements(&self.now.analysis(), &Text::of(kernel)),
        }
    }

    /// The dependences of the kernel as it is now.
    ///
    /// # Errors
    /// A failure of isl.
    pub fn dependences(&self) -> Result<Vec<Dependence>, IslError> {
        dependences(&self.now.analysis())
    }
}

fn done(applied: &Applied, steps_of: &[Step], after: &Kernel) -> Done {
    let rows = steps_of.iter().filter_map(|step| steps().row(step.name()));
    let mut obligations: Vec<_> = rows.flat_map(|row| row.obligations).chain(&[PLACEMENT, STORAGE]).collect();
    obligations.sort_unstable();
    obligations.dedup();
    let reliances = steps_of.iter().flat_map(|step| step.relies_on(&applied.before, after));
    Done {
        steps: texts(steps_of),
        says: steps_of.iter().map(ToString::to_string).collect(),
        made: Names::of(&applied.made),
        obligations: obligations.into_iter().map(|o| (o.id(), o.says())).collect(),
        keeps: steps_of.iter().map(|step| step.keeps().to_string()).collect(),
        laws: reliances.map(|laws: Reliance| laws.to_string()).collect(),
    }
}

fn text(step: &Step) -> String {
    print(&Recipe::new([step.clone()])).trim_end().to_owned()
}

fn texts(steps: &[Step]) -> Vec<String> {
    steps.iter().map(text).collect()
}

impl Names {
    fn of(made: &Made) -> Self {
        let Made { arrays, loops, rules, insns } = made;
        let owned = |name: &str| name.to_owned();
        Self {
            arrays: arrays.iter().map(Array::name).map(owned).collect(),
            loops: loops.iter().map(Loop::name).map(owned).collect(),
            rules: rules.iter().map(RuleHandle::name).map(owned).collect(),
            insns: insns.iter().map(Statement::name).map(owned).collect(),
        }
    }
}

impl NotApplied {
    fn of(line: usize, step: Option<&Step>, error: &TransformError, kernel: &Kernel) -> Self {
        let (step, message) = (step.map(text), error.to_string());
        Self { line, step, message, refused: Some(refused(error)), kernel: kernel.to_string() }
    }
}

impl From<ScriptError> for NotApplied {
    fn from(error: ScriptError) -> Self {
        match &error.problem {
            ScriptProblem::Refused(cause) => {
                // the step is the last one of the recipe if it has a form of its own
                let step = error.recipe.steps.last().filter(|step| step.to_string() == cause.operation);
                Self::of(error.line, step, cause, &error.kernel)
            }
            ScriptProblem::Hole { .. } | ScriptProblem::Choice { .. } | ScriptProblem::Handles { .. } => {
                Self {
                    line: error.line,
                    step: None,
                    message: error.problem.to_string(),
                    refused: None,
                    kernel: error.kernel.to_string(),
                }
            }
        }
    }
}
