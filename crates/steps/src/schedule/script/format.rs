//! Texts of kernels and schedules in one layout.

use super::heading;
use super::value::{continues_word, starts_word};
use crate::step_set::StepSet;
use kingpost_ir::Kernel;
use kingpost_ir::text::{FormattedLine, ParseError, ParseErrors, formatted_lines, lay_out, parse, sections};

/// Blanks of one level of indentation.
const LEVEL: usize = 2;

impl StepSet {
    /// Lays out a text of kernels with their schedules, or of a schedule alone: blanks, indentation and empty
    /// lines are set. Comments stay, and so do line breaks inside brackets.
    ///
    /// ```
    /// let text = "kernel k\narg y:f64[64] inout\nfor i in 0..64\n    y[i]=0.0\nschedule\nlet a,_=split(i,8) # blocks\n";
    /// assert_eq!(kingpost_primitives::steps().format(text)?, "\
    /// kernel k
    ///
    /// arg y: f64[64] inout
    ///
    /// for i in 0..64
    ///   y[i] = 0.0
    ///
    /// schedule
    /// let a, _ = split(i, 8)  # blocks
    /// ");
    /// # Ok::<(), kingpost_ir::text::ParseErrors>(())
    /// ```
    ///
    /// # Errors
    /// Everything wrong with the text, as [`StepSet::file`] and [`StepSet::script`] find it.
    pub fn format(&self, text: &str) -> Result<String, ParseErrors> {
        let sections = sections(text);
        if sections.is_empty() && heading(text).is_none() {
            self.script(text)?;
            return same(text, lay_out(&schedule(text)));
        }
        if sections.is_empty() {
            self.file(text)?; // which has no kernel
        }
        let mut lines: Vec<FormattedLine> = Vec::new();
        let mut start = 0;
        for (_, section) in &sections {
            self.file(section)?;
            let end = heading(section).map_or(section.len(), |(end, _)| end);
            for (at, part) in [(start, formatted_lines(&section[..end])?), (end, schedule(&section[end..]))] {
                append(&mut lines, part, is_after_empty_line(&text[..at]));
            }
            start = section.len();
        }
        same(text, lay_out(&lines))
    }
}

fn is_after_empty_line(before: &str) -> bool {
    before.lines().next_back().is_some_and(|line| line.trim().is_empty())
}

/// Adds a part, with an empty line before it and the comments directly above.
fn append(lines: &mut Vec<FormattedLine>, mut part: Vec<FormattedLine>, is_apart: bool) {
    if let Some(first) = part.first_mut() {
        first.empty_before = is_apart;
        let attached = lines.iter().rev().take_while(|line| line.code.is_empty()).count();
        let own = lines.len() - attached;
        let comments = &mut lines[own..];
        if !is_apart && !comments.iter().any(|comment| comment.empty_before) {
            comments.first_mut().unwrap_or(first).empty_before = true; // default: no comment is above
        }
    }
    lines.append(&mut part);
}

/// The layout of a text, unless another thing than blanks has changed.
fn same(before: &str, after: String) -> Result<String, ParseErrors> {
    if content(before)? == content(&after)? {
        return Ok(after);
    }
    let message = "no layout is known for this text".to_owned();
    let help = Some("report it, with the text".to_owned());
    Err(ParseErrors::new(vec![ParseError { message, help, span: 0..0, line: 1, column: 1 }], before))
}

/// The kernels of a text, and the words of its schedules.
fn content(text: &str) -> Result<(Vec<Kernel>, Vec<String>), ParseErrors> {
    let (mut kernels, mut words) = (Vec::new(), Vec::new());
    let sections = sections(text);
    let alone = if sections.is_empty() { Some(text) } else { None };
    for section in &sections {
        let end = heading(&section.1).map_or(section.1.len(), |(end, _)| end);
        kernels.push(parse(&section.1[..end])?);
        words.push(&section.1[end..]);
    }
    let words = words.into_iter().chain(alone).flat_map(rows).flat_map(|row| row.words);
    let words = words.map(str::to_owned).collect();
    Ok((kernels, words))
}

/// A line of a schedule.
struct Row<'s> {
    words: Vec<&'s str>,
    comment: Option<&'s str>,
    /// Where the comment starts, in characters.
    column: usize,
    /// Whether it computes with integers, so that `*` is an operator and no part of a word.
    computes: bool,
}

