//! The code of kernels has no race, and has one without any of its barriers.

use super::*;
use crate::target::Target;
use crate::{Options, PlacedKernel};

const TILES: &str = "kernel tiles\n\nparam n: i32\narg x: f64[16*n] in\narg y: f64[16] inout\n\
    temp tile: f64[16] local\ntemp acc: f64[16] private\n\
    for l in 0..16 {l.0}\n  zero: acc[l] = 0.0\n\
    for t in 0..n TAG\n  for p in 0..16 {l.0}\n    load: tile[p] = x[16*t + p]\n  \
    for e in 0..16 {l.0}\n    use: acc[e] += tile[15 - e]\n\
    for s in 0..16 {l.0}\n  store: y[s] += acc[s]\n";

/// The code of the kernel, and the first race without its k-th barrier.
fn race_without(text: &str, k: usize) -> Option<Barrier> {
    let kernel = kingpost_ir::text::parse(text).unwrap();
    let placed = PlacedKernel::new(&kernel).unwrap();
    // OpenCL has more barriers than are needed
    let mut body = placed.code(Target::Cuda, &Options::default()).unwrap().function.body;
    let names: Vec<Name> = kernel.inames.values().map(|i| i.name.as_str().into()).collect();
    let syncs = &placed.placement.barriers;
    assert_eq!(first_race(&kernel, syncs, &names, &body), None);
    let mut outline = Outline::of(&kernel, syncs, &Completions::default(), &names, &body);
    assert!(outline.fences[k].take().is_some());
    let found = outline.first_race().cloned();
    settle(&mut body, &mut outline.fences.into_iter());
    assert_eq!(first_race(&kernel, syncs, &names, &body).cloned(), found);
    found
}

#[test]
fn a_barrier_of_sub_groups_does_not_serve_the_group() {
    let kernel = kingpost_ir::text::parse(
        "kernel k\n\narg x: f64[4, 32] in\narg y: f64[4, 32] out\ntemp t: f64[4, 32] local\n\n\
         for r in 0..4 {l.1}\n  for i in 0..32 {l.0}\n    a: t[r, i] = x[r, i]\n\
         for s in 0..4 {l.1}\n  for j in 0..32 {l.0}\n    b: y[s, j] = t[3 - s, j]\n",
    )
    .unwrap();
    let placed = PlacedKernel::new(&kernel).unwrap();
    let mut body = placed.code(Target::Cuda, &Options::default()).unwrap().function.body;
    let names: Vec<Name> = kernel.inames.values().map(|i| i.name.as_str().into()).collect();
    let syncs = &placed.placement.barriers;
    assert_eq!(first_race(&kernel, syncs, &names, &body), None);
    for stmt in &mut body {
        if let Stmt::Barrier(fence) = stmt {
            fence.scope = Scope::SubGroup;
        }
    }
    assert_eq!(first_race(&kernel, syncs, &names, &body), syncs.first());
}

const COPIES: &str = "kernel k\n\narg u: f64[3, 64] in\narg y: f64[3, 64] out\n\
    temp t: f64[64] local\n\ncallee copy\n  arg a: f64[1] in\n  arg b: f64[1] out\n\n  s: b[0] = a[0]\n  \
    code cuda completes(\"wait;\") (\"copy({&a[0]}, {&b[0]});\")\n\n\
    for k in 0..3\n  for l in 0..64 {l.0}\n    call copy\n      c: t[l] = u[k, l]\n  \
    for j in 0..64 {l.0}\n    r: y[k, j] = t[63 - j]\n";

/// One barrier of the copies at a time without its completion, and the first race then.
#[test]
fn every_completion_is_needed() {
    let kernel = kingpost_ir::text::parse(COPIES).unwrap();
    let placed = PlacedKernel::new(&kernel).unwrap();
    let body = placed.code(Target::Cuda, &Options::default()).unwrap().function.body;
    let names: Vec<Name> = kernel.inames.values().map(|i| i.name.as_str().into()).collect();
    let completions = Completions::new(&kernel, Target::Cuda.description()).unwrap();
    let syncs = &placed.placement.barriers;
    let outline = Outline::of(&kernel, syncs, &completions, &names, &body);
    assert!(outline.is_sound());
    let completed: Vec<bool> = outline.fences.iter().flatten().map(|f| !f.completions.is_empty()).collect();
    assert_eq!(completed, [true, false], "after the copies, and nothing after the reads");
    let mut outline = outline;
    outline.fences[0].as_mut().unwrap().completions.clear();
    let race = outline.first_race().unwrap();
    let name = |insn| kernel.insns[insn].name.as_str();
    assert_eq!((name(race.source), name(race.sink)), ("c", "r"));
    assert_eq!(outline.first_outstanding().map(|c| &**c), Some("wait;"));
}

