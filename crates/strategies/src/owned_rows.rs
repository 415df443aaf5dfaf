//! The rows of a degree of freedom a work-item, added up in local memory.

use super::blocks::statements;
use super::single_cell::make_atomic;
use super::{constant_tables, length};
use crate::strategy::{Arguments, Stopped, Strategy, StrategyError, Work};
use kingpost_forms::program::stage;
use kingpost_ir::{
    Access, AddressSpace, Atom, AxisTag, BinaryOp, Constraint, Expr, InameId, Insn, InsnId, Kernel, Node,
    RESIDENT_GROUPS, ScalarType, VarId, VarKind, Variable, WriteOp,
};
use kingpost_primitives::intrinsics::RECIPROCAL_F64;
use kingpost_primitives::primitives::{
    DeclareCallee, ExpandArray, LaunchHint, PadArray, PreEvaluateLoop, ReplaceWithIntrinsic, SetAddressSpace,
    SkipZeroTerms, SplitLaunch, SplitSum, Tag, TransposeArrayAxes,
};
use kingpost_primitives::schedule::Loop;
use kingpost_primitives::tree::{body_of, insns_of, loops_of};
use kingpost_primitives::{Schedule, ScheduleSteps};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// Maps each iteration of the outermost loop to a work-item. Temporaries that are indexed by what
/// is read at run time go to local memory, where the elements of work-items lie side by side: no
/// two of a sub-group meet in a bank. The others are private, tables constant. Sixteen work-items
/// store a row together, so that they write what lies side by side, and copy the columns of one
/// together where cells are turned. Each loop over owners is a launch of its own.
///
/// Where the rows of a group of owners lie together, all its work-items clear them, copy their columns
/// and store them as one array.
///
/// For matrices whose [rows are owned](kingpost_forms::lowering::MatrixResult::OwnedRows), of any cells.
///
/// # Errors
/// A step that is refused: iterations that depend on each other, a group of no work-item; a group of
/// other owners than those whose rows lie together.
///
/// # Source
/// Trotter et al. 2023, §3.7: "assign an entire row of the global matrix to a single thread and thus
/// avoid the need for atomic operations"; Cecka, Lew & Darve as cited there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnedRows {
    /// Degrees of freedom, and so work-items, of a group.
    pub owners: u64,
}

impl fmt::Display for OwnedRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "owned rows, {} a group", self.owners)
    }
}

impl Arguments for OwnedRows {
    const NAME: &'static str = "owned_rows";
    const SUMMARY: &'static str = "The rows of a degree of freedom a work-item, added up in local memory.";
}

impl Strategy for OwnedRows {
    fn apply(&self, on: &mut Work<'_>) -> Result<(), Stopped> {
        let form = on.form();
        let (kernel, cells, s) = (form.kernel(), form.cell_loop()?, on.schedule());
        let is_shared = |v: &&Variable| v.kind == VarKind::Temporary && v.space != AddressSpace::Private;
        for var in kernel.vars.values().filter(is_shared) {
            s.apply(SetAddressSpace::new(&var.name, AddressSpace::Private))?;
        }
        sum_in_advance(s)?;
        write_tables(s)?;
        let is_strip = write_places(s)?;
        let made = s.kernel().clone();
        constant_tables(s, &made)?;
        make_atomic(s, &cells.commits)?;
        let loops = kernel.body.iter().filter_map(|node| match node {
            Node::Loop(owners, body) => Some((kernel.inames[*owners].name.as_str(), body)),
            Node::Insn(_) => None,
        });
        let loops: Vec<(&str, &Vec<Node>)> = loops.collect();
        // owners of several kinds overwrite one array, and have other rooms and registers
        if loops.len() > 1 {
            s.apply(SplitLaunch::new(loops[1..].iter().map(|(owners, _)| *owners)))?;
        }
        for (owners, body) in loops {
            let size = kernel.iname(owners).and_then(|group| packed(kernel, group, body));
            let written = insns_of(body).into_iter().map(|insn| kernel.insns[insn].lhs.var);
            let written: BTreeSet<VarId> = written.filter(|v| is_looked_up(kernel, *v)).collect();
            let looked_up: Vec<&Variable> = written.iter().map(|v| &kernel.vars[*v]).collect();
            match size {
                None => self.map_owners(s, owners, &looked_up)?,
                Some(size) => self.map_group(s, owners, size, &looked_up)?,
            }
        }
        if is_strip {
            let groups = (STRIPS / self.owners.min(STRIPS)) as u32;
            s.apply(LaunchHint::resident_groups(groups.min(*RESIDENT_GROUPS.end())))?;
            take_reciprocals(s)?;
        }
        Ok(())
    }
}

