//! The shape of the repository: direction of dependencies, length of files and functions.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The crates by what they are for: a crate depends on those of its own group and of the groups before it.
/// Cargo refuses circles; `docs/crates.md` has the arrows themselves.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Ground", &["capacity", "files"]),
    (
        "Engine",
        &[
            "isl_sys",
            "isl",
            "ir",
            "interp",
            "analysis",
            "steps",
            "transforms",
            "algebra",
            "programs",
            "primitives",
            "codegen",
            "runtime",
        ],
    ),
    ("Tests", &["facts", "features", "sample", "step_facts"]),
    ("Finite elements", &["fem", "forms", "strategies", "kernels"]),
    ("Products", &["auto", "explore", "lsp", "run", "autotune", "solve", "multigrid"]),
];

/// What stands on all of them: the façade, and what knows it alone.
const TOP: [(&str, &str); 4] = [
    ("own-primitive", "examples/own_primitive"),
    ("own-strategy", "examples/own_strategy"),
    ("kingpost-cli", "crates/cli"),
    ("kingpost-python", "python"),
];

/// Folder of a crate of a group.
fn folder(of: &str) -> String {
    if of == "kernels" { of.to_owned() } else { format!("crates/{of}") }
}

/// Folders of all crates but the root package.
fn folders() -> Vec<String> {
    let grouped = GROUPS.iter().flat_map(|(_, crates)| crates.iter().map(|c| folder(c)));
    grouped.chain(TOP.iter().map(|(_, f)| (*f).to_owned())).collect()
}

/// Lines of a source file outside its tests.
const FILE_LINES: usize = 600;
/// Lines of a function.
const FUNCTION_LINES: usize = 80;

/// Whether cargo builds into a folder: there are folders of sources with the name `target`, too.
pub fn is_build_folder(path: &Path) -> bool {
    path.ends_with("target") && path.with_file_name("Cargo.toml").is_file()
}

pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Names of our crates among the dependencies of a manifest, those of tests left out.
fn dependencies(manifest: &str) -> Vec<String> {
    let mut in_table = false;
    let mut found = Vec::new();
    for line in manifest.lines().map(str::trim) {
        if let Some(table) = line.strip_prefix('[') {
            in_table = table.trim_end_matches(']').ends_with("dependencies") && !table.contains("dev-");
        } else if in_table && line.starts_with("kingpost-") {
            let end = line.find(|c: char| c != '-' && !c.is_ascii_alphanumeric()).unwrap_or(line.len());
            found.push(line[..end].to_owned());
        }
    }
    found
}

/// The crate of a dependency, as `GROUPS` has it.
fn short(name: &str) -> String {
    name.trim_start_matches("kingpost-").replace('-', "_")
}

/// Our crates that a crate depends on.
fn below(folder: &str) -> BTreeSet<String> {
    let manifest = std::fs::read_to_string(root().join(folder).join("Cargo.toml")).unwrap();
    dependencies(&manifest).iter().map(|name| short(name)).collect()
}

#[test]
fn dependencies_point_one_way() {
    let mut there = BTreeSet::new();
    for (group, crates) in GROUPS {
        there.extend(crates.iter().map(|c| (*c).to_owned()));
        for name in crates {
            let up: Vec<_> = below(&folder(name)).difference(&there).cloned().collect();
            assert!(up.is_empty(), "{name}, of `{group}`, depends on {up:?}, which stand on it by design");
        }
    }
    assert_eq!(
        below("python"),
        BTreeSet::from(["cli".to_owned()]),
        "Python knows the façade and its command line alone"
    );
}

#[test]
fn every_crate_has_a_group() {
    let mut found: Vec<_> = std::fs::read_dir(root().join("crates")).unwrap().flatten().collect();
    found.retain(|f| f.path().join("Cargo.toml").is_file());
    for name in found.iter().map(|f| f.file_name().to_string_lossy().into_owned()) {
        let is_grouped = GROUPS.iter().any(|(_, crates)| crates.contains(&name.as_str()));
        assert!(is_grouped || TOP.iter().any(|(_, f)| *f == folder(&name)), "{name} is in no group");
    }
}

