//! What a device has of a form on a divided mesh.

use crate::bind::{Array, Number, bind};
use crate::failure::Failure;
use crate::polynomial::{Kept, Polynomial, Polynomials, Preconditioner, System};
use crate::program::Program;
use kingpost::forms::sparse::CsrPattern;
use kingpost::runtime::{Arg, Buffer, Device, Foreign, RuntimeError};
use kingpost::solve::{
    Alone, Argument, Communicator, ConjugateGradients, Constraints, DeviceForm, Diagonal, Gmres,
    GmresOptions, Halo, Item, LinearChoice, LinearMethod, LinearOptions, LinearReport, LinearSolver,
    Operator, PartForm, PartFormOperator, PartLayout, PartRows, Preconditioning, PrescribedValues, Queue,
    SolveError, SystemMatrix, Unknowns,
};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A kernel of a part: its program, whether its entities read ghosts, its arrays and its numbers.
type Kernel = (Py<Program>, bool, Vec<Array>, BTreeMap<String, Number>);
/// The unknowns of a part: owned ones and ghosts, as `i32`, both in unknowns of its mesh; which
/// ghosts are of which other part; the owned ones that others need, by their places; whether each
/// cell is of one part alone.
type Layout = (PyBackedBytes, PyBackedBytes, Vec<(usize, usize, usize)>, Vec<(usize, PyBackedBytes)>, bool);
/// The rows of a matrix on the mesh of a part: their starts and columns, as `i32`, and whether
/// columns are of the space of the rows.
type Pattern = (PyBackedBytes, PyBackedBytes, bool);
/// A part: the kernels, the values of the fields, bytes of the result, unknowns of the mesh,
/// whether reals are of single precision.
pub(crate) type Given =
    (Vec<Kernel>, Vec<PyBackedBytes>, (usize, usize, bool), Option<Layout>, Option<Pattern>);
/// What a system gets of a part, as `f64` except for the second: the right-hand side, the unknowns
/// of the mesh that are prescribed as `i32`, and the inverse of a diagonal, or the points of owned
/// degrees of freedom.
pub(crate) type Right = (PyBackedBytes, PyBackedBytes, PyBackedBytes);
/// Why a solve stopped, whether that is convergence, norms of residuals, seconds.
pub(crate) type Report = (String, bool, Vec<f64>, f64);

/// Why a part stopped: for a reason of its own, or because another one did.
pub(crate) enum Stopped {
    Failed(Failure),
    Ended(SolveError),
}

impl From<SolveError> for Stopped {
    fn from(error: SolveError) -> Self {
        if matches!(error, SolveError::PartEnded { .. }) {
            return Self::Ended(error);
        }
        Self::Failed(error.into())
    }
}

impl From<RuntimeError> for Stopped {
    fn from(error: RuntimeError) -> Self {
        Self::Failed(error.into())
    }
}

