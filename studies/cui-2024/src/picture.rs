//! Rates of smoothing steps as the publication draws them.

use crate::published::Published;
use crate::smoother::{Structure, Variant};
use crate::{Record, flops_of_patch};
use kingpost::analysis::stats::{StatsError, bank_traffic};
use kingpost::autotune::{COLOURS, FONT};
use kingpost_multigrid::schedules;
use kingpost_multigrid::{Dimension, MultigridError, Precision};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::collections::BTreeMap;

/// Why there is no picture.
#[derive(Debug, thiserror::Error)]
pub enum PictureError {
    /// Nothing was measured.
    #[error("there is nothing to draw: no record is of this figure")]
    Empty,
    /// A kernel is not made.
    #[error(transparent)]
    Multigrid(#[from] MultigridError),
    /// Its accesses are not counted.
    #[error(transparent)]
    Stats(#[from] StatsError),
    /// The drawing library failed.
    #[error("bug of the study: the picture could not be drawn: {0}")]
    Draw(String),
}

const PANEL: (u32, u32) = (640, 460);

type Failure = Box<dyn std::error::Error>;
type Line = Vec<(f64, f64)>;

/// A diagram: its lines by label, each from left to right.
pub(crate) struct Panel {
    pub(crate) caption: String,
    pub(crate) x: &'static str,
    pub(crate) y: &'static str,
    pub(crate) lines: Vec<(String, Line)>,
}

/// The name of a kernel in a picture.
fn label(record: &Record) -> String {
    let structure = match record.structure {
        Structure::Of(schedules::Structure::Blocks) => "blocks",
        Structure::Of(schedules::Structure::Layers) => "layers",
        Structure::Of(schedules::Structure::Nodes) => "nodes",
        Structure::Of(schedules::Structure::Linear) => "linear",
        Structure::Published(Published::Basic) => "Basic",
        Structure::Published(Published::LinearIndexing) => "Linear indexing",
        Structure::Published(Published::ConflictFree) => "Conflict free",
        Structure::Of(schedules::Structure::Lines { .. }) => "lines",
        Structure::Of(schedules::Structure::Instructions { .. }) => "matrix instructions",
        Structure::Of(schedules::Structure::Planes { .. }) => "planes",
    };
    match record.variant {
        Variant::Fused => structure.to_owned(),
        Variant::Blended => format!("Blended, {structure}"),
        Variant::Global => format!("Global, {structure}"),
        Variant::Separate => format!("Separate, {structure}"),
        Variant::Boundary => format!("Boundary, {structure}"),
        Variant::Inverse => "inverse matrix".to_owned(),
        Variant::Point => "points".to_owned(),
        Variant::MoveFused => format!("Fused, data only, {structure}"),
        Variant::MoveSeparate => format!("Separate, data only, {structure}"),
    }
}

pub(crate) const fn caption(dimension: Dimension) -> &'static str {
    match dimension {
        Dimension::Two => "Two dimensions",
        Dimension::Three => "Three dimensions",
    }
}

/// Billions of nodes a second over the degree, the best record of a kernel and degree: a panel a
/// dimension, a line a kernel.
///
/// # Errors
/// No record.
///
/// # Source
/// Cui et al. 2024, Figures 3, 5, 9, 15 and 17.
pub fn rates_svg(records: &[Record]) -> Result<String, PictureError> {
    let mut panels = Vec::new();
    for dimension in [Dimension::Two, Dimension::Three] {
        let mut lines: BTreeMap<String, BTreeMap<usize, f64>> = BTreeMap::new();
        for r in
            records.iter().filter(|r| r.element.dimension == dimension && r.precision == Precision::Double)
        {
            let best = lines.entry(label(r)).or_default().entry(r.element.degree).or_default();
            *best = best.max(r.rate());
        }
        let points = |line: BTreeMap<usize, f64>| line.into_iter().map(|(k, y)| (k as f64, y)).collect();
        let lines = lines.into_iter().map(|(label, line)| (label, points(line))).collect();
        panels.push(Panel {
            caption: caption(dimension).into(),
            x: "degree k",
            y: "billions of nodes a second",
            lines,
        });
    }
    picture(panels)
}

/// Billions of nodes a second over the patches of a group, of fused lines: a panel a dimension, a
/// line a degree.
///
/// # Errors
/// No record of lines.
///
/// # Source
/// Cui et al. 2024, Figures 7 and 8.
pub fn patches_svg(records: &[Record]) -> Result<String, PictureError> {
    let mut panels = Vec::new();
    for dimension in [Dimension::Two, Dimension::Three] {
        let mut lines: BTreeMap<usize, BTreeMap<u32, f64>> = BTreeMap::new();
        let is_shown = |r: &&Record| {
            r.element.dimension == dimension
                && r.variant == Variant::Fused
                && r.precision == Precision::Double
        };
        for r in records.iter().filter(is_shown) {
            if r.structure.is_lines() {
                let patches = r.structure.patches();
                let best = lines.entry(r.element.degree).or_default().entry(patches).or_default();
                *best = best.max(r.rate());
            }
        }
        let points =
            |line: BTreeMap<u32, f64>| line.into_iter().map(|(n, y)| (f64::from(n).log2(), y)).collect();
        let lines = lines.into_iter().map(|(k, line)| (format!("k = {k}"), points(line))).collect();
        panels.push(Panel {
            caption: caption(dimension).into(),
            x: "log2 of patches a group",
            y: "billions of nodes a second",
            lines,
        });
    }
    picture(panels)
}

/// TFLOP/s of the fused kernels in three dimensions over the degree, the best record of each, and
/// what the bandwidth of local memory and the peak allow it (4.3). Bytes are those of the
/// wavefronts that the model of banks counts, conflicts among them.
///
/// # Shapes and units
/// `bandwidth`: bytes of local memory a second, of the whole card; `peak`: operations a second.
///
/// # Errors
/// No record of such a kernel, a kernel that cannot be counted.
///
/// # Source
/// Cui et al. 2024, equation (4.3) and Figure 20.
pub fn local_roofline_svg(records: &[Record], bandwidth: f64, peak: f64) -> Result<String, PictureError> {
    let mut best: BTreeMap<String, BTreeMap<usize, &Record>> = BTreeMap::new();
    for r in records {
        let is_shown =
            [Structure::BASIC, Structure::CONFLICT_FREE].contains(&r.structure) || r.structure.is_lines();
        let is_fused = r.variant == Variant::Fused && r.precision == Precision::Double;
        if is_shown && is_fused && r.element.dimension == Dimension::Three {
            let so_far = best.entry(label(r)).or_default().entry(r.element.degree).or_insert(r);
            if r.rate() > so_far.rate() {
                *so_far = r;
            }
        }
    }
    let mut lines = Vec::new();
    for (label, of_degree) in best {
        let (mut measured, mut roof) = (Line::new(), Line::new());
        for (degree, r) in of_degree {
            measured.push((degree as f64, r.flops / r.median_s * 1e-12));
            roof.push((degree as f64, (local_intensity(r)? * bandwidth).min(peak) * 1e-12));
        }
        lines.extend([(format!("{label}, roof"), roof), (label, measured)]);
    }
    picture(vec![Panel {
        caption: "Local memory, three dimensions".into(),
        x: "degree k",
        y: "TFLOP/s",
        lines,
    }])
}

/// Bytes of a wavefront: 32 banks of four.
const WAVEFRONT: f64 = 128.0;

/// Operations of the kernel as it is written a byte of local memory.
fn local_intensity(record: &Record) -> Result<f64, PictureError> {
    let mapped = record.structure.of_fused(record.element, record.precision)?;
    let patches = i64::from(record.structure.patches());
    // one group: patches of a colour along the first axis, two cells apart
    let params = [("n", 2 * patches), ("c0", 0), ("c1", 0), ("c2", 0)];
    let params = params.map(|(name, at)| (name.to_owned(), at)).into();
    let wavefronts: u64 = bank_traffic(mapped.kernel(), &params)?.iter().map(|t| t.wavefronts).sum();
    let all = (patches as f64).powi(record.element.dimension.axes() as i32);
    Ok(flops_of_patch(record.element) * all / (WAVEFRONT * wavefronts as f64))
}

pub(crate) fn picture(panels: Vec<Panel>) -> Result<String, PictureError> {
    let panels: Vec<Panel> = panels.into_iter().filter(|panel| !panel.lines.is_empty()).collect();
    if panels.iter().all(|panel| panel.lines.iter().all(|(_, line)| line.len() < 2)) {
        return Err(PictureError::Empty);
    }
    drawing(panels.len(), &|at, part| draw_panel(part, &panels[at]))
}

/// Draws a panel, by its number.
type DrawPanel<'p> = dyn Fn(usize, &DrawingArea<SVGBackend<'_>, Shift>) -> Result<(), Failure> + 'p;

