//! Calls that were checked, for later ones with the same arguments.

use crate::bind::{Number, scalar_of};
use crate::bound::{BoundCall, Launch, is_capturing, launch};
use crate::failure;
use crate::lend::moved;
use crate::reading::{Bits, Given, Leaf, Library, Reading};
use kingpost::runtime::Arg;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::cell::Cell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Calls that are kept.
const KEPT: usize = 16;
/// Classes of arrays that are kept.
const CLASSES: usize = 16;
/// The environment variable that has each call checked, as the package says.
const CHECK: &str = "KINGPOST_CHECK";
/// The legacy default stream in the numbers of the protocols, which PyTorch calls 0.
const LEGACY: u64 = 1;

/// Calls of one kernel or operator that were checked.
///
/// A call with the types, layouts, addresses and numbers of a former one is launched as that was. One
/// with other addresses or numbers is checked again by the runtime, without what layouts decide. Nothing
/// here keeps an array: a launch gets the addresses of arrays that its caller holds.
#[pyclass(frozen, module = "kingpost._kingpost")]
pub(crate) struct Calls {
    /// The names of arguments by position.
    positions: Vec<String>,
    libraries: Mutex<Arc<Vec<Library>>>,
    /// The latest first.
    kept: Mutex<Vec<Arc<Entry>>>,
}

struct Entry {
    layout: Vec<u64>,
    addresses: Vec<u64>,
    numbers: Vec<Bits>,
    /// Which numbers are passed to kernels by value, and decide nothing else.
    is_free: Vec<bool>,
    launches: Vec<Arc<Launch>>,
    /// Where the arguments of the launches come from, if not from the layout.
    sources: Arc<Vec<Vec<Option<Leaf>>>>,
    stream: Option<u64>,
    /// The objects that the layout names by address.
    pins: Arc<Vec<Py<PyAny>>>,
}

