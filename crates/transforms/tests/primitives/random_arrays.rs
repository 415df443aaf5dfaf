//! Random changes of arrays on random programs: what is accepted computes the same, and no shared buffer is
//! overwritten while somebody needs it.

use crate::story::{assert_style, counts};
use crate::tally::Tally;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use purlin_ir::interp::{Memory, Observer, interpret, interpret_with};
use purlin_ir::sample::{Sample, SampleConfig, arbitrary_kernel};
use purlin_ir::{Kernel, VarId, VarKind};
use purlin_transforms::primitives::{
    AliasStorage, ContractArray, EmbedTable, ExpandArray, JoinArrayAxes, PadArray, RemoveUnusedVars,
    SplitArrayAxis, TransposeArrayAxes,
};
use purlin_transforms::{Cause, Step, Transform};
use std::collections::BTreeMap;

/// One of some names, and the number of its axes.
fn pick(kernel: &Kernel, which: u8, keep: impl Fn(&VarKind, usize) -> bool) -> Option<(&str, u32)> {
    let vars: Vec<_> = kernel.vars.values().filter(|v| keep(&v.kind, v.shape.len())).collect();
    let var = vars.get(usize::from(which) % vars.len().max(1))?;
    Some((&var.name, var.shape.len() as u32))
}

/// The loops around every use of a variable.
fn loops_around(kernel: &Kernel, name: &str) -> Vec<String> {
    let var = kernel.var(name).unwrap();
    let mut common: Option<Vec<_>> = None;
    for (insn, loops) in kernel.schedule() {
        let insn = &kernel.insns[insn];
        if insn.lhs.var == var || insn.reads().iter().any(|a| a.var == var) {
            let n = common
                .as_ref()
                .map_or(loops.len(), |c| c.iter().zip(&loops).take_while(|(a, b)| a == b).count());
            common = Some(loops[..n].to_vec());
        }
    }
    common.unwrap_or_default().into_iter().map(|l| kernel.inames[l].name.clone()).collect()
}

/// Picks a step that has a chance: names that there are.
fn draw(kernel: &Kernel, [kind, which, how]: [u8; 3]) -> Option<Step> {
    let temporary = |least| pick(kernel, which, move |k, n| *k == VarKind::Temporary && n >= least);
    let array = |least| {
        pick(kernel, which, move |k, n| matches!(k, VarKind::Temporary | VarKind::Argument(_)) && n >= least)
    };
    Some(match kind % 12 {
        0..3 => {
            let (var, _) = temporary(0)?;
            let mut loops = loops_around(kernel, var);
            let keep = 1 + usize::from(how) % loops.len().max(1);
            loops = loops.split_off(loops.len().saturating_sub(keep));
            ExpandArray::new(var, loops).into()
        }
        3 | 4 => {
            let (var, axes) = temporary(1)?;
            ContractArray::new(var, u32::from(how) % axes).into()
        }
        5 => {
            let (var, axes) = array(2)?;
            PadArray::new(var, u32::from(how) % axes, i64::from(how % 4)).into()
        }
        6 => {
            let (var, axes) = array(2)?;
            TransposeArrayAxes::new(var, (0..axes).map(|a| (a + u32::from(how)) % axes)).into()
        }
        7 => {
            let (var, axes) = temporary(1)?;
            SplitArrayAxis::new(var, u32::from(how) % axes, i64::from(how % 5)).into()
        }
        8 => {
            let (var, axes) = temporary(2)?;
            JoinArrayAxes::new(var, u32::from(how) % (axes - 1)).into()
        }
        9 | 10 => {
            let second = pick(kernel, which.wrapping_add(how).wrapping_add(1), |k, n| {
                *k == VarKind::Temporary && n > 0
            })?;
            AliasStorage::new([temporary(1)?.0, second.0], ["one", "two"][usize::from(how % 2)]).into()
        }
        _ if how % 2 == 0 => RemoveUnusedVars::default().into(),
        _ => EmbedTable::new(pick(kernel, which, |k, _| matches!(k, VarKind::Table(_)))?.0).into(),
    })
}

