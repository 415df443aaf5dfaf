//! Reductions and scans realised in every way, by recipes: what the interpreter gives for the
//! kernel as it was written is what the result gives in C and OpenCL, from fresh inputs and
//! poisoned outputs. oclgrind finds no race, NVRTC compiles the CUDA source.

#![allow(clippy::unwrap_used, clippy::panic)]

use kingpost::codegen::{Options, Target, generate};
use kingpost::interp::{Memory, Value, interpret};
use kingpost::ir::{AddressSpace, Atom, AxisTag, Direction, Kernel, ScalarType, VarKind, text};
use kingpost::runtime::cuda::nvrtc;
use kingpost::runtime::{Cache, Device, oclgrind, open};
use kingpost::transforms::primitives::{
    ExpandArray, FactorUpdate, InterchangeInames, MakeAtomic, ParalleliseScan, RealiseReduction, RealiseScan,
    ReduceInTree, SetAddressSpace, SplitIname, Tag,
};
use kingpost::transforms::{Recipe, Step, steps};
use kingpost::{Loaded, Random};

/// A kernel with one parameter `n`, steps, and the sizes it runs at.
#[derive(Clone)]
struct Case {
    name: String,
    text: String,
    steps: Vec<Step>,
    sizes: Vec<i64>,
}

macro_rules! steps {
    ($($step:expr),* $(,)?) => { vec![$(Step::from($step)),*] };
}

fn case(name: impl Into<String>, text: impl Into<String>, steps: Vec<Step>, sizes: &[i64]) -> Case {
    Case { name: name.into(), text: text.into(), steps, sizes: sizes.to_vec() }
}

fn split(iname: &str, factor: i64) -> SplitIname {
    SplitIname::new(iname, factor)
}

fn tag(iname: &str, tag: &str) -> Tag {
    Tag::new(iname, AxisTag::parse(tag).unwrap())
}

const ROWS: &str = "kernel rows
param n: i32
arg a: f64[n, n] in
arg y: f64[n] out
for i in 0..n
  s: y[i] = 2.0*sum(k in 0..n: a[i, k])
";

/// An update by an operator, of a type.
fn total(op: &str, ty: &str) -> String {
    format!(
        "kernel total\nparam n: i32\narg a: {ty}[n] in\narg y: {ty} inout\nfor k in 0..n\n  s: y {op} a[k]\n"
    )
}

fn partials(powers: bool) -> Vec<Case> {
    let strided = || steps![RealiseReduction::new("k"), split("k", 4), InterchangeInames::new("k_o", "k_i")];
    let mut cases = vec![
        case(
            "sequential",
            ROWS,
            steps![RealiseReduction::new("k"), split("i", 4), tag("i_o", "g.0"), tag("i_i", "l.0")],
            &[0, 1, 6],
        ),
        case(
            "private_partials",
            ROWS,
            strided()
                .into_iter()
                .chain(steps![FactorUpdate::new("s_update", ["k_i"]), tag("i", "g.0"),])
                .collect(),
            &[0, 1, 3, 9],
        ),
        case(
            "partials_of_work_items",
            ROWS,
            strided()
                .into_iter()
                .chain(steps![
                    FactorUpdate::new("s_update", ["k_i"]),
                    SetAddressSpace::new("s_update_part", AddressSpace::Local),
                    tag("i", "g.0"),
                    tag("k_i", "l.0"),
                ])
                .collect(),
            &[0, 1, 3, 9],
        ),
        case(
            "tree_of_partials",
            ROWS,
            strided()
                .into_iter()
                .chain(steps![
                    FactorUpdate::new("s_update", ["k_i"]),
                    tag("i", "g.0"),
                    ReduceInTree::new("k_i_sum").by_work_items(AxisTag::Local(0)),
                    tag("k_i", "l.0"),
                ])
                .collect(),
            &[0, 1, 3, 9],
        ),
        case(
            "scatter_of_sums",
            "kernel scatter
param n: i32
arg map: i32[n, 3] in
arg x: f64[n, 5] in
arg y: f64[n] inout
for c in 0..n
  for q in 0..5
    for j in 0..3
      s: y[map[c, j]] += x[c, q]*f64(j + 1)
",
            steps![
                MakeAtomic::insn("s"),
                split("c", 4),
                tag("c_o", "g.0"),
                tag("c_i", "l.0"),
                FactorUpdate::new("s", ["c_o", "c_i"]),
            ],
            &[0, 1, 5, 13],
        ),
    ];
    let kinds = [
        ("+=", "f64"),
        ("min=", "f64"),
        ("max=", "f64"),
        ("*=", "f32"),
        ("min=", "f32"),
        ("max=", "i64"),
        ("+=", "i32"),
    ];
    for (op, ty) in kinds {
        let steps = steps![
            split("k", if powers { 4 } else { 5 }),
            FactorUpdate::new("s", ["k_o"]).into_temporary("block"),
            MakeAtomic::insn("block_sum"),
            ReduceInTree::new("k_i").by_work_items(AxisTag::Local(0)),
            tag("k_o_sum", "g.0"),
            tag("k_o", "g.0"),
        ];
        cases.push(case(format!("across_groups {op} {ty}"), total(op, ty), steps, &[0, 1, 5, 23]));
    }
    cases
}

