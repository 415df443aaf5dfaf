//! Every publication that is cited has an entry in `docs/book/src/bibliography.md`, and none goes
//! by a number.

use crate::architecture::is_build_folder;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const BIBLIOGRAPHY: &str = "docs/book/src/bibliography.md";

/// Kinds of files in which publications are cited.
const KINDS: [&str; 10] = ["rs", "md", "toml", "json", "csv", "py", "sh", "kingpost", "svg", "txt"];

/// Capitalised words that stand before a year and are no author.
const NO_AUTHORS: [&str; 1] = ["IEEE"];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The files below a folder, without build outputs and hidden folders.
fn files(dir: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            if !name.starts_with('.') && name != "tune-output" && !is_build_folder(&path) {
                files(&path, found);
            }
        } else if path.extension().is_some_and(|e| KINDS.iter().any(|kind| e == *kind)) {
            found.push(path);
        }
    }
}

/// Path below the root and text of each file, without this one.
fn texts() -> Vec<(String, String)> {
    let mut found = Vec::new();
    files(&root(), &mut found);
    let text = |path: PathBuf| {
        let name = path.strip_prefix(root()).unwrap().display().to_string();
        Some((name, std::fs::read_to_string(&path).ok()?))
    };
    found
        .into_iter()
        .filter_map(text)
        .filter(|(name, _)| name != "tests/repository/bibliography.rs")
        .collect()
}

/// The words of a text, without the markers of comments that stand between them where a line ends.
fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().filter(|w| !["///", "//!", "//", "#"].contains(w)).collect()
}

/// `2025` of `2025,`, `2025)` and `2025`; not of `2025-11-21` and `H2025`.
fn year(word: &str) -> Option<&str> {
    let (year, rest) = word.split_at_checked(4)?;
    let digits =
        year.bytes().all(|b| b.is_ascii_digit()) && (year.starts_with("19") || year.starts_with("20"));
    let ends =
        rest.chars().next().is_none_or(|c| !c.is_alphanumeric() && c != '-' && !rest.starts_with(".1"));
    (digits && ends).then_some(year)
}

/// A surname, without what may stand before it: `Klöckner` of `(Klöckner`.
fn surname(word: &str) -> Option<&str> {
    let name = word.trim_start_matches(['(', '*', '"', '[']);
    let capital = name.chars().next().is_some_and(char::is_uppercase);
    let letters = name.chars().all(|c| c.is_alphabetic() || c == '-');
    (capital && letters && name.chars().count() > 2 && !NO_AUTHORS.contains(&name)).then_some(name)
}

/// The citations in a text, as the bibliography has them: `A 2020`, `A & B 2020`, `A et al. 2020`.
fn citations(text: &str) -> Vec<String> {
    let words = words(text);
    let mut found = Vec::new();
    for (k, year) in words.iter().enumerate().filter_map(|(k, w)| Some((k, year(w)?))) {
        let before = |n: usize| k.checked_sub(n).map_or("", |at| words[at]);
        let cited = match (before(3), before(2), before(1)) {
            (first, "et", "al.") => surname(first).map(|a| format!("{a} et al. {year}")),
            (first, "&" | "&amp;", second) => {
                surname(first).zip(surname(second)).map(|(a, b)| format!("{a} & {b} {year}"))
            }
            (_, _, only) => surname(only).map(|a| format!("{a} {year}")),
        };
        found.extend(cited);
    }
    found
}

/// What the bibliography says of each citation.
fn entries() -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(root().join(BIBLIOGRAPHY)).unwrap();
    let rows = text.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | "));
    rows.filter(|(key, _)| *key != "citation")
        .map(|(key, entry)| (key.to_owned(), entry.to_owned()))
        .collect()
}

#[test]
fn citations_are_read_as_the_bibliography_writes_them() {
    let text = "(Kulkarni &\n/// Klöckner 2025, §4.2), by Luporini et al. 2017; Feautrier 1988. IEEE 754-2008, \
                H200 2025-11-21, in 2024, H200 2026, Table 2020.1, edition = \"2024\"";
    assert_eq!(citations(text), ["Kulkarni & Klöckner 2025", "Luporini et al. 2017", "Feautrier 1988"]);
}

#[test]
fn every_citation_has_an_entry() {
    let entries = entries();
    assert!(entries.len() > 20, "{} entries", entries.len());
    let mut unknown = Vec::new();
    for (name, text) in texts() {
        let missing = citations(&text).into_iter().filter(|cited| !entries.contains_key(cited));
        unknown.extend(missing.map(|cited| format!("{name} cites {cited}")));
    }
    assert!(unknown.is_empty(), "not in {BIBLIOGRAPHY}:\n{}", unknown.join("\n"));
}

/// An entry begins with its authors, whose surnames are those of the citation, and has a title.
#[test]
fn entries_name_authors_and_title() {
    for (key, entry) in entries() {
        let (authors, rest) = entry.split_once(": *").unwrap_or_else(|| panic!("`{key}` has no title"));
        let (people, year) = key.rsplit_once(' ').unwrap();
        assert!(year.len() == 4 && rest.contains("*.") && rest.ends_with('.'), "`{key}`: {entry}");
        let names: Vec<&str> = people.trim_end_matches(" et al.").split(" & ").collect();
        let count = authors.split(", ").count();
        let needed = if people.ends_with(" et al.") { 3..=99 } else { names.len()..=names.len() };
        assert!(needed.contains(&count), "`{key}` has {count} authors");
        for (author, name) in authors.split(", ").zip(names) {
            assert!(author.ends_with(name), "`{key}`: {author} is not {name}");
        }
    }
}

/// A number identifies nothing for a reader.
#[test]
fn no_publication_goes_by_a_number() {
    for (name, text) in texts() {
        let text = words(&text).join(" ").to_lowercase();
        for number in 0..5 {
            let wanted = format!("document {number:03}");
            assert!(!text.contains(&wanted), "{name} says `{wanted}`; cite as {BIBLIOGRAPHY} does");
        }
    }
}
