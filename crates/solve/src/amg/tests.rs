//! Cycles compared with dense ones.

use super::sliced::{Layout, Update};
use super::*;
use crate::texts::{compiled, text};
use crate::{BlockCsrOperator, BlocksOfRows, Call, CsrOperator, run};
use kingpost_fem::sparse::CsrPattern;
use kingpost_runtime::{Origin, buffer_of, download_values, open, upload_values};
use kingpost_sample::{Random, of_run, seed};
use nalgebra::{DMatrix, DVector, DVectorView};

/// Steps of Chebyshev's iteration before and after the coarser level.
const STEPS: usize = 2;

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
    fn on(&self, device: &dyn Device) -> CsrOperator {
        let matrix = CsrOperator::of_rows(device, &self.row_starts, &self.columns).unwrap();
        upload_values(device, matrix.values(), &self.values).unwrap();
        matrix
    }

    fn dense(&self) -> DMatrix<f64> {
        let n = self.row_starts.len() - 1;
        let mut dense = DMatrix::zeros(n, n);
        for row in 0..n {
            for k in self.row_starts[row] as usize..self.row_starts[row + 1] as usize {
                dense[(row, self.columns[k] as usize)] = self.values[k];
            }
        }
        dense
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
/// recurrence; the diagonal may be that of another matrix.
fn smoothed(
    (a, diagonal): (&DMatrix<f64>, &DVector<f64>),
    spectrum: Spectrum,
    b: &DVector<f64>,
    mut x: DVector<f64>,
) -> DVector<f64> {
    let (middle, half) =
        ((spectrum.largest + spectrum.least) / 2.0, (spectrum.largest - spectrum.least) / 2.0);
    for k in 0..STEPS {
        let angle = (2 * k + 1) as f64 * std::f64::consts::PI / (2 * STEPS) as f64;
        let root = middle + half * angle.cos();
        let r = b - a * &x;
        x += DVector::from_fn(x.len(), |i, _| r[i] / (root * diagonal[i]));
    }
    x
}

/// A cycle of a hierarchy of `of` that smooths `a`.
fn cycle(level: &Level, p: &DMatrix<f64>, [of, a]: [&DMatrix<f64>; 2], b: &DVector<f64>) -> DVector<f64> {
    let (spectrum, matrix) = (level.matrices.spectrum, (a, &of.diagonal()));
    let x = smoothed(matrix, spectrum, b, DVector::zeros(b.len()));
    let right = p.transpose() * (b - a * &x);
    let x = &x + p * (p.transpose() * of * p).lu().solve(&right).unwrap();
    smoothed(matrix, spectrum, b, x)
}

fn applied(
    (device, hierarchy): (&dyn Device, &Amg),
    operator: &dyn Operator,
    v: &DVector<f64>,
) -> DVector<f64> {
    let preconditioner = AmgPreconditioner { hierarchy, operator };
    let from = buffer_of(device, v.as_slice()).unwrap();
    let to = device.allocate(8 * v.len() as u64).unwrap();
    let mut queue = Queue::new();
    preconditioner.apply(&from, &to, &mut queue);
    queue.run(device).unwrap();
    DVector::from_vec(download_values::<f64>(device, &to).unwrap())
}

/// The product with each column of a matrix.
fn times(device: &dyn Device, operator: &BlockCsrOperator, x: &DMatrix<f64>) -> DMatrix<f64> {
    let rows = operator.size_of_both()[1];
    let column = |x: DVectorView<'_, f64>| {
        let (x, y) = (buffer_of(device, x.as_slice()).unwrap(), device.allocate(8 * rows as u64).unwrap());
        device.fill(&y, 0xFF).unwrap();
        run(device, &[operator.times(&x, &y)]).unwrap();
        download_values::<f64>(device, &y).unwrap()
    };
    DMatrix::from_vec(rows, x.ncols(), x.column_iter().flat_map(column).collect())
}

/// All entries of a matrix of blocks.
fn dense_of(device: &dyn Device, matrix: &BlockCsrOperator) -> DMatrix<f64> {
    let columns = matrix.size_of_both()[0];
    times(device, matrix, &DMatrix::identity(columns, columns))
}

