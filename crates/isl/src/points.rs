//! Concrete points: samples, smallest witnesses, counting and enumeration.

use std::ffi::{c_int, c_void};
use std::rc::Rc;

use crate::affine::{Affine, Constraint, ConstraintKind};
use crate::context::{Context, Owned, fraction};
use crate::error::IslError;
use crate::ffi::{self, SET};
use crate::set::Set;
use crate::space::SetSpace;

/// Values of names: parameters first, then dimensions, each in the order of the space.
pub type Point = Vec<(String, i64)>;

/// Coordinates of a point of a set without parameters.
fn coordinates(
    ctx: &Rc<Context>,
    point: &Owned<ffi::isl_point>,
    n: usize,
    operation: &'static str,
) -> Result<Vec<i64>, IslError> {
    // SAFETY: isl keeps the point, checks the position and hands out a value.
    let one = |position| unsafe {
        let raw = ffi::isl_point_get_coordinate_val(point.keep(), SET, position as c_int);
        fraction(ctx, raw, operation)
    };
    (0..n).map(|position| Ok(one(position)?.0)).collect()
}

/// What the enumeration callback fills.
struct Collector {
    ctx: Rc<Context>,
    dims: usize,
    limit: usize,
    points: Vec<Vec<i64>>,
    error: Option<IslError>,
}

/// Receives one point; returns `isl_stat`: 0 to go on, -1 to stop.
///
/// # Safety
/// `point` is a reference given by isl; `user` points to a `Collector` that nobody else uses
/// meanwhile.
unsafe extern "C" fn collect(point: *mut ffi::isl_point, user: *mut c_void) -> c_int {
    // SAFETY: the caller's promise.
    let collector = unsafe { &mut *user.cast::<Collector>() };
    // SAFETY: as above.
    let point = match unsafe { Owned::new(&collector.ctx, point, "points") } {
        Ok(point) => point,
        Err(error) => {
            collector.error = Some(error);
            return -1;
        }
    };
    if collector.points.len() == collector.limit {
        collector.error = Some(IslError::TooManyPoints { operation: "points", limit: collector.limit });
        return -1;
    }
    match coordinates(&collector.ctx, &point, collector.dims, "points") {
        Ok(values) => {
            collector.points.push(values);
            0
        }
        Err(error) => {
            collector.error = Some(error);
            -1
        }
    }
}

/// Whether the parameters of a point lie in `ranges`, ends included.
fn is_within(point: &Point, ranges: &[(String, i64, i64)]) -> bool {
    let in_range = |(name, lo, hi): &(String, i64, i64)| {
        point.iter().find(|(n, _)| n == name).is_none_or(|(_, value)| (lo..=hi).contains(&value))
    };
    ranges.iter().all(in_range)
}

