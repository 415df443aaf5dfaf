//! A random program, the steps of a random recipe that were accepted, and what becomes of it; every
//! step is run before and after.

use crate::draw;
use crate::tally::Tally;
use kingpost::analysis::Analysis;
use kingpost::codegen::{Options, Target, generate};
use kingpost::interp::{InterpError, Memory, Observer, Run, Value, interpret, interpret_with};
use kingpost::ir::{
    AddressSpace, AxisTag, Expr, Kernel, Layout, ScalarType, SubGroup, VarId, VarKind, Variable, WriteOp,
};
use kingpost::transforms::block_numbers::BlockNumbers;
use kingpost::transforms::lists::{Definition, ListNames, RowOrder};
use kingpost::transforms::primitives::{FixParameter, SetAddressSpace, Tag};
use kingpost::transforms::runs::RunStarts;
use kingpost::transforms::steps;
use kingpost::transforms::{Instances, Order, Recipe, Refusal, Step, schedule};
use kingpost_sample::plan::Plan;
use kingpost_sample::{Sample, SampleConfig, memory, names, sample, under_names};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What is drawn: the plan of a program, which of its updates are written as stores, whether its
/// parameters are fixed first, and the bytes that choose each step.
#[derive(Clone, Debug)]
pub struct Draft {
    pub plan: Plan,
    pub simple: bool,
    pub stores: u8,
    pub fixed: bool,
    pub picks: Vec<[u8; 11]>,
    /// A primitive that is tried before every other step.
    pub aim: Option<&'static str>,
}

/// A program before and after a recipe, as text, and the values it runs on ([`memory`]).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Pair {
    pub n: i64,
    pub m: i64,
    pub seed: u64,
    /// Other names of arguments, by those of [`memory`].
    #[serde(default)]
    pub names: BTreeMap<String, String>,
    pub before: String,
    #[serde(deserialize_with = "recipe")]
    pub recipe: Recipe,
    pub after: String,
    /// Whether code is to round as the interpreter does, and results are compared to the last bit.
    #[serde(default)]
    pub exact: bool,
}

fn recipe<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Recipe, D::Error> {
    let json = serde_json::Value::deserialize(deserializer)?;
    steps().recipe(&json.to_string()).map_err(serde::de::Error::custom)
}

impl Pair {
    pub fn memory(&self) -> Memory {
        let all = under_names(&memory(self.n, self.m, self.seed), &self.names);
        match kingpost::ir::text::parse(&self.before) {
            Ok(before) => {
                let mut memory = with_tables(all.of_kernel(&before), &before);
                for definition in self.recipe.definitions(&before).unwrap_or_default() {
                    let definition = match definition {
                        Definition::Kernel(kernel) => *kernel,
                        Definition::Lists(lists) => {
                            give_lists(&lists, &mut memory);
                            continue;
                        }
                        Definition::Rows(rows) => {
                            give_rows(&rows, &mut memory);
                            continue;
                        }
                        Definition::Runs(runs) => {
                            give_starts(&runs, &mut memory);
                            continue;
                        }
                        Definition::Blocks(blocks) => {
                            give_blocks(&blocks, &mut memory);
                            continue;
                        }
                    };
                    let mut all = memory.of_kernel(&definition);
                    // a definition that does not run leaves its results without values
                    let _ = interpret(&definition, &mut all);
                    for var in definition.vars.values().filter(|v| v.is_output()) {
                        if let Some(value) = all.get(&var.name) {
                            memory.set(var.name.clone(), value.clone());
                        }
                    }
                }
                memory
            }
            Err(_) => all,
        }
    }
}

/// Starts of the runs of a map; false where it has no values, or other entries than these runs.
fn give_starts(runs: &RunStarts, memory: &mut Memory) -> bool {
    let Some(map) = memory.get(&runs.map) else { return false };
    let above = runs.above().map(|above| memory.get(above).and_then(Value::to_i64));
    let (Some(entries), Some(above)) = (map.to_i64(), above.unwrap_or_else(|| Some(Vec::new()))) else {
        return false;
    };
    let Ok(starts) = runs.compute(&entries, &above) else { return false };
    let Some(starts) = Value::of_integers(map.ty(), &starts) else { return false };
    memory.set(runs.result(), starts);
    true
}

