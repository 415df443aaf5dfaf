//! A roofline as an SVG picture.

use crate::lettering::{fitted, wrapped};
use crate::roofline::Work;
use kingpost_runtime::DeviceModel;
use plotters::coord::ranged1d::{KeyPointHint, Ranged};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::ops::Range;

/// The font of all pictures.
pub const FONT: &str = "sans-serif";

/// A measured kernel on the picture.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Its name.
    pub label: String,
    /// What it does, as it is written.
    pub work: Work,
    /// FLOP that are executed, where they can be counted.
    pub executed_flops: Option<u64>,
    /// Seconds of a launch.
    pub seconds: f64,
}

impl Point {
    /// FLOP/B and GFLOP/s of what is executed.
    fn executed(&self) -> (f64, f64) {
        self.place(&self.work.executed(self.executed_flops))
    }

    /// FLOP/B and GFLOP/s of what is written.
    fn useful(&self) -> (f64, f64) {
        self.place(&self.work)
    }

    fn place(&self, work: &Work) -> (f64, f64) {
        (work.intensity(), work.flops as f64 / self.seconds / 1e9)
    }

    /// What is said of it below the picture.
    fn text(&self, model: &DeviceModel) -> String {
        let shares = self.work.shares(self.executed_flops, self.seconds, model);
        let why = |why: Option<&str>| why.map_or_else(String::new, |why| format!(" (above 100 %: {why})"));
        let (executed, useful) = (self.executed().1, self.useful().1);
        let part = |share: crate::Share| format!("{share} of the roof{}", why(share.why_above));
        let mut text = format!("{}: {} GFLOP/s", self.label, figure(executed));
        if executed == useful {
            text += &format!(", {}", part(shares.executed));
        } else {
            text += &format!(" executed, {}; ", part(shares.executed));
            text += &format!("{} GFLOP/s as written, {}", figure(useful), part(shares.useful));
        }
        text
    }
}

/// Why there is no picture.
#[derive(Debug, thiserror::Error)]
pub enum PlotError {
    /// A figure that has no place on logarithmic axes.
    #[error("a roofline needs positive numbers, found {what}")]
    NotPositive {
        /// The figure.
        what: String,
    },
    /// The drawing library failed.
    #[error("bug of kingpost: the roofline could not be drawn: {0}")]
    Draw(String),
}

const WIDTH: u32 = 860;
/// Height without what is said below.
const HEIGHT: u32 = 560;
/// Of what is said below.
const LETTERS: u32 = 13;
const LINE: u32 = 18;
const ROOF: RGBColor = RGBColor(30, 30, 30);
const LOCAL: RGBColor = RGBColor(190, 90, 20);
const MEASURED: RGBColor = RGBColor(20, 90, 170);

/// The roofline of a device with measured kernels on it: GFLOP/s over FLOP a byte, both
/// logarithmic.
///
/// A filled circle is what is executed, a hollow one what is written, where that is something else.
/// A short bar is the ceiling of the model of Kulkarni & Klöckner 2025 for what is written, where
/// it lies below the roof. Names and figures stand below the picture, however long and many they
/// are; several points have numbers.
///
/// # Errors
/// A figure that is not positive.
pub fn roofline_svg(model: &DeviceModel, points: &[Point]) -> Result<String, PlotError> {
    check(model, points)?;
    let lines = below(model, points);
    let size = (WIDTH, HEIGHT + LINE * lines.len() as u32 + if lines.is_empty() { 0 } else { 12 });
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        draw(&area, model, points, &lines).map_err(|e| PlotError::Draw(e.to_string()))?;
        area.present().map_err(|e| PlotError::Draw(e.to_string()))?;
    }
    Ok(svg)
}

/// The lines below the picture.
fn below(model: &DeviceModel, points: &[Point]) -> Vec<String> {
    let mut lines = Vec::new();
    for (k, point) in points.iter().enumerate() {
        let number = if points.len() > 1 { format!("{}  ", k + 1) } else { String::new() };
        let text = wrapped(&point.text(model), LETTERS, WIDTH - 80);
        let indented = text.into_iter().enumerate();
        lines.extend(indented.map(|(n, line)| if n == 0 { number.clone() + &line } else { line }));
    }
    if points.iter().any(|p| p.executed().1 != p.useful().1) {
        lines.push("filled: operations that are executed; hollow: those that are written".into());
    }
    if points.iter().any(|p| has_bar(model, p)) {
        lines.push("short bars: as written, with tables in local memory".into());
    }
    lines
}