impl From<Failure> for Stopped {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<Stopped> for Failure {
    fn from(stopped: Stopped) -> Self {
        match stopped {
            Stopped::Failed(failure) => failure,
            Stopped::Ended(error) => error.into(),
        }
    }
}

pub(crate) const fn has_ended(stopped: &Stopped) -> bool {
    matches!(stopped, Stopped::Ended(_))
}

/// How often work is repeated where it is timed, and before.
const TURNS: [usize; 2] = [2, 3];
/// How often a turn does the same, as solvers do: a launch from the host alone takes some ten
/// microseconds.
const AT_ONCE: usize = 8;
/// Iterations of the solves whose times are compared, and the kernels of an iteration besides those of the form.
const LENGTHS: [usize; 2] = [16, 48];
const OF_VECTORS: usize = 3;
/// Solves that take longer are not repeated.
const LONG: Duration = Duration::from_millis(50);
/// Numbers of their right-hand side until they come again.
const PERIOD: usize = 4099;
/// Iterations between two looks where each is a polynomial or a cycle.
const CYCLES: usize = 2;

/// A part on its device.
pub(crate) struct Part {
    device: &'static dyn Device,
    form: PartForm,
    fields: Vec<Buffer>,
    result: Buffer,
    /// Bytes of the result.
    n_bytes: usize,
    /// Unknowns of the part's mesh.
    n_mesh: usize,
    /// Whether arrays are of single precision.
    is_single: bool,
    halo: Option<Halo>,
    layout: Option<PartLayout>,
    matrix: Option<Matrix>,
    /// The coarse level of the last solve.
    coarse: Kept,
    known: Uploaded,
}

/// The matrix on the part's mesh, to which kernels add.
struct Matrix {
    pattern: CsrPattern,
    /// The rows that the part owns; of matrices in double precision whose rows and columns are of
    /// one space.
    rows: Option<Box<PartRows>>,
}

/// Constraints of prescribed unknowns of the mesh, without values.
fn without(device: &dyn Device, (n_mesh, fixed): (usize, &[u8])) -> Result<Constraints, SolveError> {
    let unknowns = integers(fixed);
    let values = PrescribedValues { values: vec![0.0; unknowns.len()], unknowns };
    Constraints::without_matrix(device, n_mesh, &values)
}

pub(crate) fn integers(bytes: &[u8]) -> Vec<i32> {
    bytes.as_chunks::<4>().0.iter().map(|b| i32::from_ne_bytes(*b)).collect()
}

pub(crate) fn reals(bytes: &[u8]) -> Vec<f64> {
    bytes.as_chunks::<8>().0.iter().map(|b| f64::from_ne_bytes(*b)).collect()
}

/// A buffer with these bytes.
fn uploaded(device: &dyn Device, bytes: &[u8]) -> Result<Buffer, RuntimeError> {
    let buffer = device.allocate(bytes.len() as u64)?;
    device.upload(&buffer, bytes)?;
    Ok(buffer)
}

/// The first bytes of a buffer.
fn downloaded(device: &dyn Device, buffer: &Buffer, n: usize) -> Result<Vec<u8>, RuntimeError> {
    let mut bytes = vec![0; buffer.bytes() as usize];
    device.download(buffer, &mut bytes)?;
    bytes.truncate(n);
    Ok(bytes)
}

/// Arrays that are on a device already, by where they lie on the host and their bytes: kernels
/// share them.
pub(crate) type Uploaded = HashMap<(u64, u64), Arc<Buffer>>;

impl Part {
    pub(crate) fn new(
        device: &'static dyn Device,
        (output, names): (&str, &[&str]),
        (kernels, fields, (n_bytes, n_mesh, is_single), layout, pattern): Given,
        mut known: Uploaded,
    ) -> Result<Self, Stopped> {
        let [mut outer, mut inner] = [DeviceForm::default(), DeviceForm::default()];
        for (program, is_outer, arrays, numbers) in &kernels {
            let form = if *is_outer { &mut outer } else { &mut inner };
            add(form, device, program.get(), (output, names), (arrays, numbers), &mut known)?;
        }
        let (mut halo, mut of_part, mut matrix) = (None, None, None);
        let mut has_rows = false;
        if let Some((owned, ghosts, receives, sends, has_sums)) = layout {
            let layout = PartLayout {
                owned: integers(&owned),
                ghosts: integers(&ghosts),
                receives: receives.into_iter().map(|(peer, from, to)| (peer, from..to)).collect(),
                sends: sends.into_iter().map(|(peer, places)| (peer, integers(&places))).collect(),
            };
            match pattern {
                None => {
                    let of = if has_sums { Halo::with_sums } else { Halo::new };
                    halo = Some(of(device, &layout)?);
                }
                Some((starts, columns, is_square)) => {
                    let [starts, columns] = [starts, columns].map(|list| integers(&list));
                    let pattern = CsrPattern::of_block_rows(starts, columns, [1, 1]);
                    has_rows = is_square && n_bytes == 8 * pattern.columns.len();
                    let rows = has_rows.then(|| PartRows::new(device, &pattern, &layout)).transpose()?;
                    matrix = Some(Matrix { pattern, rows: rows.map(Box::new) });
                }
            }
            of_part = Some(layout);
        }
        let on_device = |values: &PyBackedBytes| uploaded(device, values);
        Ok(Self {
            device,
            form: PartForm::of(outer, inner),
            fields: fields.iter().map(on_device).collect::<Result<_, _>>()?,
            // what a matrix has by rows is there
            result: device.allocate(if has_rows { 0 } else { n_bytes as u64 })?,
            n_bytes,
            n_mesh,
            is_single,
            halo,
            layout: of_part,
            matrix,
            coarse: None,
            known,
        })
    }

    pub(crate) fn known(&self) -> Uploaded {
        self.known.clone()
    }

    pub(crate) fn update(&self, fields: &[(usize, PyBackedBytes)]) -> Result<(), Stopped> {
        for (place, values) in fields {
            self.device.upload(&self.fields[*place], values)?;
        }
        Ok(())
    }

