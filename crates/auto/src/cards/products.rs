//! Products of matrices by tiles that fit a card: copies ahead, entries in registers, matrix instructions where
//! there are some, and sums in parts where there are few tiles. Sizes are fixed, as in a kernel that is
//! compiled for them.

use super::map::Shape;
use crate::draft::{Draft, Tried, refusable};
use kingpost_algebra::primitives::FactorUpdate;
use kingpost_ir::{Access, AddressSpace, Atom, AxisTag, Expr, InameId, Insn, Node, ScalarType, VarKind};
use kingpost_primitives::{TileProduct, Units};
use kingpost_steps::{Combined, Refusal, TransformError};
use kingpost_transforms::primitives::{
    BufferWrites, CutIname, DistributeLoop, ExpandArray, FixParameter, InterchangeInames, MoveInsns,
    RealiseReduction, SetAddressSpace, SplitIname, SplitLaunch, Tag, TransposeArrayAxes,
};

/// A way to compute a product.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice {
    pub(super) name: &'static str,
    /// Of the result and the factors; `bf16` stands for both types of halves.
    ty: ScalarType,
    /// Rows, columns and terms of a tile; rows and columns of a sub-group.
    tile: [i64; 3],
    sub_group: [i64; 2],
    buffers: i64,
    by: Units,
    /// Parts of each sum, which a second launch adds up.
    parts: i64,
    /// Speed next to that of the largest tile, on an H200 that is full.
    rate: f64,
}

const DOUBLE: Choice = Choice {
    name: "",
    ty: ScalarType::F64,
    tile: [128, 128, 16],
    sub_group: [64, 32],
    buffers: 4,
    by: Units::MatrixInstructions,
    parts: 1,
    rate: 1.0,
};
const SINGLE: Choice =
    Choice { ty: ScalarType::F32, tile: [128, 128, 16], sub_group: [32, 64], by: Units::WorkItems, ..DOUBLE };
// not timed with parts of 32 by 64
const SINGLE_PARTS: Choice = Choice { sub_group: [64, 32], ..SINGLE };
const SMALL: Choice = Choice { tile: [64, 64, 16], sub_group: [32, 32], rate: 0.85, ..SINGLE };
const HALVES: Choice = Choice {
    ty: ScalarType::Bf16,
    tile: [128, 256, 64],
    sub_group: [16, 256],
    by: Units::TeamInstructions,
    ..DOUBLE
};

/// What is tried, of each type.
pub(super) const CHOICES: [Choice; 17] = [
    Choice { name: "128 by 128, f64", ..DOUBLE },
    Choice { name: "64 by 128, f64", tile: [64, 128, 16], sub_group: [32, 32], rate: 0.95, ..DOUBLE },
    Choice { name: "64 by 64, f64", tile: [64, 64, 16], sub_group: [32, 32], rate: 0.9, ..DOUBLE },
    Choice { name: "32 by 64, f64", tile: [32, 64, 16], sub_group: [16, 32], rate: 0.75, ..DOUBLE },
    Choice { name: "32 by 32, f64", tile: [32, 32, 16], sub_group: [16, 16], rate: 0.6, ..DOUBLE },
    Choice { name: "128 by 128, f32", ..SINGLE },
    Choice { name: "64 by 128, f32", tile: [64, 128, 16], rate: 0.95, ..SINGLE },
    Choice { name: "128 by 128, f32, sums in 2 parts", parts: 2, ..SINGLE_PARTS },
    Choice { name: "128 by 128, f32, sums in 4 parts", parts: 4, ..SINGLE_PARTS },
    Choice { name: "64 by 64, f32", ..SMALL },
    Choice { name: "64 by 64, f32, sums in 2 parts", parts: 2, ..SMALL },
    Choice { name: "64 by 64, f32, sums in 4 parts", parts: 4, ..SMALL },
    Choice { name: "64 by 64, f32, sums in 8 parts", parts: 8, ..SMALL },
    Choice { name: "128 by 256, halves", ..HALVES },
    Choice {
        name: "128 by 128, halves",
        tile: [128, 128, 64],
        sub_group: [16, 128],
        buffers: 3,
        rate: 0.97,
        ..HALVES
    },
    Choice { name: "64 by 256, halves", tile: [64, 256, 64], rate: 0.75, ..HALVES },
    Choice { name: "64 by 128, halves", tile: [64, 128, 64], sub_group: [16, 128], rate: 0.8, ..HALVES },
];

