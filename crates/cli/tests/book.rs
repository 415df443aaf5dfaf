//! The book (`docs/book`) is run: every code block is checked, without mdBook.
//!
//! The info string of a block says what it is:
//!
//! | block | what is checked |
//! |---|---|
//! | `kingpost` | the kernel parses, and a schedule after it; with `print`, the text is its canonical print; with `broken`, it must not parse |
//! | `json` | it is JSON; with `recipe`, `selection` or `mapping`, it deserialises to that type; with `lines`, each line is |
//! | `console` | each `$ command` runs in a shell and prints what follows it; `exit=N` is the last one's status |
//! | `rust`, `python`, `facts` | with `from=PATH`, the lines stand in that file; a line `// ...` separates the pieces |
//! | `schedule` | it is the text of a schedule |
//! | with `grammar` | comments of a kernel or a schedule name every production of the chapter's grammar |
//! | `ebnf` | it is closed; with `schedule`, it mentions every keyword of schedules, else every keyword, type, function, address space and loop tag of the text format |
//!
//! `file=NAME` also writes a block to the directory in which the commands of all chapters run,
//! with the kernels and recipes of `examples`. In expected output a line `...` stands for any
//! number of lines, and `...` within a line for any text.
//!
//! `BLESS=1 cargo nextest run --test book` rewrites the outputs of commands and the printed
//! kernels.

#![allow(clippy::unwrap_used, clippy::panic)] // how a test fails

use kingpost::Mapping;
use kingpost::ir::verify::KEYWORDS;
use kingpost::ir::{AddressSpace, AxisTag, MathFn, ScalarType, text};
use kingpost::transforms::Selection;
use kingpost::transforms::steps;
use kingpost_sample::is_long_run;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn source() -> PathBuf {
    root().join("docs/book/src")
}

/// The chapters: name of the file and its text, in the order of their names.
fn chapters() -> Vec<(String, String)> {
    let entries = std::fs::read_dir(source()).unwrap().map(|e| e.unwrap().path());
    let mut paths: Vec<_> = entries.filter(|p| p.extension().is_some_and(|e| e == "md")).collect();
    paths.sort();
    let name = |p: &Path| p.file_name().unwrap().to_string_lossy().into_owned();
    paths.iter().map(|p| (name(p), std::fs::read_to_string(p).unwrap())).collect()
}

/// A fenced block of a chapter.
struct Block {
    /// Number of its first line, from 1.
    line: usize,
    /// The words of its info string.
    info: Vec<String>,
    /// The text between the fences.
    body: String,
}

/// What a chapter consists of, in order.
enum Part {
    /// A line of prose, or a fence.
    Line(String),
    Block(Block),
}

impl Block {
    fn is(&self, word: &str) -> bool {
        self.info.iter().any(|w| w == word)
    }

    fn value(&self, key: &str) -> Option<&str> {
        self.info.iter().find_map(|w| w.strip_prefix(key)?.strip_prefix('='))
    }
}

fn parts(chapter: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut lines = chapter.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        parts.push(Part::Line(line.to_owned()));
        let Some(info) = line.strip_prefix("```") else { continue };
        let info = info.split([',', ' ']).map(str::to_owned).collect();
        let mut body = String::new();
        let close = loop {
            match lines.next() {
                Some((_, "```")) | None => break "```",
                Some((_, line)) => body += &format!("{line}\n"),
            }
        };
        parts.push(Part::Block(Block { line: at + 2, info, body }));
        parts.push(Part::Line(close.to_owned()));
    }
    parts
}

fn blocks(chapter: &str) -> Vec<Block> {
    let block = |part| match part {
        Part::Block(block) => Some(block),
        Part::Line(_) => None,
    };
    parts(chapter).into_iter().filter_map(block).collect()
}

/// A block that says something else than what happens.
struct Difference {
    message: String,
    /// The text that would say it, if running the block gives one.
    blessed: Option<String>,
}

impl Difference {
    fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), blessed: None }
    }
}