fn trees() -> Vec<Case> {
    let tree = |n: i64| {
        let text = format!(
            "kernel tree\nparam n: i32\narg a: f64[n, {n}] in\narg y: f64[n] out\nfor i in 0..n\n  \
             s: y[i] = sum(j in 0..{n}: a[i, j])\n"
        );
        let steps = steps![
            RealiseReduction::new("j"),
            ReduceInTree::new("j").by_work_items(AxisTag::Local(0)),
            tag("i", "g.0"),
        ];
        case(format!("tree of {n}"), text, steps, &[3])
    };
    let mut cases: Vec<_> = [1, 2, 3, 5, 8, 13, 33].map(tree).into();
    cases.extend(shuffles());
    let short = "kernel short
param n: i32
assume n <= 9
arg a: f64[n, n] in
arg y: f64[n] out
for i in 0..n
  s: y[i] = minimum(j in 0..i: a[i, j])
";
    let steps = steps![
        RealiseReduction::new("j"),
        ReduceInTree::new("j").by_work_items(AxisTag::Local(0)),
        tag("i", "g.0")
    ];
    cases.push(case("ranges from nothing to eight", short, steps, &[0, 1, 9]));
    let carried = "kernel carried
param n: i32
arg a: f64[n, 6] in
arg y: f64 inout
for i in 0..n
  for j in 0..6
    s: y += a[i, j]
";
    let steps = steps![ReduceInTree::new("j").by_work_items(AxisTag::Local(0))];
    cases.push(case("a tree in a sequential loop", carried, steps, &[0, 1, 4]));
    cases
}

/// Trees in the registers of sub-groups.
fn shuffles() -> Vec<Case> {
    let text = |op: &str, ty: &str, n: i64| {
        format!(
            "kernel shuffles\nparam n: i32\narg a: {ty}[n, {n}] in\narg y: {ty}[n] out\nfor i in 0..n\n  \
             s: y[i] = {op}(j in 0..{n}: a[i, j])\n"
        )
    };
    let tree = || {
        let tree = ReduceInTree::new("j").by_work_items(AxisTag::Local(0)).into_temporary("t").by_shuffles();
        steps![RealiseReduction::new("j"), tree]
    };
    let kinds = [("sum", "f64"), ("product", "f32"), ("minimum", "i64"), ("maximum", "i32")];
    let of_group = kinds.into_iter().zip([32, 8, 2, 1]).map(|((op, ty), n)| {
        let steps = tree().into_iter().chain(steps![tag("i", "g.0")]).collect();
        case(format!("{op} of {n} by shuffles"), text(op, ty, n), steps, &[0, 1, 3])
    });
    // several rows of work-items, the last group without all of them
    let rows = [(4, 8_u32), (3, 16), (2, 32)].map(|(rows, n)| {
        let arrays = ["t".to_owned()].into_iter().chain((0..n.ilog2()).map(|k| format!("t_sum_{k}")));
        let steps = tree().into_iter().chain(steps![split("i", rows)]);
        let steps = steps.chain(arrays.map(|t| Step::from(ExpandArray::new(t, ["i_i"]))));
        let steps = steps.chain(steps![tag("i_o", "g.0"), tag("i_i", "l.1")]).collect();
        case(format!("{rows} rows of {n} by shuffles"), text("sum", "f64", n.into()), steps, &[0, 1, 9])
    });
    let strided = "kernel strided
param n: i32
arg a: f64[n, n] in
arg y: f64[n] out
for i in 0..n
  s: y[i] = 2.0*sum(k in 0..n: a[i, k])
";
    let steps = steps![
        RealiseReduction::new("k"),
        split("k", 32),
        InterchangeInames::new("k_o", "k_i"),
        FactorUpdate::new("s_update", ["k_i"]),
        tag("i", "g.0"),
        ReduceInTree::new("k_i_sum").by_work_items(AxisTag::Local(0)).by_shuffles(),
        tag("k_i", "l.0"),
    ];
    let strided = case("strided partial sums by shuffles", strided, steps, &[0, 1, 31, 70]);
    of_group.chain(rows).chain([strided]).collect()
}

