//! Tables of sums over the points of a loop, evaluated in twice the precision.

use crate::polynomial::Product;
use crate::proofs::separable::{Entry, Slot, Term};
use crate::wide::Wide;
use kingpost_ir::{
    AddressSpace, Affine, InameId, Insn, Kernel, ScalarType, TableData, VarId, VarKind, Variable,
};
use kingpost_steps::accuracy::scales;
use kingpost_steps::expected::Expected;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::proofs::entries::constant_shape;
use kingpost_steps::proofs::finite::check_finite_table;
use kingpost_steps::refusal::Refusal;
use std::collections::{BTreeMap, BTreeSet};

/// Most entries of a new table, and most iterations times entries that are summed.
const MAX_ENTRIES: usize = 1 << 22;

/// The points are counted.
pub(crate) const RANGE: Obligation = Obligation::new(
    "pre_evaluate_loop.range",
    "the loop runs from 0 to a constant, and so do those that index its tables, or from another one",
);

/// The entries exist.
pub(crate) const EXTENT: Obligation =
    Obligation::new("pre_evaluate_loop.extent", "the tables have an entry for each iteration");

/// Twice the precision has bits for it.
pub(crate) const EXACT: Obligation = Obligation::new(
    "pre_evaluate_loop.exact",
    "products of entries are neither too large nor too small for twice the precision",
);

/// The least size of products whose rounding errors are numbers of full precision.
const LEAST: f64 = f64::MIN_POSITIVE / f64::EPSILON / f64::EPSILON;

/// Tables are written into the source.
pub(crate) const SIZE: Obligation =
    Obligation::new("pre_evaluate_loop.size", "the new tables are not too large");

/// What a new table holds: sums over the points of products of entries, with coefficients. Loops
/// are numbered as axes.
type Contents = Vec<(u64, Vec<(VarId, Vec<Place>)>)>;

/// An index of an entry that is summed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Place {
    Point,
    Axis(usize),
    Number(i64),
}

/// Sums of entries, and the sum of products that multiplies each.
type Group<'t> = (Vec<(&'t Vec<Entry>, f64)>, Vec<(Product, f64)>);

/// A factor of the sum of an update: what multiplies a table.
pub(crate) struct Piece {
    /// The table and the loops that index it; none if the sum is a number.
    pub(crate) table: Option<(usize, Vec<InameId>)>,
    /// The products of factors that do not change, with coefficients.
    pub(crate) factors: Vec<(Product, f64)>,
}

/// Makes tables of sums.
pub(crate) struct Maker<'k> {
    kernel: &'k Kernel,
    /// What part of the sums of absolute values of its row and column a sum has to exceed, not to be
    /// zero.
    tolerance: f64,
    points: usize,
    extents: &'k BTreeMap<InameId, usize>,
    /// The tables so far: what they hold, their extents and values.
    made: Vec<(Contents, Vec<usize>, Vec<f64>)>,
}

impl<'k> Maker<'k> {
    pub(crate) fn new(
        kernel: &'k Kernel,
        tolerance: f64,
        points: usize,
        extents: &'k BTreeMap<InameId, usize>,
    ) -> Self {
        Self { kernel, tolerance, points, extents, made: Vec::new() }
    }

