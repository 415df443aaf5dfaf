//! The commands of the study.
#![allow(clippy::unwrap_used)] // how a test fails

use kingpost_cli::read_json_lines;
use std::process::{Command, Output};
use study_fischer_2020::record::Record;
use study_fischer_2020::scatter::Scatter;

fn study(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_study-fischer-2020")).args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn good(args: &[&str]) -> Output {
    let output = study(args);
    assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
    output
}

/// Every problem is compared with the interpreter and with integrals over the cube, at every size,
/// and timed once.
#[test]
fn actions_are_timed_once_and_have_a_page() {
    let dir = tempfile::tempdir().unwrap();
    let [db, svg] = ["db.jsonl", "rates.svg"].map(|name| dir.path().join(name).to_str().unwrap().to_owned());
    let sizes = ["--least", "50", "--most", "800", "--per-decade", "1", "--min-seconds", "0.0001"];
    let args = [&["time", "--device", "c", "--degrees", "1,2,3", "--db", &db], &sizes[..]].concat();
    let said = text(&good(&args).stderr);
    let records: Vec<Record> = read_json_lines(db.as_ref()).unwrap();
    assert_eq!(records.len(), 3 * 3 * 2, "{said}");
    for r in &records {
        assert!(r.error < 1e-12 && r.integral_error.unwrap() < 1e-10 && r.rate() > 0.0, "{r:?}");
        assert_eq!(r.unknowns, (r.divisions * r.degree + 1).pow(3));
    }
    assert_eq!(text(&good(&args).stderr), "", "timed again");
    let page = text(&good(&["page", "--db", &db, "--picture", &svg]).stdout);
    assert_eq!(page.lines().count(), 2 + 2 + 3, "{page}");
    assert!(page.starts_with("The action:\n\n| p | BP1 GDoF/s | at | 80 % from | BP3"), "{page}");
    let svg = std::fs::read_to_string(svg).unwrap();
    assert!(["<svg", "BP1", "BP3", "BP5", "p = 3"].iter().all(|word| svg.contains(word)), "{svg}");
}

/// Iterations are compared with those of the interpreter, and the residual that they carry with that
/// of their solution at every size; both kinds of records go into one file.
#[test]
fn conjugate_gradients_are_timed_beside_actions() {
    let dir = tempfile::tempdir().unwrap();
    let [db, svg] = ["db.jsonl", "rates.svg"].map(|name| dir.path().join(name).to_str().unwrap().to_owned());
    let args = ["time", "--device", "c", "--degrees", "2", "--least", "100", "--most", "1000"];
    let args = [&args[..], &["--per-decade", "1", "--min-seconds", "0.0001", "--db", &db]].concat();
    let solves = [&args[..], &["--iterations", "12"]].concat();
    good(&args);
    let said = text(&good(&solves).stderr);
    let records: Vec<Record> = read_json_lines(db.as_ref()).unwrap();
    let solves: Vec<_> = records.iter().filter_map(|r| r.solve.map(|solve| (r, solve))).collect();
    assert_eq!((records.len(), solves.len()), (6 + 4, 4), "{said}");
    assert!(said.contains("bp3, p = 2, 27 unknowns: 1 unknowns are too few for 12 iterations"), "{said}");
    for (r, solve) in solves {
        assert!(r.error < 1e-12 && r.integral_error.is_none(), "{r:?}");
        assert!(solve.residual_error < 1e-14 && solve.reduction < 0.3, "{r:?}");
        assert!(records.iter().any(|a| a.solve.is_none() && a.source == r.source), "{r:?}");
    }
    let page = text(&good(&["page", "--db", &db, "--picture", &svg]).stdout);
    assert!(page.contains("An iteration of conjugate gradients:"), "{page}");
    let svg = std::fs::read_to_string(svg).unwrap();
    assert!(svg.contains("BP5, conjugate gradients"), "{svg}");
}

/// Each scatter is compared like the atomic one, in conjugate gradients too, and has records of its own.
#[test]
fn scatters_without_atomic_updates_are_timed_beside_the_atomic_one() {
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("db.jsonl").to_str().unwrap().to_owned();
    let args = ["time", "--device", "c", "--problems", "bp5", "--degrees", "2", "--least", "700", "--most"];
    let args = [&args[..], &["700", "--min-seconds", "0.0001", "--db", &db]].concat();
    for scatter in ["atomic", "coloured", "transposed"] {
        for more in [&["--scatter", scatter][..], &["--scatter", scatter, "--iterations", "12"]] {
            good(&[&args[..], more].concat());
        }
    }
    let records: Vec<Record> = read_json_lines(db.as_ref()).unwrap();
    let found: Vec<_> = records.iter().map(|r| (r.scatter, r.launches, r.iterations())).collect();
    // 3 cells along an axis have 8 colours
    let launches = [(Scatter::Atomic, None), (Scatter::Coloured, Some(8)), (Scatter::Transposed, Some(2))];
    let expected = launches.into_iter().flat_map(|(s, n)| [(s, n, None), (s, n, Some(12))]);
    assert_eq!(found, expected.collect::<Vec<_>>());
    for r in &records {
        assert!(r.error < 1e-12 && r.integral_error.unwrap_or(0.0) < 1e-10, "{r:?}");
    }
}

#[test]
fn what_is_not_there_is_refused() {
    for (args, message) in [
        (&["--problems", "bp2"][..], "--problems: `bp2` is of vectors; this study has bp1, bp3 and bp5"),
        (&["--problems", "bp7"], "no bake-off problem `bp7`; there are `bp1` to `bp6`"),
        (&["--degrees", "0"], "--degrees: 0; degrees are 1 to 15"),
        (&["--least", "1e5", "--most", "1e4"], "needed 1 to 2e9 unknowns, the fewest first"),
        (&["--per-decade", "0"], "--per-decade: 0; needed a number above 0"),
        (&["--iterations", "0"], "0 is not in 1..=1000"),
        (&["--scatter", "sorted"], "no scatter is called `sorted`; use atomic, coloured or transposed"),
        (&["--mapping", "{}"], "`kingpost results --mapping` prints mappings"),
    ] {
        let output = study(&[&["time", "--device", "c"], args].concat());
        let said = text(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(message), "{args:?}: {said}");
    }
    let output = study(&["page", "--db", "no-such-file.jsonl"]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stdout));
}