/// The arrows between crates, as their manifests have them: one that others imply is left out.
#[test]
fn the_page_of_crates_is_that_of_the_manifests() {
    let names: Vec<&str> =
        GROUPS.iter().filter(|(g, _)| *g != "Tests").flat_map(|(_, c)| *c).copied().collect();
    let arrows: BTreeMap<&str, BTreeSet<String>> = names.iter().map(|n| (*n, below(&folder(n)))).collect();
    let mut picture = "```mermaid\ngraph LR\n".to_owned();
    for (group, crates) in GROUPS.iter().filter(|(g, _)| *g != "Tests") {
        picture += &format!("  subgraph {}\n", group.replace(' ', "_"));
        crates.iter().for_each(|name| picture += &format!("    {name}\n"));
        picture += "  end\n";
    }
    for (name, direct) in &arrows {
        let implied = |to: &String| direct.iter().any(|via| via != to && reaches(&arrows, via, to));
        for to in direct.iter().filter(|to| !implied(to)) {
            picture += &format!("  {to} --> {name}\n");
        }
    }
    picture += "```\n";
    let described = |name: &str| {
        let manifest = std::fs::read_to_string(root().join(folder(name)).join("Cargo.toml")).unwrap();
        let line = manifest.lines().find_map(|l| l.strip_prefix("description = \""));
        line.unwrap_or_else(|| panic!("{name} has no description")).trim_end_matches('"').to_owned()
    };
    let mut table = "| crate | what it is |\n|---|---|\n".to_owned();
    for name in GROUPS.iter().flat_map(|(_, crates)| *crates) {
        table += &format!("| [{name}](../{}) | {} |\n", folder(name), described(name));
    }
    let page = format!(
        "# Crates\n\nGenerated of Cargo's manifests by\n\n    KINGPOST_WRITE_PAGES=1 cargo test --test repository crates\n\n\
         An arrow leads from a crate to one that is built on it; those that others imply are left out. The façade, \
         `kingpost`, stands on all of them.\n\n{picture}\n{table}"
    );
    let path = root().join("docs/crates.md");
    if std::env::var_os("KINGPOST_WRITE_PAGES").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    assert_eq!(std::fs::read_to_string(path).unwrap_or_default(), page, "KINGPOST_WRITE_PAGES=1 rewrites it");
}

/// Whether a crate depends on another one, directly or not.
fn reaches(arrows: &BTreeMap<&str, BTreeSet<String>>, from: &str, to: &str) -> bool {
    let direct = arrows.get(from).into_iter().flatten();
    direct.clone().any(|next| next == to) || direct.into_iter().any(|next| reaches(arrows, next, to))
}

/// A wildcard over an enum hides what a new variant needs: clippy finds them in each crate, outside
/// its tests.
#[test]
fn every_crate_has_exhaustive_matches() {
    let lint = "#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]";
    let roots = folders().into_iter().map(|folder| format!("{folder}/src/lib.rs"));
    for file in roots.chain(["src/lib.rs", "crates/cli/src/main.rs"].map(str::to_owned)) {
        let text = std::fs::read_to_string(root().join(&file)).unwrap();
        assert!(text.contains(lint), "{file} lacks `{lint}`");
    }
}

/// Every manifest of the library: its crates, its kernels and the root package.
fn manifests() -> Vec<(String, String)> {
    let manifests = folders().into_iter().map(|folder| format!("{folder}/Cargo.toml"));
    manifests
        .chain(["Cargo.toml".into()])
        .map(|path| (path.clone(), std::fs::read_to_string(root().join(path)).unwrap()))
        .collect()
}

/// The part of a manifest under `[name]`, without comments.
fn table<'a>(manifest: &'a str, name: &str) -> Vec<&'a str> {
    let lines = manifest.lines().skip_while(|line| *line != format!("[{name}]")).skip(1);
    let lines = lines.take_while(|line| !line.starts_with('['));
    lines.map(|line| line.split(" #").next().unwrap().trim_end()).filter(|line| !line.is_empty()).collect()
}

/// A library is compiled a second time for tests in it, which takes longer than they run: of large ones they
/// are outside.
#[test]
fn libraries_that_are_not_tested_have_no_tests() {
    let without: Vec<_> =
        manifests().into_iter().filter(|(_, text)| table(text, "lib").contains(&"test = false")).collect();
    assert!(without.len() > 5);
    for (path, _) in without {
        let mut files = Vec::new();
        sources(&root().join(path).with_file_name("src"), &mut files);
        for file in files {
            let text = std::fs::read_to_string(&file).unwrap();
            assert!(!text.contains("#[cfg(test)]"), "{} has tests that no run compiles", file.display());
        }
    }
}

