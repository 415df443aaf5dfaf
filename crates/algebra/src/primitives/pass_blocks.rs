//! Passes the numbers of blocks of rows of a map once each.

use super::list_elements::size;
use kingpost_analysis::Analysis;
use kingpost_analysis::polyhedral::Polyhedral;
use kingpost_ir::{
    Access, AddressSpace, Affine, Atom, Constraint, Direction, Expr, InameId, InsnId, Kernel, ScalarType,
    TableData, VarId, VarKind, Variable,
};
use kingpost_steps::block_numbers::{BlockNumbers, BlockPattern};
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::lists::Definition;
use kingpost_steps::lookup;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::length::always;
use kingpost_steps::refusal::Refusal;
use kingpost_steps::run::NOT_CALLED;
use kingpost_steps::schedule::Array;
use kingpost_steps::tree::{body_of, insns_of};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Reads each number of a block of rows of `map` from an input that has it once, by its place in a
/// pattern that all blocks share.
///
/// # Rewrite
/// ```text
/// for b in 0..n                      =>  for b in 0..n
///   for c in 0..2                          for c in 0..2
///     for i in 0..3                          for i in 0..3
///       s: y[map[2*b + c, i]] += 1.0           s: y[map_blocks_0[map_places_0[c, i], b]] += 1.0
/// ```
/// With `places: [[0, 1, 2], [0, 2, 3]]`, those of two triangles of a square, `map_places_0` is a table
/// of these and `map_blocks_0` an input, `[4, n]`, that is computed from the map before the launch
/// ([`PassBlocks::numbers`]). That refuses a map of which a block does not repeat its numbers so, or
/// whose rows fill no blocks. A work-item that takes a block then reads 4 numbers instead of 6, and
/// neighbours read neighbours.
///
/// # Precondition
/// The map is an input of integers, `[rows, columns]`, with a constant number of columns, among which
/// those of the pattern are, from `first` on. Iterations of `at` have blocks of their own,
/// `0 <= at` and `k*at + k <= rows` for the `k` rows of the pattern. An entry inside `at` whose row is
/// in that block, and whose column is in the pattern, in every instance is replaced, and at least one
/// is. Other entries are read from the map as before. None of the instructions belongs to a call.
///
/// # Errors
/// Unknown names, names that are taken, places with gaps or of rows of different lengths, a map that is
/// no input of integers with these columns, iterations that may have no block, no entry of the blocks.
///
/// # Elsewhere
/// Inspector and executor in the sparse polyhedral framework.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PassBlocks {
    /// The input of integers.
    pub map: String,
    /// The loop over blocks.
    pub at: String,
    /// The first column of the pattern.
    pub first: i64,
    /// The place of each entry of a block among its numbers, row by row.
    pub places: Vec<Vec<u32>>,
}

impl PassBlocks {
    /// Passes the numbers of `map` by blocks of rows, one an iteration of `at`, whose columns from `first`
    /// on have these places.
    pub fn new(map: impl Into<String>, at: impl Into<String>, first: i64, places: Vec<Vec<u32>>) -> Self {
        Self { map: map.into(), at: at.into(), first, places }
    }

    /// The numbers, and the input that has them.
    ///
    /// # Errors
    /// As the step.
    pub fn numbers(&self, kernel: &Kernel) -> Result<BlockNumbers, Refusal> {
        self.check(&Analysis::of(kernel)).map(|proof| proof.numbers)
    }

    fn name(&self, what: &str) -> String {
        format!("{}_{what}_{}", self.map, self.first)
    }

    /// Rows and columns of the pattern.
    fn extents(&self) -> [i64; 2] {
        [self.places.len() as i64, self.places.first().map_or(0, Vec::len) as i64]
    }
}

/// The pattern of places of a step.
pub(super) fn pattern(places: &[Vec<u32>]) -> Result<BlockPattern, Refusal> {
    let rows = places.iter().map(|row| row.iter().map(|place| *place as usize).collect()).collect();
    BlockPattern::new(rows).map_err(|e| Refusal::argument("places", e.to_string(), "the places of a block"))
}

impl fmt::Display for PassBlocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self { map, at, first, .. }, [rows, columns]) = (self, self.extents());
        write!(
            f,
            "pass the numbers of {rows} rows and {columns} columns of `{map}` in `{at}`, from {first} on"
        )
    }
}

/// What is computed before has to be there.
const KNOWN: Obligation = Obligation::new(
    "pass_blocks.known",
    "the map is an input of integers, `[rows, columns]`, whose constant columns hold those of the pattern",
);

