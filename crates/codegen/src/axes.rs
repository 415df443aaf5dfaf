//! Hardware axes: which inames run on each, its extent, and where its index starts.
//!
//! A hardware index is `iname - lower bound`, the lower bound constant or parametric. The extent of an
//! axis is the largest of its inames.

use crate::bounds::{self, Bounds};
use crate::env::Env;
use crate::error::CodegenError;
use crate::interval::Interval;
use crate::plan::HostExpr;
use purlin_ir::{AddressSpace, Affine, Atom, AxisTag, Constraint, Id, InameId, InsnId, Kernel, Node};

/// Axes of a launch.
#[derive(Clone, Debug)]
pub(crate) struct Axes {
    /// Work-groups along g.0, g.1, g.2, where the kernel uses the axis.
    pub(crate) grid: [Option<GroupAxis>; 3],
    /// Work-items along l.0, l.1, l.2, where the kernel uses the axis.
    pub(crate) block: [Option<LocalAxis>; 3],
    /// Lower bound of each iname on an axis.
    pub(crate) start: Vec<Option<Affine>>,
}

/// An axis of work-groups.
#[derive(Clone, Debug)]
pub(crate) struct GroupAxis {
    /// Its inames.
    pub(crate) inames: Vec<InameId>,
    /// How many groups, as an expression of the parameters.
    pub(crate) extent: HostExpr,
    /// Range of its index.
    pub(crate) range: Interval,
    /// The index is below each of these, whatever the parameters.
    pub(crate) below: Vec<Affine>,
}

/// An axis of work-items.
#[derive(Clone, Debug)]
pub(crate) struct LocalAxis {
    /// Its inames.
    pub(crate) inames: Vec<InameId>,
    /// How many work-items, at least 1.
    pub(crate) extent: i64,
}

/// An iname on an axis: what its extent may be taken from.
struct Member {
    iname: InameId,
    lower: Affine,
    /// Candidates: the iname is below each; the smallest of them counts.
    upper: Vec<Affine>,
    range: Interval,
}

impl Axes {
    /// The axes of the kernel's loops.
    ///
    /// # Errors
    /// An extent that is not constant (work-items) or not parametric (work-groups).
    pub(crate) fn new(env: &mut Env<'_>) -> Result<Self, CodegenError> {
        let mut members: Vec<(AxisTag, Member)> = Vec::new();
        collect(env, &env.kernel.body, &mut members)?;
        let mut axes = Self {
            grid: [None, None, None],
            block: [None, None, None],
            start: vec![None; env.kernel.inames.len()],
        };
        for (_, m) in &members {
            axes.start[m.iname.index()] = Some(m.lower.clone());
        }
        for k in 0..3 {
            let on = |tag| members.iter().filter(move |(t, _)| *t == tag).map(|(_, m)| m).collect::<Vec<_>>();
            let groups = on(AxisTag::Group(k));
            if !groups.is_empty() {
                axes.grid[usize::from(k)] = Some(group_axis(env, k, &groups)?);
            }
            let items = on(AxisTag::Local(k));
            if !items.is_empty() {
                axes.block[usize::from(k)] = Some(local_axis(env, k, &items)?);
            }
        }
        Ok(axes)
    }

    /// The inames of an axis.
    pub(crate) fn inames(&self, group: bool, axis: usize) -> &[InameId] {
        if group {
            self.grid[axis].as_ref().map_or(&[], |a| &a.inames)
        } else {
            self.block[axis].as_ref().map_or(&[], |a| &a.inames)
        }
    }

    /// Whether the axis has one work-group or work-item only, whatever the parameters.
    pub(crate) fn is_trivial(&self, group: bool, axis: usize) -> bool {
        if group {
            self.grid[axis].as_ref().is_none_or(|a| a.extent == HostExpr::Const(1))
        } else {
            self.block[axis].as_ref().is_none_or(|a| a.extent == 1)
        }
    }

    /// Work-items of a group.
    pub(crate) fn work_items(&self) -> i64 {
        self.block.iter().flatten().map(|a| a.extent).product()
    }
}

fn collect(
    env: &mut Env<'_>,
    nodes: &[Node],
    members: &mut Vec<(AxisTag, Member)>,
) -> Result<(), CodegenError> {
    for node in nodes {
        let Node::Loop(iname, body) = node else { continue };
        let info = &env.kernel.inames[*iname];
        let disjuncts = bounds::of_domain(&info.domain, *iname, &Constraint::clone);
        let range = range_of(env, &disjuncts);
        env.set_range(*iname, range);
        match info.tag {
            AxisTag::Group(_) | AxisTag::Local(_) => {
                members.push((info.tag, member(env, *iname, disjuncts, range)?));
            }
            AxisTag::Sequential | AxisTag::Unrolled | AxisTag::Vector => {}
        }
        collect(env, body, members)?;
    }
    Ok(())
}

