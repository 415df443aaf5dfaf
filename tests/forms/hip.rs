//! HIP source compiles for `gfx90a` and `gfx942` with clang; no GPU is needed.
//!
//! `make test` compiles what is said otherwise than in CUDA, `make test-all` what is printed for CUDA: all
//! actions, and the kernels of examples, solvers, studies and facts. With `KINGPOST_WRITE_PAGES` it writes
//! `results/hip.md`.

#![allow(clippy::unwrap_used, clippy::panic)]

use crate::source_hashes::{Case, mappings};
use crate::support::is_long_run;
use kingpost::codegen::{CodegenError, Options, Program, Target, generate};
use kingpost::ir::Kernel;
use kingpost::ir::text::parse;
use kingpost::runtime::hip::{self, HipObject, HipResources};
use kingpost::runtime::{Cache, RuntimeError};
use kingpost::transforms::steps;
use kingpost::tuning::architecture;
use kingpost::tuning::known::Source;
use kingpost::{Mapping, transform};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

const ARCHITECTURES: [&str; 2] = ["gfx90a", "gfx942"];

fn is_missing() -> bool {
    hip::version().map_err(|reason| println!("skipped: {reason}")).is_err()
}

fn program(text: &str) -> Program {
    let kernel = parse(text).unwrap_or_else(|e| panic!("{}", e.render(text)));
    generate(&kernel, Target::Hip, &Options::default()).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn compiled(arch: &str, program: &Program) -> HipObject {
    let object = hip::compile_program(arch, program, &Cache::from_environment());
    let object = object.unwrap_or_else(|e| panic!("{e}\n{}", program.source));
    let found: BTreeSet<&str> = object.resources.iter().map(|r| r.entry.as_str()).collect();
    let entries = program.launches.iter().flat_map(|launches| &launches.entries).map(|entry| &*entry.name);
    let mut entries: BTreeSet<&str> = entries.collect();
    if entries.is_empty() {
        entries.insert(&program.entry);
    }
    assert_eq!(found, entries);
    object
}

/// Sums of doubles are the hardware's in global and local memory; what it does not have is a compare-and-swap.
#[test]
fn atomic_updates_compile() {
    if is_missing() {
        return;
    }
    let text = |ty: &str, op: &str, space: &str| {
        format!(
            "kernel k\n\narg x: {ty}[64] in\narg y: {ty}[1] inout\ntemp t: {ty}[1] local\n\nfor g in 0..4 {{g.0}}\n  \
             z: t[0] = x[0]\n  for i in 0..64 {{l.0}}\n    s: {space}[0] {op}= x[i] {{atomic}}\n  w: y[0] {op}= t[0] {{atomic}}\n"
        )
    };
    for arch in ARCHITECTURES {
        for space in ["y", "t"] {
            let assembly = compiled(arch, &program(&text("f64", "+", space))).assembly;
            assert!(assembly.contains("atomic_add_f64") && !assembly.contains("cmpswap"), "{assembly}");
        }
    }
    for (ty, op, has_loop) in [
        ("f64", "max", true),
        ("f32", "+", false),
        ("i64", "+", false),
        ("i64", "min", true),
        ("u64", "max", false),
        ("u32", "min", false),
        ("c128", "+", false),
    ] {
        let assembly = compiled("gfx942", &program(&text(ty, op, "y"))).assembly;
        assert_eq!(assembly.contains("cmpswap"), has_loop, "{ty} {op}\n{assembly}");
    }
}

/// Rows of a wavefront and of half of one read each other's registers; no barrier of the group is left.
#[test]
fn sub_groups_compile() {
    if is_missing() {
        return;
    }
    for ty in ["f64", "f32", "i64", "u16", "bool", "f16", "c64", "c128"] {
        for (attributes, items) in [(" {sub_group(64)}", 64), ("", 32)] {
            let text = format!(
                "kernel k{attributes}\n\narg x: {ty}[2, {items}] in\narg y: {ty}[2, {items}] out\ntemp h: {ty}[2, {items}] \
                 subgroup\ntemp t: {ty}[2, {items}] local\n\nfor r in 0..2 {{l.1}}\n  for i in 0..{items} {{l.0}}\n    \
                 w: h[r, i] = x[r, i]\n  for j in 0..{items} {{l.0}}\n    s: t[r, j] = h[r, {last} - j]\n  \
                 for k in 0..{items} {{l.0}}\n    v: y[r, k] = t[r, {last} - k]\n",
                last = items - 1
            );
            let program = program(&text);
            assert!(program.source.contains("wave_barrier") && !program.source.contains("__syncthreads"));
            let assembly = compiled("gfx942", &program).assembly;
            assert!(assembly.contains("ds_bpermute_b32") && !assembly.contains("s_barrier\n"), "{assembly}");
        }
    }
}

/// Infinities and nans as literals and in tables, numbers of 16 bits, functions of the library, groups in order.
#[test]
fn special_values_and_functions_compile() {
    if is_missing() {
        return;
    }
    for ty in ["f64", "f32"] {
        for space in ["global", "constant"] {
            compiled(
                "gfx90a",
                &program(&format!(
                    "kernel k\n\narg x: {ty}[1] in\narg b: f32[4] in\narg y: {ty}[4] inout\narg top: {ty}[1] inout\n\
                     arg v: {ty}[4] inout\ntable w: {ty}[4] {space}\n\nfor i in 0..4 {{g.0}}\n  s: y[i] min= w[i]\n  \
                     t: top[0] max= select(x[0] < inf, b[i], -inf) {{atomic}}\n  \
                     u: v[i] = x[0]*max(nan, sqrt(erf(x[0]) + sin(x[0])/2))\n\ntable w = [nan, inf, -inf, 0.5]\n"
                )),
            );
        }
    }
    let halves = "kernel k\n\narg x: f16[64] in\narg z: bf16[64] in\narg y: f16[64] out\narg w: bf16[64] out\n\n\
                  for i in 0..64 {l.0}\n  s: y[i] = 2.0*z[i]\n  t: w[i] = 2.0*x[i]\n";
    assert!(compiled("gfx942", &program(halves)).assembly.contains("v_cvt_f16_f32"));
    for ty in ["f64", "f32", "i32", "u64"] {
        let ordered = format!(
            "kernel k {{ordered_groups}}\n\nparam n: i32\narg x: {ty}[n] in\narg y: {ty}[n] inout\ntemp t: {ty}[n + 1] \
             global\ntemp v: {ty} private\n\nfor b in 0..n {{g.0}}\n  z: v = x[b]\n  r: v = t[b] if 0 < b\n  \
             s: t[b + 1] = v + x[b]\n  u: y[b] = v\n"
        );
        compiled("gfx942", &program(&ordered));
    }
}

/// Where kernels and schedules lie as files that parse as they are.
const FOLDERS: [&str; 7] = [
    "examples",
    "crates/multigrid/kernels",
    "crates/solve/src/kernels",
    "crates/solve/src/kernels/aggregation",
    "studies/polybench/kernels",
    "studies/swirydowicz-2019/kernels",
    "studies/triton",
];

/// What is printed for CUDA, with its name.
fn files() -> Vec<(String, Kernel)> {
    let mut found = Vec::new();
    for folder in FOLDERS {
        let mut paths: Vec<PathBuf> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "kingpost"));
        paths.sort();
        for path in paths {
            // texts and schedules with places for values are compiled with them where they belong
            let text = std::fs::read_to_string(&path).unwrap();
            let Ok((kernel, script)) = steps().file(&text) else { continue };
            let kernel = match script.map(|script| script.apply(&kernel)) {
                None => kernel,
                Some(Ok(schedule)) => schedule.kernel().clone(),
                Some(Err(_)) => continue,
            };
            found.push((path.display().to_string(), kernel));
        }
    }
    found
}

