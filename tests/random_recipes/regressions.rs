//! What random pairs have found: a kernel and a recipe each, replayed.

use crate::devices::{self, Verdict};
use crate::pair::Pair;
use crate::shrink::replay;
use purlin::transforms::Recipe;
use std::path::{Path, PathBuf};

/// Saves a pair as `<hash>.purlin` and `<hash>.json`.
pub fn save(pair: &Pair) -> String {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let names: String = pair.names.iter().map(|(own, name)| format!("; {own} is {name}")).collect();
    let text = format!("# n = {}; m = {}; seed = {}{names}\n{}", pair.n, pair.m, pair.seed, pair.before);
    let recipe = pair.recipe.to_json().unwrap() + "\n";
    let hash = text
        .bytes()
        .chain(recipe.bytes())
        .fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3));
    let file = dir.join(format!("{:08x}.purlin", hash >> 32));
    std::fs::write(&file, text).unwrap();
    std::fs::write(file.with_extension("json"), recipe).unwrap();
    format!("{} and .json", file.display())
}

/// The pair of a file.
fn load(file: &Path) -> Pair {
    let before = std::fs::read_to_string(file).unwrap();
    let recipe = Recipe::from_json(&std::fs::read_to_string(file.with_extension("json")).unwrap()).unwrap();
    let head = before.lines().next().unwrap().trim_start_matches("# ");
    let value = |name: &str| -> u64 {
        let item = head.split("; ").find_map(|item| item.strip_prefix(name)?.strip_prefix(" = "));
        item.unwrap().parse().unwrap()
    };
    let (n, m, seed) = (value("n") as i64, value("m") as i64, value("seed"));
    let named = |item: &str| item.split_once(" is ").map(|(own, name)| (own.to_owned(), name.to_owned()));
    let names = head.split("; ").filter_map(named).collect();
    Pair { n, m, seed, names, after: before.clone(), before, recipe }
}

/// Whether the fault was pocl's: another version of it may get the program wrong in another way.
fn is_of_pocl(file: &Path) -> bool {
    file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("pocl_"))
}

#[test]
fn pairs_that_once_failed_do_not() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/regressions");
    let mut files: Vec<PathBuf> = std::fs::read_dir(dir).unwrap().map(|f| f.unwrap().path()).collect();
    files.retain(|f| f.extension().is_some_and(|e| e == "purlin"));
    files.sort();
    let mut pairs = Vec::new();
    for file in &files {
        match replay(&load(file)) {
            Ok(pair) => pairs.push(pair),
            Err(broken) => panic!("{}: {}", file.display(), broken.why),
        }
    }
    let places = crate::places();
    let mut wrong = Vec::new();
    for place in &places {
        let verdicts = devices::verdicts(*place, &pairs, devices::start(*place, &pairs));
        for (file, verdict) in files.iter().zip(verdicts) {
            if let Some(Verdict::Wrong(why)) = verdict {
                let why = format!("{} on {place:?}: {why}", file.display());
                if is_of_pocl(file) && place.device() == "opencl" {
                    println!("{why}")
                } else {
                    wrong.push(why)
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    println!("{} pairs", files.len());
}
