//! Launches that were recorded as one, and what runs beside the host.

use crate::device::{Buffer, Prepared, Stream};
use crate::error::RuntimeError;
use std::marker::PhantomData;
use std::sync::Arc;

/// Launches that a driver recorded as one. Whoever drops it has to keep until then what they read and write.
pub(crate) trait Replay: Send + Sync {
    /// Puts them on a stream, or on the default one and waits; one call at a time.
    fn replay(&self, stream: Option<Stream>) -> Result<(), RuntimeError>;
}

/// A graph on its way; dropping it waits for its end.
pub(crate) trait Running: Send {
    /// Waits for the end: the seconds that it took, and the bytes that were copied behind it.
    fn finish(self: Box<Self>) -> Result<(f64, Vec<u8>), RuntimeError>;
}

/// What [`Device::begin`](crate::Device::begin) began. Dropped, it is waited for.
pub struct Begun<'r> {
    pub(crate) running: Box<dyn Running>,
    pub(crate) _used: PhantomData<&'r Buffer>,
}

impl Begun<'_> {
    /// Waits for the end: the seconds that it took by the device's clock, and the bytes of the buffer that was
    /// to be seen, as they were then.
    ///
    /// # Errors
    /// A failing driver.
    pub fn finish(self) -> Result<(f64, Vec<u8>), RuntimeError> {
        self.running.finish()
    }
}

/// Prepared launches as one, by [`Device::record`](crate::Device::record).
pub struct Recorded<'a> {
    /// Of the device.
    pub(crate) device: u64,
    // dropped before what its launches read and write
    pub(crate) graph: Option<Box<dyn Replay>>,
    pub(crate) launches: Vec<Arc<Prepared<'a>>>,
}

impl Recorded<'_> {
    /// Whether the driver has it as one graph.
    #[must_use]
    pub fn is_graph(&self) -> bool {
        self.graph.is_some()
    }
}