/// A completion after the barrier is not seen by the others.
#[test]
fn a_completion_comes_before_the_barrier() {
    let kernel = kingpost_ir::text::parse(COPIES).unwrap();
    let placed = PlacedKernel::new(&kernel).unwrap();
    let mut body = placed.code(Target::Cuda, &Options::default()).unwrap().function.body;
    let names: Vec<Name> = kernel.inames.values().map(|i| i.name.as_str().into()).collect();
    let inside = body.iter_mut().find_map(|s| s.body_mut().filter(|b| b.iter().any(Stmt::has_barrier)));
    let inside = inside.unwrap();
    let at = inside.iter().position(Stmt::has_barrier).unwrap();
    let fence = match &inside[at] {
        Stmt::Barrier(fence) => Some(fence.clone()),
        _ => None,
    };
    let fence = fence.unwrap();
    let alone = Fence { scope: Scope::WorkItem, local: false, global: false, ..fence.clone() };
    inside[at] = Stmt::Barrier(Fence { completions: BTreeMap::new(), ..fence });
    inside.insert(at + 1, Stmt::Barrier(alone));
    assert_eq!(
        first_race(&kernel, &placed.placement.barriers, &names, &body).map(|s| s.sink),
        kernel.insn("r")
    );
}

/// What does not concern a sync is left out, also loops and conditions that hold nothing else.
#[test]
fn the_walk_meets_what_concerns_the_sync() {
    let kernel = kingpost_ir::text::parse(
        "kernel k\n\narg x: f64[16] in\narg y: f64[16, 4] out\ntemp t: f64[16] local\n\n\
         for i in 0..16 {l.0}\n  a: t[i] = x[i]\nfor k in 0..4\n  for j in 0..16 {l.0}\n    \
         b: y[j, k] = t[15 - j]\n",
    )
    .unwrap();
    let placed = PlacedKernel::new(&kernel).unwrap();
    assert_eq!(placed.placement.barriers.len(), 1);
    let sync = &placed.placement.barriers[0];
    let loops = kernel.schedule().into_iter().map(|(_, loops)| loops).collect::<Vec<_>>();
    let ends = Ends::of(&kernel, sync, &loops, &|i: &InameId| Some(*i));
    let (insn, iname) = (|name| kernel.insn(name).unwrap(), |name| kernel.iname(name));
    let other = InsnId::from_index(7);
    let events = vec![
        Event::Run(vec![insn("a"), other]),
        Event::If(vec![Event::Run(vec![other])]),
        Event::For(iname("k"), vec![Event::Run(vec![other]), Event::Iteration(iname("k"))]),
        Event::Barrier(0),
        Event::For(iname("k"), vec![Event::If(vec![Event::Run(vec![insn("b")])])]),
    ];
    let expected = vec![
        Event::Run(vec![insn("a")]),
        Event::Barrier(0),
        Event::For(iname("k"), vec![Event::If(vec![Event::Run(vec![insn("b")])])]),
    ];
    assert_eq!(ends.concerning(&events), expected);
}

#[test]
fn every_barrier_of_a_tile_loop_is_needed() {
    let text = TILES.replace(" TAG", "");
    let (first, second) = (race_without(&text, 0).unwrap(), race_without(&text, 1).unwrap());
    assert_eq!(first.carrier, None);
    assert!(second.carrier.is_some());
}

/// The barrier at the end of the last copy orders it and the first one of the next iteration
/// around.
#[test]
fn every_barrier_of_copies_inside_a_loop_is_needed() {
    let text = "kernel copies\n\narg x: f64[16] in\narg y: f64[16] inout\ntemp t: f64 local\ntemp w: f64[16] private\n\
        for l in 0..16\n  zero: w[l] = 0.0\n\
        for i in 0..4 TAG\n  for k in 0..2 {unroll}\n    set: t = x[4*i + k]\n    use: w[4*i + k] += t\n\
        for s in 0..16 {l.0}\n  store: y[s] += w[s]\n";
    for k in 0..4 {
        assert!(race_without(&text.replace(" TAG", ""), k).is_some(), "barrier {k}");
    }
    for k in 0..15 {
        assert!(race_without(&text.replace("TAG", "{unroll}"), k).is_some(), "barrier {k}");
    }
}

#[test]
fn every_barrier_of_an_unrolled_tile_loop_is_needed() {
    let text = TILES.replace("param n: i32\n", "").replace("16*n", "48").replace("0..n TAG", "0..3 {unroll}");
    // load, |, use, |, load, |, use, |, load, |, use: nothing follows the last
    for k in 0..5 {
        assert!(race_without(&text, k).is_some(), "barrier {k}");
    }
}