/// Choices that are tried of a product.
const TRIED: usize = 3;

/// Multiprocessors of a card.
const MULTIPROCESSORS: i64 = 132;

/// What a second launch takes, and each element that it reads, in products of one work-item.
const LAUNCH: f64 = 5e5;
const ELEMENT: f64 = 0.5;

/// Work-items that add parts of sums.
const ITEMS: i64 = 64;

/// A product of matrices: its loops over rows, columns and terms.
#[derive(Clone, Debug)]
struct Matrices {
    loops: [String; 3],
    lengths: [i64; 3],
    ty: ScalarType,
    statement: String,
    /// Whether the sum is one of an expression, and not a loop.
    in_expression: bool,
}

impl Choice {
    /// Whether it computes results of a type.
    fn is_of(&self, ty: ScalarType) -> bool {
        if self.ty.is_half() { ty.is_half() } else { ty == self.ty }
    }

    /// Terms of a tile, of which there is a whole number in a part of each sum.
    fn terms(&self, product: &Matrices) -> Option<i64> {
        let [_, _, all] = product.lengths;
        let own = all / self.parts;
        // boxes of the copy engine have one size
        let fewer: &[i64] = if self.by == Units::TeamInstructions { &[] } else { &[8, 4] };
        [self.tile[2]]
            .iter()
            .chain(fewer)
            .copied()
            .find(|terms| own * self.parts == all && own > 0 && own % terms == 0)
    }

    /// Work-items' products one after the other, or none if the choice does not fit.
    fn cost(&self, product: &Matrices) -> Option<f64> {
        let [rows, columns, terms] = product.lengths;
        let tiles = [rows / self.tile[0], columns / self.tile[1]];
        let whole = rows % self.tile[0] == 0 && columns % self.tile[1] == 0;
        let fits = self.is_of(product.ty) && tiles.iter().all(|n| *n > 0) && (whole || self.parts == 1);
        self.terms(product).filter(|_| fits)?;
        let groups = tiles[0] * tiles[1] * self.parts;
        let rounds = (groups as u64).div_ceil(MULTIPROCESSORS as u64) as f64;
        let of_group = (self.tile[0] * self.tile[1]) as f64 * (terms / self.parts) as f64;
        let of_sums = if self.parts > 1 {
            LAUNCH + ELEMENT * (rows * columns * self.parts) as f64 / MULTIPROCESSORS as f64
        } else {
            0.0
        };
        Some(rounds * of_group / self.rate + of_sums)
    }
}

