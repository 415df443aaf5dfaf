//! How much of a text an error shows: [`QUOTED`] characters of a line.

use miette::{MietteError, MietteSpanContents, SourceCode, SourceSpan, SpanContents};
use std::ops::Range;

/// Characters of a line that an error quotes at most.
pub const QUOTED: usize = 200;

/// Characters of a line of a message at most: what has no quotes around it, such as a log.
const LINE: usize = 4000;

/// A message whose quotes, in backticks or double quotes, are cut at [`QUOTED`] characters.
pub fn shortened(message: &str) -> String {
    let lines = message.split('\n').map(|line| {
        let line = cut_quotes(&cut_quotes(line, '`'), '"');
        cut(&line, LINE)
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// A line whose parts between two `mark`s are short.
fn cut_quotes(line: &str, mark: char) -> String {
    let parts = line.split(mark).enumerate();
    let short = parts.map(|(k, part)| if k % 2 == 1 { cut(part, QUOTED) } else { part.to_owned() });
    short.collect::<Vec<_>>().join(&mark.to_string())
}

/// The first characters of a text, with a mark where there are more.
pub fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{} …", &text[..end]),
        None => text.to_owned(),
    }
}

/// The lines around a place, each at most [`QUOTED`] characters of it, for `miette` to show.
pub struct Excerpt {
    name: String,
    text: String,
    /// The line of the source that the text begins with, from 0.
    first_line: usize,
    /// Where the place is in the text, in bytes, and in its line of the source, in characters from
    /// 0.
    place: (usize, usize),
}

/// Mark of what is left out.
const GAP: char = '…';

impl Excerpt {
    /// Of `source`, around `span` in bytes; the place in the excerpt.
    pub fn new(name: &str, source: &str, span: &Range<usize>) -> (Self, Range<usize>) {
        let start = (0..=span.start.min(source.len())).rev().find(|at| source.is_char_boundary(*at));
        let start = start.unwrap_or(0);
        let begin = source[..start].rfind('\n').map_or(0, |at| at + 1);
        let before = source[..begin.saturating_sub(1)].rfind('\n').map_or(0, |at| at + 1);
        let first_line = source[..before].matches('\n').count();
        let mut text = String::new();
        if before < begin {
            text = cut(&source[before..begin - 1], QUOTED);
            text.push('\n');
        }
        let mut after = source[begin..].split('\n');
        let line = after.next().unwrap_or_default();
        // a third of what is shown stands before the place
        let column = line[..start - begin].chars().count();
        let left_out = if line.chars().nth(QUOTED).is_some() { column.saturating_sub(QUOTED / 3) } else { 0 };
        let shown: String = line.chars().skip(left_out).take(QUOTED).collect();
        text.extend((left_out > 0).then_some(GAP));
        let at: usize = shown.chars().take(column - left_out).map(char::len_utf8).sum();
        let place = text.len() + at;
        text += &shown;
        let end = (place + span.len()).min(text.len());
        text.extend((line.chars().count() > left_out + QUOTED).then_some(GAP));
        if let Some(next) = after.next() {
            text.push('\n');
            text += &cut(next, QUOTED);
        }
        let end = (place..=end).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(place);
        let (name, whole) = (name.to_owned(), (place, column));
        (Self { name, text, first_line, place: whole }, place..end)
    }
}

impl SourceCode for Excerpt {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        lines_before: usize,
        lines_after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let inner = self.text.as_str().read_span(span, lines_before, lines_after)?;
        let (place, column) = self.place;
        let column = if inner.span().offset() == place { column } else { inner.column() };
        Ok(Box::new(MietteSpanContents::new_named(
            self.name.clone(),
            inner.data(),
            *inner.span(),
            self.first_line + inner.line(),
            column,
            inner.line_count(),
        )))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_cut_and_the_rest_is_kept() {
        let long = "x".repeat(10_000);
        let message =
            format!("`a`: found `{long}`, needed a number or \"{long}\"\n  help: `{long}` is no name");
        let short = shortened(&message);
        assert!(short.chars().count() < 700, "{short}");
        assert!(
            short.starts_with("`a`: found `xxx") && short.contains(" …`, needed a number or \"x"),
            "{short}"
        );
        assert!(short.contains("\n  help: `xx") && short.ends_with(" …` is no name"), "{short}");
        let exact = "y".repeat(QUOTED);
        assert_eq!(shortened(&format!("`{exact}` and `{exact}`")), format!("`{exact}` and `{exact}`"));
        // a quote that holds a mark of its own has an end, too
        assert!(shortened(&format!("`{long}`{long}")).chars().count() < LINE + 10);
        assert!(shortened(&long).chars().count() < LINE + 10);
    }

    #[test]
    fn an_excerpt_shows_the_place_wherever_it_is() {
        let long = "ä".repeat(1000);
        let source = format!("first {long}\nbefore {long}\n{long}HERE{long}\nafter {long}\nlast");
        let at = source.find("HERE").unwrap();
        let (excerpt, place) = Excerpt::new("name", &source, &(at..at + 4));
        assert_eq!(&excerpt.text[place.clone()], "HERE");
        assert!(excerpt.text.lines().all(|l| l.chars().count() <= QUOTED + 2), "{}", excerpt.text);
        assert!(excerpt.text.contains("before") && excerpt.text.contains("after"));
        let span = SourceSpan::from(place);
        let read = excerpt.read_span(&span, 0, 0).unwrap();
        assert_eq!((read.line(), read.column(), read.name()), (2, 1000, Some("name")));
        // at each place of a short text, and after it
        let source = "one\n\nthree ä\n";
        for at in (0..=source.len() + 1).filter(|at| *at > source.len() || source.is_char_boundary(*at)) {
            let (excerpt, place) = Excerpt::new("name", source, &(at..at + 1));
            let found = excerpt.read_span(&SourceSpan::from(place.start..place.start), 0, 0).unwrap();
            let before = &source[..at.min(source.len())];
            let column = before.rsplit('\n').next().unwrap().chars().count();
            assert_eq!((found.line(), found.column()), (before.matches('\n').count(), column), "at {at}");
        }
        let (excerpt, place) = Excerpt::new("name", "", &(0..0));
        assert_eq!((excerpt.text.as_str(), place), ("", 0..0));
    }
}
