//! How long a loop program takes on one thread of a processor, roughly: arithmetic or latency in the
//! innermost loops, lines that each cache does not hold. Ten programs are timed, so that the model
//! only has to keep the good ones among them.

use crate::program::{Level, Part, Reader, Touched, Work};
use kingpost_ir::{AxisTag, Kernel};
use std::collections::BTreeMap;

/// A processor.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Bytes of a vector.
    pub vector_bytes: f64,
    /// Vectors that registers hold.
    pub registers: f64,
    /// Bytes of each cache, innermost first, and cycles for a line that is not in it.
    pub caches: Vec<(f64, f64)>,
    /// Threads that share the work.
    pub threads: usize,
}

impl Default for Machine {
    /// What processors of today have at least: AVX2 would halve the vectors, and ranks stay.
    fn default() -> Self {
        let caches = vec![(32e3, 4.0), (1e6, 16.0), (16e6, 24.0)];
        Self { vector_bytes: 64.0, registers: 32.0, caches, threads: 1 }
    }
}

/// A line of a cache, in bytes.
const LINE: f64 = 64.0;

/// Pairs of rows that GCC compares before a loop in vectors (`vect-max-version-for-alias-checks`).
const PAIRS: f64 = 10.0;

/// Cycles from an addition to one that needs its result.
const LATENCY: f64 = 4.0;

/// The cycles of a kernel at these sizes, parameters by name.
#[must_use]
pub fn cycles(kernel: &Kernel, params: &BTreeMap<String, i64>, machine: &Machine) -> f64 {
    let parts = Reader::new(kernel, params).parts();
    let model = Model { kernel, machine };
    let arithmetic = model.arithmetic(&parts, &mut Vec::new());
    let lines = machine.caches.iter().map(|(bytes, cost)| cost * model.misses(&parts, *bytes));
    arithmetic + lines.sum::<f64>()
}

struct Model<'k> {
    kernel: &'k Kernel,
    machine: &'k Machine,
}

/// An instruction and the loops from some level down to it.
type Path<'p> = (Vec<&'p Level>, &'p Work);

