//! Algebra of sets.

use std::rc::Rc;

use crate::context::{Owned, identifier, identifier_name, value};
use crate::error::IslError;
use crate::ffi::{self, PARAM, SET};
use crate::operations::{binary, compare, decide, hull, names, unary};
use crate::set::{Place, Set, SetShape};
use crate::space::{SetSpace, check_names};

unary! { Set:
    /// The lexicographically smallest point for each value of the parameters.
    ///
    /// # Errors
    /// [`IslError::Solver`] when some dimension is unbounded below.
    lexmin = isl_set_lexmin;
    /// The lexicographically greatest point for each value of the parameters.
    ///
    /// # Errors
    /// [`IslError::Solver`] when some dimension is unbounded above.
    lexmax = isl_set_lexmax;
    /// The same points in fewer disjuncts where isl finds a way.
    coalesce = isl_set_coalesce;
    /// The same points without redundant constraints.
    remove_redundancies = isl_set_remove_redundancies;
    /// The same points with implicit equalities made explicit.
    detect_equalities = isl_set_detect_equalities;
    /// A superset without existential variables that are no floor divisions: they are eliminated over
    /// the rationals.
    remove_unknown_divs = isl_set_remove_unknown_divs;
    /// The same points in disjoint disjuncts.
    make_disjoint = isl_set_make_disjoint;
    /// The points of the space that are not in the set.
    complement = isl_set_complement;
    /// The same points without the parameters that no constraint mentions.
    drop_unused_params = isl_set_drop_unused_params;
}

binary! { Set:
    /// The points of both.
    intersect = isl_set_intersect;
    /// The points of either.
    union = isl_set_union;
    /// The points of `self` that are not in `other`.
    subtract = isl_set_subtract;
    /// Constraints that, inside `other`, say the same as `self`.
    gist = isl_set_gist;
}

compare! { Set:
    /// Whether every point of `self` is in `other`, for all parameters.
    is_subset = isl_set_is_subset;
    /// Whether both have the same points, for all parameters.
    is_equal = isl_set_is_equal;
    /// Whether they share no point, for any parameters.
    is_disjoint = isl_set_is_disjoint;
}

decide! { Set:
    /// Whether there is no point, for any parameters.
    is_empty = isl_set_is_empty;
    /// Whether every dimension is bounded for each value of the parameters.
    is_bounded = isl_set_is_bounded;
}

names!(Set: isl_set_dim, isl_set_get_dim_id, isl_set_set_dim_id, isl_set_add_dims, isl_set_fix_val, isl_set_eliminate);

hull! { Set by isl_set_from_basic_set:
    /// A single conjunction that contains the set, built from translates of its constraints.
    simple_hull = isl_set_simple_hull;
    /// The equalities that hold on the whole set.
    affine_hull = isl_set_affine_hull;
}

impl Set {
    /// The parameter values for which the set has a point, as a set without dimensions.
    pub fn nonempty_params(&self) -> Result<Set, IslError> {
        let all: Vec<&str> = self.shape.dims.iter().map(String::as_str).collect();
        self.project_out(&all)
    }

    /// The set without the dimensions or parameters `names` (existentially quantified).
    ///
    /// # Errors
    /// [`IslError::UnknownName`].
    pub fn project_out(&self, names: &[&str]) -> Result<Set, IslError> {
        let ctx = self.raw.ctx();
        let mut dims = self.shape.dims.clone();
        let mut raw = self.raw.clone();
        for (kind, first, n) in runs(&self.places(names)?) {
            if kind == SET {
                dims.drain(first as usize..(first + n) as usize);
            }
            // SAFETY: the reference is handed over; the range is in range.
            raw = unsafe {
                let next = ffi::isl_set_project_out(raw.into_raw(), kind, first, n);
                Owned::new(ctx, next, "project_out")?
            };
        }
        Ok(Set { raw, shape: Rc::new(SetShape { tuple: self.shape.tuple.clone(), dims }) })
    }

    /// The set projected onto the dimensions `names`, in that order; parameters stay.
    ///
    /// # Errors
    /// [`IslError::UnknownName`], [`IslError::DuplicateName`].
    pub fn project_onto(&self, names: &[&str]) -> Result<Set, IslError> {
        let others = self.shape.dims.iter().map(String::as_str).filter(|dim| !names.contains(dim));
        self.project_out(&others.collect::<Vec<_>>())?.reorder(names)
    }

