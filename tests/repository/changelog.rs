//! The changelog: a section a release, a line an entry.

use crate::architecture::root;

/// Characters of an entry.
const WIDTH: usize = 160;
const GROUPS: [&str; 4] = ["Added", "Changed", "Removed", "Fixed"];

fn lines() -> Vec<String> {
    let text = std::fs::read_to_string(root().join("CHANGELOG.md")).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn entries_are_short_lines() {
    for (k, line) in lines().iter().enumerate() {
        let width = line.chars().count();
        assert!(width <= WIDTH, "CHANGELOG.md:{}: {width} characters, at most {WIDTH}: {line}", k + 1);
        assert!(!line.starts_with(' '), "CHANGELOG.md:{}: an entry is one line: {line}", k + 1);
    }
}

/// What is not released comes first, then the releases, newest first, each in the same groups.
#[test]
fn sections_are_releases() {
    let lines = lines();
    let sections: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix("## ")).collect();
    assert_eq!(sections[0], "Unreleased");
    let key = |section: &str| -> (Vec<u32>, String) {
        let (version, date) = section.split_once(" - ").unwrap_or_else(|| panic!("`{section}` has no date"));
        (version.split('.').map(|part| part.parse().unwrap()).collect(), date.to_owned())
    };
    let releases: Vec<_> = sections[1..].iter().map(|section| key(section)).collect();
    assert!(!releases.is_empty());
    assert!(releases.is_sorted_by(|newer, older| newer.0 > older.0 && newer.1 >= older.1), "{sections:?}");
    for group in lines.iter().filter_map(|line| line.strip_prefix("### ")) {
        assert!(GROUPS.contains(&group), "`{group}` is none of {GROUPS:?}");
    }
}

/// The newest release is the version of all workspaces: Python's package takes that of its crate.
#[test]
fn the_newest_release_is_the_version_of_the_crates() {
    let lines = lines();
    let newest = lines.iter().filter_map(|line| line.strip_prefix("## ")).nth(1).unwrap();
    let wanted = format!("version = \"{}\"", newest.split(' ').next().unwrap());
    for manifest in ["Cargo.toml", "studies/Cargo.toml", "fuzz/Cargo.toml"] {
        let text = std::fs::read_to_string(root().join(manifest)).unwrap();
        let version = text.lines().find(|line| line.starts_with("version = ")).unwrap();
        assert_eq!(version, wanted, "{manifest}: the newest release is {newest}");
    }
}
