//! Conflicts of work-items over the banks of local memory, without running the kernel.

use super::collect::{Collector, Image};
use super::context::Setting;
use super::count::{components, count};
use super::error::StatsError;
use super::formula::{Formula, Region};
use super::report::AccessKind;
use kingpost_interp::lower;
use kingpost_ir::affine::{Affine, Atom};
use kingpost_ir::ids::{Id, InameId, VarId};
use kingpost_ir::kernel::{AddressSpace, AxisTag, Kernel, VarKind};
use kingpost_ir::layout::{position_along, strides};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Banks of local memory.
const BANKS: i128 = 32;

/// Bytes of a bank's word.
const WORD: i128 = 4;

/// Points looked at one by one for an access before it is left out (some seconds).
const LIMIT: u128 = 1 << 24;

/// What an instruction asks of the banks of local memory by its accesses to one array.
///
/// # Shapes and units
/// All counts are of the whole launch. A *wavefront* is what the banks serve at a time: one word
/// each. 32 work-items whose elements have at most 4 bytes need one, 16 with 8 bytes each, 8 with
/// 16, and those of a narrower sub-group one; the same word is served to all that ask for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BankTraffic {
    /// Name of the instruction.
    pub insn: String,
    /// Name of the array.
    pub var: String,
    /// Reads or writes; an update does both.
    pub kind: AccessKind,
    /// Wavefronts.
    pub wavefronts: u64,
    /// Those beyond the one that each part of a sub-group needs.
    pub conflicts: u64,
    /// Whether both are exact; else some accesses are left out (indices that depend on data, too
    /// many points) or counted although a condition on data may skip them.
    pub exact: bool,
}

/// Conflicts over the banks of local memory: 32 banks with words of 4 bytes, sub-groups as wide as
/// the kernel says, numbered along `l.0` first.
///
/// Costs are those of the kernel as it is written: an element that an expression mentions twice is
/// read twice. Instructions that go through the same accesses in step are what a sub-group issues.
///
/// # Shapes and units
/// One entry an instruction, array and direction, in the order of instructions; [`BankTraffic`].
///
/// # Errors
/// As [`super::statistics`].
///
/// # Source
/// Cui et al. 2024, §4.1.2 and Table 5 (*L1 wavefronts shared excessive*); 8-byte elements take two
/// wavefronts a sub-group as in their Figure 13.
pub fn bank_traffic(kernel: &Kernel, params: &BTreeMap<String, i64>) -> Result<Vec<BankTraffic>, StatsError> {
    let kernel = &*kernel.scalar_form();
    let program = lower(kernel, params)?;
    let value = |v: &kingpost_ir::Variable| match v.kind {
        VarKind::Param => params.get(&v.name).copied(),
        VarKind::Argument(_) | VarKind::Temporary | VarKind::Table(_) => None,
    };
    let setting = Setting { kernel, params: kernel.vars.values().map(value).collect() };
    let mut collector = Collector::new(&setting);
    collector.statements(&program.statements)?;
    let extents = extents(kernel, &collector);
    let mut found: BTreeMap<(usize, VarId, AccessKind), BankTraffic> = BTreeMap::new();
    for (id, var) in kernel.vars.iter().filter(|(_, v)| v.space == AddressSpace::Local) {
        for kind in [AccessKind::Read, AccessKind::Write] {
            let accesses = match kind {
                AccessKind::Read => &collector.reads[id.index()],
                AccessKind::Write => &collector.writes[id.index()],
            };
            for image in &accesses.images {
                let (wavefronts, conflicts, exact) = match image_address(&setting, id, image) {
                    Some(address) => {
                        Banks { kernel, extents, image, address, bytes: var.ty.bytes().into() }.count()?
                    }
                    None => (0, 0, false),
                };
                let insn = kernel.insns.values().nth(image.insn).map_or_else(String::new, |i| i.name.clone());
                let entry = found.entry((image.insn, id, kind)).or_insert_with(|| BankTraffic {
                    insn,
                    var: var.name.clone(),
                    kind,
                    wavefronts: 0,
                    conflicts: 0,
                    exact: true,
                });
                entry.wavefronts = entry.wavefronts.checked_add(wavefronts).ok_or(StatsError::Overflow)?;
                entry.conflicts = entry.conflicts.checked_add(conflicts).ok_or(StatsError::Overflow)?;
                entry.exact &= exact && image.context.exact;
            }
        }
    }
    Ok(found.into_values().collect())
}

