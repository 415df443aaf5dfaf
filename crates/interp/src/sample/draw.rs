//! From a plan to a kernel: variables and their values.

use super::plan::Plan;
use super::{Sample, SampleConfig};
use crate::Memory;
use purlin_ir::affine::Affine;
use purlin_ir::build::KernelBuilder;
use purlin_ir::constant::TableData;
use purlin_ir::domain::Constraint;
use purlin_ir::expr::{Access, Expr, MathFn};
use purlin_ir::ids::{InameId, VarId};
use purlin_ir::kernel::{Assumption, Direction};
use purlin_ir::types::ScalarType;
use purlin_ir::verify::KEYWORDS;

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
    pub axes: Vec<Extent>,
    pub written: bool,
}

/// A kernel while it is drawn.
pub(super) struct Draw {
    pub config: SampleConfig,
    pub b: KernelBuilder,
    pub n: VarId,
    pub m: VarId,
    /// Arrays of reals, simplest first; the written ones are also targets.
    pub arrays: Vec<Array>,
    pub alpha: VarId,
    pub map: VarId,
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
    let memory = memory(plan.n, plan.m, plan.seed);
    match draw.b.finish() {
        Ok(kernel) => Sample { kernel, memory },
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
        let flat = [en.clone()];
        let wide = [en.clone(), em.clone()];
        let x = b.argument("x", real, flat.clone(), Direction::InOut);
        let y = b.argument("y", real, wide.clone(), Direction::InOut);
        let u = b.argument("u", real, flat.clone(), Direction::In);
        let v = b.argument("v", real, [em.clone()], Direction::In);
        let a = b.argument("a", real, wide.clone(), Direction::In);
        let alpha = b.argument("alpha", real, [], Direction::In);
        let map = b.argument("map", ScalarType::I32, wide, Direction::In);
        let permutation = b.argument("permutation", ScalarType::I32, flat.clone(), Direction::In);
        let count = b.argument("count", ScalarType::I32, flat.clone(), Direction::In);
        let work = b.temporary("work", real, flat);
        let mut random = Random(plan.seed);
        let values: Vec<f64> = (0..TABLE_LEN).map(|_| random.real()).collect();
        let table = b.table("weights", real, [TABLE_LEN as usize], TableData::real(values));
        for size in [&en, &em] {
            b.assume(Assumption::Params(Constraint::le(&Affine::constant(1), size)));
        }
        b.assume(Assumption::Injective(permutation));
        let array = |var, axes: &[Extent], written| Array { var, axes: axes.to_vec(), written };
        let arrays = vec![
            array(x, &[Extent::N], true),
            array(u, &[Extent::N], false),
            array(y, &[Extent::N, Extent::M], true),
            array(a, &[Extent::N, Extent::M], false),
            array(v, &[Extent::M], false),
            array(work, &[Extent::N], true),
            array(table, &[Extent::Constant(TABLE_LEN)], false),
        ];
        let (scope, bounds) = (Vec::new(), Vec::new());
        Self { config, b, n, m, arrays, alpha, map, permutation, count, scope, bounds, names: 0 }
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

/// Values that fit any sample of these sizes: reals between -1 and 1, `map` within `x`, `count` at most `m`.
///
/// # Shapes and units
/// `x`, `u`, `permutation`, `count`: `[n]`; `v`: `[m]`; `y`, `a`, `map`: `[n, m]`; `alpha`: a scalar.
pub fn memory(n: i64, m: i64, seed: u64) -> Memory {
    let mut random = Random(seed ^ 0x9e37_79b9_7f4a_7c15);
    let mut memory = Memory::new().param("n", n).param("m", m);
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

    fn below(&mut self, limit: i64) -> i64 {
        (self.bits() % limit.max(1) as u64) as i64
    }
}
