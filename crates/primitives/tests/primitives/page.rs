//! `docs/primitives.md`: what the documentation and the tests of the primitives say, on one page.

use crate::story::is_refusal;
use kingpost_facts::Fact;
use kingpost_primitives::{PrimitiveInfo, steps};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

const COMMAND: &str = "KINGPOST_WRITE_PAGES=1 cargo test -p kingpost-primitives --test primitives page";

/// What the documentation of a primitive is made of.
const SECTIONS: [&str; 5] = ["Rewrite", "Precondition", "Errors", "Elsewhere", "Source"];

fn read(path: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The file of a primitive, of whichever crate.
fn source(name: &str) -> String {
    let crates = ["transforms", "algebra"].map(|of| format!("../{of}/src/primitives/{name}.rs"));
    let [file] = crates
        .iter()
        .filter(|file| Path::new(env!("CARGO_MANIFEST_DIR")).join(file).exists())
        .collect::<Vec<_>>()[..]
    else {
        panic!("{name} has not one file");
    };
    read(file)
}

/// The documentation of the type of a primitive's arguments: what it does, and its sections.
fn documentation(info: &PrimitiveInfo) -> (String, BTreeMap<String, String>) {
    let file = source(info.name);
    let lines: Vec<&str> = file.lines().collect();
    let heads = ["struct", "enum"].map(|kind| format!("pub {kind} {} {{", info.type_name));
    let end = lines.iter().position(|l| heads.iter().any(|head| l.starts_with(head))).unwrap();
    let attributes = lines[..end].iter().rev().take_while(|l| l.starts_with("#[") || l.starts_with("///"));
    let mut doc: Vec<&str> = attributes.filter_map(|l| l.strip_prefix("///")).collect();
    doc.reverse();
    let (mut summary, mut sections) = (String::new(), BTreeMap::new());
    let mut section: Option<&str> = None;
    for line in doc.iter().map(|l| l.strip_prefix(' ').unwrap_or(l)) {
        if let Some(title) = line.strip_prefix("# ") {
            section = Some(title);
            continue;
        }
        let text = match section {
            None => &mut summary,
            Some(title) => sections.entry(title.to_owned()).or_default(),
        };
        *text += &format!("{}\n", without_links(line));
    }
    (summary.trim().to_owned(), sections.into_iter().map(|(k, v)| (k, v.trim().to_owned())).collect())
}

/// The blocks of text under `# Rewrite`.
pub fn documented_blocks(info: &PrimitiveInfo) -> Vec<String> {
    let (_, sections) = documentation(info);
    let parts = sections["Rewrite"].split("```text\n").skip(1);
    parts.map(|part| part.split("```").next().unwrap_or_default().to_owned()).collect()
}

/// `` [`x`](y) `` and `` [`x`] `` as `` `x` ``.
fn without_links(line: &str) -> String {
    let mut text = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("[`") {
        let Some((name, after)) = after.split_once("`]") else { break };
        text += &format!("{before}`{name}`");
        rest = match after.strip_prefix('(').and_then(|target| target.split_once(')')) {
            Some((_, after)) => after,
            None => after,
        };
    }
    text + rest
}

/// The facts below `facts`, by the primitive whose folder they are in.
fn all_facts() -> BTreeMap<String, Vec<Fact>> {
    let mut all: BTreeMap<String, Vec<Fact>> = BTreeMap::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("facts");
    for (file, fact) in kingpost_facts::load(&root).unwrap() {
        let folder = file.split("::").next().unwrap().to_owned();
        all.entry(folder).or_default().push(fact);
    }
    all
}

/// The facts that tests state of a primitive: whether it refuses, by name.
fn facts(info: &PrimitiveInfo, all: &BTreeMap<String, Vec<Fact>>) -> BTreeMap<String, bool> {
    let mut facts = BTreeMap::new();
    // The page shows those that are documented as the documentation itself.
    let told = all.get(info.name).into_iter().flatten().filter(|f| !f.name.starts_with("documented"));
    for fact in told {
        let name = format!("{}/{}", info.name, fact.name);
        assert!(facts.insert(fact.name.clone(), is_refusal(fact)).is_none(), "two facts are {name}");
    }
    // What cannot be a fact is a test in a file of the primitive's name.
    let file = format!("{}/tests/primitives/{}.rs", env!("CARGO_MANIFEST_DIR"), info.name);
    let file = std::fs::read_to_string(file).unwrap_or_default();
    let lines: Vec<&str> = file.lines().map(str::trim).collect();
    for pair in lines.windows(2).filter(|pair| pair[0] == "#[test]") {
        let name =
            pair[1].strip_prefix("fn ").and_then(|l| l.split_once('(')).map(|(name, _)| name.to_owned());
        facts.entry(name.unwrap()).or_insert_with_key(|name| name.starts_with("refuses"));
    }
    facts
}

fn named(facts: &BTreeMap<String, bool>, refused: bool) -> Vec<String> {
    let names = facts.iter().filter(|(_, r)| **r == refused).map(|(name, _)| name.replace('_', " "));
    names.map(|name| name.trim_start_matches("refuses ").to_owned()).collect()
}

fn page() -> String {
    let mut rows = String::new();
    let mut text = String::new();
    let (mut refusals, mut tests) = (0, 0);
    let all = all_facts();
    for info in steps().rows() {
        let (summary, sections) = documentation(info);
        let facts = facts(info, &all);
        let (name, refused, legal) = (info.name, named(&facts, true), named(&facts, false));
        refusals += refused.len();
        tests += facts.len();
        let cells = [format!("[`{name}`](#{name})"), info.summary.into(), info.keeps.to_string()];
        rows += &format!("| {} | {} | {} |\n", cells.join(" | "), refused.len(), facts.len());
        text += &format!("\n## {name}\n\n{summary}\n");
        for title in SECTIONS {
            if let Some(section) = sections.get(title) {
                let gap = if title == "Rewrite" { "\n\n" } else { " " };
                text += &format!("\n**{title}.**{gap}{section}\n");
            }
        }
        text += "\n| obligation | what must hold |\n|---|---|\n";
        for obligation in info.obligations {
            text += &format!("| `{}` | {} |\n", obligation.id(), obligation.says().replace('|', "\\|"));
        }
        let folder = format!("[facts/{name}](../crates/primitives/facts/{name})");
        text += &format!("\n**Tests.** {} refused, {} legal: {folder}.\n", refused.len(), legal.len());
    }
    format!(
        "# Primitives\n\nWhat each of the {} primitives does, proves and refuses, from its documentation and its \
         tests: {refusals} refusals among {tests} facts. This page is generated; after a change run\n\n    \
         {COMMAND}\n\nRefusals name two instances that clash, or the argument that does not fit, and what to try; \
         the exact messages are the facts in `crates/primitives/facts`. A message ends with the id of the obligation \
         that is not met. Every step also keeps `storage` and `placement`. What it keeps of the results stands with \
         each, if its arguments say nothing else.\n\n\
         | primitive | what it does | keeps | refusals | tests |\n|---|---|---|---:|---:|\n{rows}{text}",
        steps().rows().len()
    )
}

#[test]
fn page_of_primitives_is_up_to_date() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/primitives.md");
    let page = page();
    if std::env::var_os("KINGPOST_WRITE_PAGES").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &page).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = page.lines().zip(found.lines()).find(|(a, b)| a != b);
    assert!(found == page, "docs/primitives.md is not up to date ({differs:?}); run {COMMAND}");
}

