//! Runs pairs on a device, many in one program and in a process of their own: what crashes there
//! fails here.

use crate::pair::{Pair, Zeros, differ, tolerance};
use kingpost::codegen::{CodegenError, Options, Program, Target, generate};
use kingpost::interp::{Memory, Value, interpret};
use kingpost::ir::{Affine, Assumption, Atom, Constraint, Direction, Id, Kernel, Places, VarKind};
use kingpost::runtime::{Device, Optimisation, oclgrind, open};
use kingpost::transforms::Recipe;
use kingpost::{LoadError, Loaded, gathered, laid_out};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The file that a child process reads its work from; its verdicts go to the same name with `.out`.
const WORK: &str = "KINGPOST_TEST_PAIRS";

/// How long a process may take for its pairs: pocl 5.0 has been seen to compile one of them for
/// ever.
const PATIENCE: Duration = Duration::from_secs(300);

/// What is said of one that takes longer.
const ENDLESS: &str = "no end";

/// In the message of a process that died in pocl's passes over work-items: the folder of a failed
/// assertion, and what `WorkitemHandler` prints before it aborts (pocl 5.0).
const PASSES: [&str; 2] = ["lib/llvmopencl/", "Could not find a dominating alternative variable."];

/// What became of a pair on a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// The same results.
    Same,
    /// No code was generated: the kernel asks for what the target cannot give.
    Refused(String),
    /// Other results, code that does not compile, or a bug that codegen admits.
    Wrong(String),
}

/// Where pairs run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Place {
    C,
    /// OpenCL, except for the programs of the next one.
    OpenCl,
    /// OpenCL for the programs with a barrier and an atomic update: in some of them the loops that
    /// pocl 3.1 writes over work-items run the update of work-item 0 twice.
    Replicated,
    /// A graphics card, where there is one.
    Cuda,
}

/// What pocl makes of the work-items of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    /// Copies of the code.
    Replicate,
    /// Loops over them.
    Loop,
}

/// Programs at which pocl's compiler aborted or did not end.
pub static ABORTED: AtomicU64 = AtomicU64::new(0);

/// Programs at which it aborts either way: they are judged elsewhere only.
pub static UNJUDGED: AtomicU64 = AtomicU64::new(0);

/// Programs that are right on pocl only by the other method.
pub static DOUBTED: AtomicU64 = AtomicU64::new(0);

/// Programs that a compiler makes others of: right without optimisation, wrong with optimisation
/// that relies on no promise of the source.
pub static MISCOMPILED: AtomicU64 = AtomicU64::new(0);

/// Programs at which pocl is outvoted: right in C and under oclgrind, wrong on pocl by both of its
/// methods, or a death of its compiler.
pub static OUTVOTED: AtomicU64 = AtomicU64::new(0);

/// Whose fault a wrong result is, if it is not ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An optimiser's.
    Compiler,
    /// Of pocl, whatever its method: two others agree with the interpreter.
    Pocl,
}

/// How a child process is to compile.
#[derive(Clone, Debug, Default)]
struct Way {
    method: Option<Method>,
    optimisation: Optimisation,
    /// More variables of its environment.
    variables: Vec<(String, String)>,
    /// Instead of the C compiler of the environment.
    compiler: Option<PathBuf>,
}

impl Place {
    pub fn device(self) -> &'static str {
        match self {
            Self::C => "c",
            Self::OpenCl | Self::Replicated => "opencl",
            Self::Cuda => "cuda",
        }
    }

    /// The method that pocl is told, if it is; else it replicates the code in small groups only.
    fn method(self) -> Option<Method> {
        (self == Self::Replicated).then_some(Method::Replicate)
    }

    /// Whether the programs that need replication run here, or the others; `None`: all of them.
    fn replicated(self) -> Option<bool> {
        (self.device() == "opencl").then_some(self == Self::Replicated)
    }

    /// The method to judge a program by whose results are others: pocl compiles some wrongly with
    /// one of them.
    fn other_method(self) -> Option<Method> {
        match self {
            Self::OpenCl => Some(Method::Replicate),
            Self::Replicated => Some(Method::Loop),
            Self::C | Self::Cuda => None,
        }
    }
}

