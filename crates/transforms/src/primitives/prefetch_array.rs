//! Copies what a region reads of an array to a temporary.

use super::Transform;
use super::tag_iname::check_placement;
use crate::error::Cause;
use crate::lookup;
use crate::proofs::stale::{Place, check_unchanged};
use crate::tile::{Tile, check_work_items, rule_that_reads};
use crate::tree::{insns_of, loop_body, replace_loop};
use purlin_ir::deps::{AccessSite, Mode, access_sites};
use purlin_ir::polyhedral::Polyhedral;
use purlin_ir::{
    Access, AddressSpace, Direction, Expr, Id, InameId, Insn, InsnId, Kernel, Node, VarId, VarKind, Variable,
    WriteOp,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// Copies the box of elements of `var` that one iteration of the loop `at` reads to a temporary, right before
/// the first node of its body that reads them, and reads the temporary instead.
///
/// # Rewrite
/// ```text
/// for k_o in 0..floor_div(n, 8)        =>   for k_o in 0..floor_div(n, 8)
///   for k_i in 0..8                           for a_tile_0 in 0..8
///     S(a[8*k_o + k_i])                         fetch_a_tile: a_tile[a_tile_0] = a[8*k_o + a_tile_0]
///                                             for k_i in 0..8
///                                               S(a_tile[k_i])
/// ```
/// Axes along which the box has one element disappear. Elements of the box that are not in the array are left
/// out by the bounds of the copy loops. With `work_items` the copy is one flat loop of constant length, in
/// rounds of a work-group, the last entry outermost:
/// ```text
/// for t_o in 0..2
///   for t_l1 in 0..4 {l.1}
///     for t_l0 in 0..32 {l.0} where 128*t_o + 32*t_l1 + t_l0 < 192
/// ```
/// The copy is an instruction of its own; the instances of the others stay.
///
/// # Precondition
/// With `L` the loops around the copy, for every write `w` of `var` after it and every read `r`:
/// `{ w -> r : L = L', element(w) = element(r), w before r }` is empty. The box has constant extents. What may be
/// undefined (temporaries and `out` arguments) is copied only if the box holds nothing but what is read.
/// If loops are on axes, the placement must hold.
///
/// # Errors
/// An unknown variable or loop, a scalar, an array that the region does not read, an index that is not affine, reads
/// inside a rule, an extent that is not a constant, taken names; a write between the copy and a read, with two
/// instances; a copy that the placement breaks.
///
/// # Source
/// Document 000, section 4.2.2.
///
/// # Elsewhere
/// Loopy `add_prefetch`; Halide `compute_at` with `store_in`; Exo `stage_mem`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrefetchArray {
    /// The array.
    pub var: String,
    /// The loop in whose body the copy stands; the whole kernel if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// `global`, `local` or `private`.
    pub space: String,
    /// Name of the temporary; `{var}_tile` if absent. Loops and the instruction are named after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temporary: Option<String>,
    /// Names of the copy loops, one for each axis of the temporary; `{temporary}_0`, … if absent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inames: Vec<String>,
    /// Work-items along `l.0`, `l.1`, `l.2` that share one flat copy loop; none: loops over the axes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub work_items: Vec<i64>,
}

impl PrefetchArray {
    /// Copies what an iteration of `at` reads of `var` to a temporary in `space`.
    pub fn new(var: impl Into<String>, at: impl Into<String>, space: AddressSpace) -> Self {
        Self { at: Some(at.into()), ..Self::whole(var, space) }
    }

    /// Copies what the kernel reads of `var`.
    pub fn whole(var: impl Into<String>, space: AddressSpace) -> Self {
        let (temporary, inames, work_items) = (None, Vec::new(), Vec::new());
        Self { var: var.into(), at: None, space: space.name().into(), temporary, inames, work_items }
    }

    /// Calls the temporary `name`.
    #[must_use]
    pub fn into_temporary(mut self, name: impl Into<String>) -> Self {
        self.temporary = Some(name.into());
        self
    }

    /// Copies by a flat loop over the work-items of a group.
    #[must_use]
    pub fn by_work_items(mut self, sizes: impl IntoIterator<Item = i64>) -> Self {
        self.work_items = sizes.into_iter().collect();
        self
    }

    fn name(&self) -> String {
        self.temporary.clone().unwrap_or_else(|| format!("{}_tile", self.var))
    }
}

