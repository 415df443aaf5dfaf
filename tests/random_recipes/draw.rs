//! Steps drawn for a sample.

use crate::pair::of_table;
use kingpost::interp::{Memory, Value};
use kingpost::ir::{Kernel, TableData};
use kingpost::transforms::draw::{Inputs, Picks};
use kingpost::transforms::primitives::PassTable;
use kingpost::transforms::{Step, steps};

/// Primitives that few programs have room for: tried first in every fourth step, so that each is
/// accepted in a run of a few hundred pairs or so.
const RARE: [&str; 32] = [
    "assign_to_rule",
    "collect_factors",
    "combine_orbits",
    "crop_table",
    "decompose_parity",
    "drop_zero_terms",
    "eliminate_common_subexpressions",
    "factor_quadrature",
    "factor_rank",
    "factorise_sum",
    "fold_array",
    "fuse_launches",
    "list_elements",
    "mirror_triangle",
    "pack_arrays",
    "pass_blocks",
    "pass_values",
    "pre_evaluate_loop",
    "precompute_rule",
    "rename",
    "rescale_reduction",
    "reverse_iname",
    "roll_insns",
    "share_elements",
    "skip_zero_blocks",
    "skip_zero_terms",
    "slide_array",
    "split_accumulation",
    "split_launch",
    "split_sum",
    "sum_moments",
    "transpose_array_axes",
];

/// What joins terms in a tree.
const TREE: &str = "reduce_in_tree";

/// What a sample is run with.
struct Sample<'m>(&'m Memory);

impl Inputs for Sample<'_> {
    fn param(&self, name: &str) -> Option<i64> {
        self.0.get_param(name)
    }

    fn array(&self, name: &str) -> Option<TableData> {
        Some(match self.0.get(name)? {
            Value::F64(v) => TableData::real(v.iter().copied()),
            Value::F32(v) => TableData::real(v.iter().map(|x| f64::from(*x))),
            v @ (Value::C64(_) | Value::C128(_)) => {
                TableData::complex(v.to_f64().chunks_exact(2).map(|z| [z[0], z[1]]))
            }
            v => TableData::int((0..v.len()).filter_map(|k| v.integer(k))),
        })
    }
}

/// A step, chosen by `bytes`; none where the kernel has nothing that the primitive could be tried
/// on. It is of the primitive `aim`, if that would be accepted. Every fourth is of a primitive of [`RARE`],
/// if one would be accepted; every eighth is a tree, so that programs have several.
pub fn step(kernel: &Kernel, memory: &Memory, bytes: &[u8], aim: Option<&str>) -> Option<Step> {
    let (first, bytes) = bytes.split_first()?;
    let sample = Sample(memory);
    let step = aim.and_then(|name| accepted(name, kernel, &sample, bytes));
    let step = step.or_else(|| match first % 8 {
        3 | 7 => rare(kernel, &sample, bytes),
        5 => accepted(TREE, kernel, &sample, bytes),
        _ => None,
    });
    let step = step.or_else(|| steps().draw(kernel, &mut Picks::new(bytes, &sample)))?;
    // nobody passes the values of a table that a step has made or changed
    let is_made = |name: &str| {
        let value = kernel.var(name).and_then(|var| of_table(&kernel.vars[var]));
        memory.get(name) != value.as_ref()
    };
    (!step.get::<PassTable>().is_some_and(|pass| is_made(&pass.var))).then_some(step)
}

/// A step of a primitive of [`RARE`] that is accepted: they are tried in an order of the bytes, in which that
/// of any two does not depend on the others.
fn rare(kernel: &Kernel, sample: &Sample<'_>, bytes: &[u8]) -> Option<Step> {
    let mut left = RARE.to_vec();
    std::iter::from_fn(|| {
        let next = Picks::new(bytes, sample).first(left.iter().copied(), |name| (name, 1))?;
        left.retain(|name| *name != next);
        Some(next)
    })
    .find_map(|name| accepted(name, kernel, sample, bytes))
}

/// A step of a primitive, if it is accepted.
fn accepted(name: &str, kernel: &Kernel, sample: &Sample<'_>, bytes: &[u8]) -> Option<Step> {
    let step = steps().row(name)?.draw(kernel, &mut Picks::new(bytes, sample))?;
    step.apply(kernel).is_ok().then_some(step)
}
