//! Results of many cases as pictures: rates against rooflines, and how many cases come how near.

use crate::plot::PlotError;
use crate::record::Record;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// The font of all pictures.
pub const FONT: &str = "sans-serif";
const DARK: RGBColor = RGBColor(30, 30, 30);
const GREY: RGBColor = RGBColor(225, 225, 225);
/// Colours of what is compared in a picture, in the order in which it appears; told apart with all
/// common kinds of sight.
pub const COLOURS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(230, 159, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(213, 94, 0),
    RGBColor(86, 180, 233),
    RGBColor(150, 140, 30),
    RGBColor(110, 110, 110),
];
/// Cases of a row of bars; more go to further rows.
const ROW: usize = 40;

type Failure = Box<dyn std::error::Error>;
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// One measured case.
struct Bar {
    case: String,
    operator: String,
    gflops: f64,
    tables: f64,
    roof: f64,
}

fn bars<M>(records: &[&Record<M>]) -> Result<Vec<Bar>, PlotError> {
    let mut bars = Vec::new();
    for record in records {
        let Some(rate) = record.flops_per_s() else { continue };
        let case = record.workload.case.clone();
        let (tables, roof) = (
            record.workload.work.table_roofline(&record.device),
            record.workload.work.true_roofline(&record.device),
        );
        if ![rate, tables, roof].iter().all(|x| x.is_finite() && *x > 0.0) {
            let what = format!("{rate} FLOP/s below {tables} and {roof} FLOP/s for `{case}`");
            return Err(PlotError::NotPositive { what });
        }
        let operator = case.split('.').next().unwrap_or_default().to_owned();
        bars.push(Bar { case, operator, gflops: rate / 1e9, tables: tables / 1e9, roof: roof / 1e9 });
    }
    if bars.is_empty() {
        return Err(PlotError::NotPositive { what: "no measured case".into() });
    }
    Ok(bars)
}

fn picture(
    size: (u32, u32),
    draw: impl FnOnce(&Area<'_>) -> Result<(), Failure>,
) -> Result<String, PlotError> {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        let drawn = area.fill(&WHITE).map_err(Failure::from).and_then(|()| draw(&area));
        drawn.map_err(|e| PlotError::Draw(e.to_string()))?;
        area.present().map_err(|e| PlotError::Draw(e.to_string()))?;
    }
    Ok(svg)
}

/// A bar for each record, GFLOP/s of the untransformed kernel, with a thick line for the roofline
/// with tables in local memory and a thin one for memory and arithmetic alone; one colour an
/// operator. Give the best record of each case.
///
/// # Errors
/// No measured record, or figures that are not positive.
///
/// # Source
/// Kulkarni & Klöckner 2025, Figure 5.
pub fn bars_svg<M>(title: &str, records: &[&Record<M>]) -> Result<String, PlotError> {
    let bars = bars(records)?;
    let rows: Vec<&[Bar]> = bars.chunks(ROW).collect();
    let longest = rows.iter().map(|r| r.len()).max().unwrap_or(1) as u32;
    let size = (150 + 24 * longest.max(22), 44 + 400 * rows.len() as u32);
    let mut operators: Vec<&str> = Vec::new();
    for bar in &bars {
        if !operators.contains(&bar.operator.as_str()) {
            operators.push(&bar.operator);
        }
    }
    picture(size, |area| {
        let (head, body) = area.split_vertically(44);
        let big = (FONT, 18).into_font().color(&DARK).pos(Pos::new(HPos::Center, VPos::Center));
        head.draw(&Text::new(title.to_owned(), (size.0 as i32 / 2, 22), big))?;
        let parts = body.split_evenly((rows.len(), 1));
        for (k, (part, row)) in parts.iter().zip(&rows).enumerate() {
            draw_row(part, row, &operators, k == 0)?;
        }
        Ok(())
    })
}

fn draw_row(area: &Area<'_>, bars: &[Bar], operators: &[&str], legend: bool) -> Result<(), Failure> {
    let top =
        bars.iter().fold(0.0_f64, |t, b| t.max(b.roof).max(b.gflops)) * if legend { 1.25 } else { 1.08 };
    let mut chart = ChartBuilder::on(area)
        .margin(8)
        .x_label_area_size(150)
        .y_label_area_size(72)
        .build_cartesian_2d(0.0..bars.len() as f64, 0.0..top)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .disable_x_axis()
        .light_line_style(WHITE)
        .bold_line_style(GREY)
        .y_desc("GFLOP/s")
        .y_label_formatter(&|y| format!("{y:.0}"))
        .label_style((FONT, 13))
        .draw()?;
    let colour = |operator: &str| {
        let place = operators.iter().position(|o| *o == operator).unwrap_or(0);
        COLOURS[place % COLOURS.len()]
    };
    for (k, bar) in bars.iter().enumerate() {
        let (left, right) = (k as f64 + 0.12, k as f64 + 0.88);
        let fill = colour(&bar.operator).filled();
        chart.draw_series([Rectangle::new([(left, 0.0), (right, bar.gflops)], fill)])?;
        for (height, width) in [(bar.tables, 2), (bar.roof, 1)] {
            let line = [(left - 0.1, height), (right + 0.1, height)];
            chart.draw_series(LineSeries::new(line, DARK.stroke_width(width)))?;
        }
        let (x, y) = chart.backend_coord(&(k as f64 + 0.5, 0.0));
        let style = (FONT, 12).into_font().transform(FontTransform::Rotate90).color(&DARK);
        let style = style.pos(Pos::new(HPos::Left, VPos::Center));
        area.draw(&Text::new(bar.case.clone(), relative(area, (x, y + 6)), style))?;
    }
    if legend { draw_legend(area, operators, colour) } else { Ok(()) }
}