    /// What kernels add to.
    fn result(&self) -> &Buffer {
        let rows = self.matrix.as_ref().and_then(|matrix| matrix.rows.as_ref());
        rows.map_or(&self.result, |rows| rows.values())
    }

    /// Computes the result again, from zero.
    fn compute(&self, communicator: &dyn Communicator) -> Result<(), Stopped> {
        self.device.fill(self.result(), 0)?;
        let given: Vec<&Buffer> = self.fields.iter().collect();
        let mut queue = Queue::new();
        self.form.add_to(&given, self.result(), &mut queue);
        communicator.perform(&queue)?;
        Ok(communicator.wait()?)
    }

    pub(crate) fn apply(
        &self,
        communicator: &dyn Communicator,
        fields: &[(usize, PyBackedBytes)],
    ) -> Result<Vec<u8>, Stopped> {
        self.update(fields)?;
        self.compute(communicator)?;
        Ok(downloaded(self.device, self.result(), self.n_bytes)?)
    }

    /// Seconds of an iteration of conjugate gradients for the field `unknown` on the owned unknowns alone, without
    /// what is exchanged, and its kernels; of a form that none can be for, of its kernels.
    pub(crate) fn work_seconds(&self, unknown: Option<usize>) -> Result<(f64, usize), Stopped> {
        if let (Some(unknown), Some(halo)) = (unknown, &self.halo)
            && let Some(found) = self.iteration_seconds(unknown, halo)?
        {
            return Ok(found);
        }
        let (communicator, given) = (Alone::new(self.device), self.fields.iter().collect::<Vec<_>>());
        let mut queue = Queue::new();
        (0..AT_ONCE).for_each(|_| self.form.add_to(&given, self.result(), &mut queue));
        let repeatable = communicator.repeatable(&queue)?;
        let mut least = f64::INFINITY;
        for turn in 0..TURNS[0] + TURNS[1] {
            let start = Instant::now();
            if let Some(begun) = communicator.begin(&repeatable)? {
                communicator.finish(begun)?;
            }
            if turn >= TURNS[0] {
                least = least.min(start.elapsed().as_secs_f64());
            }
        }
        Ok((least / AT_ONCE as f64, queue.items().len() / AT_ONCE))
    }

    /// The same from solves of two lengths; none where they end before.
    fn iteration_seconds(&self, unknown: usize, halo: &Halo) -> Result<Option<(f64, usize)>, Stopped> {
        let device = self.device;
        let constraints = without(device, (self.n_mesh, &[]))?;
        let operator = self.operator(unknown, &constraints, halo)?;
        let n = operator.size();
        // some numbers of an irrational sequence, again and again
        let some: Vec<u8> =
            (0..PERIOD).flat_map(|k| (0.754_877_666_246_692_7 * k as f64).fract().to_ne_bytes()).collect();
        let numbers = some.repeat(n.div_ceil(PERIOD));
        let (b, x) = (uploaded(device, &numbers[..8 * n])?, device.allocate(8 * n as u64)?);
        let one = Diagonal::identity(device, n)?;
        let mut seconds = [f64::INFINITY; 2];
        for (least, max_iterations) in seconds.iter_mut().zip(LENGTHS) {
            let options = LinearOptions { relative: 0.0, max_iterations, ..LinearOptions::default() };
            let solver = ConjugateGradients::with_room(device, (n, operator.room()), options)?;
            let since = Instant::now();
            for turn in 0..TURNS[1] {
                // long iterations differ little
                if turn > 0 && since.elapsed() > LONG {
                    break;
                }
                let report = solver.solve(&operator, Preconditioning::Diagonal(one.values()), &b, &x)?;
                if report.iterations() != max_iterations {
                    return Ok(None);
                }
                *least = least.min(report.seconds);
            }
        }
        let mut queue = Queue::new();
        operator.apply(&b, &x, &mut queue);
        let kernels = queue.items().iter().filter(|item| matches!(item, Item::Call(_))).count() + OF_VECTORS;
        Ok(Some(((seconds[1] - seconds[0]).max(0.0) / (LENGTHS[1] - LENGTHS[0]) as f64, kernels)))
    }

