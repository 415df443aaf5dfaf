//! The tables of a page.

use crate::record::Record;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// The table of actions, and that of iterations of conjugate gradients where there are such, as
/// Markdown: for each problem and degree the rates of the sizes that were measured, the highest one
/// and from how many unknowns on 80 % of it are reached.
#[must_use]
pub fn tables(records: &[Record]) -> String {
    let (solves, actions): (Vec<Record>, Vec<Record>) =
        records.iter().cloned().partition(|r| r.solve.is_some());
    let filled = [("The action", actions), ("An iteration of conjugate gradients", solves)];
    let filled = filled.into_iter().filter(|(_, records)| !records.is_empty());
    let tables: Vec<String> = filled.map(|(of, records)| format!("{of}:\n\n{}", table(&records))).collect();
    tables.join("\n")
}

fn table(records: &[Record]) -> String {
    let mut best: BTreeMap<(usize, &str), (&Record, usize)> = BTreeMap::new();
    let problems: BTreeSet<&str> = records.iter().map(|r| r.problem.as_str()).collect();
    let key = |r: &Record| (r.degree, r.problem.clone());
    for (degree, problem) in records.iter().map(|r| (r.degree, r.problem.as_str())) {
        let mut of: Vec<&Record> =
            records.iter().filter(|r| key(r) == (degree, problem.to_owned())).collect();
        of.sort_by_key(|r| r.unknowns);
        let Some(fastest) = of.iter().max_by(|a, b| a.rate().total_cmp(&b.rate())) else { continue };
        let from = of.iter().find(|r| r.rate() >= 0.8 * fastest.rate()).map_or(0, |r| r.unknowns);
        best.insert((degree, problem), (fastest, from));
    }
    let mut text = String::from("| p |");
    for problem in &problems {
        let _ = write!(text, " {} GDoF/s | at | 80 % from |", problem.to_uppercase());
    }
    text += "\n|--:|";
    problems.iter().for_each(|_| text += "--:|--:|--:|");
    text += "\n";
    for degree in records.iter().map(|r| r.degree).collect::<BTreeSet<_>>() {
        let _ = write!(text, "| {degree} |");
        for problem in &problems {
            match best.get(&(degree, *problem)) {
                Some((r, from)) => {
                    let _ =
                        write!(text, " {:.1} | {:.1e} | {:.1e} |", r.rate(), r.unknowns as f64, *from as f64);
                }
                None => text += " – | – | – |",
            }
        }
        text += "\n";
    }
    text
}