/// Inputs with rows in another order; false where something has no values.
fn give_rows(rows: &RowOrder, memory: &mut Memory) -> bool {
    let map = memory.get(&rows.map).and_then(Value::to_i64);
    let (Some(map), Some(points)) = (map, memory.get(&rows.points).map(Value::to_f64)) else { return false };
    let Ok(order) = rows.compute(&map, &points) else { return false };
    for (name, copy) in &rows.copies {
        let Some(value) = memory.get(name) else { return false };
        let value = value.in_order(&order);
        memory.set(copy.clone(), value);
    }
    true
}

/// Numbers of the blocks of a map; false where it has no values, or its rows no such blocks.
fn give_blocks(blocks: &BlockNumbers, memory: &mut Memory) -> bool {
    let Some(map) = memory.get(&blocks.map) else { return false };
    let Some(Ok(numbers)) = map.to_i64().map(|entries| blocks.compute(&entries)) else { return false };
    let Some(numbers) = Value::of_integers(map.ty(), &numbers) else { return false };
    memory.set(blocks.numbers.clone(), numbers);
    true
}

/// Sets the lists of a map; false where a list has no room for the elements of its block.
fn give_lists(lists: &ListNames, memory: &mut Memory) -> bool {
    let Some(map) = memory.get(&lists.map).and_then(Value::to_i64) else { return false };
    let ty = memory.get(&lists.map).map_or(ScalarType::I64, Value::ty);
    let Ok(values) = lists.compute(&map) else { return false };
    for (name, ty, values) in values.named(lists, ty) {
        memory.set(name, Value::of_integers(ty, &values).unwrap());
    }
    true
}

/// The text of a recipe, read and applied, is the recipe.
pub fn check_text(pair: &Pair) {
    let text = schedule::print(&pair.recipe);
    let script = steps().script(&text).unwrap_or_else(|e| panic!("{}", e.render(&text)));
    let before = kingpost::ir::text::parse(&pair.before).unwrap();
    let applied = script.apply(&before).unwrap_or_else(|e| panic!("{e}\n{text}{before}"));
    assert_eq!(applied.recipe(), &pair.recipe, "{text}");
    assert_eq!(applied.kernel().to_string(), pair.after, "{text}");
}

/// With the values of tables, which a step may make arguments.
fn with_tables(mut memory: Memory, kernel: &Kernel) -> Memory {
    for var in kernel.vars.values() {
        if let Some(value) = of_table(var) {
            memory.set(var.name.clone(), value);
        }
    }
    memory
}

/// The values of a table; none of another variable.
pub fn of_table(var: &Variable) -> Option<Value> {
    let VarKind::Table(data) = &var.kind else { return None };
    Some(Value::of_table(var.ty, data))
}

/// A step that was accepted and does not keep its promises.
#[derive(Debug)]
pub struct Broken {
    pub pair: Pair,
    pub why: String,
}

/// What the steps so far have made.
struct Drawn {
    kernel: Kernel,
    recipe: Recipe,
    memory: Memory,
}

impl Draft {
    /// The program that the recipe starts from.
    pub fn kernel(&self) -> Kernel {
        let Sample { mut kernel, .. } = sample(&self.plan, self.config());
        if self.plan.seed >> 45 & 7 == 7 {
            kernel.sub_group = SubGroup::new(64).unwrap();
        }
        with_stores(kernel, self.stores)
    }

    /// Values of what the program takes.
    fn memory(&self, kernel: &Kernel) -> Memory {
        let all = memory(self.plan.n, self.plan.m, self.plan.seed);
        with_tables(under_names(&all, &self.names()).of_kernel(kernel), kernel)
    }

    /// Other names of arguments, by those of [`memory`].
    fn names(&self) -> BTreeMap<String, String> {
        let arguments = memory(self.plan.n, self.plan.m, self.plan.seed);
        let is_one = |name: &String| arguments.get(name).is_some() || arguments.get_param(name).is_some();
        names(&self.plan, self.config()).into_iter().filter(|(name, _)| is_one(name)).collect()
    }

