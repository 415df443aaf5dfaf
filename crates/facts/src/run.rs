//! Runs facts as tests, says how answers differ, and blesses them.

use crate::file::{Body, Fact, FactFile, trimmed};
use libtest_mimic::{Arguments, Failed, Trial};
use similar::TextDiff;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// What was found for a fact.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answers {
    /// The program as it is printed, where that is part of the fact.
    pub kernel: Option<String>,
    /// An answer to each question; fewer where one ends what can be asked.
    pub answers: Vec<String>,
}

/// A file below the folder of facts.
struct Place {
    path: PathBuf,
    /// `folder::file`
    name: String,
}

/// Says what becomes of a fact's program.
type Answer = Arc<dyn Fn(&Fact) -> Result<Answers, String> + Send + Sync>;

/// Runs the facts below a folder as the tests of a program: its `main`.
///
/// `answer` says what becomes of a fact's program; an error, or a panic, fails the fact whatever is
/// expected.
pub fn main(
    root: &Path,
    answer: impl Fn(&Fact) -> Result<Answers, String> + Send + Sync + 'static,
) -> ExitCode {
    let answer: Answer = Arc::new(answer);
    let arguments = Arguments::from_args();
    let trials = match places(root) {
        Ok(places) if places.is_empty() => {
            let message = format!("{}: no files of facts", root.display());
            vec![Trial::test("facts", move || Err(message.into()))]
        }
        Ok(places) => {
            places.into_iter().filter(|p| concerns(&arguments, p)).flat_map(|p| trials(p, &answer)).collect()
        }
        Err(message) => vec![Trial::test("facts", move || Err(message.into()))],
    };
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// Every fact below a folder: the names of its folder and file, and the fact.
///
/// # Errors
/// What cannot be read or is no file of facts, with its place.
pub fn load(root: &Path) -> Result<Vec<(String, Fact)>, String> {
    let mut facts = Vec::new();
    for place in places(root)? {
        let file = read(&place.path)?;
        facts.extend(file.facts.into_iter().map(|fact| (place.name.clone(), fact)));
    }
    Ok(facts)
}

fn places(root: &Path) -> Result<Vec<Place>, String> {
    let list = |dir: &Path| -> Result<Vec<PathBuf>, String> {
        let entries = std::fs::read_dir(dir).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let entries = entries.map_err(|e| format!("{}: {e}", dir.display()))?;
        let mut paths: Vec<_> = entries.into_iter().map(|e| e.path()).collect();
        paths.sort();
        Ok(paths)
    };
    let stem = |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let mut found = Vec::new();
    for folder in list(root)? {
        if !folder.is_dir() {
            return Err(format!("{}: a file of facts stands in a folder", folder.display()));
        }
        for path in list(&folder)? {
            let name = format!("{}::{}", stem(&folder), stem(&path));
            found.push(Place { path, name });
        }
    }
    Ok(found)
}

/// Whether facts of a file may be asked for; one whose name is given exactly saves reading the
/// others.
fn concerns(arguments: &Arguments, place: &Place) -> bool {
    match &arguments.filter {
        Some(filter) if arguments.exact => filter.starts_with(&place.name),
        Some(_) | None => true,
    }
}

fn read(path: &Path) -> Result<FactFile, String> {
    let mut text = String::new();
    // Another test may be writing down what it found.
    let read = File::open(path).and_then(|mut file| {
        file.lock_shared()?;
        file.read_to_string(&mut text)
    });
    read.map_err(|e| format!("{}: {e}", path.display()))?;
    parse(path, &text)
}

fn parse(path: &Path, text: &str) -> Result<FactFile, String> {
    FactFile::parse(text).map_err(|e| format!("{}:{e}", path.display()))
}

/// The tests of a file: one a fact, or one for all where each test is a process of its own.
fn trials(place: Place, answer: &Answer) -> Vec<Trial> {
    let file = match read(&place.path) {
        Ok(file) if file.facts.is_empty() => Err(format!("{}: no facts", place.path.display())),
        other => other,
    };
    let file = match file {
        Ok(file) => file,
        Err(message) => return vec![Trial::test(place.name, move || Err(message.into()))],
    };
    if std::env::var_os("NEXTEST").is_some() {
        let answer = Arc::clone(answer);
        let run = move || {
            let failed: Vec<String> =
                file.facts.iter().filter_map(|fact| judge(&place.path, fact, &answer).err()).collect();
            if failed.is_empty() { Ok(()) } else { Err(Failed::from(failed.join("\n"))) }
        };
        return vec![Trial::test(place.name, run)];
    }
    let path = Arc::new(place.path);
    let test = |fact: Fact| {
        let (path, answer) = (Arc::clone(&path), Arc::clone(answer));
        let name = format!("{}::{}", place.name, fact.name);
        Trial::test(name, move || judge(&path, &fact, &answer).map_err(Failed::from))
    };
    file.facts.into_iter().map(test).collect()
}

/// Compares a fact with what is found, or writes down what is found.
fn judge(path: &Path, fact: &Fact, answer: &Answer) -> Result<(), String> {
    let place = format!("{}:{}: `{}`", path.display(), fact.line, fact.name);
    let found = catch_unwind(AssertUnwindSafe(|| answer(fact))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        Err(text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("panics").to_owned())
    });
    let found = found.map_err(|message| format!("{place}: {message}\n"))?;
    if let Some(unanswered) = fact.questions.get(found.answers.len()) {
        let line = unanswered.line;
        return Err(format!("{place}: line {line}, `{}`, is never reached\n", unanswered.text));
    }
    let expected = (0..).zip(&fact.questions).map(|(k, q)| (Some(k), &q.answer)).zip(found.answers);
    let kernel = found.kernel.map(|text| ((None, &fact.kernel), text));
    let pairs = kernel.into_iter().chain(expected);
    let differing: Vec<_> =
        pairs.map(|(of, text)| (of, trimmed(&text))).filter(|((_, body), text)| body.text != *text).collect();
    if differing.is_empty() {
        return Ok(());
    }
    if std::env::var_os("BLESS").is_some() {
        let changes: Vec<_> = differing.into_iter().map(|((question, _), text)| (question, text)).collect();
        return bless(path, fact, &changes).map_err(|e| format!("{place}: {e}\n"));
    }
    let shown = differing.into_iter().map(|((question, body), text)| {
        let of = question.map_or("its program is printed otherwise".to_owned(), |q: usize| {
            format!("line {}, `> {}`", fact.questions[q].line, fact.questions[q].text)
        });
        format!("{place}: {of}\n{}", difference(body, &text))
    });
    let shown: Vec<_> = shown.collect();
    Err(shown.join("\n") + "\nto accept what was found, run this test with BLESS=1 and review the change\n")
}

