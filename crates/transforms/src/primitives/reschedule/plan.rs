//! What is to run where: the arguments of a step, looked up in a kernel.

use super::{Band, Part, Reschedule};
use crate::primitives::tile_band::read_row;
use kingpost_analysis::Analysis;
use kingpost_analysis::polyhedral::{Disjuncts, Polyhedral, Side, affine_condition, cross};
use kingpost_ir::{Affine, AxisTag, Domain, Id, Iname, InameId, InsnId, Kernel, Node};
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::expected::Expected;
use kingpost_steps::lookup;
use kingpost_steps::nest::wrapped;
use kingpost_steps::refusal::Refusal;
use kingpost_steps::tree::{inames_of, insns_of, loops_of};
use std::collections::BTreeMap;

/// An instruction, or a loop that moves as a whole.
pub struct Unit {
    pub(super) name: String,
    pub(super) node: Node,
    insns: Vec<InsnId>,
    /// The loops around the subtree.
    outer: Vec<InameId>,
    /// The loops of the subtree around it, outer first.
    pub(super) old: Vec<InameId>,
    /// The new loops around it, outer first, with their values.
    pub(super) rows: Vec<(InameId, Affine)>,
    /// Where it runs today: what the loops of the subtree and its condition say.
    pub(super) domains: Vec<Domain>,
    /// The parts of its condition that isl knows nothing of.
    pub(super) kept: Vec<usize>,
    /// The values of the old loops, by those of the new ones.
    pub(super) values: Vec<Affine>,
    /// What the bounds of the new loops do not say of where it runs.
    pub(super) guard: Domain,
}

impl Unit {
    /// The new loops around it.
    pub(super) fn path(&self) -> Vec<InameId> {
        self.rows.iter().map(|(new, _)| *new).collect()
    }

    /// The value of a new loop.
    pub(super) fn row(&self, iname: InameId) -> Option<&Affine> {
        self.rows.iter().find(|(new, _)| *new == iname).map(|(_, row)| row)
    }

    /// The parameters of a set of its instances.
    pub(super) fn params(&self, poly: &Polyhedral) -> Vec<String> {
        [poly.params.clone(), poly.names(&self.outer, Side::Source)].concat()
    }

    /// The loops around the subtree.
    pub(super) fn outer(&self) -> &[InameId] {
        &self.outer
    }

    /// Where it runs today.
    pub(super) fn instances(&self, poly: &Polyhedral, side: Side) -> Disjuncts {
        let all = self.domains.iter().map(|domain| poly.domain(domain, side).0);
        all.fold(vec![Vec::new()], |all, one| cross(&all, &one))
    }
}

/// Loops, and what runs inside.
pub struct BandPlan {
    pub(super) loops: Vec<InameId>,
    pub(super) then: Vec<Entry>,
}

/// What runs inside a band.
pub(super) enum Entry {
    Unit(usize),
    Band(BandPlan),
}

impl BandPlan {
    /// All that runs inside.
    pub(super) fn units(&self) -> Vec<usize> {
        let of = |entry: &Entry| match entry {
            Entry::Unit(unit) => vec![*unit],
            Entry::Band(band) => band.units(),
        };
        self.then.iter().flat_map(of).collect()
    }

    fn nodes(&self, units: &[Unit]) -> Vec<Node> {
        let of = |entry: &Entry| match entry {
            Entry::Unit(unit) => vec![units[*unit].node.clone()],
            Entry::Band(band) => band.nodes(units),
        };
        wrapped(self.loops.iter().copied(), self.then.iter().flat_map(of).collect())
    }
}

/// The new nest.
pub struct Plan {
    pub(super) units: Vec<Unit>,
    pub(super) band: BandPlan,
    /// The new loops with their names.
    names: Vec<(InameId, String)>,
    /// What they run over, once it is known.
    pub(super) domains: Vec<(InameId, Domain)>,
}

