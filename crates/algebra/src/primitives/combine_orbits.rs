//! Computes with sums and differences of the elements of orbits.

use crate::orbits::{Deviation, Orbits, Rounded, sign};
use crate::proofs::orbit_products::{ALONE, DENSE, FULL, PRODUCTS, Product, Roles, Side, roles};
use kingpost_analysis::Analysis;
use kingpost_ir::{
    Access, AddressSpace, Affine, AxisTag, BinaryOp, Domain, Expr, InameId, Insn, InsnId, Kernel, Node,
    ScalarType, TableData, VarId, VarKind, Variable, WriteOp,
};
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::expected::Expected;
use kingpost_steps::keeps::{Instances, Keeps};
use kingpost_steps::nest::{new_loop, wrapped};
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::elements::{
    NO_RULE, ONLY_ACCESSED, TEMPORARY, check_no_rule, check_only_accessed, temporary,
};
use kingpost_steps::proofs::entries::{EntryUses, constant_shape, summed_axes};
use kingpost_steps::proofs::finite::{FINITE, check_finite};
use kingpost_steps::refusal::Refusal;
use kingpost_steps::schedule::{Array, Loop};
use kingpost_steps::tree::{edit_body, edit_siblings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Replaces the elements of a temporary that is multiplied by tables by sums and differences of
/// those of an orbit: what a symmetry makes of a table has blocks then.
///
/// # Rewrite
/// ```text
/// table t: f64[4] global          =>  table t: f64[4] global
/// for j in 0..4                       for j in 0..4
///   g: u[j] = x[j]                      g: u[j] = x[j]
/// for i in 0..4                       for orbit in 0..2
///   s: e += t[i]*u[i]                   combine_u: u_0[orbit] = u[u_images[0, orbit]] + u[u_images[1, orbit]]
///                                       combine_u_1: u_1[orbit] = u[u_images[0, orbit]] - u[u_images[1, orbit]]
///                                     for i in 0..2
///                                       s: e += t_0[i]*u_0[i]
///                                       s_1: e += t_1[i]*u_1[i]
/// table t = [2.0, 3.0, 1.0, 1.0]      table t_0 = [2.5, 1.0]
///                                     table t_1 = [-0.5, 0.0]
/// ```
/// With orbits of `2^k` entries there are as many combinations: in `c`, entry `g` has the sign
/// `(-1)^popcount(c & g)`, a character of the group of `k` swaps that commute. An element may stand
/// in its orbit several times, each as often as the others. A temporary to which products are added
/// is treated the other way round: the products add to combinations, and a loop after them computes
/// the elements by place in their orbits, where they are read.
///
/// # Precondition
/// Every element is in one orbit. The temporary is private, and in the body that holds all its
/// accesses every element is stored before the first product. Then either all that is read are
/// products `T[…, j]*u[j]` that are added to something else, or all that is added, to zeros, are
/// products `T[…, j]*f`, and nothing is read until then. Loops over `j` cover the axis and hold
/// nothing else; `T` is a table of the type of the temporary. With `T_c` the new tables, for all
/// entries,
/// ```text
/// |T[r, orbit[g]] - sum_c (-1)^popcount(c & g) T_c[r, orbit]| <= 1e-13 R(r, orbit[g])
/// ```
/// or `1e-6 R` in single precision, to which the new entries are rounded. `R(r, j)` is the largest entry
/// of row `r` or that of column `j`, whichever is smaller; the entry itself, where a result has one
/// alone. That is computed from both in this step, of new entries as they are. A new column of which every
/// entry is small is zero by then: what roundings leave of a difference. With `rounded`, so is every
/// small entry. Results are equal as far as tables are equal, where values are finite: the
/// difference of two infinities is none.
///
/// # Errors
/// Orbits that hold an element not at all, twice, or more often than others; another use of the
/// temporary, with the instruction; an entry that differs, or is no number.
///
/// # Source
/// Serre 1977, §2.6, for the projections on characters.
///
/// # Elsewhere
/// Symmetry-adapted bases of Stiefel & Fässler 1979; DUNE, MFEM and libCEED keep tables whole.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CombineOrbits {
    /// The temporary.
    pub var: String,
    /// The elements of each orbit along the first axis, images of the first by the swaps whose bits
    /// the place has.
    pub orbits: Vec<Vec<u32>>,
    /// Whether entries that are small against the largest ones of their row and columns, by a tenth of
    /// what the certificate allows, become zero in the tables of combinations: what a symmetry makes zero
    /// up to rounding.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rounded: bool,
}

