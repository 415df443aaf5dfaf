//! The pairs of an owned row and a cell: the loop over them, and where their sums go.

use super::RowOwners;
use super::builder::Builder;
use super::owned::{
    Own, OwnDof, OwnedRows, Owners, PackedRow, Pair, PairCell, RowColumns, Rows, Turned, TurnedPair,
};
use crate::form::FormError;
use kingpost_fem::sparse::SLICE;
use kingpost_ir::{Access, Affine, BinaryOp, Domain, Expr, InsnId, VarId};

/// Columns of a row that are copied to where they are read from, at most: what sixteen work-items
/// copy at once. Copies of longer rows take longer than what they save
/// (`results/h200/trotter_2023.md`).
const COPIED: usize = 16;

/// An owner whose rows are cleared.
pub(super) struct Opened {
    pub(super) owner: Expr,
    pub(super) rows: Rows,
    /// Its first pair, and how many it has.
    pub(super) pairs: [VarId; 2],
    /// The columns of its first row, where they stand for maps.
    pub(super) columns: Option<RowColumns>,
    /// What was read before the rows of its group were cleared.
    pub(super) ahead: Option<Ahead>,
}

/// What is read of the owners of a group before its rows are cleared and its columns copied: what
/// waits for these does not wait for it then.
pub(super) struct Ahead {
    /// The first pair of each owner, how many it has, and where its row begins.
    lists: [VarId; 3],
    /// The first two numbers, of strips.
    pub(super) numbers: Option<[VarId; 2]>,
    /// Which of the owners it is.
    pub(super) at: Expr,
}

impl PackedRow {
    /// Where the row begins in the rows of the group.
    fn begin(&self) -> Expr {
        Expr::binary(BinaryOp::Sub, Expr::scalar(self.first), Expr::scalar(self.group[0]))
    }
}

impl Opened {
    /// Where a pair stands.
    pub(super) fn place(&self, turn: Expr) -> Expr {
        Expr::scalar(self.pairs[0]) + Expr::Int(SLICE as i64) * turn
    }

    /// Makes a cell of the owner the entity.
    pub(super) fn enter(&self, w: &mut Builder<'_>, (entity, own): (Expr, Expr), cell: PairCell) {
        w.pair = Some(Pair { owner: self.owner.clone(), rows: self.rows.clone(), own, cell });
        w.entity = Some(entity);
    }
}

/// Opens the loop over owners, and clears the rows of one.
pub(super) fn open_owner(w: &mut Builder<'_>, owned: &OwnedRows, owners: &Owners) -> Opened {
    let is_copied = owners.longest <= COPIED;
    let copied = owned.turned.filter(|_| is_copied);
    let (owner, rows, copy, ahead) = match owned.are_packed {
        true => open_group(w, owned, owners, copied),
        false => {
            let counter = w.names.fresh("owner");
            note_cell(w, &counter);
            let counter = w.b.open_loop(&counter, Affine::constant(0), Affine::var(owners.count));
            let owner = owners.at(Expr::from(counter));
            let copy = copied.map(|of| copy_columns(w, owned, owners, (of, owner.clone())));
            (owner, Rows { sums: clear_rows(w, owned, owners), packed: None }, copy, None)
        }
    };
    let [first, count] = ["first_pair", "pairs"].map(|stem| w.integer(stem));
    let [find, number] = match &ahead {
        Some(Ahead { lists, at, .. }) => [lists[0], lists[1]].map(|list| Expr::load(list, [at.clone()])),
        None => [owned.firsts, owned.counts].map(|list| Expr::load(list, [owner.clone()])),
    };
    w.assign("find_pairs", Access::scalar(first), find);
    w.assign("count_pairs", Access::scalar(count), number);
    let first_column = match &rows.packed {
        // of columns that are copied, those of the group are
        Some(packed) => {
            let known = ahead.as_ref().map(|ahead| Expr::load(ahead.lists[2], [ahead.at.clone()]));
            let first = known.unwrap_or(Expr::scalar(packed.first));
            Some(if is_copied { first - Expr::scalar(packed.group[0]) } else { first })
        }
        None if is_copied => None,
        None => Some(Expr::load(owned.row_starts, [row_of(owned, owner.clone(), Expr::Int(0))])),
    };
    let first_column = first_column.filter(|_| owned.turned.is_some()).map(|first_column| {
        let first = w.integer("first_column");
        w.assign("find_columns", Access::scalar(first), first_column);
        first
    });
    let columns = owned.turned.map(|of| RowColumns {
        // where no row is copied, those of all rows are read
        columns: copy.unwrap_or(of.columns),
        first: first_column,
        block: owned.columns[1],
        first_vertex: of.first_vertex,
    });
    Opened { owner, rows, pairs: [first, count], columns, ahead }
}

