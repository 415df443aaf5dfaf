//! isl's scheduler: an order of all instances that keeps dependences, as a tree of bands.

use std::ffi::c_int;
use std::rc::Rc;

use crate::affine::{Affine, ConstraintKind};
use crate::context::{Context, Owned, context};
use crate::error::IslError;
use crate::ffi::{self, IN};
use crate::map::{Map, MapShape, tuple_name};
use crate::set::Set;
use crate::space::primed_apart;

const OPERATION: &str = "schedule";

/// What is to be scheduled: domains of statements (named tuples), and dependences between their
/// instances, from the instance that comes first.
///
/// # Source
/// Verdoolaege 2010, `isl_schedule_constraints_compute_schedule`.
#[derive(Clone, Debug, Default)]
pub struct Scheduling {
    domains: Vec<Set>,
    validity: Vec<Map>,
    proximity: Vec<Map>,
    context: Option<Set>,
}

/// What the scheduler aims at besides short dependences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Objective {
    /// The outermost loop of each band is parallel, where there is such a loop.
    pub outer_parallel: bool,
    /// Statements that need not be in one loop are in loops of their own.
    pub serialised: bool,
}

/// An order of instances; every statement goes one way from the root to a leaf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScheduleTree {
    /// Nothing is left to be ordered.
    Leaf,
    /// Loops that may be interchanged, and what each of their iterations does.
    Band(Band),
    /// The branches one after the other.
    Sequence(Vec<Branch>),
    /// The branches in any order.
    Set(Vec<Branch>),
}

/// A nest of loops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Band {
    /// For each statement the values of the loops, outer first, in its dimensions and parameters.
    pub rows: Vec<(String, Vec<Affine>)>,
    /// For each loop whether its iterations may run at the same time.
    pub parallel: Vec<bool>,
    /// Whether the loops may stand in any order, so that they can be tiled.
    pub permutable: bool,
    /// What an iteration does.
    pub inner: Box<ScheduleTree>,
}

/// Statements, and their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    /// Names of the tuples, sorted.
    pub statements: Vec<String>,
    /// The order.
    pub tree: ScheduleTree,
}

impl Scheduling {
    /// Statements with these domains, without any dependence.
    #[must_use]
    pub fn of(domains: Vec<Set>) -> Self {
        Self { domains, ..Self::default() }
    }

    /// Adds a dependence that the order has to keep.
    #[must_use]
    pub fn ordered(mut self, pairs: Map) -> Self {
        self.validity.push(pairs);
        self
    }

    /// Adds instances that should be close to each other.
    #[must_use]
    pub fn close(mut self, pairs: Map) -> Self {
        self.proximity.push(pairs);
        self
    }

    /// What the scheduler may take for granted of parameters.
    #[must_use]
    pub fn with_context(mut self, context: Set) -> Self {
        self.context = Some(context);
        self
    }

    /// Computes a schedule. The options of isl that it needs are those of before afterwards.
    ///
    /// # Errors
    /// [`IslError::SpaceMismatch`] for a domain or an end of a dependence without a name;
    /// [`IslError::Quota`] under a limit on operations.
    pub fn compute(&self, objective: Objective) -> Result<ScheduleTree, IslError> {
        let ctx = context()?;
        if self.domains.is_empty() {
            return Ok(ScheduleTree::Leaf);
        }
        let _options = Options::set(&ctx, objective);
        let constraints = self.constraints(&ctx)?;
        // SAFETY: the constraints are handed over; isl keeps the schedule; null is checked by `Owned`.
        let root = unsafe {
            let raw = ffi::isl_schedule_constraints_compute_schedule(constraints.into_raw());
            let schedule = Owned::new(&ctx, raw, OPERATION)?;
            Owned::new(&ctx, ffi::isl_schedule_get_root(schedule.keep()), OPERATION)?
        };
        self.tree(&ctx, &root)
    }

