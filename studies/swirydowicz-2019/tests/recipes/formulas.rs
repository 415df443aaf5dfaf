//! Operations, bytes and barriers of the kernels against closed formulas, and the rooflines against
//! what the publication reports.
#![allow(clippy::unwrap_used, clippy::panic)] // how a test fails

use kingpost::analysis::stats::{AccessKind, Statistics, statistics};
use kingpost::codegen::{Options, Target, generate};
use kingpost::ir::Kernel;
use std::collections::BTreeMap;
use study_swirydowicz_2019::model::{
    Traffic, operations, shared_bandwidth, shared_roofline, shared_traffic, streaming_roofline, traffic,
};
use study_swirydowicz_2019::problem::{MAX_DEGREE, Precision, Problem, Sizes};
use study_swirydowicz_2019::recipes::{RecipeError, Threads, Tuned};

const PROBLEMS: [Problem; 4] = [Problem::Bp10, Problem::Bp35, Problem::Bp30, Problem::Bp35Vertices];

fn counted(kernel: &Kernel, sizes: Sizes) -> Statistics {
    let mut params = BTreeMap::from([("ne".to_owned(), 1)]);
    let names = sizes.fixed().into_iter().map(|(name, value)| (name.to_owned(), value));
    params.extend(names.filter(|(name, _)| kernel.var(name).is_some()));
    statistics(kernel, &params).unwrap()
}

/// Bytes of fields and factors: distinct ones, or every access.
fn moved(stats: &Statistics, problem: Problem, distinct: bool) -> Traffic {
    let of_elements = match problem {
        Problem::Bp10 => ["u", "w", "y"],
        Problem::Bp35 | Problem::Bp30 => ["u", "g", "y"],
        Problem::Bp35Vertices => ["u", "X", "y"],
    };
    let bytes = |kind| -> u64 {
        let fields = of_elements.iter().filter_map(|name| stats.var(name));
        let of = |traffic: &kingpost::analysis::stats::Traffic| {
            8 * if distinct { traffic.footprint } else { traffic.accesses }
        };
        fields.map(|v| of(v.traffic(kind))).sum()
    };
    Traffic { read: bytes(AccessKind::Read), written: bytes(AccessKind::Write) }
}

/// The kernel, or none where it is several or a group is too small.
fn tuned(name: &str, degree: usize) -> Option<Kernel> {
    match name.parse::<Tuned>().unwrap().launches(degree) {
        Ok(launches) => match &launches[..] {
            [launch] => Some(launch.schedule.kernel().clone()),
            _ => None,
        },
        Err(RecipeError::TooManyWorkItems { .. } | RecipeError::OtherLines { .. }) => None,
        Err(e) => panic!("{e}"),
    }
}

#[test]
fn plain_kernels_have_the_operations_and_the_bytes_of_the_formulas() {
    for problem in PROBLEMS {
        for degree in 1..=MAX_DEGREE {
            let sizes = Sizes::double(problem, degree);
            let stats = counted(&sizes.plain().unwrap(), sizes);
            assert!(stats.exact());
            // `y` is accumulated in place where it is not a sum: its first read finds what was
            // written
            let found = moved(&stats, problem, true);
            assert_eq!((stats.flops(), found.written), (operations(sizes), traffic(sizes).written));
            let read_back = if problem == Problem::Bp35 { found.written } else { 0 };
            assert_eq!(found.read - read_back, traffic(sizes).read, "{problem} at degree {degree}");
        }
    }
}

#[test]
fn figures_at_degree_7() {
    let at = |problem| Sizes::double(problem, 7);
    assert_eq!(PROBLEMS.map(|p| operations(at(p))), [63_225, 58_368, 154_350, 115_072]);
    let bytes = PROBLEMS.map(|p| traffic(at(p)));
    assert_eq!(
        bytes.map(|t| (t.read, t.written)),
        [(9_928, 4_096), (32_768, 4_096), (44_920, 4_096), (4_288, 4_096)]
    );
    let single = PROBLEMS.map(|p| traffic(Sizes { precision: Precision::Single, ..at(p) }));
    assert_eq!(single.map(|t| 2 * t.total()), bytes.map(Traffic::total));
}