    /// What an update adds, product by product.
    pub(crate) fn pieces(&mut self, insn: &Insn, terms: &[Term]) -> Result<Vec<Piece>, Refusal> {
        let mut by_factor: BTreeMap<&Product, Vec<(&Vec<Entry>, f64)>> = BTreeMap::new();
        let mut by_entries: BTreeMap<&Vec<Entry>, Vec<(&Product, f64)>> = BTreeMap::new();
        for term in terms {
            by_factor.entry(&term.fixed).or_default().push((&term.entries, term.coefficient));
            by_entries.entry(&term.entries).or_default().push((&term.fixed, term.coefficient));
        }
        // entries with equal sums of factors share a table, too
        let mut by_sum: BTreeMap<Vec<(&Product, u64)>, Group<'_>> = BTreeMap::new();
        for (entries, factors) in by_entries {
            let key = factors.iter().map(|(p, c)| (*p, c.to_bits())).collect();
            let owned = || factors.iter().map(|(p, c)| ((*p).clone(), *c)).collect();
            by_sum.entry(key).or_insert_with(|| (Vec::new(), owned())).0.push((entries, 1.0));
        }
        let groups: Vec<Group<'_>> = if by_factor.len() <= by_sum.len() {
            by_factor.into_iter().map(|(fixed, of)| (of, vec![(fixed.clone(), 1.0)])).collect()
        } else {
            by_sum.into_values().collect()
        };
        let mut pieces = Vec::new();
        for (mut contents, mut factors) in groups {
            if contents[0].1 < 0.0 {
                // a table serves its negative, too
                contents.iter_mut().for_each(|(_, c)| *c = -*c);
                factors.iter_mut().for_each(|(_, c)| *c = -*c);
            }
            // zero over zero is no zero, so that such a term stays
            let divides = factors.iter().any(|(product, _)| product.iter().any(|f| f.divides));
            let axes = self.axes(insn, &contents)?;
            if axes.is_empty() {
                let value = self.sums(insn, &self.numbered(&contents, &[])?, &[])?[0];
                let factors: Vec<_> = factors.into_iter().map(|(p, c)| (p, c * value)).collect();
                if value != 0.0 || divides {
                    pieces.push(Piece { table: None, factors });
                }
                continue;
            }
            if let Some((table, axes)) = self.table(insn, &contents, axes, divides)? {
                pieces.push(Piece { table: Some((table, axes)), factors });
            }
        }
        Ok(pieces)
    }

    /// The loops that index entries, in the order of their numbers.
    fn axes(&self, insn: &Insn, contents: &[(&Vec<Entry>, f64)]) -> Result<Vec<InameId>, Refusal> {
        let slots = contents.iter().flat_map(|(entries, _)| entries.iter()).flat_map(|(_, slots)| slots);
        let axes: BTreeSet<InameId> = slots
            .filter_map(|slot| match slot {
                Slot::Axis(iname) => Some(*iname),
                Slot::Point | Slot::Number(_) => None,
            })
            .collect();
        let open = axes.iter().find(|axis| !self.extents.contains_key(axis));
        RANGE.require(open.is_none(), || {
            format!(
                "`{}`, by which `{}` indexes a table, does not run from 0, or another loop, to a constant",
                open.map_or("", |axis| &self.kernel.inames[*axis].name),
                insn.name
            )
        })?;
        Ok(axes.into_iter().filter(|axis| self.extents.contains_key(axis)).collect())
    }

    /// The table of a sum, one that is known if there is one, and the loops that index it; none if
    /// all its sums are zero, unless it `keeps` zeros.
    fn table(
        &mut self,
        insn: &Insn,
        contents: &[(&Vec<Entry>, f64)],
        axes: Vec<InameId>,
        keeps: bool,
    ) -> Result<Option<(usize, Vec<InameId>)>, Refusal> {
        for order in orders(&axes) {
            let wanted = self.numbered(contents, &order)?;
            let shape: Vec<usize> = order.iter().map(|axis| self.extents[axis]).collect();
            if let Some(k) =
                self.made.iter().position(|(known, extents, _)| *known == wanted && *extents == shape)
            {
                return Ok(Some((k, order)));
            }
        }
        let shape: Vec<usize> = axes.iter().map(|axis| self.extents[axis]).collect();
        let wanted = self.numbered(contents, &axes)?;
        let values = self.sums(insn, &wanted, &shape)?;
        if !keeps && values.iter().all(|v| *v == 0.0) {
            return Ok(None);
        }
        self.made.push((wanted, shape, values));
        Ok(Some((self.made.len() - 1, axes)))
    }

    /// Entries with loops numbered by their places among `axes`, in an order of their own.
    fn numbered(&self, contents: &[(&Vec<Entry>, f64)], axes: &[InameId]) -> Result<Contents, Refusal> {
        let place = |slot: &Slot| {
            Ok(match slot {
                Slot::Point => Place::Point,
                Slot::Number(k) => Place::Number(*k),
                Slot::Axis(iname) => {
                    let at = axes.iter().position(|a| a == iname);
                    Place::Axis(at.expected("axis for a loop of an entry", self.kernel)?)
                }
            })
        };
        let mut all = Contents::new();
        for (entries, c) in contents {
            let of =
                |(var, slots): &Entry| Ok((*var, slots.iter().map(place).collect::<Result<_, Refusal>>()?));
            let mut entries = entries.iter().map(of).collect::<Result<Vec<_>, Refusal>>()?;
            entries.sort();
            all.push((c.to_bits(), entries));
        }
        all.sort();
        Ok(all)
    }

    /// The sums over the points, row by row.
    fn sums(&self, insn: &Insn, contents: &Contents, shape: &[usize]) -> Result<Vec<f64>, Refusal> {
        let size = shape.iter().try_fold(1_usize, |all, n| all.checked_mul(*n));
        let size = size.filter(|n| {
            n.saturating_mul(self.points).saturating_mul(contents.len()) <= 16 * MAX_ENTRIES
                && *n <= MAX_ENTRIES
        });
        let size = SIZE.find(size, || {
            format!(
                "a table of the sums of `{}` would have the shape {shape:?}, needed at most {MAX_ENTRIES} entries",
                insn.name
            )
        })?;
        let mut terms = Vec::new();
        for (coefficient, entries) in contents {
            let tables = entries.iter().map(|(var, places)| self.strided(insn, *var, places, shape));
            terms.push((f64::from_bits(*coefficient), tables.collect::<Result<Vec<_>, _>>()?));
        }
        let (mut values, mut sizes) = (Vec::with_capacity(size), Vec::with_capacity(size));
        let mut index = vec![0; shape.len()];
        for _ in 0..size {
            let (mut sum, mut of_sizes, mut lost) = (Wide::default(), 0.0, false);
            for (coefficient, tables) in &terms {
                let starts: Vec<usize> = tables.iter().map(|t| t.start(&index)).collect();
                for q in 0..self.points {
                    let entry = |(t, start): (&Strided<'_>, &usize)| t.values[start + q * t.point].0;
                    let entries = || tables.iter().zip(&starts).map(entry);
                    let product = entries().fold(Wide::new(*coefficient), Wide::times);
                    of_sizes += product.value().abs();
                    lost |= product.value() == 0.0 && entries().all(|v| v != 0.0);
                    sum = sum.plus(product);
                }
            }
            let in_range = of_sizes == 0.0 && !lost || LEAST <= of_sizes && of_sizes.is_finite();
            EXACT.require(in_range, || {
                format!(
                    "a sum of `{}` has terms of the size {of_sizes:e}, which is no size that `f64` sums exactly; scale \
                     the tables, or keep the loop",
                    insn.name
                )
            })?;
            values.push(sum.value());
            sizes.push(of_sizes);
            next(&mut index, shape);
        }
        // what rounding of the entries leaves of an exact zero; entries are rounded as their rows are
        let lines = if shape.len() > 1 { (0..shape.len()).collect() } else { BTreeSet::new() };
        let scales = scales(&sizes, shape, &lines);
        let rounded = |(value, scale): (f64, f64)| {
            if value.abs() <= self.tolerance * scale { 0.0 } else { value }
        };
        Ok(values.into_iter().zip(scales).map(rounded).collect())
    }

    /// Where the entries of a table lie, by points and axes.
    fn strided(
        &self,
        insn: &Insn,
        var: VarId,
        places: &[Place],
        shape: &[usize],
    ) -> Result<Strided<'_>, Refusal> {
        check_finite_table(self.kernel, var)?;
        let table = &self.kernel.vars[var];
        let mut found = Strided { values: &[], point: 0, axes: vec![0; shape.len()], offset: 0 };
        if let VarKind::Table(TableData::Real(values)) = &table.kind {
            found.values = values;
        }
        let (mut stride, mut fits) = (1, true);
        for (place, extent) in places.iter().zip(constant_shape(self.kernel, table)?).rev() {
            match place {
                Place::Point => {
                    found.point += stride;
                    fits &= self.points <= extent;
                }
                Place::Axis(k) => {
                    found.axes[*k] += stride;
                    fits &= shape[*k] <= extent;
                }
                Place::Number(k) => {
                    let k = usize::try_from(*k).unwrap_or(usize::MAX);
                    fits &= k < extent;
                    found.offset += if k < extent { k * stride } else { 0 };
                }
            }
            stride *= extent;
        }
        EXTENT.require(fits, || {
            format!("`{}` reads `{}` out of bounds; let the loops end where it ends", insn.name, table.name)
        })?;
        Ok(found)
    }

    pub(crate) fn variables(self) -> Vec<Variable> {
        let mut taken = self.kernel.clone();
        let variable = |(_, shape, values): (Contents, Vec<usize>, Vec<f64>)| {
            let name = taken.fresh_name("reference");
            let shape: Vec<Affine> = shape.into_iter().map(|n| Affine::constant(n as i64)).collect();
            let kind = VarKind::Table(TableData::real(values));
            let table = Variable::new(name, ScalarType::F64, kind, shape, AddressSpace::Global);
            taken.vars.push(table.clone());
            table
        };
        self.made.into_iter().map(variable).collect()
    }
}

/// The entries of a table by their places.
struct Strided<'k> {
    values: &'k [kingpost_ir::Real],
    point: usize,
    axes: Vec<usize>,
    offset: usize,
}

impl Strided<'_> {
    fn start(&self, index: &[usize]) -> usize {
        self.offset + self.axes.iter().zip(index).map(|(stride, k)| stride * k).sum::<usize>()
    }
}

/// The next index in row-major order.
fn next(index: &mut [usize], shape: &[usize]) {
    for (k, n) in index.iter_mut().zip(shape).rev() {
        *k += 1;
        if *k < *n {
            return;
        }
        *k = 0;
    }
}

/// All orders of some loops, the one given first; of more than four only that.
fn orders(axes: &[InameId]) -> Vec<Vec<InameId>> {
    if axes.len() > 4 {
        return vec![axes.to_vec()];
    }
    if axes.is_empty() {
        return vec![Vec::new()];
    }
    let starts = axes.iter().enumerate().flat_map(|(k, first)| {
        let rest: Vec<InameId> = axes.iter().enumerate().filter(|(j, _)| *j != k).map(|(_, a)| *a).collect();
        orders(&rest).into_iter().map(move |rest| [vec![*first], rest].concat())
    });
    starts.collect()
}