/// Range of an iname from its bounds, as far as intervals tell.
pub(crate) fn range_of(env: &Env<'_>, disjuncts: &[Bounds]) -> Interval {
    let mut hull: Option<Interval> = None;
    for b in disjuncts {
        let mut range = match &b.exact {
            Some(e) => env.range(e),
            None => Interval::ALL,
        };
        for l in &b.lower {
            range.lo = range.lo.max(env.range(l).lo);
        }
        for u in &b.upper {
            range.hi = range.hi.min(env.range(u).hi - 1);
        }
        hull = Some(hull.map_or(range, |h| h.join(range)));
    }
    hull.unwrap_or(Interval { lo: 0, hi: -1 })
}

fn member(
    env: &Env<'_>,
    iname: InameId,
    mut disjuncts: Vec<Bounds>,
    range: Interval,
) -> Result<Member, CodegenError> {
    let name = || env.kernel.inames[iname].name.clone();
    if disjuncts.is_empty() {
        let zero = Affine::constant(0);
        return Ok(Member { iname, lower: zero.clone(), upper: vec![zero], range });
    }
    let (mut lower, mut upper) = (Vec::new(), Vec::new());
    if disjuncts.len() == 1 {
        let b = disjuncts.swap_remove(0);
        (lower, upper) = match b.exact {
            Some(e) => (vec![e.clone()], vec![e.plus_constant(1)]),
            None => (b.lower, b.upper),
        };
    }
    if let Some(lo) = range.finite_lo() {
        lower.push(Affine::constant(lo));
    }
    if let Some(hi) = range.finite_hi().filter(|_| upper.is_empty()) {
        upper.push(Affine::constant(hi + 1));
    }
    if lower.is_empty() || upper.is_empty() {
        let bound = if lower.is_empty() { "lower" } else { "upper" };
        return Err(CodegenError::Unbounded { iname: name(), bound });
    }
    // Where several inames share the axis, an index must mean the same to all of them and to the
    // placement: the lower bound of a plain range, else zero.
    let lower = match env.kernel.inames[iname].domain.as_range(iname) {
        Some((lo, _)) => lo,
        None => Affine::constant(0),
    };
    let negative = range.lo < 0 && lower.as_constant() == Some(0);
    if !is_parametric(env, &lower) || negative {
        return Err(CodegenError::AxisStart {
            axis: env.kernel.inames[iname].tag.to_string(),
            iname: name(),
            found: if negative {
                "may be negative".into()
            } else {
                format!("is `{}`", show(env.kernel, &lower))
            },
        });
    }
    Ok(Member { iname, lower, upper, range })
}

fn is_parametric(env: &Env<'_>, e: &Affine) -> bool {
    let mut ok = true;
    e.for_each_symbol(&mut |a| ok &= matches!(a, Atom::Var(v) if env.is_param(*v)));
    ok
}

fn local_axis(env: &Env<'_>, axis: u8, members: &[&Member]) -> Result<LocalAxis, CodegenError> {
    let mut extent = 1;
    for m in members {
        let extents: Vec<Affine> = m.upper.iter().map(|u| u.minus(&m.lower)).collect();
        let constant = extents.iter().filter_map(|e| constant_extent(env, e)).min();
        let Some(constant) = constant else {
            let extent = extents.iter().map(|e| show(env.kernel, e)).collect::<Vec<_>>().join(", ");
            let iname = env.kernel.inames[m.iname].name.clone();
            return Err(CodegenError::BlockNotConstant { axis: format!("l.{axis}"), iname, extent });
        };
        extent = extent.max(constant);
    }
    Ok(LocalAxis { inames: members.iter().map(|m| m.iname).collect(), extent })
}

/// The extent if it is constant, or the largest over constant loops around.
fn constant_extent(env: &Env<'_>, extent: &Affine) -> Option<i64> {
    let mut parameters = false;
    extent.for_each_symbol(&mut |a| parameters |= matches!(a, Atom::Var(_)));
    if parameters { None } else { env.range(extent).finite_hi() }
}

