//! Accumulates one triangle of a symmetric matrix and copies it to the other.

use crate::proofs::identity::{Point, Residue};
use kingpost_analysis::Analysis;
use kingpost_ir::{
    Access, Affine, AxisTag, Domain, Expr, Iname, InameId, Insn, InsnId, Kernel, Node, UpdateOp, VarId,
    WriteOp,
};
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::keeps::{Instances, Keeps};
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::CURRENT;
use kingpost_steps::proofs::elements::{
    NO_RULE, ONLY_ACCESSED, TEMPORARY, check_no_rule, check_only_accessed, temporary,
};
use kingpost_steps::proofs::finite::{FINITE, check_finite};
use kingpost_steps::refusal::Refusal;
use kingpost_steps::schedule::{Loop, Made, Statement};
use kingpost_steps::tree::{body_of, edit_body, insns_of};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Adds to the entries on and above the diagonal of a matrix that is symmetric, and copies those
/// above it to those below.
///
/// # Rewrite
/// ```text
/// for a in 0..3                         =>   for a in 0..3
///   for b in 0..3                              for b in 0..3
///     z: m[a, b] = 0.0                           z: m[a, b] = 0.0
/// for q in 0..4                              for q in 0..4
///   for i in 0..3                              for i in 0..3
///     for j in 0..3                              for j in i..3
///       s: m[i, j] += w[q, i]*w[q, j]              s: m[i, j] += w[q, i]*w[q, j]
/// for k in 0..3                              for i_mirror in 0..3
///   for l in 0..3                              for j_mirror in 0..i_mirror
///     c: y[k, l] = m[k, l]                       mirror_m: m[i_mirror, j_mirror] = m[j_mirror, i_mirror]
///                                            for k in 0..3
///                                              for l in 0..3
///                                                c: y[k, l] = m[k, l]
/// ```
/// Of a matrix in blocks, `m[2*i + r, 2*j + s]`, blocks on and above the diagonal are added to. An
/// entry below has the value of its mirror image, which may round in another way: equal up to the
/// order of operations.
///
/// # Precondition
/// The statements of one body that access `m` are: one that stores the same literal in every entry;
/// then nests of updates `m[n*i + r, n*j + s] += f(r, s, i, j)`; then any others. With `f(r, s)` the
/// sum of the updates of one place in the blocks, `f(r, s, i, j) = f(s, r, j, i)` as rational
/// functions of what the program reads: their values agree modulo the prime `2^61 - 1` at two random
/// points, which two functions that differ do with a probability below `(degree/2^61)^2`
/// (`proofs/identity.rs`). Scalars with one store are replaced by what is stored; nothing else that
/// is read is written between. The loop over `j` is in the one over `i`, has the same constant range
/// from 0, and holds these updates alone.
///
/// # Errors
/// A variable that is no matrix of equal extents, or is accessed in another way; updates whose
/// mirror image is missing or is not equal, with both; an infinity or a nan as a number or in a
/// table; loops of other values, on axes, or with other statements; what is read and written in
/// between.
///
/// # Source
/// The test of identities: Schwartz 1980 and Zippel 1979.
///
/// # Elsewhere
/// Codes for element matrices that are written by hand loop over one triangle; FFCx and COFFEE
/// (Luporini et al. 2017) compute all entries.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MirrorTriangle {
    /// The matrix, a temporary.
    pub var: String,
}

impl MirrorTriangle {
    /// Accumulates one triangle of `var`.
    pub fn new(var: impl Into<String>) -> Self {
        Self { var: var.into() }
    }
}

impl fmt::Display for MirrorTriangle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "accumulate one triangle of `{}`", self.var)
    }
}

/// It has a diagonal.
const SQUARE: Obligation =
    Obligation::new("mirror_triangle.square", "the variable has two axes of one constant extent");

/// Both triangles start alike, and are read when they are whole.
const USES: Obligation = Obligation::new(
    "mirror_triangle.uses",
    "the matrix is stored one literal everywhere, then only updated by `+=`, then used, in statements of one body",
);

/// Fewer iterations run, and these are the ones below the diagonal.
const LOOPS: Obligation = Obligation::new(
    "mirror_triangle.loops",
    "updates are of blocks, by a loop over rows around one over columns of the same values that holds them alone",
);

/// The matrix is symmetric.
const SYMMETRIC: Obligation = Obligation::new(
    "mirror_triangle.symmetric",
    "what is added to an entry is equal to what is added to its mirror image",
);