/// Whether tables in local memory bound a kernel more than its roof does.
fn has_bar(model: &DeviceModel, point: &Point) -> bool {
    point.work.table_roofline(model) < point.work.true_roofline(model)
}

fn check(model: &DeviceModel, points: &[Point]) -> Result<(), PlotError> {
    let refused = |what: String| Err(PlotError::NotPositive { what });
    if !model.is_plausible() {
        return refused(format!("the ceilings of `{}`", model.name));
    }
    for point in points {
        for (x, y) in [point.executed(), point.useful()] {
            if !(x.is_finite() && x > 0.0 && y.is_finite() && y > 0.0) {
                return refused(format!("{x} FLOP/B at {y} GFLOP/s for `{}`", point.label));
            }
        }
    }
    Ok(())
}

/// Whole decades that hold every value, with room around.
pub(crate) fn decades(values: impl Iterator<Item = f64>) -> Range<f64> {
    let (low, high) = values.fold((f64::INFINITY, 0.0_f64), |(l, h), v| (l.min(v), h.max(v)));
    10f64.powf((low / 1.5).log10().floor())..10f64.powf((high * 1.5).log10().ceil())
}

/// A logarithmic axis whose key points are powers of ten.
pub(crate) struct Decades(pub(crate) Range<f64>);

impl Ranged for Decades {
    type FormatOption = plotters::coord::ranged1d::NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let part = (value / self.0.start).ln() / (self.0.end / self.0.start).ln();
        limit.0 + (part * f64::from(limit.1 - limit.0)).round() as i32
    }

    fn key_points<H: KeyPointHint>(&self, _: H) -> Vec<f64> {
        let last = self.0.end.log10().round() as i32;
        (self.0.start.log10().round() as i32..=last).map(|k| 10f64.powi(k)).collect()
    }

    fn range(&self) -> Range<f64> {
        self.0.clone()
    }
}

impl plotters::coord::ranged1d::ValueFormatter<f64> for Decades {
    fn format(value: &f64) -> String {
        match *value {
            v if !(1e-3..1e5).contains(&v) => format!("{v:.0e}"),
            v if v >= 1.0 => format!("{v:.0}"),
            v => format!("{v}"),
        }
    }
}

/// Three significant digits.
fn figure(x: f64) -> String {
    let decimals = (2 - x.abs().log10().floor() as i64).clamp(0, 6) as usize;
    format!("{x:.decimals$}")
}

type Failure = Box<dyn std::error::Error>;
type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

