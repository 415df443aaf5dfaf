//! Operations that sets and maps have alike, from the functions of isl that do them.

/// Objects from objects of the same space.
macro_rules! unary {
    ($of:ident: $($(#[$doc:meta])* $name:ident = $call:ident;)*) => { impl $of { $(
        $(#[$doc])*
        pub fn $name(&self) -> Result<$of, IslError> {
            // SAFETY: a new reference is handed over.
            let raw = unsafe { ffi::$call(self.raw.give()) };
            // SAFETY: the result has the same space.
            unsafe { $of::wrap_raw(self.raw.ctx(), raw, &self.shape, stringify!($name)) }
        }
    )* } };
}

/// Objects from two of spaces that match.
macro_rules! binary {
    ($of:ident: $($(#[$doc:meta])* $name:ident = $call:ident;)*) => { impl $of { $(
        $(#[$doc])*
        ///
        /// # Errors
        /// [`IslError::SpaceMismatch`].
        pub fn $name(&self, other: &$of) -> Result<$of, IslError> {
            let right = self.aligned(other, stringify!($name))?;
            // SAFETY: two references are handed over.
            let raw = unsafe { ffi::$call(self.raw.give(), right.into_raw()) };
            // SAFETY: the result has the space of `self`, up to parameters.
            unsafe { $of::wrap_raw(self.raw.ctx(), raw, &self.shape, stringify!($name)) }
        }
    )* } };
}

/// Truth values from two objects of spaces that match.
macro_rules! compare {
    ($of:ident: $($(#[$doc:meta])* $name:ident = $call:ident;)*) => { impl $of { $(
        $(#[$doc])*
        ///
        /// # Errors
        /// [`IslError::SpaceMismatch`].
        pub fn $name(&self, other: &$of) -> Result<bool, IslError> {
            let right = self.aligned(other, stringify!($name))?;
            // SAFETY: isl keeps both.
            self.raw.ctx().truth(unsafe { ffi::$call(self.raw.keep(), right.keep()) }, stringify!($name))
        }
    )* } };
}

/// Truth values from one object.
macro_rules! decide {
    ($of:ident: $($(#[$doc:meta])* $name:ident = $call:ident;)*) => { impl $of { $(
        $(#[$doc])*
        pub fn $name(&self) -> Result<bool, IslError> {
            // SAFETY: isl keeps the object.
            self.raw.ctx().truth(unsafe { ffi::$call(self.raw.keep()) }, stringify!($name))
        }
    )* } };
}

/// Objects of the same space by way of one conjunction.
macro_rules! hull {
    ($of:ident by $from:ident: $($(#[$doc:meta])* $name:ident = $call:ident;)*) => { impl $of { $(
        $(#[$doc])*
        pub fn $name(&self) -> Result<$of, IslError> {
            // SAFETY: a new reference is handed over; a null hull gives a null result; the space stays.
            unsafe {
                let raw = ffi::$from(ffi::$call(self.raw.give()));
                $of::wrap_raw(self.raw.ctx(), raw, &self.shape, stringify!($name))
            }
        }
    )* } };
}

pub(crate) use {binary, compare, decide, hull, unary};
