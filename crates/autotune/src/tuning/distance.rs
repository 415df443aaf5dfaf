//! Distance of two arrays of a device, summed on the device.

use kingpost_codegen::{Options, Program, generate};
use kingpost_ir::{AxisTag, text};
use kingpost_primitives::Recipe;
use kingpost_primitives::primitives::{SplitIname, Tag};
use kingpost_run::LoadError;
use kingpost_runtime::{Arg, Buffer, Device, Executable, download_values};

/// Each work-item sums every 131,072nd entry: neighbours read neighbours, and a card is full.
const ITEMS: usize = 1 << 17;

const KERNEL: &str = "\
kernel squared_distance
param n: i32
arg found: f64[n] in
arg expected: f64[n] in
arg sums: f64[2, 131072] out
temp d: f64 private
temp s: f64 private

for w in 0..131072
  no_distance: d = 0.0
  no_size: s = 0.0
  for k in 0..ceil((n - w)/131072)
    distance: d += (found[w + 131072*k] - expected[w + 131072*k])*(found[w + 131072*k] - expected[w + 131072*k])
    size: s += expected[w + 131072*k]*expected[w + 131072*k]
  store_distance: sums[0, w] = d
  store_size: sums[1, w] = s
";

/// Sums squared distances on a device.
pub(super) struct Distance<'d> {
    device: &'d dyn Device,
    executable: Executable,
    sums: Buffer,
}

/// The program for a target; its text is a constant, so an error is a bug.
fn program(device: &dyn Device) -> Result<Program, String> {
    let bug = |e: String| format!("bug of kingpost: the kernel of distances: {e}");
    let kernel = text::parse(KERNEL).map_err(|e| bug(e.to_string()))?;
    let (group, item) = ("w_group", "w_item");
    let split =
        SplitIname { outer: Some(group.into()), inner: Some(item.into()), ..SplitIname::new("w", 256) };
    let recipe = Recipe::default()
        .then(split)
        .then(Tag::new(group, AxisTag::Group(0)))
        .then(Tag::new(item, AxisTag::Local(0)));
    let kernel = recipe.apply(&kernel).map_err(|e| bug(e.to_string()))?;
    let target = device.info().backend.target();
    generate(&kernel, target, &Options::default()).map_err(|e| bug(e.to_string()))
}

impl<'d> Distance<'d> {
    pub(super) fn new(device: &'d dyn Device) -> Result<Self, String> {
        let executable = device.compile(&program(device)?).map_err(|e| e.to_string())?;
        let sums = device.allocate(2 * 8 * ITEMS as u64).map_err(|e| e.to_string())?;
        Ok(Self { device, executable, sums })
    }

    /// Distance of two arrays of f64 in the Euclidean norm, relative to the second; NaN if one
    /// holds a NaN.
    pub(super) fn relative(&self, found: &Buffer, expected: &Buffer) -> Result<f64, LoadError> {
        let args = [
            ("n", Arg::Param((expected.bytes() / 8) as i64)),
            ("found", Arg::Buffer(found)),
            ("expected", Arg::Buffer(expected)),
            ("sums", Arg::Buffer(&self.sums)),
        ];
        self.device.launch(&self.executable, &args)?;
        let sums: Vec<f64> = download_values(self.device, &self.sums)?;
        let (distances, sizes) = sums.split_at(ITEMS.min(sums.len()));
        let (distance, size) = (distances.iter().sum::<f64>(), sizes.iter().sum::<f64>());
        Ok(if distance == 0.0 { 0.0 } else { (distance / size).sqrt() })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use kingpost_run::{Random, RelativeError};
    use kingpost_runtime::{buffer_of, open};

    #[test]
    fn the_device_sums_what_the_host_sums() {
        for name in ["c", "opencl"] {
            let device = open(name).unwrap();
            let distance = Distance::new(&*device).unwrap();
            for n in [1, 1000, ITEMS, 3 * ITEMS + 17] {
                let seed = Random::fresh_seed();
                let expected = Random::new(seed).numbers(n);
                let mut found = expected.clone();
                let b = buffer_of(&*device, &expected).unwrap();
                let same = distance.relative(&buffer_of(&*device, &found).unwrap(), &b).unwrap();
                assert_eq!(same, 0.0);
                found[n - 1] += 1e-9;
                found[n / 2] -= 0.5;
                let l2 = RelativeError::between(&found, &expected).l2;
                let summed = distance.relative(&buffer_of(&*device, &found).unwrap(), &b).unwrap();
                // 1e-10: the last entry differs by a rounded 1e-9
                assert!((summed - l2).abs() <= 1e-10 * l2, "{name}, n = {n}, seed {seed}: {summed} {l2}");
                found[n - 1] = f64::NAN;
                let poisoned = buffer_of(&*device, &found).unwrap();
                assert!(distance.relative(&poisoned, &b).unwrap().is_nan());
            }
        }
    }
}
