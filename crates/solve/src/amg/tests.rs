//! Cycles compared with dense ones.

use super::*;
use crate::Queue;
use kingpost_runtime::{download_values, open};
use kingpost_sample::seed;
use nalgebra::{DMatrix, DVector};

/// The second difference on a square of `side` inner points a side, with two prescribed unknowns,
/// whose rows and columns are those of the identity.
fn difference(side: usize) -> (Scalars, [usize; 2]) {
    let (n, fixed) = (side * side, [3, side + 7]);
    let mut scalars = Scalars { row_starts: vec![0], columns: Vec::new(), values: Vec::new() };
    for (i, j) in (0..n).map(|row| (row / side, row % side)) {
        let row = i * side + j;
        let beside = [(i.wrapping_sub(1), j), (i, j.wrapping_sub(1)), (i, j), (i, j + 1), (i + 1, j)];
        for (k, l) in beside.into_iter().filter(|(k, l)| *k < side && *l < side) {
            let column = k * side + l;
            let is_fixed = fixed.contains(&row) || fixed.contains(&column);
            scalars.columns.push(column as i32);
            scalars.values.push(match (row == column, is_fixed) {
                (true, true) => 1.0,
                (true, false) => 4.0,
                (false, true) => 0.0,
                (false, false) => -1.0,
            });
        }
        scalars.row_starts.push(scalars.columns.len() as i32);
    }
    (scalars, fixed)
}

#[derive(Clone)]
struct Scalars {
    row_starts: Vec<i32>,
    columns: Vec<i32>,
    values: Vec<f64>,
}

impl Scalars {
    fn host(&self) -> HostMatrix<'_> {
        HostMatrix { row_starts: &self.row_starts, columns: &self.columns, values: &self.values }
    }

    fn blocks(&self) -> BlockMatrix {
        let nodes = Nodes::uniform(self.row_starts.len() - 1, 1);
        self.host().blocks(Arc::new(Pattern::of_scalars(&nodes, &self.row_starts, &self.columns)))
    }

    /// The same connections, each with a factor of its own, as symmetric and as positive.
    fn stiffened(&self) -> Self {
        let mut other = self.clone();
        let factor = |row: usize, column: usize| 1.0 + 0.1 * ((row + column) % 5) as f64;
        for row in 0..self.row_starts.len() - 1 {
            for k in self.row_starts[row] as usize..self.row_starts[row + 1] as usize {
                let column = self.columns[k] as usize;
                let by = if row == column { 1.4 } else { factor(row, column) };
                other.values[k] *= by;
            }
        }
        other
    }
}

fn random(n: usize, seed: u64) -> DVector<f64> {
    let mut state = seed | 1;
    DVector::from_fn(n, |_, _| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    })
}

/// Steps by the roots of the Chebyshev polynomial of degree two on the interval, instead of its
/// recurrence.
fn smoothed(a: &DMatrix<f64>, spectrum: Spectrum, b: &DVector<f64>, mut x: DVector<f64>) -> DVector<f64> {
    let (middle, half) =
        ((spectrum.largest + spectrum.least) / 2.0, (spectrum.largest - spectrum.least) / 2.0);
    for k in 0..STEPS {
        let angle = (2 * k + 1) as f64 * std::f64::consts::PI / (2 * STEPS) as f64;
        let root = middle + half * angle.cos();
        let r = b - a * &x;
        x += DVector::from_fn(x.len(), |i, _| r[i] / (root * a[(i, i)]));
    }
    x
}

#[test]
fn a_cycle_of_two_levels_is_the_dense_one() {
    let seed = seed();
    let side = 27;
    let (matrix, fixed) = difference(side);
    let n = side * side;
    let scalar = Unknowns::of_components(1);
    let levels = Levels::new(matrix.blocks(), scalar.near_kernel(n, &[]), RATIO).unwrap();
    let [level] = &levels.levels[..] else { unreachable!("{} levels", levels.levels.len()) };
    let (a, p) = (matrix.blocks().dense(), level.interpolation.dense());
    assert_eq!(level.restriction.dense(), p.transpose());
    assert!(p.ncols() < n / 4 && p.ncols() > n / 20, "{} of {n}", p.ncols());
    // rows without a prescribed neighbour or a boundary keep constants
    let ones = p.transpose() * DVector::from_element(n, 1.0);
    let kept = &p * (p.transpose() * &p).cholesky().unwrap().solve(&ones);
    assert!((kept[13 * side + 13] - 1.0).abs() < 1e-2, "{}", kept[13 * side + 13]);
    for row in fixed {
        assert!(p.row(row).iter().all(|entry| *entry == 0.0));
    }
    let coarse = p.transpose() * &a * &p;
    let Coarsest::Inverse(inverse) = &levels.coarsest else { unreachable!("a small level is inverted") };
    let identity = &coarse * inverse;
    assert!((identity - DMatrix::identity(p.ncols(), p.ncols())).amax() < 1e-10);

    let cycle = |b: &DVector<f64>| {
        let x = smoothed(&a, level.spectrum, b, DVector::zeros(n));
        let right = p.transpose() * (b - &a * &x);
        let x = &x + &p * coarse.clone().lu().solve(&right).unwrap();
        smoothed(&a, level.spectrum, b, x)
    };
    let (b, c) = (random(n, seed), random(n, seed.wrapping_add(7)));
    let expected = cycle(&b);
    let other = matrix.stiffened();
    for name in ["c", "opencl"] {
        let device = open(name).unwrap();
        // of another matrix first, whose numbers are overwritten
        let mut hierarchy = Amg::new(&*device, &other.host(), &scalar, &[]).unwrap();
        assert_eq!(hierarchy.size().unknowns, [n, p.ncols()]);
        assert!(hierarchy.renew(&*device, &matrix.host(), &scalar, &[]).unwrap());
        let operator = upload(&*device, &matrix.blocks()).unwrap();
        let cycle = AmgPreconditioner { hierarchy: &hierarchy, operator: &operator };
        let applied = |v: &DVector<f64>| {
            let from = buffer_of(&*device, v.as_slice()).unwrap();
            let to = device.allocate(8 * n as u64).unwrap();
            let mut queue = Queue::new();
            cycle.apply(&from, &to, &mut queue);
            queue.run(&*device).unwrap();
            DVector::from_vec(download_values::<f64>(&*device, &to).unwrap())
        };
        let found = applied(&b);
        // sums of some hundred terms
        let far = (&found - &expected).amax();
        assert!(far <= 1e-11 * expected.amax(), "{name}, seed {seed}: {far:e}");
        let (left, right) = (found.dot(&c), b.dot(&applied(&c)));
        assert!((left - right).abs() <= 1e-11 * found.norm() * c.norm(), "{name}, seed {seed}");
        assert!(found.dot(&b) > 0.0);
    }
}

