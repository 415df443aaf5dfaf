//! The isl context of the thread, owned pointers into it, and the check that every call goes
//! through.

use std::cell::Cell;
use std::ffi::{CStr, CString, c_int};
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::rc::Rc;

use crate::error::IslError;
use crate::ffi;

/// One isl context; freed when the thread and all its objects are gone.
pub(crate) struct Context {
    ptr: NonNull<ffi::isl_ctx>,
    /// The limit on operations that was asked for, of which isl may have been given what is left; none
    /// if zero.
    limit: Cell<u64>,
}

impl Context {
    fn new() -> Option<Context> {
        // SAFETY: no arguments; a null result is handled below.
        let ptr = NonNull::new(unsafe { ffi::isl_ctx_alloc() })?;
        // SAFETY: `ptr` is a live context.
        unsafe { ffi::isl_options_set_on_error(ptr.as_ptr(), ffi::ON_ERROR_CONTINUE) };
        Some(Context { ptr, limit: Cell::new(0) })
    }

    /// The raw context, valid as long as `self`.
    pub(crate) fn raw(&self) -> *mut ffi::isl_ctx {
        self.ptr.as_ptr()
    }

    /// Takes isl's last error and clears it.
    pub(crate) fn take_error(&self, operation: &'static str) -> IslError {
        // SAFETY: the context is live; the message is a C string or null and is copied before the
        // reset.
        unsafe {
            let kind = ffi::isl_ctx_last_error(self.raw());
            let text = ffi::isl_ctx_last_error_msg(self.raw());
            let message = if text.is_null() {
                "no message".to_owned()
            } else {
                CStr::from_ptr(text).to_string_lossy().into_owned()
            };
            ffi::isl_ctx_reset_error(self.raw());
            if kind == ffi::ERROR_QUOTA {
                return IslError::Quota { operation: operation.to_owned(), limit: self.limit.get() };
            }
            IslError::Solver { operation, message }
        }
    }

    /// The number at which isl stops counting; none if zero.
    fn max_operations(&self) -> u64 {
        // SAFETY: the context is live.
        unsafe { ffi::isl_ctx_get_max_operations(self.raw()) }
    }

    /// Notes a limit, gives isl what is left of it, and starts counting again.
    fn set_limit(&self, limit: u64, left: u64) {
        self.limit.set(limit);
        // SAFETY: the context is live.
        unsafe {
            ffi::isl_ctx_set_max_operations(self.raw(), left);
            ffi::isl_ctx_reset_operations(self.raw());
        }
    }

    /// How many operations isl has counted. It does not tell: this is the least limit that lets one more
    /// pass, by bisection below the limit that holds.
    fn operations(&self) -> u64 {
        let limit = self.max_operations();
        let (mut low, mut high) = (0, limit);
        while low < high {
            let middle = low + (high - low) / 2;
            // SAFETY: the context is live; an error that is there stays as it is.
            let counted = unsafe {
                ffi::isl_ctx_set_max_operations(self.raw(), middle + 1);
                let before = ffi::isl_ctx_last_error(self.raw());
                let passed = ffi::isl_ctx_next_operation(self.raw()) >= 0;
                if before == 0 {
                    ffi::isl_ctx_reset_error(self.raw());
                }
                !passed
            };
            if counted { low = middle + 1 } else { high = middle }
        }
        // SAFETY: the context is live.
        unsafe { ffi::isl_ctx_set_max_operations(self.raw(), limit) };
        low
    }

    /// `isl_bool` to `bool`.
    pub(crate) fn truth(&self, value: c_int, operation: &'static str) -> Result<bool, IslError> {
        if value < 0 { Err(self.take_error(operation)) } else { Ok(value != 0) }
    }

    /// `isl_size` to `usize`.
    pub(crate) fn size(&self, value: c_int, operation: &'static str) -> Result<usize, IslError> {
        usize::try_from(value).map_err(|_| self.take_error(operation))
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: every object holds an `Rc` of its context, so none is left when this runs.
        unsafe { ffi::isl_ctx_free(self.raw()) }
    }
}

