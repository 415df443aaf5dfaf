//! The nests of a product: what starts entries, adds products to them, and stores them, each dealt out to
//! sub-groups, work-items and registers.

use super::places::{Applied, MATRIX_TERMS, Places, Side, TileProduct};
use kingpost_ir::{AddressSpace, InsnId, Kernel, Node, ScalarType};
use kingpost_steps::lookup::{iname, tree_loop};
use kingpost_steps::refusal::Refusal;
use kingpost_steps::schedule::{Loop, Schedule};
use kingpost_steps::tree::{insns_of, loop_body};
use kingpost_transforms::ScheduleSteps;
use kingpost_transforms::primitives::{
    BufferWrites, DistributeLoop, ExpandArray, JoinArrayAxes, JoinInames, RealiseReduction, ReverseIname,
    SplitIname, Tail, WriteOut,
};

/// A sum of products: what holds it, what adds to it, and what comes after the loop over its terms.
pub(super) struct Sum {
    pub(super) held: String,
    pub(super) update: String,
    pub(super) ty: ScalarType,
    pub(super) after: String,
}

/// The loops over the entries of a tile, by what their iterations are dealt out to.
#[derive(Clone)]
pub(super) struct Nest {
    pub(super) sub_groups: [String; 2],
    /// Whether the loop over sub-groups along columns is around that along rows.
    columns_outside: bool,
    pub(super) work_items: [String; 2],
    /// Instructions, or vectors of entries, along rows and columns.
    pub(super) blocks: [String; 2],
    /// Entries of one.
    pub(super) entries: [String; 2],
}

impl Nest {
    fn of(loops: &[String]) -> Option<Self> {
        let pair = |k: usize| Some([loops.get(2 * k)?.clone(), loops.get(2 * k + 1)?.clone()]);
        let (sub_groups, columns_outside) = (pair(0)?, false);
        Some(Self { sub_groups, columns_outside, work_items: pair(1)?, blocks: pair(2)?, entries: pair(3)? })
    }

    /// The same where the first loop of all is along columns, and the second along rows.
    fn with_columns_outside(mut self) -> Self {
        self.sub_groups.reverse();
        Self { columns_outside: true, ..self }
    }

    /// The loops over sub-groups, outer first.
    pub(super) fn outer_first(&self) -> [String; 2] {
        let [rows, columns] = self.sub_groups.clone();
        if self.columns_outside { [columns, rows] } else { [rows, columns] }
    }

    /// Those along rows, or along columns.
    pub(super) fn along(&self, side: usize) -> [&String; 4] {
        [&self.sub_groups, &self.work_items, &self.blocks, &self.entries].map(|pair| &pair[side])
    }
}

/// The product in tiles.
pub(super) struct Nests {
    pub(super) groups: [Loop; 2],
    /// Over tiles, and over the terms of one: all, or as many as an instruction takes.
    pub(super) tiles: String,
    pub(super) terms: String,
    /// Over the terms of an instruction.
    pub(super) of_one: Option<String>,
    pub(super) start: Nest,
    pub(super) add: Nest,
    pub(super) store: Nest,
    pub(super) sum: Sum,
}

/// Makes loops of the sum, and lets a temporary hold it.
pub(super) fn sum_of(s: &mut Schedule, product: &TileProduct) -> Applied<Sum> {
    let [i, j, k] = &product.loops;
    let held = s.fresh("sums");
    for name in [i, j] {
        tree_loop(s.kernel(), name).map_err(|cause| product.refused(cause))?;
    }
    s.reorder([i, j])?;
    let along = iname(s.kernel(), k).map_err(|cause| product.refused(cause))?;
    if loop_body(&s.kernel().body, along).is_none() {
        s.make(RealiseReduction::new(k).into_temporary(held.clone()))?;
    } else if let [Node::Loop(..)] = inside(s.kernel(), j) {
        let found = update_in(s.kernel(), k).map_err(|cause| product.refused(cause))?;
        let var = s.kernel().vars[s.kernel().insns[found].lhs.var].name.clone();
        s.make(BufferWrites::new(var, j, AddressSpace::Private).into_temporary(held))?;
    }
    read(s.kernel(), j, k).map_err(|cause| product.refused(cause))
}

fn inside<'k>(kernel: &'k Kernel, name: &str) -> &'k [Node] {
    // default: a loop that is none holds nothing, and the caller says so
    kernel.iname(name).and_then(|l| loop_body(&kernel.body, l)).unwrap_or(&[])
}

fn update_in(kernel: &Kernel, k: &str) -> Result<InsnId, Refusal> {
    match inside(kernel, k) {
        [Node::Insn(insn)] if kernel.insns[*insn].update_op().is_some() => Ok(*insn),
        _ => Err(no_product(format!("`{k}` holds more than one update"))),
    }
}