/// The outermost loop is that over cells.
fn note_cell(w: &mut Builder<'_>, counter: &str) {
    if w.roles.cell.is_empty() {
        counter.clone_into(&mut w.roles.cell);
    }
}

/// Clears the rows of an owner.
fn clear_rows(w: &mut Builder<'_>, owned: &OwnedRows, owners: &Owners) -> VarId {
    let name = w.form.outputs[owned.output].name.clone();
    let rows = w.sum(owned.output, &format!("{name}_rows"), &[owned.block, owners.longest]);
    let component = w.loop_of("i_row", owned.block);
    let (_, entry) = w.loop_over("i_entry", owners.longest);
    w.assign(&format!("clear_{name}"), Access::new(rows, [component.1, entry]), Expr::from(0.0));
    w.b.close_loop();
    w.close_loop_of(component.0);
    rows
}

/// Opens the loop over groups of owners, clears their rows, which lie together as they do in the
/// matrix, copies their columns, and opens the loop over the owners of a group.
fn open_group(
    w: &mut Builder<'_>,
    owned: &OwnedRows,
    owners: &Owners,
    copied: Option<Turned>,
) -> (Expr, Rows, Option<VarId>, Option<Ahead>) {
    let size = RowOwners::GROUP as i64;
    let count = Affine::var(owners.count);
    let counter = w.names.fresh("owner_group");
    note_cell(w, &counter);
    let groups = count.plus_constant(size - 1).floor_div(size);
    let group = Affine::iname(w.b.open_loop(&counter, Affine::constant(0), groups)).times(size);
    let [next, last] = [&group.plus_constant(size), &count].map(|end| owners.at(Expr::from_affine(end)));
    let after = Expr::binary(BinaryOp::Min, next, last);
    let [begin, end] = ["first_of_group", "last_of_group"].map(|stem| w.integer(stem));
    let start = |row: Expr| Expr::load(owned.row_starts, [row]);
    w.assign("begin_group", Access::scalar(begin), start(owners.at(Expr::from_affine(&group))));
    let of_group = |w: &mut Builder<'_>| {
        let owner = w.names.fresh("owner");
        let owner = w.b.iname(owner, |owner| {
            let ends = [Affine::constant(size), count.minus(&group)];
            let ranges = ends.map(|end| Domain::range(owner, &Affine::constant(0), &end));
            ranges[0].intersect(&ranges[1])
        });
        w.b.open(owner);
        (Expr::from(owner), owners.at(Expr::from_affine(&group.plus(&Affine::iname(owner)))))
    };
    let read = of_group(w);
    let ahead = read_ahead(w, owned, read);
    w.b.close_loop();
    let name = w.form.outputs[owned.output].name.clone();
    let room = RowOwners::GROUP * owners.longest;
    let sums = w.sum(owned.output, &format!("{name}_rows"), &[room]);
    let (_, place) = w.loop_over("i_entry", room);
    w.assign(&format!("clear_{name}"), Access::new(sums, [place]), Expr::from(0.0));
    w.b.close_loop();
    let copy = copied.map(|of| copy_group(w, (of, room), begin));
    let (at, owner) = of_group(w);
    let row = bounds(w, owned, "entry", owner.clone());
    let length = w.integer("entries");
    let [first, last] = row.map(Expr::scalar);
    w.assign("count_entries", Access::scalar(length), last - first);
    let packed = PackedRow { group: [begin, end], first: row[0], length, after };
    (owner, Rows { sums, packed: Some(packed) }, copy, Some(Ahead { at, ..ahead }))
}