#[test]
fn a_cycle_of_two_levels_is_the_dense_one() {
    let seed = seed();
    let side = 27;
    let (matrix, fixed) = difference(side);
    let n = side * side;
    let scalar = Unknowns::of_components(1);
    let (a, other) = (matrix.dense(), matrix.stiffened());
    let dense_other = other.dense();
    let (b, c) = (random(n, seed), random(n, seed.wrapping_add(7)));
    for name in of_run(["c", "opencl"], &[0]) {
        let device = &*open(name).unwrap();
        // of another matrix first, whose numbers are overwritten
        let (first, second) = (other.on(device), matrix.on(device));
        let hierarchy = Amg::new(device, &first.block_rows().unwrap(), &scalar, None).unwrap();
        // and smoothed with the numbers of another one
        hierarchy.take(device, &second.block_rows().unwrap()).unwrap();
        let expected = cycle(
            &hierarchy.levels[0],
            &dense_of(device, &hierarchy.levels[0].matrices.interpolation),
            [&dense_other, &a],
            &b,
        );
        let far = (applied((device, &hierarchy), &second, &b) - &expected).amax();
        assert!(far <= 1e-11 * expected.amax(), "{name}, seed {seed}: {far:e}");

        let hierarchy = hierarchy.renew(device, &second.block_rows().unwrap(), None).unwrap().unwrap();
        let [level] = &hierarchy.levels[..] else { unreachable!("{} levels", hierarchy.levels.len()) };
        let p = dense_of(device, &level.matrices.interpolation);
        assert_eq!(hierarchy.size().unknowns, [n, p.ncols()]);
        assert_eq!(dense_of(device, &level.matrices.restriction), p.transpose(), "{name}");
        assert!(p.ncols() < n / 4 && p.ncols() > n / 20, "{} of {n}", p.ncols());
        // rows without a prescribed neighbour or a boundary keep constants
        let ones = p.transpose() * DVector::from_element(n, 1.0);
        let kept = &p * (p.transpose() * &p).cholesky().unwrap().solve(&ones);
        assert!((kept[13 * side + 13] - 1.0).abs() < 1e-2, "{}", kept[13 * side + 13]);
        for row in fixed {
            assert!(p.row(row).iter().all(|entry| *entry == 0.0));
        }
        let coarse = p.transpose() * &a * &p;
        // sums of some hundred terms
        assert!(
            (dense_of(device, &level.matrices.coarse) - &coarse).amax() < 1e-12 * coarse.amax(),
            "{name}"
        );

        let expected = cycle(level, &p, [&a, &a], &b);
        let applied = |v: &DVector<f64>| applied((device, &hierarchy), &second, v);
        let found = applied(&b);
        let far = (&found - &expected).amax();
        assert!(far <= 1e-11 * expected.amax(), "{name}, seed {seed}: {far:e}");
        let (left, right) = (found.dot(&c), b.dot(&applied(&c)));
        assert!((left - right).abs() <= 1e-11 * found.norm() * c.norm(), "{name}, seed {seed}");
        assert!(found.dot(&b) > 0.0);
    }
}