impl CombineOrbits {
    /// Combines the elements of `var` in these orbits.
    pub fn new(var: impl Into<String>, orbits: impl IntoIterator<Item = Vec<u32>>) -> Self {
        Self { var: var.into(), orbits: orbits.into_iter().collect(), rounded: false }
    }

    /// With small entries of combinations rounded to zero.
    #[must_use]
    pub fn with_zeros(self) -> Self {
        Self { rounded: true, ..self }
    }
}

impl fmt::Display for CombineOrbits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let orbits = if self.orbits.len() == 1 { "orbit" } else { "orbits" };
        let zeros = if self.rounded { ", small entries zero" } else { "" };
        write!(f, "combine {} {orbits} of `{}`{zeros}", self.orbits.len(), self.var)
    }
}

/// How far an entry may be from what the combinations give, relative to the largest one of its row and
/// column: their roundings are 1e-16 or, in single precision, 6e-8.
fn tolerance(ty: ScalarType) -> f64 {
    if ty == ScalarType::F32 { 1e-6 } else { 1e-13 }
}

/// The combinations have an inverse.
const ORBITS: Obligation = Obligation::new(
    "combine_orbits.orbits",
    "every element is in one orbit, as often as its others, which are two, four, eight, …",
);

/// The new tables stand for the old ones.
const CERTIFICATE: Obligation = Obligation::new(
    "combine_orbits.certificate",
    "combinations of the columns of a table give each of its entries, up to 1e-13 of the largest one of its row and \
     column, or 1e-6 in single precision",
);

/// A temporary by its uses, and the tables of the combinations.
pub struct Combined {
    var: VarId,
    roles: Roles,
    /// Combinations.
    count: usize,
    images: Vec<i64>,
    places: Vec<(i64, i64)>,
    shares: Option<Vec<f64>>,
    /// Of each table, those of the combinations.
    tables: BTreeMap<VarId, Vec<Vec<f64>>>,
}

impl Primitive for CombineOrbits {
    const NAME: &'static str = "combine_orbits";
    const SUMMARY: &'static str = "Computes with sums and differences of the elements of orbits.";

    type Proof = Combined;
    type Made = (Vec<Array>, Loop);

    const OBLIGATIONS: &'static [Obligation] =
        &[ORBITS, PRODUCTS, ALONE, FULL, DENSE, CERTIFICATE, TEMPORARY, ONLY_ACCESSED, NO_RULE, FINITE];
    const KEEPS: Keeps = Keeps::within(12).of_finite();
    const INSTANCES: Instances = Instances::Free;

    fn check(&self, analysis: &Analysis) -> Result<Combined, Refusal> {
        let kernel = analysis.kernel();
        let var = temporary(kernel, &self.var, "copy it to one first")?;
        check_only_accessed(kernel, var)?;
        check_no_rule(kernel, var)?;
        let roles = roles(kernel, var)?;
        let n = usize::try_from(roles.extents[0]).ok().expected("extent of an array", kernel)?;
        let orbits = ORBITS.met(Orbits::new(&self.orbits, n), |why| {
            format!("{why}; list each of the {n} elements of `{}` in one orbit", self.var)
        })?;
        let mut tables = BTreeMap::new();
        for product in &roles.products {
            let table = &kernel.vars[product.table];
            let VarKind::Table(TableData::Real(values)) = &table.kind else { continue };
            let values: Vec<f64> = values.iter().map(|v| v.0).collect();
            check_finite(kernel, &kernel.insns[product.insn].name, &kernel.insns[product.insn].rhs)?;
            let mut combined = orbits.combined(&values);
            if table.ty == ScalarType::F32 {
                combined.iter_mut().flatten().for_each(|entry| *entry = f64::from(*entry as f32));
            }
            let tolerance = tolerance(table.ty);
            let scales = scales_of(analysis, &roles.products, product.table, &values)?;
            let rounded = if self.rounded { Rounded::Entries } else { Rounded::Columns };
            orbits.round(&mut combined, &scales, 0.1 * tolerance, rounded);
            let certified = orbits.certify(&values, &combined, &scales, tolerance);
            CERTIFICATE.met(certified, |d| differs(&table.name, &d, tolerance))?;
            tables.insert(product.table, combined);
        }
        let (images, places, shares) = (orbits.images(), orbits.places(), orbits.shares());
        Ok(Combined { var, roles, count: orbits.entries, images, places, shares, tables })
    }