fn read(kernel: &Kernel, j: &str, k: &str) -> Result<Sum, Refusal> {
    let body = inside(kernel, j);
    let is_sum = |node: &Node| matches!(node, Node::Loop(l, _) if kernel.inames[*l].name == k);
    let at = body.iter().position(is_sum);
    let at = at.ok_or_else(|| no_product(format!("`{k}` is not directly inside `{j}`")))?;
    let insn = &kernel.insns[update_in(kernel, k)?];
    let held = &kernel.vars[insn.lhs.var];
    match (at, body.get(at + 1)) {
        (1.., Some(Node::Insn(after))) if held.shape.is_empty() && held.space == AddressSpace::Private => {
            let (update, after) = (insn.name.clone(), kernel.insns[*after].name.clone());
            Ok(Sum { held: held.name.clone(), update, after, ty: held.ty })
        }
        _ => Err(no_product(format!("`{}` is not started before `{k}` and stored after it", held.name))),
    }
}

fn no_product(found: String) -> Refusal {
    Refusal::argument("loops", found, "loops over rows, columns and terms around one sum")
}

/// A split into whole blocks: what a tile has more than the matrix would be read, too.
pub(super) fn exactly(iname: &str, factor: i64) -> SplitIname {
    SplitIname { tail: Tail::Exact, ..SplitIname::new(iname, factor) }
}

/// Splits a side of a tile: the loop over tiles, and those inside, outer first.
pub(super) fn split_side(
    s: &mut Schedule,
    name: &str,
    side: &Side,
    names: [&str; 5],
) -> Applied<[String; 5]> {
    let stems: Vec<String> = names.iter().map(|stem| format!("{stem}_{name}")).collect();
    let stems: Vec<&str> = stems.iter().map(String::as_str).collect();
    let mut made = Vec::new();
    let mut rest = name.to_owned();
    for (k, factor) in side.lengths.iter().enumerate() {
        let inner = if k == 3 { stems[4].to_owned() } else { format!("rest_{name}") };
        let mut step = exactly(&rest, *factor);
        step.outer = Some(s.fresh(stems[k]));
        step.inner = Some(s.fresh(&inner));
        let [outer, inner] = s.make(step)?;
        made.push(outer.name().to_owned());
        inner.name().clone_into(&mut rest);
    }
    made.push(rest);
    let made = <[String; 5]>::try_from(made).ok();
    s.expected(made, "loop for each length")
}

/// Deals out the entries, and then makes nests of what starts them, adds to them and stores them.
pub(super) fn deal(s: &mut Schedule, product: &TileProduct, sum: Sum, places: &Places) -> Applied<Nests> {
    let [i, j, k] = &product.loops;
    let (by_matrix, sides) = (places.by_matrix, &places.sides);
    // an instruction gives a work-item every eighth of 16 rows, and two neighbours of 8 columns
    let rows = if by_matrix { ["tile", "w", "r", "y", "l"] } else { ["tile", "w", "r", "l", "y"] };
    let [row_tiles, w_i, r, in_1, in_2] = split_side(s, i, &sides[0], rows)?;
    let (l_i, y) = if by_matrix { (in_2, in_1) } else { (in_1, in_2) };
    let [column_tiles, w_j, c, l_j, x] = split_side(s, j, &sides[1], ["tile", "w", "c", "l", "x"])?;
    // sub-groups below each other come next to each other, but work-items side by side: one of the
    // two numbers of a work-item's place is a remainder for rows and for columns, as NVRTC puts
    // constants in no address with two
    let [outer, inner] = if places.winds() { [w_j, w_i] } else { [w_i, w_j] };
    let entries = [outer, inner, l_i, l_j, r, c, y, x];
    s.reorder([&row_tiles, &column_tiles].into_iter().chain(&entries))?;
    s.make(ExpandArray::new(&sum.held, entries.clone()))?;
    let [tiles, terms] = s.make(exactly(k, places.terms))?;
    let (mut terms, mut of_one) = (terms.name().to_owned(), None);
    if by_matrix {
        let [outer, inner] = s.make(exactly(&terms, MATRIX_TERMS))?;
        (terms, of_one) = (outer.name().to_owned(), Some(inner.name().to_owned()));
    }
    let [add, store] = part(s, &entries, [tiles.name(), &sum.after])?;
    let nest = |loops: &[String]| {
        let found = s.expected(Nest::of(loops), "loop for each place")?;
        Ok(if places.winds() { found.with_columns_outside() } else { found })
    };
    let (start, add, store) = (nest(&entries)?, nest(&add)?, nest(&store)?);
    let groups = [row_tiles, column_tiles].map(Loop::named);
    let nests = Nests { groups, tiles: tiles.name().to_owned(), terms, of_one, start, add, store, sum };
    let Nest { work_items: [l_i, l_j], blocks: [r, c], entries: [y, x], .. } = &nests.add;
    let (t, terms, [outer, inner]) = (&nests.tiles, &nests.terms, &nests.add.outer_first());
    let order = match &nests.of_one {
        Some(of_one) => vec![t, terms, outer, inner, r, c, l_i, l_j, y, x, of_one],
        // rows before columns: `wind` turns each second one
        None if places.winds() => vec![t, outer, inner, l_i, l_j, terms, r, y, c, x],
        None => vec![t, outer, inner, l_i, l_j, terms, r, c, y, x],
    };
    s.reorder(order)?;
    Ok(nests)
}

