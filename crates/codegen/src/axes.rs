//! Hardware axes: which inames run on each, its extent, and where its index starts.
//!
//! A hardware index is `iname - lower bound`, the lower bound constant or parametric. The extent of
//! an axis is the largest of its inames.

use crate::bounds::{self, Bounds};
use crate::env::Env;
use crate::error::CodegenError;
use crate::interval::Interval;
use crate::plan::HostExpr;
use kingpost_ir::{
    AddressSpace, Affine, Atom, AxisTag, Constraint, Id, InameId, InsnId, Kernel, Node, SubGroup,
};

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
    /// For each piece of the domain: the iname is below each of these, so that the smallest counts.
    upper: Vec<Vec<Affine>>,
}

/// Walks the loops from outside in.
struct Collector<'e, 'k> {
    env: &'e mut Env<'k>,
    members: Vec<(AxisTag, Member)>,
    /// For each iname: parametric bounds that hold whatever the loops around it, the upper one
    /// excluded.
    hulls: Vec<Option<(Affine, Affine)>>,
}

impl Axes {
    /// The axes of the kernel's loops.
    ///
    /// # Errors
    /// An extent that is not constant (work-items) or not parametric (work-groups).
    pub(crate) fn new(env: &mut Env<'_>) -> Result<Self, CodegenError> {
        let kernel = env.kernel;
        let mut collector = Collector { env, members: Vec::new(), hulls: vec![None; kernel.inames.len()] };
        collector.nodes(&kernel.body)?;
        let Collector { members, .. } = collector;
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

    /// Work-items of a group along l.0.
    pub(crate) fn row(&self) -> i64 {
        self.block[0].as_ref().map_or(1, |a| a.extent)
    }

    /// Whether every sub-group is one of the device's: rows along l.0 are made of whole ones.
    pub(crate) fn has_full_sub_groups(&self, width: SubGroup) -> bool {
        self.row() % i64::from(width.width()) == 0
    }
}

impl Collector<'_, '_> {
    fn nodes(&mut self, nodes: &[Node]) -> Result<(), CodegenError> {
        for node in nodes {
            let Node::Loop(iname, body) = node else { continue };
            let info = &self.env.kernel.inames[*iname];
            let disjuncts = bounds::of_domain(&info.domain, *iname, &Constraint::clone);
            let range = range_of(self.env, &disjuncts);
            self.env.set_range(*iname, range);
            self.hulls[iname.index()] = self.hull(&disjuncts);
            match info.tag {
                AxisTag::Group(_) | AxisTag::Local(_) => {
                    let member = self.member(*iname, disjuncts, range)?;
                    self.members.push((info.tag, member));
                }
                AxisTag::Sequential
                | AxisTag::Unrolled
                | AxisTag::Rolled
                | AxisTag::Vector
                | AxisTag::Launch => {}
            }
            self.nodes(body)?;
        }
        Ok(())
    }

    fn hull(&self, disjuncts: &[Bounds]) -> Option<(Affine, Affine)> {
        let [b] = disjuncts else { return None };
        if let Some(e) = &b.exact {
            return Some((self.extreme(e, false)?, self.extreme(e, true)?.plus_constant(1)));
        }
        // Constants before parameters: they make constant extents.
        let best = |list: &[Affine], upper| {
            let mut all: Vec<Affine> = list.iter().filter_map(|e| self.extreme(e, upper)).collect();
            all.sort_by_key(|e| e.as_constant().is_none());
            all.into_iter().next()
        };
        Some((best(&b.lower, false)?, best(&b.upper, true)?))
    }

    /// A parametric bound of an expression over all values of the inames in it.
    fn extreme(&self, e: &Affine, upper: bool) -> Option<Affine> {
        let mut result = Affine::constant(e.constant_term());
        for (atom, c) in e.terms() {
            let term = match atom {
                Atom::Var(v) if self.env.is_param(*v) => Affine::var(*v),
                Atom::Var(_) => return None,
                Atom::Iname(i) => {
                    let (lo, hi) = self.hulls[i.index()].as_ref()?;
                    if upper == (*c > 0) { hi.plus_constant(-1) } else { lo.clone() }
                }
                // floor is monotone
                Atom::Floor(n, d) => self.extreme(n, upper == (*c > 0))?.floor_div(*d),
            };
            result = result.plus(&term.times(*c));
        }
        Some(result)
    }