/// Updates in one nest.
struct Nest {
    rows: InameId,
    columns: InameId,
    /// Iterations of either loop.
    count: i64,
    /// Place in a block, and the updates of it.
    places: BTreeMap<[i64; 2], Vec<InsnId>>,
}

/// A symmetric matrix and the nests that add to it.
pub struct Triangle {
    var: VarId,
    extent: i64,
    nests: Vec<Nest>,
    /// The loop around the statements, and the last one that updates the matrix.
    around: Option<InameId>,
    last: Node,
}

impl Primitive for MirrorTriangle {
    const NAME: &'static str = "mirror_triangle";
    const SUMMARY: &'static str =
        "Accumulates one triangle of a symmetric matrix and copies it to the other.";

    type Proof = Triangle;
    type Made = Made;

    const OBLIGATIONS: &'static [Obligation] =
        &[TEMPORARY, ONLY_ACCESSED, NO_RULE, SQUARE, USES, LOOPS, CURRENT, FINITE, SYMMETRIC];
    const KEEPS: Keeps = Keeps::REASSOCIATED.of_finite();
    const INSTANCES: Instances = Instances::Free;

    fn check(&self, analysis: &Analysis) -> Result<Triangle, Refusal> {
        let kernel = analysis.kernel();
        let var = temporary(kernel, &self.var, "only temporaries are copied within")?;
        check_only_accessed(kernel, var)?;
        check_no_rule(kernel, var)?;
        let data = &kernel.vars[var];
        let extents: Vec<_> = data.shape.iter().map(Affine::as_constant).collect();
        let [Some(extent), Some(width)] = extents[..] else {
            return Err(SQUARE.unfit(format!("`{}` has no two axes of constant extent", self.var)));
        };
        SQUARE.require(extent == width && data.storage.is_none(), || {
            format!("`{}` is {extent} by {width}, or shares its storage; a triangle needs a square", self.var)
        })?;
        let uses = Uses::new(self, analysis, var, extent)?;
        let nests = uses.nests(analysis)?;
        for nest in &nests {
            for insn in nest.places.values().flatten().map(|id| &kernel.insns[*id]) {
                check_finite(kernel, &insn.name, &insn.rhs)?;
            }
            self.check_symmetry(analysis, nest)?;
        }
        Ok(Triangle { var, extent, nests, around: uses.around, last: uses.last })
    }

    fn edit(&self, kernel: &mut Kernel, proof: &Triangle) -> Made {
        for nest in &proof.nests {
            let (from, to) = (Affine::iname(nest.rows), Affine::constant(nest.count));
            kernel.inames[nest.columns].domain = Domain::range(nest.columns, &from, &to);
        }
        let first = proof.nests.first().map_or_else(
            || [String::from("i_mirror"), "j_mirror".into()],
            |n| [n.rows, n.columns].map(|l| format!("{}_mirror", kernel.inames[l].name)),
        );
        let names = first.map(|stem| kernel.fresh_name(&stem));
        let mut push = |name: &String| {
            kernel.inames.push(Iname {
                name: name.clone(),
                domain: Domain::universe(),
                tag: AxisTag::Sequential,
            })
        };
        let [row, column] = [push(&names[0]), push(&names[1])];
        let zero = Affine::constant(0);
        kernel.inames[row].domain = Domain::range(row, &zero, &Affine::constant(proof.extent));
        kernel.inames[column].domain = Domain::range(column, &zero, &Affine::iname(row));
        let entry = |a, b| Access::new(proof.var, [Expr::Iname(a), Expr::Iname(b)]);
        let insn = Insn {
            name: kernel.fresh_name(&format!("mirror_{}", self.var)),
            lhs: entry(row, column),
            op: WriteOp::Assign,
            rhs: Expr::Load(entry(column, row)),
            predicate: None,
            tags: BTreeSet::new(),
            callee: None,
        };
        let made = Made {
            loops: names.iter().map(Loop::named).collect(),
            insns: vec![Statement::named(&insn.name)],
            arrays: Vec::new(),
            rules: Vec::new(),
        };
        let insn = kernel.insns.push(insn);
        let copies = Node::Loop(row, vec![Node::Loop(column, vec![Node::Insn(insn)])]);
        edit_body(kernel, proof.around, &mut |nodes| {
            let at = nodes.iter().position(|n| *n == proof.last).map_or(nodes.len(), |at| at + 1);
            nodes.insert(at, copies.clone());
        });
        made
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        draw::possible(kernel, draw::temporaries(kernel, 2).into_iter().map(Self::new).collect(), p)
    }
}

