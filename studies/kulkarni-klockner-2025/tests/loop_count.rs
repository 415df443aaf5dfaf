//! Algorithm 4 of Kulkarni & Klöckner 2025, executed loop by loop, against the formulas.
//!
//! Nothing here uses a formula of the source but the trip counts and addresses that the algorithm
//! prints. Every work-item of a work-group takes every step; what it reads and writes in local
//! memory is kept between two barriers, so that a barrier too few shows as a race.

#![allow(clippy::unwrap_used)]

use kingpost::forms::tiling::{SpaceSizes, Tiling, TilingParameters, TilingSizes};
use kingpost_sample::config;
use proptest::prelude::*;
use std::collections::HashMap;
use study_kulkarni_klockner_2025::formulas::Algorithm4;

/// What a work-group did.
#[derive(Debug, Default)]
struct Counts {
    barriers: u64,
    races: u64,
    buffer_words: u64,
    factor_words: u64,
    /// Of the first cell: slots of all its work-items, and those that did an operation.
    slots: u64,
    ops: u64,
    /// Of the first work-item.
    gathers: u64,
    /// Of the first cell.
    scatters: u64,
    eval_reads: u64,
    factor_writes: u64,
    factor_reads: u64,
    matrix_reads: u64,
    /// Of the work-group.
    fetches: u64,
}

/// Who touched a word since the last barrier.
#[derive(Default)]
struct Touched {
    writer: Option<u64>,
    reader: Option<u64>,
    /// More than one work-item read it.
    read_by_others: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Word {
    Buffer(u64),
    Factor { cell: u64, point: u64, k: u64 },
}

struct WorkGroup<'a> {
    sizes: &'a TilingSizes,
    p: &'a TilingParameters,
    /// With the barriers of lines 58 and 99.
    all_barriers: bool,
    counts: Counts,
    touched: HashMap<Word, Touched>,
}

