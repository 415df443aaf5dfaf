//! Files of text, and the kernels in them.

use super::failure::Failure;
use kingpost::files;
use kingpost::ir::text;
use std::borrow::Cow;
use std::io::ErrorKind;
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
    files::read_text(path).map_err(|error| {
        Failure::Usage(if path.is_dir() {
            format!("`{}` is a folder, needed a file", path.display())
        } else if error.kind() == ErrorKind::NotFound {
            missing(path)
        } else {
            format!("cannot read `{}`: {error}", path.display())
        })
    })
}

/// That a file is not there, and which one next to it has a similar name.
fn missing(path: &Path) -> String {
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new(".")); // of a bare name
    let others = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names: Vec<String> = others.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    let near = text::suggestion(&name, names.iter().map(String::as_str));
    format!(
        "there is no file `{}`{}",
        path.display(),
        near.map_or_else(String::new, |near| format!("; {near}"))
    )
}