/// Work-items of a group along each axis: the largest extent of its inames.
fn extents(kernel: &Kernel, collector: &Collector<'_, Setting<'_>>) -> [i128; 3] {
    let mut extents = [1; 3];
    let images = collector.reads.iter().chain(&collector.writes).flat_map(|a| &a.images);
    for (dim, _, hi) in images.flat_map(|image| image.context.region.bounds()) {
        if let AxisTag::Local(axis) = kernel.inames[*dim].tag {
            let extent = &mut extents[usize::from(axis)];
            *extent = (*extent).max(hi + 1);
        }
    }
    extents
}

/// The place of an element in its buffer, in elements, if its indices are affine.
fn image_address(setting: &Setting<'_>, id: VarId, image: &Image) -> Option<Affine> {
    let var = &setting.kernel.vars[id];
    let index = image.index.as_ref()?;
    let strides = strides(var, &vec![false; var.shape.len()])?;
    let mut address = Affine::constant(0);
    for (axis, stride) in strides.iter().enumerate() {
        let at = position_along(var, axis, index)?;
        let stride = stride.substitute(&|atom| setting.fixed(atom)).as_constant()?;
        address = address.plus(&at.times(stride));
    }
    address.in_bounds().then_some(address)
}

/// An access whose conflicts are counted.
struct Banks<'a> {
    kernel: &'a Kernel,
    extents: [i128; 3],
    image: &'a Image,
    address: Affine,
    bytes: i128,
}

/// How the loops around an access take part in it.
struct Roles {
    /// Those that number the work-items, with the axis of each.
    items: Vec<(InameId, usize)>,
    /// Those whose elements lie next to each other in one access.
    lanes: Vec<InameId>,
    /// Others whose values decide which work-items take part, or where their elements lie to each
    /// other.
    linked: Vec<InameId>,
    /// How often the same happens elsewhere: points of the loops that are left. They move all
    /// elements of an access alike.
    times: u64,
    /// The set without what concerns only those.
    formula: Formula,
}

