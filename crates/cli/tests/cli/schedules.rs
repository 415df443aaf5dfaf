//! Schedules as text on the command line: after a kernel, in a file of their own, and with holes
//! that are tuned.

#![allow(clippy::unwrap_used)]

use crate::{AXPY, kingpost, write};

/// Standard output and standard error, after the exit code that is expected.
#[track_caller]
pub(crate) fn run(args: &[&str], code: i32) -> (String, String) {
    let output = kingpost(args);
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{args:?}: {out}{err}");
    (out, err)
}

const BLOCKS: &str = "let block, item = split_iname(i, 16)  # 16 work-items a group
tag_iname(block, g.0)
tag_iname(item, l.0)
";

#[test]
fn a_schedule_stands_behind_its_kernel_or_in_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let plain = write(dir.path(), "plain.kingpost", AXPY);
    let scheduled = write(dir.path(), "axpy.kingpost", &format!("{AXPY}\nschedule\n{BLOCKS}"));
    let blocks = write(dir.path(), "blocks.txt", BLOCKS);
    let (printed, _) = run(&["print", &scheduled], 0);
    assert!(printed.contains("for i_i in 0..min(16, n - 16*i_o) {l.0}"), "{printed}");
    assert_eq!(run(&["print", &plain, "--recipe", &blocks], 0).0, printed);
    // what is asked for comes before what stands in the file
    assert_eq!(run(&["print", &scheduled, "--strategy", "none"], 0).0, run(&["print", &plain], 0).0);
    let (checked, _) = run(&["run", &scheduled, "--param", "n=37", "--device", "c", "--no-time"], 0);
    assert!(checked.contains("axpy, its schedule") && checked.contains("37 elements"), "{checked}");
    // JSON and text are two forms of the same steps
    let (text, _) = run(&["recipe", &scheduled, "--text"], 0);
    assert_eq!(text, "split_iname(i, factor: 16)\ntag(i_o, tag: g.0)\ntag(i_i, tag: l.0)\n");
    let json = write(dir.path(), "blocks.json", &run(&["recipe", &scheduled], 0).0);
    let (same, _) = run(&["diff", &json, &blocks, "--kernel", &plain], 0);
    assert!(same.starts_with("the same 3 steps"), "{same}");
    let (_, needs_a_kernel) = run(&["diff", &json, &blocks], 2);
    assert!(needs_a_kernel.contains("name the kernel by --kernel"), "{needs_a_kernel}");
}

#[test]
fn a_refused_step_of_a_schedule_is_shown_at_its_line() {
    let dir = tempfile::tempdir().unwrap();
    let file =
        write(dir.path(), "axpy.kingpost", &format!("{AXPY}\nschedule\n{BLOCKS}tag_iname(item, g.0)\n"));
    let (_, error) = run(&["print", &file], 1);
    assert!(
        error.contains("schedule, line 14: tag `i_i` g.0: ") && error.contains("kingpost steps"),
        "{error}"
    );
    let (steps, _) = run(&["steps", &file], 1);
    assert!(steps.contains("# step 4 of 4 is refused: tag `i_i` g.0"), "{steps}");
    let file = write(dir.path(), "wrong.kingpost", &format!("{AXPY}\nschedule\nsplit_inam(i, 4)\n"));
    let (_, error) = run(&["print", &file], 2);
    assert!(error.contains("there is no step `split_inam`") && error.contains("did you mean `split_iname`?"));
}

#[test]
fn holes_are_tuned() {
    let dir = tempfile::tempdir().unwrap();
    let holes = "size in [8, 16, 0, 64]\nrequire size < 64\n";
    let text = format!("{AXPY}\nschedule\n{holes}{}", BLOCKS.replace("16)", "size)"));
    let file = write(dir.path(), "axpy.kingpost", &text);
    let db = dir.path().join("trials.jsonl").to_string_lossy().into_owned();
    let tune = ["tune", &file, "--param", "n=1000", "--device", "c", "--db", &db];
    let (table, log) = run(&tune, 0);
    let best = if table.contains("--hole size=8\n") { "8" } else { "16" };
    assert!(table.contains(&format!("--hole size={best}")) && table.contains("size = 0"), "{table}");
    assert!(log.contains("size = 0: refused: transform: line 13: split `i` by 0"), "{log}");
    assert_eq!(std::fs::read_to_string(&db).unwrap().lines().count(), 3, "64 breaks the constraint");
    // what the database holds is not measured again, and another size is another case
    run(&tune, 0);
    assert_eq!(std::fs::read_to_string(&db).unwrap().lines().count(), 3);
    run(&["tune", &file, "--param", "n=1001", "--device", "c", "--db", &db], 0);
    assert_eq!(std::fs::read_to_string(&db).unwrap().lines().count(), 6);
    let chosen = ["run", &file, "--param", "n=37", "--device", "c", "--no-time"];
    run(&[&chosen[..], &["--hole", "size=8"]].concat(), 0);
    let (_, error) = run(&chosen, 2);
    assert!(error.contains("`size` has no value; choose one of 8, 16, 0, 64"), "{error}");
    let (_, error) = run(&[&chosen[..], &["--hole", "size=9"]].concat(), 2);
    assert!(error.contains("`size` is one of 8, 16, 0, 64, not 9"), "{error}");
    let (_, error) = run(&[&chosen[..], &["--hole", "width=8"]].concat(), 2);
    assert!(error.contains("no hole `width`; its holes are `size`"), "{error}");
    let plain = write(dir.path(), "plain.kingpost", AXPY);
    let (found, _) = run(&["tune", &plain, "--param", "n=10", "--device", "c", "--db", &db], 0);
    assert!(found.starts_with("# kingpost auto ") && found.contains("as written"), "{found}");
}

/// Too large for the interpreter: compared with the code of the kernel as it is written.
#[test]
fn large_kernels_are_compared_with_their_own_code() {
    let dir = tempfile::tempdir().unwrap();
    let text = "kernel sums\nparam n: i32\narg x: f64[n] in\narg y: f64[n] out\n\nfor i in 0..n\n  s: y[i] = sum(k in 0..n: x[k]*x[i])\n\n\
                schedule\nsize in [32]\nlet o, l = split_iname(i, size)\ntag_iname(o, g.0)\ntag_iname(l, l.0)\n";
    let file = write(dir.path(), "sums.kingpost", text);
    let db = dir.path().join("trials.jsonl").to_string_lossy().into_owned();
    let (table, _) = run(&["tune", &file, "--param", "n=8000", "--device", "c", "--db", &db], 0);
    assert!(table.contains("size = 32"), "{table}");
}
