//! What a device can do at most, measured: memory bandwidth, fused multiply-adds, local memory.

mod programs;
#[cfg(test)]
mod tests;

use crate::cache::{Cache, CacheKey};
use crate::device::{Arg, Backend, Buffer, Device, DeviceInfo};
use crate::error::RuntimeError;
use crate::model::{DeviceModel, Occupancy};
use crate::timing::TimingOptions;
use kingpost_codegen::Program;
use programs::Variant;
use serde::{Deserialize, Serialize};
use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds for which a stored measurement holds.
const VALID_S: u64 = 24 * 3600;

/// Changes when the measuring programs do.
const METHOD: &str = "ceilings 2";

/// Bytes of one array on a device with its own memory; L2 caches of such devices hold up to 128
/// MiB.
const ARRAY_DEVICE: u64 = 512 << 20;

/// Minimum and maximum bytes of one array in the memory of the host.
const ARRAY_HOST: (u64, u64) = (128 << 20, 512 << 20);

/// How often a stored measurement is taken again because a kernel exceeds it. Kernels whose data stay
/// in a cache exceed the bandwidth of memory every time.
const REPEATS: u32 = 2;

/// Few runs and the best of them: a ceiling is not an average.
const TIMING: TimingOptions = TimingOptions { warm_up: 1, min_runs: 5, min_seconds: 0.1, max_runs: 50 };

/// A measurement as it is kept.
#[derive(Serialize, Deserialize)]
struct Stored {
    model: DeviceModel,
    /// When it was measured, in seconds since 1970.
    measured_unix_s: u64,
    /// How often it was taken again because a kernel exceeded it.
    #[serde(default)]
    repeats: u32,
}

/// The ceilings of `device`: from `cache` if a measurement there is less than a day old, else
/// measured.
///
/// Memory: bytes a second of a triad `a = b + s*c` or of a sum, whichever is more, counting each
/// element read or written once (a cache that reads a line before writing it moves a third more in
/// a triad). Arithmetic: independent chains of fused multiply-adds on all cores, two operations
/// each. Local memory: reads by all cores.
///
/// `remeasure` ignores what is stored. A measurement takes a few seconds and needs three arrays of
/// at most 512 MiB; the device should be idle.
///
/// # Errors
/// The device cannot run the measuring programs (no double precision, no compiler, too little
/// memory), or is a checker for which time means nothing.
pub fn measure_ceilings(
    device: &dyn Device,
    cache: &Cache,
    remeasure: bool,
) -> Result<DeviceModel, RuntimeError> {
    let (key, now) = (key_of(device.info())?, now());
    if !remeasure && let Some(stored) = stored(cache, &key, now) {
        return Ok(stored.model);
    }
    Ok(keep(cache, &key, Stored { model: measure(device, now)?, measured_unix_s: now, repeats: 0 }))
}

/// The ceilings of a device, under which a kernel was timed that runs at a rate which some models
/// exclude. A stored model that does is measured again: another program ran while it was measured. Of
/// both measurements the higher ceilings are kept. Where a kernel is faster than these, too, as one
/// whose data stay in a cache, that is repeated twice a day at most.
///
/// # Errors
/// As [`measure_ceilings`].
pub fn measure_exceeded_ceilings(
    device: &dyn Device,
    cache: &Cache,
    excludes: &dyn Fn(&DeviceModel) -> bool,
) -> Result<DeviceModel, RuntimeError> {
    let (key, now) = (key_of(device.info())?, now());
    let Some(Stored { model, measured_unix_s, repeats }) = stored(cache, &key, now) else {
        return measure_ceilings(device, cache, true);
    };
    if repeats >= REPEATS || !excludes(&model) {
        return Ok(model);
    }
    let again = measure(device, now)?;
    let model = DeviceModel {
        dram_bytes_per_s: again.dram_bytes_per_s.max(model.dram_bytes_per_s),
        fp64_flops_per_s: again.fp64_flops_per_s.max(model.fp64_flops_per_s),
        local_bytes_per_s: match (again.local_bytes_per_s, model.local_bytes_per_s) {
            (Some(a), Some(b)) => Some(a.max(b)),
            (a, b) => a.or(b),
        },
        ..again
    };
    Ok(keep(cache, &key, Stored { model, measured_unix_s, repeats: repeats + 1 }))
}

/// The key of a device's measurement.
fn key_of(info: &DeviceInfo) -> Result<CacheKey, RuntimeError> {
    if info.driver.contains("Oclgrind") {
        return Err(RuntimeError::NotMeasurable { device: info.name.clone() });
    }
    Ok(CacheKey::of(&[METHOD, &info.selector(), &info.name, &info.driver, &info.arch]))
}

/// Seconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
}

fn measure(device: &dyn Device, now: u64) -> Result<DeviceModel, RuntimeError> {
    let info = device.info();
    let (stream_bytes_per_s, stream_array_bytes) = stream(device)?;
    Ok(DeviceModel {
        name: info.name.clone(),
        description: info.driver.clone(),
        clock_mhz: info.clock_mhz,
        dram_bytes_per_s: stream_bytes_per_s,
        local_bytes_per_s: best(device, &programs::local(info))?,
        fp64_flops_per_s: best(device, &programs::fma(info))?.unwrap_or(0.0),
        source: format!("measured at {now} seconds since 1970, arrays of {stream_array_bytes} bytes"),
        occupancy: Some(Occupancy::of(info)),
    })
}

