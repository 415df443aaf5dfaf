//! Reads and updates the elements that a block of iterations reaches through a map once each.

pub use crate::listed_elements::ListedElements;
use crate::listed_elements::{ExclusiveUpdates, ListedUpdates, Sweep, put_around};
use kingpost_analysis::Analysis;
use kingpost_analysis::polyhedral::Polyhedral;
use kingpost_ir::neutral::neutral;
use kingpost_ir::{
    Access, AddressSpace, Affine, Assumption, BinaryOp, BlockLists, Constraint, Direction, ExclusiveItems,
    Expr, InameId, Insn, InsnId, InverseLists, Kernel, ScalarType, UpdateOp, VarId, VarKind, Variable,
    WriteOp,
};
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::expected::Expected;
use kingpost_steps::keeps::Keeps;
use kingpost_steps::lists::{Definition, ListNames};
use kingpost_steps::lookup;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::elements::{NO_RULE, check_no_rule};
use kingpost_steps::proofs::length::always;
use kingpost_steps::refusal::Refusal;
use kingpost_steps::run::NOT_CALLED;
use kingpost_steps::schedule::{Array, Statement};
use kingpost_steps::tree::{body_of, insns_of};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::num::NonZeroUsize;

/// Lets an iteration of the loop `at` read, or update, each element of `var` once that a block of
/// rows of a map leads to, and keep it in local memory meanwhile.
///
/// # Rewrite
/// ```text
/// for b in 0..n                          =>  for b in 0..n
///   for r in 0..2                              for … in 0..6
///     for i in 0..3                              fetch_u_items: u_items[…] = u[map_items[b, …]]
///       s: a[…] = u[map[2*b + r, i]]           for r in 0..2
///                                                for i in 0..3
///                                                  s: a[…] = u_items[map_numbers[i, 2*b + r]]
/// ```
/// Updates go to a temporary that starts from the neutral element, and `map_counts[b]` elements of it
/// are joined to the array after them. The lists are inputs that are computed from the map before
/// the launch ([`ListElements::lists`]). That they are those of the map is assumed, `lists(map,
/// map_items, map_counts, map_numbers, 2)`, and checked on the real ones where a launch asks for it.
/// A second step with the same map takes the same lists.
///
/// With `places`, the lists say where each number occurs, and updates need not meet: each has an
/// element of a temporary of its own, and after them the elements of each number are summed.
/// ```text
/// for b in 0..n                       =>  for b in 0..n
///   for r in 0..2                           for start_y_parts_0 in 0..6
///     for i in 0..3                           start_y_parts: y_parts[…] = 0.0
///       s: y[map[…, i]] += a[…, i]          for r in 0..2
///                                             for i in 0..3
///                                               s: y_parts[r + 2*i] += a[…, i]
///                                           for store_y_parts_0 in 0..6
///                                             first_y_parts: … = map_starts[…]
///                                             last_y_parts: … = map_starts[…]
///                                             total_y_parts: … = 0.0
///                                             for place_y_parts in …
///                                               add_y_parts: … += y_parts[map_places[…]]
///                                             store_y_parts: y[map_items[…]] += …
/// ```
/// With `exclusive`, that many items of a list at most come first that no other block has. Such an
/// element starts from the array after the neutral element, and is stored after the updates; no
/// other block touches it, so that nothing need be atomic.
/// ```text
/// start_y_items: y_items[k] = 0.0
/// fetch_y_items: y_items[k] = y[map_items[b, k]] if k < map_exclusive[b]
/// …
/// keep_y_items: y[map_items[b, k]] = y_items[k] if k < map_exclusive[b]
/// store_y_items: y[map_items[b, k + 4]] += y_items[k + 4] if 4 <= k + 4 and k + 4 < map_counts[b]
/// ```
/// With `short`, numbers, starts and places have 16 bits, which halves the memory that they take;
/// a block has at most 32,767 of them then. Setup refuses a mesh of which a block reaches more than
/// `capacity` elements.
///
/// # Precondition
/// Inside `at`, each access to `var` is `var[map[r, i], …]`, with `map` an input of a constant
/// number of columns and further axes of constant extents. Rows are those of the block, `block*at <=
/// r < block*(at + 1)` in every instance, and blocks are blocks of the map, `0 <= block*at < rows`.
/// Either all accesses read and nothing inside `at` writes `var`, or all are updates by one operator,
/// and `var` is an `inout` argument, so that elements in a list that nothing updates are defined. No
/// rule reads `var`, and none of the instructions belongs to a call. If loops are on axes, the
/// placement must hold.
///
/// # Errors
/// Unknown names, names that are taken, no access through a map, an access in another way with its
/// instruction, rows that may be of another block, lists of other capacity.
///
/// # Elsewhere
/// OP2 stages indirect data of a block in shared memory; inspector and executor in the sparse
/// polyhedral framework.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListElements {
    /// The array.
    pub var: String,
    /// The loop over blocks.
    pub at: String,
    /// Rows of the map in a block.
    pub block: i64,
    /// Elements that a list has room for.
    pub capacity: i64,
    /// Whether the places of each number are passed, too, by which updates are summed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub places: bool,
    /// Whether numbers and places have 16 bits.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub short: bool,
    /// Items before each list that no other block has, if they are told apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exclusive: Option<i64>,
}

