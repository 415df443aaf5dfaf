//! Algebra of maps on one space.

use std::rc::Rc;

use crate::context::{Owned, identifier, identifier_name, value};
use crate::error::IslError;
use crate::ffi::{self, IN, OUT, PARAM};
use crate::map::{Map, MapShape};
use crate::operations::{binary, compare, decide, hull, names, unary};
use crate::points::Point;
use crate::set::Place;
use crate::set_ops::runs;

unary! { Map:
    /// Each input with its lexicographically smallest output.
    ///
    /// # Errors
    /// [`IslError::Solver`] when there is none because outputs are unbounded below.
    lexmin = isl_map_lexmin;
    /// Each input with its lexicographically greatest output.
    ///
    /// # Errors
    /// [`IslError::Solver`] when there is none because outputs are unbounded above.
    lexmax = isl_map_lexmax;
    /// The same pairs in fewer disjuncts where isl finds a way.
    coalesce = isl_map_coalesce;
    /// The same pairs without redundant constraints.
    remove_redundancies = isl_map_remove_redundancies;
    /// The same pairs with implicit equalities made explicit.
    detect_equalities = isl_map_detect_equalities;
    /// The same pairs in disjoint disjuncts.
    make_disjoint = isl_map_make_disjoint;
}

binary! { Map:
    /// The pairs of both.
    intersect = isl_map_intersect;
    /// The pairs of either.
    union = isl_map_union;
    /// The pairs of `self` that are not in `other`.
    subtract = isl_map_subtract;
    /// Constraints that, inside `other`, say the same as `self`.
    gist = isl_map_gist;
}

compare! { Map:
    /// Whether every pair of `self` is in `other`, for all parameters.
    is_subset = isl_map_is_subset;
    /// Whether both have the same pairs, for all parameters.
    is_equal = isl_map_is_equal;
    /// Whether they share no pair, for any parameters.
    is_disjoint = isl_map_is_disjoint;
}

decide! { Map:
    /// Whether there is no pair, for any parameters.
    is_empty = isl_map_is_empty;
}

names!(Map: isl_map_dim, isl_map_get_dim_id, isl_map_set_dim_id, isl_map_add_dims, isl_map_fix_val, isl_map_eliminate);

hull! { Map by isl_map_from_basic_map:
    /// A single conjunction that contains the map, built from translates of its constraints.
    simple_hull = isl_map_simple_hull;
    /// The equalities that hold on the whole map.
    affine_hull = isl_map_affine_hull;
}

/// A pair of a map, by names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Pair {
    /// Values of the input dimensions, in order.
    pub input: Point,
    /// Values of the output dimensions, in order.
    pub output: Point,
    /// Values of the parameters.
    pub params: Point,
}

impl Map {
    /// The map without the dimensions or parameters `names` (existentially quantified).
    ///
    /// # Errors
    /// [`IslError::UnknownName`].
    pub fn project_out(&self, names: &[&str]) -> Result<Map, IslError> {
        let ctx = self.raw.ctx();
        let (mut in_dims, mut out_dims) = (self.in_dims().to_vec(), self.out_dims().to_vec());
        let mut raw = self.raw.clone();
        for (kind, first, n) in runs(&self.places(names)?) {
            let range = first as usize..(first + n) as usize;
            match kind {
                IN => drop(in_dims.drain(range)),
                OUT => drop(out_dims.drain(range)),
                _ => {}
            }
            // SAFETY: the reference is handed over; the range is in range.
            raw = unsafe {
                let next = ffi::isl_map_project_out(raw.into_raw(), kind, first, n);
                Owned::new(ctx, next, "project_out")?
            };
        }
        Ok(Map { raw, shape: self.shape_with(in_dims, out_dims) })
    }

    /// The shape with other dimension names.
    pub(crate) fn shape_with(&self, in_dims: Vec<String>, out_dims: Vec<String>) -> Rc<MapShape> {
        let (in_tuple, out_tuple) = (self.shape.in_tuple.clone(), self.shape.out_tuple.clone());
        Rc::new(MapShape { in_tuple, in_dims, out_tuple, out_dims })
    }

    /// The map with names replaced, all at once: pairs are (old, new).
    ///
    /// # Errors
    /// [`IslError::UnknownName`], [`IslError::DuplicateName`], [`IslError::InvalidName`].
    pub fn rename(&self, pairs: &[(&str, &str)]) -> Result<Map, IslError> {
        let (mut in_dims, mut out_dims) = (self.in_dims().to_vec(), self.out_dims().to_vec());
        let mut raw = self.raw.clone();
        let ctx = self.raw.ctx();
        for (old, new) in pairs {
            let place = self.place(old)?;
            let position = place.position as usize;
            let id = identifier(ctx, new)?;
            match place.kind {
                IN => (*new).clone_into(&mut in_dims[position]),
                OUT => (*new).clone_into(&mut out_dims[position]),
                _ => {
                    // SAFETY: both references are handed over.
                    raw = unsafe {
                        let next =
                            ffi::isl_map_set_dim_id(raw.into_raw(), PARAM, place.position, id.into_raw());
                        Owned::new(ctx, next, "rename")?
                    };
                }
            }
        }
        Map { raw, shape: self.shape_with(in_dims, out_dims) }.checked_names()
    }

    /// Checks that all names differ.
    pub(crate) fn checked_names(self) -> Result<Map, IslError> {
        self.space()?.check()?;
        Ok(self)
    }

    /// The same pairs under other tuple names.
    pub fn with_tuples(&self, input: Option<&str>, output: Option<&str>) -> Map {
        let shape = MapShape {
            in_tuple: input.map(str::to_owned),
            in_dims: self.in_dims().to_vec(),
            out_tuple: output.map(str::to_owned),
            out_dims: self.out_dims().to_vec(),
        };
        Map { raw: self.raw.clone(), shape: Rc::new(shape) }
    }

    /// The smallest pair in lexicographic order of parameters, input, output, of the pairs whose
    /// parameters lie in `ranges`; see
    /// [`Set::lexmin_point_within`](crate::Set::lexmin_point_within).
    ///
    /// # Errors
    /// [`IslError::Overflow`] for a coordinate beyond 64 bits.
    pub fn lexmin_pair_within(&self, ranges: &[(String, i64, i64)]) -> Result<Option<Pair>, IslError> {
        Ok(self.wrap()?.lexmin_point_within(ranges)?.map(|point| self.split_point(point)))
    }

    /// Whether there is a pair whose parameters lie in `ranges`.
    ///
    /// # Errors
    /// As [`Map::lexmin_pair_within`].
    pub fn has_pair_within(&self, ranges: &[(String, i64, i64)]) -> Result<bool, IslError> {
        self.wrap()?.has_point_within(ranges)
    }

    /// Splits a point of the wrapped map: parameters come first, then inputs, then outputs.
    fn split_point(&self, point: Point) -> Pair {
        let (n_in, n_out) = (self.in_dims().len(), self.out_dims().len());
        let mut params = point;
        let output = params.split_off(params.len().saturating_sub(n_out));
        let input = params.split_off(params.len().saturating_sub(n_in));
        Pair { input, output, params }
    }
}