fn keep(cache: &Cache, key: &CacheKey, measured: Stored) -> DeviceModel {
    if let Ok(text) = serde_json::to_vec_pretty(&measured) {
        cache.store(key, "json", &text);
    }
    measured.model
}

fn stored(cache: &Cache, key: &CacheKey, now: u64) -> Option<Stored> {
    let found: Stored = serde_json::from_slice(&cache.load(key, "json")?).ok()?;
    // A clock that was set back makes a measurement from the future: not valid either.
    now.checked_sub(found.measured_unix_s).filter(|&age| age < VALID_S).map(|_| found)
}

/// Bytes a second of the faster of triad and sum, and the bytes of one array.
fn stream(device: &dyn Device) -> Result<(f64, u64), RuntimeError> {
    let info = device.info();
    let bytes = array_bytes(info) / programs::STREAM_CHUNK_BYTES * programs::STREAM_CHUNK_BYTES;
    let n = i64::try_from(bytes / 8).unwrap_or(0);
    let make = || -> Result<Buffer, RuntimeError> {
        let buffer = device.allocate(bytes)?;
        device.fill(&buffer, 0)?; // poison would make the sums NaN, which some processors add slowly
        Ok(buffer)
    };
    let (a, b, c) = (make()?, make()?, make()?);
    let triad = [
        ("n", Arg::Param(n)),
        ("s", Arg::F64(0.5)),
        ("a", Arg::Buffer(&a)),
        ("b", Arg::Buffer(&b)),
        ("c", Arg::Buffer(&c)),
    ];
    let sum = [("n", Arg::Param(n)), ("x", Arg::Buffer(&b)), ("out", Arg::Buffer(&a))];
    let bytes_f = bytes as f64;
    let triad_s = fastest(device, &programs::triads(info.backend), &triad)?;
    let sum_s = fastest(device, &programs::sums(info.backend), &sum)?;
    Ok(((3.0 * bytes_f / triad_s).max(bytes_f / sum_s), bytes))
}

/// Seconds of the fastest run of the fastest of `programs`.
fn fastest(device: &dyn Device, programs: &[Program], args: &[(&str, Arg<'_>)]) -> Result<f64, RuntimeError> {
    let mut least = f64::INFINITY;
    for program in programs {
        least = least.min(device.time(&device.compile(program)?, args, &TIMING)?.min_s);
    }
    Ok(least)
}

/// Several times the last cache, and no more than a small machine has.
fn array_bytes(info: &DeviceInfo) -> u64 {
    let wanted = match info.backend {
        Backend::Cuda => ARRAY_DEVICE,
        Backend::C | Backend::OpenCl => (4 * host_cache()).clamp(ARRAY_HOST.0, ARRAY_HOST.1),
    };
    let most = if info.global_mem_bytes == 0 { wanted } else { info.global_mem_bytes / 16 };
    wanted.min(most).max(programs::STREAM_CHUNK_BYTES)
}

/// Bytes of the last-level cache of the first core; 0 where the system does not say.
fn host_cache() -> u64 {
    (0..8)
        .filter_map(|i| {
            let path = format!("/sys/devices/system/cpu/cpu0/cache/index{i}/size");
            let text = std::fs::read_to_string(path).ok()?;
            Some(1024 * text.trim().strip_suffix('K')?.parse::<u64>().ok()?)
        })
        .max()
        .unwrap_or(0)
}

/// The highest rate among `variants`, in their units a second; none if there are none.
fn best(device: &dyn Device, variants: &[Variant]) -> Result<Option<f64>, RuntimeError> {
    let mut best = None;
    for variant in variants {
        let rate = rate(device, variant)?;
        best = Some(best.map_or(rate, |b: f64| b.max(rate)));
    }
    Ok(best)
}

fn rate(device: &dyn Device, variant: &Variant) -> Result<f64, RuntimeError> {
    let items = variant.groups * variant.program.plan.block.iter().product::<u64>();
    let out = device.allocate(8 * items)?;
    let args = [
        ("groups", Arg::Param(i64::try_from(variant.groups).unwrap_or(i64::MAX))),
        ("iterations", Arg::Param(variant.iterations as i64)),
        ("p", Arg::F64(0.999_999)),
        ("q", Arg::F64(1e-6)),
        ("out", Arg::Buffer(&out)),
    ];
    let executable = device.compile(&variant.program)?;
    let seconds = device.time(&executable, &args, &TIMING)?.min_s;
    // The kernel writes how many units one iteration of one work-item is worth: the width of the
    // host's vectors is known to its compiler alone.
    let mut bytes = vec![0; 8 * items as usize];
    device.download(&out, &mut bytes)?;
    let first: [u8; 8] = std::array::from_fn(|i| bytes.get(i).copied().unwrap_or(0));
    Ok(f64::from_le_bytes(first) * items as f64 * variant.iterations as f64 / seconds)
}
