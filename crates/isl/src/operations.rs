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
            // SAFETY: a new reference is handed over; a null hull gives a null result; the space
            // stays.
            unsafe {
                let raw = ffi::$from(ffi::$call(self.raw.give()));
                $of::wrap_raw(self.raw.ctx(), raw, &self.shape, stringify!($name))
            }
        }
    )* } };
}

/// What is asked of parameters and of single names.
macro_rules! names {
    ($of:ident: $dim:ident, $get_id:ident, $set_id:ident, $add_dims:ident, $fix:ident, $eliminate:ident) => {
        impl $of {
            /// The parameters.
            pub fn params(&self) -> Result<Vec<String>, IslError> {
                let ctx = self.raw.ctx();
                // SAFETY: isl keeps the object.
                let count = ctx.size(unsafe { ffi::$dim(self.raw.keep(), PARAM) }, "count parameters")?;
                let mut names = Vec::with_capacity(count);
                for position in 0..count {
                    // SAFETY: isl keeps the object; the position is in range; every parameter has
                    // an identifier.
                    let id = unsafe {
                        let id = ffi::$get_id(self.raw.keep(), PARAM, position as u32);
                        Owned::new(ctx, id, "name of a parameter")?
                    };
                    names.push(identifier_name(&id).unwrap_or_default());
                }
                Ok(names)
            }

            /// The same with further, unconstrained parameters; those there are already are left
            /// alone.
            ///
            /// # Errors
            /// [`IslError::DuplicateName`] when a name is a dimension, [`IslError::InvalidName`].
            pub fn add_params(&self, names: &[&str]) -> Result<$of, IslError> {
                let mut present = self.params()?;
                let mut raw = self.raw.clone();
                let ctx = self.raw.ctx();
                for name in names {
                    if present.iter().any(|param| param == name) {
                        continue;
                    }
                    let id = identifier(ctx, name)?;
                    // SAFETY: all references are handed over; null passes through isl's calls.
                    raw = unsafe {
                        let next = ffi::$add_dims(raw.into_raw(), PARAM, 1);
                        let next = ffi::$set_id(next, PARAM, present.len() as u32, id.into_raw());
                        Owned::new(ctx, next, "add_params")?
                    };
                    present.push((*name).to_owned());
                }
                $of { raw, shape: Rc::clone(&self.shape) }.checked_names()
            }

            /// What there is where `name` equals `number`; the name stays.
            ///
            /// # Errors
            /// [`IslError::UnknownName`].
            pub fn fix(&self, name: &str, number: i64) -> Result<$of, IslError> {
                let place = self.place(name)?;
                let ctx = self.raw.ctx();
                let number = value(ctx, number)?;
                // SAFETY: both references are handed over; the place is in range.
                unsafe {
                    let raw = ffi::$fix(self.raw.give(), place.kind, place.position, number.into_raw());
                    $of::wrap_raw(ctx, raw, &self.shape, "fix")
                }
            }

            /// The same with the constraints on `names` removed (existentially quantified); the
            /// names stay.
            ///
            /// # Errors
            /// [`IslError::UnknownName`].
            pub fn eliminate(&self, names: &[&str]) -> Result<$of, IslError> {
                let ctx = self.raw.ctx();
                let mut raw = self.raw.clone();
                for (kind, first, n) in runs(&self.places(names)?) {
                    // SAFETY: the reference is handed over; the range is in range.
                    raw = unsafe {
                        Owned::new(ctx, ffi::$eliminate(raw.into_raw(), kind, first, n), "eliminate")?
                    };
                }
                Ok($of { raw, shape: Rc::clone(&self.shape) })
            }

            /// Where isl keeps names, the last first.
            fn places(&self, names: &[&str]) -> Result<Vec<Place>, IslError> {
                let mut places = names.iter().map(|name| self.place(name)).collect::<Result<Vec<_>, _>>()?;
                places.sort_by_key(|place| std::cmp::Reverse((place.kind, place.position)));
                places.dedup();
                Ok(places)
            }
        }
    };
}

pub(crate) use {binary, compare, decide, hull, names, unary};