impl Plan {
    /// Looks up what a step says of some neighbouring statements.
    pub(super) fn of(step: &Reschedule, analysis: &Analysis, nodes: &[Node]) -> Result<Self, Refusal> {
        let kernel = analysis.kernel();
        let top = Band { loops: step.loops.clone(), maps: step.maps.clone(), then: step.then.clone() };
        let mut reader = Reader { kernel, units: units(analysis, nodes, &top)?, names: Vec::new() };
        let band = reader.band(&top)?;
        let plan = Self { units: reader.units, band, names: reader.names, domains: Vec::new() };
        plan.check_complete(kernel, nodes)?;
        plan.check_names(kernel)?;
        Ok(plan)
    }

    /// The new loops with their names, outer ones first.
    pub(super) fn loops(&self) -> impl Iterator<Item = (InameId, &String)> {
        self.names.iter().map(|(iname, name)| (*iname, name))
    }

    /// The loops that are replaced.
    pub(super) fn old_loops(&self) -> Vec<InameId> {
        let mut old: Vec<_> = self.units.iter().flat_map(|unit| &unit.old).copied().collect();
        old.sort_unstable();
        old.dedup();
        old
    }

    /// What an instruction is a part of.
    pub(super) fn unit_of(&self, insn: InsnId) -> Option<&Unit> {
        self.units.iter().find(|unit| unit.insns.contains(&insn))
    }

    /// The old loops, if their iterations move as a whole: all that runs inside has one map and keeps its
    /// order.
    pub(super) fn whole(&self) -> Vec<InameId> {
        let Some(first) = self.units.first() else { return Vec::new() };
        let alike = self.units.iter().all(|unit| unit.rows == first.rows && unit.old == first.old);
        let is_unit = |entry: &Entry| matches!(entry, Entry::Unit(_));
        let in_order = self.band.then.iter().all(is_unit) && self.band.units().is_sorted();
        if alike && in_order { first.old.clone() } else { Vec::new() }
    }

    /// Adds the new loops, which are still to have names.
    pub(super) fn add_loops(&self, kernel: &mut Kernel) {
        for (k, (iname, _)) in self.names.iter().enumerate() {
            let known = self.domains.iter().find(|(of, _)| of == iname);
            let domain = known.map_or_else(Domain::universe, |(_, domain)| domain.clone());
            // `#` cannot stand in names: these meet none of the old ones until the old ones are gone
            kernel.inames.push(Iname { name: format!("#{k}"), domain, tag: AxisTag::Sequential });
        }
    }

    /// Gives the new loops their names.
    pub(super) fn name_loops(&self, kernel: &mut Kernel) {
        for (iname, name) in &self.names {
            kernel.inames[*iname].name.clone_from(name);
        }
    }

    /// The new nest.
    pub(super) fn nodes(&self) -> Vec<Node> {
        self.band.nodes(&self.units)
    }

    /// Every instruction has one place.
    fn check_complete(&self, kernel: &Kernel, nodes: &[Node]) -> Result<(), Refusal> {
        for insn in insns_of(nodes) {
            let name = &kernel.insns[insn].name;
            let count = self.units.iter().filter(|unit| unit.insns.contains(&insn)).count();
            if count != 1 {
                let found = if count == 0 { "has no map" } else { "has a map, and so has a loop around it" };
                return Err(Refusal::argument(
                    "maps",
                    format!("`{name}` {found}"),
                    "one for each instruction",
                ));
            }
        }
        let placed = self.band.units();
        for (k, unit) in self.units.iter().enumerate() {
            let count = placed.iter().filter(|place| **place == k).count();
            if count != 1 {
                let times = if count == 0 { "not among" } else { "more than once among" };
                let found = format!("`{}` is {times} the parts of the new nest", unit.name);
                return Err(Refusal::argument("then", found, "each part that has a map once"));
            }
        }
        Ok(())
    }

    fn check_names(&self, kernel: &Kernel) -> Result<(), Refusal> {
        let old = self.old_loops();
        for (k, (_, name)) in self.names.iter().enumerate() {
            if self.names[..k].iter().any(|(_, other)| other == name) {
                let found = format!("two loops would be called `{name}`");
                return Err(Refusal::argument("loops", found, "different names"));
            }
            if kernel.iname(name).is_none_or(|iname| !old.contains(&iname)) {
                lookup::free(kernel, name)?;
            }
        }
        Ok(())
    }
}

