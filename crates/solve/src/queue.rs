//! What operators ask for: kernels, and what parts of a system do with each other between them.

use crate::{Call, SolveError, Wire};
use kingpost_runtime::{Buffer, Device, Launch, Recorded};
use std::sync::Arc;

/// An entry of a [`Queue`].
pub enum Item<'a> {
    /// A kernel.
    Call(Call<'a>),
    /// Sends what is [packed](Wire::packed), concurrently with the kernels that follow.
    Start(&'a Wire),
    /// Has the [ghosts](Wire::ghosts) there before the kernels that follow.
    Finish(&'a Wire),
    /// Replaces the number at a place of a vector by its sum over all parts.
    Sum(&'a Buffer, usize),
}

/// Kernels in their order, with marks where parts of a system exchange numbers. A system of one part
/// skips the marks, so that all kernels are one list of launches.
#[derive(Default)]
pub struct Queue<'a>(Vec<Item<'a>>);

impl<'a> Queue<'a> {
    /// Nothing yet.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Appends a kernel.
    pub fn push(&mut self, call: Call<'a>) {
        self.0.push(Item::Call(call));
    }

    /// Appends all entries of another one.
    pub(crate) fn append(&mut self, mut other: Self) {
        self.0.append(&mut other.0);
    }

    /// Appends [`Item::Start`].
    pub fn start(&mut self, wire: &'a Wire) {
        self.0.push(Item::Start(wire));
    }

    /// Appends [`Item::Finish`].
    pub fn finish(&mut self, wire: &'a Wire) {
        self.0.push(Item::Finish(wire));
    }

    /// Appends [`Item::Sum`].
    pub fn sum(&mut self, vector: &'a Buffer, place: usize) {
        self.0.push(Item::Sum(vector, place));
    }

    /// All entries.
    #[must_use]
    pub fn items(&self) -> &[Item<'a>] {
        &self.0
    }

    /// Runs the kernels as one list, and waits for the last: the seconds they took by the device's
    /// clock. Marks are skipped, as there are no other parts.
    ///
    /// # Errors
    /// As [`Device::launch_all`].
    pub fn run(&self, device: &dyn Device) -> Result<f64, SolveError> {
        let launches: Vec<Launch<'_>> = self.calls().map(Call::launch).collect();
        Ok(device.launch_all(&launches)?)
    }

    /// The same, where each kernel begins as soon as it is checked: a card does not wait until all are.
    ///
    /// # Errors
    /// As [`Device::put_all`]; the kernels before one that is refused have run.
    pub(crate) fn run_soon(&self, device: &dyn Device) -> Result<(), SolveError> {
        let launches: Vec<Launch<'_>> = self.calls().map(Call::launch).collect();
        let Some((last, before)) = launches.split_last() else { return Ok(()) };
        device.put_all(before)?;
        device.launch_all(std::slice::from_ref(last))?;
        Ok(())
    }

    /// The kernels as one that runs often, without the marks likewise: their arguments are checked once.
    ///
    /// # Errors
    /// As [`Device::prepare`] and [`Device::record`].
    pub fn record(&self, device: &dyn Device) -> Result<Recorded<'_>, SolveError> {
        let prepared: Vec<_> = self
            .calls()
            .map(|call| Ok(Arc::new(call.prepare(device)?)))
            .collect::<Result<_, SolveError>>()?;
        Ok(device.record(&prepared)?)
    }

    /// Whether its kernels can be recorded.
    #[cfg(feature = "cuda")]
    pub(crate) fn is_recordable(&self) -> bool {
        !self.calls().any(Call::has_scratch)
    }

    fn calls(&self) -> impl Iterator<Item = &Call<'a>> {
        self.0.iter().filter_map(|item| match item {
            Item::Call(call) => Some(call),
            Item::Start(_) | Item::Finish(_) | Item::Sum(..) => None,
        })
    }
}

impl<'a> Extend<Call<'a>> for Queue<'a> {
    fn extend<I: IntoIterator<Item = Call<'a>>>(&mut self, calls: I) {
        self.0.extend(calls.into_iter().map(Item::Call));
    }
}

impl<'a> FromIterator<Call<'a>> for Queue<'a> {
    fn from_iter<I: IntoIterator<Item = Call<'a>>>(calls: I) -> Self {
        Self(calls.into_iter().map(Item::Call).collect())
    }
}
