//! The words of prose: documentation, comments, messages and help texts have none that a compiler engineer
//! would have to translate.

use crate::architecture::{is_build_folder, root};
use std::path::{Path, PathBuf};

/// A phrase, what to write, and longer phrases in which it stands.
type Phrase = (&'static str, &'static str, &'static [&'static str]);

const PHRASES: [Phrase; 18] = [
    ("so many", "the name of the number, or `a number of`", &[]),
    ("in turn", "one after the other, alternately, in sequence", &[]),
    (
        "behind",
        "after",
        &[
            "behind a lock",
            "behind a pointer",
            "behind a guard",
            "behind its guard",
            "behind the guards",
            "behind a switch",
            "behind checked calls",
            "behind the default",
            "behind the error",
            "behind the same trait",
            "behind your back",
            "device behind it",
            "left behind",
            "leave behind",
            "leave a loop behind",
            "leaves behind",
            "leaves nothing behind",
            "leaves a file behind",
        ],
    ),
    ("inside of", "inside", &["the inside of"]),
    ("outside of", "outside", &["the outside of"]),
    ("at hand", "current", &[]),
    ("in place of", "instead of", &[]),
    ("shall", "should, must", &[]),
    ("in front of", "before", &[]),
    ("anew", "again", &[]),
    ("in the place of", "instead of", &[]),
    ("beside", "next to, besides, compared with, concurrently with", &[]),
    ("but for", "except for, up to", &[]),
    ("by itself", "separately, alone, asynchronously", &[]),
    ("by themselves", "separately, alone, asynchronously", &[]),
    ("as they lie", "in place, without a copy", &[]),
    ("somebody", "who it is: the caller, another process, another work-item", &[]),
    ("anybody", "who it is: the caller, another process, another work-item", &[]),
];

/// Folders and files that are not read: history, what was measured, what a test generates from other files.
const UNREAD: [&str; 4] = ["results", "studies", "CHANGELOG.md", "docs/primitives.md"];

fn texts(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        let name = path.strip_prefix(root()).unwrap().display().to_string();
        let hidden = entry.file_name().to_string_lossy().starts_with('.');
        if hidden || UNREAD.contains(&name.as_str()) || is_build_folder(&path) {
            continue;
        }
        if path.is_dir() {
            texts(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs" || e == "md" || e == "py") {
            found.push(path);
        }
    }
}

/// Comments and strings of Rust, line by line; code is left out.
fn prose(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut rest = text;
    // what ends the string that is being read, and whether backslashes escape in it
    let mut string: Option<(String, bool)> = None;
    while !rest.is_empty() {
        let line = lines.last_mut().unwrap();
        let step = match &string {
            Some((end, escapes)) => {
                let at = rest.find(['"', '\\', '\n']).unwrap_or(rest.len());
                line.push_str(&rest[..at]);
                rest = &rest[at..];
                match rest.chars().next() {
                    Some('"') if rest.starts_with(end.as_str()) => {
                        let step = end.len();
                        line.push(' ');
                        string = None;
                        step
                    }
                    Some('\\') if *escapes => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
                    found => found.map_or(0, char::len_utf8),
                }
            }
            None => {
                rest = &rest[rest.find(['/', '"', '\'', 'r', '\n']).unwrap_or(rest.len())..];
                let hashes = rest.chars().skip(1).take_while(|c| *c == '#').count();
                if rest.starts_with("//") {
                    let end = rest.find('\n').unwrap_or(rest.len());
                    line.push_str(&rest[2..end]);
                    end
                } else if rest.starts_with('"') {
                    string = Some(("\"".into(), true));
                    1
                } else if rest.starts_with('r') && rest[1 + hashes..].starts_with('"') {
                    string = Some((format!("\"{}", "#".repeat(hashes)), false));
                    2 + hashes
                } else if rest.starts_with("'\"'") {
                    3
                } else if rest.starts_with("'\\") {
                    // an escaped character, which may be a quote
                    3 + rest.get(3..).and_then(|rest| rest.find('\'')).map_or(0, |at| at + 1)
                } else {
                    rest.len().min(1)
                }
            }
        };
        let step = step.min(rest.len());
        lines.extend(rest[..step].matches('\n').map(|_| String::new()));
        rest = &rest[step..];
    }
    lines
}

