use crate::fake::{Database, Record, record};
use kingpost_autotune::{Damaged, Objective, RECORD_VERSION, best_of_each};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

/// Where and as whom a process of its own writes: `name path count`.
const TOLD: &str = "KINGPOST_TEST_WRITER";

/// Writes records to the database it is told and says on standard output which are there.
#[test]
#[ignore = "a process that other tests start"]
fn writer() {
    let told = std::env::var(TOLD).unwrap();
    let words: Vec<&str> = told.split(' ').collect();
    let [name, path, count] = words[..] else { panic!("not told what to do: {told}") };
    let database = Database::at(path);
    for cells in 0..count.parse().unwrap() {
        database.append(&record(name, cells, 1e-5)).unwrap();
        println!("wrote {cells}");
        std::io::stdout().flush().unwrap();
    }
}

fn start(name: &str, database: &Database, count: u64) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "database::writer", "--nocapture"])
        .env(TOLD, format!("{name} {} {count}", database.path().display()))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn processes_write_beside_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let database = Database::at(dir.path().join("trials.jsonl"));
    let mut writers: Vec<_> = (0..4).map(|k| start(&format!("case{k}"), &database, 60)).collect();
    for child in &mut writers {
        assert!(child.wait().unwrap().success());
    }
    let contents = database.read().unwrap();
    assert_eq!((contents.records.len(), contents.damaged), (240, vec![]));
}

#[test]
fn what_was_acknowledged_survives_a_killed_writer() {
    for kill_after in [1, 7, 40] {
        let dir = tempfile::tempdir().unwrap();
        let database = Database::at(dir.path().join("trials.jsonl"));
        let mut child = start("case", &database, 1_000_000);
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let mut last = None;
        for line in lines {
            // The test harness prints the name of the test on the first line.
            let Some(at) = line.find("wrote ") else { continue };
            last = line[at + 6..].parse::<u64>().ok();
            if last.is_some_and(|n| n >= kill_after) {
                child.kill().unwrap(); // SIGKILL; what is in the pipe still arrives
            }
        }
        child.wait().unwrap();
        let acknowledged = last.unwrap() + 1;
        database.append(&record("other", 0, 1e-5)).unwrap();
        let contents = database.read().unwrap();
        let found = contents.records.len() as u64 - 1;
        // One more may have been written whose acknowledgement was not.
        assert!(found == acknowledged || found == acknowledged + 1, "{found} of {acknowledged}");
        assert!(contents.damaged.len() <= 1);
    }
}

#[test]
fn a_torn_line_is_reported_and_spoils_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let database = Database::at(dir.path().join("trials.jsonl"));
    let (first, second) = (record("a", 1, 1e-5), record("a", 2, 1e-5));
    database.append(&first).unwrap();
    database.append(&second).unwrap();
    let whole = std::fs::read(database.path()).unwrap();
    let one = whole.iter().position(|b| *b == b'\n').unwrap() + 1;
    for end in one..=whole.len() {
        std::fs::write(database.path(), &whole[..end]).unwrap();
        let torn = database.read().unwrap();
        database.append(&record("b", 3, 1e-5)).unwrap();
        let after = database.read().unwrap();
        // A line that lacks nothing but its end is a record.
        let is_record = end >= whole.len() - 1;
        let is_torn = !is_record && end > one;
        assert_eq!(torn.records.len(), 1 + usize::from(is_record), "cut at {end}");
        assert_eq!(after.records.len(), torn.records.len() + 1, "cut at {end}");
        for contents in [&torn, &after] {
            assert_eq!(contents.records[0], first);
            assert_eq!(contents.damaged.len(), usize::from(is_torn), "cut at {end}");
        }
        if let [Damaged { line, text, .. }] = &after.damaged[..] {
            assert_eq!((*line, text.as_bytes()), (2, &whole[one..end]));
        }
    }
}

