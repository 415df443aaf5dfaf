//! Launches, and the loops that their groups share.

use crate::draft::{Draft, Tried, is_sequential, refusable};
use kingpost_analysis::placement::RefusalReason;
use kingpost_ir::{AddressSpace, AxisTag, InameId, Kernel, Node};
use kingpost_steps::{Refusal, TransformError};
use kingpost_transforms::primitives::{FuseLaunches, InterchangeInames, SetAddressSpace, SplitLaunch, Tag};

/// Loops of which each instruction that counts is in one, so that they can share an axis.
pub(super) type Cover = Vec<String>;

/// A launch, or the whole kernel where it is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Site {
    Whole,
    Launch(String),
}

/// A launch and the loops that its groups share.
#[derive(Clone, Debug)]
pub(super) struct Launch {
    pub(super) site: Site,
    /// Outer ones first; none where one work-item does all.
    pub(super) covers: Vec<Cover>,
}

/// How a program is cut into launches.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cutting {
    /// Whether there are more launches where these have loops for more axes.
    pub(super) wide: bool,
    /// Which loops groups may share.
    pub(super) shared: fn(&Kernel, InameId) -> bool,
}

impl Cutting {
    /// Groups may share all loops.
    pub(super) fn of_loops(wide: bool) -> Self {
        Self { wide, shared: |_, _| true }
    }
}

/// Covers that are tried for an axis: the loops of PolyBench are at most this deep.
const DEPTH: usize = 8;

/// Axes of groups.
const AXES: u8 = 3;