/// Work-items of a compute unit that strips need registers for: they wait for vertices most, which
/// more of them hide.
const STRIPS: u64 = 768;

/// Writes out loops around the geometry of a cell, over the vertices that come to it: what stays of
/// the others is then found by the compiler. Gives whether there are some.
fn write_places(s: &mut Schedule) -> Result<bool, Stopped> {
    let kernel = s.kernel();
    let geometry = kernel.insns.ids().filter(|i| kernel.insns[*i].tags.contains(stage::GEOMETRY));
    let mut places = BTreeSet::new();
    for insn in geometry {
        let around = s.expected(loops_of(kernel, insn).ok(), "instruction in the tree")?;
        places.extend(around.into_iter().filter(|l| extent(kernel, *l).is_some()));
    }
    let places: Vec<Loop> = places.into_iter().map(|l| Loop::named(&kernel.inames[l].name)).collect();
    s.tag_all(&places, AxisTag::Unrolled)?;
    Ok(!places.is_empty())
}

/// Takes reciprocals without the branch for the ends of the range, which all work-items wait for.
fn take_reciprocals(s: &mut Schedule) -> Result<(), Stopped> {
    let kernel = s.kernel();
    let is_reciprocal = |insn: &&Insn| {
        let is_one = |e: &Expr| *e == Expr::from(1.0);
        let is_number =
            |access: &Access| access.index.is_empty() && kernel.vars[access.var].ty == ScalarType::F64;
        let of_number = matches!(&insn.rhs, Expr::Binary(BinaryOp::Div, one, of)
            if is_one(one) && matches!(of.as_ref(), Expr::Load(of) if is_number(of)));
        of_number && insn.op == WriteOp::Assign && is_number(&insn.lhs)
    };
    let found: Vec<String> =
        kernel.insns.values().filter(is_reciprocal).map(|insn| insn.name.clone()).collect();
    if !found.is_empty() {
        s.apply(DeclareCallee::new(RECIPROCAL_F64))?;
    }
    for insn in found {
        s.apply(ReplaceWithIntrinsic::new([insn], "reciprocal_f64"))?;
    }
    Ok(())
}

/// Sums over points in advance where that takes fewer operations: of rows that are known when the
/// kernel is written, as those of turned cells.
fn sum_in_advance(s: &mut Schedule) -> Result<(), Stopped> {
    let kernel = s.kernel();
    let updates = kernel.insns.ids().filter(|i| kernel.insns[*i].tags.contains(stage::QUADRATURE));
    let mut loops = BTreeSet::new();
    for insn in updates.filter(|i| kernel.insns[*i].op != WriteOp::Assign) {
        let indices = &kernel.insns[insn].lhs.index;
        let is_summed =
            |l: &InameId| extent(kernel, *l).is_some() && !indices.iter().any(|index| index.mentions(*l));
        let around = s.expected(loops_of(kernel, insn).ok(), "instruction in the tree")?;
        loops.extend(around.into_iter().filter(is_summed).map(|l| kernel.inames[l].name.clone()));
    }
    for points in loops {
        let before = work(s.kernel());
        let mut tried = s.clone();
        if tried.attempt(PreEvaluateLoop::new(points))?.is_some() && work(tried.kernel()) < before {
            *s = tried;
        }
    }
    Ok(())
}

/// Entries of a table that is written out, at most: more of them make long code, as tables with
/// several points do.
const WRITTEN: i64 = 32;

