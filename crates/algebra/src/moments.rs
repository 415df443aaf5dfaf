//! Moments of factors over a loop, and the nests that compute with them.

use crate::modes::Basis;
use crate::moved_terms::{Leaving, Moved};
use crate::polynomial::{Atoms, Product};
use kingpost_ir::{
    Access, AddressSpace, Affine, AxisTag, Domain, Expr, Iname, InameId, Insn, InsnId, Kernel, Node, Real,
    ScalarType, TableData, UpdateOp, VarId, VarKind, Variable, WriteOp,
};
use kingpost_steps::schedule::Array;
use std::collections::{BTreeMap, BTreeSet};

/// Sums over a loop of a factor and entries of one or two tables, `[columns]` or `[columns, columns]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sums {
    /// Place of the factor.
    pub(crate) factor: usize,
    /// Places of the tables, in order.
    pub(crate) tables: Vec<usize>,
    /// Columns that are read of each.
    pub(crate) extents: Vec<usize>,
}

/// Products of table entries that leave a loop.
pub struct Moments {
    pub(crate) iname: InameId,
    pub(crate) atoms: Atoms,
    /// The stores of scalars whose values were put in their place.
    pub(crate) stores: BTreeSet<InsnId>,
    pub(crate) tables: Vec<VarId>,
    pub(crate) basis: Basis,
    /// Whether the only table is its own basis.
    pub(crate) own: bool,
    /// The factors that change with the loop.
    pub(crate) factors: Vec<Product>,
    pub(crate) sums: Vec<Sums>,
    pub(crate) moved: Vec<Moved>,
}

impl Moments {
    /// Additions and multiplications in the innermost loops of the nests, for one run of the loop.
    pub(crate) fn operations(&self) -> u64 {
        let count = self.basis.count;
        let points = self.basis.values.len() / count.max(1);
        let (mut moments, mut halves) = (BTreeSet::new(), BTreeSet::new());
        let mut terms = 0;
        for sum in &self.sums {
            let rank = sum.tables.len();
            if moments.insert((sum.factor, rank)) {
                terms += points * if rank == 1 { count } else { count * (count + 1) / 2 };
            }
            match (sum.tables.as_slice(), sum.extents.as_slice()) {
                _ if self.own => {}
                ([first, second], [rows, columns]) => {
                    if halves.insert((sum.factor, *second, *columns)) {
                        terms += count * count * columns;
                    }
                    let symmetric = first == second && rows == columns;
                    terms += count * if symmetric { rows * (rows + 1) / 2 } else { rows * columns };
                }
                (_, extents) => terms += count * extents.iter().sum::<usize>(),
            }
        }
        2 * terms as u64
    }

    pub(crate) fn edit(&self, kernel: &mut Kernel) -> Vec<Array> {
        let known = kernel.vars.len();
        let mut writer =
            Writer { of: self, kernel, zero: Vec::new(), inside: Vec::new(), behind: Vec::new() };
        let sums = writer.sums();
        let Writer { zero, inside, behind, .. } = writer;
        let leaving = Leaving { iname: self.iname, atoms: &self.atoms, stores: &self.stores };
        leaving.take_out(kernel, &self.moved, &sums, [zero, inside, behind]);
        let made = kernel.vars.iter().skip(known);
        made.map(|(_, var)| Array::named(&var.name)).collect()
    }
}

/// Writes the nests.
struct Writer<'p, 'k> {
    of: &'p Moments,
    kernel: &'k mut Kernel,
    /// What stands before the loop, at the end of its body, and after it.
    zero: Vec<Node>,
    inside: Vec<Node>,
    behind: Vec<Node>,
}

impl Writer<'_, '_> {
    /// The moments, and what is made of them: the array of each sum.
    fn sums(&mut self) -> Vec<VarId> {
        let proof = self.of;
        let count = proof.basis.count;
        let basis = if proof.own {
            proof.tables[0]
        } else {
            self.table("basis", proof.basis.values.clone(), [proof.basis.values.len() / count.max(1), count])
        };
        let used: BTreeSet<usize> = proof.sums.iter().flat_map(|s| s.tables.iter().copied()).collect();
        let mut coefficients: BTreeMap<usize, VarId> = BTreeMap::new();
        for table in used.into_iter().filter(|_| !proof.own) {
            let values = proof.basis.tables[table].clone();
            let stem = format!("{}_in_basis", self.kernel.vars[proof.tables[table]].name);
            let columns = values.len() / count.max(1);
            coefficients.insert(table, self.table(&stem, values, [count, columns]));
        }
        let mut moments: BTreeMap<(usize, usize), VarId> = BTreeMap::new();
        let mut halves: BTreeMap<(usize, usize, usize), VarId> = BTreeMap::new();
        let mut found = Vec::new();
        for sum in &proof.sums {
            let rank = sum.tables.len();
            let moment = *moments.entry((sum.factor, rank)).or_insert_with(|| self.moment(sum, basis));
            if proof.own {
                found.push(moment);
                continue;
            }
            found.push(match (sum.tables.as_slice(), sum.extents.as_slice()) {
                ([first, second], [rows, columns]) => {
                    let half = *halves.entry((sum.factor, *second, *columns)).or_insert_with(|| {
                        self.product("moment_column", moment, coefficients[second], [count, *columns])
                    });
                    let symmetric = first == second && rows == columns;
                    self.pair(half, coefficients[first], [*rows, *columns], symmetric)
                }
                (tables, extents) => self.single(moment, coefficients[&tables[0]], extents[0]),
            });
        }
        found
    }

