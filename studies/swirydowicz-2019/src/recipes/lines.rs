//! Contractions along lines: a work-item has the nodes of a line in registers, and the indices of
//! matrix entries are constants where loops are unrolled, so that entries are operands of constant
//! memory.

use super::nest::{Steps, cut, expand, fetch, fuse, realise};
use crate::problem::Sizes;
use purlin::prelude::{
    AddressSpace, BufferWrites, FactorUpdate, FixArgument, MoveInsns, Schedule, Selection, SetAddressSpace,
};

/// Makes an input a table in constant memory.
pub fn fix_matrix(s: &mut Schedule, sizes: Sizes, matrix: &str, values: Vec<f64>) -> Steps {
    s.apply(FixArgument::real(matrix, sizes.precision.rounded(values)))?;
    s.apply(SetAddressSpace::new(matrix, AddressSpace::Constant)).map(|_| ())
}

/// Differentiates a field along all lines of one direction after the other, and adds what the fluxes
/// contribute likewise, in a nest for each direction.
pub fn reduce_apart(s: &mut Schedule) -> Steps {
    realise(s, &["lr", "ls", "lt"])?;
    expand(s, &["ur", "us", "ut"], &["k", "j", "i"])?;
    cut(s, &["k", "j", "i"], &[("r_ls_init", "s"), ("r_lt_init", "t"), ("fr", "g")])?;
    s.apply(FactorUpdate::new("dr_t", ["c"]).into_temporary("zr"))?;
    s.apply(FactorUpdate::new("ds_t", ["c"]).into_temporary("zs"))?;
    s.apply(MoveInsns::before(["zero", "mass"], "mt"))?;
    s.apply(MoveInsns::before(["zs_init"], "ms"))?;
    cut(s, &["c", "b", "a"], &[("zs_init", "s"), ("zero", "t")])?;
    fuse(s, &["c_t", "b_t", "a_t"], &["c_sum_1", "b_sum_1", "a_sum_1"])?;
    fuse(s, &["c_t", "b_t", "a_t"], &["c_sum", "b_sum", "a_sum"])
}

/// As [`reduce_apart`], with each line of `result` in the loop that contracts it.
pub fn differentiate_lines(s: &mut Schedule, result: &str) -> Steps {
    reduce_apart(s)?;
    for nest in [
        ["k_s", "i_s", "j_s"],
        ["j_t", "i_t", "k_t"],
        ["j_g", "i_g", "k_g"],
        ["c_s", "a_s", "b_s"],
        ["b_t", "a_t", "c_t"],
    ] {
        s.reorder(nest)?;
    }
    for (array, along) in [("zr", "a"), ("zs", "b_s"), (result, "c_t")] {
        s.apply(BufferWrites::new(array, along, AddressSpace::Private).into_temporary(format!("r_{array}")))?;
    }
    s.apply(fetch("g", "k_g", AddressSpace::Private, "r_g", &["f"])).map(|_| ())
}

/// Fetches columns of `u` to registers, and from there what others read of it to local memory.
pub fn fetch_columns(s: &mut Schedule) -> Steps {
    s.apply(fetch("u", "e", AddressSpace::Private, "r_u", &["q2", "q1", "q0"]))?;
    let layers = fetch("r_u", "e", AddressSpace::Local, "s_u", &["p2", "p1", "p0"]);
    s.apply(layers.only_in(Selection::Tag("in_layer".into()))).map(|_| ())
}

/// Fetches each line of a local array to registers in the loop that contracts it.
pub fn fetch_lines_where_contracted(s: &mut Schedule) -> Steps {
    for (array, at, name, along) in [
        ("s_u", "j", "line_r", "l_r"),
        ("s_u", "i_s", "line_s", "l_s"),
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
