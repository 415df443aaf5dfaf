//! Contractions along lines: a work-item has the nodes of a line in registers, and the indices of
//! matrix entries are constants where loops are unrolled, so that entries are operands of constant
//! memory.

use super::nest::{Steps, cut, expand, fetch, fuse, realise};
use crate::problem::Sizes;
use kingpost::prelude::ScheduleSteps;
use kingpost::prelude::{
    AddressSpace, BufferWrites, CopyTable, FactorUpdate, FixArgument, MoveInsns, Schedule, Selection,
    SetAddressSpace,
};

/// Makes an input a table in constant memory.
pub fn fix_matrix(s: &mut Schedule, sizes: Sizes, matrix: &str, values: Vec<f64>) -> Steps {
    s.apply(FixArgument::real(matrix, sizes.precision.rounded(values)))?;
    s.apply(SetAddressSpace::new(matrix, AddressSpace::Constant)).map(|_| ())
}

/// Differentiates a field along all lines of one direction after the other, and contracts the fluxes
/// likewise, in a nest for each direction; what the first two directions sum is added after them.
fn contract_apart(s: &mut Schedule) -> Steps {
    realise(s, &["lr", "ls", "lt"])?;
    expand(s, &["ur", "us", "ut"], &["k", "j", "i"])?;
    cut(s, &["k", "j", "i"], &[("r_ls_init", "s"), ("r_lt_init", "t"), ("fr", "g")])?;
    s.apply(FactorUpdate::new("dr_t", ["c"]).into_temporary("zr"))?;
    s.apply(FactorUpdate::new("ds_t", ["c"]).into_temporary("zs"))?;
    s.apply(MoveInsns::before(["zero", "mass"], "mt"))?;
    s.apply(MoveInsns::before(["zs_init"], "ms"))?;
    cut(s, &["c", "b", "a"], &[("zs_init", "s"), ("zero", "t")])
}

/// As [`contract_apart`], and adds what the fluxes contribute in the nest of the last direction.
pub fn reduce_apart(s: &mut Schedule) -> Steps {
    contract_apart(s)?;
    fuse(s, &["c_t", "b_t", "a_t"], &["c_sum_1", "b_sum_1", "a_sum_1"])?;
    fuse(s, &["c_t", "b_t", "a_t"], &["c_sum", "b_sum", "a_sum"])
}

/// As [`reduce_apart`], with each line of `result` in the loop that contracts it.
pub fn differentiate_lines(s: &mut Schedule, result: &str) -> Steps {
    reduce_apart(s)?;
    lines_inside(s)?;
    for (array, along) in [("zr", "a"), ("zs", "b_s"), (result, "c_t")] {
        s.apply(BufferWrites::new(array, along, AddressSpace::Private).into_temporary(format!("r_{array}")))?;
    }
    s.apply(fetch("g", "k_g", AddressSpace::Private, "r_g", &["f"])).map(|_| ())
}

/// Makes the loop along a line the inner one of each nest.
fn lines_inside(s: &mut Schedule) -> Steps {
    for nest in [
        ["k_s", "i_s", "j_s"],
        ["j_t", "i_t", "k_t"],
        ["j_g", "i_g", "k_g"],
        ["c_s", "a_s", "b_s"],
        ["b_t", "a_t", "c_t"],
    ] {
        s.reorder(nest)?;
    }
    Ok(())
}

/// As [`differentiate_lines`] for fluxes that take the place of derivatives: those of a node are in
/// registers when its fluxes are stored. Fluxes along a column are contracted before any other, so
/// that from then on a column of sums is all that is kept in registers. These are buffered
/// before they are stored in `result`.
pub fn differentiate_in_place(s: &mut Schedule, result: &str) -> Steps {
    differentiate_in_registers(s, Some(result))
}