/// Studies are a workspace of their own, which inherits nothing: the same versions, lints and
/// locked packages.
#[test]
fn studies_are_built_like_the_library() {
    let read = |file: &str| std::fs::read_to_string(root().join(file)).unwrap();
    let (ours, theirs) = (read("Cargo.toml"), read("studies/Cargo.toml"));
    for name in ["workspace.package", "workspace.lints.rust", "workspace.lints.clippy"] {
        assert!(!table(&ours, name).is_empty(), "{name}");
        assert_eq!(table(&ours, name), table(&theirs, name), "{name}");
    }
    let known = table(&ours, "workspace.dependencies");
    for line in table(&theirs, "workspace.dependencies") {
        let line = line.replace("path = \"..\"", "path = \".\"").replace("path = \"../", "path = \"");
        assert!(known.contains(&line.as_str()), "studies/Cargo.toml: `{line}` is not in Cargo.toml");
    }
    let locked = read("Cargo.lock");
    let entries =
        |lock: &str| -> Vec<String> { lock.split("[[package]]").skip(1).map(|e| e.trim().into()).collect() };
    let known = entries(&locked);
    for entry in entries(&read("studies/Cargo.lock")) {
        let name = entry.lines().next().unwrap();
        let ours: Vec<_> = known.iter().filter(|e| e.lines().next() == Some(name)).collect();
        assert!(
            ours.is_empty() || ours.iter().any(|e| e.lines().nth(1) == entry.lines().nth(1)),
            "studies/Cargo.lock has another version of {name}"
        );
    }
}

/// The packages below one, or below all, each with its features.
fn features(selection: &[&str]) -> std::collections::BTreeSet<String> {
    let tree = ["tree", "--offline", "--locked", "-f", "{p} {f}", "--prefix", "none"];
    let out =
        std::process::Command::new(env!("CARGO")).args(tree).args(selection).current_dir(root()).output();
    let out = out.unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let text = String::from_utf8(out.stdout).unwrap();
    let lines = text.lines().filter(|line| !line.contains(" feature \""));
    lines.map(|line| line.trim_end_matches(" (*)").to_owned()).collect()
}

/// Drivers and pictures are left out where they are not asked for.
#[test]
fn features_leave_libraries_out() {
    let has = |features: &str, library: &str| {
        let of = ["-e", "normal", "-p", "kingpost", "--no-default-features", "--features", features];
        self::features(&of).iter().any(|line| line.starts_with(&format!("{library} ")))
    };
    let of =
        [("cuda", "cudarc", "multigrid"), ("opencl", "opencl3", "multigrid"), ("plots", "plotters", "tune")];
    for (feature, library, without) in of {
        assert!(has(feature, library), "{feature} lacks {library}");
        assert!(!has(without, library), "{without} has {library}");
    }
}

/// `cargo test -p` compiles nothing that a build of the workspace has not compiled: crates/features
/// says why.
#[test]
fn features_are_those_of_the_workspace() {
    let all = features(&["-e", "all", "--workspace"]);
    assert!(all.len() > 100);
    let other: Vec<_> =
        features(&["-e", "normal,build"]).into_iter().filter(|line| !all.contains(line)).collect();
    assert!(
        other.is_empty(),
        "crates/features lacks features that the workspace has: `cargo build` has {other:?}"
    );
    let crates = GROUPS.iter().flat_map(|(_, c)| *c).map(|c| format!("kingpost-{}", c.replace('_', "-")));
    for name in crates.chain(TOP.iter().map(|(name, _)| (*name).to_owned())) {
        let other: Vec<_> =
            features(&["-e", "all", "-p", &name]).into_iter().filter(|line| !all.contains(line)).collect();
        assert!(
            other.is_empty(),
            "crates/features lacks features that the workspace has: -p {name} has {other:?}"
        );
    }
}

/// Cases, figures and pages of a publication are no part of the library.
#[test]
fn nothing_depends_on_a_study() {
    let mut studies: Vec<_> = std::fs::read_dir(root().join("studies")).unwrap().flatten().collect();
    studies.retain(|entry| entry.path().join("Cargo.toml").is_file());
    assert!(!studies.is_empty());
    for study in studies {
        let folder = study.file_name().to_string_lossy().into_owned();
        let manifest = std::fs::read_to_string(study.path().join("Cargo.toml")).unwrap();
        let package = format!("study-{folder}");
        assert!(
            manifest.contains(&format!("name = \"{package}\"")),
            "studies/{folder} is not called {package}"
        );
        assert!(manifest.contains("publish = false"), "{package} would be published");
        for (path, manifest) in manifests() {
            assert!(!manifest.contains(&package), "{path} names {package}");
        }
    }
    let mut files = Vec::new();
    for part in ["crates", "kernels", "python", "src"] {
        sources(&root().join(part), &mut files);
    }
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let reads = ["include_str!", "include_bytes!"].iter().any(|m| text.contains(m));
        assert!(!(reads && text.contains("studies/")), "{} includes data of a study", file.display());
    }
}