fn group_axis(env: &Env<'_>, axis: u8, members: &[&Member]) -> Result<GroupAxis, CodegenError> {
    let mut extents: Vec<HostExpr> = Vec::new();
    let mut below: Option<Vec<Affine>> = None;
    let mut range = Interval::new(0, 0);
    for m in members {
        let mut uppers: Vec<Affine> = m.upper.iter().map(|u| u.minus(&m.lower)).collect();
        let found = uppers.iter().map(|e| show(env.kernel, e)).collect::<Vec<_>>().join(", ");
        uppers.retain(|e| is_parametric(env, e));
        if uppers.is_empty()
            && let Some(hi) = m.range.finite_hi().filter(|_| m.lower.as_constant().is_some())
        {
            uppers.push(Affine::constant(hi + 1).minus(&m.lower));
        }
        let hosts: Vec<HostExpr> = uppers.iter().map(|e| host_expr(env.kernel, e)).collect();
        let Some(extent) = hosts.into_iter().reduce(|a, b| HostExpr::Min(Box::new(a), Box::new(b))) else {
            return Err(CodegenError::GridNotParametric {
                axis: format!("g.{axis}"),
                iname: env.kernel.inames[m.iname].name.clone(),
                bound: "the extent",
                found,
            });
        };
        range = range.join(Interval::new(0, uppers.iter().map(|u| env.range(u).hi - 1).min().unwrap_or(0)));
        if !extents.contains(&extent) {
            extents.push(extent);
        }
        below = match below {
            None => Some(uppers),
            Some(b) if b == uppers => Some(b),
            Some(_) => Some(Vec::new()),
        };
    }
    let mut below = below.unwrap_or_default();
    let mut extent = extents
        .into_iter()
        .reduce(|a, b| HostExpr::Max(Box::new(a), Box::new(b)))
        .unwrap_or(HostExpr::Const(1));
    let at_least = if needs_a_group(env.kernel, axis, members) { 1 } else { 0 };
    if !below.iter().all(|b| env.is_non_negative(&b.plus_constant(-at_least))) || below.is_empty() {
        if at_least == 1 {
            below.clear();
        }
        extent = match extent {
            HostExpr::Const(c) => HostExpr::Const(c.max(at_least)),
            other => HostExpr::Max(Box::new(other), Box::new(HostExpr::Const(at_least))),
        };
    }
    Ok(GroupAxis { inames: members.iter().map(|m| m.iname).collect(), extent, range, below })
}

/// Whether an instruction in no iname of the axis runs at its index 0, so that there must be one.
fn needs_a_group(kernel: &Kernel, axis: u8, members: &[&Member]) -> bool {
    kernel.schedule().iter().any(|(insn, loops)| {
        !loops.iter().any(|l| members.iter().any(|m| m.iname == *l)) && !is_replicated(kernel, *insn, true)
    }) && axis < 3
}

/// Whether an instruction in no iname of an axis of groups (or work-items) runs along all of it:
/// what it writes is not shared along the axis.
pub(crate) fn is_replicated(kernel: &Kernel, insn: InsnId, group: bool) -> bool {
    match kernel.vars[kernel.insns[insn].lhs.var].space {
        AddressSpace::Private => true,
        AddressSpace::Local => group,
        AddressSpace::Global | AddressSpace::Constant => false,
    }
}

/// An expression of the parameters for the host.
pub(crate) fn host_expr(kernel: &Kernel, e: &Affine) -> HostExpr {
    let mut sum: Option<HostExpr> = None;
    let mut add = |term: HostExpr| {
        sum = Some(match sum.take() {
            None => term,
            Some(s) => HostExpr::Add(Box::new(s), Box::new(term)),
        });
    };
    for (atom, c) in e.terms() {
        let value = match atom {
            Atom::Var(v) => HostExpr::Param(kernel.vars[*v].name.clone()),
            Atom::Iname(i) => HostExpr::Param(kernel.inames[*i].name.clone()),
            Atom::Floor(n, d) => {
                HostExpr::FloorDiv(Box::new(host_expr(kernel, n)), Box::new(HostExpr::Const(*d)))
            }
        };
        add(if *c == 1 { value } else { HostExpr::Mul(Box::new(HostExpr::Const(*c)), Box::new(value)) });
    }
    if e.constant_term() != 0 {
        add(HostExpr::Const(e.constant_term()));
    }
    sum.unwrap_or(HostExpr::Const(0))
}

/// An expression with the kernel's names, for messages.
pub(crate) fn show(kernel: &Kernel, e: &Affine) -> String {
    host_expr(kernel, e).to_string()
}