/// A place of the whole picture as one of `area`.
fn relative(area: &Area<'_>, (x, y): (i32, i32)) -> (i32, i32) {
    let (left, top) = area.get_base_pixel();
    (x - left, y - top)
}

fn draw_legend(
    area: &Area<'_>,
    operators: &[&str],
    colour: impl Fn(&str) -> RGBColor,
) -> Result<(), Failure> {
    let style = (FONT, 13).into_font().color(&DARK).pos(Pos::new(HPos::Left, VPos::Center));
    let (mut x, y) = (90, 18);
    for operator in operators {
        area.draw(&Rectangle::new([(x, y - 6), (x + 12, y + 6)], colour(operator).filled()))?;
        area.draw(&Text::new((*operator).to_owned(), (x + 17, y), style.clone()))?;
        x += 34 + 8 * operator.len() as i32;
    }
    for (label, width) in [("tables in local memory", 2), ("memory and FP64 alone", 1)] {
        area.draw(&PathElement::new([(x, y), (x + 18, y)], DARK.stroke_width(width)))?;
        area.draw(&Text::new(label, (x + 23, y), style.clone()))?;
        x += 40 + 8 * label.len() as i32;
    }
    Ok(())
}

/// Share of cases that reach at least a fraction of the rooflines, for every fraction. Give the
/// best record of each case.
///
/// # Errors
/// As [`bars_svg`].
///
/// # Source
/// Kulkarni & Klöckner 2025, Figure 6.
pub fn share_svg<M>(title: &str, records: &[&Record<M>]) -> Result<String, PlotError> {
    let bars = bars(records)?;
    let of = |roof: fn(&Bar) -> f64| -> Vec<f64> {
        let mut parts: Vec<f64> = bars.iter().map(|b| 100.0 * b.gflops / roof(b)).collect();
        parts.sort_by(f64::total_cmp);
        parts
    };
    let curves = [
        ("of the roofline with tables in local memory", of(|b| b.tables), COLOURS[0]),
        ("of memory and FP64 alone", of(|b| b.roof), COLOURS[1]),
    ];
    let right = curves.iter().flat_map(|c| &c.1).fold(100.0_f64, |m, p| m.max(*p)).ceil();
    picture((640, 440), |area| {
        let mut chart = ChartBuilder::on(area)
            .caption(title, (FONT, 18))
            .margin(14)
            .x_label_area_size(44)
            .y_label_area_size(60)
            .build_cartesian_2d(0.0..right, 0.0..105.0)?;
        chart
            .configure_mesh()
            .light_line_style(WHITE)
            .bold_line_style(GREY)
            .x_desc("at least this much of the roofline, %")
            .y_desc("cases, %")
            .x_label_formatter(&|x| format!("{x:.0}"))
            .y_label_formatter(&|y| format!("{y:.0}"))
            .label_style((FONT, 13))
            .draw()?;
        for (k, (label, parts, colour)) in curves.iter().enumerate() {
            chart.draw_series(LineSeries::new(steps(parts, right), colour.stroke_width(2)))?;
            let half = 100.0 * parts.iter().filter(|p| **p >= 50.0).count() as f64 / parts.len() as f64;
            let text = format!("{label}: {half:.0} % of {} cases above half", parts.len());
            let style = (FONT, 13).into_font().color(colour).pos(Pos::new(HPos::Right, VPos::Top));
            chart.draw_series([Text::new(text, (right, 104.0 - 7.0 * k as f64), style)])?;
        }
        Ok(())
    })
}

/// The corners of a falling staircase over sorted values: the share of them that are at least x.
fn steps(sorted: &[f64], right: f64) -> Vec<(f64, f64)> {
    let share = |left: usize| 100.0 * left as f64 / sorted.len() as f64;
    let mut corners = vec![(0.0, 100.0)];
    for (k, value) in sorted.iter().enumerate() {
        corners.extend([(*value, share(sorted.len() - k)), (*value, share(sorted.len() - k - 1))]);
    }
    corners.push((right, 0.0));
    corners
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_staircase_falls_by_one_case_at_each_value() {
        let corners = steps(&[10.0, 40.0], 100.0);
        let expected = [(0.0, 100.0), (10.0, 100.0), (10.0, 50.0), (40.0, 50.0), (40.0, 0.0), (100.0, 0.0)];
        assert_eq!(corners, expected);
    }

    #[test]
    fn nothing_measured_is_refused() {
        assert!(matches!(bars_svg::<String>("t", &[]), Err(PlotError::NotPositive { .. })));
        assert!(matches!(share_svg::<String>("t", &[]), Err(PlotError::NotPositive { .. })));
    }
}