impl WorkGroup<'_> {
    fn barrier(&mut self) {
        self.counts.barriers += 1;
        self.touched.clear();
    }

    fn write(&mut self, item: u64, word: Word) {
        match word {
            Word::Buffer(at) => self.counts.buffer_words = self.counts.buffer_words.max(at + 1),
            Word::Factor { cell, point, k } => {
                let at = (cell * self.p.quad_tile + point) * self.sizes.test.derivatives + k;
                self.counts.factor_words = self.counts.factor_words.max(at + 1);
            }
        }
        let touched = self.touched.entry(word).or_default();
        let other = |who: Option<u64>| who.is_some_and(|who| who != item);
        let race = other(touched.writer) || other(touched.reader) || touched.read_by_others;
        touched.writer = Some(item);
        self.counts.races += u64::from(race);
    }

    fn read(&mut self, item: u64, word: Word) {
        let touched = self.touched.entry(word).or_default();
        self.counts.races += u64::from(touched.writer.is_some_and(|who| who != item));
        touched.read_by_others |= touched.reader.is_some_and(|who| who != item);
        touched.reader = Some(item);
    }

    /// Lines 23–35 and 67–79: all work-items fetch the tiles of all matrices of one function.
    fn fetch(&mut self, matrices: u64, (rows, cols): (u64, u64), (height, width): (u64, u64)) {
        let items = self.p.cells * self.p.work_items_per_cell;
        for step in 0..(rows * cols).div_ceil(items) {
            for item in 0..items {
                let flat = items * step + item;
                if flat >= rows * cols {
                    continue;
                }
                for k in 0..matrices {
                    self.counts.fetches += 1;
                    self.write(item, Word::Buffer(k * width * height + width * (flat / cols) + flat % cols));
                }
            }
        }
        self.barrier();
    }

    /// `f(self, cell, item, row)` for every slot of a loop whose rows are dealt out among the
    /// work-items of a cell; `row` is none where the work-item is masked.
    fn slots(&mut self, rows: u64, mut f: impl FnMut(&mut Self, u64, u64, Option<u64>)) {
        let per_cell = self.p.work_items_per_cell;
        for step in 0..rows.div_ceil(per_cell) {
            for cell in 0..self.p.cells {
                for id in 0..per_cell {
                    let row = per_cell * step + id;
                    f(self, cell, cell * per_cell + id, (row < rows).then_some(row));
                }
            }
        }
    }

    fn evaluate(&mut self, points: u64) {
        let p = self.p;
        let mut first = 0;
        while first < points {
            let rows = p.eval_rows.min(points - first);
            for (space, width) in self.sizes.trial.iter().zip(&p.eval_cols) {
                let mut node = 0;
                while node < space.nodes {
                    let cols = (*width).min(space.nodes - node);
                    self.counts.gathers += cols * space.components;
                    self.fetch(space.matrices, (rows, cols), (p.eval_rows, *width));
                    self.slots(rows, |group, cell, item, row| {
                        for j in 0..cols {
                            for k in 0..space.derivatives {
                                let one = u64::from(cell == 0);
                                group.counts.slots += 2 * one;
                                let Some(row) = row else { continue };
                                group.counts.ops += 2 * one;
                                group.counts.eval_reads += one;
                                let matrix = k % space.matrices;
                                let at = matrix * width * group.p.eval_rows + width * row + j;
                                group.read(item, Word::Buffer(at));
                            }
                        }
                    });
                    self.barrier();
                    node += cols;
                }
            }
            self.slots(rows, |group, cell, item, row| {
                let Some(row) = row else { return };
                for k in 0..group.sizes.test.derivatives {
                    group.counts.factor_writes += u64::from(cell == 0);
                    group.write(item, Word::Factor { cell, point: first + row, k });
                }
            });
            first += rows;
        }
    }

    fn quadrature(&mut self, points: u64) {
        let (p, test) = (self.p, &self.sizes.test);
        let mut node = 0;
        while node < test.nodes {
            let rows = p.quad_rows.min(test.nodes - node);
            let mut first = 0;
            while first < points {
                let cols = p.quad_cols.min(points - first);
                self.fetch(test.matrices, (rows, cols), (p.quad_rows, p.quad_cols));
                self.slots(rows, |group, cell, item, row| {
                    for q in 0..cols {
                        for k in 0..test.derivatives {
                            let one = u64::from(cell == 0);
                            group.counts.slots += 2 * one;
                            let Some(row) = row else { continue };
                            group.counts.ops += 2 * one;
                            group.counts.matrix_reads += one;
                            group.counts.factor_reads += one;
                            let matrix = k % test.matrices;
                            let at = matrix * p.quad_cols * p.quad_rows + p.quad_cols * row + q;
                            group.read(item, Word::Buffer(at));
                            group.read(item, Word::Factor { cell, point: first + q, k });
                        }
                    }
                });
                self.barrier();
                first += cols;
            }
            self.slots(rows, |group, cell, _, row| {
                group.counts.scatters += u64::from(cell == 0 && row.is_some()) * test.components;
            });
            node += rows;
        }
    }

    fn run(sizes: &TilingSizes, p: &TilingParameters, all_barriers: bool) -> Counts {
        let (counts, touched) = (Counts::default(), HashMap::new());
        let mut group = WorkGroup { sizes, p, all_barriers, counts, touched };
        let mut done = 0;
        while done < sizes.quadrature_points {
            let points = p.quad_tile.min(sizes.quadrature_points - done);
            group.evaluate(points);
            if group.all_barriers {
                group.barrier();
            }
            group.quadrature(points);
            if group.all_barriers {
                group.barrier();
            }
            done += points;
        }
        group.counts
    }
}

fn space(name: &'static str) -> impl Strategy<Value = SpaceSizes> {
    let kind = prop_oneof![
        (1..4u64).prop_map(|m| (1, m, m)),
        (2..4u64, 1..4u64).prop_map(|(components, m)| (components, components * m, m)),
    ];
    (1..10u64, kind).prop_map(move |(nodes, (components, derivatives, matrices))| SpaceSizes {
        name: name.into(),
        nodes,
        components,
        derivatives,
        matrices,
    })
}

