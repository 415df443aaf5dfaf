//! The commands on the host, on small meshes.
#![allow(clippy::unwrap_used)] // how a test fails

use std::path::Path;
use std::process::{Command, Output};

fn study(dir: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_study-trotter-2023")).args(args).current_dir(dir).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn assemblies_are_checked_timed_and_printed() {
    let dir = tempfile::tempdir().unwrap();
    let args = ["time", "--device", "c", "--divisions", "3", "--degrees", "1,2", "--db", "r.jsonl"];
    let ran = study(dir.path(), &args);
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let records = std::fs::read_to_string(dir.path().join("r.jsonl")).unwrap();
    // three mappings of each strategy, one of those by owners and of the half of a matrix
    assert_eq!(records.lines().count(), 2 * (5 * 3 + 2), "two degrees: {}", text(&ran.stderr));
    assert!(study(dir.path(), &args).status.success());
    let again = std::fs::read_to_string(dir.path().join("r.jsonl")).unwrap();
    assert_eq!(again, records, "what is known is not timed again");
    let page = study(dir.path(), &["page", "--db", "r.jsonl"]);
    let page = text(&page.stdout);
    assert!(page.contains("## P1") && page.contains("| 3³ | 64 | rowwise |"), "{page}");
    assert!(page.contains("| 61.1 |"), "of the publication: {page}");
    assert!(page.contains("| 3³ | 64 | owned-rows:turned:packed |"), "what was decided: {page}");
    let renamed = study(dir.path(), &["time", "--device", "c", "--strategies", "turned-rows"]);
    let renamed = text(&renamed.stderr);
    assert!(renamed.contains("no assembly `turned-rows`; use owned-rows:turned"), "{renamed}");
}

#[test]
fn meshes_from_files_are_timed_in_orders() {
    let dir = tempfile::tempdir().unwrap();
    let mesh = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../meshes/bracket.msh");
    let args = ["time", "--device", "c", "--mesh", mesh.to_str().unwrap(), "--order", "random,local"];
    let of = ["--degrees", "1", "--strategies", "lookup-table,owned-rows", "--db", "r.jsonl"];
    let args = [&args[..], &of[..]].concat();
    let ran = study(dir.path(), &args);
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let records = std::fs::read_to_string(dir.path().join("r.jsonl")).unwrap();
    assert_eq!(records.lines().count(), 2 * (3 + 1), "two orders: {}", text(&ran.stderr));
    assert!(records.lines().all(|line| line.contains("\"file\":\"bracket\",\"cells\":22393")), "{records}");
    let page = text(&study(dir.path(), &["page", "--db", "r.jsonl"]).stdout);
    assert!(page.contains("| bracket, random | 5,798 | lookup-table |"), "{page}");
    let missing = study(dir.path(), &["time", "--device", "c", "--mesh", "missing.msh", "--db", "r.jsonl"]);
    assert_eq!(missing.status.code(), Some(2), "{}", text(&missing.stderr));
}

#[test]
fn setups_are_compared_and_printed() {
    let dir = tempfile::tempdir().unwrap();
    let args = ["setup", "--device", "c", "--divisions", "3", "--order", "made,random", "--db", "u.jsonl"];
    let ran = study(dir.path(), &args);
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let records = std::fs::read_to_string(dir.path().join("u.jsonl")).unwrap();
    assert_eq!(records.lines().count(), 4, "two orders, two degrees: {}", text(&ran.stderr));
    std::fs::write(dir.path().join("r.jsonl"), "").unwrap();
    let page = text(&study(dir.path(), &["page", "--db", "r.jsonl", "--setup", "u.jsonl"]).stdout);
    assert!(page.contains("| 2 | 3³, random | 343 | 162 |"), "{page}");
}

#[test]
fn the_hyperelastic_problem_is_solved() {
    let dir = tempfile::tempdir().unwrap();
    let args = ["solve", "--device", "c", "--divisions", "2,3", "--db", "s.jsonl"];
    let ran = study(dir.path(), &args);
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    std::fs::write(dir.path().join("r.jsonl"), "").unwrap();
    let page = text(&study(dir.path(), &["page", "--db", "r.jsonl", "--solves", "s.jsonl"]).stdout);
    assert!(page.contains("## Newton solves of `hyperelasticity`") && page.contains("| 2³ | 81 |"), "{page}");
    assert!(page.lines().filter(|l| l.ends_with("| 0 |")).count() == 2, "nothing goes to the device: {page}");
}

#[test]
fn a_matrix_and_no_matrix_have_one_solution() {
    let dir = tempfile::tempdir().unwrap();
    let args = ["free", "--device", "c", "--degrees", "1,2", "--divisions", "4", "--db", "f.jsonl"];
    let ran = study(dir.path(), &args);
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let records = std::fs::read_to_string(dir.path().join("f.jsonl")).unwrap();
    assert_eq!(records.lines().count(), 2, "{}", text(&ran.stderr));
}

#[test]
fn several_devices_solve_as_one() {
    let dir = tempfile::tempdir().unwrap();
    let args = ["scale", "--devices", "c,opencl", "--divisions", "5", "--db", "s.jsonl"];
    let ran = study(dir.path(), &args);
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    // alone, and one and two parts with overlap and without
    assert_eq!(std::fs::read_to_string(dir.path().join("s.jsonl")).unwrap().lines().count(), 5);
    std::fs::write(dir.path().join("r.jsonl"), "").unwrap();
    let page = text(&study(dir.path(), &["page", "--db", "r.jsonl", "--scaling", "s.jsonl"]).stdout);
    assert!(
        page.contains("## Several devices") && page.contains("| 1 | 5 | 216 | 2 | host | yes |"),
        "{page}"
    );
}

#[test]
fn mistakes_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let failed = |args: &[&str]| {
        let ran = study(dir.path(), args);
        assert_eq!(ran.status.code(), Some(2), "{args:?}");
        text(&ran.stderr)
    };
    assert!(failed(&["time", "--device", "c", "--meshes", "9"]).contains("--meshes 9: needed 1 to 8"));
    assert!(failed(&["time", "--device", "c", "--strategies", "other"]).contains("no assembly `other`"));
    let refused = failed(&["scale", "--devices", "c", "--counts", "2", "--divisions", "2"]);
    assert!(refused.contains("--counts 2: needed 1 to 1"), "{refused}");
    assert!(failed(&["time", "--device", "c", "--mapping", "{}"]).contains("--mapping {}"));
}
