//! Operations between maps and sets: composition, restriction, application, products, closure,
//! orders.

use std::rc::Rc;

use crate::context::{Owned, context};
use crate::error::IslError;
use crate::ffi;
use crate::map::{Map, MapShape, Side};
use crate::set::{Set, SetShape, permutation_map};
use crate::space::{SetSpace, primed_apart};

impl Map {
    /// The pairs turned around.
    pub fn reverse(&self) -> Result<Map, IslError> {
        let shape = MapShape {
            in_tuple: self.shape.out_tuple.clone(),
            in_dims: self.shape.out_dims.clone(),
            out_tuple: self.shape.in_tuple.clone(),
            out_dims: self.shape.in_dims.clone(),
        };
        // SAFETY: a new reference is handed over; the sides are exchanged.
        unsafe {
            let raw = ffi::isl_map_reverse(self.raw.give());
            Map::wrap_raw(self.raw.ctx(), raw, &Rc::new(shape), "reverse")
        }
    }

    /// The inputs that have an output.
    pub fn domain(&self) -> Result<Set, IslError> {
        // SAFETY: a new reference is handed over; the set has the input dimensions.
        unsafe {
            Set::wrap_raw(
                self.raw.ctx(),
                ffi::isl_map_domain(self.raw.give()),
                &self.side_shape(Side::In),
                "domain",
            )
        }
    }

    /// The outputs that have an input; its dimensions keep the output names.
    pub fn range(&self) -> Result<Set, IslError> {
        // SAFETY: a new reference is handed over; the set has the output dimensions.
        unsafe {
            Set::wrap_raw(
                self.raw.ctx(),
                ffi::isl_map_range(self.raw.give()),
                &self.side_shape(Side::Out),
                "range",
            )
        }
    }

    fn side_shape(&self, side: Side) -> Rc<SetShape> {
        let (tuple, dims) = self.side(side);
        Rc::new(SetShape { tuple: tuple.map(str::to_owned), dims: dims.to_vec() })
    }

    /// The differences output minus input, position by position, under the input names.
    ///
    /// # Errors
    /// [`IslError::SpaceMismatch`] when the sides have different numbers of dimensions.
    pub fn deltas(&self) -> Result<Set, IslError> {
        self.check_square("deltas")?;
        let shape = Rc::new(SetShape { tuple: None, dims: self.in_dims().to_vec() });
        // SAFETY: a new reference is handed over; both sides have the same number of dimensions.
        unsafe { Set::wrap_raw(self.raw.ctx(), ffi::isl_map_deltas(self.raw.give()), &shape, "deltas") }
    }

    fn check_square(&self, operation: &'static str) -> Result<(), IslError> {
        if self.in_dims().len() == self.out_dims().len() {
            return Ok(());
        }
        let found = self.space()?.to_string();
        let left = "as many inputs as outputs".to_owned();
        Err(IslError::SpaceMismatch { operation, left, right: found })
    }

    /// First `self`, then `other`, whose inputs are the outputs of `self`; the result's output
    /// names are primed where they would clash with its inputs.
    ///
    /// # Errors
    /// [`IslError::SpaceMismatch`]; [`IslError::DuplicateName`] when a parameter of one is a
    /// dimension of the other.
    pub fn apply_range(&self, other: &Map) -> Result<Map, IslError> {
        const OPERATION: &str = "apply_range";
        let (tuple, dims) = self.side(Side::Out);
        let right = other.side_aligned(Side::In, tuple, dims, OPERATION)?;
        let (in_tuple, out_tuple) = (self.shape.in_tuple.clone(), other.shape.out_tuple.clone());
        let shape = Map::primed_shape(in_tuple, self.in_dims(), out_tuple, other.out_dims());
        // SAFETY: two references are handed over; inputs are those of `self`, outputs those of
        // `other`.
        unsafe {
            let raw = ffi::isl_map_apply_range(self.raw.give(), right.into_raw());
            Map::wrap_raw(self.raw.ctx(), raw, &Rc::new(shape), OPERATION)?.checked()
        }
    }

    /// `self` with `other` applied to its inputs: the pairs (`other`(x), `self`(x)).
    ///
    /// # Errors
    /// As [`Map::apply_range`].
    pub fn apply_domain(&self, other: &Map) -> Result<Map, IslError> {
        other.reverse()?.apply_range(self)
    }

