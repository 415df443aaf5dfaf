//! Schedules for cards: launches with loops of the host around them where nothing else is parallel
//! outside, parallel loops on groups and work-items, sums of rows on the work-items of a group.
//!
//! Which loops are parallel is asked of the placement, by tags that are tried on a copy: a proof, and
//! the only one that counts.

mod blocks;
mod counts;
mod lanes;
mod map;
mod one_launch;
mod panels;
mod prepare;
mod products;
mod rows;
mod spread;
mod tiles;

use crate::draft::{Draft, Tried};
use crate::model::Machine;
use crate::{ISL, Proposal};
use kingpost_ir::{AxisTag, Kernel};
use kingpost_isl::Objective;
use kingpost_steps::TransformError;
use kingpost_transforms::primitives::Tag;
use map::Shape;
use products::Choice;
use rayon::prelude::*;
use spread::Cutting;
use std::collections::BTreeMap;
use tiles::Tiling;

/// The shape of what has no tiles.
const IN_ROWS: Shape = Shape::ALL[1];

/// Loops of a band that are tried as the outermost one over tiles.
const LOOPS: usize = 3;

/// Sub-groups that share a row.
const SUB_GROUPS: [i64; 3] = [4, 8, 16];

/// Launches from which on few shapes are tried.
const MANY: usize = 8;

/// What comes before the launches.
type Preparation = (&'static str, fn(&mut Draft<'_>) -> Tried);

const TOGETHER: Objective = Objective { outer_parallel: true, serialised: false };
const ONE_BY_ONE: Objective = Objective { outer_parallel: true, serialised: true };

/// Preparations that run two loops along their diagonals.
const DIAGONALS: [&str; 2] = ["waves", "inner waves"];

const PREPARATIONS: [Preparation; 16] = [
    ("text", |_| Ok(())),
    ("sums in loops, bands", |d| {
        d.realise_sums()?;
        d.restart(ISL, |d| d.reschedule(ONE_BY_ONE))
    }),
    ("values where they are read", |d| d.restart("values where they are read", Draft::compute_where_read)),
    ("waves", |d| d.restart("diagonals", |d| d.skew_outer(0))),
    ("inner waves", |d| d.restart("diagonals", |d| d.skew_outer(1))),
    ("cuts", |d| d.restart("cuts at the outer loop", Draft::cut_at_outer)),
    ("first values, bands", |d| {
        d.restart("first values", |d| {
            d.copy_first_values()?;
            d.reschedule(ONE_BY_ONE)
        })
    }),
    ("bands", |d| d.restart(ISL, |d| d.reschedule(ONE_BY_ONE))),
    ("fused bands", |d| d.restart(ISL, |d| d.reschedule(TOGETHER))),
    ("expanded, bands", |d| {
        d.expand_temporaries()?;
        d.restart(ISL, |d| d.reschedule(ONE_BY_ONE))
    }),
    ("expanded, fused bands", |d| {
        d.expand_temporaries()?;
        d.restart(ISL, |d| d.reschedule(TOGETHER))
    }),
    ("sums in blocks", |d| d.restart("sums in blocks", Draft::sum_in_blocks)),
    ("bands, sums in blocks", |d| {
        d.restart(ISL, |d| {
            d.reschedule(ONE_BY_ONE)?;
            d.sum_in_blocks()
        })
    }),
    ("short loops", |d| d.hold_short()),
    ("one pass", |d| d.pass_once()),
    ("one pass, written out", |d| {
        let before = d.kernel().clone();
        d.pass_once()?;
        if *d.kernel() == before { Ok(()) } else { d.write_out_constant() }
    }),
];

