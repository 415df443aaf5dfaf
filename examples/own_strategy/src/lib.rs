//! A strategy in a crate of its own.
//!
//! [`CellRuns`] gives each work-item several cells in a row. [`strategies`] is Kingpost's set with it: mappings that
//! are read by that set may name `acme.cell_runs`, also after `modes` or `rules`, and the tuner tries it.
//!
//! ```
//! use own_strategy::{CellRuns, strategies};
//! use kingpost_fem::element::CellShape;
//! use kingpost_forms::form::{FunctionSpace, coefficient, dx, test};
//! use kingpost_forms::lowering::{LoweringOptions, lower};
//! use kingpost_strategies::Mapping;
//!
//! let space = FunctionSpace::scalar(CellShape::Triangle, 2);
//! let form = coefficient("u", &space) * test(&space) * dx();
//! let lowered = lower(&form, &LoweringOptions::new("mass"))?;
//! let mapping = Mapping::from(CellRuns { run: 4, items: 8 }).with_modes();
//! assert_eq!(mapping.to_string(), "modes, runs of 4 cells, 8 a group");
//! let (kernel, recipe) = mapping.apply(&lowered)?;
//! assert_eq!(recipe.apply(&lowered.kernel)?, kernel);
//!
//! // written and read back
//! let json = serde_json::to_string(&mapping)?;
//! assert_eq!(json, r#"{"strategy":"modes","then":{"strategy":"acme.cell_runs","run":4,"items":8}}"#);
//! assert_eq!(strategies()?.mapping(&json)?, mapping);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

use kingpost_ir::{AddressSpace, AxisTag, VarKind, Variable};
use kingpost_primitives::ScheduleSteps;
use kingpost_primitives::primitives::{MakeAtomic, SetAddressSpace};
use kingpost_strategies::strategy::{Arguments, Question, Stopped, StrategyError, Work};
use kingpost_strategies::{Strategy, StrategySet, TakenName};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Kingpost's strategies and that of this crate.
///
/// # Errors
/// A name that Kingpost has already; names with that of a crate in front are never Kingpost's.
pub fn strategies() -> Result<StrategySet, TakenName> {
    kingpost_strategies::strategies().clone().with::<CellRuns>()
}

/// Several cells in a row by each work-item, one after the other, so that what neighbours share is in its cache.
///
/// # Rewrite
/// ```text
/// for cell in 0..n      =>   for cell_group {g.0}
///   S(cell)                    for cell_item {l.0}
///                                for cell_in_run in 0..4
///                                  S(4*(8*cell_group + cell_item) + cell_in_run)
/// ```
///
/// # Errors
/// A run of no cell, a step that is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CellRuns {
    /// Cells of a run.
    pub run: u32,
    /// Work-items of a group.
    pub items: u32,
}

impl fmt::Display for CellRuns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "runs of {} cells, {} a group", self.run, self.items)
    }
}

impl Arguments for CellRuns {
    const NAME: &'static str = "acme.cell_runs";
    const SUMMARY: &'static str = "Several cells in a row by each work-item.";
}

impl Strategy for CellRuns {
    fn apply(&self, on: &mut Work<'_>) -> Result<(), Stopped> {
        if self.run == 0 {
            let needed = "at least 1".into();
            return Err(
                StrategyError::Parameter { symbol: "the cells of a run".into(), found: 0, needed }.into()
            );
        }
        // what the parts of the kernel are: lowering says it, or tags of a text
        let form = on.form();
        let cells = form.cell_loop()?;
        let s = on.schedule();
        // before the loop is split, so that no work-item shares what is of one cell
        let is_shared = |v: &&Variable| v.kind == VarKind::Temporary && v.space != AddressSpace::Private;
        for var in form.kernel().vars.values().filter(is_shared) {
            s.apply(SetAddressSpace::new(&var.name, AddressSpace::Private))?;
        }
        for commit in &cells.commits {
            s.apply(MakeAtomic::insn(commit))?;
        }
        let [runs, _cell] = s.split_as(&cells.cell, self.run.into(), ["cell_run", "cell_in_run"])?;
        let [group, item] = s.split_as(&runs, self.items.into(), ["cell_group", "cell_item"])?;
        s.tag(&group, AxisTag::Group(0))?;
        Ok(s.tag(&item, AxisTag::Local(0))?)
    }

    /// Runs are for caches: a card reads neighbours by neighbours.
    fn candidates(question: &Question<'_>) -> Vec<Self> {
        let runs: &[u32] = if question.is_card { &[] } else { &[2, 8] };
        runs.iter().map(|run| Self { run: *run, items: 8 }).collect()
    }
}