/// Whatever is left behind is written as a whole or not at all, and whatever is read has a limit:
/// by `kingpost-files`. Scratch files of compilers and the cache are the runtime's own, as is what
/// the system says.
#[test]
fn files_are_written_and_read_in_one_place() {
    let mut files = Vec::new();
    for part in ["crates", "kernels", "python/src", "src", "studies"] {
        sources(&root().join(part), &mut files);
    }
    let own =
        ["crates/files", "crates/runtime", "crates/facts", "crates/capacity"].map(|part| root().join(part));
    files.retain(|file| !own.iter().any(|part| file.starts_with(part)) && !file.ends_with("build.rs"));
    assert!(files.len() > 100);
    let means = ["fs::write(", "File::create", "OpenOptions", "fs::read(", "read_to_string(", "read_to_end("];
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let lines = code(&text).into_iter().filter(|line| !line.trim_start().starts_with("//"));
        for line in lines {
            let found = means.iter().find(|means| line.contains(**means));
            assert!(found.is_none(), "{}: `{}`, needed `kingpost_files`", file.display(), line.trim());
        }
    }
}

/// Where something has to be there, a default in its place hides a bug: it is an error that says so. A default
/// that is meant says why, after `default:` in a comment on its line or on the one above.
#[test]
fn defaults_in_primitives_and_strategies_have_reasons() {
    let mut files = Vec::new();
    for part in ["steps", "transforms", "algebra", "strategies"] {
        let folder = root().join("crates").join(part);
        if folder.is_dir() {
            sources(&folder, &mut files);
        }
    }
    assert!(files.len() > 100);
    let found: Vec<String> = files
        .iter()
        .flat_map(|file| {
            let text = std::fs::read_to_string(file).unwrap();
            let name = file.strip_prefix(root()).unwrap().display().to_string();
            let found = bare_defaults(&code(&text)).into_iter();
            found.map(|line| format!("{name}:{line}")).collect::<Vec<_>>()
        })
        .collect();
    let help = "`Option::expected` of `kingpost_steps::kit`, or a comment `// default: ` and the reason";
    assert!(found.is_empty(), "{}\nneeded {help}", found.join("\n"));
}

/// The lines with a default that no comment gives a reason for.
fn bare_defaults(lines: &[&str]) -> Vec<usize> {
    let defaults = [
        "unwrap_or_default()",
        "unwrap_or(0)",
        "unwrap_or(1)",
        "unwrap_or(0.0)",
        "unwrap_or(&[])",
        "unwrap_or(\"\")",
    ];
    let bare = |k: &usize| {
        let (line, above) = (lines[*k], k.checked_sub(1).map_or("", |k| lines[k]));
        let is_comment = line.trim_start().starts_with("//");
        let reason = line.contains("// default: ") || above.trim_start().starts_with("// default: ");
        !is_comment && !reason && defaults.iter().any(|d| line.contains(d))
    };
    (0..lines.len()).filter(bare).map(|k| k + 1).collect()
}

#[test]
fn the_reader_of_sources_finds_defaults() {
    let text = "a.unwrap_or_default();\nb.unwrap_or(0); // default: none is zero\n// default: one of a scalar\nc.unwrap_or(1);\n\
                // d.unwrap_or(0)\nd.unwrap_or(0);\ne.unwrap_or(2);\nf.unwrap_or(&[]);";
    assert_eq!(bare_defaults(&text.lines().collect::<Vec<_>>()), [1, 6, 8]);
}

#[test]
fn the_reader_of_manifests_finds_what_is_there() {
    let manifest = "[dependencies]\nkingpost-ir.workspace = true\nserde = \"1\"\n[dev-dependencies]\nkingpost-codegen.workspace = true\n[target.'cfg(unix)'.dependencies]\nkingpost-isl = { path = \"x\" }\n";
    assert_eq!(dependencies(manifest), ["kingpost-ir", "kingpost-isl"]);
}

/// Source files under `src` folders; tests, benches and examples have no limit.
pub(crate) fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        let name = entry.file_name();
        if path.is_dir() {
            let skipped = ["tests", "benches", "examples", ".git", "fuzz"].iter().any(|n| name == *n);
            if !skipped && !is_build_folder(&path) {
                sources(&path, found);
            }
        } else if path.extension().is_some_and(|e| e == "rs") && name != "tests.rs" {
            found.push(path);
        }
    }
}

/// The lines before the file's own tests.
pub(crate) fn code(text: &str) -> Vec<&str> {
    let end = text
        .find("\n#[cfg(test)]\nmod tests {")
        .or_else(|| text.find("\n#[cfg(test)]\n#[allow"))
        .unwrap_or(text.len());
    text[..end].lines().collect()
}

