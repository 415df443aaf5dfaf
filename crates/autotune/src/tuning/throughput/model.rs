//! Seconds of a launch from what it asks for.

use super::Demand;
use crate::tuning::NoOccupancy;
use kingpost_codegen::Target;
use kingpost_runtime::{DeviceModel, Occupancy};
use kingpost_strategies::MatrixInstruction;
use std::cmp::Ordering;

/// Seconds of an empty launch between two events (H200, 2026-11-21).
pub(super) const LAUNCH: f64 = 5.5e-6;

/// Cycles a second of a card whose model does not say.
const CLOCK: f64 = 1.9e9;

/// Bytes of a wavefront of local memory.
const WAVEFRONT: f64 = 128.0;

/// Work-items of the sub-groups of which [`HALF`] is a number.
const WIDTH: f64 = 32.0;

/// Fused multiply-adds that a quotient or a root takes.
const FUNCTION: f64 = 15.0;

/// Operations of `mma.m16n8k8`, and how many times the rate of others it has (H200, 2026-11-21);
/// `v_mfma_f64_16x16x4` has as many, at twice the rate, too (AMD's data sheets).
const MATRIX: f64 = 2048.0;
const MATRIX_RATE: f64 = 2.0;

/// Bytes that the second-level cache passes for each byte of memory that streams.
const CACHE_RATE: f64 = 2.5;

/// Sectors that atomic updates of global memory reach a second (H200, 2026-11-21: 77 to 101 billion
/// where nothing else runs).
const REDUCTIONS: f64 = 1.2e11;

/// Wavefronts that a round of atomic updates of local memory takes: reals are compared and
/// exchanged.
const ROUND: f64 = 6.0;

/// Wavefronts that the units of memory take for a sector of global memory.
const OF_SECTOR: f64 = 0.11;

/// Part of the reads of local memory in the code that are left where compilers keep what they have
/// read.
const LEFT: f64 = 0.4;

/// Part of the peak that arithmetic reaches.
const REACHED: f64 = 0.7;

/// How much longer issue takes for each thousand operations that stand in the code, which leave the
/// instruction cache.
const OF_CODE: f64 = 0.12;

/// How far units work at a time: times are added in this power. With 1 they wait for each other,
/// with many the slowest decides.
const OVERLAP: f64 = 1.65;

/// Sub-groups of a unit with which a launch takes twice the time of very many.
const HALF: f64 = 0.75;

/// Words of registers that a work-item needs besides its values.
const BESIDE: u64 = 16;

/// Work-items that a unit holds.
const ITEMS_OF_UNIT: f64 = 2048.0;

/// What units hold and issue.
#[derive(Clone, Copy, Debug)]
struct Units {
    /// Words of registers of a work-item.
    registers: u64,
    /// Words of values beyond which they spill for sure: compilers compute some of them again.
    spilled: u64,
    /// Words of registers of a unit.
    registers_of_unit: f64,
    /// Instructions of sub-groups that a unit issues for a fused multiply-add in double precision.
    issue: f64,
    /// Bytes of local memory that a group takes besides its own.
    reserved: f64,
    /// Vector units, each of which has the arithmetic of its own sub-groups alone; none where
    /// sub-groups of others were timed.
    vectors: f64,
}

const NVIDIA: Units = Units {
    registers: 255,
    spilled: 304,
    registers_of_unit: 65_536.0,
    issue: 3.0,
    reserved: 1024.0,
    vectors: 0.0,
};

/// Half of the registers are accumulators, where values of others may stay; what else vector units
/// do has the rate of double precision (AMD CDNA 2 and 3 white papers). Not measured.
const AMD: Units = Units {
    registers: 512,
    spilled: MatrixInstruction::Mfma16x16x4.most_words(),
    registers_of_unit: 131_072.0,
    issue: 1.0,
    reserved: 0.0,
    vectors: 4.0,
};

/// A prediction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verdict {
    /// Seconds of a launch.
    pub seconds: f64,
    /// Whether the values of a work-item need more registers than it can have.
    pub spills: bool,
    /// What alone takes the longest, and its seconds.
    pub longest: (&'static str, f64),
}

impl Verdict {
    /// The order in which to try: what spills comes last.
    #[must_use]
    pub fn order(&self, other: &Self) -> Ordering {
        self.spills.cmp(&other.spills).then(self.seconds.total_cmp(&other.seconds))
    }
}

/// Predicts a launch from the throughput of each unit of a card.
///
/// Arithmetic, local memory with what else its units serve, memory, its cache, atomic updates and
/// the issue of instructions each take a time of their own. They overlap in part, and less where
/// few sub-groups are on a unit.
///
/// # Source
/// Rates are those of the device's model. The constants of this file were fitted to 120 trials of
/// 12 cases on an H200 (results/h200/predictions.md); of AMD's processors, none of which was
/// measured, what units hold and issue is that of white papers.
#[derive(Clone, Copy, Debug)]
pub struct ThroughputModel<'m> {
    device: &'m DeviceModel,
    occupancy: &'m Occupancy,
    units: Units,
}