/// Watches shared buffers: whoever reads must have written after all other sharers.
struct Buffers<'k> {
    kernel: &'k Kernel,
    now: u64,
    written: BTreeMap<(VarId, usize), u64>,
    last: BTreeMap<VarId, u64>,
    clash: Option<String>,
}

impl Observer for Buffers<'_> {
    fn read(&mut self, var: VarId, element: usize) {
        let Some(storage) = &self.kernel.vars[var].storage else { return };
        let written = self.written.get(&(var, element)).copied().unwrap_or_default();
        for (other, at) in &self.last {
            let other = &self.kernel.vars[*other];
            let name = &self.kernel.vars[var].name;
            if other.name != *name && other.storage.as_ref() == Some(storage) && *at > written {
                self.clash =
                    Some(format!("`{name}` element {element} is read after a write of `{}`", other.name));
            }
        }
    }

    fn write(&mut self, var: VarId, element: usize) {
        self.now += 1;
        self.written.insert((var, element), self.now);
        self.last.insert(var, self.now);
    }
}

/// Applies one step; `None` if it was refused.
fn apply(kernel: &Kernel, memory: &Memory, step: &Step) -> Result<Option<Kernel>, String> {
    let result = match step.apply(kernel) {
        Ok(result) => result,
        Err(error) => {
            assert_style(&error.to_string());
            return match error.cause {
                Cause::Solver(_) => Err(error.to_string()),
                _ => Ok(None),
            };
        }
    };
    if purlin_ir::text::parse(&result.to_string()).as_ref() != Ok(&result) {
        return Err(format!("{step}: the result does not read back\n{result}"));
    }
    let broken = |what: &str| Err(format!("{step}: {what}\n{kernel}\n=>\n\n{result}"));
    let (mut expected, mut found) = (memory.clone(), memory.clone());
    let first = interpret(kernel, &mut expected).map_err(|e| e.to_string())?;
    let (written, last) = (BTreeMap::new(), BTreeMap::new());
    let mut buffers = Buffers { kernel: &result, now: 0, written, last, clash: None };
    match interpret_with(&result, &mut found, &mut buffers, None) {
        Err(error) => return broken(&error.to_string()),
        Ok(second) if counts(&first) != counts(&second) => return broken("other instances run"),
        Ok(_) => {}
    }
    if let Some(clash) = buffers.clash {
        return broken(&clash);
    }
    // the same operations in the same order: bit by bit
    if expected.values() == found.values() { Ok(Some(result)) } else { broken("other results") }
}

#[test]
fn accepted_steps_keep_results_and_buffers() {
    let drawn = "alias_storage contract_array expand_array join_array_axes pad_array split_array_axis \
                 transpose_array_axes";
    // most samples need all of their few temporaries at once
    let least = |name: &str| (10, if name == "alias_storage" { 0.01 } else { 0.1 });
    Tally::until_enough(drawn, &least, &mut round);
}

fn round(tally: &Tally) {
    let samples = SampleConfig { extent: 5, ..SampleConfig::default() };
    let mut runner = TestRunner::new(Config { cases: 400, failure_persistence: None, ..Config::default() });
    let inputs = (arbitrary_kernel(samples), proptest::collection::vec(any::<[u8; 3]>(), 6..24));
    let result = runner.run(&inputs, |(Sample { mut kernel, memory }, picks)| {
        for step in picks {
            let Some(step) = draw(&kernel, step) else { continue };
            let accepted = apply(&kernel, &memory, &step).map_err(TestCaseError::fail)?;
            tally.record(&step, accepted.is_some());
            kernel = accepted.unwrap_or(kernel);
        }
        Ok(())
    });
    result.unwrap_or_else(|e| panic!("{e}"));
}