impl MirrorTriangle {
    /// `f(r, s, i, j) = f(s, r, j, i)`.
    fn check_symmetry(&self, analysis: &Analysis, nest: &Nest) -> Result<(), Refusal> {
        let kernel = analysis.kernel();
        for seed in [0x9e37_79b9_7f4a_7c15, 0xd1b5_4a32_d192_ed03] {
            let mut points = [false, true]
                .map(|swapped| Point::new(analysis, seed, [nest.rows, nest.columns], swapped, nest.rows));
            for (place @ [r, s], insns) in &nest.places {
                let images = nest.places.get(&[*s, *r]).map_or(&[][..], |insns| &insns[..]);
                let mut sum = |k: usize, insns: &[InsnId]| {
                    insns.iter().try_fold(Residue::ZERO, |sum, insn| {
                        let value = CURRENT.met(points[k].value_of(*insn), |why| why)?;
                        Ok::<_, Refusal>(sum.plus(value))
                    })
                };
                let (value, image) = (sum(0, insns)?, sum(1, images)?);
                SYMMETRIC.require(value == image, || {
                    let names = |insns: &[InsnId]| {
                        let names: Vec<_> =
                            insns.iter().map(|i| format!("`{}`", kernel.insns[*i].name)).collect();
                        if names.is_empty() { "nothing".into() } else { names.join(" and ") }
                    };
                    let [i, j] = [nest.rows, nest.columns].map(|l| &kernel.inames[l].name);
                    format!(
                        "{} adds to `{}` at place {place:?} of block `[{i}, {j}]` another value than {} at place {:?} of \
                         block `[{j}, {i}]`; keep both triangles, or write the factors of both alike",
                        names(insns),
                        self.var,
                        names(images),
                        [s, r]
                    )
                })?;
            }
        }
        Ok(())
    }
}

/// The statements of one body that access a matrix.
struct Uses<'p> {
    step: &'p MirrorTriangle,
    var: VarId,
    extent: i64,
    /// The loops around all of them, and the innermost of these.
    prefix: Vec<InameId>,
    around: Option<InameId>,
    updates: Vec<InsnId>,
    last: Node,
}

impl<'p> Uses<'p> {
    fn new(step: &'p MirrorTriangle, analysis: &Analysis, var: VarId, extent: i64) -> Result<Self, Refusal> {
        let kernel = analysis.kernel();
        let touches = |id: &InsnId| {
            let insn = &kernel.insns[*id];
            insn.accesses(var)
        };
        let users: Vec<InsnId> = kernel.insns.ids().filter(touches).collect();
        let mut prefix: Vec<InameId> =
            users.iter().take(1).flat_map(|i| analysis.loops(*i)).copied().collect();
        for user in &users {
            let common = prefix.iter().zip(analysis.loops(*user)).take_while(|(a, b)| a == b).count();
            prefix.truncate(common);
        }
        let around = prefix.last().copied();
        let statements = body_of(kernel, around)?.iter().filter_map(|node| {
            let users: Vec<_> = insns_of(std::slice::from_ref(node)).into_iter().filter(touches).collect();
            (!users.is_empty()).then_some((node, users))
        });
        let mut statements = statements;
        let why = |what: &str| {
            format!(
                "`{}` {what}; store a literal in every entry first, then add to them, in statements of one body",
                step.var
            )
        };
        let (_, start) = USES.find(statements.next(), || why("is not used"))?;
        let one = start.first().copied().filter(|_| start.len() == 1);
        let start = USES.find(one, || why("does not start with one store"))?;
        USES.require(is_fill(analysis, start, prefix.len(), extent), || {
            why(&format!("starts by `{}`, which is no such store", kernel.insns[start].name))
        })?;
        let is_update = |id: &InsnId| {
            let insn = &kernel.insns[*id];
            insn.lhs.var == var
                && insn.update_op() == Some(UpdateOp::Add)
                && insn.predicate.is_none()
                && insn.callee.is_none()
                && insn.reads().iter().all(|a| a.var != var)
        };
        let (mut updates, mut last) = (Vec::new(), None);
        for (node, users) in statements {
            if !users.iter().all(is_update) {
                break;
            }
            updates.extend(users);
            last = Some(node.clone());
        }
        let last = USES.find(last, || why("is not updated by `+=` after its start"))?;
        Ok(Self { step, var, extent, prefix, around, updates, last })
    }

