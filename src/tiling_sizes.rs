//! The sizes that the multi-level tiling (Kulkarni & Klöckner 2025) depends on, from the stages of a kernel.

use purlin_autotune::{SpaceSizes, TilingSizes};
use purlin_ir::Kernel;
use purlin_transforms::strategies::{Field, NotAnAction, Stages};

/// Reads the sizes of the small matrix-vector products of an operator action.
///
/// # Errors
/// A kernel that is not made of the stages of Algorithm 2.
///
/// # Source
/// Kulkarni & Klöckner 2025, Table 2.
pub fn tiling_sizes(kernel: &Kernel) -> Result<TilingSizes, NotAnAction> {
    Ok(sizes(&Stages::of(kernel)?))
}

/// The sizes of a staged tiling: functions that are evaluated with the same matrices are one.
///
/// # Errors
/// As [`tiling_sizes`].
pub fn staged_tiling_sizes(kernel: &Kernel) -> Result<TilingSizes, NotAnAction> {
    Ok(sizes(&Stages::of(kernel)?.with_shared_columns().0))
}

fn sizes(stages: &Stages) -> TilingSizes {
    TilingSizes {
        quadrature_points: stages.quad_count.unsigned_abs(),
        word_bytes: stages.ty.bytes(),
        trial: stages.fields.iter().map(trial).collect(),
        test: SpaceSizes {
            name: stages.test.clone(),
            nodes: stages.row_count.unsigned_abs(),
            components: stages.components.unsigned_abs(),
            derivatives: stages.products as u64,
            matrices: stages.matrices.len() as u64,
        },
    }
}

fn trial(field: &Field) -> SpaceSizes {
    SpaceSizes {
        name: field.name.clone(),
        nodes: field.dof_count.unsigned_abs(),
        components: field.gathered.iter().map(|g| g.components.unwrap_or(1).unsigned_abs()).sum(),
        derivatives: field.results.len() as u64,
        matrices: field.matrices.len() as u64,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use purlin_forms::lowering::{LoweringOptions, lower};
    use purlin_kernels::Operator;

    fn sizes(operator: Operator, dim: usize, degree: usize) -> TilingSizes {
        let form = operator.form(dim, degree).unwrap();
        let lowered = lower(&form, &LoweringOptions::new("k")).unwrap();
        let sizes = tiling_sizes(&lowered.kernel).unwrap();
        assert_eq!(lowered.points, [sizes.quadrature_points as usize]);
        sizes
    }

    #[test]
    fn operators_have_the_sizes_of_their_forms() {
        let degrees = (1..=8).map(|p| (2, p)).chain((1..=6).map(|p| (3, p)));
        for (operator, (dim, degree)) in
            Operator::ALL.into_iter().flat_map(|o| degrees.clone().map(move |d| (o, d)))
        {
            let s = sizes(operator, dim, degree);
            let nodes = (1..=dim).fold(1, |n, k| n * (degree + k) / k) as u64;
            let (matrices, names) = match operator {
                Operator::Mass => (1, vec!["u"]),
                Operator::Helmholtz => (dim + 1, vec!["u"]),
                Operator::Laplace | Operator::Elasticity => (dim, vec!["u"]),
                Operator::Hyperelasticity => (dim, vec!["u", "du"]),
            };
            let components = if operator.is_vector() { dim } else { 1 };
            let space = |name: &str| SpaceSizes {
                name: name.into(),
                nodes,
                components: components as u64,
                derivatives: (components * matrices) as u64,
                matrices: matrices as u64,
            };
            let trial: Vec<SpaceSizes> = names.into_iter().map(space).collect();
            assert_eq!((s.trial, s.word_bytes), (trial, 8), "{operator} {dim}-D P{degree}");
            assert_eq!(s.test, space(&s.test.name), "{operator} {dim}-D P{degree}");
        }
    }

    #[test]
    fn other_kernels_are_refused() {
        let text = "kernel copy\n\nparam n: i32\narg y: f64[n] out\narg x: f64[n] in\n\nfor i in 0..n\n  s: y[i] = x[i]\n";
        let error = tiling_sizes(&purlin_ir::text::parse(text).unwrap()).unwrap_err();
        let found = "no instruction has the tag `scatter`".into();
        assert_eq!(error, NotAnAction::Stages { kernel: "copy".into(), found });
    }
}