    fn edit(&self, kernel: &mut Kernel, proof: &Combined) -> (Vec<Array>, Loop) {
        let Roles { side, products, zeros, at, place, extents } = &proof.roles;
        let edit = Edit { proof, orbits: self.orbits.len() as i64 };
        let combinations = edit.combinations(kernel);
        let tables: BTreeMap<VarId, Vec<VarId>> =
            proof.tables.iter().map(|(of, values)| (*of, edit.tables(kernel, *of, values))).collect();
        for Product { insn, iname, table } in products {
            edit.end_at_orbits(kernel, *iname);
            edit.copies(kernel, *insn, &combinations, &|c, e| match e {
                Expr::Load(a) if a.var == *table => Expr::load(tables[table][c], a.index),
                Expr::Load(a) if a.var == proof.var => Expr::load(combinations[c], a.index),
                other => other,
            });
        }
        for (insn, iname) in zeros {
            edit.end_at_orbits(kernel, *iname);
            edit.copies(kernel, *insn, &combinations, &|_, e| e);
        }
        let (orbit, nest) = match side {
            Side::Values => edit.combine(kernel, &combinations, extents),
            Side::Results => edit.separate(kernel, &combinations, extents),
        };
        edit_body(kernel, *at, &mut |body| body.insert(*place, nest.clone()));
        let array = |v: &VarId| Array::named(&kernel.vars[*v].name);
        (combinations.iter().map(array).collect(), Loop::named(&kernel.inames[orbit].name))
    }

    const WEIGHT: usize = 3;

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let mut all = Vec::new();
        for name in draw::vars(kernel, |v| v.kind == VarKind::Temporary && !v.shape.is_empty()) {
            let first = kernel.var(&name).and_then(|v| kernel.vars[v].shape[0].as_constant());
            let Some(n) = first.and_then(|n| u32::try_from(n).ok()).filter(|n| (1..=64).contains(n)) else {
                continue;
            };
            let entries = p.among([2, 4]);
            let some: Vec<u32> = (0..n).collect();
            let orbits = some.chunks(entries).map(|chunk| match chunk {
                [a, b] if entries == 4 => vec![vec![*a, *b, *b, *a]],
                chunk if chunk.len() == entries => vec![chunk.to_vec()],
                chunk => chunk.iter().map(|e| vec![*e; entries]).collect(),
            });
            all.push(Self::new(name, orbits.flatten().collect::<Vec<_>>()));
        }
        draw::possible(kernel, all, p)
    }
}

/// What the errors of the entries of a table are compared with, by the products that load it.
fn scales_of(
    analysis: &Analysis,
    products: &[Product],
    table: VarId,
    values: &[f64],
) -> Result<Vec<f64>, Refusal> {
    let kernel = analysis.kernel();
    let mut uses = EntryUses::default();
    for product in products.iter().filter(|p| p.table == table) {
        let insn = &kernel.insns[product.insn];
        let loads = insn.reads().into_iter().filter(|a| a.var == table);
        uses.extend(loads.map(|a| summed_axes(insn, a, analysis.loops(product.insn), &[])));
    }
    Ok(uses.scales(values, &constant_shape(kernel, &kernel.vars[table])?))
}

fn differs(table: &str, d: &Deviation, tolerance: f64) -> String {
    format!(
        "entry {} of row {} of `{table}` is {}, and combinations give {}, needed within {tolerance:e} of {}",
        d.column, d.row, d.value, d.combined, d.scale
    )
}

struct Edit<'a> {
    proof: &'a Combined,
    orbits: i64,
}

