//! The place of the temporary, and the elements of the array it must hold.

use crate::lookup;
use crate::obligation::Obligation;
use crate::proofs::written::may_be_undefined;
use crate::refusal::Refusal;
use crate::staging::{AFFINE_READS, DEFINED_BOX, Footprint, Limits, Tile};
use crate::tree::{body_of, insns_of, loops_down_to};
use kingpost_analysis::deps::{AccessSite, Mode};
use kingpost_analysis::polyhedral::Polyhedral;
use kingpost_ir::{Access, Expr, InameId, InsnId, Kernel, VarId, VarKind};

/// What the temporary stands for, and where.
pub struct Region {
    /// The array.
    pub var: VarId,
    /// The loop in whose body the temporary lives; the kernel if none.
    pub at: Option<InameId>,
    /// Loops around that place.
    pub around: Vec<InameId>,
    /// Positions among the nodes of the body of the first and the last one with an instruction that is
    /// wanted.
    pub nodes: (usize, usize),
    /// The first instruction of the first node.
    pub first: InsnId,
    /// The instructions that use the temporary instead.
    pub insns: Vec<InsnId>,
    /// The texts of the reads that do; all if none is given.
    pub only: Vec<String>,
}

impl Region {
    /// Finds what is `wanted` of the instructions inside a loop, or in the whole kernel: those that
    /// `verb` (read or write) the array.
    ///
    /// # Errors
    /// An unknown loop, or the obligation if nothing in it is wanted.
    pub fn of(
        kernel: &Kernel,
        var: VarId,
        at: Option<&str>,
        wanted: &dyn Fn(InsnId) -> bool,
        (something, verb): (&Obligation, &str),
    ) -> Result<Self, Refusal> {
        let name = at;
        let at = name.map(|name| lookup::tree_loop(kernel, name)).transpose()?;
        let body = body_of(kernel, at)?;
        let of_node = |node| insns_of(std::slice::from_ref(node));
        let is_wanted = |node| of_node(node).into_iter().any(wanted);
        let ends = body.iter().position(is_wanted).zip(body.iter().rposition(is_wanted));
        let (from, to) = something.find(ends, || {
            let place = name.map_or_else(|| "the kernel".to_owned(), |at| format!("`{at}`"));
            let name = &kernel.vars[var].name;
            format!("nothing in {place} {verb}s `{name}`; choose a loop around its {verb}s")
        })?;
        let insns = insns_of(body).into_iter().filter(|i| wanted(*i)).collect();
        let first = of_node(&body[from])[0];
        let around = loops_down_to(kernel, at)?;
        Ok(Self { var, at, around, nodes: (from, to), first, insns, only: Vec::new() })
    }

    /// The same for all instructions from the first node to the last.
    ///
    /// # Errors
    /// A loop that is not in the kernel.
    pub fn with_all_between(mut self, kernel: &Kernel) -> Result<Self, Refusal> {
        self.insns = insns_of(&body_of(kernel, self.at)?[self.nodes.0..=self.nodes.1]);
        Ok(self)
    }

    /// Whether an access of the array uses the temporary instead, if its instruction does.
    pub(super) fn is_chosen(&self, kernel: &Kernel, access: &Access) -> bool {
        self.only.is_empty() || lookup::has_text(kernel, &Expr::Load(access.clone()), &self.only)
    }

    /// The reads that are replaced, which must all be affine.
    ///
    /// # Errors
    /// [`AFFINE_READS`] with a read through another index.
    pub fn reads<'s>(
        &self,
        poly: &Polyhedral,
        sites: &'s [AccessSite],
    ) -> Result<Vec<&'s AccessSite>, Refusal> {
        let inside = |s: &&AccessSite| {
            s.mode == Mode::Read && self.insns.contains(&s.insn) && self.is_chosen(&poly.kernel, &s.access)
        };
        let reads: Vec<_> = sites.iter().filter(inside).collect();
        for site in &reads {
            AFFINE_READS.decide(site.is_affine(), || {
                format!(
                    "`{}` reads `{}` through an index that is not affine in the loops and parameters, so what it reads \
                     is not known; prefetch in a loop without that read",
                    poly.kernel.insns[site.insn].name, poly.kernel.vars[self.var].name
                )
            })?;
        }
        Ok(reads)
    }

    /// What the reads need of an array.
    ///
    /// # Errors
    /// An extent that is not a constant, nothing that is read; a failure of isl.
    pub fn tile(
        &self,
        poly: &Polyhedral,
        reads: &[&AccessSite],
        footprint: Footprint,
        limits: Limits<'_>,
    ) -> Result<Tile, Refusal> {
        let tile = Tile::around(poly, self.var, reads, &self.around, limits)?;
        match footprint {
            Footprint::Box => Ok(tile),
            Footprint::Exact => tile.narrow(poly, self.var, reads, &self.around),
        }
    }

    /// Undefined elements must not be read: of what may hold some, the copy reads what was read
    /// anyway.
    ///
    /// # Errors
    /// [`DEFINED_BOX`] if the array may hold undefined elements that nothing reads; a failure of
    /// isl.
    pub fn check_defined(
        &self,
        poly: &Polyhedral,
        reads: &[&AccessSite],
        tile: &Tile,
    ) -> Result<(), Refusal> {
        let var = &poly.kernel.vars[self.var];
        let defined = !may_be_undefined(&var.kind) || tile.is_filled_by(poly, reads, &self.around)?;
        DEFINED_BOX.decide(defined, || {
            format!(
                "the box around what is read of `{}` holds elements that are perhaps never read, and of {} they may be \
                 undefined; prefetch in a loop whose reads fill a box",
                var.name,
                if var.kind == VarKind::Temporary { "a temporary" } else { "an output" }
            )
        })
    }
}