/// A step moves or reorders operations, and adds none, with two exceptions. What a column of
/// nodes shares is computed once a column where factors come from vertices: 42 operations there
/// instead of one time at each node. Kernels that differentiate along lines join the sums of three
/// directions: two additions at each point. Even–odd contractions save some.
fn has_the_operations_of_the_formula(kernel: Tuned, sizes: Sizes, counted: &Statistics) {
    if kernel.problem == Problem::Bp10 && kernel.by_instructions() {
        // six contractions of sixteen lines a plane, two blocks of eight by eight each; the sums
        // and differences of mirror images come on top
        let sums = counted.insns.iter().filter(|i| i.name.starts_with("r_l"));
        assert_eq!(sums.map(|i| i.flops).sum::<u64>(), 6 * 16 * 16 * 2 * (2 * 8 * 8), "{kernel}");
        return;
    }
    let n = sizes.nodes() as u64;
    let first_by_lines = match (kernel.problem, kernel.threads) {
        (Problem::Bp35, Threads::Planes) => 11,
        (Problem::Bp30, Threads::Planes) => 10,
        _ => u32::MAX,
    };
    let joined = if kernel.number >= first_by_lines { 2 * sizes.points().pow(3) as u64 } else { 0 };
    let by_columns = kernel.problem == Problem::Bp35Vertices && !kernel.by_instructions();
    let shared = match kernel.number {
        // polynomials: 132 operations a column, and 28 instead of 86 at each node
        8.. if by_columns => 58 * n.pow(3) - 132 * n.pow(2),
        _ if by_columns => 42 * (n.pow(3) - n.pow(2)),
        _ => 0,
    };
    let saved = if kernel.by_halves() { saved_by_halves(kernel, sizes) } else { 0 };
    assert_eq!(counted.flops() as i64 + saved, (operations(sizes) - shared + joined) as i64, "{kernel}");
}

/// Lines that a kernel contracts with `I` and `D`: how many, of how many values, to how many results.
fn lines(problem: Problem, sizes: Sizes) -> Vec<(u64, u64, u64, bool)> {
    let (n, m) = (sizes.nodes() as u64, sizes.points() as u64);
    let interpolated = [n * n, n * m, m * m].into_iter().flat_map(|c| [(c, n, m, true), (c, m, n, true)]);
    let derived = |n: u64| [(6 * n * n, n, n, false)].into_iter();
    match problem {
        Problem::Bp10 => interpolated.collect(),
        Problem::Bp35 | Problem::Bp35Vertices => derived(n).collect(),
        Problem::Bp30 => interpolated.chain(derived(m)).collect(),
    }
}

/// Entries of matrices that contractions by halves multiply by: the block of sums (and that of
/// differences) of opposite values, to sums for `I`, to differences for `D`.
fn entries_of_halves(problem: Problem, sizes: Sizes) -> u64 {
    let of = |(lines, n, m, even): (u64, u64, u64, bool)| {
        let (long, short) = (m.div_ceil(2), m / 2);
        let (to_sums, to_differences) = if even { (long, short) } else { (short, long) };
        lines * (n.div_ceil(2) * to_sums + n / 2 * to_differences)
    };
    lines(problem, sizes).into_iter().map(of).sum()
}

/// What contractions by halves save: products and sums, except for the sums and differences of values, of
/// which those with a middle are divided by how often it stands there, and for those of results, each
/// with two signs.
fn saved_by_halves(kernel: Tuned, sizes: Sizes) -> i64 {
    let all = lines(kernel.problem, sizes);
    let whole: u64 = all.iter().map(|(lines, n, m, _)| 2 * lines * n * m).sum();
    let of_line =
        |n: u64, m: u64| n.div_ceil(2) * if n.is_multiple_of(2) { 2 } else { 4 } + 6 * m.div_ceil(2);
    let added: u64 = all.iter().map(|(lines, n, m, _)| lines * of_line(*n, *m)).sum();
    // fluxes along t are summed before they join the others
    let joined = if kernel.problem == Problem::Bp10 { 0 } else { sizes.points().pow(3) as u64 };
    whole as i64 - (2 * entries_of_halves(kernel.problem, sizes) + added + joined) as i64
}

