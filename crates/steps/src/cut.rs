//! A loop in two, one after the other, and what the nest inside still has to say in each.

use crate::copy::copy_nest;
use crate::hull::has_linear_bounds;
use crate::refusal::Refusal;
use crate::schedule::Loop;
use crate::tree::{inames_of, insns_of, replace_loop};
use kingpost_analysis::polyhedral::{Polyhedral, Side, affine_condition};
use kingpost_ir::{Affine, AxisTag, BinaryOp, Constraint, Domain, Expr, InameId, InsnId, Kernel, Node};
use kingpost_isl as isl;

/// Some iterations of a loop: its values, and what runs inside.
pub struct Part {
    body: Vec<Node>,
    domains: Vec<(InameId, Domain)>,
    conditions: Vec<(InsnId, Option<Expr>)>,
}

impl Part {
    /// The iterations at these values, in which everything runs as it did.
    pub fn whole(iname: InameId, values: Domain, body: &[Node]) -> Self {
        Self { body: body.to_vec(), domains: vec![(iname, values)], conditions: Vec::new() }
    }

    /// The same iterations, in which everything runs as it did.
    pub fn with_all(mut self, body: &[Node]) -> Self {
        self.body = body.to_vec();
        self
    }

    /// Whether no instruction runs in them.
    pub fn is_empty(&self) -> bool {
        self.body.is_empty()
    }

    /// Makes a kernel say of the loop what it says of this part.
    fn put(&self, kernel: &mut Kernel) {
        for (iname, domain) in &self.domains {
            kernel.inames[*iname].domain.clone_from(domain);
        }
        for (insn, condition) in &self.conditions {
            kernel.insns[*insn].predicate.clone_from(condition);
        }
    }
}

/// Runs only these iterations of a loop.
pub fn keep(kernel: &mut Kernel, iname: InameId, part: &Part) {
    part.put(kernel);
    replace_loop(&mut kernel.body, iname, &mut |_| vec![Node::Loop(iname, part.body.clone())]);
}

/// Runs the iterations of `copied` in a copy of the loop, before or after the `rest`.
pub fn in_two(
    kernel: &mut Kernel,
    iname: InameId,
    copied: &Part,
    rest: &Part,
    suffix: &str,
    is_first: bool,
) -> Loop {
    copied.put(kernel);
    let (copy, node) = copy_nest(kernel, iname, &copied.body, suffix);
    rest.put(kernel);
    replace_loop(&mut kernel.body, iname, &mut |_| {
        let rest = Node::Loop(iname, rest.body.clone());
        if is_first { vec![node.clone(), rest] } else { vec![rest, node.clone()] }
    });
    Loop::named(&kernel.inames[copy].name)
}

/// Finds what a part of a loop still has to say.
pub struct Narrowing<'a, 'k> {
    poly: &'a Polyhedral<'k>,
    space: isl::SetSpace,
    /// What holds around the loop.
    around: isl::Set,
}

impl<'a, 'k> Narrowing<'a, 'k> {
    /// For a loop with this body, inside the loops `outer`.
    pub fn of(
        poly: &'a Polyhedral<'k>,
        outer: &[InameId],
        iname: InameId,
        body: &[Node],
    ) -> Result<Self, Refusal> {
        let mut dims = outer.to_vec();
        dims.push(iname);
        dims.extend(inames_of(&poly.kernel, body));
        let space = isl::SetSpace::new(&poly.names(&dims, Side::Source), &poly.params);
        let known = poly.in_context(poly.domains(outer, Side::Source).0);
        let around = isl::Set::from_disjuncts(&space, &known)?;
        Ok(Self { poly, space, around })
    }

    /// Whether a loop has no iteration at these values.
    pub fn never(&self, values: &Domain) -> Result<bool, Refusal> {
        Ok(self.around.intersect(&self.set(values)?)?.is_empty()?)
    }

    /// A part of a loop: without bounds and conditions that the loops around imply there, without
    /// what never runs there.
    ///
    /// Formula: with `K` what is known around, a constraint `c` of a set `D` is left out if `K and
    /// (D without c) and not c` is empty; what runs on `D` is left out if `K and D` is.
    pub fn part(&self, iname: InameId, values: &Domain, body: &[Node]) -> Result<Part, Refusal> {
        let mut part = Part { body: Vec::new(), domains: Vec::new(), conditions: Vec::new() };
        let own = self.needed(&self.around, values, Some(iname))?;
        let inside = self.around.intersect(&self.set(values)?)?;
        part.domains.push((iname, own));
        part.body = self.nodes(body, &inside, &mut part)?;
        Ok(part)
    }