    fn member(
        &self,
        iname: InameId,
        disjuncts: Vec<Bounds>,
        range: Interval,
    ) -> Result<Member, CodegenError> {
        let env = &*self.env;
        let lower = self.start(iname, range)?;
        let mut upper = Vec::new();
        for b in disjuncts {
            let list = b.exact.map_or(b.upper, |e| vec![e.plus_constant(1)]);
            if list.is_empty() {
                let iname = env.kernel.inames[iname].name.clone();
                return Err(CodegenError::Unbounded { iname, bound: "upper" });
            }
            // An upper bound over the loops around it, where there is one.
            upper.push(list.into_iter().map(|e| self.extreme(&e, true).unwrap_or(e)).collect());
        }
        Ok(Member { iname, lower, upper })
    }

    /// Where the index of the axis is zero. Several inames may share it, so it must mean the same
    /// to all of them and to the placement: the lower bound of a range, else zero.
    fn start(&self, iname: InameId, range: Interval) -> Result<Affine, CodegenError> {
        let info = &self.env.kernel.inames[iname];
        let start = kingpost_analysis::placement::index_origin(self.env.kernel, iname);
        let found = if !is_parametric(self.env, &start) {
            format!("is `{}`", show(self.env.kernel, &start))
        } else if range.lo < 0 && start.as_constant() == Some(0) {
            "may be negative".into()
        } else {
            return Ok(start);
        };
        Err(CodegenError::AxisStart { axis: info.tag.to_string(), iname: info.name.clone(), found })
    }
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
            // what is infinite stays so
            range.hi = range.hi.min(env.range(u).plus(Interval::point(-1)).hi);
        }
        hull = Some(hull.map_or(range, |h| h.join(range)));
    }
    hull.unwrap_or(Interval { lo: 0, hi: -1 })
}

fn is_parametric(env: &Env<'_>, e: &Affine) -> bool {
    let mut ok = true;
    e.for_each_symbol(&mut |a| ok &= matches!(a, Atom::Var(v) if env.is_param(*v)));
    ok
}

/// Most work-items of a group whose number only assumptions bound: no device has more, and types of
/// parameters bound them, too.
const MAX_ASSUMED: i64 = 1024;

fn local_axis(env: &Env<'_>, axis: u8, members: &[&Member]) -> Result<LocalAxis, CodegenError> {
    let mut extent = 1;
    for m in members {
        for piece in &m.upper {
            let extents: Vec<Affine> = piece.iter().map(|u| u.minus(&m.lower)).collect();
            let constants = extents.iter().filter_map(Affine::as_constant);
            // what assumptions say of parameters bounds an extent, too
            let assumed = || extents.iter().filter_map(|e| env.range(e).finite_hi()).min();
            let Some(constant) = constants.min().or_else(|| assumed().filter(|n| *n <= MAX_ASSUMED)) else {
                return Err(CodegenError::BlockNotConstant {
                    axis: format!("l.{axis}"),
                    iname: env.kernel.inames[m.iname].name.clone(),
                    extent: show_all(env, m, piece),
                });
            };
            extent = extent.max(constant);
        }
    }
    Ok(LocalAxis { inames: members.iter().map(|m| m.iname).collect(), extent })
}

/// The candidates for an extent, for messages.
fn show_all(env: &Env<'_>, m: &Member, piece: &[Affine]) -> String {
    let all: Vec<String> = piece.iter().map(|u| show(env.kernel, &u.minus(&m.lower))).collect();
    all.join(", ")
}