/// `panels` panels side by side.
pub(crate) fn drawing(panels: usize, draw: &DrawPanel<'_>) -> Result<String, PictureError> {
    let mut svg = String::new();
    draw_all(&mut svg, panels, draw).map_err(|e| PictureError::Draw(e.to_string()))?;
    Ok(svg)
}

fn draw_all(svg: &mut String, panels: usize, draw: &DrawPanel<'_>) -> Result<(), Failure> {
    let area = SVGBackend::with_string(svg, (PANEL.0 * u32::try_from(panels)?, PANEL.1)).into_drawing_area();
    area.fill(&WHITE)?;
    for (at, part) in area.split_evenly((1, panels)).iter().enumerate() {
        draw(at, part)?;
    }
    area.present()?;
    Ok(())
}

/// The font of pictures.
pub(crate) const fn font() -> &'static str {
    FONT
}

/// The colour of the line or part of this number.
pub(crate) const fn colour(k: usize) -> RGBColor {
    COLOURS[k % COLOURS.len()]
}

fn draw_panel(part: &DrawingArea<SVGBackend<'_>, Shift>, panel: &Panel) -> Result<(), Failure> {
    let all = || panel.lines.iter().flat_map(|(_, line)| line);
    let top = all().fold(0.0, |top: f64, (_, y)| top.max(*y)) * 1.08;
    let (first, last) = all().fold((f64::MAX, f64::MIN), |(a, b), (x, _)| (a.min(*x), b.max(*x)));
    let width = (last - first).max(1e-9);
    let mut chart = ChartBuilder::on(part)
        .caption(&panel.caption, (FONT, 18))
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(60)
        .build_cartesian_2d(first - 0.04 * width..last + 0.45 * width, 0.0..top)?;
    chart
        .configure_mesh()
        .x_desc(panel.x)
        .y_desc(panel.y)
        .x_labels(12)
        .x_label_formatter(&|x| {
            if x.fract() == 0.0 && *x <= last { format!("{x:.0}") } else { String::new() }
        })
        .light_line_style(WHITE)
        .bold_line_style(RGBColor(225, 225, 225))
        .label_style((FONT, 13))
        .draw()?;
    for (k, (label, line)) in panel.lines.iter().enumerate() {
        let colour = COLOURS[k % COLOURS.len()];
        let style = if k < COLOURS.len() { colour.filled() } else { colour.stroke_width(2) };
        chart.draw_series(LineSeries::new(line.iter().copied(), colour.stroke_width(2)))?;
        if line.len() <= 20 {
            chart.draw_series(line.iter().map(|at| Circle::new(*at, 3, style)))?;
        }
        let mark = if k < COLOURS.len() { '●' } else { '○' };
        let style = (FONT, 13).into_font().color(&colour).pos(Pos::new(HPos::Left, VPos::Center));
        let at = (last + 0.05 * width, top * (0.95 - 0.05 * k as f64));
        chart.draw_series([Text::new(format!("{mark} {label}"), at, style)])?;
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use kingpost_multigrid::Element;

    fn record(degree: usize, structure: Structure, median_s: f64) -> Record {
        Record {
            element: Element::new(Dimension::Three, degree).unwrap(),
            cells: 4,
            nodes: 1_000_000,
            variant: Variant::Fused,
            structure,
            precision: Precision::Double,
            device: "d".into(),
            driver: "v".into(),
            clock_mhz: 1,
            source: String::new(),
            resources: None,
            median_s,
            min_s: median_s,
            max_s: median_s,
            runs: 1,
            error: 0.0,
            flops: 1e9,
        }
    }

    #[test]
    fn pictures_have_a_line_for_each_kernel() {
        let records = [
            record(1, Structure::CONFLICT_FREE, 1e-3),
            record(2, Structure::CONFLICT_FREE, 2e-3),
            record(1, Structure::Of(schedules::Structure::lines(1)), 1e-3),
            record(1, Structure::Of(schedules::Structure::lines(2)), 5e-4),
            record(2, Structure::Of(schedules::Structure::lines(1)), 1e-3),
        ];
        for (svg, words) in [
            (rates_svg(&records), &["Conflict free", "lines", "degree k"][..]),
            (patches_svg(&records), &["k = 1", "k = 2", "patches a group"]),
            (local_roofline_svg(&records, 33e12, 33e12), &["lines, roof", "Conflict free, roof", "TFLOP/s"]),
        ] {
            let svg = svg.unwrap();
            assert!(words.iter().all(|word| svg.contains(word)), "{words:?}: {svg}");
        }
        assert!(matches!(rates_svg(&[]), Err(PictureError::Empty)));
        // a patch of degree 1: every wavefront has at most 128 bytes
        assert!(local_intensity(&records[0]).unwrap() > 0.0);
    }
}
