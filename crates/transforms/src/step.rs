//! The steps of a recipe: one variant a primitive.

use crate::obligation::Obligation;
use purlin_ir::Kernel;
use std::fmt;

/// The rows of the table of primitives: `module::Type, further types: "what it does"`, in
/// alphabetical order.
macro_rules! steps {
    ($($module:ident::$variant:ident $(, $more:ident)*: $summary:literal;)*) => {
        $(pub use $module::{$variant $(, $more)*};)*

        use $crate::draw::Picks;
        use $crate::obligation::Obligation;
        use $crate::primitive::Primitive;
        use $crate::refusal::Refusal;
        use $crate::schedule::{Arguments, Made, fields_of};
        use $crate::step::{PrimitiveInfo, StepProof};
        use purlin_analysis::Analysis;
        use purlin_ir::Kernel;
        use schemars::{JsonSchema, SchemaGenerator};
        use serde::{Deserialize, Serialize};

        /// One step of a recipe.
        #[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum Step {
            $(#[doc = $summary] $variant($variant)),*
        }

        impl std::fmt::Display for Step {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self { $(Self::$variant(p) => p.fmt(f)),* }
            }
        }

        $(impl From<$variant> for Step {
            fn from(p: $variant) -> Self { Self::$variant(p) }
        })*

        impl Primitive for Step {
            type Proof = StepProof;
            type Made = Made;

            const OBLIGATIONS: &'static [Obligation] = &[];

            fn check(&self, analysis: &Analysis) -> Result<StepProof, Refusal> {
                match self { $(Self::$variant(p) => StepProof::of(p, analysis)),* }
            }

            fn edit(&self, kernel: &mut Kernel, proof: &StepProof) -> Made {
                proof.edit(kernel)
            }

            fn draw(kernel: &Kernel, picks: &mut Picks<'_>) -> Option<Self> {
                let all = [$(<$variant as Primitive>::WEIGHT),*];
                let mut at = picks.below(all.iter().sum());
                $(
                    if at < <$variant as Primitive>::WEIGHT {
                        return $variant::draw(kernel, picks).map(Self::from);
                    }
                    at -= <$variant as Primitive>::WEIGHT;
                )*
                let _ = at;
                None
            }
        }

        impl Step {
            /// A step of the primitive of this name that has a chance on the kernel, if there is one.
            pub fn draw_of(name: &str, kernel: &Kernel, picks: &mut Picks<'_>) -> Option<Self> {
                $(if stringify!($module) == name {
                    return $variant::draw(kernel, picks).map(Self::from);
                })*
                None
            }
        }

        /// The arguments of the step of this name, in the order of their declaration.
        pub(crate) fn argument_names(step: &str) -> Option<Arguments> {
            $(if stringify!($module) == step {
                return Some(fields_of::<$variant>());
            })*
            None
        }

        /// The table of primitives, in alphabetical order.
        pub fn primitives() -> &'static [PrimitiveInfo] {
            &[$(PrimitiveInfo {
                name: stringify!($variant),
                step_name: stringify!($module),
                summary: $summary,
                obligations: <$variant as Primitive>::OBLIGATIONS,
                schema: || SchemaGenerator::default().into_root_schema_for::<$variant>(),
            }),*]
        }
    };
}

pub(crate) use steps;

use crate::primitive::Primitive;
use crate::primitives::argument_names;
use crate::refusal::Refusal;
use crate::schedule::{Handles, Made};
use purlin_analysis::Analysis;
use schemars::Schema;

/// A row of the table of primitives.
#[derive(Clone, Copy, Debug)]
pub struct PrimitiveInfo {
    /// Name of the arguments' type, and of the variant of [`Step`](crate::Step).
    pub name: &'static str,
    /// The name in recipes, and of the file.
    pub step_name: &'static str,
    /// What it does.
    pub summary: &'static str,
    /// What it proves, besides what every step keeps: [`STORAGE`](crate::refusal::STORAGE) and
    /// [`PLACEMENT`](crate::refusal::PLACEMENT).
    pub obligations: &'static [Obligation],
    /// The JSON schema of its arguments; its description is the documentation of the type.
    pub schema: fn() -> Schema,
}

impl PrimitiveInfo {
    /// The names of its arguments in the order in which a schedule takes them.
    pub fn arguments(&self) -> &'static [&'static str] {
        argument_names(self.step_name).unwrap_or_default().names
    }

    /// Whether its arguments are alternatives, of which one is given by its name.
    pub fn takes_one_of(&self) -> bool {
        argument_names(self.step_name).unwrap_or_default().alternatives
    }
}

type Edit = dyn Fn(&mut Kernel) -> Made;

/// The proof of a step: the edit of its primitive, with what it relies on.
pub struct StepProof(Box<Edit>);

impl StepProof {
    /// The proof of a primitive's check.
    pub(crate) fn of<P>(primitive: &P, analysis: &Analysis) -> Result<Self, Refusal>
    where
        P: Primitive<Proof: 'static> + Clone + 'static,
    {
        let (proof, primitive) = (primitive.check(analysis)?, primitive.clone());
        Ok(Self(Box::new(move |kernel| {
            let mut made = Made::default();
            primitive.edit(kernel, &proof).list(&mut made);
            made
        })))
    }

    pub(crate) fn edit(&self, kernel: &mut Kernel) -> Made {
        (self.0)(kernel)
    }
}

impl fmt::Debug for StepProof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StepProof")
    }
}
