//! Products with matrices of blocks, compared with those of scalars.

#![allow(clippy::unwrap_used)]

use crate::systems::{Numbers, blocks, every_device};
use kingpost_fem::sparse::BlockPattern;
use kingpost_runtime::{buffer_of, download_values, upload_values};
use kingpost_sample::seed;
use kingpost_solve::{BlockCsrOperator, BlocksOfRows, CsrOperator, Operator, Queue, SolveError, run};

#[test]
fn products_are_those_of_scalars() {
    let seed = seed();
    for device in every_device() {
        let mut numbers = Numbers(seed);
        for (n, side) in [(1, 2), (90, 3), (33, 1)] {
            let pattern = blocks(n, side);
            let by_blocks = pattern.by_blocks();
            let entries = numbers.list(pattern.columns.len());
            let x = numbers.list(n * side);
            let own = |row: usize, k: usize| pattern.row_starts[row] as usize + k;
            // row by row of scalars, from block by block
            let place = |row: usize, k: usize| {
                let (dof, first) = (row / side, by_blocks.row_starts[row / side] as usize);
                assert_eq!(
                    by_blocks.columns[first + k / side] as usize,
                    pattern.columns[own(row, k)] as usize / side
                );
                ((first + k / side) * side + row - dof * side) * side + k % side
            };
            let rows = (0..n * side).flat_map(|row| {
                let width = (pattern.row_starts[row + 1] - pattern.row_starts[row]) as usize;
                (0..width).map(move |k| (row, k))
            });
            let scalars: Vec<f64> = rows.map(|(row, k)| entries[place(row, k)]).collect();

            let whole = CsrOperator::new(&*device, &pattern).unwrap();
            let blocked = BlockCsrOperator::new(&*device, &by_blocks).unwrap();
            upload_values(&*device, whole.values(), &scalars).unwrap();
            upload_values(&*device, blocked.values(), &entries).unwrap();
            let from = buffer_of(&*device, &x).unwrap();
            let product = |operator: &dyn Operator| -> Vec<f64> {
                let to = device.allocate(8 * x.len() as u64).unwrap();
                let mut queue = Queue::new();
                operator.apply(&from, &to, &mut queue);
                queue.run(&*device).unwrap();
                download_values(&*device, &to).unwrap()
            };
            let copy = BlocksOfRows::new(&*device, &pattern).unwrap();
            run(&*device, &[copy.take(&whole)]).unwrap();
            let copied: Vec<f64> = download_values(&*device, copy.blocks().values()).unwrap();
            assert_eq!(copied, entries, "n = {n}, side {side}, seed {seed}");
            let (found, expected) = (product(&blocked), product(&whole));
            // the same terms in the same order, contracted or not
            let close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-14 * 32.0;
            assert!(found.iter().zip(&expected).all(close), "n = {n}, side {side}, seed {seed}");
        }
        let oblong = BlockPattern { extents: [2, 3], row_starts: vec![0, 1], columns: vec![0] };
        let error = BlockCsrOperator::new(&*device, &oblong).err().unwrap();
        assert!(matches!(error, SolveError::Length { found: 3, needed: 2, .. }), "{error}");
    }
}