impl fmt::Display for PrefetchArray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "prefetch `{}`", self.var)?;
        if let Some(at) = &self.at {
            write!(f, " in `{at}`")?;
        }
        write!(f, " into {} `{}`", self.space, self.name())?;
        if !self.inames.is_empty() {
            let names: Vec<_> = self.inames.iter().map(|n| format!("`{n}`")).collect();
            write!(f, " by {}", names.join(", "))?;
        }
        if !self.work_items.is_empty() {
            let sizes: Vec<_> = self.work_items.iter().map(i64::to_string).collect();
            write!(f, " by {} work-items", sizes.join(" x "))?;
        }
        Ok(())
    }
}

impl Transform for PrefetchArray {
    fn rewrite(&self, kernel: &Kernel) -> Result<Kernel, Cause> {
        let region = Region::of(self, kernel)?;
        let space = self.check_arguments(kernel)?;
        let poly = Polyhedral::new(kernel);
        let sites = access_sites(&poly).swap_remove(region.var.index());
        let reads = region.reads(&poly, &sites)?;
        let place = Place { loops: &region.around, position: poly.position(region.first), what: "the copy" };
        let help = "prefetch it in a loop further inside, or behind that write";
        check_unchanged(&poly, &sites, &reads, place, help)?;
        let tile = Tile::around(&poly, region.var, &reads, &region.around)?;
        region.check_defined(&poly, &reads, &tile)?;
        let copied = self.edit(kernel, &region, &tile, space)?;
        copied.verify()?;
        check_placement(&copied)?;
        Ok(copied)
    }
}

/// What is copied, and where.
struct Region {
    var: VarId,
    at: Option<InameId>,
    /// Loops around the copy.
    around: Vec<InameId>,
    /// Position among the nodes of the body of the first one that reads.
    node: usize,
    /// The first instruction of that node.
    first: InsnId,
}

impl Region {
    fn of(step: &PrefetchArray, kernel: &Kernel) -> Result<Self, Cause> {
        let var = lookup::var(kernel, &step.var)?;
        if kernel.vars[var].shape.is_empty() {
            return Err(Cause::Argument(format!("`{}` is a scalar; only arrays are prefetched", step.var)));
        }
        let at = step.at.as_ref().map(|name| lookup::tree_loop(kernel, name)).transpose()?;
        let body = match at {
            None => kernel.body.as_slice(),
            Some(at) => loop_body(&kernel.body, at).unwrap_or_default(),
        };
        let place = step.at.as_ref().map_or_else(|| "the kernel".to_owned(), |at| format!("`{at}`"));
        let found = body
            .iter()
            .position(|node| insns_of(std::slice::from_ref(node)).iter().any(|i| reads(kernel, *i, var)));
        let Some(node) = found else {
            return Err(Cause::Argument(format!(
                "nothing in {place} reads `{}`; choose a loop around its reads",
                step.var
            )));
        };
        let inside = insns_of(body);
        if let Some(rule) = inside.iter().find_map(|i| rule_that_reads(kernel, *i, var)) {
            return Err(Cause::Argument(format!(
                "rule `{rule}` reads `{}`, and a rule knows no loops; expand it first",
                step.var
            )));
        }
        let first = insns_of(&body[node..])[0];
        let loops = kernel.schedule().into_iter().find(|(i, _)| *i == first).map(|(_, l)| l);
        let loops = loops.unwrap_or_default();
        let depth = at.and_then(|at| loops.iter().position(|l| *l == at)).map_or(0, |k| k + 1);
        Ok(Self { var, at, around: loops[..depth].to_vec(), node, first })
    }