    fn config(&self) -> SampleConfig {
        if self.simple {
            SampleConfig { nests: 2, launches: true, ..SampleConfig::simple() }
        } else {
            SampleConfig {
                launches: true,
                records: true,
                strides: true,
                arithmetic: crate::has_arithmetic(),
                ..SampleConfig::default()
            }
        }
    }

    /// Tries the steps one after the other; those that are accepted are the recipe.
    pub fn pair(&self, tally: &mut Tally) -> Result<Pair, Box<Broken>> {
        let before = self.kernel();
        let memory = self.memory(&before);
        let mut drawn = Drawn { kernel: before.clone(), recipe: Recipe::default(), memory };
        let fixes = if self.fixed { fixes(&before, &drawn.memory) } else { Vec::new() };
        for step in fixes {
            self.take(step, &before, &mut drawn, tally)?;
        }
        for bytes in &self.picks {
            if let Some(step) = draw::step(&drawn.kernel, &drawn.memory, bytes, self.aim) {
                self.take(step, &before, &mut drawn, tally)?;
            }
        }
        // few drawn steps put loops on work-items, which three quarters of the recipes end with
        if self.plan.seed >> 43 & 3 != 0 {
            // few loops suit registers of a sub-group, and then there is no code for a card
            let in_sub_groups = self.plan.seed >> 48 & 3 == 0;
            for step in placements(&drawn.kernel, in_sub_groups) {
                self.take(step, &before, &mut drawn, tally)?;
            }
        }
        let Drawn { mut kernel, mut recipe, memory } = drawn;
        // sizes of work-groups are constants
        if generate(&kernel, Target::C, &Options::default()).is_err() {
            for step in self::fixes(&kernel, &memory) {
                if let Ok(result) = step.apply(&kernel) {
                    (kernel, recipe) = (result, recipe.then(step));
                }
            }
        }
        Ok(self.done(&before, recipe, &kernel))
    }

    /// Takes a step if it is accepted.
    fn take(
        &self,
        step: Step,
        before: &Kernel,
        drawn: &mut Drawn,
        tally: &mut Tally,
    ) -> Result<(), Box<Broken>> {
        let result = check(&drawn.kernel, &drawn.memory, &step);
        tally.record(&step, matches!(result, Ok(Some(_))));
        match result {
            Ok(Some(result)) => {
                // its definition has run in the check
                let _ = give_values(&drawn.kernel, &step, &mut drawn.memory);
                drawn.recipe = std::mem::take(&mut drawn.recipe).then(step);
                drawn.kernel = result;
                Ok(())
            }
            Ok(None) => Ok(()),
            Err(why) => {
                let recipe = std::mem::take(&mut drawn.recipe).then(step);
                Err(Box::new(Broken { pair: self.done(before, recipe, &drawn.kernel), why }))
            }
        }
    }

    fn done(&self, before: &Kernel, recipe: Recipe, after: &Kernel) -> Pair {
        let Plan { n, m, seed, .. } = self.plan;
        let (before, after) = (before.to_string(), after.to_string());
        Pair { n, m, seed, names: self.names(), before, recipe, after, exact: false }
    }
}

/// Steps that fix the parameters that are left.
fn fixes(kernel: &Kernel, memory: &Memory) -> Vec<Step> {
    let params = kernel.vars.values().filter(|v| v.kind == VarKind::Param);
    let fix =
        |v: &kingpost::ir::Variable| Some(FixParameter::new(&v.name, memory.get_param(&v.name)?).into());
    params.filter_map(fix).collect()
}

/// Steps that put everything on work-items and groups that can be there: temporaries where a group sees them, loops,
/// and temporaries where a sub-group does, if that is asked for.
fn placements(kernel: &Kernel, in_sub_groups: bool) -> Vec<Step> {
    let temporaries = || kernel.vars.values().filter(|v| v.kind == VarKind::Temporary);
    let moved = |space| temporaries().map(move |v| SetAddressSpace::new(&v.name, space).into());
    let tagged = |tag| kernel.inames.values().map(move |iname| Tag::new(&iname.name, tag).into());
    let mut steps: Vec<Step> = moved(AddressSpace::Local).collect();
    steps.extend(tagged(AxisTag::Local(0)).chain(tagged(AxisTag::Group(0))));
    steps.extend(moved(AddressSpace::SubGroup).filter(|_| in_sub_groups));
    steps
}