    fn nodes(&self, nodes: &[Node], known: &isl::Set, part: &mut Part) -> Result<Vec<Node>, Refusal> {
        let mut kept = Vec::with_capacity(nodes.len());
        for node in nodes {
            // a call is what its callee says
            let insns = insns_of(std::slice::from_ref(node));
            if insns.iter().all(|s| self.poly.kernel.insns[*s].callee.is_some()) {
                self.unchanged(node, part);
                kept.push(node.clone());
                continue;
            }
            match node {
                Node::Insn(insn) => {
                    if let Some(condition) = self.condition(*insn, known)? {
                        part.conditions.push((*insn, condition));
                        kept.push(node.clone());
                    }
                }
                Node::Loop(iname, body) => {
                    let data = &self.poly.kernel.inames[*iname];
                    let inside = known.intersect(&self.set(&data.domain)?)?;
                    let body = if inside.is_empty()? { Vec::new() } else { self.nodes(body, &inside, part)? };
                    if !body.is_empty() {
                        let domain = self.narrowed(*iname, known)?;
                        part.domains.push((*iname, domain));
                        kept.push(Node::Loop(*iname, body));
                    }
                }
            }
        }
        Ok(kept)
    }

    /// Notes what a node says today.
    fn unchanged(&self, node: &Node, part: &mut Part) {
        match node {
            Node::Insn(insn) => {
                part.conditions.push((*insn, self.poly.kernel.insns[*insn].predicate.clone()));
            }
            Node::Loop(iname, body) => {
                part.domains.push((*iname, self.poly.kernel.inames[*iname].domain.clone()));
                body.iter().for_each(|node| self.unchanged(node, part));
            }
        }
    }

    /// The values of a loop inside. A loop on an axis or in lanes keeps its places, and one that is
    /// written out its constant bounds.
    fn narrowed(&self, iname: InameId, known: &isl::Set) -> Result<Domain, Refusal> {
        let data = &self.poly.kernel.inames[iname];
        match data.tag {
            AxisTag::Sequential | AxisTag::Rolled => self.needed(known, &data.domain, Some(iname)),
            AxisTag::Unrolled | AxisTag::Vector | AxisTag::Group(_) | AxisTag::Local(_) | AxisTag::Launch => {
                Ok(data.domain.clone())
            }
        }
    }

    /// The condition that an instruction still has; `None` if it never runs.
    fn condition(&self, insn: InsnId, known: &isl::Set) -> Result<Option<Option<Expr>>, Refusal> {
        let Some(predicate) = &self.poly.kernel.insns[insn].predicate else { return Ok(Some(None)) };
        let mut known = known.clone();
        let mut kept: Option<Expr> = None;
        for one in predicate.conjuncts() {
            let mut one = one.clone();
            // what isl knows nothing of may be any truth value
            if let Some(domain) = affine_condition(&one)
                && self.poly.domain(&domain, Side::Source).1
            {
                let holds = known.intersect(&self.set(&domain)?)?;
                if holds.is_empty()? {
                    return Ok(None);
                }
                if known.is_subset(&holds)? {
                    continue;
                }
                let needed = self.needed(&known, &domain, None)?;
                if needed != domain
                    && let Some(condition) = crate::condition::condition(&needed)
                {
                    one = condition;
                }
                known = holds;
            }
            kept = Some(match kept {
                Some(all) => Expr::binary(BinaryOp::And, all, one),
                None => one,
            });
        }
        Ok(Some(kept))
    }

    /// The constraints of a set that what is known does not imply, which bound the loop if it is
    /// one's. Of a union, those of the only part that is not empty, or all such parts.
    fn needed(&self, known: &isl::Set, all: &Domain, of: Option<InameId>) -> Result<Domain, Refusal> {
        let Some(conjunction) = all.as_conjunction() else {
            let mut parts = Vec::new();
            for part in all.disjuncts() {
                let one = Domain::union([part.clone()]);
                if !known.intersect(&self.set(&one)?)?.is_empty()? {
                    parts.push(part.clone());
                }
            }
            return match parts.len() {
                0 => Ok(all.clone()),
                1 => self.needed(known, &Domain::union(parts), of),
                _ => Ok(Domain::union(parts)),
            };
        };
        let is_equality = |c: &Constraint| matches!(c, Constraint::Zero(_));
        let mut kept = conjunction.to_vec();
        // an equality says more than the bounds that it implies
        kept.sort_by_key(is_equality);
        let mut k = 0;
        while k < kept.len() {
            let mut others = kept.clone();
            let c = others.remove(k);
            let others = Domain::conjunction(others);
            let implied = self.implied(&known.intersect(&self.set(&others)?)?, &c)?;
            let bounded = of.is_none_or(|iname| has_linear_bounds(&others, iname));
            if implied && bounded {
                kept.remove(k);
            } else {
                k += 1;
            }
        }
        Ok(Domain::conjunction(kept))
    }

    /// Whether a constraint holds everywhere in a set.
    fn implied(&self, known: &isl::Set, c: &Constraint) -> Result<bool, Refusal> {
        if self.poly.constraint(c, Side::Source).is_none() {
            return Ok(false); // it mentions a scalar that is read from memory
        }
        let zero = Affine::default();
        let below = vec![Constraint::lt(c.expr(), &zero)];
        let fails = match c {
            Constraint::NonNegative(_) => vec![below],
            Constraint::Zero(e) => vec![below, vec![Constraint::lt(&zero, e)]],
        };
        Ok(known.intersect(&self.set(&Domain::union(fails))?)?.is_empty()?)
    }

    fn set(&self, domain: &Domain) -> Result<isl::Set, Refusal> {
        Ok(isl::Set::from_disjuncts(&self.space, &self.poly.domain(domain, Side::Source).0)?)
    }
}
