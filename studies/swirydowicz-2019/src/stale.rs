//! Records of code that is no longer generated.

use crate::problem::{Precision, Sizes};
use crate::recipes::{Launch, Tuned};
use crate::record::{Outcome, Record};
use kingpost::codegen::{Options, Target, generate};
use rayon::prelude::*;
use std::collections::BTreeMap;

/// BLAKE3 hashes of the sources of launches, in the languages that have one.
#[must_use]
pub fn sources(launches: &[Launch]) -> Vec<String> {
    let hash = |target| {
        let mut sources = blake3::Hasher::new();
        for launch in launches {
            let program =
                generate(launch.schedule.kernel(), target, &Options::default().with_trust(true)).ok()?;
            sources.update(program.source.as_bytes());
        }
        Some(sources.finalize().to_hex().to_string())
    };
    [Target::Cuda, Target::OpenCl, Target::C].into_iter().filter_map(hash).collect()
}

/// The measured records of `kernels` at degrees `first..=last` whose source is not one that is generated
/// now, or whose kernel is gone.
#[must_use]
pub fn stale<'r>(records: &'r [Record], kernels: &[Tuned], (first, last): (usize, usize)) -> Vec<&'r Record> {
    let mut by_source: BTreeMap<(Tuned, usize, Precision), Vec<&Record>> = BTreeMap::new();
    let mut stale = Vec::new();
    let measured = |r: &&Record| matches!(r.outcome, Outcome::Measured { .. });
    for record in records.iter().filter(measured).filter(|r| (first..=last).contains(&r.degree)) {
        match record.tuned() {
            None => stale.push(record),
            Some(kernel) if kernels.contains(&Tuned { elements: None, resident: None, ..kernel }) => {
                by_source.entry((kernel, record.degree, record.precision)).or_default().push(record);
            }
            Some(_) => {}
        }
    }
    let groups: Vec<_> = by_source.into_iter().collect();
    let of_group = |((kernel, degree, precision), records): &((Tuned, usize, Precision), Vec<&'r Record>)| {
        let sizes = Sizes { problem: kernel.problem, degree: *degree, precision: *precision };
        let now =
            kernel.launches_in(sizes.degree, sizes.precision).map_or_else(|_| Vec::new(), |l| sources(&l));
        records.iter().copied().filter(|r| !now.contains(&r.source)).collect::<Vec<_>>()
    };
    stale.extend(groups.par_iter().flat_map_iter(of_group).collect::<Vec<_>>());
    stale
}
