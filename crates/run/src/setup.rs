//! Inputs that are computed once for many launches.

use crate::{LoadError, Loaded, laid_out};
use kingpost_codegen::{CodegenError, Options, generate};
use kingpost_interp::{Memory, Value};
use kingpost_ir::{AxisTag, Kernel, Node, ScalarType};
use kingpost_primitives::Schedule;
use kingpost_primitives::ScheduleSteps;
use kingpost_primitives::block_numbers::{BlockNumbers, BrokenBlock};
use kingpost_primitives::lists::{Definition, ListNames, ListOverflow, RowOrder};
use kingpost_primitives::runs::{BrokenRun, RunStarts};
use kingpost_runtime::Device;
use std::time::Instant;

/// What computing inputs took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SetUp {
    /// Number of inputs.
    pub inputs: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Seconds of the kernels, without compiling them and without moving arrays.
    pub kernel_s: f64,
    /// Seconds of all, with arrays moved to the device and back, and without compiling.
    pub seconds: f64,
}

/// Why inputs could not be computed.
#[derive(Debug, thiserror::Error)]
pub enum SetUpError {
    /// No code for the device.
    #[error(transparent)]
    Codegen(#[from] CodegenError),
    /// There is no map to make lists of.
    #[error("`{map}` has no values to make lists of; give the map that the kernel takes")]
    NoMap {
        /// The map.
        map: String,
    },
    /// A list is too short.
    #[error(transparent)]
    Overflow(#[from] ListOverflow),
    /// The rows of a map have no such runs.
    #[error(transparent)]
    Broken(#[from] BrokenRun),
    /// The rows of a map have no blocks of a pattern.
    #[error(transparent)]
    Unlike(#[from] BrokenBlock),
    /// Numbers of runs are below those of the other input, and the map has no negative ones.
    #[error(
        "the constant of `{starts}` is no number of type {ty}; number vertices first, or take a mapping without \
         `by_vertices`"
    )]
    Distance {
        /// The input that has it.
        starts: String,
        /// The type of the map.
        ty: ScalarType,
    },
    /// The device refused.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A bug of this crate: the step has proved that the numbers fit.
    #[error("bug of kingpost: `{list}` has a number that is none of type {ty}")]
    Bug {
        /// The list.
        list: String,
        /// Its type.
        ty: ScalarType,
    },
}

/// Runs the kernels that compute inputs on a device, and puts their results into `memory`.
///
/// A kernel that is one loop runs it on work-items, 32 a group, where its iterations are independent.
///
/// # Errors
/// A kernel that the device refuses, no memory.
pub fn set_up(
    device: &dyn Device,
    definitions: &[Definition],
    memory: &mut Memory,
) -> Result<SetUp, SetUpError> {
    set_up_with(device, definitions, memory, &Options::default())
}

/// As [`set_up`], with options of code generation: whether code of all callees may run.
///
/// # Errors
/// As [`set_up`].
pub fn set_up_with(
    device: &dyn Device,
    definitions: &[Definition],
    memory: &mut Memory,
    options: &Options,
) -> Result<SetUp, SetUpError> {
    let mut done = SetUp::default();
    for definition in definitions {
        let definition = match definition {
            Definition::Kernel(kernel) => kernel,
            Definition::Lists(lists) => {
                list(lists, memory, &mut done)?;
                continue;
            }
            Definition::Rows(rows) => {
                reorder(rows, memory, &mut done)?;
                continue;
            }
            Definition::Runs(runs) => {
                start_runs(runs, memory, &mut done)?;
                continue;
            }
            Definition::Blocks(blocks) => {
                number_blocks(blocks, memory, &mut done)?;
                continue;
            }
        };
        let results = definition.vars.values().filter(|v| v.is_output());
        let names: Vec<String> = results.map(|v| v.name.clone()).collect();
        let kernel = on_work_items(definition);
        let program = generate(&kernel, device.info().backend.target(), options)?;
        let executable = device.compile(&program).map_err(LoadError::from)?;
        let start = Instant::now();
        let loaded = Loaded::compiled(device, executable, &laid_out(&kernel, memory))?;
        let launched = Instant::now();
        loaded.launch().map_err(LoadError::from)?;
        done.kernel_s += launched.elapsed().as_secs_f64();
        for name in names {
            let value = loaded.value(&name)?;
            done.inputs += 1;
            done.bytes += value.len() as u64 * value.ty().bytes();
            memory.set(name, value);
        }
        done.seconds += start.elapsed().as_secs_f64();
    }
    Ok(done)
}

/// Puts what the host computes of inputs into `memory`: lists of maps, rows in another order, the
/// starts of runs, and the numbers of blocks. What kernels compute is left out.
///
/// # Errors
/// A map without values, a list that is too short, rows without runs or blocks.
pub fn set_up_maps(definitions: &[Definition], memory: &mut Memory) -> Result<(), SetUpError> {
    let mut done = SetUp::default();
    for definition in definitions {
        match definition {
            Definition::Kernel(_) => {}
            Definition::Lists(lists) => list(lists, memory, &mut done)?,
            Definition::Rows(rows) => reorder(rows, memory, &mut done)?,
            Definition::Runs(runs) => start_runs(runs, memory, &mut done)?,
            Definition::Blocks(blocks) => number_blocks(blocks, memory, &mut done)?,
        }
    }
    Ok(())
}

/// Elements that each of the lists among `definitions` needs room for with the maps of `memory`.
///
/// # Errors
/// A map without values.
pub fn list_room(definitions: &[Definition], memory: &Memory) -> Result<Vec<u64>, SetUpError> {
    let mut room = Vec::new();
    each_lists(definitions, memory, &mut |lists, map| {
        room.push(lists.room(map));
        Ok(())
    })?;
    Ok(room)
}

/// Elements that the block with most of them has alone, of each of the lists among `definitions`.
///
/// # Errors
/// A map without values.
pub fn exclusive_room(definitions: &[Definition], memory: &Memory) -> Result<Vec<u64>, SetUpError> {
    let mut room = Vec::new();
    each_lists(definitions, memory, &mut |lists, map| {
        room.push(lists.exclusive_room(map));
        Ok(())
    })?;
    Ok(room)
}

/// Refuses lists without room for the maps of `memory`, and runs and blocks that these do not have.
///
/// # Errors
/// The first list that is too short, the first broken run or block, a map without values.
pub fn check_room(definitions: &[Definition], memory: &Memory) -> Result<(), SetUpError> {
    if definitions.iter().any(|d| matches!(d, Definition::Blocks(_))) {
        // of rows in the order of others
        return set_up_maps(definitions, &mut memory.clone());
    }
    for definition in definitions {
        match definition {
            Definition::Runs(runs) => drop(starts(runs, memory)?),
            Definition::Kernel(_) | Definition::Rows(_) | Definition::Lists(_) | Definition::Blocks(_) => {}
        }
    }
    each_lists(definitions, memory, &mut |lists, map| Ok(lists.compute(map).map(drop)?))
}

/// Is given lists and the entries of their map.
type Visit<'v> = dyn FnMut(&ListNames, &[i64]) -> Result<(), SetUpError> + 'v;

/// Visits the lists with the map of each, which may be one whose rows are in another order.
fn each_lists(definitions: &[Definition], memory: &Memory, visit: &mut Visit<'_>) -> Result<(), SetUpError> {
    let mut ordered = Memory::new();
    for definition in definitions {
        match definition {
            Definition::Kernel(_) | Definition::Runs(_) | Definition::Blocks(_) => {}
            Definition::Rows(rows) => {
                for (name, value) in in_order(rows, memory)? {
                    ordered.set(name, value);
                }
            }
            Definition::Lists(lists) => {
                let memory = if ordered.get(&lists.map).is_some() { &ordered } else { memory };
                visit(lists, &integers(&lists.map, memory)?)?;
            }
        }
    }
    Ok(())
}

/// The entries of an input of integers.
fn integers(name: &str, memory: &Memory) -> Result<Vec<i64>, SetUpError> {
    let given = memory.get(name).and_then(Value::to_i64);
    given.ok_or_else(|| SetUpError::NoMap { map: name.to_owned() })
}

/// Inputs with their rows in order, by their names.
fn in_order(rows: &RowOrder, memory: &Memory) -> Result<Vec<(String, Value)>, SetUpError> {
    let missing = |name: &String| SetUpError::NoMap { map: name.clone() };
    let points = memory.get(&rows.points).ok_or_else(|| missing(&rows.points))?.to_f64();
    let order = rows.compute(&integers(&rows.map, memory)?, &points)?;
    let copy = |(name, copy): &(String, String)| {
        let value = memory.get(name).ok_or_else(|| missing(name))?;
        Ok((copy.clone(), value.in_order(&order)))
    };
    rows.copies.iter().map(copy).collect()
}

/// Brings rows into order on the host.
fn reorder(rows: &RowOrder, memory: &mut Memory, done: &mut SetUp) -> Result<(), SetUpError> {
    let start = Instant::now();
    for (name, value) in in_order(rows, memory)? {
        done.inputs += 1;
        done.bytes += value.len() as u64 * value.ty().bytes();
        memory.set(name, value);
    }
    done.seconds += start.elapsed().as_secs_f64();
    Ok(())
}

/// The first numbers of the runs of a map, or their distance from others, or the one of row 0.
fn starts(runs: &RunStarts, memory: &Memory) -> Result<Vec<i64>, SetUpError> {
    let above = runs.above().map_or(Ok(Vec::new()), |above| integers(above, memory))?;
    Ok(runs.compute(&integers(&runs.map, memory)?, &above)?)
}

/// Computes what is passed of the runs of a map on the host.
fn start_runs(runs: &RunStarts, memory: &mut Memory, done: &mut SetUp) -> Result<(), SetUpError> {
    let start = Instant::now();
    let starts = starts(runs, memory)?;
    let ty =
        memory.get(&runs.map).map(Value::ty).ok_or_else(|| SetUpError::NoMap { map: runs.map.clone() })?;
    let name = runs.result().to_owned();
    let value =
        Value::of_integers(ty, &starts).ok_or_else(|| SetUpError::Distance { starts: name.clone(), ty })?;
    done.inputs += 1;
    done.bytes += value.len() as u64 * value.ty().bytes();
    memory.set(name, value);
    done.seconds += start.elapsed().as_secs_f64();
    Ok(())
}

/// Computes the numbers of the blocks of a map on the host.
fn number_blocks(blocks: &BlockNumbers, memory: &mut Memory, done: &mut SetUp) -> Result<(), SetUpError> {
    let start = Instant::now();
    let missing = || SetUpError::NoMap { map: blocks.map.clone() };
    let ty = memory.get(&blocks.map).map(Value::ty).ok_or_else(missing)?;
    let numbers = blocks.compute(&integers(&blocks.map, memory)?)?;
    // they are entries of the map, so that its type has them
    let value = Value::of_bits(ty, &numbers);
    done.inputs += 1;
    done.bytes += value.len() as u64 * value.ty().bytes();
    memory.set(blocks.numbers.clone(), value);
    done.seconds += start.elapsed().as_secs_f64();
    Ok(())
}

/// Computes the lists of a map on the host.
fn list(lists: &ListNames, memory: &mut Memory, done: &mut SetUp) -> Result<(), SetUpError> {
    let start = Instant::now();
    let map = integers(&lists.map, memory)?;
    let ty = memory.get(&lists.map).map_or(ScalarType::I64, Value::ty);
    for (name, ty, values) in lists.compute(&map)?.named(lists, ty) {
        // entries are those of the map, lengths are smaller than its length, and the step has checked
        // that numbers and places fit
        let value =
            Value::of_integers(ty, &values).ok_or_else(|| SetUpError::Bug { list: name.clone(), ty })?;
        done.inputs += 1;
        done.bytes += value.len() as u64 * value.ty().bytes();
        memory.set(name, value);
    }
    done.seconds += start.elapsed().as_secs_f64();
    Ok(())
}

/// The kernel with its loop on work-items, if it is one loop and that is proved legal.
fn on_work_items(kernel: &Kernel) -> Kernel {
    let [Node::Loop(iname, _)] = kernel.body[..] else { return kernel.clone() };
    let mut s = Schedule::of(kernel);
    let mut place = || {
        let [group, item] = s.split(&kernel.inames[iname].name, 32)?;
        s.tag(&group, AxisTag::Group(0))?;
        s.tag(&item, AxisTag::Local(0))
    };
    match place() {
        Ok(_) => s.finish().0,
        Err(_) => kernel.clone(),
    }
}
