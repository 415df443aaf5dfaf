//! The mapping of an operator action that is known to be fast on a device.

use super::Choice;
use purlin_autotune::{DeviceModel, Mapping, Record};
use purlin_ir::Kernel;
use purlin_runtime::{Backend, DeviceInfo};
use std::fmt;

/// The fastest mappings of whole kinds of devices: the architecture, the device they were measured
/// on, and a line a case, as `purlin results --mapping` prints it.
const SHIPPED: [(&str, &str, &str); 1] =
    [("sm_90", "NVIDIA H200", include_str!("known_data/nvidia_h200.txt"))];

/// Eight cells of 64-bit reals, a vector of AVX-512; two of AVX2, four of NEON. Tables are part of
/// the source, so that compilers know their entries.
const LANES: Mapping = Mapping::ConstantCells { cells: 8 };

/// A mapping and where it is known from.
#[derive(Clone, Debug, PartialEq)]
pub struct Known {
    /// The mapping.
    pub mapping: Mapping,
    /// Where it is known from.
    pub source: Source,
}

/// Where a mapping is known from.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// Trials of this kernel on this device.
    Tuned {
        /// Median time of the best trial, seconds.
        median_s: f64,
    },
    /// Trials of the same operator, dimension and degree on this device, with another quadrature
    /// rule or mesh.
    SameCase,
    /// What is shipped for the architecture, measured on this device.
    Shipped(&'static str),
    /// The best of the tilings that the cost model ranks.
    Ranked,
    /// Cells in the lanes of a processor's vectors.
    Lanes,
    /// Nothing is known: one cell a work-item.
    Nothing,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tuned { .. } => f.write_str("tuned on this device"),
            Self::SameCase => f.write_str("tuned on this device for the same operator and degree"),
            Self::Shipped(device) => write!(f, "the best on an {device}"),
            Self::Ranked => f.write_str("ranked first by the cost model"),
            Self::Lanes => f.write_str("a vector of cells; `purlin tune` may find a better one"),
            Self::Nothing => f.write_str("nothing is known of this device; `purlin tune` finds a better one"),
        }
    }
}

/// The mappings to try for a case on a device, the best known first: what `records` have of this
/// device, what is shipped for its architecture, and one cell a work-item, which suits every
/// device. A later one is for devices that lack what the one before it needs.
pub fn known(case: &str, kernel: &Kernel, device: &DeviceInfo, records: &[Record]) -> Vec<Known> {
    let here = records.iter().filter(|r| r.device.name == device.name);
    let timed: Vec<(&Record, f64)> = here.filter_map(|r| Some((r, r.median_s()?))).collect();
    let fastest = |wanted: &dyn Fn(&Record) -> bool| {
        let matching = timed.iter().filter(|(r, _)| wanted(r));
        matching.min_by(|(_, a), (_, b)| a.total_cmp(b)).map(|(r, s)| (r.parameters.clone(), *s))
    };
    let hash = kernel.content_hash();
    let mut found = Vec::new();
    if let Some((mapping, median_s)) = fastest(&|r| r.workload.kernel == hash) {
        found.push(Known { mapping, source: Source::Tuned { median_s } });
    } else if let Some((mapping, _)) = fastest(&|r| r.workload.case == case) {
        found.push(Known { mapping, source: Source::SameCase });
    }
    found.extend(shipped(case, device));
    if device.backend == Backend::C {
        found.push(Known { mapping: LANES, source: Source::Lanes });
    }
    found.push(Known { mapping: Mapping::SINGLE_CELL, source: Source::Nothing });
    found
}

/// What is shipped for the architecture of a card.
fn shipped(case: &str, device: &DeviceInfo) -> Option<Known> {
    let (_, name, text) = SHIPPED
        .into_iter()
        .find(|(arch, _, _)| device.backend == Backend::Cuda && device.arch.trim_end_matches('a') == *arch)?;
    let line = text.lines().find_map(|line| line.strip_prefix(case)?.strip_prefix(' '))?;
    Some(Known { mapping: serde_json::from_str(line).ok()?, source: Source::Shipped(name) })
}

