//! Reorders the statements of a body.

use kingpost_analysis::Analysis;
use kingpost_ir::{Kernel, Node};
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::expected::Expected;
use kingpost_steps::keeps::Keeps;
use kingpost_steps::lookup::NO_REDUCTION;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::ORDER;
use kingpost_steps::proofs::order::{Reordering, check_order};
use kingpost_steps::refusal::Refusal;
use kingpost_steps::run::{same, statement};
use kingpost_steps::tree::{edit_siblings, siblings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Moves statements (instructions, or loops with all they hold) before or after another one of the
/// same body; those moved keep their order among each other.
///
/// # Rewrite
/// ```text
/// for i in 0..n      =>   for i in 0..n
///   s: S(i)                 u: U(i)
///   t: T(i)                 s: S(i)
///   u: U(i)                 t: T(i)
/// ```
///
/// # Precondition
/// No dependence is turned around: with `o` the loops around, `{ s[o, ..] -> t[o, ..] in D : s then
/// after t }` is empty for every flow, anti and output dependence `D`. Commuting updates may be
/// reordered. If loops are on axes, the placement must still hold. A loop reads its bounds when it
/// is entered, also if it holds no instance.
///
/// # Errors
/// Unknown names, nothing to move, statements of different bodies, a statement moved before or
/// after itself, a dependence of that direction or that the placement breaks, with two instances.
///
/// # Elsewhere
/// Loopy `add_dependency` and its scheduler; Exo `reorder_stmts`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MoveInsns {
    /// Names of the instructions and loops to move.
    pub statements: Vec<String>,
    /// Where to.
    pub to: Place,
}

/// A place in a body.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// Directly before the instruction or loop of this name.
    Before(String),
    /// Directly after it.
    After(String),
}

impl MoveInsns {
    /// Moves statements directly before another one.
    pub fn before<S: Into<String>>(
        statements: impl IntoIterator<Item = S>,
        target: impl Into<String>,
    ) -> Self {
        Self {
            statements: statements.into_iter().map(Into::into).collect(),
            to: Place::Before(target.into()),
        }
    }

    /// Moves statements directly after another one.
    pub fn after<S: Into<String>>(
        statements: impl IntoIterator<Item = S>,
        target: impl Into<String>,
    ) -> Self {
        Self { statements: statements.into_iter().map(Into::into).collect(), to: Place::After(target.into()) }
    }

    fn target(&self) -> &str {
        match &self.to {
            Place::Before(name) | Place::After(name) => name,
        }
    }
}

impl fmt::Display for MoveInsns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.statements.iter().map(|n| format!("`{n}`")).collect();
        let names = if names.is_empty() { "nothing".into() } else { names.join(", ") };
        let side = match &self.to {
            Place::Before(_) => "before",
            Place::After(_) => "after",
        };
        write!(f, "move {names} {side} `{}`", self.target())
    }
}

/// They can change places.
const SAME_BODY: Obligation =
    Obligation::new("move_insns.same_body", "the statements stand in the body in which the target stands");

/// Statements of one body and where they go, as nodes without their bodies.
pub struct Moved {
    statements: Vec<Node>,
    target: Node,
}

impl Primitive for MoveInsns {
    const NAME: &'static str = "move_insns";
    const SUMMARY: &'static str = "Moves statements within their body.";

    type Proof = Moved;
    type Made = ();

    const OBLIGATIONS: &'static [Obligation] = &[SAME_BODY, ORDER, NO_REDUCTION];
    const KEEPS: Keeps = Keeps::REASSOCIATED;

    fn check(&self, analysis: &Analysis) -> Result<Moved, Refusal> {
        let kernel = analysis.kernel();
        let proof = self.statements(kernel)?;
        let after = self.draft(kernel, &proof);
        let order = Reordering { before: analysis, after: &after, value: &|_, _| None, whole: &[] };
        check_order(&order, &|source, sink| format!("keep `{source}` before `{sink}`"))?;
        Ok(proof)
    }

    fn edit(&self, kernel: &mut Kernel, Moved { statements, target }: &Moved) {
        edit_siblings(&mut kernel.body, &|node| same(node, target), &mut |nodes| {
            let (taken, rest): (Vec<_>, Vec<_>) =
                std::mem::take(nodes).into_iter().partition(|node| statements.iter().any(|m| same(node, m)));
            let k = rest.iter().position(|node| same(node, target)).unwrap_or(rest.len());
            let k = match &self.to {
                Place::Before(_) => k,
                Place::After(_) => (k + 1).min(rest.len()),
            };
            *nodes = rest;
            nodes.splice(k..k, taken);
        });
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let mut several = draw::bodies(kernel);
        several.retain(|(_, names)| names.len() > 1);
        let (_, names) = p.of(&several)?;
        let moved = p.below(names.len());
        let target = (moved + 1 + p.below(names.len() - 1)) % names.len();
        let (moved, target) = ([names[moved].clone()], names[target].clone());
        Some(if p.one_in(2) { Self::after(moved, target) } else { Self::before(moved, target) })
    }
}

impl MoveInsns {
    fn statements(&self, kernel: &Kernel) -> Result<Moved, Refusal> {
        if self.statements.is_empty() {
            return Err(Refusal::argument("statements", "no statement is named", "instructions or loops"));
        }
        let target = statement(kernel, self.target())?;
        let around = siblings(&kernel.body, &|node| same(node, &target));
        let around = around.expected("statement of that name in the tree", kernel)?;
        let mut moved = Vec::new();
        for name in &self.statements {
            let statement = statement(kernel, name)?;
            if same(&statement, &target) {
                let found = format!("`{name}` cannot move past itself");
                return Err(Refusal::argument("to", found, "another target"));
            }
            SAME_BODY.require(around.iter().any(|node| same(node, &statement)), || {
                format!(
                    "`{name}` does not stand in the body in which `{}` stands; name the loop around it, or \
                     distribute that",
                    self.target()
                )
            })?;
            moved.push(statement);
        }
        Ok(Moved { statements: moved, target })
    }
}
