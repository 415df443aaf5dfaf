//! The proof conditions that `scripts/mutation_check.py` deletes are still in the sources: a mutation
//! that fits no more is no check.
use std::path::Path;
use std::process::Command;

#[test]
fn mutations_fit_the_sources() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = |arguments: &[&str]| Command::new("python3").args(arguments).current_dir(root).output();
    if !python(&["-c", "import tomllib"]).is_ok_and(|run| run.status.success()) {
        println!("skipped: python3 with tomllib (3.11 or newer) is missing");
        return;
    }
    let run = python(&["scripts/mutation_check.py", "--check"]).unwrap();
    let [out, err] = [run.stdout, run.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(run.status.success(), "{out}{err}");
    // an empty list would fit, too
    assert!(out.contains("mutations fit") && !out.starts_with("0 "), "{out}");
}