/// Blocks of a size that is a power of two, or of others.
fn scans(powers: bool) -> Vec<Case> {
    let sums = |range: &str| {
        format!(
            "kernel sums\nparam n: i32\narg a: f64[n + 2] in\narg y: f64[n] out\nfor i in 0..n\n  \
             s: y[i] = 2.0*sum(j in {range}: a[j])\n"
        )
    };
    let realise = || RealiseScan::new("s").into_temporary("total");
    let blocks = |factor| {
        steps![
            realise(),
            split("i", factor),
            ParalleliseScan::new("i_i", "total_update").by_work_items(AxisTag::Local(0)),
        ]
    };
    let recurrence = "kernel recurrence
param n: i32
arg a: f64[n] in
arg y: f64[n] inout
for i in 1..n
  s: y[i] = max(y[i - 1], a[i])
";
    let rows = "kernel rows
param n: i32
arg a: f32[n, n] in
arg y: f32[n, n] out
for r in 0..n
  for i in 0..n
    s: y[r, i] = sum(j in 0..i + 1: a[r, j])
";
    vec![
        case("inclusive scan", sums("0..i + 1"), steps![realise()], &[0, 1, 7]),
        case("exclusive scan", sums("0..i"), steps![realise()], &[0, 1, 7]),
        case("scan from several terms", sums("1..i + 3"), steps![realise()], &[0, 1, 7]),
        case("recurrence", recurrence, steps![realise()], &[0, 1, 2, 7]),
        case("inclusive parallel scan", sums("0..i + 1"), blocks(4), &[0, 1, 4, 11]),
        case("exclusive parallel scan", sums("0..i"), blocks(if powers { 8 } else { 5 }), &[0, 1, 5, 12]),
        case("parallel recurrence", recurrence, blocks(if powers { 4 } else { 3 }), &[0, 1, 2, 9]),
        case(
            "two-level scan in every row",
            rows,
            steps![
                realise(),
                split("i", if powers { 8 } else { 6 }),
                split("i_i", 2),
                ParalleliseScan::new("i_i_o", "total_update").by_work_items(AxisTag::Local(0)),
                tag("r", "g.0"),
            ],
            &[0, 1, 7, 13],
        ),
    ]
}

/// What an empty range gives stands next to loops that run, and each is separate.
fn empty_ranges() -> Vec<Case> {
    let kinds =
        [("sum", "f64"), ("product", "f32"), ("minimum", "f64"), ("maximum", "i32"), ("minimum", "i64")];
    let text = |(reduction, ty): (&str, &str)| {
        format!(
            "kernel empty\nparam n: i32\narg a: {ty}[n] in\narg y: {ty} out\narg z: {ty}[n] out\narg w: {ty}[n] out\n\
             s: y = {reduction}(j in 3..3: a[j])\nfor i in 0..n\n  t: z[i] = a[i]\n  \
             u: w[i] = {reduction}(k in 0..i: a[k])\n"
        )
    };
    let mut cases: Vec<_> = kinds.map(|k| case(format!("empty {k:?}"), text(k), Vec::new(), &[0, 3])).into();
    for realised in ["j", "k"] {
        let name = format!("empty, `{realised}` realised");
        let steps = steps![RealiseReduction::new(realised), tag("i", "g.0")];
        cases.push(case(name, text(("minimum", "f64")), steps, &[0, 3]));
    }
    cases
}

/// A program with a schedule after it.
fn file(name: &str, program: &str, sizes: &[i64]) -> Case {
    let (kernel, script) = steps().file(program).unwrap_or_else(|e| panic!("{name}: {}", e.render(program)));
    let schedule = script.unwrap().apply(&kernel).unwrap_or_else(|e| panic!("{name}: {e}"));
    case(name, text::print(&kernel), schedule.recipe().steps.clone(), sizes)
}

