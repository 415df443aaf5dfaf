//! Kernels for AMD's processors on paper, for `scripts/harvest` to run on a host by HIP-CPU: the operator actions as
//! `--arch gfx942` maps them and by matrix instructions, and examples with their schedules.

use crate::devices::{Generated, poison};
use crate::harvest::{Line, Writer, folder, write};
use crate::pair::tolerance;
use kingpost::codegen::{Options, Target, generate};
use kingpost::forms::mesh::Mesh;
use kingpost::forms::strategies::{MatrixCells, MatrixGroups, MatrixInstruction};
use kingpost::interp::{Memory, Value, interpret_with};
use kingpost::ir::{Affine, Atom, Direction, Id, Kernel, ScalarType, VarKind};
use kingpost::kernels::Operator;
use kingpost::runtime::open;
use kingpost::transforms::steps;
use kingpost::tuning::architecture::{for_processor, large_case};
use kingpost::{Mapping, Problem, Random, transform};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

const ARCH: &str = "gfx942";

/// Instances of a program that the interpreter runs in a second or so.
const STEPS: u64 = 3_000_000;

/// Elements of an array of such a program.
const LARGEST: usize = 1 << 20;

/// The line of a kernel with its expected results.
fn line(kernel: &Kernel, memory: &Memory, expected: &Memory, tolerance: f64) -> Result<String, String> {
    let program =
        generate(kernel, Target::Hip, &Options::default().with_trust(true)).map_err(|e| e.to_string())?;
    let host = open("c").unwrap();
    let writer = Writer { host: &*host, memory: memory.clone(), expected: expected.clone() };
    let printed = writer.printed(&Generated { kernel: kernel.clone(), program })?;
    let line = Line {
        seed: 0,
        place: [0, 0],
        pair: None,
        tolerance,
        scale: writer.scale(),
        targets: BTreeMap::from([("hip", printed)]),
    };
    serde_json::to_string(&line).map_err(|e| e.to_string())
}

/// The unit square or cube, bent, with some hundred cells: full groups, and a rest of cells.
fn mesh(dim: usize) -> Mesh {
    let mesh = if dim == 2 { Mesh::unit_square(9) } else { Mesh::unit_cube(3) }.unwrap();
    let bend = |x: &[f64]| {
        let sum: f64 = x.iter().sum();
        x.iter().map(|v| v + 0.1 * (sum + v).sin()).collect::<Vec<_>>()
    };
    let coordinates = mesh.coordinates().chunks(dim).flat_map(bend).collect();
    Mesh::new(mesh.shape(), coordinates, mesh.cells().to_vec(), None).unwrap()
}

/// By matrix instructions: all tables, and the functions of components.
fn by_instructions() -> [Mapping; 3] {
    let instruction = MatrixInstruction::Mfma16x16x4;
    let groups = MatrixGroups { instruction, ..MatrixGroups::default() };
    [
        Mapping::from(MatrixCells { instruction, ..MatrixCells::new(1, 2, 0) }),
        Mapping::from(groups.clone()).with_orbits(),
        Mapping::from(MatrixGroups { one_sub_group: true, ..groups }),
    ]
}

/// An action as it is mapped for the processor, and by matrix instructions where those suit it.
fn action(operator: Operator, dim: usize, degree: usize) -> Vec<(String, Result<String, String>)> {
    let problem = Problem::operator(operator, degree, None, mesh(dim), 46).unwrap();
    let mut expected = problem.memory.clone();
    expected.set(problem.output(), problem.reference().unwrap());
    let name = operator.action_name(dim, degree);
    let case = large_case(name.clone(), problem.lowered.clone()).unwrap();
    let known = for_processor(&problem.lowered, Some(&case), ARCH).unwrap();
    let others = by_instructions();
    let mut mappings = vec![&known[0].mapping];
    mappings.extend(others.iter().filter(|_| degree >= 3));
    let of = |(k, mapping): (usize, &&Mapping)| {
        let (kernel, _) = transform(&problem.lowered, mapping).ok()?;
        // 1e-11: sums of some hundred products in f64, by fused operations
        let line = line(&kernel, &problem.memory, &expected, 1e-11);
        Some((format!("{name}.{k}, {mapping}"), line))
    };
    mappings.iter().enumerate().filter_map(of).collect()
}