fn check(block: &Block, dir: &Path) -> Result<(), Difference> {
    let parsed = |result: Result<(), String>| result.map_err(Difference::new);
    match block.info[0].as_str() {
        "kingpost" if block.is("broken") => broken(block),
        "kingpost" => kernel(block),
        "json" => parsed(json(block)),
        "console" if is_left_out(block) => Ok(()),
        "console" => console(block, dir),
        "rust" | "python" | "facts" => parsed(excerpt(block)),
        "schedule" => parsed(steps().script(&block.body).map(|_| ()).map_err(|e| e.render(&block.body))),
        "ebnf" if block.is("schedule") => parsed(mentions(&block.body, SCHEDULE_WORDS.map(str::to_owned))),
        "ebnf" => parsed(grammar(&block.body)),
        other => Err(Difference::new(format!("`{other}` is not a kind of block that is run"))),
    }
}

fn kernel(block: &Block) -> Result<(), Difference> {
    let (kernel, _) = steps().file(&block.body).map_err(|e| Difference::new(e.to_string()))?;
    let printed = kernel.to_string();
    if block.is("print") && printed != block.body {
        let message = format!("the kernel is printed as\n{printed}");
        return Err(Difference { message, blessed: Some(printed) });
    }
    Ok(())
}

/// A kernel with mistakes; the command that reports them follows it.
fn broken(block: &Block) -> Result<(), Difference> {
    match text::parse(&block.body) {
        Err(_) => Ok(()),
        Ok(_) => Err(Difference::new("the kernel parses, but the block says `broken`")),
    }
}

fn json(block: &Block) -> Result<(), String> {
    fn read<T: serde::de::DeserializeOwned>(text: &str) -> Result<(), String> {
        serde_json::from_str::<T>(text).map(|_| ()).map_err(|e| e.to_string())
    }
    if block.is("recipe") {
        return steps().recipe(&block.body).map(|_| ()).map_err(|e| e.to_string());
    }
    match () {
        () if block.is("selection") => block.body.lines().try_for_each(read::<Selection>),
        () if block.is("mapping") => block.body.lines().try_for_each(read::<Mapping>),
        () if block.is("lines") => block.body.lines().try_for_each(read::<serde_json::Value>),
        () => read::<serde_json::Value>(&block.body),
    }
}

/// Whether the pieces of an excerpt stand in their file in this order, indented as the file has
/// them or less.
fn excerpt(block: &Block) -> Result<(), String> {
    let path = block.value("from").ok_or("an excerpt names its file: `rust,from=PATH`")?;
    let text = std::fs::read_to_string(root().join(path)).map_err(|e| format!("{path}: {e}"))?;
    let file: Vec<&str> = text.lines().collect();
    let lines: Vec<&str> = block.body.lines().collect();
    let mut start = 0;
    for piece in lines.split(|l| l.trim() == "// ...") {
        let stands = |at: &usize| {
            let here = &file[*at..*at + piece.len()];
            let margin = here.first().map_or(0, |l| l.len() - l.trim_start().len());
            let margin = margin - piece.first().map_or(0, |l| (l.len() - l.trim_start().len()).min(margin));
            let same = |(f, p): (&&str, &&str)| f.get(margin..).unwrap_or("") == *p;
            here.iter().zip(piece).all(same)
        };
        let found = (start..(file.len() + 1).saturating_sub(piece.len())).find(stands);
        let found = found.ok_or_else(|| format!("{path} does not have the lines\n{}", piece.join("\n")))?;
        start = found + piece.len();
    }
    Ok(())
}

/// Examples of grammars have every production.
#[test]
fn every_production_has_an_example() {
    for chapter in ["text_format.md", "schedules.md"] {
        let blocks = blocks(&std::fs::read_to_string(source().join(chapter)).unwrap());
        let grammar = blocks.iter().find(|block| block.is("ebnf")).unwrap();
        let example = blocks.iter().find(|block| block.is("grammar")).unwrap();
        let comments = example.body.lines().filter_map(|line| line.rsplit_once('#'));
        let shown: BTreeSet<&str> = comments.flat_map(|(_, names)| names.split(',').map(str::trim)).collect();
        let productions = grammar.body.lines().filter(|line| line.starts_with(|c: char| c.is_alphabetic()));
        let names: BTreeSet<&str> = productions.filter_map(|line| line.split_whitespace().next()).collect();
        assert!(names.len() > 10, "{chapter}: {names:?}");
        assert_eq!(shown, names, "{chapter}");
    }
}