    fn constraints(&self, ctx: &Rc<Context>) -> Result<Owned<ffi::isl_schedule_constraints>, IslError> {
        let mut all: Option<Owned<ffi::isl_union_set>> = None;
        for domain in &self.domains {
            if domain.tuple().is_none() {
                let left = "a domain with a named tuple".to_owned();
                return Err(IslError::SpaceMismatch {
                    operation: OPERATION,
                    left,
                    right: domain.to_string(),
                });
            }
            let set = domain.labelled()?;
            // SAFETY: every reference is handed over; null is checked by `Owned`.
            all = Some(unsafe {
                let one = Owned::new(ctx, ffi::isl_union_set_from_set(set.into_raw()), OPERATION)?;
                match all {
                    None => one,
                    Some(all) => {
                        Owned::new(ctx, ffi::isl_union_set_union(all.into_raw(), one.into_raw()), OPERATION)?
                    }
                }
            });
        }
        let Some(domain) = all else {
            return Err(IslError::Solver { operation: OPERATION, message: "no domain".to_owned() });
        };
        // SAFETY: the domain is handed over.
        let raw = unsafe { ffi::isl_schedule_constraints_on_domain(domain.into_raw()) };
        // SAFETY: isl has handed out the constraints just now.
        let mut constraints = unsafe { Owned::new(ctx, raw, OPERATION)? };
        if let Some(context) = &self.context {
            let context = context.raw.clone();
            // SAFETY: both references are handed over.
            constraints = unsafe {
                let raw = ffi::isl_set_params(context.into_raw());
                let raw = ffi::isl_schedule_constraints_set_context(constraints.into_raw(), raw);
                Owned::new(ctx, raw, OPERATION)?
            };
        }
        let parts: [(Setter, &[Map]); 3] = [
            (ffi::isl_schedule_constraints_set_validity, &self.validity),
            (ffi::isl_schedule_constraints_set_coincidence, &self.validity),
            (ffi::isl_schedule_constraints_set_proximity, &self.proximity),
        ];
        for (set, maps) in parts {
            let labelled = maps.iter().map(|map| self.between_statements(map)).collect::<Result<_, _>>()?;
            if let Some(pairs) = union(ctx, labelled)? {
                // SAFETY: both references are handed over.
                constraints =
                    unsafe { Owned::new(ctx, set(constraints.into_raw(), pairs.into_raw()), OPERATION)? };
            }
        }
        Ok(constraints)
    }

    /// The dimensions of a statement.
    fn dims(&self, tuple: Option<&str>) -> Option<&[String]> {
        self.domains.iter().find(|d| d.tuple().is_some() && d.tuple() == tuple).map(Set::dims)
    }

    fn between_statements(&self, map: &Map) -> Result<Owned<ffi::isl_map>, IslError> {
        let known = |tuple, dims: &[String]| self.dims(tuple).is_some_and(|d| d.len() == dims.len());
        if known(map.in_tuple(), map.in_dims()) && known(map.out_tuple(), map.out_dims()) {
            return map.labelled(false);
        }
        let left = "a dependence between instances of statements".to_owned();
        Err(IslError::SpaceMismatch { operation: OPERATION, left, right: map.to_string() })
    }

    fn tree(
        &self,
        ctx: &Rc<Context>,
        node: &Owned<ffi::isl_schedule_node>,
    ) -> Result<ScheduleTree, IslError> {
        // SAFETY: isl keeps the node.
        let kind = unsafe { ffi::isl_schedule_node_get_type(node.keep()) };
        match kind {
            ffi::NODE_LEAF => Ok(ScheduleTree::Leaf),
            ffi::NODE_BAND => Ok(ScheduleTree::Band(self.band(ctx, node)?)),
            ffi::NODE_SEQUENCE => Ok(ScheduleTree::Sequence(self.branches(ctx, node)?)),
            ffi::NODE_SET => Ok(ScheduleTree::Set(self.branches(ctx, node)?)),
            ffi::NODE_ERROR => Err(ctx.take_error(OPERATION)),
            // the domain and its context at the root, a filter in a branch
            _ => self.tree(ctx, &child(ctx, node, 0)?),
        }
    }

