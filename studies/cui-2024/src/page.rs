//! The tables of a page.

use crate::smoother::{Structure, Variant};
use crate::{Record, flops_of_instructions};
use kingpost::analysis::stats::{StatsError, bank_traffic};
use kingpost_multigrid::schedules;
use kingpost_multigrid::{Dimension, Element, MultigridError, Precision};
use std::fmt::Write as _;

const LAYERS: Structure = Structure::Of(schedules::Structure::Layers);
const NODES: Structure = Structure::Of(schedules::Structure::Nodes);
const LINEAR: Structure = Structure::Of(schedules::Structure::Linear);

/// A table for each dimension of the records: the rate of each structure, of lines the best number
/// of patches, or else of the kernels and structures as published.
///
/// # Errors
/// A kernel whose conflicts cannot be counted: a bug.
pub fn tables(records: &[Record]) -> Result<String, PageError> {
    let mut text = String::new();
    let is_by_instructions =
        |r: &&Record| matches!(r.structure, Structure::Of(schedules::Structure::Instructions { .. }));
    let (by_instructions, records): (Vec<&Record>, Vec<&Record>) =
        records.iter().partition(is_by_instructions);
    if !by_instructions.is_empty() {
        text += &instructions(&by_instructions);
    }
    if records.iter().any(|r| r.structure == NODES) {
        return Ok(text + &items(&records));
    }
    for dimension in [Dimension::Two, Dimension::Three] {
        let of: Vec<Record> =
            records.iter().filter(|r| r.element.dimension == dimension).map(|r| (*r).clone()).collect();
        if of.is_empty() {
            continue;
        }
        text += &match of.iter().any(|r| r.structure == Structure::CONFLICT_FREE) {
            true => published(&of, dimension)?,
            false => table(&of, dimension),
        };
    }
    Ok(text)
}

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// A kernel is not made.
    #[error(transparent)]
    Multigrid(#[from] MultigridError),
    /// Its conflicts are not counted.
    #[error(transparent)]
    Stats(#[from] StatsError),
}

/// Conflicts of a patch over the banks of local memory.
///
/// # Errors
/// As [`tables`].
pub fn conflicts(element: Element, structure: Structure) -> Result<u64, PageError> {
    let mapped = structure.of_fused(element, Precision::Double)?;
    let one_patch = [("n", 2), ("c0", 0), ("c1", 0), ("c2", 0)].map(|(name, at)| (name.to_owned(), at));
    Ok(bank_traffic(mapped.kernel(), &one_patch.into())?.iter().map(|t| t.conflicts).sum())
}

/// Rates of the kernels and structures as published, beside lines.
fn published(records: &[Record], dimension: Dimension) -> Result<String, PageError> {
    const SHOWN: [(&str, Variant, Option<Structure>); 8] = [
        ("*Basic*", Variant::Fused, Some(Structure::BASIC)),
        ("*Linear indexing*", Variant::Fused, Some(Structure::LINEAR_INDEXING)),
        ("*Conflict free*", Variant::Fused, Some(Structure::CONFLICT_FREE)),
        ("*Boundary*", Variant::Boundary, Some(Structure::CONFLICT_FREE)),
        ("*Separate*", Variant::Separate, Some(Structure::CONFLICT_FREE)),
        ("*Global*", Variant::Global, Some(Structure::CONFLICT_FREE)),
        ("separate lines", Variant::Separate, None),
        ("fused lines", Variant::Fused, None),
    ];
    let mut text = format!("## {} dimensions\n\n", if dimension == Dimension::Two { "Two" } else { "Three" });
    text += "Billions of nodes a second in a smoothing step, all colours; conflicts over banks of a patch, counted.\n\n| k | nodes |";
    SHOWN.iter().for_each(|(name, ..)| text += &format!(" {name} |"));
    text += " TFLOP/s | conflicts: *Basic* | *Linear indexing* | *Conflict free* |\n|--:|--:|";
    text += &"--:|".repeat(SHOWN.len() + 4);
    text += "\n";
    for degree in 1..=Element::MAX_DEGREE {
        let of: Vec<&Record> = records.iter().filter(|r| r.element.degree == degree).collect();
        let Some(first) = of.first() else { continue };
        let _ = write!(text, "| {degree} | {:.1e} |", first.nodes as f64);
        for (_, variant, structure) in SHOWN {
            let suits = |r: &&&Record| {
                let lines = r.structure.is_lines();
                r.variant == variant && structure.map_or(lines, |s| r.structure == s)
            };
            let rate = of.iter().find(suits).map_or("–".into(), |r| format!("{:.2}", r.rate()));
            let _ = write!(text, " {rate} |");
        }
        let best = of.iter().map(|r| r.flops / r.median_s * 1e-12).fold(0.0, f64::max);
        let _ = write!(text, " {best:.1} |");
        for structure in [Structure::BASIC, Structure::LINEAR_INDEXING, Structure::CONFLICT_FREE] {
            let _ = write!(text, " {} |", conflicts(first.element, structure)?);
        }
        text += "\n";
    }
    Ok(text + "\n")
}

/// Contractions by matrix instructions, in the order of the records.
fn instructions(records: &[&Record]) -> String {
    let mut text = "## Matrix instructions\n\n".to_owned();
    text += "Three dimensions. Needed operations are those of dense contractions, executed ones those of tiles that are filled up with zeros: of even and odd *parts* half as many as of nodes.\n\n";
    text += "| k | nodes | of | sub-groups | resident groups | in turn | billions of nodes a second | ns a patch | TFLOP/s needed | executed |\n";
    text += "|--:|--:|--|--:|--:|--:|--:|--:|--:|--:|\n";
    for r in records {
        let Structure::Of(schedules::Structure::Instructions {
            sub_groups,
            parities,
            resident_groups,
            ahead,
        }) = r.structure
        else {
            continue;
        };
        let shown = |number: Option<u32>| number.map_or("–".into(), |number| number.to_string());
        let (resident, ahead) = (shown(resident_groups), shown(ahead));
        let patches = ((r.cells - 1) as f64).powi(3);
        let (of, part) = if parities { ("parts", 0.5) } else { ("nodes", 1.0) };
        let _ = writeln!(
            text,
            "| {} | {:.1e} | {of} | {sub_groups} | {resident} | {ahead} | {:.2} | {:.2} | {:.1} | {:.1} |",
            r.element.degree,
            r.nodes as f64,
            r.rate(),
            r.median_s / patches * 1e9,
            r.flops / r.median_s * 1e-12,
            part * patches * flops_of_instructions(r.element) / r.median_s * 1e-12,
        );
    }
    text + "\n"
}

/// Work-items of a column of nodes beside those of a node, by degree.
fn items(records: &[&Record]) -> String {
    let mut text = "| k | nodes | a column | a node |\n|--:|--:|--:|--:|\n".to_owned();
    for column in records.iter().filter(|r| r.structure == LAYERS) {
        let of_nodes = |r: &&&Record| (r.element, r.structure) == (column.element, NODES);
        let node = records.iter().find(of_nodes).map_or("–".into(), |r| format!("{:.2}", r.rate()));
        let (k, nodes) = (column.element.degree, column.nodes as f64);
        let _ = writeln!(text, "| {k} | {nodes:.1e} | {:.2} | {node} |", column.rate());
    }
    text
}

fn table(records: &[Record], dimension: Dimension) -> String {
    let mut text = format!("## {} dimensions\n\n", if dimension == Dimension::Two { "Two" } else { "Three" });
    text += "Billions of nodes a second in a smoothing step, all colours.\n\n";
    text += "| k | nodes | layers (*Basic*) | linear (*Linear indexing*) | lines | patches a group | TFLOP/s | ns a patch |\n";
    text += "|--:|--:|--:|--:|--:|--:|--:|--:|\n";
    for degree in 1..=Element::MAX_DEGREE {
        let of: Vec<&Record> = records.iter().filter(|r| r.element.degree == degree).collect();
        let Some(first) = of.first() else { continue };
        let rate = |suits: &dyn Fn(Structure) -> bool| {
            of.iter().filter(|r| suits(r.structure)).copied().max_by(|a, b| a.rate().total_cmp(&b.rate()))
        };
        let shown = |r: Option<&Record>| r.map_or("–".into(), |r| format!("{:.2}", r.rate()));
        let best = rate(&Structure::is_lines);
        let _ = write!(text, "| {degree} | {:.1e} |", first.nodes as f64);
        let _ = write!(text, " {} |", shown(rate(&|s| s == LAYERS)));
        let _ = write!(text, " {} | {} |", shown(rate(&|s| s == LINEAR)), shown(best));
        if let Some(r) = best {
            let patches = r.structure.patches();
            let number = ((r.cells - 1) as f64).powi(dimension.axes() as i32);
            let _ = write!(
                text,
                " {patches} | {:.1} | {:.2} |",
                r.flops / r.median_s * 1e-12,
                r.median_s / number * 1e9
            );
        }
        text += "\n";
    }
    text + "\n"
}
