//! Moves a temporary or a table to other memory.

use kingpost_analysis::Analysis;
use kingpost_ir::{AddressSpace, Kernel, VarId, VarKind};
use kingpost_steps::argument;
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::lookup;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::refusal::Refusal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Moves a temporary to private, local or global memory or to the registers of sub-groups, or a
/// table to global or constant memory, or to literals.
///
/// # Rewrite
/// ```text
/// temp t: f64[8] private      =>   temp t: f64[8] local
/// ```
///
/// # Precondition
/// With the tags as they are, every value that flows through the variable stays where its reader
/// sees it (the table of [`kingpost_analysis::placement`]); no atomic update of it becomes private.
///
/// # Errors
/// An unknown variable, an argument or parameter, memory that does not suit the
/// variable, and a flow that would be cut, with two instances.
///
/// # Elsewhere
/// Loopy `set_temporary_address_space`; Exo `set_memory`; TVM `set_scope`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetAddressSpace {
    /// The variable.
    pub var: String,
    /// `global`, `constant`, `literal`, `local`, `subgroup` or `private`.
    #[serde(serialize_with = "argument::write", deserialize_with = "argument::read")]
    #[schemars(schema_with = "argument::spaces")]
    pub space: AddressSpace,
}

impl SetAddressSpace {
    /// Moves `var` to `space`.
    pub fn new(var: impl Into<String>, space: AddressSpace) -> Self {
        Self { var: var.into(), space }
    }
}

impl fmt::Display for SetAddressSpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "set address space of `{}` to {}", self.var, self.space.name())
    }
}

/// The caller does not say where it is.
const OWN: Obligation = Obligation::new("set_address_space.own", "the variable is a temporary or a table");

/// Others see what is updated atomically.
const NOT_ATOMIC: Obligation =
    Obligation::new("set_address_space.not_atomic", "nothing updates atomically what becomes private");

/// A variable and memory that suits it.
pub struct NewMemory {
    var: VarId,
    space: AddressSpace,
}

impl Primitive for SetAddressSpace {
    const NAME: &'static str = "set_address_space";
    const SUMMARY: &'static str = "Moves a temporary or a table to other memory.";

    type Proof = NewMemory;
    type Made = ();

    const OBLIGATIONS: &'static [Obligation] = &[OWN, NOT_ATOMIC];
    const WEIGHT: usize = 2;

    fn check(&self, analysis: &Analysis) -> Result<NewMemory, Refusal> {
        let kernel = analysis.kernel();
        let var = lookup::var(kernel, &self.var)?;
        let space = self.space;
        let own = match kernel.vars[var].kind {
            VarKind::Temporary | VarKind::Table(_) => true,
            VarKind::Param | VarKind::Argument(_) => false,
        };
        OWN.require(own, || {
            format!(
                "`{}` is given at launch and stays where it is; prefetch it into a temporary instead",
                self.var
            )
        })?;
        if space == AddressSpace::Private {
            NOT_ATOMIC.forbid(kernel.insns.values().find(|i| i.lhs.var == var && i.is_atomic()), |insn| {
                let (name, var) = (&insn.name, &self.var);
                format!("`{name}` updates `{var}` atomically, so others see it; it cannot be private")
            })?;
        }
        Ok(NewMemory { var, space })
    }

    fn edit(&self, kernel: &mut Kernel, proof: &NewMemory) {
        kernel.vars[proof.var].space = proof.space;
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let spaces = [AddressSpace::Private, AddressSpace::Local, AddressSpace::Local, AddressSpace::Global];
        let space = match p.below(16) {
            7 => p.among(AddressSpace::ALL),
            9 | 11 => AddressSpace::SubGroup,
            _ => p.among(spaces),
        };
        let all = draw::vars(kernel, |v| matches!(v.kind, VarKind::Temporary | VarKind::Table(_)));
        Some(Self::new(p.of(&all)?, space))
    }
}
