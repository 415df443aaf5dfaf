//! The cells of an owned row as strips: the vertices that come to its cells one after the other.

use super::builder::Builder;
use super::graph::Uses;
use super::locals::{Columns, LocalVar, local_shape, with_component};
use super::owned::{Coming, OwnedRows, Owners, PairCell, RowColumns};
use super::pairs::{Opened, open_owner, store_rows};
use super::strip_cell::{StripCell, are_differences, are_weighted, depends};
use crate::form::FormError;
use kingpost_fem::sparse::Strips;
use kingpost_ir::{Access, Affine, BinaryOp, Expr, VarId};

/// What an owner has besides its rows while vertices come and go.
pub(super) struct Strip {
    opened: Opened,
    /// Where its own columns stand in the row.
    own: VarId,
    /// Where the columns of the vertices at the places stand in the row.
    held: VarId,
    /// What cells have added to its own columns, and to these since the vertices came.
    sums: VarId,
    /// Vertices of a cell besides the owner.
    places: usize,
    /// Whether what a cell adds to the columns of all its vertices is zero together.
    are_differences: bool,
}

/// Opens the loop over owners, clears the rows of one, opens the loops over the rounds of its strip
/// and over the places of a round, and makes the cell to which a vertex comes the entity.
pub(super) fn open(
    w: &mut Builder<'_>,
    owned: &OwnedRows,
    owners: &Owners,
    uses: &Uses,
) -> Result<Strip, FormError> {
    let opened = open_owner(w, owned, owners);
    let columns = opened.columns.ok_or_else(|| FormError::Internal("strips have columns".into()))?;
    let places = owned.columns[0] - 1;
    let own = w.integer("own_slot");
    read_first(w, owned, &opened, (own, 0));
    let sums = w.sum(owned.output, "strip_sums", &owned.extents());
    let (_, vertex) = w.loop_over("i_vertex", places + 1);
    clear(w, owned, sums, vertex);
    w.b.close_loop();
    let held = w.list("held", places);
    let (_, place) = w.loop_over("i_place", places);
    w.assign("hold_owner", Access::new(held, [place]), Expr::scalar(own));
    w.b.close_loop();
    // the owner itself, and all others until they come
    let first_vertex = columns.first_vertex;
    let of_owner = Coming { dof: opened.owner.clone(), first_vertex };
    opened.enter(w, (opened.owner.clone(), Expr::Int(0)), PairCell::Strip(of_owner));
    w.gathers()?;
    let depends = depends(w.form, w.graph);
    let all = (1 << places) - 1;
    w.geometry_that_stays(uses, &depends, all)?;
    let [number, next, completes] = ["round", "next_round", "completes"].map(|stem| w.integer(stem));
    // read before the sums of the round before it, which need not wait then
    read_first(w, owned, &opened, (next, 1));
    let turn = w.names.fresh("turn");
    let turn = w.b.open_loop(&turn, Affine::constant(1), Affine::var(opened.pairs[1]));
    w.assign("begin_round", Access::scalar(number), Expr::scalar(next));
    read_number(w, owned, &opened, (next, Expr::from(turn) + Expr::Int(1)));
    let coming = gather_round(w, &opened, &columns, (number, places));
    let (_, place) = w.loop_over("place", places);
    let slot = w.integer("slot");
    let cell = i64::from(Strips::CELL);
    w.assign("take_cell", Access::scalar(completes), taken(number, &place, cell));
    w.assign("take_slot", Access::scalar(slot), taken(number, &place, cell - 1));
    let are_differences = w.integrals.iter().all(|integral| are_differences(integral));
    let are_weighted = are_weighted(w.graph, w.integrals);
    let strip = Strip { opened, own, held, sums, places, are_differences };
    strip.leave(w, owned, place.clone());
    clear(w, owned, sums, place.clone() + Expr::Int(1));
    w.assign("hold", Access::new(held, [place.clone()]), Expr::scalar(slot));
    for (from, to) in coming {
        for component in to.components() {
            let at = with_component(place.clone() + Expr::Int(1), component);
            let value = Expr::load(from.var, with_component(place.clone(), component));
            w.assign("come", Access::new(to.var, at), value);
        }
    }
    w.strip = Some(StripCell { place, completes, are_weighted, are_differences, depends, all });
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

/// Adds the sums that are left to the rows after the last round, and these to the entries.
pub(super) fn scatter(w: &mut Builder<'_>, owned: &OwnedRows, strip: &Strip) {
    w.strip = None;
    w.b.close_loop(); // of the places
    w.b.close_loop(); // of the rounds
    let (_, place) = w.loop_over("j_place", strip.places);
    strip.leave(w, owned, place);
    w.b.close_loop();
    let Strip { opened, own, sums, .. } = strip;
    opened.rows.add(w, owned, (Expr::Int(0), Expr::scalar(*own)), *sums);
    store_rows(w, owned, (opened.owner.clone(), &opened.rows));
}

impl Strip {
    /// Adds the sums of the vertex at a place to the rows.
    fn leave(&self, w: &mut Builder<'_>, owned: &OwnedRows, place: Expr) {
        let slot = Expr::load(self.held, [place.clone()]);
        let vertex = place + Expr::Int(1);
        self.opened.rows.add(w, owned, (vertex.clone(), slot), self.sums);
        if !self.are_differences {
            return;
        }
        each_entry(w, owned, |w, row, component| {
            let of = |vertex: Expr| [row.clone(), column(owned, vertex, &component)];
            let left = Expr::load(self.sums, of(vertex));
            w.add_to("leave", Access::new(self.sums, of(Expr::Int(0))), -left);
        });
    }
}

/// The column of a component of a vertex.
fn column(owned: &OwnedRows, vertex: Expr, component: &Expr) -> Expr {
    match owned.columns[1] {
        1 => vertex,
        n => Expr::Int(n as i64) * vertex + component.clone(),
    }
}

/// Writes what is done with each entry of a vertex.
fn each_entry(w: &mut Builder<'_>, owned: &OwnedRows, write: impl FnOnce(&mut Builder<'_>, Expr, Expr)) {
    let row = w.loop_of("i_row", owned.block);
    let component = w.loop_of("i_own", owned.columns[1]);
    write(w, row.1, component.1);
    w.close_loop_of(component.0);
    w.close_loop_of(row.0);
}

