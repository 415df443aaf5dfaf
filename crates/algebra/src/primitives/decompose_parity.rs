//! Keeps the even and the odd part of lines of temporaries instead of their elements.

use crate::parity::{
    ALONE, Lost, OTHERS, Parts, Role, Rows, certify, check_pairs, combined, entry, loads_of, of_parts, role,
    run_to, summed_in, weight,
};
use kingpost_analysis::Analysis;
use kingpost_ir::{
    Access, Affine, AxisTag, BinaryOp, Expr, InameId, Insn, InsnId, Kernel, Layout, Node, ScalarType,
    TableData, UpdateOp, VarId, VarKind, Variable, WriteOp,
};
use kingpost_steps::condition::also;
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::keeps::{Instances, Keeps};
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::ORDER;
use kingpost_steps::proofs::elements::{
    AXIS, NO_RULE, ONLY_ACCESSED, TEMPORARY, check_axis, check_no_rule, check_only_accessed, temporary,
};
use kingpost_steps::proofs::entries::{EntryUses, constant_shape};
use kingpost_steps::proofs::finite::{FINITE, check_finite, element};
use kingpost_steps::refusal::Refusal;
use kingpost_steps::substitute::simplify_indices;
use kingpost_steps::tree::edit_siblings;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Keeps sums and differences of mirrored elements of temporaries along an axis instead of the
/// elements.
///
/// # Rewrite
/// ```text
/// temp u: f64[4] private                    =>  temp u: f64[4] private
/// for j in 0..4                                 for j in 0..2
///   g: u[j] = x[j]                                g: u[j] = x[j] + x[-j + 3]
///                                                 g_odd: u[j + 2] = x[j] - x[-j + 3]
/// for i in 0..4                                 for i in 0..4
///   s: y[i] = sum(l in 0..4: t[i, l]*u[l])        s: y[i] = sum(l in 0..4: t_parts[i, l]*u[l])
/// ```
/// Elements `0..half` along the axis are the even parts then, `u[j] + u[n - 1 - j]`, and those
/// after them the odd ones, `u[j] - u[n - 1 - j]`; or halves of both, if `halved`. With `half`
/// above half of `n`, some pairs stand there twice, the second time with weights of zero. A table
/// of which the rows are values, or the columns weights of lines, is transformed once. One that a
/// reflection leaves alone has two blocks then, and zeros elsewhere
/// ([`SkipZeroBlocks`](super::SkipZeroBlocks)). What reads or writes elements otherwise does so for
/// an element and its mirror image at once, in half as many iterations.
///
/// # Precondition
/// All arrays have `n` elements along their axis, of a floating-point type. A loop over `0..n`
/// holds nothing but instructions that write or read an array at its iteration. If all are stores
/// that are linear in lines, `u[i] = sum c*v[i] + sum T[i, …]*f`, it computes the parts of `u` from
/// those of `v` and of rows of `T`. Otherwise iterations run in pairs, one instruction of both
/// after the other: the loop carries no dependence, temporaries that it uses again included, and no
/// instruction reads the array that it writes. Sums over a whole line are `sum_l T[…, l]*u[l]*f`,
/// in no loop that writes `u`. `[e, o] = P u` has the inverse `u[j] = (e + o)/2`, `u[n - 1 - j] =
/// (e - o)/2`, so that results are equal up to rounding where values are finite. With `R` the
/// largest entry of the row or that of the column of an entry of `T`, whichever is smaller, its
/// parts give it up to `1e-13 R`, or `1e-6 R` in single precision; parts below `1e-14 R` are zero.
/// Results are equal as far as tables are equal up to this tolerance.
///
/// # Errors
/// No array, one named twice, without the axis, of integers, of another length; `half` below half
/// of it or above it; another use of an array, with the instruction; a loop that carries a
/// dependence, also through a temporary that each iteration uses again, with two instances; an
/// infinity or a nan in a table; an entry that its parts do not give.
///
/// # Source
/// The even-odd decomposition of Solomonoff 1992, for matrices that a reflection leaves alone.
///
/// # Elsewhere
/// MFEM, deal.II and libCEED write it by hand for each contraction, with parts in registers.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DecomposeParity {
    /// The arrays.
    pub lines: Vec<LineAxis>,
    /// Elements of each part.
    pub half: u32,
    /// Whether parts are halves of sums and differences: what is written to other arrays is a sum
    /// of parts then, and not half of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub halved: bool,
}