/// Reads what is known of an owner before its rows are cleared, by which of its group it is.
fn read_ahead(w: &mut Builder<'_>, owned: &OwnedRows, (at, owner): (Expr, Expr)) -> Ahead {
    let read = |w: &mut Builder<'_>, stem: &str, value: Expr| {
        let list = w.list(stem, RowOwners::GROUP);
        w.assign("read_ahead", Access::new(list, [at.clone()]), value);
        list
    };
    let first = read(w, "first_pairs", Expr::load(owned.firsts, [owner.clone()]));
    let count = read(w, "n_pairs", Expr::load(owned.counts, [owner.clone()]));
    let row = read(w, "first_entries", Expr::load(owned.row_starts, [owner]));
    let number = |w: &mut Builder<'_>, turn: i64| {
        let [first, count] = [first, count].map(|list| Expr::load(list, [at.clone()]));
        let pair = first + Expr::Int(SLICE as i64 * turn);
        let is_there = Expr::binary(BinaryOp::Lt, Expr::Int(turn), count);
        let held = Expr::load(owned.slots, [Expr::Int(0), pair]);
        read(w, "number", Expr::Select(Box::new(is_there), Box::new(held), Box::new(Expr::Int(0))))
    };
    let numbers = owned.are_strips.then(|| [0, 1].map(|turn| number(w, turn)));
    Ahead { lists: [first, count, row], numbers, at }
}

/// Opens the loop over owners, clears the rows of one, opens the loop over its pairs, and makes the
/// pair the entity.
pub(super) fn open_pairs(w: &mut Builder<'_>, owned: &OwnedRows, owners: &Owners) {
    let opened = open_owner(w, owned, owners);
    let [_, count] = opened.pairs;
    let own = match owners.own {
        OwnDof::At(dof) => Some(open_own(w, owned, dof)),
        OwnDof::Listed(_) => None,
    };
    let words = owned.turned.map(|_| {
        let words = w.list("words", owned.packing.words(owned.columns[0]));
        read_words(w, owned, words, (Expr::Int(0), count, opened.place(Expr::Int(0))));
        words
    });
    let turn = w.names.fresh("turn");
    let turn = Expr::from(w.b.open_loop(&turn, Affine::constant(0), Affine::var(count)));
    let mut pair = opened.place(turn.clone());
    let cell = match opened.columns.zip(words).zip(own) {
        Some(((columns, words), own)) => {
            let slots = take_slots(w, owned, words);
            let next = turn + Expr::Int(1);
            read_words(w, owned, words, (next.clone(), count, opened.place(next)));
            PairCell::Turned(TurnedPair { slots, columns, own })
        }
        None => {
            let place = w.integer("pair");
            w.assign("next_pair", Access::scalar(place), pair);
            pair = Expr::scalar(place);
            PairCell::Mapped
        }
    };
    let own = owners.own.of(pair.clone());
    opened.enter(w, (pair, own), cell);
}

/// Sums of what pairs add to the columns of the owner itself, which are in no other memory than
/// those of its work-item.
fn open_own(w: &mut Builder<'_>, owned: &OwnedRows, dof: usize) -> Own {
    let sums = clear_sums(w, owned, ("own_sums", "clear_own"), 1);
    let slot = w.integer("own_slot");
    w.assign("no_slot", Access::scalar(slot), Expr::Int(0));
    Own { dof, is_vertex: dof < w.form.cell.n_vertices(), sums, slot }
}