#[test]
fn the_last_record_of_a_key_counts_and_foreign_bytes_are_reported() {
    let dir = tempfile::tempdir().unwrap();
    let database = Database::at(dir.path().join("trials.jsonl"));
    assert_eq!(database.read().unwrap().records, []);
    for median_s in [3e-5, 1e-5, 2e-5] {
        database.append(&record("a", 1, median_s)).unwrap();
        database.append(&record("b", 1, median_s)).unwrap();
    }
    let mut bytes = std::fs::read(database.path()).unwrap();
    bytes.extend(b"\xff\xfe not text\n\n{\"json\": true}\n");
    std::fs::write(database.path(), bytes).unwrap();
    let contents = database.read().unwrap();
    let found: Vec<_> = contents.records.iter().map(|r| (r.workload.case.as_str(), r.median_s())).collect();
    assert_eq!(found, [("a", Some(2e-5)), ("b", Some(2e-5))]);
    assert_eq!(contents.damaged.iter().map(|d| d.line).collect::<Vec<_>>(), [7, 9]);
    let other = Database::at(dir.path().join("mine.txt"));
    std::fs::write(other.path(), "kernel axpy\n\nparam n: i32\n").unwrap();
    let error = other.read().unwrap_err().to_string();
    assert!(error.contains("mine.txt` is no database") && error.contains("none of its 2 lines"), "{error}");
    assert!(
        Database::at(dir.path())
            .append(&record("a", 1, 1.0))
            .unwrap_err()
            .to_string()
            .contains("cannot write")
    );
}

/// A trial in another order is not known, and it competes with those of the same work.
#[test]
fn data_in_another_order_are_the_same_work() {
    let dir = tempfile::tempdir().unwrap();
    let database = Database::at(dir.path().join("trials.jsonl"));
    let (first, mut other) = (record("a", 1, 2e-5), record("a", 1, 1e-5));
    other.workload.numbering = Some("by dimension".into());
    database.append(&first).unwrap();
    assert!(!std::fs::read_to_string(database.path()).unwrap().contains("numbering"));
    database.append(&other).unwrap();
    let records = database.read().unwrap().records;
    assert_eq!(records, [first.clone(), other.clone()]);
    assert!(first.is_beside(&other) && !first.workload.is_same(&other.workload));
    assert_eq!(best_of_each(&records, Objective::Time), [&other]);
}

/// A line as the first version wrote it, of `results/h200/tuned.jsonl`.
#[test]
fn records_of_the_first_version_are_read() {
    let old = r#"{"workload":{"case":"mass.2D.P1","kernel":"abc","cells":8,"dofs":9,"flops":10,"dram_bytes":11,"table_bytes":12},"device":{"name":"NVIDIA H200","driver":"CUDA 13.0","clock_mhz":1980,"dram_bytes_per_s":1.0,"local_bytes_per_s":2.0,"fp64_flops_per_s":3.0},"parameters":{"strategy":"single_cell","cells":32},"rank":null,"predicted_s":null,"outcome":{"refused":{"stage":"check","reason":"wrong"}},"seed":1,"unix_s":2}"#;
    let dir = tempfile::tempdir().unwrap();
    let database = Database::at(dir.path().join("old.jsonl"));
    let newer = old.replacen('{', "{\"version\":3,", 1);
    std::fs::write(database.path(), format!("{old}\n{newer}\n")).unwrap();
    let contents = database.read().unwrap();
    let [record] = &contents.records[..] else { panic!("{contents:?}") };
    let (work, device) = (record.workload.work, &record.device);
    assert_eq!((record.version, work.flops, work.dram_bytes, work.table_bytes), (1, 10, 11, 12));
    assert_eq!(
        (device.description.as_str(), device.clock_mhz, &device.occupancy),
        ("CUDA 13.0", 1980, &None)
    );
    assert_eq!(record.workload.data, None);
    // what is written again is the same trial
    database.append(&Record { version: RECORD_VERSION, ..record.clone() }).unwrap();
    assert_eq!(database.read().unwrap().records.len(), 1);
    let [damaged] = &contents.damaged[..] else { panic!("{contents:?}") };
    assert!(
        damaged.reason.starts_with("a record of version 3, needed 1 to 2; use a newer program"),
        "{damaged:?}"
    );
}