fn difference(expected: &Body, found: &str) -> String {
    let (expected, found) = (format!("{}\n", expected.text), format!("{found}\n"));
    TextDiff::from_lines(&expected, &found).unified_diff().header("expected", "found").to_string()
}

/// Writes answers into a file that other tests may be writing to.
fn bless(path: &Path, fact: &Fact, changes: &[(Option<usize>, String)]) -> Result<(), String> {
    let io = |e: std::io::Error| format!("{}: {e}", path.display());
    let mut file: File = OpenOptions::new().read(true).write(true).open(path).map_err(io)?;
    file.lock().map_err(io)?;
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(io)?;
    // Read again: lines may have moved, as other facts of the file were written down.
    let facts = parse(path, &text)?;
    let now = facts.facts.iter().find(|f| f.name == fact.name && f.questions.len() == fact.questions.len());
    let now = now.ok_or_else(|| format!("{}: the file has changed; run again", path.display()))?;
    let body = |question: Option<usize>| question.map_or(&now.kernel, |k| &now.questions[k].answer);
    let bodies: Vec<_> = changes.iter().map(|(question, text)| (body(*question), text.clone())).collect();
    let text = facts.with(&bodies)?;
    file.set_len(0).and_then(|()| file.rewind()).and_then(|()| file.write_all(text.as_bytes())).map_err(io)
}