/// Springs between neighbours of a cube of points, which rigid motions do not strain, on weak ones to the ground. The
/// first point is prescribed.
fn springs(side: usize) -> (CsrPattern, Scalars, Unknowns) {
    let n = side.pow(3);
    let point = |node: usize| [node / side / side, node / side % side, node % side].map(|k| k as f64);
    let between = |a: usize, b: usize| DVector::from_fn(3, |axis, _| point(a)[axis] - point(b)[axis]);
    let neighbours = |a: usize| {
        let (near, between) = (move |k: usize| k.saturating_sub(1)..side.min(k + 2), &between);
        let columns =
            near(a / side / side).flat_map(move |i| near(a / side % side).map(move |j| i * side + j));
        let all = columns.flat_map(move |column| near(a % side).map(move |k| column * side + k));
        all.filter(move |b| between(a, *b).norm_squared() <= 2.0)
    };
    let (mut starts, mut columns) = (vec![0], Vec::new());
    for a in 0..n {
        columns.extend(neighbours(a).map(|b| b as i32));
        starts.push(columns.len() as i32);
    }
    let pattern = CsrPattern::of_block_rows(starts, columns, [3, 3]);
    let stiffness = |a: usize, b: usize| -> DMatrix<f64> {
        let along = between(a, b);
        &along * along.transpose() / along.norm_squared()
    };
    let block = |a: usize, b: usize| -> DMatrix<f64> {
        match (a, b) {
            (0, 0) => DMatrix::identity(3, 3),
            (0, _) | (_, 0) => DMatrix::zeros(3, 3),
            (a, b) if a != b => -stiffness(a, b),
            (a, _) => {
                let all = neighbours(a).filter(|other| *other != a).map(|other| stiffness(a, other));
                all.fold(DMatrix::identity(3, 3) * 1e-3, |sum, one| sum + one)
            }
        }
    };
    let (row_starts, columns) = (pattern.row_starts.clone(), pattern.columns.clone());
    let mut values = Vec::new();
    for a in 0..n {
        let blocks: Vec<DMatrix<f64>> = neighbours(a).map(|b| block(a, b)).collect();
        for row in 0..3 {
            values.extend(blocks.iter().flat_map(|block| block.row(row).iter().copied().collect::<Vec<_>>()));
        }
    }
    let points = (0..n).flat_map(point).collect();
    (pattern, Scalars { row_starts, columns, values }, Unknowns { components: 3, points, dim: 3 })
}

/// Vectors that stand side by side in a buffer.
fn vectors_of(device: &dyn Device, vectors: &Buffer, count: usize) -> DMatrix<f64> {
    let values: Vec<f64> = download_values(device, vectors).unwrap();
    DMatrix::from_row_slice(values.len() / count, count, &values)
}

/// The sets of nodes that a loop over all nodes finds, from the largest key on.
fn greedy_sets(strong: &[Vec<usize>]) -> Vec<i32> {
    let n = strong.len();
    let key = |node: usize| (0..5).fold(1_u64, |power, _| power * (node as u64 + 1) % 2_147_483_647);
    let mut nodes: Vec<usize> = (0..n).filter(|node| !strong[*node].is_empty()).collect();
    nodes.sort_by_key(|node| std::cmp::Reverse(key(*node)));
    let (mut is_taken, mut roots) = (vec![false; n], Vec::new());
    for node in nodes {
        if !is_taken[node] && strong[node].iter().all(|other| !is_taken[*other]) {
            is_taken[node] = true;
            strong[node].iter().for_each(|other| is_taken[*other] = true);
            roots.push(node);
        }
    }
    roots.sort_unstable();
    let mut of = vec![-1; n];
    for (set, root) in (0..).zip(&roots) {
        of[*root] = set;
        strong[*root].iter().for_each(|other| of[*other] = set);
    }
    let whole = of.clone();
    for node in (0..n).filter(|node| whole[*node] < 0) {
        of[node] = strong[node].iter().map(|other| whole[*other]).find(|set| *set >= 0).unwrap_or(-1);
    }
    of
}

