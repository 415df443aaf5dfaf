//! Runs the statements of a subtree in the order of affine maps.

mod plan;

use kingpost_analysis::Analysis;
use kingpost_analysis::polyhedral::{Polyhedral, Side, cross, equal_values, smallest_pair};
use kingpost_ir::{Affine, Atom, AxisTag, BinaryOp, Constraint, Domain, Expr, InameId, Kernel, Node};
use kingpost_isl as isl;
use kingpost_steps::Means;
use kingpost_steps::argument::one_or_several;
use kingpost_steps::condition::condition;
use kingpost_steps::draw::Picks;
use kingpost_steps::hull::{Loops, shadow, simplified};
use kingpost_steps::keeps::Keeps;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::ORDER;
use kingpost_steps::proofs::order::{Reordering, check_order};
use kingpost_steps::refusal::{AtParameters, Refusal};
use kingpost_steps::run::{CONTIGUOUS, NOT_CALLED, same};
use kingpost_steps::schedule::Loop;
use kingpost_steps::substitute::{simplify_indices, substitute_in_nodes};
use kingpost_steps::tree::{edit_siblings, insns_of};
use plan::{Plan, Unit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Replaces neighbouring statements and loops by one nest, in which each instruction runs where an
/// affine map says.
///
/// # Rewrite
/// With the maps `{s: ["t", "2*t + i"], r: ["t", "2*t + j + 1"]}`:
/// ```text
/// for t in 0..m           =>   for t in 0..m
///   for i in 1..n                for c in 2*t + 1..2*t + n + 1
///     s: a[t, i] = 1.0             s: a[t, -(2*t) + c] = 1.0 if c + 1 <= 2*t + n
///   for j in 1..n                  r: b[t, -(2*t) + c - 1] = a[t, -(2*t) + c - 1] if 2*t + 2 <= c
///     r: b[t, j] = a[t, j]
/// ```
/// Fusion with a shift, retiming, skewing, interchange and strip-mining of nests that need not be perfect
/// are steps of this kind. A row is a quasi-affine expression of the loops around the instruction and of
/// parameters. Below the loops run the entries of `then`, in this order: instructions, or bands, which
/// are nests with maps of their own. A loop of the old nest may stand for all that it holds, which then
/// moves as a whole.
///
/// The new loops run over a hull of the images, with bounds projected over the rationals, so that they
/// may hold iterations without any instance; conditions of the instructions say the rest.
///
/// # Precondition
/// With `T_s` the map of an instruction, its position below the loops last: no dependence is turned
/// around, `{ s -> t in D : T_t(t) lexicographically before T_s(s) }` is empty for every flow, anti and
/// output dependence `D`. Commuting updates may be reordered. `T_s` is injective for given loops around,
/// and its inverse is quasi-affine. The image of the instances is what loops and conditions say, `T_s(I_s)
/// = { c : bounds and condition }`, which isl certifies. If other loops are on axes, the placement must
/// still hold.
///
/// # Errors
/// Unknown names, statements that are no neighbours or belong to a call, instructions without a map or
/// with two, rows that are no quasi-affine expressions of what is around, names that are taken, tagged
/// loops, bounds read from memory or without closed form, two instances that a map sends to one point, a
/// dependence of that direction or that the placement breaks, with two instances.
///
/// # Source
/// Feautrier 1992, on multidimensional schedules.
///
/// # Elsewhere
/// Schedule trees of isl (`isl_schedule_node_insert_partial_schedule`); PLuTo's transformations;
/// Tiramisu `set_schedule`; Loopy `affine_map_inames`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reschedule {
    /// The statements (instructions, or loops with all they hold), neighbours in one body.
    #[serde(with = "one_or_several")]
    #[schemars(schema_with = "one_or_several::schema")]
    pub subtree: Vec<String>,
    /// Names of the new loops, outer first.
    pub loops: Vec<String>,
    /// A row for each new loop, for each instruction or loop that moves as a whole.
    pub maps: BTreeMap<String, Vec<String>>,
    /// What runs inside the loops, in this order; all that have maps, in the order of today, if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub then: Vec<Part>,
}