impl ListElements {
    /// Lists the elements of `var` that an iteration of `at` reaches, at most `capacity`, from
    /// `block` rows of a map.
    pub fn new(var: impl Into<String>, at: impl Into<String>, block: i64, capacity: i64) -> Self {
        Self { var: var.into(), at: at.into(), block, capacity, places: false, short: false, exclusive: None }
    }

    /// The same by places of numbers.
    #[must_use]
    pub fn with_places(mut self) -> Self {
        self.places = true;
        self
    }

    /// The same with numbers and places of 16 bits.
    #[must_use]
    pub fn with_short_numbers(mut self) -> Self {
        self.short = true;
        self
    }

    /// The same with room for items in front that no other block has.
    #[must_use]
    pub fn with_exclusive(mut self, room: i64) -> Self {
        self.exclusive = Some(room);
        self
    }

    /// The lists that the step adds to a kernel; none if it takes those of an earlier step.
    ///
    /// # Errors
    /// As the step.
    pub fn lists(&self, kernel: &Kernel) -> Result<Option<ListNames>, Refusal> {
        let proof = self.check(&Analysis::of(kernel))?;
        Ok(proof.known.is_none().then_some(proof.names))
    }

    fn names(&self, kernel: &Kernel, map: VarId, columns: i64) -> Result<ListNames, Refusal> {
        let [columns, block, capacity] = [columns, self.block, self.capacity].map(|n| size(n, kernel));
        let names = ListNames::of(&kernel.vars[map].name, columns?, block?, capacity?.get(), self.places);
        let names = if self.short { names.with_short_numbers() } else { names };
        Ok(match self.exclusive {
            Some(room) => names.with_exclusive(size(room, kernel)?.get()),
            None => names,
        })
    }
}

impl fmt::Display for ListElements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { var, at, block, capacity, places, short, exclusive } = self;
        let places = if *places { ", with their places" } else { "" };
        let short = if *short { ", in 16 bits" } else { "" };
        write!(
            f,
            "list up to {capacity} elements of `{var}` for {block} rows of a map in `{at}`{places}{short}"
        )?;
        exclusive.iter().try_for_each(|room| write!(f, ", {room} of them exclusive"))
    }
}

/// The lists are those of one map.
const THROUGH_MAP: Obligation = Obligation::new(
    "list_elements.through_map",
    "inside the loop the array is accessed by entries of one map that is an input, with constant extents",
);

/// `{ instances : r < block*at or r >= block*(at + 1) }` is empty.
const ROWS: Obligation =
    Obligation::new("list_elements.rows", "rows are those of the block of the iteration");

/// `{ at : block*at < 0 or block*at >= rows }` is empty.
const BLOCKS: Obligation = Obligation::new("list_elements.blocks", "blocks are blocks of the map");

/// A copy would miss what is written meanwhile.
pub(super) const ONE_USE: Obligation =
    Obligation::new("one_use", "all accesses read, or all update by one operator");

/// An element in a list that nothing updates is joined with the neutral element.
pub(super) const GIVEN: Obligation =
    Obligation::new("given", "an array that is updated is an `inout` argument");

/// The lists of a map have one size.
const SAME_LISTS: Obligation = Obligation::new(
    "list_elements.same_lists",
    "steps with one map have one block, one capacity, one type of numbers and one room for exclusive items, and the first has places if a later \
     one has",
);

