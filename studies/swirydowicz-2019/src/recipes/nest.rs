//! What the recipes do again and again: cutting and fusing whole nests, and placing them on axes.

use crate::problem::{Precision, Sizes};
use kingpost::ir::Variable;
use kingpost::prelude::ScheduleSteps;
use kingpost::prelude::{
    AddressSpace, Assume, AxisTag, ChangeLayout, ContractArray, DeclareCallee, ExpandArray, ImageAxis,
    JoinInames, MoveInsns, PadArray, PeelIname, PrefetchArray, ReplaceWithIntrinsic, ReverseIname, Schedule,
    Selection, SetAddressSpace, ShiftIname, SplitIname, TagInames, UseSymmetry,
};
use kingpost::transforms::TransformError;
use kingpost::transforms::intrinsics::COPY_ASYNC_F64;

/// What a recipe ends with.
pub type Steps = Result<(), TransformError>;

/// Realises the reduction over each loop; its accumulator is called `r_` and the loop's name.
pub fn realise(s: &mut Schedule, loops: &[&str]) -> Steps {
    loops.iter().try_for_each(|l| s.realise(*l, format!("r_{l}")).map(|_| ()))
}

/// Distributes a nest, outer loop first, over parts that begin before these statements; the loops
/// of a part are called as before, with the part's suffix.
pub fn cut(s: &mut Schedule, nest: &[&str], parts: &[(&str, &str)]) -> Steps {
    for l in nest.iter().rev() {
        let names = parts.iter().map(|(_, suffix)| format!("{l}_{suffix}")).collect();
        let before = parts.iter().map(|(statement, _)| *statement);
        s.make(kingpost::prelude::DistributeLoop {
            names,
            ..kingpost::prelude::DistributeLoop::new(*l, before)
        })?;
    }
    Ok(())
}

/// Fuses two neighbouring nests over the same values, outer loops first.
pub fn fuse(s: &mut Schedule, first: &[&str], second: &[&str]) -> Steps {
    first.iter().zip(second).try_for_each(|(a, b)| s.fuse(*a, *b).map(|_| ()))
}

/// Gives a temporary an axis for each loop.
pub fn expand(s: &mut Schedule, arrays: &[&str], loops: &[&str]) -> Steps {
    arrays.iter().try_for_each(|a| s.apply(ExpandArray::new(*a, loops.iter().copied())).map(|_| ()))
}

/// Drops the first axes of a temporary, as many as `axes`.
pub fn contract(s: &mut Schedule, array: &str, axes: usize) -> Steps {
    (0..axes).try_for_each(|_| s.apply(ContractArray::new(array, 0)).map(|_| ()))
}

/// Moves temporaries to local memory.
pub fn share(s: &mut Schedule, arrays: &[&str]) -> Steps {
    arrays.iter().try_for_each(|a| s.apply(SetAddressSpace::new(*a, AddressSpace::Local)).map(|_| ()))
}

/// Moves temporaries of an element to global memory.
pub fn spill(s: &mut Schedule, arrays: &[&str]) -> Steps {
    expand(s, arrays, &["e"])?;
    arrays.iter().try_for_each(|a| s.apply(SetAddressSpace::new(*a, AddressSpace::Global)).map(|_| ()))
}

/// Fetches a matrix to local memory, an element's work-group at a time.
pub fn fetch_matrix(s: &mut Schedule, matrix: &str, work_items: &[usize]) -> Steps {
    let sizes = work_items.iter().map(|n| *n as i64);
    let fetch = PrefetchArray::new(matrix, "e", AddressSpace::Local);
    s.apply(fetch.into_temporary(format!("s_{matrix}")).by_work_items(sizes)).map(|_| ())
}

/// A fetch with a name and loops for it.
pub fn fetch(array: &str, at: &str, space: AddressSpace, name: &str, loops: &[&str]) -> PrefetchArray {
    let inames = loops.iter().map(|l| (*l).to_owned()).collect();
    PrefetchArray { inames, ..PrefetchArray::new(array, at, space).into_temporary(name) }
}

/// Pads rows, along the last axis of each array, where work-items that read a column would meet in
/// one bank.
///
/// A double takes two of the 32 banks of four bytes, so rows of 8 or 16 doubles repeat the banks
/// of the second row above, and of the next.
pub fn pad(s: &mut Schedule, rows: usize, arrays: &[&str]) -> Steps {
    if !rows.is_multiple_of(8) {
        return Ok(());
    }
    for array in arrays {
        let id = s.kernel().var(array);
        let axis = id.map_or(0, |v| s.kernel().vars[v].shape.len() as u32 - 1);
        s.apply(PadArray::new(*array, axis, 1))?;
    }
    Ok(())
}

