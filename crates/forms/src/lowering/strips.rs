//! The cells of an owned row as strips: the vertices that come to its cells one after the other.

use super::builder::Builder;
use super::locals::{Columns, LocalVar, local_shape, with_component};
use super::owned::{Coming, OwnedRows, Owners, PairCell, RowColumns};
use super::pairs::{Opened, clear_sums, gather, open_owner, store_rows};
use crate::form::FormError;
use kingpost_fem::sparse::Strips;
use kingpost_ir::{Access, Affine, BinaryOp, Expr, VarId};

/// What an owner has besides its rows while vertices come and go.
pub(super) struct Strip {
    opened: Opened,
    /// Where its own columns stand in the row, and what cells add to them.
    own: [VarId; 2],
    /// Where the columns of the vertices at the places stand in the row.
    held: VarId,
    /// What cells have added to these columns since the vertices came.
    sums: VarId,
    /// Vertices of a cell besides the owner.
    places: usize,
    /// Whether the vertex that came completes a cell.
    completes: VarId,
}

/// Opens the loop over owners, clears the rows of one, opens the loops over the rounds of its strip
/// and over the places of a round, and makes the cell to which a vertex comes the entity.
pub(super) fn open(w: &mut Builder<'_>, owned: &OwnedRows, owners: &Owners) -> Result<Strip, FormError> {
    let opened = open_owner(w, owned, owners);
    let columns = opened.columns.ok_or_else(|| FormError::Internal("strips have columns".into()))?;
    let places = owned.columns[0] - 1;
    let own = [w.integer("own_slot"), clear_sums(w, owned, ("own_sums", "clear_own"), 1)];
    read_number(w, owned, &opened, (own[0], Expr::Int(0)));
    let sums = clear_sums(w, owned, ("place_sums", "clear_places"), places);
    let held = w.list("held", places);
    let (_, place) = w.loop_over("i_place", places);
    w.assign("hold_owner", Access::new(held, [place]), Expr::scalar(own[0]));
    w.b.close_loop();
    // the owner itself, and all others until they come
    let first_vertex = columns.first_vertex;
    let of_owner = Coming { dof: opened.owner.clone(), first_vertex };
    opened.enter(w, (opened.owner.clone(), Expr::Int(0)), PairCell::Strip(of_owner));
    w.gathers()?;
    let [number, next] = ["round", "next_round"].map(|stem| w.integer(stem));
    // read before the sums of the round before it, which need not wait then
    read_number(w, owned, &opened, (next, Expr::Int(1)));
    let turn = w.names.fresh("turn");
    let turn = w.b.open_loop(&turn, Affine::constant(1), Affine::var(opened.pairs[1]));
    w.assign("begin_round", Access::scalar(number), Expr::scalar(next));
    read_number(w, owned, &opened, (next, Expr::from(turn) + Expr::Int(1)));
    let coming = gather_round(w, &opened, &columns, (number, places));
    let (_, place) = w.loop_over("place", places);
    let [completes, slot] = ["completes", "slot"].map(|stem| w.integer(stem));
    let cell = i64::from(Strips::CELL);
    w.assign("take_cell", Access::scalar(completes), taken(number, &place, cell));
    w.assign("take_slot", Access::scalar(slot), taken(number, &place, cell - 1));
    let strip = Strip { opened, own, held, sums, places, completes };
    strip.leave(w, owned, place.clone());
    clear_place(w, owned, (sums, place.clone()));
    w.assign("hold", Access::new(held, [place.clone()]), Expr::scalar(slot));
    for (from, to) in coming {
        for component in to.components() {
            let at = with_component(place.clone() + Expr::Int(1), component);
            let value = Expr::load(from.var, with_component(place.clone(), component));
            w.assign("come", Access::new(to.var, at), value);
        }
    }
    Ok(strip)
}