/// Values of a kernel's arguments, and `size` for each of its parameters.
fn memory_of(kernel: &Kernel, size: i64) -> Option<Memory> {
    let mut random = Random::new(46);
    let mut memory = Memory::new();
    for var in kernel.vars.values().filter(|v| v.kind == VarKind::Param) {
        memory.set_param(&var.name, size);
    }
    let names: Vec<String> = kernel.vars.values().map(|v| v.name.clone()).collect();
    for var in kernel.vars.values() {
        let extent = |e: &Affine| {
            e.eval(&mut |atom| match atom {
                Atom::Var(v) => memory.get_param(&names[v.index()]),
                Atom::Iname(_) | Atom::Floor(..) => None,
            })
        };
        let len = usize::try_from(var.shape.iter().map(extent).product::<Option<i64>>()?).ok()?;
        if len > LARGEST {
            return None;
        }
        if !matches!(var.kind, VarKind::Argument(Direction::In | Direction::InOut)) {
            continue;
        }
        if matches!(var.ty, ScalarType::Record(_)) {
            return None;
        }
        let value = if var.ty.part().is_real() {
            Value::of_reals(var.ty, &random.numbers(var.ty.parts() * len))
        } else {
            // small, because they may be indices
            Value::of_integers(var.ty, &(0..len).map(|_| random.below(3) as i64).collect::<Vec<_>>())?
        };
        memory.set(var.name.clone(), value);
    }
    Some(memory)
}

/// A program with its schedule, as the interpreter runs it; none where its arguments do not suit it.
fn run(before: &Kernel, after: &Kernel, size: i64) -> Option<Result<String, String>> {
    let memory = memory_of(before, size)?;
    let mut expected = memory.clone();
    poison(before, &mut expected);
    interpret_with(before, &mut expected, &mut (), Some(STEPS)).ok()?;
    Some(line(after, &memory, &expected, tolerance(before)))
}

/// Examples and kernels of solvers whose schedules have no holes, and the facts of code generation.
fn examples() -> Vec<(String, Result<String, String>)> {
    let mut paths: Vec<_> = ["examples", "crates/solve/src/kernels", "studies/triton"]
        .iter()
        .flat_map(|folder| std::fs::read_dir(Path::new(folder)).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "kingpost"))
        .collect();
    paths.sort();
    let of_file = |path: PathBuf| {
        let (before, script) = steps().file(&std::fs::read_to_string(&path).unwrap()).ok()?;
        let after = match script {
            Some(script) => script.apply(&before).ok()?.kernel().clone(),
            None => before.clone(),
        };
        Some((path.display().to_string(), run(&before, &after, 128)?))
    };
    let facts = kingpost_facts::load(Path::new("crates/codegen/facts")).unwrap();
    let of_fact = |name: &str, size: i64, text: &str| {
        let kernel = kingpost::ir::text::parse(text).ok()?;
        Some((format!("{name}.{size}"), run(&kernel, &kernel, size)?))
    };
    let of_facts = facts.iter().flat_map(|(name, fact)| {
        [3, 64].map(|size| of_fact(&format!("{name}.{}", fact.name), size, &fact.kernel.text))
    });
    paths.into_iter().map(of_file).chain(of_facts).flatten().collect()
}

/// Writes what has code, and says what has none.
fn keep(folder: &Path, found: Vec<(String, Result<String, String>)>) {
    for (name, line) in found {
        match line {
            Ok(line) => {
                let file = name.split(',').next().unwrap().replace(['/', ':'], "_");
                write(&folder.join(format!("{file}.pairs")), &[line]);
                println!("{name}");
            }
            Err(why) => println!("{name}: no code: {why}"),
        }
    }
}

#[test]
#[ignore = "writes kernels that `scripts/harvest run` runs by HIP-CPU"]
fn examples_for_hip_are_written() {
    keep(&folder(), examples());
}

#[test]
#[ignore = "writes kernels that `scripts/harvest run` runs by HIP-CPU"]
fn actions_for_hip_are_written() {
    let folder = folder();
    // those of vectors last: their mappings take minutes to choose
    let is_vector = |o: &Operator| matches!(o, Operator::Elasticity | Operator::Hyperelasticity);
    let degrees: Vec<_> = (1..=8).map(|p| (2, p)).chain((1..=6).map(|p| (3, p))).collect();
    let of = |(dim, p): &(usize, usize)| Operator::ALL.map(|operator| (operator, *dim, *p));
    let (vectors, scalars): (Vec<_>, Vec<_>) =
        degrees.iter().flat_map(of).partition(|case| is_vector(&case.0));
    let cases = [scalars, vectors].concat();
    assert_eq!(cases.len(), 70);
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some((operator, dim, p)) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    keep(&folder, action(*operator, *dim, *p));
                }
            });
        }
    });
}