impl Method {
    fn name(self) -> &'static str {
        match self {
            Self::Replicate => "workitemrepl",
            Self::Loop => "workitemloops",
        }
    }
}

/// The programs that need [`Place::Replicated`].
fn needs_replication(source: &str) -> bool {
    source.contains("barrier(") && source.contains("atom")
}

#[derive(Serialize, Deserialize)]
struct Work {
    device: String,
    replicated: Option<bool>,
    optimisation: Optimisation,
    pairs: Vec<Pair>,
}

/// A child process at work.
pub struct Running {
    child: Child,
    dir: tempfile::TempDir,
}

/// Starts a child process for some pairs. Pairs that belong to the other place of OpenCL come back
/// as none.
pub fn start(place: Place, pairs: &[Pair]) -> Running {
    spawn(place.device(), place.replicated(), &Way { method: place.method(), ..Way::default() }, pairs)
}

fn spawn(device: &str, replicated: Option<bool>, way: &Way, pairs: &[Pair]) -> Running {
    let dir = tempfile::tempdir().unwrap();
    let optimisation = way.optimisation;
    let work = Work { device: device.into(), replicated, optimisation, pairs: pairs.to_vec() };
    let file = dir.path().join("work.json");
    std::fs::write(&file, serde_json::to_vec(&work).unwrap()).unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "devices::child", "--ignored", "--nocapture"]);
    command.env(WORK, &file).env("KINGPOST_CACHE_DIR", dir.path().join("objects"));
    command.env("POCL_CACHE_DIR", dir.path()).env("OMP_NUM_THREADS", "2");
    command.env("OMP_WAIT_POLICY", "passive"); // a thread at a barrier would take a core from other processes
    command.env("KINGPOST_OPENCL_TRIAL", "0"); // this is a process of its own
    // everything as users have it, optimisation included
    command.env_remove("POCL_EXTRA_BUILD_FLAGS").env_remove("KINGPOST_CC_OPTIONS");
    command.envs(way.variables.iter().map(|(name, value)| (name, value)));
    if let Some(compiler) = &way.compiler {
        command.env("CC", compiler);
    }
    if let Some(method) = way.method {
        command.env("POCL_WORK_GROUP_METHOD", method.name());
    }
    let log = std::fs::File::create(dir.path().join("log")).unwrap();
    // pocl leaves pictures of what it aborts at where it runs
    command.stdout(Stdio::null()).stderr(log).current_dir(dir.path());
    Running { child: command.spawn().unwrap(), dir }
}

