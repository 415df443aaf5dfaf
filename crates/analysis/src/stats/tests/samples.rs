//! Random programs: what a run counts is what the statistics say.

use super::check;
use crate::stats::{StatsError, statistics};
use kingpost_interp::{Memory, interpret};
use kingpost_ir::kernel::Kernel;
use kingpost_sample::{SampleConfig, arbitrary_kernel, config};
use proptest::prelude::*;

fn without_data() -> SampleConfig {
    SampleConfig { data_dependent: false, ..SampleConfig::default() }
}

/// Every access of a run without maps and conditions on data is counted exactly.
fn is_exact(kernel: &Kernel, memory: &Memory) -> bool {
    let stats = check(kernel, memory);
    stats.exact() && stats.vars.iter().all(|v| v.touched_exact)
}

proptest! {
    #![proptest_config(config(256))]

    #[test]
    fn statistics_are_the_counts_of_a_run(sample in arbitrary_kernel(without_data())) {
        check(&sample.kernel, &sample.memory);
    }

    #[test]
    fn affine_programs_are_exact(sample in arbitrary_kernel(SampleConfig::simple())) {
        // a choice by data
        let choices = format!("{}", sample.kernel).contains("select(");
        prop_assert!(is_exact(&sample.kernel, &sample.memory) || choices);
    }

    #[test]
    fn bounds_on_data_are_an_error_and_nothing_else_is(sample in arbitrary_kernel(SampleConfig::default())) {
        match statistics(&sample.kernel, sample.memory.params()) {
            Ok(_) | Err(StatsError::DataDependent { .. }) => {}
            Err(other) => prop_assert!(false, "{other}"),
        }
    }

    #[test]
    fn a_run_repeats(sample in arbitrary_kernel(SampleConfig::default())) {
        let (mut first, mut second) = (sample.memory.clone(), sample.memory.clone());
        let counts = interpret(&sample.kernel, &mut first)?;
        prop_assert_eq!(&counts, &interpret(&sample.kernel, &mut second)?);
        // NaN is not equal to itself
        prop_assert_eq!(format!("{first:?}"), format!("{second:?}"));
    }
}