/// Whether a line starts a function, whatever its visibility.
fn is_function(line: &str) -> bool {
    let end = line.find(')').filter(|_| line.starts_with("pub(")).map_or(0, |end| end + 1);
    let mut words = line[end..].split_whitespace();
    let qualifiers = ["pub", "const", "async", "unsafe", "extern", "\"C\""];
    words.find(|word| !qualifiers.contains(word)) == Some("fn")
}

/// First line and length of every function, by the indentation that rustfmt gives.
fn functions(lines: &[&str]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let body = line.trim_start();
        if !is_function(body) || body.ends_with(';') || body.ends_with('}') {
            continue;
        }
        let close = format!("{}}}", &line[..line.len() - body.len()]);
        if let Some(length) = lines[start..].iter().position(|l| *l == close) {
            found.push((start + 1, length + 1));
        }
    }
    found
}

/// A crate is small enough to be known as a whole.
#[test]
fn crates_are_small() {
    const LINES: usize = 18_900;
    let crates: Vec<_> = std::fs::read_dir(root().join("crates")).unwrap().flatten().collect();
    assert!(crates.len() > 20);
    for entry in crates {
        let mut files = Vec::new();
        sources(&entry.path(), &mut files);
        let length = |file: &PathBuf| code(&std::fs::read_to_string(file).unwrap()).len();
        let lines: usize = files.iter().map(length).sum();
        let name = entry.file_name().to_string_lossy().into_owned();
        assert!(
            lines <= LINES,
            "crates/{name} has {lines} lines, at most {LINES}: move what another crate is for"
        );
    }
}

#[test]
fn files_and_functions_are_short() {
    let mut files = Vec::new();
    for part in ["crates", "kernels", "python", "src", "studies"] {
        sources(&root().join(part), &mut files);
    }
    assert!(files.len() > 100);
    let mut long = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let (lines, name) = (code(&text), file.strip_prefix(root()).unwrap().display().to_string());
        if lines.len() > FILE_LINES {
            long.push(format!("{name}: {} lines, at most {FILE_LINES}; one idea a file", lines.len()));
        }
        for (line, length) in functions(&lines) {
            if length > FUNCTION_LINES {
                long.push(format!("{name}:{line}: a function of {length} lines, at most {FUNCTION_LINES}"));
            }
        }
    }
    assert!(long.is_empty(), "{}", long.join("\n"));
}

#[test]
fn the_reader_of_sources_finds_functions() {
    let text = "impl A {\n    pub fn b(\n        &self,\n    ) -> u8 {\n        1\n    }\n}\n// fn c() {\nfn d();\n\
                pub(super) const fn e() {\n}\npub(in crate::x) unsafe extern \"C\" fn f() {\n}\nlet fn_ = (fn) {\n}\n";
    assert_eq!(functions(&text.lines().collect::<Vec<_>>()), [(2, 5), (10, 2), (12, 2)]);
}

/// Rust files under folders `tests`, with their text.
fn test_files(dir: &Path, found: &mut Vec<(PathBuf, String)>) {
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            test_files(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") && path.iter().any(|folder| folder == "tests") {
            let text = std::fs::read_to_string(&path).unwrap();
            found.push((path, text));
        }
    }
}

/// One that was renamed would run in every `make test`, unnoticed.
#[test]
fn tests_of_long_runs_exist() {
    let mut files = Vec::new();
    for part in ["tests", "crates", "kernels", "studies"] {
        test_files(&root().join(part), &mut files);
    }
    let is_there = |module: &str, name: &str| {
        let words = |text: &str| text.split(|c: char| c != '_' && !c.is_alphanumeric()).any(|w| w == name);
        files
            .iter()
            .any(|(file, text)| (module.is_empty() || file.ends_with(format!("{module}.rs"))) && words(text))
    };
    let config = std::fs::read_to_string(root().join(".config/nextest.toml")).unwrap();
    let filter = config.split("\"\"\"").nth(1).unwrap();
    let mut count = 0;
    for clause in filter.lines().filter_map(|line| line.split_once("test(")) {
        let mut module = "";
        for path in clause.1.split(|c: char| c != '_' && c != ':' && !c.is_alphanumeric()) {
            let (prefix, name) = path.split_once("::").unwrap_or((module, path));
            module = prefix;
            assert!(
                name.is_empty() || is_there(module, name),
                "no test `{path}` in `{module}`: {}",
                clause.1
            );
            count += usize::from(!name.is_empty());
        }
    }
    assert!(count > 20, "{count} names read");
}