    fn branches(
        &self,
        ctx: &Rc<Context>,
        node: &Owned<ffi::isl_schedule_node>,
    ) -> Result<Vec<Branch>, IslError> {
        // SAFETY: isl keeps the node.
        let count = ctx.size(unsafe { ffi::isl_schedule_node_n_children(node.keep()) }, OPERATION)?;
        let branch = |position| {
            let filter = child(ctx, node, position)?;
            Ok(Branch { statements: statements(ctx, &filter)?, tree: self.tree(ctx, &filter)? })
        };
        (0..count).map(branch).collect()
    }

    fn band(&self, ctx: &Rc<Context>, node: &Owned<ffi::isl_schedule_node>) -> Result<Band, IslError> {
        // SAFETY: isl keeps the node; members are in range.
        let (parallel, permutable, part) = unsafe {
            let count = ctx.size(ffi::isl_schedule_node_band_n_member(node.keep()), OPERATION)?;
            let parallel = (0..count).map(|k| {
                let raw = ffi::isl_schedule_node_band_member_get_coincident(node.keep(), k as c_int);
                ctx.truth(raw, OPERATION)
            });
            let permutable = ctx.truth(ffi::isl_schedule_node_band_get_permutable(node.keep()), OPERATION)?;
            let raw = ffi::isl_schedule_node_band_get_partial_schedule_union_map(node.keep());
            (parallel.collect::<Result<Vec<_>, _>>()?, permutable, Owned::new(ctx, raw, OPERATION)?)
        };
        // SAFETY: isl keeps the union; the list is owned here.
        let list = unsafe { Owned::new(ctx, ffi::isl_union_map_get_map_list(part.keep()), OPERATION)? };
        // SAFETY: isl keeps the list.
        let size = ctx.size(unsafe { ffi::isl_map_list_size(list.keep()) }, OPERATION)?;
        let mut rows = Vec::with_capacity(size);
        for position in 0..size {
            // SAFETY: isl keeps the list; the position is in range.
            let raw = unsafe { ffi::isl_map_list_get_at(list.keep(), position as c_int) };
            // SAFETY: the map was handed out just now.
            rows.push(self.row(ctx, unsafe { Owned::new(ctx, raw, OPERATION)? }, parallel.len())?);
        }
        // isl's order is that of a hash table
        rows.sort_by(|a, b| a.0.cmp(&b.0));
        let inner = Box::new(self.tree(ctx, &child(ctx, node, 0)?)?);
        Ok(Band { rows, parallel, permutable, inner })
    }

    /// The values of the loops of a band for a statement.
    fn row(
        &self,
        ctx: &Rc<Context>,
        raw: Owned<ffi::isl_map>,
        members: usize,
    ) -> Result<(String, Vec<Affine>), IslError> {
        let unexpected = |message: String| IslError::Solver { operation: OPERATION, message };
        let tuple = tuple_name(&raw, IN)?;
        let Some(in_dims) = self.dims(tuple.as_deref()).map(<[String]>::to_vec) else {
            return Err(unexpected("isl returned an unknown tuple".to_owned()));
        };
        let names: Vec<String> = (0..members).map(|k| format!("c{k}")).collect();
        let out_dims = primed_apart(&names, &[&in_dims]);
        let shape = MapShape { in_tuple: None, in_dims, out_tuple: None, out_dims: out_dims.clone() };
        // SAFETY: the reference is handed over; null passes through; the dimensions are those of the
        // domain and the members of the band.
        let map = unsafe {
            let raw = ffi::isl_map_reset_tuple_id(raw.into_raw(), IN);
            Map::wrap_raw(ctx, raw, &Rc::new(shape), OPERATION)?.checked()?
        };
        let disjuncts = map.disjuncts()?;
        let constraints: Vec<_> = disjuncts.iter().flatten().collect();
        let value = |name: &String| {
            let solved = constraints.iter().filter(|c| c.kind == ConstraintKind::Zero);
            let mut solved = solved.filter_map(|c| c.expr.solved_for(name));
            solved.find(|value| !map.out_dims().iter().any(|other| value.mentions(other)))
        };
        let values: Option<Vec<Affine>> = map.out_dims().iter().map(value).collect();
        let tuple = tuple.ok_or_else(|| unexpected(format!("a row of no statement: {map}")))?;
        let values =
            values.ok_or_else(|| unexpected(format!("a row of `{tuple}` that is not affine: {map}")))?;
        Ok((tuple, values))
    }
}