const BATCHES: &str = "kernel batches\n\nparam n: i32\narg u: f64[n, 64] in\narg y: f64[n, 64] out\n\
    temp t: f64[4, 64] local\n\ncallee copy\n  arg a: f64[1] in\n  arg b: f64[1] out\n\n  s: b[0] = a[0]\n  \
    code cuda completes(commit \"end;\", wait \"wait {n};\") (\"copy({&a[0]}, {&b[0]});\")\n\n\
    for p in 0..min(3, n)\n  for m in 0..64 {l.0}\n    call copy\n      f: t[p mod 4, m] = u[p, m]\n\
    for k in 0..n\n  for l in 0..64 where k + 4 <= n {l.0}\n    call copy\n      c: t[(k + 3) mod 4, l] = u[k + 3, l]\n  \
    for j in 0..64 {l.0}\n    r: y[k, j] = t[k mod 4, 63 - j]\n";

/// Every wait lets as many groups go on as may, and every group is needed.
#[test]
fn one_more_group_or_none_is_a_race() {
    let kernel = kingpost_ir::text::parse(BATCHES).unwrap();
    let placed = PlacedKernel::new(&kernel).unwrap();
    let body = placed.code(Target::Cuda, &Options::default()).unwrap().function.body;
    let names: Vec<Name> = kernel.inames.values().map(|i| i.name.as_str().into()).collect();
    let syncs = &placed.placement.barriers;
    let mut completions = Completions::new(&kernel, Target::Cuda.description()).unwrap();
    completions.count_iterations(&kernel, syncs).unwrap();
    let outline = || Outline::of(&kernel, syncs, &completions, &names, &body);
    assert!(outline().is_sound());
    let waits = |fence: &Fence| fence.completions.values().copied().next();
    let all: Vec<_> = outline().fences.iter().flatten().map(|f| (f.commits.len(), waits(f))).collect();
    assert_eq!(all, [(1, Some(0)), (1, None), (0, Some(2)), (0, Some(0))]);
    for (k, (commits, wait)) in all.into_iter().enumerate() {
        let mut more = outline();
        let fence = more.fences[k].as_mut().unwrap();
        fence.completions.values_mut().for_each(|going_on| *going_on += 1);
        assert_eq!(more.is_sound(), wait.is_none(), "one more group after barrier {k}");
        let mut fewer = outline();
        fewer.fences[k].as_mut().unwrap().commits.clear();
        assert_eq!(fewer.is_sound(), commits == 0, "no group before barrier {k}");
    }
}

/// Products of a sub-group that go on while the next tile is copied; the sums are read at the end.
const PRODUCTS: &str = "kernel products\n\nparam n: i32\narg u: f64[n, 32] in\narg y: f64[32] out\n\
    temp t: f64[4, 32] local\ntemp c: f64[32] private\n\ncallee add\n  arg a: f64[32] in\n  arg c: f64[32] inout\n\n  \
    for lane in 0..32 {l.0}\n    for k in 0..32\n      s: c[lane] += a[k]\n  \
    code cuda completes(commit \"end;\", wait \"wait {n};\") (\"add({c[lane]}, {&a[0]});\")\n\n\
    for z in 0..32 {l.0}\n  zero: c[z] = 0.0\n\
    for p in 0..min(2, n)\n  for m in 0..32 {l.0}\n    f: t[p mod 4, m] = u[p, m]\n\
    for k in 0..n\n  call add\n    for l in 0..32 {l.0}\n      for q in 0..32\n        s: c[l] += t[k mod 4, q]\n  \
    for m2 in 0..32 where k + 3 <= n {l.0}\n    g: t[(k + 2) mod 4, m2] = u[k + 2, m2]\n\
    for o in 0..32 {l.0}\n  r: y[o] = c[o]\n";

/// How many groups may go on at each barrier, after a check that one more is a race.
fn groups(text: &str) -> Vec<Option<u8>> {
    let kernel = kingpost_ir::text::parse(text).unwrap();
    let placed = PlacedKernel::new(&kernel).unwrap();
    let body = placed.code(Target::Cuda, &Options::default()).unwrap().function.body;
    let names: Vec<Name> = kernel.inames.values().map(|i| i.name.as_str().into()).collect();
    let syncs = &placed.placement.barriers;
    let mut completions = Completions::new(&kernel, Target::Cuda.description()).unwrap();
    completions.count_iterations(&kernel, syncs).unwrap();
    let outline = || Outline::of(&kernel, syncs, &completions, &names, &body);
    assert!(outline().is_sound());
    let waits = |fence: &Fence| fence.completions.values().copied().next();
    let all: Vec<_> = outline().fences.iter().flatten().map(waits).collect();
    for k in (0..all.len()).filter(|k| all[*k].is_some()) {
        let mut more = outline();
        let fence = more.fences[k].as_mut().unwrap();
        fence.completions.values_mut().for_each(|going_on| *going_on += 1);
        assert!(!more.is_sound(), "one more group after barrier {k}");
        let mut none = outline();
        none.fences[k].as_mut().unwrap().completions.clear();
        assert!(!none.is_sound(), "no wait at barrier {k}");
    }
    all
}

