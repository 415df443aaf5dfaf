//! Makes inputs of temporaries whose values are known before the launch.

use crate::setup::{Slice, only_for};
use kingpost_analysis::Analysis;
use kingpost_analysis::deps::DependenceKind;
use kingpost_ir::{AddressSpace, Direction, InsnId, Kernel, ScalarType, VarId, VarKind};
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::lists::Definition;
use kingpost_steps::lookup;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::elements::{
    NO_RULE, ONLY_ACCESSED, TEMPORARY, check_no_rule, check_only_accessed, temporary,
};
use kingpost_steps::refusal::{LostValue, Refusal, TransformError};
use kingpost_steps::run::{NOT_CALLED, check_not_called};
use kingpost_steps::schedule::{Array, Schedule};
use kingpost_steps::tree::prune_insn;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// Passes temporaries whose values depend on some inputs alone, so that they are computed once for
/// many launches.
///
/// # Rewrite
/// ```text
/// temp g: f64[n, 2]                  =>   arg g: f64[n, 2] in
/// for c in 0..n                           for c in 0..n
///   for q in 0..2                           for q in 0..2
///     s: g[c, q] = w[q]*x[c]
///     t: y[c] += g[c, q]*u[c]                 t: y[c] += g[c, q]*u[c]
/// ```
/// What computes the temporaries is a kernel of its own, [`PassValues::definition`]: the
/// instructions that write them, those that write what these read, and so on. It runs before the
/// launch, once for all launches with the same inputs `from`, and its results are the new inputs.
/// Here it is `s`. Instructions that serve nothing else leave the program.
///
/// # Precondition
/// With `S` the instructions of that kernel: none of them belongs to a call, and what they read and do
/// not write are parameters, tables, and the inputs `from`, which nothing writes. So `S` computes the
/// same before the launch. Nobody else reads an element before its last write,
/// `{ r -> w : element(r) = element(w), r before w, r not in S, w in S }` is empty for the
/// temporaries, so that every reader finds the value that is passed. They are arrays with storage of
/// their own, row by row. If loops are on axes, the placement must hold.
///
/// # Errors
/// An unknown variable, one that is no temporary or no array, whose elements are records, has
/// strides, a vector axis or shared storage, or is mentioned by a bound, an assumption or a rule;
/// `from` that is written or no input; a value that depends on something else, with the instruction
/// that reads it; a read before the last write, with two instances.
///
/// # Elsewhere
/// libCEED `QFunction`s that store geometric factors; MFEM's partial assembly, by hand.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PassValues {
    /// The temporaries.
    pub vars: Vec<String>,
    /// The inputs that are there when the values are computed.
    pub from: Vec<String>,
}

impl PassValues {
    /// Passes `vars`, computed from the inputs `from`.
    pub fn new<S: Into<String>, T: Into<String>>(
        vars: impl IntoIterator<Item = S>,
        from: impl IntoIterator<Item = T>,
    ) -> Self {
        let vars = vars.into_iter().map(Into::into).collect();
        Self { vars, from: from.into_iter().map(Into::into).collect() }
    }

    /// The kernel that computes the values, every loop in sequence: its inputs are those of `kernel`,
    /// which the step is to be applied to, and its results have the names of the temporaries.
    ///
    /// # Errors
    /// As the step.
    pub fn defining_kernel(&self, kernel: &Kernel) -> Result<Kernel, Refusal> {
        let proof = self.check(&Analysis::of(kernel))?;
        Ok(Slice::of(kernel, &proof.vars).kernel(kernel, &proof.vars))
    }

    /// Cuts what computes the temporaries off the kernel of a schedule, from the inputs `from`
    /// alone: they become inputs. Returns the kernel that computes them, every loop in sequence;
    /// the two, one after the other, do what the kernel did. Inputs that an earlier cut made may be
    /// among `from`, so that a kernel becomes a sequence of launches.
    ///
    /// ```
    /// use kingpost_algebra::primitives::PassValues;
    /// use kingpost_steps::Schedule;
    ///
    /// let kernel = kingpost_ir::text::parse(
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
    /// let first = Schedule::of(&PassValues::new(["t"], ["x"]).cut_off(&mut last)?);
    /// assert!(first.kernel().to_string().contains("arg t: f64[8] out"));
    /// assert!(last.kernel().to_string().contains("arg t: f64[8] in"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As the step; the schedule stays as it was.
    pub fn cut_off(self, schedule: &mut Schedule) -> Result<Kernel, TransformError> {
        let refused = |cause| TransformError { operation: self.to_string(), cause };
        let definition = self.defining_kernel(schedule.kernel()).map_err(refused)?;
        schedule.make(self)?;
        Ok(definition)
    }
}

impl fmt::Display for PassValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |all: &[String]| all.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ");
        write!(f, "pass the values of {} from {}", names(&self.vars), names(&self.from))
    }
}

/// A scalar has one value at a time.
const ARRAY: Obligation = Obligation::new("pass_values.array", "each temporary is an array, row by row");

/// Another temporary in its storage would lose its values.
const OWN_STORAGE: Obligation =
    Obligation::new("pass_values.own_storage", "each temporary has storage of its own");

/// What is written is not known before.
const INPUT: Obligation =
    Obligation::new("pass_values.input", "`from` names inputs, which the kernel does not write");

/// Before the launch nothing else has a value.
const KNOWN: Obligation = Obligation::new(
    "pass_values.known",
    "the values depend on parameters, tables and the inputs `from` alone",
);

/// `{ r -> w : element(r) = element(w), r before w, r stays }` is empty.
const LAST: Obligation =
    Obligation::new("pass_values.last", "nobody else reads an element before its last write");