/// Runs an element in a work-group, and its loops along `l.0`, `l.1` and, if there are any, `l.2`.
pub fn place(s: &mut Schedule, axes: &[&[&str]]) -> Steps {
    s.tag("e", AxisTag::Group(0))?;
    place_items(s, axes)
}

/// Puts several elements in a work-group; local arrays get an axis for them, in front.
pub fn group_elements(s: &mut Schedule, elements: i64, local: &[&str]) -> Steps {
    let split = SplitIname {
        outer: Some("group".into()),
        inner: Some("e_in".into()),
        ..SplitIname::new("e", elements)
    };
    s.apply(split)?;
    s.tag("group", AxisTag::Group(0))?;
    expand(s, local, &["e_in"])
}

/// Runs an element in a work-group, and pairs of them along the other axis of groups. All code is then
/// under the condition of the last pair, and NVRTC 13.0 keeps fewer entries of tables in registers
/// (BP3.5 at N = 15 with two groups resident: none spilled, else 576 B; sm_90).
pub fn pair_groups(s: &mut Schedule) -> Steps {
    let split =
        SplitIname { outer: Some("group".into()), inner: Some("e_in".into()), ..SplitIname::new("e", 2) };
    s.apply(split)?;
    s.tag("group", AxisTag::Group(0))?;
    s.tag("e_in", AxisTag::Group(1))
}

/// Runs loops along `l.0`, `l.1` and, if there are any, `l.2`.
pub fn place_items(s: &mut Schedule, axes: &[&[&str]]) -> Steps {
    let tags = axes.iter().enumerate().rev();
    tags.filter(|(_, loops)| !loops.is_empty()).try_for_each(|(axis, loops)| {
        s.apply(TagInames::new(loops.iter().copied(), AxisTag::Local(axis as u8))).map(|_| ())
    })
}

/// Deals lines out to work-items without gaps: joins the loops over rows and columns of each nest.
pub fn deal_lines(s: &mut Schedule, rows: &[&str], columns: &[&str]) -> Steps {
    let lines: Vec<String> = columns.iter().map(|column| format!("lines_{column}")).collect();
    for ((row, column), line) in rows.iter().zip(columns).zip(&lines) {
        s.apply(JoinInames { joined: Some(line.clone()), ..JoinInames::new(*row, *column) })?;
    }
    place_items(s, &[&lines.iter().map(String::as_str).collect::<Vec<_>>()])
}

/// Gives arrays that share a buffer strides in common, so that the results of a line take its own
/// places: of rows with `n` entries, `row` apart, of which a plane has `rows`. Neighbours along a row stay in
/// different banks from a plane to the next one.
pub fn lay_out_in_place(s: &mut Schedule, arrays: &[&str], n: usize, row: usize, rows: usize) -> Steps {
    let plane = (rows * row..).find(|plane| plane % BANKS == n % BANKS).unwrap_or(rows * row);
    arrays.iter().try_for_each(|array| change_layout(s, array, &format!("strides({plane}, {row}, 1)")))
}

/// Doubles that the banks of local memory serve at a time.
const BANKS: usize = 16;

/// Writes out the iterations of loops.
pub fn unroll(s: &mut Schedule, loops: &[&str]) -> Steps {
    s.apply(TagInames::new(loops.iter().copied(), AxisTag::Unrolled)).map(|_| ())
}

/// Fuses the fluxes of a layer with what they contribute to the results: those of the layer, and
/// the flux across layers to the whole column at once.
pub fn add_by_layers(s: &mut Schedule) -> Steps {
    cut(s, &["c", "b", "a"], &[("mass", "add"), ("mt", "t")])?;
    s.apply(MoveInsns::before(["c"], "k"))?;
    s.fuse("k", "c_add")?;
    s.reorder(["mt", "b_t", "a_t", "c_t"])?;
    s.fuse("k", "mt")?;
    fuse(s, &["b_add", "a_add"], &["b_t", "a_t"])?;
    contract(s, "wr", 1)?;
    contract(s, "ws", 1)?;
    contract(s, "wt", 1)
}

/// Lets all work-items differentiate a layer before the first one stores a flux.
pub fn fluxes_apart(s: &mut Schedule) -> Steps {
    expand(s, &["ur", "us", "ut"], &["j", "i"])?;
    cut(s, &["j", "i"], &[("fr", "flux")])
}

