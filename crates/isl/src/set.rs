//! Integer sets with named dimensions: construction, spaces, export.

use std::ffi::{CStr, CString};
use std::fmt;
use std::rc::Rc;

use crate::affine::Constraint;
use crate::context::{Context, Owned, context, identifier, identifier_name};
use crate::decode::{self, Columns};
use crate::encode;
use crate::error::IslError;
use crate::ffi::{self, CST, DIV, PARAM, SET};
use crate::space::{Matching, SetSpace, check_names, match_names, primed_apart};

/// Tuple and dimensions of a set, kept on our side: isl forgets dimension names in many operations.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SetShape {
    pub(crate) tuple: Option<String>,
    pub(crate) dims: Vec<String>,
}

/// A union of integer polyhedra with existential floor divisions, over named dimensions and
/// parameters.
///
/// Operands match by tuple and by dimension name, in any order; when the names differ only in
/// trailing primes (`i'` is how the output twin of `i` is written) they match too, and the left
/// operand's names stay. Parameters of the operands are united.
///
/// A set belongs to the isl context of its thread and cannot leave it:
///
/// ```compile_fail
/// fn needs_send<T: Send>() {}
/// needs_send::<kingpost_isl::Set>();
/// ```
///
/// # Errors
/// Every operation returns [`IslError::Solver`] or [`IslError::Quota`] when isl itself fails,
/// besides what its own heading says.
#[derive(Clone)]
pub struct Set {
    /// Carries parameter identifiers but no tuple: tuples are compared on our side.
    pub(crate) raw: Owned<ffi::isl_set>,
    pub(crate) shape: Rc<SetShape>,
}

/// A position in isl's numbering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) kind: ffi::DimType,
    pub(crate) position: u32,
}

/// A space with parameter identifiers and without a tuple.
fn raw_space(ctx: &Rc<Context>, space: &SetSpace) -> Result<Owned<ffi::isl_space>, IslError> {
    // SAFETY: plain arguments; null is checked by `Owned`.
    let mut raw = unsafe {
        let raw = ffi::isl_space_set_alloc(ctx.raw(), space.params.len() as u32, space.dims.len() as u32);
        Owned::new(ctx, raw, "allocate a space")?
    };
    for (position, name) in space.params.iter().enumerate() {
        let id = identifier(ctx, name)?;
        // SAFETY: both references are handed over.
        raw = unsafe {
            let next = ffi::isl_space_set_dim_id(raw.into_raw(), PARAM, position as u32, id.into_raw());
            Owned::new(ctx, next, "name a parameter")?
        };
    }
    Ok(raw)
}

impl Set {
    /// Wraps a result of isl with a shape.
    ///
    /// # Safety
    /// `raw` is null or a set of `ctx` owned by the caller, without a tuple, with
    /// `shape.dims.len()` dimensions.
    pub(crate) unsafe fn wrap_raw(
        ctx: &Rc<Context>,
        raw: *mut ffi::isl_set,
        shape: &Rc<SetShape>,
        operation: &'static str,
    ) -> Result<Set, IslError> {
        // SAFETY: the caller's promise.
        Ok(Set { raw: unsafe { Owned::new(ctx, raw, operation)? }, shape: Rc::clone(shape) })
    }

    fn shape_of(space: &SetSpace) -> Rc<SetShape> {
        Rc::new(SetShape { tuple: space.tuple.clone(), dims: space.dims.clone() })
    }

    /// All integer points of the space.
    ///
    /// # Errors
    /// [`IslError::InvalidName`], [`IslError::DuplicateName`].
    pub fn universe(space: &SetSpace) -> Result<Set, IslError> {
        space.check()?;
        let ctx = context()?;
        let raw = raw_space(&ctx, space)?;
        // SAFETY: the space is handed over.
        unsafe {
            Set::wrap_raw(&ctx, ffi::isl_set_universe(raw.into_raw()), &Set::shape_of(space), "universe")
        }
    }

    /// No point of the space.
    ///
    /// # Errors
    /// [`IslError::InvalidName`], [`IslError::DuplicateName`].
    pub fn empty(space: &SetSpace) -> Result<Set, IslError> {
        space.check()?;
        let ctx = context()?;
        let raw = raw_space(&ctx, space)?;
        // SAFETY: the space is handed over.
        unsafe { Set::wrap_raw(&ctx, ffi::isl_set_empty(raw.into_raw()), &Set::shape_of(space), "empty") }
    }