/// Even–odd contractions read about half of the entries of matrices: `ceil(n/2) ceil(m/2) + floor(n/2)
/// floor(m/2)` of `n m`, and of `D` half of them.
#[test]
fn halves_of_matrices_are_read() {
    for (name, matrices) in [("bp10.2d.12", &["I"][..]), ("bp35.2d.17", &["D"]), ("bp30.2d.13", &["I", "D"])]
    {
        // at degree 1 the derivative of a sum is zero, and its block is left out, too
        for degree in [2, 3, 5] {
            let kernel: Tuned = name.parse().unwrap();
            let sizes = Sizes::double(kernel.problem, degree);
            let tuned = tuned(name, degree).unwrap();
            let stats = counted(&tuned, sizes);
            let blocks = tuned
                .vars
                .values()
                .map(|v| &v.name)
                .filter(|v| matrices.iter().any(|m| v.starts_with(&format!("{m}_"))));
            let read: u64 = blocks.map(|v| stats.var(v).unwrap().reads.accesses).sum();
            assert_eq!(read, entries_of_halves(kernel.problem, sizes), "{name} at degree {degree}");
        }
    }
}

/// Every byte once, and the vertices of an element by the work-items of 8 coefficients.
fn least(sizes: Sizes) -> Traffic {
    let Traffic { read, written } = traffic(sizes);
    let again = if sizes.problem == Problem::Bp35Vertices { 7 * 24 * 8 } else { 0 };
    Traffic { read: read + again, written }
}

/// The first kernel of each sequence from which on global memory is touched as rarely as can be. BP3.0
/// with 3-D threads reads columns of `u` from global memory to the end, and so does a processor, which
/// has a cache.
const ONCE: [(&str, u32); 7] = [
    ("bp10.2d", 3),
    ("bp35.2d", 7),
    ("bp35.3d", 5),
    ("bp35.c", 2),
    ("bp30.2d", 2),
    ("bp30.3d", 10),
    ("bp35v.2d", 1),
];

#[test]
fn tuned_kernels_do_and_move_what_the_formulas_say() {
    for kernel in Tuned::all() {
        let name = kernel.to_string();
        let sizes = Sizes::double(kernel.problem, kernel.first_degree().max(2));
        let Some(tuned) = tuned(&name, sizes.degree) else { continue };
        let counted = counted(&tuned, sizes);
        has_the_operations_of_the_formula(kernel, sizes, &counted);
        let (_, first) = ONCE.into_iter().find(|(sequence, _)| name.starts_with(sequence)).unwrap();
        let once = moved(&counted, kernel.problem, false) == least(sizes);
        // those by instructions read factors beside the diagonal twice, or a value for the parts of
        // all of its mirror images, which compilers make once
        let twice = match kernel.problem {
            Problem::Bp35 => kernel.by_instructions(),
            Problem::Bp10 => kernel.number == 17,
            Problem::Bp30 | Problem::Bp35Vertices => false,
        };
        assert_eq!(once, kernel.number >= first && !twice, "{kernel}");
    }
}

/// Launches share the operations, and pass the field at points and what is projected through global
/// memory: `v` once more than the factors ask for, and `z`.
#[test]
fn launches_share_the_operations_of_the_formula() {
    let sizes = Sizes::double(Problem::Bp30, 3);
    let launches = "bp30.3d.1".parse::<Tuned>().unwrap().launches(3).unwrap();
    let counted: Vec<Statistics> = launches.iter().map(|l| counted(l.schedule.kernel(), sizes)).collect();
    assert_eq!(counted.iter().map(Statistics::flops).sum::<u64>(), operations(sizes));
    let m = sizes.points() as u64;
    let (v, z) = ([&counted[0], &counted[1]].map(|s| s.var("v").unwrap()), counted[1].var("z").unwrap());
    assert_eq!(v.map(|v| (v.reads.footprint, v.writes.footprint)), [(0, m.pow(3)), (m.pow(3), 0)]);
    // a term of each of three sums, and one of the mass
    assert_eq!(v[1].reads.accesses, 3 * m.pow(4) + m.pow(3));
    assert_eq!(z.writes.accesses, 3 * m.pow(4) + 2 * m.pow(3));
    assert_eq!(counted[2].var("z").unwrap().reads.footprint, m.pow(3));
}