    /// The updates by the loops around them.
    fn nests(&self, analysis: &Analysis) -> Result<Vec<Nest>, Refusal> {
        let mut nests: Vec<Nest> = Vec::new();
        for id in &self.updates {
            let Some((rows, columns, count, place)) = self.entry(analysis, *id) else {
                let name = &analysis.kernel().insns[*id].name;
                return Err(LOOPS.unfit(format!(
                    "`{name}` updates no entry `[n*i + r, n*j + s]` of a block of `{}` by a loop `j` in a loop `i`, both \
                     from 0 to one constant and on no axis; reorder or split the loops, or roll the updates",
                    self.step.var
                )));
            };
            match nests.iter_mut().find(|n| (n.rows, n.columns) == (rows, columns)) {
                Some(nest) => nest.places.entry(place).or_default().push(*id),
                None => {
                    nests.push(Nest { rows, columns, count, places: BTreeMap::from([(place, vec![*id])]) })
                }
            }
        }
        let kernel = analysis.kernel();
        for nest in &nests {
            let inside = insns_of(body_of(kernel, nest.columns)?);
            let of_nest: BTreeSet<_> = nest.places.values().flatten().copied().collect();
            let other = inside.iter().find(|i| !of_nest.contains(*i));
            let first = of_nest.first().map(|i| analysis.loops(*i));
            let alike = of_nest.iter().all(|i| Some(analysis.loops(*i)) == first);
            LOOPS.require(other.is_none() && alike, || {
                let name = other.or(of_nest.first()).map_or("", |i| &kernel.insns[*i].name);
                format!(
                    "`{name}` is in the loop `{}` with updates of `{}` in other loops; distribute the loop first",
                    kernel.inames[nest.columns].name, self.step.var
                )
            })?;
        }
        Ok(nests)
    }

    /// The loops over rows and columns of an update, their number of iterations, and its place in a
    /// block.
    fn entry(&self, analysis: &Analysis, id: InsnId) -> Option<(InameId, InameId, i64, [i64; 2])> {
        let kernel = analysis.kernel();
        let index: Vec<Affine> =
            kernel.insns[id].lhs.index.iter().map(Expr::as_affine).collect::<Option<_>>()?;
        let of_axis = |e: &Affine| match e.terms() {
            [(kingpost_ir::Atom::Iname(iname), factor)] => Some((*iname, *factor, e.constant_term())),
            _ => None,
        };
        let [row, column] = &index[..] else { return None };
        let ((rows, block, r), (columns, other, s)) = (of_axis(row)?, of_axis(column)?);
        let loops = analysis.loops(id).get(self.prefix.len()..)?;
        let at = |l| loops.iter().position(|other| *other == l);
        let range = |l: InameId| {
            let iname = &kernel.inames[l];
            let (low, high) = iname.domain.as_range(l)?;
            (low.as_constant()? == 0 && iname.tag == AxisTag::Sequential).then(|| high.as_constant())?
        };
        let count = range(rows)?;
        let mentions = |l: &InameId| {
            let domain = &kernel.inames[*l].domain;
            domain.mentions(rows) && *l != rows || domain.mentions(columns) && *l != columns
        };
        let fits = block == other
            && (0..block).contains(&r)
            && (0..block).contains(&s)
            && at(rows)? < at(columns)?
            && range(columns)? == count
            && block.checked_mul(count).is_some_and(|n| n <= self.extent)
            && !loops.iter().any(mentions);
        assert_eq!(kernel.insns[id].lhs.var, self.var);
        fits.then_some((rows, columns, count, [r, s]))
    }
}

/// Whether an instruction stores one literal in every entry of a matrix, in each iteration of the
/// first `outer` loops.
fn is_fill(analysis: &Analysis, id: InsnId, outer: usize, extent: i64) -> bool {
    let kernel = analysis.kernel();
    let insn = &kernel.insns[id];
    let whole = |e: &Expr| {
        let Expr::Iname(l) = e else { return None };
        let (low, high) = kernel.inames[*l].domain.as_range(*l)?;
        ((low.as_constant()?, high.as_constant()?) == (0, extent)).then_some(*l)
    };
    let loops: Vec<_> = insn.lhs.index.iter().filter_map(whole).collect();
    let own = &analysis.loops(id)[outer..];
    insn.op == WriteOp::Assign
        && insn.predicate.is_none()
        && matches!(insn.rhs, Expr::Real(_) | Expr::Int(_))
        && loops.len() == 2
        && own.len() == 2
        && loops[0] != loops[1]
        && loops.iter().all(|l| own.contains(l))
}
