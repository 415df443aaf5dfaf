//! Begins a new launch.

use kingpost_analysis::Analysis;
use kingpost_ir::{Affine, Atom, AxisTag, InameId, Kernel, Node, VarKind};
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::expected::Expected;
use kingpost_steps::lookup;
use kingpost_steps::nest::new_loop;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::refusal::Refusal;
use kingpost_steps::run::{NOT_CALLED, same, statement};
use kingpost_steps::schedule::Loop;
use kingpost_steps::substitute::substitute_in_nodes;
use kingpost_steps::tree::{insns_of, replace_loop, siblings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Begins a new launch before each of the statements named: an instruction, or a loop with all it
/// holds.
///
/// # Rewrite
/// ```text
/// for t in 0..m          =>   for t in 0..m
///   for i in 0..n {g.0}         launch sweep
///     S(t, i)                     for i in 0..n {g.0}
///   for j in 0..n                   S(t, i)
///     T(t, j)                   launch back
///                                 for j in 0..n
///                                   T(t, j)
/// ```
/// The statements stand in one body. The loops around it become loops of the host, which repeat
/// launches. What stands next to those loops is in launches of its own, as every instruction is in
/// one. In a program of launches, the launch in which the statements stand is split; if its loop
/// has several iterations, the host repeats both parts.
///
/// # Precondition
/// The order of instances stays, so that every order between groups that a launch cannot keep is
/// kept between launches. The loops around the statements are untagged; their bounds mention
/// parameters and each other alone. No value but those of global memory flows from one launch to
/// another: the placement says so ([`kingpost_analysis::placement`]). A call is in one launch.
///
/// # Errors
/// No statement, an unknown one, one of another body or the first one; names that are taken or too
/// few; a loop around that has a tag or bounds from memory; a call that would be cut; a value in
/// private or local memory that flows between the launches, with two instances.
///
/// # Elsewhere
/// Polyhedral code generators for cards begin a kernel where a band is not parallel outside (PPCG's
/// `kernel` marks); TVM splits a function into several by its thread extents.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SplitLaunch {
    /// Instructions or loops of one body.
    pub before: Vec<String>,
    /// Names of the launches in textual order; `launch`, `launch_1`, … if empty. A launch that is
    /// split and has one iteration keeps its name for the first part.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
}

impl SplitLaunch {
    /// Begins a new launch before each of the statements.
    pub fn new<S: Into<String>>(before: impl IntoIterator<Item = S>) -> Self {
        Self { before: before.into_iter().map(Into::into).collect(), names: Vec::new() }
    }
}

impl fmt::Display for SplitLaunch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |names: &[String]| {
            let quoted: Vec<_> = names.iter().map(|n| format!("`{n}`")).collect();
            quoted.join(", ")
        };
        let before = if self.before.is_empty() { "nothing".into() } else { list(&self.before) };
        write!(f, "split the launch before {before}")?;
        if self.names.is_empty() { Ok(()) } else { write!(f, " into {}", list(&self.names)) }
    }
}

/// A launch begins between two statements.
const LATER: Obligation = Obligation::new(
    "split_launch.later",
    "the statements stand in one body, and something stands before each of them",
);

/// The host can run the loops around.
const HOST_LOOPS: Obligation = Obligation::new(
    "split_launch.host_loops",
    "loops around the launches are untagged, and their bounds mention parameters and each other alone",
);

/// Where the launches are cut.
pub struct Cuts {
    /// The launch that is split, if the kernel has launches.
    launch: Option<InameId>,
    /// The loops from there to the body that is cut, outer first.
    path: Vec<InameId>,
    /// Positions in the body before which a launch begins, ascending.
    at: Vec<usize>,
}

impl Primitive for SplitLaunch {
    const NAME: &'static str = "split_launch";
    const SUMMARY: &'static str = "Begins a new launch before statements.";

    type Proof = Cuts;
    type Made = Vec<Loop>;

    const OBLIGATIONS: &'static [Obligation] = &[LATER, HOST_LOOPS, NOT_CALLED];
    const WEIGHT: usize = 3;

