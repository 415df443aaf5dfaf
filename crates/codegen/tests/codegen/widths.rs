//! Integers of generated code at the ends of `i32`: a machine with C's types runs single work-items
//! and stops at the first 32-bit operation that leaves 32 bits.

use kingpost_codegen::ast::{Block, Expr, IntFn, Op, Stmt};
use kingpost_codegen::{Options, PlacedKernel, Target};
use kingpost_ir::ScalarType;
use kingpost_ir::text::parse;
use std::collections::BTreeMap;

const MAX: i64 = i32::MAX as i64;

/// A reproducible stream of numbers (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: i64) -> i64 {
        (self.next() % n.unsigned_abs()).cast_signed()
    }
}

/// One work-item.
struct Machine {
    vars: BTreeMap<String, (i64, ScalarType)>,
    group: i64,
    item: i64,
    /// Offsets into `y` that were written.
    written: Vec<i64>,
}

type Number = (i64, ScalarType);

impl Machine {
    fn run(&mut self, block: &Block) -> Result<(), String> {
        for stmt in block {
            match stmt {
                Stmt::Declare(d) => {
                    let (v, _) = self.eval(d.value.as_ref().ok_or("no value")?)?;
                    self.vars.insert(d.name.to_string(), (fits(v, d.ty)?, d.ty));
                }
                Stmt::If { condition, body } => {
                    if self.eval(condition)?.0 != 0 {
                        self.run(body)?;
                    }
                }
                Stmt::For(f) => {
                    let mut i = self.eval(&f.lower)?.0;
                    while i < self.eval(&f.upper)?.0 {
                        self.vars.insert(f.name.to_string(), (i, f.ty));
                        self.run(&f.body)?;
                        i = fits(i + f.step, f.ty)?;
                    }
                }
                Stmt::Assign { place, .. } => {
                    let offset = place.offset.as_ref().ok_or("no offset")?;
                    let offset = self.eval(offset)?.0;
                    self.written.push(offset);
                }
                Stmt::Comment(_) | Stmt::Iteration(_) | Stmt::Barrier(_) => {}
                Stmt::Atomic(_) => return Err("an atomic update".into()),
                Stmt::Intrinsic(_) => return Err("a call".into()),
            }
        }
        Ok(())
    }

    fn eval(&self, e: &Expr) -> Result<Number, String> {
        Ok(match e {
            Expr::Int(v, ty) => (*v, if i32::try_from(*v).is_ok() { *ty } else { ScalarType::I64 }),
            Expr::Bool(b) => (i64::from(*b), ScalarType::I32),
            Expr::Load(place) => *self.vars.get(&*place.name).ok_or(format!("`{}`", place.name))?,
            Expr::Hardware { group, .. } => (if *group { self.group } else { self.item }, ScalarType::I32),
            Expr::Neg(a) => {
                let (v, ty) = self.eval(a)?;
                (fits(-v, ty)?, ty)
            }
            Expr::Not(a) => (i64::from(self.eval(a)?.0 == 0), ScalarType::I32),
            Expr::Cast(ty, a) => (fits(self.eval(a)?.0, *ty)?, *ty),
            Expr::Binary(Op::And, a, b) if self.eval(a)?.0 == 0 || self.eval(b)?.0 == 0 => {
                (0, ScalarType::I32)
            }
            Expr::Binary(op, a, b) => binary(*op, self.eval(a)?, self.eval(b)?)?,
            Expr::IntCall(f, ty, a, b) => {
                let (a, b) = (fits(self.eval(a)?.0, *ty)?, fits(self.eval(b)?.0, *ty)?);
                let v = match f {
                    IntFn::FloorDiv => a.div_euclid(b),
                    IntFn::Mod => a.rem_euclid(b),
                    IntFn::Min => a.min(b),
                    IntFn::Max => a.max(b),
                };
                (fits(v, *ty)?, *ty)
            }
            Expr::Real(..)
            | Expr::Call(..)
            | Expr::LanesCall(..)
            | Expr::Half(..)
            | Expr::Complex(..)
            | Expr::Pair(..)
            | Expr::Select(..)
            | Expr::Vector { .. } => {
                return Err("not an integer".into());
            }
        })
    }
}