thread_local! {
    /// What the next reading of this thread is written to.
    static READING: Cell<Reading> = Cell::default();
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[pymethods]
impl Calls {
    #[new]
    fn new(positions: Vec<String>) -> Self {
        Self { positions, libraries: Mutex::default(), kept: Mutex::default() }
    }

    /// Runs a call that is kept; whether there is one.
    fn run(
        &self,
        py: Python<'_>,
        args: &Bound<'_, PyTuple>,
        kwargs: &Bound<'_, PyDict>,
        stream: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        let is_checked = || std::env::var_os(CHECK).is_some_and(|value| !value.is_empty() && value != "0");
        if lock(&self.kept).is_empty() || is_capturing() || is_checked() {
            return Ok(false);
        }
        let libraries = Arc::clone(&lock(&self.libraries));
        let mut reading = READING.take();
        let is_read = Given { args, kwargs, stream }.read(&libraries, &mut reading, None);
        let found = is_read.map(|is_read| if is_read { self.find(&reading) } else { Found::Nothing });
        let ran = match found {
            Ok(Found::Nothing) => Ok(false),
            Ok(Found::Same(entry)) => {
                failure::run(py, || launch(&entry.launches, entry.stream)).map(|()| true)
            }
            Ok(Found::Layout(entry)) => self.rebind(py, &entry, &reading),
            Err(why) => Err(why),
        };
        READING.set(reading);
        ran
    }

    /// Keeps a call that ran, as bound: for each of its kernels, the name of the part of the operator if
    /// there are several. Whether it could be.
    fn keep(
        &self,
        args: &Bound<'_, PyTuple>,
        kwargs: &Bound<'_, PyDict>,
        stream: Option<&Bound<'_, PyAny>>,
        calls: Vec<(Option<String>, Option<Bound<'_, BoundCall>>)>,
    ) -> PyResult<bool> {
        let Some(calls) =
            calls.into_iter().map(|(part, call)| Some((part, call?))).collect::<Option<Vec<_>>>()
        else {
            return Ok(false);
        };
        let given = Given { args, kwargs, stream };
        // no lock is held where Python is asked: it may let another thread go on, which waits for
        // the lock
        let known = Arc::clone(&lock(&self.libraries));
        let new = given.libraries(&known)?;
        let libraries = {
            let mut libraries = lock(&self.libraries);
            if !new.is_empty() && libraries.len() < CLASSES {
                *libraries = Arc::new(libraries.iter().cloned().chain(new).collect());
            }
            Arc::clone(&libraries)
        };
        let (mut reading, mut pins) = (Reading::default(), Vec::new());
        if !given.read(&libraries, &mut reading, Some(&mut pins))? {
            return Ok(false);
        }
        let names = given.names(&self.positions)?;
        let entry = entry(reading, pins, &names, &calls);
        let is_kept = entry.is_some();
        entry.into_iter().for_each(|entry| self.insert(entry));
        Ok(is_kept)
    }
}

/// What is known of a call.
enum Found {
    Nothing,
    Same(Arc<Entry>),
    Layout(Arc<Entry>),
}

impl Calls {
    fn find(&self, reading: &Reading) -> Found {
        let mut kept = lock(&self.kept);
        let is_alike = |entry: &Entry| entry.layout == reading.layout && entry.fits(reading);
        let is_same = |entry: &Entry| {
            entry.addresses == reading.addresses && entry.numbers == reading.numbers && is_alike(entry)
        };
        if let Some(place) = kept.iter().position(|entry| is_same(entry)) {
            kept[..=place].rotate_right(1);
            return Found::Same(Arc::clone(&kept[0]));
        }
        match kept.iter().find(|entry| is_alike(entry)) {
            Some(entry) => Found::Layout(Arc::clone(entry)),
            None => Found::Nothing,
        }
    }

    fn insert(&self, entry: Entry) {
        let mut kept = lock(&self.kept);
        let room = kept.len().min(KEPT - 1);
        let forgotten = kept.split_off(room);
        kept.insert(0, Arc::new(entry));
        drop(kept); // before objects, whose finalizers are Python
        drop(forgotten);
    }

    /// Runs a call whose layout is known with other addresses and numbers; whether these are such that it
    /// could. A call that is refused is bound once more, which says why.
    fn rebind(&self, py: Python<'_>, entry: &Entry, reading: &Reading) -> PyResult<bool> {
        let mut launches = Vec::with_capacity(entry.launches.len());
        for (old, sources) in entry.launches.iter().zip(entry.sources.iter()) {
            let args = old.args.iter().zip(sources).map(|((name, arg), source)| {
                let arg = match (arg, source) {
                    (Arg::Foreign(foreign), Some(Leaf::Array(at))) => {
                        Arg::Foreign(moved(*foreign, reading.addresses[*at]))
                    }
                    (_, Some(Leaf::Number(at))) => {
                        let plan = &old.prepared().executable().plan().args;
                        let ty = plan.iter().find(|spec| spec.name == *name)?.ty;
                        scalar_of(ty, reading.numbers[*at].number())?
                    }
                    (_, Some(Leaf::Array(_)) | None) => *arg,
                };
                Some((name.clone(), arg))
            });
            match args.collect() {
                Some(args) => launches.push((old, args)),
                None => return Ok(false),
            }
        }
        let launches = failure::run(py, || {
            let prepared = launches.into_iter().map(|(old, args)| old.again(args).map(Arc::new));
            Ok(prepared.collect::<Result<Vec<_>, _>>().ok())
        })?;
        let Some(launches) = launches.filter(|all| all.iter().all(|l| l.prepared().is_in_place())) else {
            return Ok(false);
        };
        let new = Entry {
            layout: reading.layout.clone(),
            addresses: reading.addresses.clone(),
            numbers: reading.numbers.clone(),
            is_free: entry.is_free.clone(),
            launches,
            sources: Arc::clone(&entry.sources),
            stream: entry.stream,
            pins: Arc::clone(&entry.pins),
        };
        failure::run(py, || launch(&new.launches, new.stream))?;
        self.insert(new);
        Ok(true)
    }
}

impl Entry {
    /// Whether numbers that decide more than what a kernel gets by value are the same.
    fn fits(&self, reading: &Reading) -> bool {
        let mut pairs = self.numbers.iter().zip(&reading.numbers).zip(&self.is_free);
        pairs.all(|((own, found), is_free)| *is_free || own == found)
    }
}

impl Bits {
    fn number(self) -> Number {
        match self {
            Self::Int(n) => Number::Int(n.into()),
            Self::Real(bits) => Number::Real(f64::from_bits(bits)),
            Self::Complex(re, im) => Number::Complex { re: f64::from_bits(re), im: f64::from_bits(im) },
        }
    }
}

/// A call with its reading, if that says all of it: each array that is given is an argument where it
/// lies, and its values are waited for as they will be at the next call.
fn entry(
    reading: Reading,
    pins: Vec<Py<PyAny>>,
    names: &[(Option<String>, String)],
    calls: &[(Option<String>, Bound<'_, BoundCall>)],
) -> Option<Entry> {
    let stream = calls.first()?.1.get().stream;
    // work of PyTorch on its own stream is not waited for: the launch has to be on the same one
    let is_ordered = |torch: u64| stream == Some(if torch == 0 { LEGACY } else { torch });
    if reading.torch.is_some_and(|torch| !is_ordered(torch)) {
        return None;
    }
    let mut is_used = vec![false; reading.leaves.len()];
    let mut is_free = vec![false; reading.numbers.len()];
    let (mut is_fixed, mut launches, mut sources) = (is_free.clone(), Vec::new(), Vec::new());
    for (part, call) in calls {
        let call = call.get();
        if call.stream != stream {
            return None;
        }
        for launch in &call.launches {
            let mut of_launch = Vec::with_capacity(launch.args.len());
            for (name, arg) in &launch.args {
                let place = place_of(name, part.as_deref(), names);
                let leaf = place.and_then(|place| reading.leaves.get(place).copied());
                let source = match (arg, leaf) {
                    (Arg::Foreign(foreign), Some(Leaf::Array(at)))
                        if reading.addresses[at] == foreign.address() =>
                    {
                        is_used[place?] = true;
                        leaf
                    }
                    (Arg::Foreign(_), _) => return None,
                    (Arg::Param(_), Some(Leaf::Number(at))) => {
                        is_fixed[at] = true;
                        None
                    }
                    (Arg::Param(_), _) => None,
                    (_, Some(Leaf::Number(at))) => {
                        is_free[at] = true;
                        leaf
                    }
                    (_, _) => None,
                };
                of_launch.push(source);
            }
            if !launch.prepared().is_in_place() {
                return None;
            }
            sources.push(of_launch);
            launches.push(Arc::clone(launch));
        }
    }
    let mut leaves = reading.leaves.iter().zip(&is_used);
    if leaves.any(|(leaf, is_used)| matches!(leaf, Leaf::Array(_)) && !is_used) {
        return None;
    }
    let is_free = is_free.iter().zip(&is_fixed).map(|(free, fixed)| *free && !fixed).collect();
    let Reading { layout, addresses, numbers, .. } = reading;
    let (sources, pins) = (Arc::new(sources), Arc::new(pins));
    Some(Entry { layout, addresses, numbers, is_free, launches, sources, stream, pins })
}

/// Where an argument of a part is given: among what only the part gets, by its own name, or as a field
/// of a record.
fn place_of(name: &str, part: Option<&str>, names: &[(Option<String>, String)]) -> Option<usize> {
    let position = |wanted: &dyn Fn(Option<&str>, &str) -> bool| {
        names.iter().position(|(owner, own)| wanted(owner.as_deref(), own))
    };
    position(&|owner, own| owner.is_some() && owner == part && own == name)
        .or_else(|| position(&|owner, own| owner.is_none() && own == name))
        .or_else(|| {
            position(&|owner, own| {
                let rest =
                    owner.and_then(|owner| name.strip_prefix(owner)).and_then(|rest| rest.strip_prefix('_'));
                rest == Some(own)
            })
        })
}