/// What runs inside a band.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Part {
    /// An instruction, or a loop that moves as a whole.
    Statement(String),
    /// A nest of its own.
    Band(Band),
}

/// Loops inside those of another band.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Band {
    /// Names of the loops, outer first.
    pub loops: Vec<String>,
    /// A row for each of these loops, for each instruction or loop that runs inside.
    pub maps: BTreeMap<String, Vec<String>>,
    /// What runs inside the loops, in this order; all that have maps, in the order of today, if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub then: Vec<Part>,
}

impl Reschedule {
    /// A band of new loops instead of neighbouring statements, still without maps.
    pub fn new<S: Into<String>, L: Into<String>>(
        subtree: impl IntoIterator<Item = S>,
        loops: impl IntoIterator<Item = L>,
    ) -> Self {
        let Band { loops, maps, then } = Band::new(loops);
        Self { subtree: subtree.into_iter().map(Into::into).collect(), loops, maps, then }
    }

    /// Says where an instruction runs, or a loop that moves as a whole: a row for each new loop.
    #[must_use]
    pub fn map<R: Into<String>>(
        mut self,
        statement: impl Into<String>,
        rows: impl IntoIterator<Item = R>,
    ) -> Self {
        self.maps.insert(statement.into(), rows.into_iter().map(Into::into).collect());
        self
    }

    /// Says what runs inside the loops, in this order.
    #[must_use]
    pub fn then<P: Into<Part>>(mut self, parts: impl IntoIterator<Item = P>) -> Self {
        self.then = parts.into_iter().map(Into::into).collect();
        self
    }
}

impl Band {
    /// Loops without maps.
    pub fn new<L: Into<String>>(loops: impl IntoIterator<Item = L>) -> Self {
        let loops = loops.into_iter().map(Into::into).collect();
        Self { loops, maps: BTreeMap::new(), then: Vec::new() }
    }
}

impl From<Band> for Part {
    fn from(band: Band) -> Self {
        Self::Band(band)
    }
}

impl From<&str> for Part {
    fn from(statement: &str) -> Self {
        Self::Statement(statement.into())
    }
}

impl From<String> for Part {
    fn from(statement: String) -> Self {
        Self::Statement(statement)
    }
}

impl fmt::Display for Reschedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quoted = |names: &[String]| {
            let names: Vec<_> = names.iter().map(|n| format!("`{n}`")).collect();
            if names.is_empty() { "nothing".into() } else { names.join(", ") }
        };
        write!(f, "reschedule {} into {}", quoted(&self.subtree), quoted(&self.loops))
    }
}

/// Their iterations run in one place, one after the other.
const UNTAGGED: Obligation =
    Obligation::new("reschedule.untagged", "the loops that are replaced have no tags");

/// What is projected is all that the bounds say.
const KNOWN_BOUNDS: Obligation =
    Obligation::new("reschedule.known_bounds", "no bounds of loops that are replaced are read from memory");

/// No instance runs twice in one place, so that each is found again.
const ONCE: Obligation =
    Obligation::new("reschedule.once", "a map sends different instances to different points");

/// Instructions can say where they are.
const INVERSE: Obligation = Obligation::new("reschedule.inverse", "the inverse of a map is quasi-affine");

/// Loops can have the projected bounds.
const CLOSED_FORM: Obligation =
    Obligation::new("reschedule.closed_form", "the bounds of the new loops have a closed form");

/// isl finds the image of the instances in bounds and conditions.
const EXACT: Obligation = Obligation::new(
    "reschedule.exact",
    "the image of the instances is what the new bounds and conditions say",
);

/// The new nest, with all bounds and conditions.
pub struct Rescheduled {
    /// The statements that it replaces.
    nodes: Vec<Node>,
    plan: Plan,
}

impl Primitive for Reschedule {
    const NAME: &'static str = "reschedule";
    const SUMMARY: &'static str = "Runs the statements of a subtree in the order of affine maps.";

    type Proof = Rescheduled;
    type Made = Vec<Loop>;

    const OBLIGATIONS: &'static [Obligation] =
        &[CONTIGUOUS, NOT_CALLED, UNTAGGED, KNOWN_BOUNDS, ONCE, INVERSE, CLOSED_FORM, EXACT, ORDER];
    const KEEPS: Keeps = Keeps::REASSOCIATED;
    const WEIGHT: usize = 3;