/// `__isl_give constraints *set(__isl_take constraints *, __isl_take union_map *)`.
type Setter = unsafe extern "C" fn(
    *mut ffi::isl_schedule_constraints,
    *mut ffi::isl_union_map,
) -> *mut ffi::isl_schedule_constraints;

fn child(
    ctx: &Rc<Context>,
    node: &Owned<ffi::isl_schedule_node>,
    position: usize,
) -> Result<Owned<ffi::isl_schedule_node>, IslError> {
    // SAFETY: isl keeps the node; a position without a child gives null, which `Owned` refuses.
    unsafe { Owned::new(ctx, ffi::isl_schedule_node_get_child(node.keep(), position as c_int), OPERATION) }
}

/// The names of the tuples that a filter lets pass, sorted.
fn statements(ctx: &Rc<Context>, filter: &Owned<ffi::isl_schedule_node>) -> Result<Vec<String>, IslError> {
    // SAFETY: isl keeps the node, the union and the list; positions are in range.
    unsafe {
        let part = Owned::new(ctx, ffi::isl_schedule_node_filter_get_filter(filter.keep()), OPERATION)?;
        let list = Owned::new(ctx, ffi::isl_union_set_get_set_list(part.keep()), OPERATION)?;
        let size = ctx.size(ffi::isl_set_list_size(list.keep()), OPERATION)?;
        let mut names = Vec::with_capacity(size);
        for position in 0..size {
            let raw = ffi::isl_set_list_get_at(list.keep(), position as c_int);
            let set = Owned::new(ctx, raw, OPERATION)?;
            let map = Owned::new(ctx, ffi::isl_map_from_range(set.into_raw()), OPERATION)?;
            names.extend(tuple_name(&map, ffi::OUT)?);
        }
        names.sort();
        Ok(names)
    }
}

/// The options of the context of this thread that say what the scheduler aims at.
struct Options {
    ctx: Rc<Context>,
    /// The options of before.
    before: [c_int; 2],
}

impl Options {
    fn set(ctx: &Rc<Context>, objective: Objective) -> Self {
        // SAFETY: the context is live.
        let before = unsafe {
            [
                ffi::isl_options_get_schedule_outer_coincidence(ctx.raw()),
                ffi::isl_options_get_schedule_serialize_sccs(ctx.raw()),
            ]
        };
        let options = Self { ctx: Rc::clone(ctx), before };
        options.write([objective.outer_parallel.into(), objective.serialised.into()]);
        options
    }

    fn write(&self, [outer, serialised]: [c_int; 2]) {
        // SAFETY: the context is live.
        unsafe {
            ffi::isl_options_set_schedule_outer_coincidence(self.ctx.raw(), outer);
            ffi::isl_options_set_schedule_serialize_sccs(self.ctx.raw(), serialised);
        }
    }
}

impl Drop for Options {
    fn drop(&mut self) {
        self.write(self.before);
    }
}

/// The union of maps that carry their tuples; `None` of none.
fn union(
    ctx: &Rc<Context>,
    maps: Vec<Owned<ffi::isl_map>>,
) -> Result<Option<Owned<ffi::isl_union_map>>, IslError> {
    let mut all: Option<Owned<ffi::isl_union_map>> = None;
    for map in maps {
        // SAFETY: every reference is handed over; null is checked by `Owned`.
        all = Some(unsafe {
            let one = Owned::new(ctx, ffi::isl_union_map_from_map(map.into_raw()), OPERATION)?;
            match all {
                None => one,
                Some(all) => {
                    Owned::new(ctx, ffi::isl_union_map_union(all.into_raw(), one.into_raw()), OPERATION)?
                }
            }
        });
    }
    Ok(all)
}