    /// The points where all `constraints` hold.
    ///
    /// # Errors
    /// [`IslError::UnknownName`], [`IslError::DuplicateName`], [`IslError::InvalidName`],
    /// [`IslError::Denominator`], [`IslError::Overflow`].
    pub fn from_constraints(space: &SetSpace, constraints: &[Constraint]) -> Result<Set, IslError> {
        space.check()?;
        let ctx = context()?;
        let raw = raw_space(&ctx, space)?;
        let groups: [&[String]; 2] = [&space.params, &space.dims];
        let (eq, ineq) = encode::matrices(&ctx, &groups, constraints, || space.to_string())?;
        // SAFETY: all three are handed over; the four kinds are a permutation of the columns; a
        // null basic set gives a null set.
        unsafe {
            let (raw, eq, ineq) = (raw.into_raw(), eq.into_raw(), ineq.into_raw());
            let basic = ffi::isl_basic_set_from_constraint_matrices(raw, eq, ineq, PARAM, SET, DIV, CST);
            let set = ffi::isl_set_from_basic_set(basic);
            Set::wrap_raw(&ctx, set, &Set::shape_of(space), "build a set")
        }
    }

    /// The points where all constraints of at least one disjunct hold.
    ///
    /// # Errors
    /// As [`Set::from_constraints`].
    pub fn from_disjuncts(space: &SetSpace, disjuncts: &[Vec<Constraint>]) -> Result<Set, IslError> {
        let Some((first, rest)) = disjuncts.split_first() else {
            return Set::empty(space);
        };
        rest.iter().try_fold(Set::from_constraints(space, first)?, |all, one| {
            all.union(&Set::from_constraints(space, one)?)
        })
    }

    /// The tuple name.
    pub fn tuple(&self) -> Option<&str> {
        self.shape.tuple.as_deref()
    }

    /// The dimensions in order.
    pub fn dims(&self) -> &[String] {
        &self.shape.dims
    }

    /// Tuple, dimensions and parameters.
    pub fn space(&self) -> Result<SetSpace, IslError> {
        Ok(SetSpace {
            tuple: self.shape.tuple.clone(),
            dims: self.shape.dims.clone(),
            params: self.params()?,
        })
    }

    /// The disjuncts as conjunctions of constraints, every floor division with its definition.
    ///
    /// The disjuncts may overlap; see [`Set::make_disjoint`]. An empty set has none or one that is
    /// false.
    ///
    /// # Errors
    /// [`IslError::Overflow`] for a coefficient beyond 64 bits.
    pub fn disjuncts(&self) -> Result<Vec<Vec<Constraint>>, IslError> {
        decode::disjuncts(&self.raw, &Columns { params: &self.params()?, dims: &self.shape.dims })
    }

    /// Where isl keeps `name`.
    pub(crate) fn place(&self, name: &str) -> Result<Place, IslError> {
        if let Some(position) = self.shape.dims.iter().position(|dim| dim == name) {
            return Ok(Place { kind: SET, position: position as u32 });
        }
        match self.params()?.iter().position(|param| param == name) {
            Some(position) => Ok(Place { kind: PARAM, position: position as u32 }),
            None => Err(IslError::UnknownName { name: name.to_owned(), space: self.space()?.to_string() }),
        }
    }

    /// `other` with its dimensions in the order of `self`.
    ///
    /// # Errors
    /// [`IslError::SpaceMismatch`]; [`IslError::DuplicateName`] when a parameter of one is a
    /// dimension of the other.
    pub(crate) fn aligned(
        &self,
        other: &Set,
        operation: &'static str,
    ) -> Result<Owned<ffi::isl_set>, IslError> {
        if Rc::ptr_eq(&self.shape, &other.shape) || self.shape == other.shape {
            return Ok(other.raw.clone());
        }
        other
            .aligned_to(self.tuple(), self.dims(), operation, &|| self.space().map(|space| space.to_string()))
    }

    /// This set with its dimensions in the order of `dims`; `left` prints the other operand for an
    /// error.
    pub(crate) fn aligned_to(
        &self,
        tuple: Option<&str>,
        dims: &[String],
        operation: &'static str,
        left: &dyn Fn() -> Result<String, IslError>,
    ) -> Result<Owned<ffi::isl_set>, IslError> {
        let matching = if self.tuple() == tuple { match_names(dims, self.dims()) } else { None };
        let raw = match matching {
            None => {
                let right = self.space()?.to_string();
                return Err(IslError::SpaceMismatch { operation, left: left()?, right });
            }
            Some(Matching::Same) => self.raw.clone(),
            Some(Matching::Permuted(permutation)) => self.permuted(&permutation)?,
        };
        if dims != self.dims() {
            let params = self.params()?;
            check_names(
                &[&params, dims],
                &SetSpace { tuple: None, dims: dims.to_vec(), params: params.clone() },
            )?;
        }
        Ok(raw)
    }

    /// Position `k` of the result is position `permutation[k]` of this set.
    pub(crate) fn permuted(&self, permutation: &[usize]) -> Result<Owned<ffi::isl_set>, IslError> {
        let ctx = self.raw.ctx();
        let map = permutation_map(ctx, permutation)?;
        // SAFETY: both references are handed over.
        unsafe {
            let raw = ffi::isl_set_apply(self.raw.give(), map.into_raw());
            Owned::new(ctx, raw, "reorder dimensions")
        }
    }