/// What a draft begins with.
#[derive(Clone, Copy)]
enum Beginning {
    Prepared(Preparation),
    Counts,
    Scan,
    OneLaunch,
    /// With this many sub-groups for a row.
    Rows(i64),
    /// With this loop of a band as the outermost one over tiles.
    Panels(usize),
    /// As a product of matrices, by this choice of tiles.
    Product(&'static Choice),
}

/// Drafts that are done, with their names, and what was considered in vain.
#[derive(Default)]
struct Mapped<'a> {
    named: Vec<(String, Draft<'a>)>,
    refused: Vec<String>,
}

impl<'a> Mapped<'a> {
    fn of(name: &str, draft: Draft<'a>) -> Self {
        Self { named: vec![(name.to_owned(), draft)], refused: Vec::new() }
    }
}

/// Proposals for a card, in no order; equal ones are left out. Their [`Proposal::cycles`] are those of
/// a processor.
///
/// `params` are the sizes that groups are chosen by; the schedules are legal for all.
///
/// # Errors
/// A bug of the engine. A step that is refused only ends the idea that it belongs to.
pub fn propose_for_card(
    kernel: &Kernel,
    params: &BTreeMap<String, i64>,
) -> Result<Vec<Proposal>, TransformError> {
    let machine = Machine::default();
    let mut plain = Draft::written(kernel, params, &machine)?;
    // diagonals are for what has no parallel loops as it stands
    let launches = plain.clone().spread(Cutting::of_loops(true))?;
    let is_parallel = launches.iter().all(|launch| launch.covers.len() > 1);
    let prepared = PREPARATIONS.into_iter().filter(|(name, _)| !(is_parallel && DIAGONALS.contains(name)));
    let all: Vec<Beginning> = prepared
        .map(Beginning::Prepared)
        .chain([Beginning::Counts, Beginning::Scan, Beginning::OneLaunch])
        .chain(SUB_GROUPS.map(Beginning::Rows))
        .chain((0..LOOPS).map(Beginning::Panels))
        .chain(plain.choices()?.into_iter().map(Beginning::Product))
        .collect();
    let begun: Result<Vec<Draft<'_>>, TransformError> = all.par_iter().map(|b| b.draft(&plain)).collect();
    let mut kept: Vec<(Beginning, Draft<'_>)> = Vec::new();
    for (beginning, mut draft) in all.into_iter().zip(begun?) {
        if kept.iter().any(|(_, other)| other.kernel() == draft.kernel()) {
            plain.considered.append(&mut draft.considered);
        } else {
            kept.push((beginning, draft));
        }
    }
    let made: Result<Vec<Mapped<'_>>, TransformError> =
        kept.into_par_iter().map(|(beginning, draft)| beginning.mapped(draft)).collect();
    let mut drafts = Vec::new();
    for Mapped { named, mut refused } in made? {
        drafts.extend(named);
        plain.considered.append(&mut refused);
    }
    drafts.push(("as written".to_owned(), plain));
    Ok(crate::proposals(drafts))
}

impl Beginning {
    fn draft<'a>(self, plain: &Draft<'a>) -> Tried<Draft<'a>> {
        let mut draft = plain.clone();
        match self {
            Self::Prepared((_, prepare)) => prepare(&mut draft)?,
            Self::Counts => draft.restart("counts of each group", Draft::count_by_groups)?,
            Self::Scan => draft.restart("totals of blocks", Draft::scan_in_blocks)?,
            Self::OneLaunch => draft.restart("totals in one launch", Draft::scan_in_one_launch)?,
            Self::Rows(count) => draft.restart("rows in registers", |d| d.hold_rows(count))?,
            Self::Panels(first) => draft.restart("panels", |d| d.tile_panels(first))?,
            Self::Product(choice) => draft.restart(choice.name, |d| d.multiply(choice))?,
        }
        Ok(draft)
    }

    fn mapped(self, draft: Draft<'_>) -> Tried<Mapped<'_>> {
        match self {
            Self::Prepared((name, _)) => {
                let both = [true, false].into_par_iter().map(|wide| in_launches(name, draft.clone(), wide));
                let both: Vec<Mapped<'_>> = both.collect::<Tried<_>>()?;
                Ok(both.into_iter().fold(Mapped::default(), |mut all, one| {
                    all.named.extend(one.named);
                    all.refused.extend(one.refused);
                    all
                }))
            }
            Self::Counts => Ok(Mapped::of("counts of each group", draft)),
            Self::Scan => Ok(Mapped::of("totals of blocks", draft)),
            Self::OneLaunch => Ok(Mapped::of("totals in one launch", draft)),
            Self::Rows(count) => Ok(Mapped::of(&format!("rows in registers of {count} sub-groups"), draft)),
            Self::Panels(first) => in_panels(first, draft),
            Self::Product(choice) => Ok(Mapped::of(&format!("product in tiles of {}", choice.name), draft)),
        }
    }
}

/// A draft in launches, which have more axes if they are `wide`: one of each shape and of each kind
/// of tiles.
fn in_launches<'a>(name: &str, mut draft: Draft<'a>, wide: bool) -> Tried<Mapped<'a>> {
    let mut mapped = Mapped::default();
    let launches = draft.spread(Cutting::of_loops(wide))?;
    let kind = if wide { "" } else { ", few launches" };
    if launches.iter().all(|launch| launch.covers.is_empty()) {
        let alone = draft.kernel().clone();
        draft.map(&launches, &IN_ROWS, None)?;
        if *draft.kernel() == alone {
            mapped.refused = draft.considered;
        } else {
            mapped.named.push((format!("{name}{kind}, one group"), draft));
        }
        return Ok(mapped);
    }
    // each step is proved for the whole program, which takes long where it has many launches
    let shapes = if launches.len() > MANY { 2 } else { Shape::ALL.len() };
    let has_third = launches.iter().any(|launch| launch.covers.len() > 2);
    for shape in Shape::ALL.into_iter().take(shapes).filter(|shape| shape.outer == 1 || has_third) {
        let mut draft = draft.clone();
        draft.map(&launches, &shape, None)?;
        mapped.named.push((format!("{name}{kind}, {}", shape.name), draft));
    }
    if launches.iter().any(|launch| draft.has_tiles(launch)) {
        for (tiles, tiling) in &Tiling::ALL {
            let mut draft = draft.clone();
            draft.map(&launches, &IN_ROWS, Some(tiling))?;
            mapped.named.push((format!("{name}{kind}, {tiles}"), draft));
        }
    }
    Ok(mapped)
}