impl Banks<'_> {
    /// Wavefronts, those that conflicts cost, and whether both are exact.
    fn count(&self) -> Result<(u64, u64, bool), StatsError> {
        let roles = self.roles()?;
        if roles.times == 0 {
            return Ok((0, 0, true));
        }
        let region = &self.image.context.region;
        let all: Vec<InameId> = roles
            .linked
            .iter()
            .copied()
            .chain(roles.items.iter().map(|i| i.0))
            .chain(roles.lanes.iter().copied())
            .collect();
        let points = all.iter().try_fold(1_u128, |n, dim| n.checked_mul(region.width(*dim)));
        if points.is_none_or(|n| n > LIMIT) {
            return Ok((0, 0, false));
        }
        let mut found = (0_u64, 0_u64);
        for_each_point(region, &roles.linked, &mut BTreeMap::new(), &mut |point| {
            let (wavefronts, conflicts) = self.access(&roles, point);
            found = (found.0 + wavefronts, found.1 + conflicts);
        });
        let of_all = |n: u64| n.checked_mul(roles.times).ok_or(StatsError::Overflow);
        Ok((of_all(found.0)?, of_all(found.1)?, true))
    }

    fn roles(&self) -> Result<Roles, StatsError> {
        let region = &self.image.context.region;
        let (mut items, mut lanes, mut linked) = (Vec::new(), Vec::new(), BTreeSet::new());
        for (dim, ..) in region.bounds() {
            match self.kernel.inames[*dim].tag {
                AxisTag::Local(axis) => items.push((*dim, usize::from(axis))),
                AxisTag::Vector if self.is_lane(*dim) => lanes.push(*dim),
                AxisTag::Vector
                | AxisTag::Sequential
                | AxisTag::Unrolled
                | AxisTag::Rolled
                | AxisTag::Group(_)
                | AxisTag::Launch => {}
            }
        }
        linked.extend(items.iter().map(|i| i.0).chain(lanes.iter().copied()));
        let simple = self.image.context.formula.clone().simplify(region);
        let groups = components(simple.into_conjuncts());
        let floors = floors(&self.address);
        loop {
            let before = linked.len();
            for dims in groups.iter().map(|(dims, _)| dims).chain(&floors) {
                if !dims.is_disjoint(&linked) {
                    linked.extend(dims.iter().copied());
                }
            }
            if linked.len() == before {
                break;
            }
        }
        let (inside, outside): (Vec<_>, Vec<_>) =
            groups.into_iter().partition(|(dims, _)| !dims.is_disjoint(&linked));
        let rest: BTreeSet<InameId> =
            region.bounds().iter().map(|b| b.0).filter(|d| !linked.contains(d)).collect();
        let rest = region.restricted(&rest);
        let set = Formula::all(outside.into_iter().flat_map(|(_, parts)| parts));
        let times = count(&set, &rest, "the loops around an access")?;
        linked.retain(|d| items.iter().all(|i| i.0 != *d) && !lanes.contains(d));
        Ok(Roles {
            items,
            lanes,
            linked: linked.into_iter().collect(),
            times: u64::try_from(times).map_err(|_| StatsError::Overflow)?,
            formula: Formula::all(inside.into_iter().flat_map(|(_, parts)| parts)),
        })
    }

    /// Whether the elements of a vector's lanes lie next to each other, in at most 16 bytes.
    fn is_lane(&self, dim: InameId) -> bool {
        let beside = self.address.coefficient(&Atom::Iname(dim)) == 1
            && floors(&self.address).iter().all(|dims| !dims.contains(&dim));
        beside && self.image.context.region.width(dim) as i128 * self.bytes <= 16
    }

    /// The numbers of work-items at these places; an instruction that writes only what is private
    /// runs everywhere along an axis that it has no loop on, others at index 0.
    fn items(&self, at: [Option<i128>; 3]) -> Vec<i128> {
        let insn = self.kernel.insns.values().nth(self.image.insn);
        let everywhere = insn.is_some_and(|i| self.kernel.vars[i.lhs.var].space == AddressSpace::Private);
        let along = |axis: usize| match at[axis] {
            Some(place) => place..place + 1,
            None => 0..if everywhere { self.extents[axis] } else { 1 },
        };
        let number = |z: i128, y: i128, x: i128| x + self.extents[0] * (y + self.extents[1] * z);
        along(2).flat_map(|z| along(1).flat_map(move |y| along(0).map(move |x| number(z, y, x)))).collect()
    }

    /// One access of a group at a point of the linked loops.
    fn access(&self, roles: &Roles, point: &BTreeMap<InameId, i128>) -> (u64, u64) {
        let region = &self.image.context.region;
        let width: i128 = roles.lanes.iter().map(|dim| region.width(*dim) as i128).product();
        let of_part =
            (BANKS * WORD / (self.bytes * width).max(WORD)).clamp(1, self.kernel.sub_group.width().into());
        let mut parts: BTreeMap<i128, BTreeSet<i128>> = BTreeMap::new();
        let dims: Vec<InameId> = roles.items.iter().map(|i| i.0).chain(roles.lanes.iter().copied()).collect();
        for_each_point(region, &dims, &mut point.clone(), &mut |at| {
            let value = |dim: InameId| at.get(&dim).copied().unwrap_or_else(|| region.get(dim).0);
            if !roles.formula.holds(&value) {
                return;
            }
            let number = |axis: usize| roles.items.iter().find(|i| i.1 == axis).map(|i| value(i.0));
            let element = self.address.eval(&mut |atom| match atom {
                Atom::Iname(dim) => i64::try_from(value(*dim)).ok(),
                Atom::Var(_) | Atom::Floor(..) => None,
            });
            let Some(element) = element else { return };
            let first = i128::from(element) * self.bytes / WORD;
            let words = first..first + (self.bytes / WORD).max(1);
            for item in self.items([0, 1, 2].map(number)) {
                parts.entry(item / of_part).or_default().extend(words.clone());
            }
        });
        let served = parts.values().map(|words| {
            let mut banks = [0_u64; BANKS as usize];
            words.iter().for_each(|word| banks[word.rem_euclid(BANKS) as usize] += 1);
            banks.into_iter().max().unwrap_or(0)
        });
        let wavefronts = served.sum::<u64>();
        (wavefronts, wavefronts - parts.len() as u64)
    }
}

/// The loops that each floor of an address joins.
fn floors(address: &Affine) -> Vec<BTreeSet<InameId>> {
    let of = |atom: &Atom| match atom {
        Atom::Floor(numerator, _) => {
            let mut dims = BTreeSet::new();
            numerator.for_each_symbol(&mut |atom| {
                if let Atom::Iname(dim) = atom {
                    dims.insert(*dim);
                }
            });
            Some(dims)
        }
        Atom::Iname(_) | Atom::Var(_) => None,
    };
    address.terms().iter().filter_map(|(atom, _)| of(atom)).collect()
}

/// Calls `visit` with every point of some dimensions of a box.
fn for_each_point(
    region: &Region,
    dims: &[InameId],
    point: &mut BTreeMap<InameId, i128>,
    visit: &mut dyn FnMut(&BTreeMap<InameId, i128>),
) {
    let Some((dim, rest)) = dims.split_first() else { return visit(point) };
    let (lo, hi) = region.get(*dim);
    for value in lo..=hi {
        point.insert(*dim, value);
        for_each_point(region, rest, point, visit);
    }
}