/// Clears the sums of a vertex.
fn clear(w: &mut Builder<'_>, owned: &OwnedRows, sums: VarId, vertex: Expr) {
    each_entry(w, owned, |w, row, component| {
        let column = column(owned, vertex, &component);
        w.assign("clear_sums", Access::new(sums, [row, column]), Expr::from(0.0));
    });
}

/// Reads a number of the strip of an owner, which may not have it.
fn read_number(w: &mut Builder<'_>, owned: &OwnedRows, opened: &Opened, (to, turn): (VarId, Expr)) {
    let is_there = Expr::binary(BinaryOp::Lt, turn.clone(), Expr::scalar(opened.pairs[1]));
    let held = Expr::load(owned.slots, [Expr::Int(0), opened.place(turn)]);
    let held = Expr::Select(Box::new(is_there), Box::new(held), Box::new(Expr::Int(0)));
    w.assign("read_round", Access::scalar(to), held);
}

/// The same of the first number or the second, which may have been read before.
fn read_first(w: &mut Builder<'_>, owned: &OwnedRows, opened: &Opened, (to, turn): (VarId, usize)) {
    let known = opened.ahead.as_ref().and_then(|ahead| Some((ahead.numbers?[turn], ahead.at.clone())));
    match known {
        Some((list, at)) => {
            w.assign("take_round", Access::scalar(to), Expr::load(list, [at]));
        }
        None => read_number(w, owned, opened, (to, Expr::Int(turn as i64))),
    }
}