/// Returns the loops over the entries of a work-item, or over the instructions of a sub-group.
///
/// Of as many rows as columns, the columns of each second row run backward, so that a product
/// follows one with a factor in common: the register that holds it is read once for both, and fewer
/// products read three of one bank. 8 by 8 entries in parts of 32 by 64 then have 0.94 of cuBLAS at
/// 4096 rows, where 16 by 4 row by row have 0.91 (H200, 2026-11-29).
pub(super) fn wind(s: &mut Schedule, places: &Places, add: &Nest) -> Applied<Vec<String>> {
    let [r, c] = &add.blocks;
    let [y, x] = &add.entries;
    if places.by_matrix {
        return Ok(add.blocks.to_vec());
    }
    if !places.winds() {
        return Ok([&add.blocks[..], &add.entries].concat());
    }
    let [pairs, of_pair] = s.make(exactly(y, 2))?;
    let backward = s.make(WriteOut::new(of_pair.name()))?.loops;
    for l in &backward {
        s.make(ReverseIname::new(l.name()))?;
    }
    let all = [r.as_str(), pairs.name(), c, x].into_iter().chain(backward.iter().map(Loop::name));
    Ok(all.map(str::to_owned).collect())
}

/// Gives what comes from two nodes on in the innermost of some nested loops nests of their own; returns the loops
/// of these, outer first.
pub(super) fn part(s: &mut Schedule, loops: &[String], from: [&str; 2]) -> Applied<[Vec<String>; 2]> {
    let mut parts = from.map(str::to_owned);
    let (mut add, mut store) = (Vec::new(), Vec::new());
    for l in loops.iter().rev() {
        let made = s.make(DistributeLoop::new(l, parts.clone()))?;
        let made = <[Loop; 2]>::try_from(made).ok();
        parts = s.expected(made, "loop for each part")?.map(|l| l.name().to_owned());
        add.insert(0, parts[0].clone());
        store.insert(0, parts[1].clone());
    }
    Ok([add, store])
}

/// The loops over sub-groups and over the work-items of one, of each nest.
#[derive(Default)]
pub(super) struct Joined {
    pub(super) sub_groups: Vec<String>,
    pub(super) work_items: Vec<String>,
}

impl Joined {
    /// Those around what adds products.
    pub(super) fn of_products(&self) -> [&String; 2] {
        [&self.sub_groups[1], &self.work_items[1]]
    }
}

/// One loop over sub-groups and one over their work-items, in each nest.
pub(super) fn join_work_items(s: &mut Schedule, nests: &Nests) -> Applied<Joined> {
    let mut joined = Joined::default();
    for nest in [&nests.start, &nests.add, &nests.store] {
        joined.sub_groups.push(join(s, &nest.outer_first())?);
        joined.work_items.push(join(s, &nest.work_items)?);
    }
    s.make(JoinArrayAxes::new(&nests.sum.held, 0))?;
    s.make(JoinArrayAxes::new(&nests.sum.held, 1))?;
    Ok(joined)
}

pub(super) fn join(s: &mut Schedule, [outer, inner]: &[String; 2]) -> Applied<String> {
    Ok(s.make(JoinInames::new(outer, inner))?.name().to_owned())
}

/// Gives what comes from `first` on in the innermost of some nested loops a nest of its own; returns its
/// loops, outer first.
pub(super) fn cut_before(s: &mut Schedule, loops: &[String], first: &str) -> Applied<Vec<String>> {
    let mut made = vec![first.to_owned()];
    for l in loops.iter().rev() {
        let new = s.make(DistributeLoop::new(l, [&made[0]]))?.into_iter().next();
        made.insert(0, s.expected(new, "loop for the part")?.name().to_owned());
    }
    made.pop();
    Ok(made)
}

/// The statements of a loop that write an array.
pub(super) fn statements(kernel: &Kernel, within: &str, array: &str) -> Vec<String> {
    let var = kernel.var(array);
    let writes = |node: &&Node| {
        insns_of(std::slice::from_ref(*node)).into_iter().any(|insn| Some(kernel.insns[insn].lhs.var) == var)
    };
    inside(kernel, within)
        .iter()
        .filter(writes)
        .map(|node| match node {
            Node::Loop(iname, _) => kernel.inames[*iname].name.clone(),
            Node::Insn(insn) => kernel.insns[*insn].name.clone(),
        })
        .collect()
}