fn binary(op: Op, (a, ta): Number, (b, tb): Number) -> Result<Number, String> {
    let ty = if ta == ScalarType::I64 || tb == ScalarType::I64 { ScalarType::I64 } else { ScalarType::I32 };
    let (v, ty) = match op {
        Op::Add => (a + b, ty),
        Op::Sub => (a - b, ty),
        Op::Mul => (a * b, ty),
        Op::Div => (a / b, ty),
        Op::Rem => (a % b, ty),
        Op::Lt => (i64::from(a < b), ScalarType::I32),
        Op::Le => (i64::from(a <= b), ScalarType::I32),
        Op::Eq => (i64::from(a == b), ScalarType::I32),
        Op::Ne => (i64::from(a != b), ScalarType::I32),
        Op::And => (1, ScalarType::I32),
        Op::Or => (i64::from(a != 0 || b != 0), ScalarType::I32),
        Op::BitAnd => (a & b, ty),
        Op::BitOr => (a | b, ty),
        Op::BitXor => (a ^ b, ty),
        Op::Shl => (a << b, ta),
        Op::Shr => (a >> b, ta),
    };
    Ok((fits(v, ty)?, ty))
}

fn fits(v: i64, ty: ScalarType) -> Result<i64, String> {
    if ty == ScalarType::I32 && i32::try_from(v).is_err() {
        return Err(format!("{v} does not fit `i32`"));
    }
    Ok(v)
}

/// Runs work-items at both ends of the launch; `expected` gives what item `i` of all writes.
fn check(text: &str, factor: i64, n: i64, expected: &dyn Fn(i64) -> Vec<i64>) {
    let kernel = parse(text).unwrap_or_else(|e| panic!("{}", e.render(text)));
    let placed = PlacedKernel::new(&kernel).unwrap_or_else(|e| panic!("{e}"));
    let code = placed.code(Target::Cuda, &Options::default()).unwrap_or_else(|e| panic!("{e}"));
    let groups = (n + factor - 1) / factor;
    for group in [0, groups / 2, groups - 2, groups - 1].into_iter().filter(|g| (0..groups).contains(g)) {
        for item in 0..factor {
            let vars = BTreeMap::from([("n".to_owned(), (n, ScalarType::I32))]);
            let mut machine = Machine { vars, group, item, written: Vec::new() };
            let result = machine.run(&code.function.body);
            let i = factor * group + item;
            let wanted = if i < n { expected(i) } else { Vec::new() };
            assert_eq!(result.map(|()| machine.written), Ok(wanted), "n = {n}, i = {i}\n{text}");
        }
    }
}

/// Parameters at both ends, and in between.
fn sizes(random: &mut Random, factor: i64) -> Vec<i64> {
    let mut all = vec![1, 2, factor, factor + 1, MAX, MAX - 1, MAX - 30, MAX - factor, MAX - factor + 1];
    all.extend((0..4).map(|_| MAX - random.below(4 * factor)));
    all.extend((0..2).map(|_| 1 + random.below(MAX)));
    all
}

fn loops(shape: &str, factor: i64, statement: &str) -> String {
    format!(
        "kernel k\n\nparam n: i32\narg y: f64[{shape}] inout\n\nfor g in 0..ceil(n/{factor}) {{g.0}}\n  \
         for i in 0..min({factor}, n - {factor}*g) {{l.0}}\n    {statement}\n"
    )
}

#[test]
fn no_integer_of_a_split_loop_overflows() {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let seed = now.as_nanos() as u64;
    let mut random = Random(seed);
    println!("seed {seed}");
    // 32 divides 2^31, so that the last index of the last group fits; 48 and 33 do not.
    for factor in [32, 48, 33, 1 + random.below(200)] {
        for n in sizes(&mut random, factor) {
            let i = format!("{factor}*g + i");
            check(&loops("n", factor, &format!("s: y[{i}] *= 2.0")), factor, n, &|i| vec![i]);
            check(&loops("n + 7", factor, &format!("s: y[{i} + 7] *= 2.0")), factor, n, &|i| vec![i + 7]);
            let back = loops("n", factor, &format!("s: y[n - 1 - ({i})] *= 2.0"));
            check(&back, factor, n, &|i| vec![n - 1 - i]);
            let rows = loops("n, 3", factor, &format!("for j in 0..3\n      s: y[{i}, j] *= 2.0"));
            check(&rows, factor, n, &|i| vec![3 * i, 3 * i + 1, 3 * i + 2]);
        }
    }
}