impl Set {
    /// All parameters as leading dimensions.
    fn all_dims(&self) -> Result<Set, IslError> {
        let params = self.params()?;
        self.params_to_dims(&params.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Some point of the set with values for its parameters, or `None` when there is none.
    ///
    /// # Errors
    /// [`IslError::Overflow`] for a coordinate beyond 64 bits.
    pub fn sample_point(&self) -> Result<Option<Point>, IslError> {
        let flat = self.all_dims()?;
        let ctx = flat.raw.ctx();
        // SAFETY: a reference is handed over; isl keeps the point in the query.
        let point = unsafe {
            let point = Owned::new(ctx, ffi::isl_set_sample_point(flat.raw.give()), "sample_point")?;
            if ctx.truth(ffi::isl_point_is_void(point.keep()), "sample_point")? {
                return Ok(None);
            }
            point
        };
        let values = coordinates(ctx, &point, flat.dims().len(), "sample_point")?;
        Ok(Some(flat.dims().iter().cloned().zip(values).collect()))
    }

    /// The smallest point in lexicographic order of parameters, then dimensions; `None` for an
    /// empty set.
    ///
    /// Where the set is unbounded below: the smallest point without negative values, and where
    /// there is no such point either, any point.
    ///
    /// # Errors
    /// [`IslError::Overflow`] for a coordinate beyond 64 bits.
    pub fn lexmin_point(&self) -> Result<Option<Point>, IslError> {
        if self.is_empty()? {
            return Ok(None);
        }
        let flat = self.all_dims()?;
        match flat.lexmin() {
            Ok(smallest) => match smallest.sample_point()? {
                Some(point) => return Ok(Some(point)),
                // isl 0.27 says of some sets with points that none is the smallest (the analysis'
                // test `a_pair_of_an_odd_number_below_a_wide_one_is_found`): any point proves as
                // much
                None => return flat.sample_point(),
            },
            Err(IslError::Solver { .. }) => {}
            Err(error) => return Err(error),
        }
        let space = flat.space()?;
        let signs: Vec<Constraint> =
            space.dims.iter().map(|dim| Constraint::non_negative(Affine::name(dim.as_str()))).collect();
        let positive = flat.intersect(&Set::from_constraints(&space, &signs)?)?;
        if positive.is_empty()? { flat.sample_point() } else { positive.lexmin()?.sample_point() }
    }

    /// As [`Set::lexmin_point`], of the points whose parameters lie in `ranges`, ends included;
    /// ranges of names that are no parameters say nothing.
    ///
    /// # Errors
    /// [`IslError::Overflow`] for a coordinate beyond 64 bits.
    pub fn lexmin_point_within(&self, ranges: &[(String, i64, i64)]) -> Result<Option<Point>, IslError> {
        match self.lexmin_point() {
            Ok(Some(point)) if !is_within(&point, ranges) => {}
            Err(IslError::Overflow { .. }) if !ranges.is_empty() => {}
            found => return found,
        }
        let space = self.space()?;
        // ranges bound the set below: values that are not negative come first all the same
        for floor in [0, i64::MIN] {
            let known = ranges.iter().filter(|(name, ..)| space.params.contains(name));
            let bounds = known.flat_map(|(name, lo, hi)| {
                let (least, most) = (Affine::constant(-(*lo).max(floor)), Affine::constant(*hi));
                let above = Affine { terms: vec![(name.clone(), 1)], ..least };
                let below = Affine { terms: vec![(name.clone(), -1)], ..most };
                [Constraint::non_negative(above), Constraint::non_negative(below)]
            });
            let within = self.intersect(&Set::from_constraints(&space, &bounds.collect::<Vec<_>>())?)?;
            if let Some(point) = within.lexmin_point()? {
                return Ok(Some(point));
            }
        }
        Ok(None)
    }

    /// Whether there is a point whose parameters lie in `ranges`, as for
    /// [`Set::lexmin_point_within`]. Any point will do, which is found sooner than the smallest.
    ///
    /// # Errors
    /// As [`Set::lexmin_point_within`].
    pub fn has_point_within(&self, ranges: &[(String, i64, i64)]) -> Result<bool, IslError> {
        match self.sample_point() {
            Ok(None) => Ok(false),
            Ok(Some(point)) if is_within(&point, ranges) => Ok(true),
            Ok(Some(_)) | Err(IslError::Overflow { .. }) => Ok(self.lexmin_point_within(ranges)?.is_some()),
            Err(e) => Err(e),
        }
    }

    /// The set without its parameters, each of which must have a single value.
    fn without_params(&self, operation: &'static str) -> Result<Set, IslError> {
        let used = self.drop_unused_params()?;
        let params = used.params()?;
        if params.is_empty() {
            return Ok(used);
        }
        let names: Vec<&str> = params.iter().map(String::as_str).collect();
        let values = used.nonempty_params()?.params_to_dims(&names)?;
        // SAFETY: isl keeps the set.
        let single = unsafe { ffi::isl_set_is_singleton(values.raw.keep()) };
        if !values.raw.ctx().truth(single, operation)? && !values.is_empty()? {
            let free: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            return Err(IslError::Parametric { operation, names: free.join(", ") });
        }
        used.project_out(&names)
    }

    /// The number of points. Every parameter must have been fixed.
    ///
    /// # Errors
    /// [`IslError::Parametric`], [`IslError::Unbounded`], [`IslError::Overflow`].
    pub fn count(&self) -> Result<u128, IslError> {
        let set = self.without_params("count")?;
        if !set.is_bounded()? {
            return Err(IslError::Unbounded { operation: "count" });
        }
        let mut total: u128 = 0;
        for disjunct in set.make_disjoint()?.disjuncts()? {
            total = total.checked_add(count_conjunction(set.dims(), &disjunct)?).ok_or_else(too_large)?;
        }
        Ok(total)
    }

    /// The number of points by isl's own scan, for a bounded set without parameters.
    fn scan(&self) -> Result<u128, IslError> {
        let ctx = self.raw.ctx();
        // SAFETY: isl keeps the set and hands out a value.
        let (number, _) = unsafe { fraction(ctx, ffi::isl_set_count_val(self.raw.keep()), "count")? };
        u128::try_from(number).map_err(|_| too_large())
    }

    /// All points in lexicographic order, coordinates in the order of the dimensions, at most
    /// `limit` of them. Every parameter must have been fixed.
    ///
    /// # Errors
    /// [`IslError::Parametric`], [`IslError::Unbounded`], [`IslError::TooManyPoints`],
    /// [`IslError::Overflow`].
    pub fn points(&self, limit: usize) -> Result<Vec<Vec<i64>>, IslError> {
        let set = self.without_params("points")?;
        if !set.is_bounded()? {
            return Err(IslError::Unbounded { operation: "points" });
        }
        let ctx = Rc::clone(set.raw.ctx());
        let dims = set.dims().len();
        let mut collector = Collector { ctx, dims, limit, points: Vec::new(), error: None };
        let user = std::ptr::from_mut(&mut collector).cast::<c_void>();
        // SAFETY: isl keeps the set and calls back during this call only; nothing else touches the
        // collector.
        let status = unsafe { ffi::isl_set_foreach_point(set.raw.keep(), collect, user) };
        if let Some(error) = collector.error {
            return Err(error);
        }
        if status < 0 {
            return Err(collector.ctx.take_error("points"));
        }
        collector.points.sort_unstable();
        Ok(collector.points)
    }

    /// The least and the greatest value of a dimension or parameter over the whole set, all
    /// parameters.
    ///
    /// `None` stands for no bound; an empty set has neither.
    ///
    /// # Errors
    /// [`IslError::UnknownName`], [`IslError::Overflow`].
    pub fn bounds(&self, name: &str) -> Result<(Option<i64>, Option<i64>), IslError> {
        self.place(name)?;
        let flat = self.all_dims()?;
        let position = flat.place(name)?.position as c_int;
        // SAFETY: a reference is handed over; the position is in range.
        let (low, high) = unsafe {
            let low = ffi::isl_set_dim_min_val(flat.raw.give(), position);
            (low, ffi::isl_set_dim_max_val(flat.raw.give(), position))
        };
        // SAFETY: both values were handed out just now.
        unsafe { Ok((finite(flat.raw.ctx(), low)?, finite(flat.raw.ctx(), high)?)) }
    }
}

/// An integer, or `None` for an infinity or not-a-number.
///
/// # Safety
/// `raw` is null or a value of `ctx` owned by the caller.
unsafe fn finite(ctx: &Rc<Context>, raw: *mut ffi::isl_val) -> Result<Option<i64>, IslError> {
    // SAFETY: the caller's promise; isl keeps the value in the query.
    unsafe {
        let value = Owned::new(ctx, raw, "bounds")?;
        if !ctx.truth(ffi::isl_val_is_int(value.keep()), "bounds")? {
            return Ok(None);
        }
        Ok(Some(fraction(ctx, value.into_raw(), "bounds")?.0))
    }
}

fn too_large() -> IslError {
    IslError::Overflow { operation: "count", needed: "`u128`" }
}

/// Marks the dimensions that an expression mentions.
fn mentioned(expr: &Affine, dims: &[String], mark: &mut Vec<usize>) {
    for (name, _) in &expr.terms {
        if let Some(position) = dims.iter().position(|dim| dim == name) {
            mark.push(position);
        }
    }
    for (div, _) in &expr.divs {
        mentioned(&div.numerator, dims, mark);
    }
}

/// Counts a bounded conjunction as a product over groups of dimensions that share no constraint:
/// isl's scan walks all but the last dimension, which a box of a million cells does not need.
fn count_conjunction(dims: &[String], constraints: &[Constraint]) -> Result<u128, IslError> {
    let mut group: Vec<usize> = (0..dims.len()).collect();
    let mut uses: Vec<Vec<usize>> = Vec::with_capacity(constraints.len());
    for constraint in constraints {
        let mut mark = Vec::new();
        mentioned(&constraint.expr, dims, &mut mark);
        if let Some(first) = mark.first() {
            let target = group[*first];
            for other in &mark {
                let merged = group[*other];
                group.iter_mut().filter(|g| **g == merged).for_each(|g| *g = target);
            }
        }
        uses.push(mark);
    }
    let constants = constraints.iter().zip(&uses).filter(|(_, mark)| mark.is_empty());
    if constants.into_iter().any(|(constraint, _)| constraint.holds(&|_| None) == Some(false)) {
        return Ok(0);
    }
    let mut product: u128 = 1;
    for leader in 0..dims.len() {
        let members: Vec<String> =
            dims.iter().zip(&group).filter(|(_, g)| **g == leader).map(|(dim, _)| dim.clone()).collect();
        if members.is_empty() {
            continue;
        }
        let own: Vec<Constraint> = constraints
            .iter()
            .zip(&uses)
            .filter(|(_, mark)| mark.first().is_some_and(|first| group[*first] == leader))
            .map(|(constraint, _)| constraint.clone())
            .collect();
        let factor = match (members.len(), interval(&own)) {
            (1, Some(length)) => length,
            _ => Set::from_constraints(&SetSpace { dims: members, ..SetSpace::default() }, &own)?.scan()?,
        };
        product = product.checked_mul(factor).ok_or_else(too_large)?;
    }
    Ok(product)
}

/// The number of integers `x` with all `a x + b >= 0` or `= 0`; `None` when that is not the form of
/// all.
fn interval(constraints: &[Constraint]) -> Option<u128> {
    let (mut low, mut high) = (None::<i64>, None::<i64>);
    for Constraint { expr, kind } in constraints {
        let [(_, a)] = expr.terms[..] else { return None };
        let equality = matches!(kind, ConstraintKind::Zero);
        if !expr.divs.is_empty() || a == 0 || a == i64::MIN || expr.constant == i64::MIN {
            return None;
        }
        let b = expr.constant;
        if equality && b % a != 0 {
            return Some(0);
        }
        if a > 0 || equality {
            // x >= ceil(-b/a), written with Euclidean division for a positive divisor.
            let (a, b) = (a.abs(), if a > 0 { b } else { -b });
            let bound = -b.div_euclid(a);
            low = Some(low.map_or(bound, |old| old.max(bound)));
        }
        if a < 0 || equality {
            let bound = if a < 0 { b.div_euclid(-a) } else { (-b).div_euclid(a) };
            high = Some(high.map_or(bound, |old| old.min(bound)));
        }
    }
    let length = i128::from(high?) - i128::from(low?) + 1;
    Some(u128::try_from(length).unwrap_or(0))
}
