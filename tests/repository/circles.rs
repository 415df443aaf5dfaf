//! Circles of files: files of a crate each of which uses the next, and the last the first.
//!
//! A file uses another one where a path leads to an item that stands there, re-exports aside. Whoever changes a
//! file of a circle has to read all of it.

use crate::architecture::{code, root, sources};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Circles of all crates, and files of the largest one. They only become fewer.
const CIRCLES: usize = 8;
const LARGEST: usize = 4;

type Path_ = Vec<String>;

/// What a file says: the items in it, and the paths in it with the names that they have there, if any, and
/// whether they are re-exports.
#[derive(Default)]
struct File {
    items: BTreeSet<String>,
    uses: Vec<(Path_, Option<String>, bool)>,
}

/// Words and punctuation, without comments, strings and what is for tests alone.
fn tokens(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut skip = false;
    for line in code(text) {
        let line = line.split("//").next().unwrap();
        if std::mem::take(&mut skip) {
            continue;
        }
        skip = line.trim() == "#[cfg(test)]";
        for (part, text) in line.split('"').enumerate() {
            if part % 2 == 1 {
                continue;
            }
            let mut word = String::new();
            for c in text.chars().chain([' ']) {
                if c.is_alphanumeric() || c == '_' {
                    word.push(c);
                    continue;
                }
                found.extend((!word.is_empty()).then(|| std::mem::take(&mut word)));
                match (c, found.last_mut()) {
                    (':', Some(last)) if last == ":" => last.push(':'),
                    (c, _) if !c.is_whitespace() => found.push(c.into()),
                    _ => {}
                }
            }
        }
    }
    found
}

/// The paths of a tree of imports, each with the name that it has.
fn tree(tokens: &[String], at: &mut usize, prefix: &[String], found: &mut Vec<(Path_, String)>) {
    let mut path = prefix.to_vec();
    while let Some(token) = tokens.get(*at) {
        *at += 1;
        match token.as_str() {
            "::" => {}
            "{" => {
                while tokens.get(*at).is_some_and(|token| token != "}") {
                    tree(tokens, at, &path, found);
                }
                *at += 1;
                if tokens.get(*at).is_some_and(|token| token == ",") {
                    *at += 1;
                }
                return;
            }
            "as" => {
                found.push((path, tokens[*at].clone()));
                *at += 1;
                if tokens.get(*at).is_some_and(|token| token == ",") {
                    *at += 1;
                }
                return;
            }
            "," | "}" | ";" => {
                if token == "}" {
                    *at -= 1;
                }
                break;
            }
            word => path.push(word.to_owned()),
        }
    }
    if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    let name = path.last().cloned().unwrap_or_default();
    found.push((path, name));
}

fn read(text: &str) -> File {
    let kinds = ["fn", "struct", "enum", "trait", "type", "const", "static", "union", "mod", "macro_rules"];
    let tokens = tokens(text);
    let is_word = |token: &String| token.starts_with(|c: char| c.is_alphabetic() || c == '_');
    let mut file = File::default();
    let mut at = 0;
    while at < tokens.len() {
        let token = tokens[at].as_str();
        if token == "use" {
            let is_public = match at.checked_sub(1).map(|before| tokens[before].as_str()) {
                Some("pub") => true,
                Some(")") => tokens[..at].iter().rev().take(6).any(|token| token == "pub"),
                _ => false,
            };
            let mut found = Vec::new();
            at += 1;
            tree(&tokens, &mut at, &[], &mut found);
            file.uses.extend(found.into_iter().map(|(path, name)| (path, Some(name), is_public)));
            continue;
        }
        if kinds.contains(&token) {
            let name = tokens[at + 1..].iter().find(|token| is_word(token) && *token != "mut");
            file.items.extend(name.cloned());
        }
        let mut path = Vec::new();
        if is_word(&tokens[at]) && at.checked_sub(1).is_none_or(|before| tokens[before] != "::") {
            path.push(tokens[at].clone());
            while tokens.get(at + 1).is_some_and(|token| token == "::")
                && tokens.get(at + 2).is_some_and(is_word)
            {
                path.push(tokens[at + 2].clone());
                at += 2;
            }
        }
        if path.len() > 1 {
            file.uses.push((path, None, false));
        }
        at += 1;
    }
    file
}

/// The files of a crate by their modules.
struct Crate(BTreeMap<Path_, File>);