fn draw(area: &Area<'_>, model: &DeviceModel, points: &[Point], lines: &[String]) -> Result<(), Failure> {
    area.fill(&WHITE)?;
    let (upper, lower) = area.split_vertically(HEIGHT);
    let ridge = model.fp64_flops_per_s / model.dram_bytes_per_s;
    let places: Vec<(f64, f64)> = points.iter().flat_map(|p| [p.executed(), p.useful()]).collect();
    let x = decades(places.iter().map(|p| p.0).chain([ridge / 4.0, ridge * 4.0]));
    let peak = model.fp64_flops_per_s / 1e9;
    let bars = points.iter().filter(|p| has_bar(model, p)).map(|p| p.work.table_roofline(model) / 1e9);
    let y = decades(places.iter().map(|p| p.1).chain(bars).chain([peak, peak / 30.0]));
    let mut chart = ChartBuilder::on(&upper)
        .caption(fitted(&format!("Roofline of {}", model.name), 20, WIDTH - 40), (FONT, 20))
        .margin(14)
        .margin_right(30)
        .x_label_area_size(46)
        .y_label_area_size(72)
        .build_cartesian_2d(Decades(x.clone()), Decades(y.clone()))?;
    chart
        .configure_mesh()
        .x_desc("operations a byte of memory, FLOP/B")
        .y_desc("GFLOP/s")
        .light_line_style(WHITE)
        .bold_line_style(RGBColor(225, 225, 225))
        .label_style((FONT, 14))
        .draw()?;

    let slope = model.dram_bytes_per_s / 1e9;
    // The slanted roof starts at the lower or at the left edge, whichever it meets first.
    let start = x.start.max(y.start / slope);
    let roof = [(start, start * slope), (ridge, peak), (x.end, peak)];
    chart.draw_series(LineSeries::new(roof, ROOF.stroke_width(2)))?;
    let small = (FONT, 14).into_font();
    let text = |colour: &RGBColor, h, v| small.clone().color(colour).pos(Pos::new(h, v));
    let flat = (x.end / 1.1, peak * 1.06);
    let label = format!("FP64 {} GFLOP/s", figure(peak));
    chart.draw_series([Text::new(label, flat, text(&ROOF, HPos::Right, VPos::Bottom))])?;
    let at = (start * ridge).sqrt();
    let label = format!("memory {} GB/s ", figure(slope));
    chart.draw_series([Text::new(label, (at, at * slope * 1.1), text(&ROOF, HPos::Right, VPos::Bottom))])?;

    for (k, point) in points.iter().enumerate() {
        if has_bar(model, point) {
            let (px, tables) = (point.useful().0, point.work.table_roofline(model) / 1e9);
            let bar = [(px / 1.15, tables), (px * 1.15, tables)];
            chart.draw_series(LineSeries::new(bar, LOCAL.stroke_width(3)))?;
        }
        let (executed, useful) = (point.executed(), point.useful());
        if executed != useful {
            chart.draw_series(LineSeries::new([executed, useful], MEASURED.stroke_width(1)))?;
            chart.draw_series([Circle::new(useful, 5, WHITE.filled()), Circle::new(useful, 5, MEASURED)])?;
        }
        chart.draw_series([Circle::new(executed, 5, MEASURED.filled())])?;
        if points.len() > 1 {
            let beside = chart.backend_coord(&executed);
            let style = text(&MEASURED, HPos::Left, VPos::Bottom);
            area.draw(&Text::new((k + 1).to_string(), (beside.0 + 6, beside.1 - 3), style))?;
        }
    }
    write_below(&lower, lines)
}

fn write_below(area: &Area<'_>, lines: &[String]) -> Result<(), Failure> {
    let style = (FONT, LETTERS).into_font().color(&MEASURED).pos(Pos::new(HPos::Left, VPos::Top));
    for (k, line) in lines.iter().enumerate() {
        area.draw(&Text::new(line.clone(), (28, (LINE * k as u32) as i32), style.clone()))?;
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::known_devices;

    fn point(label: &str) -> Point {
        let work = Work { flops: 100, dram_bytes: 10, table_bytes: 50 };
        Point { label: label.into(), work, executed_flops: None, seconds: 1e-10 }
    }

    #[test]
    fn the_picture_names_device_and_kernel() {
        for model in known_devices().unwrap() {
            let svg = roofline_svg(&model, &[point("laplace")]).unwrap();
            assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
            assert!(svg.contains(&model.name) && svg.contains("laplace: 1000 GFLOP/s"), "{svg}");
            let fewer = Point { executed_flops: Some(40), ..point("laplace") };
            let svg = roofline_svg(&model, &[fewer]).unwrap();
            assert!(svg.contains("laplace: 400 GFLOP/s executed, ") && svg.contains("hollow"), "{svg}");
        }
        let model = &known_devices().unwrap()[0];
        assert!(roofline_svg(model, &[]).is_ok());
        for broken in [
            Point { seconds: f64::INFINITY, ..point("x") },
            Point { seconds: 0.0, ..point("x") },
            Point { work: Work { flops: 0, ..point("x").work }, ..point("x") },
        ] {
            assert!(matches!(roofline_svg(model, &[broken]), Err(PlotError::NotPositive { .. })));
        }
    }

    /// No text begins or ends outside the picture, however long names are and wherever points
    /// lie.
    #[test]
    fn nothing_is_cut_off() {
        let long = "straight cells, 32 a group, parts 3, 12 and 6, ".repeat(8);
        for model in known_devices().unwrap() {
            let model = DeviceModel { name: "A processor of a very long name ".repeat(6), ..model };
            for flops in [1, 100, 1_000_000] {
                for count in [0, 1, 2, 30] {
                    let points: Vec<Point> = (0..count)
                        .map(|k| Point {
                            work: Work { flops, dram_bytes: 10 + k, table_bytes: 9_000_000 },
                            executed_flops: Some(flops / 2 + k),
                            ..point(&long)
                        })
                        .collect();
                    let svg = roofline_svg(&model, &points).unwrap();
                    crate::lettering::check_texts(&svg);
                }
            }
        }
    }
}