/// Writes some updates out as stores, so that they can be converted back.
fn with_stores(kernel: Kernel, which: u8) -> Kernel {
    let mut stored = kernel.clone();
    for (k, insn) in stored.insns.values_mut().enumerate() {
        if let WriteOp::Update { op, .. } = insn.op
            && which >> (k % 8) & 1 == 1
        {
            insn.rhs = op.joined(Expr::Load(insn.lhs.clone()), insn.rhs.clone());
            insn.op = WriteOp::Assign;
        }
    }
    // an index with a reduction would stand in two places: such a program stays as it is
    let stored = stored.canonical();
    if stored.verify().is_ok() { stored } else { kernel }
}

/// Applies one step and compares: text, results, instances, shared buffers. `None` if it was
/// refused.
pub fn check(kernel: &Kernel, memory: &Memory, step: &Step) -> Result<Option<Kernel>, String> {
    let analysis = Analysis::of(kernel);
    // a placement that is refused leaves nothing to be kept
    let _ = analysis.check_placement();
    let result = match step.apply_to(&analysis) {
        Ok((after, _)) => {
            if after.analysis().place() != Analysis::of(after.kernel()).place() {
                return Err(format!("{step}: what is kept of the placement is not what is found again"));
            }
            after.into_kernel()
        }
        Err(error) => {
            let message = error.to_string();
            let style = !message.ends_with(['.', '\n']) && message.starts_with(|c: char| c.is_lowercase());
            return match error.cause {
                Refusal::Solver(_) => Err(message),
                _ if !style => Err(format!("a message in another style: {message}")),
                _ => Ok(None),
            };
        }
    };
    if kingpost::ir::text::parse(&result.to_string()).as_ref() != Ok(&result) {
        return Err(format!("{step}: the result does not read back\n{result}"));
    }
    let (mut expected, mut found) = (memory.clone(), memory.clone());
    if !give_values(kernel, step, &mut found)? {
        return Ok(None);
    }
    let mut first = interpret(kernel, &mut expected).map_err(|e| format!("before {step}: {e}"))?;
    // the program names no instruction of a field
    first.instances.retain(|name, _| kernel.insn(name).is_some());
    let scalars = result.scalar_form();
    let mut buffers = Buffers::of(&scalars);
    let second = match interpret_with(&scalars, &mut found, &mut buffers, None) {
        // a false assumption is refused at launch, not here
        Err(
            InterpError::Assumption { .. }
            | InterpError::NotInjective { .. }
            | InterpError::NotSymmetric { .. },
        ) => return Ok(None),
        Err(error) => return Err(format!("{step}: {error}")),
        Ok(second) => second,
    };
    if let Some(changed) = changed_instances(step.instances(), &first, &second) {
        return Err(format!("{step}: other instances run: {changed}"));
    }
    if let Some(clash) = buffers.clash {
        return Err(format!("{step}: {clash}"));
    }
    let keeps = step.keeps();
    let tolerance = match keeps.order {
        Order::Bits | Order::Numbers => 0.0,
        Order::Reassociated | Order::Identities | Order::Within(_) => tolerance(kernel),
    };
    // a term of zero times a nan or an infinity is left out with the others, or added, and a sum of terms
    // some of which are zero may be none; sums and differences of infinities are none
    if keeps.finite_only && !is_finite(&expected) {
        return Ok(None);
    }
    let zeros = if keeps.order == Order::Bits { Zeros::Signed } else { Zeros::Alike };
    differ(&expected, &found, tolerance, zeros).map_or(Ok(Some(result)), |why| Err(format!("{step}: {why}")))
}