/// Examples with a schedule after the program, at sizes that no block divides.
fn examples() -> Vec<Case> {
    // blocks of 32 values and chunks of four blocks: a few hundred values are many of both
    let small = |program: &str| program.replace(" 512)", " 32)").replace(" 64)", " 4)");
    vec![
        file("attention", include_str!("../../examples/attention.kingpost"), &[1, 37, 130]),
        file("softmax", include_str!("../../examples/softmax.kingpost"), &[1, 7, 70]),
        file("prefix_sums", include_str!("../../examples/prefix_sums.kingpost"), &[0, 1, 1100]),
        file("total", include_str!("../../examples/total.kingpost"), &[0, 1, 1100]),
        file("histogram", include_str!("../../examples/histogram.kingpost"), &[0, 1, 300, 5000]),
        file("nbody", include_str!("../../examples/nbody.kingpost"), &[1, 64, 150]),
        file("many prefix_sums", &small(include_str!("../../examples/prefix_sums.kingpost")), &[5, 1001]),
        file("many blocks", &small(include_str!("../../examples/total.kingpost")), &[5, 1001]),
    ]
}

/// Examples on groups that wait for values of earlier ones, which OpenCL does not have.
fn ordered() -> Vec<Case> {
    let program = include_str!("../../examples/prefix_one_pass.kingpost");
    // blocks of 16 work-items with two values each, and chunks of three of them
    let steps = ", of_runs_4, of_runs_5, of_runs_6, of_runs_7";
    let numbers =
        [(" 32)", " 2)"), ("8192", "32"), ("[256]", "[16]"), ("chunk: 256", "chunk: 3"), (steps, "")];
    let small = numbers.iter().fold(program.to_owned(), |text, (from, to)| text.replace(from, to));
    vec![
        file("prefix_one_pass", program, &[0, 1, 1100, 8193]),
        file("many prefix_one_pass", &small, &[5, 31, 32, 33, 95, 96, 1001]),
    ]
}

/// Flash attention: one pass over the keys, and nothing of a row's length in memory.
#[test]
fn flash_attention_is_derived_in_few_steps() {
    let examples = examples();
    let case = examples.iter().find(|c| c.name == "attention").unwrap();
    assert!(case.steps.len() <= 20, "{} steps", case.steps.len());
    let kernel = Recipe::new(case.steps.clone()).apply(&text::parse(&case.text).unwrap()).unwrap();
    let long = |v: &&kingpost::ir::Variable| {
        v.kind == VarKind::Temporary && v.shape.iter().any(|extent| extent.as_constant().is_none())
    };
    assert_eq!(kernel.vars.values().find(long), None, "{kernel}");
    let over_keys = kernel
        .inames
        .iter()
        .filter(|(l, i)| kernel.show_domain(*l, &i.domain).to_string().contains("n + 15"));
    assert!(over_keys.count() <= 1, "{kernel}");
}

fn cases() -> Vec<Case> {
    [partials(false), trees(), scans(false), empty_ranges(), examples()].into_iter().flatten().collect()
}

/// Random inputs; integers are indices below `n`. What the kernel only writes is not there.
fn memory(kernel: &Kernel, n: i64, random: &mut Random) -> Memory {
    let mut memory = Memory::new().param("n", n);
    for var in kernel.vars.values() {
        if !matches!(var.kind, VarKind::Argument(Direction::In | Direction::InOut)) {
            continue;
        }
        let extent =
            |e: &kingpost::ir::Affine| e.eval(&mut |a| matches!(a, Atom::Var(_)).then_some(n)).unwrap();
        let len = var.shape.iter().map(extent).product::<i64>();
        let index = |random: &mut Random| random.below(n.max(1) as u64);
        let value = match var.ty {
            ScalarType::F64 => Value::F64((0..len).map(|_| random.number()).collect()),
            ScalarType::F32 => Value::F32((0..len).map(|_| random.number() as f32).collect()),
            ty => Value::of_bits(ty, &(0..len).map(|_| index(random) as i64).collect::<Vec<_>>()),
        };
        memory.set(var.name.clone(), value);
    }
    memory
}

/// 1e-13 and 1e-5 for sums of 70 terms of at most 3, in any order; in proportion for more of them.
fn same(expected: &Value, found: &Value, terms: i64) -> bool {
    let many = (terms as f64 / 70.0).max(1.0);
    let tolerance = match expected.ty() {
        ScalarType::F64 => 1e-13 * many,
        ScalarType::F32 => 1e-5 * many,
        _ => return expected == found,
    };
    let (expected, found) = (expected.to_f64(), found.to_f64());
    let close = |(a, b): (&f64, &f64)| a == b || (a - b).abs() <= tolerance * (1.0 + a.abs());
    expected.len() == found.len() && expected.iter().zip(&found).all(close)
}