/// An array with the axis along which its lines lie.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LineAxis {
    /// The temporary.
    pub var: String,
    /// The axis, counted from 0.
    pub axis: u32,
}

impl DecomposeParity {
    /// Decomposes lines of arrays along an axis into parts of `half` elements.
    pub fn new<S: Into<String>>(lines: impl IntoIterator<Item = (S, u32)>, half: u32) -> Self {
        let line = |(var, axis): (S, u32)| LineAxis { var: var.into(), axis };
        Self { lines: lines.into_iter().map(line).collect(), half, halved: false }
    }

    /// Parts are halves of sums and differences.
    #[must_use]
    pub const fn halved(mut self) -> Self {
        self.halved = true;
        self
    }
}

impl fmt::Display for DecomposeParity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.lines.iter().map(|l| format!("`{}` along {}", l.var, l.axis)).collect();
        write!(f, "decompose {} into parts of {}", lines.join(", "), self.half)
    }
}

/// A line has a mirror image.
const LINES: Obligation = Obligation::new(
    "decompose_parity.lines",
    "all arrays have the same constant number of elements of a floating-point type along their axis, row by row",
);

/// A line is written as a whole.
const WRITTEN: Obligation = Obligation::new(
    "decompose_parity.written",
    "every write of an array is a store without a condition at the iteration of a loop over the axis",
);

/// A whole line is read as a sum of products with weights.
const SUMS: Obligation = Obligation::new(
    "decompose_parity.sums",
    "other reads of an array are sums over its axis of products with an entry of a table, outside loops that write it",
);

/// The tables over parts stand for the old ones.
const CERTIFICATE: Obligation = Obligation::new(
    "decompose_parity.certificate",
    "parts give each entry of a table, up to 1e-13 of the largest one of its row and column, or 1e-6 in single \
     precision",
);

/// The kernel with parts instead of elements.
pub struct Decomposed(Kernel);

/// The arrays and how they are used.
struct Lines {
    arrays: BTreeMap<VarId, usize>,
    parts: Parts,
    loops: BTreeMap<InameId, (Role, Vec<InsnId>)>,
    /// Reductions over whole lines, each with its instruction.
    sums: BTreeMap<InameId, InsnId>,
}

impl Primitive for DecomposeParity {
    const NAME: &'static str = "decompose_parity";
    const SUMMARY: &'static str = "Keeps the even and the odd part of lines instead of their elements.";

    type Proof = Decomposed;
    type Made = ();