/// Puts what a step passes into the memory; false where that would be refused at launch.
fn give_values(kernel: &Kernel, step: &Step, memory: &mut Memory) -> Result<bool, String> {
    let definition = match step.definition(kernel).map_err(|e| e.to_string())? {
        None => return Ok(true),
        Some(Definition::Lists(lists)) => return Ok(give_lists(&lists, memory)),
        Some(Definition::Rows(rows)) => return Ok(give_rows(&rows, memory)),
        Some(Definition::Runs(runs)) => return Ok(give_starts(&runs, memory)),
        Some(Definition::Blocks(blocks)) => return Ok(give_blocks(&blocks, memory)),
        Some(Definition::Kernel(kernel)) => kernel,
    };
    let mut all = memory.of_kernel(&definition);
    interpret(&definition, &mut all).map_err(|e| format!("{step}, its definition: {e}\n{definition}"))?;
    for var in definition.vars.values().filter(|v| v.is_output()) {
        if let Some(value) = all.get(&var.name) {
            memory.set(var.name.clone(), value.clone());
        }
    }
    Ok(true)
}

/// Whether no real is a nan or an infinity.
fn is_finite(memory: &Memory) -> bool {
    let mut reals = memory.values().values().filter(|v| v.ty().part().is_real()).flat_map(Value::to_f64);
    reals.all(f64::is_finite)
}

/// How far reals may be apart that are reassociated or compiled, where multiplications and
/// additions are contracted and functions rounded in another way: sums of at most 5^3 terms in any
/// order; nests of functions with slopes of at most 1, applied to numbers of the size of the
/// largest. Where a program has `f32`, whose unit is 2^29 times larger, what is `f64` is often made
/// of it, so that one figure holds for both.
pub fn tolerance(kernel: &Kernel) -> f64 {
    let is_single = |ty| matches!(ty, ScalarType::F32 | ScalarType::F16 | ScalarType::Bf16 | ScalarType::C64);
    let mut single = kernel.vars.values().any(|v| is_single(v.ty));
    for insn in kernel.insns.values() {
        let all = insn.lhs.index.iter().chain([&insn.rhs]).chain(&insn.predicate);
        all.for_each(|e| e.for_each(&mut |e| single |= matches!(e, Expr::Cast(ScalarType::F32, _))));
    }
    if single { 1e-4 } else { 1e-9 }
}

/// What the sign of a zero says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zeros {
    /// Nothing.
    Alike,
    /// Zeros of different signs differ.
    Signed,
}

/// The first place where two memories differ: integers at all, reals by more than `tolerance` times
/// the largest one that is finite, zeros by their sign if that counts. A nan is like any other, and like
/// nothing else.
pub fn differ(expected: &Memory, found: &Memory, tolerance: f64, zeros: Zeros) -> Option<String> {
    let reals = expected.values().values().filter(|v| v.ty().part().is_real());
    let sizes = reals.flat_map(Value::to_f64).filter(|x| x.is_finite());
    let scale = sizes.fold(1.0_f64, |s, x| s.max(x.abs()));
    for (name, expected) in expected.values() {
        let Some(found) = found.get(name) else { return Some(format!("`{name}` is missing")) };
        let exact = match expected.ty() {
            ty if !ty.part().is_real() => 0.0,
            // what rounds apart is rounded to neighbours
            ScalarType::F16 if tolerance > 0.0 => tolerance + 2.0_f64.powi(-10),
            ScalarType::Bf16 if tolerance > 0.0 => tolerance + 2.0_f64.powi(-7),
            _ => tolerance,
        };
        if let (Value::I64(e), Value::I64(f)) = (expected, found)
            && e != f
        {
            return Some(format!("`{name}` is {f:?}, was {e:?}")); // beyond 2^53, reals would not tell
        }
        for (k, (e, f)) in expected.to_f64().iter().zip(found.to_f64()).enumerate() {
            let same = (e.is_nan() && f.is_nan()) || e == &f || (e - f).abs() <= exact * scale;
            let signed = zeros == Zeros::Signed && *e == 0.0 && f == 0.0;
            if !same || signed && e.is_sign_negative() != f.is_sign_negative() {
                return Some(format!("`{name}[{k}]` is {f}, was {e}"));
            }
        }
    }
    None
}

