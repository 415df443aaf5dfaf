//! Measured ceilings: plausible, stored, measured again on demand.

use crate::programs::each_device;
use kingpost_runtime::{Cache, measure_ceilings};

#[test]
fn ceilings_are_plausible_and_stored_for_a_day() {
    each_device(|device, target| {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path());
        let start = std::time::Instant::now();
        let first = measure_ceilings(device, &cache, false).unwrap();
        println!("{target}: {first:?} in {:.2} s", start.elapsed().as_secs_f64());
        // From the slowest machine to twice the fastest card of 2026 (8 TB/s, 67 TFLOP/s with FMA).
        assert!((2e8..2e13).contains(&first.dram_bytes_per_s), "{first:?}");
        assert!((2e8..2e14).contains(&first.fp64_flops_per_s), "{first:?}");
        assert!(first.local_bytes_per_s.is_none_or(|b| b > first.dram_bytes_per_s), "{first:?}");
        assert_eq!(measure_ceilings(device, &cache, false).unwrap(), first);
        let entry = std::fs::read_dir(dir.path()).unwrap().next().unwrap().unwrap().path();
        std::fs::write(&entry, "{}").unwrap();
        let again = measure_ceilings(device, &cache, false).unwrap();
        assert!(again != first, "a damaged entry is not believed");
        assert!(measure_ceilings(device, &cache, true).unwrap() != again);
    });
}