fn check(case: &Case, devices: &[Box<dyn Device>]) {
    let written =
        text::parse(&case.text).unwrap_or_else(|e| panic!("{}: {}", case.name, e.render(&case.text)));
    let kernel = Recipe::new(case.steps.clone()).apply(&written);
    let kernel = kernel.unwrap_or_else(|e| panic!("{}: {e}\n{}", case.name, e.kernel));
    let seed = Random::fresh_seed();
    let mut random = Random::new(seed);
    let programs: Vec<_> = devices
        .iter()
        .map(|device| generate(&kernel, device.info().backend.target(), &Options::default()))
        .map(|program| program.unwrap_or_else(|e| panic!("{}: {e}\n{kernel}", case.name)))
        .collect();
    for n in &case.sizes {
        let given = memory(&written, *n, &mut random);
        let (mut expected, mut found) = (given.clone(), given.clone());
        interpret(&written, &mut expected).unwrap_or_else(|e| panic!("{} at {n}: {e}", case.name));
        interpret(&kernel, &mut found).unwrap_or_else(|e| panic!("{} at {n}: {e}\n{kernel}", case.name));
        for (name, value) in expected.values() {
            let what = format!("{} at {n}, seed {seed}: `{name}`", case.name);
            assert!(same(value, found.get(name).unwrap(), *n), "{what} by the interpreter\n{kernel}");
            if kernel.vars.values().any(|v| v.name == *name && v.kind == VarKind::Argument(Direction::In)) {
                continue;
            }
            for (device, program) in devices.iter().zip(&programs) {
                let loaded = Loaded::new(&**device, program, &given).unwrap();
                loaded.launch().unwrap();
                let result = loaded.value(name).unwrap();
                let on = &device.info().name;
                assert!(
                    same(value, &result, *n),
                    "{what} on {on}: {result:?}, not {value:?}\n{}",
                    program.source
                );
            }
        }
    }
}

fn check_on(device: &str, cases: &[Case]) {
    match open(device) {
        Ok(device) => {
            let devices = [device];
            cases.iter().for_each(|case| check(case, &devices));
        }
        Err(e) => println!("skipped: no {device} device ({e})"),
    }
}

#[test]
fn agree_in_c() {
    check_on("c", &[cases(), ordered()].concat());
}

#[test]
fn agree_in_opencl() {
    check_on("opencl", &cases());
}

#[test]
fn agree_in_cuda() {
    check_on("cuda", &[cases(), ordered()].concat());
}

#[test]
#[ignore = "`oclgrind_finds_nothing` runs it in a child process under oclgrind"]
fn child() {
    let device = open("opencl").unwrap();
    assert!(device.info().driver.contains("Oclgrind"), "{}", device.info().driver);
    // oclgrind 21.10 does not know `freeze`, which clang makes of divisions by other constants than
    // powers of two
    for cases in [partials(true), trees(), scans(true), empty_ranges()] {
        check_on("opencl", &cases);
    }
}

#[test]
fn oclgrind_finds_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let environment = match oclgrind::environment(dir.path()) {
        Ok(environment) => environment,
        Err(e) => return println!("skipped: {e}"),
    };
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "reductions::child", "--ignored", "--nocapture"]);
    let child = command.envs(environment).output().unwrap();
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stderr));
    let said = String::from_utf8_lossy(&child.stdout);
    assert!(said.contains("1 passed"), "no kernel ran: {said}");
    assert_eq!(oclgrind::read_log(&oclgrind::log_file(dir.path())).unwrap(), []);
}

#[test]
fn cuda_sources_compile() {
    if let Err(reason) = nvrtc::version() {
        return println!("skipped: {reason}");
    }
    let cache = Cache::from_environment();
    for case in [cases(), ordered()].concat() {
        let kernel = Recipe::new(case.steps).apply(&text::parse(&case.text).unwrap()).unwrap();
        let program = generate(&kernel, Target::Cuda, &Options::default()).unwrap();
        let object = nvrtc::compile_for("sm_90", &program.entry, &program.source, &cache).unwrap();
        assert!(!object.cubin.is_empty(), "{}: {}", case.name, object.log);
    }
}
