//! What is counted at the parameters of the page.

use crate::data::Counts;
use kingpost_analysis::Analysis;
use kingpost_analysis::stats::bank_traffic;
use kingpost_ir::{AddressSpace, VarKind};
use std::collections::BTreeMap;

/// Statistics, and conflicts over banks if there is local memory.
pub fn counts(analysis: &Analysis, params: &BTreeMap<String, i64>) -> Counts {
    let kernel = analysis.kernel();
    let own = |name: &str| kernel.var(name).is_some_and(|v| kernel.vars[v].kind == VarKind::Param);
    let params: BTreeMap<String, i64> =
        params.iter().filter(|(name, _)| own(name)).map(|(name, value)| (name.clone(), *value)).collect();
    let statistics = match analysis.statistics(&params) {
        Ok(statistics) => statistics,
        Err(error) => return Counts { error: Some(error.to_string()), ..Counts::default() },
    };
    let has_local = kernel.vars.values().any(|var| var.space == AddressSpace::Local);
    let (banks, error) = match has_local.then(|| bank_traffic(kernel, &params)) {
        Some(Ok(banks)) => (banks, None),
        Some(Err(error)) => (Vec::new(), Some(error.to_string())),
        None => (Vec::new(), None),
    };
    Counts { statistics: Some(statistics), banks, error }
}
