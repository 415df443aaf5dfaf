//! Files of text, and the kernels in them.

use super::failure::Failure;
use kingpost::files;
use kingpost::ir::text;
use std::borrow::Cow;
use std::path::Path;

/// The text of one kernel of a file, at its place.
pub fn section<'s>(path: &Path, source: &'s str, name: Option<&str>) -> Result<Cow<'s, str>, Failure> {
    let sections = text::sections(source);
    let names: Vec<String> = sections.iter().map(|(name, _)| format!("`{name}`")).collect();
    let list = names.join(", ");
    let (file, first) = (path.display(), sections.first().map_or("", |(first, _)| first));
    match name {
        None if sections.len() < 2 => Ok(source.into()),
        None => Err(Failure::Usage(format!(
            "`{file}` has {} kernels, {list}; name one of them, as in `{file}#{first}`",
            sections.len()
        ))),
        Some(name) => match sections.into_iter().find(|(own, _)| *own == name) {
            Some((_, text)) => Ok(text.into()),
            None => Err(Failure::Usage(format!("`{file}` has no kernel `{name}`; it has {list}"))),
        },
    }
}

/// Reads a text file.
pub fn read(path: &Path) -> Result<String, Failure> {
    files::read_text(path)
        .map_err(|error| Failure::Usage(format!("cannot read `{}`: {error}", path.display())))
}
