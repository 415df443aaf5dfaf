//! Which mappings to try with their arrays of local memory in one.

use super::{Candidate, source};
use kingpost_codegen::Target;
use kingpost_forms::CellKernel;
use rayon::prelude::*;

/// The mappings by matrix instructions whose CUDA kernels cannot declare all of their local memory,
/// [with all of it in one array](kingpost_strategies::DynamicLocal), in their order.
///
/// Of those in the table of an H200, 3-D P6 Laplace takes 976 µs so and 1059 with the small arrays
/// declared, elasticity 7.02 and 6.53 ms (2026-11-26).
#[must_use]
pub fn with_dynamic_local(form: &(dyn CellKernel + Sync), found: &[Candidate]) -> Vec<Candidate> {
    let is_asked = |c: &&Candidate| {
        let made =
            c.parameters.needs().matrix_instructions.then(|| source(form, &c.parameters, Target::Cuda));
        made.is_some_and(|made| made.is_ok_and(|(program, _)| program.plan.dynamic_local_bytes > 0))
    };
    let asked = found.par_iter().filter(is_asked);
    asked.map(|c| Candidate::unranked(c.parameters.clone().with_dynamic_local())).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use kingpost_forms::lowering::{LoweringOptions, lower};
    use kingpost_kernels::Operator;
    use kingpost_strategies::Mapping;
    use kingpost_strategies::MatrixCells;

    #[test]
    fn only_kernels_that_cannot_declare_their_local_memory_are_tried_with_one_array() {
        let form = Operator::Mass.form(3, 2).unwrap();
        let form = lower(&form, &LoweringOptions::new("k")).unwrap();
        let cells = |sub_groups, kept_tables| {
            Candidate::unranked(Mapping::from(MatrixCells::new(sub_groups, 2, kept_tables)))
        };
        // 16 cells of 12 doubles and more a sub-group
        let found = with_dynamic_local(
            &form,
            &[cells(2, 0), Candidate::unranked(Mapping::single_cell()), cells(28, 0)],
        );
        assert_eq!(found, [Candidate::unranked(cells(28, 0).parameters.with_dynamic_local())]);
        let (program, _) = source(&form, &found[0].parameters, Target::Cuda).unwrap();
        assert_eq!(program.plan.dynamic_local_bytes, program.plan.local_bytes);
    }
}