    /// The outputs of the points of `set`.
    ///
    /// # Errors
    /// As [`Map::apply_range`].
    pub fn apply(&self, set: &Set) -> Result<Set, IslError> {
        const OPERATION: &str = "apply";
        let (tuple, dims) = self.side(Side::In);
        let left = || Ok(self.space()?.to_string());
        let points = set.aligned_to(tuple, dims, OPERATION, &left)?;
        // SAFETY: two references are handed over; the result has the output dimensions.
        let result = unsafe {
            let raw = ffi::isl_set_apply(points.into_raw(), self.raw.give());
            Set::wrap_raw(self.raw.ctx(), raw, &self.side_shape(Side::Out), OPERATION)?
        };
        result.space()?.check()?;
        Ok(result)
    }

    /// Restricts, or simplifies, one side by a set.
    fn with_side(
        &self,
        set: &Set,
        side: Side,
        operation: &'static str,
        call: unsafe extern "C" fn(*mut ffi::isl_map, *mut ffi::isl_set) -> *mut ffi::isl_map,
    ) -> Result<Map, IslError> {
        let (tuple, dims) = self.side(side);
        let left = || Ok(self.space()?.to_string());
        let right = set.aligned_to(tuple, dims, operation, &left)?;
        // SAFETY: two references are handed over; the dimensions stay.
        unsafe {
            let raw = call(self.raw.give(), right.into_raw());
            Map::wrap_raw(self.raw.ctx(), raw, &self.shape, operation)?.checked()
        }
    }

    /// The pairs whose input is in `set`.
    ///
    /// # Errors
    /// [`IslError::SpaceMismatch`], [`IslError::DuplicateName`].
    pub fn intersect_domain(&self, set: &Set) -> Result<Map, IslError> {
        self.with_side(set, Side::In, "intersect_domain", ffi::isl_map_intersect_domain)
    }

    /// The pairs whose output is in `set`.
    ///
    /// # Errors
    /// [`IslError::SpaceMismatch`], [`IslError::DuplicateName`].
    pub fn intersect_range(&self, set: &Set) -> Result<Map, IslError> {
        self.with_side(set, Side::Out, "intersect_range", ffi::isl_map_intersect_range)
    }

    /// The pairs whose input is not in `set`.
    ///
    /// # Errors
    /// [`IslError::SpaceMismatch`], [`IslError::DuplicateName`].
    pub fn subtract_domain(&self, set: &Set) -> Result<Map, IslError> {
        self.with_side(set, Side::In, "subtract_domain", ffi::isl_map_subtract_domain)
    }

    /// The pairs whose output is not in `set`.
    ///
    /// # Errors
    /// [`IslError::SpaceMismatch`], [`IslError::DuplicateName`].
    pub fn subtract_range(&self, set: &Set) -> Result<Map, IslError> {
        self.with_side(set, Side::Out, "subtract_range", ffi::isl_map_subtract_range)
    }

    /// Constraints that, for inputs in `set`, say the same as `self`.
    ///
    /// # Errors
    /// [`IslError::SpaceMismatch`], [`IslError::DuplicateName`].
    pub fn gist_domain(&self, set: &Set) -> Result<Map, IslError> {
        self.with_side(set, Side::In, "gist_domain", ffi::isl_map_gist_domain)
    }

    /// The pairs where the parameters lie in `params`, a set without dimensions.
    ///
    /// # Errors
    /// [`IslError::SpaceMismatch`] when `params` has dimensions; [`IslError::DuplicateName`].
    pub fn intersect_params(&self, params: &Set) -> Result<Map, IslError> {
        let right = params.as_params("intersect_params")?;
        // SAFETY: two references are handed over; the dimensions stay.
        unsafe {
            let raw = ffi::isl_map_intersect_params(self.raw.give(), right.raw.into_raw());
            Map::wrap_raw(self.raw.ctx(), raw, &self.shape, "intersect_params")?.checked()
        }
    }

    /// The parameter values for which the map has a pair, as a set without dimensions.
    pub fn nonempty_params(&self) -> Result<Set, IslError> {
        self.domain()?.with_tuple(None).nonempty_params()
    }

    /// Each input with the outputs of both maps side by side; the inputs of `other` match those of
    /// `self`.
    ///
    /// # Errors
    /// [`IslError::SpaceMismatch`], [`IslError::DuplicateName`].
    pub fn flat_range_product(&self, other: &Map) -> Result<Map, IslError> {
        const OPERATION: &str = "flat_range_product";
        let (tuple, dims) = self.side(Side::In);
        let right = other.side_aligned(Side::In, tuple, dims, OPERATION)?;
        let extra = primed_apart(other.out_dims(), &[self.in_dims(), self.out_dims()]);
        let out_dims = [self.out_dims(), &extra].concat();
        let shape = MapShape { out_tuple: None, ..(*self.shape_with(dims.to_vec(), out_dims)).clone() };
        // SAFETY: two references are handed over; the outputs follow each other.
        unsafe {
            let raw = ffi::isl_map_flat_range_product(self.raw.give(), right.into_raw());
            Map::wrap_raw(self.raw.ctx(), raw, &Rc::new(shape), OPERATION)?.checked()
        }
    }

