//! Round trips of random kernels: samples, and expressions and domains of every kind.

use super::round_trip::{looping, round_trips, storing};
use crate::affine::Affine;
use crate::constant::Real;
use crate::domain::{Constraint, Domain};
use crate::expr::{BinaryOp, Expr, MathFn, UnaryOp, UpdateOp};
use crate::ids::InameId;
use crate::kernel::Kernel;
use crate::text::parse;
use crate::types::ScalarType;
use kingpost_sample::{SampleConfig, arbitrary_kernel, config};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

proptest! {
    #![proptest_config(config(256))]

    #[test]
    fn expressions(e in real()) {
        round_trips(&storing(|b, i| number_inames(b, i, &e)));
    }

    #[test]
    fn sets(pieces in vec(vec(piece(), 1..5), 0..4)) {
        round_trips(&looping(|i, n| {
            let own = |p: &Piece| p.constraint(i, n);
            let bounded = |d: &Vec<Piece>| {
                let mut all: Vec<Constraint> = d.iter().map(own).collect();
                all.push(Constraint::le(&Affine::constant(-100), &Affine::iname(i)));
                all
            };
            Domain::union(pieces.iter().map(bounded))
        }));
    }

    /// A text means the same without the names of its instructions, except for these names.
    #[test]
    fn unnamed(sample in arbitrary_kernel(SampleConfig::default())) {
        let text = sample.kernel.to_string();
        let mut expected = parse(&text).expect("well formed");
        let unnamed: Vec<String> = text.lines().map(|line| without_name(&expected, line)).collect();
        let found = parse(&unnamed.join("\n")).expect("well formed");
        let again = parse(&found.to_string()).expect("well formed");
        prop_assert_eq!(&again, &found);
        for (insn, named) in expected.insns.values_mut().zip(found.insns.values()) {
            insn.name.clone_from(&named.name);
        }
        prop_assert_eq!(&found, &expected);
    }

    #[test]
    fn labels(tags in proptest::collection::btree_set(any::<String>(), 0..4), storage in any::<String>()) {
        let mut kernel = storing(|_, _| 1.0.into());
        kernel.insns.values_mut().for_each(|s| s.tags.clone_from(&tags));
        kernel.vars.values_mut().for_each(|v| v.storage = Some(storage.clone()));
        round_trips(&kernel);
    }
}

/// A line of a kernel's text without the name of its instruction.
fn without_name(kernel: &Kernel, line: &str) -> String {
    let rest = line.trim_start();
    let named = kernel.insns.values().find_map(|insn| rest.strip_prefix(&format!("{}: ", insn.name)));
    named.map_or(line.to_owned(), |named| line[..line.len() - rest.len()].to_owned() + named)
}

/// A constraint `i` and `n` in positions that are filled in later.
#[derive(Clone, Debug)]
struct Piece {
    coefficients: [i64; 3],
    floor: (i64, i64, i64, i64),
    remainder: (i64, i64, i64),
    equality: bool,
}

impl Piece {
    fn constraint(&self, i: InameId, n: &Affine) -> Constraint {
        let (i, [a, b, c]) = (Affine::iname(i), self.coefficients);
        let (p, q, r, d) = self.floor;
        let floor = i.times(p).plus(&n.times(q)).floor_div(d).times(r);
        let (s, t, d) = self.remainder;
        let remainder = i.plus(&n.times(s)).modulo(d).times(t);
        let e = i.times(a).plus(&n.times(b)).plus_constant(c).plus(&floor).plus(&remainder);
        if self.equality { Constraint::Zero(e) } else { Constraint::NonNegative(e) }
    }
}

fn piece() -> impl Strategy<Value = Piece> {
    let small = -4..5_i64;
    let coefficients = [small.clone(), small.clone(), -20..20_i64];
    let floor = (small.clone(), small.clone(), -1..2_i64, 1..6_i64);
    (coefficients, floor, (small.clone(), -1..3_i64, 1..6_i64), any::<bool>()).prop_map(
        |(coefficients, floor, remainder, equality)| Piece { coefficients, floor, remainder, equality },
    )
}

/// An expression whose loops are numbers still.
#[derive(Clone, Debug)]
enum Tree {
    Real(u64),
    Unary(UnaryOp, Box<Tree>),
    Binary(BinaryOp, Box<Tree>, Box<Tree>),
    Call(MathFn, Vec<Tree>),
    Cast(ScalarType, Box<Tree>),
    Select(Box<Tree>, Box<Tree>, Box<Tree>),
    Reduce(UpdateOp, Box<Tree>),
    Int(i64),
    Loop(u8),
}

fn number_inames(b: &mut crate::KernelBuilder, outer: InameId, tree: &Tree) -> Expr {
    let mut scope = vec![outer];
    build(b, &mut scope, tree)
}