thread_local! {
    static CONTEXT: Option<Rc<Context>> = Context::new().map(Rc::new);
}

/// The context of this thread.
///
/// # Errors
/// [`IslError::Solver`] when memory is exhausted or the thread is ending.
pub(crate) fn context() -> Result<Rc<Context>, IslError> {
    CONTEXT.try_with(Clone::clone).ok().flatten().ok_or_else(|| IslError::Solver {
        operation: "allocate a context",
        message: "out of memory, or the thread is ending".to_owned(),
    })
}

/// Runs `work` with at most `limit` solver operations on this thread (isl's own count of elementary
/// steps, which is the same in every run). Inside another limit they count towards both.
///
/// # Errors
/// Calls inside fail with [`IslError::Quota`] once a limit is reached; `work` decides what that
/// means.
pub fn with_operation_limit<T, E: From<IslError>>(
    limit: u64,
    work: impl FnOnce() -> Result<T, E>,
) -> Result<T, E> {
    struct Restore {
        ctx: Rc<Context>,
        limit: u64,
        /// What was left of it.
        left: u64,
    }
    impl Drop for Restore {
        fn drop(&mut self) {
            let left =
                if self.left == 0 { 0 } else { self.left.saturating_sub(self.ctx.operations()).max(1) };
            self.ctx.set_limit(self.limit, left);
        }
    }
    let ctx = context()?;
    let around = ctx.limit.get();
    let (given, left) = match around {
        0 => (limit, 0),
        _ => {
            let left = ctx.max_operations().saturating_sub(ctx.operations()).max(1);
            (if left < limit { around } else { limit }, left)
        }
    };
    let own = if left == 0 { limit } else { limit.min(left) };
    let _restore = Restore { ctx: Rc::clone(&ctx), limit: around, left };
    ctx.set_limit(given, own);
    work()
}

/// An isl type that is reference counted.
pub(crate) trait Object {
    /// One more reference to a live object.
    unsafe fn copy(ptr: *mut Self) -> *mut Self;
    /// Gives one reference back.
    unsafe fn release(ptr: *mut Self);
}

macro_rules! objects {
    ($($t:ident: $copy:ident, $free:ident;)*) => { $(
        impl Object for ffi::$t {
            unsafe fn copy(ptr: *mut Self) -> *mut Self {
                // SAFETY: the caller passes a live object.
                unsafe { ffi::$copy(ptr) }
            }
            unsafe fn release(ptr: *mut Self) {
                // SAFETY: the caller passes a reference it owns.
                unsafe { ffi::$free(ptr) };
            }
        }
    )* };
}

ffi::owned_types!(objects);

/// One reference to an isl object, never null, that keeps its context alive. Not `Send`: neither is
/// `Rc`.
pub(crate) struct Owned<T: Object> {
    ptr: NonNull<T>,
    ctx: Rc<Context>,
}

impl<T: Object> Owned<T> {
    /// Takes ownership of a result of isl.
    ///
    /// # Safety
    /// `ptr` is null or a reference owned by the caller, of an object of `ctx`.
    ///
    /// # Errors
    /// isl's last error when `ptr` is null.
    pub(crate) unsafe fn new(
        ctx: &Rc<Context>,
        ptr: *mut T,
        operation: &'static str,
    ) -> Result<Owned<T>, IslError> {
        match NonNull::new(ptr) {
            Some(ptr) => Ok(Owned { ptr, ctx: Rc::clone(ctx) }),
            None => Err(ctx.take_error(operation)),
        }
    }

    /// Borrows the object for an argument that isl keeps.
    pub(crate) fn keep(&self) -> *mut T {
        self.ptr.as_ptr()
    }