    /// Both maps side by side: inputs of both to outputs of both. All names must differ.
    ///
    /// # Errors
    /// [`IslError::DuplicateName`].
    pub fn flat_product(&self, other: &Map) -> Result<Map, IslError> {
        let shape = MapShape {
            in_tuple: None,
            in_dims: [self.in_dims(), other.in_dims()].concat(),
            out_tuple: None,
            out_dims: [self.out_dims(), other.out_dims()].concat(),
        };
        // SAFETY: two references are handed over; the dimensions follow each other.
        unsafe {
            let raw = ffi::isl_map_flat_product(self.raw.give(), other.raw.give());
            Map::wrap_raw(self.raw.ctx(), raw, &Rc::new(shape), "flat_product")?.checked_names()
        }
    }

    /// The pairs reached by one or more steps, and whether the result is exact (else it contains
    /// them).
    ///
    /// Input and output are matched position by position.
    ///
    /// # Errors
    /// [`IslError::SpaceMismatch`] when the sides have different tuples or numbers of dimensions.
    pub fn transitive_closure(&self) -> Result<(Map, bool), IslError> {
        const OPERATION: &str = "transitive_closure";
        self.check_square(OPERATION)?;
        if self.in_tuple() != self.out_tuple() {
            let left = "the same tuple on both sides".to_owned();
            return Err(IslError::SpaceMismatch {
                operation: OPERATION,
                left,
                right: self.space()?.to_string(),
            });
        }
        let mut exact = -1;
        // SAFETY: a new reference is handed over; isl writes one `isl_bool`.
        let map = unsafe {
            let raw = ffi::isl_map_transitive_closure(self.raw.give(), &mut exact);
            Map::wrap_raw(self.raw.ctx(), raw, &self.shape, OPERATION)?
        };
        Ok((map, self.raw.ctx().truth(exact, OPERATION)?))
    }
}

/// The pairs (x, y) of points of `space` with x before y in lexicographic order; output names are
/// primed.
///
/// # Errors
/// [`IslError::InvalidName`], [`IslError::DuplicateName`].
pub fn lex_less(space: &SetSpace) -> Result<Map, IslError> {
    lex_order(space, "lex_less", ffi::isl_map_lex_lt)
}

/// The pairs (x, y) of points of `space` with x before or equal to y; output names are primed.
///
/// # Errors
/// [`IslError::InvalidName`], [`IslError::DuplicateName`].
pub fn lex_less_or_equal(space: &SetSpace) -> Result<Map, IslError> {
    lex_order(space, "lex_less_or_equal", ffi::isl_map_lex_le)
}

fn lex_order(
    space: &SetSpace,
    operation: &'static str,
    call: unsafe extern "C" fn(*mut ffi::isl_space) -> *mut ffi::isl_map,
) -> Result<Map, IslError> {
    space.check()?;
    let ctx = context()?;
    let shape = Map::primed_shape(space.tuple.clone(), &space.dims, space.tuple.clone(), &space.dims);
    // SAFETY: plain arguments; the references are handed over.
    let map = unsafe {
        let raw = ffi::isl_space_set_alloc(ctx.raw(), 0, space.dims.len() as u32);
        let raw = Owned::new(&ctx, raw, operation)?;
        Map::wrap_raw(&ctx, call(raw.into_raw()), &Rc::new(shape), operation)?
    };
    map.add_params(&space.params.iter().map(String::as_str).collect::<Vec<_>>())
}

impl Set {
    /// The map of every point of the set to itself; output names are primed.
    pub fn identity(&self) -> Result<Map, IslError> {
        let ctx = self.raw.ctx();
        let raw = permutation_map(ctx, &(0..self.dims().len()).collect::<Vec<_>>())?;
        let (tuple, dims) = (self.shape.tuple.clone(), self.dims());
        let shape = Map::primed_shape(tuple.clone(), dims, tuple, dims);
        Map { raw, shape: Rc::new(shape) }.intersect_domain(self)
    }

    /// Both sets side by side, without a tuple. All names must differ.
    ///
    /// # Errors
    /// [`IslError::DuplicateName`].
    pub fn flat_product(&self, other: &Set) -> Result<Set, IslError> {
        let dims = [self.dims(), other.dims()].concat();
        // SAFETY: two references are handed over; the dimensions follow each other.
        let result = unsafe {
            let raw = ffi::isl_set_flat_product(self.raw.give(), other.raw.give());
            Set::wrap_raw(self.raw.ctx(), raw, &Rc::new(SetShape { tuple: None, dims }), "flat_product")?
        };
        result.space()?.check()?;
        Ok(result)
    }
}
