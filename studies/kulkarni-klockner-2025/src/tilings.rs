//! The tilings that Kulkarni & Klöckner 2025 found best on a Titan V, and where the cost model
//! ranks them.

use crate::case::Case;
use kingpost::forms::form::FormError;
use kingpost::forms::lowering::{LoweringOptions, lower};
use kingpost::forms::quadrature::QuadratureScheme;
use kingpost::forms::tiling::{Tiling, TilingError, TilingParameters, TilingSizes};
use kingpost::kernels::{Operator, OperatorError};
use kingpost::tuning::{CostModel, SearchBounds, SearchSpace, Standing};
use kingpost::{NotAnAction, tiling_sizes};

/// A row of Tables 5 and 7 of Kulkarni & Klöckner 2025.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedTiling {
    /// The operator action.
    pub case: Case,
    /// Points of its quadrature rule, as far as the table tells.
    pub points: u64,
    /// The parameters; the tables have one width of evaluation tiles for all functions.
    pub parameters: TilingParameters,
}

/// Where a model ranks a published tiling.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedRank {
    /// The sizes, with the points of the tables.
    pub sizes: TilingSizes,
    /// Points of the rule that the project has in the scheme `xiao_gimbutas`.
    pub own_points: u64,
    /// Whether the constraints allow the tiling.
    pub in_space: bool,
    /// Its place.
    pub standing: Standing,
    /// Its predicted time over that of the best candidate.
    pub over_best: f64,
}