impl Running {
    /// The verdicts, or what the child said before it died or was killed.
    pub fn finish(mut self) -> Result<Vec<Option<Verdict>>, String> {
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if start.elapsed() > PATIENCE {
                self.child.kill().unwrap();
                self.child.wait().unwrap();
                return Err(format!("{ENDLESS} within {} s", PATIENCE.as_secs()));
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let log = || std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default();
        if !status.success() {
            return Err(format!("{status}: {}", log()));
        }
        let verdicts =
            std::fs::read(self.dir.path().join("work.out")).map_err(|e| format!("{e}: {}", log()))?;
        serde_json::from_slice(&verdicts).map_err(|e| e.to_string())
    }
}

/// The verdicts of all pairs; where the process dies, each runs in one of its own.
pub fn verdicts(place: Place, pairs: &[Pair], running: Running) -> Vec<Option<Verdict>> {
    match (running.finish(), pairs) {
        (Ok(verdicts), _) => pairs.iter().zip(verdicts).map(|(pair, v)| judged(place, pair, v)).collect(),
        (Err(why), [pair]) => vec![died(place, pair, why)],
        (Err(_), _) => {
            let single =
                |pair| verdicts(place, std::slice::from_ref(pair), start(place, std::slice::from_ref(pair)));
            pairs.iter().flat_map(single).collect()
        }
    }
}

/// What is wrong by one of pocl's methods and right by the other is its own fault, and counted.
fn judged(place: Place, pair: &Pair, verdict: Option<Verdict>) -> Option<Verdict> {
    if let (Some(Verdict::Wrong(_)), Some(method)) = (&verdict, place.other_method())
        && by("opencl", &Way { method: Some(method), ..Way::default() }, pair) == Ok(Some(Verdict::Same))
    {
        DOUBTED.fetch_add(1, Ordering::Relaxed);
        return Some(Verdict::Same);
    }
    verdict
}

/// What pocl's compiler aborts at, or does not come to an end with, is judged where it writes
/// loops.
fn died(place: Place, pair: &Pair, why: String) -> Option<Verdict> {
    let aborts = |why: &str| PASSES.iter().any(|pass| why.contains(pass));
    if place.device() != "opencl" || !(aborts(&why) || why.starts_with(ENDLESS)) {
        return Some(Verdict::Wrong(why));
    }
    ABORTED.fetch_add(1, Ordering::Relaxed);
    match by("opencl", &Way { method: Some(Method::Loop), ..Way::default() }, pair) {
        Ok(verdict) => verdict,
        // an assertion in pocl's own passes: there is no code to judge
        Err(why) if aborts(&why) => {
            UNJUDGED.fetch_add(1, Ordering::Relaxed);
            None
        }
        Err(why) => Some(Verdict::Wrong(why)),
    }
}

/// The verdict on a program that is compiled in another way.
fn by(device: &str, way: &Way, pair: &Pair) -> Result<Option<Verdict>, String> {
    let running = spawn(device, None, way, std::slice::from_ref(pair));
    Ok(running.finish()?.pop().flatten())
}

/// Whose fault it is that a pair is wrong at a place (on pocl by both of its methods); none: ours.
pub fn fault(place: Place, pair: &Pair) -> Option<Fault> {
    if blamed(place.device(), &Way { method: place.method(), ..Way::default() }, pair) {
        return Some(Fault::Compiler);
    }
    (place.device() == "opencl" && is_outvoted(&Way::default(), pair)).then_some(Fault::Pocl)
}

/// Whether there is an oclgrind to ask; without it a fault of both methods of pocl is taken for
/// ours.
pub fn has_simulator() -> bool {
    let dir = tempfile::tempdir().unwrap();
    oclgrind::environment(dir.path()).map_err(|e| println!("skipped: {e}")).is_ok()
}

/// Whether C, compiled in some way, and oclgrind agree with the interpreter. oclgrind must not find
/// a race or an access out of bounds either: such a program may do anything on pocl.
fn is_outvoted(c: &Way, pair: &Pair) -> bool {
    by("c", c, pair) == Ok(Some(Verdict::Same)) && simulated(pair) == Ok(Some(Verdict::Same))
}

/// The verdict of oclgrind, which simulates one work-item after the other: slow, but no compiler of
/// work-groups. It does not optimise, which would leave out accesses and the races that they show.
fn simulated(pair: &Pair) -> Result<Option<Verdict>, String> {
    let dir = tempfile::tempdir().unwrap();
    let mut variables = oclgrind::environment(dir.path()).map_err(|e| e.to_string())?;
    variables.push(("OCLGRIND_BUILD_OPTIONS".into(), "-cl-opt-disable".into()));
    let way = Way { optimisation: Optimisation::Off, variables, ..Way::default() };
    let verdict = by("opencl", &way, pair)?;
    let findings = oclgrind::read_log(&oclgrind::log_file(dir.path())).map_err(|e| e.to_string())?;
    match findings.first() {
        Some(finding) => Ok(Some(Verdict::Wrong(finding.to_string()))),
        None => Ok(verdict),
    }
}

/// Whether a wrong result is a compiler's: right without optimisation, and wrong where it optimises
/// without relying on `restrict`, types of pointers and overflow, so that no broken promise of ours
/// explains it. Where no two arrays share storage, `restrict` is kept: each is memory of its own.
fn blamed(device: &str, way: &Way, pair: &Pair) -> bool {
    let with = |optimisation| by(device, &Way { optimisation, ..way.clone() }, pair);
    if with(Optimisation::Off) != Ok(Some(Verdict::Same)) {
        return false;
    }
    let is_wrong = |verdict| matches!(verdict, Ok(Some(Verdict::Wrong(_))));
    is_wrong(with(Optimisation::Defined))
        || device == "c" && is_separate(pair) && {
            let dir = tempfile::tempdir().unwrap();
            let compiler = Some(with_restrict(dir.path(), way.compiler.as_deref()));
            is_wrong(by(device, &Way { optimisation: Optimisation::Defined, compiler, ..way.clone() }, pair))
        }
}

/// Whether no two temporaries of what runs share storage.
fn is_separate(pair: &Pair) -> bool {
    kingpost::ir::text::parse(&pair.after)
        .is_ok_and(|kernel| kernel.vars.values().all(|v| v.storage.is_none()))
}

/// A compiler that is not told to forget `restrict`.
fn with_restrict(dir: &Path, compiler: Option<&Path>) -> PathBuf {
    let inner = compiler
        .map_or_else(|| std::env::var("CC").unwrap_or_else(|_| "cc".into()), |c| c.display().to_string());
    let script = format!(
        "#!/bin/sh\nfor a in \"$@\"; do shift; [ \"$a\" = -Drestrict= ] || set -- \"$@\" \"$a\"; done\nexec {inner} \"$@\"\n"
    );
    let file = dir.join("cc-restrict");
    std::fs::write(&file, script).unwrap();
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    file
}

/// Why there is no code for what became of a program; none where there is.
pub fn refusal(pair: &Pair, target: Target) -> Option<Verdict> {
    program(0, pair, target).err()
}

/// What a place compiles for a pair, and the extension of a file of it.
pub fn source(place: Place, pair: &Pair) -> Option<(Target, String)> {
    let target = match place {
        Place::C => Target::C,
        Place::OpenCl | Place::Replicated => Target::OpenCl,
        Place::Cuda => Target::Cuda,
    };
    program(0, pair, target).ok().map(|generated| (target, generated.program.source))
}

/// Whether a pair is right in a process of its own: a fault on a card fails what comes after it,
/// too.
pub fn is_right_alone(place: Place, pair: &Pair) -> bool {
    let way = Way { method: place.method(), ..Way::default() };
    by(place.device(), &way, pair) == Ok(Some(Verdict::Same))
}

/// What is only written holds what fresh memory of a device does, in elements that nothing writes.
pub fn poison(kernel: &Kernel, memory: &mut Memory) {
    let names = names(kernel);
    for var in kernel.vars.values().filter(|v| v.kind == VarKind::Argument(Direction::Out)) {
        let extents = var.shape.iter().map(|extent| value(extent, &names, memory));
        let Some(len) = extents.product::<Option<i64>>().and_then(|len| usize::try_from(len).ok()) else {
            continue; // the interpreter refuses it
        };
        let poisoned = match Value::zeros(var.ty, len) {
            Value::F64(v) => Value::F64(vec![f64::NAN; v.len()]),
            Value::F32(v) => Value::F32(vec![f32::NAN; v.len()]),
            v => Value::of_bits(v.ty(), &vec![-1; v.len()]),
        };
        memory.set(var.name.clone(), poisoned);
    }
}

/// Of an argument that is only written, what nothing writes is no result, and what is written is
/// compared.
#[test]
fn results_that_are_written_in_part_are_compared() {
    let pair = |after: &str| {
        let text = |insn: &str| {
            format!(
                "kernel part\nparam n: i32\narg x: f64[n] out\narg u: f64[n] in\n\nfor i in 0..n - 1\n  s: x[i] = {insn}\n"
            )
        };
        let names = Default::default();
        Pair {
            n: 3,
            m: 2,
            seed: 7,
            names,
            before: text("2.0*u[i]"),
            recipe: Recipe::default(),
            after: text(after),
            exact: false,
        }
    };
    let verdict = |pair: &Pair| by("c", &Way::default(), pair).unwrap().unwrap();
    assert_eq!(verdict(&pair("u[i] + u[i]")), Verdict::Same);
    assert!(matches!(verdict(&pair("3.0*u[i]")), Verdict::Wrong(why) if why.starts_with("`x[0]` is ")));
}

/// A compiler that halves what some statements add, at some levels of optimisation only.
fn with_faulty_compiler(dir: &Path, options: &str) -> Way {
    let compiler = dir.join("cc");
    let edit = r"s/+= \(.*\);/+= 0.5*(\1);/";
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in\n*--version*) exec cc --version;;\n{options}) for f in \"$@\"; do case \
         \"$f\" in *.c) sed -i '{edit}' \"$f\";; esac; done;;\nesac\nexec cc \"$@\"\n"
    );
    std::fs::write(&compiler, script).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&compiler, mode).unwrap();
    Way { compiler: Some(compiler), ..Way::default() }
}