#[test]
fn sets_of_nodes_are_those_of_a_loop() {
    let mut random = Random::new();
    let n = 3000;
    // a loose graph, whose last nodes have no neighbour
    let mut strong = vec![Vec::new(); n];
    for _ in 0..4 * n {
        let [a, b] = [0, 0].map(|_| random.int(0, n as i64 - 20) as usize);
        if a != b && !strong[a].contains(&b) {
            strong[a].push(b);
            strong[b].push(a);
        }
    }
    let mut all = Scalars { row_starts: vec![0], columns: Vec::new(), values: Vec::new() };
    for (row, own) in strong.iter_mut().enumerate() {
        own.sort_unstable();
        let at = own.partition_point(|other| *other < row);
        all.columns.extend(own.iter().map(|other| *other as i32));
        all.columns.insert(all.columns.len() - own.len() + at, row as i32);
        all.row_starts.push(all.columns.len() as i32);
    }
    let kinds: Vec<i32> = (0..n)
        .flat_map(|row| {
            let own = all.row_starts[row] as usize..all.row_starts[row + 1] as usize;
            all.columns[own].iter().map(move |column| 2 - i32::from(*column as usize == row))
        })
        .collect();
    all.values = vec![1.0; kinds.len()];
    let expected = greedy_sets(&strong);
    for name in ["c", "opencl"] {
        let device = &*open(name).unwrap();
        let (matrix, kinds) = (all.on(device), buffer_of(device, &kinds).unwrap());
        let structures = StructureKernels::new(device).unwrap();
        let sets = structures.aggregates(device, &matrix.block_rows().unwrap(), &kinds).unwrap();
        let list = |buffer: &Buffer| download_values::<i32>(device, buffer).unwrap();
        let of = list(&sets.of);
        assert_eq!(of, expected, "{name}, seed {}", random.seed);
        let (starts, members, places) = (list(&sets.starts), list(&sets.members), list(&sets.places));
        assert_eq!(starts.len(), sets.count + 1);
        for (set, bounds) in (0..).zip(starts.windows(2)) {
            let own = &members[bounds[0] as usize..bounds[1] as usize];
            assert!(!own.is_empty() && own.is_sorted() && own.iter().all(|node| of[*node as usize] == set));
        }
        assert_eq!(starts[sets.count] as usize, n);
        assert!((0..).zip(&members).all(|(place, node)| places[*node as usize] == place));
    }
}

#[test]
fn levels_of_displacements_are_galerkin_s() {
    let (pattern, matrix, unknowns) = springs(11);
    let n = matrix.row_starts.len() - 1;
    let mut random = Random::new();
    for name in of_run(["c", "opencl"], &[0]) {
        let device = &*open(name).unwrap();
        let (rows, blocks) = (matrix.on(device), BlocksOfRows::new(device, &pattern).unwrap());
        run(device, &[blocks.take(&rows)]).unwrap();
        let hierarchy = Amg::new(device, &blocks.blocks().block_rows().unwrap(), &unknowns, None).unwrap();
        assert_eq!(hierarchy.levels.len(), 2, "{:?}", hierarchy.size());
        let mut near = vectors_of(device, &hierarchy.near_kernel.of(device, None).unwrap(), 6);
        near.rows_mut(0, 3).fill(0.0); // of no aggregate
        let mut a = blocks.blocks();
        for (depth, level) in hierarchy.levels.iter().enumerate() {
            let omega = 4.0 / (3.0 * level.matrices.spectrum.largest);
            let inverse = vectors_of(device, &level.matrices.inverse, 1);
            // the near kernel is that of the coarse level, a step of Jacobi's method aside
            let scaled = times(device, a, &near);
            let mut expected =
                DMatrix::from_fn(near.nrows(), 6, |r, c| near[(r, c)] - omega * inverse[r] * scaled[(r, c)]);
            if depth == 0 {
                expected.rows_mut(0, 3).fill(0.0);
            }
            let coarse_near = vectors_of(device, &level.matrices.near, 6);
            let far = (times(device, &level.matrices.interpolation, &coarse_near) - &expected).amax();
            assert!(far <= 1e-12 * near.amax(), "{name}, level {depth}: {far:e}");
            let below = coarse_near.nrows();
            let x = DMatrix::from_vec(below, 3, random.reals(3 * below));
            let image = times(device, a, &times(device, &level.matrices.interpolation, &x));
            let coarse = times(device, &level.matrices.restriction, &image);
            let far = (times(device, &level.matrices.coarse, &x) - &coarse).amax();
            assert!(far <= 1e-12 * coarse.amax(), "{name}, level {depth}, seed {}: {far:e}", random.seed);
            let y = DMatrix::from_vec(near.nrows(), 1, random.reals(near.nrows()));
            let (left, right) = (
                times(device, &level.matrices.restriction, &y).dot(&x.column(0)),
                times(device, &level.matrices.interpolation, &x).column(0).dot(&y.column(0)),
            );
            assert!((left - right).abs() <= 1e-12 * y.norm() * x.norm(), "{name}, level {depth}");
            (a, near) = (&level.matrices.coarse, coarse_near);
        }
        assert!(hierarchy.size().unknowns[1] < n / 5, "{:?}", hierarchy.size());
    }
}