impl Edit<'_> {
    fn end_at_orbits(&self, kernel: &mut Kernel, iname: InameId) {
        let (start, end) = (Affine::constant(0), Affine::constant(self.orbits));
        kernel.inames[iname].domain = Domain::range(iname, &start, &end);
    }

    /// A temporary for each combination.
    fn combinations(&self, kernel: &mut Kernel) -> Vec<VarId> {
        let of = kernel.vars[self.proof.var].clone();
        let mut shape = of.shape.clone();
        shape[0] = Affine::constant(self.orbits);
        let named = |c: usize, kernel: &mut Kernel| {
            let name = kernel.fresh_name(&format!("{}_{c}", of.name));
            kernel.vars.push(Variable { name, shape: shape.clone(), ..of.clone() })
        };
        (0..self.proof.count).map(|c| named(c, kernel)).collect()
    }

    /// A table, or one that is there with these entries.
    fn table(kernel: &mut Kernel, stem: &str, table: Variable) -> VarId {
        let same = |v: &Variable| Variable { name: table.name.clone(), ..v.clone() } == table;
        if let Some((known, _)) = kernel.vars.iter().find(|(_, v)| same(v)) {
            return known;
        }
        let name = kernel.fresh_name(stem);
        kernel.vars.push(Variable { name, ..table })
    }

    /// The combinations of the columns of a table.
    fn tables(&self, kernel: &mut Kernel, of: VarId, values: &[Vec<f64>]) -> Vec<VarId> {
        let table = kernel.vars[of].clone();
        let mut shape = table.shape.clone();
        if let Some(last) = shape.last_mut() {
            *last = Affine::constant(self.orbits);
        }
        let each = values.iter().enumerate().map(|(c, values)| {
            let kind = VarKind::Table(TableData::real(values.iter().copied()));
            let stem = format!("{}_{c}", table.name);
            Self::table(kernel, &stem, Variable { kind, shape: shape.clone(), ..table.clone() })
        });
        each.collect()
    }

    /// A table of an axis or two, by what the names of the temporary and it are made of.
    fn small(&self, kernel: &mut Kernel, stem: &str, shape: &[i64], data: TableData) -> VarId {
        let ty = match data {
            TableData::Int(_) => ScalarType::I32,
            TableData::Real(_) | TableData::Complex(_) => kernel.vars[self.proof.var].ty,
        };
        let stem = format!("{}_{stem}", kernel.vars[self.proof.var].name);
        let shape: Vec<Affine> = shape.iter().map(|n| Affine::constant(*n)).collect();
        let table = Variable::new(String::new(), ty, VarKind::Table(data), shape, AddressSpace::Global);
        Self::table(kernel, &stem, table)
    }

    /// An instruction once for each combination, the first in its place; what wrote to the temporary
    /// writes to the combinations.
    fn copies(
        &self,
        kernel: &mut Kernel,
        id: InsnId,
        combinations: &[VarId],
        of: &dyn Fn(usize, Expr) -> Expr,
    ) {
        let insn = kernel.insns[id].clone();
        let mut all = vec![id];
        for c in 1..combinations.len() {
            let name = kernel.fresh_name(&format!("{}_{c}", insn.name));
            all.push(kernel.insns.push(Insn { name, ..insn.clone() }));
        }
        for (c, (copy, var)) in all.iter().zip(combinations).enumerate() {
            let copy = &mut kernel.insns[*copy];
            copy.map_expressions(&mut |e| of(c, e));
            if insn.lhs.var == self.proof.var {
                copy.lhs.var = *var;
            }
        }
        let own = |n: &Node| matches!(n, Node::Insn(i) if *i == id);
        edit_siblings(&mut kernel.body, &own, &mut |siblings| {
            if let Some(at) = siblings.iter().position(own) {
                siblings.splice(at..=at, all.iter().map(|i| Node::Insn(*i)));
            }
        });
    }

    /// The loops over orbits and over the other axes, with the indices of these.
    fn loops(&self, kernel: &mut Kernel, extents: &[i64]) -> (Vec<InameId>, Vec<Expr>) {
        let mut loops = vec![new_loop(kernel, "orbit", self.orbits, AxisTag::Sequential)];
        for extent in &extents[1..] {
            loops.push(new_loop(kernel, "component", *extent, AxisTag::Sequential));
        }
        let index = loops[1..].iter().map(|l| Expr::Iname(*l)).collect();
        (loops, index)
    }

    /// The sums and differences of values, from the first combination on.
    fn sums(values: &[Expr], count: usize) -> Vec<Expr> {
        (0..count).map(|c| alternating(values, c)).collect()
    }

    fn assign(kernel: &mut Kernel, stem: &str, lhs: Access, rhs: Expr) -> Node {
        let name = kernel.fresh_name(stem);
        let (op, predicate, callee) = (WriteOp::Assign, None, None);
        Node::Insn(kernel.insns.push(Insn { name, lhs, op, rhs, predicate, tags: BTreeSet::new(), callee }))
    }

    /// The loop that combines values, before the products.
    fn combine(&self, kernel: &mut Kernel, to: &[VarId], extents: &[i64]) -> (InameId, Node) {
        let (loops, rest) = self.loops(kernel, extents);
        let orbit = Expr::Iname(loops[0]);
        let shape = [self.proof.count as i64, self.orbits];
        let images = TableData::int(self.proof.images.iter().copied());
        let images = self.small(kernel, "images", &shape, images);
        let shares = self.proof.shares.clone();
        let shares = shares.map(|s| self.small(kernel, "shares", &[self.orbits], TableData::real(s)));
        let value = |g: usize| {
            let element = Expr::load(images, [Expr::Int(g as i64), orbit.clone()]);
            Expr::load(self.proof.var, [element].into_iter().chain(rest.clone()))
        };
        let values: Vec<Expr> = (0..self.proof.count).map(value).collect();
        let stem = format!("combine_{}", kernel.vars[self.proof.var].name);
        let mut nodes = Vec::new();
        for (var, mut sum) in to.iter().zip(Self::sums(&values, self.proof.count)) {
            if let Some(shares) = shares {
                sum = Expr::binary(BinaryOp::Mul, Expr::load(shares, [orbit.clone()]), sum);
            }
            let lhs = Access::new(*var, [orbit.clone()].into_iter().chain(rest.clone()));
            nodes.push(Self::assign(kernel, &stem, lhs, sum));
        }
        Self::nest(&loops, nodes)
    }

    /// The loop that computes elements from the combinations that products were added to, by their
    /// place in orbits, and the reads from there. One instruction stores them all, so that no value is
    /// one of an earlier iteration.
    fn separate(&self, kernel: &mut Kernel, from: &[VarId], extents: &[i64]) -> (InameId, Node) {
        let (var, count) = (self.proof.var, self.proof.count);
        let n = self.proof.places.len() as i64;
        let (members, orbits): (Vec<i64>, Vec<i64>) = self.proof.places.iter().copied().unzip();
        let members = self.small(kernel, "members", &[n], TableData::int(members));
        let orbits = self.small(kernel, "orbits", &[n], TableData::int(orbits));
        for insn in kernel.insns.ids().collect::<Vec<_>>() {
            kernel.insns[insn].map_expressions(&mut |e| match e {
                Expr::Load(mut a) if a.var == var => {
                    let place = [members, orbits].map(|t| Expr::load(t, [a.index[0].clone()]));
                    a.index.splice(0..1, place);
                    Expr::Load(a)
                }
                other => other,
            });
        }
        let signs = (0..count * count).map(|k| sign(k / count, k % count));
        let signs = self.small(kernel, "signs", &[count as i64; 2], TableData::real(signs));
        let (mut loops, rest) = self.loops(kernel, extents);
        let member = new_loop(kernel, "member", count as i64, AxisTag::Sequential);
        loops.insert(1, member);
        let [orbit, member] = [loops[0], member].map(Expr::Iname);
        kernel.vars[var].shape[0] = Affine::constant(self.orbits);
        kernel.vars[var].shape.insert(0, Affine::constant(count as i64));
        let term = |(c, from): (usize, &VarId)| {
            let value = Expr::load(*from, [orbit.clone()].into_iter().chain(rest.clone()));
            let sign = Expr::load(signs, [member.clone(), Expr::Int(c as i64)]);
            Expr::binary(BinaryOp::Mul, sign, value)
        };
        let sum = from.iter().enumerate().map(term);
        let sum = sum.reduce(|a, b| Expr::binary(BinaryOp::Add, a, b)).unwrap_or(Expr::Int(0));
        let stem = format!("separate_{}", kernel.vars[var].name);
        let lhs = Access::new(var, [member.clone(), orbit.clone()].into_iter().chain(rest.clone()));
        let nodes = vec![Self::assign(kernel, &stem, lhs, sum)];
        Self::nest(&loops, nodes)
    }

    fn nest(loops: &[InameId], nodes: Vec<Node>) -> (InameId, Node) {
        let inside = wrapped(loops[1..].iter().copied(), nodes);
        (loops[0], Node::Loop(loops[0], inside))
    }
}

/// `(v0 ± v1) ± (v2 ± v3)` with the signs of combination `c`: pairs first, so that combinations share
/// sums.
fn alternating(values: &[Expr], c: usize) -> Expr {
    if let [one] = values {
        return one.clone();
    }
    let op = if c & 1 == 0 { BinaryOp::Add } else { BinaryOp::Sub };
    let joined = |pair: &[Expr]| match pair {
        [a, b] => Expr::binary(op, a.clone(), b.clone()),
        pair => pair.first().cloned().unwrap_or(Expr::Int(0)),
    };
    let pairs: Vec<Expr> = values.chunks(2).map(joined).collect();
    alternating(&pairs, c >> 1)
}