/// A pair of programs on the values of other tests.
fn written(before: &str, after: &str) -> Pair {
    let text = |text: &str| kingpost::ir::text::parse(text).unwrap().to_string();
    let (names, recipe) = (Default::default(), Recipe::default());
    Pair { n: 3, m: 2, seed: 7, names, before: text(before), recipe, after: text(after), exact: false }
}

/// pocl is at fault only where C is right, and oclgrind is and finds nothing.
#[test]
fn a_fault_of_pocl_is_told_from_ours() {
    if !has_simulator() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let declared = |more: &str, value: &str| {
        format!(
            "kernel sample\nparam n: i32\nparam m: i32\narg x: f64[n] in\narg y: f64[n, m] inout\n{more}
for i in 0..n\n  for j in 0..m\n    s: y[i, j] += {value}\n"
        )
    };
    let text = |value: &str| declared("", value);
    let pair = |after: &str| written(&text("2.0*x[i] + 1.0"), &text(after));
    let right = pair("1.0 + x[i] + x[i]");
    assert!(is_outvoted(&Way::default(), &right), "{:?}", simulated(&right));
    let wrong = pair("2.0*x[i]");
    let found = simulated(&wrong).unwrap();
    assert!(matches!(&found, Some(Verdict::Wrong(why)) if why.starts_with("`y[0]` is ")), "{found:?}");
    assert!(!is_outvoted(&Way::default(), &wrong));
    assert!(!is_outvoted(&with_faulty_compiler(dir.path(), "*"), &right));
    // right by chance: nothing writes what is multiplied by 0
    let chance = declared("temp k: f64 private\n", "2.0*x[i] + 1.0 + 0.0*k");
    let chance = Pair { after: chance, ..right };
    let found = simulated(&chance).unwrap();
    assert!(
        matches!(&found, Some(Verdict::Wrong(why)) if why.starts_with("Uninitialized value ")),
        "{found:?}"
    );
    assert!(!is_outvoted(&Way::default(), &chance));
}

