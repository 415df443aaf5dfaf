//! What README shows is what runs.

#[allow(dead_code)] // takes minutes: only compiled
#[path = "../../examples/cuda_resources.rs"]
mod cuda_resources;
#[path = "../../examples/01_first_kernel.rs"]
mod first_kernel;
#[path = "../../examples/02_operator_action.rs"]
mod operator_action;
#[allow(dead_code)] // `main` writes it
#[path = "../../examples/05_picture.rs"]
mod picture;
#[path = "../../examples/03_refused.rs"]
mod refused;
#[path = "../../examples/04_tiled_matmul.rs"]
mod tiled_matmul;

const README: &str = include_str!("../../README.md");
const EXAMPLE: &str = include_str!("../../examples/01_first_kernel.rs");

#[test]
fn the_code_is_that_of_the_example() {
    let region = EXAMPLE.split("// [readme]\n").nth(1).unwrap().split("    // [/readme]").next().unwrap();
    let code: String =
        region.lines().map(|l| l.strip_prefix("    ").unwrap_or(l).to_owned() + "\n").collect();
    let shown = README.split("```rust\n").nth(1).unwrap().split("```").next().unwrap();
    assert_eq!(shown, code, "copy the region of the example into README.md");
}

/// A paragraph is a line: nobody reads longer ones.
#[test]
fn paragraphs_are_short() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    for name in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"] {
        let text = std::fs::read_to_string(root.join(name)).unwrap();
        for line in text.lines() {
            let length = line.chars().count();
            assert!(length <= 600, "{name}: a paragraph of {length} characters, at most 600: {line}");
        }
    }
}

#[test]
fn the_front_page_is_short() {
    let lines = README.lines().count();
    assert!(
        lines <= 120,
        "README.md has {lines} lines, at most 120; details belong into docs/status.md or the book"
    );
    let status = include_str!("../../docs/status.md");
    for row in status.lines().filter(|line| line.starts_with('|')) {
        let length = row.chars().count();
        assert!(length <= 160, "docs/status.md: a row of {length} characters, at most 160: {row}");
    }
}

#[test]
fn examples_run() {
    first_kernel::main().unwrap();
    operator_action::main().unwrap();
    refused::main().unwrap();
    tiled_matmul::main().unwrap();
}

#[test]
fn links_lead_somewhere() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    for name in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs/status.md"] {
        let text = std::fs::read_to_string(root.join(name)).unwrap();
        let folder = root.join(name).parent().unwrap().to_owned();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            assert!(link.starts_with("https://") || folder.join(link).exists(), "{name} links to {link}");
        }
    }
}

#[test]
fn the_picture_is_that_of_the_example() {
    let drawn = picture::picture().unwrap();
    assert_eq!(
        drawn,
        include_str!("../../docs/book/src/pictures/axpy.svg"),
        "cargo run --example 05_picture draws it"
    );
}

/// Chapters show pictures that commands drew of measurements; mdBook takes files of its own folder alone.
#[test]
fn pictures_of_the_book_are_those_of_the_results() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
    let origins = [
        "h200/tuned_share",
        "h200/cui_2024/breakdown",
        "h200/swirydowicz_2019/bp35_2d_32768",
        "cpu/luporini_2017_helmholtz",
    ];
    for origin in origins {
        let name = origin.rsplit('/').next().unwrap();
        let same =
            read(&format!("docs/book/src/pictures/{name}.svg")) == read(&format!("results/{origin}.svg"));
        assert!(same, "cp results/{origin}.svg docs/book/src/pictures/");
    }
    let folder = std::fs::read_dir(root.join("docs/book/src/pictures")).unwrap();
    let script = read("scripts/book_pictures.mjs");
    let names = folder.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    let drawn =
        names.filter(|name| script.contains(&format!("\n  {}: [\"", name.trim_end_matches(".svg")))).count();
    assert_eq!(drawn, script.matches(": [\"").count(), "run scripts/book_pictures.mjs");
    let folder = std::fs::read_dir(root.join("docs/book/src/pictures")).unwrap();
    let whence = "a picture of the book is of a measurement, of scripts/book_pictures.mjs, or axpy.svg";
    assert_eq!(folder.count(), origins.len() + drawn + 1, "{whence}");
}
