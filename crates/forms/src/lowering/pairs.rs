//! The pairs of an owned row and a cell: the loop over them, and where their sums go.

use super::builder::Builder;
use super::owned::OwnedRows;
use crate::form::FormError;
use kingpost_fem::sparse::SLICE;
use kingpost_ir::{Access, Affine, BinaryOp, Expr, VarId};

/// Clears the rows of the owner that is the entity, opens the loop over its pairs, and makes the pair
/// the entity.
pub(super) fn open_pairs(w: &mut Builder<'_>, owned: &OwnedRows) {
    let owner = w.entity();
    let name = w.form.outputs[owned.output].name.clone();
    let rows = w.sum(owned.output, &format!("{name}_rows"), &[owned.block, owned.longest]);
    w.owned_sums = Some(rows);
    let component = w.loop_of("i_row", owned.block);
    let (_, entry) = w.loop_over("i_entry", owned.longest);
    w.assign(&format!("clear_{name}"), Access::new(rows, [component.1, entry]), Expr::from(0.0));
    w.b.close_loop();
    w.close_loop_of(component.0);
    let [first, count, pair] = ["first_pair", "pairs", "pair"].map(|stem| w.integer(stem));
    w.assign("find_pairs", Access::scalar(first), Expr::load(owned.firsts, [owner.clone()]));
    w.assign("count_pairs", Access::scalar(count), Expr::load(owned.counts, [owner]));
    let turn = w.names.fresh("turn");
    let turn = Expr::from(w.b.open_loop(&turn, Affine::constant(0), Affine::var(count)));
    let place = Expr::scalar(first) + Expr::Int(SLICE as i64) * turn;
    w.assign("next_pair", Access::scalar(pair), place);
    w.entity = Some(Expr::scalar(pair));
}

/// Adds the rows of a cell to those of the owner; after the last cell, those to the entries.
pub(super) fn scatter(w: &mut Builder<'_>, owned: &OwnedRows, owner: Expr) -> Result<(), FormError> {
    let name = w.form.outputs[owned.output].name.clone();
    let (cell, pair) = (w.sum_of(owned.output)?, w.entity());
    let rows = w.owned_sums.ok_or_else(|| FormError::Internal("no rows are owned".into()))?;
    let n_words = owned.packing.words(owned.columns[0]);
    let word = (n_words > 0).then(|| w.integer("slots"));
    for (k, word) in (0..n_words).zip(std::iter::repeat(word).flatten()) {
        gather(w, owned, (k, word), (cell, rows), &pair);
    }
    w.b.close_loop(); // of the pairs

    let [first, last] = ["first", "last"].map(|stem| w.integer(&format!("{stem}_entry")));
    let row = w.loop_of("i_store", owned.block);
    let number = match owned.block {
        1 => owner,
        n => Expr::Int(n as i64) * owner + row.1.clone(),
    };
    let start = |row: Expr| Expr::load(owned.row_starts, [row]);
    w.assign("begin_row", Access::scalar(first), start(number.clone()));
    w.assign("end_row", Access::scalar(last), start(number + Expr::Int(1)));
    let entry = w.names.fresh("k_entry");
    let entry = Expr::from(w.b.open_loop(&entry, Affine::var(first), Affine::var(last)));
    let within = Expr::binary(BinaryOp::Sub, entry.clone(), Expr::scalar(first));
    let value = Expr::load(rows, [row.1, within]);
    let output = w.vars.outputs[&owned.output];
    let (stem, entry) = (format!("store_{name}"), Access::new(output, [entry]));
    match owned.sets {
        true => w.assign(&stem, entry, value),
        false => w.add_to(&stem, entry, value),
    };
    w.b.close_loop();
    w.close_loop_of(row.0);
    Ok(())
}

/// Adds the columns of a cell whose places stand in one number.
fn gather(
    w: &mut Builder<'_>,
    owned: &OwnedRows,
    (number, word): (usize, VarId),
    (cell, rows): (VarId, VarId),
    pair: &Expr,
) {
    let name = w.form.outputs[owned.output].name.clone();
    let [dofs, components] = owned.columns;
    let first = number * owned.packing.slots();
    let within = owned.packing.slots().min(dofs - first);
    let slots = Expr::load(owned.slots, [Expr::Int(number as i64), pair.clone()]);
    w.assign("take_slots", Access::scalar(word), slots);
    let (_, column) = w.loop_over("j_scatter", within);
    let column = if first == 0 { column } else { column + Expr::Int(first as i64) };
    let slot = match owned.packing.radix() {
        Some(radix) => Expr::binary(BinaryOp::Mod, Expr::scalar(word), Expr::Int(radix)),
        None => Expr::scalar(word),
    };
    let row = w.loop_of("i_scatter", owned.block);
    let component = w.loop_of("k_scatter", components);
    let (mut at, mut from) = (slot, column);
    if components > 1 {
        at = at + component.1.clone();
        from = Expr::Int(components as i64) * from + component.1;
    }
    let value = Expr::load(cell, [row.1.clone(), from]);
    w.add_to(&format!("gather_{name}"), Access::new(rows, [row.1, at]), value);
    w.close_loop_of(component.0);
    w.close_loop_of(row.0);
    if let Some(radix) = owned.packing.radix() {
        let rest = Expr::binary(BinaryOp::FloorDiv, Expr::scalar(word), Expr::Int(radix));
        w.assign("next_slot", Access::scalar(word), rest);
    }
    w.b.close_loop();
}
