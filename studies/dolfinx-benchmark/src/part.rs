//! What a device has of the problem: all of it, or a part.

use crate::error::BenchmarkError;
use crate::operator::Operator;
use crate::problem::Problem;
use crate::vectors::{Vectors, download, upload, upload_to};
use kingpost::Mapping;
use kingpost::forms::tabulated::Precision;
use kingpost::runtime::{Begun, Buffer, Device, RuntimeError, buffer_of};
use kingpost::solve::{Call, Communicator, Queue, Repeatable, SharedPart, Wire};
use std::ops::Range;
use std::time::Instant;

/// Iterations that are one list of launches, which a card has as one graph.
const AT_ONCE: usize = 10;

/// Places in the lists of cells: those that share unknowns with other parts, and the others.
const OUTER: usize = 0;
const INNER: usize = 1;

/// A part on its device.
pub struct Part<'d> {
    device: &'d dyn Device,
    precision: Precision,
    part: SharedPart,
    /// The operator without prescribed values, on outer and inner cells.
    pub operator: Operator,
    vectors: Vectors,
    /// Values that are prescribed, while they are not in their places.
    kept: Buffer,
    /// None where there are no other parts.
    shared: Option<Shared>,
    /// Whether launches and messages that repeat are recorded, on cards as graphs.
    is_recorded: bool,
}

/// What comes out of a part.
pub struct OfPart {
    /// The values at its degrees of freedom.
    pub values: Vec<f64>,
    /// Seconds of all repetitions by the wall clock.
    pub seconds: f64,
    /// Seconds of two repetitions before: cards connect in the first one, and record the second one.
    pub turns: [f64; 2],
}

/// What becomes of unknowns of several parts.
struct Shared {
    n: usize,
    n_terms: usize,
    at: Buffer,
    /// What of `wire` each of them adds, in the order of the parts, and how much of that comes before the part's own.
    starts: Buffer,
    own: Buffer,
    places: Buffer,
    /// The unknowns that are sent.
    sent: Buffer,
    wire: Wire,
}

impl Shared {
    fn new(device: &dyn Device, rank: usize, part: &SharedPart) -> Result<Self, BenchmarkError> {
        let (mut sent, mut pieces, mut terms) = (Vec::new(), Vec::new(), Vec::new());
        for (peer, places) in &part.peers {
            let first = sent.len();
            for place in places {
                terms.push((*place, *peer, sent.len() as i32));
                sent.push(part.shared[*place as usize]);
            }
            pieces.push((*peer, first..sent.len()));
        }
        terms.sort_unstable();
        let (mut starts, mut own) = (vec![0], Vec::new());
        let mut rest = &terms[..];
        for place in 0..part.shared.len() as u32 {
            let (of_place, others) = rest.split_at(rest.partition_point(|(other, ..)| *other == place));
            let before = of_place.partition_point(|(_, peer, _)| *peer < rank);
            let first = terms.len() - rest.len();
            own.push((first + before) as i32);
            starts.push((first + of_place.len()) as i32);
            rest = others;
        }
        let places: Vec<i32> = terms.iter().map(|(.., place)| *place).collect();
        Ok(Self {
            n: part.shared.len(),
            n_terms: terms.len(),
            at: buffer_of(device, &part.shared)?,
            starts: buffer_of(device, &starts)?,
            own: buffer_of(device, &own)?,
            places: buffer_of(device, &places)?,
            sent: buffer_of(device, &sent)?,
            wire: Wire::new(device, pieces.clone(), pieces)?,
        })
    }
}

/// The cells of a part in two lists, those that it has.
fn lists(part: &SharedPart) -> [Range<usize>; 2] {
    [0..part.n_outer, part.n_outer..part.cells.len()]
}

impl<'d> Part<'d> {
    /// Compiles everything and uploads what is read of the mesh.
    ///
    /// # Errors
    /// As [`Operator::new`].
    pub fn new(
        device: &'d dyn Device,
        problem: &Problem,
        (rank, part): (usize, SharedPart),
        how: &How<'_>,
    ) -> Result<Self, BenchmarkError> {
        let precision = problem.discretisation.precision;
        let form = (&problem.discretisation.stiffness_action(), "stiffness");
        let memories = lists(&part).map(|cells| problem.memory(&part, cells));
        // a buffer has a byte at least
        let bytes = (precision.ty().bytes() * (part.dofs.len() - part.n_free) as u64).max(1);
        Ok(Self {
            device,
            precision,
            operator: Operator::new(device, form, how.mapping.cloned(), precision, memories)?,
            vectors: Vectors::new(device, precision)?,
            kept: device.allocate(bytes)?,
            shared: match part.peers.is_empty() {
                true => None,
                false => Some(Shared::new(device, rank, &part)?),
            },
            part,
            is_recorded: how.is_recorded,
        })
    }

    /// The place of each number of the part in vectors of the whole problem.
    #[must_use]
    pub fn dofs(&self) -> &[i32] {
        &self.part.dofs
    }

    /// How many cells share unknowns with other parts, and how many do not.
    #[must_use]
    pub fn n_cells(&self) -> [usize; 2] {
        lists(&self.part).map(|cells| cells.len())
    }

