//! The command of the study.
#![allow(clippy::unwrap_used)] // how a test fails

use std::process::{Command, Output};
use study_dolfinx_benchmark::report::Report;

fn study(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_study-dolfinx-benchmark")).args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn report(args: &[&str]) -> Report {
    let output = study(args);
    assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn is_near(found: f64, expected: f64) -> bool {
    (found - expected).abs() <= 1e-12 * expected
}

/// The norm that the benchmark's own test asks for.
#[test]
fn the_benchmarks_test_has_its_known_result() {
    for device in ["c", "opencl"] {
        let args = ["--device", device, "--degree", "3", "--qmode", "0", "--nreps", "2", "--mat_comp"];
        let report = report(&args);
        let output = &report.output;
        assert_eq!((output.ncells_global, output.ndofs_global), (27, 1000));
        assert!(is_near(output.y_norm, 9.912_865_833_415_553), "{output:?}");
        assert!(is_near(output.z_norm, 9.912_865_833_415_553), "{output:?}");
    }
}

/// Norms of the benchmark's own example of 64 cards (`examples/mat_comp-16.json`).
#[test]
fn the_benchmarks_example_has_its_norms() {
    let report = report(&["--device", "c", "--ndofs_global", "100000", "--nreps", "1"]);
    let output = &report.output;
    assert_eq!((output.ncells_global, output.ndofs_global), (3468, 100_048));
    assert!(is_near(output.u_norm, 6.895_773_850_559_623E-1), "{output:?}");
    assert!(is_near(output.y_norm, 1.415_025_762_564_184_2E-1), "{output:?}");
}

/// Every mode on deformed meshes, in either precision: the command itself compares with the matrix.
#[test]
fn results_are_those_of_the_assembled_matrix() {
    let cases = [("c", "3", "0"), ("c", "2", "1"), ("opencl", "2", "1"), ("c,c,c,c", "2", "1")];
    for (device, degree, mode) in cases {
        let modes: &[&[&str]] = &[&[], &["--use_gauss"], &["--cg"], &["--cg", "--unrecorded"]];
        // compilers of OpenCL take their time
        let modes = if device == "c" { modes } else { &modes[2..] };
        for (float, more) in ["32", "64"].into_iter().flat_map(|float| modes.iter().map(move |m| (float, *m)))
        {
            let args = ["--device", device, "--degree", degree, "--qmode", mode, "--float", float];
            let rest = ["--ndofs_global", "1500", "--geom_perturb_fact", "0.2", "--nreps", "5", "--mat_comp"];
            let report = report(&[&args[..], &rest, more].concat());
            assert!(report.kingpost.matrix_error.unwrap() > 0.0, "compared with itself");
        }
    }
}

#[test]
fn mistakes_are_refused_with_advice() {
    for (args, needed) in [
        (&["--qmode", "2"][..], "0..=1"),
        (&["--float", "16"], "32, 64"),
        (&["--geom_perturb_fact", "0.7"], "needed 0 to 0.5 of a cell"),
        (&["--ndofs", "1000", "--ndofs_global", "1000"], "cannot be used with"),
        (&["--degree", "3", "--ndofs", "64", "--cg", "--nreps", "3000"], "lower --nreps"),
        (&["--mapping", "{\"strategy\":\"factorised_planes\",\"cells\":0}"], "choose a positive factor"),
    ] {
        let output = study(&[&["--device", "c"], args].concat());
        assert!(
            !output.status.success() && text(&output.stderr).contains(needed),
            "{}",
            text(&output.stderr)
        );
    }
}

#[test]
fn sources_are_written_for_the_command_line() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("sources");
    let folder = folder.to_str().unwrap();
    let lines = "{\"strategy\":\"factorised_lines\",\"cells\":2,\"literal_tables\":false}";
    let args = ["--degree", "2", "--float", "32", "--sources", folder];
    assert!(text(&study(&args).stderr).contains("--mapping"));
    let output = study(&[&args[..], &["--mapping", lines]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let read = |name: &str| std::fs::read_to_string(dir.path().join("sources").join(name)).unwrap();
    for name in ["stiffness.kingpost", "load.kingpost"] {
        let kernel = kingpost::ir::text::parse(&read(name)).unwrap();
        let is_double = |ty| ty == kingpost::ir::ScalarType::F64;
        assert!(kernel.vars.values().all(|var| !is_double(var.ty)), "{name}");
    }
    let dot = read("dot.kingpost");
    assert!(dot.contains("arg v: f32[n_dofs] in") && dot.contains("arg sums: f64[n_sums] inout"), "{dot}");
}
