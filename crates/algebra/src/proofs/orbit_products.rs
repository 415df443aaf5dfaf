//! How a temporary is used whose elements are multiplied by tables: what is stored, added and read,
//! and in which order.

use kingpost_ir::{
    Access, AddressSpace, Affine, AxisTag, Expr, InameId, Insn, InsnId, Kernel, Layout, Node, Real,
    ScalarType, TableData, UpdateOp, VarId, VarKind, WriteOp,
};
use kingpost_steps::obligation::Obligation;
use kingpost_steps::refusal::Refusal;
use kingpost_steps::tree::loops_of;
use kingpost_steps::tree::{body_of, insns_of};
use std::collections::BTreeSet;

/// Tables say all that becomes of an element.
pub(crate) const PRODUCTS: Obligation = Obligation::new(
    "combine_orbits.products",
    "all that is read, or all that is added to zeros, are products with an entry of a table of the same type in the \
     column of the element",
);

/// A loop gets another length.
pub(crate) const ALONE: Obligation = Obligation::new(
    "combine_orbits.alone",
    "each loop over elements runs over all of them, and holds such products or zeros alone",
);

/// All elements have values.
pub(crate) const FULL: Obligation = Obligation::new(
    "combine_orbits.full",
    "in the body that holds all accesses, every element is stored before the first product, and read by others \
     only after the last one",
);

/// Elements may lie elsewhere.
pub(crate) const DENSE: Obligation = Obligation::new(
    "combine_orbits.dense",
    "the temporary is a private array of reals, of constant extents, with a buffer of its own and no strides",
);

/// Whether products read elements or are added to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Values,
    Results,
}

/// A product with a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Product {
    pub(crate) insn: InsnId,
    /// The loop over elements and columns.
    pub(crate) iname: InameId,
    pub(crate) table: VarId,
}

/// The uses of a temporary.
pub(crate) struct Roles {
    pub(crate) side: Side,
    pub(crate) products: Vec<Product>,
    /// Stores of zero to results, with their loops.
    pub(crate) zeros: Vec<(InsnId, InameId)>,
    /// The loop in whose body all accesses are, and where a loop between both kinds can stand.
    pub(crate) at: Option<InameId>,
    pub(crate) place: usize,
    pub(crate) extents: Vec<i64>,
}

/// The uses of a temporary, if they are those that combinations may replace.
///
/// # Errors
/// The first of the obligations above that is not met, with the instruction.
pub(crate) fn roles(kernel: &Kernel, var: VarId) -> Result<Roles, Refusal> {
    let uses = Uses { kernel, var, extents: extents(kernel, var)? };
    let all: Vec<(InsnId, &Insn)> = uses.all();
    let is_zero = |insn: &Insn| insn.op == WriteOp::Assign && insn.rhs == Expr::Real(Real(0.0));
    let adds = |(_, insn): &(InsnId, &Insn)| insn.lhs.var == var && insn.update_op() == Some(UpdateOp::Add);
    let side = if all.iter().any(adds) { Side::Results } else { Side::Values };
    let (mut products, mut zeros) = (Vec::new(), Vec::new());
    for (id, insn) in &all {
        let (writes, reads) = (insn.lhs.var == var, insn.loads(var));
        match side {
            Side::Values if reads => products.push(uses.product(*id, insn, side)?),
            Side::Results if writes && !reads && is_zero(insn) => {
                let iname = uses.element_loop(*id, &insn.lhs)?;
                zeros.push((*id, iname.ok_or_else(|| uses.no_product(insn))?));
            }
            Side::Results if writes => products.push(uses.product(*id, insn, side)?),
            Side::Values | Side::Results => {}
        }
    }
    let own: BTreeSet<InsnId> =
        products.iter().map(|p| p.insn).chain(zeros.iter().map(|(insn, _)| *insn)).collect();
    for iname in products.iter().map(|p| p.iname).chain(zeros.iter().map(|(_, l)| *l)) {
        uses.check_alone(iname, &own)?;
    }
    for Product { insn, iname, .. } in &products {
        uses.check_kept(*insn, *iname)?;
    }
    let (at, place) = uses.place(&products, side)?;
    Ok(Roles { side, products, zeros, at, place, extents: uses.extents })
}

