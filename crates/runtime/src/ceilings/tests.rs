//! What becomes of a measurement that a kernel exceeds.
#![allow(clippy::unwrap_used)]

use super::*;
use kingpost_sample::is_long_run;
use std::cell::Cell;

/// A measurement under load, here one with a hundredth of the bandwidth, is taken again when a kernel
/// is faster, and only then; of kernels that are faster than anything, twice.
#[test]
fn exceeded_ceilings_are_measured_again() {
    let device = crate::open("c").unwrap();
    let dir = tempfile::tempdir().unwrap();
    let cache = Cache::at(dir.path());
    let idle = measure_ceilings(&*device, &cache, false).unwrap();
    let model = DeviceModel {
        dram_bytes_per_s: idle.dram_bytes_per_s / 100.0,
        fp64_flops_per_s: idle.fp64_flops_per_s * 100.0,
        ..idle
    };
    let key = key_of(device.info()).unwrap();
    keep(&cache, &key, Stored { model, measured_unix_s: now(), repeats: 0 });
    let kept = measure_ceilings(&*device, &cache, false).unwrap();
    let asked = Cell::new(0);
    let exceeded = |bytes_per_s: f64| {
        let excludes = |model: &DeviceModel| {
            asked.set(asked.get() + 1);
            bytes_per_s > model.dram_bytes_per_s
        };
        measure_exceeded_ceilings(&*device, &cache, &excludes).unwrap()
    };
    assert_eq!(exceeded(kept.dram_bytes_per_s), kept, "as fast, not faster");
    let again = exceeded(2.0 * kept.dram_bytes_per_s);
    assert!(again.dram_bytes_per_s > 2.0 * kept.dram_bytes_per_s, "{again:?}");
    assert_eq!(again.fp64_flops_per_s, kept.fp64_flops_per_s, "the higher one stays");
    assert_eq!(measure_ceilings(&*device, &cache, false).unwrap(), again);
    if !is_long_run() {
        return; // a measurement takes seconds
    }
    let twice = exceeded(f64::INFINITY);
    assert!(twice.dram_bytes_per_s >= again.dram_bytes_per_s, "{twice:?}");
    assert_eq!(asked.get(), 3);
    assert_eq!(exceeded(f64::INFINITY), twice, "no third time");
    assert_eq!(asked.get(), 3);
}