impl Model<'_> {
    fn arithmetic<'p>(&self, parts: &'p [Part], around: &mut Vec<&'p Level>) -> f64 {
        let mut sum = 0.0;
        let mut straight = Vec::new();
        for part in parts {
            match part {
                Part::Loop(level, body) if is_written_out(level) => {
                    straight.extend(paths(body).into_iter().map(|(mut path, work)| {
                        path.insert(0, level);
                        (path, work)
                    }));
                }
                Part::Loop(level, body) => {
                    around.push(level);
                    sum += 2.0 * runs(around) / level.trips.max(1.0);
                    sum += self.arithmetic(body, around);
                    around.pop();
                }
                Part::Insn(work) => straight.push((Vec::new(), work)),
            }
        }
        sum + runs(around) * self.iteration(around.last().copied(), &straight)
    }

    /// Cycles of the straight-line code in an iteration of a loop that holds loops that are
    /// written out.
    fn iteration(&self, inner: Option<&Level>, straight: &[Path<'_>]) -> f64 {
        if straight.is_empty() {
            return 0.0;
        }
        let is_memory = |t: &&Touched| !Reader::is_register(self.kernel, t.var);
        let lanes = match inner {
            Some(inner) if self.is_vector(inner, straight) => {
                let bytes = straight.iter().map(|(_, w)| w.write.bytes).fold(4.0, f64::max);
                (self.machine.vector_bytes / bytes).min(inner.trips.max(1.0))
            }
            Some(_) | None => 1.0,
        };
        let times = |path: &[&Level], bytes: f64| -> f64 {
            path.iter().map(|l| l.trips / self.lanes_of(l, bytes)).product()
        };
        let arithmetic: f64 = straight.iter().map(|(path, w)| times(path, w.write.bytes) * w.cycles).sum();
        let distinct = |path: &[&Level], touched: &Touched| -> f64 {
            let vectors = |l: &&&Level| match touched.stride(l.iname).abs() == touched.bytes {
                true => l.trips / self.lanes_of(l, touched.bytes),
                false => l.trips,
            };
            path.iter().filter(|l| touched.stride(l.iname) != 0.0).map(|l| vectors(&l)).product()
        };
        let moves = |touched: &Touched| inner.is_none_or(|l| touched.stride(l.iname) != 0.0);
        let mut loaded = Vec::new();
        let mut stored = Vec::new();
        let mut held = 0.0;
        for (path, work) in straight {
            for read in work.reads.iter().filter(is_memory) {
                let elements = distinct(path, read);
                if moves(read) { add(&mut loaded, read, elements) } else { held += elements }
            }
            if is_memory(&&work.write) {
                add(&mut stored, &work.write, distinct(path, &work.write));
            }
        }
        let count = |all: &[(Touched, f64)]| all.iter().map(|(_, n)| n).sum::<f64>();
        let (loads, stores) = (count(&loaded), count(&stored));
        let spills = (held + stores - self.machine.registers).max(0.0);
        let chain = inner.map_or(0.0, |inner| self.chain(inner, straight));
        let work = arithmetic.max((loads + spills) / 2.0).max(stores);
        (work / lanes).max(chain)
    }

    /// How many iterations of a loop are one operation, if the loop is tagged so.
    fn lanes_of(&self, level: &Level, bytes: f64) -> f64 {
        match level.tag {
            AxisTag::Vector => (self.machine.vector_bytes / bytes.max(4.0)).clamp(1.0, level.trips.max(1.0)),
            AxisTag::Sequential
            | AxisTag::Unrolled
            | AxisTag::Rolled
            | AxisTag::Launch
            | AxisTag::Group(_)
            | AxisTag::Local(_) => 1.0,
        }
    }

    /// Whether compilers make the iterations of a loop the lanes of vectors: every place moves by an
    /// element or not at all, none is summed up, and nothing is read that an iteration before has
    /// written.
    fn is_vector(&self, inner: &Level, straight: &[Path<'_>]) -> bool {
        let unit = |t: &Touched| {
            let stride = t.stride(inner.iname).abs();
            !t.scattered && (stride == 0.0 || stride == t.bytes)
        };
        straight.iter().all(|(path, work)| {
            let write = &work.write;
            // rows of one array, which compilers compare in pairs before the loop
            let rows = distinct(path, write);
            let register = Reader::is_register(self.kernel, write.var);
            let sums = work.reads.iter().any(|r| r.var == write.var) && write.stride(inner.iname) == 0.0;
            let stays = write.stride(inner.iname) == 0.0 && !register;
            let few = rows * (rows - 1.0) / 2.0 <= PAIRS;
            few && !work.guards.contains(&inner.iname)
                && unit(write)
                && !sums
                && !stays
                && work.reads.iter().all(unit)
        }) && !self.carries(inner, straight)
    }

    /// Whether an iteration reads what one a few before has written.
    fn carries(&self, inner: &Level, straight: &[Path<'_>]) -> bool {
        straight.iter().any(|(_, writer)| {
            straight.iter().flat_map(|(_, w)| &w.reads).any(|read| {
                let (write, step) = (&writer.write, writer.write.stride(inner.iname));
                let ahead = write.offset - read.offset;
                read.var == write.var
                    && read.strides == write.strides
                    && step != 0.0
                    && ahead != 0.0
                    && ahead / step > 0.0
                    && ahead / step < inner.trips
                    && (ahead / step).fract() == 0.0
            })
        })
    }

    /// Cycles that an iteration waits for the one before.
    fn chain(&self, inner: &Level, straight: &[Path<'_>]) -> f64 {
        if self.carries(inner, straight) {
            let divides = straight.iter().map(|(_, w)| w.cycles).fold(0.0, f64::max) > 4.0;
            return 2.0 * LATENCY + if divides { 10.0 } else { 0.0 };
        }
        let sums =
            straight.iter().filter(|(_, w)| w.write.stride(inner.iname) == 0.0 && w.reads.contains(&w.write));
        // the sums of other elements go on at the same time
        let one = |(path, w): &Path<'_>| {
            LATENCY * path.iter().map(|l| l.trips).product::<f64>() / distinct(path, &w.write)
        };
        let mut by_place: Vec<(Touched, f64)> = Vec::new();
        for path in sums {
            add_up(&mut by_place, &path.1.write, one(path));
        }
        by_place.into_iter().map(|(_, cycles)| cycles).fold(0.0, f64::max)
    }

    /// Lines that are not in a cache of this size.
    fn misses(&self, parts: &[Part], bytes: f64) -> f64 {
        parts
            .iter()
            .map(|part| match part {
                Part::Insn(_) => 0.0,
                Part::Loop(level, body) => {
                    let mut whole = paths(body);
                    let once = self.lines(&whole);
                    for (path, _) in &mut whole {
                        path.insert(0, level);
                    }
                    let lines = self.lines(&whole);
                    // what fits stays from one iteration to the next
                    if lines * LINE <= bytes || once * LINE <= bytes || !body.iter().any(is_loop) {
                        lines
                    } else {
                        level.trips * self.misses(body, bytes)
                    }
                }
            })
            .sum()
    }

    /// Different lines that instructions touch.
    fn lines(&self, paths: &[Path<'_>]) -> f64 {
        // elements at other offsets lie in the same lines
        let mut groups: Vec<(&Touched, f64)> = Vec::new();
        for (path, work) in paths {
            for touched in work.reads.iter().chain([&work.write]) {
                if Reader::is_register(self.kernel, touched.var) {
                    continue;
                }
                let lines = lines_of(path, touched);
                let same = |t: &Touched| t.var == touched.var && t.strides == touched.strides;
                match groups.iter_mut().find(|(t, _)| same(t)) {
                    Some((_, found)) => *found = found.max(lines),
                    None => groups.push((touched, lines)),
                }
            }
        }
        groups.into_iter().map(|(_, lines)| lines).sum()
    }
}

/// Whether the iterations of a loop are straight-line code.
pub(crate) fn is_written_out(level: &Level) -> bool {
    matches!(level.tag, AxisTag::Unrolled | AxisTag::Vector)
}

fn is_loop(part: &Part) -> bool {
    matches!(part, Part::Loop(..))
}

fn runs(around: &[&Level]) -> f64 {
    around.iter().map(|l| l.trips).product()
}

/// The instructions in parts, with the loops that are inside these.
fn paths(parts: &[Part]) -> Vec<Path<'_>> {
    let mut found = Vec::new();
    for part in parts {
        match part {
            Part::Insn(work) => found.push((Vec::new(), work)),
            Part::Loop(level, body) => found.extend(paths(body).into_iter().map(|(mut path, work)| {
                path.insert(0, level);
                (path, work)
            })),
        }
    }
    found
}

/// Elements that the iterations of loops touch.
fn distinct(path: &[&Level], touched: &Touched) -> f64 {
    path.iter().filter(|l| touched.stride(l.iname) != 0.0).map(|l| l.trips).product()
}

fn add(all: &mut Vec<(Touched, f64)>, touched: &Touched, elements: f64) {
    match all.iter_mut().find(|(of, _)| of == touched) {
        Some((_, found)) => *found = found.max(elements),
        None => all.push((touched.clone(), elements)),
    }
}

fn add_up(all: &mut Vec<(Touched, f64)>, touched: &Touched, cycles: f64) {
    match all.iter_mut().find(|(of, _)| of == touched) {
        Some((_, sum)) => *sum += cycles,
        None => all.push((touched.clone(), cycles)),
    }
}

/// Lines of the elements that the iterations of loops touch: a run of bytes, repeated at larger
/// strides.
fn lines_of(path: &[&Level], touched: &Touched) -> f64 {
    if touched.scattered {
        return runs(path);
    }
    let mut steps: Vec<(f64, f64)> = path
        .iter()
        .map(|l| (touched.stride(l.iname).abs(), l.trips))
        .filter(|(stride, trips)| *stride > 0.0 && *trips > 0.0)
        .collect();
    steps.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut run, mut copies) = (touched.bytes, 1.0);
    for (stride, trips) in steps {
        if stride <= run.max(LINE) {
            run += stride * (trips - 1.0);
        } else {
            copies *= trips;
        }
    }
    copies * (run / LINE).max(1.0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // what a failed test does
    use super::{Machine, Model, cycles};
    use crate::program::Reader;
    use kingpost_ir::Kernel;
    use kingpost_ir::text::parse;
    use std::collections::BTreeMap;

    fn kernel(loops: &str, statement: &str) -> Kernel {
        let head =
            "kernel k\n\nparam n: i32\narg a: f64[n, n] in\narg b: f64[n, n] in\narg c: f64[n, n] inout\n";
        let mut text = format!("{head}assume n >= 8\n\n");
        for (depth, l) in loops.split("; ").enumerate() {
            text += &format!("{}for {l}\n", "  ".repeat(depth));
        }
        text += &format!("{}s: {statement}\n", "  ".repeat(loops.split("; ").count()));
        parse(&text).unwrap()
    }

    /// Cycles of a program with 400 rows and columns.
    fn time(loops: &str, statement: &str) -> f64 {
        let params = BTreeMap::from([("n".to_owned(), 400)]);
        let kernel = kernel(loops, statement);
        let machine = Machine::default();
        let parts = Reader::new(&kernel, &params).parts();
        let model = Model { kernel: &kernel, machine: &machine };
        let misses: Vec<f64> = machine.caches.iter().map(|(b, _)| model.misses(&parts, *b)).collect();
        println!("{loops}: arithmetic {}, misses {misses:?}", model.arithmetic(&parts, &mut Vec::new()));
        cycles(&kernel, &params, &machine)
    }

    const PRODUCT: &str = "c[i, j] += a[i, k]*b[k, j]";

    #[test]
    fn vectors_are_faster_than_sums_and_columns() {
        let rows = time("i in 0..n; k in 0..n; j in 0..n", PRODUCT);
        let sums = time("i in 0..n; j in 0..n; k in 0..n", PRODUCT);
        let columns = time("j in 0..n; k in 0..n; i in 0..n", PRODUCT);
        assert!(2.0 * rows < sums && sums < columns, "{rows} {sums} {columns}");
    }

    #[test]
    fn loops_written_out_save_loads_and_latency() {
        let rows = time("i in 0..n; k in 0..n; j in 0..n", PRODUCT);
        let four = "c[i, j] += a[i, 4*q + k]*b[4*q + k, j]";
        let blocks = time("i in 0..n; q in 0..floor_div(n, 4); j in 0..n; k in 0..4 {unroll}", four);
        assert!(blocks < rows, "{blocks} {rows}");
        let sums = time("i in 0..n; k in 0..n", "c[i, 0] += a[i, k]*b[0, k]");
        let eight = "c[8*p + i, 0] += a[8*p + i, k]*b[0, k]";
        let several = time("p in 0..floor_div(n, 8); k in 0..n; i in 0..8 {unroll}", eight);
        assert!(several < 0.8 * sums, "{several} {sums}");
    }

    #[test]
    fn what_waits_for_itself_is_no_vector() {
        let along = time("i in 1..n; j in 1..n", "c[i, j] = c[i, j - 1] + a[i, j]");
        let across = time("i in 1..n; j in 1..n", "c[i, j] = c[i - 1, j] + a[i, j]");
        assert!(1.5 * across < along, "{across} {along}");
    }
}