    fn check(&self, analysis: &Analysis) -> Result<Cuts, Refusal> {
        let kernel = analysis.kernel();
        if self.before.is_empty() {
            return Err(Refusal::argument(
                "before",
                "no statement is named",
                "what a new launch begins with",
            ));
        }
        let wanted: Vec<Node> =
            self.before.iter().map(|name| statement(kernel, name)).collect::<Result<_, _>>()?;
        let body = siblings(&kernel.body, &|node| same(node, &wanted[0]));
        let body = body.expected("statement of that name in the tree", kernel)?;
        let mut at = Vec::with_capacity(wanted.len());
        for (name, wanted) in self.before.iter().zip(&wanted) {
            let place = body.iter().position(|node| same(node, wanted));
            at.push(LATER.find(place.filter(|k| *k > 0), || match place {
                Some(_) => {
                    format!("`{name}` comes first in its body; name a later statement, or the loop around")
                }
                None => format!(
                    "`{name}` and `{}` stand in different bodies; split one after the other",
                    self.before[0]
                ),
            })?);
        }
        at.sort_unstable();
        at.dedup();
        check_calls(kernel, body, &at)?;
        let around = path_to(&kernel.body, body).expected("body in the tree", kernel)?;
        let launch = kernel.launch_among(&around);
        let depth = launch.and_then(|launch| around.iter().position(|l| *l == launch)).map_or(0, |k| k + 1);
        let path = around[depth..].to_vec();
        around.iter().filter(|l| Some(**l) != launch).try_for_each(|l| check_host_loop(kernel, *l))?;
        let proof = Cuts { launch, path, at };
        self.check_names(kernel, &proof)?;
        Ok(proof)
    }

    fn edit(&self, kernel: &mut Kernel, proof: &Cuts) -> Vec<Loop> {
        let mut names = self.names.clone();
        names.reverse();
        let mut launches = Launches { names, first: None, made: Vec::new() };
        let Some(launch) = proof.launch else {
            let nodes = std::mem::take(&mut kernel.body);
            kernel.body = launches.of(kernel, nodes, &proof.path, &proof.at);
            return launches.made;
        };
        let mut inside = Vec::new();
        replace_loop(&mut kernel.body, launch, &mut |body| {
            inside = body;
            vec![Node::Loop(launch, Vec::new())]
        });
        let is_only = kernel.inames[launch].is_one_launch(launch);
        if is_only {
            substitute_in_nodes(kernel, &inside, launch, &Affine::constant(0));
            launches.first = Some(launch);
        } else {
            kernel.inames[launch].tag = AxisTag::Sequential;
        }
        let mut parts = launches.of(kernel, inside, &proof.path, &proof.at);
        replace_loop(&mut kernel.body, launch, &mut |_| {
            let parts = std::mem::take(&mut parts);
            if is_only { parts } else { vec![Node::Loop(launch, parts)] }
        });
        launches.made
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let mut several = draw::bodies(kernel);
        several.retain(|(_, names)| names.len() > 1);
        let (_, names) = p.of(&several)?;
        Some(Self::new([p.of(&names[1..])?]))
    }
}

/// New launches, with names in order.
struct Launches {
    /// Those that are left, the next one last.
    names: Vec<String>,
    /// The launch that the first part keeps.
    first: Option<InameId>,
    made: Vec<Loop>,
}

impl Launches {
    /// Nodes as launches, and loops of the host on the path to the body that is cut.
    fn of(&mut self, kernel: &mut Kernel, nodes: Vec<Node>, path: &[InameId], at: &[usize]) -> Vec<Node> {
        let mut all = Vec::new();
        let mut open: Vec<Node> = Vec::new();
        for (k, node) in nodes.into_iter().enumerate() {
            match (path.split_first(), node) {
                (Some((host, path)), Node::Loop(iname, body)) if iname == *host => {
                    all.extend(self.launch(kernel, std::mem::take(&mut open)));
                    all.push(Node::Loop(iname, self.of(kernel, body, path, at)));
                }
                (Some(_), node) => open.push(node),
                (None, node) => {
                    if at.contains(&k) {
                        all.extend(self.launch(kernel, std::mem::take(&mut open)));
                    }
                    open.push(node);
                }
            }
        }
        all.extend(self.launch(kernel, open));
        all
    }

