//! What random pairs have found: a kernel and a recipe each, replayed.

use crate::devices::{self, Place, Verdict};
use crate::pair::Pair;
use crate::shrink::replay;
use kingpost::codegen::Target;
use kingpost::transforms::Recipe;
use kingpost::transforms::steps;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Saves a pair as `<hash>.kingpost` and `<hash>.json`, and prints both: nothing that was found is
/// lost where neither directory can be written, or the machine goes away.
pub fn save(pair: &Pair) -> String {
    save_in(&dirs(), pair, None)
}

/// Saves what a compiler gets wrong at a place, too: `<hash>.c`, `.cl` or `.cu`.
pub fn save_with_source(pair: &Pair, place: Place) -> String {
    save_in(&dirs(), pair, devices::source(place, pair))
}

fn dirs() -> [PathBuf; 2] {
    [PathBuf::from(env!("CARGO_TARGET_TMPDIR")), std::env::temp_dir().join("kingpost-found")]
}

/// Saves into the first directory that can be made and written.
fn save_in(dirs: &[PathBuf], pair: &Pair, source: Option<(Target, String)>) -> String {
    let names: String = pair.names.iter().map(|(own, name)| format!("; {own} is {name}")).collect();
    let text = format!("# n = {}; m = {}; seed = {}{names}\n{}", pair.n, pair.m, pair.seed, pair.before);
    let recipe = pair.recipe.to_json().unwrap() + "\n";
    let hash = text
        .bytes()
        .chain(recipe.bytes())
        .fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3));
    let name = format!("{:08x}", hash >> 32);
    println!("---- {name}.kingpost\n{text}---- {name}.json\n{recipe}----");
    let source = source.map(|(target, source)| (extension(target), source));
    if let Some((extension, source)) = &source {
        println!("---- {name}.{extension}\n{source}----");
    }
    let write = |dir: &Path| -> std::io::Result<PathBuf> {
        std::fs::create_dir_all(dir)?;
        let file = dir.join(format!("{name}.kingpost"));
        std::fs::write(&file, &text)?;
        std::fs::write(file.with_extension("json"), &recipe)?;
        if let Some((extension, source)) = &source {
            std::fs::write(file.with_extension(extension), source)?;
        }
        Ok(file)
    };
    let mut errors = Vec::new();
    for dir in dirs {
        match write(dir) {
            Ok(file) => {
                let more = source.map(|(extension, _)| format!(" and .{extension}")).unwrap_or_default();
                return format!("{} and .json{more}", file.display());
            }
            Err(e) => errors.push(format!("{}: {e}", dir.display())),
        }
    }
    format!("{name}, which stands in the output only ({})", errors.join("; "))
}

fn extension(target: Target) -> &'static str {
    target.description().extension
}

/// A directory of the repository, here or where the test was built: it may have been carried to
/// another machine.
fn repository(dir: &str) -> PathBuf {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join(dir);
    if built.is_dir() { built } else { PathBuf::from(dir) }
}

#[test]
fn what_is_found_is_saved_where_that_is_possible() {
    let kernel = "kernel k\narg y: f64[1] inout\n\ns: y[0] = 1.0\n";
    let before = kingpost::ir::text::parse(kernel).unwrap().to_string();
    let (names, recipe) = (Default::default(), Recipe::default());
    let pair = Pair { n: 3, m: 2, seed: 7, names, after: before.clone(), before, recipe, exact: false };
    let dir = tempfile::tempdir().unwrap();
    let (file, missing) = (dir.path().join("file"), dir.path().join("not/yet/there"));
    std::fs::write(&file, "").unwrap();
    let inside = file.join("of a file");
    let said = save_in(&[inside.clone(), missing.clone()], &pair, None);
    let saved = Path::new(said.strip_suffix(" and .json").unwrap());
    assert!(saved.starts_with(dir.path().join("not/yet/there")), "{said}");
    let back = load(saved);
    assert_eq!((back.n, back.m, back.seed, &back.recipe), (3, 2, 7, &pair.recipe));
    assert_eq!(kingpost::ir::text::parse(&back.before), kingpost::ir::text::parse(&pair.before));
    let source = devices::source(Place::OpenCl, &pair).unwrap();
    let said = save_in(&[missing], &pair, Some(source.clone()));
    let saved = Path::new(said.strip_suffix(" and .json and .cl").unwrap());
    assert_eq!(std::fs::read_to_string(saved.with_extension("cl")).unwrap(), source.1);
    let said = save_in(&[inside], &pair, None);
    assert!(said.contains("which stands in the output only (") && said.contains("of a file: "), "{said}");
}