    /// Solves without a matrix; with the seconds that the preconditioner takes to make.
    pub(crate) fn solve(
        &mut self,
        communicator: &dyn Communicator,
        unknown: usize,
        (right, fixed, inverse): &Right,
        (method, options): (LinearMethod, LinearOptions),
        polynomial: Option<&Polynomial>,
    ) -> Result<(Vec<u8>, LinearReport, f64), Stopped> {
        let (device, mut kept) = (self.device, self.coarse.take());
        let halo =
            self.halo.as_ref().ok_or_else(|| Failure::new("InternalError", "a functional is solved"))?;
        let n = right.len() / 8;
        let constraints = without(device, (self.n_mesh, fixed))?;
        let operator = self.operator(unknown, &constraints, halo)?;
        let diagonal = Diagonal::identity(device, n)?;
        device.upload(diagonal.values(), inverse)?;
        let (b, x) = (uploaded(device, right)?, device.allocate(8 * n as u64)?);
        let system = System { device, communicator, operator: &operator, diagonal: &diagonal };
        let make = |polynomial| Polynomials::new(&system, polynomial, kept.take());
        let made = polynomial.map(make).transpose()?;
        let setup = made.as_ref().map_or(0.0, |made| made.seconds);
        let other = made.as_ref().map(|made| made.on(&system));
        let report = match method {
            LinearMethod::ConjugateGradients => {
                let (by, options) = match &other {
                    None => (Preconditioning::Diagonal(diagonal.values()), options),
                    // an iteration takes longer than a look at its residual
                    Some(other) => (
                        Preconditioning::Operator(other.as_operator()),
                        LinearOptions { look_every: CYCLES, ..options },
                    ),
                };
                let solver = ConjugateGradients::with_room(device, (n, operator.room()), options)?;
                solver.solve_over(communicator, &operator, by, &b, &x)?
            }
            LinearMethod::Gmres => {
                let LinearOptions { relative, absolute, max_iterations, .. } = options;
                let options = GmresOptions { relative, absolute, max_iterations, ..GmresOptions::default() };
                let mut solver = Gmres::new(device, n, options)?;
                let by = other.as_ref().map_or(&diagonal as &dyn Operator, Preconditioner::as_operator);
                solver.solve_over(communicator, &operator, Some(by), &b, &x)?
            }
            LinearMethod::BiCgStab | LinearMethod::Chebyshev => {
                let message = format!("`method` is {method}; several devices take `cg` and `gmres`");
                return Err(Failure::about("ArgumentError", "method", message).into());
            }
        };
        let found = downloaded(device, &x, 8 * n)?;
        self.coarse = made.map_or(kept, Polynomials::into_kept);
        Ok((found, report, setup))
    }