/// Tables that put names of other tools next to those of steps have steps.
#[test]
fn names_of_steps_are_those_of_the_set() {
    let known = |name: &str| steps().called(name).is_some() || steps().combined(name).is_some();
    for chapter in ["halide_exo.md", "polybench.md"] {
        let text = std::fs::read_to_string(source().join(chapter)).unwrap();
        let rows = text.lines().filter(|line| line.starts_with('|'));
        let last = rows.filter_map(|line| line.strip_suffix('|')?.rsplit_once('|'));
        let names = last.flat_map(|(_, cell)| cell.split('`').skip(1).step_by(2).map(str::to_owned));
        // what stands before `(`, and after `let … =`
        let name = |code: String| Some(code.split_once('(')?.0.rsplit(' ').next()?.to_owned());
        let calls: Vec<_> = names.filter_map(name).collect();
        assert!(calls.len() > 5, "{chapter} has {calls:?}");
        for name in calls {
            assert!(known(&name), "{chapter}: there is no step `{name}`");
        }
    }
}

/// The words of the text of a schedule that stand for themselves.
const SCHEDULE_WORDS: [&str; 6] = ["let", "in", "require", "mod", "true", "false"];

fn grammar(body: &str) -> Result<(), String> {
    let words = KEYWORDS.iter().map(ToString::to_string);
    let words = words.chain(ScalarType::ALL.iter().map(ToString::to_string));
    let words = words.chain(MathFn::ALL.iter().map(|f| f.name().to_owned()));
    let words = words.chain(AddressSpace::ALL.iter().map(|s| s.name().to_owned()));
    let words = words.chain(AxisTag::ALL.iter().map(ToString::to_string));
    mentions(body, words)
}

/// Whether a grammar is closed and has all these words as terminals.
fn mentions(body: &str, words: impl IntoIterator<Item = String>) -> Result<(), String> {
    let words = words.into_iter().map(|word| format!("\"{word}\""));
    let missing: Vec<String> = words.filter(|w| !body.contains(w)).collect();
    if missing.is_empty() {
        productions(body)
    } else {
        Err(format!("the grammar lacks {}", missing.join(", ")))
    }
}

/// Checks that every symbol of a grammar has one production, and that the first one leads to all
/// others.
fn productions(body: &str) -> Result<(), String> {
    const LEXICAL: [&str; 6] = ["name", "integer", "real", "hexadecimal", "string", "indented"];
    let without_comments: String =
        body.split("(*").map(|part| part.split_once("*)").map_or(part, |(_, rest)| rest)).collect();
    // what stands between quotes is terminal
    let symbols: String = without_comments.split('"').step_by(2).collect::<Vec<_>>().join(" ");
    let mut defined = Vec::new();
    let mut used = BTreeSet::new();
    for production in symbols.split(';').filter(|p| !p.trim().is_empty()) {
        let (left, right) = production.split_once('=').ok_or_else(|| format!("no `=` in `{production}`"))?;
        defined.push(left.trim().to_owned());
        let words = right.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty());
        used.extend(words.filter(|w| !LEXICAL.contains(w)).map(str::to_owned));
    }
    let unused = defined.iter().skip(1).find(|d| !used.contains(*d));
    let undefined = used.iter().find(|u| defined.iter().filter(|d| d == u).count() != 1);
    match (unused, undefined) {
        (None, None) => Ok(()),
        (Some(symbol), _) => Err(format!("no production uses `{symbol}`")),
        (None, Some(symbol)) => Err(format!("`{symbol}` does not have one production")),
    }
}

/// A command of a `console` block and the output that it is said to have.
struct Run {
    /// With its line breaks.
    command: String,
    expected: Vec<String>,
}

fn runs(body: &str) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut continued = false;
    for line in body.lines() {
        match (line.strip_prefix("$ "), runs.last_mut()) {
            (Some(command), _) => runs.push(Run { command: command.to_owned(), expected: Vec::new() }),
            (None, Some(run)) if continued => run.command += &format!("\n{line}"),
            (None, Some(run)) => run.expected.push(line.to_owned()),
            (None, None) => {}
        }
        let is_command = continued || line.starts_with("$ ");
        continued = is_command && line.ends_with('\\');
    }
    runs
}