/// The accesses of one loop through a map.
pub struct Listed {
    at: InameId,
    var: VarId,
    map: VarId,
    insns: Vec<InsnId>,
    /// The operator of updates; none if all read.
    op: Option<UpdateOp>,
    atomic: bool,
    known: Option<BlockLists>,
    /// Columns of the map.
    columns: i64,
    /// Names of lists, which are new if none are known.
    names: ListNames,
}

impl Primitive for ListElements {
    const NAME: &'static str = "list_elements";
    const SUMMARY: &'static str =
        "Reads and updates what a block of iterations reaches through a map once each.";

    type Proof = Listed;
    type Made = ListedElements;

    const OBLIGATIONS: &'static [Obligation] =
        &[THROUGH_MAP, ONE_USE, NO_RULE, NOT_CALLED, ROWS, BLOCKS, GIVEN, SAME_LISTS];
    const KEEPS: Keeps = Keeps::REASSOCIATED;
    const DEFINES: bool = true;

    fn check(&self, analysis: &Analysis) -> Result<Listed, Refusal> {
        let (kernel, poly) = (analysis.kernel(), analysis.polyhedral());
        let at = lookup::tree_loop(kernel, &self.at)?;
        let var = lookup::var(kernel, &self.var)?;
        for (name, value) in [("block", self.block), ("capacity", self.capacity)] {
            if !(1..=MAX_ELEMENTS).contains(&value) {
                return Err(Refusal::argument(name, format!("{value}"), "1 to 2^20"));
            }
        }
        self.check_exclusive()?;
        check_no_rule(kernel, var)?;
        let inside = insns_of(body_of(kernel, at)?);
        let (mut insns, mut maps, mut uses) = (Vec::new(), BTreeSet::new(), Uses::default());
        for s in inside {
            let insn = &kernel.insns[s];
            let accesses = uses.of(insn, var);
            for access in &accesses {
                let (map, row) =
                    THROUGH_MAP.find(through(kernel, access, poly.loops(s)), || stray(kernel, s, var))?;
                maps.insert(map);
                self.check_row(poly, s, at, &row)?;
            }
            if accesses.is_empty() {
                continue;
            }
            NOT_CALLED.require(insn.callee.is_none(), || {
                format!("`{}` belongs to a call; inline the call first", insn.name)
            })?;
            insns.push(s);
        }
        let op = uses.one(kernel, var)?;
        let atomic = uses.atomic;
        let one = maps.iter().next().filter(|_| maps.len() == 1);
        let map = *THROUGH_MAP.find(one, || {
            let found = if maps.is_empty() { "nothing" } else { "more than one map" };
            format!(
                "`{}` accesses `{}` through {found}; name a loop with accesses through one map",
                self.at, self.var
            )
        })?;
        self.check_blocks(poly, at, insns[0], map)?;
        let columns = kernel.vars[map].shape[1].as_constant().expected("number of columns", kernel)?;
        self.check_short(columns)?;
        let known = self.known_lists(kernel, map)?;
        let temporary = if self.places && op.is_some() { self.parts() } else { self.temporary() };
        let verbs = ["fetch", "start", "store", "keep", "first", "last", "total", "add"];
        let mut new: Vec<String> = verbs.map(|verb| format!("{verb}_{temporary}")).into();
        new.push(temporary);
        let names = self.names(kernel, map, columns)?;
        if known.is_none() {
            new.extend(Definition::Lists(names.clone()).results());
        }
        new.iter().try_for_each(|name| lookup::free(kernel, name))?;
        Ok(Listed { at, var, map, insns, op, atomic, known, columns, names })
    }