fn extents(kernel: &Kernel, var: VarId) -> Result<Vec<i64>, Refusal> {
    let v = &kernel.vars[var];
    let extents: Option<Vec<i64>> = v.shape.iter().map(|e| e.as_constant().filter(|n| *n > 0)).collect();
    let plain = v.space == AddressSpace::Private
        && v.storage.is_none()
        && v.layout == Layout::default()
        && v.ty.is_real();
    DENSE.find(extents.filter(|e| plain && !e.is_empty()), || {
        format!(
            "`{}` is no private array of reals with constant extents, dense and without a shared buffer; combine \
             orbits before it is moved",
            v.name
        )
    })
}

struct Uses<'k> {
    kernel: &'k Kernel,
    var: VarId,
    extents: Vec<i64>,
}

impl<'k> Uses<'k> {
    fn all(&self) -> Vec<(InsnId, &'k Insn)> {
        let of = |insn: &Insn| insn.lhs.var == self.var || insn.loads(self.var);
        let all = self.kernel.schedule().into_iter().map(|(id, _)| (id, &self.kernel.insns[id]));
        all.filter(|(_, insn)| of(insn)).collect()
    }

    fn name(&self) -> &str {
        &self.kernel.vars[self.var].name
    }

    fn ty(&self) -> ScalarType {
        self.kernel.vars[self.var].ty
    }

    fn no_product(&self, insn: &Insn) -> Refusal {
        PRODUCTS.unfit(format!(
            "`{}` uses `{}` in another way than to add a product with an entry `T[…, j]` of a table where the element \
             is `{}[j]`, without a condition; copy the temporary for it",
            insn.name,
            self.name(),
            self.name()
        ))
    }

    /// The loop whose counter is the first index of an element, and stands in no other one.
    fn element_loop(&self, insn: InsnId, access: &Access) -> Result<Option<InameId>, Refusal> {
        let Some(Expr::Iname(iname)) = access.index.first() else { return Ok(None) };
        let around = loops_of(self.kernel, insn)?;
        let rest = access.index[1..].iter().all(|e| !e.mentions(*iname));
        let data = &self.kernel.insns[insn];
        let fits = rest && around.contains(iname) && data.predicate.is_none() && data.callee.is_none();
        Ok(fits.then_some(*iname))
    }

    /// An instruction that adds a product.
    fn product(&self, id: InsnId, insn: &Insn, side: Side) -> Result<Product, Refusal> {
        let refuse = || self.no_product(insn);
        let plain = insn.op == WriteOp::Update { op: UpdateOp::Add, atomic: false };
        let factors = insn.rhs.factors();
        let own: Vec<Access> = insn.reads().into_iter().filter(|a| a.var == self.var).cloned().collect();
        let is_own = |e: &&&Expr| matches!(e, Expr::Load(a) if a.var == self.var);
        let element = match (side, &own[..]) {
            (Side::Values, [one])
                if insn.lhs.var != self.var && factors.iter().filter(is_own).count() == 1 =>
            {
                one
            }
            (Side::Results, []) => &insn.lhs,
            (Side::Values | Side::Results, _) => return Err(refuse()),
        };
        let iname = self.element_loop(id, element)?.filter(|_| plain).ok_or_else(refuse)?;
        let mut tables = factors.iter().filter_map(|e| self.table(e, iname));
        let table = tables.next().ok_or_else(refuse)?;
        // the tables of the combinations replace every load of it
        PRODUCTS.require(insn.reads().iter().filter(|a| a.var == table).count() == 1, || {
            let table = &self.kernel.vars[table].name;
            format!("`{}` loads `{table}` in several places; give the others a copy of it first", insn.name)
        })?;
        let in_value = count(&insn.rhs, iname);
        let in_target = insn.lhs.index.iter().map(|e| count(e, iname)).sum::<usize>();
        let expected = match side {
            Side::Values => (2, 0),
            Side::Results => (1, 1),
        };
        let same_type = self.kernel.vars[insn.lhs.var].ty == self.ty();
        if (in_value, in_target) != expected || !same_type {
            return Err(refuse());
        }
        Ok(Product { insn: id, iname, table })
    }