    const OBLIGATIONS: &'static [Obligation] = &[
        LINES,
        WRITTEN,
        ALONE,
        OTHERS,
        SUMS,
        TEMPORARY,
        AXIS,
        ONLY_ACCESSED,
        NO_RULE,
        ORDER,
        CERTIFICATE,
        FINITE,
    ];
    const KEEPS: Keeps = Keeps::within(12).of_finite();
    const INSTANCES: Instances = Instances::Free;

    fn check(&self, analysis: &Analysis) -> Result<Decomposed, Refusal> {
        let kernel = analysis.kernel();
        let (arrays, parts) = self.arrays(kernel)?;
        let mut uses = Uses { kernel, arrays: &arrays, parts, loops: BTreeMap::new(), sums: BTreeMap::new() };
        let schedule = kernel.schedule();
        for (id, around) in &schedule {
            uses.add(*id, around)?;
        }
        for (id, around) in &schedule {
            uses.check_alone(*id, around)?;
        }
        let Uses { loops, sums, .. } = uses;
        let mut of_role = BTreeMap::new();
        for (iname, insns) in loops {
            let role = role(kernel, &arrays, iname, &insns)?;
            if role == Role::Pairs {
                check_pairs(analysis, &arrays, iname, &insns)?;
            }
            of_role.insert(iname, (role, insns));
        }
        let linear = of_role.values().flat_map(|(_, insns)| insns).filter(|i| {
            // what is read from parts alone is that of elements
            arrays.contains_key(&kernel.insns[**i].lhs.var)
        });
        for id in linear.chain(sums.values()) {
            check_finite(kernel, &kernel.insns[*id].name, &kernel.insns[*id].rhs)?;
        }
        let lines = Lines { arrays, parts, loops: of_role, sums };
        let mut after = kernel.clone();
        // a table may be decomposed twice, so that the second certificate is of the first result
        lines.rewrite(&mut after)?;
        Ok(Decomposed(after))
    }

    fn edit(&self, kernel: &mut Kernel, Decomposed(after): &Decomposed) {
        *kernel = after.clone();
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let (more, halved) = (p.between(0, 1) as u32, p.one_in(2));
        let mut by_length: BTreeMap<u32, Vec<(String, u32)>> = BTreeMap::new();
        for name in draw::vars(kernel, |v| v.kind == VarKind::Temporary && !v.shape.is_empty()) {
            let Some(var) = kernel.var(&name) else { continue };
            for (axis, extent) in (0..).zip(&kernel.vars[var].shape) {
                let n = extent.as_constant().and_then(|n| u32::try_from(n).ok());
                if let Some(n) = n.filter(|n| (2..=64).contains(n)) {
                    by_length.entry(n).or_default().push((name.clone(), axis));
                }
            }
        }
        let of = |n: u32, lines: Vec<(String, u32)>| {
            let of = Self::new(lines, n.div_ceil(2) + more);
            if halved { of.halved() } else { of }
        };
        // a single array, and two of which a loop may make one of the other
        let mut all = Vec::new();
        for (n, lines) in &by_length {
            all.extend(lines.iter().map(|line| of(*n, vec![line.clone()])));
            let pairs =
                lines.iter().enumerate().flat_map(|(k, a)| lines[k + 1..].iter().map(move |b| [a, b]));
            all.extend(pairs.map(|pair| of(*n, pair.map(Clone::clone).into())));
        }
        draw::possible(kernel, all, p)
    }
}

impl DecomposeParity {
    /// The arrays with their axes, and their parts.
    fn arrays(&self, kernel: &Kernel) -> Result<(BTreeMap<VarId, usize>, Parts), Refusal> {
        let (mut arrays, mut length) = (BTreeMap::new(), None);
        for LineAxis { var: name, axis } in &self.lines {
            let var = temporary(kernel, name, "copy it to one first")?;
            let variable = &kernel.vars[var];
            let axis = check_axis(variable, *axis)?;
            check_only_accessed(kernel, var)?;
            check_no_rule(kernel, var)?;
            let n = variable.shape[axis].as_constant().filter(|n| *n >= 2);
            let plain = variable.layout == Layout::default() && variable.storage.is_none();
            let fits = plain && variable.ty.is_real() && n.is_some() && (length.is_none() || length == n);
            LINES.require(fits, || {
                let extent = n.map_or_else(|| "no constant".to_owned(), |n| n.to_string());
                format!(
                    "`{name}` has {extent} elements of type {} along axis {axis}; name arrays of reals of one constant \
                     length that share no storage",
                    variable.ty
                )
            })?;
            length = n;
            if arrays.insert(var, axis).is_some() {
                return Err(Refusal::argument(
                    "lines",
                    format!("`{name}` is named twice"),
                    "each array once",
                ));
            }
        }
        let Some(n) = length else {
            return Err(Refusal::argument("lines", "no array is named", "temporaries with an axis each"));
        };
        let parts = Parts { elements: n as usize, half: self.half as usize, halved: self.halved };
        if !(parts.pairs()..=parts.elements).contains(&parts.half) {
            let needed = format!("{} to {n}, half of the elements at least", parts.pairs());
            return Err(Refusal::argument("half", format!("half is {}", self.half), needed));
        }
        Ok((arrays, parts))
    }
}

/// Where arrays are used.
struct Uses<'a> {
    kernel: &'a Kernel,
    arrays: &'a BTreeMap<VarId, usize>,
    parts: Parts,
    loops: BTreeMap<InameId, Vec<InsnId>>,
    sums: BTreeMap<InameId, InsnId>,
}

