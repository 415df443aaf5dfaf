//! What strategies work on.

use super::error::{MappingError, Stopped};
use super::mapping::Mapping;
use super::relowering::Relowering;
use kingpost_forms::CellKernel;
use kingpost_forms::lowering::Orbits;
use kingpost_ir::Kernel;
use kingpost_primitives::{Lowering, Recipe, Schedule};
use std::ops::Deref;
use std::rc::Rc;

/// A form or a kernel that is mapped: who reads its roles keeps it while steps change the schedule.
#[derive(Clone)]
pub enum MappedKernel<'f> {
    /// As it was given.
    Given(&'f dyn CellKernel),
    /// The form, lowered again.
    Lowered(Rc<dyn CellKernel + Send + Sync>),
    /// What steps made, whose tags say its roles.
    Made(Rc<Kernel>),
}

impl<'f> Deref for MappedKernel<'f> {
    type Target = dyn CellKernel + 'f;

    fn deref(&self) -> &(dyn CellKernel + 'f) {
        match self {
            Self::Given(form) => *form,
            Self::Lowered(form) => &**form,
            Self::Made(kernel) => &**kernel,
        }
    }
}

/// A form under transformation: what its parts are, and the schedule that strategies apply steps to.
pub struct Work<'f> {
    form: MappedKernel<'f>,
    schedule: Schedule,
    /// What the form was lowered with.
    lowering: Vec<Lowering>,
}

impl<'f> Work<'f> {
    fn of(form: &'f dyn CellKernel) -> Self {
        let schedule = Schedule::of(form.kernel());
        Self { form: MappedKernel::Given(form), schedule, lowering: Vec::new() }
    }

    /// The form, with the roles of its parts.
    #[must_use]
    pub fn form(&self) -> MappedKernel<'f> {
        self.form.clone()
    }

    /// The schedule, to which steps are applied.
    pub const fn schedule(&mut self) -> &mut Schedule {
        &mut self.schedule
    }

    /// Applies another mapping to the kernel that the steps so far made: of what comes after steps there
    /// is no form, but its tags say what its parts are.
    ///
    /// # Errors
    /// As the mapping; one that lowers the form again is refused.
    pub fn go_on(&mut self, then: &Mapping) -> Result<(), Stopped> {
        self.form = MappedKernel::Made(Rc::new(self.schedule.kernel().clone()));
        then.apply_to(self)
    }

    /// Applies another mapping to the form as it is.
    ///
    /// # Errors
    /// As the mapping.
    pub fn hand_on(&mut self, then: &Mapping) -> Result<(), Stopped> {
        then.apply_to(self)
    }

    /// Lowers the form again, before any step; returns the orbits of the nodes of its elements where
    /// derivatives are along symmetric directions.
    ///
    /// # Errors
    /// A kernel without a form, a form that cannot be lowered so.
    pub fn lower(&mut self, how: Relowering) -> Result<Vec<Orbits>, Stopped> {
        let (form, orbits) = how.lower(&*self.form)?;
        self.schedule = Schedule::of(form.kernel());
        self.form = MappedKernel::Lowered(Rc::from(form));
        self.lowering.push(how.words());
        Ok(orbits)
    }
}

/// Applies a mapping to a form; the recipe says what the form was lowered with.
pub(super) fn apply(mapping: &Mapping, form: &dyn CellKernel) -> Result<(Kernel, Recipe), MappingError> {
    let mut on = Work::of(form);
    let done = mapping.apply_to(&mut on);
    let (kernel, mut recipe) = on.schedule.finish();
    if !on.lowering.is_empty() {
        recipe.lowering = on.lowering;
    }
    match done {
        Ok(()) => Ok((kernel, recipe)),
        Err(stopped) => Err(stopped.after(kernel, recipe)),
    }
}