/// Sums of what is added to the columns of a number of degrees of freedom, cleared.
pub(super) fn clear_sums(
    w: &mut Builder<'_>,
    owned: &OwnedRows,
    (stem, clear): (&str, &str),
    dofs: usize,
) -> VarId {
    let sums = w.numbers(stem, &[owned.block, dofs * owned.columns[1]]);
    let (row, column) = (w.loop_of("i_row", owned.block), w.loop_of("i_own", dofs * owned.columns[1]));
    w.assign(clear, Access::new(sums, [row.1, column.1]), Expr::from(0.0));
    w.close_loop_of(column.0);
    w.close_loop_of(row.0);
    sums
}

/// Where the entries of a row begin and end.
fn bounds(w: &mut Builder<'_>, owned: &OwnedRows, stem: &str, row: Expr) -> [VarId; 2] {
    let [first, last] = ["first", "last"].map(|end| w.integer(&format!("{end}_{stem}")));
    let start = |row: Expr| Expr::load(owned.row_starts, [row]);
    w.assign("begin_row", Access::scalar(first), start(row.clone()));
    w.assign("end_row", Access::scalar(last), start(row + Expr::Int(1)));
    [first, last]
}

/// The row of a component of an owner.
fn row_of(owned: &OwnedRows, owner: Expr, component: Expr) -> Expr {
    match owned.block {
        1 => owner,
        n => Expr::Int(n as i64) * owner + component,
    }
}

/// Copies the columns of the rows of a group.
fn copy_group(w: &mut Builder<'_>, (turned, room): (Turned, usize), begin: VarId) -> VarId {
    let columns = w.list("group_columns", room);
    let (_, place) = w.loop_over("i_column", room);
    let at = Expr::scalar(begin) + place.clone();
    copy_column(w, turned, Access::new(columns, [place]), at);
    w.b.close_loop();
    columns
}

/// Copies a column. All places are written, so that nothing is left of other owners whatever is read.
fn copy_column(w: &mut Builder<'_>, turned: Turned, to: Access, at: Expr) {
    let n_entries = w.b.so_far().vars[turned.columns].shape[0].clone();
    let last = Expr::from_affine(&n_entries.plus_constant(-1));
    let at = Expr::binary(BinaryOp::Max, Expr::binary(BinaryOp::Min, at, last), Expr::Int(0));
    w.assign("copy_column", to, Expr::load(turned.columns, [at]));
}

/// Copies the columns of the first row of an owner, which several cells read.
fn copy_columns(
    w: &mut Builder<'_>,
    owned: &OwnedRows,
    owners: &Owners,
    (turned, owner): (Turned, Expr),
) -> VarId {
    let columns = w.list("row_columns", owners.longest);
    let first = w.integer("first_column");
    let start = Expr::load(owned.row_starts, [row_of(owned, owner, Expr::Int(0))]);
    w.assign("begin_row", Access::scalar(first), start);
    let (_, entry) = w.loop_over("i_column", owners.longest);
    copy_column(w, turned, Access::new(columns, [entry.clone()]), Expr::scalar(first) + entry);
    w.b.close_loop();
    columns
}

/// Reads the numbers that hold the places of the columns of a cell, of a pair that an owner may not
/// have: those of the next one are read before the sums of this one, which need not wait then.
fn read_words(
    w: &mut Builder<'_>,
    owned: &OwnedRows,
    words: VarId,
    (turn, count, pair): (Expr, VarId, Expr),
) {
    let (_, number) = w.loop_over("k_word", owned.packing.words(owned.columns[0]));
    let is_there = Expr::binary(BinaryOp::Lt, turn, Expr::scalar(count));
    let held = Expr::load(owned.slots, [number.clone(), pair]);
    let held = Expr::Select(Box::new(is_there), Box::new(held), Box::new(Expr::Int(0)));
    w.assign("read_slots", Access::new(words, [number]), held);
    w.b.close_loop();
}

