//! Integer maps with named dimensions: construction, spaces, export.

use std::ffi::CString;
use std::fmt;
use std::rc::Rc;

use crate::affine::Constraint;
use crate::context::{Context, Owned, context, identifier, identifier_name};
use crate::encode;
use crate::error::IslError;
use crate::ffi::{self, CST, DIV, IN, OUT, PARAM};
use crate::set::{Place, Set, SetShape, permutation_map, take_string};
use crate::space::{MapSpace, Matching, SetSpace, check_names, match_names, primed_apart};

/// Tuples and dimensions of a map, kept on our side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MapShape {
    pub(crate) in_tuple: Option<String>,
    pub(crate) in_dims: Vec<String>,
    pub(crate) out_tuple: Option<String>,
    pub(crate) out_dims: Vec<String>,
}

/// A relation between integer tuples, over named input and output dimensions and parameters.
///
/// Input and output names differ; where an operation would make them clash (a composition, an
/// identity) the output names get trailing primes. Operands match as those of [`Set`] do. A map
/// cannot leave its thread:
///
/// ```compile_fail
/// fn needs_send<T: Send>() {}
/// needs_send::<kingpost_isl::Map>();
/// ```
///
/// # Errors
/// Every operation returns [`IslError::Solver`] or [`IslError::Quota`] when isl itself fails,
/// besides what its own heading says.
#[derive(Clone)]
pub struct Map {
    /// Carries parameter identifiers but no tuples: tuples are compared on our side.
    pub(crate) raw: Owned<ffi::isl_map>,
    pub(crate) shape: Rc<MapShape>,
}

/// One side of a map.
#[derive(Clone, Copy)]
pub(crate) enum Side {
    In,
    Out,
}