    fn edit(&self, kernel: &mut Kernel, proof: &Listed) -> ListedElements {
        let lists = proof.known.clone().unwrap_or_else(|| self.add_lists(kernel, proof));
        if let (Some(op), Some(inverse), true) = (proof.op, lists.inverse, self.places) {
            let updates = ListedUpdates {
                at: proof.at,
                var: proof.var,
                insns: proof.insns.clone(),
                op,
                atomic: proof.atomic,
                lists,
                inverse,
                columns: proof.columns,
                capacity: self.capacity,
            };
            return updates.sum_by_places(kernel, &self.parts());
        }
        let array = kernel.vars[proof.var].clone();
        let shape = [vec![Affine::constant(self.capacity)], array.shape[1..].to_vec()].concat();
        let name = self.temporary();
        let (kind, space) = (VarKind::Temporary, AddressSpace::Local);
        let temporary = kernel.vars.push(Variable::new(&name, array.ty.loaded(), kind, shape, space));
        self.redirect(kernel, proof, temporary, &lists);
        if let (Some(op), Some(items)) = (proof.op, lists.exclusive) {
            let (at, var, atomic, capacity) = (proof.at, proof.var, proof.atomic, self.capacity);
            let updates = ExclusiveUpdates { at, var, temporary, op, atomic, lists: &lists, items, capacity };
            return updates.put_around(kernel, &proof.insns);
        }
        let assign = WriteOp::Assign;
        let (verb, op) = if proof.op.is_some() { ("start", None) } else { ("fetch", Some(assign)) };
        let sweep = |kernel: &mut Kernel, verb: &str| {
            Sweep::new(kernel, &format!("{verb}_{name}"), &array, self.capacity)
        };
        let first = sweep(kernel, verb);
        let (in_temporary, in_array) =
            (first.access(temporary, None), first.access(proof.var, Some((&lists, proof.at))));
        let value = match proof.op {
            Some(op) => neutral(op, array.ty),
            None => Expr::Load(in_array),
        };
        let fill = first.loops(kernel);
        let nodes = first.nodes(kernel, in_temporary, op.unwrap_or(assign), value, None);
        let (mut join, mut store) = (Vec::new(), None);
        let mut behind = Vec::new();
        if let Some(op) = proof.op {
            let last = sweep(kernel, "store");
            let counted = Expr::load(lists.counts, [Expr::Iname(proof.at)]);
            let listed = Expr::binary(BinaryOp::Lt, last.inames[0], counted);
            let lhs = last.access(proof.var, Some((&lists, proof.at)));
            let value = Expr::Load(last.access(temporary, None));
            join = last.loops(kernel);
            store = Some(Statement::named(&last.name));
            let op = WriteOp::Update { op, atomic: proof.atomic };
            behind = last.nodes(kernel, lhs, op, value, Some(listed));
        }
        put_around(kernel, proof.at, &proof.insns, nodes, behind);
        ListedElements { array: Array::named(name), fill, join, store, exclusive: [Vec::new(), Vec::new()] }
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let arrays = draw::vars(kernel, |v| matches!(v.kind, VarKind::Argument(_)) && v.ty.is_real());
        let block = p.among([1, 2, 1, 3, 1, 4]);
        let mut all = Vec::new();
        for at in draw::loops(kernel) {
            all.extend(arrays.iter().map(|var| Self::new(var, &at, block, 4 * block)));
        }
        let (short, exclusive) = (p.among([false, true]), p.among([None, Some(block)]));
        for step in &mut all {
            (step.short, step.exclusive) = (short, exclusive);
        }
        draw::possible(kernel, all, p)
    }

    fn definition(&self, kernel: &Kernel) -> Result<Option<Definition>, Refusal> {
        Ok(self.lists(kernel)?.map(Definition::Lists))
    }
}

/// A number of columns, rows or elements, which the check has found positive.
pub(super) fn size(n: i64, kernel: &Kernel) -> Result<NonZeroUsize, Refusal> {
    usize::try_from(n).ok().and_then(NonZeroUsize::new).expected("positive size of lists", kernel)
}

/// Largest block and list.
const MAX_ELEMENTS: i64 = 1 << 20;

/// The map and the row of an access `var[map[row, column], …]`.
fn through(kernel: &Kernel, access: &Access, loops: &[InameId]) -> Option<(VarId, Affine)> {
    let Some(Expr::Load(entry)) = access.index.first() else { return None };
    let [row, _] = &entry.index[..] else { return None };
    let further = kernel.vars[access.var].shape.get(1..)?;
    let constant = further.iter().all(|e| e.as_constant().is_some_and(|e| e >= 1));
    let map = &kernel.vars[entry.var];
    let columns = map.shape[1].as_constant().is_some_and(|columns| columns >= 1);
    let given = columns && map.kind == VarKind::Argument(Direction::In) && map.ty.is_exact();
    let row = row.as_affine()?;
    let mut known = true;
    row.for_each_symbol(&mut |atom| {
        if let kingpost_ir::Atom::Iname(iname) = atom {
            known &= loops.contains(iname);
        }
    });
    (constant && given && known).then_some((entry.var, row))
}