impl Draft<'_> {
    /// Cuts the program into launches, each of which has parallel loops, as far as that goes. Loops that
    /// nothing makes parallel become loops of the host.
    ///
    /// # Errors
    /// A bug.
    pub(super) fn spread(&mut self, cutting: Cutting) -> Tried<Vec<Launch>> {
        self.spread_site(Site::Whole, cutting)
    }

    fn spread_site(&mut self, site: Site, cutting: Cutting) -> Tried<Vec<Launch>> {
        let covers = self.covers(&site, cutting.shared)?;
        // loops at the root that share axes may be better off with axes of their own
        let apart = cutting.wide && site == Site::Whole && self.kernel().body.len() > 1;
        let axes = if apart { 0 } else { covers.len() };
        let whole = vec![Launch { site: site.clone(), covers }];
        let enough = if cutting.wide { 2 } else { 1 };
        if axes >= enough {
            return Ok(whole);
        }
        let before = self.schedule.clone();
        let sites = match self.separate(&site) {
            Ok(Some(sites)) => sites,
            Ok(None) => return Ok(whole),
            Err(error) => {
                self.pass(error)?;
                self.schedule = before;
                return Ok(whole);
            }
        };
        let mut found = Vec::new();
        for site in sites {
            found.extend(self.spread_site(site, cutting)?);
        }
        // a loop of the host has its price: what it holds must be parallel in more ways
        let most = found.iter().map(|launch| launch.covers.len()).max().unwrap_or(0);
        if most <= axes {
            self.schedule = before;
            return Ok(whole);
        }
        self.join(found)
    }

    /// The statements of a launch.
    pub(super) fn statements(&self, site: &Site) -> &[Node] {
        match site {
            Site::Whole => &self.kernel().body,
            Site::Launch(name) => self.body(name),
        }
    }

    /// The loops that can be on axes of groups, outer ones first.
    fn covers(&mut self, site: &Site, shared: fn(&Kernel, InameId) -> bool) -> Tried<Vec<Cover>> {
        let mut trial = self.clone();
        let mut found: Vec<Cover> = Vec::new();
        for axis in 0..AXES {
            let nodes: Vec<Node> = match found.last() {
                None => trial.statements(site).to_vec(),
                Some(cover) => cover.iter().flat_map(|l| trial.body(l)).cloned().collect(),
            };
            let mut taken = None;
            for cover in levels(trial.kernel(), &nodes).into_iter().take(DEPTH) {
                if !cover.iter().all(|l| shared(trial.kernel(), *l)) {
                    continue;
                }
                let names: Cover = cover.iter().map(|l| trial.kernel().inames[*l].name.clone()).collect();
                match trial.make(Tag::all(names.clone(), AxisTag::Group(axis))) {
                    Ok(()) => {
                        taken = Some(names);
                        break;
                    }
                    Err(error) => self.pass(error)?,
                }
            }
            let Some(cover) = taken else { break };
            self.considered.push(format!("{} on g.{axis}: legal", quoted(&cover)));
            found.push(cover);
        }
        Ok(found)
    }

    /// Makes launches of the parts of a launch, or its only loop one of the host; none if it has no
    /// parts.
    fn separate(&mut self, site: &Site) -> Tried<Option<Vec<Site>>> {
        let nodes = self.statements(site);
        let [Node::Loop(outer, body)] = nodes else {
            let cuts = self.cuts(nodes);
            return if cuts.is_empty() { Ok(None) } else { self.split(cuts).map(Some) };
        };
        if !body.iter().any(|node| matches!(node, Node::Loop(..))) {
            return Ok(None);
        }
        let kernel = self.kernel();
        let outer_name = kernel.inames[*outer].name.clone();
        if body.len() > 1 {
            let cuts = self.cuts(body);
            return self.split(cuts).map(Some);
        }
        let Site::Launch(launch) = site else {
            self.make(Tag::new(&outer_name, AxisTag::Launch))?;
            return Ok(Some(vec![Site::Launch(outer_name)]));
        };
        if kernel.iname(launch).is_some_and(|l| kernel.inames[l].is_one_launch(l)) {
            self.make(InterchangeInames::new(launch, &outer_name))?;
            return Ok(Some(vec![site.clone()]));
        }
        let launch = launch.clone();
        self.make(Tag::new(launch, AxisTag::Sequential))?;
        self.make(Tag::new(&outer_name, AxisTag::Launch))?;
        Ok(Some(vec![Site::Launch(outer_name)]))
    }

    /// The statements before which a launch begins: every loop is in one of its own.
    fn cuts(&self, nodes: &[Node]) -> Vec<String> {
        let is_loop = |node: &Node| matches!(node, Node::Loop(..));
        let pairs = nodes.windows(2).filter(|pair| pair.iter().any(is_loop));
        pairs.map(|pair| self.name_of(&pair[1])).collect()
    }

    /// Begins launches. What private memory carries from one to the other is put into global memory.
    fn split(&mut self, before: Vec<String>) -> Tried<Vec<Site>> {
        loop {
            let refused = match self.make(SplitLaunch::new(before.clone())) {
                Ok(made) => return Ok(made.iter().map(|l| Site::Launch(l.name().to_owned())).collect()),
                Err(refused) => refused,
            };
            let Some(var) = carried(&refused) else { return Err(refused) };
            self.make(SetAddressSpace::new(var, AddressSpace::Global)).map_err(|_| refused)?;
        }
    }

    /// Makes one launch of neighbours of which one has no parallel loop, where that is legal.
    fn join(&mut self, launches: Vec<Launch>) -> Tried<Vec<Launch>> {
        let mut joined: Vec<Launch> = Vec::new();
        for launch in launches {
            let Some(last) = joined.last() else {
                joined.push(launch);
                continue;
            };
            match self.joined(last, &launch)? {
                Some(one) => {
                    joined.pop();
                    joined.push(one);
                }
                None => joined.push(launch),
            }
        }
        Ok(joined)
    }

    fn joined(&mut self, first: &Launch, second: &Launch) -> Tried<Option<Launch>> {
        let (Site::Launch(a), Site::Launch(b)) = (&first.site, &second.site) else { return Ok(None) };
        let holds_loops =
            |launch: &Launch| self.statements(&launch.site).iter().any(|node| matches!(node, Node::Loop(..)));
        let (plain, other) = match (first.covers.is_empty(), second.covers.is_empty()) {
            (true, _) => (first, second),
            (false, true) => (second, first),
            (false, false) => return Ok(None),
        };
        if !other.covers.is_empty() && holds_loops(plain) {
            return Ok(None);
        }
        let step = FuseLaunches::new([a, b]);
        let mut trial = self.clone();
        for (axis, cover) in (0_u8..).zip(&other.covers) {
            trial.make(Tag::all(cover.clone(), AxisTag::Group(axis)))?;
        }
        if let Err(refused) = trial.make(step.clone()) {
            self.pass(refused)?;
            return Ok(None);
        }
        let site = match self.make(step)?.first() {
            Some(launch) => Site::Launch(launch.name().to_owned()),
            None => Site::Whole,
        };
        Ok(Some(Launch { site, covers: other.covers.clone() }))
    }

    /// Notes that an idea is refused.
    ///
    /// # Errors
    /// A bug, which no idea may pass over.
    pub(crate) fn pass(&mut self, error: TransformError) -> Tried {
        if let Err(error) = refusable::<()>(Err(error))? {
            self.considered.push(format!("refused: {error}"));
        }
        Ok(())
    }
}

/// Loops of equal depth, outer ones first: those of each nest, and its innermost one where others are
/// deeper.
pub(super) fn levels(kernel: &Kernel, nodes: &[Node]) -> Vec<Vec<InameId>> {
    let nests: Vec<Vec<Vec<InameId>>> = nodes
        .iter()
        .filter_map(|node| match node {
            Node::Loop(iname, body) if is_sequential(kernel, *iname) => {
                Some(std::iter::once(vec![*iname]).chain(levels(kernel, body)).collect())
            }
            Node::Loop(..) | Node::Insn(_) => None,
        })
        .collect();
    let deepest = nests.iter().map(Vec::len).max().unwrap_or(0);
    let at = |depth: usize| nests.iter().filter_map(move |nest| nest.get(depth.min(nest.len() - 1)));
    (0..deepest).map(|depth| at(depth).flatten().copied().collect()).collect()
}

/// What lives in private or local memory and is needed by another launch.
fn carried(refused: &TransformError) -> Option<&str> {
    use kingpost_steps::refusal::Clash;
    let Refusal::NotProved(failed) = &refused.cause else { return None };
    match &failed.clash {
        Clash::Placement(placement) if placement.reason == RefusalReason::AcrossLaunches => {
            Some(&placement.var)
        }
        Clash::Placement(_)
        | Clash::Reordered(_)
        | Clash::Stale(_)
        | Clash::Lost(_)
        | Clash::Parameters(_) => None,
    }
}

pub(super) fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