    fn check(&self, analysis: &Analysis) -> Result<Rescheduled, Refusal> {
        let kernel = analysis.kernel();
        let nodes = kingpost_steps::run::named(kernel, &self.subtree)?.nodes.to_vec();
        let mut plan = Plan::of(self, analysis, &nodes)?;
        check_loops(analysis, &plan)?;
        let around = around(analysis, &nodes)?;
        for unit in &mut plan.units {
            unit.values = inverse(analysis, unit)?;
        }
        let mut with_new = kernel.clone();
        plan.add_loops(&mut with_new);
        let next = analysis.next(&with_new);
        Bounds { poly: next.polyhedral(), params: around.params()? }.find(&mut plan, &around)?;
        let proof = Rescheduled { nodes, plan };
        let after = self.draft(kernel, &proof);
        let value = |insn, l| proof.plan.unit_of(insn)?.row(l).cloned();
        let whole = proof.plan.whole();
        check_order(
            &Reordering { before: analysis, after: &after, value: &value, whole: &whole },
            &|source, sink| {
                if source == sink {
                    format!(
                        "choose rows whose first nonzero difference along every dependence of `{source}` is positive"
                    )
                } else {
                    format!("shift the rows of `{sink}` up, or name `{source}` before it in `then`")
                }
            },
        )?;
        Ok(proof)
    }

    fn edit(&self, kernel: &mut Kernel, Rescheduled { nodes, plan }: &Rescheduled) -> Vec<Loop> {
        plan.add_loops(kernel);
        for unit in &plan.units {
            for (iname, value) in unit.old.iter().zip(&unit.values) {
                substitute_in_nodes(kernel, std::slice::from_ref(&unit.node), *iname, value);
            }
            let insns = insns_of(std::slice::from_ref(&unit.node));
            simplify_indices(kernel, &insns);
            match &unit.node {
                Node::Loop(iname, _) => {
                    kernel.inames[*iname].domain = kernel.inames[*iname].domain.intersect(&unit.guard);
                }
                Node::Insn(insn) => {
                    let rest = kernel.insns[*insn].predicate.take();
                    let rest = rest.as_ref().map(Expr::conjuncts).unwrap_or_default(); // default: no condition has no parts
                    let rest = unit.kept.iter().filter_map(|k| rest.get(*k)).map(|e| (*e).clone());
                    let all = condition(&unit.guard).into_iter().chain(rest);
                    kernel.insns[*insn].predicate = all.reduce(|a, b| Expr::binary(BinaryOp::And, a, b));
                }
            }
        }
        let nest = plan.nodes();
        edit_siblings(&mut kernel.body, &|node| same(node, &nodes[0]), &mut |siblings| {
            let first = siblings.iter().position(|node| same(node, &nodes[0]));
            if let Some(k) = first {
                siblings.splice(k..k + nodes.len(), nest.clone());
            }
        });
        plan.name_loops(kernel);
        plan.loops().map(|(_, name)| Loop::named(name)).collect()
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        plan::draw(kernel, p)
    }
}

/// The loops that are replaced have no tags and bounds that isl knows.
fn check_loops(analysis: &Analysis, plan: &Plan) -> Result<(), Refusal> {
    let (kernel, poly) = (analysis.kernel(), analysis.polyhedral());
    for iname in plan.old_loops() {
        let data = &kernel.inames[iname];
        UNTAGGED.require(data.tag == AxisTag::Sequential, || {
            format!(
                "`{}` is tagged {}; tag it sequential, reschedule, then tag the result",
                data.name, data.tag
            )
        })?;
        let (_, exact) = poly.domain(&data.domain, Side::Source);
        KNOWN_BOUNDS.decide(exact, || {
            format!(
                "the bounds of `{0}` are read from memory; let `{0}` move as a whole, with a map for it instead of \
                 its instructions",
                data.name
            )
        })?;
    }
    Ok(())
}

