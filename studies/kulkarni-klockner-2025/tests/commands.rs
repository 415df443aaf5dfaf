//! The commands of the study, and the pages in `results` that they print.

#![allow(clippy::unwrap_used)] // how a test fails

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn study(args: &[&str]) -> Output {
    let binary = env!("CARGO_BIN_EXE_study-kulkarni-klockner-2025");
    Command::new(binary).args(args).current_dir(root()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn good(args: &[&str]) -> String {
    let output = study(args);
    assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

fn bad(args: &[&str], code: i32) -> String {
    let output = study(args);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {}", text(&output.stdout));
    text(&output.stderr)
}

#[test]
fn cases_are_tuned_and_have_a_page() {
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("trials.jsonl").to_string_lossy().into_owned();
    let tune = |more: &[&str]| {
        let args = ["tune", "--cases", "mass.2D.P1,laplace.2D.P2", "--device", "c", "--cells", "4"];
        study(&[&args, &["--top", "1", "--db", &db][..], more].concat())
    };
    let output = tune(&["--time-limit", "0s"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains(" trials are left"), "{}", text(&output.stderr));
    let found = text(&tune(&[]).stdout);
    for word in ["mass.2D.P1", "laplace.2D.P2", "trials_bars.svg", "trials_share.svg"] {
        assert!(found.contains(word), "no `{word}` in {found}");
    }
    let page = good(&["page", "--db", &db]);
    assert!(page.starts_with("2 cases on ") && page.contains("| mass.2D.P1 | "), "{page}");
}

#[test]
fn tilings_are_drawn_and_judged() {
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("trials.jsonl").to_string_lossy().into_owned();
    let args = ["draw", "--cases", "mass.2D.P2", "--device", "c", "--cells", "3", "--draw", "2", "--db", &db];
    let found = good(&args);
    assert!(found.contains("best seen") && found.contains("mass.2D.P2"), "{found}");
    assert!(good(&["judge", "--db", &db]).contains("best seen"));
    assert!(
        good(&["judge", "--db", &db, "--markdown"]).starts_with("1 cases. The best of the ranked tilings")
    );
    assert!(bad(&["judge", "--db", "nowhere.jsonl"], 2).contains("`tune` and `draw` make one"));
}

#[test]
fn unknown_cases_are_refused() {
    let unknown = bad(&["tune", "--cases", "mass.2D.P1,lasticity"], 2);
    assert!(
        unknown.contains("no case is called `lasticity`; cases are called like laplace.3D.P4"),
        "{unknown}"
    );
}

/// The tables of the pages are what the commands print of the data beside them.
#[test]
fn pages_are_those_of_the_data() {
    for (page, data, command) in [
        ("results/h200/tuned.md", "results/h200/tuned.jsonl", &["page"][..]),
        ("results/h200/study.md", "results/h200/study.jsonl", &["judge", "--markdown"]),
    ] {
        let page = std::fs::read_to_string(root().join(page)).unwrap();
        let printed = good(&[command, &["--db", data]].concat());
        for line in printed.lines().filter(|l| !l.is_empty()) {
            assert!(page.contains(line), "the page lacks\n{line}");
        }
    }
}
