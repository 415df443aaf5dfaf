//! Splits a loop into blocks.

use super::Transform;
use crate::error::Cause;
use crate::lookup;
use crate::substitute::substitute_iname;
use crate::tree::{loop_body, replace_loop};
use purlin_ir::{Affine, Atom, AxisTag, Constraint, Domain, Expr, Iname, InameId, Kernel, Node};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Splits `iname` into a loop over blocks and a loop of constant length `factor` inside.
///
/// # Rewrite
/// ```text
/// for i in 0..n      =>   for i_o in 0..floor_div(n - 1, 4) + 1
///   S(i)                    for i_i in 0..min(4, n - 4*i_o)
///                             S(4*i_o + i_i)
/// ```
/// Bounds that hold for every block are dropped. The iname of a reduction is split likewise.
///
/// # Precondition
/// `factor >= 1`, and the loop has no tag. The order of the instances stays:
/// `(floor(i/f), i mod f)` ascends with `i`.
///
/// # Errors
/// A factor below 1, an unknown or tagged iname, names that are taken.
///
/// # Elsewhere
/// Loopy `split_iname`; Halide `split`; Exo `divide_loop`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SplitIname {
    /// The loop.
    pub iname: String,
    /// Iterations of a block.
    pub factor: i64,
    /// Name of the loop over blocks; `{iname}_o` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outer: Option<String>,
    /// Name of the loop inside a block; `{iname}_i` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inner: Option<String>,
}

impl SplitIname {
    /// Splits `iname` by `factor` into `{iname}_o` and `{iname}_i`.
    pub fn new(iname: impl Into<String>, factor: i64) -> Self {
        Self { iname: iname.into(), factor, outer: None, inner: None }
    }

    fn outer_name(&self) -> String {
        self.outer.clone().unwrap_or_else(|| format!("{}_o", self.iname))
    }

    fn inner_name(&self) -> String {
        self.inner.clone().unwrap_or_else(|| format!("{}_i", self.iname))
    }
}

impl fmt::Display for SplitIname {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "split `{}` by {} into `{}`, `{}`",
            self.iname,
            self.factor,
            self.outer_name(),
            self.inner_name()
        )
    }
}

impl Transform for SplitIname {
    fn rewrite(&self, kernel: &Kernel) -> Result<Kernel, Cause> {
        let iname = self.check(kernel)?;
        Ok(self.edit(kernel.clone(), iname))
    }
}

impl SplitIname {
    fn check(&self, kernel: &Kernel) -> Result<InameId, Cause> {
        let iname = lookup::iname(kernel, &self.iname)?;
        if !(1..=1 << 31).contains(&self.factor) {
            return Err(Cause::Argument(format!(
                "a block has {} iterations, needed 1 to 2^31; choose a positive factor",
                self.factor
            )));
        }
        match kernel.inames[iname].tag {
            AxisTag::Sequential => {}
            tag @ (AxisTag::Unrolled | AxisTag::Vector | AxisTag::Group(_) | AxisTag::Local(_)) => {
                return Err(Cause::Argument(format!(
                    "`{}` is tagged {tag}; tag it sequential, split it, then tag the parts",
                    self.iname
                )));
            }
        }
        let (outer, inner) = (self.outer_name(), self.inner_name());
        if outer == inner {
            return Err(Cause::Argument(format!("both loops would be called `{outer}`; choose two names")));
        }
        for name in [&outer, &inner] {
            if *name != self.iname {
                lookup::free(kernel, name)?;
            }
        }
        Ok(iname)
    }

    fn edit(&self, mut kernel: Kernel, iname: InameId) -> Kernel {
        let new = |name| Iname { name, domain: Domain::universe(), tag: AxisTag::Sequential };
        let outer = kernel.inames.push(new(self.outer_name()));
        let inner = kernel.inames.push(new(self.inner_name()));
        let (outer_domain, inner_domain) = self.domains(&kernel.inames[iname].domain, iname, outer, inner);
        kernel.inames[outer].domain = outer_domain;
        kernel.inames[inner].domain = inner_domain;
        let value = Affine::iname(outer).times(self.factor).plus(&Affine::iname(inner));
        substitute_iname(&mut kernel, iname, &value);
        if loop_body(&kernel.body, iname).is_some() {
            replace_loop(&mut kernel.body, iname, &mut |body| {
                vec![Node::Loop(outer, vec![Node::Loop(inner, body)])]
            });
        } else {
            split_reduction(&mut kernel, iname, outer, inner);
        }
        kernel
    }