/// What holds around the subtree: assumptions, and the values of the loops there. A set without
/// dimensions.
fn around(analysis: &Analysis, nodes: &[Node]) -> Result<isl::Set, Refusal> {
    let poly = analysis.polyhedral();
    let loops = plan::loops_around(analysis.kernel(), nodes)?;
    let mut params = poly.params.clone();
    params.extend(poly.names(&loops, Side::Source));
    let known = poly.in_context(poly.domains(&loops, Side::Source).0);
    Ok(isl::Set::from_disjuncts(&isl::SetSpace::new::<&str, _>(&[], &params), &known)?)
}

/// The values of the old loops, by those of the new ones.
fn inverse(analysis: &Analysis, unit: &Unit) -> Result<Vec<Affine>, Refusal> {
    if let Some(values) = kingpost_steps::inverse::preimage(&unit.rows, &unit.old) {
        // there is one: no two instances run at one point
        INVERSE.holds(Means::Form, String::new);
        ONCE.holds(Means::Form, String::new);
        return Ok(values);
    }
    let (kernel, poly) = (analysis.kernel(), analysis.polyhedral());
    let ends = [Side::Source, Side::Sink].map(|side| poly.names(&unit.old, side));
    let params = [unit.params(poly), poly.names(unit.outer(), Side::Sink)].concat();
    let space = isl::MapSpace::new(&ends[0], &ends[1], &params);
    let mut both = cross(&unit.instances(poly, Side::Source), &unit.instances(poly, Side::Sink));
    let same = unit.rows.iter().filter_map(|(_, row)| {
        let (x, y) = (poly.affine(row, Side::Source)?, poly.affine(row, Side::Sink)?);
        Some(isl::Constraint::zero(y.add_scaled(-1, &x)))
    });
    both = cross(&both, &[same.chain(equal_values(poly, unit.outer())).collect()]);
    let pairs = isl::Map::from_disjuncts(&space, &poly.in_context(both))?;
    let later = isl::lex_less(&isl::SetSpace::new(&ends[0], &poly.params))?;
    let clash = smallest_pair(kernel, &pairs.intersect(&later)?)?;
    ONCE.refute(clash.map(|pair| {
        let instance = |point: &[(String, i64)]| {
            let values: Vec<_> = point.iter().map(|(_, v)| v.to_string()).collect();
            format!("`{}[{}]`", unit.name, values.join(","))
        };
        let params = pair.params.into_iter().filter(|(name, _)| !name.ends_with('\''));
        AtParameters {
            params: params.collect(),
            found: format!("{} and {} would run at one point", instance(&pair.input), instance(&pair.output)),
            reason: "each instance needs one of its own; add a loop with a row that tells them apart".into(),
        }
    }))?;
    let found = format!("the map of `{}` has no inverse that is quasi-affine", unit.name);
    Err(INVERSE.undecided(format!("{found}; choose rows with a linear inverse")))
}

/// Finds the bounds of new loops and the conditions of what runs inside.
struct Bounds<'a, 'k> {
    poly: &'a Polyhedral<'k>,
    /// The symbols and the loops around.
    params: Vec<String>,
}

impl Bounds<'_, '_> {
    fn find(&self, plan: &mut Plan, around: &isl::Set) -> Result<(), Refusal> {
        let images = plan.units.iter().map(|unit| self.image(unit)).collect::<Result<Vec<_>, Refusal>>()?;
        let mut domains = Vec::new();
        self.band(&plan.band, &[], around, &images, &mut domains)?;
        plan.domains = domains;
        for (unit, image) in plan.units.iter_mut().zip(images) {
            unit.guard = self.guard(unit, &plan.domains, around, &image)?;
        }
        Ok(())
    }

    /// Where the new loops run an instruction: the only candidate for its instance is one, and is sent
    /// there.
    fn image(&self, unit: &Unit) -> Result<isl::Set, Refusal> {
        let value = |iname: InameId| {
            let k = unit.old.iter().position(|old| *old == iname)?;
            Some(unit.values[k].clone())
        };
        let replace = |atom: &Atom| match atom {
            Atom::Iname(iname) => value(*iname),
            Atom::Var(_) | Atom::Floor(..) => None,
        };
        let sent = unit
            .rows
            .iter()
            .map(|(new, row)| Constraint::equal(&row.substitute(&replace), &Affine::iname(*new)));
        let image = unit
            .domains
            .iter()
            .fold(Domain::conjunction(sent), |all, domain| all.intersect(&domain.substitute(&replace)));
        let space = isl::SetSpace::new(&self.poly.names(&unit.path(), Side::Source), &self.params);
        Ok(isl::Set::from_disjuncts(&space, &self.poly.domain(&image, Side::Source).0)?)
    }

