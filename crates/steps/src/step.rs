//! A step of a recipe: a primitive with its arguments, whichever crate it comes from.

use crate::keeps::{Instances, Keeps};
use crate::lists::Definition;
use crate::obligation::Obligation;
use crate::primitive::Primitive;
use crate::proved::{Evidence, Means, Proved, gathered};
use crate::refusal::{Refusal, TransformError};
use crate::schedule::{Arguments, Handles, Made, fields_of};
use kingpost_analysis::{Analysis, Known};
use kingpost_ir::Kernel;
use serde::{Serialize, Serializer};
use std::any::Any;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// One step of a recipe.
///
/// ```
/// use kingpost_steps::Step;
/// use kingpost_transforms::primitives::SplitIname;
///
/// let step = Step::from(SplitIname::new("i", 4));
/// assert_eq!(step.name(), "split_iname");
/// assert_eq!(step.get::<SplitIname>().map(|split| split.factor), Some(4));
/// ```
#[derive(Clone)]
pub struct Step(Arc<dyn ErasedStep>);

/// What is asked of a primitive whose type is not known. A step costs an allocation; a question to
/// isl costs a thousand times as much.
trait ErasedStep: Any + fmt::Debug + fmt::Display + Send + Sync + erased_serde::Serialize {
    fn name(&self) -> &'static str;
    fn equals(&self, other: &dyn ErasedStep) -> bool;
    fn hash(&self, state: &mut dyn Hasher);
    fn apply_to(&self, analysis: &Analysis) -> Result<(Known, Made), TransformError>;
    fn keeps(&self) -> Keeps;
    fn instances(&self) -> Instances;
    fn defines(&self) -> bool;
    fn fixes(&self, known: &dyn Fn(&str) -> Option<i64>) -> Option<(&str, i64)>;
    fn definition(&self, kernel: &Kernel) -> Result<Option<Definition>, Refusal>;
    fn arguments(&self) -> Arguments;
    fn obligations(&self) -> &'static [Obligation];
}

impl<P: Primitive> ErasedStep for P {
    fn name(&self) -> &'static str {
        P::NAME
    }

    fn equals(&self, other: &dyn ErasedStep) -> bool {
        (other as &dyn Any).downcast_ref::<P>() == Some(self)
    }

    fn hash(&self, mut state: &mut dyn Hasher) {
        P::NAME.hash(&mut state);
        Hash::hash(self, &mut state);
    }

    fn apply_to(&self, analysis: &Analysis) -> Result<(Known, Made), TransformError> {
        let (after, handles) = Primitive::apply_to(self, analysis)?;
        let mut made = Made::default();
        handles.list(&mut made);
        Ok((after, made))
    }

    fn keeps(&self) -> Keeps {
        Primitive::keeps(self)
    }

    fn instances(&self) -> Instances {
        Primitive::instances(self)
    }

    fn defines(&self) -> bool {
        P::DEFINES
    }

    fn fixes(&self, known: &dyn Fn(&str) -> Option<i64>) -> Option<(&str, i64)> {
        Primitive::fixes(self, known)
    }

    fn definition(&self, kernel: &Kernel) -> Result<Option<Definition>, Refusal> {
        Primitive::definition(self, kernel)
    }

    fn arguments(&self) -> Arguments {
        fields_of::<P>()
    }

    fn obligations(&self) -> &'static [Obligation] {
        P::OBLIGATIONS
    }
}

impl Step {
    /// The primitive with its arguments, if it is of this type.
    #[must_use]
    pub fn get<P: Primitive>(&self) -> Option<&P> {
        (&*self.0 as &dyn Any).downcast_ref()
    }

