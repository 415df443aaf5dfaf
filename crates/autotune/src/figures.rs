//! Results of many cases as pictures: rates against rooflines, and how many cases come how near.

use crate::lettering::{fitted, width, wrapped};
use crate::plot::{Decades, FONT, PlotError, decades};
use crate::record::Record;
use crate::roofline::{Share, Shares};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

const DARK: RGBColor = RGBColor(30, 30, 30);
const GREY: RGBColor = RGBColor(225, 225, 225);
/// Colours of what is compared in a picture, in the order in which it appears; they differ with all
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

/// One measured case; GFLOP/s.
struct Bar {
    case: String,
    operator: String,
    /// What is executed, and its roofline of memory and arithmetic alone.
    executed: f64,
    roof: f64,
    /// What is written, and its roofline with tables in local memory.
    useful: f64,
    tables: f64,
    shares: Shares,
}

fn bars<M>(records: &[&Record<M>]) -> Result<Vec<Bar>, PlotError> {
    let mut bars = Vec::new();
    for record in records {
        let (Some(m), Some(shares)) = (record.measurement(), record.shares()) else { continue };
        let case = record.workload.case.clone();
        let work = record.workload.work;
        let ran = work.executed(m.executed_flops);
        let rate = |flops: u64| flops as f64 / m.median_s / 1e9;
        let operator = case.split('.').next().unwrap_or_default().to_owned();
        let bar = Bar {
            operator,
            executed: rate(ran.flops),
            roof: ran.true_roofline(&record.device) / 1e9,
            useful: rate(work.flops),
            tables: work.table_roofline(&record.device) / 1e9,
            shares,
            case,
        };
        let figures = [bar.executed, bar.roof, bar.useful, bar.tables];
        if !figures.iter().all(|x| x.is_finite() && *x > 0.0) {
            let what = format!("{figures:?} GFLOP/s for `{}`", bar.case);
            return Err(PlotError::NotPositive { what });
        }
        bars.push(bar);
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

/// Why some of these shares are above one, each reason once, in a line of its own.
fn reasons(what: &str, shares: impl Iterator<Item = Share>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for why in shares.filter_map(|share| share.why_above) {
        let line = format!("{what} above it: {why}");
        if !found.contains(&line) {
            found.push(line);
        }
    }
    found
}

/// Pixels of names below bars, turned: as long as the longest, to a limit.
fn names_height(bars: &[Bar]) -> u32 {
    let longest = bars.iter().map(|b| width(&b.case, NAMES)).max().unwrap_or(0);
    longest.clamp(60, 320)
}

/// Size of names below bars, and of what is said above them.
const NAMES: u32 = 12;
const LEGEND: u32 = 13;
const ROW_OF_LEGEND: u32 = 20;

/// A bar for each record, GFLOP/s: filled what is executed, with a frame around what is written,
/// where that is something else. A thin line is the roofline of memory and arithmetic alone for
/// what is executed, a thick one that with tables in local memory for what is written. One colour
/// an operator. Give the best record of each case.
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
    let across = 150 + 24 * longest.max(22);
    let mut operators: Vec<&str> = Vec::new();
    for bar in &bars {
        if !operators.contains(&bar.operator.as_str()) {
            operators.push(&bar.operator);
        }
    }
    let entries = legend(&bars, &operators, across);
    let head = 44 + ROW_OF_LEGEND * entries.last().map_or(0, |entry| entry.row + 1);
    let each = 262 + names_height(&bars);
    let size = (across, head + each * rows.len() as u32);
    picture(size, |area| {
        let (upper, body) = area.split_vertically(head);
        let big = (FONT, 18).into_font().color(&DARK).pos(Pos::new(HPos::Center, VPos::Center));
        upper.draw(&Text::new(fitted(title, 18, across - 20), (size.0 as i32 / 2, 22), big))?;
        draw_legend(&upper, &entries)?;
        let parts = body.split_evenly((rows.len(), 1));
        for (part, row) in parts.iter().zip(&rows) {
            draw_row(part, row, &operators, names_height(&bars))?;
        }
        Ok(())
    })
}

fn draw_row(area: &Area<'_>, bars: &[Bar], operators: &[&str], names: u32) -> Result<(), Failure> {
    let top = bars.iter().fold(0.0_f64, |t, b| t.max(b.roof).max(b.executed).max(b.useful)) * 1.08;
    let mut chart = ChartBuilder::on(area)
        .margin(8)
        .x_label_area_size(names)
        .y_label_area_size(72)
        .build_cartesian_2d(0.0..bars.len() as f64, 0.0..top)?;
    // as many decimals as tell the lines of the mesh apart
    let decimals = (1.0 - top.log10().floor()).max(0.0) as usize;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .disable_x_axis()
        .light_line_style(WHITE)
        .bold_line_style(GREY)
        .y_desc("GFLOP/s")
        .y_label_formatter(&|y| format!("{y:.decimals$}"))
        .label_style((FONT, 13))
        .draw()?;
    for (k, bar) in bars.iter().enumerate() {
        let (left, right) = (k as f64 + 0.12, k as f64 + 0.88);
        let fill = colour(operators, &bar.operator);
        chart.draw_series([Rectangle::new([(left, 0.0), (right, bar.executed)], fill.filled())])?;
        if bar.useful != bar.executed {
            chart.draw_series([Rectangle::new([(left, 0.0), (right, bar.useful)], fill.stroke_width(1))])?;
        }
        for (height, width) in [(bar.tables, 2), (bar.roof, 1)] {
            let line = [(left - 0.1, height), (right + 0.1, height)];
            chart.draw_series(LineSeries::new(line, DARK.stroke_width(width)))?;
        }
        let (x, y) = chart.backend_coord(&(k as f64 + 0.5, 0.0));
        let style = (FONT, NAMES).into_font().transform(FontTransform::Rotate90).color(&DARK);
        let style = style.pos(Pos::new(HPos::Left, VPos::Center));
        area.draw(&Text::new(fitted(&bar.case, NAMES, names), relative(area, (x, y + 6)), style))?;
    }
    Ok(())
}

fn colour(operators: &[&str], operator: &str) -> RGBColor {
    let place = operators.iter().position(|o| *o == operator).unwrap_or(0);
    COLOURS[place % COLOURS.len()]
}

/// A place of the whole picture as one of `area`.
fn relative(area: &Area<'_>, (x, y): (i32, i32)) -> (i32, i32) {
    let (left, top) = area.get_base_pixel();
    (x - left, y - top)
}

/// What stands for something in a picture.
enum Sign {
    Filled(RGBColor),
    Framed,
    Line(u32),
    /// A remark.
    None,
}

/// What a sign stands for, and where that is said.
struct Entry {
    sign: Sign,
    text: String,
    x: u32,
    row: u32,
}

/// The legend of bars, in rows as wide as the picture.
fn legend(bars: &[Bar], operators: &[&str], across: u32) -> Vec<Entry> {
    let (start, end) = (20, across - 20);
    let mut said: Vec<(Sign, String)> =
        operators.iter().map(|o| (Sign::Filled(colour(operators, o)), (*o).to_owned())).collect();
    if bars.iter().any(|b| b.useful != b.executed) {
        said.push((Sign::Framed, "operations as written; filled: executed".into()));
    }
    said.push((Sign::Line(1), "memory and FP64 alone".into()));
    said.push((Sign::Line(2), "tables in local memory, as written".into()));
    let remarks = reasons("filled bars", bars.iter().map(|b| b.shares.executed))
        .into_iter()
        .chain(reasons("frames", bars.iter().map(|b| b.shares.useful)))
        .flat_map(|text| wrapped(&text, LEGEND, end - start))
        .map(|text| (Sign::None, text));
    said.extend(remarks);
    let (mut x, mut row) = (start, 0);
    let mut entries = Vec::new();
    for (sign, text) in said {
        let indent = if matches!(sign, Sign::None) { 0 } else { 24 };
        let text = fitted(&text, LEGEND, end - start - indent);
        let takes = indent + width(&text, LEGEND);
        if x > start && (x + takes > end || matches!(sign, Sign::None)) {
            (x, row) = (start, row + 1);
        }
        entries.push(Entry { sign, text, x, row });
        x += takes + 18;
    }
    entries
}

fn draw_legend(area: &Area<'_>, entries: &[Entry]) -> Result<(), Failure> {
    let style = (FONT, LEGEND).into_font().color(&DARK).pos(Pos::new(HPos::Left, VPos::Center));
    for Entry { sign, text, x, row } in entries {
        let (x, y) = (*x as i32, (48 + ROW_OF_LEGEND * row) as i32);
        let rectangle = [(x, y - 6), (x + 12, y + 6)];
        let line = vec![(x, y), (x + 18, y)];
        match sign {
            Sign::Filled(colour) => area.draw(&Rectangle::new(rectangle, colour.filled()))?,
            Sign::Framed => area.draw(&Rectangle::new(rectangle, DARK.stroke_width(1)))?,
            Sign::Line(width) => area.draw(&PathElement::new(line, DARK.stroke_width(*width)))?,
            Sign::None => {}
        }
        let after = if matches!(sign, Sign::None) { 0 } else { 23 };
        area.draw(&Text::new(text.clone(), (x + after, y), style.clone()))?;
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
    let of = |share: fn(&Shares) -> Share| -> Vec<f64> {
        let mut parts: Vec<f64> = bars.iter().map(|b| 100.0 * share(&b.shares).part).collect();
        parts.sort_by(f64::total_cmp);
        parts
    };
    let curves = [
        ("executed, of memory and FP64 alone", of(|s| s.executed), COLOURS[0]),
        ("as written, of the same", of(|s| s.useful), COLOURS[1]),
        ("as written, of that with tables in local memory", of(|s| s.tables), COLOURS[2]),
    ];
    let why = [
        reasons("executed", bars.iter().map(|b| b.shares.executed)),
        reasons(
            "as written",
            bars.iter().map(|b| b.shares.useful).chain(bars.iter().map(|b| b.shares.tables)),
        ),
    ];
    let across = 760;
    let remarks = why.concat().into_iter().map(|line| line.replacen("above it", "above 100 %", 1));
    let remarks: Vec<String> = remarks.flat_map(|line| wrapped(&line, LEGEND, across - 40)).collect();
    let below = ROW_OF_LEGEND * (curves.len() + remarks.len()) as u32 + 10;
    let x = decades(curves.iter().flat_map(|c| c.1.iter().copied()).chain([100.0]));
    picture((across, 420 + below), |area| {
        let (upper, lower) = area.split_vertically(420);
        let mut chart = ChartBuilder::on(&upper)
            .caption(fitted(title, 18, across - 40), (FONT, 18))
            .margin(14)
            .margin_right(30)
            .x_label_area_size(44)
            .y_label_area_size(60)
            .build_cartesian_2d(Decades(x.clone()), 0.0..105.0)?;
        chart
            .configure_mesh()
            .light_line_style(WHITE)
            .bold_line_style(GREY)
            .x_desc("at least this much of the roofline, %")
            .y_desc("cases, %")
            .y_label_formatter(&|y| format!("{y:.0}"))
            .label_style((FONT, 13))
            .draw()?;
        let all = [(100.0, 0.0), (100.0, 105.0)];
        chart.draw_series(LineSeries::new(all, DARK.stroke_width(1)))?;
        let style = |colour| (FONT, LEGEND).into_font().color(colour).pos(Pos::new(HPos::Left, VPos::Top));
        for (k, (label, parts, colour)) in curves.iter().enumerate() {
            chart.draw_series(LineSeries::new(steps(parts, x.start, x.end), colour.stroke_width(2)))?;
            let half = 100.0 * parts.iter().filter(|p| **p >= 50.0).count() as f64 / parts.len() as f64;
            let text = format!("{label}: {half:.0} % of {} cases above half", parts.len());
            lower.draw(&Text::new(text, (28, (ROW_OF_LEGEND * k as u32) as i32), style(colour)))?;
        }
        for (k, remark) in remarks.iter().enumerate() {
            let y = ROW_OF_LEGEND * (curves.len() + k) as u32;
            lower.draw(&Text::new(remark.clone(), (28, y as i32), style(&DARK)))?;
        }
        Ok(())
    })
}

/// The corners of a falling staircase over sorted values: the share of them that are at least x.
fn steps(sorted: &[f64], left: f64, right: f64) -> Vec<(f64, f64)> {
    let share = |rest: usize| 100.0 * rest as f64 / sorted.len() as f64;
    let mut corners = vec![(left, 100.0)];
    for (k, value) in sorted.iter().enumerate() {
        corners.extend([(*value, share(sorted.len() - k)), (*value, share(sorted.len() - k - 1))]);
    }
    corners.push((right, 0.0));
    corners
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_staircase_falls_by_one_case_at_each_value() {
        let corners = steps(&[10.0, 40.0], 1.0, 100.0);
        let expected = [(1.0, 100.0), (10.0, 100.0), (10.0, 50.0), (40.0, 50.0), (40.0, 0.0), (100.0, 0.0)];
        assert_eq!(corners, expected);
    }

    fn record(case: &str, flops: u64, executed: Option<u64>, bytes: u64) -> Record<String> {
        let line = format!(
            r#"{{"workload":{{"case":"{case}","kernel":"k","cells":1,"dofs":1,"flops":{flops},"dram_bytes":{bytes},
            "table_bytes":5000}},"device":{{"name":"a card","driver":"none","clock_mhz":1,"dram_bytes_per_s":1e12,
            "local_bytes_per_s":1e13,"fp64_flops_per_s":3e13}},"parameters":"m","rank":null,"predicted_s":null,
            "outcome":{{"measured":{{"kernel":"k","errors":{{"small":0,"measured":0}},"runs":1,"median_s":1e-9,
            "min_s":1e-9,"max_s":1e-9,"cut_short":false,"resources":null{}}}}},"seed":1,"unix_s":1}}"#,
            executed.map_or_else(String::new, |flops| format!(r#","executed_flops":{flops}"#))
        );
        serde_json::from_str(&line).unwrap()
    }

    /// No text begins or ends outside a picture, however long and many the names are.
    #[test]
    fn nothing_is_cut_off() {
        let long = "an_operator_of_a_name_that_is_much_longer_than_usual";
        for name in ["mass", long] {
            for count in [1, 5, 41, 90] {
                let records: Vec<Record<String>> = (0..count)
                    .map(|k| {
                        let executed = (k % 2 == 1).then_some(7 + k);
                        record(&format!("{name}_{k}.3D.P{k} n=100000"), 10 + k, executed, 100)
                    })
                    .collect();
                let records: Vec<&Record<String>> = records.iter().collect();
                for title in ["Operator actions", &long.repeat(5)] {
                    for svg in [bars_svg(title, &records).unwrap(), share_svg(title, &records).unwrap()] {
                        crate::lettering::check_texts(&svg);
                    }
                }
            }
        }
    }

    /// Where a bar is higher than its roofline, the picture says why.
    #[test]
    fn what_is_above_a_roofline_says_why() {
        let cases = [
            (10, None, 100, &[][..]),
            (80_000, Some(10), 100, &["frames above it: fewer operations are executed"][..]),
            (
                80_000,
                Some(79_000),
                100,
                &["filled bars above it: matrix instructions", "frames above it: fewer"],
            ),
            (2000, Some(2000), 2000, &["filled bars above it: data stay in caches"]),
        ];
        for (flops, executed, bytes, reasons) in cases {
            let record = record("mass.2D.P1", flops, executed, bytes);
            let bars = bars_svg("t", &[&record]).unwrap();
            let share = share_svg("t", &[&record]).unwrap();
            for reason in reasons {
                assert!(bars.contains(reason), "no `{reason}` for {flops} and {executed:?}");
                let (_, why) = reason.split_once(": ").unwrap();
                assert!(share.contains(why), "no `{why}`");
            }
            assert_eq!(bars.contains("above it"), !reasons.is_empty());
            assert_eq!(bars.contains("as written; filled"), executed.is_some_and(|e| e != flops));
        }
    }

    #[test]
    fn nothing_measured_is_refused() {
        assert!(matches!(bars_svg::<String>("t", &[]), Err(PlotError::NotPositive { .. })));
        assert!(matches!(share_svg::<String>("t", &[]), Err(PlotError::NotPositive { .. })));
    }
}