/// The lines of a schedule that can be read.
fn rows(text: &str) -> Vec<Row<'_>> {
    let mut open = 0_usize;
    let row = |line| {
        let row = row(line, open == 0);
        for word in &row.words {
            match *word {
                "(" | "[" | "{" => open += 1,
                ")" | "]" | "}" => open = open.saturating_sub(1),
                _ => {}
            }
        }
        row
    };
    text.lines().map(row).collect()
}

fn row(line: &str, is_start: bool) -> Row<'_> {
    let mut row = Row { words: Vec::new(), comment: None, column: 0, computes: false };
    let code = line.trim_start();
    let first = code.find(|c| !continues_word(c)).map_or(code, |end| &code[..end]);
    let after = code[first.len()..].trim_start();
    row.computes = is_start && (first == "require" || first != "let" && after.starts_with('='));
    let is_lowering = is_start && first == "lowering" && after.starts_with(starts_word);
    let mut rest = code;
    while !rest.is_empty() {
        let length = match rest.chars().next() {
            Some('#') => {
                row.comment = Some(rest.trim_end());
                row.column = line[..line.len() - rest.len()].chars().count();
                break;
            }
            _ if is_lowering => rest.find('#').unwrap_or(rest.len()), // default: no comment follows
            Some('"') => quoted(rest),
            Some(c) if starts_word(c) && !(row.computes && c == '*') => {
                let ends = |c| !continues_word(c) || row.computes && matches!(c, '*' | '.');
                rest.find(ends).unwrap_or(rest.len()) // default: the line ends with it
            }
            Some(c) if c.is_ascii_digit() || !row.computes && c == '-' => {
                let continues =
                    |c: char| c.is_ascii_alphanumeric() || !row.computes && matches!(c, '-' | '+' | '.');
                rest.find(|c| !continues(c)).unwrap_or(rest.len()) // default: the line ends with it
            }
            Some(c) if matches!(c, '<' | '>' | '=' | '!') && rest[1..].starts_with('=') => 2,
            Some(c) => c.len_utf8(),
            None => 0,
        };
        row.words.push(rest[..length].trim_end());
        rest = rest[length..].trim_start();
    }
    row
}

/// The length of a string as in JSON.
fn quoted(text: &str) -> usize {
    let mut escaped = true; // the first quote opens it
    let ends = |c: char| {
        let ends = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    };
    text.find(ends).map_or(text.len(), |end| end + 1)
}

/// The lines of a schedule that can be read, laid out.
fn schedule(text: &str) -> Vec<FormattedLine> {
    let (mut lines, mut empty) = (Vec::new(), false);
    let mut open: Vec<usize> = Vec::new();
    for row in rows(text) {
        if row.words.is_empty() && row.comment.is_none() {
            empty = true;
            continue;
        }
        let closed = row.words.iter().take_while(|word| matches!(**word, ")" | "]" | "}")).count();
        let mut outside = open[..open.len().saturating_sub(closed)].to_vec();
        outside.dedup();
        let mut code = String::new();
        for (k, word) in row.words.iter().enumerate() {
            if k > 0 && stand_apart(&row.words[..k], word, row.computes) {
                code.push(' ');
            }
            code += word;
            match *word {
                "(" | "[" | "{" => open.push(lines.len()),
                ")" | "]" | "}" => drop(open.pop()),
                _ => {}
            }
        }
        lines.push(FormattedLine {
            empty_before: std::mem::take(&mut empty),
            indent: LEVEL * outside.len(),
            code,
            comment: row.comment.map(str::to_owned),
            column: row.column,
        });
    }
    lines
}

/// Whether a blank stands before a word that follows some of its line.
fn stand_apart(before: &[&str], next: &str, computes: bool) -> bool {
    let Some((last, before)) = before.split_last() else { return false };
    if computes {
        let is_operand = |word: &&str| !matches!(*word, "require" | "mod") && word.ends_with(continues_word);
        return match (*last, next) {
            ("*" | "/", _) | (_, "*" | "/") => false,
            ("-", _) => before.last().is_some_and(is_operand),
            _ => true,
        };
    }
    !matches!((*last, next), ("(" | "[" | "{", _) | (_, ")" | "]" | "}" | "," | ":" | "("))
}
