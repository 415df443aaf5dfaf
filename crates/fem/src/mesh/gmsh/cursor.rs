//! Reading numbers off a Gmsh file, in text or binary, with the place of every failure.

use std::str::FromStr;

use super::{GmshError, Place};

/// A position in a file whose numbers are text, or little-endian binary between textual section
/// marks.
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Where the item that is being read starts, for messages.
    start: usize,
    /// Whether numbers are binary; section marks are text all the same.
    pub(super) binary: bool,
}

impl<'a> Cursor<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, start: 0, binary: false }
    }

    /// Where the last item read starts.
    pub(super) fn place(&self) -> Place {
        if self.binary {
            return Place::Byte(self.start);
        }
        let before = self.bytes.get(..self.start).unwrap_or(self.bytes);
        Place::Line(1 + before.iter().filter(|b| **b == b'\n').count())
    }

    pub(super) fn error(&self, expected: &'static str, found: String) -> GmshError {
        GmshError::Syntax { place: self.place(), expected, found }
    }

    /// The next word of text; none at the end of the file.
    pub(super) fn word(&mut self) -> Option<&'a [u8]> {
        let rest = &self.bytes[self.at..];
        let skipped = rest.iter().take_while(|b| b.is_ascii_whitespace()).count();
        let rest = &rest[skipped..];
        let length = rest.iter().take_while(|b| !b.is_ascii_whitespace()).count();
        self.start = self.at + skipped;
        self.at = self.start + length;
        (length > 0).then(|| &rest[..length])
    }

    /// A word that must be `mark`.
    pub(super) fn mark(&mut self, mark: &'static str) -> Result<(), GmshError> {
        match self.word() {
            Some(word) if word == mark.as_bytes() => Ok(()),
            word => Err(self.error(mark, shown(word))),
        }
    }

    /// Skips the line feed that stands between a section mark and binary data.
    pub(super) fn end_of_line(&mut self) {
        let rest = &self.bytes[self.at..];
        self.at += rest.iter().position(|b| *b == b'\n').map_or(0, |i| i + 1);
    }

    /// The rest of the line.
    pub(super) fn line(&mut self) -> &'a [u8] {
        let rest = &self.bytes[self.at..];
        let length = rest.iter().take_while(|b| **b != b'\n').count();
        self.start = self.at;
        self.at += length;
        &rest[..length]
    }

    /// Skips to after the word `$End` + `section`.
    pub(super) fn skip_section(&mut self, section: &str) -> Result<(), GmshError> {
        let end = format!("$End{section}");
        match self.bytes[self.at..].windows(end.len()).position(|w| w == end.as_bytes()) {
            Some(offset) => {
                self.at += offset + end.len();
                Ok(())
            }
            None => Err(GmshError::Unclosed { place: self.place(), section: section.to_owned() }),
        }
    }

    pub(super) fn int(&mut self) -> Result<i32, GmshError> {
        self.number("an integer of 32 bits", i32::from_le_bytes)
    }

    pub(super) fn size(&mut self) -> Result<u64, GmshError> {
        self.number("a non-negative integer", u64::from_le_bytes)
    }

    pub(super) fn real(&mut self) -> Result<f64, GmshError> {
        self.number("a number", f64::from_le_bytes)
    }

    fn number<T: FromStr, const N: usize>(
        &mut self,
        expected: &'static str,
        decode: fn([u8; N]) -> T,
    ) -> Result<T, GmshError> {
        if self.binary {
            self.start = self.at;
            let chunk = self.bytes[self.at..].first_chunk::<N>();
            let chunk = *chunk.ok_or_else(|| self.error(expected, shown(None)))?;
            self.at += N;
            return Ok(decode(chunk));
        }
        let word = self.word();
        let parsed = word.and_then(|w| std::str::from_utf8(w).ok()).and_then(|w| w.parse().ok());
        parsed.ok_or_else(|| self.error(expected, shown(word)))
    }
}

/// What was found, cut to a length that fits a message.
pub(super) fn shown(word: Option<&[u8]>) -> String {
    const LONGEST: usize = 30;
    match word {
        None => "the end of the file".to_owned(),
        Some(word) => {
            let text: String = String::from_utf8_lossy(word).chars().take(LONGEST).collect();
            format!("`{}`", text.escape_debug())
        }
    }
}
