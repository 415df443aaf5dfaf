//! From a plan to a kernel: variables and their values.

use super::entries::{Lines, unusual};
use super::launches::in_launches;
use super::plan::Plan;
use super::{Sample, SampleConfig};
use kingpost_interp::{Memory, Value};
use kingpost_ir::Places;
use kingpost_ir::affine::Affine;
use kingpost_ir::build::KernelBuilder;
use kingpost_ir::constant::TableData;
use kingpost_ir::domain::Constraint;
use kingpost_ir::expr::{Access, Expr, MathFn};
use kingpost_ir::ids::{InameId, VarId};
use kingpost_ir::kernel::{AddressSpace, Assumption, Direction, Insn, Kernel, VarKind, Variable};
use kingpost_ir::types::{Flag, ScalarType};
use kingpost_ir::verify::KEYWORDS;

/// Values of a loop, or extent of an axis: they go together if they are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    N,
    M,
    Constant(i64),
}

/// Entries of the constant table.
pub(super) const TABLE_LEN: i64 = 4;

/// An array a sample uses.
pub(super) struct Array {
    pub var: VarId,
    pub ty: ScalarType,
    pub axes: Vec<Extent>,
    pub written: bool,
}

/// Columns of the map from cells to their nodes.
pub(super) const NODES: i64 = 3;

/// Arguments that a sample has only where it mentions them.
const ADDED: [&str; 17] = [
    "half",
    "brief",
    "f",
    "g",
    "odd",
    "odd_single",
    "big",
    "small",
    "nodes",
    "corners",
    "faint",
    "byte",
    "short",
    "word",
    "mask",
    "wave",
    "turns",
];

/// A kernel while it is drawn.
pub(super) struct Draw {
    pub config: SampleConfig,
    pub b: KernelBuilder,
    pub n: VarId,
    pub m: VarId,
    /// Arrays of reals, simplest first; the written ones are also targets.
    pub arrays: Vec<Array>,
    /// Arrays of integers that are no indices.
    pub integers: Vec<Array>,
    /// Written arrays of words, of truth values and of complex numbers.
    pub others: Vec<Array>,
    /// An input with nans and infinities.
    pub odd: VarId,
    /// The array of truth values.
    pub mask: VarId,
    /// A table of complex numbers.
    pub turns: VarId,
    pub alpha: VarId,
    pub map: VarId,
    /// The map of cells to their nodes, a row a cell, and another one, a column a cell.
    pub nodes: [VarId; 2],
    pub permutation: VarId,
    pub count: VarId,
    /// Loops around the current place, outer first.
    pub scope: Vec<(InameId, Extent)>,
    /// Loops that end at a scalar, and the scalar.
    pub bounds: Vec<(InameId, VarId)>,
    names: usize,
}

/// The sample of a plan.
pub(super) fn draw(plan: &Plan, config: SampleConfig) -> Sample {
    let mut draw = Draw::new(plan, config);
    if config.records {
        draw.halves();
    }
    let work = draw.arrays.iter().find(|a| a.axes == [Extent::N]).map(|a| a.var);
    draw.initialise(work);
    for nest in &plan.nests {
        draw.nest(nest);
    }
    for idiom in &plan.idioms {
        draw.idiom(idiom);
    }
    if plan.output {
        draw.output();
    }
    match draw.b.finish() {
        Ok(kernel) => {
            let kernel = with_strides(without_unused(kernel), &config, plan.seed);
            let kernel = in_launches(kernel, plan.launches);
            let memory = memory(plan.n, plan.m, plan.seed).of_kernel(&kernel);
            Sample { kernel, memory }
        }
        #[allow(clippy::panic)] // a bug of this module, found by its own tests
        Err(error) => panic!("a sample is not well formed: {error}"),
    }
}