/// Lower-case words of a line, with one blank around each; what stands in backticks is code, and so is a
/// variable in braces.
fn words(line: &str) -> String {
    let outside = line.split('`').step_by(2).collect::<Vec<_>>().join(" ` ").to_lowercase();
    let variable = |name: &str| name.chars().all(|c| c.is_alphanumeric() || c == '_');
    let past = |part: &'_ str| match part.split_once('}') {
        Some((name, rest)) if variable(name) => rest.to_owned(),
        Some(_) | None => part.to_owned(),
    };
    let mut parts = outside.split('{');
    let first = parts.next().unwrap_or_default().to_owned();
    let outside = parts.map(past).fold(first, |all, part| all + " ` " + &part);
    let words = outside.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '`');
    format!(" {} ", words.filter(|w| !w.is_empty()).collect::<Vec<_>>().join(" "))
}

/// Whether a sentence of a line begins with a pronoun for the item that is documented.
fn begins_with_pronoun(line: &str) -> bool {
    let start = line.trim_start_matches(['/', '!', '#', ':', '"', ' ']);
    let sentences = [start].into_iter().chain(line.split(". ").skip(1));
    sentences
        .into_iter()
        .any(|sentence| sentence.starts_with("Those of ") || sentence.starts_with("That of "))
}

/// The phrases of a line that stand there on their own.
fn found(line: &str) -> Vec<&'static Phrase> {
    // most lines have none of the words
    let folded = line.to_ascii_lowercase();
    if !PHRASES.iter().any(|(phrase, ..)| folded.contains(phrase.split(' ').next_back().unwrap_or(phrase))) {
        return Vec::new();
    }
    let words = words(line);
    let count = |phrase: &str| words.matches(&format!(" {phrase} ")).count();
    let known = |longer: &[&str]| longer.iter().map(|phrase| count(phrase)).sum::<usize>();
    PHRASES.iter().filter(|(phrase, _, longer)| count(phrase) > known(longer)).collect()
}

#[test]
fn prose_has_the_words_of_the_field() {
    let mut files = Vec::new();
    texts(&root(), &mut files);
    files.sort();
    assert!(files.len() > 500, "{}", files.len());
    let mut wrong = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let is_rust = file.extension().is_some_and(|e| e == "rs");
        let lines = if is_rust { prose(&text) } else { text.lines().map(str::to_owned).collect() };
        let name = file.strip_prefix(root()).unwrap().display().to_string();
        // this list
        if name == "tests/repository/words.rs" {
            continue;
        }
        for (k, line) in lines.iter().enumerate() {
            for (phrase, instead, _) in found(line) {
                wrong.push(format!("{name}:{}: `{phrase}`; write {instead}", k + 1));
            }
            if begins_with_pronoun(line) {
                wrong.push(format!("{name}:{}: a sentence begins with a pronoun; write what it is", k + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "{} lines:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn phrases_are_found_in_prose_alone() {
    let text = "let behind = \"so many\"; // what is behind\nlet c = '\"'; behind(r#\"a \" in turn\"#);\n/// `behind` the error";
    let lines = prose(text);
    let phrases = |k: usize| found(&lines[k]).iter().map(|(phrase, ..)| *phrase).collect::<Vec<_>>();
    assert_eq!(lines.len(), 3);
    assert_eq!(phrases(0), ["so many", "behind"]);
    assert_eq!(phrases(1), ["in turn"]);
    assert!(phrases(2).is_empty());
    assert!(found("_{behind} and {in turn}").len() == 1);
    assert!(found("a write is left behind, or not").is_empty());
    assert_eq!(found("left behind, and behind it").len(), 1);
    assert!(begins_with_pronoun("/ Those of a mesh.") && begins_with_pronoun("one. That of the others"));
    assert!(!begins_with_pronoun("lengths are those of the mesh"));
    assert_eq!(found("It Shall be inside of them").len(), 2);
}