impl Uses<'_> {
    /// The iname at which an access stands along the axis of an array.
    fn iname_of(&self, access: &Access) -> Option<InameId> {
        let axis = *self.arrays.get(&access.var)?;
        let Expr::Iname(iname) = access.index[axis] else { return None };
        let mut others = access.index.iter().enumerate().filter(|(k, _)| *k != axis);
        others.all(|(_, e)| !e.mentions(iname)).then_some(iname)
    }

    /// Whether an iname runs over all elements of a line and nothing else depends on it.
    fn is_whole(&self, iname: InameId) -> bool {
        let data = &self.kernel.inames[iname];
        let range = data.domain.as_range(iname).and_then(|(a, b)| Some((a.as_constant()?, b.as_constant()?)));
        let mut others = self.kernel.inames.iter().filter(|(other, _)| *other != iname);
        range == Some((0, self.parts.elements as i64))
            && data.tag == AxisTag::Sequential
            && others.all(|(_, other)| !other.domain.mentions(iname))
    }

    fn add(&mut self, id: InsnId, around: &[InameId]) -> Result<(), Refusal> {
        let insn = &self.kernel.insns[id];
        let name = &insn.name;
        let is_array = |var: VarId| self.arrays.contains_key(&var);
        let mut own = None;
        if is_array(insn.lhs.var) {
            own = self.iname_of(&insn.lhs).filter(|i| around.contains(i) && self.is_whole(*i));
            let plain = insn.op == WriteOp::Assign && insn.predicate.is_none() && insn.callee.is_none();
            let loads_nothing = insn.lhs.index.iter().all(|e| loads_of(e, &|_| true).is_empty());
            WRITTEN.require(own.is_some() && plain && loads_nothing, || {
                let array = &self.kernel.vars[insn.lhs.var].name;
                format!("`{name}` writes `{array}` otherwise; write it in a loop over its whole axis")
            })?;
        }
        let outside = insn.lhs.index.iter().chain(&insn.predicate).flat_map(|e| loads_of(e, &is_array));
        SUMS.require(outside.count() == 0, || {
            format!("`{name}` reads an array in an index or a condition; stage its value first")
        })?;
        for load in loads_of(&insn.rhs, &is_array) {
            let array = &self.kernel.vars[load.var].name;
            let found = self.iname_of(&load).filter(|i| self.is_whole(*i));
            let Some(iname) = found else {
                let why =
                    format!("`{name}` reads `{array}` at another index than that of a loop over its axis");
                return Err(SUMS.unfit(why));
            };
            if !around.contains(&iname) {
                SUMS.require(self.is_sum(insn, iname), || {
                    format!(
                        "`{name}` reads lines of `{array}` otherwise; make it a sum of products with a table"
                    )
                })?;
                self.sums.insert(iname, id);
            } else {
                ALONE.require(own.is_none_or(|other| other == iname), || {
                    format!("`{name}` reads and writes elements of two loops; read one of them as a sum")
                })?;
                own = Some(iname);
            }
        }
        if let Some(iname) = own {
            self.loops.entry(iname).or_default().push(id);
        }
        Ok(())
    }

    /// Whether an instruction has one sum over an iname, of products of an element and an entry.
    fn is_sum(&self, insn: &Insn, iname: InameId) -> bool {
        const ELEMENT: u32 = 1;
        const ENTRY: u32 = 1 << 8;
        let n = self.parts.elements as i64;
        let leaf = |access: &Access| {
            if self.arrays.contains_key(&access.var) {
                return (self.iname_of(access) == Some(iname)).then_some(ELEMENT);
            }
            entry(self.kernel, access, iname, n).map(|_| ENTRY)
        };
        let mut sums = 0;
        let mut others = 0;
        for other in self.kernel.insns.values() {
            other.rhs.for_each(&mut |e| {
                if let Expr::Reduce(r) = e
                    && r.inames.contains(&iname)
                {
                    let linear = weight(&r.body, iname, &leaf) == Some(ELEMENT + ENTRY);
                    let is_it = other.name == insn.name && r.op == UpdateOp::Add && linear;
                    *(if is_it { &mut sums } else { &mut others }) += 1;
                }
            });
        }
        (sums, others) == (1, 0)
    }

    /// Checks that an instruction in a loop over the axis is one of it, and reads no whole line
    /// there.
    fn check_alone(&self, id: InsnId, around: &[InameId]) -> Result<(), Refusal> {
        let insn = &self.kernel.insns[id];
        for iname in around.iter().filter(|i| self.loops.contains_key(i)) {
            let of_it = self.loops[iname].contains(&id) && insn.callee.is_none();
            ALONE.require(of_it, || {
                let name = &self.kernel.inames[*iname].name;
                format!(
                    "`{}` is in `{name}` and neither writes nor reads an array there; distribute `{name}`",
                    insn.name
                )
            })?;
            let written = |var: VarId| self.loops[iname].iter().any(|i| self.kernel.insns[*i].lhs.var == var);
            let lines = loads_of(&insn.rhs, &|var| self.arrays.contains_key(&var) && written(var));
            SUMS.require(lines.iter().all(|load| self.iname_of(load) == Some(*iname)), || {
                let name = &self.kernel.inames[*iname].name;
                format!("`{}` reads lines in `{name}` that are written there; distribute `{name}`", insn.name)
            })?;
        }
        Ok(())
    }
}

