//! Tables and numbers for people.

use super::terminal::shown;
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, presets};
use kingpost::SetUp;

/// Columns of a table; longer lines wrap inside their cells.
const WIDTH: u16 = 118;

/// Names in the first column that are no longer stay on one line.
const NAME: u16 = 30;

/// A table with a header; columns after the first are numbers, aligned to the right.
#[must_use]
pub fn table<const N: usize>(header: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let mut table = filled(header, rows);
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(WIDTH);
    table.load_style(presets::UTF8_FULL_CONDENSED);
    let longest = table.column_max_content_widths().first().copied();
    if let (true, Some(names)) = (longest.is_some_and(|width| width <= NAME), table.column_mut(0)) {
        names.set_constraint(ColumnConstraint::ContentWidth);
    }
    format!("{table}\n")
}

/// The same table for a page in Markdown.
#[must_use]
pub fn markdown<const N: usize>(header: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let mut table = filled(header, rows);
    table.load_style(presets::ASCII_MARKDOWN);
    format!("{table}\n")
}

fn filled<const N: usize>(header: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> Table {
    let mut table = Table::new();
    table.set_header(header);
    for row in rows {
        table.add_row(row.map(|cell| shown(&cell).into_owned()));
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// Two columns of text.
pub fn facts(rows: impl IntoIterator<Item = (&'static str, String)>) -> String {
    let mut table = Table::new();
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(WIDTH);
    table.load_style(presets::UTF8_BORDERS_ONLY);
    for (name, value) in rows {
        table.add_row([name, &*shown(&value)]);
    }
    format!("{table}\n")
}

/// An integer with its digits in groups of three: `1,053,696`.
#[must_use]
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (k, digit) in digits.chars().enumerate() {
        if k > 0 && (digits.len() - k).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A time with three significant digits in the unit that suits it.
#[must_use]
pub fn seconds(s: f64) -> String {
    match s {
        s if s >= 1.0 => format!("{s:.3} s"),
        s if s >= 1e-3 => format!("{:.3} ms", s * 1e3),
        s => format!("{:.2} µs", s * 1e6),
    }
}

/// Four significant digits, without exponent where that is readable.
#[must_use]
pub fn figure(x: f64) -> String {
    let size = x.abs();
    match size {
        _ if !x.is_finite() || x == 0.0 => x.to_string(),
        s if !(1e-3..1e6).contains(&s) => format!("{x:.3e}"),
        s if s >= 1000.0 => format!("{x:.0}"),
        s if s >= 100.0 => format!("{x:.1}"),
        s if s >= 10.0 => format!("{x:.2}"),
        _ => format!("{x:.3}"),
    }
}

/// What computing stored inputs took.
pub fn stored(setup: &SetUp) -> String {
    format!(
        "{} stored inputs, {} MB: {} with transfers, {} for the kernels",
        setup.inputs,
        figure(setup.bytes as f64 / 1e6),
        seconds(setup.seconds),
        seconds(setup.kernel_s)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!([0, 12, 123, 1234, 1_053_696].map(grouped), ["0", "12", "123", "1,234", "1,053,696"]);
        assert_eq!(seconds(0.001_234_5), "1.234 ms");
        assert_eq!(figure(1234.5), "1234"); // ties go to the even digit
        assert_eq!(figure(0.5), "0.500");
    }
}