/// A kernel that needs more local memory than a compute unit has, or what the compiler makes of it.
enum Printed {
    TooLarge,
    Compiled([Vec<HipResources>; 2]),
}

fn for_hip(kernel: &Kernel) -> Result<Program, CodegenError> {
    generate(kernel, Target::Hip, &Options::default().with_trust(true))
}

/// The program of what has code for CUDA; none for what has not.
fn as_for_cuda(kernel: &Kernel) -> Option<Result<Program, CodegenError>> {
    generate(kernel, Target::Cuda, &Options::default().with_trust(true)).ok()?;
    match for_hip(kernel) {
        // functions of the user's that have code for CUDA alone
        Err(CodegenError::NoExternal { .. }) => None,
        found => Some(found),
    }
}

fn printed(found: Result<Program, CodegenError>) -> Printed {
    match found {
        Ok(program) => Printed::Compiled(ARCHITECTURES.map(|arch| compiled(arch, &program).resources)),
        Err(CodegenError::LocalMemory { .. }) => Printed::TooLarge,
        Err(error) => panic!("{error}"),
    }
}

/// Rows of a table, on all cores, in the order of the work.
fn rows<W: Sync>(work: &[W], row: impl Fn(&W) -> Option<String> + Sync) -> Vec<String> {
    let rows = Mutex::new(vec![None; work.len()]);
    let next = AtomicUsize::new(0);
    let run = || {
        while let Some((k, one)) =
            Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|k| Some((k, work.get(k)?)))
        {
            let found = row(one);
            rows.lock().unwrap()[k] = found;
        }
    };
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        for worker in (0..threads).map(|_| scope.spawn(run)).collect::<Vec<_>>() {
            worker.join().unwrap();
        }
    });
    rows.into_inner().unwrap().into_iter().flatten().collect()
}

