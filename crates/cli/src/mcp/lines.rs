//! Lines of standard input and output.

use super::super::failure::Failure;
use std::io::{BufRead, Write};

/// Writes a line; whether the reader is still there.
pub fn write_line(text: &str) -> bool {
    let mut output = std::io::stdout().lock();
    output
        .write_all(text.as_bytes())
        .and_then(|()| output.write_all(b"\n"))
        .and_then(|()| output.flush())
        .is_ok()
}

/// Maximum bytes of a message: a kernel with large tables has a few million.
const LONGEST: u64 = 1 << 26;

/// A line without its end, as far as [`LONGEST`]; nothing at the end of the input.
pub fn next_line(input: &mut impl BufRead) -> Result<Option<Vec<u8>>, Failure> {
    let failed = |error: std::io::Error| Failure::Usage(format!("cannot read standard input: {error}"));
    let mut line = Vec::new();
    std::io::Read::take(&mut *input, LONGEST).read_until(b'\n', &mut line).map_err(failed)?;
    if line.is_empty() {
        return Ok(None);
    }
    if line.last() != Some(&b'\n') && line.len() as u64 == LONGEST {
        input.skip_until(b'\n').map_err(failed)?;
    }
    Ok(Some(line))
}