impl Draw {
    fn new(plan: &Plan, config: SampleConfig) -> Self {
        let mut b = KernelBuilder::new("sample");
        let (n, m) = (b.param("n", ScalarType::I32), b.param("m", ScalarType::I32));
        let real = ScalarType::F64;
        let (en, em) = (Affine::var(n), Affine::var(m));
        let (flat, wide) = ([en.clone()], [en.clone(), em.clone()]);
        let x = b.argument("x", real, flat.clone(), Direction::InOut);
        let y = b.argument("y", real, wide.clone(), Direction::InOut);
        let u = b.argument("u", real, flat.clone(), Direction::In);
        let v = b.argument("v", real, [em.clone()], Direction::In);
        let a = b.argument("a", real, wide.clone(), Direction::In);
        let alpha = b.argument("alpha", real, [], Direction::In);
        let map = b.argument("map", ScalarType::I32, wide, Direction::In);
        let permutation = b.argument("permutation", ScalarType::I32, flat.clone(), Direction::In);
        let count = b.argument("count", ScalarType::I32, flat.clone(), Direction::In);
        let (single, whole) = (ScalarType::F32, [en.clone(), em.clone()]);
        let f = b.argument("f", single, flat.clone(), Direction::InOut);
        let g = b.argument("g", single, whole.clone(), Direction::In);
        let odd = b.argument("odd", real, flat.clone(), Direction::In);
        let odd_single = b.argument("odd_single", single, [em.clone()], Direction::In);
        let big = b.argument("big", ScalarType::I64, flat.clone(), Direction::InOut);
        let small = b.argument("small", ScalarType::I32, whole, Direction::In);
        let nodes = maps_of_nodes(&mut b, &en);
        let faint = b.argument("faint", real, flat.clone(), Direction::In);
        let (small_elements, words_and_flags) = elements_of_other_types(&mut b, &en, &em);
        let (mask, work) = (words_and_flags[1].var, b.temporary("work", real, flat));
        let table = b.table("weights", real, [TABLE_LEN as usize], weights(plan.seed));
        for size in [&en, &em] {
            b.assume(Assumption::Params(Constraint::le(&Affine::constant(1), size)));
        }
        b.assume(Assumption::Injective(permutation));
        let of = |var, ty, axes: &[Extent], written| Array { var, ty, axes: axes.to_vec(), written };
        let array = |var, axes: &[Extent], written| of(var, real, axes, written);
        let mut arrays = vec![
            array(x, &[Extent::N], true),
            array(u, &[Extent::N], false),
            array(y, &[Extent::N, Extent::M], true),
            array(a, &[Extent::N, Extent::M], false),
            array(v, &[Extent::M], false),
            array(work, &[Extent::N], true),
            array(table, &[Extent::Constant(TABLE_LEN)], false),
        ];
        let (mut integers, mut others) = (Vec::new(), Vec::new());
        if config.typed {
            arrays.extend([
                of(f, single, &[Extent::N], true),
                of(g, single, &[Extent::N, Extent::M], false),
                array(odd, &[Extent::N], false),
                of(odd_single, single, &[Extent::M], false),
                array(faint, &[Extent::N], false),
            ]);
            integers.extend([
                of(big, ScalarType::I64, &[Extent::N], true),
                of(small, ScalarType::I32, &[Extent::N, Extent::M], false),
            ]);
            integers.extend(small_elements);
            others.extend(words_and_flags);
        }
        Self {
            config,
            turns: b.table("turns", ScalarType::C128, [TABLE_LEN as usize], turns()),
            b,
            n,
            m,
            arrays,
            integers,
            others,
            odd,
            mask,
            alpha,
            map,
            nodes,
            permutation,
            count,
            scope: Vec::new(),
            bounds: Vec::new(),
            names: 0,
        }
    }

    /// An array of halves that is read, and one that is written and not read: what is rounded to few bits
    /// would tell roundings apart in all that is computed with it.
    fn halves(&mut self) {
        let [n, m] = [self.n, self.m].map(Affine::var);
        let (rows, all) = (vec![Extent::N], vec![Extent::N, Extent::M]);
        let half = self.b.argument("half", ScalarType::F16, [n.clone()], Direction::In);
        let brief = self.b.argument("brief", ScalarType::Bf16, [n, m], Direction::InOut);
        self.arrays.push(Array { var: half, ty: ScalarType::F16, axes: rows, written: false });
        self.others.push(Array { var: brief, ty: ScalarType::Bf16, axes: all, written: true });
    }

    /// `stem` with a number of its own.
    pub(super) fn name(&mut self, stem: &str) -> String {
        loop {
            self.names += 1;
            let name = format!("{stem}{}", self.names);
            if !KEYWORDS.contains(&name.as_str()) {
                return name; // and not `i32`
            }
        }
    }

    /// The extent as an affine expression.
    pub(super) fn size(&self, extent: Extent) -> Affine {
        match extent {
            Extent::N => Affine::var(self.n),
            Extent::M => Affine::var(self.m),
            Extent::Constant(c) => Affine::constant(c),
        }
    }

    /// Writes the whole temporary array, so that every later read is of a written element.
    fn initialise(&mut self, source: Option<VarId>) {
        let (work, n) = (self.arrays[5].var, Affine::var(self.n));
        let name = self.name("i");
        let i = self.b.open_loop(name, Affine::constant(0), n);
        let value = source.map_or(Expr::from(0.5), |x| Expr::load(x, [i.into()]) * 0.5);
        self.b.assign("start", Access::new(work, [i.into()]), value);
        self.b.close_loop();
    }