#[test]
fn nans_are_alike_and_differ_from_numbers() {
    let memory = |x: f64| Memory::new().value("x", vec![1.0, x]);
    let all = [f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.5];
    for (k, a) in all.into_iter().enumerate() {
        for (l, b) in all.into_iter().enumerate() {
            let same = k == l || a.is_nan() && b.is_nan();
            assert_eq!(differ(&memory(a), &memory(b), 1e-4, Zeros::Alike).is_none(), same, "{a} {b}");
        }
    }
    let large = |k: i64| Memory::new().value("x", vec![1e30]).value("k", vec![(1_i64 << 60) + k]);
    let apart = |a: &Memory, b: &Memory| differ(a, b, 1e-4, Zeros::Alike).is_some();
    assert!(apart(&large(0), &large(1)));
    assert!(!apart(&memory(0.5), &memory(0.500_05)) && apart(&memory(0.5), &memory(0.500_15)));
    let signs = |zeros| differ(&memory(0.0), &memory(-0.0), 0.0, zeros).is_some();
    assert!(signs(Zeros::Signed) && !signs(Zeros::Alike));
    assert_eq!(differ(&memory(-0.0), &memory(-0.0), 0.0, Zeros::Signed), None);
}

/// Instructions of both programs of which not as many instances run.
fn changed_instances(promised: Instances, before: &Run, after: &Run) -> Option<String> {
    let changes = |n: u64, m: u64| match promised {
        Instances::Same => n != m,
        Instances::Fewer => m > n,
        // an instruction and its copy share the instances
        Instances::Copied | Instances::Free => false,
    };
    before.instances.iter().find_map(|(name, n)| {
        let m = after.instances.get(name)?;
        changes(*n, *m).then(|| format!("`{name}` {m} times instead of {n}"))
    })
}

/// Watches shared buffers: no other sharer may have written to the place of what is read since that was
/// written. Sharers whose places the elements do not tell are left to the devices.
struct Buffers<'k> {
    kernel: &'k Kernel,
    now: u64,
    written: BTreeMap<(VarId, usize), u64>,
    clash: Option<String>,
}

impl<'k> Buffers<'k> {
    fn of(kernel: &'k Kernel) -> Self {
        Self { kernel, now: 0, written: BTreeMap::new(), clash: None }
    }

    /// Whether equal elements of two arrays are one place of their buffer, and others are not.
    fn is_one_place(&self, a: &Variable, b: &Variable) -> bool {
        let sequential = self.kernel.inames.values().all(|i| i.tag == AxisTag::Sequential);
        a.layout == b.layout && (a.shape == b.shape || sequential && a.layout == Layout::default())
    }
}

impl Observer for Buffers<'_> {
    fn read(&mut self, var: VarId, element: usize) {
        let array = &self.kernel.vars[var];
        let Some(storage) = &array.storage else { return };
        let written = self.written.get(&(var, element)).copied().unwrap_or_default();
        for (id, other) in self.kernel.vars.iter() {
            let shares =
                id != var && other.storage.as_ref() == Some(storage) && self.is_one_place(array, other);
            if shares && self.written.get(&(id, element)).is_some_and(|at| *at > written) {
                let (name, other) = (&array.name, &other.name);
                self.clash = Some(format!("`{name}` element {element} is read after a write of `{other}`"));
            }
        }
    }

    fn write(&mut self, var: VarId, element: usize) {
        self.now += 1;
        self.written.insert((var, element), self.now);
    }
}

#[test]
fn a_shared_place_that_is_taken_is_noticed() {
    let clash = |index: i64| {
        let text = format!(
            "kernel k\n\narg y: f64[1] out\ntemp t: f64[2] private storage(b)\n\
             temp u: f64[3] private storage(b)\n\nset: t[1] = 1.0\ntake: u[{index}] = 2.0\n\
             read: y[0] = t[1] + u[{index}]\n"
        );
        let kernel = kingpost::ir::text::parse(&text).unwrap();
        let mut buffers = Buffers::of(&kernel);
        interpret_with(&kernel, &mut Memory::new().value("y", vec![0.0]), &mut buffers, None).unwrap();
        buffers.clash
    };
    assert_eq!(clash(1).as_deref(), Some("`t` element 1 is read after a write of `u`"));
    assert_eq!(clash(0), None);
}