/// Takes the places of the columns of a cell out of the numbers that hold them. Each element has one writer.
fn take_slots(w: &mut Builder<'_>, owned: &OwnedRows, words: VarId) -> VarId {
    let (n_words, per_word) = (owned.packing.words(owned.columns[0]), owned.packing.slots());
    let slots = w.list("slot", n_words * per_word);
    let word = w.integer("slots");
    let (_, number) = w.loop_over("i_word", n_words);
    w.assign("take_slots", Access::scalar(word), Expr::load(words, [number.clone()]));
    let (_, within) = w.loop_over("j_slot", per_word);
    let at = Expr::Int(per_word as i64) * number + within;
    w.assign("take_slot", Access::new(slots, [at]), first_slot(owned, word));
    close_word(w, owned, word);
    w.b.close_loop();
    slots
}

/// Adds the rows of a cell to those of the owner; after the last cell, those to the entries.
pub(super) fn scatter(w: &mut Builder<'_>, owned: &OwnedRows) -> Result<(), FormError> {
    let (cell, entity) = (w.sum_of(owned.output)?, w.entity());
    let pair = w.pair.clone().ok_or_else(|| FormError::Internal("no rows are owned".into()))?;
    let rows = &pair.rows;
    let own = match &pair.cell {
        PairCell::Turned(TurnedPair { slots, own, .. }) => {
            for [lo, hi] in [[0, own.dof], [own.dof + 1, owned.columns[0]]] {
                if lo < hi {
                    let name = w.names.fresh("j_scatter");
                    let ends = [lo, hi].map(|end| Affine::constant(end as i64));
                    let [lo, hi] = ends;
                    let column = Expr::from(w.b.open_loop(&name, lo, hi));
                    let slot = Expr::load(*slots, [column.clone()]);
                    rows.add(w, owned, (column, slot), cell);
                    w.b.close_loop();
                }
            }
            let column = Expr::Int(own.dof as i64);
            gather(w, owned, (column.clone(), Expr::Int(0)), (cell, own.sums));
            w.assign("own_slot", Access::scalar(own.slot), Expr::load(*slots, [column]));
            Some(*own)
        }
        PairCell::Mapped | PairCell::Strip(_) => {
            let n_words = owned.packing.words(owned.columns[0]);
            let word = (n_words > 0).then(|| w.integer("slots"));
            for (k, word) in (0..n_words).zip(std::iter::repeat(word).flatten()) {
                let column = open_word(w, owned, (k, word), &entity);
                let slot = first_slot(owned, word);
                rows.add(w, owned, (column, slot), cell);
                close_word(w, owned, word);
            }
            None
        }
    };
    w.b.close_loop(); // of the pairs
    if let Some(own) = own {
        rows.add(w, owned, (Expr::Int(0), Expr::scalar(own.slot)), own.sums);
    }
    store_rows(w, owned, (pair.owner.clone(), rows));
    Ok(())
}

/// Stores the rows of an owner, and closes the loop over owners; or closes that, stores the rows of
/// the group as one array, and closes the loop over groups.
pub(super) fn store_rows(w: &mut Builder<'_>, owned: &OwnedRows, (owner, rows): (Expr, &Rows)) {
    let row = match &rows.packed {
        None => w.loop_of("i_store", owned.block),
        Some(_) => {
            w.b.close_loop();
            (false, Expr::Int(0))
        }
    };
    let [first, last] = match &rows.packed {
        // looked up again: that rows share no entry is known of the starts of rows themselves
        None => bounds(w, owned, "entry", row_of(owned, owner, row.1.clone())),
        Some(PackedRow { group, after, .. }) => {
            let end = Expr::load(owned.row_starts, [after.clone()]);
            w.assign("end_group", Access::scalar(group[1]), end);
            *group
        }
    };
    let entry = w.names.fresh("k_entry");
    let entry = Expr::from(w.b.open_loop(&entry, Affine::var(first), Affine::var(last)));
    let within = Expr::binary(BinaryOp::Sub, entry.clone(), Expr::scalar(first));
    let value = match rows.packed {
        None => Expr::load(rows.sums, [row.1, within]),
        Some(_) => Expr::load(rows.sums, [within]),
    };
    let name = &w.form.outputs[owned.output].name;
    let (stem, entry) = (format!("store_{name}"), Access::new(w.vars.outputs[&owned.output], [entry]));
    match owned.sets {
        true => w.assign(&stem, entry, value),
        false => w.add_to(&stem, entry, value),
    };
    w.b.close_loop();
    w.close_loop_of(row.0);
    w.b.close_loop(); // of the owners, or of their groups
}

