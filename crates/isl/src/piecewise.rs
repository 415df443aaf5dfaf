//! Piecewise quasi-affine bounds of a dimension.

use std::ffi::{c_int, c_uint, c_void};
use std::rc::Rc;

use crate::affine::{Affine, Constraint};
use crate::context::{Context, Owned};
use crate::decode::{self, Columns};
use crate::error::IslError;
use crate::ffi;
use crate::set::Set;

/// A quasi-affine function by cases, as plain data.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct PwAffine {
    /// The cases; their domains are disjoint. Outside all of them the function is not defined.
    pub pieces: Vec<PwAffinePiece>,
}

/// One case of a [`PwAffine`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PwAffinePiece {
    /// Where the case applies: a union of conjunctions.
    pub domain: Vec<Vec<Constraint>>,
    /// Its value there.
    pub value: AffineQuotient,
}

/// `numerator / denominator`, exact: where the function is defined the division leaves no
/// remainder.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AffineQuotient {
    /// The numerator, with its own floor divisions.
    pub numerator: Affine,
    /// The denominator, at least one; one for the bounds of integer sets.
    pub denominator: i64,
}

impl PwAffine {
    /// The value where `lookup` gives the value of each name.
    ///
    /// `None` outside all pieces, for a name without a value, for a remainder, or for an overflow
    /// of `i64`.
    pub fn evaluate(&self, lookup: &impl Fn(&str) -> Option<i64>) -> Option<i64> {
        let inside = |piece: &&PwAffinePiece| {
            piece.domain.iter().any(|all| all.iter().all(|one| one.holds(lookup) == Some(true)))
        };
        let value = &self.pieces.iter().find(inside)?.value;
        let numerator = value.numerator.evaluate(lookup)?;
        (numerator.checked_rem(value.denominator)? == 0).then(|| numerator / value.denominator)
    }
}

/// What the piece callback fills.
struct Collector<'a> {
    ctx: Rc<Context>,
    columns: Columns<'a>,
    pieces: Vec<PwAffinePiece>,
    error: Option<IslError>,
}

impl Collector<'_> {
    fn piece(
        &self,
        domain: &Owned<ffi::isl_set>,
        value: &Owned<ffi::isl_aff>,
    ) -> Result<PwAffinePiece, IslError> {
        let (numerator, denominator) = decode::quotient(&self.ctx, value, &self.columns)?;
        let domain = decode::disjuncts(domain, &self.columns)?;
        Ok(PwAffinePiece { domain, value: AffineQuotient { numerator, denominator } })
    }
}

/// Receives one piece; returns `isl_stat`: 0 to go on, -1 to stop.
///
/// # Safety
/// `domain` and `value` are references given by isl; `user` points to a `Collector` that nobody
/// else uses.
unsafe extern "C" fn collect(
    domain: *mut ffi::isl_set,
    value: *mut ffi::isl_aff,
    user: *mut c_void,
) -> c_int {
    // SAFETY: the caller's promise.
    let collector = unsafe { &mut *user.cast::<Collector<'_>>() };
    // SAFETY: as above; both are owned from here on, also when one is null.
    let (domain, value) = unsafe {
        (Owned::new(&collector.ctx, domain, "pieces"), Owned::new(&collector.ctx, value, "pieces"))
    };
    let piece = match (domain, value) {
        (Ok(domain), Ok(value)) => collector.piece(&domain, &value),
        (Err(error), _) | (_, Err(error)) => Err(error),
    };
    match piece {
        Ok(piece) => {
            collector.pieces.push(piece);
            0
        }
        Err(error) => {
            collector.error = Some(error);
            -1
        }
    }
}

/// Which end of a dimension is asked for.
struct End {
    operation: &'static str,
    exists: unsafe extern "C" fn(*mut ffi::isl_set, ffi::DimType, c_uint) -> c_int,
    bound: unsafe extern "C" fn(*mut ffi::isl_set, c_int) -> *mut ffi::isl_pw_aff,
}

const LOWER: End =
    End { operation: "dim_min", exists: ffi::isl_set_dim_has_lower_bound, bound: ffi::isl_set_dim_min };
const UPPER: End =
    End { operation: "dim_max", exists: ffi::isl_set_dim_has_upper_bound, bound: ffi::isl_set_dim_max };

impl Set {
    /// The least value of dimension `name` in terms of all other dimensions and the parameters.
    ///
    /// Project out what the bound must not depend on first.
    ///
    /// # Errors
    /// [`IslError::UnknownName`]; [`IslError::Unbounded`] when there is no bound.
    pub fn dim_min(&self, name: &str) -> Result<PwAffine, IslError> {
        self.dim_bound(name, &LOWER)
    }

    /// The greatest value of dimension `name` in terms of all other dimensions and the parameters.
    ///
    /// # Errors
    /// As [`Set::dim_min`].
    pub fn dim_max(&self, name: &str) -> Result<PwAffine, IslError> {
        self.dim_bound(name, &UPPER)
    }

    fn dim_bound(&self, name: &str, end: &End) -> Result<PwAffine, IslError> {
        let others: Vec<&str> = self.dims().iter().map(String::as_str).filter(|dim| *dim != name).collect();
        let alone = self.move_to_params(&others)?;
        if alone.dims().len() != 1 {
            return Err(IslError::UnknownName {
                name: name.to_owned(),
                space: format!("the dimensions `{}`", self.dims().join(", ")),
            });
        }
        let ctx = Rc::clone(alone.raw.ctx());
        let operation = end.operation;
        // SAFETY: isl keeps the set in the test and takes a reference for the bound; there is one
        // dimension.
        let function = unsafe {
            if !ctx.truth((end.exists)(alone.raw.keep(), ffi::SET, 0), operation)? {
                return Err(IslError::Unbounded { operation });
            }
            Owned::new(&ctx, (end.bound)(alone.raw.give(), 0), operation)?
        };
        let params = alone.params()?;
        let columns = Columns { params: &params, dims: &[] };
        let mut collector = Collector { ctx, columns, pieces: Vec::new(), error: None };
        let user = std::ptr::from_mut(&mut collector).cast::<c_void>();
        // SAFETY: isl keeps the function and calls back during this call only; nothing else touches
        // the collector.
        let status = unsafe { ffi::isl_pw_aff_foreach_piece(function.keep(), collect, user) };
        match collector.error {
            Some(error) => Err(error),
            None if status < 0 => Err(collector.ctx.take_error(operation)),
            None => Ok(PwAffine { pieces: collector.pieces }),
        }
    }
}
