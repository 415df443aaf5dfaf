//! A roofline as an SVG picture.

use crate::figures::FONT;
use crate::roofline::Work;
use plotters::coord::ranged1d::{KeyPointHint, Ranged};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use purlin_runtime::DeviceModel;
use std::ops::Range;

/// A measured kernel on the picture.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Its name.
    pub label: String,
    /// What it does.
    pub work: Work,
    /// Operations a second that were measured, FLOP/s.
    pub flops_per_s: f64,
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
    #[error("bug of purlin: the roofline could not be drawn: {0}")]
    Draw(String),
}

const SIZE: (u32, u32) = (860, 560);
const ROOF: RGBColor = RGBColor(30, 30, 30);
const LOCAL: RGBColor = RGBColor(190, 90, 20);
const MEASURED: RGBColor = RGBColor(20, 90, 170);

/// The roofline of a device with measured kernels on it: GFLOP/s over FLOP a byte, both
/// logarithmic.
///
/// A short bar above a point is the ceiling of the model of Kulkarni & Klöckner 2025 where it lies
/// below the roof.
///
/// # Errors
/// A figure that is not positive.
pub fn roofline_svg(model: &DeviceModel, points: &[Point]) -> Result<String, PlotError> {
    check(model, points)?;
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        draw(&area, model, points).map_err(|e| PlotError::Draw(e.to_string()))?;
        area.present().map_err(|e| PlotError::Draw(e.to_string()))?;
    }
    Ok(svg)
}

fn check(model: &DeviceModel, points: &[Point]) -> Result<(), PlotError> {
    let refused = |what: String| Err(PlotError::NotPositive { what });
    if !model.is_plausible() {
        return refused(format!("the ceilings of `{}`", model.name));
    }
    for point in points {
        let (x, y) = (point.work.intensity(), point.flops_per_s);
        if !(x.is_finite() && x > 0.0 && y.is_finite() && y > 0.0) {
            return refused(format!("{x} FLOP/B at {y} FLOP/s for `{}`", point.label));
        }
    }
    Ok(())
}

/// Whole decades that hold every value, with room around.
fn decades(values: impl Iterator<Item = f64>) -> Range<f64> {
    let (low, high) = values.fold((f64::INFINITY, 0.0_f64), |(l, h), v| (l.min(v), h.max(v)));
    10f64.powf((low / 1.5).log10().floor())..10f64.powf((high * 1.5).log10().ceil())
}

/// A logarithmic axis whose key points are powers of ten.
struct Decades(Range<f64>);

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
        if *value >= 1.0 { format!("{value:.0}") } else { format!("{value}") }
    }
}

/// Three significant digits.
fn figure(x: f64) -> String {
    let decimals = (2 - x.abs().log10().floor() as i64).clamp(0, 6) as usize;
    format!("{x:.decimals$}")
}

type Failure = Box<dyn std::error::Error>;
type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

fn draw(area: &Area<'_>, model: &DeviceModel, points: &[Point]) -> Result<(), Failure> {
    area.fill(&WHITE)?;
    let ridge = model.fp64_flops_per_s / model.dram_bytes_per_s;
    let x = decades(points.iter().map(|p| p.work.intensity()).chain([ridge / 4.0, ridge * 4.0]));
    let peak = model.fp64_flops_per_s / 1e9;
    let y = decades(points.iter().map(|p| p.flops_per_s / 1e9).chain([peak, peak / 30.0]));
    let mut chart = ChartBuilder::on(area)
        .caption(format!("Roofline of {}", model.name), (FONT, 20))
        .margin(14)
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

    for point in points {
        let (px, py) = (point.work.intensity(), point.flops_per_s / 1e9);
        let tables = point.work.table_roofline(model) / 1e9;
        if tables < point.work.true_roofline(model) / 1e9 {
            let bar = [(px / 1.15, tables), (px * 1.15, tables)];
            chart.draw_series(LineSeries::new(bar, LOCAL.stroke_width(3)))?;
            let label = "tables in local memory";
            let place = (px * 1.2, tables);
            chart.draw_series([Text::new(label, place, text(&LOCAL, HPos::Left, VPos::Center))])?;
        }
        chart.draw_series([Circle::new((px, py), 5, MEASURED.filled())])?;
        let part = 100.0 * point.flops_per_s / point.work.true_roofline(model);
        let label = format!("{}: {} GFLOP/s, {part:.1} % of the roof", point.label, figure(py));
        let right = px > (x.start * x.end).sqrt();
        let (h, factor) = if right { (HPos::Right, 1.0 / 1.12) } else { (HPos::Left, 1.12) };
        chart.draw_series([Text::new(label, (px * factor, py), text(&MEASURED, h, VPos::Center))])?;
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::known_devices;

    #[test]
    fn the_picture_names_device_and_kernel() {
        let work = Work { flops: 100, dram_bytes: 10, table_bytes: 50 };
        let point = Point { label: "laplace".into(), work, flops_per_s: 1e12 };
        for model in known_devices().unwrap() {
            let svg = roofline_svg(&model, std::slice::from_ref(&point)).unwrap();
            assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
            assert!(svg.contains(&model.name) && svg.contains("laplace: 1000 GFLOP/s"), "{svg}");
        }
        let broken = Point { flops_per_s: 0.0, ..point };
        assert!(matches!(
            roofline_svg(&known_devices().unwrap()[0], &[broken]),
            Err(PlotError::NotPositive { .. })
        ));
    }
}
