//! Texts of kernels on a slab: the slowest axis has sizes and a place of its own.

use crate::kernels::Operation;
use crate::schedules::{Structure, schedule_of};
use crate::{Dimension, Element, MultigridError, Precision};
use purlin_codegen::{Options, Program, generate};
use purlin_runtime::Backend;

/// The text of an operation on a slab of the mesh, of which it works on some layers along the
/// slowest axis.
///
/// Vectors of a slab have `nl` layers of cells. The operation works on `nz` layers of cells, or of
/// patches of one colour, from layer `z` on. Between levels those sizes are of the coarser slab,
/// and the finer one has `nf` layers, of which those from `zf` on count.
///
/// # Errors
/// An operation that slabs do not have, a text without what is replaced: bugs.
fn on_slab(operation: Operation, dimension: Dimension) -> Result<String, MultigridError> {
    let axis = dimension.axes() - 1;
    let last = match dimension {
        Dimension::Two => "j_1",
        Dimension::Three => "k_2",
    };
    let own = |text: &str| text.replace('@', &axis.to_string()).replace('!', last);
    let mut found = operation.text(dimension).to_owned();
    for (from, to) in replaced(operation)? {
        let from = own(from);
        if !found.contains(&from) {
            return Err(MultigridError::NoSlab { operation, pattern: from });
        }
        found = found.replace(&from, &own(to));
    }
    if operation == Operation::Prolongate {
        found = guarded(&found, &own(" if 2*{k}*(e@) + {k}*zf + ! <= {k}*nf"));
    }
    Ok(found)
}

/// The last update of a text, whose value becomes one of its own, under a condition.
fn guarded(text: &str, condition: &str) -> String {
    let Some((head, (target, value))) =
        text.trim_end().rsplit_once('\n').and_then(|(head, last)| Some((head, last.split_once(" += ")?)))
    else {
        return text.to_owned();
    };
    let indent = " ".repeat(target.len() - target.trim_start().len());
    format!("{head}\n{indent}value: v = {value}\n{target} += v{condition}\n")
}

/// The code of an operation on a slab of the mesh, with the fastest structure that is known.
pub(crate) fn program_on_slab(
    operation: Operation,
    element: Element,
    precision: Precision,
    (backend, arch): (Backend, &str),
) -> Result<Program, MultigridError> {
    let text = on_slab(operation, element.dimension)?;
    let structure = Structure::of((backend, arch), operation, element, precision);
    let schedule = schedule_of(&text, operation, element, structure, precision)?;
    Ok(generate(schedule.kernel(), backend.target(), &Options::default())?)
}

type Replaced = [(&'static str, &'static str)];

/// The first of the sizes of a vector, which is that of the slowest axis.
const HEIGHT: (&str, &str) = ("f64[{k}*n + 1", "f64[{k}*nl + 1");

