//! How long hierarchies of multigrid and their cycles take, without what the first ones compile.

use super::{LinearSolver, Preconditioner, Renewal};
use crate::{AmgPreconditioner, CsrOperator, Operator, Queue, SolveError, run};
use kingpost_runtime::{Timing, TimingOptions};
use std::time::Instant;

/// Cycles whose median is taken.
const CYCLES: usize = 25;

/// Seconds that hierarchies of a matrix take.
#[derive(Clone, Debug, PartialEq)]
pub struct HierarchyTimes {
    /// Wall time of each that was made again as a whole.
    pub setups: Vec<f64>,
    /// The same of numbers alone, with the sets of nodes and the places of blocks that are known.
    pub renewals: Vec<f64>,
    /// A cycle by the device's clock, the median of 25.
    pub cycle: f64,
}

impl LinearSolver<'_> {
    /// Makes the hierarchy of the matrix that was prepared last some `times` again, whole and then its
    /// numbers alone, and runs cycles; none where no hierarchy preconditions. Points are at rest.
    ///
    /// # Errors
    /// [`SolveError::Unprepared`] of no `times`; as [`LinearSolver::prepare`].
    pub fn time_hierarchies(
        &mut self,
        matrix: &CsrOperator,
        times: usize,
    ) -> Result<Option<HierarchyTimes>, SolveError> {
        let device = self.device;
        let Preconditioner::Amg(levels) = &mut self.preconditioner else { return Ok(None) };
        let (rows, operator): (_, &dyn Operator) = match &self.blocks {
            None => (matrix.block_rows()?, matrix),
            Some(blocks) => {
                run(device, &[blocks.take(matrix)])?;
                (blocks.blocks().block_rows()?, blocks.blocks())
            }
        };
        let mut of = |needs| {
            let again = |_| {
                levels.needs = needs;
                let start = Instant::now();
                levels.make(device, &rows, None)?;
                Ok(start.elapsed().as_secs_f64())
            };
            (0..times).map(again).collect::<Result<Vec<f64>, SolveError>>()
        };
        let (setups, renewals) = (of(Renewal::Whole)?, of(Renewal::Numbers)?);
        let hierarchy = levels.hierarchy.as_ref().ok_or(SolveError::Unprepared)?;
        let vector = || device.allocate(8 * self.n as u64);
        let (b, x) = (vector()?, vector()?);
        device.fill(&b, 0)?;
        let mut queue = Queue::new();
        let preconditioner = AmgPreconditioner { hierarchy, operator };
        preconditioner.apply(&b, &x, &mut queue);
        let cycle = queue.record(device)?;
        let options = TimingOptions { warm_up: 3, min_runs: CYCLES, min_seconds: 0.0, max_runs: CYCLES };
        let cycle = Timing::sample(&options, || device.rerun(&cycle))?.median_s;
        Ok(Some(HierarchyTimes { setups, renewals, cycle }))
    }
}
