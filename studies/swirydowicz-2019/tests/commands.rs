//! The commands of the study.
#![allow(clippy::unwrap_used)] // how a test fails

use std::process::{Command, Output};

fn study(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_study-swirydowicz-2019")).args(args).output().unwrap()
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
fn kernels_are_listed() {
    let list = good(&["list"]);
    assert_eq!(list.lines().count(), 20 + 18 + 6 + 17 + 9 + 10 + 1);
    assert!(list.contains("bp35.2d.10  a third local array, for the layer of `u`\n"), "{list}");
    assert!(
        list.contains("bp30.3d.1   reference: interpolation, differentiation and projection as three "),
        "{list}"
    );
}

/// Each launch is a recipe of a kernel of its own.
#[test]
fn launches_have_recipes() {
    let tuned = "bp30.3d.1".parse::<study_swirydowicz_2019::recipes::Tuned>().unwrap();
    let launches = tuned.launches(3).unwrap();
    assert_eq!(launches.len(), 3);
    for (k, launch) in launches.iter().enumerate() {
        let number = (k + 1).to_string();
        let args = ["recipe", "bp30.3d.1", "--degree", "3", "--launch", &number];
        let plain = kingpost::ir::text::parse(&good(&[&args[..], &["--plain"]].concat())).unwrap();
        let recipe = kingpost::transforms::steps().recipe(&good(&args)).unwrap();
        assert_eq!(recipe.apply(&plain).unwrap(), *launch.schedule.kernel());
    }
    for launch in [&[][..], &["--launch", "0"], &["--launch", "4"]] {
        let refused = bad(&[&["recipe", "bp30.3d.1", "--degree", "3"], launch].concat(), 2);
        assert!(refused.contains("`bp30.3d.1` has launches 1 to 3; choose one with --launch"), "{refused}");
    }
    let steps = good(&["steps", "bp30.3d.1", "--degree", "3"]);
    assert!(
        steps.contains("+ launch 3 of 3:\n") && steps.contains("+ pass_values([v], from: [u, I])\n"),
        "{steps}"
    );
}

/// Where results of a line take the places of its terms, barriers stand between contractions alone.
#[test]
fn sources_are_printed() {
    let kernels = [
        ("bp10.2d.18", 6),
        ("bp10.2d.19", 4),
        ("bp30.2d.16", 11),
        ("bp30.2d.17", 10), // one for the barrier of its copy
        ("bp35v.2d.8", 5),
        ("bp35v.2d.9", 4),
    ];
    for (kernel, barriers) in kernels {
        let source = good(&["recipe", kernel, "--degree", "8", "--source"]);
        assert!(source.contains("extern \"C\" __global__ void __launch_bounds__("), "{source}");
        assert_eq!(source.matches("__syncthreads();").count(), barriers, "{kernel}: {source}");
    }
    bad(&["recipe", "bp10.2d.19", "--plain", "--source"], 2);
}

/// One work-item has the copy engine bring what is read next to the second-level cache.
#[test]
fn factors_are_prefetched() {
    for (kernel, degree) in
        [("bp30.2d.18", "15"), ("bp10.2d.20", "13"), ("bp10.2d.20", "15"), ("bp35v.2d.10", "8")]
    {
        let source = good(&["recipe", kernel, "--degree", degree, "--source"]);
        assert_eq!(source.matches("cp.async.bulk.prefetch.L2").count(), 1, "{kernel}: {source}");
    }
}

/// What passes between launches is on the device alone, and all of them are checked and timed together.
#[test]
fn launches_are_timed_together() {
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("study.jsonl").to_string_lossy().into_owned();
    let kernels = ["--kernels", "bp30.3d.1,bp30.3d.2", "--degrees", "2", "--elements", "9", "--db", &db];
    for device in ["c", "opencl"] {
        let output = study(&[&["time", "--device", device, "--min-seconds", "0"], &kernels[..]].concat());
        let said = text(&output.stderr);
        if output.status.code() == Some(3) {
            println!("skipped: {said}");
            continue;
        }
        assert_eq!(said.lines().filter(|l| l.contains(" of streaming, ")).count(), 2, "{said}");
    }
    let page = good(&["page", "--db", &db]);
    assert!(page.contains("| N | 1 | 2 | copy | best | which |"), "{page}");
    assert_eq!(good(&["stale", "--db", &db]), "");
}

#[test]
fn recipes_load_as_those_of_the_library() {
    let json = good(&["recipe", "bp35.2d.10", "--degree", "3"]);
    let recipe = kingpost::transforms::steps().recipe(&json).unwrap();
    let kernel = kingpost::ir::text::parse(include_str!("../kernels/bp35.kingpost")).unwrap();
    let tuned = "bp35.2d.10".parse::<study_swirydowicz_2019::recipes::Tuned>().unwrap();
    let [expected] = &tuned.launches(3).unwrap()[..] else { unreachable!("one launch") };
    assert_eq!(recipe.apply(&kernel).unwrap(), *expected.schedule.kernel());
}

#[test]
fn what_is_not_there_is_refused() {
    // a kernel of one element a group takes no number of elements
    for name in ["bp35.2d.18", "bp35.2d.10x2", "bp35.2d.13x0", "bp35.2d.13x"] {
        let unknown = bad(&["recipe", name], 2);
        let message = format!("no kernel is called `{name}`; kernels are called like bp35.2d.10 and, ");
        assert!(unknown.contains(&message), "{unknown}");
    }
    let many = bad(&["recipe", "bp35.2d.13x17"], 2);
    assert!(many.contains("`bp35.2d.13x17` takes 1088 work-items a group at degree 7, "), "{many}");
    let large = bad(&["recipe", "bp35.3d.6", "--degree", "10"], 2);
    let message = "`bp35.3d.6` takes 1331 work-items a group at degree 10, and a group has at most 1024; \
                   choose a lower degree, fewer elements or 2-D threads";
    assert!(large.contains(message), "{large}");
    let beginning = bad(&["time", "--device", "c", "--kernels", "bp3"], 2);
    assert!(beginning.contains("no kernel is called `bp3` or begins so"), "{beginning}");
    for degrees in ["0", "16", "3-2", "x"] {
        bad(&["time", "--device", "c", "--degrees", degrees], 2);
    }
}

#[test]
fn sources_are_compiled_without_a_gpu() {
    let output = study(&["compile", "--kernels", "bp35.2d.2,bp35.3d.6", "--degrees", "9-10"]);
    if output.status.code() == Some(3) {
        println!("skipped: {}", text(&output.stderr));
        return;
    }
    let found = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    for line in [
        "bp35.2d.2 at degree 9 in f64: ",
        "bp35.3d.6 at degree 9 in f64: ",
        "bp35.2d.2 at degree 10 in f64: ",
    ] {
        assert!(found.contains(line) && found.contains(" registers, "), "no `{line}` in {found}");
    }
    assert!(found.contains("`bp35.3d.6` takes 1331 work-items a group at degree 10"), "{found}");
}

#[test]
fn kernels_are_timed_once_and_have_a_page() {
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("study.jsonl").to_string_lossy().into_owned();
    let kernels = ["--kernels", "bp10.2d.2,bp10.2d.7", "--degrees", "1-2", "--elements", "9", "--db", &db];
    let time = [&["time", "--device", "c", "--min-seconds", "0"], &kernels[..]].concat();
    assert_eq!(text(&study(&time).stderr).lines().filter(|l| l.contains(" of streaming, ")).count(), 4);
    assert_eq!(text(&study(&time).stderr), "");
    let pictures = dir.path().to_string_lossy().into_owned();
    let page =
        good(&["page", "--db", &db, "--dir", &pictures, "--multiprocessors", "2", "--clock-mhz", "1e-9"]);
    for word in [
        "## BP1.0, 2-D threads, 9 elements",
        "| N | 2 | 7 | copy | best | which |",
        "\n| 2 | ",
        "2. partial results in two arrays of local memory (local memory bounds it, equation (13), at N = 1, 2)",
    ] {
        assert!(page.contains(word), "no `{word}` in {page}");
    }
    let svg = std::fs::read_to_string(dir.path().join("bp10_2d_9.svg")).unwrap();
    assert!(svg.contains("● kernel 7"), "{svg}");
    // single precision is measured beside double, on a page and in a picture of its own
    let both = [&time[..], &["--precision", "f64,f32"]].concat();
    let said = text(&study(&both).stderr);
    assert_eq!(said.lines().filter(|l| l.contains(" 9 elements, f32: ")).count(), 4, "{said}");
    assert_eq!(said.lines().count(), 4, "{said}");
    let page = good(&["page", "--db", &db, "--dir", &pictures]);
    for title in
        ["## BP1.0, 2-D threads, 9 elements\n", "## BP1.0, 2-D threads, 9 elements, single precision\n"]
    {
        assert_eq!(page.matches(title).count(), 1, "{page}");
    }
    assert!(dir.path().join("bp10_2d_9_f32.svg").exists());
}

/// A record whose hash is another one is named, on every number of elements.
#[test]
fn records_of_other_code_are_listed() {
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("study.jsonl").to_string_lossy().into_owned();
    let time = ["time", "--device", "c", "--min-seconds", "0", "--kernels", "bp10.2d.2", "--db", &db];
    study(&[&time[..], &["--degrees", "1-2", "--elements", "9"]].concat());
    assert_eq!(good(&["stale", "--db", &db]), "");
    let lines = std::fs::read_to_string(&db).unwrap();
    let at = lines.find("\"source\":\"").unwrap() + 10;
    let other = if &lines[at..=at] == "0" { "1" } else { "0" };
    std::fs::write(&db, format!("{}{other}{}", &lines[..at], &lines[at + 1..])).unwrap();
    let output = study(&["stale", "--db", &db]);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), "bp10.2d.2 1 9 f64\n".into()));
    assert!(text(&output.stderr).contains("1 records are of code that is no longer generated"));
    assert_eq!(good(&["stale", "--db", &db, "--degrees", "2"]), "");
}

