//! The tables of a page.

use crate::Record;
use purlin_multigrid::schedules::Structure;
use purlin_multigrid::{Dimension, Element};
use std::fmt::Write as _;

/// A table for each dimension: the rate of each structure, of lines the best number of patches.
#[must_use]
pub fn tables(records: &[Record]) -> String {
    [Dimension::Two, Dimension::Three].map(|dimension| table(records, dimension)).concat()
}

fn table(records: &[Record], dimension: Dimension) -> String {
    let mut text = format!("## {} dimensions\n\n", if dimension == Dimension::Two { "Two" } else { "Three" });
    text += "Billions of nodes a second in a smoothing step, all colours.\n\n";
    text += "| k | nodes | layers (*Basic*) | linear (*Linear indexing*) | lines | patches a group | TFLOP/s | ns a patch |\n";
    text += "|--:|--:|--:|--:|--:|--:|--:|--:|\n";
    for degree in 1..=Element::MAX_DEGREE {
        let of: Vec<&Record> = records
            .iter()
            .filter(|r| r.element.dimension == dimension && r.element.degree == degree)
            .collect();
        let Some(first) = of.first() else { continue };
        let rate = |suits: &dyn Fn(Structure) -> bool| {
            of.iter().filter(|r| suits(r.structure)).copied().max_by(|a, b| a.rate().total_cmp(&b.rate()))
        };
        let shown = |r: Option<&Record>| r.map_or("–".into(), |r| format!("{:.2}", r.rate()));
        let best = rate(&|s| matches!(s, Structure::Lines { .. }));
        let _ = write!(text, "| {degree} | {:.1e} |", first.nodes as f64);
        let _ = write!(text, " {} |", shown(rate(&|s| s == Structure::Layers)));
        let _ = write!(text, " {} | {} |", shown(rate(&|s| s == Structure::Linear)), shown(best));
        if let Some(r) = best {
            let patches = match r.structure {
                Structure::Lines { patches } => patches,
                Structure::Blocks
                | Structure::Layers
                | Structure::Linear
                | Structure::Basic
                | Structure::LinearIndexing
                | Structure::ConflictFree => 1,
            };
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