/// Every primitive says what becomes of a program, what it proves (as a formula), what it refuses,
/// and what others call it; and tests show both what it does and what it refuses.
#[test]
fn page_lacks_nothing() {
    let mut missing = BTreeSet::new();
    let all = all_facts();
    for info in steps().rows() {
        let (summary, sections) = documentation(info);
        let name = info.name;
        let mut need = |holds: bool, what: &str| {
            if !holds {
                missing.insert(format!("{name}: {what}"));
            }
        };
        let holds = |title: &str, part: &str| sections.get(title).is_some_and(|text| text.contains(part));
        need(!summary.is_empty(), "what it does");
        need(holds("Rewrite", "=>"), "before => after under `# Rewrite`");
        need(holds("Precondition", "`"), "a formula under `# Precondition`");
        need(holds("Errors", "."), "`# Errors`");
        need(holds("Elsewhere", "."), "`# Elsewhere`");
        let unknown = sections.keys().find(|title| !SECTIONS.contains(&title.as_str()));
        need(unknown.is_none(), &format!("a place on the page for `# {}`", unknown.map_or("", |t| t)));
        let facts = facts(info, &all);
        need(facts.values().any(|refused| *refused), "a test of a refusal");
        need(facts.values().any(|refused| !*refused), "a test of what it does");
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

/// What a primitive proves, in words.
pub fn proved(info: &PrimitiveInfo) -> String {
    info.obligations.iter().map(|o| o.says()).collect::<Vec<_>>().join("; ")
}