/// Gathers the vertices of a round, which need not wait for each other then; gives where they are,
/// and where they are to be.
fn gather_round(
    w: &mut Builder<'_>,
    opened: &Opened,
    columns: &RowColumns,
    (number, places): (VarId, usize),
) -> Vec<(LocalVar, LocalVar)> {
    let inputs = w.vars.inputs.clone();
    let coming = inputs.into_iter().map(|to| {
        let columns = Columns { count: places, ..to.local.columns };
        let name = w.names.fresh(&format!("coming_{}", to.local.stem));
        let (ty, shape) = (w.b.so_far().vars[to.var].ty, local_shape(columns, to.block.unwrap_or(1)));
        (LocalVar { var: w.b.temporary(name, ty, shape), ..to.clone() }, to)
    });
    let coming: Vec<(LocalVar, LocalVar)> = coming.collect();
    let (_, place) = w.loop_over("i_coming", places);
    let slot = w.integer("coming_slot");
    w.assign("find_coming", Access::scalar(slot), taken(number, &place, i64::from(Strips::CELL) - 1));
    let dof = columns.dof(Expr::scalar(slot));
    let cell = PairCell::Strip(Coming { dof, first_vertex: columns.first_vertex });
    opened.enter(w, (opened.owner.clone(), Expr::Int(0)), cell);
    for (to, _) in &coming {
        w.gather_node(to, &place);
    }
    w.b.close_loop();
    coming
}

/// Bits of a place of a round.
fn taken(number: VarId, place: &Expr, bits: i64) -> Expr {
    let before = Expr::Int(i64::from(Strips::BITS)) * place.clone();
    let shifted = Expr::binary(BinaryOp::Shr, Expr::scalar(number), before);
    Expr::binary(BinaryOp::BitAnd, shifted, Expr::Int(bits))
}

/// Adds the rows of a cell to the sums of its vertices; after the last round, those to the rows,
/// and these to the entries.
pub(super) fn scatter(w: &mut Builder<'_>, owned: &OwnedRows, strip: &Strip) -> Result<(), FormError> {
    let cell = w.sum_of(owned.output)?;
    let is_cell = Expr::binary(BinaryOp::Ne, Expr::scalar(strip.completes), Expr::Int(0));
    let insn = gather(w, owned, (Expr::Int(0), Expr::Int(0)), (cell, strip.own[1]));
    w.b.insn_mut(insn).predicate = Some(is_cell.clone());
    let (_, place) = w.loop_over("j_place", strip.places);
    let sums = Expr::Int(owned.columns[1] as i64) * place.clone();
    let insn = gather(w, owned, (place + Expr::Int(1), sums), (cell, strip.sums));
    w.b.insn_mut(insn).predicate = Some(is_cell);
    w.b.close_loop();
    w.b.close_loop(); // of the places
    w.b.close_loop(); // of the rounds
    let (_, place) = w.loop_over("j_place", strip.places);
    strip.leave(w, owned, place);
    w.b.close_loop();
    let Strip { opened, own: [slot, sums], .. } = strip;
    opened.rows.add(w, owned, (Expr::Int(0), Expr::scalar(*slot)), *sums);
    store_rows(w, owned, (opened.owner.clone(), &opened.rows));
    Ok(())
}

impl Strip {
    /// Adds the sums of the vertex at a place to the rows.
    fn leave(&self, w: &mut Builder<'_>, owned: &OwnedRows, place: Expr) {
        let slot = Expr::load(self.held, [place.clone()]);
        self.opened.rows.add(w, owned, (place, slot), self.sums);
    }
}

/// Clears the sums of a place.
fn clear_place(w: &mut Builder<'_>, owned: &OwnedRows, (sums, place): (VarId, Expr)) {
    let components = owned.columns[1];
    let row = w.loop_of("i_row", owned.block);
    let component = w.loop_of("i_own", components);
    let at = match components {
        1 => place,
        n => Expr::Int(n as i64) * place + component.1,
    };
    w.assign("clear_place", Access::new(sums, [row.1, at]), Expr::from(0.0));
    w.close_loop_of(component.0);
    w.close_loop_of(row.0);
}

/// Reads a number of the strip of an owner, which may not have it.
fn read_number(w: &mut Builder<'_>, owned: &OwnedRows, opened: &Opened, (to, turn): (VarId, Expr)) {
    let is_there = Expr::binary(BinaryOp::Lt, turn.clone(), Expr::scalar(opened.pairs[1]));
    let held = Expr::load(owned.slots, [Expr::Int(0), opened.place(turn)]);
    let held = Expr::Select(Box::new(is_there), Box::new(held), Box::new(Expr::Int(0)));
    w.assign("read_round", Access::scalar(to), held);
}