/// Products on the same registers are done in order; who overwrites their factors waits for them, and who reads
/// the registers waits for all.
#[test]
fn products_go_on_until_their_factors_are_overwritten_or_their_sums_are_read() {
    assert_eq!(groups(PRODUCTS), [None, None, Some(1), Some(0)]);
    // one buffer fewer: the products of the iteration before are waited for when those of this one are under way
    assert_eq!(groups(&PRODUCTS.replace("mod 4", "mod 3")), [None, Some(1), None, Some(0)]);
    // the sums are read, or changed, in each iteration
    let between = |statement: &str| PRODUCTS.replace("  for m2", &format!("{statement}  for m2"));
    let read = between("  for i in 0..32 {l.0}\n    e: y[i] = c[i]\n");
    let written = between("  for i in 0..32 {l.0}\n    e: c[i] = 0.0\n");
    let added = between("  for i in 0..32 {l.0}\n    e: c[i] += 1.0\n");
    for text in [read, written, added] {
        assert!(groups(&text).contains(&Some(0)), "{text}");
    }
}

/// What one work-item holds in registers is none of another one's business, also while products go on.
#[test]
fn sums_of_another_work_item_are_not_read() {
    let text = PRODUCTS.replace("y[o] = c[o]", "y[o] = c[31 - o]");
    let kernel = kingpost_ir::text::parse(&text).unwrap();
    let error = PlacedKernel::new(&kernel).err().unwrap().to_string();
    assert!(error.contains("c[") && error.contains("private"), "{error}");
}

/// What ordinary statements have written is not there for code that reads through a proxy before they are fenced.
#[test]
fn accesses_through_a_proxy_follow_a_fence() {
    let text = PRODUCTS.replace("completes(", "proxy(\"fence;\") completes(");
    let kernel = kingpost_ir::text::parse(&text).unwrap();
    let placed = PlacedKernel::new(&kernel).unwrap();
    let body = placed.code(Target::Cuda, &Options::default()).unwrap().function.body;
    let names: Vec<Name> = kernel.inames.values().map(|i| i.name.as_str().into()).collect();
    let syncs = &placed.placement.barriers;
    let mut completions = Completions::new(&kernel, Target::Cuda.description()).unwrap();
    completions.count_iterations(&kernel, syncs).unwrap();
    let outline = || Outline::of(&kernel, syncs, &completions, &names, &body);
    assert!(outline().is_sound());
    let fenced: Vec<bool> = outline().fences.iter().flatten().map(|f| !f.proxies.is_empty()).collect();
    // after the first tiles, and after those of each iteration
    assert_eq!(fenced.iter().filter(|fenced| **fenced).count(), 2, "{fenced:?}");
    for (k, fenced) in fenced.into_iter().enumerate() {
        let mut without = outline();
        without.fences[k].as_mut().unwrap().proxies.clear();
        assert_eq!(without.is_sound(), !fenced, "no fence at barrier {k}");
    }
}

/// Every work-item waits for calls of the first one, which begin with statements of their own.
#[test]
fn calls_of_the_first_work_item_need_no_barrier_behind_their_wait() {
    let begun = BATCHES.replace("completes(", "completes(begin(8) (\"ring r;\"), ");
    let source = |text: &str| {
        let kernel = kingpost_ir::text::parse(text).unwrap();
        let program = crate::generate(&kernel, Target::Cuda, &Options::default());
        program.map(|program| program.source).map_err(|error| error.to_string())
    };
    let refused = source(&begun).unwrap_err();
    assert!(refused.contains("by the first work-item of a group alone"), "{refused}");
    let alone = begun.replace("m in 0..64 {l.0}", "m in 0..64");
    let alone = alone.replace("l in 0..64 where k + 4 <= n {l.0}", "l in 0..64 where k + 4 <= n");
    let source = source(&alone).unwrap();
    let place = |what: &str| source.find(what).unwrap();
    assert!(["ring r;", "end;", "wait 0;", "for (int k", "__syncthreads"].map(place).is_sorted(), "{source}");
    // before a tile is overwritten
    assert_eq!(source.matches("__syncthreads").count(), 1, "{source}");
}
