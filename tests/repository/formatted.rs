//! `kingpost fmt` on every text of the repository.

use crate::architecture::{is_build_folder, root};
use kingpost::ir::text::{parse_all, sections};
use kingpost::transforms::schedule::heading;
use kingpost::transforms::steps;
use std::path::{Path, PathBuf};

fn files(dir: &Path, kind: &str, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        let hidden = entry.file_name().to_string_lossy().starts_with('.');
        if path.is_dir() && !hidden && !is_build_folder(&path) {
            files(&path, kind, found);
        } else if path.extension().is_some_and(|e| e == kind) {
            found.push(path);
        }
    }
}

/// Kernels in files, and in blocks of the book.
fn texts() -> Vec<(String, String)> {
    let (mut kernels, mut chapters) = (Vec::new(), Vec::new());
    files(&root(), "kingpost", &mut kernels);
    files(&root().join("docs"), "md", &mut chapters);
    let read = |path: PathBuf| (path.display().to_string(), std::fs::read_to_string(&path).unwrap());
    let mut texts: Vec<_> = kernels.into_iter().map(read).collect();
    for (name, chapter) in chapters.into_iter().map(read) {
        let blocks = chapter.split("\n```").skip(1).step_by(2).filter_map(|block| block.split_once('\n'));
        let of_kernels = blocks.filter(|(info, _)| info.starts_with("kingpost") && !info.contains("broken"));
        texts.extend(of_kernels.map(|(info, text)| (format!("{name}: {info}"), format!("{text}\n"))));
    }
    texts
}

/// The text of the kernels alone.
fn kernels(text: &str) -> String {
    let without = |(_, part): (&str, String)| match heading(&part) {
        Some((end, _)) => part[..end].trim_start().to_owned(),
        None => part.trim_start().to_owned(),
    };
    sections(text).into_iter().map(without).collect()
}

/// What is written after `#`, where no string has one.
fn comments(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.split_once('#')).map(|(_, comment)| comment.trim_end()).collect()
}

#[test]
fn layouts_keep_kernels_steps_and_comments() {
    let (mut read, mut with_schedule) = (0, 0);
    for (name, text) in texts() {
        // a template, of which parts are filled in, is no kernel
        let Ok(formatted) = steps().format(&text) else { continue };
        read += 1;
        assert_eq!(steps().format(&formatted).unwrap(), formatted, "{name}: twice is once");
        assert_eq!(comments(&formatted), comments(&text), "{name}");
        let (before, after) = (parse_all(&kernels(&text)).unwrap(), parse_all(&kernels(&formatted)).unwrap());
        assert!(before == after && !before.is_empty(), "{name}");
        // the steps, whose places alone may differ
        for ((_, before), (_, after)) in sections(&text).into_iter().zip(sections(&formatted)) {
            let script = |text: &str| steps().file(text).unwrap().1;
            let (Some(before), Some(after)) = (script(&before), script(&after)) else { continue };
            with_schedule += 1;
            assert_eq!(before.places().len(), after.places().len(), "{name}");
            assert_eq!(before.choices().collect::<Vec<_>>(), after.choices().collect::<Vec<_>>(), "{name}");
        }
    }
    assert!(read > 150 && with_schedule > 10, "{read} texts, {with_schedule} with schedules");
}

#[test]
fn examples_have_the_layout() {
    let mut examples = Vec::new();
    files(&root().join("examples"), "kingpost", &mut examples);
    assert!(examples.len() > 10);
    for path in examples {
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(steps().format(&text).unwrap(), text, "{}: run `kingpost fmt`", path.display());
    }
}