fn console(block: &Block, dir: &Path) -> Result<(), Difference> {
    let runs = runs(&block.body);
    let (mut message, mut blessed) = (String::new(), String::new());
    let last = runs.len().checked_sub(1).ok_or_else(|| Difference::new("no line starts with `$ `"))?;
    for (k, run) in runs.iter().enumerate() {
        let (found, status) = shell(&run.command, dir);
        let expected_status = if k == last { block.value("exit").unwrap_or("0") } else { "0" };
        let same = matches(&run.expected, &found);
        writeln!(blessed, "$ {}", run.command).unwrap();
        for line in if same { &run.expected } else { &found } {
            writeln!(blessed, "{line}").unwrap();
        }
        if !same {
            writeln!(message, "$ {}\nprinted\n{}", run.command, found.join("\n")).unwrap();
        }
        if status != expected_status {
            let command = &run.command;
            writeln!(message, "$ {command}\nexited with {status}, expected {expected_status}").unwrap();
        }
    }
    if message.is_empty() { Ok(()) } else { Err(Difference { message, blessed: Some(blessed) }) }
}

/// What takes seconds, most of them for C compilers, and has tests of its own: a long run has it, and so has one that
/// blesses.
const SLOW: [&str; 5] =
    ["solve hyperelasticity", "--preconditioner", "--multigrid", "auto gemm", "run hyperelasticity-matrix"];

fn is_left_out(block: &Block) -> bool {
    !is_long_run() && !is_blessed() && SLOW.iter().any(|part| block.body.contains(part))
}

fn is_blessed() -> bool {
    std::env::var_os("BLESS").is_some_and(|v| v != "0")
}

/// What a command prints, standard error included, and its status.
fn shell(command: &str, dir: &Path) -> (Vec<String>, String) {
    let program = Path::new(env!("CARGO_BIN_EXE_kingpost")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap_or_default());
    let output = Command::new("sh")
        .args(["-c", &format!("{{ {command}\n}} 2>&1")])
        .current_dir(dir)
        .env("PATH", path)
        .env("COLUMNS", "100")
        .env("NO_COLOR", "1")
        .env_remove("KINGPOST_CC_OPTIONS") // tests of their own may compile kernels quickly
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let status = output.status.code().map_or_else(|| "a signal".to_owned(), |code| code.to_string());
    (text.lines().map(|l| l.trim_end().to_owned()).collect(), status)
}

/// Whether output is as expected: a line `...` stands for any number of lines.
fn matches(expected: &[String], found: &[String]) -> bool {
    match (expected.split_first(), found.split_first()) {
        (None, None) => true,
        (None, Some(_)) => false,
        (Some((first, rest)), _) if first.trim() == "..." => {
            (0..=found.len()).any(|skipped| matches(rest, &found[skipped..]))
        }
        (Some(_), None) => false,
        (Some((first, rest)), Some((line, more))) => {
            line_matches(&without_processor(first), &without_processor(line)) && matches(rest, more)
        }
    }
}

/// A line, without the processor's name and what fills its row: machines differ.
fn without_processor(line: &str) -> String {
    let after_name = line.strip_prefix("│ device ").and_then(|row| row.find(" (c)").map(|at| &row[at..]));
    after_name.map_or_else(
        || line.to_owned(),
        |end| format!("│ device {}", end.split_whitespace().collect::<Vec<_>>().join(" ")),
    )
}

/// Whether a line is as expected: `...` stands for any text.
fn line_matches(expected: &str, line: &str) -> bool {
    let Some((start, rest)) = expected.split_once("...") else { return expected.trim_end() == line };
    let Some(line) = line.strip_prefix(start) else { return false };
    (0..=line.len()).any(|at| line.get(at..).is_some_and(|tail| line_matches(rest, tail)))
}

/// The directory in which commands run: the named blocks of all chapters, the kernels and recipes
/// of `examples`, the meshes.
fn directory(chapters: &[(String, String)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("examples")).unwrap();
    for entry in std::fs::read_dir(root().join("examples")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "kingpost" || e == "json") {
            std::fs::copy(&path, dir.path().join("examples").join(path.file_name().unwrap())).unwrap();
        }
    }
    std::fs::create_dir(dir.path().join("meshes")).unwrap();
    std::fs::copy(root().join("meshes/bend.msh"), dir.path().join("meshes/bend.msh")).unwrap();
    for block in chapters.iter().flat_map(|(_, text)| blocks(text)) {
        if let Some(name) = block.value("file") {
            let path = dir.path().join(name);
            assert!(!path.exists(), "two blocks are the file `{name}`");
            std::fs::write(path, &block.body).unwrap();
        }
    }
    dir
}

