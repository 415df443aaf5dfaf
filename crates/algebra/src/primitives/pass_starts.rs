//! Passes the first numbers of runs in the rows of a map.

use super::list_elements::size;
use kingpost_analysis::Analysis;
use kingpost_analysis::polyhedral::Polyhedral;
use kingpost_ir::{
    AddressSpace, Affine, Assumption, Atom, BinaryOp, Constraint, Direction, Expr, InsnId, Kernel,
    OutsideRange, VarId, VarKind, Variable,
};
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::lists::Definition;
use kingpost_steps::lookup;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::length::always;
use kingpost_steps::refusal::Refusal;
use kingpost_steps::runs::{FirstNumbers, RunStarts};
use kingpost_steps::schedule::Array;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Reads the first number of each run of consecutive numbers in the rows of `map`, instead of all of
/// them: entry `i` of a run is its first number and `i`.
///
/// # Rewrite
/// ```text
/// for c in 0..n                      =>  for c in 0..n
///   for i in 0..6                          for i in 0..6
///     s: y[map[c, i + 2]] += u[c, i]         s: y[map_starts_2[c, floor_div(i, 3)] + …] += u[c, i]
/// ```
/// Here runs are columns 2 to 4 and 5 to 7. The first numbers are an input that is computed from the
/// map before the launch ([`PassStarts::runs`]), which refuses a map whose rows have no such runs. The
/// degrees of freedom of an edge, a face or the interior of a cell are a run where each entity numbers
/// its own one after the other, and all cells of an entity do so in one direction.
///
/// With `above`, the first numbers are those of another input and one constant, and that constant alone is
/// passed. So are the degrees of freedom of vertices, which are numbered as vertices are.
/// ```text
/// for c in 0..n                      =>  for c in 0..n
///   for i in 0..3                          for i in 0..3
///     s: y[map[c, i]] += u[c, i]             s: y[vertices[c, i] + map_base_0] += u[c, i]
/// ```
/// With `own`, they are that of row 0, which is passed, and `length` more in each row. Interiors of
/// cells have such numbers by dimension. No other entry is one of them: the kernel assumes it, and
/// the placement uses it. Steps that pass other columns say as much of what they pass.
/// ```text
/// for c in 0..2                      =>  assume outside(map, map_base_1, map_base_1 + 6, 1)
///   for i in 0..3                        for c in 0..2
///     s: y[map[c, i + 1]] += u[c, i]       for i in 0..3
///                                            s: y[3*c + i + map_base_1] += u[c, i]
/// ```
///
/// # Precondition
/// The map is an input of integers, `[rows, columns]`, with a constant number of columns, among
/// which the runs are. An entry whose column is in a run in every instance of its instruction is
/// replaced, and at least one is. The input that they are above has as many rows as the map, and a
/// column for each run. Numbers that rows have alone are one run, in the last columns. Other
/// entries are read from the map as before. Calls remain calls of their callees.
///
/// # Errors
/// Unknown names, a name that is taken, runs of no or more columns than the map has, a map that is no
/// input of integers with constant rows, no entry that is in runs in all instances, a call whose
/// argument is an entry, both `above` and `own`.
///
/// # Elsewhere
/// MFEM and deal.II store numbers by entity; PETSc's `DMPlex` sections have an offset and a length.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PassStarts {
    /// The input of integers.
    pub map: String,
    /// The first column that is in a run.
    pub first: i64,
    /// Columns of a run.
    pub length: i64,
    /// Runs in a row, one after the other.
    pub count: i64,
    /// The input of integers that all first numbers are above by one constant, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub above: Option<String>,
    /// Whether a row has the numbers of its run alone, all of them one after the other, row by row.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own: bool,
}

impl PassStarts {
    /// Passes the first numbers of `count` runs of `length` columns each, from column `first` of `map`
    /// on.
    pub fn new(map: impl Into<String>, first: i64, length: i64, count: i64) -> Self {
        Self { map: map.into(), first, length, count, above: None, own: false }
    }

    /// The same, as numbers of another input and a constant.
    #[must_use]
    pub fn above(mut self, other: impl Into<String>) -> Self {
        self.above = Some(other.into());
        self
    }

    /// The same, as numbers that a row has alone.
    #[must_use]
    pub fn own(mut self) -> Self {
        self.own = true;
        self
    }