impl Lines {
    fn rewrite(&self, kernel: &mut Kernel) -> Result<(), Refusal> {
        let both = 2 * self.parts.half as i64;
        for (iname, insn) in &self.sums {
            self.replace_tables(kernel, *insn, *iname, Rows::Weights)?;
            run_to(kernel, *iname, both);
        }
        for (iname, (role, insns)) in &self.loops {
            match role {
                Role::Parts => {
                    for insn in insns {
                        self.replace_tables(kernel, *insn, *iname, Rows::Values)?;
                    }
                    run_to(kernel, *iname, both);
                }
                Role::Pairs => {
                    run_to(kernel, *iname, self.parts.half as i64);
                    insns.iter().for_each(|i| self.pair(kernel, *i, *iname));
                }
            }
        }
        for (var, axis) in &self.arrays {
            kernel.vars[*var].shape[*axis] = Affine::constant(both);
        }
        Ok(())
    }

    /// Lets an instruction load tables over parts where it loads some along an iname.
    fn replace_tables(
        &self,
        kernel: &mut Kernel,
        id: InsnId,
        iname: InameId,
        rows: Rows,
    ) -> Result<(), Refusal> {
        let n = self.parts.elements as i64;
        let mut loads: BTreeMap<(VarId, (usize, usize)), Vec<Access>> = BTreeMap::new();
        for load in loads_of(&kernel.insns[id].rhs, &|var| !self.arrays.contains_key(&var)) {
            if let Some(place) = entry(kernel, &load, iname, n) {
                loads.entry((load.var, place)).or_default().push(load);
            }
        }
        let mut tables: BTreeMap<(VarId, (usize, usize)), VarId> = BTreeMap::new();
        for ((var, place), loads) in loads {
            let mut uses = EntryUses::default();
            uses.extend(loads.iter().map(|load| summed_in(&kernel.insns[id], load)));
            tables.insert((var, place), self.table(kernel, (var, place), &uses, rows)?);
        }
        let before = kernel.clone();
        let rhs = kernel.insns[id].rhs.map(&mut |e| match e {
            Expr::Load(mut access) => {
                let place = entry(&before, &access, iname, n);
                if let Some((axis, first)) = place.filter(|_| !self.arrays.contains_key(&access.var)) {
                    access.var = tables[&(access.var, (axis, first))];
                    access.index[axis] = Expr::Iname(iname);
                }
                Expr::Load(access)
            }
            other => other,
        });
        kernel.insns[id].rhs = rhs;
        Ok(())
    }