    /// The reads inside, which must all be affine.
    fn reads<'s, 'k>(
        &self,
        poly: &Polyhedral<'k>,
        sites: &'s [AccessSite<'k>],
    ) -> Result<Vec<&'s AccessSite<'k>>, Cause> {
        let inside = |s: &&AccessSite| s.mode == Mode::Read && poly.loops(s.insn).starts_with(&self.around);
        let reads: Vec<_> = sites.iter().filter(inside).collect();
        match reads.iter().find(|s| !s.is_affine()) {
            None => Ok(reads),
            Some(site) => Err(Cause::Argument(format!(
                "`{}` reads `{}` through an index that is not affine in the loops and parameters, so what it reads \
                 is not known; prefetch in a loop without that read",
                poly.kernel.insns[site.insn].name, poly.kernel.vars[self.var].name
            ))),
        }
    }

    /// Undefined elements must not be read: of what may hold some, the copy reads what was read anyway.
    fn check_defined(&self, poly: &Polyhedral, reads: &[&AccessSite], tile: &Tile) -> Result<(), Cause> {
        let var = &poly.kernel.vars[self.var];
        match var.kind {
            VarKind::Param | VarKind::Table(_) | VarKind::Argument(Direction::In | Direction::InOut) => {
                return Ok(());
            }
            VarKind::Argument(Direction::Out) | VarKind::Temporary => {}
        }
        if tile.is_filled_by(poly, reads, &self.around)? {
            return Ok(());
        }
        Err(Cause::Argument(format!(
            "the box around what is read of `{}` holds elements that are perhaps never read, and of {} they may be \
             undefined; prefetch in a loop whose reads fill a box",
            var.name,
            if var.kind == VarKind::Temporary { "a temporary" } else { "an output" }
        )))
    }
}

impl PrefetchArray {
    fn check_arguments(&self, kernel: &Kernel) -> Result<AddressSpace, Cause> {
        lookup::free(kernel, &self.name())?;
        lookup::free(kernel, &format!("fetch_{}", self.name()))?;
        check_work_items(&self.work_items)?;
        if !self.work_items.is_empty() && !self.inames.is_empty() {
            return Err(Cause::Argument(
                "a flat copy loop has no loop for each axis; leave out the names or the work-items".into(),
            ));
        }
        match AddressSpace::ALL.into_iter().find(|s| s.name() == self.space) {
            Some(space @ (AddressSpace::Global | AddressSpace::Local | AddressSpace::Private)) => Ok(space),
            Some(AddressSpace::Constant) | None => Err(Cause::Argument(format!(
                "`{}` is no memory for a copy; there is global, local, private",
                self.space
            ))),
        }
    }

    fn edit(
        &self,
        kernel: &Kernel,
        region: &Region,
        tile: &Tile,
        space: AddressSpace,
    ) -> Result<Kernel, Cause> {
        let mut copied = kernel.clone();
        let ty = kernel.vars[region.var].ty;
        let copy = Variable::new(self.name(), ty, VarKind::Temporary, tile.shape(), space);
        let copy = copied.vars.push(copy);
        redirect(&mut copied, region, tile, copy);
        let loops = if self.work_items.is_empty() {
            tile.box_loops(&mut copied, &self.inames, &self.name())?
        } else {
            tile.flat_loops(&mut copied, &self.work_items, &self.name())?
        };
        let insn = Insn {
            name: format!("fetch_{}", self.name()),
            lhs: Access::new(copy, tile.temporary_at(&loops.offsets)),
            op: WriteOp::Assign,
            rhs: Expr::load(region.var, tile.array_at(&loops.offsets)),
            predicate: None,
            tags: BTreeSet::new(),
        };
        let mut node = Node::Insn(copied.insns.push(insn));
        for iname in loops.inames.into_iter().rev() {
            node = Node::Loop(iname, vec![node]);
        }
        let insert = |mut body: Vec<Node>| {
            body.insert(region.node, node.clone());
            body
        };
        match region.at {
            None => copied.body = insert(std::mem::take(&mut copied.body)),
            Some(at) => {
                replace_loop(&mut copied.body, at, &mut |body| vec![Node::Loop(at, insert(body))]);
            }
        }
        Ok(copied)
    }
}

/// Reads the temporary instead of the array, everywhere in the region.
fn redirect(kernel: &mut Kernel, region: &Region, tile: &Tile, copy: VarId) {
    let body = match region.at {
        None => kernel.body.as_slice(),
        Some(at) => loop_body(&kernel.body, at).unwrap_or_default(),
    };
    let mut rewrite = |e: Expr| match e {
        Expr::Load(access) if access.var == region.var => Expr::load(copy, tile.index(&access.index)),
        other => other,
    };
    for insn in insns_of(body) {
        kernel.insns[insn].map_expressions(&mut rewrite);
    }
}

fn reads(kernel: &Kernel, insn: InsnId, var: VarId) -> bool {
    kernel.insns[insn].reads().iter().any(|a| a.var == var) || rule_that_reads(kernel, insn, var).is_some()
}