impl<'m> ThroughputModel<'m> {
    /// The model of a device.
    ///
    /// # Errors
    /// A device of which is not known what bounds the work in flight.
    pub fn new(device: &'m DeviceModel) -> Result<Self, NoOccupancy> {
        let occupancy = device.occupancy.as_ref();
        let occupancy = occupancy.ok_or_else(|| NoOccupancy { device: device.name.clone() })?;
        let units = if Self::is_hip(occupancy) { AMD } else { NVIDIA };
        Ok(Self { device, occupancy, units })
    }

    /// Whether sub-groups are AMD's wavefronts.
    fn is_hip(occupancy: &Occupancy) -> bool {
        MatrixInstruction::of_width(occupancy.sub_group) == Some(MatrixInstruction::Mfma16x16x4)
    }

    /// The target whose code is walked.
    pub(super) fn target(&self) -> Target {
        if Self::is_hip(self.occupancy) { Target::Hip } else { Target::Cuda }
    }

    /// What a launch takes.
    #[must_use]
    pub fn verdict(&self, demand: &Demand) -> Verdict {
        let parts = self.parts(demand);
        let sum: f64 = parts.iter().map(|(_, seconds)| seconds.powf(OVERLAP)).sum();
        let waiting = 1.0 + HALF / (self.resident(demand) * demand.sub_group as f64 / WIDTH);
        let longest = parts.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or(("nothing", 0.0));
        Verdict {
            seconds: LAUNCH + sum.powf(1.0 / OVERLAP) * waiting,
            spills: self.words(demand) > self.units.spilled,
            longest,
        }
    }

    /// Seconds that each unit takes alone.
    #[must_use]
    pub fn parts(&self, demand: &Demand) -> [(&'static str, f64); 6] {
        let t = &demand.traffic;
        let matrix = demand.matrix_instructions();
        let fused = t.arithmetic + FUNCTION * t.functions;
        let fp64 = self.device.fp64_flops_per_s;
        // operations of a fused multiply-add of a sub-group
        let operations = 2.0 * demand.sub_group as f64;
        let global = t.reads.sectors + t.writes.sectors + t.reductions.sectors;
        let instructions = t.reads.instructions + t.writes.instructions + t.reductions.instructions;
        let wavefronts = LEFT * t.local_wavefronts
            + ROUND * t.local_rounds
            + OF_SECTOR * global
            + instructions
            + t.constant_reads
            + 2.0 * t.stack;
        let local = self.device.local_bytes_per_s.unwrap_or(self.device.dram_bytes_per_s);
        let issued = t.integer + t.literals + t.local_instructions + t.local_atomics + instructions;
        let memory = self.device.dram_bytes_per_s;
        let idle = (self.units.vectors / self.resident(demand)).max(1.0);
        let fetched = 1.0 + OF_CODE * (t.code as f64 / 1000.0 - 1.0).max(0.0);
        [
            ("arithmetic", idle * (fused * operations + matrix * MATRIX / MATRIX_RATE) / (REACHED * fp64)),
            ("local memory", wavefronts * WAVEFRONT / local),
            ("memory", demand.memory_bytes / memory),
            ("cache", (t.reads.distinct + t.writes.distinct) * super::SECTOR / (CACHE_RATE * memory)),
            ("atomic updates", t.reductions.sectors / REDUCTIONS),
            ("issue", idle * fetched * (fused + issued) * operations / (self.units.issue * fp64)),
        ]
    }

    /// Words of values of a work-item: those that are alive, or all private arrays, where the
    /// compiler is one that moves reads ahead as far as registers go.
    fn words(&self, demand: &Demand) -> u64 {
        let arrays = if self.units.vectors > 0.0 { demand.traffic.array_words } else { 0 };
        demand.traffic.live_words.max(arrays)
    }

    /// Multiprocessors, by what their local memory passes in a second.
    pub(super) fn units(&self) -> f64 {
        let local = self.device.local_bytes_per_s.unwrap_or(self.device.dram_bytes_per_s);
        (local / (WAVEFRONT * self.clock())).round().max(1.0)
    }

    /// Cycles a second.
    pub(super) fn clock(&self) -> f64 {
        if self.device.clock_mhz > 0 { 1e6 * f64::from(self.device.clock_mhz) } else { CLOCK }
    }

    /// Sub-groups on a unit at a time.
    pub(super) fn resident(&self, demand: &Demand) -> f64 {
        let sub_groups = demand.traffic.sub_groups.max(1) as f64;
        let items = sub_groups * demand.sub_group as f64;
        let Units { registers, registers_of_unit, reserved, .. } = self.units;
        let mut registers = (self.words(demand) + BESIDE).min(registers) as f64;
        if let Some(groups) = demand.resident_groups {
            registers = registers.min(registers_of_unit / (items * f64::from(groups)));
        }
        let fitting = [
            self.occupancy.groups_per_unit as f64,
            self.occupancy.local_bytes_per_unit as f64 / (demand.local_bytes as f64 + reserved),
            registers_of_unit / (registers * items),
            ITEMS_OF_UNIT / items,
        ];
        fitting.into_iter().fold(f64::INFINITY, f64::min).floor().max(1.0) * sub_groups
    }
}
