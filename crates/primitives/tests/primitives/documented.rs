//! What the documentation of a primitive shows under `# Rewrite` is what it does: each block
//! `before => after` is a fact `documented…` in the primitive's folder.
//!
//! The lines of a block stand in the program and in the last answer, in their order. A block may
//! leave lines out, and show less of a line:
//!
//! | in the block | in the fact |
//! |---|---|
//! | `S(i, j)`, `s: S(i, j)` | an instruction of that name with `i, j` as its indices, or with such an operand |
//! | `temp t: f64[8]` | a declaration that begins so |
//! | `…`, `...` | any text, or any lines |
//! | text after two blanks in brackets at the end | a remark |

use crate::page::documented_blocks;
use kingpost_facts::Fact;
use kingpost_primitives::steps;
use std::path::Path;

/// The two sides of a block: what stands left of the column of `=>`, and right of it.
fn sides(block: &str) -> Option<[Vec<String>; 2]> {
    let lines: Vec<Vec<char>> = block.lines().map(|l| l.chars().collect()).collect();
    let column = lines.iter().find_map(|l| l.windows(2).position(|w| w == ['=', '>']))?;
    let text = |chars: &[char]| shown(&chars.iter().collect::<String>());
    let left = lines.iter().map(|l| text(&l[..column.min(l.len())]));
    let right = lines.iter().map(|l| text(&l[column.min(l.len())..]));
    let full = |lines: Vec<String>| lines.into_iter().filter(|l| !l.is_empty()).collect();
    Some([full(left.collect()), full(right.collect())])
}

/// A line without the arrow and the remark at its end.
fn shown(line: &str) -> String {
    let line = line.trim_start_matches("=>").trim();
    let remark = line.rfind("  (").filter(|_| line.ends_with(')'));
    let printed = line.find("  which is printed as");
    line[..remark.or(printed).unwrap_or(line.len())].trim().to_owned()
}

/// Whether a line of a program is what a block shows.
fn shows(shown: &str, line: &str) -> bool {
    let line = line.trim();
    if shown == line {
        return true;
    }
    if let Some((name, operand)) = schematic(shown) {
        let Some(statement) = line.strip_prefix(name).and_then(|l| l.strip_prefix(": ")) else {
            return false;
        };
        let mut places = statement.match_indices(operand);
        return places.any(|(at, _)| {
            let (before, after) = (&statement[..at], &statement[at + operand.len()..]);
            before.ends_with(['[', '(', ' ']) && (after.is_empty() || after.starts_with([']', ')']))
        });
    }
    if ["arg ", "temp ", "table ", "param "].iter().any(|word| shown.starts_with(word)) {
        return line.strip_prefix(shown).is_some_and(|rest| rest.starts_with(' '));
    }
    let parts: Vec<&str> = shown.split("...").flat_map(|part| part.split('…')).map(str::trim_end).collect();
    let [first, between @ .., last] = parts.as_slice() else { return false };
    let Some(mut rest) = line.strip_prefix(first) else { return false };
    for part in between {
        let Some((_, after)) = rest.split_once(part) else { return false };
        rest = after;
    }
    rest.ends_with(last)
}

/// `s: S(i)` or `S(i)`: the instruction's name, and `i`.
fn schematic(shown: &str) -> Option<(&str, &str)> {
    let (label, statement) = shown.split_once(": ").map_or((None, shown), |(l, s)| (Some(l), s));
    let (name, operand) = statement.strip_suffix(')')?.split_once('(')?;
    let is_name = name.len() == 1 && name.chars().all(|c| c.is_ascii_uppercase());
    is_name.then_some((label.unwrap_or(name), operand))
}

/// The first line that a program does not have after those before.
fn missing<'a>(lines: &'a [String], program: &str) -> Option<&'a String> {
    let mut rest = program.lines();
    let any = |line: &String| line == "..." || line.starts_with("…,");
    lines.iter().filter(|line| !any(line)).find(|line| !rest.any(|l| shows(line, l)))
}

#[test]
fn every_documented_rewrite_is_a_fact() {
    let facts = kingpost_facts::load(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/facts"))).unwrap();
    let mut wrong = Vec::new();
    for info in steps().rows() {
        let name = info.name;
        let of_it = |(file, fact): &&(String, Fact)| {
            file.split("::").next() == Some(name) && fact.name.starts_with("documented")
        };
        let facts: Vec<&Fact> = facts.iter().filter(of_it).map(|(_, fact)| fact).collect();
        let blocks: Vec<_> = documented_blocks(info).iter().filter_map(|b| sides(b)).collect();
        if blocks.is_empty() {
            wrong.push(format!("{name}: no block `before => after`"));
        }
        for [before, after] in &blocks {
            let differ = facts.iter().map(|fact| {
                let result = fact.questions.last().map_or("", |q| &q.answer.text);
                missing(before, &fact.kernel.text).or_else(|| missing(after, result))
            });
            let differ: Vec<_> = differ.collect();
            if !differ.contains(&None) {
                wrong.push(format!(
                    "{name}: no fact `documented…` has {differ:?} of {before:#?} => {after:#?}"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_a_block_shows() {
    let block = "for i in 0..n  =>  for j in 1..n   (a remark)\n  S(i)               S(j - 1)\n                   x: …, more ...";
    let [left, right] = sides(block).unwrap();
    assert_eq!(left, ["for i in 0..n", "S(i)"]);
    assert_eq!(right, ["for j in 1..n", "S(j - 1)", "x: …, more ..."]);
    assert_eq!(sides("for i in 0..n\n"), None);
    assert!(shows("S(j - 1)", "  S: a[j - 1] = 1.0") && shows("s: S(t[k])", "s: y[k] += t[k]"));
    assert!(!shows("S(j)", "S: a[j - 1] = 1.0") && !shows("S(j)", "T: a[j] = 1.0"));
    assert!(
        shows("temp t: f64[8]", "temp t: f64[8] local")
            && !shows("temp t: f64[8]", "temp t: f64[8, 4] local")
    );
    assert!(shows("s: a[…] = b[…]", "s: a[4*i] = b[i]") && !shows("s: a[…] = b[…]", "s: c[4*i] = b[i]"));
    assert!(shows("callee f ...", "callee f") && !shows("s: t = 1.0", "s: t = 2.0"));
    let lines = ["a".to_owned(), "...".to_owned(), "b".to_owned()];
    assert_eq!(missing(&lines, "a\nx\nb"), None);
    assert_eq!(missing(&lines, "b\na"), Some(&lines[2]));
}