    /// The table over parts of another one; that which is there, if it has these entries.
    fn table(
        &self,
        kernel: &mut Kernel,
        (of, place): (VarId, (usize, usize)),
        uses: &EntryUses,
        rows: Rows,
    ) -> Result<VarId, Refusal> {
        let table = kernel.vars[of].clone();
        let VarKind::Table(TableData::Real(values)) = &table.kind else { return Ok(of) };
        let values: Vec<f64> = values.iter().map(|v| v.0).collect();
        let extents = constant_shape(kernel, &table)?;
        let scales = uses.scales(&values, &extents);
        let (shape, mut made) = of_parts((&values, &extents), place, &scales, self.parts, rows);
        let mut tolerance = 1e-13;
        if table.ty == ScalarType::F32 {
            made.iter_mut().for_each(|v| *v = f64::from(*v as f32));
            tolerance = 1e-6;
        }
        let compared = (&scales[..], tolerance);
        let certified = certify((&values, &extents), place, &made, compared, (self.parts, rows));
        CERTIFICATE.met(certified, |Lost { at, entry, of_parts }| {
            format!(
                "`{}` is {entry:e}, and its parts give {of_parts:e}, needed within {tolerance:e} of the largest entry \
                 of its row and column; scale rows and columns alike, or keep the elements",
                element(&table, &extents, at)
            )
        })?;
        let kind = VarKind::Table(TableData::real(made));
        let shape = shape.iter().map(|n| Affine::constant(*n as i64)).collect();
        let made = Variable { kind, shape, ..table.clone() };
        let same = |v: &Variable| Variable { name: made.name.clone(), ..v.clone() } == made;
        if let Some((known, _)) = kernel.vars.iter().find(|(_, v)| same(v)) {
            return Ok(known);
        }
        let stem = table.name.strip_suffix("_parts").unwrap_or(&table.name);
        let name = kernel.fresh_name(&format!("{stem}_parts"));
        Ok(kernel.vars.push(Variable { name, ..made }))
    }

    /// Lets an instruction run for an element and its mirror image.
    fn pair(&self, kernel: &mut Kernel, id: InsnId, iname: InameId) {
        let Parts { elements, half, .. } = self.parts;
        let pairs = self.parts.pairs();
        let below = |n: usize| {
            let end = Expr::Int(n as i64);
            (n < half).then(|| Expr::binary(BinaryOp::Lt, Expr::Iname(iname), end))
        };
        let insn = kernel.insns[id].clone();
        let first = self.at_element(&insn, iname, false);
        let mirrored = self.at_element(&insn, iname, true);
        let made = if let Some(axis) = self.arrays.get(&insn.lhs.var) {
            [(BinaryOp::Add, 0), (BinaryOp::Sub, half)].map(|(op, from)| {
                let mut lhs = insn.lhs.clone();
                lhs.index[*axis] = Expr::Iname(iname) + Expr::Int(from as i64);
                let rhs = combined(self.parts.of_sum(), op, first.rhs.clone(), mirrored.rhs.clone());
                Insn { lhs, rhs, ..insn.clone() }
            })
        } else {
            [(first, pairs), (mirrored, elements - pairs)]
                .map(|(at, end)| Insn { predicate: also(at.predicate.clone(), below(end)), ..at })
        };
        let [first, second] = made;
        kernel.insns[id] = first;
        let name = kernel.fresh_name(&format!("{}_odd", insn.name));
        let ids = [id, kernel.insns.push(Insn { name, ..second })];
        simplify_indices(kernel, &ids);
        let own = |n: &Node| matches!(n, Node::Insn(i) if *i == id);
        edit_siblings(&mut kernel.body, &own, &mut |siblings| {
            if let Some(at) = siblings.iter().position(own) {
                siblings.splice(at..=at, ids.iter().map(|i| Node::Insn(*i)));
            }
        });
    }

    /// An instruction at an element or its mirror image, which it reads from parts.
    fn at_element(&self, insn: &Insn, iname: InameId, mirrored: bool) -> Insn {
        let mut at = insn.clone();
        let element = if mirrored {
            Affine::constant(self.parts.elements as i64 - 1).minus(&Affine::iname(iname))
        } else {
            Affine::iname(iname)
        };
        let element = Expr::from_affine(&element);
        at.map_expressions(&mut |e| if e == Expr::Iname(iname) { element.clone() } else { e });
        let op = if mirrored { BinaryOp::Sub } else { BinaryOp::Add };
        let half = self.parts.half as i64;
        at.rhs = at.rhs.map(&mut |e| match e {
            Expr::Load(access)
                if self.arrays.get(&access.var).is_some_and(|k| access.index[*k] == element) =>
            {
                let axis = self.arrays[&access.var];
                let part = |from: i64| {
                    let mut part = access.clone();
                    part.index[axis] = Expr::Iname(iname) + Expr::Int(from);
                    Expr::Load(part)
                };
                combined(self.parts.of_parts(), op, part(0), part(half))
            }
            other => other,
        });
        at
    }
}