/// Why a published tiling cannot be ranked.
#[derive(Debug, thiserror::Error)]
pub enum PublishedError {
    /// The table cannot be read.
    #[error("the published tilings cannot be read in line {line}: {text}")]
    Table {
        /// Line, from 1.
        line: usize,
        /// Its text.
        text: String,
    },
    /// The operator.
    #[error(transparent)]
    Operator(#[from] OperatorError),
    /// The form.
    #[error(transparent)]
    Form(#[from] FormError),
    /// The kernel.
    #[error(transparent)]
    Sizes(#[from] NotAnAction),
    /// The parameters.
    #[error(transparent)]
    Tiling(#[from] TilingError),
}

/// The multi-level tilings of Tables 5 and 7 of Kulkarni & Klöckner 2025; the other cases of the
/// tables have a cell a work-item.
///
/// # Errors
/// A row that is not of the table's form.
pub fn published_tilings() -> Result<Vec<PublishedTiling>, PublishedError> {
    let text = include_str!("../data/published_tilings.csv");
    let rows = text.lines().enumerate().filter(|(_, row)| !row.starts_with(['#', 'o']));
    let parsed = rows
        .map(|(k, row)| parse(row).ok_or_else(|| PublishedError::Table { line: k + 1, text: row.into() }));
    parsed.collect()
}

fn parse(row: &str) -> Option<PublishedTiling> {
    let (operator, figures) = row.split_once(',')?;
    let figures: Option<Vec<u64>> = figures.split(',').map(|x| x.parse().ok()).collect();
    let [dim, degree, points, cells, work_items_per_cell, quad_tile, eval_rows, cols, quad_rows, quad_cols] =
        figures?[..]
    else {
        return None;
    };
    let case = Case { operator: operator.parse().ok()?, dim: dim as usize, degree: degree as usize };
    let functions = match case.operator {
        Operator::Hyperelasticity => 2,
        Operator::Mass | Operator::Helmholtz | Operator::Laplace | Operator::Elasticity => 1,
    };
    let eval_cols = vec![cols; functions];
    let parameters = TilingParameters {
        cells,
        work_items_per_cell,
        quad_tile,
        eval_rows,
        eval_cols,
        quad_rows,
        quad_cols,
    };
    Some(PublishedTiling { case, points, parameters })
}

impl PublishedTiling {
    /// Ranks the tiling among the candidates of `bounds`. Sizes come from the lowered form; the
    /// number of points is that of the tables, whose rules have changed since for some degrees.
    ///
    /// # Errors
    /// A form that cannot be lowered, parameters that make no sense for it.
    pub fn rank(
        &self,
        model: &CostModel<'_>,
        bounds: &SearchBounds,
    ) -> Result<PublishedRank, PublishedError> {
        let Case { operator, dim, degree } = self.case;
        let options = LoweringOptions::new("k").with_scheme(QuadratureScheme::XiaoGimbutas);
        let lowered = lower(&operator.form(dim, degree)?, &options)?;
        let own = tiling_sizes(&lowered)?;
        let own_points = own.quadrature_points;
        let sizes = TilingSizes { quadrature_points: self.points, ..own };
        let space = SearchSpace::new(sizes.clone(), bounds.clone())?;
        let standing = space.standing(model, &self.parameters)?;
        let best = space.survey(model, 1, |_, _| {}).best;
        let seconds = model.seconds_per_cell(&Tiling::new(&sizes, &self.parameters)?);
        let over_best = best.first().map_or(f64::NAN, |b| seconds / b.seconds_per_cell);
        Ok(PublishedRank {
            own_points,
            in_space: space.contains(&self.parameters),
            standing,
            over_best,
            sizes,
        })
    }
}

impl PublishedRank {
    /// Part of the candidates that are predicted to be faster.
    #[must_use]
    pub fn share_faster(&self) -> f64 {
        self.standing.faster as f64 / self.standing.of.max(1) as f64
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use kingpost::autotune::known_devices;

    /// The requirement is 80 %; small spaces are enough to notice a formula that goes wrong.
    #[test]
    fn the_best_published_tilings_rank_in_the_top_decile() {
        let tilings = published_tilings().unwrap();
        assert_eq!(tilings.len(), 36);
        let devices = known_devices().unwrap();
        let titan = devices.iter().find(|d| d.name == "Titan V").unwrap();
        let model = CostModel::new(titan).unwrap();
        let small = tilings.iter().filter(|t| t.points <= 25);
        let ranks: Vec<_> = small.map(|t| t.rank(&model, &SearchBounds::default()).unwrap()).collect();
        assert!(ranks.len() >= 10 && ranks.iter().all(|r| r.in_space && r.standing.equal > 0));
        let top = ranks.iter().filter(|r| r.share_faster() <= 0.1).count();
        assert!(10 * top >= 8 * ranks.len(), "{top} of {}", ranks.len());
    }
    /// The published times reach half of the roofline with tables in local memory in 37 of 70 cases
    /// (53 %) on the H200 NVL.
    #[test]
    fn published_times_reach_the_published_share_of_the_roofline() {
        let text = include_str!("../data/published_actions.csv");
        let number = |field: &str| field.parse::<f64>().ok();
        for (device, column, with_tables, true_roof) in [("H200 NVL", 6, 37, 0), ("Titan V", 8, 54, 45)] {
            let models = known_devices().unwrap();
            let model = models.iter().find(|m| m.name == device).unwrap();
            let (mut cases, mut half, mut half_of_true) = (0, 0, 0);
            for row in text.lines().filter(|row| !row.starts_with(['#', 'o'])) {
                let fields: Vec<&str> = row.split(',').collect();
                let (cells, micros) = (number(fields[column]).unwrap(), number(fields[column + 1]).unwrap());
                let of_all = |per_cell: f64| (per_cell * cells).round() as u64;
                let work = kingpost::autotune::Work {
                    flops: of_all(number(fields[3]).unwrap()),
                    dram_bytes: of_all(number(fields[4]).unwrap()),
                    table_bytes: of_all(number(fields[5]).unwrap_or(0.0)),
                };
                let rate = work.flops as f64 / (micros * 1e-6);
                cases += 1;
                half += usize::from(rate >= 0.5 * work.table_roofline(model));
                half_of_true += usize::from(rate >= 0.5 * work.true_roofline(model));
            }
            assert_eq!((cases, half, half_of_true), (70, with_tables, true_roof), "{device}");
        }
    }
}