fn row(name: &str, printed: &Printed) -> String {
    let of = |r: &HipResources| {
        let spills = r.vector_spills + r.scalar_spills;
        let HipResources { vector_registers, accumulators, scalar_registers, scratch_bytes, .. } = r;
        format!("{vector_registers} | {accumulators} | {scalar_registers} | {spills} | {scratch_bytes}")
    };
    match printed {
        Printed::Compiled([a, b]) => {
            // a line for each launch
            let line = |(a, b): (&HipResources, &HipResources)| {
                let launch =
                    if a.entry.contains("_launch_") { format!(", `{}`", a.entry) } else { String::new() };
                format!("| {name}{launch} | {} | {} | {} |\n", b.local_bytes, of(a), of(b))
            };
            a.iter().zip(b).map(line).collect()
        }
        Printed::TooLarge => format!("| {name} | more than 65536 |{}\n", " |".repeat(10)),
    }
}

/// All actions under the mappings that are shipped for an H200 and with a cell a work-item, and every kernel of the
/// repository that is printed for CUDA. `make test` compiles the actions of one degree.
#[test]
fn what_is_printed_for_cuda_compiles() {
    if is_missing() {
        return;
    }
    let cases: Vec<Case> = Case::all().filter(|c| is_long_run() || (c.dim, c.degree) == (2, 2)).collect();
    let actions = rows(&cases, |case| {
        let lowered = case.lowered();
        let all = mappings(&lowered, *case);
        let mut ends: Vec<(&str, &Mapping)> = vec![("as shipped for an H200", &all[all.len() - 1])];
        if is_long_run() {
            ends.insert(0, ("a cell a work-item", &all[0]));
        }
        let of_form = architecture::large_case(case.to_string(), case.lowered()).unwrap();
        let known = architecture::for_processor(&lowered, Some(&of_form), "gfx942").unwrap();
        let source = &known[0].source;
        assert!(matches!(source, Source::Predicted("MI300X") | Source::Held("MI300X")), "{case}: {source:?}");
        let chosen = known[0].mapping.to_string();
        ends.push((chosen.as_str(), &known[0].mapping));
        let of = |(how, mapping): (&str, &Mapping)| {
            let (kernel, _) = transform(&lowered, mapping).unwrap();
            row(&format!("{case}, {how}"), &printed(for_hip(&kernel)))
        };
        Some(ends.into_iter().map(of).collect())
    });
    assert_eq!(actions.len(), cases.len());
    if !is_long_run() {
        return;
    }
    let files = files();
    let others = rows(&files, |(name, kernel)| Some(row(name, &printed(as_for_cuda(kernel)?))));
    assert!(others.len() > 90, "{}", others.len());
    if std::env::var_os("KINGPOST_WRITE_PAGES").is_some() {
        let head = "| kernel | LDS, B | gfx90a: VGPR | AGPR | SGPR | spilled | scratch, B | gfx942: VGPR | AGPR | SGPR | \
                    spilled | scratch, B |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n";
        let text = format!(
            "# Kernels on AMD's processors\n\nWritten by\n\n    scripts/amd-compiler.sh && KINGPOST_WRITE_PAGES=1 \
             KINGPOST_TEST_ALL=1 cargo nextest run --test forms what_is_printed_for_cuda_compiles\n\nwith {}. \
             Registers of 32 bits: vector registers (VGPR) of a work-item, of which accumulators (AGPR), and scalar \
             registers (SGPR) of a wavefront; spilled registers of both kinds. Nothing here ran on a card.\n\n\
             What is printed has run on a host, with matrix instructions by AMD's layout of their operands: \
             [HIP on a host](compilers.md#hip-on-a-host).\n\n\
             ## Actions\n\nThe 70 operator actions of Kulkarni & Klöckner 2025, a cell a work-item, under the mapping \
             that is shipped for an H200, and as `--arch gfx942` maps them: by what registers and local memory hold, and \
             of several mappings as the throughput model predicts to be the fastest on an MI300X.\n\n{head}{}\n## Other kernels\n\nFiles, with their schedules.\n\n{head}{}",
            hip::version().unwrap(),
            actions.concat(),
            others.concat()
        );
        std::fs::write("results/hip.md", text).unwrap();
    }
}

/// Every way to say something: the programs of the facts of code generation.
#[test]
fn facts_compile() {
    if is_missing() || !is_long_run() {
        return;
    }
    let facts = kingpost_facts::load(Path::new("crates/codegen/facts")).unwrap();
    let compiled = rows(&facts, |(_, fact)| {
        let program = as_for_cuda(&parse(&fact.kernel.text).ok()?)?.ok()?;
        Some(compiled("gfx942", &program).arch)
    });
    assert!(compiled.len() > 100, "{}", compiled.len());
}

#[test]
fn a_source_that_is_wrong_is_refused_with_the_log() {
    if is_missing() {
        return;
    }
    let mut program = program("kernel k\n\narg y: f64[1] out\n\ns: y[0] = 1.0\n");
    program.source = program.source.replace("= 1.0", "= x");
    let error = hip::compile_program("gfx942", &program, &Cache::disabled()).unwrap_err();
    assert!(matches!(error, RuntimeError::Compile { .. }), "{error}");
    let error = error.to_string();
    assert!(error.contains("the code of `k` does not compile") && error.contains("undeclared"), "{error}");
}