fn barriers(name: &str, degree: usize) -> usize {
    let kernel = tuned(name, degree).unwrap();
    let program = generate(&kernel, Target::Cuda, &Options::default()).unwrap();
    program.source.matches("__syncthreads()").count()
}

/// Świrydowicz et al. 2019, §6: kernel 7 of BP1.0 has five barriers, kernel 6 some for each layer;
/// §7: kernel 6 of BP3.5 with 3-D threads has two.
#[test]
fn barriers_are_those_of_the_publication() {
    assert_eq!(barriers("bp10.2d.7", 7), 5);
    // one after the matrix is there, and four for each of the 9 layers
    assert_eq!(barriers("bp10.2d.6", 7), 1 + 4 * 9);
    assert_eq!(barriers("bp35.3d.6", 7), 2);
}

/// Each term of a contraction reads an entry of the matrix and one of the field.
#[test]
fn local_memory_is_counted_access_by_access() {
    let n = 8;
    let found = shared_traffic(&tuned("bp35.3d.6", 7).unwrap()).unwrap();
    let expected =
        Traffic { read: 8 * (12 * n * n * n * n + n * n * n), written: 8 * (n * n + 4 * n * n * n) };
    assert_eq!(found, expected);
}

/// Świrydowicz et al. 2019, §6: kernel 8 makes "almost a half" fewer loads of `I`.
#[test]
fn symmetry_halves_the_loads_of_the_matrix() {
    for (name, before) in [("bp10.2d.8", "bp10.2d.7"), ("bp30.2d.9", "bp30.2d.5")] {
        let sizes = Sizes::double(name.parse::<Tuned>().unwrap().problem, 7);
        let loads = |name| counted(&tuned(name, 7).unwrap(), sizes).var("s_I").unwrap().reads.accesses;
        // columns of each contraction times terms times results: 9 and 8 are both met, half of 9 is
        // 5
        let (n, m) = (8, 9);
        let columns = [n * n, m * n, m * m];
        let all: u64 = columns.iter().map(|c| 2 * c * n * m).sum();
        let half: u64 = columns.iter().map(|c| c * (n * 5 + m * 4)).sum();
        assert_eq!((loads(before), loads(name)), (all, half), "{name}");
    }
}

/// The device of the publication: 549 GB/s in theory (§3), 56 multiprocessors (§5), 1126 MHz.
const P100_BYTES_PER_S: f64 = 549e9;

#[test]
fn rooflines_hold_what_was_published() {
    let roof = |problem, degree| {
        let sizes = Sizes::double(problem, degree);
        streaming_roofline(operations(sizes), traffic(sizes), P100_BYTES_PER_S)
    };
    // §6 to §8: the best kernels, and six times the reference kernel of BP3.5, all below the roof
    for (problem, published) in
        [(Problem::Bp10, 2.5e12), (Problem::Bp35, 6.0 * 200e9), (Problem::Bp30, 1.6e12)]
    {
        let best = (1..=MAX_DEGREE).map(|degree| roof(problem, degree)).fold(0.0, f64::max);
        assert!((0.3..1.0).contains(&(published / best)), "{problem}: {published} of {best}");
        // Figure 1: it rises with the degree
        assert!((1..MAX_DEGREE).all(|degree| roof(problem, degree) < roof(problem, degree + 1)));
    }
    // §6, Figure 5: local memory bounds kernels 6 and 7 of BP1.0 at high degrees
    let sizes = Sizes::double(Problem::Bp10, MAX_DEGREE);
    for name in ["bp10.2d.6", "bp10.2d.7"] {
        let shared = shared_traffic(&tuned(name, MAX_DEGREE).unwrap()).unwrap();
        let bound = shared_roofline(operations(sizes), shared, shared_bandwidth(56, 1.126e9));
        assert!(bound < roof(Problem::Bp10, MAX_DEGREE), "{name}: {bound}");
    }
}