    /// The table of the same type that a factor is an entry of, in the column of a loop.
    fn table(&self, factor: &Expr, iname: InameId) -> Option<VarId> {
        let Expr::Load(a) = factor else { return None };
        let table = &self.kernel.vars[a.var];
        let is_real = matches!(table.kind, VarKind::Table(TableData::Real(_))) && table.ty == self.ty();
        let (last, rows) = a.index.split_last()?;
        let extents: Option<Vec<i64>> = table.shape.iter().map(Affine::as_constant).collect();
        let fits = is_real
            && table.layout == Layout::default()
            && extents?.last() == self.extents.first()
            && *last == Expr::Iname(iname)
            && !rows.iter().any(|e| e.mentions(iname));
        fits.then_some(a.var)
    }

    fn check_alone(&self, iname: InameId, own: &BTreeSet<InsnId>) -> Result<(), Refusal> {
        let data = &self.kernel.inames[iname];
        let range = data.domain.as_range(iname);
        let range = range.and_then(|(lo, hi)| Some((lo.as_constant()?, hi.as_constant()?)));
        let full = range == Some((0, self.extents[0])) && data.tag == AxisTag::Sequential;
        ALONE.require(full, || {
            format!("`{}` does not run over all elements of `{}`, or has a tag", data.name, self.name())
        })?;
        let body = body_of(self.kernel, iname)?;
        let other = body.iter().find(|n| !matches!(n, Node::Insn(i) if own.contains(i)));
        ALONE.forbid(other, |other| {
            let other = match other {
                Node::Insn(i) => self.kernel.insns[*i].name.as_str(),
                Node::Loop(l, _) => self.kernel.inames[*l].name.as_str(),
            };
            format!(
                "`{}` also holds `{other}`, which does not multiply `{}` by a table; distribute it first",
                data.name,
                self.name()
            )
        })
    }

    /// What a product reads besides is not written in its loop.
    fn check_kept(&self, insn: InsnId, iname: InameId) -> Result<(), Refusal> {
        let body = body_of(self.kernel, iname)?;
        let written: BTreeSet<VarId> = insns_of(body).iter().map(|i| self.kernel.insns[*i].lhs.var).collect();
        let changed = self.kernel.insns[insn].reads().into_iter().find(|a| written.contains(&a.var));
        ALONE.require(changed.is_none(), || {
            let changed = changed.map_or("", |a| self.kernel.vars[a.var].name.as_str());
            format!(
                "`{}` reads `{changed}`, which is written in `{}`; distribute it first",
                self.kernel.insns[insn].name, self.kernel.inames[iname].name
            )
        })
    }