#[test]
fn connections_that_were_not_there_take_another_hierarchy() {
    let (matrix, _) = difference(27);
    let scalar = Unknowns::of_components(1);
    let mut loose = matrix.clone();
    for row in 0..27 * 27 {
        for k in matrix.row_starts[row] as usize..matrix.row_starts[row + 1] as usize {
            // half of the square is apart from the other half
            if (row < 13 * 27) != ((matrix.columns[k] as usize) < 13 * 27) {
                loose.values[k] = 0.0;
            }
        }
    }
    let device = open("c").unwrap();
    let mut hierarchy = Amg::new(&*device, &loose.host(), &scalar, &[]).unwrap();
    assert!(!hierarchy.renew(&*device, &matrix.host(), &scalar, &[]).unwrap());
    assert!(hierarchy.renew(&*device, &loose.stiffened().host(), &scalar, &[]).unwrap());
    let (smaller, _) = difference(26);
    let error = hierarchy.renew(&*device, &smaller.host(), &scalar, &[]).unwrap_err();
    assert_eq!(error.to_string(), "`matrix` has 676 entries, needed 729");
}

#[test]
fn a_hierarchy_that_does_not_fit_is_refused() {
    let (matrix, _) = difference(27);
    let near_kernel = Unknowns::of_components(1).near_kernel(27 * 27, &[]);
    let levels = Levels::new(matrix.blocks(), near_kernel, RATIO).unwrap();
    let size = HierarchySize::of(27 * 27, matrix.values.len(), &levels);
    let [fine, coarse] = size.unknowns[..] else { unreachable!("{size:?}") };
    let entries = levels.levels[0].interpolation.pattern().numbers();
    // interpolation and restriction, the inverse, six vectors above and two below
    let bytes = 24 * entries + 4 * (fine + coarse + 2) + 8 * (coarse * coarse + 6 * fine + 2 * coarse);
    assert_eq!(size.bytes, bytes as u64);
    size.fits(size.bytes, "card").unwrap();
    assert_eq!(
        size.fits(size.bytes - 1, "card").unwrap_err().to_string(),
        format!(
            "the hierarchy of 729 unknowns would take {bytes} bytes, and `card` has {}; use fewer cells or a lower degree",
            bytes - 1
        )
    );
}

#[test]
fn rigid_motions_are_those_of_moved_points() {
    let points = vec![0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 2.0, 0.5];
    let space = Unknowns { components: 3, points: points.clone(), dim: 3 };
    let moved: Vec<f64> = (0..9).map(|k| 0.1 * k as f64).collect();
    let motions = space.near_kernel(9, &moved);
    assert_eq!(motions.ncols(), 6);
    // to first order a rigid motion changes no distance
    let at = |point: usize, axis: usize| points[3 * point + axis] + moved[3 * point + axis];
    for motion in motions.column_iter() {
        for (a, b) in [(0, 1), (1, 2), (0, 2)] {
            let change: f64 = (0..3)
                .map(|axis| (at(a, axis) - at(b, axis)) * (motion[3 * a + axis] - motion[3 * b + axis]))
                .sum();
            assert!(change.abs() < 1e-14, "{change:e}");
        }
    }
    let plane = Unknowns { components: 2, points: vec![0.0, 1.0, 2.0, 0.5], dim: 2 };
    assert_eq!(plane.near_kernel(4, &[]).ncols(), 3);
    assert_eq!(Unknowns::of_components(2).near_kernel(4, &[]).ncols(), 2);
    let temperature = Unknowns { components: 1, points: vec![0.0; 6], dim: 3 };
    assert_eq!(temperature.near_kernel(2, &[1.0; 2]).ncols(), 1);
}
