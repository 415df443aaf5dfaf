//! Rates over the number of unknowns, a line a degree, as the publication draws them.

use crate::record::Record;
use kingpost::autotune::FONT;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::collections::BTreeMap;

/// Why there is no picture.
#[derive(Debug, thiserror::Error)]
pub enum PictureError {
    /// Nothing was measured.
    #[error("there is nothing to draw: there are no records")]
    Empty,
    /// The drawing library failed.
    #[error("bug of the study: the picture could not be drawn: {0}")]
    Draw(String),
}

const PANEL: (u32, u32) = (520, 460);

type Failure = Box<dyn std::error::Error>;
/// Unknowns and billions of them a second.
type Line = Vec<(f64, f64)>;
/// A line a degree.
type Panel = BTreeMap<usize, Line>;

/// Billions of unknowns a second over their number: a panel a problem, a line a degree; actions in
/// the first row, iterations of conjugate gradients in the second.
///
/// # Errors
/// No record.
///
/// # Source
/// Fischer et al. 2020, Figures 2 to 7.
pub fn rates_svg(records: &[Record]) -> Result<String, PictureError> {
    let mut rows: BTreeMap<bool, BTreeMap<&str, Panel>> = BTreeMap::new();
    for record in records {
        let panel = rows.entry(record.solve.is_some()).or_default().entry(&record.problem).or_default();
        panel.entry(record.degree).or_default().push((record.unknowns as f64, record.rate()));
    }
    if rows.is_empty() {
        return Err(PictureError::Empty);
    }
    let mut svg = String::new();
    draw(&mut svg, &mut rows).map_err(|e| PictureError::Draw(e.to_string()))?;
    Ok(svg)
}

fn draw(svg: &mut String, rows: &mut BTreeMap<bool, BTreeMap<&str, Panel>>) -> Result<(), Failure> {
    let (high, wide) = (rows.len(), rows.values().map(BTreeMap::len).max().unwrap_or(1));
    let size = (PANEL.0 * u32::try_from(wide)?, PANEL.1 * u32::try_from(high)?);
    let area = SVGBackend::with_string(svg, size).into_drawing_area();
    area.fill(&WHITE)?;
    let parts = area.split_evenly((high, wide));
    for (parts, (solves, panels)) in parts.chunks(wide).zip(rows) {
        for (part, (problem, lines)) in parts.iter().zip(panels) {
            let what = if *solves { ", conjugate gradients" } else { "" };
            draw_panel(part, &format!("{}{what}", problem.to_uppercase()), lines)?;
        }
    }
    area.present()?;
    Ok(())
}

fn draw_panel(
    part: &DrawingArea<SVGBackend<'_>, Shift>,
    caption: &str,
    lines: &mut Panel,
) -> Result<(), Failure> {
    lines.values_mut().for_each(|line| line.sort_by(|a, b| a.0.total_cmp(&b.0)));
    let all = || lines.values().flatten();
    let top = all().fold(0.0, |top: f64, (_, rate)| top.max(*rate)) * 1.08;
    let (first, last) = all().fold((f64::MAX, 0.0_f64), |(a, b), (n, _)| (a.min(*n), b.max(*n)));
    let mut chart = ChartBuilder::on(part)
        .caption(caption, (FONT, 18))
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(60)
        .build_cartesian_2d((first * 0.8..last * 3.0).log_scale(), 0.0..top)?;
    chart
        .configure_mesh()
        .x_desc("degrees of freedom")
        .y_desc("GDoF/s")
        .x_label_formatter(&|n| format!("1e{:.0}", n.log10()))
        .y_label_formatter(&|rate| format!("{rate:.0}"))
        .light_line_style(WHITE)
        .bold_line_style(RGBColor(225, 225, 225))
        .label_style((FONT, 13))
        .draw()?;
    let count = lines.len().max(2) as f64 - 1.0;
    for (k, (degree, line)) in lines.iter().enumerate() {
        // one hue after the other, from blue to red
        let colour = HSLColor(0.66 * (1.0 - k as f64 / count), 0.75, 0.42);
        chart.draw_series(LineSeries::new(line.iter().copied(), colour.stroke_width(2)))?;
        chart.draw_series(line.iter().map(|at| Circle::new(*at, 3, colour.filled())))?;
        let style = (FONT, 13).into_font().color(&colour).pos(Pos::new(HPos::Left, VPos::Center));
        let at = line.last().copied().unwrap_or((last, 0.0));
        chart.draw_series([Text::new(format!("p = {degree}"), (at.0 * 1.25, at.1), style)])?;
    }
    Ok(())
}
