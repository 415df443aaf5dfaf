//! Rates over the degree, a line a kernel, as the publication draws them.

use crate::record::Record;
use kingpost::autotune::{COLOURS, FONT};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::collections::BTreeMap;

/// Why there is no picture.
#[derive(Debug, thiserror::Error)]
pub enum PictureError {
    /// No kernel was measured.
    #[error("there is nothing to draw: no record has a time")]
    Empty,
    /// The drawing library failed.
    #[error("bug of the study: the picture could not be drawn: {0}")]
    Draw(String),
}

const SIZE: (u32, u32) = (860, 540);
const DARK: RGBColor = RGBColor(30, 30, 30);

/// One line of a picture: its label, and GFLOP/s over the degree.
struct Line {
    label: String,
    points: BTreeMap<usize, f64>,
}

type Failure = Box<dyn std::error::Error>;

/// GFLOP/s over the degree of the kernels in `records`, which share problem, arrangement of
/// work-items and number of elements, below the streaming roofline.
///
/// # Errors
/// No record with a time.
///
/// # Source
/// Świrydowicz et al. 2019, Figures 3, 7, 9 and 11.
pub fn rates_svg(title: &str, records: &[&Record]) -> Result<String, PictureError> {
    let mut lines: BTreeMap<u32, Line> = BTreeMap::new();
    let mut roof = BTreeMap::new();
    for record in records {
        let (Some(kernel), Some(rate), Some(stream)) =
            (record.tuned(), record.flops_per_s(), record.streaming())
        else {
            continue;
        };
        let line = lines
            .entry(kernel.number)
            .or_insert_with(|| Line { label: format!("kernel {}", kernel.number), points: BTreeMap::new() });
        line.points.insert(record.degree, rate / 1e9);
        roof.insert(record.degree, stream / 1e9);
    }
    let lines: Vec<Line> = lines.into_values().collect();
    if lines.is_empty() {
        return Err(PictureError::Empty);
    }
    let mut svg = String::new();
    draw(&mut svg, title, &lines, &roof).map_err(|e| PictureError::Draw(e.to_string()))?;
    Ok(svg)
}

fn draw(svg: &mut String, title: &str, lines: &[Line], roof: &BTreeMap<usize, f64>) -> Result<(), Failure> {
    let area = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let all = || lines.iter().map(|l| &l.points).chain([roof]).flatten();
    let top = all().fold(0.0_f64, |top, (_, rate)| top.max(*rate)) * 1.06;
    let (first, last) = all().fold((usize::MAX, 0), |(a, b), (d, _)| (a.min(*d), b.max(*d)));
    let x = first as f64 - 0.5..last as f64 + 2.6;
    let mut chart = ChartBuilder::on(&area)
        .caption(title, (FONT, 18))
        .margin(14)
        .x_label_area_size(44)
        .y_label_area_size(72)
        .build_cartesian_2d(x, 0.0..top)?;
    chart
        .configure_mesh()
        .x_desc("degree N")
        .y_desc("GFLOP/s")
        .x_labels(last - first + 4)
        .x_label_formatter(&|x| {
            if x.fract() == 0.0 && *x <= last as f64 { format!("{x:.0}") } else { String::new() }
        })
        .y_label_formatter(&|y| format!("{y:.0}"))
        .light_line_style(WHITE)
        .bold_line_style(RGBColor(225, 225, 225))
        .label_style((FONT, 13))
        .draw()?;
    let points = |line: &BTreeMap<usize, f64>| -> Vec<(f64, f64)> {
        line.iter().map(|(degree, rate)| (*degree as f64, *rate)).collect()
    };
    chart.draw_series(LineSeries::new(points(roof), DARK.stroke_width(2)))?;
    for (k, line) in lines.iter().enumerate() {
        let colour = COLOURS[k % COLOURS.len()];
        let style = if k < COLOURS.len() { colour.filled() } else { colour.stroke_width(2) };
        chart.draw_series(LineSeries::new(points(&line.points), colour.stroke_width(2)))?;
        chart.draw_series(points(&line.points).into_iter().map(|at| Circle::new(at, 3, style)))?;
    }
    // the legend, at the right, from the roof down
    let left = last as f64 + 0.7;
    let style =
        |colour: &RGBColor| (FONT, 13).into_font().color(colour).pos(Pos::new(HPos::Left, VPos::Center));
    let labels = std::iter::once(("copy", DARK))
        .chain(lines.iter().enumerate().map(|(k, l)| (l.label.as_str(), COLOURS[k % COLOURS.len()])));
    for (k, (label, colour)) in labels.enumerate() {
        let y = top * (0.96 - 0.05 * k as f64);
        let hollow = k > COLOURS.len();
        let label = if hollow { format!("○ {label}") } else { format!("● {label}") };
        chart.draw_series([Text::new(label, (left, y), style(&colour))])?;
    }
    area.present()?;
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::record::Outcome;

    #[test]
    fn the_picture_has_a_line_for_each_kernel_and_the_roof() {
        let record = |kernel: &str, degree: usize| Record {
            kernel: kernel.into(),
            degree,
            precision: crate::problem::Precision::Double,
            elements: 8,
            device: "d".into(),
            driver: "v".into(),
            clock_mhz: 1,
            operations: 1_000_000,
            bytes: 1,
            shared_bytes: 1,
            source: String::new(),
            outcome: Outcome::Measured {
                median_s: 2e-3,
                min_s: 1e-3,
                max_s: 3e-3,
                runs: 3,
                copy_s: 1e-3,
                error: 1e-16,
                resources: None,
            },
        };
        let records = [record("bp35.2d.1", 3), record("bp35.2d.1", 4), record("bp35.2d.10", 3)];
        let svg = rates_svg("BP3.5", &records.iter().collect::<Vec<_>>()).unwrap();
        for word in ["<svg", "BP3.5", "● copy", "● kernel 1", "● kernel 10", "degree N"] {
            assert!(svg.contains(word), "no `{word}`: {svg}");
        }
        assert_eq!(records[0].flops_per_s(), Some(4e9));
        assert_eq!(records[0].streaming(), Some(8e9));
        assert!(matches!(rates_svg("none", &[]), Err(PictureError::Empty)));
    }
}