/// As [`differentiate_in_place`], and leaves the sums where they are without a `result`.
pub fn differentiate_in_registers(s: &mut Schedule, result: Option<&str>) -> Steps {
    contract_apart(s)?;
    s.apply(MoveInsns::before(["c_t"], "c"))?;
    fuse(s, &["c_sum_1", "b_sum_1", "a_sum_1"], &["c_sum", "b_sum", "a_sum"])?;
    lines_inside(s)?;
    s.reorder(["b_sum_1", "a_sum_1", "c_sum_1"])?;
    for (array, along) in [("zr", "a"), ("zs", "b_s")].into_iter().chain(result.map(|array| (array, "e"))) {
        s.apply(BufferWrites::new(array, along, AddressSpace::Private).into_temporary(format!("r_{array}")))?;
    }
    s.apply(fetch("g", "k_g", AddressSpace::Private, "r_g", &["f"]))?;
    s.apply(fetch("ur", "k_g", AddressSpace::Private, "node_r", &[]))?;
    s.apply(fetch("us", "k_g", AddressSpace::Private, "node_s", &[])).map(|_| ())
}

/// Gives each contraction with `D` a copy of it, those with `r` and `s` of the fluxes one together:
/// a compiler that sees one entry in several of them keeps it in registers.
pub fn copy_matrix(s: &mut Schedule) -> Steps {
    let copies = [
        ("D", "r_ls_update", "D_s"),
        ("D", "r_lt_update", "D_t"),
        ("D", "d*_t", "D_flux"),
        ("D_flux", "dt_t", "D_flux_t"),
    ];
    copies.into_iter().try_for_each(|(table, insns, copy)| {
        s.apply(CopyTable::new(table, Selection::Insn(insns.into()), copy)).map(|_| ())
    })
}

/// Fetches columns of `u` to registers, and from there what others read of it to local memory.
pub fn fetch_columns(s: &mut Schedule) -> Steps {
    s.apply(fetch("u", "e", AddressSpace::Private, "r_u", &["q2", "q1", "q0"]))?;
    let layers = fetch("r_u", "e", AddressSpace::Local, "s_u", &["p2", "p1", "p0"]);
    s.apply(layers.only_in(Selection::Tag("in_layer".into()))).map(|_| ())
}

/// Fetches each line of a local array to registers in the loop that contracts it; `field` is the one
/// that is differentiated.
pub fn fetch_lines_where_contracted(s: &mut Schedule, field: &str) -> Steps {
    for (array, at, name, along) in [
        (field, "j", "line_r", "l_r"),
        (field, "i_s", "line_s", "l_s"),
        ("wr", "b", "line_a", "m_r"),
        ("ws", "a_s", "line_b", "m_s"),
    ] {
        s.apply(fetch(array, at, AddressSpace::Private, name, &[along]))?;
    }
    Ok(())
}

/// Fetches lines of local arrays to registers before anything else is written, and columns where
/// the fluxes are computed; `field` is the local array that is differentiated.
pub fn fetch_lines(s: &mut Schedule, field: &str) -> Steps {
    for (array, of, name, stem) in [
        (field, "r_lr_update", "line_r", "lr"),
        (field, "r_ls_update", "line_s", "ls"),
        ("ur", "*", "column_r", "cr"),
        ("us", "*", "column_s", "cs"),
        ("wr", "*", "line_a", "mr"),
        ("ws", "*", "line_b", "ms"),
    ] {
        let loops = [2, 1, 0].map(|axis| format!("{stem}{axis}"));
        let copy = fetch(array, "e", AddressSpace::Private, name, &loops.each_ref().map(String::as_str));
        s.apply(if of == "*" { copy } else { copy.only_in(Selection::Insn(of.into())) })?;
    }
    for nest in [["ls2", "ls0", "ls1"], ["cr1", "cr0", "cr2"], ["cs1", "cs0", "cs2"], ["ms2", "ms0", "ms1"]] {
        s.reorder(nest)?;
    }
    Ok(())
}
