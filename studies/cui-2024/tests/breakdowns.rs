//! Components of solves, and their pictures.

#![allow(clippy::unwrap_used)]

use kingpost_multigrid::{Dimension, Element, Precision};
use study_cui_2024::bars::{
    boundary_svg, breakdown_svg, levels_svg, percentages_svg, roofline_svg, sizes_svg,
};
use study_cui_2024::breakdown::{Breakdown, LevelTimes, works};
use study_cui_2024::flops_of_patch;
use study_cui_2024::picture::PictureError;
use study_cui_2024::smoother::{Structure, Variant};

fn record(degree: usize, variant: Variant, structure: Option<Structure>) -> Breakdown {
    let level = |cells: usize| LevelTimes {
        cells,
        smooth: 0.2 * cells as f64,
        residual: 0.1,
        restrict: 0.05,
        prolongate: 0.05,
    };
    Breakdown {
        element: Element::new(Dimension::Three, degree).unwrap(),
        cells: 8,
        nodes: 1000,
        variant,
        structure,
        precision: Precision::Single,
        device: "d".into(),
        driver: "v".into(),
        iterations: 2,
        solve_s: 20.0,
        levels: [2, 4, 8].map(level).to_vec(),
    }
}

#[test]
fn components_add_up_to_the_solve() {
    let record = record(2, Variant::Fused, None);
    let parts = record.components();
    // finest: 2 * 1.6 + 0.2; next: 2 * 0.8 + 0.2; coarsest 0.4
    let expected = [20.0 - 2.0 * 5.6, 6.4, 0.2, 0.2, 2.0 * 2.2];
    assert!(parts.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{parts:?}");
    assert!((record.levels().iter().sum::<f64>() - 1.0).abs() < 1e-12);
    let works = works(&record).unwrap();
    // 27 patches of two cells a side are smoothed, a colour of them for each work
    assert!(works.iter().all(|w| w.flops > 0.0 && w.bytes > 0.0));
    let patches = flops_of_patch(record.element) * 7.0_f64.powi(3);
    assert!((works[0].flops - patches).abs() < 1e-9 * patches, "{}", works[0].flops);
}

#[test]
fn pictures_have_their_parts() {
    let all = [
        record(1, Variant::Fused, None),
        record(2, Variant::Fused, None),
        record(2, Variant::Fused, Some(Structure::BASIC)),
        record(2, Variant::Boundary, Some(Structure::CONFLICT_FREE)),
    ];
    for (svg, words) in [
        (breakdown_svg(&all), &["smoothing", "seconds a billion nodes", "GMRES"][..]),
        (percentages_svg(&all), &["coarser levels", "% of the solve"]),
        (levels_svg(&all), &["finest level", "all below"]),
        (boundary_svg(&all), &["Basic", "Boundary"]),
        (roofline_svg(&all, 4e12, 33e12), &["prolongation", "roof"]),
    ] {
        let svg = svg.unwrap();
        assert!(words.iter().all(|word| svg.contains(word)), "{words:?}: {svg}");
    }
    assert!(matches!(boundary_svg(&all[..2]), Err(PictureError::Empty)));
    assert!(matches!(sizes_svg(&[]), Err(PictureError::Empty)));
}
