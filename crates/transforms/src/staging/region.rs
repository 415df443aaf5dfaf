//! The place of the temporary, and the elements of the array it must hold.

use crate::error::Cause;
use crate::lookup;
use crate::proofs::footprint::{Span, certain_elements, element_names, possible_elements, span};
use crate::proofs::written::may_be_undefined;
use crate::staging::Footprint;
use crate::tree::{insns_of, loop_body};
use purlin_ir::deps::{AccessSite, Mode};
use purlin_ir::polyhedral::{Disjuncts, Polyhedral, Side, cross, difference};
use purlin_ir::{Affine, Constraint, InameId, InsnId, Kernel, VarId, VarKind};
use purlin_isl as isl;

/// What is put into the temporary, and where.
pub(crate) struct Region {
    /// The array.
    pub(crate) var: VarId,
    /// The loop in whose body it is filled; the kernel if none.
    pub(crate) at: Option<InameId>,
    /// Loops around that place.
    pub(crate) around: Vec<InameId>,
    /// Position among the nodes of the body of the first one that reads.
    pub(crate) node: usize,
    /// The first instruction of that node.
    pub(crate) first: InsnId,
    /// The instructions that read the temporary instead.
    pub(crate) insns: Vec<InsnId>,
}

/// The elements that are put into the temporary.
pub(crate) struct Contents {
    /// The box, axis by axis.
    pub(crate) spans: Vec<Span>,
    /// For each axis whether the box may reach below and beyond the array.
    pub(crate) guards: Vec<[bool; 2]>,
    /// What the elements satisfy besides, by the names of the loops around and of [`element_names`].
    pub(crate) conditions: Disjuncts,
}

impl Region {
    /// Finds what `reads` accepts of the instructions inside a loop, or in the whole kernel.
    ///
    /// # Errors
    /// An unknown loop, or one in which nothing reads.
    pub(crate) fn of(
        kernel: &Kernel,
        var: VarId,
        at: Option<&str>,
        reads: &dyn Fn(InsnId) -> bool,
    ) -> Result<Self, Cause> {
        let name = at;
        let at = name.map(|name| lookup::tree_loop(kernel, name)).transpose()?;
        let body = body_of(kernel, at);
        let of_node = |node| insns_of(std::slice::from_ref(node));
        let Some(node) = body.iter().position(|node| of_node(node).into_iter().any(reads)) else {
            let place = name.map_or_else(|| "the kernel".to_owned(), |at| format!("`{at}`"));
            return Err(Cause::Argument(format!(
                "nothing in {place} reads `{}`; choose a loop around its reads",
                kernel.vars[var].name
            )));
        };
        let insns: Vec<_> = insns_of(body).into_iter().filter(|i| reads(*i)).collect();
        let first = of_node(&body[node])[0];
        let loops = kernel.schedule().into_iter().find(|(i, _)| *i == first).map(|(_, l)| l);
        let loops = loops.unwrap_or_default();
        let depth = at.and_then(|at| loops.iter().position(|l| *l == at)).map_or(0, |k| k + 1);
        Ok(Self { var, at, around: loops[..depth].to_vec(), node, first, insns })
    }

