//! What a tiled kernel executes, allocates and moves, by hand.
#![allow(clippy::unwrap_used)] // what a failed test does

use kingpost_strategies::tiling::{SpaceSizes, Tiling, TilingError, TilingParameters, TilingSizes};

/// 7 points, a vector function with 2 x 3 derivatives on 5 nodes, a scalar one on 4; 3 nodes of
/// the test.
fn sizes() -> TilingSizes {
    TilingSizes {
        quadrature_points: 7,
        trial: vec![SpaceSizes::vector("v", 5, 2, 3), SpaceSizes::scalar("u", 4, 1)],
        test: SpaceSizes::scalar("y", 3, 2),
        word_bytes: 8,
    }
}

fn parameters() -> TilingParameters {
    TilingParameters {
        cells: 11,
        work_items_per_cell: 3,
        quad_tile: 4,
        eval_rows: 2,
        eval_cols: vec![3, 4],
        quad_rows: 2,
        quad_cols: 3,
    }
}

#[test]
fn quantities_by_hand() {
    let (sizes, parameters) = (sizes(), parameters());
    let t = Tiling::new(&sizes, &parameters).unwrap();
    // Quadrature tiles of 4 and 3 points, of 2 + 2 row tiles; 2 + 1 column tiles.
    assert_eq!((t.quad_tiles(), t.eval_row_tiles(), t.eval_tiles()), (2, 4, 12));
    // 2 row tiles of the test function; ceil(4/3) + ceil(3/3) column tiles.
    assert_eq!(t.quadrature_tiles(), 2 * 3);
    assert_eq!((t.needed_barriers(), t.barriers()), (36, 40));
    // Tiles: 3 matrices of 2 x 3; 1 of 2 x 4; 2 of 2 x 3.
    assert_eq!((t.buffer_words(), t.factor_words(), t.local_bytes()), (18, 88, 848));
    assert_eq!(t.alias_efficiency(), 8.0 / 18.0);
    // 33 work-items in sub-groups of 32.
    assert_eq!((t.sub_groups(32), t.simd_efficiency(32)), (2, 33.0 / 64.0));
    // 2 (6*5*7 + 1*4*7 + 2*3*7).
    assert_eq!(sizes.usable_ops(), 560);
    // Every row tile takes one step of 3 work-items: 4 of the evaluation, 2 of the quadrature.
    assert_eq!(t.performed_ops(), 2 * 3 * (4 * 34 + 2 * 2 * 7));
    assert_eq!(t.predication_efficiency(), 560.0 / 984.0);
    assert_eq!((t.gather_words(), t.scatter_words()), (4 * 14, 2 * 3));
    assert_eq!(t.modelled_reference_words(), 7 * 10);
    assert_eq!((t.eval_local_reads(), t.eval_local_writes()), (238, 14));
    assert_eq!(t.quadrature_matrix_reads(), 42);
    assert_eq!(t.modelled_global_bytes(), (56.0 + 6.0 + 70.0 / 11.0) * 8.0);
    assert_eq!(t.modelled_local_bytes(), (238 + 14 + 14 + 42) * 8);
}

#[test]
fn parameters_read_well() {
    assert_eq!(parameters().to_string(), "11x3 work-items, 4 points, tiles 2x3,4 and 2x3");
}

#[test]
fn parameters_that_make_no_sense_are_refused() {
    let sizes = sizes();
    let refused = |change: fn(&mut TilingParameters)| {
        let mut p = parameters();
        change(&mut p);
        p.check(&sizes).unwrap_err().to_string()
    };
    let expected = [
        (refused(|p| p.quad_tile = 8), "the quadrature tile is 8, needed 1 to 7, the quadrature points"),
        (refused(|p| p.quad_tile = 0), "the quadrature tile is 0, needed 1 to 7, the quadrature points"),
        (
            refused(|p| p.eval_rows = 5),
            "the height of evaluation tiles is 5, needed 1 to 4, the points of a quadrature tile",
        ),
        (
            refused(|p| p.eval_cols[1] = 5),
            "the width of evaluation tiles of `u` is 5, needed 1 to 4, its nodes",
        ),
        (
            refused(|p| p.eval_cols.truncate(1)),
            "1 widths of evaluation tiles, needed 2, one for each of `v`, `u`",
        ),
        (
            refused(|p| p.quad_rows = 4),
            "the height of quadrature tiles is 4, needed 1 to 3, the nodes of the test function",
        ),
        (
            refused(|p| p.quad_cols = 5),
            "the width of quadrature tiles is 5, needed 1 to 4, the points of a quadrature tile",
        ),
        (
            refused(|p| p.cells = 0),
            "the number of cells of a work-group is 0, needed 1 to 4096, the largest work-group",
        ),
        (
            refused(|p| p.work_items_per_cell = u64::MAX),
            "the number of work-items of a cell is 18446744073709551615, needed 1 to 4096, the largest work-group",
        ),
    ];
    for (found, needed) in expected {
        assert_eq!(found, format!("tiling: {needed}"));
    }
}

#[test]
fn the_largest_sizes_stay_in_range() {
    let max = (1 << 14) - 1;
    let largest =
        SpaceSizes { name: "u".into(), nodes: max, components: max, derivatives: max, matrices: max };
    let sizes = TilingSizes {
        quadrature_points: max,
        trial: vec![largest.clone(); 63],
        test: largest.clone(),
        word_bytes: 64,
    };
    let p = TilingParameters {
        cells: 4096,
        work_items_per_cell: 4096,
        quad_tile: 1,
        eval_rows: 1,
        eval_cols: vec![1; 63],
        quad_rows: 1,
        quad_cols: 1,
    };
    // 2 FLOP x points x nodes x derivatives x functions, each in a slot of its own of 4,096.
    assert_eq!(Tiling::new(&sizes, &p).unwrap().performed_ops(), 2 * max * max * max * 64 * 4096);
    let larger = TilingSizes { quadrature_points: max + 1, ..sizes };
    assert!(matches!(larger.check(), Err(TilingError::Size { found: 16384, .. })));
}