/// Writes the entries of tables that are known when the kernel is written into the sums over them,
/// as of the row of a turned cell, and leaves out those of zero.
fn write_tables(s: &mut Schedule) -> Result<(), Stopped> {
    let kernel = s.kernel().clone();
    let is_table = |v: VarId| matches!(kernel.vars[v].kind, VarKind::Table(_));
    let schedule = kernel.schedule();
    let reads = |table: VarId| {
        let accesses = schedule.iter().flat_map(|(insn, around)| {
            kernel.insns[*insn].reads().into_iter().map(move |access| (access, around))
        });
        accesses.filter(move |(access, _)| access.var == table)
    };
    let all = || kernel.vars.ids().filter(|v| is_table(*v));
    // a row that is looked up is not known
    if all().flat_map(reads).any(|(access, _)| has_unknown_index(&kernel, access)) {
        return Ok(());
    }
    let is_short = |table: &VarId| {
        reads(*table).all(|(access, around)| {
            let mentioned = |l: &&InameId| access.index.iter().any(|index| index.mentions(**l));
            let times = around.iter().filter(mentioned).map(|l| extent(&kernel, *l)).product::<Option<i64>>();
            times.is_some_and(|times| times <= WRITTEN)
        })
    };
    let tables: BTreeSet<VarId> = all().filter(is_short).collect();
    let mut loops = BTreeSet::new();
    for (insn, around) in &schedule {
        let Insn { name, op, .. } = &kernel.insns[*insn];
        let own = kernel.insns[*insn].reads().into_iter().filter(|access| tables.contains(&access.var));
        let own: Vec<&Access> = own.collect();
        if own.is_empty() {
            continue;
        }
        let mentioned = |l: &&InameId| own.iter().any(|access| access.index.iter().any(|i| i.mentions(**l)));
        loops.extend(around.iter().filter(mentioned).copied());
        if *op != WriteOp::Assign {
            let before: BTreeSet<String> = s.kernel().insns.values().map(|i| i.name.clone()).collect();
            s.attempt(SplitSum::new(name))?;
            let after = s.kernel().insns.values().map(|i| i.name.clone());
            let terms: Vec<String> = after.filter(|n| n == name || !before.contains(n)).collect();
            for term in terms {
                s.attempt(SkipZeroTerms::insn(term))?; // refused where a table has no zero
            }
        }
    }
    for table in &tables {
        s.apply(SetAddressSpace::new(&kernel.vars[*table].name, AddressSpace::Literal))?;
    }
    for l in loops {
        s.tag(Loop::named(&kernel.inames[l].name), AxisTag::Unrolled)?;
    }
    Ok(())
}

/// How often a loop runs, if that is a number.
fn extent(kernel: &Kernel, iname: InameId) -> Option<i64> {
    let (lo, hi) = kernel.inames[iname].domain.as_range(iname)?;
    hi.minus(&lo).as_constant()
}

/// Operations on numbers of a kernel whose loops of unknown lengths run once: those of an owner and
/// a cell.
fn work(kernel: &Kernel) -> i64 {
    let of = |(insn, loops): (InsnId, Vec<InameId>)| {
        let Insn { op, rhs, lhs, .. } = &kernel.insns[insn];
        let mut operations = i64::from(*op != WriteOp::Assign);
        rhs.for_each(&mut |e| operations += i64::from(matches!(e, Expr::Binary(..) | Expr::Call(..))));
        let is_of_numbers = !matches!(kernel.vars[lhs.var].ty, ScalarType::I32 | ScalarType::I64);
        let times: i64 = loops.into_iter().filter_map(|l| extent(kernel, l)).product();
        i64::from(is_of_numbers) * operations * times
    };
    kernel.schedule().into_iter().map(of).sum()
}

/// Maximum number of work-items that store a row: of low degrees it has some twenty entries.
const MAX_LANES: u32 = 16;