/// A draft in panels, with sums in registers or, in place, in their order.
fn in_panels(first: usize, mut draft: Draft<'_>) -> Tried<Mapped<'_>> {
    let mut mapped = Mapped::default();
    let launches = draft.spread(Cutting { wide: false, shared: panels::is_long })?;
    if launches.iter().all(|launch| launch.covers.is_empty()) {
        draft.considered.push("panels: left, no launch has tiles for more than one group".to_owned());
        mapped.refused = draft.considered;
        return Ok(mapped);
    }
    for (held, kind) in [(true, ""), (false, ", in place")] {
        let mut draft = draft.clone();
        match draft.map_panels(&launches, &IN_ROWS, held) {
            Ok(()) => mapped.named.push((format!("panels of loop {first}{kind}"), draft)),
            Err(refused) => {
                draft.pass(refused)?;
                mapped.refused.append(&mut draft.considered);
            }
        }
    }
    Ok(mapped)
}

impl Draft<'_> {
    /// Runs a loop of each launch on groups, which the threads of a processor share: an outer loop where one
    /// is parallel, else one inside, with loops around it that all threads go through together.
    ///
    /// # Errors
    /// A bug.
    pub(crate) fn share_among_threads(&mut self) -> Tried<bool> {
        let launches = self.spread(Cutting::of_loops(false))?;
        let shared: Vec<_> = launches.iter().filter_map(|launch| launch.covers.first()).collect();
        for cover in &shared {
            self.make(Tag::all((*cover).clone(), AxisTag::Group(0)))?;
        }
        Ok(!shared.is_empty())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // what a failed test does
    use super::propose_for_card;
    use crate::Proposal;
    use kingpost_interp::{Memory, interpret};
    use kingpost_ir::Kernel;
    use kingpost_ir::text::parse;
    use kingpost_sample::{is_long_run, of_run};
    use std::collections::BTreeMap;

    const ARRAYS: &str = "param n: i32\narg a: f64[n, n] inout\narg b: f64[n, n] in\narg x: f64[n] inout\narg y: f64[n] inout\n";

    fn proposals(body: &str) -> Vec<Proposal> {
        let kernel = parse(&format!("kernel k\n\n{ARRAYS}{body}")).unwrap();
        let found = propose_for_card(&kernel, &BTreeMap::from([("n".to_owned(), 1000)])).unwrap();
        // which takes as long as to find them
        let replayed: Vec<usize> = (0..found.len()).step_by(5).collect();
        for proposal in of_run(&found, &replayed) {
            assert_eq!(proposal.recipe.apply(&kernel).unwrap(), proposal.kernel, "{}", proposal.name);
        }
        found
    }

    /// Runs the proposals of a name at sizes of which tiles are no parts.
    fn same_results(body: &str, found: &[Proposal], name: &str) {
        let n = if is_long_run() { 70 } else { 37 };
        let run = |kernel: &Kernel| {
            let mut memory = Memory::new().param("n", n);
            for (array, count) in [("a", n * n), ("b", n * n), ("x", n), ("y", n)] {
                // small enough for sums of products of sums to stay small
                let values = (0..count).map(|k| ((k * 37 + 11) % 101) as f64 / 6400.0).collect::<Vec<_>>();
                memory = memory.value(array, values);
            }
            interpret(kernel, &mut memory).unwrap();
            ["a", "x"].map(|array| memory.f64s(array).unwrap().to_vec()).concat()
        };
        let expected = run(&parse(&format!("kernel k\n\n{ARRAYS}{body}")).unwrap());
        let chosen: Vec<&Proposal> = found.iter().filter(|p| p.name.contains(name)).collect();
        assert!(!chosen.is_empty(), "{name}");
        for proposal in chosen {
            let result = run(&proposal.kernel);
            // 1e-12: sums of 70 terms in another order
            let close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-12 * b.abs().max(1.0);
            assert!(result.iter().zip(&expected).all(close), "{}", proposal.text(true));
        }
    }

    /// Whether the steps of some proposal have all of these.
    fn has(found: &[Proposal], wanted: &[&str]) -> bool {
        found.iter().any(|p| wanted.iter().all(|step| p.text(false).contains(step)))
    }

    #[test]
    fn products_are_made_in_tiles_and_in_one_launch() {
        let product =
            "for i in 0..n\n  for j in 0..n\n    for k in 0..n\n      s: a[i, j] += b[i, k]*b[k, j]\n";
        let found = proposals(product);
        let steps =
            ["space: local", "pad_array(b_tile_1, axis: 1, by: 1)", "buffer_writes(a, at: j_o,", "l.1)"];
        assert!(has(&found, &steps), "{}", found[0].text(true));
        same_results(product, &found, ", tiles of");
        // the axis that moves along rows is that of neighbouring work-items
        let steps = ["tag(i_o, tag: g.1)", "tag(j_i, tag: l.0)", "buffer_writes(a, at: j, space: private"];
        assert!(has(&found, &steps), "{}", found[0].text(true));
        // except for the edges of a product in tiles
        let others = found.iter().filter(|p| !p.name.starts_with("product in"));
        assert!(others.into_iter().all(|p| !p.text(false).contains("split_launch")));
        // rows in one work-item read the same element of `b`
        assert!(has(&found, &["split_iname(i, factor: 4)", "tag(i_i, tag: unroll)"]));
    }

    #[test]
    fn values_of_another_launch_are_computed_where_they_are_read() {
        let body = "temp t: f64[n] global\n\nfor i in 0..n\n  s: t[i] = 2.0*y[i]\nfor j in 1..n - 1\n  r: x[j] = t[j - 1] + t[j] + t[j + 1]\n";
        let found = proposals(body);
        let inlined = "values where they are read";
        let chosen: Vec<&Proposal> = found.iter().filter(|p| p.name.contains(inlined)).collect();
        assert!(chosen.iter().all(|p| !p.text(false).contains("split_launch")), "{}", found[0].text(true));
        same_results(body, &found, inlined);
    }

    #[test]
    fn iterations_of_a_third_axis_share_what_they_read() {
        let body = "arg z: f64[n, n, n] inout\n\nfor o in 0..n\n  for i in 0..n\n    for j in 0..n\n      for c in 0..n\n        s: z[o, i, j] += b[i, c]*b[c, j]*a[o, c]\n";
        let found = proposals(body);
        let steps = ["split_iname(o, factor: 8)", "buffer_writes(z, at: j, space: private"];
        assert!(has(&found, &steps), "{}", found[0].text(true));
    }

    #[test]
    fn loops_that_are_in_order_become_loops_of_the_host() {
        let found = proposals(
            "for t in 1..n\n  for i in 1..n\n    s: x[i] = y[i - 1]\n  for j in 1..n\n    r: y[j] = x[j]*a[t, j]\n",
        );
        assert!(has(&found, &["split_launch([j])", "tag(i_o, tag: g.0)", "tag(j_o, tag: g.0)"]));
        let found = proposals("for t in 1..n\n  for i in 0..n\n    s: a[t, i] += a[t - 1, n - 1 - i]\n");
        assert!(has(&found, &["tag(t, tag: launch)", "tag(i_o, tag: g.0)"]));
    }

    #[test]
    fn sums_of_rows_are_shared() {
        let found = proposals("for i in 0..n\n  for j in 0..n\n    s: y[i] += b[i, j]*x[j]\n");
        let steps = ["factor_update(s", "reduce_in_tree(", "tag(i, tag: g.0)"];
        assert!(has(&found, &steps), "{}", found.iter().map(|p| p.text(true)).collect::<String>());
        // of columns they are not: neighbours read neighbours
        let found = proposals("for i in 0..n\n  for j in 0..n\n    s: y[i] += b[j, i]*x[j]\n");
        assert!(!has(&found, &["reduce_in_tree("]) && has(&found, &["tag(i_i, tag: l.0)"]));
    }

    #[test]
    fn a_nest_that_waits_for_itself_runs_in_waves() {
        let found = proposals("for i in 1..n\n  for j in 1..n\n    s: a[i, j] += a[i - 1, j]*a[i, j - 1]\n");
        assert!(has(&found, &["map_inames(", "tag: launch)", "tag: g.0)"]));
    }

    /// As in Floyd and Warshall's: all of `x` reads the element `k`, which is written in the same iteration.
    #[test]
    fn an_element_that_all_read_is_cut_out() {
        let found = proposals("for k in 0..n\n  for i in 0..n\n    s: x[i] = min(x[i], x[k] + a[i, k])\n");
        let cuts = ["cut_iname(i, at: \"k + 1\")", "split_launch(", "tag(i_o, tag: g.0)"];
        assert!(has(&found, &cuts), "{}", found[0].text(true));
    }

    /// Sums of different lengths, which overwrite what they read.
    #[test]
    fn sums_over_a_triangle_are_made_in_tiles() {
        let triangle = "for i in 0..n\n  for j in 0..n\n    for k in i + 1..n\n      s: a[i, j] += b[k, i]*a[k, j]\n    q: a[i, j] *= 0.5\n";
        let found = proposals(triangle);
        let steps = ["prefetch_array(a, space: global, temporary: a_first", "footprint: exact", "g.1)"];
        assert!(has(&found, &steps), "{}", found[0].text(true));
        same_results(triangle, &found, "first values, bands, tiles of");
    }

    #[test]
    fn columns_become_rows_in_local_memory() {
        let turn = "for i in 0..n\n  for j in 0..n\n    s: a[j, i] = b[i, j]\n";
        let found = proposals(turn);
        for items in ["work_items: [32, 8]", "work_items: [64, 8]"] {
            assert!(has(&found, &["prefetch_array(b, ", items, "pad_array("]), "{}", found[0].text(true));
        }
        same_results(turn, &found, "tiles of");
    }

    /// LU and a triangular system: the tile of a step, those next to and below it, and all others.
    #[test]
    fn factors_are_made_in_panels() {
        let lu = "for i in 0..n\n  for j in 0..i\n    for k in 0..j\n      s: a[i, j] += -a[i, k]*a[k, j]\n    \
                  q: a[i, j] = a[i, j]/(2.0 + a[j, j])\n  \
                  for j2 in i..n\n    for k2 in 0..i\n      r: a[i, j2] += -a[i, k2]*a[k2, j2]\n";
        let found = proposals(lu);
        let steps = [
            "tile_band([c0, c1, c2], sizes: [32, 32, 32])",
            "split_launch([c1_o_below_1, c1_o, c1_o_1])",
            "space: local",
        ];
        assert!(has(&found, &steps), "{}", found.iter().map(|p| p.text(true)).collect::<String>());
        same_results(lu, &found, "panels");
        let solve = "for i in 0..n\n  p: x[i] = y[i]\n  for j in 0..i\n    s: x[i] += -b[i, j]*x[j]\n  q: x[i] *= 0.5\n";
        let found = proposals(solve);
        assert!(
            has(&found, &["sizes: [64, 64]", "tag(c2_o, tag: g.0)", "buffer_writes(x"]),
            "{}",
            found[0].text(true)
        );
        same_results(solve, &found, "panels");
        // or by a group that shares each sum
        assert!(has(&found, &["reduce_in_tree("]));
    }

    #[test]
    fn groups_count_for_themselves() {
        let kernel = parse("kernel h\n\nparam n: i32\narg y: i32[n] in\narg c: i32[64] inout\n\nfor i in 0..n\n  s: c[y[i] mod 64] += 1\n").unwrap();
        let found = propose_for_card(&kernel, &BTreeMap::from([("n".to_owned(), 1000)])).unwrap();
        assert!(
            has(&found, &["make_atomic(", "space: local", "tag: g.0", "tag: l.0"]),
            "{}",
            found[0].text(true)
        );
    }

    #[test]
    fn all_loops_of_a_row_are_shared() {
        let found = proposals(
            "temp w: f64 private\n\nfor i in 0..n\n  m: w = 0.0\n  for j in 0..n\n    s: w += b[i, j]\n  \
             for j2 in 0..n\n    d: a[i, j2] = b[i, j2]/w\n",
        );
        assert!(
            has(&found, &["tag(j_i, tag: l.0)", "tag(j2_i, tag: l.0)", "tag(i, tag: g.0)"]),
            "{}",
            found[0].text(true)
        );
    }

    #[test]
    fn long_sums_of_columns_are_added_up_in_blocks() {
        let large = BTreeMap::from([("n".to_owned(), 5000)]);
        for (body, name) in [
            ("for i in 0..n\n  for j in 0..n\n    s: x[i] += b[j, i]*y[j]\n", "sums in blocks"),
            ("for j in 0..n\n  for i in 0..n\n    s: x[i] += b[j, i]*y[j]\n", "bands, sums in blocks"),
        ] {
            let kernel = parse(&format!("kernel k\n\n{ARRAYS}{body}")).unwrap();
            let found = propose_for_card(&kernel, &large).unwrap();
            assert!(has(&found, &["factor: 128", "partial: s_part", "split_launch(", "tag: g.1)"]), "{name}");
            same_results(body, &found, name);
        }
    }

    #[test]
    fn totals_are_those_of_blocks_first() {
        let body = "for i in 0..n\n  s: x[i] = sum(j in 0..i + 1: y[j])\n";
        let found = proposals(body);
        assert!(has(&found, &["parallelise_scan(", "space: global)", "split_launch(", "reduce_in_tree("]));
        same_results(body, &found, "totals of blocks");
        assert!(has(&found, &["chunk: 256)", "launch_hint(ordered_groups: true)", "alias_storage("]));
        same_results(body, &found, "totals in one launch");
    }

    #[test]
    fn small_matrices_are_in_registers() {
        let text = "kernel k\n\nparam n: i32\narg a: f64[n, 4, 4] inout\n\nfor i in 0..n\n  for k in 0..4\n    \
                    for j in k + 1..4\n      s: a[i, k, j] += -0.5*a[i, k, k]\n";
        let found =
            propose_for_card(&parse(text).unwrap(), &BTreeMap::from([("n".to_owned(), 1000)])).unwrap();
        assert!(has(
            &found,
            &["buffer_writes(a, at: i, space: private", "tag: unroll)", "tag(i_i, tag: l.0)"]
        ));
    }

    /// Rows of 256 elements, in the registers of four sub-groups: a softmax of sums.
    #[test]
    fn rows_are_held_in_registers() {
        let text = "kernel k\n\nparam m: i32\nparam n: i32\narg b: f64[m, n] in\narg a: f64[m, n] out\n\
                    temp w: f64 private\n\nfor i in 0..m\n  z: w = 0.0\n  for j in 0..n\n    s: w += b[i, j]\n  \
                    for k in 0..n\n    q: a[i, k] = b[i, k]/w\n";
        let kernel = parse(text).unwrap();
        let found = |n: i64| {
            let sizes = BTreeMap::from([("m".to_owned(), 1000), ("n".to_owned(), n)]);
            let all = propose_for_card(&kernel, &sizes).unwrap();
            all.into_iter().filter(|p| p.name.starts_with("rows in registers")).collect::<Vec<_>>()
        };
        // 300 are no multiple of a group, 8192 too many for four sub-groups
        assert_eq!([found(256).len(), found(300).len(), found(8192).len()], [2, 0, 2]);
        let of = |kernel: &Kernel| {
            let values = (0..3 * 256).map(|k| ((k * 37 + 11) % 101) as f64).collect::<Vec<_>>();
            let mut memory = Memory::new().param("m", 3).param("n", 256).value("b", values);
            interpret(kernel, &mut memory).unwrap();
            memory.f64s("a").unwrap().to_vec()
        };
        for proposal in found(256) {
            let text = proposal.text(true);
            assert!(text.contains("fix_parameter(n, ") && text.contains("shuffle: true"), "{text}");
            // 1e-12: sums of 256 terms in another order
            let close = |(a, b): (f64, f64)| (a - b).abs() <= 1e-12 * b.abs();
            assert!(of(&proposal.kernel).into_iter().zip(of(&kernel)).all(close), "{text}");
        }
    }

    #[test]
    fn what_is_in_order_throughout_is_left() {
        let found = proposals("for i in 1..n\n  s: x[i] = sqrt(x[i - 1] + x[i])\n");
        assert_eq!(found.len(), 1);
        assert!(found[0].recipe.steps.is_empty() && found[0].text(true).contains("refused"));
    }
}