/// Checks the blocks of a chapter; its differences, and its text with the outputs there are now.
fn run_chapter(name: &str, text: &str, dir: &Path) -> (String, String) {
    let (mut report, mut blessed) = (String::new(), String::new());
    for part in parts(text) {
        match part {
            Part::Line(line) => writeln!(blessed, "{line}").unwrap(),
            Part::Block(block) => match check(&block, dir) {
                Ok(()) => blessed += &block.body,
                Err(difference) => {
                    let Difference { message, blessed: new } = difference;
                    writeln!(report, "docs/book/src/{name}:{}: {message}", block.line).unwrap();
                    blessed += &new.unwrap_or(block.body);
                }
            },
        }
    }
    (report, blessed)
}

/// Checks all chapters; the differences, after they were written into the book if that is asked
/// for.
fn run_book(bless: bool) -> String {
    let chapters = chapters();
    let dir = directory(&chapters);
    let run = |(name, text): &(String, String)| run_chapter(name, text, dir.path());
    let results: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = chapters.iter().map(|chapter| scope.spawn(move || run(chapter))).collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    let mut report = String::new();
    for ((name, _), (differences, blessed)) in chapters.iter().zip(results) {
        if bless && !differences.is_empty() {
            std::fs::write(source().join(name), blessed).unwrap();
        }
        report += &differences;
    }
    report
}

#[test]
fn every_block_runs() {
    if is_blessed() {
        println!("rewritten; review it, and shorten to `...` what varies\n{}", run_book(true));
    }
    let report = run_book(false);
    assert!(report.is_empty(), "{report}\n`BLESS=1 cargo nextest run --test book` rewrites the outputs");
}

/// Pictures are drawn by the script of the explorer's page, which Node.js runs.
#[test]
fn pictures_are_those_that_the_explorer_draws() {
    if Command::new("node").arg("--version").output().is_err() {
        eprintln!("skipped: there is no Node.js");
        return;
    }
    let script = root().join("scripts/book_pictures.mjs");
    let check = ["--check", "--kingpost", env!("CARGO_BIN_EXE_kingpost")];
    // lanes, tiles, what is refused; in a long run all of them
    let few: &[&str] = if is_long_run() { &[] } else { &["axpy_lanes", "tiled", "waves_refused"] };
    let run = Command::new("node").arg(script).args(check).args(few).output().unwrap();
    let told = String::from_utf8_lossy(&run.stdout).into_owned() + &String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{told}");
}

#[test]
fn the_summary_lists_every_chapter_once() {
    let summary = std::fs::read_to_string(source().join("SUMMARY.md")).unwrap();
    let mut listed: Vec<_> =
        summary.split("](").skip(1).filter_map(|rest| rest.split(')').next()).map(str::to_owned).collect();
    let mut names: Vec<_> = chapters().into_iter().map(|(name, _)| name).collect();
    names.retain(|name| name != "SUMMARY.md");
    listed.sort();
    assert_eq!(listed, names);
}

/// The prose of a chapter: its text without code blocks.
fn prose(text: &str) -> String {
    let line = |part| match part {
        Part::Line(line) => Some(line + "\n"),
        Part::Block(_) => None,
    };
    parts(text).into_iter().filter_map(line).collect()
}