/// What is replaced for each: `@` is the slowest axis, `!` the loop along it in the last nest.
fn replaced(operation: Operation) -> Result<&'static Replaced, MultigridError> {
    Ok(match operation {
        Operation::Smooth => &[
            ("param c@: i32", "param z: i32\nparam nz: i32\nparam nl: i32"),
            ("assume c@ >= 0", "assume z >= 0\nassume nz >= 0"),
            ("assume c@ <= 1", "assume 2*nz + z <= nl"),
            ("floor_div(n - c@, 2)", "nz"),
            ("2*p@ + c@", "2*p@ + z"),
            HEIGHT,
        ],
        Operation::Residual => &[
            ("assume n >= 1", "param nz: i32\nparam nl: i32\nassume n >= 1\nassume nz >= 1\nassume nz <= nl"),
            ("for e@ in 0..n", "for e@ in 0..nz"),
            ("{k}*e@ + ! < {k}*n", "{k}*e@ + ! < {k}*nl"),
            HEIGHT,
        ],
        Operation::Restrict => &[
            (
                "assume n >= 1",
                "param z: i32\nparam nz: i32\nparam nl: i32\nparam zf: i32\nparam nf: i32\nassume n >= 1\n\
                 assume z >= 0\nassume nz >= 1\nassume z + nz <= nl\nassume zf >= 0\nassume zf + 2*nz <= nf",
            ),
            ("f64[2*{k}*n + 1", "f64[{k}*nf + 1"),
            ("for e@ in 0..n", "for e@ in 0..nz"),
            ("2*{k}*e@ + ", "2*{k}*(e@) + {k}*zf + "),
            ("{k}*e@ + ! < {k}*n", "{k}*e@ + ! < {k}*nl"),
            ("{k}*e@ + ", "{k}*(e@ + z) + "),
            HEIGHT,
        ],
        Operation::Prolongate => &[
            (
                "assume n >= 1",
                "param z: i32\nparam nz: i32\nparam nl: i32\nparam zf: i32\nparam nf: i32\nassume n >= 1\n\
                 assume z >= 0\nassume nz >= 1\nassume z + nz <= nl\nassume zf >= 0",
            ),
            ("f64[2*{k}*n + 1", "f64[{k}*nf + 1"),
            ("for e@ in 0..n", "for e@ in 0..nz"),
            ("2*{k}*e@ + ", "2*{k}*(e@) + {k}*zf + "),
            ("{k}*e@ + ", "{k}*(e@ + z) + "),
            HEIGHT,
            // the last layer of the coarser slab may be one of two layers of which the finer one has the first
            ("\n\nfor", "\ntemp v: f64\n\nfor"),
        ],
        Operation::Load => &[
            ("assume n >= 2", "param nl: i32\nassume n >= 2\nassume nl >= 1"),
            ("arg b: f64[{k}*n + 1", "arg column: f64[{k}*nl + 1] in\narg b: f64[{k}*nl + 1"),
            ("for e@ in 0..{k}*n + 1", "for e@ in 0..{k}*nl + 1"),
            ("line[e@]", "column[e@]"),
        ],
        Operation::SquaredError => &[
            (
                "assume n >= 2",
                "param z: i32\nparam nz: i32\nparam nl: i32\nassume n >= 2\nassume z >= 0\nassume nz >= 1\n\
                 assume z + nz <= nl",
            ),
            ("f64[n, {g}] in", "f64[n, {g}] in\narg column: f64[nz, {g}] in"),
            ("squares: f64[n", "squares: f64[nz"),
            ("for e@ in 0..n", "for e@ in 0..nz"),
            ("exact[e@, ", "column[e@, "),
            ("{k}*e@ + ", "{k}*(e@ + z) + "),
            HEIGHT,
        ],
        Operation::SmoothBoundary
        | Operation::PatchResidual
        | Operation::PatchSolve
        | Operation::PatchInverse
        | Operation::MovePatch
        | Operation::MoveResidual
        | Operation::MoveSolution
        | Operation::Point
        | Operation::Copy
        | Operation::MeshResidual
        | Operation::MeshSolve
        | Operation::MeshLoad => {
            return Err(MultigridError::NoSlab { operation, pattern: "form".into() });
        }
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::{on_slab, program_on_slab};
    use crate::kernels::{Operation, parse_plain};
    use crate::{Dimension, Element, Precision};
    use purlin_runtime::Backend;

    /// Every text that slabs have is a kernel in which nothing of the slowest axis is left.
    #[test]
    fn texts_of_slabs_are_kernels() {
        for dimension in [Dimension::Two, Dimension::Three] {
            let element = Element::new(dimension, 2).unwrap();
            let axis = dimension.axes() - 1;
            for operation in [
                Operation::Smooth,
                Operation::Residual,
                Operation::Restrict,
                Operation::Prolongate,
                Operation::Load,
                Operation::SquaredError,
            ] {
                let text = on_slab(operation, dimension).unwrap();
                parse_plain(&text, element, Precision::Double, 3).unwrap();
                assert!(!text.contains(&format!("c{axis}")), "{text}");
                assert!(text.contains("+ 1") && text.contains("nl"), "{text}");
            }
            assert!(on_slab(Operation::Copy, dimension).is_err());
        }
    }

    /// The steps of every operation are proved on a slab for a card, also those of matrix
    /// instructions.
    #[test]
    fn cards_have_kernels_of_slabs() {
        let all = purlin_sample::is_long_run(); // a minute
        for degree in if all { &[2, 7][..] } else { &[1] } {
            let element = Element::new(Dimension::Three, *degree).unwrap();
            let of = |operation| {
                let on = (Backend::Cuda, "sm_90");
                program_on_slab(operation, element, Precision::Double, on).unwrap().source
            };
            let smooth = of(Operation::Smooth);
            assert!(smooth.contains("nz") && (*degree == 7) == smooth.contains("mma.sync"), "{smooth}");
            for operation in [Operation::Residual, Operation::Restrict, Operation::Prolongate] {
                assert!(of(operation).contains("nz"), "{operation:?}");
            }
        }
    }
}