    /// Domains of both loops. The outer one holds every block with a point (and, for domains that are
    /// no plain range, perhaps an empty one); the inner one is exact.
    fn domains(&self, domain: &Domain, iname: InameId, outer: InameId, inner: InameId) -> (Domain, Domain) {
        let f = self.factor;
        let (o, r) = (Affine::iname(outer), Affine::iname(inner));
        let block = [Constraint::le(&Affine::constant(0), &r), Constraint::lt(&r, &Affine::constant(f))];
        let value = o.times(f).plus(&r);
        if let Some((lo, hi)) = domain.as_range(iname) {
            let first = lo.floor_div(f);
            let last = hi.plus_constant(-1).floor_div(f);
            let mut inside = block.to_vec();
            if first.times(f) != lo {
                inside.push(Constraint::le(&lo, &value));
            }
            if hi.floor_div(f).times(f) != hi {
                inside.push(Constraint::lt(&value, &hi));
            }
            let blocks = Domain::range(outer, &first, &last.plus_constant(1));
            return (blocks, Domain::conjunction(inside));
        }
        let exact = |atom: &Atom| (*atom == Atom::Iname(iname)).then(|| value.clone());
        // Of several disjuncts, the block may be there for the sake of another one.
        let one = domain.as_conjunction().is_some();
        let partial = |d: &Vec<Constraint>| -> Vec<_> {
            let needed = d.iter().filter(|c| !(one && holds_for_whole_blocks(c, iname, f)));
            needed.map(|c| c.substitute(&exact)).chain(block.iter().cloned()).collect()
        };
        let inside = Domain::union(domain.disjuncts().iter().map(partial));
        let blocks =
            domain.disjuncts().iter().map(|d| d.iter().flat_map(|c| relax(c, iname, &o, f)).collect());
        (Domain::union(blocks), inside)
    }
}

/// What a constraint on `i` says of the block `o` that holds it: `c*i + e >= 0` holds somewhere in the
/// block only if it holds at the end of the block where `c*i` is largest.
fn relax(constraint: &Constraint, iname: InameId, o: &Affine, f: i64) -> Vec<Constraint> {
    let relaxed = |e: &Affine| {
        let c = e.coefficient(&Atom::Iname(iname));
        let rest = e.minus(&Affine::iname(iname).times(c));
        if rest.mentions(iname) {
            return None; // inside a floor: the inner domain keeps it
        }
        let end = if c > 0 { f - 1 } else { 0 };
        let largest = o.times(f).plus_constant(end).times(c).plus(&rest);
        Some(Constraint::le(&Affine::constant(0), &largest))
    };
    match constraint {
        Constraint::NonNegative(e) => relaxed(e).into_iter().collect(),
        Constraint::Zero(e) => [relaxed(e), relaxed(&e.times(-1))].into_iter().flatten().collect(),
    }
}

/// Whether a constraint holds for all of a block or for nothing of it, so that the outer loop alone
/// keeps it: `i >= b` or `i < b` with a bound `b` between blocks.
fn holds_for_whole_blocks(constraint: &Constraint, iname: InameId, f: i64) -> bool {
    let Constraint::NonNegative(e) = constraint else { return false };
    let c = e.coefficient(&Atom::Iname(iname));
    let rest = e.minus(&Affine::iname(iname).times(c));
    let bound = match c {
        1 => rest.times(-1),
        -1 => rest.plus_constant(1),
        _ => return false,
    };
    !bound.mentions(iname) && bound.floor_div(f).times(f) == bound
}

fn split_reduction(kernel: &mut Kernel, iname: InameId, outer: InameId, inner: InameId) {
    let mut rewrite = |e: Expr| match e {
        Expr::Reduce(mut r) => {
            if let Some(k) = r.inames.iter().position(|i| *i == iname) {
                r.inames.splice(k..=k, [outer, inner]);
            }
            Expr::Reduce(r)
        }
        other => other,
    };
    for insn in kernel.insns.values_mut() {
        insn.map_expressions(&mut rewrite);
    }
}