#[test]
fn entries_of_any_rows_are_taken_into_blocks() {
    let (pattern, whole, _) = springs(4);
    let scalars = CsrPattern::of_block_rows(whole.row_starts.clone(), whole.columns.clone(), [1, 1]);
    let (loose, _) = difference(8);
    let of_loose = CsrPattern::of_block_rows(loose.row_starts.clone(), loose.columns.clone(), [1, 1]);
    for name in ["c", "opencl"] {
        let device = &*open(name).unwrap();
        let taken = |blocks: &BlocksOfRows, matrix: &Scalars| {
            let matrix = matrix.on(device);
            run(device, &[blocks.take(&matrix)]).unwrap();
            dense_of(device, blocks.blocks())
        };
        let of_blocks = BlocksOfRows::new(device, &pattern).unwrap();
        let of_entries = BlocksOfRows::of_entries(device, &scalars, 3).unwrap().unwrap();
        assert_eq!(taken(&of_blocks, &whole), whole.dense(), "{name}");
        assert_eq!(taken(&of_entries, &whole), whole.dense(), "{name}");
        // blocks that rows have in part alone
        let of_entries = BlocksOfRows::of_entries(device, &of_loose, 2).unwrap().unwrap();
        assert_eq!(taken(&of_entries, &loose), loose.dense(), "{name}");
        assert!(BlocksOfRows::of_entries(device, &of_loose, 3).unwrap().is_none());
    }
}