    /// Numbers that are sent in each action.
    #[must_use]
    pub fn n_sent(&self) -> usize {
        self.shared.as_ref().map_or(0, |shared| shared.wire.n_sent())
    }

    fn vector(&self, whole: &[f64]) -> Result<Buffer, RuntimeError> {
        let own: Vec<f64> = self.part.dofs.iter().map(|dof| whole[*dof as usize]).collect();
        upload(self.device, self.precision, &own)
    }

    fn filled(&self, value: f64) -> Result<Buffer, RuntimeError> {
        upload(self.device, self.precision, &vec![value; self.part.dofs.len()])
    }

    fn values(&self, buffer: &Buffer) -> Result<Vec<f64>, RuntimeError> {
        download(self.device, self.precision, buffer)
    }

    /// Appends what adds the action of an operator on `u` to `y`: what is exchanged first, then all else
    /// meanwhile.
    fn add<'a>(&'a self, operator: &'a Operator, u: &'a Buffer, y: &'a Buffer, queue: &mut Queue<'a>) {
        let n_dofs = self.part.dofs.len();
        let [outer, inner] = self.n_cells();
        if outer > 0 {
            operator.add_to(OUTER, u, y, queue);
        }
        if let Some(Shared { sent, wire, .. }) = &self.shared {
            let sizes = [("n", wire.n_sent()), ("n_dofs", n_dofs)];
            let arrays = [("at", sent), ("q", y), ("packed", wire.packed())];
            queue.push(Call::of(&self.vectors.pack, &sizes, &arrays));
            queue.start(wire);
        }
        if inner > 0 {
            operator.add_to(INNER, u, y, queue);
        }
        if let Some(Shared { n, n_terms, at, starts, own, places, wire, .. }) = &self.shared {
            queue.finish(wire);
            let sizes = [("n", *n), ("n_dofs", n_dofs), ("n_terms", *n_terms)];
            let lists = [("at", at), ("starts", starts), ("own", own), ("places", places)];
            let arrays = [&lists[..], &[("received", wire.ghosts()), ("q", y)]].concat();
            queue.push(Call::of(&self.vectors.combine, &sizes, &arrays));
        }
    }

    /// The right-hand side of a source.
    ///
    /// # Errors
    /// As [`Operator::new`].
    pub fn load(
        &self,
        problem: &Problem,
        f: &[f64],
        communicator: &dyn Communicator,
    ) -> Result<Vec<f64>, BenchmarkError> {
        let form = (&problem.discretisation.load(), "load");
        let memories = lists(&self.part).map(|cells| problem.memory(&self.part, cells));
        let load = Operator::new(self.device, form, None, self.precision, memories)?;
        let (f, b) = (self.vector(f)?, self.filled(0.0)?);
        let mut queue = Queue::new();
        self.add(&load, &f, &b, &mut queue);
        communicator.perform(&queue)?;
        communicator.wait()?;
        Ok(self.values(&b)?)
    }

    /// Does what is repeatable twice: cards are connected then, and have recorded it.
    fn prepare(
        &self,
        again: &Again<'_, '_>,
        communicator: &dyn Communicator,
    ) -> Result<[f64; 2], BenchmarkError> {
        let mut turns = [0.0; 2];
        for seconds in &mut turns {
            let start = Instant::now();
            finish(communicator, again.begin(communicator)?)?;
            *seconds = start.elapsed().as_secs_f64();
        }
        Ok(turns)
    }

    fn again<'q>(
        &self,
        queue: &'q Queue<'q>,
        communicator: &dyn Communicator,
    ) -> Result<Again<'q, 'q>, BenchmarkError> {
        Ok(match self.is_recorded {
            true => Again::Recorded(communicator.repeatable(queue)?),
            false => Again::Launched(queue),
        })
    }

    /// Applies the operator to `u` a number of times, as [`System::apply`](crate::solve::System::apply).
    ///
    /// # Errors
    /// A failing driver.
    pub fn apply(
        &self,
        u: &[f64],
        repetitions: usize,
        communicator: &dyn Communicator,
    ) -> Result<OfPart, BenchmarkError> {
        let (u, y) = (self.vector(u)?, self.filled(f64::NAN)?);
        let Vectors { clear, hold, put_back, .. } = &self.vectors;
        let (sizes, kept) = (self.sizes(), &self.kept);
        let mut queue = Queue::new();
        queue.push(Call::of(clear, &[("n", self.part.dofs.len())], &[("v", &y)]));
        queue.push(Call::of(hold, &sizes, &[("u", &u), ("kept", kept)]));
        self.add(&self.operator, &u, &y, &mut queue);
        queue.push(Call::of(put_back, &sizes, &[("kept", kept), ("u", &u), ("y", &y)]));
        let again = self.again(&queue, communicator)?;
        let turns = self.prepare(&again, communicator)?;
        let start = Instant::now();
        for _ in 0..repetitions {
            finish(communicator, again.begin(communicator)?)?;
        }
        let seconds = start.elapsed().as_secs_f64();
        Ok(OfPart { values: self.values(&y)?, seconds, turns })
    }

    fn sizes(&self) -> [(&'static str, usize); 2] {
        [("n_free", self.part.n_free), ("n_dofs", self.part.dofs.len())]
    }

    /// Solves for `b`, as [`System::solve`](crate::solve::System::solve).
    ///
    /// # Errors
    /// A failing driver.
    pub fn solve(
        &self,
        b: &[f64],
        iterations: usize,
        communicator: &dyn Communicator,
    ) -> Result<OfPart, BenchmarkError> {
        let sums = || self.device.allocate(8 * (AT_ONCE as u64 + 1));
        let state = State {
            r: self.vector(b)?,
            p: self.vector(b)?,
            x: self.filled(0.0)?,
            q: self.filled(0.0)?,
            rr: sums()?,
            pq: sums()?,
        };
        let [first, some, rest] = [0, AT_ONCE, iterations % AT_ONCE].map(|n| self.iterations(n, &state));
        let (some, rest) = (self.again(&some, communicator)?, self.again(&rest, communicator)?);
        let turns = self.prepare(&some, communicator)?;
        // from the beginning
        self.reset(&state, b)?;
        let start = Instant::now();
        communicator.perform(&first)?;
        let mut begun = Vec::new();
        for _ in 0..iterations / AT_ONCE {
            begun.push(some.begin(communicator)?);
        }
        if !iterations.is_multiple_of(AT_ONCE) {
            begun.push(rest.begin(communicator)?);
        }
        begun.into_iter().try_for_each(|begun| finish(communicator, begun))?;
        let seconds = start.elapsed().as_secs_f64();
        Ok(OfPart { values: self.values(&state.x)?, seconds, turns })
    }

    fn reset(&self, state: &State, b: &[f64]) -> Result<(), RuntimeError> {
        let State { r, p, x, q, rr, pq } = state;
        let own: Vec<f64> = self.part.dofs.iter().map(|dof| b[*dof as usize]).collect();
        [r, p].into_iter().try_for_each(|v| upload_to(self.device, self.precision, v, &own))?;
        // zeros of any type
        [x, q, rr, pq].into_iter().try_for_each(|v| self.device.fill(v, 0))
    }

    /// Some iterations and what goes on from them; of none, the first sum.
    fn iterations<'a>(&'a self, count: usize, state: &'a State) -> Queue<'a> {
        let State { r, p, x, q, rr, pq } = state;
        let Vectors { dot, residual, direction, turn, .. } = &self.vectors;
        let n_sums = AT_ONCE + 1;
        let of_sum = |k: usize| {
            let n_dofs = self.part.dofs.len();
            [("n_free", self.part.n_owned), ("n_dofs", n_dofs), ("n_sums", n_sums), ("k", k)]
        };
        let mut queue = Queue::new();
        if count == 0 {
            queue.push(Call::of(dot, &of_sum(0), &[("v", r), ("w", r), ("sums", rr)]));
            queue.sum(rr, 0);
            return queue;
        }
        for k in 0..count {
            let sizes = [&self.sizes()[..], &[("n_sums", n_sums), ("k", k)]].concat();
            self.add(&self.operator, p, q, &mut queue);
            queue.push(Call::of(dot, &of_sum(k), &[("v", p), ("w", q), ("sums", pq)]));
            queue.sum(pq, k);
            let owned = [&sizes[..], &[("n_owned", self.part.n_owned)]].concat();
            queue.push(Call::of(residual, &owned, &[("pq", pq), ("q", q), ("r", r), ("rr", rr)]));
            queue.sum(rr, k + 1);
            let arrays = [("rr", rr), ("pq", pq), ("r", r), ("x", x), ("p", p), ("q", q)];
            queue.push(Call::of(direction, &sizes, &arrays));
        }
        queue.push(Call::of(turn, &[("n_sums", n_sums)], &[("rr", rr), ("pq", pq)]));
        queue
    }
}