#[test]
fn a_fault_of_the_compiler_is_told_from_ours() {
    let text = "kernel sample\nparam n: i32\nparam m: i32\narg x: f64[n] in\narg y: f64[n, m] inout\n
for i in 0..n\n  for j in 0..m\n    s: y[i, j] += 2.0*x[i] + 1.0\n";
    let pair = written(text, text);
    let sharing = text
        .replace("\n\nfor", "\ntemp t: f64[2] private storage(b)\ntemp u: f64[2] private storage(b)\n\nfor");
    let sharing = written(&sharing, &sharing);
    let dir = tempfile::tempdir().unwrap();
    let verdict_of = |pair: &Pair, options: &str| {
        let way = with_faulty_compiler(dir.path(), options);
        let is_right = match by("c", &way, pair) {
            Ok(Some(Verdict::Same)) => true,
            Ok(Some(Verdict::Wrong(_))) => false,
            other => panic!("{other:?}"),
        };
        (is_right, blamed("c", &way, pair))
    };
    let verdict = |options: &str| verdict_of(&pair, options);
    assert_eq!(verdict("none"), (true, false));
    assert_eq!(verdict("*-O3*"), (false, true));
    let relies_on_restrict = "*-Drestrict=*) ;;\n*-O3*";
    assert_eq!(verdict(relies_on_restrict), (false, true)); // each array is memory of its own
    assert_eq!(verdict_of(&sharing, relies_on_restrict), (false, false)); // the promise may be broken
    assert_eq!(verdict("*"), (false, false)); // the source is wrong
}

