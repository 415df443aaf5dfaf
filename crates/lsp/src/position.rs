//! Places of a text: bytes here, lines and UTF-16 units in messages.

use serde_json::{Value, json};
use std::ops::Range;

/// Where the lines of a text start.
pub struct Lines(Vec<usize>);

impl Lines {
    pub fn of(text: &str) -> Self {
        Self(std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect())
    }

    /// The byte of a position, of the nearest one if there is none; nothing of another value.
    pub fn byte(&self, text: &str, position: &Value) -> Option<usize> {
        let number = |name: &str| usize::try_from(position.get(name)?.as_u64()?).ok();
        let (line, character) = (number("line")?, number("character")?);
        let Some(start) = self.0.get(line) else { return Some(text.len()) };
        let line = text[*start..].split(['\n', '\r']).next().unwrap_or_default(); // default: the last line is empty
        let mut units = 0;
        let found = line.char_indices().find(|(_, c)| {
            let reached = units >= character;
            units += c.len_utf16();
            reached
        });
        Some(start + found.map_or(line.len(), |(at, _)| at))
    }

    fn position(&self, text: &str, byte: usize) -> Value {
        let line = self.0.partition_point(|start| *start <= byte) - 1; // the first line starts at 0
        json!({"line": line, "character": text[self.0[line]..byte].encode_utf16().count()})
    }

    /// A range of bytes.
    pub fn range(&self, text: &str, bytes: &Range<usize>) -> Value {
        let end = bytes.end.clamp(bytes.start, text.len());
        json!({"start": self.position(text, bytes.start.min(end)), "end": self.position(text, end)})
    }
}

/// The word around a byte: of letters, digits and `_`.
pub fn word(text: &str, at: usize) -> Option<Range<usize>> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let start = text[..at]
        .rfind(|c| !is_word(c))
        .map_or(0, |k| k + text[k..].chars().next().map_or(1, char::len_utf8));
    let end = text[at..].find(|c| !is_word(c)).map_or(text.len(), |k| at + k);
    (start < end).then_some(start..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_and_bytes() {
        let text = "a𝄞b\nä\n";
        let lines = Lines::of(text);
        for (byte, line, character) in
            [(0, 0, 0), (1, 0, 1), (5, 0, 3), (6, 0, 4), (7, 1, 0), (9, 1, 1), (10, 2, 0)]
        {
            let position = json!({"line": line, "character": character});
            assert_eq!(lines.position(text, byte), position);
            assert_eq!(lines.byte(text, &position), Some(byte));
        }
        assert_eq!(lines.byte(text, &json!({"line": 0, "character": 99})), Some(6));
        assert_eq!(lines.byte(text, &json!({"line": 99, "character": 0})), Some(text.len()));
        assert_eq!(lines.byte(text, &json!({"line": -1, "character": 0})), None);
        assert_eq!(lines.byte(text, &json!("here")), None);
        assert_eq!(lines.byte("", &json!({"line": 0, "character": 1})), Some(0));
    }

    #[test]
    fn words() {
        assert_eq!(word("x[i_o]", 3), Some(2..5));
        assert_eq!(word("x[i_o]", 5), Some(2..5));
        assert_eq!(word("ä b", 2), None);
        assert_eq!(word("äb", 2), Some(2..3));
    }
}