fn build(b: &mut crate::KernelBuilder, scope: &mut Vec<InameId>, tree: &Tree) -> Expr {
    match tree {
        Tree::Real(bits) => Expr::Real(Real(f64::from_bits(*bits))),
        Tree::Int(value) => Expr::Int(*value),
        Tree::Loop(k) => Expr::Iname(scope[usize::from(*k) % scope.len()]),
        Tree::Unary(op, a) => Expr::Unary(*op, Box::new(build(b, scope, a))),
        Tree::Binary(op, x, y) => {
            let x = build(b, scope, x);
            Expr::binary(*op, x, build(b, scope, y))
        }
        Tree::Call(f, args) => {
            let args: Vec<Expr> = args.iter().map(|a| build(b, scope, a)).collect();
            Expr::call(*f, args)
        }
        Tree::Cast(ty, a) => Expr::Cast(*ty, Box::new(build(b, scope, a))),
        Tree::Select(c, x, y) => {
            let [c, x, y] = [c, x, y].map(|e| Box::new(build(b, scope, e)));
            Expr::Select(c, x, y)
        }
        Tree::Reduce(op, body) => {
            let name = format!("q{}", b.so_far().inames.len());
            let around = scope.last().map_or_else(Affine::default, |i| Affine::iname(*i));
            let q = b.range(name, Affine::constant(0), around);
            scope.push(q);
            let body = build(b, scope, body);
            scope.pop();
            Expr::reduce(*op, [q], body)
        }
    }
}

fn boxed(s: impl Strategy<Value = Tree> + 'static) -> impl Strategy<Value = Box<Tree>> + Clone {
    s.prop_map(Box::new).boxed()
}

fn integer() -> BoxedStrategy<Tree> {
    let leaf = prop_oneof![
        any::<i64>().prop_map(Tree::Int),
        (-9..9_i64).prop_map(Tree::Int),
        any::<u8>().prop_map(Tree::Loop)
    ];
    let ops = [
        BinaryOp::Add,
        BinaryOp::Sub,
        BinaryOp::Mul,
        BinaryOp::FloorDiv,
        BinaryOp::Mod,
        BinaryOp::Min,
        BinaryOp::Max,
    ];
    leaf.prop_recursive(3, 8, 2, move |inner| {
        let one = boxed(inner);
        prop_oneof![
            (select(ops.to_vec()), one.clone(), one.clone()).prop_map(|(op, a, b)| Tree::Binary(op, a, b)),
            one.clone().prop_map(|a| Tree::Unary(UnaryOp::Neg, a)),
            one.prop_map(|a| Tree::Cast(ScalarType::I64, a)),
        ]
    })
    .boxed()
}

fn truth() -> BoxedStrategy<Tree> {
    let comparisons = vec![BinaryOp::Lt, BinaryOp::Le, BinaryOp::Eq, BinaryOp::Ne];
    let int = boxed(integer());
    let leaf = (select(comparisons), int.clone(), int).prop_map(|(op, a, b)| Tree::Binary(op, a, b));
    leaf.prop_recursive(3, 8, 2, |inner| {
        let one = boxed(inner);
        prop_oneof![
            (select(vec![BinaryOp::And, BinaryOp::Or]), one.clone(), one.clone())
                .prop_map(|(op, a, b)| Tree::Binary(op, a, b)),
            one.prop_map(|a| Tree::Unary(UnaryOp::Not, a)),
        ]
    })
    .boxed()
}

fn real() -> BoxedStrategy<Tree> {
    let leaf = prop_oneof![
        any::<u64>().prop_map(Tree::Real),
        any::<i32>().prop_map(|x| Tree::Real(f64::from(x).to_bits())),
        boxed(integer()).prop_map(|i| Tree::Cast(ScalarType::F64, i)),
    ];
    let ops = vec![BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul, BinaryOp::Div, BinaryOp::Min, BinaryOp::Max];
    leaf.prop_recursive(5, 24, 3, move |inner| {
        let one = boxed(inner.clone());
        let call = select(MathFn::of_reals().collect::<Vec<_>>());
        let call = call.prop_flat_map(move |f| (Just(f), vec(inner.clone(), f.arity())));
        prop_oneof![
            4 => (select(ops.clone()), one.clone(), one.clone()).prop_map(|(op, a, b)| Tree::Binary(op, a, b)),
            1 => one.clone().prop_map(|a| Tree::Unary(UnaryOp::Neg, a)),
            1 => one.clone().prop_map(|a| Tree::Cast(ScalarType::F32, a)),
            1 => call.prop_map(|(f, args)| Tree::Call(f, args)),
            1 => (boxed(truth()), one.clone(), one.clone()).prop_map(|(c, a, b)| Tree::Select(c, a, b)),
            1 => (select(UpdateOp::OF_NUMBERS.to_vec()), one).prop_map(|(op, a)| Tree::Reduce(op, a)),
        ]
    })
    .boxed()
}
