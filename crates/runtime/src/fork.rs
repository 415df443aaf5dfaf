//! Forks of the process, of which a child has one thread: what other threads were doing is lost.
//!
//! An OpenMP runtime keeps its threads from one parallel region to the next, in the thread that
//! starts the regions. libgomp does not notice that a fork took them, and waits for them for ever.
//! In a child, kernels therefore run in a thread of its own, whose threads are new. Drivers of
//! OpenCL and CUDA do not live on in a child at all; their devices say so.

use crate::error::RuntimeError;
use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, Once, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Forks between this process and the one that first watched.
static FORKS: AtomicU64 = AtomicU64::new(0);

/// Operations of devices that live on in children share it, a fork has it alone: no child is born
/// with a lock that only another thread would open.
static GATE: RwLock<()> = RwLock::new(());

thread_local! {
    /// The gate, from before a fork to after it.
    static HELD: RefCell<Option<RwLockWriteGuard<'static, ()>>> = const { RefCell::new(None) };
}

#[cfg(unix)]
unsafe extern "C" {
    /// Of POSIX; the C library that std links has it.
    fn pthread_atfork(
        prepare: Option<unsafe extern "C" fn()>,
        parent: Option<unsafe extern "C" fn()>,
        child: Option<unsafe extern "C" fn()>,
    ) -> std::ffi::c_int;
}

unsafe extern "C" fn prepare() {
    let guard = GATE.write().unwrap_or_else(PoisonError::into_inner);
    HELD.with(|held| held.replace(Some(guard)));
}

unsafe extern "C" fn parent() {
    HELD.with(|held| held.replace(None));
}

unsafe extern "C" fn child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
    HELD.with(|held| held.replace(None));
}

/// Notices [`forks`] from now on. Opening a device does so; a library whose users may fork before that
/// calls it when it is loaded.
pub fn watch_forks() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        #[cfg(unix)]
        // SAFETY: the handlers live as long as the program, and take only a lock that no thread
        // holds where it forks. If it fails for want of memory, forks go unnoticed as before.
        let _ = unsafe { pthread_atfork(Some(prepare), Some(parent), Some(child)) };
    });
}

/// Forks between the first [watch](watch_forks) and this process: a child counts one more than its
/// parent.
pub fn forks() -> u64 {
    FORKS.load(Ordering::Relaxed)
}

/// Keeps forks waiting.
pub(crate) fn delay_forks() -> RwLockReadGuard<'static, ()> {
    GATE.read().unwrap_or_else(PoisonError::into_inner)
}

type Job = Box<dyn FnOnce() + Send>;

/// The thread in which a child runs its kernels.
struct Worker {
    forks: u64,
    jobs: Sender<Job>,
}

/// Runs a kernel on the host's cores: here, or in a child of a fork in its thread.
///
/// # Errors
/// The system has no thread for it.
pub(crate) fn run_kernel(kernel: impl FnOnce() + Send) -> Result<(), RuntimeError> {
    if forks() == 0 {
        kernel();
        return Ok(());
    }
    let (done, end) = channel();
    let job: Box<dyn FnOnce() + Send + '_> = Box::new(move || {
        kernel();
        drop(done);
    });
    // SAFETY: `job` is gone before this function returns: `recv` ends when `done` is dropped, which
    // the job does at its end, or, if it never runs, when it is dropped itself.
    let job = unsafe { std::mem::transmute::<Box<dyn FnOnce() + Send + '_>, Job>(job) };
    worker()?.send(job).map_err(|_| no_thread(std::io::Error::other("it has ended")))?;
    wait(&end);
    Ok(())
}

fn wait(end: &Receiver<()>) {
    // an error is the end: nothing is ever sent
    let _ = end.recv();
}

fn no_thread(source: std::io::Error) -> RuntimeError {
    RuntimeError::io("start a thread for the kernels of a forked process")(source)
}

/// The thread of this process, started at its first kernel.
fn worker() -> Result<Sender<Job>, RuntimeError> {
    static WORKER: Mutex<Option<Worker>> = Mutex::new(None);
    let mut worker = WORKER.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(own) = worker.as_ref().filter(|own| own.forks == forks()) {
        return Ok(own.jobs.clone());
    }
    let (jobs, queue) = channel::<Job>();
    let run = move || queue.into_iter().for_each(|job| job());
    std::thread::Builder::new().name("kingpost kernels".into()).spawn(run).map_err(no_thread)?;
    let before = worker.replace(Worker { forks: forks(), jobs: jobs.clone() });
    // the other end of the parent's is a thread that is not here: its locks are left alone
    std::mem::forget(before);
    Ok(jobs)
}