    /// The domains of the loops of a band and of the bands inside; `path` holds the loops around it, of
    /// which `around` says the values.
    fn band(
        &self,
        band: &plan::BandPlan,
        path: &[InameId],
        around: &isl::Set,
        images: &[isl::Set],
        found: &mut Vec<(InameId, Domain)>,
    ) -> Result<(), Refusal> {
        let path = [path, &band.loops].concat();
        let dims = self.poly.names(&path, Side::Source);
        let dims: Vec<&str> = dims.iter().map(String::as_str).collect();
        let own: Vec<&str> = dims[dims.len() - band.loops.len()..].to_vec();
        let context = around.add_dims(&own)?;
        let mut parts = Vec::new();
        for unit in band.units() {
            let inner = images[unit].dims().iter().filter(|dim| !dims.contains(&dim.as_str()));
            let inner: Vec<&str> = inner.map(String::as_str).collect();
            parts.push(shadow(&images[unit], &inner)?.intersect(&context)?);
        }
        let loops = Loops { poly: self.poly, loops: &band.loops, around, closed_form: CLOSED_FORM };
        let domains = loops.domains(&parts)?;
        let mut said = context;
        for domain in &domains {
            said = said.intersect(&self.set(&path, domain)?)?;
        }
        found.extend(band.loops.iter().copied().zip(domains));
        for part in &band.then {
            if let plan::Entry::Band(inner) = part {
                self.band(inner, &path, &said, images, found)?;
            }
        }
        Ok(())
    }

    /// A domain of the innermost of some loops as a set of all of them.
    fn set(&self, loops: &[InameId], domain: &Domain) -> Result<isl::Set, Refusal> {
        let space = isl::SetSpace::new(&self.poly.names(loops, Side::Source), &self.params);
        Ok(isl::Set::from_disjuncts(&space, &self.poly.domain(domain, Side::Source).0)?)
    }

    /// What the bounds of the loops do not say of where an instruction runs.
    fn guard(
        &self,
        unit: &Unit,
        domains: &[(InameId, Domain)],
        around: &isl::Set,
        image: &isl::Set,
    ) -> Result<Domain, Refusal> {
        let path = unit.path();
        let mut said = around.add_dims(&image.dims().iter().map(String::as_str).collect::<Vec<_>>())?;
        let context = said.clone();
        for (_, domain) in domains.iter().filter(|(iname, _)| path.contains(iname)) {
            said = said.intersect(&self.set(&path, domain)?)?;
        }
        let guard = simplified(&image.gist(&said)?)?;
        let exact = said.intersect(&guard)?.is_equal(&self.sent(unit)?.intersect(&context)?)?;
        let found = || {
            format!(
                "bounds and condition of `{}` do not say where its instances go; choose simpler rows",
                unit.name
            )
        };
        EXACT.decide(exact, found)?;
        let guard = self.poly.to_domain(&guard.disjuncts()?);
        guard.ok_or_else(|| EXACT.undecided(found()))
    }

    /// The image of the instances, as isl finds it.
    fn sent(&self, unit: &Unit) -> Result<isl::Set, Refusal> {
        let old = self.poly.names(&unit.old, Side::Source);
        let new = self.poly.names(&unit.path(), Side::Source);
        let rows = unit.rows.iter().zip(&new).filter_map(|((_, row), new)| {
            let row = self.poly.affine(row, Side::Source)?;
            Some(isl::Constraint::zero(row.plus(-1, new.as_str())))
        });
        let map = isl::Map::from_constraints(
            &isl::MapSpace::new(&old, &new, &self.params),
            &rows.collect::<Vec<_>>(),
        )?;
        let instances = unit.instances(self.poly, Side::Source);
        let instances = isl::Set::from_disjuncts(&isl::SetSpace::new(&old, &self.params), &instances)?;
        Ok(map.intersect_domain(&instances)?.range()?)
    }
}