/// The loops around some statements, outer first.
pub(super) fn loops_around(kernel: &Kernel, nodes: &[Node]) -> Result<Vec<InameId>, Refusal> {
    let first = insns_of(nodes).first().copied().expected("instruction in the statements", kernel)?;
    let inside = inames_of(kernel, nodes);
    Ok(loops_of(kernel, first)?.into_iter().filter(|l| !inside.contains(l)).collect())
}

/// What has a map, in textual order, still without it.
fn units(analysis: &Analysis, nodes: &[Node], top: &Band) -> Result<Vec<Unit>, Refusal> {
    let kernel = analysis.kernel();
    let outer = loops_around(kernel, nodes)?;
    let mut found = Vec::new();
    all_nodes(nodes, &mut Vec::new(), &mut |node, around| {
        if top.maps.contains_key(name_of(kernel, node)) {
            found.push((node.clone(), around.to_vec()));
        }
    });
    for name in top.maps.keys() {
        if found.iter().all(|(node, _)| name_of(kernel, node) != name) {
            let known = lookup::names_in(kernel, nodes);
            return Err(Refusal::Unknown { kind: "part of the subtree", name: name.clone(), known });
        }
    }
    let unit = |(node, old): (Node, Vec<InameId>)| {
        let mut domains: Vec<_> = old.iter().map(|l| kernel.inames[*l].domain.clone()).collect();
        let mut kept = Vec::new();
        if let Node::Insn(insn) = &node
            && let Some(predicate) = &kernel.insns[*insn].predicate
        {
            for (k, part) in predicate.conjuncts().into_iter().enumerate() {
                let known = |domain: &Domain| analysis.polyhedral().domain(domain, Side::Source).1;
                match affine_condition(part).filter(known) {
                    Some(domain) => domains.push(domain),
                    None => kept.push(k),
                }
            }
        }
        Unit {
            name: name_of(kernel, &node).to_owned(),
            insns: insns_of(std::slice::from_ref(&node)),
            outer: outer.clone(),
            old,
            rows: Vec::new(),
            domains,
            kept,
            values: Vec::new(),
            guard: Domain::universe(),
            node,
        }
    };
    Ok(found.into_iter().map(unit).collect())
}

fn name_of<'k>(kernel: &'k Kernel, node: &Node) -> &'k str {
    match node {
        Node::Insn(insn) => &kernel.insns[*insn].name,
        Node::Loop(iname, _) => &kernel.inames[*iname].name,
    }
}

/// Visits all nodes with the loops around them.
fn all_nodes(nodes: &[Node], around: &mut Vec<InameId>, visit: &mut dyn FnMut(&Node, &[InameId])) {
    for node in nodes {
        visit(node, around);
        if let Node::Loop(iname, body) = node {
            around.push(*iname);
            all_nodes(body, around, visit);
            around.pop();
        }
    }
}

/// Reads bands.
struct Reader<'k> {
    kernel: &'k Kernel,
    units: Vec<Unit>,
    names: Vec<(InameId, String)>,
}

