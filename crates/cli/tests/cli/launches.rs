//! Programs of several launches, from the text to the results: by the command line, with its
//! schedule.
#![allow(clippy::unwrap_used)]

use crate::schedules::run;
use crate::write;
use kingpost_sample::of_run;

const LU: &str = "kernel lu
param n: i32
arg a: f64[n, n] inout
assume n >= 1

for k in 0..n
  for i in k + 1..n
    scale: a[i, k] = a[i, k]/(a[k, k] + 4.0)
  for r in k + 1..n
    for c in k + 1..n
      update: a[r, c] += -(a[r, k]*a[k, c])
";

/// Groups of one launch write what those of the next one read; each step of the elimination has
/// fewer.
const LAUNCHES: &str = "split_launch(before: [r], names: [column, block])
tag(i, g.0)
tag(r, g.0)
";

#[test]
fn an_elimination_runs_in_launches() {
    let dir = tempfile::tempdir().unwrap();
    let plain = write(dir.path(), "lu.kingpost", LU);
    let one = write(dir.path(), "one.kingpost", &format!("{LU}\nschedule\ntag([i, r], g.0)\n"));
    let launches = write(dir.path(), "launches.kingpost", &format!("{LU}\nschedule\n{LAUNCHES}"));
    let (_, refused) = run(&["print", &one], 1);
    assert!(refused.contains("split the launch there (`split_launch`)"), "{refused}");
    let (printed, _) = run(&["print", &launches], 0);
    assert!(printed.contains("for k in 0..n\n  launch column\n    for i in k + 1..n {g.0}"), "{printed}");
    let (plan, _) = run(&["print", &launches, "--plan", "--target", "cuda"], 0);
    assert!(plan.contains("// for k in 0..n\n//   launch `lu_column`: grid "), "{plan}");
    for size in ["n=1", "n=2", "n=33"] {
        for device in ["c", "opencl"] {
            let (checked, _) = run(&["run", &launches, "--param", size, "--device", device, "--no-time"], 0);
            assert!(checked.contains("lu, its schedule"), "{checked}");
        }
        run(&["run", &plain, "--param", size, "--device", "c", "--no-time"], 0);
    }
}

/// The team of threads lives through all launches: a region, and no other.
#[test]
fn one_team_of_threads_runs_all_launches() {
    let dir = tempfile::tempdir().unwrap();
    let launches = write(dir.path(), "launches.kingpost", &format!("{LU}\nschedule\n{LAUNCHES}"));
    let (source, _) = run(&["print", &launches, "--target", "c"], 0);
    assert_eq!(source.matches("#pragma omp parallel\n").count(), 1, "{source}");
    assert_eq!(source.matches("#pragma omp for schedule(static)\n").count(), 2, "{source}");
}

/// What is timed stands on the roofline, and holes of a schedule with launches are tuned.
#[test]
fn launches_are_timed_and_tuned() {
    let dir = tempfile::tempdir().unwrap();
    let launches = write(dir.path(), "launches.kingpost", &format!("{LU}\nschedule\n{LAUNCHES}"));
    for device in of_run(["c", "opencl"], &[0]) {
        let (timed, _) = run(&["run", &launches, "--param", "n=30", "--device", device], 0);
        assert!(timed.contains("time (median)") && timed.contains("roofline"), "{timed}");
    }
    let holes = format!(
        "{LU}\nschedule\nsize in [4, 8]\nsplit_launch(before: [r], names: [column, block])\ntag(i, g.0)\n\
         let o, w = split_iname(r, size)\ntag(o, g.0)\ntag(w, l.0)\n"
    );
    let file = write(dir.path(), "holes.kingpost", &holes);
    let db = dir.path().join("trials.jsonl").to_string_lossy().into_owned();
    let (table, _) = run(&["tune", &file, "--param", "n=30", "--device", "c", "--db", &db], 0);
    assert!(table.contains("size = 4") && table.contains("size = 8"), "{table}");
}