    /// The name of the primitive in recipes: `split_iname`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.0.name()
    }

    /// What it keeps of the results.
    #[must_use]
    pub fn keeps(&self) -> Keeps {
        self.0.keeps()
    }

    /// How often instructions run after it.
    #[must_use]
    pub fn instances(&self) -> Instances {
        self.0.instances()
    }

    /// The parameter that it gives a value for good, and the value, if those of other parameters
    /// that it needs are known.
    #[must_use]
    pub fn fixes(&self, known: &dyn Fn(&str) -> Option<i64>) -> Option<(&str, i64)> {
        self.0.fixes(known)
    }

    /// Whether [`Step::definition`] may give something.
    #[must_use]
    pub fn defines(&self) -> bool {
        self.0.defines()
    }

    /// What computes the inputs that the step adds to the kernel.
    ///
    /// # Errors
    /// As [`Primitive::definition`].
    pub fn definition(&self, kernel: &Kernel) -> Result<Option<Definition>, TransformError> {
        let refused = |cause| TransformError { operation: self.to_string(), cause };
        self.0.definition(kernel).map_err(refused)
    }

    /// [`Primitive::apply_to`], with its handles by kind.
    ///
    /// # Errors
    /// The operation as the user wrote it, and why it is refused.
    pub fn apply_to(&self, analysis: &Analysis) -> Result<(Known, Made), TransformError> {
        self.0.apply_to(analysis)
    }

    /// [`Step::apply_to`], and what it proved.
    ///
    /// Every obligation of the step is among them, with what shows that it is met, or [`Means::Nothing`]
    /// where no case of it came up.
    ///
    /// ```
    /// use kingpost_steps::{Means, Step};
    /// use kingpost_transforms::primitives::InterchangeInames;
    ///
    /// let kernel = kingpost_ir::text::parse(
    ///     "kernel k\nparam n: i32\narg y: f64[n + 1, n + 1] inout\n\nfor i in 0..n\n  for j in 0..n\n    s: y[i + 1, j + 1] = y[i, j]\n",
    /// )?;
    /// let step = Step::from(InterchangeInames::new("i", "j"));
    /// let (_, _, proved) = step.apply_and_tell(&kingpost_analysis::Analysis::of(&kernel))?;
    /// let order = proved.iter().find(|p| p.id == "order").unwrap();
    /// assert!(order.by.iter().any(|e| e.means == Means::Empty && e.of == "flow of `y` from `s` to `s`"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Step::apply_to`].
    pub fn apply_and_tell(&self, analysis: &Analysis) -> Result<(Known, Made, Vec<Proved>), TransformError> {
        let (applied, mut proved) = gathered(self.0.obligations(), || self.apply_to(analysis));
        let (after, made) = applied?;
        let relied = self.relies_on(analysis.kernel(), after.kernel()).into_iter();
        let by: Vec<_> = relied.map(|r| Evidence::new(Means::Law, r.to_string())).collect();
        if !by.is_empty() {
            let says = "declared operators have the laws by which their operands are joined";
            proved.push(Proved { id: "laws", says, by });
        }
        Ok((after, made, proved))
    }

    /// The kernel after this step.
    ///
    /// # Errors
    /// As [`Step::apply_to`].
    pub fn apply(&self, kernel: &Kernel) -> Result<Kernel, TransformError> {
        self.apply_to(&Analysis::of(kernel)).map(|(after, _)| after.into_kernel())
    }

    /// The names of its arguments.
    pub fn arguments(&self) -> Arguments {
        self.0.arguments()
    }
}

impl<P: Primitive> From<P> for Step {
    fn from(primitive: P) -> Self {
        Self(Arc::new(primitive))
    }
}

impl PartialEq for Step {
    fn eq(&self, other: &Self) -> bool {
        self.0.equals(&*other.0)
    }
}

impl Eq for Step {}

impl Hash for Step {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// The arguments of a step, to be serialised.
struct Fields<'s>(&'s dyn ErasedStep);

impl Serialize for Fields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        erased_serde::serialize(self.0, serializer)
    }
}

/// `{"split_iname": {"iname": "i", "factor": 4}}`, arguments in the order of their declaration.
/// [`StepSet::recipe`](crate::StepSet::recipe) reads it.
impl Serialize for Step {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_newtype_variant("Step", 0, self.name(), &Fields(&*self.0))
    }
}