    /// The set with names replaced, all at once: pairs are (old, new).
    ///
    /// # Errors
    /// [`IslError::UnknownName`], [`IslError::DuplicateName`], [`IslError::InvalidName`].
    pub fn rename(&self, pairs: &[(&str, &str)]) -> Result<Set, IslError> {
        let mut dims = self.shape.dims.clone();
        let mut raw = self.raw.clone();
        let ctx = self.raw.ctx();
        for (old, new) in pairs {
            let place = self.place(old)?;
            let id = identifier(ctx, new)?;
            if place.kind == SET {
                dims[place.position as usize] = (*new).to_owned();
                continue;
            }
            // SAFETY: both references are handed over.
            raw = unsafe {
                let next = ffi::isl_set_set_dim_id(raw.into_raw(), PARAM, place.position, id.into_raw());
                Owned::new(ctx, next, "rename")?
            };
        }
        self.reshaped(raw, dims)
    }

    /// `raw` under new dimension names, which are checked against the parameters.
    fn reshaped(&self, raw: Owned<ffi::isl_set>, dims: Vec<String>) -> Result<Set, IslError> {
        Set { raw, shape: Rc::new(SetShape { tuple: self.shape.tuple.clone(), dims }) }.checked_names()
    }

    /// Checks that all names differ.
    fn checked_names(self) -> Result<Set, IslError> {
        let space: SetSpace = self.space()?;
        check_names(&[&space.params, &space.dims], &space)?;
        Ok(self)
    }

    /// The same points under another tuple name.
    pub fn with_tuple(&self, tuple: Option<&str>) -> Set {
        let shape = SetShape { tuple: tuple.map(str::to_owned), dims: self.shape.dims.clone() };
        Set { raw: self.raw.clone(), shape: Rc::new(shape) }
    }

    /// The set with further, unconstrained dimensions at the end.
    ///
    /// # Errors
    /// [`IslError::DuplicateName`], [`IslError::InvalidName`].
    pub fn add_dims(&self, names: &[&str]) -> Result<Set, IslError> {
        let mut dims = self.shape.dims.clone();
        dims.extend(names.iter().map(|name| (*name).to_owned()));
        // SAFETY: a new reference is handed over.
        let raw = unsafe {
            let raw = ffi::isl_set_add_dims(self.raw.give(), SET, names.len() as u32);
            Owned::new(self.raw.ctx(), raw, "add_dims")?
        };
        self.reshaped(raw, dims)
    }

    /// The set with its dimensions in the order of `names`, which must be all of them.
    ///
    /// # Errors
    /// [`IslError::UnknownName`], [`IslError::SpaceMismatch`] when one is missing.
    pub fn reorder(&self, names: &[&str]) -> Result<Set, IslError> {
        let find = |name: &&str| {
            self.shape.dims.iter().position(|dim| dim == name).ok_or_else(|| IslError::UnknownName {
                name: (*name).to_owned(),
                space: format!("the dimensions `{}`", self.shape.dims.join(", ")),
            })
        };
        let permutation = names.iter().map(find).collect::<Result<Vec<_>, _>>()?;
        let dims = crate::space::owned_names(names);
        if names.len() != self.shape.dims.len() {
            let right = SetSpace { tuple: None, dims, params: Vec::new() }.to_string();
            let left = self.space()?.to_string();
            return Err(IslError::SpaceMismatch { operation: "reorder", left, right });
        }
        let raw = if dims == self.shape.dims { self.raw.clone() } else { self.permuted(&permutation)? };
        self.reshaped(raw, dims)
    }

    /// The set with the parameters `names` turned into leading dimensions, in that order.
    ///
    /// # Errors
    /// [`IslError::UnknownName`] for anything that is not a parameter.
    pub fn params_to_dims(&self, names: &[&str]) -> Result<Set, IslError> {
        let ctx = self.raw.ctx();
        let mut params = self.params()?;
        let mut dims = self.shape.dims.clone();
        let mut raw = self.raw.clone();
        for (target, name) in names.iter().enumerate() {
            let Some(position) = params.iter().position(|param| param == name) else {
                return Err(IslError::UnknownName {
                    name: (*name).to_owned(),
                    space: format!("the parameters `{}`", params.join(", ")),
                });
            };
            dims.insert(target, params.remove(position));
            // SAFETY: the reference is handed over; both positions are in range.
            raw = unsafe {
                let next =
                    ffi::isl_set_move_dims(raw.into_raw(), SET, target as u32, PARAM, position as u32, 1);
                Owned::new(ctx, next, "params_to_dims")?
            };
        }
        Ok(Set { raw, shape: Rc::new(SetShape { tuple: self.shape.tuple.clone(), dims }) })
    }
}

/// Groups places, sorted downwards, into runs `(kind, first, n)` that isl can treat in one call.
pub(crate) fn runs(places: &[Place]) -> Vec<(ffi::DimType, u32, u32)> {
    let mut result: Vec<(ffi::DimType, u32, u32)> = Vec::new();
    for place in places {
        match result.last_mut() {
            Some((kind, first, n)) if *kind == place.kind && *first == place.position + 1 => {
                *first = place.position;
                *n += 1;
            }
            _ => result.push((place.kind, place.position, 1)),
        }
    }
    result
}