/// The tiling that the cost model ranks first, for a card of which nothing is known.
pub fn ranked(kernel: &Kernel, model: &DeviceModel, local_bytes: u64) -> Option<Known> {
    // the number of cells does not change the order
    let best = Choice::new(kernel, 1, model, local_bytes).ok()?.ranked(1).into_iter().next()?;
    Some(Known { mapping: best.parameters, source: Source::Ranked })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::*;
    use crate::tuning::{CaseMesh, FormCase, transform};
    use purlin_autotune::{Errors, Measurement, Outcome, RECORD_VERSION, Workload};
    use purlin_forms::lowering::{LoweringOptions, lower};
    use purlin_forms::quadrature::QuadratureScheme;
    use purlin_kernels::Operator;

    fn device(name: &str, backend: Backend, arch: &str) -> DeviceInfo {
        DeviceInfo {
            name: name.into(),
            backend,
            index: 0,
            driver: String::new(),
            compute_units: 132,
            max_work_group_size: 1024,
            max_work_item_sizes: [1024, 1024, 64],
            max_grid: [1 << 30; 3],
            local_mem_bytes: 232_448,
            private_mem_bytes: None,
            global_mem_bytes: 1 << 37,
            fp64: true,
            int64_atomics: true,
            clock_mhz: 1980,
            arch: arch.into(),
        }
    }

    fn lowered(operator: Operator, dim: usize, degree: usize, scheme: QuadratureScheme) -> FormCase {
        let options = LoweringOptions::new(operator.kernel_name(dim, degree)).with_scheme(scheme);
        let lowered = lower(&operator.form(dim, degree).unwrap(), &options).unwrap();
        FormCase::new(operator.action_name(dim, degree), lowered, CaseMesh::Unit(2)).unwrap()
    }

    fn record(case: &FormCase, name: &str, parameters: Mapping, median_s: f64) -> Record {
        let measurement = Measurement {
            kernel: String::new(),
            errors: Errors { small: 0.0, measured: 0.0 },
            runs: 15,
            median_s,
            min_s: median_s,
            max_s: median_s,
            cut_short: false,
            resources: None,
        };
        let device = DeviceModel {
            name: name.into(),
            description: String::new(),
            clock_mhz: 0,
            dram_bytes_per_s: 1.0,
            local_bytes_per_s: None,
            fp64_flops_per_s: 1.0,
            source: String::new(),
            occupancy: None,
        };
        Record {
            version: RECORD_VERSION,
            workload: Workload { ..case.workload.clone() },
            device,
            parameters,
            rank: None,
            predicted_s: None,
            outcome: Outcome::Measured(measurement),
            seed: 0,
            unix_s: 0,
        }
    }

    /// Every shipped mapping can be applied to the kernel that it is for, with either quadrature
    /// scheme.
    #[test]
    fn what_is_shipped_can_be_applied() {
        let card = device("NVIDIA H100 80GB HBM3", Backend::Cuda, "sm_90");
        let names: Vec<&str> = SHIPPED[0].2.lines().filter_map(|l| Some(l.split_once(' ')?.0)).collect();
        let mut shipped = 0;
        for (operator, dim) in Operator::ALL.into_iter().flat_map(|o| [(o, 2), (o, 3)]) {
            for degree in 1..=if dim == 2 { 8 } else { 6 } {
                let case = operator.action_name(dim, degree);
                assert_eq!(names.iter().filter(|name| **name == case).count(), 1, "{case}");
                shipped += 1;
                for scheme in [QuadratureScheme::XiaoGimbutas, QuadratureScheme::Default] {
                    if degree > 3 {
                        continue;
                    }
                    let lowered = lowered(operator, dim, degree, scheme);
                    let kernel = &lowered.lowered.kernel;
                    let known = known(&case, kernel, &card, &[]);
                    assert_eq!(known[0].source, Source::Shipped("NVIDIA H200"), "{case}");
                    transform(kernel, &known[0].mapping).unwrap_or_else(|e| panic!("{case}: {e}"));
                }
            }
        }
        assert_eq!(SHIPPED[0].2.lines().filter(|l| !l.starts_with('#')).count(), shipped);
    }

    #[test]
    fn what_was_tuned_here_comes_first() {
        let lowered = lowered(Operator::Laplace, 3, 1, QuadratureScheme::Default);
        let (kernel, name) = (&lowered.lowered.kernel, lowered.workload.case.clone());
        let host = device("a processor", Backend::C, "x86_64");
        let of = |records: &[Record]| known(&name, kernel, &host, records).swap_remove(0);
        assert_eq!(of(&[]), Known { mapping: LANES, source: Source::Lanes });
        let cells = |cells| Mapping::SingleCell { cells };
        let slow = record(&lowered, "a processor", cells(8), 2.0);
        let fast = record(&lowered, "a processor", cells(16), 1.0);
        let elsewhere = record(&lowered, "another one", cells(64), 0.5);
        let mut coarser = record(&lowered, "a processor", cells(4), 0.1);
        coarser.workload.kernel = "another rule".into();
        assert_eq!(of(std::slice::from_ref(&coarser)), Known { mapping: cells(4), source: Source::SameCase });
        let found = of(&[slow, elsewhere, coarser, fast]);
        assert_eq!(found, Known { mapping: cells(16), source: Source::Tuned { median_s: 1.0 } });
    }
}