    /// The runs, and the input with their first numbers.
    ///
    /// # Errors
    /// As the step.
    pub fn runs(&self, kernel: &Kernel) -> Result<RunStarts, Refusal> {
        self.check(&Analysis::of(kernel)).map(|proof| proof.runs)
    }

    /// The place of a column among those of the runs.
    fn place(&self, column: &Affine) -> Affine {
        column.plus_constant(-self.first)
    }
}

impl fmt::Display for PassStarts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { map, first, length, count, above, own } = self;
        write!(f, "pass the starts of {count} runs of {length} in `{map}`, from column {first} on")?;
        above.iter().try_for_each(|other| write!(f, ", above those of `{other}`"))?;
        f.write_str(if *own { ", which a row has alone" } else { "" })
    }
}

/// What is computed before has to be there.
const KNOWN: Obligation = Obligation::new(
    "pass_starts.known",
    "the map is an input of integers, `[rows, columns]`, whose constant columns hold the runs",
);

/// Both have a number for each run.
const ABOVE: Obligation = Obligation::new(
    "pass_starts.above",
    "what numbers are above is an input of integers with the rows of the map and a column for each run",
);

/// They are one interval for each row, one after the other.
const OWN: Obligation = Obligation::new(
    "pass_starts.own",
    "numbers that rows have alone are one run, in the last columns of a map of which nothing else is assumed so",
);

/// `{ instances : column < first or column >= first + length*count }` is empty.
const IN_RUNS: Obligation = Obligation::new(
    "pass_starts.in_runs",
    "an entry of the map has a column that is in a run in every instance",
);

/// A call takes elements of its arguments at places that are affine in its loops.
const CALLS: Obligation =
    Obligation::new("pass_starts.calls", "a call is one of the same callee after the step");

/// Entries of a map that are in runs.
pub struct InRuns {
    map: VarId,
    numbers: Numbers,
    /// The columns of entries that are replaced, by instruction.
    entries: Vec<(InsnId, Vec<Affine>)>,
    runs: RunStarts,
}

/// What is passed.
enum Numbers {
    /// The first number of each run.
    Starts,
    /// Their distance from an input.
    Above(VarId),
    /// The first number of row 0.
    Own,
}

impl Primitive for PassStarts {
    const NAME: &'static str = "pass_starts";
    const SUMMARY: &'static str = "Passes the first numbers of runs of consecutive numbers in a map.";

    type Proof = InRuns;
    type Made = Array;

    const OBLIGATIONS: &'static [Obligation] = &[KNOWN, ABOVE, OWN, IN_RUNS, CALLS];
    const DEFINES: bool = true;

    fn check(&self, analysis: &Analysis) -> Result<InRuns, Refusal> {
        let (kernel, poly) = (analysis.kernel(), analysis.polyhedral());
        let map = lookup::var(kernel, &self.map)?;
        for (name, value, least) in
            [("first", self.first, 0), ("length", self.length, 1), ("count", self.count, 1)]
        {
            if !(least..=MAX_COLUMNS).contains(&value) {
                return Err(Refusal::argument(name, format!("{value}"), format!("{least} to 2^20")));
            }
        }
        let data = &kernel.vars[map];
        let columns = match &data.shape[..] {
            [_, columns] => columns.as_constant().filter(|columns| self.end() <= *columns),
            _ => None,
        };
        let given = data.kind == VarKind::Argument(Direction::In) && data.ty.is_exact();
        let columns = *KNOWN.find(columns.filter(|_| given).as_ref(), || {
            format!(
                "`{}` is no input of integers with {} columns or more; name one that is, or fewer runs",
                self.map,
                self.end()
            )
        })?;
        let numbers = self.check_numbers(kernel, map, columns)?;
        let mut entries = Vec::new();
        for (s, _) in kernel.schedule() {
            let mut columns = Vec::new();
            for column in columns_of(poly, s, map) {
                if self.is_in_runs(poly, s, &column)? {
                    columns.push(column);
                }
            }
            if !columns.is_empty() {
                entries.push((s, columns));
            }
        }
        IN_RUNS.decide(!entries.is_empty(), || {
            format!(
                "no entry of `{}` has a column from {} to {} in all instances of its instruction; split the loops \
                 over columns there",
                self.map,
                self.first,
                self.end() - 1
            )
        })?;
        lookup::free(kernel, &self.passed())?;
        let runs = RunStarts {
            map: self.map.clone(),
            columns: size(columns, kernel)?,
            first: self.first as usize,
            length: size(self.length, kernel)?,
            count: size(self.count, kernel)?,
            numbers: self.first_numbers(),
        };
        let proof = InRuns { map, numbers, entries, runs };
        self.check_calls(kernel, &proof)?;
        Ok(proof)
    }