#[test]
fn bases_are_orthonormal_and_hold_the_near_kernel() {
    let mut random = Random::new();
    let (side, width, n) = (3, 6, 12);
    // a node alone has three rows, and two have one motion that turns them about themselves
    let (starts, members) = ([0, 1, 3, 9], [4, 0, 11, 1, 2, 3, 5, 6, 7]);
    let mut near = DMatrix::from_row_slice(side * n, width, &random.reals(side * n * width));
    let dependent = near.column(0) - near.column(1) * 2.0;
    near.set_column(4, &dependent);
    for name in ["c", "opencl"] {
        let device = &*open(name).unwrap();
        let text = text!("aggregation/orthonormal_bases").replace("SIDE", "3").replace("WIDTH", "6");
        let kernel = compiled(device, &text).unwrap();
        let lists = [&starts[..], &members].map(|list| buffer_of(device, list).unwrap());
        let from = buffer_of(device, near.transpose().as_slice()).unwrap();
        let numbers = |n: usize| {
            let buffer = device.allocate(8 * n as u64).unwrap();
            device.fill(&buffer, 0xFF).unwrap();
            buffer
        };
        let [basis, coarse] = [9 * side * width, 3 * width * width].map(numbers);
        let sizes = [("n", n), ("n_aggregates", 3), ("n_members", 9)];
        let arrays = [("starts", &lists[0]), ("members", &lists[1]), ("near", &from)];
        let arrays = [&arrays[..], &[("basis", &basis), ("coarse", &coarse)]].concat();
        run(device, &[Call::of(&kernel, &sizes, &arrays).with("dependent", 1e-16)]).unwrap();
        let (basis, coarse) = (vectors_of(device, &basis, width), vectors_of(device, &coarse, width));
        for (set, rank) in [3, 5, 5].into_iter().enumerate() {
            let own = starts[set] as usize..starts[set + 1] as usize;
            let q = basis.rows(side * own.start, side * own.len());
            let gram = q.transpose() * q;
            let length = |k: usize| if gram[(k, k)] > 0.5 { 1.0 } else { 0.0 };
            let unit = DMatrix::from_fn(width, width, |r, c| if r == c { length(r) } else { 0.0 });
            assert_eq!(unit.trace(), f64::from(rank), "{name}, seed {}: {gram}", random.seed);
            // sums of at most 18 products of numbers of at most one
            assert!((&gram - unit).amax() <= 1e-14, "{name}, seed {}: {gram}", random.seed);
            let rows: Vec<usize> = members[own]
                .iter()
                .flat_map(|node| (0..side).map(move |r| side * *node as usize + r))
                .collect();
            let far = (q * coarse.rows(width * set, width) - near.select_rows(&rows)).amax();
            assert!(far <= 1e-14, "{name}, seed {}: {far:e}", random.seed);
        }
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
    let device = &*open("c").unwrap();
    let [own, whole, stiff] = [&loose, &matrix, &loose.stiffened()].map(|matrix| matrix.on(device));
    let made = || Amg::new(device, &own.block_rows().unwrap(), &scalar, None).unwrap();
    assert!(made().renew(device, &whole.block_rows().unwrap(), None).unwrap().is_none());
    assert!(made().renew(device, &stiff.block_rows().unwrap(), None).unwrap().is_some());
    let smaller = difference(26).0.on(device);
    let error = made().renew(device, &smaller.block_rows().unwrap(), None).err().unwrap();
    assert_eq!(error.to_string(), "`matrix` has 676 entries, needed 729");
    let unknowns = Unknowns { components: 2, points: vec![0.0; 10], dim: 2 };
    let error = Amg::new(device, &smaller.block_rows().unwrap(), &unknowns, None).err().unwrap();
    assert_eq!(error.to_string(), "`points` has 10 entries, needed 676");
}

#[test]
fn a_hierarchy_that_does_not_fit_is_refused() {
    let size = HierarchySize { unknowns: vec![729, 81], operator_complexity: 1.2, bytes: 1000 };
    size.fits(20, (1020, "card")).unwrap();
    assert_eq!(
        size.fits(21, (1020, "card")).unwrap_err().to_string(),
        "the hierarchy of 729 unknowns would take 1021 bytes, and `card` has 1020; use fewer cells or a lower degree"
    );
}

#[test]
fn rigid_motions_are_those_of_moved_points() {
    let points = vec![0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 2.0, 0.5];
    let moved: Vec<f64> = (0..9).map(|k| 0.1 * k as f64).collect();
    let device = &*open("c").unwrap();
    let near = |unknowns: &Unknowns, u: &[f64]| {
        let kernel = NearKernel::new(device, unknowns, u.len()).unwrap();
        let found = kernel.of(device, Some(&buffer_of(device, u).unwrap())).unwrap();
        vectors_of(device, &found, kernel.vectors)
    };
    let motions = near(&Unknowns { components: 3, points: points.clone(), dim: 3 }, &moved);
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
    assert_eq!(motions.clone().svd(false, false).rank(1e-10), 6);
    let plane = Unknowns { components: 2, points: vec![0.0, 1.0, 2.0, 0.5], dim: 2 };
    let motions = near(&plane, &[0.0; 4]);
    assert_eq!((motions.ncols(), motions.clone().svd(false, false).rank(1e-10)), (3, 3));
    let change = 2.0 * (motions[(2, 2)] - motions[(0, 2)]) - 0.5 * (motions[(3, 2)] - motions[(1, 2)]);
    assert!(change.abs() < 1e-15, "{change:e}");
    assert_eq!(
        near(&Unknowns::of_components(2), &[0.0; 4]),
        DMatrix::from_row_slice(4, 2, &[1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0])
    );
    let temperature = Unknowns { components: 1, points: vec![0.0; 6], dim: 3 };
    assert_eq!(near(&temperature, &[1.0; 2]), DMatrix::from_element(2, 1, 1.0));
}

#[test]
fn prepared_kernels_are_known_to_a_hierarchy() {
    let cases = [
        ("c", Unknowns { components: 3, points: Vec::new(), dim: 3 }),
        ("opencl", Unknowns::of_components(1)),
    ];
    for (name, unknowns) in of_run(cases, &[0]) {
        let device = &*open(name).unwrap();
        let (first, width) = NearKernel::compiled(device, &unknowns).unwrap();
        assert_ne!(first.origin(), Origin::Memory);
        Amg::prepare(device, &unknowns, CycleNumbers::F64).unwrap();
        let layout = Layout::of(device, 4, CycleNumbers::F64);
        let add = layout.update(device, [unknowns.components, width], Update::Add).unwrap();
        assert_eq!(add.origin(), Origin::Memory);
        for text in [
            text!("largest_of_blocks"),
            text!("aggregation/choose_roots"),
            text!("fill_columns"),
            text!("dense_product"),
        ] {
            assert_eq!(compiled(device, text).unwrap().origin(), Origin::Memory, "{text}");
        }
    }
}