fn stray(kernel: &Kernel, insn: InsnId, var: VarId) -> String {
    format!(
        "`{}` accesses `{}` otherwise than by `map[row, column]` of an input and in constant extents; name a \
         loop without it",
        kernel.insns[insn].name, kernel.vars[var].name
    )
}

/// How instructions use an array.
#[derive(Default)]
pub(super) struct Uses {
    read: bool,
    writes: BTreeSet<WriteOp>,
    /// Whether an update is atomic.
    pub(super) atomic: bool,
}

impl Uses {
    /// The accesses of an instruction to the array, which are counted.
    pub(super) fn of<'k>(&mut self, insn: &'k Insn, var: VarId) -> Vec<&'k Access> {
        let mut accesses: Vec<&Access> = insn.reads().into_iter().filter(|a| a.var == var).collect();
        self.read |= !accesses.is_empty();
        if insn.lhs.var == var {
            accesses.push(&insn.lhs);
            self.writes.insert(insn.op);
            self.atomic |= insn.is_atomic();
        }
        accesses
    }

    /// The operator of updates, if there are any.
    pub(super) fn one(&self, kernel: &Kernel, var: VarId) -> Result<Option<UpdateOp>, Refusal> {
        let data = &kernel.vars[var];
        let (name, mut ops) = (&data.name, BTreeSet::new());
        for write in &self.writes {
            match write {
                WriteOp::Assign => {
                    return Err(ONE_USE.unfit(format!("`{name}` is assigned; needed updates")));
                }
                WriteOp::Update { op, .. } if !op.commutes() => {
                    let symbol = op.update_symbol();
                    let found = format!("`{name}` is updated by `{symbol}`, whose operands keep their order");
                    return Err(ONE_USE.unfit(found));
                }
                WriteOp::Update { op, .. } => ops.insert(*op),
            };
        }
        ONE_USE.require(ops.is_empty() || (!self.read && ops.len() == 1), || {
            format!(
                "`{name}` is updated and read, or by two operators, in the loop; name a loop further inside"
            )
        })?;
        let op = ops.into_iter().next();
        GIVEN.require(op.is_none() || data.kind == VarKind::Argument(Direction::InOut), || {
            format!("`{name}` is no `inout` argument; a list may name elements that nothing else defines")
        })?;
        Ok(op)
    }
}

impl ListElements {
    fn temporary(&self) -> String {
        format!("{}_items", self.var)
    }

    fn parts(&self) -> String {
        format!("{}_parts", self.var)
    }

    fn check_row(&self, poly: &Polyhedral, s: InsnId, at: InameId, row: &Affine) -> Result<(), Refusal> {
        let place = row.minus(&Affine::iname(at).times(self.block));
        let last = Affine::constant(self.block - 1).minus(&place);
        let mut within = true;
        for bound in [place, last] {
            within &= always(poly, poly.loops(s), &Constraint::NonNegative(bound))?;
        }
        ROWS.decide(within, || {
            format!(
                "`{}` may take rows of the map that are not among the {} of an iteration of `{}`; split the loop \
                 over rows by {}",
                poly.kernel.insns[s].name, self.block, self.at, self.block
            )
        })
    }

    fn check_blocks(&self, poly: &Polyhedral, at: InameId, s: InsnId, map: VarId) -> Result<(), Refusal> {
        let loops: Vec<InameId> =
            poly.loops(s).iter().copied().take_while(|l| *l != at).chain([at]).collect();
        let first = Affine::iname(at).times(self.block);
        let left = poly.kernel.vars[map].shape[0].minus(&first).plus_constant(-1);
        let mut within = true;
        for bound in [first, left] {
            within &= always(poly, &loops, &Constraint::NonNegative(bound))?;
        }
        BLOCKS.decide(within, || {
            let map = &poly.kernel.vars[map].name;
            format!("`{}` may have iterations that are no block of {} rows of `{map}`", self.at, self.block)
        })
    }

    /// There is room for exclusive items and for others, and places are not asked for as well.
    fn check_exclusive(&self) -> Result<(), Refusal> {
        let Some(room) = self.exclusive else { return Ok(()) };
        if self.places {
            return Err(Refusal::argument("exclusive", "exclusive items with places", "one of both"));
        }
        if !(1..self.capacity).contains(&room) {
            return Err(Refusal::argument("exclusive", format!("{room}"), "1 to less than `capacity`"));
        }
        Ok(())
    }