    /// The form's action on the field `unknown`, if it is one, on owned unknowns.
    fn operator<'s>(
        &'s self,
        unknown: usize,
        constraints: &'s Constraints,
        halo: &'s Halo,
    ) -> Result<PartFormOperator<'s>, SolveError> {
        let given = (self.fields.iter().collect(), unknown);
        let operator = PartFormOperator::new(self.device, &self.form, constraints, given, halo)?;
        if self.is_single { operator.in_single_precision(self.device) } else { Ok(operator) }
    }

    fn rows(&self) -> Result<(&CsrPattern, &PartRows, &PartLayout), Failure> {
        match (&self.matrix, &self.layout) {
            (Some(Matrix { pattern, rows: Some(rows) }), Some(layout)) => Ok((pattern, rows, layout)),
            _ => Err(Failure::new("InternalError", "a form without rows is used as a matrix")),
        }
    }

    /// Assembles the matrix, without rows and columns of prescribed unknowns, and takes the owned
    /// rows.
    fn assemble(&self, communicator: &dyn Communicator, fixed: &[u8]) -> Result<(), Stopped> {
        let (pattern, rows, _) = self.rows()?;
        self.compute(communicator)?;
        let fixed = integers(fixed);
        let values = PrescribedValues { values: vec![0.0; fixed.len()], unknowns: fixed };
        let constraints = Constraints::new(self.device, pattern, &values)?;
        let mut queue = Queue::new();
        queue.extend(constraints.eliminate(rows.values()));
        queue.extend(rows.gather());
        communicator.perform(&queue)?;
        Ok(communicator.wait()?)
    }

    /// The product of the matrix and a vector of owned unknowns.
    pub(crate) fn product(
        &self,
        communicator: &dyn Communicator,
        x: &PyBackedBytes,
    ) -> Result<Vec<u8>, Stopped> {
        self.assemble(communicator, &[])?;
        let (_, rows, _) = self.rows()?;
        let (x, y) = (uploaded(self.device, x)?, self.device.allocate(x.len() as u64)?);
        let mut queue = Queue::new();
        rows.apply(&x, &y, &mut queue);
        communicator.perform(&queue)?;
        communicator.wait()?;
        Ok(downloaded(self.device, &y, 8 * rows.size())?)
    }

    /// Solves with the matrix, whose preconditioner is that of the part's own rows and columns;
    /// with the seconds that this takes to make.
    pub(crate) fn solve_rows(
        &mut self,
        communicator: &dyn Communicator,
        (right, fixed, points): &Right,
        (choice, options): (LinearChoice, LinearOptions),
        (components, dim): (usize, usize),
    ) -> Result<(Vec<u8>, LinearReport, f64), Stopped> {
        self.assemble(communicator, fixed)?;
        let device = self.device;
        let (b, x) = (uploaded(device, right)?, device.allocate(right.len() as u64)?);
        let unknowns = Unknowns { components, points: reals(points), dim };
        let solver = {
            let (pattern, _, layout) = self.rows()?;
            LinearSolver::of_part(device, (pattern, layout), &unknowns, choice, options)
        };
        let mut solver = solver?;
        let missing = || Failure::new("InternalError", "a form without rows is solved with");
        let matrix = self.matrix.as_mut().ok_or_else(missing)?;
        let rows = SystemMatrix::Part(matrix.rows.take().ok_or_else(missing)?);
        let mut solve = || {
            let setup = solver.prepare_over(communicator, rows.own(), None)?;
            Ok((solver.solve_over(communicator, &rows, &b, &x)?, setup))
        };
        let solved: Result<_, SolveError> = solve();
        if let SystemMatrix::Part(rows) = rows {
            matrix.rows = Some(rows);
        }
        let (report, setup) = solved?;
        Ok((downloaded(device, &x, right.len())?, report, setup))
    }
}

/// What Python gets of a report.
pub(crate) fn told(report: LinearReport) -> Report {
    let has_converged = report.converged();
    (report.reason.to_string(), has_converged, report.residuals, report.seconds)
}

/// Adds a kernel with its arrays, which are uploaded unless they are there.
fn add(
    form: &mut DeviceForm,
    device: &'static dyn Device,
    program: &Program,
    names: (&str, &[&str]),
    (arrays, numbers): (&[Array], &BTreeMap<String, Number>),
    known: &mut Uploaded,
) -> Result<(), Failure> {
    let call = bind(&program.kernel, &program.program, arrays, numbers)?;
    let mut fixed: HashMap<&str, Argument> = HashMap::new();
    for (name, arg) in &call.args {
        let argument = match arg {
            Arg::Param(value) => Argument::Param(*value),
            Arg::F64(value) => Argument::F64(*value),
            Arg::F32(value) => Argument::F32(*value),
            Arg::C128(value) => Argument::C128(*value),
            Arg::C64(value) => Argument::C64(*value),
            Arg::Foreign(_) if *name == names.0 || names.1.contains(name) => continue,
            Arg::Foreign(array) => {
                let place = arrays.iter().find(|array| array.name() == *name).map_or(0, Array::address);
                Argument::Array(match known.get(&(place, array.bytes())).map(Arc::clone) {
                    Some(there) => there,
                    None => {
                        let buffer = Arc::new(copied(device, program, (name, array))?);
                        known.insert((place, array.bytes()), Arc::clone(&buffer));
                        buffer
                    }
                })
            }
            Arg::Buffer(_) | Arg::I32(_) | Arg::I64(_) | Arg::U32(_) | Arg::U64(_) => {
                let message = format!("`{name}` of a form is {arg:?}, which is no number of a form");
                return Err(Failure::new("InternalError", message));
            }
        };
        fixed.insert(name, argument);
    }
    let mut of = |name: &str| fixed.remove(name).ok_or_else(|| SolveError::Missing { name: name.into() });
    Ok(form.add_program(&program.executable, names, &mut of)?)
}

fn copied(
    device: &dyn Device,
    program: &Program,
    (name, array): (&str, &Foreign<'_>),
) -> Result<Buffer, Failure> {
    let mut bytes = vec![0; array.bytes() as usize];
    device.fetch(&program.executable, name, array, &mut bytes)?;
    Ok(uploaded(device, &bytes)?)
}