/// `{ at : at < 0 or k*at + k > rows }` is empty.
const BLOCKS: Obligation =
    Obligation::new("pass_blocks.blocks", "each iteration has a whole block of the map");

/// `{ instances : r < k*at or r >= k*(at + 1) or column < first or column >= first + length }` is empty.
const IN_BLOCKS: Obligation = Obligation::new(
    "pass_blocks.in_blocks",
    "an entry of the map has a row of the block and a column of the pattern in every instance",
);

/// Entries of a map in blocks.
pub struct InBlocks {
    at: InameId,
    map: VarId,
    /// Row and column of the entries that are replaced, by instruction.
    entries: Vec<(InsnId, Vec<[Affine; 2]>)>,
    numbers: BlockNumbers,
}

impl Primitive for PassBlocks {
    const NAME: &'static str = "pass_blocks";
    const SUMMARY: &'static str = "Passes the numbers of blocks of rows of a map once each.";

    type Proof = InBlocks;
    /// The numbers and the table of places.
    type Made = [Array; 2];

    const OBLIGATIONS: &'static [Obligation] = &[KNOWN, BLOCKS, IN_BLOCKS, NOT_CALLED];
    const DEFINES: bool = true;

    fn check(&self, analysis: &Analysis) -> Result<InBlocks, Refusal> {
        let (kernel, poly) = (analysis.kernel(), analysis.polyhedral());
        let at = lookup::tree_loop(kernel, &self.at)?;
        let map = lookup::var(kernel, &self.map)?;
        let pattern = pattern(&self.places)?;
        if !(0..=MAX_COLUMNS).contains(&self.first) {
            return Err(Refusal::argument("first", format!("{}", self.first), "0 to 2^20"));
        }
        let columns = self.check_known(kernel, map)?;
        let mut entries = Vec::new();
        for s in insns_of(body_of(kernel, at)?) {
            let mut found = Vec::new();
            for entry in entries_of(poly, s, map) {
                if self.is_in_block(poly, s, at, &entry)? {
                    found.push(entry);
                }
            }
            if !found.is_empty() {
                NOT_CALLED.require(kernel.insns[s].callee.is_none(), || {
                    format!("`{}` belongs to a call; inline the call first", kernel.insns[s].name)
                })?;
                entries.push((s, found));
            }
        }
        let [rows, length] = self.extents();
        let first = IN_BLOCKS.find(entries.first(), || {
            format!(
                "no entry of `{}` has one of {rows} rows of an iteration of `{}` and a column from {} to {} in all \
                 instances of its instruction; split the loops over rows and columns there",
                self.map,
                self.at,
                self.first,
                self.first + length - 1
            )
        })?;
        self.check_blocks(poly, at, first.0, map)?;
        for name in [self.name("blocks"), self.name("places")] {
            lookup::free(kernel, &name)?;
        }
        let numbers = BlockNumbers {
            map: self.map.clone(),
            columns: size(columns, kernel)?,
            first: self.first as usize,
            pattern,
            numbers: self.name("blocks"),
        };
        Ok(InBlocks { at, map, entries, numbers })
    }

    fn edit(&self, kernel: &mut Kernel, proof: &InBlocks) -> [Array; 2] {
        let [rows, length] = self.extents();
        let (ty, all) = (kernel.vars[proof.map].ty, &kernel.vars[proof.map].shape[0]);
        let shape = vec![Affine::constant(proof.numbers.pattern.count() as i64), all.floor_div(rows)];
        let kind = VarKind::Argument(Direction::In);
        let numbers = Variable::new(&proof.numbers.numbers, ty, kind, shape, AddressSpace::Global);
        let numbers = kernel.vars.push(numbers);
        let kind = VarKind::Table(TableData::int(self.places.iter().flatten().map(|p| i64::from(*p))));
        let shape = [rows, length].map(Affine::constant).to_vec();
        let places = Variable::new(self.name("places"), ScalarType::I32, kind, shape, AddressSpace::Global);
        let places = kernel.vars.push(places);
        let first_row = Affine::iname(proof.at).times(rows);
        for (s, entries) in &proof.entries {
            kernel.insns[*s].map_expressions(&mut |e| {
                let known = entry_of(&e, proof.map).filter(|entry| entries.contains(entry));
                let Some([row, column]) = known else { return e };
                let place = [row.minus(&first_row), column.plus_constant(-self.first)];
                let place = Expr::load(places, place.map(|index| Expr::from_affine(&index)));
                Expr::load(numbers, [place, Expr::Iname(proof.at)])
            });
        }
        [numbers, places].map(|v| Array::named(&kernel.vars[v].name))
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let is_map = |v: &Variable| {
            let has_columns = v.shape.len() == 2 && v.shape[1].as_constant().is_some();
            v.kind == VarKind::Argument(Direction::In) && v.ty.is_exact() && has_columns
        };
        let map = p.of(&draw::vars(kernel, is_map))?;
        // places of which none is taken twice: a map that was drawn repeats no numbers
        let (first, rows, columns) = (p.between(0, 1), p.among([1, 2]), p.among([1, 2]));
        let places: Vec<Vec<u32>> = (0..rows).map(|r| (r * columns..(r + 1) * columns).collect()).collect();
        let all = draw::loops(kernel).into_iter().map(|at| Self::new(&map, at, first, places.clone()));
        draw::possible(kernel, all.collect(), p)
    }