/// Any sizes, and any parameters that make sense for them, divisors or not.
fn problem() -> impl Strategy<Value = (TilingSizes, TilingParameters)> {
    let sizes =
        (1..18u64, prop::collection::vec(space("u"), 1..4), space("y"), prop_oneof![Just(4), Just(8)]);
    let sizes = sizes.prop_map(|(quadrature_points, trial, test, word_bytes)| TilingSizes {
        quadrature_points,
        trial,
        test,
        word_bytes,
    });
    sizes.prop_flat_map(|sizes| {
        let cols: Vec<_> = sizes.trial.iter().map(|s| 1..=s.nodes).collect();
        let tile = 1..=sizes.quadrature_points;
        let in_tile = tile.prop_flat_map(|t| (Just(t), 1..=t, 1..=t));
        let rest = (1..5u64, 1..8u64, cols, 1..=sizes.test.nodes);
        (Just(sizes), in_tile, rest).prop_map(|(sizes, (quad_tile, eval_rows, quad_cols), rest)| {
            let (cells, work_items_per_cell, eval_cols, quad_rows) = rest;
            let parameters = TilingParameters {
                cells,
                work_items_per_cell,
                quad_tile,
                eval_rows,
                eval_cols,
                quad_rows,
                quad_cols,
            };
            (sizes, parameters)
        })
    })
}

proptest! {
    #![proptest_config(config(1500))]

    #[test]
    fn formulas_count_what_the_loops_do((sizes, parameters) in problem()) {
        let tiling = Tiling::new(&sizes, &parameters).unwrap();
        let all = WorkGroup::run(&sizes, &parameters, true);
        prop_assert_eq!(all.races, 0);
        prop_assert_eq!(tiling.barriers(), all.barriers);
        prop_assert_eq!(tiling.buffer_words(), all.buffer_words);
        prop_assert_eq!(tiling.factor_words(), all.factor_words);
        prop_assert_eq!(tiling.local_words(), all.buffer_words + all.factor_words);
        prop_assert_eq!(sizes.usable_ops(), all.ops);
        prop_assert_eq!(tiling.performed_ops(), all.slots);
        prop_assert_eq!(tiling.gather_words(), all.gathers);
        prop_assert_eq!(tiling.scatter_words(), all.scatters);
        prop_assert_eq!(tiling.reference_words(), all.fetches);
        prop_assert_eq!(tiling.fetch_local_writes(), all.fetches);
        prop_assert_eq!(tiling.eval_local_reads(), all.eval_reads);
        prop_assert_eq!(tiling.eval_local_writes(), all.factor_writes);
        prop_assert_eq!(tiling.quadrature_matrix_reads(), all.matrix_reads);
        prop_assert_eq!(tiling.quadrature_factor_reads(), all.factor_reads);

        let needed = WorkGroup::run(&sizes, &parameters, false);
        prop_assert_eq!(needed.races, 0);
        prop_assert_eq!(tiling.needed_barriers(), needed.barriers);
    }
}

/// The check for races must be able to find one: two work-items, a tile each, no barrier.
#[test]
fn a_missing_barrier_is_a_race() {
    let sizes = TilingSizes {
        quadrature_points: 2,
        trial: vec![SpaceSizes::scalar("u", 1, 1)],
        test: SpaceSizes::scalar("y", 1, 1),
        word_bytes: 8,
    };
    let p = TilingParameters {
        cells: 1,
        work_items_per_cell: 2,
        quad_tile: 2,
        eval_rows: 2,
        eval_cols: vec![1],
        quad_rows: 1,
        quad_cols: 2,
    };
    let (counts, touched) = (Counts::default(), HashMap::new());
    let mut group = WorkGroup { sizes: &sizes, p: &p, all_barriers: true, counts, touched };
    group.write(0, Word::Buffer(0));
    group.read(0, Word::Buffer(0));
    assert_eq!(group.counts.races, 0);
    group.read(1, Word::Buffer(0));
    assert_eq!(group.counts.races, 1);
    group.barrier();
    group.read(1, Word::Buffer(0));
    group.read(0, Word::Buffer(0));
    group.write(1, Word::Buffer(0));
    assert_eq!(group.counts.races, 2);
}