    fn edit(&self, kernel: &mut Kernel, proof: &InRuns) -> Array {
        let (ty, rows) = (kernel.vars[proof.map].ty, kernel.vars[proof.map].shape[0].clone());
        let (shape, space) = match proof.numbers {
            Numbers::Starts => (vec![rows, Affine::constant(self.count)], AddressSpace::Global),
            // a scalar is passed by value
            Numbers::Above(_) | Numbers::Own => (Vec::new(), AddressSpace::Private),
        };
        let kind = VarKind::Argument(Direction::In);
        let passed = kernel.vars.push(Variable::new(self.passed(), ty, kind, shape, space));
        for (s, columns) in &proof.entries {
            kernel.insns[*s].map_expressions(&mut |e| {
                let Some(column) = column_of(&e, proof.map).filter(|column| columns.contains(column)) else {
                    return e;
                };
                let Expr::Load(entry) = e else { return e };
                self.number(proof, passed, &entry.index[0], &self.place(&column))
            });
        }
        self.assume(kernel, proof, passed);
        Array::named(self.passed())
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let is_map = |v: &Variable| {
            v.kind == VarKind::Argument(Direction::In) && v.ty.is_exact() && v.shape.len() == 2
        };
        let map = p.of(&draw::vars(kernel, is_map))?;
        // of one column each: a map that was drawn has no longer ones
        let (first, count) = (p.between(0, 2), p.between(1, 3));
        draw::possible(kernel, vec![Self::new(map, first, 1, count)], p)
    }

    fn definition(&self, kernel: &Kernel) -> Result<Option<Definition>, Refusal> {
        self.runs(kernel).map(|runs| Some(Definition::Runs(runs)))
    }
}

/// More columns than a map of degrees of freedom has.
const MAX_COLUMNS: i64 = 1 << 20;

impl PassStarts {
    /// The column after the last run.
    fn end(&self) -> i64 {
        self.first + self.length * self.count
    }

    /// The name of what is passed.
    fn passed(&self) -> String {
        let what = if self.own || self.above.is_some() { "base" } else { "starts" };
        format!("{}_{what}_{}", self.map, self.first)
    }

    fn first_numbers(&self) -> FirstNumbers {
        match &self.above {
            Some(other) => FirstNumbers::Above { other: other.clone(), base: self.passed() },
            None if self.own => FirstNumbers::Own(self.passed()),
            None => FirstNumbers::Passed(self.passed()),
        }
    }

    fn check_numbers(&self, kernel: &Kernel, map: VarId, columns: i64) -> Result<Numbers, Refusal> {
        match &self.above {
            Some(_) if self.own => Err(Refusal::argument("own", "true", "false for numbers above others")),
            Some(other) => Ok(Numbers::Above(self.check_above(kernel, map, other)?)),
            None if !self.own => Ok(Numbers::Starts),
            None => {
                let is_last = self.count == 1 && self.end() == columns;
                OWN.require(is_last && range_of(kernel, map).is_none(), || {
                    format!(
                        "columns {} to {} of `{}` are not one run of the last of {columns}, or some are assumed to \
                         be a row's alone already; name the last run, once",
                        self.first,
                        self.end() - 1,
                        self.map
                    )
                })?;
                Ok(Numbers::Own)
            }
        }
    }

    /// The number at a place among those of the runs of a row.
    fn number(&self, proof: &InRuns, passed: VarId, row: &Expr, place: &Affine) -> Expr {
        let add = |a, b| Expr::binary(BinaryOp::Add, a, b);
        let (run, within) = (Expr::from_affine(&place.floor_div(self.length)), place.modulo(self.length));
        let of_run = [row.clone(), run];
        let first = match proof.numbers {
            Numbers::Starts => Expr::load(passed, of_run),
            Numbers::Above(other) => add(Expr::load(other, of_run), Expr::from_affine(&Affine::var(passed))),
            Numbers::Own => {
                let before = Expr::binary(BinaryOp::Mul, Expr::Int(self.length), row.clone());
                let number = add(before, Expr::from_affine(&Affine::var(passed).plus(place)));
                return number.as_affine().map_or(number, |number| Expr::from_affine(&number));
            }
        };
        match self.length {
            1 => first,
            _ => add(first, Expr::from_affine(&within)),
        }
    }