/// The anchors that mdBook gives the headings of a chapter.
fn anchors(text: &str) -> impl Iterator<Item = String> {
    let headings: Vec<String> =
        prose(text).lines().filter(|l| l.starts_with('#')).map(str::to_lowercase).collect();
    let anchor = |heading: String| {
        let kept = heading.trim_start_matches('#').trim().chars();
        let kept = kept.filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.into_iter().map(anchor)
}

#[test]
fn links_and_paths_lead_somewhere() {
    let folders = ["crates/", "src/", "tests/", "examples/", "scripts/", "docs/", "kernels/", "results/"];
    for (name, text) in chapters() {
        let prose = prose(&text);
        for link in prose.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.starts_with("https://") {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = std::fs::read_to_string(source().join(file));
            let target = target.unwrap_or_else(|e| panic!("{name} links to {link}: {e}"));
            assert!(anchor.is_empty() || anchors(&target).any(|a| a == anchor), "{name} links to {link}");
        }
        for path in prose.split('`').skip(1).step_by(2).filter(|p| folders.iter().any(|f| p.starts_with(f))) {
            assert!(root().join(path).exists(), "{name} names {path}");
        }
    }
}

/// What is reported of a chapter with one block, and what blessing makes of it.
fn checked(info: &str, body: &str) -> (String, String) {
    let dir = tempfile::tempdir().unwrap();
    run_chapter("here.md", &format!("```{info}\n{body}```\n"), dir.path())
}

#[test]
fn output_that_differs_is_reported_and_blessed() {
    let (report, blessed) = checked("console", "$ echo one; echo two >&2\none\n");
    assert_eq!(report, "docs/book/src/here.md:2: $ echo one; echo two >&2\nprinted\none\ntwo\n\n");
    assert_eq!(blessed, "```console\n$ echo one; echo two >&2\none\ntwo\n```\n");
    for same in ["one\ntwo", "...", "one\n...", "...\ntwo\n...", "o...\n...w..."] {
        let text = format!("$ echo one; echo two\n{same}\n");
        assert_eq!(checked("console", &text).0, "", "{same}");
    }
    for different in ["one", "two\none", "one\ntwo\nthree", "...\nthree", "o...x\ntwo"] {
        let text = format!("$ echo one; echo two\n{different}\n");
        assert_ne!(checked("console", &text).0, "", "{different}");
    }
}

#[test]
fn a_status_that_differs_is_reported() {
    let (report, _) = checked("console", "$ exit 3\n");
    assert_eq!(report, "docs/book/src/here.md:2: $ exit 3\nexited with 3, expected 0\n\n");
    assert_eq!(checked("console,exit=3", "$ true\n$ exit 3\n").0, "");
    assert_ne!(checked("console,exit=3", "$ exit 3\n$ exit 3\n").0, "", "only the last one may fail");
}

#[test]
fn blocks_that_are_wrong_are_reported() {
    let kernel = "kernel k\narg y: f64 out\ns: y = 1.0\n";
    let (report, blessed) = checked("kingpost,print", kernel);
    assert!(report.contains("the kernel is printed as\nkernel k\n\narg y"), "{report}");
    assert_eq!(blessed, "```kingpost,print\nkernel k\n\narg y: f64 out\n\ns: y = 1.0\n```\n");
    assert_eq!(checked("kingpost", kernel).0, "");
    for (info, body, message) in [
        ("kingpost", "kernel k\ns: y = 1.0\n", "`y` is not known"),
        ("kingpost,broken", kernel, "the kernel parses, but the block says `broken`"),
        ("json", "{\n", "EOF"),
        ("json,recipe", "{\"steps\": [{\"no_such\": {}}]}\n", "there is no step `no_such`"),
        ("json,selection", "{\"insns\": \"s\"}\n", "unknown variant `insns`"),
        ("json,mapping", "{\"strategy\": \"none\"}\n", "there is no strategy `none`"),
        ("rust", "fn f() {}\n", "an excerpt names its file"),
        ("rust,from=src/lib.rs", "fn f() {}\n", "src/lib.rs does not have the lines"),
        (
            "rust,from=src/lib.rs",
            "pub mod prelude;\n// ...\npub mod forms {\n",
            "src/lib.rs does not have the lines\npub mod forms {",
        ),
        ("ebnf", "kernel = \"kernel\" ;\n", "the grammar lacks \"param\""),
        ("text", "anything\n", "`text` is not a kind of block that is run"),
    ] {
        let (report, _) = checked(info, body);
        assert!(report.contains(message), "{info}: {report}");
    }
    assert_eq!(checked("rust,from=src/lib.rs", "pub mod forms {\n// ...\npub mod prelude;\n").0, "");
}

#[test]
fn a_grammar_with_gaps_is_reported() {
    let reported = |grammar: &str| productions(grammar).unwrap_err();
    assert_eq!(productions("a = \"=\" b { name \";\" } ; (* c *) b = \"x\" ;"), Ok(()));
    assert_eq!(reported("a = b ;"), "`b` does not have one production");
    assert_eq!(reported("a = b ; b = name ; b = real ;"), "`b` does not have one production");
    assert_eq!(reported("a = name ; b = name ;"), "no production uses `b`");
}
