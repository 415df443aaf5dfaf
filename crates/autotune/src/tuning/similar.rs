//! Mappings of operators that are known, for forms of nearly the same sizes.

use kingpost_fem::element::CellShape;
use kingpost_fem::quadrature::{QuadratureScheme, rule};
use kingpost_kernels::Operator;
use kingpost_strategies::Mapping;
use kingpost_strategies::tiling::{SpaceSizes, TilingSizes};

/// Largest factor between two sizes of forms that share a mapping: from one polynomial degree to
/// the next but one.
const FACTOR: f64 = 3.0;

/// Sizes of the loops of a form.
#[derive(Clone, Copy)]
pub(super) struct FormSizes<'s> {
    /// Over quadrature points.
    pub points: &'s TilingSizes,
    /// Over the modes of the rule's tables, where those are fewer.
    pub modes: Option<&'s TilingSizes>,
}

/// The mapping of the operator action in a table whose sizes are nearest to those of a form, with
/// as many tiles; none if some size is off by more than [`FACTOR`]. A mapping with modes suits only
/// forms that have fewer of them than points, and has the sizes of its loops over modes.
///
/// Sizes are those of functions that share their matrices. The table has lines `case mapping`; of
/// two for a case, the first that suits is taken.
pub(super) fn similar(form: FormSizes<'_>, dim: usize, table: &str) -> Option<(String, Mapping)> {
    let lines = table.lines().filter_map(|line| line.split_once(' '));
    let of_line = |(case, mapping): (&str, &str)| {
        let mapping: Mapping = serde_json::from_str(mapping).ok()?;
        // lists have room for the longest of the operator's mesh
        if mapping.needs().setup {
            return None;
        }
        let over_modes = mapping.is_over_modes();
        let sizes = if over_modes { form.modes? } else { form.points };
        let (case_dim, known) = operator_sizes(case, over_modes)?;
        let far = if case_dim == dim { distance(sizes, &known)? } else { return None };
        Some((far, case.to_owned(), mapping.rescaled(&known, sizes)))
    };
    let nearest = lines.filter_map(of_line).min_by(|a, b| a.0.total_cmp(&b.0));
    nearest.map(|(_, case, mapping)| (case, mapping))
}

/// Dimension and sizes of an operator action by its name, such as `laplace.3D.P4`, with the rules
/// that the tables were measured with or over the modes of their tables. A basis has as many modes
/// as polynomials of its degree, and derivatives have one degree less; Helmholtz operators, whose
/// two parts have modes of their own, have no sizes here.
fn operator_sizes(case: &str, over_modes: bool) -> Option<(usize, TilingSizes)> {
    let mut parts = case.split('.');
    let operator: Operator = parts.next()?.parse().ok()?;
    let dim: usize = parts.next()?.strip_suffix('D')?.parse().ok()?;
    let degree: usize = parts.next()?.strip_prefix('P')?.parse().ok()?;
    let shape = match dim {
        2 => CellShape::Triangle,
        3 => CellShape::Tetrahedron,
        _ => return None,
    };
    let polynomials = |degree: usize| (1..=dim).fold(1, |n, k| n * (degree + k) / k) as u64;
    let nodes = polynomials(degree);
    let (order, matrices) = match operator {
        Operator::Mass => (2 * degree, 1),
        Operator::Helmholtz => (2 * degree, dim as u64 + 1),
        Operator::Laplace | Operator::Elasticity => (2 * (degree - 1), dim as u64),
        Operator::Hyperelasticity => (4 * (degree - 1), dim as u64),
    };
    let components = if operator.is_vector() { dim as u64 } else { 1 };
    // the displacement and its increment share their matrices
    let functions = if operator == Operator::Hyperelasticity { 2 } else { 1 };
    let space = |functions: u64| SpaceSizes {
        name: String::new(),
        nodes,
        components: functions * components,
        derivatives: functions * components * matrices,
        matrices,
    };
    let points = match (over_modes, operator) {
        (false, _) => rule(shape, order, QuadratureScheme::XiaoGimbutas).ok()?.n_points() as u64,
        (true, Operator::Mass) => nodes,
        (true, Operator::Laplace | Operator::Elasticity) => polynomials(degree - 1),
        (true, Operator::Helmholtz | Operator::Hyperelasticity) => return None,
    };
    let sizes = TilingSizes {
        quadrature_points: points,
        trial: vec![space(functions)],
        test: space(1),
        word_bytes: 8,
    };
    Some((dim, sizes))
}

