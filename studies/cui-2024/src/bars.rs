//! Breakdowns and times of solves as the publication draws them.

use crate::breakdown::{Breakdown, COMPONENTS, OPERATIONS, works};
use crate::picture::{Panel, PictureError, caption, colour, drawing, font, picture};
use crate::smoother::{Structure, Variant};
use crate::solve::Solve;
use kingpost_multigrid::{Dimension, Precision};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::collections::BTreeMap;

/// Stacked bars: a bar for each name, with the heights of its parts.
struct Bars {
    caption: String,
    x: &'static str,
    y: &'static str,
    parts: Vec<String>,
    bars: Vec<(String, Vec<f64>)>,
}

fn is_default(record: &Breakdown) -> bool {
    record.structure.is_none() && record.variant == Variant::Fused && record.precision == Precision::Single
}

/// What stands for a record in a bar.
type Parts = dyn Fn(&Breakdown) -> Vec<f64>;

fn by_degree(
    records: &[Breakdown],
    y: &'static str,
    parts: &[&str],
    of: &Parts,
) -> Result<String, PictureError> {
    let mut panels = Vec::new();
    for dimension in [Dimension::Two, Dimension::Three] {
        let mut shown: Vec<&Breakdown> =
            records.iter().filter(|r| r.element.dimension == dimension && is_default(r)).collect();
        shown.sort_by_key(|r| r.element.degree);
        if !shown.is_empty() {
            panels.push(Bars {
                caption: caption(dimension).into(),
                x: "degree k",
                y,
                parts: parts.iter().map(|part| (*part).to_owned()).collect(),
                bars: shown.iter().map(|r| (r.element.degree.to_string(), of(r))).collect(),
            });
        }
    }
    stacked(&panels)
}

fn percent(values: &[f64]) -> Vec<f64> {
    let total: f64 = values.iter().sum();
    values.iter().map(|value| 100.0 * value / total).collect()
}

/// Seconds a billion unknowns of a solve by component, cycles in single precision.
///
/// # Errors
/// No record.
///
/// # Source
/// Cui et al. 2024, Figure 10.
pub fn breakdown_svg(records: &[Breakdown]) -> Result<String, PictureError> {
    by_degree(records, "seconds a billion nodes", &COMPONENTS, &|r| {
        r.components().iter().map(|s| s / (r.nodes as f64 * 1e-9)).collect()
    })
}

/// The same in percent.
///
/// # Errors
/// No record.
///
/// # Source
/// Cui et al. 2024, Figure 11.
pub fn percentages_svg(records: &[Breakdown]) -> Result<String, PictureError> {
    by_degree(records, "% of the solve", &COMPONENTS, &|r| percent(&r.components()))
}

/// Percent of a V-cycle by level.
///
/// # Errors
/// No record.
///
/// # Source
/// Cui et al. 2024, Figure 12.
pub fn levels_svg(records: &[Breakdown]) -> Result<String, PictureError> {
    let names = ["finest level", "the next", "the third", "all below"];
    by_degree(records, "% of a V-cycle", &names, &|r| r.levels().iter().map(|part| 100.0 * part).collect())
}

/// Percent of a solve by component of *Basic* and *Boundary* in three dimensions.
///
/// # Errors
/// No record of them.
///
/// # Source
/// Cui et al. 2024, Figure 16.
pub fn boundary_svg(records: &[Breakdown]) -> Result<String, PictureError> {
    let shown = |caption: &str, variant: Variant, structure: Structure| {
        let is_shown = |r: &&Breakdown| {
            (r.element.dimension, r.variant, r.structure) == (Dimension::Three, variant, Some(structure))
        };
        let mut of: Vec<&Breakdown> = records.iter().filter(is_shown).collect();
        of.sort_by_key(|r| r.element.degree);
        Bars {
            caption: caption.into(),
            x: "degree k",
            y: "% of the solve",
            parts: COMPONENTS.map(str::to_owned).to_vec(),
            bars: of.iter().map(|r| (r.element.degree.to_string(), percent(&r.components()))).collect(),
        }
    };
    let panels = [
        shown("Basic", Variant::Fused, Structure::BASIC),
        shown("Boundary", Variant::Boundary, Structure::CONFLICT_FREE),
    ];
    stacked(&panels.into_iter().filter(|panel| !panel.bars.is_empty()).collect::<Vec<_>>())
}