/// The pair of a file.
fn load(file: &Path) -> Pair {
    let before = std::fs::read_to_string(file).unwrap();
    let recipe = steps().recipe(&std::fs::read_to_string(file.with_extension("json")).unwrap()).unwrap();
    let head = before.lines().next().unwrap().trim_start_matches("# ");
    let value = |name: &str| -> u64 {
        let item = head.split("; ").find_map(|item| item.strip_prefix(name)?.strip_prefix(" = "));
        item.unwrap().parse().unwrap()
    };
    let (n, m, seed) = (value("n") as i64, value("m") as i64, value("seed"));
    let named = |item: &str| item.split_once(" is ").map(|(own, name)| (own.to_owned(), name.to_owned()));
    let names = head.split("; ").filter_map(named).collect();
    Pair { n, m, seed, names, after: before.clone(), before, recipe, exact: false }
}

/// Whether the fault was pocl's: another version of it may get the program wrong in another way.
fn is_of_pocl(file: &Path) -> bool {
    file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("pocl_"))
}

/// Whether a fault of pocl is not also ours; by name alone where no simulator can say.
fn is_excused(place: Place, pair: &Pair) -> bool {
    !devices::has_simulator() || devices::fault(place, pair).is_some()
}

/// Whether it runs somewhere: a fault of ptxas that cannot be printed around takes down the context
/// on the card, and with it the pairs after it (`tests/compilers`). Faults of pocl, each of which
/// takes seconds to be told from ours, are left to long runs.
fn runs_at(file: &Path, place: Place, all: bool) -> bool {
    let of_ptxas = file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("ptxas_"));
    let of_pocl = is_of_pocl(file) && place.device() == "opencl";
    !(of_ptxas && place == Place::Cuda) && (all || !of_pocl)
}

/// What is wrong with some pairs at a place, and no fault of pocl's.
fn run(place: Place, batch: &[(&PathBuf, &Pair)]) -> Vec<String> {
    let pairs: Vec<Pair> = batch.iter().map(|(_, pair)| Pair::clone(pair)).collect();
    let verdicts = devices::verdicts(place, &pairs, devices::start(place, &pairs));
    let mut wrong = Vec::new();
    for ((file, pair), verdict) in batch.iter().zip(verdicts) {
        if let Some(Verdict::Wrong(why)) = verdict {
            let why = format!("{} on {place:?}: {why}", file.display());
            if is_of_pocl(file) && place.device() == "opencl" && is_excused(place, pair) {
                println!("{why}")
            } else {
                wrong.push(why)
            }
        }
    }
    wrong
}

#[test]
fn pairs_that_once_failed_do_not() {
    let dir = repository("tests/regressions");
    let mut files: Vec<PathBuf> = std::fs::read_dir(dir).unwrap().map(|f| f.unwrap().path()).collect();
    files.retain(|f| f.extension().is_some_and(|e| e == "kingpost"));
    files.sort();
    let mut pairs = Vec::new();
    for file in &files {
        match replay(&load(file)) {
            Ok(pair) => pairs.push(pair),
            Err(broken) => panic!("{}: {}", file.display(), broken.why),
        }
    }
    let all = kingpost_sample::is_long_run();
    let mut batches = Vec::new();
    for place in crate::places() {
        // a fault of pocl may end its process, and each of the others would run once more alone
        // by one of the ways of OpenCL each, in a long run by both
        let is_taken = |k: usize| match place {
            Place::OpenCl => all || k.is_multiple_of(2),
            Place::Replicated => all || !k.is_multiple_of(2),
            Place::C | Place::Cuda => true,
        };
        let here = files.iter().zip(&pairs).enumerate();
        let here =
            here.filter(|(k, (file, _))| is_taken(*k) && runs_at(file, place, all)).map(|(_, pair)| pair);
        let (alone, together): (Vec<_>, Vec<_>) =
            here.partition(|(file, _)| is_of_pocl(file) && place.device() == "opencl");
        let each = alone.into_iter().map(|one| vec![one]);
        batches.extend(each.chain([together]).map(|batch| (place, batch)));
    }
    let next = AtomicUsize::new(0);
    let wrong = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some((place, batch)) = batches.get(next.fetch_add(1, Ordering::Relaxed)) {
                    wrong.lock().unwrap().extend(run(*place, batch));
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    println!("{} pairs", files.len());
}
