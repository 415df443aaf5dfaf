//! What a run found, as a table and as files.

use super::failure::Failure;
use super::table::{facts, figure, grouped, seconds, stored};
use kingpost::autotune::{DeviceModel, Point, Share, Shares, Work, roofline_svg};
use kingpost::codegen::Program;
use kingpost::files::write;
use kingpost::forms::element::Nodes;
use kingpost::interp::LaunchReport;
use kingpost::ir::{Kernel, text};
use kingpost::runtime::cuda::ptxas::Resources;
use kingpost::runtime::{Cache, Device, DeviceInfo, RuntimeError, Timing, measure_exceeded_ceilings};
use kingpost::transforms::Recipe;
use kingpost::{RelativeError, SetUp};
use serde_json::json;
use std::path::Path;

/// What a run of a form found.
pub struct Report<'a> {
    /// The transformed kernel.
    pub kernel: &'a Kernel,
    /// How it came to be.
    pub recipe: &'a Recipe,
    /// Strategy or recipe, as in `strategy single-cell`.
    pub mapping: &'a str,
    /// What ran.
    pub program: &'a Program,
    /// The nodes that its tables and arrays of degrees of freedom are for.
    pub nodes: &'a [Nodes],
    /// Where it ran.
    pub device: &'a DeviceInfo,
    /// Cells of the mesh.
    pub cells: usize,
    /// Entries of the result.
    pub dofs: usize,
    /// Seed of the inputs.
    pub seed: u64,
    /// What the kernel costs on a card.
    pub resources: Option<&'a Resources>,
    /// Distance from the reference.
    pub error: RelativeError,
    /// Entries that are no finite number, neither here nor in the reference.
    pub not_finite: usize,
    /// What is launched was checked, if that was asked for.
    pub checked: Option<LaunchReport>,
    /// Times and rooflines, if they were asked for.
    pub measured: Option<Measured>,
    /// What came before the kernel.
    pub setup: Setup,
}

/// Seconds on the host before a kernel runs, once for a mesh.
pub struct Setup {
    /// To read or make the mesh, and to bring it into a local order.
    pub mesh_s: f64,
    /// To lower the form, number degrees of freedom and fill the arrays.
    pub arrays_s: f64,
    /// To compute inputs that a mapping stores.
    pub stored: SetUp,
}

/// Times and rooflines.
pub struct Measured {
    /// Times of repeated runs.
    pub timing: Timing,
    /// Work of the untransformed kernel.
    pub work: Work,
    /// Operations of the kernel that ran, if they can be counted.
    pub executed_flops: Option<u64>,
    /// Measured ceilings of the device.
    pub model: DeviceModel,
}

impl Measured {
    /// With the ceilings of the device, which are measured again if the kernel exceeds those that are
    /// kept.
    pub fn new(
        timing: Timing,
        work: Work,
        executed_flops: Option<u64>,
        device: &dyn Device,
    ) -> Result<Self, RuntimeError> {
        let ran = Work { flops: executed_flops.unwrap_or(work.flops), ..work };
        let excludes = |model: &DeviceModel| ran.flops as f64 / timing.median_s > ran.true_roofline(model);
        let model = measure_exceeded_ceilings(device, &Cache::from_environment(), &excludes)?;
        Ok(Self { timing, work, executed_flops, model })
    }

    fn flops_per_s(&self) -> f64 {
        self.work.flops as f64 / self.timing.median_s
    }

    /// The work with the operations that ran, if those are not the ones that were written.
    fn executed(&self) -> Option<Work> {
        let flops = self.executed_flops.filter(|flops| *flops != self.work.flops)?;
        Some(Work { flops, ..self.work })
    }

    fn shares(&self) -> Shares {
        self.work.shares(self.executed_flops, self.timing.median_s, &self.model)
    }

    /// Rates and how much of each roofline they are, as rows of a table: of what is executed, and
    /// next to it of what is written.
    pub fn rows(&self, cells: Option<usize>) -> Vec<(&'static str, String)> {
        let (model, shares) = (&self.model, self.shares());
        let rate = |work: &Work| {
            let rate = format!("{} GFLOP/s", figure(work.flops as f64 / self.timing.median_s / 1e9));
            match cells {
                Some(cells) => format!("{rate} ({} FLOP a cell)", figure(work.flops as f64 / cells as f64)),
                None => rate,
            }
        };
        let of = |share: Share, roof: f64| {
            let why = share.why_above.map_or_else(String::new, |why| format!(", above 100 %: {why}"));
            format!("{share} of {} GFLOP/s{why}", figure(roof / 1e9))
        };
        let ran = self.executed().unwrap_or(self.work);
        let ceilings = format!(
            "memory {} GB/s, FP64 {} GFLOP/s, {} FLOP/B",
            figure(model.dram_bytes_per_s / 1e9),
            figure(model.fp64_flops_per_s / 1e9),
            figure(ran.intensity())
        );
        let mut rows = Vec::new();
        let counted = match (self.executed(), self.executed_flops) {
            (Some(ran), _) => {
                rows.push(("executed", rate(&ran)));
                rows.push(("as written", rate(&self.work)));
                ""
            }
            (None, Some(_)) => {
                rows.push(("executed", rate(&self.work)));
                ""
            }
            (None, None) => {
                rows.push(("as written", rate(&self.work)));
                "; what is executed cannot be counted"
            }
        };
        let executed = of(shares.executed, ran.true_roofline(model));
        rows.push(("roofline, true", format!("{executed} ({ceilings}{counted})")));
        if self.executed().is_some() {
            rows.push(("as written", of(shares.useful, self.work.true_roofline(model))));
        }
        if let Some(bytes) = model.local_bytes_per_s {
            let tables = of(shares.tables, self.work.table_roofline(model));
            let local = format!("local memory {} GB/s", figure(bytes / 1e9));
            rows.push(("roofline, local tables", format!("as written, {tables} ({local})")));
        }
        rows
    }
}

