//! Operations between maps and sets: composition, restriction, application, orders.

use std::rc::Rc;

use crate::context::{Owned, context};
use crate::error::IslError;
use crate::ffi;
use crate::map::{Map, MapShape, Side};
use crate::set::{Set, SetShape, permutation_map};
use crate::space::SetSpace;

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

    /// The pairs whose input is in `set`.
    ///
    /// # Errors
    /// [`IslError::SpaceMismatch`], [`IslError::DuplicateName`].
    pub fn intersect_domain(&self, set: &Set) -> Result<Map, IslError> {
        const OPERATION: &str = "intersect_domain";
        let (tuple, dims) = self.side(Side::In);
        let left = || Ok(self.space()?.to_string());
        let right = set.aligned_to(tuple, dims, OPERATION, &left)?;
        // SAFETY: two references are handed over; the dimensions stay.
        unsafe {
            let raw = ffi::isl_map_intersect_domain(self.raw.give(), right.into_raw());
            Map::wrap_raw(self.raw.ctx(), raw, &self.shape, OPERATION)?.checked()
        }
    }
}

/// The pairs (x, y) of points of `space` with x before y in lexicographic order; output names are
/// primed.
///
/// # Errors
/// [`IslError::InvalidName`], [`IslError::DuplicateName`].
pub fn lex_less(space: &SetSpace) -> Result<Map, IslError> {
    const OPERATION: &str = "lex_less";
    space.check()?;
    let ctx = context()?;
    let shape = Map::primed_shape(space.tuple.clone(), &space.dims, space.tuple.clone(), &space.dims);
    // SAFETY: plain arguments; the references are handed over.
    let map = unsafe {
        let raw = ffi::isl_space_set_alloc(ctx.raw(), 0, space.dims.len() as u32);
        let raw = Owned::new(&ctx, raw, OPERATION)?;
        Map::wrap_raw(&ctx, ffi::isl_map_lex_lt(raw.into_raw()), &Rc::new(shape), OPERATION)?
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
}