impl OwnedRows {
    /// Maps a loop over owners, whose body looks up elements of some arrays.
    fn map_owners(&self, s: &mut Schedule, owners: &str, looked_up: &[&Variable]) -> Result<(), Stopped> {
        let names = ["group", "item"].map(|end| format!("{owners}_{end}"));
        let [group, item] = s.split_as(owners, length(self.owners), [&names[0], &names[1]])?;
        for Variable { name, shape, .. } in looked_up {
            s.apply(ExpandArray::new(name, [item.name()]))?;
            s.apply(SetAddressSpace::new(name, AddressSpace::Local))?;
            let axes = shape.len() as u32;
            s.apply(TransposeArrayAxes::new(name, (1..=axes).chain([0])))?;
            // entries of a row, which are stored together, lie in different banks
            s.apply(PadArray::new(name, axes, 1))?;
        }
        let rows: Vec<&str> = looked_up.iter().map(|var| var.name.as_str()).collect();
        let lanes = 1 << self.owners.trailing_zeros().min(MAX_LANES.ilog2());
        let Some(Parts { copy, clear, sum, store }) = parts(s.kernel(), item.name(), &rows) else {
            s.tag(&item, AxisTag::Local(0))?;
            return Ok(s.tag(&group, AxisTag::Group(0))?);
        };
        let mut cuts = vec![(sum, "sum"), (store, "store")];
        if let Some(Copy { bounds, columns }) = &copy {
            for bound in bounds {
                // each work-item looks up its own row; those that copy and store it together read
                // that
                s.apply(ExpandArray::new(bound, [item.name()]))?;
                s.apply(SetAddressSpace::new(bound, AddressSpace::Local))?;
            }
            cuts.splice(0..0, [(columns.clone(), "copy"), (clear, "clear")]);
        }
        let stems: Vec<String> = cuts.iter().map(|(_, stem)| format!("{owners}_{stem}")).collect();
        let stems: Vec<&str> = stems.iter().map(String::as_str).collect();
        let cut = s.distribute_as(&item, cuts.iter().map(|(before, _)| before), &stems)?;
        let mut loops: Vec<Loop> = std::iter::once(item).chain(cut).collect();
        let mut together: Vec<Loop> = loops.pop().into_iter().collect();
        if copy.is_some() {
            together.push(loops.remove(1));
        }
        for own in &loops {
            let [row, lane] = s.split_as(own, lanes, ["row", "lane"])?;
            s.tag(&row, AxisTag::Local(1))?;
            s.tag(&lane, AxisTag::Local(0))?;
        }
        for entries in &together {
            go_together(s, entries, &rows, lanes)?;
        }
        Ok(s.tag(&group, AxisTag::Group(0))?)
    }
}

impl OwnedRows {
    /// Maps a loop over groups of owners, whose rows lie together: all work-items of a group clear
    /// them, copy their columns and store them.
    fn map_group(
        &self,
        s: &mut Schedule,
        group: &str,
        size: i64,
        looked_up: &[&Variable],
    ) -> Result<(), Stopped> {
        if u64::try_from(size) != Ok(self.owners) {
            let (symbol, needed) = ("owners of a group".into(), format!("{size}, whose rows are packed"));
            return Err(StrategyError::Parameter { symbol, found: self.owners, needed }.into());
        }
        for Variable { name, .. } in looked_up {
            s.apply(SetAddressSpace::new(name, AddressSpace::Local))?;
        }
        let kernel = s.kernel().clone();
        let owners = kernel.iname(group);
        let nodes = owners.and_then(|l| body_of(&kernel, l).ok());
        let mut items = Vec::new();
        for node in s.expected(nodes, "loop over groups of owners")? {
            let Node::Loop(l, _) = node else { continue };
            let name = kernel.inames[*l].name.as_str();
            items.push(match owners.and_then(|group| size_of(&kernel, group, *l)) {
                Some(_) => name.to_owned(),
                None => s.split_as(name, size, ["turn", "item"])?[1].name().to_owned(),
            });
        }
        // together, as private values go from one of these loops to another
        s.apply(Tag::all(items, AxisTag::Local(0)))?;
        Ok(s.tag(Loop::named(group), AxisTag::Group(0))?)
    }
}

/// The owners of a group, if the rows of groups lie together.
fn packed(kernel: &Kernel, group: InameId, body: &[Node]) -> Option<i64> {
    body.iter().find_map(|node| match node {
        Node::Loop(owner, _) => size_of(kernel, group, *owner),
        Node::Insn(_) => None,
    })
}

/// How many owners of a group a loop goes over, if it does.
fn size_of(kernel: &Kernel, group: InameId, owner: InameId) -> Option<i64> {
    let domain = kernel.inames[owner].domain.as_conjunction()?;
    let is_of_group = domain.iter().any(|c| c.expr().mentions(group));
    let last = domain.iter().find_map(|c| match (c, c.expr().terms()) {
        (Constraint::NonNegative(e), [(Atom::Iname(l), -1)]) if *l == owner => Some(e.constant_term()),
        (Constraint::NonNegative(_) | Constraint::Zero(_), _) => None,
    });
    last.filter(|_| is_of_group).map(|last| last + 1)
}