    /// `M[k, l] = sum_q c(q)*B[q, k]*B[q, l]`, or `M[k] = sum_q c(q)*B[q, k]`.
    fn moment(&mut self, sum: &Sums, basis: VarId) -> VarId {
        let proof = self.of;
        let count = proof.basis.count;
        let q = Expr::Iname(proof.iname);
        let factor = proof.atoms.product_of(&proof.factors[sum.factor]);
        let factor = self.hoisted(factor);
        let entry = |k: InameId| Expr::load(basis, [q.clone(), Expr::Iname(k)]);
        let scaled = |k: InameId| match factor.clone() {
            Some(factor) => entry(k) * factor,
            None => entry(k),
        };
        if sum.tables.len() == 1 {
            let moment = self.array("moment", &[count]);
            let zero = self.fill(moment, &[count]);
            self.zero.push(zero);
            let k = self.range("k", count);
            let add = self.insn("add_moment", Access::new(moment, [Expr::Iname(k)]), true, scaled(k));
            self.inside.push(Node::Loop(k, vec![add]));
            return moment;
        }
        let moment = self.array("moment", &[count, count]);
        let zero = self.fill(moment, &[count, count]);
        self.zero.push(zero);
        let [k, l] = [self.range("k", count), self.range("l", count)];
        let from = Affine::iname(k);
        self.kernel.inames[l].domain = Domain::range(l, &from, &Affine::constant(count as i64));
        let row = self.scalar("moment_row");
        let set = self.insn("set_moment_row", Access::scalar(row), false, scaled(k));
        let at = Access::new(moment, [Expr::Iname(k), Expr::Iname(l)]);
        let add = self.insn("add_moment", at, true, Expr::scalar(row) * entry(l));
        self.inside.push(Node::Loop(k, vec![set, Node::Loop(l, vec![add])]));
        let mirror = self.mirror(moment, count);
        self.behind.push(mirror);
        moment
    }

    /// A factor of several operands in a scalar; others as they are.
    fn hoisted(&mut self, factor: Option<Expr>) -> Option<Expr> {
        let factor = factor?;
        if factor.operands().next().is_none() || matches!(factor, Expr::Load(_)) {
            return Some(factor);
        }
        let scalar = self.scalar("moment_factor");
        let set = self.insn("set_moment_factor", Access::scalar(scalar), false, factor);
        self.inside.push(set);
        Some(Expr::scalar(scalar))
    }

    /// `P[k, j] = sum_l M[k, l]*C[l, j]`, after the loop.
    fn product(&mut self, stem: &str, left: VarId, right: VarId, shape: [usize; 2]) -> VarId {
        let product = self.array(stem, &shape);
        let [k, j] = [self.range("k", shape[0]), self.range("j", shape[1])];
        let l = self.range("l", self.of.basis.count);
        let [ek, ej, el] = [k, j, l].map(Expr::Iname);
        let term = Expr::load(left, [ek.clone(), el.clone()]) * Expr::load(right, [el, ej.clone()]);
        let at = Access::new(product, [ek, ej]);
        let nest = self.sum_nest(stem, at, l, term);
        self.behind.push(Node::Loop(k, vec![Node::Loop(j, nest)]));
        product
    }