    /// The reads that are replaced, which must all be affine.
    ///
    /// # Errors
    /// A read through an index that is not.
    pub(crate) fn reads<'s, 'k>(
        &self,
        poly: &Polyhedral<'k>,
        sites: &'s [AccessSite<'k>],
    ) -> Result<Vec<&'s AccessSite<'k>>, Cause> {
        let inside = |s: &&AccessSite| s.mode == Mode::Read && self.insns.contains(&s.insn);
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

    /// What the reads need of an array of this shape; without a shape the box ends nowhere.
    ///
    /// # Errors
    /// An extent that is not a constant, nothing that is read, an exact footprint without closed form.
    pub(crate) fn contents(
        &self,
        poly: &Polyhedral,
        reads: &[&AccessSite],
        footprint: Footprint,
        shape: Option<&[Affine]>,
    ) -> Result<Contents, Cause> {
        let spans = self.spans(poly, reads)?;
        let guards = match shape {
            Some(shape) => self.guards(poly, &spans, shape)?,
            None => vec![[false; 2]; spans.len()],
        };
        let mut contents = Contents { spans, guards, conditions: vec![Vec::new()] };
        if footprint == Footprint::Exact {
            let inside = self.set(poly, &contents, shape.unwrap_or_default())?;
            let read = possible_elements(poly, reads, &self.around, contents.spans.len())?;
            if read.intersect(&inside)?.is_empty()? {
                return Err(nothing(poly, self.var));
            }
            contents.conditions = read.gist(&inside)?.coalesce()?.remove_redundancies()?.disjuncts()?;
        }
        Ok(contents)
    }

    fn spans(&self, poly: &Polyhedral, reads: &[&AccessSite]) -> Result<Vec<Span>, Cause> {
        let rank = reads.first().map_or(0, |site| site.index.len());
        let mut spans = Vec::with_capacity(rank);
        for axis in 0..rank {
            let span = span(poly, reads, axis, self.around.len())?;
            spans.push(span.ok_or_else(|| nothing(poly, self.var))?);
        }
        let elements = spans.iter().try_fold(1_i64, |n, s| n.checked_mul(s.extent));
        match elements {
            Some(n) if n <= 1 << 31 => Ok(spans),
            _ => Err(Cause::Argument(
                "the box has more than 2^31 elements; prefetch in a loop further inside".into(),
            )),
        }
    }

    /// For each axis whether the box may reach below and beyond the array.
    fn guards(&self, poly: &Polyhedral, spans: &[Span], shape: &[Affine]) -> Result<Vec<[bool; 2]>, Cause> {
        let mut guards = Vec::with_capacity(spans.len());
        for (span, extent) in spans.iter().zip(shape) {
            let last = span.lower.plus_constant(span.extent - 1);
            let below = self.reachable(poly, &Constraint::lt(&span.lower, &Affine::default()))?;
            let beyond = self.reachable(poly, &Constraint::le(extent, &last))?;
            guards.push([below, beyond]);
        }
        Ok(guards)
    }

    fn reachable(&self, poly: &Polyhedral, outside: &Constraint) -> Result<bool, Cause> {
        let Some(outside) = poly.constraint(outside, Side::Source) else { return Ok(true) };
        let (domain, _) = poly.domains(&self.around, Side::Source);
        let all = cross(&poly.in_context(domain), &[vec![outside]]);
        let dims = poly.names(&self.around, Side::Source);
        Ok(!isl::Set::from_disjuncts(&isl::SetSpace::new(&dims, &poly.params), &all)?.is_empty()?)
    }

    /// `{ (L, e) : e in the temporary }`, with the loops around in their domains.
    ///
    /// # Errors
    /// A failure of isl.
    pub(crate) fn set(
        &self,
        poly: &Polyhedral,
        contents: &Contents,
        shape: &[Affine],
    ) -> Result<isl::Set, Cause> {
        let axes = element_names(contents.spans.len());
        let mut inside = Vec::new();
        for (k, (span, axis)) in contents.spans.iter().zip(&axes).enumerate() {
            let e = isl::Affine::name(axis.clone());
            if let Some(lower) = poly.affine(&span.lower, Side::Source) {
                let offset = difference(&e, &lower);
                let last = isl::Affine::constant(span.extent - 1);
                inside.push(isl::Constraint::non_negative(difference(&last, &offset)));
                inside.push(isl::Constraint::non_negative(offset));
            }
            let [below, beyond] = contents.guards[k];
            if below {
                inside.push(isl::Constraint::non_negative(e.clone()));
            }
            let extent = shape.get(k).and_then(|extent| poly.affine(extent, Side::Source));
            if let Some(extent) = extent.filter(|_| beyond) {
                inside.push(isl::Constraint::non_negative(difference(&extent, &e).offset(-1)));
            }
        }
        let (domain, _) = poly.domains(&self.around, Side::Source);
        let mut dims = poly.names(&self.around, Side::Source);
        dims.extend(axes);
        let space = isl::SetSpace::new(&dims, &poly.params);
        let all = cross(&cross(&poly.in_context(domain), &[inside]), &contents.conditions);
        Ok(isl::Set::from_disjuncts(&space, &all)?)
    }

    /// Whether all that is put into the temporary is surely read.
    ///
    /// Formula: `{ (L, e) : e in the temporary }` is a subset of `{ (L, e) : e is surely read }`.
    ///
    /// # Errors
    /// A failure of isl.
    pub(crate) fn is_surely_read(
        &self,
        poly: &Polyhedral,
        reads: &[&AccessSite],
        contents: &Contents,
        shape: &[Affine],
    ) -> Result<bool, Cause> {
        let filled = self.set(poly, contents, shape)?;
        Ok(filled.is_subset(&certain_elements(poly, reads, &self.around, contents.spans.len())?)?)
    }

    /// Undefined elements must not be read: of what may hold some, the copy reads what was read anyway.
    ///
    /// # Errors
    /// [`Cause::Argument`] if the array may hold undefined elements that nothing reads.
    pub(crate) fn check_defined(
        &self,
        poly: &Polyhedral,
        reads: &[&AccessSite],
        contents: &Contents,
    ) -> Result<(), Cause> {
        let var = &poly.kernel.vars[self.var];
        if !may_be_undefined(&var.kind) || self.is_surely_read(poly, reads, contents, &var.shape)? {
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

/// The body of a loop, or the kernel's.
pub(crate) fn body_of(kernel: &Kernel, at: Option<InameId>) -> &[purlin_ir::Node] {
    match at {
        None => kernel.body.as_slice(),
        Some(at) => loop_body(&kernel.body, at).unwrap_or_default(),
    }
}

fn nothing(poly: &Polyhedral, var: VarId) -> Cause {
    let name = &poly.kernel.vars[var].name;
    Cause::Argument(format!("the loops that read `{name}` are empty; nothing is copied"))
}