/// Statements of the loop over the owners of rows, with which parts of it begin.
struct Parts {
    /// What is copied before the rows are cleared, if something is.
    copy: Option<Copy>,
    /// The first that clears the rows.
    clear: String,
    /// The first after the rows are cleared.
    sum: String,
    /// The first after the last one that adds to them.
    store: String,
}

/// What copies columns.
struct Copy {
    /// Scalars that are known before.
    bounds: Vec<String>,
    /// The loop that copies.
    columns: String,
}

/// Where the parts begin, if statements clear rows, others add to them and the last ones only read
/// them.
fn parts(kernel: &Kernel, item: &str, looked_up: &[&str]) -> Option<Parts> {
    let nodes = body_of(kernel, kernel.iname(item)?).ok()?;
    let name = |insn: &Insn| kernel.vars[insn.lhs.var].name.as_str();
    let insns = |node: &Node| insns_of(std::slice::from_ref(node)).into_iter().map(|i| &kernel.insns[i]);
    let all = || nodes.iter().flat_map(insns);
    let rows: BTreeSet<&str> =
        all().filter(|i| i.op != WriteOp::Assign && looked_up.contains(&name(i))).map(name).collect();
    let clears = |node: &Node| insns(node).any(|i| i.op == WriteOp::Assign && rows.contains(name(i)));
    let clear = nodes.iter().position(clears)?;
    let sum = clear + nodes[clear..].iter().take_while(|node| clears(node)).count();
    let store = nodes.iter().rposition(|node| insns(node).any(|i| rows.contains(name(i))))? + 1;
    let names = statements(kernel, item);
    let copy = nodes[..clear].iter().position(|node| matches!(node, Node::Loop(..))).map(|at| Copy {
        bounds: nodes[..at].iter().flat_map(insns).map(|i| name(i).to_owned()).collect(),
        columns: names[at].clone(),
    });
    (sum < store && store < nodes.len()).then(|| Parts {
        copy,
        clear: names[clear].clone(),
        sum: names[sum].clone(),
        store: names[store].clone(),
    })
}

/// Lets work-items side by side store the entries of a row, or copy them.
fn go_together(s: &mut Schedule, owners: &Loop, looked_up: &[&str], lanes: i64) -> Result<(), Stopped> {
    let kernel = s.kernel();
    let nodes = kernel.iname(owners.name()).and_then(|l| body_of(kernel, l).ok());
    let nodes = s.expected(nodes, "loop over the owners of rows")?;
    let touches = |insn: &Insn| {
        let accesses = insn.reads().into_iter().chain([&insn.lhs]);
        accesses.into_iter().any(|access| looked_up.contains(&kernel.vars[access.var].name.as_str()))
    };
    let moved = insns_of(nodes).into_iter().find(|i| touches(&kernel.insns[*i]));
    let entry = moved.and_then(|insn| loops_of(kernel, insn).ok()?.last().copied());
    let entry = entry.map(|l| kernel.inames[l].name.clone());
    let entry = s.expected(entry, "loop over the entries of a row")?;
    let [_, lane] = s.split_as(entry, lanes, ["entries", "lane"])?;
    let [part, _] = s.split_as(owners, lanes, ["part", "row"])?;
    s.tag(&part, AxisTag::Local(1))?;
    Ok(s.tag(&lane, AxisTag::Local(0))?)
}

/// Whether an index of an access is no function of loops and parameters.
fn has_unknown_index(kernel: &Kernel, access: &Access) -> bool {
    let is_param = |v: VarId| kernel.vars[v].kind == VarKind::Param;
    access.index.iter().any(|index| {
        let known = index.as_affine().is_some_and(|e| {
            let mut known = true;
            e.for_each_symbol(&mut |atom| {
                if let Atom::Var(v) = atom {
                    known &= is_param(*v);
                }
            });
            known
        });
        !known
    })
}

/// Whether a temporary has an index that is no function of loops and parameters.
fn is_looked_up(kernel: &Kernel, var: VarId) -> bool {
    let is_temporary = kernel.vars[var].kind == VarKind::Temporary && !kernel.vars[var].shape.is_empty();
    is_temporary
        && kernel.insns.values().any(|insn| {
            let reads = insn.reads();
            let mut accesses = reads.into_iter().chain([&insn.lhs]);
            accesses.any(|access| access.var == var && has_unknown_index(kernel, access))
        })
}