/// How parts are set up.
pub struct How<'m> {
    /// The mapping of the operator; none for the default one.
    pub mapping: Option<&'m Mapping>,
    /// Whether launches and messages that repeat are recorded, on cards as graphs.
    pub is_recorded: bool,
}

/// What is done again and again.
enum Again<'r, 'q> {
    Recorded(Repeatable<'r>),
    Launched(&'q Queue<'q>),
}

impl Again<'_, '_> {
    fn begin(&self, communicator: &dyn Communicator) -> Result<Option<Begun<'_>>, BenchmarkError> {
        match self {
            Self::Recorded(repeatable) => Ok(communicator.begin(repeatable)?),
            Self::Launched(queue) => {
                communicator.perform(queue)?;
                Ok(None)
            }
        }
    }
}

/// The vectors of conjugate gradients, and the sums of some iterations.
struct State {
    r: Buffer,
    p: Buffer,
    x: Buffer,
    q: Buffer,
    rr: Buffer,
    pq: Buffer,
}

/// Waits for all that was begun.
fn finish(communicator: &dyn Communicator, begun: Option<Begun<'_>>) -> Result<(), BenchmarkError> {
    match begun {
        Some(begun) => Ok(communicator.finish(begun)?),
        None => Ok(communicator.wait()?),
    }
}