    /// Writes the `out` argument.
    fn output(&mut self) {
        let n = Affine::var(self.n);
        let out = self.b.argument("result", ScalarType::F64, [n.clone()], Direction::Out);
        let (x, work) = (self.arrays[0].var, self.arrays[5].var);
        let name = self.name("i");
        let i = self.b.open_loop(name, Affine::constant(0), n);
        let value = Expr::load(x, [i.into()]) + Expr::call(MathFn::Cos, [Expr::load(work, [i.into()])]);
        self.b.assign("finish", Access::new(out, [i.into()]), value);
        self.b.close_loop();
    }
}

/// Maps from cells to their nodes: a row a cell, and a column a cell.
fn maps_of_nodes(b: &mut KernelBuilder, n: &Affine) -> [VarId; 2] {
    let (n, nodes) = (n.clone(), Affine::constant(NODES));
    [("nodes", [n.clone(), nodes.clone()]), ("corners", [nodes, n])]
        .map(|(name, shape)| b.argument(name, ScalarType::I32, shape, Direction::In))
}

/// Arrays of small integers, and of words, truth values and complex numbers.
fn elements_of_other_types(b: &mut KernelBuilder, n: &Affine, m: &Affine) -> ([Array; 2], [Array; 3]) {
    let mut array = |name: &str, ty, axes: &[Extent], direction| {
        let size = |extent: &Extent| if *extent == Extent::N { n.clone() } else { m.clone() };
        let var = b.argument(name, ty, axes.iter().map(size).collect::<Vec<_>>(), direction);
        Array { var, ty, axes: axes.to_vec(), written: direction == Direction::InOut }
    };
    let byte = array("byte", ScalarType::I8, &[Extent::N, Extent::M], Direction::In);
    let mut rows = |name, ty| array(name, ty, &[Extent::N], Direction::InOut);
    let short = rows("short", ScalarType::U16);
    let others = [("word", ScalarType::U32), ("mask", ScalarType::Bool), ("wave", ScalarType::C128)];
    ([byte, short], others.map(|(name, ty)| rows(name, ty)))
}

/// The entries of the table, symmetric in every third sample and half of them zero in every fourth; in
/// every fifth a product of two pairs, of which one may be small. Others have unusual entries.
fn weights(seed: u64) -> TableData {
    let mut random = Random(seed);
    let mut values: Vec<f64> = (0..TABLE_LEN).map(|_| random.real()).collect();
    if seed.is_multiple_of(3) {
        // a symmetric table, for what relies on one
        let half = values.len() / 2;
        (0..half).for_each(|k| values[TABLE_LEN as usize - 1 - k] = values[k]);
    }
    // every fourth table has zeros, for what leaves out their terms
    values.iter_mut().step_by(2).filter(|_| seed % 4 == 1).for_each(|v| *v = 0.0);
    if seed.is_multiple_of(5) {
        let [a, b, c, d] = [values[0], values[1], values[2] + 2.0, values[3] - 2.0];
        values = vec![a * c, a * d, b * c, b * d];
    }
    // of whatever else the seed is, so that each meets the others
    unusual(&mut values, 2, Lines::Rows, (seed >> 32) as u8);
    TableData::real(values)
}

/// The fourth roots of one and a half, of which one has a zero of either sign.
fn turns() -> TableData {
    TableData::complex([[1.5, 0.0], [0.0, 1.5], [-1.5, -0.0], [0.0, -1.5]])
}

/// The kernel without those arguments of [`ADDED`] that it does not mention.
fn without_unused(mut kernel: Kernel) -> Kernel {
    for name in ADDED {
        let used = |var: VarId, kernel: &Kernel| {
            let of = |insn: &Insn| insn.accesses(var);
            kernel.insns.values().any(of)
        };
        if let Some(var) = kernel.var(name).filter(|var| !used(*var, &kernel)) {
            kernel = kernel.with_var_fixed(var, 0);
        }
    }
    kernel
}

/// The kernel where rows of `y` and columns of `a` lie as far apart as a parameter says, in three of four
/// samples that may have strides; that `y` keeps its elements apart is proved in some and left to the launch
/// in others.
fn with_strides(mut kernel: Kernel, config: &SampleConfig, seed: u64) -> Kernel {
    let pick = seed >> 41 & 3;
    if !config.strides || pick == 0 {
        return kernel;
    }
    let row = Variable::new("row", ScalarType::I64, VarKind::Param, [], AddressSpace::Private);
    let row = Affine::var(kernel.vars.push(row));
    for (name, strides) in
        [("y", [row.clone(), Affine::constant(1)]), ("a", [Affine::constant(1), row.clone()])]
    {
        if let Some(var) = kernel.var(name) {
            kernel.vars[var].layout.places = Places::Strides(strides.into());
        }
    }
    if let Some(m) = kernel.var("m").filter(|_| pick == 1) {
        kernel.assumptions.push(Assumption::Params(Constraint::le(&Affine::var(m), &row)));
    }
    kernel.canonical()
}