impl Crate {
    fn of(folder: &Path) -> Self {
        let mut files = Vec::new();
        sources(folder, &mut files);
        let of_file = |path: std::path::PathBuf| {
            let relative = path.strip_prefix(folder).unwrap().with_extension("");
            let mut module: Path_ =
                relative.components().map(|c| c.as_os_str().to_string_lossy().into_owned()).collect();
            if module.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
                module.pop();
            }
            (module, read(&std::fs::read_to_string(path).unwrap()))
        };
        Self(files.into_iter().map(of_file).collect())
    }

    /// The file in which the item of a path stands that is said in a module, if it is one of the crate.
    fn file_of(&self, module: &[String], path: &[String], depth: usize) -> Option<Path_> {
        let (mut here, mut rest) = match path.first()?.as_str() {
            "crate" => (Vec::new(), &path[1..]),
            "self" => (module.to_vec(), &path[1..]),
            "super" => {
                let ups = path.iter().take_while(|part| *part == "super").count();
                (module[..module.len().checked_sub(ups)?].to_vec(), &path[ups..])
            }
            first if self.0.contains_key(&[module, &[first.to_owned()]].concat()) => (module.to_vec(), path),
            first => {
                // what the module itself has imported
                let named = |(_, name, _): &&(Path_, Option<String>, bool)| name.as_deref() == Some(first);
                let (to, ..) = self.0.get(module)?.uses.iter().find(named)?;
                let to = [to, &path[1..]].concat();
                let is_other = depth < 8 && to != path;
                return if is_other { self.file_of(module, &to, depth + 1) } else { None };
            }
        };
        while let Some((next, others)) = rest.split_first() {
            here.push(next.clone());
            if !self.0.contains_key(&here) {
                here.pop();
                break;
            }
            rest = others;
        }
        let file = self.0.get(&here)?;
        let Some(name) = rest.first() else { return Some(here) };
        if file.items.contains(name) || name == "*" || depth >= 8 {
            return Some(here);
        }
        for (to, named, _) in &file.uses {
            let found = match named.as_deref() {
                // one of another crate stands in no file
                Some(named) if named == name => {
                    return self.file_of(&here, &[to, &rest[1..]].concat(), depth + 1);
                }
                Some("*") => {
                    let other = self.file_of(&here, &to[..to.len() - 1], depth + 1);
                    other.filter(|other| self.0[other].items.contains(name))
                }
                _ => None,
            };
            if found.is_some() {
                return found;
            }
        }
        Some(here)
    }

    /// The files that each file uses.
    fn arrows(&self) -> BTreeMap<&Path_, BTreeSet<Path_>> {
        let of = |(module, file): (&'_ Path_, &File)| -> BTreeSet<Path_> {
            let uses = file.uses.iter().filter(|(_, _, is_public)| !is_public);
            let found = uses.filter_map(|(path, ..)| self.file_of(module, path, 0));
            found.filter(|other| other != module).collect()
        };
        self.0.iter().map(|(module, file)| (module, of((module, file)))).collect()
    }

    /// Files that lead to each other.
    fn circles(&self) -> Vec<Vec<Path_>> {
        let arrows = self.arrows();
        let reach = |from: &Path_| -> BTreeSet<Path_> {
            let (mut found, mut open) = (BTreeSet::new(), vec![from.clone()]);
            while let Some(file) = open.pop() {
                open.extend(arrows[&file].iter().filter(|next| found.insert((*next).clone())).cloned());
            }
            found
        };
        let reached: BTreeMap<&Path_, BTreeSet<Path_>> =
            arrows.keys().map(|file| (*file, reach(file))).collect();
        let mut circles: Vec<Vec<Path_>> = Vec::new();
        for (file, there) in &reached {
            if circles.iter().any(|circle| circle.contains(file)) {
                continue;
            }
            let circle: Vec<Path_> =
                there.iter().filter(|other| reached[other].contains(*file)).cloned().collect();
            circles.extend((circle.len() > 1).then_some(circle));
        }
        circles
    }
}

#[test]
fn circles_of_files_are_few_and_small() {
    let mut crates: Vec<_> = std::fs::read_dir(root().join("crates")).unwrap().flatten().collect();
    crates.sort_by_key(std::fs::DirEntry::file_name);
    let folders = crates.iter().map(|entry| entry.path().join("src")).chain([root().join("src")]);
    let mut found = Vec::new();
    for folder in folders.filter(|folder| folder.is_dir()) {
        let name = folder.strip_prefix(root()).unwrap().display().to_string();
        for circle in Crate::of(&folder).circles() {
            let files: Vec<String> = circle.iter().map(|module| module.join("/")).collect();
            found.push((files.len(), format!("{name}: {} files: {}", files.len(), files.join(", "))));
        }
    }
    let listed = found.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join("\n");
    assert!(
        !found.is_empty(),
        "the reader of sources finds no circle: a bug of this test, or set the limit to 0"
    );
    let files: usize = found.iter().map(|(files, _)| files).sum();
    assert!(found.len() <= CIRCLES, "{} circles, at most {CIRCLES}:\n{listed}", found.len());
    let largest = found.iter().map(|(files, _)| *files).max().unwrap();
    assert!(largest <= LARGEST, "a circle of {largest} files, at most {LARGEST}:\n{listed}");
    println!("{} circles, {files} files in them, the largest of {largest}:\n{listed}", found.len());
}

#[test]
fn the_reader_of_sources_finds_circles() {
    let file = |name: &str, text: &str| {
        (name.split('/').filter(|p| !p.is_empty()).map(str::to_owned).collect(), read(text))
    };
    let krate = Crate(
        [
            file("", "mod a;\nmod b;\npub use a::A;\n"),
            file("a", "use crate::b::{self, B};\npub struct A(B);\nfn f() { b::g() }\n"),
            file("b", "pub mod c;\npub struct B;\npub fn g() {}\n#[cfg(test)]\nuse crate::A;\n"),
            file("b/c", "//! [`crate::A`]\nfn h(_: crate::A) {}\n"),
            file("d", "fn h() -> super::A { \"crate::d\" }\n"),
            // what another crate has stands in no file of this one
            file("e", "pub mod f;\npub use other::E;\nuse f::F;\n"),
            file("e/f", "use super::E;\npub struct F(E);\n"),
        ]
        .into(),
    );
    let none: Vec<Vec<Path_>> = Vec::new();
    assert_eq!(krate.circles(), none);
    let mut circle = krate;
    circle.0.extend([file("b", "pub mod c;\nuse c::h;\npub struct B;\n")]);
    let circle = circle.circles();
    assert_eq!(
        circle.iter().map(|c| c.iter().map(|m| m.join("/")).collect()).collect::<Vec<Vec<_>>>(),
        [["a", "b", "b/c"]]
    );
}
