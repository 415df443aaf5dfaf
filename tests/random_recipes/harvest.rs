//! Pairs on paper, for compilers that Kingpost does not know: `scripts/harvest.py` compiles and
//! runs what is written here, and asks for a smaller pair where a compiler is wrong.

use crate::devices::{Generated, poison, program};
use crate::pair::{Pair, tolerance};
use crate::reduce::{Fails, Journal, Limits, Origin};
use crate::shrink::Tree;
use crate::tally::Tally;
use crate::{BATCH, Sum, drafts, in_parallel, reduce, shrink, variable};
use kingpost::codegen::{ArgKind, ArgSpec, BufferAccess, HostExpr, LaunchPlan, Program, Target};
use kingpost::interp::{Memory, Value, interpret, with_elements};
use kingpost::ir::{Direction, Kernel, VarKind};
use kingpost::laid_out;
use kingpost::runtime::{Device, buffer_of, open};
use proptest::strategy::ValueTree;
use serde::Serialize;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

/// The folder that pairs are written to.
const FOLDER: &str = "KINGPOST_HARVEST";

/// A pair, how its results are compared, and its code.
#[derive(Serialize)]
pub struct Line<'p> {
    pub seed: u64,
    /// Of its batch, and in it.
    pub place: [u64; 2],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pair: Option<&'p Pair>,
    pub tolerance: f64,
    /// The largest finite result, at least 1: what the tolerance is relative to.
    pub scale: f64,
    pub targets: BTreeMap<&'static str, Printed>,
}

/// A source and its launches.
#[derive(Serialize)]
pub struct Printed {
    source: String,
    entry: String,
    /// Whether `a*b + c` may be rounded once.
    contraction: bool,
    arrays: Vec<Array>,
    arguments: Vec<Argument>,
    launches: Vec<Launch>,
}

/// Bytes are hexadecimal.
#[derive(Serialize)]
struct Array {
    name: String,
    ty: String,
    first: String,
    /// What it holds at the end, if that is a result.
    #[serde(skip_serializing_if = "Option::is_none")]
    expected: Option<String>,
    /// Not zero where no element lies.
    #[serde(skip_serializing_if = "Option::is_none")]
    holes: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Argument {
    Array(usize),
    Scalar(String),
}

#[derive(Serialize)]
struct Launch {
    name: String,
    grid: [u64; 3],
    block: [u64; 3],
    local: u64,
    /// Scalars after the arguments.
    more: Vec<String>,
}

/// What becomes of one target.
pub type Written = Result<Printed, String>;

/// Everything that the code of a pair depends on, and where it is computed.
pub struct Writer<'d> {
    pub host: &'d dyn Device,
    pub memory: Memory,
    pub expected: Memory,
}