    /// Reads isl's notation, for tests and experiments; unnamed dimensions are called `d0`, `d1`,
    /// ...
    ///
    /// # Errors
    /// [`IslError::Solver`] on a syntax error or a nested tuple.
    pub fn read_str(text: &str) -> Result<Set, IslError> {
        const OPERATION: &str = "read a set";
        let ctx = context()?;
        let c_text = CString::new(text).map_err(|_| IslError::InvalidName { name: text.to_owned() })?;
        // SAFETY: isl reads the C string and keeps the set in the queries.
        unsafe {
            let raw = Owned::new(&ctx, ffi::isl_set_read_from_str(ctx.raw(), c_text.as_ptr()), OPERATION)?;
            if ctx.truth(ffi::isl_set_is_wrapping(raw.keep()), OPERATION)? {
                let message = "nested tuples are not supported".to_owned();
                return Err(IslError::Solver { operation: OPERATION, message });
            }
            let mut dims = Vec::new();
            for position in 0..ctx.size(ffi::isl_set_dim(raw.keep(), SET), OPERATION)? as u32 {
                let named = ctx.truth(ffi::isl_set_has_dim_id(raw.keep(), SET, position), OPERATION)?;
                dims.push(if named {
                    let id = ffi::isl_set_get_dim_id(raw.keep(), SET, position);
                    identifier_name(&Owned::new(&ctx, id, OPERATION)?).unwrap_or_default()
                } else {
                    format!("d{position}")
                });
            }
            let tuple = if ctx.truth(ffi::isl_set_has_tuple_id(raw.keep()), OPERATION)? {
                identifier_name(&Owned::new(&ctx, ffi::isl_set_get_tuple_id(raw.keep()), OPERATION)?)
            } else {
                None
            };
            let raw = ffi::isl_set_reset_tuple_id(raw.into_raw());
            let set = Set::wrap_raw(&ctx, raw, &Rc::new(SetShape { tuple: tuple.clone(), dims }), OPERATION)?;
            // isl's reader drops primes, so that `[i] -> { [i'] }` comes back as two names `i`.
            let dims = primed_apart(set.dims(), &[&set.params()?]);
            Ok(Set { raw: set.raw, shape: Rc::new(SetShape { tuple, dims }) })
        }
    }

    /// A copy for isl's printer, with tuple and dimension identifiers.
    pub(crate) fn labelled(&self) -> Result<Owned<ffi::isl_set>, IslError> {
        let ctx = self.raw.ctx();
        let mut raw = self.raw.clone();
        for (position, name) in self.shape.dims.iter().enumerate() {
            let id = identifier(ctx, name)?;
            // SAFETY: both references are handed over.
            raw = unsafe {
                let next = ffi::isl_set_set_dim_id(raw.into_raw(), SET, position as u32, id.into_raw());
                Owned::new(ctx, next, "name a dimension")?
            };
        }
        if let Some(tuple) = &self.shape.tuple {
            let id = identifier(ctx, tuple)?;
            // SAFETY: both references are handed over.
            raw = unsafe {
                let next = ffi::isl_set_set_tuple_id(raw.into_raw(), id.into_raw());
                Owned::new(ctx, next, "name a tuple")?
            };
        }
        Ok(raw)
    }
}

/// The map from `n` dimensions to `n` where output `k` is input `permutation[k]`.
pub(crate) fn permutation_map(
    ctx: &Rc<Context>,
    permutation: &[usize],
) -> Result<Owned<ffi::isl_map>, IslError> {
    const OPERATION: &str = "reorder dimensions";
    let n = permutation.len() as u32;
    // SAFETY: plain arguments; every reference is handed over; null is checked by `Owned`.
    unsafe {
        let space = Owned::new(ctx, ffi::isl_space_alloc(ctx.raw(), 0, n, n), OPERATION)?;
        let mut map = Owned::new(ctx, ffi::isl_map_universe(space.into_raw()), OPERATION)?;
        for (position, source) in permutation.iter().enumerate() {
            let next =
                ffi::isl_map_equate(map.into_raw(), ffi::IN, *source as i32, ffi::OUT, position as i32);
            map = Owned::new(ctx, next, OPERATION)?;
        }
        Ok(map)
    }
}

/// Copies and frees a string that isl allocated.
///
/// # Safety
/// `text` is null or a C string allocated with `malloc` and owned by the caller.
pub(crate) unsafe fn take_string(text: *mut std::ffi::c_char) -> Result<String, fmt::Error> {
    if text.is_null() {
        return Err(fmt::Error);
    }
    // SAFETY: the caller's promise; the copy is made before the memory is given back.
    unsafe {
        let copy = CStr::from_ptr(text).to_string_lossy().into_owned();
        ffi::free(text.cast());
        Ok(copy)
    }
}

impl fmt::Display for Set {
    /// Writes isl's notation.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let labelled = self.labelled().map_err(|_| fmt::Error)?;
        // SAFETY: isl keeps the set and hands out a string.
        f.write_str(&unsafe { take_string(ffi::isl_set_to_str(labelled.keep()))? })
    }
}

impl fmt::Debug for Set {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