    /// Numbers and places fit their type.
    fn check_short(&self, columns: i64) -> Result<(), Refusal> {
        let all = if self.places { columns.saturating_mul(self.block) } else { 0 };
        if self.short && self.capacity.max(all) > i16::MAX.into() {
            let found = if all > self.capacity {
                format!("{all} places")
            } else {
                format!("{} numbers", self.capacity)
            };
            return Err(Refusal::argument("short", found, "up to 32767 of a block"));
        }
        Ok(())
    }

    /// The lists of an earlier step.
    fn known_lists(&self, kernel: &Kernel, map: VarId) -> Result<Option<BlockLists>, Refusal> {
        for assumption in &kernel.assumptions {
            let Assumption::Lists(lists) = assumption else { continue };
            if lists.map != map {
                continue;
            }
            let capacity = kernel.vars[lists.items].shape.last().and_then(Affine::as_constant);
            SAME_LISTS.require(lists.block == self.block && capacity == Some(self.capacity), || {
                format!("`{}` has lists for another block or of another capacity", kernel.vars[map].name)
            })?;
            let room = lists.exclusive.map(|exclusive| exclusive.room);
            SAME_LISTS.require(room == self.exclusive, || {
                format!("`{}` has lists with room for other exclusive items", kernel.vars[map].name)
            })?;
            SAME_LISTS.require(lists.is_short(kernel) == self.short, || {
                format!("`{}` has lists with numbers of another type", kernel.vars[map].name)
            })?;
            SAME_LISTS.require(!self.places || lists.inverse.is_some(), || {
                format!(
                    "the lists of `{}` have no places; take the step with places first",
                    kernel.vars[map].name
                )
            })?;
            return Ok(Some(lists.clone()));
        }
        Ok(None)
    }

    fn add_lists(&self, kernel: &mut Kernel, proof: &Listed) -> BlockLists {
        let (names, map) = (proof.names.clone(), proof.map);
        let (ty, shape) = (kernel.vars[map].ty, kernel.vars[map].shape.clone());
        let count = ty.loaded();
        let number = if self.short { ScalarType::I16 } else { count };
        let blocks = shape[0].plus_constant(self.block - 1).floor_div(self.block);
        let mut add = |name: String, ty: ScalarType, shape: Vec<Affine>| {
            let (kind, space) = (VarKind::Argument(Direction::In), AddressSpace::Global);
            kernel.vars.push(Variable::new(name, ty, kind, shape, space))
        };
        let items = add(names.items, ty, vec![blocks.clone(), Affine::constant(self.capacity)]);
        let counts = add(names.counts, count, vec![blocks.clone()]);
        let numbers = add(names.numbers, number, vec![shape[1].clone(), shape[0].clone()]);
        let inverse = names.inverse.map(|[starts, places]| InverseLists {
            starts: add(starts, number, vec![blocks.clone(), Affine::constant(self.capacity + 1)]),
            places: add(places, number, vec![blocks.clone(), shape[1].times(self.block)]),
        });
        let exclusive = names
            .exclusive
            .zip(self.exclusive)
            .map(|((name, _), room)| ExclusiveItems { counts: add(name, count, vec![blocks]), room });
        let lists = BlockLists { map, items, counts, numbers, inverse, block: self.block, exclusive };
        kernel.assumptions.push(Assumption::Lists(lists.clone()));
        lists
    }

    /// Accesses go to the temporary, by the numbers of their elements.
    fn redirect(&self, kernel: &mut Kernel, proof: &Listed, temporary: VarId, lists: &BlockLists) {
        let moved = |access: &Access| {
            let mut index = access.index.clone();
            if let Some(Expr::Load(entry)) = index.first().cloned()
                && let [row, column] = &entry.index[..]
            {
                index[0] = Expr::load(lists.numbers, [column.clone(), row.clone()]);
            }
            Access::new(temporary, index)
        };
        for s in &proof.insns {
            let insn = &mut kernel.insns[*s];
            insn.map_expressions(&mut |e| match e {
                Expr::Load(access) if access.var == proof.var => Expr::Load(moved(&access)),
                other => other,
            });
            if insn.lhs.var == proof.var {
                insn.lhs = moved(&insn.lhs);
            }
        }
    }
}