fn raw_space(ctx: &Rc<Context>, space: &MapSpace) -> Result<Owned<ffi::isl_space>, IslError> {
    let (n_in, n_out) = (space.in_dims.len() as u32, space.out_dims.len() as u32);
    // SAFETY: plain arguments; null is checked by `Owned`.
    let mut raw = unsafe {
        let raw = ffi::isl_space_alloc(ctx.raw(), space.params.len() as u32, n_in, n_out);
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

impl Map {
    /// Wraps a result of isl with a shape.
    ///
    /// # Safety
    /// `raw` is null or a map of `ctx` owned by the caller, without tuples, with the dimensions of
    /// `shape`.
    pub(crate) unsafe fn wrap_raw(
        ctx: &Rc<Context>,
        raw: *mut ffi::isl_map,
        shape: &Rc<MapShape>,
        operation: &'static str,
    ) -> Result<Map, IslError> {
        // SAFETY: the caller's promise.
        Ok(Map { raw: unsafe { Owned::new(ctx, raw, operation)? }, shape: Rc::clone(shape) })
    }

    fn shape_of(space: &MapSpace) -> Rc<MapShape> {
        Rc::new(MapShape {
            in_tuple: space.in_tuple.clone(),
            in_dims: space.in_dims.clone(),
            out_tuple: space.out_tuple.clone(),
            out_dims: space.out_dims.clone(),
        })
    }

    /// All pairs.
    ///
    /// # Errors
    /// [`IslError::InvalidName`], [`IslError::DuplicateName`].
    pub fn universe(space: &MapSpace) -> Result<Map, IslError> {
        space.check()?;
        let ctx = context()?;
        let raw = raw_space(&ctx, space)?;
        // SAFETY: the space is handed over.
        unsafe {
            Map::wrap_raw(&ctx, ffi::isl_map_universe(raw.into_raw()), &Map::shape_of(space), "universe")
        }
    }

    /// No pair.
    ///
    /// # Errors
    /// [`IslError::InvalidName`], [`IslError::DuplicateName`].
    pub fn empty(space: &MapSpace) -> Result<Map, IslError> {
        space.check()?;
        let ctx = context()?;
        let raw = raw_space(&ctx, space)?;
        // SAFETY: the space is handed over.
        unsafe { Map::wrap_raw(&ctx, ffi::isl_map_empty(raw.into_raw()), &Map::shape_of(space), "empty") }
    }

    /// The pairs for which all `constraints` hold.
    ///
    /// # Errors
    /// [`IslError::UnknownName`], [`IslError::DuplicateName`], [`IslError::InvalidName`],
    /// [`IslError::Denominator`], [`IslError::Overflow`].
    pub fn from_constraints(space: &MapSpace, constraints: &[Constraint]) -> Result<Map, IslError> {
        space.check()?;
        let ctx = context()?;
        let raw = raw_space(&ctx, space)?;
        let groups: [&[String]; 3] = [&space.params, &space.in_dims, &space.out_dims];
        let (eq, ineq) = encode::matrices(&ctx, &groups, constraints, || space.to_string())?;
        // SAFETY: all three are handed over; the five kinds are a permutation of the columns; a
        // null basic map gives a null map.
        unsafe {
            let (raw, eq, ineq) = (raw.into_raw(), eq.into_raw(), ineq.into_raw());
            let basic = ffi::isl_basic_map_from_constraint_matrices(raw, eq, ineq, PARAM, IN, OUT, DIV, CST);
            Map::wrap_raw(&ctx, ffi::isl_map_from_basic_map(basic), &Map::shape_of(space), "build a map")
        }
    }

    /// The pairs for which all constraints of at least one disjunct hold.
    ///
    /// # Errors
    /// As [`Map::from_constraints`].
    pub fn from_disjuncts(space: &MapSpace, disjuncts: &[Vec<Constraint>]) -> Result<Map, IslError> {
        let Some((first, rest)) = disjuncts.split_first() else {
            return Map::empty(space);
        };
        rest.iter().try_fold(Map::from_constraints(space, first)?, |all, one| {
            all.union(&Map::from_constraints(space, one)?)
        })
    }

    /// The map of every point to itself; output names are primed.
    ///
    /// # Errors
    /// [`IslError::InvalidName`], [`IslError::DuplicateName`].
    pub fn identity(space: &SetSpace) -> Result<Map, IslError> {
        space.check()?;
        let ctx = context()?;
        let map = permutation_map(&ctx, &(0..space.dims.len()).collect::<Vec<_>>())?;
        let shape = Map::primed_shape(space.tuple.clone(), &space.dims, space.tuple.clone(), &space.dims);
        let params: Vec<&str> = space.params.iter().map(String::as_str).collect();
        Map { raw: map, shape: Rc::new(shape) }.add_params(&params)
    }

    /// A shape whose output names are primed until they differ from the inputs.
    pub(crate) fn primed_shape(
        in_tuple: Option<String>,
        in_dims: &[String],
        out_tuple: Option<String>,
        out_dims: &[String],
    ) -> MapShape {
        let out_dims = primed_apart(out_dims, &[in_dims]);
        MapShape { in_tuple, in_dims: in_dims.to_vec(), out_tuple, out_dims }
    }

    /// The input tuple name.
    pub fn in_tuple(&self) -> Option<&str> {
        self.shape.in_tuple.as_deref()
    }

    /// The output tuple name.
    pub fn out_tuple(&self) -> Option<&str> {
        self.shape.out_tuple.as_deref()
    }

    /// The input dimensions in order.
    pub fn in_dims(&self) -> &[String] {
        &self.shape.in_dims
    }

    /// The output dimensions in order.
    pub fn out_dims(&self) -> &[String] {
        &self.shape.out_dims
    }

    /// Tuples, dimensions and parameters.
    pub fn space(&self) -> Result<MapSpace, IslError> {
        Ok(MapSpace {
            in_tuple: self.shape.in_tuple.clone(),
            in_dims: self.shape.in_dims.clone(),
            out_tuple: self.shape.out_tuple.clone(),
            out_dims: self.shape.out_dims.clone(),
            params: self.params()?,
        })
    }

    /// The disjuncts as conjunctions of constraints, every floor division with its definition.
    ///
    /// # Errors
    /// [`IslError::Overflow`] for a coefficient beyond 64 bits.
    pub fn disjuncts(&self) -> Result<Vec<Vec<Constraint>>, IslError> {
        self.wrap()?.disjuncts()
    }

    /// The pairs as points: input dimensions, then output dimensions, without a tuple name.
    pub fn wrap(&self) -> Result<Set, IslError> {
        let dims = [self.in_dims(), self.out_dims()].concat();
        // SAFETY: a new reference is handed over; null passes through; the flat set has the
        // dimensions of both.
        unsafe {
            let raw = ffi::isl_set_flatten(ffi::isl_map_wrap(self.raw.give()));
            Set::wrap_raw(self.raw.ctx(), raw, &Rc::new(SetShape { tuple: None, dims }), "wrap")
        }
    }

    /// The dimensions of one side.
    pub(crate) fn side(&self, side: Side) -> (Option<&str>, &[String]) {
        match side {
            Side::In => (self.in_tuple(), self.in_dims()),
            Side::Out => (self.out_tuple(), self.out_dims()),
        }
    }

    /// Where isl keeps `name`.
    pub(crate) fn place(&self, name: &str) -> Result<Place, IslError> {
        let params = self.params()?;
        for (kind, names) in [(IN, self.in_dims()), (OUT, self.out_dims()), (PARAM, &params)] {
            if let Some(position) = names.iter().position(|other| other == name) {
                return Ok(Place { kind, position: position as u32 });
            }
        }
        Err(IslError::UnknownName { name: name.to_owned(), space: self.space()?.to_string() })
    }

    /// This map with the dimensions of one side in the order of `dims`.
    ///
    /// # Errors
    /// [`IslError::SpaceMismatch`] when the tuple or the names differ by more than primes.
    pub(crate) fn side_aligned(
        &self,
        side: Side,
        tuple: Option<&str>,
        dims: &[String],
        operation: &'static str,
    ) -> Result<Owned<ffi::isl_map>, IslError> {
        let (own_tuple, own_dims) = self.side(side);
        let matching = if own_tuple == tuple { match_names(dims, own_dims) } else { None };
        let permutation = match matching {
            Some(Matching::Same) => return Ok(self.raw.clone()),
            Some(Matching::Permuted(permutation)) => permutation,
            None => {
                let tuple = tuple.map(str::to_owned);
                let left = SetSpace { tuple, dims: dims.to_vec(), params: Vec::new() }.to_string();
                return Err(IslError::SpaceMismatch { operation, left, right: self.space()?.to_string() });
            }
        };
        let ctx = self.raw.ctx();
        let map = permutation_map(ctx, &permutation)?.into_raw();
        // SAFETY: both references are handed over.
        unsafe {
            let raw = match side {
                Side::In => ffi::isl_map_apply_domain(self.raw.give(), map),
                Side::Out => ffi::isl_map_apply_range(self.raw.give(), map),
            };
            Owned::new(ctx, raw, operation)
        }
    }

    /// `other` with its dimensions in the order of `self`.
    pub(crate) fn aligned(
        &self,
        other: &Map,
        operation: &'static str,
    ) -> Result<Owned<ffi::isl_map>, IslError> {
        if Rc::ptr_eq(&self.shape, &other.shape) || self.shape == other.shape {
            return Ok(other.raw.clone());
        }
        let raw = other.side_aligned(Side::In, self.in_tuple(), self.in_dims(), operation)?;
        let half = Map { raw, shape: Rc::clone(&other.shape) };
        let raw = half.side_aligned(Side::Out, self.out_tuple(), self.out_dims(), operation)?;
        let aligned = Map { raw, shape: Rc::clone(&self.shape) };
        aligned.checked().map(|map| map.raw)
    }

    /// Checks that the parameters do not clash with the dimensions.
    pub(crate) fn checked(self) -> Result<Map, IslError> {
        let params = self.params()?;
        if !params.is_empty() {
            let space = self.space()?;
            check_names(&[&params, self.in_dims(), self.out_dims()], &space)?;
        }
        Ok(self)
    }

    /// Reads isl's notation, for tests and experiments; unnamed dimensions are called `i0`, `o0`,
    /// ... and repeated output names get primes.
    ///
    /// # Errors
    /// [`IslError::Solver`] on a syntax error or a nested tuple.
    pub fn read_str(text: &str) -> Result<Map, IslError> {
        const OPERATION: &str = "read a map";
        let ctx = context()?;
        let c_text = CString::new(text).map_err(|_| IslError::InvalidName { name: text.to_owned() })?;
        // SAFETY: isl reads the C string; the references move as isl's signatures say.
        unsafe {
            let raw = Owned::new(&ctx, ffi::isl_map_read_from_str(ctx.raw(), c_text.as_ptr()), OPERATION)?;
            let nested = ctx.truth(ffi::isl_map_domain_is_wrapping(raw.keep()), OPERATION)?
                || ctx.truth(ffi::isl_map_range_is_wrapping(raw.keep()), OPERATION)?;
            if nested {
                let message = "nested tuples are not supported".to_owned();
                return Err(IslError::Solver { operation: OPERATION, message });
            }
            let (in_tuple, in_dims) = read_side(&raw, IN, "i")?;
            let (out_tuple, out_dims) = read_side(&raw, OUT, "o")?;
            let shape = Map::primed_shape(in_tuple, &in_dims, out_tuple, &out_dims);
            let raw = ffi::isl_map_reset_tuple_id(raw.into_raw(), IN);
            let raw = ffi::isl_map_reset_tuple_id(raw, OUT);
            let map = Map::wrap_raw(&ctx, raw, &Rc::new(shape), OPERATION)?;
            // isl's reader drops primes, so that a parameter `i` and a dimension `i'` come back as
            // one name.
            let params = map.params()?;
            let in_dims = primed_apart(map.in_dims(), &[&params]);
            let out_dims = primed_apart(map.out_dims(), &[&params, &in_dims]);
            Ok(Map { shape: map.shape_with(in_dims, out_dims), raw: map.raw })
        }
    }

    /// A copy with tuple identifiers, and with dimension identifiers when `dims`.
    pub(crate) fn labelled(&self, dims: bool) -> Result<Owned<ffi::isl_map>, IslError> {
        let ctx = self.raw.ctx();
        let mut raw = self.raw.clone();
        for (kind, side) in [(IN, Side::In), (OUT, Side::Out)] {
            let (tuple, names) = self.side(side);
            for (position, name) in names.iter().enumerate().filter(|_| dims) {
                let id = identifier(ctx, name)?;
                // SAFETY: both references are handed over.
                raw = unsafe {
                    let next = ffi::isl_map_set_dim_id(raw.into_raw(), kind, position as u32, id.into_raw());
                    Owned::new(ctx, next, "name a dimension")?
                };
            }
            if let Some(tuple) = tuple {
                let id = identifier(ctx, tuple)?;
                // SAFETY: both references are handed over.
                raw = unsafe {
                    let next = ffi::isl_map_set_tuple_id(raw.into_raw(), kind, id.into_raw());
                    Owned::new(ctx, next, "name a tuple")?
                };
            }
        }
        Ok(raw)
    }
}

/// Tuple and dimension names of one side as isl knows them.
fn read_side(
    raw: &Owned<ffi::isl_map>,
    kind: ffi::DimType,
    default: &str,
) -> Result<(Option<String>, Vec<String>), IslError> {
    const OPERATION: &str = "read a map";
    let ctx = raw.ctx();
    // SAFETY: isl keeps the map; positions are in range; identifiers are asked for only where there
    // are some.
    unsafe {
        let mut dims = Vec::new();
        for position in 0..ctx.size(ffi::isl_map_dim(raw.keep(), kind), OPERATION)? as u32 {
            let named = ctx.truth(ffi::isl_map_has_dim_id(raw.keep(), kind, position), OPERATION)?;
            dims.push(if named {
                let id = ffi::isl_map_get_dim_id(raw.keep(), kind, position);
                identifier_name(&Owned::new(ctx, id, OPERATION)?).unwrap_or_default()
            } else {
                format!("{default}{position}")
            });
        }
        let tuple = tuple_name(raw, kind)?;
        Ok((tuple, dims))
    }
}

/// The tuple name of one side as isl knows it.
pub(crate) fn tuple_name(raw: &Owned<ffi::isl_map>, kind: ffi::DimType) -> Result<Option<String>, IslError> {
    const OPERATION: &str = "name of a tuple";
    let ctx = raw.ctx();
    // SAFETY: isl keeps the map; the identifier is asked for only where there is one.
    unsafe {
        if !ctx.truth(ffi::isl_map_has_tuple_id(raw.keep(), kind), OPERATION)? {
            return Ok(None);
        }
        let id = ffi::isl_map_get_tuple_id(raw.keep(), kind);
        Ok(identifier_name(&Owned::new(ctx, id, OPERATION)?))
    }
}

impl fmt::Display for Map {
    /// Writes isl's notation.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let labelled = self.labelled(true).map_err(|_| fmt::Error)?;
        // SAFETY: isl keeps the map and hands out a string.
        f.write_str(&unsafe { take_string(ffi::isl_map_to_str(labelled.keep()))? })
    }
}

impl fmt::Debug for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