    /// `S[i, j] = sum_k C[k, i]*P[k, j]`, one triangle of which is copied if it is symmetric.
    fn pair(&mut self, half: VarId, left: VarId, shape: [usize; 2], symmetric: bool) -> VarId {
        let sum = self.array("moment_sum", &shape);
        let [i, j] = [self.range("i", shape[0]), self.range("j", shape[1])];
        if symmetric {
            let to = Affine::constant(shape[1] as i64);
            self.kernel.inames[j].domain = Domain::range(j, &Affine::iname(i), &to);
        }
        let k = self.range("k", self.of.basis.count);
        let [ei, ej, ek] = [i, j, k].map(Expr::Iname);
        let term = Expr::load(left, [ek.clone(), ei.clone()]) * Expr::load(half, [ek, ej.clone()]);
        let nest = self.sum_nest("moment_sum", Access::new(sum, [ei, ej]), k, term);
        self.behind.push(Node::Loop(i, vec![Node::Loop(j, nest)]));
        if symmetric {
            let mirror = self.mirror(sum, shape[0]);
            self.behind.push(mirror);
        }
        sum
    }

    /// `S[i] = sum_k C[k, i]*M[k]`.
    fn single(&mut self, moment: VarId, left: VarId, extent: usize) -> VarId {
        let sum = self.array("moment_sum", &[extent]);
        let [i, k] = [self.range("i", extent), self.range("k", self.of.basis.count)];
        let [ei, ek] = [i, k].map(Expr::Iname);
        let term = Expr::load(left, [ek.clone(), ei.clone()]) * Expr::load(moment, [ek]);
        let nest = self.sum_nest("moment_sum", Access::new(sum, [ei]), k, term);
        self.behind.push(Node::Loop(i, nest));
        sum
    }

    /// A store of zero and the loop that adds to it.
    fn sum_nest(&mut self, stem: &str, at: Access, over: InameId, term: Expr) -> Vec<Node> {
        let zero = self.insn(&format!("zero_{stem}"), at.clone(), false, Expr::Real(Real(0.0)));
        let add = self.insn(&format!("add_{stem}"), at, true, term);
        vec![zero, Node::Loop(over, vec![add])]
    }

    /// Copies what is above the diagonal.
    fn mirror(&mut self, var: VarId, extent: usize) -> Node {
        let [i, j] = [self.range("i", extent), self.range("j", extent)];
        self.kernel.inames[j].domain = Domain::range(j, &Affine::constant(0), &Affine::iname(i));
        let entry = |a, b| Access::new(var, [Expr::Iname(a), Expr::Iname(b)]);
        let copy = self.insn("mirror_moment", entry(i, j), false, Expr::Load(entry(j, i)));
        Node::Loop(i, vec![Node::Loop(j, vec![copy])])
    }

    fn fill(&mut self, var: VarId, shape: &[usize]) -> Node {
        let stems = ["k", "l"];
        let loops: Vec<InameId> = shape.iter().zip(stems).map(|(n, stem)| self.range(stem, *n)).collect();
        let at = Access::new(var, loops.iter().copied().map(Expr::Iname));
        let zero = self.insn("zero_moment", at, false, Expr::Real(Real(0.0)));
        loops.into_iter().rev().fold(zero, |node, l| Node::Loop(l, vec![node]))
    }

    fn range(&mut self, stem: &str, extent: usize) -> InameId {
        let name = self.kernel.fresh_name(stem);
        let tag = AxisTag::Sequential;
        let iname = self.kernel.inames.push(Iname { name, domain: Domain::universe(), tag });
        let to = Affine::constant(extent as i64);
        self.kernel.inames[iname].domain = Domain::range(iname, &Affine::constant(0), &to);
        iname
    }

    fn insn(&mut self, stem: &str, lhs: Access, adds: bool, rhs: Expr) -> Node {
        let name = self.kernel.fresh_name(stem);
        let op = match adds {
            true => WriteOp::Update { op: UpdateOp::Add, atomic: false },
            false => WriteOp::Assign,
        };
        let insn = Insn { name, lhs, op, rhs, predicate: None, tags: BTreeSet::new(), callee: None };
        Node::Insn(self.kernel.insns.push(insn))
    }

    fn scalar(&mut self, stem: &str) -> VarId {
        self.array(stem, &[])
    }

    fn array(&mut self, stem: &str, shape: &[usize]) -> VarId {
        let name = self.kernel.fresh_name(stem);
        let shape: Vec<Affine> = shape.iter().map(|n| Affine::constant(*n as i64)).collect();
        let kind = VarKind::Temporary;
        self.kernel.vars.push(Variable::new(name, ScalarType::F64, kind, shape, AddressSpace::Private))
    }

    fn table(&mut self, stem: &str, values: Vec<f64>, shape: [usize; 2]) -> VarId {
        let name = self.kernel.fresh_name(stem);
        let shape: Vec<Affine> = shape.iter().map(|n| Affine::constant(*n as i64)).collect();
        let kind = VarKind::Table(TableData::real(values));
        self.kernel.vars.push(Variable::new(name, ScalarType::F64, kind, shape, AddressSpace::Global))
    }
}
