//! Other names and labels for a sample: words that some target, isl or the engine itself uses.

use super::Sample;
use kingpost_interp::Memory;
use kingpost_ir::kernel::Kernel;
use std::collections::{BTreeMap, BTreeSet};

/// Macros, functions, types and keywords of the targets; names of the printers; names that steps
/// make and that isl reads; words of the text format; first letters that belong to implementations.
pub(super) const NAMES: [&str; 60] = [
    "HUGE_VAL",
    "M_PI",
    "NULL",
    "INT_MAX",
    "INT32_MAX",
    "SIZE_MAX",
    "NAN",
    "rotate",
    "mad",
    "any",
    "shuffle",
    "remainder",
    "rint",
    "modf",
    "expf",
    "frexp",
    "y0",
    "gamma",
    "convert_int",
    "get_local_id",
    "barrier",
    "memcpy",
    "atomicAdd",
    "threadIdx",
    "dim3",
    "norm",
    "long",
    "double",
    "float4",
    "xor",
    "template",
    "this",
    "main",
    "args",
    "g0",
    "l0",
    "groups_0",
    "local_memory",
    "sample_launch",
    "kingpost_min",
    "kingpost_atomic_add_f64",
    "__x",
    "_K",
    "_",
    "i1_o",
    "i1_i",
    "x_1",
    "common",
    "exists",
    "infty",
    "ceild",
    "i_entry",
    "in",
    "out",
    "for",
    "i32",
    "sin",
    "select",
    "global",
    "mod",
];

/// Labels that a language could read as more than a comment.
const LABELS: [&str; 6] = ["C:\\tmp\\", "what??/", "a\nx[0] = 1.0;", "*/", "\\ ", "\u{0}\"`"];

/// Steele, Lea and Flood's SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % limit.max(1) as u64) as usize
    }
}

/// What the parts of a kernel are called, by their own names: about half of them are renamed.
/// Nothing for 0.
pub(super) fn names(kernel: &Kernel, pick: u64) -> BTreeMap<String, String> {
    let mut random = Random(pick);
    let own: BTreeSet<&String> = (kernel.vars.values().map(|v| &v.name))
        .chain(kernel.inames.values().map(|i| &i.name))
        .chain(kernel.insns.values().map(|i| &i.name))
        .chain(kernel.rules.values().map(|r| &r.name))
        .chain([&kernel.name])
        .collect();
    let params: BTreeSet<&String> = kernel.rules.values().flat_map(|r| &r.params).collect();
    let is_free = |name: &&str| !own.iter().chain(&params).any(|o| o == name);
    let mut free: Vec<&str> = NAMES.into_iter().filter(is_free).collect();
    let mut renamed = BTreeMap::new();
    for name in own {
        if pick != 0 && !free.is_empty() && random.below(2) == 0 {
            renamed.insert(name.clone(), free.swap_remove(random.below(free.len())).to_owned());
        }
    }
    renamed
}

/// The sample under the names that `pick` stands for, some of its instructions with labels.
pub(super) fn renamed(sample: Sample, pick: u64) -> Sample {
    if pick == 0 {
        return sample;
    }
    let Sample { mut kernel, memory } = sample;
    let names = names(&kernel, pick);
    let parts = (kernel.vars.values_mut().map(|v| &mut v.name))
        .chain(kernel.inames.values_mut().map(|i| &mut i.name))
        .chain(kernel.rules.values_mut().map(|r| &mut r.name))
        .chain([&mut kernel.name]);
    for part in parts.chain(kernel.insns.values_mut().map(|i| &mut i.name)) {
        if let Some(name) = names.get(part) {
            part.clone_from(name);
        }
    }
    let mut random = Random(!pick);
    for insn in kernel.insns.values_mut() {
        if random.below(3) == 0 {
            insn.tags.insert(LABELS[random.below(LABELS.len())].to_owned());
        }
    }
    Sample { kernel: kernel.canonical(), memory: under_names(&memory, &names) }
}

/// The same values under other names, those of parts that keep theirs as they are.
pub fn under_names(memory: &Memory, names: &BTreeMap<String, String>) -> Memory {
    let named = |name: &String| names.get(name).unwrap_or(name).clone();
    let mut result = Memory::new();
    memory.params().iter().for_each(|(name, value)| result.set_param(named(name), *value));
    memory.values().iter().for_each(|(name, value)| result.set(named(name), value.clone()));
    result
}