    /// Says which numbers rows have alone, and that what is read instead of others is outside
    /// these.
    fn assume(&self, kernel: &mut Kernel, proof: &InRuns, passed: VarId) {
        let base = Affine::var(passed);
        let outside = match proof.numbers {
            Numbers::Own => {
                let to = base.plus(&kernel.vars[proof.map].shape[0].times(self.length));
                OutsideRange { array: proof.map, from: base, to, own: Some(self.first) }
            }
            Numbers::Starts | Numbers::Above(_) => {
                let Some(OutsideRange { from, to, own, .. }) = range_of(kernel, proof.map) else { return };
                if own.is_some_and(|own| own < self.end()) {
                    return;
                }
                let (array, base) = match proof.numbers {
                    Numbers::Above(other) => (other, base),
                    Numbers::Starts | Numbers::Own => (passed, Affine::default()),
                };
                // a first number is as many below the range as others follow it
                let from = from.minus(&base).plus_constant(1 - self.length);
                OutsideRange { array, from, to: to.minus(&base), own: None }
            }
        };
        kernel.assumptions.push(Assumption::Outside(outside));
    }

    fn check_above(&self, kernel: &Kernel, map: VarId, name: &str) -> Result<VarId, Refusal> {
        let other = lookup::var(kernel, name)?;
        let (data, rows) = (&kernel.vars[other], &kernel.vars[map].shape[0]);
        let given = data.kind == VarKind::Argument(Direction::In) && data.ty.is_exact();
        let alike = matches!(&data.shape[..], [of, columns] if of == rows && columns.as_constant() == Some(self.count));
        ABOVE.require(given && alike, || {
            format!(
                "`{name}` is no input of integers with the rows of `{}` and {} columns; name one that is",
                self.map, self.count
            )
        })?;
        Ok(other)
    }

    /// Calls stay calls: the frame would take a kernel of which some do not for a bug.
    fn check_calls(&self, kernel: &Kernel, proof: &InRuns) -> Result<(), Refusal> {
        let called = |(s, _): &(InsnId, _)| kernel.insns[*s].callee.map(|callee| (*s, callee));
        let Some((s, callee)) = proof.entries.iter().find_map(called) else { return Ok(()) };
        let mut after = kernel.clone();
        self.edit(&mut after, proof);
        CALLS.require(after.verify().is_ok(), || {
            let (insn, callee) = (&kernel.insns[s].name, kernel.callees[callee].name());
            format!("`{insn}` would be no call of `{callee}` any more; inline the call first")
        })
    }

    fn is_in_runs(&self, poly: &Polyhedral, s: InsnId, column: &Affine) -> Result<bool, Refusal> {
        let place = self.place(column);
        let left = Affine::constant(self.length * self.count - 1).minus(&place);
        let mut within = true;
        for bound in [place, left] {
            within = within && always(poly, poly.loops(s), &Constraint::NonNegative(bound))?;
        }
        Ok(within)
    }
}

/// The numbers that rows of an array have alone, if there are any.
fn range_of(kernel: &Kernel, array: VarId) -> Option<&OutsideRange> {
    kernel.assumptions.iter().find_map(|assumption| {
        let Assumption::Outside(outside) = assumption else { return None };
        (outside.array == array && outside.own.is_some()).then_some(outside)
    })
}

/// The column of an entry of a map that an expression is, if it is affine.
fn column_of(e: &Expr, map: VarId) -> Option<Affine> {
    let access = e.as_load().filter(|access| access.var == map)?;
    access.index.get(1)?.as_affine()
}

/// The columns of entries of a map that an instruction takes, which are affine in the loops around it.
fn columns_of(poly: &Polyhedral, s: InsnId, map: VarId) -> Vec<Affine> {
    let (loops, mut found) = (poly.loops(s), Vec::new());
    for e in poly.kernel.insns[s].expressions() {
        e.for_each(&mut |e| {
            let Some(column) = column_of(e, map).filter(|column| !found.contains(column)) else { return };
            let mut known = true;
            column.for_each_symbol(&mut |atom| {
                if let Atom::Iname(iname) = atom {
                    known &= loops.contains(iname);
                }
            });
            if known {
                found.push(column);
            }
        });
    }
    found
}
