//! Patterns that a device finds, compared with those of the host, entry by entry.

#![allow(clippy::unwrap_used)]

use crate::systems::{devices, every_device};
use purlin_fem::mesh::Mesh;
use purlin_fem::numbering::Numbering;
use purlin_fem::sparse::{CsrPart, CsrPattern};
use purlin_runtime::{Device, download_values};
use purlin_sample::Random;
use purlin_solve::{PatternKernels, SolveError};

/// Compares all arrays.
fn compare(device: &dyn Device, kernels: &PatternKernels, sizes: [usize; 2], part: &CsrPart<'_>, what: &str) {
    let [height, width] = part.extents;
    let expected = CsrPattern::of_rows(sizes[0], sizes[1], height, width, part.rows, part.columns).unwrap();
    let found = kernels.find(device, sizes, part).unwrap();
    let list = |buffer| download_values::<i32>(device, buffer).unwrap();
    assert_eq!(list(&found.row_starts), expected.row_starts, "{what}");
    assert_eq!((found.rows, found.entries), (sizes[0], expected.columns.len()), "{what}");
    assert_eq!(list(&found.columns), expected.columns, "{what}");
    assert_eq!(list(&found.positions), *expected.positions(), "{what}");
    let terms = expected.row_terms();
    assert_eq!(list(&found.term_entities), terms.entities, "{what}");
    assert_eq!(list(&found.term_rows), terms.rows, "{what}");
    let starts: Vec<i32> = (0..=sizes[0])
        .map(|row| part.rows.iter().filter(|number| (**number as usize) < row).count() as i32)
        .collect();
    assert_eq!(list(&found.term_starts), starts, "{what}");
}

#[test]
fn patterns_of_meshes_are_those_of_the_host() {
    let mesh = Mesh::unit_cube(4).unwrap();
    for device in every_device() {
        let kernels = PatternKernels::new(&*device).unwrap();
        for degree in [1, 2] {
            let numbering = Numbering::new(&mesh, degree).unwrap();
            let (map, width) = (numbering.dofs(), numbering.dofs_per_cell());
            let n = *map.iter().max().unwrap() as usize + 1;
            let part = CsrPart { extents: [width, width], rows: map, columns: map };
            compare(&*device, &kernels, [n, n], &part, &format!("{}, P{degree}", device.info().name));
        }
    }
}

#[test]
fn patterns_of_random_maps_are_those_of_the_host() {
    let mut random = Random::new();
    for device in devices() {
        let kernels = PatternKernels::new(&*device).unwrap();
        // one entity, more rows than a block, numbers that an entity has twice, rows that nobody has
        for (entities, [height, width], sizes) in
            [(1, [1, 1], [1, 1]), (1, [3, 2], [5, 4]), (300, [2, 3], [700, 90]), (97, [4, 4], [6, 9])]
        {
            let mut map = |n: usize, below: usize| -> Vec<i32> {
                (0..n).map(|_| random.int(0, below as i64) as i32).collect()
            };
            let (rows, columns) = (map(entities * height, sizes[0]), map(entities * width, sizes[1]));
            let part = CsrPart { extents: [height, width], rows: &rows, columns: &columns };
            let what = format!("{}, {entities} entities, seed {}", device.info().name, random.seed);
            compare(&*device, &kernels, sizes, &part, &what);
        }
    }
}

#[test]
fn maps_that_are_wrong_are_refused() {
    let device = purlin_runtime::open("c").unwrap();
    let kernels = PatternKernels::new(&*device).unwrap();
    let refused = |sizes, extents, rows: &[i32], columns: &[i32]| -> SolveError {
        kernels.find(&*device, sizes, &CsrPart { extents, rows, columns }).err().unwrap()
    };
    let error = refused([3, 3], [2, 2], &[0, 3], &[0, 1]);
    assert_eq!(error.to_string(), "a map with the number 3: needed 0 to 2");
    let error = refused([3, 3], [2, 2], &[0, 1], &[-1, 1]);
    assert_eq!(error.to_string(), "a map with the number -1: needed 0 to 2");
    let error = refused([3, 3], [2, 2], &[0, 1], &[0, 1, 2]);
    assert_eq!(error.to_string(), "`map of columns` has 3 entries, needed 2");
    let error = refused([3, 3], [2, 2], &[], &[]);
    assert_eq!(error.to_string(), "a map of 0 numbers of 2 an entity: needed some entities");
    let error = refused([i32::MAX as usize, 3], [1, 1], &[0], &[0]);
    assert_eq!(
        error.to_string(),
        "2147483903 numbers of a pattern: needed at most 2147483647, as 32 bits count"
    );
}