impl Draft<'_> {
    /// The choices that are tried of a product, the best for its sizes first; none of another program.
    ///
    /// # Errors
    /// A bug.
    pub(super) fn choices(&self) -> Tried<Vec<&'static Choice>> {
        let mut trial = self.clone();
        let fixed = refusable(trial.fix_sizes())?;
        let product = fixed.ok().and_then(|()| trial.matrices(&trial.kernel().body));
        let Some(product) = product else { return Ok(Vec::new()) };
        let costs = CHOICES.iter().filter_map(|choice| Some((choice.cost(&product)?, choice)));
        let mut ranked: Vec<(f64, &Choice)> = costs.collect();
        ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
        Ok(ranked.into_iter().take(TRIED).map(|(_, choice)| choice).collect())
    }

    /// Gives all parameters their values.
    fn fix_sizes(&mut self) -> Tried {
        let params = self.kernel().vars.values().filter(|v| matches!(v.kind, VarKind::Param));
        let params: Vec<String> = params.map(|v| v.name.clone()).collect();
        for name in params {
            let value = self.params.get(&name).copied().ok_or_else(no_product)?;
            self.make(FixParameter::new(name, value))?;
        }
        Ok(())
    }

    /// Computes a product of matrices in tiles, and what is beyond the last whole tiles in launches of its own.
    ///
    /// # Errors
    /// A step that is refused; another program.
    pub(super) fn multiply(&mut self, choice: &Choice) -> Tried {
        self.fix_sizes()?;
        let product = self.matrices(&self.kernel().body).ok_or_else(no_product)?;
        if choice.parts > 1 {
            return self.sum_parts(product, choice);
        }
        let (product, edges) = self.cut_edges(product, choice)?;
        self.tile_by(&product, choice)?;
        for edge in edges {
            self.map_covers(&edge.map(|l| vec![l]), &Shape::ALL[0])?;
        }
        Ok(())
    }

    fn tile_by(&mut self, product: &Matrices, choice: &Choice) -> Tried {
        let terms = choice.terms(product).ok_or_else(no_product)?;
        let [rows, columns, _] = choice.tile;
        let (loops, tile) = (product.loops.clone(), [rows, columns, terms]);
        let Choice { sub_group, buffers, by, .. } = *choice;
        TileProduct { loops, tile, sub_group, buffers, by }.apply(&mut self.schedule).map(|_| ())
    }

    /// Gives what is beyond the last whole tile launches of its own: returns the loops of these, too.
    fn cut_edges(&mut self, product: Matrices, choice: &Choice) -> Tried<(Matrices, Vec<[String; 2]>)> {
        let whole = |side: usize| product.lengths[side] - product.lengths[side] % choice.tile[side];
        let [rows, columns, _] = &product.loops;
        let mut row = rows.clone();
        let mut edges: Vec<[String; 2]> = Vec::new();
        if whole(0) < product.lengths[0] {
            let made = self.make(CutIname::new(rows, whole(0).to_string()))?;
            let [main, rest] = <[_; 2]>::try_from(made).map_err(|_| no_product())?;
            main.name().clone_into(&mut row);
            edges.push([rest.name().to_owned(), columns.clone()]);
        }
        if whole(1) < product.lengths[1] {
            let column = self.names_in(&row).into_iter().next().ok_or_else(no_product)?;
            let made = self.make(CutIname::new(column, whole(1).to_string()))?;
            let [_, rest] = <[_; 2]>::try_from(made).map_err(|_| no_product())?;
            let made = self.make(DistributeLoop::new(&row, [rest.name()]))?;
            let beside = made.first().ok_or_else(no_product)?;
            edges.insert(0, [beside.name().to_owned(), rest.name().to_owned()]);
        }
        if edges.is_empty() {
            return Ok((product, edges));
        }
        let launches = self.make(SplitLaunch::new(edges.iter().map(|[row, _]| row)))?;
        let main = launches.first().ok_or_else(no_product)?;
        let product = self.matrices(self.body(main.name())).ok_or_else(no_product)?;
        Ok((product, edges))
    }

    /// Adds up parts of each sum on groups of their own, and these in the next launch.
    fn sum_parts(&mut self, mut product: Matrices, choice: &Choice) -> Tried {
        let [rows, columns, terms] = product.loops.clone();
        let mut update = product.statement.clone();
        let mut start = None;
        if product.in_expression {
            let total = self.schedule.fresh("total");
            let made = self.make(RealiseReduction::new(&terms).into_temporary(total))?.insns;
            let [first, adds] = <[_; 2]>::try_from(made).map_err(|_| no_product())?;
            (start, update) = (Some(first.name().to_owned()), adds.name().to_owned());
        }
        let [part, own] = self.make(SplitIname::new(terms, product.lengths[2] / choice.parts))?;
        let derived = |name: &str| vec![format!("{name}_init"), format!("{name}_sum")];
        let held = self.schedule.fresh_with("part", derived);
        let made = self.make(FactorUpdate::new(update, [part.name()]).into_temporary(&held))?;
        let adds = made.loops.last().ok_or_else(no_product)?.name().to_owned();
        self.make(SetAddressSpace::new(&held, AddressSpace::Global))?;
        self.make(ExpandArray::new(&held, [&rows, &columns]))?;
        // neighbours store neighbours
        self.make(TransposeArrayAxes::new(&held, [2, 0, 1]))?;
        let mut total = adds.clone();
        if let Some(start) = start {
            self.make(MoveInsns::after([&start], part.name()))?;
            total = start;
        }
        let mut totals = Vec::new();
        for outer in [&columns, &rows] {
            let made = self.make(DistributeLoop::new(outer, [&total]))?;
            made.first().ok_or_else(no_product)?.name().clone_into(&mut total);
            totals.push(total.clone());
        }
        for outer in [&columns, &rows] {
            self.make(InterchangeInames::new(outer, part.name()))?;
        }
        self.make(BufferWrites::new(&held, &columns, AddressSpace::Private))?;
        self.make(SplitLaunch::new([&total]))?;
        product.loops[2] = own.name().to_owned();
        product.lengths[2] /= choice.parts;
        self.tile_by(&product, &Choice { parts: 1, ..*choice })?;
        self.make(Tag::new(part.name(), AxisTag::Group(2)))?;
        let [blocks, item] = self.make(SplitIname::new(&totals[0], ITEMS))?;
        self.make(Tag::new(&totals[1], AxisTag::Group(1)))?;
        self.make(Tag::new(blocks.name(), AxisTag::Group(0)))?;
        self.make(Tag::new(item.name(), AxisTag::Local(0)))?;
        self.make(Tag::new(adds, AxisTag::Unrolled))
    }

    /// A product of two matrices of one type, all loops of which have constant lengths.
    fn matrices(&self, nodes: &[Node]) -> Option<Matrices> {
        let kernel = self.kernel();
        let [Node::Loop(outer, body)] = nodes else { return None };
        let [Node::Loop(inner, body)] = body.as_slice() else { return None };
        let (insn, terms, in_expression) = match body.as_slice() {
            [Node::Insn(insn)] => (&kernel.insns[*insn], sum_in(&kernel.insns[*insn])?, true),
            [Node::Loop(terms, body)] => match body.as_slice() {
                [Node::Insn(insn)] => (&kernel.insns[*insn], *terms, false),
                _ => return None,
            },
            _ => return None,
        };
        if !in_expression {
            insn.update_op()?;
        }
        let moves = |access: &Access, l: InameId| access.index.iter().any(|e| e.mentions(l));
        let along = |l: InameId| {
            let last = insn.lhs.index.last().and_then(|e| e.as_affine());
            last.is_some_and(|e| e.coefficient(&Atom::Iname(l)) == 1)
        };
        let (row, column) = if along(*inner) { (*outer, *inner) } else { (*inner, *outer) };
        let factors: Vec<&Access> = insn.reads().into_iter().filter(|access| moves(access, terms)).collect();
        let of = |side: InameId, other: InameId| {
            factors.iter().any(|access| moves(access, side) && !moves(access, other))
        };
        let ty = kernel.vars[insn.lhs.var].ty;
        let alike = factors.iter().all(|access| kernel.vars[access.var].ty == ty);
        let is_product = factors.len() == 2 && of(row, column) && of(column, row) && moves(&insn.lhs, row);
        if !(is_product && alike && along(column) && !moves(&insn.lhs, terms)) {
            return None;
        }
        let length = |l: InameId| {
            let range = kernel.inames[l].domain.as_guarded_range(l)?;
            range.lo.as_constant().filter(|lo| *lo == 0)?;
            range.hi.as_constant()
        };
        let loops = [row, column, terms];
        Some(Matrices {
            loops: loops.map(|l| kernel.inames[l].name.clone()),
            lengths: [length(row)?, length(column)?, length(terms)?],
            ty,
            statement: insn.name.clone(),
            in_expression,
        })
    }
}

