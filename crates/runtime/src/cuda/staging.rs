//! Copies of long arrays between host and card, by way of memory that the card reaches.

use super::context::{Context, CudaMemory};
use crate::error::RuntimeError;
use cudarc::driver::result;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes from which on an array goes in pieces. The driver copies any memory in one thread, at 7 GB/s to an H200
/// (2026-11-29), an eighth of what its bus takes.
const LONG: usize = 1 << 25;
/// Bytes of a piece.
const PIECE: usize = 1 << 22;
/// Threads, at most: some of them copy on the host while a piece is on the bus.
const THREADS: usize = 8;

/// Pieces of memory that no copy uses.
#[derive(Default)]
pub(super) struct Staging(Mutex<Vec<CudaMemory>>);

impl Staging {
    /// Whether an array goes by way of pieces.
    pub(super) const fn takes(bytes: usize) -> bool {
        bytes >= LONG
    }

    /// Copies an array to the card.
    pub(super) fn write(
        &self,
        context: &Arc<Context>,
        pointer: u64,
        data: &[u8],
    ) -> Result<(), RuntimeError> {
        self.in_pieces(context, data.len(), &|piece, first, bytes| {
            let part = &data[first..first + bytes];
            // SAFETY: a piece holds as many bytes, and this thread has it alone until the copy has ended.
            let staged = unsafe {
                std::ptr::copy_nonoverlapping(part.as_ptr(), piece, bytes);
                std::slice::from_raw_parts(piece, bytes)
            };
            // SAFETY: the bytes are within the memory, whose size was compared.
            unsafe { result::memcpy_htod_sync(pointer + first as u64, staged) }
                .map_err(context.failed("cuMemcpyHtoD"))
        })
    }

    /// Copies an array from the card.
    pub(super) fn read(
        &self,
        context: &Arc<Context>,
        pointer: u64,
        out: &mut [u8],
    ) -> Result<(), RuntimeError> {
        let (to, bytes) = (Shared(out.as_mut_ptr()), out.len());
        self.in_pieces(context, bytes, &|piece, first, bytes| {
            // SAFETY: a piece holds as many bytes, and this thread has it alone.
            let staged = unsafe { std::slice::from_raw_parts_mut(piece, bytes) };
            // SAFETY: the bytes are within the memory, whose size was compared.
            unsafe { result::memcpy_dtoh_sync(staged, pointer + first as u64) }
                .map_err(context.failed("cuMemcpyDtoH"))?;
            // SAFETY: within `out`, of which each thread writes other bytes.
            unsafe { std::ptr::copy_nonoverlapping(piece, to.at(first), bytes) };
            Ok(())
        })
    }

    /// Does something with a piece for each part of a number of bytes, in several threads.
    fn in_pieces(
        &self,
        context: &Arc<Context>,
        bytes: usize,
        copy: &(dyn Fn(*mut u8, usize, usize) -> Result<(), RuntimeError> + Sync),
    ) -> Result<(), RuntimeError> {
        let next = AtomicUsize::new(0);
        let work = || -> Result<(), RuntimeError> {
            context.enter()?;
            let piece = match self.pieces().pop() {
                Some(piece) => piece,
                None => CudaMemory::of_host(context, PIECE as u64)?,
            };
            let Some(address) = piece.host() else {
                let reason = "memory of the host that has no address".into();
                let device = context.name.clone();
                return Err(RuntimeError::Allocation { bytes: PIECE as u64, device, reason });
            };
            loop {
                let first = next.fetch_add(PIECE, Relaxed);
                if first >= bytes {
                    break;
                }
                copy(address, first, PIECE.min(bytes - first))?;
            }
            self.pieces().push(piece);
            Ok(())
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS);
        std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
            let own = work();
            others.into_iter().fold(own, |all, other| {
                all.and(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            })
        })
    }

    fn pieces(&self) -> std::sync::MutexGuard<'_, Vec<CudaMemory>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The start of an array of which threads write different parts.
struct Shared(*mut u8);

// SAFETY: each thread writes bytes that no other one does.
unsafe impl Sync for Shared {}

impl Shared {
    /// The address of a byte of the array.
    ///
    /// # Safety
    /// The array has the byte.
    const unsafe fn at(&self, byte: usize) -> *mut u8 {
        // SAFETY: as the caller says.
        unsafe { self.0.add(byte) }
    }
}