/// Seconds a billion unknowns of solves from zero in three dimensions over the unknowns, in double and
/// in mixed precision.
///
/// # Errors
/// Fewer than two sizes.
///
/// # Source
/// Cui et al. 2024, Figure 18.
pub fn sizes_svg(solves: &[Solve]) -> Result<String, PictureError> {
    let mut lines: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    for s in solves.iter().filter(|s| s.element.dimension == Dimension::Three && !s.nested && !s.left) {
        let precision = match s.precision {
            Precision::Double => "double",
            Precision::Single => "mixed",
        };
        let at = ((s.nodes as f64).log10(), s.seconds() / (s.nodes as f64 * 1e-9));
        lines.entry(format!("k = {}, {precision}", s.element.degree)).or_default().push(at);
    }
    for line in lines.values_mut() {
        line.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    picture(vec![Panel {
        caption: "Solves in three dimensions".into(),
        x: "log10 of nodes",
        y: "seconds a billion nodes",
        lines: lines.into_iter().collect(),
    }])
}

/// TFLOP/s of the operations of the finest level over operations a byte of DRAM, both as log10, in
/// three dimensions, a point a degree, with the roof.
///
/// # Shapes and units
/// `bandwidth`: bytes of DRAM a second; `peak`: operations a second.
///
/// # Errors
/// No record, a kernel that cannot be counted.
///
/// # Source
/// Cui et al. 2024, Figure 19.
pub fn roofline_svg(records: &[Breakdown], bandwidth: f64, peak: f64) -> Result<String, PictureError> {
    let mut lines: Vec<(String, Vec<(f64, f64)>)> =
        OPERATIONS.iter().map(|name| ((*name).to_owned(), Vec::new())).collect();
    let mut last = 1.0_f64;
    for r in records.iter().filter(|r| r.element.dimension == Dimension::Three && is_default(r)) {
        for (work, (_, line)) in works(r)?.iter().zip(&mut lines) {
            let intensity = work.flops / work.bytes;
            last = last.max(intensity);
            line.push((intensity.log10(), (work.flops / work.seconds * 1e-9).log10()));
        }
    }
    for (_, line) in &mut lines {
        line.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    let roof = |x: f64| (x, ((10.0_f64.powf(x) * bandwidth).min(peak) * 1e-9).log10());
    let ridge = (peak / bandwidth).log10();
    lines.push(("roof".into(), vec![roof(0.0), roof(ridge), roof(last.log10().max(ridge))]));
    picture(vec![Panel {
        caption: "DRAM, three dimensions".into(),
        x: "log10 of operations a byte",
        y: "log10 of GFLOP/s",
        lines,
    }])
}

fn stacked(panels: &[Bars]) -> Result<String, PictureError> {
    if panels.is_empty() {
        return Err(PictureError::Empty);
    }
    drawing(panels.len(), &|at, part| draw_bars(part, &panels[at]))
}

fn draw_bars(
    part: &DrawingArea<SVGBackend<'_>, Shift>,
    panel: &Bars,
) -> Result<(), Box<dyn std::error::Error>> {
    let n = panel.bars.len() as f64;
    let top = panel.bars.iter().map(|(_, parts)| parts.iter().sum::<f64>()).fold(0.0, f64::max) * 1.08;
    let mut chart = ChartBuilder::on(part)
        .caption(&panel.caption, (font(), 18))
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(60)
        .build_cartesian_2d(-0.6..1.5 * n, 0.0..top)?;
    let name = |x: &f64| {
        let bar = if x.fract() == 0.0 && *x >= 0.0 { panel.bars.get(*x as usize) } else { None };
        bar.map_or_else(String::new, |(name, _)| name.clone())
    };
    chart
        .configure_mesh()
        .x_desc(panel.x)
        .y_desc(panel.y)
        .x_labels(2 * panel.bars.len() + 2)
        .x_label_formatter(&name)
        .light_line_style(WHITE)
        .bold_line_style(RGBColor(225, 225, 225))
        .label_style((font(), 13))
        .draw()?;
    for (at, (_, parts)) in panel.bars.iter().enumerate() {
        let x = at as f64;
        let mut bottom = 0.0;
        for (k, height) in parts.iter().enumerate() {
            let corners = [(x - 0.35, bottom), (x + 0.35, bottom + height)];
            chart.draw_series([Rectangle::new(corners, colour(k).filled())])?;
            bottom += height;
        }
    }
    for (k, label) in panel.parts.iter().enumerate() {
        let style = (font(), 13).into_font().color(&colour(k)).pos(Pos::new(HPos::Left, VPos::Center));
        let at = (n - 0.3, top * (0.95 - 0.05 * k as f64));
        chart.draw_series([Text::new(format!("■ {label}"), at, style)])?;
    }
    Ok(())
}