/// The loop of the only sum in an expression.
fn sum_in(insn: &Insn) -> Option<InameId> {
    let mut found = Vec::new();
    insn.rhs.for_each(&mut |e| {
        if let Expr::Reduce(reduction) = e {
            found.extend(&reduction.inames);
        }
    });
    <[InameId; 1]>::try_from(found).ok().map(|[l]| l)
}

fn no_product() -> TransformError {
    let found = "no three loops multiply matrices of such sizes";
    let needed = "a product of two matrices of f64, f32 or halves, with a multiple of 4 terms, or 64 of halves, \
                  and whole tiles";
    TransformError { operation: "multiply matrices".into(), cause: Refusal::argument("loops", found, needed) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // what a failed test does
    use super::TRIED;
    use crate::draft::Draft;
    use crate::model::Machine;
    use kingpost_interp::{Memory, Value, interpret};
    use kingpost_ir::text::parse;
    use kingpost_ir::{Kernel, ScalarType};
    use kingpost_sample::is_long_run;
    use std::collections::BTreeMap;

    fn product(ty: &str) -> Kernel {
        parse(&format!(
            "kernel matmul\nparam n: i32\narg a: {ty}[n, n] in\narg b: {ty}[n, n] in\narg c: {ty}[n, n] out\n\n\
             for i in 0..n\n  for j in 0..n\n    s: c[i, j] = sum(k in 0..n: a[i, k]*b[k, j])\n"
        ))
        .unwrap()
    }

    fn names(ty: &str, n: i64) -> Vec<&'static str> {
        let (kernel, params, machine) =
            (product(ty), BTreeMap::from([("n".to_owned(), n)]), Machine::default());
        let found = Draft::new(&kernel, &params, &machine).choices().unwrap();
        assert!(found.len() <= TRIED);
        found.into_iter().map(|choice| choice.name).collect()
    }

    /// What was the fastest of each size on an H200 (2026-11-29) is among what is tried.
    #[test]
    fn tiles_fit_the_size() {
        for (ty, n, fastest) in [
            ("f64", 256, "32 by 32, f64"),
            ("f64", 512, "32 by 64, f64"),
            ("f64", 1024, "64 by 128, f64"),
            ("f64", 2048, "128 by 128, f64"),
            ("f64", 16384, "128 by 128, f64"),
            ("f32", 256, "64 by 64, f32, sums in 8 parts"),
            ("f32", 512, "64 by 64, f32, sums in 8 parts"),
            ("f32", 1024, "64 by 128, f32"),
            ("f32", 4096, "128 by 128, f32"),
            ("bf16", 1024, "64 by 128, halves"),
            ("bf16", 2048, "128 by 128, halves"),
            ("f16", 8192, "128 by 256, halves"),
        ] {
            let found = names(ty, n);
            assert!(found.contains(&fastest), "{ty} {n}: {found:?}");
        }
        // what takes no whole number of terms has other schedules
        assert_eq!(names("f64", 1001), [""; 0]);
        assert_eq!(names("bf16", 1000), [""; 0]);
    }

    #[test]
    fn no_other_program_is_a_product() {
        let machine = Machine::default();
        let params = BTreeMap::from([("n".to_owned(), 1024)]);
        let head =
            "kernel k\nparam n: i32\narg a: f64[n, n] in\narg b: f64[n, n] in\narg c: f64[n, n] inout\n\n";
        let nest = "for i in 0..n\n  for j in 0..n\n    for k in 0..n\n      s: ";
        for body in ["c[i, j] += a[i, k]*b[i, k]", "c[i, j] += a[i, j]*b[k, j]", "c[i, k] += a[i, k]*b[k, j]"]
        {
            let kernel = parse(&format!("{head}{nest}{body}\n")).unwrap();
            assert!(Draft::new(&kernel, &params, &machine).choices().unwrap().is_empty(), "{body}");
        }
    }

    /// At sizes of which tiles are no parts, in parts of sums, and of both types.
    #[test]
    fn results_are_those_of_the_text() {
        for (ty, n, tolerance) in [("f64", 68, 1e-12), ("f32", 64, 1e-4), ("bf16", 128, 1e-2)] {
            let (kernel, machine) = (product(ty), Machine::default());
            let params = BTreeMap::from([("n".to_owned(), n)]);
            let values = |seed: i64| (0..n * n).map(move |k| ((k * 37 + seed) % 101) as f64 / 64.0);
            let run = |kernel: &Kernel, memory: Memory| {
                let value = |seed| match ty {
                    "bf16" => Value::of_reals(ScalarType::Bf16, &values(seed).collect::<Vec<_>>()),
                    "f32" => Value::from(values(seed).map(|x| x as f32).collect::<Vec<_>>()),
                    _ => Value::from(values(seed).collect::<Vec<_>>()),
                };
                let mut memory = memory.value("a", value(11)).value("b", value(5));
                interpret(kernel, &mut memory).unwrap();
                memory.get("c").unwrap().to_f64()
            };
            let expected = run(&kernel, Memory::new().param("n", n));
            let written = Draft::new(&kernel, &params, &machine);
            let choices = written.choices().unwrap();
            assert!(choices.len() > 1);
            for choice in choices.into_iter().step_by(if is_long_run() { 1 } else { 4 }) {
                let mut draft = written.clone();
                draft.multiply(choice).unwrap();
                let result = run(draft.kernel(), Memory::new());
                // sums up to 2.5 a term in another order, in this precision; halves are rounded to 8 bits
                let close = |(a, b): (&f64, &f64)| (a - b).abs() <= tolerance * b.abs();
                assert!(result.iter().zip(&expected).all(close), "{}", choice.name);
            }
        }
    }
}