    fn definition(&self, kernel: &Kernel) -> Result<Option<Definition>, Refusal> {
        self.numbers(kernel).map(|numbers| Some(Definition::Blocks(numbers)))
    }
}

/// More columns than a map of degrees of freedom has.
const MAX_COLUMNS: i64 = 1 << 20;

impl PassBlocks {
    /// The number of columns.
    fn check_known(&self, kernel: &Kernel, map: VarId) -> Result<i64, Refusal> {
        let (data, [_, length]) = (&kernel.vars[map], self.extents());
        let end = self.first + length;
        let columns = match &data.shape[..] {
            [_, columns] => columns.as_constant().filter(|columns| end <= *columns),
            _ => None,
        };
        let given = data.kind == VarKind::Argument(Direction::In) && data.ty.is_exact();
        let known = columns.filter(|_| given);
        KNOWN
            .find(known.as_ref(), || {
                format!("`{}` is no input of integers with {end} columns or more; name one that is", self.map)
            })
            .copied()
    }

    fn check_blocks(&self, poly: &Polyhedral, at: InameId, s: InsnId, map: VarId) -> Result<(), Refusal> {
        let loops: Vec<InameId> =
            poly.loops(s).iter().copied().take_while(|l| *l != at).chain([at]).collect();
        let ([rows, _], block) = (self.extents(), Affine::iname(at));
        let left = poly.kernel.vars[map].shape[0].minus(&block.times(rows)).plus_constant(-rows);
        let whole = all_hold(poly, &loops, [block, left])?;
        BLOCKS.decide(whole, || {
            let map = &poly.kernel.vars[map].name;
            format!(
                "`{}` may have iterations without a whole block of {rows} rows of `{map}`; assume that {rows} \
                 divides the rows, and split their loop by it",
                self.at
            )
        })
    }

    fn is_in_block(
        &self,
        poly: &Polyhedral,
        s: InsnId,
        at: InameId,
        [row, column]: &[Affine; 2],
    ) -> Result<bool, Refusal> {
        let [rows, length] = self.extents();
        let row = row.minus(&Affine::iname(at).times(rows));
        let column = column.plus_constant(-self.first);
        let left = |place: &Affine, extent: i64| Affine::constant(extent - 1).minus(place);
        let bounds = [left(&row, rows), left(&column, length), row, column];
        all_hold(poly, poly.loops(s), bounds)
    }
}

/// Whether these are never negative.
fn all_hold<const N: usize>(
    poly: &Polyhedral,
    loops: &[InameId],
    bounds: [Affine; N],
) -> Result<bool, Refusal> {
    for bound in bounds {
        if !always(poly, loops, &Constraint::NonNegative(bound))? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Row and column of an entry of a map that an expression is, if they are affine.
fn entry_of(e: &Expr, map: VarId) -> Option<[Affine; 2]> {
    let Access { index, .. } = e.as_load().filter(|access| access.var == map)?;
    let [row, column] = &index[..] else { return None };
    Some([row.as_affine()?, column.as_affine()?])
}

/// Row and column of the entries of a map that an instruction takes, which are affine in the loops
/// around it.
fn entries_of(poly: &Polyhedral, s: InsnId, map: VarId) -> Vec<[Affine; 2]> {
    let (loops, mut found) = (poly.loops(s), Vec::new());
    for e in poly.kernel.insns[s].expressions() {
        e.for_each(&mut |e| {
            let Some(entry) = entry_of(e, map).filter(|entry| !found.contains(entry)) else { return };
            let mut known = true;
            for index in &entry {
                index.for_each_symbol(&mut |atom| {
                    if let Atom::Iname(iname) = atom {
                        known &= loops.contains(iname);
                    }
                });
            }
            if known {
                found.push(entry);
            }
        });
    }
    found
}