    /// Where a loop can stand between the stores and the products, or between these and the reads.
    fn place(&self, products: &[Product], side: Side) -> Result<(Option<InameId>, usize), Refusal> {
        let uses: BTreeSet<InsnId> = self.all().into_iter().map(|(id, _)| id).collect();
        let own: BTreeSet<InsnId> = products.iter().map(|p| p.insn).collect();
        let mut at = None;
        let body = loop {
            let body = body_of(self.kernel, at)?;
            let mut users = body.iter().filter(|n| any(n, &uses));
            match (users.next(), users.next()) {
                (Some(Node::Loop(inner, _)), None) => at = Some(*inner),
                (Some(_), _) | (None, _) => break body,
            }
        };
        let is_product = |n: &Node| any(n, &own);
        let first = body.iter().position(is_product);
        let last = body.iter().rposition(is_product);
        let (Some(first), Some(last)) = (first, last) else {
            return Err(PRODUCTS.unfit(format!("no product reads or adds to `{}`", self.name())));
        };
        let stores = |n: &&Node| any(n, &uses) && !is_product(n);
        self.check_full(body[..first].iter().filter(stores))?;
        let is_read = |i: &InsnId| self.kernel.insns[*i].loads(self.var);
        let is_other = |i: &InsnId| uses.contains(i) && !own.contains(i);
        let find =
            |nodes: &[Node], wanted: &dyn Fn(&InsnId) -> bool| insns_of(nodes).into_iter().find(wanted);
        let between = match side {
            Side::Values => find(&body[first..], &is_other),
            Side::Results => find(&body[..=last], &is_read)
                .or_else(|| find(&body[first..=last], &is_other))
                .or_else(|| find(&body[last + 1..], &|i| uses.contains(i) && !is_read(i))),
        };
        FULL.require(between.is_none(), || {
            let name = between.map_or("", |i| self.kernel.insns[i].name.as_str());
            format!("`{name}` uses `{}` between the products; move it before them or after", self.name())
        })?;
        Ok((at, if side == Side::Values { first } else { last + 1 }))
    }

    /// Statements store every element.
    fn check_full<'n>(&self, statements: impl Iterator<Item = &'n Node>) -> Result<(), Refusal> {
        let mut stored: BTreeSet<Vec<i64>> = BTreeSet::new();
        for statement in statements {
            self.stored(std::slice::from_ref(statement), &mut Vec::new(), &mut stored);
        }
        let all: i64 = self.extents.iter().product();
        FULL.require(stored.len() as i64 == all, || {
            format!(
                "{} of {all} elements of `{}` are surely stored before the products in the body that holds all \
                 its accesses, each by a loop over an axis without a condition",
                stored.len(),
                self.name()
            )
        })
    }

    fn stored(&self, nodes: &[Node], loops: &mut Vec<InameId>, stored: &mut BTreeSet<Vec<i64>>) {
        for node in nodes {
            match node {
                Node::Loop(iname, body) => {
                    loops.push(*iname);
                    self.stored(body, loops, stored);
                    loops.pop();
                }
                Node::Insn(insn) => self.stored_by(&self.kernel.insns[*insn], loops, stored),
            }
        }
    }

    /// The elements that an instruction inside these loops surely stores.
    fn stored_by(&self, insn: &Insn, loops: &[InameId], stored: &mut BTreeSet<Vec<i64>>) {
        let plain = insn.lhs.var == self.var && insn.op == WriteOp::Assign && insn.predicate.is_none();
        let range = |l: &InameId| {
            let (lo, hi) = self.kernel.inames[*l].domain.as_range(*l)?;
            Some((lo.as_constant()?, hi.as_constant()?)).filter(|(lo, hi)| lo < hi)
        };
        if !plain || insn.callee.is_some() || loops.iter().any(|l| range(l).is_none()) {
            return;
        }
        let mut elements: Vec<Vec<i64>> = vec![Vec::new()];
        for (k, index) in insn.lhs.index.iter().enumerate() {
            let values: Vec<i64> = if let Expr::Int(value) = index {
                vec![*value]
            } else if let Expr::Iname(l) = index
                && !insn.lhs.index[..k].contains(index)
            {
                range(l).into_iter().flat_map(|(lo, hi)| lo..hi).collect()
            } else {
                return;
            };
            let longer = |e: &Vec<i64>| values.iter().map(|v| [&e[..], &[*v]].concat()).collect::<Vec<_>>();
            elements = elements.iter().flat_map(longer).collect();
        }
        stored.extend(elements);
    }
}

fn any(node: &Node, insns: &BTreeSet<InsnId>) -> bool {
    insns_of(std::slice::from_ref(node)).iter().any(|i| insns.contains(i))
}

fn count(e: &Expr, iname: InameId) -> usize {
    let mut found = 0;
    e.for_each(&mut |e| found += usize::from(*e == Expr::Iname(iname)));
    found
}