    /// A new reference for an argument that isl takes.
    pub(crate) fn give(&self) -> *mut T {
        // SAFETY: the object is live; counting up a live object does not fail.
        unsafe { T::copy(self.ptr.as_ptr()) }
    }

    /// Hands this reference to an argument that isl takes.
    pub(crate) fn into_raw(self) -> *mut T {
        let this = ManuallyDrop::new(self);
        // SAFETY: `this` is never dropped, so the context reference read here is the only one given
        // back.
        drop(unsafe { std::ptr::read(&this.ctx) });
        this.ptr.as_ptr()
    }

    /// The context of the object.
    pub(crate) fn ctx(&self) -> &Rc<Context> {
        &self.ctx
    }
}

impl<T: Object> Clone for Owned<T> {
    fn clone(&self) -> Owned<T> {
        // SAFETY: the object is live; `give` on a live object is not null.
        Owned { ptr: unsafe { NonNull::new_unchecked(self.give()) }, ctx: Rc::clone(&self.ctx) }
    }
}

impl<T: Object> Drop for Owned<T> {
    fn drop(&mut self) {
        // SAFETY: this is the reference that `self` owns; `ctx` is dropped after it.
        unsafe { T::release(self.ptr.as_ptr()) }
    }
}

/// An isl identifier for `name`; equal names give the same identifier.
pub(crate) fn identifier(ctx: &Rc<Context>, name: &str) -> Result<Owned<ffi::isl_id>, IslError> {
    let invalid = || IslError::InvalidName { name: name.to_owned() };
    if name.is_empty() {
        return Err(invalid());
    }
    let text = CString::new(name).map_err(|_| invalid())?;
    // SAFETY: isl copies the C string; there is no user pointer.
    unsafe {
        let id = ffi::isl_id_alloc(ctx.raw(), text.as_ptr(), std::ptr::null_mut());
        Owned::new(ctx, id, "make an identifier")
    }
}

/// The name of an identifier.
pub(crate) fn identifier_name(id: &Owned<ffi::isl_id>) -> Option<String> {
    // SAFETY: `id` is live and owns the C string, which is copied here.
    unsafe {
        let text = ffi::isl_id_get_name(id.keep());
        (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
    }
}

/// An integer value of isl.
pub(crate) fn value(ctx: &Rc<Context>, number: i64) -> Result<Owned<ffi::isl_val>, IslError> {
    // SAFETY: plain arguments.
    unsafe { Owned::new(ctx, ffi::isl_val_int_from_si(ctx.raw(), number), "make a number") }
}

/// Numerator and denominator of a value that isl handed out.
///
/// # Safety
/// `ptr` is null or a value of `ctx` owned by the caller.
///
/// # Errors
/// [`IslError::Overflow`] beyond 64 bits; isl's error when `ptr` is null.
pub(crate) unsafe fn fraction(
    ctx: &Rc<Context>,
    ptr: *mut ffi::isl_val,
    operation: &'static str,
) -> Result<(i64, i64), IslError> {
    // SAFETY: the caller's promise.
    let value = unsafe { Owned::new(ctx, ptr, operation)? };
    // SAFETY: isl keeps the value.
    let numerator = || unsafe { ffi::isl_val_get_num_si(value.keep()) };
    if numerator() == 0 {
        // Overflow and infinities also give 0 and an error in the context; an older error must not
        // count. SAFETY: the context is live.
        unsafe { ffi::isl_ctx_reset_error(ctx.raw()) };
        numerator();
        // SAFETY: as above.
        if unsafe { ffi::isl_ctx_last_error(ctx.raw()) } != 0 {
            // SAFETY: as above.
            unsafe { ffi::isl_ctx_reset_error(ctx.raw()) };
            return Err(IslError::Overflow { operation, needed: "`i64`" });
        }
    }
    // SAFETY: isl keeps the value.
    Ok((numerator(), unsafe { ffi::isl_val_get_den_si(value.keep()) }))
}