    fn launch(&mut self, kernel: &mut Kernel, body: Vec<Node>) -> Option<Node> {
        if body.is_empty() {
            return None;
        }
        let launch = match (self.names.pop(), self.first.take()) {
            (None, Some(first)) => first,
            (name, _) => new_loop(kernel, name.as_deref().unwrap_or("launch"), 1, AxisTag::Launch),
        };
        self.made.push(Loop::named(&kernel.inames[launch].name));
        Some(Node::Loop(launch, body))
    }
}

impl SplitLaunch {
    fn check_names(&self, kernel: &Kernel, proof: &Cuts) -> Result<(), Refusal> {
        if self.names.is_empty() {
            return Ok(());
        }
        let mut after = kernel.clone();
        let needed = Self { names: Vec::new(), ..self.clone() }.edit(&mut after, proof).len();
        if self.names.len() != needed {
            let found = format!("{} names for {needed} launches", self.names.len());
            return Err(Refusal::argument("names", found, "one for each"));
        }
        for (k, name) in self.names.iter().enumerate() {
            lookup::free(kernel, name)?;
            if self.names[..k].contains(name) {
                let found = format!("two launches would be called `{name}`");
                return Err(Refusal::argument("names", found, "different names"));
            }
        }
        Ok(())
    }
}

/// Checks that no call is cut.
fn check_calls(kernel: &Kernel, body: &[Node], at: &[usize]) -> Result<(), Refusal> {
    let callees =
        |nodes: &[Node]| insns_of(nodes).into_iter().map(|s| kernel.insns[s].callee).collect::<Vec<_>>();
    for k in at {
        let (before, after) = (callees(&body[..*k]), callees(&body[*k..]));
        let one = before.last().copied().flatten().filter(|a| after.first() == Some(&Some(*a)));
        NOT_CALLED.forbid(one, |callee| {
            let callee = kernel.callees[callee].name();
            format!(
                "the statements before and after the cut may belong to one call of `{callee}`; inline the call first"
            )
        })?;
    }
    Ok(())
}

/// Checks that the host can run a loop: it is untagged, and its bounds mention parameters and loops
/// around alone.
fn check_host_loop(kernel: &Kernel, iname: InameId) -> Result<(), Refusal> {
    let data = &kernel.inames[iname];
    HOST_LOOPS.require(data.tag == AxisTag::Sequential, || {
        format!(
            "`{}` is tagged {}, and the host repeats launches in untagged loops alone; tag it sequential, or \
             interchange the loops first",
            data.name, data.tag
        )
    })?;
    let mut other = None;
    data.domain.for_each_symbol(&mut |atom| {
        if let Atom::Var(var) = atom
            && kernel.vars[*var].kind != VarKind::Param
        {
            other = Some(*var);
        }
    });
    HOST_LOOPS.forbid(other.as_ref(), |var| {
        format!(
            "the bounds of `{}` mention `{}`, which is no parameter; keep that loop inside one launch",
            data.name, kernel.vars[*var].name
        )
    })
}

/// The loops around a body of the tree, outer first.
fn path_to(nodes: &[Node], body: &[Node]) -> Option<Vec<InameId>> {
    if std::ptr::eq(nodes, body) {
        return Some(Vec::new());
    }
    nodes.iter().find_map(|node| match node {
        Node::Loop(iname, inside) => {
            let mut path = path_to(inside, body)?;
            path.insert(0, *iname);
            Some(path)
        }
        Node::Insn(_) => None,
    })
}

/// The body of a launch or of a loop of the host, in which nothing is a launch any more.
pub(super) fn without_launches(kernel: &mut Kernel, nodes: Vec<Node>) -> Vec<Node> {
    let mut all = Vec::new();
    for node in nodes {
        match node {
            Node::Loop(launch, body) if kernel.inames[launch].is_one_launch(launch) => {
                substitute_in_nodes(kernel, &body, launch, &Affine::constant(0));
                all.extend(body);
            }
            Node::Loop(iname, body) => {
                if kernel.inames[iname].tag == AxisTag::Launch {
                    kernel.inames[iname].tag = AxisTag::Sequential;
                    all.push(Node::Loop(iname, body));
                } else {
                    let body = without_launches(kernel, body);
                    all.push(Node::Loop(iname, body));
                }
            }
            node @ Node::Insn(_) => all.push(node),
        }
    }
    all
}