#[test]
#[ignore = "a child process of the other tests"]
fn child() {
    let file = std::env::var(WORK).unwrap();
    let work: Work = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let device = open(&work.device).unwrap();
    let target = device.info().backend.target();
    let mut generated: Vec<_> =
        work.pairs.iter().enumerate().map(|(k, pair)| program(k, pair, target)).collect();
    let elsewhere =
        |g: &Generated| work.replicated.is_some_and(|r| r != needs_replication(&g.program.source));
    let mut sources = BTreeMap::new();
    for g in generated.iter().flatten().filter(|g| !elsewhere(g)) {
        sources.entry(alike(&g.program)).or_insert_with(Vec::new).push(&g.program);
    }
    let sources: BTreeMap<_, _> =
        sources.into_iter().map(|(key, programs)| (key, merged(programs.into_iter()))).collect();
    let mut verdicts = Vec::new();
    for (pair, generated) in work.pairs.iter().zip(&mut generated) {
        verdicts.push(match generated {
            Err(verdict) => Some(verdict.clone()),
            Ok(g) if elsewhere(g) => None,
            Ok(g) => Some(run(&*device, work.optimisation, &sources[&alike(&g.program)], g, pair)),
        });
    }
    std::fs::write(Path::new(&file).with_extension("out"), serde_json::to_vec(&verdicts).unwrap()).unwrap();
}

pub struct Generated {
    pub kernel: Kernel,
    pub program: Program,
}

/// The program of a pair, under a name of its own; its tables, too, so that many fit into one
/// source.
pub fn program(number: usize, pair: &Pair, target: Target) -> Result<Generated, Verdict> {
    let wrong = |e: String| Verdict::Wrong(e);
    let mut kernel = kingpost::ir::text::parse(&pair.after).map_err(|e| wrong(e.to_string()))?;
    kernel.name = format!("sample_{number}");
    for var in kernel.vars.values_mut().filter(|v| matches!(v.kind, VarKind::Table(_))) {
        var.name = format!("{}_of_{number}", var.name);
    }
    let kernel = with_constant_temporaries(kernel, &pair.memory()).canonical();
    let options = Options::default().with_trust(true).with_contraction(!pair.exact);
    match generate(&kernel, target, &options) {
        Ok(program) => Ok(Generated { kernel, program }),
        Err(e @ (CodegenError::Race { .. } | CodegenError::Internal { .. } | CodegenError::Isl(_))) => {
            Err(wrong(e.to_string()))
        }
        Err(e) => Err(Verdict::Refused(e.to_string())),
    }
}