/// What tells two forms apart: the sum of the logarithms of the factors between their sizes.
fn distance(a: &TilingSizes, b: &TilingSizes) -> Option<f64> {
    let of = |s: &TilingSizes| {
        let trial = |f: &dyn Fn(&SpaceSizes) -> u64| s.trial.iter().map(f).sum::<u64>();
        let all = [
            s.quadrature_points,
            s.test.nodes,
            s.test.dofs(),
            s.test.derivatives,
            trial(&SpaceSizes::dofs),
            trial(&|t| t.derivatives),
            trial(&|t| t.nodes * t.matrices),
        ];
        all.map(|n| (n.max(1) as f64).ln())
    };
    let apart: Vec<f64> = of(a).iter().zip(of(b)).map(|(a, b)| (a - b).abs()).collect();
    (apart.iter().all(|d| *d <= FACTOR.ln())).then(|| apart.iter().sum())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::*;
    use kingpost_forms::lowering::{LoweringOptions, lower};
    use kingpost_strategies::StagedTiling;
    use kingpost_strategies::tiling::TilingParameters;
    use kingpost_strategies::tiling::staged_tiling_sizes;

    /// The sizes in closed form are those of the lowered operators.
    #[test]
    fn operators_have_the_sizes_of_their_lowered_forms() {
        for (operator, dim) in Operator::ALL.into_iter().flat_map(|o| [(o, 2), (o, 3)]) {
            for degree in 1..=3 {
                let options = LoweringOptions::new("k").with_scheme(QuadratureScheme::XiaoGimbutas);
                let lowered = lower(&operator.form(dim, degree).unwrap(), &options).unwrap();
                let unnamed = |mut sizes: TilingSizes| {
                    sizes.test.name.clear();
                    sizes.trial.iter_mut().for_each(|s| s.name.clear());
                    (dim, sizes)
                };
                let expected = unnamed(staged_tiling_sizes(&lowered).unwrap());
                let case = operator.action_name(dim, degree);
                assert_eq!(operator_sizes(&case, false), Some(expected), "{case}");
                let Some(over_modes) = operator_sizes(&case, true) else { continue };
                let (kernel, _) = Mapping::sequential().with_modes().apply(&lowered).unwrap();
                let expected = unnamed(staged_tiling_sizes(&kernel).unwrap());
                assert_eq!(over_modes, expected, "{case} over modes");
            }
        }
    }

    fn sizes(points: u64, nodes: u64, matrices: u64) -> TilingSizes {
        let space = || SpaceSizes::scalar("u", nodes, matrices);
        TilingSizes { quadrature_points: points, trial: vec![space()], test: space(), word_bytes: 8 }
    }

    fn over_points(points: u64, nodes: u64, matrices: u64, dim: usize) -> Option<(String, Mapping)> {
        similar(FormSizes { points: &sizes(points, nodes, matrices), modes: None }, dim, TABLE)
    }

    const TABLE: &str = "# measured\n\
        laplace.3D.P2 {\"strategy\":\"staged_cells\",\"cells\":32,\"constant_tables\":true}\n\
        laplace.3D.P4 {\"strategy\":\"staged_tiling\",\"cells\":32,\"work_items_per_cell\":4,\"quad_tile\":23,\"eval_rows\":12,\
        \"eval_cols\":[35],\"quad_rows\":18,\"quad_cols\":23}\n";

    /// The rule of basix for the 3-D P4 Laplace form has 24 points, that of the table 23.
    #[test]
    fn tiles_keep_their_number() {
        let (case, mapping) = over_points(24, 35, 3, 3).unwrap();
        assert_eq!(case, "laplace.3D.P4");
        let expected = TilingParameters {
            cells: 32,
            work_items_per_cell: 4,
            quad_tile: 24,
            eval_rows: 12,
            eval_cols: vec![35],
            quad_rows: 18,
            quad_cols: 24,
        };
        assert_eq!(mapping, Mapping::from(StagedTiling(expected)));
    }

    #[test]
    fn forms_of_other_sizes_have_no_mapping() {
        // of the second degree, the fourth is out of reach
        assert_eq!(over_points(4, 10, 3, 3).unwrap().0, "laplace.3D.P2");
        // a triangle's element is not a tetrahedron's of as many nodes
        assert_eq!(over_points(4, 10, 3, 2), None);
        assert_eq!(over_points(4, 10, 10, 3), None);
    }
}