/// Values that fit any sample of these sizes: reals between -1 and 1, integers between -1000 and
/// 1000, `map`, `nodes` and `corners` within `x`, `count` at most `m`; a third of `odd` and `odd_single` are nans and
/// infinities, and most of `faint` are zeros of either sign or near `1e-20` and `1e-200`.
///
/// What one argument gets does not depend on those that were added after it, so that samples of
/// earlier versions still run on the same values.
///
/// # Shapes and units
/// `x`, `u`, `f`, `odd`, `faint`, `big`, `permutation`, `count`, `short`, `word`, `mask`, `wave`, `half`:
/// `[n]`; `v`, `odd_single`: `[m]`; `y`, `a`, `g`, `small`, `byte`, `brief`, `map`: `[n, m]`; `nodes`: `[n, 3]`;
/// `corners`: `[3, n]`;
/// `alpha`: a scalar; `row`: a parameter, at least `n` and `m`.
pub fn memory(n: i64, m: i64, seed: u64) -> Memory {
    let mut random = Random(seed ^ 0x9e37_79b9_7f4a_7c15);
    let mut memory = Memory::new().param("n", n).param("m", m);
    memory.set_param("row", n.max(m) + (seed >> 43 & 1) as i64);
    for (name, size) in [("x", n), ("u", n), ("v", m), ("y", n * m), ("a", n * m), ("alpha", 1)] {
        memory.set(name, (0..size).map(|_| random.real()).collect::<Vec<_>>());
    }
    memory.set("map", (0..n * m).map(|_| random.below(n) as i32).collect::<Vec<_>>());
    memory.set("count", (0..n).map(|_| random.below(m + 1) as i32).collect::<Vec<_>>());
    let mut order: Vec<i32> = (0..n as i32).collect();
    for k in (1..order.len()).rev() {
        order.swap(k, random.below(k as i64 + 1) as usize);
    }
    memory.set("permutation", order);
    memory.set("f", (0..n).map(|_| random.real() as f32).collect::<Vec<_>>());
    memory.set("g", (0..n * m).map(|_| random.real() as f32).collect::<Vec<_>>());
    memory.set("odd", (0..n).map(|_| random.odd()).collect::<Vec<_>>());
    memory.set("odd_single", (0..m).map(|_| random.odd() as f32).collect::<Vec<_>>());
    memory.set("big", (0..n).map(|_| random.below(2001) - 1000).collect::<Vec<_>>());
    memory.set("small", (0..n * m).map(|_| random.below(2001) as i32 - 1000).collect::<Vec<_>>());
    memory.set("nodes", (0..n * NODES).map(|_| random.below(n) as i32).collect::<Vec<_>>());
    memory.set("faint", (0..n).map(|_| random.faint()).collect::<Vec<_>>());
    memory.set("byte", (0..n * m).map(|_| (random.below(256) - 128) as i8).collect::<Vec<_>>());
    memory.set("short", (0..n).map(|_| random.below(1000) as u16).collect::<Vec<_>>());
    memory.set("word", (0..n).map(|_| random.bits() as u32).collect::<Vec<_>>());
    memory.set("mask", (0..n).map(|_| Flag::from(random.below(2) == 1)).collect::<Vec<_>>());
    let parts: Vec<f64> = (0..2 * n).map(|_| random.real()).collect();
    memory.set("wave", Value::of_reals(ScalarType::C128, &parts));
    for (name, ty, size) in [("half", ScalarType::F16, n), ("brief", ScalarType::Bf16, n * m)] {
        memory.set(name, Value::of_reals(ty, &(0..size).map(|_| random.real()).collect::<Vec<_>>()));
    }
    memory.set("corners", (0..n * NODES).map(|_| random.below(n) as i32).collect::<Vec<_>>());
    memory
}

/// Steele, Lea and Flood's SplitMix64: enough for test data, and the same everywhere.
struct Random(u64);

impl Random {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Between -1 and 1, a multiple of 1/256, so that it is short in a failure report.
    fn real(&mut self) -> f64 {
        self.below(513) as f64 / 256.0 - 1.0
    }

    /// The same, and every third time a nan or an infinity.
    fn odd(&mut self) -> f64 {
        match self.below(9) {
            0 => f64::NAN,
            1 => f64::INFINITY,
            2 => f64::NEG_INFINITY,
            _ => self.real(),
        }
    }

    /// The same, and mostly a zero or small.
    fn faint(&mut self) -> f64 {
        let value = self.real();
        match self.below(6) {
            0 => 0.0,
            1 => -0.0,
            2 => value * 2.0_f64.powi(-66),
            3 => value * 2.0_f64.powi(-664),
            _ => value,
        }
    }

    fn below(&mut self, limit: i64) -> i64 {
        (self.bits() % limit.max(1) as u64) as i64
    }
}