/// Temporaries whose values are known before the launch.
pub struct KnownBefore {
    vars: Vec<VarId>,
    /// What serves them alone.
    gone: BTreeSet<InsnId>,
}

impl Primitive for PassValues {
    const NAME: &'static str = "pass_values";
    const SUMMARY: &'static str = "Lets the caller pass values that depend on some inputs alone.";

    type Proof = KnownBefore;
    type Made = Vec<Array>;

    const OBLIGATIONS: &'static [Obligation] =
        &[TEMPORARY, ARRAY, OWN_STORAGE, ONLY_ACCESSED, NO_RULE, INPUT, KNOWN, NOT_CALLED, LAST];
    const DEFINES: bool = true;

    fn check(&self, analysis: &Analysis) -> Result<KnownBefore, Refusal> {
        let kernel = analysis.kernel();
        let vars = self.temporaries(kernel)?;
        let from = self.inputs(kernel)?;
        let slice = Slice::of(kernel, &vars);
        check_known(kernel, &slice, &from)?;
        let gone = only_for(kernel, &slice, &vars);
        for d in analysis.dependences_of(&|v| vars.contains(&v))? {
            // what serves the values alone goes; what else computes with them still reads them
            if d.kind != DependenceKind::Anti || gone.contains(&d.source) {
                continue;
            }
            LAST.refute(d.witness(kernel, &d.relation()?)?.map(|witness| {
                let found = format!(
                    "{} reads `{}` before {} writes it, and would find what is written last",
                    witness.source, witness.element, witness.sink
                );
                let name = &kernel.vars[d.var].name;
                let help = format!("expand `{name}` over the loops in which it has other values");
                LostValue { witness, found, help }
            }))?;
        }
        Ok(KnownBefore { vars, gone })
    }

    fn edit(&self, kernel: &mut Kernel, proof: &KnownBefore) -> Vec<Array> {
        for insn in &proof.gone {
            prune_insn(&mut kernel.body, *insn);
        }
        for var in &proof.vars {
            kernel.vars[*var].kind = VarKind::Argument(Direction::In);
            kernel.vars[*var].space = AddressSpace::Global;
        }
        proof.vars.iter().map(|v| Array::named(&kernel.vars[*v].name)).collect()
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let inputs = draw::vars(kernel, |v| v.kind == VarKind::Argument(Direction::In));
        let one = |var: String| Self::new([var], inputs.clone());
        draw::possible(kernel, draw::temporaries(kernel, 1).into_iter().map(one).collect(), p)
    }

    fn definition(&self, kernel: &Kernel) -> Result<Option<Definition>, Refusal> {
        self.defining_kernel(kernel).map(|kernel| Some(Definition::Kernel(Box::new(kernel))))
    }
}

impl PassValues {
    fn temporaries(&self, kernel: &Kernel) -> Result<Vec<VarId>, Refusal> {
        if self.vars.is_empty() {
            return Err(Refusal::argument("vars", "no temporary is named", "at least one"));
        }
        let mut found = Vec::new();
        for name in &self.vars {
            let var = temporary(kernel, name, "name what the program computes")?;
            ARRAY.require(!matches!(kernel.vars[var].ty, ScalarType::Record(_)), || {
                format!("the elements of `{name}` are records, each field of which is an array; keep them, or compute fields")
            })?;
            if found.contains(&var) {
                return Err(Refusal::argument("vars", format!("`{name}` is named twice"), "each once"));
            }
            let data = &kernel.vars[var];
            let dense = data.layout.is_row_major() && data.layout.vector_axis.is_none();
            ARRAY.require(!data.shape.is_empty() && dense, || {
                format!("`{name}` is a scalar, or has strides or a vector axis; expand it over loops first")
            })?;
            OWN_STORAGE
                .require(data.storage.is_none(), || format!("`{name}` shares its storage; pass it before"))?;
            check_only_accessed(kernel, var)?;
            check_no_rule(kernel, var)?;
            found.push(var);
        }
        Ok(found)
    }

    fn inputs(&self, kernel: &Kernel) -> Result<Vec<VarId>, Refusal> {
        let input = |name: &String| {
            let var = lookup::var(kernel, name)?;
            INPUT.require(kernel.vars[var].kind == VarKind::Argument(Direction::In), || {
                format!("`{name}` is no input; values depend on what the kernel is given and does not write")
            })?;
            Ok(var)
        };
        self.from.iter().map(input).collect()
    }
}

/// What a slice reads and does not write is known before the launch.
fn check_known(kernel: &Kernel, slice: &Slice, from: &[VarId]) -> Result<(), Refusal> {
    for (s, loops) in kernel.schedule().into_iter().filter(|(s, _)| slice.insns.contains(s)) {
        let insn = &kernel.insns[s];
        check_not_called(kernel, insn)?;
        for var in crate::setup::reads(kernel, s, &loops) {
            let data = &kernel.vars[var];
            let known = match data.kind {
                VarKind::Param | VarKind::Table(_) | VarKind::Temporary => true,
                VarKind::Argument(_) => from.contains(&var),
            };
            KNOWN.require(known, || {
                let writer = kernel.insns.values().find(|i| i.lhs.var == var);
                let written = writer.map_or_else(
                    || "is not among the inputs that are there before".to_owned(),
                    |w| format!("is written by `{}`", w.name),
                );
                format!(
                    "`{}` reads `{}`, which {written}; pass what depends on other inputs alone",
                    insn.name, data.name
                )
            })?;
        }
    }
    Ok(())
}