/// The records that are committed are of the code that is generated now, for every kernel.
#[test]
fn steps_are_printed_with_the_gain_of_each() {
    let db = concat!(env!("CARGO_MANIFEST_DIR"), "/../../results/h200/swirydowicz_2019.jsonl");
    let names: Vec<String> = (1..=14).map(|k| format!("bp35.2d.{k}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let story = good(&[&["steps"], &names[..], &["--degree", "7", "--db", db]].concat());
    for name in names {
        assert!(story.contains(&format!("# {name}: ")), "{story}");
    }
    assert!(!story.contains("not timed"), "{story}");
    assert_eq!(story.matches(" of streaming; ").count(), 13, "{story}");
    assert!(story.contains("+ tag([lr, ls, lt, mr, ms, mt], tag: unroll)\n"), "{story}");
    assert_eq!(good(&["stale", "--kernels", "bp35.2d.16", "--degrees", "7", "--db", db]), "");
    let refused = good(&["steps", "bp35.3d.6", "--degree", "15", "--db", db]);
    assert!(refused.contains("takes 4096 work-items a group at degree 15"), "{refused}");
    let lines = good(&["steps", "bp35.2d.14", "--degree", "6", "--db", db]);
    assert!(lines.contains("degree 6 in f64 has 7; choose degree 7 or 15"), "{lines}");
    let untimed = good(&["steps", "bp35.2d.3", "--degree", "7", "--elements", "7", "--db", db]);
    assert!(untimed.contains("# not timed\n"), "{untimed}");
}