/// Memory for temporaries is declared with constant sizes; everything else stays parametric.
fn with_constant_temporaries(mut kernel: Kernel, memory: &Memory) -> Kernel {
    let names = names(&kernel);
    for var in kernel.vars.values_mut().filter(|v| v.kind == VarKind::Temporary) {
        let strides = match &mut var.layout.places {
            Places::Strides(strides) => strides.as_mut_slice(),
            Places::RowMajor | Places::Order(_) => &mut [],
        };
        for extent in var.shape.iter_mut().chain(strides) {
            if let Some(constant) = value(extent, &names, memory) {
                *extent = Affine::constant(constant);
            }
        }
    }
    // larger parameters would leave these temporaries
    for (id, var) in kernel.vars.iter().filter(|(_, v)| v.kind == VarKind::Param) {
        if let Some(most) = memory.get_param(&var.name) {
            let bound = Constraint::le(&Affine::var(id), &Affine::constant(most));
            kernel.assumptions.push(Assumption::Params(bound));
        }
    }
    kernel
}

fn names(kernel: &Kernel) -> Vec<String> {
    kernel.vars.values().map(|v| v.name.clone()).collect()
}

/// An expression of the parameters.
fn value(e: &Affine, names: &[String], memory: &Memory) -> Option<i64> {
    e.eval(&mut |atom| match atom {
        Atom::Var(v) => memory.get_param(&names[v.index()]),
        Atom::Iname(_) | Atom::Floor(..) => None,
    })
}

/// What the options of the C compiler depend on. Programs in one source have the same, or it would be compiled
/// once for each.
fn alike(program: &Program) -> [bool; 2] {
    let entries = program.launches.iter().flat_map(|launches| &launches.entries);
    let mut plans = entries.map(|entry| &entry.plan).chain([&program.plan]);
    let is_c = program.target == Target::C;
    [is_c && program.repeated_writes, is_c && plans.any(|plan| plan.block.iter().any(|items| *items > 1))]
}

/// One source of many programs: what they share (preamble, functions that the printers add) stands
/// once.
fn merged<'p>(programs: impl Iterator<Item = &'p Program>) -> String {
    let mut seen = BTreeSet::new();
    let mut text = String::new();
    for program in programs {
        for part in program.source.split("\n\n") {
            if seen.insert(part) {
                text += part;
                text += "\n\n";
            }
        }
    }
    text
}

fn run(
    device: &dyn Device,
    optimisation: Optimisation,
    source: &str,
    generated: &Generated,
    pair: &Pair,
) -> Verdict {
    let mut program = generated.program.clone();
    program.source = source.to_owned();
    let memory = pair.memory();
    let kernel = &generated.kernel;
    let laid_out = laid_out(kernel, &memory);
    let load = |program: &Program| -> Result<Loaded<'_>, LoadError> {
        Loaded::compiled(device, device.compile_as(program, optimisation)?, &laid_out)
    };
    let loaded = match load(&program) {
        Ok(loaded) => loaded,
        // is it this one that does not compile?
        Err(_) => match load(&generated.program) {
            Ok(loaded) => loaded,
            Err(e) => return Verdict::Wrong(format!("{e}\n{}", generated.program.source)),
        },
    };
    if let Err(e) = loaded.launch() {
        return Verdict::Wrong(e.to_string());
    }
    let mut expected = memory.clone();
    let before = kingpost::ir::text::parse(&pair.before).unwrap();
    poison(&before, &mut expected);
    if let Err(e) = interpret(&before, &mut expected) {
        return Verdict::Wrong(e.to_string());
    }
    let mut found = expected.clone();
    let written = |k: &VarKind| matches!(k, VarKind::Argument(Direction::Out | Direction::InOut));
    for var in kernel.vars.values().filter(|v| written(&v.kind)) {
        match loaded.value(&var.name) {
            Ok(value) => found.set(&var.name, gathered(kernel, var, &memory, value)),
            Err(e) => return Verdict::Wrong(e.to_string()),
        }
    }
    // contraction and functions of libraries may give a zero either sign
    let tolerance = if pair.exact { 0.0 } else { tolerance(&before) };
    match differ(&expected, &found, tolerance, Zeros::Alike) {
        None => Verdict::Same,
        Some(why) => Verdict::Wrong(format!("{why}\n{}", generated.program.source)),
    }
}