fn group_axis(env: &Env<'_>, axis: u8, members: &[&Member]) -> Result<GroupAxis, CodegenError> {
    // The extents of all pieces of all inames; of each, every candidate is an upper bound.
    let mut pieces: Vec<Vec<Affine>> = Vec::new();
    for m in members {
        for piece in &m.upper {
            let mut extents: Vec<Affine> = piece.iter().map(|u| u.minus(&m.lower)).collect();
            extents.retain(|e| is_parametric(env, e));
            if extents.is_empty() {
                return Err(CodegenError::GridNotParametric {
                    axis: format!("g.{axis}"),
                    iname: env.kernel.inames[m.iname].name.clone(),
                    found: show_all(env, m, piece),
                });
            }
            if !pieces.contains(&extents) {
                pieces.push(extents);
            }
        }
    }
    let hi = |piece: &Vec<Affine>| {
        piece.iter().map(|e| env.range(e).plus(Interval::point(-1)).hi).min().unwrap_or(0)
    };
    let range = Interval::new(0, pieces.iter().map(hi).max().unwrap_or(0).max(0));
    let mut below = if pieces.len() == 1 { pieces[0].clone() } else { Vec::new() };
    let at_least = i64::from(needs_a_group(env.kernel, members));
    let large_enough = |e: &Affine| env.is_non_negative(&e.plus_constant(-at_least));
    let always = !pieces.is_empty() && pieces.iter().all(|p| p.iter().all(large_enough));
    if !always && at_least == 1 {
        below.clear(); // there is one more group than the loop has iterations
    }
    let extent = largest(env, pieces, at_least, always);
    Ok(GroupAxis { inames: members.iter().map(|m| m.iname).collect(), extent, range, below })
}

/// The largest of the smallest candidates, and at least `at_least`.
fn largest(env: &Env<'_>, pieces: Vec<Vec<Affine>>, at_least: i64, always: bool) -> HostExpr {
    let min = |a, b| HostExpr::Min(Box::new(a), Box::new(b));
    let max = |a, b| HostExpr::Max(Box::new(a), Box::new(b));
    let smallest = |piece: Vec<Affine>| piece.iter().map(|e| host_expr(env.kernel, e)).reduce(min);
    let extent = pieces.into_iter().filter_map(smallest).reduce(max).unwrap_or(HostExpr::Const(0));
    if let HostExpr::Const(c) = extent {
        HostExpr::Const(c.max(at_least))
    } else if always {
        extent
    } else {
        max(extent, HostExpr::Const(at_least))
    }
}

/// Whether an instruction in no iname of the axis runs at its index 0, so that there must be one.
fn needs_a_group(kernel: &Kernel, members: &[&Member]) -> bool {
    kernel.schedule().iter().any(|(insn, loops)| {
        !loops.iter().any(|l| members.iter().any(|m| m.iname == *l)) && !is_replicated(kernel, *insn, true)
    })
}

/// Whether an instruction in no iname of an axis of groups (or work-items) runs along all of it:
/// what it writes is not shared along the axis.
pub(crate) fn is_replicated(kernel: &Kernel, insn: InsnId, group: bool) -> bool {
    match kernel.vars[kernel.insns[insn].lhs.var].space {
        AddressSpace::Private => true,
        AddressSpace::Local | AddressSpace::SubGroup => group,
        AddressSpace::Global | AddressSpace::Constant | AddressSpace::Literal => false,
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
            Atom::Iname(i) => HostExpr::Param(symbol_name(kernel, *i)),
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

/// Name of an iname, or of a hardware index (which follow the inames).
fn symbol_name(kernel: &Kernel, symbol: InameId) -> String {
    match kernel.inames.get(symbol) {
        Some(iname) => iname.name.clone(),
        None => match symbol.index() - kernel.inames.len() {
            k @ 0..3 => AxisTag::Group(k as u8).to_string(),
            k => AxisTag::Local((k - 3) as u8).to_string(),
        },
    }
}

/// An expression with the kernel's names, for messages.
pub(crate) fn show(kernel: &Kernel, e: &Affine) -> String {
    host_expr(kernel, e).to_string()
}