impl Writer<'_> {
    /// The largest finite result, at least 1.
    pub fn scale(&self) -> f64 {
        let reals = self.expected.values().values().filter(|v| v.ty().part().is_real());
        reals.flat_map(Value::to_f64).filter(|x| x.is_finite()).fold(1.0, |s, x| s.max(x.abs()))
    }

    /// The memory of a device is bytes.
    fn bytes(&self, value: &Value) -> Result<Vec<u8>, String> {
        if value.is_empty() {
            return Ok(Vec::new());
        }
        let buffer = with_elements!(value, v => buffer_of(self.host, v)).map_err(|e| e.to_string())?;
        let mut bytes = vec![0; buffer.bytes() as usize];
        self.host.download(&buffer, &mut bytes).map_err(|e| e.to_string())?;
        Ok(bytes)
    }

    fn hex(&self, value: &Value) -> Result<String, String> {
        Ok(hex(&self.bytes(value)?))
    }

    pub fn printed(&self, Generated { kernel, program }: &Generated) -> Written {
        let plan = &program.plan;
        if !plan.maps.is_empty() {
            return Err("maps of tensors".into());
        }
        let elements = |name: &str| self.memory.get(name).map(|value| value.len() as u64);
        let params = plan.parameters(self.memory.params(), &elements).map_err(|e| e.to_string())?;
        let (mut arrays, mut arguments) = (Vec::new(), Vec::new());
        for spec in &plan.args {
            arguments.push(match &spec.kind {
                ArgKind::Param => Argument::Scalar(parameter(spec, &params)?),
                ArgKind::Scalar => {
                    let value = self.memory.get(&spec.name).ok_or("a scalar without a value")?;
                    Argument::Scalar(self.hex(value)?)
                }
                ArgKind::Buffer { .. } | ArgKind::Table(_) | ArgKind::Scratch { .. } => {
                    arrays.push(self.array(kernel, spec, &params)?);
                    Argument::Array(arrays.len() - 1)
                }
            });
        }
        Ok(Printed {
            source: program.source.clone(),
            entry: program.entry.clone(),
            contraction: program.contraction,
            arrays,
            arguments,
            launches: launches(program, &params)?,
        })
    }

    fn array(
        &self,
        kernel: &Kernel,
        spec: &ArgSpec,
        params: &BTreeMap<String, i64>,
    ) -> Result<Array, String> {
        let len = |e: &HostExpr| e.eval(params).map_err(|e| e.to_string());
        let filled = |e, byte: &str| -> Result<String, String> {
            Ok(byte.repeat(usize::try_from(len(e)?).map_err(|e| e.to_string())? * spec.ty.bytes() as usize))
        };
        let (name, ty) = (spec.name.clone(), spec.ty.to_string());
        let constant =
            |first| Array { name: name.clone(), ty: ty.clone(), first, expected: None, holes: None };
        match &spec.kind {
            ArgKind::Param | ArgKind::Scalar => Err("no array".into()),
            ArgKind::Table(data) => Ok(constant(self.hex(&Value::of_table(spec.ty, data))?)),
            ArgKind::Scratch { len, zeroed } => Ok(constant(filled(len, if *zeroed { "00" } else { "ff" })?)),
            ArgKind::Buffer { len, access } => {
                let placed = |memory: &Memory| -> Result<Option<String>, String> {
                    let memory = laid_out(kernel, memory);
                    memory.get(&name).map(|value| self.hex(value)).transpose()
                };
                let first = match access {
                    BufferAccess::Out => filled(len, "ff")?,
                    BufferAccess::In | BufferAccess::InOut => placed(&self.memory)?.ok_or("no value")?,
                };
                let is_written = kernel.vars.values().any(|var| {
                    let written = [Direction::Out, Direction::InOut].map(VarKind::Argument);
                    var.name == name && written.contains(&var.kind)
                });
                let (mut expected, mut holes) = (None, None);
                if let (true, Some(value)) = (is_written, self.expected.get(&name)) {
                    expected = placed(&self.expected)?;
                    let mut zeros = self.expected.clone();
                    zeros.set(&name, Value::zeros(value.ty(), value.len()));
                    holes = placed(&zeros)?.filter(|bytes| bytes.bytes().any(|digit| digit != b'0'));
                }
                Ok(Array { expected, holes, ..constant(first) })
            }
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A parameter as the entry point takes it.
fn parameter(spec: &ArgSpec, params: &BTreeMap<String, i64>) -> Result<String, String> {
    let value = params.get(&spec.name).ok_or("a parameter without a value")?;
    Ok(hex(&value.to_le_bytes()[..spec.ty.bytes() as usize]))
}

fn launch(
    name: &str,
    plan: &LaunchPlan,
    known: usize,
    params: &BTreeMap<String, i64>,
) -> Result<Launch, String> {
    let mut grid = [0; 3];
    for (groups, e) in grid.iter_mut().zip(&plan.grid) {
        // where a loop of the host leaves nothing to do, there are fewer than no groups
        *groups = e.eval(params).map_err(|e| e.to_string())?.max(0).unsigned_abs();
    }
    let more = plan.args[known..].iter().map(|spec| parameter(spec, params)).collect::<Result<_, _>>()?;
    Ok(Launch { name: name.into(), grid, block: plan.block, local: plan.dynamic_local_bytes, more })
}

/// In C the entry point runs all launches.
fn launches(program: &Program, params: &BTreeMap<String, i64>) -> Result<Vec<Launch>, String> {
    let known = program.plan.args.len();
    let Some(sequence) = program.launches.as_ref().filter(|_| program.target != Target::C) else {
        return Ok(vec![launch(&program.entry, &program.plan, known, params)?]);
    };
    let mut launches = Vec::new();
    sequence.visit(params, &|e| e.to_string(), &mut |entry, params| {
        let entry = &sequence.entries[entry];
        launches.push(launch(&entry.name, &entry.plan, known, params)?);
        Ok(())
    })?;
    Ok(launches)
}

/// The line of a pair; where the interpreter does not run it, why. Targets without code for it are
/// left out.
fn line(host: &dyn Device, pair: &Pair, seed: u64, place: [u64; 2]) -> Result<String, String> {
    let before = kingpost::ir::text::parse(&pair.before).map_err(|e| e.to_string())?;
    let memory = pair.memory();
    let mut expected = memory.clone();
    poison(&before, &mut expected);
    interpret(&before, &mut expected).map_err(|e| e.to_string())?;
    let writer = Writer { host, memory, expected };
    let mut targets = BTreeMap::new();
    for target in Target::ALL {
        let number = place[1] as usize;
        if let Ok(printed) =
            program(number, pair, *target).map_err(drop).and_then(|g| writer.printed(&g).map_err(drop))
        {
            targets.insert(target.description().name, printed);
        }
    }
    let line =
        Line { seed, place, pair: Some(pair), tolerance: tolerance(&before), scale: writer.scale(), targets };
    serde_json::to_string(&line).map_err(|e| e.to_string())
}

/// The folder that `KINGPOST_HARVEST` names.
pub fn folder() -> PathBuf {
    let folder =
        std::env::var_os(FOLDER).unwrap_or_else(|| panic!("`{FOLDER}` names the folder of the pairs"));
    std::fs::create_dir_all(&folder).unwrap();
    folder.into()
}

pub fn write(file: &Path, lines: &[String]) {
    // whoever waits for the file sees all of it
    let unfinished = file.with_extension("part");
    std::fs::write(&unfinished, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    std::fs::rename(unfinished, file).unwrap();
}

#[test]
#[ignore = "writes the pairs that `make harvest` compiles"]
fn pairs_are_written() {
    let (seed, folder) = (kingpost_sample::seed(), folder());
    let host = open("c").unwrap();
    let (sum, broken) = (Mutex::new(Sum::default()), Mutex::new(Vec::new()));
    let first = variable("KINGPOST_FIRST_BATCH").unwrap_or(0); // the first one of the seed
    let batches = variable("KINGPOST_PAIRS").unwrap_or(100).div_ceil(BATCH as u64);
    in_parallel(first..first + batches, &sum, |number| {
        let mut lines = Vec::new();
        for (k, tree) in (0..).zip(drafts(seed, number, None)) {
            // what is wrong with one keeps nobody from the others
            let pair = catch_unwind(AssertUnwindSafe(|| tree.0.current().pair(&mut Tally::default())));
            match pair {
                Ok(Ok(pair)) => lines.extend(line(&*host, &pair, seed, [number, k])),
                Ok(Err(found)) => {
                    let of = Origin { seed, number, k: k as usize, aim: None };
                    broken.lock().unwrap().push(crate::smallest_broken(&of, &found));
                }
                Err(_) => broken.lock().unwrap().push(format!("a panic at pair {k} of batch {number}")),
            }
        }
        write(&folder.join(format!("{seed}_{number}.pairs")), &lines);
        sum.lock().unwrap().pairs += lines.len() as u64;
    });
    let (sum, broken) = (sum.into_inner().unwrap(), broken.into_inner().unwrap());
    println!("{} pairs written; KINGPOST_SEED={seed}", sum.pairs);
    assert!(broken.is_empty(), "KINGPOST_SEED={seed}: {}", broken.join("\n\n"));
    assert!(sum.failures.is_empty(), "KINGPOST_SEED={seed}: {}", sum.failures.join("\n\n"));
}

/// Makes a pair smaller while a command fails on the file of its line: `KINGPOST_HARVEST_PLACE` is
/// its batch and its number in it, `KINGPOST_HARVEST_JUDGE` the command.
#[test]
#[ignore = "a step of `scripts/harvest.py reduce`"]
fn a_pair_is_made_smaller() {
    let seed = kingpost_sample::seed();
    let words = |name: &str| -> Vec<String> {
        let value = std::env::var(name).unwrap_or_else(|_| panic!("`{name}` is not set"));
        value.split_whitespace().map(str::to_owned).collect()
    };
    let place: Vec<u64> = words("KINGPOST_HARVEST_PLACE").iter().map(|n| n.parse().unwrap()).collect();
    let [number, k] = place[..] else { panic!("a place is two numbers") };
    let of = Origin { seed, number, k: k as usize, aim: None };
    let report = reduce::report(&of, &Fails::By(words("KINGPOST_HARVEST_JUDGE")), Limits::USUAL);
    println!("{}", report.expect("nothing is found within the limits"));
}

/// A smaller pair at whose line a command fails, as text and as a line in the folder.
pub fn smaller(tree: &mut Tree, of: &Origin, judge: &[String], journal: &Journal) -> String {
    let (folder, host, place) = (folder(), open("c").unwrap(), [of.number, of.k as u64]);
    let tried = folder.join("tried.pairs");
    let is_wrong = |pair: &Pair| {
        write(&tried, &[line(&*host, pair, of.seed, place).ok()?]);
        let status = Command::new(&judge[0]).args(&judge[1..]).arg(&tried).status().unwrap();
        (!status.success()).then_some(())
    };
    let Some((pair, ())) = shrink::judged(tree, journal, is_wrong) else {
        return "the command finds nothing wrong".into();
    };
    write(&folder.join("smallest.pairs"), &[line(&*host, &pair, of.seed, place).unwrap()]);
    format!("{}\n{}\n=>\n{}", pair.before, pair.recipe, pair.after)
}

/// What is written is what a compiler needs: the bytes of a sum, of its result, and its launch.
#[test]
fn a_line_holds_bytes_and_launches() {
    let text = "kernel sample\nparam n: i32\narg x: f64[n] in\narg y: f64[n] out\n\nfor i in 0..n - 1 {g.0}\n  s: y[i] = x[i] + 1.0\n";
    let before = kingpost::ir::text::parse(text).unwrap().to_string();
    let pair = Pair {
        n: 3,
        m: 2,
        seed: 7,
        names: BTreeMap::new(),
        after: before.clone(),
        before,
        recipe: Default::default(),
        exact: false,
    };
    let host = open("c").unwrap();
    let line: serde_json::Value = serde_json::from_str(&line(&*host, &pair, 7, [2, 5]).unwrap()).unwrap();
    let reals = |hex: &serde_json::Value| -> Vec<f64> {
        let digits = hex.as_str().unwrap().as_bytes();
        let byte = |two: &[u8]| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap();
        let bytes: Vec<u8> = digits.chunks(2).map(byte).collect();
        bytes.chunks(8).map(|b| f64::from_le_bytes(b.try_into().unwrap())).collect()
    };
    for target in ["c", "opencl", "cuda", "hip"] {
        let printed = &line["targets"][target];
        assert!(printed["source"].as_str().unwrap().contains("sample_5"), "{printed}");
        let (x, y) = (&printed["arrays"][0], &printed["arrays"][1]);
        let (given, found) = (reals(&x["first"]), reals(&y["expected"]));
        assert_eq!((found[0], found[1]), (given[0] + 1.0, given[1] + 1.0), "{target}");
        assert!(found[2].is_nan() && reals(&y["first"]).iter().all(|x| x.is_nan()), "{target}");
        assert!(x["expected"].is_null() && y["holes"].is_null(), "{target}");
        assert_eq!(printed["arguments"][0]["scalar"], "03000000", "{target}");
        assert_eq!(printed["launches"][0]["grid"], serde_json::json!([2, 1, 1]), "{target}");
    }
}