impl Reader<'_> {
    fn band(&mut self, band: &Band) -> Result<BandPlan, Refusal> {
        if band.loops.is_empty() {
            return Err(Refusal::argument(
                "loops",
                "a band has no loops",
                "the names of its loops, outer first",
            ));
        }
        let mut loops = Vec::with_capacity(band.loops.len());
        for name in &band.loops {
            let iname = InameId::from_index(self.kernel.inames.len() + self.names.len());
            self.names.push((iname, name.clone()));
            loops.push(iname);
        }
        for (name, rows) in &band.maps {
            if rows.len() != loops.len() {
                let found = format!("the map of `{name}` has {} rows", rows.len());
                return Err(Refusal::argument("maps", found, format!("{}, one for each loop", loops.len())));
            }
            let unit = self.unit(name)?;
            for (iname, row) in loops.iter().zip(rows) {
                let row = self.row(&self.units[unit], row)?;
                self.units[unit].rows.push((*iname, row));
            }
        }
        let then = if band.then.is_empty() {
            let inside = |k: &usize| band.maps.contains_key(&self.units[*k].name);
            (0..self.units.len()).filter(inside).map(Entry::Unit).collect()
        } else {
            band.then.iter().map(|part| self.entry(band, part)).collect::<Result<_, _>>()?
        };
        Ok(BandPlan { loops, then })
    }

    fn entry(&mut self, band: &Band, part: &Part) -> Result<Entry, Refusal> {
        let mapped = |name: &String| {
            if band.maps.contains_key(name) {
                return Ok(());
            }
            let found = format!("`{name}` runs inside the band, which has no map for it");
            Err(Refusal::argument("maps", found, "a map in each band around"))
        };
        match part {
            Part::Statement(name) => {
                mapped(name)?;
                self.unit(name).map(Entry::Unit)
            }
            Part::Band(inner) => {
                inner.maps.keys().try_for_each(mapped)?;
                self.band(inner).map(Entry::Band)
            }
        }
    }

    fn unit(&self, name: &str) -> Result<usize, Refusal> {
        self.units.iter().position(|unit| unit.name == name).ok_or_else(|| {
            let known = lookup::near(name, self.units.iter().map(|unit| unit.name.as_str()));
            Refusal::Unknown { kind: "part with a map", name: name.into(), known }
        })
    }

    /// Reads a row of the map of an instruction.
    fn row(&self, unit: &Unit, row: &str) -> Result<Affine, Refusal> {
        let loops = [unit.old.as_slice(), &unit.outer].concat();
        read_row(self.kernel, &loops, row).map_err(|why| {
            Refusal::argument(
                "maps",
                format!("`{row}` is no row for `{}`{why}", unit.name),
                "a quasi-affine expression of the loops around it and of parameters",
            )
        })
    }
}

/// Maps that have a chance: the loops around each instruction, with others instead of those that it
/// has not, then changed a little.
pub(super) fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Reschedule> {
    let subtree = match p.of(&draw::neighbours(kernel)).filter(|_| p.one_in(2)) {
        Some((first, second)) => vec![first, second],
        None => vec![p.of(&draw::loops(kernel))?],
    };
    let nodes = kingpost_steps::run::named(kernel, &subtree).ok()?.nodes;
    let (mut parts, shallow) = (Vec::new(), p.one_in(4));
    all_nodes(nodes, &mut Vec::new(), &mut |node, around| {
        let is_part = match node {
            Node::Insn(_) => !shallow || around.len() == 1,
            Node::Loop(..) => shallow && around.len() == 1,
        };
        if is_part {
            let rows: Vec<_> = around.iter().map(|l| kernel.inames[*l].name.clone()).collect();
            parts.push((name_of(kernel, node).to_owned(), rows));
        }
    });
    let depth = parts.iter().map(|(_, rows)| rows.len()).max().filter(|depth| *depth > 0)?;
    let fill = p.among(["0", "1", "-1"]);
    parts.iter_mut().for_each(|(_, rows)| rows.resize(depth, fill.to_owned()));
    let (inner, moved) = (p.below(depth), p.below(parts.len()));
    match p.below(5) {
        0 => {}
        1 => parts.iter_mut().for_each(|(_, rows)| rows.swap(0, inner)),
        2 => {
            parts.iter_mut().for_each(|(_, rows)| rows[inner] = format!("{} + 2*({})", rows[inner], rows[0]))
        }
        3 => parts.iter_mut().for_each(|(_, rows)| rows[inner] = format!("2*({}) + 1", rows[inner])),
        _ => parts[moved].1.reverse(),
    }
    let shift = p.between(-1, 2);
    parts[moved].1[inner] += &format!(" + {shift}");
    let mut names = Vec::new();
    for k in 0..depth {
        names.push(kernel.fresh_name(&format!("c{k}")));
    }
    let maps: BTreeMap<_, _> = parts.into_iter().collect();
    Some(Reschedule { subtree, loops: names, maps, then: Vec::new() })
}