/// Pads rows of an even length: a column takes two, four or more places in the same bank, one is then in
/// each.
pub fn pad_even(s: &mut Schedule, rows: usize, arrays: &[&str]) -> Steps {
    if !rows.is_multiple_of(2) {
        return Ok(());
    }
    arrays.iter().try_for_each(|array| {
        let axes = s.kernel().var(array).map_or(0, |v| s.kernel().vars[v].shape.len() as u32);
        s.apply(PadArray::new(*array, axes.saturating_sub(1), 1)).map(|_| ())
    })
}

/// Gives an array the layout of a text.
pub fn change_layout(s: &mut Schedule, array: &str, layout: &str) -> Steps {
    let layout = s.expected(layout.parse().ok(), "layout")?;
    s.apply(ChangeLayout::new(array, layout)).map(drop)
}

/// Lets the statements of a copy from global to local memory run asynchronously, where there is an
/// instruction for it: in double precision on cards.
pub fn copy_ahead(s: &mut Schedule, sizes: Sizes, copies: &[&str]) -> Steps {
    if sizes.precision != Precision::Double {
        return Ok(());
    }
    s.apply(DeclareCallee::new(COPY_ASYNC_F64))?;
    copies.iter().try_for_each(|c| s.apply(ReplaceWithIntrinsic::new([*c], "copy_async_f64")).map(|_| ()))
}

/// Writes entries of matrices as numbers: those of constant memory are loaded to registers before a
/// loop whose iterations all read them.
pub fn literal_tables(s: &mut Schedule) -> Steps {
    let is_constant = |v: &&Variable| v.space == AddressSpace::Constant;
    let tables: Vec<String> = s.kernel().vars.values().filter(is_constant).map(|v| v.name.clone()).collect();
    tables.into_iter().try_for_each(|t| s.apply(SetAddressSpace::new(t, AddressSpace::Literal)).map(|_| ()))
}

/// The six contractions with `I`: the loop over results, that over terms, and whether they lead to
/// quadrature points.
const CONTRACTIONS: [(&str, &str, bool); 6] = [
    ("c1", "l1", true),
    ("b2", "l2", true),
    ("a3", "l3", true),
    ("i4", "l4", false),
    ("j5", "l5", false),
    ("k6", "l6", false),
];

/// Assumes that `I` is its own image when it is turned by half, and computes two results of each
/// contraction with it at a time, the second one by the images of the entries that the first one
/// takes. Returns the loops that are new.
pub fn halve_contractions(s: &mut Schedule, sizes: Sizes) -> Result<Vec<String>, TransformError> {
    let turned = [ImageAxis::mirrored(0), ImageAxis::mirrored(1)];
    s.apply(Assume::symmetric("I", turned))?;
    let mut loops = Vec::new();
    for (results, terms, to_points) in CONTRACTIONS {
        let extent = if to_points { sizes.points() } else { sizes.nodes() };
        loops.extend(halve(s, results, terms, extent as i64)?);
        let second = Selection::Insn(format!("r_{terms}_update_last"));
        s.apply(UseSymmetry::new("I", turned).only_in(second))?;
    }
    Ok(loops)
}

/// Computes the last half of the results of a contraction beside the first one, terms in the
/// opposite order. Returns the loops of the result in the middle.
fn halve(s: &mut Schedule, results: &str, terms: &str, extent: i64) -> Result<Vec<String>, TransformError> {
    let (half, sum) = (extent / 2, format!("r_{terms}"));
    let (results_last, terms_last) = (format!("{results}_last"), format!("{terms}_last"));
    expand(s, &[&sum], &[results])?;
    s.make(PeelIname::last(results, half))?;
    let middle = match extent % 2 {
        1 => s.apply(PeelIname::last(results, 1))?.loops.into_iter().map(String::from).collect(),
        _ => Vec::new(),
    };
    s.apply(ReverseIname::new(&results_last))?;
    s.apply(ShiftIname::new(&results_last, half - extent))?;
    s.apply(ReverseIname::new(&terms_last))?;
    s.apply(MoveInsns::after([&results_last], results))?;
    s.fuse(results, &results_last)?;
    s.apply(MoveInsns::before([format!("{sum}_init_last")], terms))?;
    s.apply(MoveInsns::after([&terms_last], terms))?;
    s.fuse(terms, &terms_last)?;
    Ok(middle)
}

/// Reads each entry of `I` once for both of its results.
pub fn fetch_entries(s: &mut Schedule) -> Steps {
    for (_, terms, _) in CONTRACTIONS {
        s.apply(fetch("s_I", terms, AddressSpace::Private, &format!("r_I_{terms}"), &[]))?;
    }
    Ok(())
}