impl Report<'_> {
    /// The table for people.
    pub fn table(&self) -> String {
        let (l2, max) = (self.error.l2, self.error.max);
        let mut rows = vec![
            ("kernel", format!("{}, {}", self.kernel.name, self.mapping)),
            ("device", format!("{} ({})", self.device.name, self.device.selector())),
            ("cells", grouped(self.cells as u64)),
            ("degrees of freedom", grouped(self.dofs as u64)),
            ("relative error", format!("{l2:.1e} (Euclidean norm), {max:.1e} (maximum norm)")),
        ];
        rows.extend((self.not_finite > 0).then(|| {
            let (count, all) = (self.not_finite, self.dofs);
            let what = format!(
                "{count} of {all} entries are nan or infinite, here and in the reference: that proves nothing of them"
            );
            ("not finite", what)
        }));
        rows.extend(self.checked.as_ref().map(|report| ("checked", report.to_string())));
        rows.extend(self.resources.map(|resources| ("resources", resources.to_string())));
        if let Some(m) = &self.measured {
            rows.push(("time (median)", format!("{} of {} runs", seconds(m.timing.median_s), m.timing.runs)));
            let Setup { mesh_s, arrays_s, stored: factors } = self.setup;
            let mut setup =
                format!("{} for the mesh, {} for maps and arrays", seconds(mesh_s), seconds(arrays_s));
            if factors.inputs > 0 {
                setup += &format!("; {}", stored(&factors));
            }
            rows.push(("setup", setup));
            rows.push(("DoF/s", figure(self.dofs as f64 / m.timing.median_s)));
            rows.extend(m.rows(Some(self.cells)));
        }
        rows.push(("seed", self.seed.to_string()));
        facts(rows)
    }

    /// Writes source, recipe, kernel, roofline and report; says where.
    pub fn save(&self, dir: &Path) -> Result<String, Failure> {
        let extension = self.program.target.description().extension;
        let name = &self.kernel.name;
        let recipe = self.recipe.to_json().map_err(|e| Failure::Refused(e.to_string()))?;
        let mut files = vec![
            (format!("{name}.{extension}"), self.program.source.clone(), "generated source"),
            ("recipe.json".into(), recipe + "\n", "recipe"),
            (format!("{name}.kingpost"), text::print(self.kernel), "kernel after the recipe"),
            ("report.json".into(), format!("{:#}\n", self.json()), "figures, hashes, device"),
        ];
        if let Some(m) = &self.measured {
            files.push(("roofline.svg".into(), self.roofline(m)?, "roofline of this device"));
        }
        std::fs::create_dir_all(dir).map_err(|e| Failure::of_write(dir, &e))?;
        let mut said = String::new();
        for (file, content, what) in files {
            let path = dir.join(file);
            write(&path, content).map_err(|e| Failure::of_write(&path, &e))?;
            said += &format!("wrote {} ({what})\n", path.display());
        }
        Ok(said)
    }

    fn roofline(&self, m: &Measured) -> Result<String, Failure> {
        let label = format!("{}, {}", self.kernel.name, self.mapping);
        let (work, executed_flops, seconds) = (m.work, m.executed_flops, m.timing.median_s);
        let point = Point { label, work, executed_flops, seconds };
        roofline_svg(&m.model, &[point]).map_err(|e| Failure::Refused(e.to_string()))
    }

    fn json(&self) -> serde_json::Value {
        let measured = self.measured.as_ref().map(|m| {
            let (tables, roof) = (m.work.table_roofline(&m.model), m.work.true_roofline(&m.model));
            let ran = m.work.executed(m.executed_flops);
            let why = [m.shares().executed, m.shares().useful, m.shares().tables].map(|share| share.why_above);
            json!({
                "median_s": m.timing.median_s, "min_s": m.timing.min_s, "runs": m.timing.runs,
                "flops": m.work.flops, "executed_flops": m.executed_flops, "dram_bytes": m.work.dram_bytes, "table_bytes": m.work.table_bytes,
                "flops_per_s": m.flops_per_s(), "dofs_per_s": self.dofs as f64 / m.timing.median_s,
                "executed_flops_per_s": ran.flops as f64 / m.timing.median_s,
                "executed_roofline_flops_per_s": ran.true_roofline(&m.model),
                "above_rooflines": { "executed": why[0], "as_written": why[1], "local_tables": why[2] },
                "true_roofline_flops_per_s": roof, "table_roofline_flops_per_s": tables,
                "model": m.model,
            })
        });
        json!({
            "kernel": self.kernel.name, "kernel_hash": self.kernel.content_hash(),
            "mapping": self.mapping, "recipe": self.recipe, "device": self.device,
            "nodes": self.nodes.iter().map(|n| json!({
                "degree": n.degree, "variant": n.variant.to_string(), "points": n.points,
            })).collect::<Vec<_>>(),
            "cells": self.cells, "dofs": self.dofs, "seed": self.seed,
            "relative_error": { "l2": self.error.l2, "max": self.error.max },
            "resources": self.resources, "measured": measured,
            "setup": { "mesh_s": self.setup.mesh_s, "arrays_s": self.setup.arrays_s },
        })
    }
}