impl Rows {
    /// Adds a column of a cell at its place in the rows. What lies together is of one owner where the
    /// place is in its row.
    pub(super) fn add(
        &self,
        w: &mut Builder<'_>,
        owned: &OwnedRows,
        (column, slot): (Expr, Expr),
        cell: VarId,
    ) {
        let Some(packed) = &self.packed else {
            gather(w, owned, (column, slot), (cell, self.sums));
            return;
        };
        let place = w.integer("place_in_row");
        w.assign("find_place", Access::scalar(place), slot);
        let is_there = Expr::binary(BinaryOp::Le, Expr::Int(0), Expr::scalar(place));
        let is_below = Expr::binary(BinaryOp::Lt, Expr::scalar(place), Expr::scalar(packed.length));
        let at = Access::new(self.sums, [packed.begin() + Expr::scalar(place)]);
        let name = w.form.outputs[owned.output].name.clone();
        let insn = w.add_to(&format!("gather_{name}"), at, Expr::load(cell, [Expr::Int(0), column]));
        w.b.insn_mut(insn).predicate = Some(Expr::binary(BinaryOp::And, is_there, is_below));
    }
}

/// Reads a number that holds places, and opens the loop over them; gives the column of each.
fn open_word(w: &mut Builder<'_>, owned: &OwnedRows, (number, word): (usize, VarId), pair: &Expr) -> Expr {
    let first = number * owned.packing.slots();
    let within = owned.packing.slots().min(owned.columns[0] - first);
    let slots = Expr::load(owned.slots, [Expr::Int(number as i64), pair.clone()]);
    w.assign("take_slots", Access::scalar(word), slots);
    let (_, column) = w.loop_over("j_scatter", within);
    if first == 0 { column } else { column + Expr::Int(first as i64) }
}

/// The place that stands lowest in a number. Numbers are not negative, so that bits say what
/// divisions would.
fn first_slot(owned: &OwnedRows, word: VarId) -> Expr {
    match owned.packing.radix() {
        Some(radix) => Expr::binary(BinaryOp::BitAnd, Expr::scalar(word), Expr::Int(radix - 1)),
        None => Expr::scalar(word),
    }
}

/// Goes on to the next place of a number, and closes the loop over them.
fn close_word(w: &mut Builder<'_>, owned: &OwnedRows, word: VarId) {
    if let Some(radix) = owned.packing.radix() {
        let bits = Expr::Int(i64::from(radix.ilog2()));
        let rest = Expr::binary(BinaryOp::Shr, Expr::scalar(word), bits);
        w.assign("next_slot", Access::scalar(word), rest);
    }
    w.b.close_loop();
}

/// Adds a column of a cell at its place in the rows; gives the statement.
pub(super) fn gather(
    w: &mut Builder<'_>,
    owned: &OwnedRows,
    (column, slot): (Expr, Expr),
    (cell, rows): (VarId, VarId),
) -> InsnId {
    let name = w.form.outputs[owned.output].name.clone();
    let components = owned.columns[1];
    let row = w.loop_of("i_scatter", owned.block);
    let component = w.loop_of("k_scatter", components);
    let (mut at, mut from) = (slot, column);
    if components > 1 {
        at = at + component.1.clone();
        from = Expr::Int(components as i64) * from + component.1;
    }
    let value = Expr::load(cell, [row.1.clone(), from]);
    let insn = w.add_to(&format!("gather_{name}"), Access::new(rows, [row.1, at]), value);
    w.close_loop_of(component.0);
    w.close_loop_of(row.0);
    insn
}
