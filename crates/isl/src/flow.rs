//! Dataflow: which write gave each read its value.

use std::ffi::c_int;
use std::rc::Rc;

use crate::context::{Context, Owned, context};
use crate::error::IslError;
use crate::ffi::{self, IN, OUT};
use crate::map::{Map, MapShape, Side, tuple_name};
use crate::space::primed_apart;

const OPERATION: &str = "dataflow";

/// A dataflow problem: a schedule and access relations.
///
/// The schedule maps the instances of every statement (a named tuple) to time, an unnamed tuple of
/// the same length for all; time runs lexicographically. Accesses map statement tuples to array
/// tuples (both named); restrict them to the statements' domains.
///
/// # Source
/// Feautrier's array dataflow analysis, as isl's `isl_union_access_info_compute_flow` does it.
#[derive(Clone, Debug)]
pub struct Dataflow {
    schedule: Vec<Map>,
    sinks: Vec<Map>,
    must_sources: Vec<Map>,
    may_sources: Vec<Map>,
    kills: Vec<Map>,
}

/// A dependence: instances of `source` to the instances of `sink` that use what they wrote.
#[derive(Clone, Debug)]
pub struct FlowEdge {
    /// The tuple of the statement that wrote.
    pub source: String,
    /// The tuple of the statement that reads.
    pub sink: String,
    /// Source instances to sink instances; the output names carry a prime.
    pub map: Map,
}

/// The answer to a [`Dataflow`] problem.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Reads that certainly get their value from that write.
    pub must: Vec<FlowEdge>,
    /// Reads that may get their value from that write; contains `must`.
    pub may: Vec<FlowEdge>,
    /// Sink accesses (statement tuple, access) that certainly read a value from before the program.
    pub must_no_source: Vec<(String, Map)>,
    /// Sink accesses that may read a value from before the program; contains `must_no_source`.
    pub may_no_source: Vec<(String, Map)>,
}

/// Names that isl's results are put back under.
struct Registry {
    /// (tuple, dimensions) of statements and arrays, in order of first mention.
    statements: Vec<(String, Vec<String>)>,
    arrays: Vec<(String, Vec<String>)>,
}

fn lookup<'a>(known: &'a [(String, Vec<String>)], tuple: &str) -> Option<&'a [String]> {
    known.iter().find(|(name, _)| name == tuple).map(|(_, dims)| dims.as_slice())
}

impl Dataflow {
    /// A problem with this schedule, one map per statement.
    pub fn new(schedule: Vec<Map>) -> Dataflow {
        Dataflow {
            schedule,
            sinks: Vec::new(),
            must_sources: Vec::new(),
            may_sources: Vec::new(),
            kills: Vec::new(),
        }
    }

    /// Adds an access whose sources are asked for.
    #[must_use]
    pub fn sink(mut self, access: Map) -> Dataflow {
        self.sinks.push(access);
        self
    }

    /// Adds an access that certainly happens and hides earlier ones.
    #[must_use]
    pub fn must_source(mut self, access: Map) -> Dataflow {
        self.must_sources.push(access);
        self
    }

    /// Adds an access that may happen and hides nothing.
    #[must_use]
    pub fn may_source(mut self, access: Map) -> Dataflow {
        self.may_sources.push(access);
        self
    }

    /// Adds an access that ends the life of earlier values without being a source. Reads of a
    /// killed value are in no part of the answer.
    #[must_use]
    pub fn kill(mut self, access: Map) -> Dataflow {
        self.kills.push(access);
        self
    }

    /// Solves the problem. Edges come sorted by source, then sink.
    ///
    /// # Errors
    /// [`IslError::SpaceMismatch`] when a map lacks a tuple name, when an access is of a statement
    /// without a schedule, when schedules differ in length, or when accesses of one array differ in
    /// their names.
    pub fn compute(&self) -> Result<Flow, IslError> {
        let ctx = context()?;
        if self.sinks.is_empty() {
            return Ok(Flow {
                must: Vec::new(),
                may: Vec::new(),
                must_no_source: Vec::new(),
                may_no_source: Vec::new(),
            });
        }
        let registry = self.registry()?;
        let schedule = self.schedule.iter().map(|map| map.labelled(false)).collect::<Result<Vec<_>, _>>()?;
        let schedule = union(&ctx, schedule)?;
        let accesses = |maps: &[Map]| -> Result<Option<Owned<ffi::isl_union_map>>, IslError> {
            let labelled = maps.iter().map(|map| registry.labelled(map)).collect::<Result<Vec<_>, _>>()?;
            union(&ctx, labelled)
        };
        let flow = solve(
            &ctx,
            accesses(&self.sinks)?,
            [
                (ffi::isl_union_access_info_set_must_source, accesses(&self.must_sources)?),
                (ffi::isl_union_access_info_set_may_source, accesses(&self.may_sources)?),
                (ffi::isl_union_access_info_set_kill, accesses(&self.kills)?),
                (ffi::isl_union_access_info_set_schedule_map, schedule),
            ],
        )?;
        Ok(Flow {
            must: registry.edges(&ctx, &flow, ffi::isl_union_flow_get_must_dependence)?,
            may: registry.edges(&ctx, &flow, ffi::isl_union_flow_get_may_dependence)?,
            must_no_source: registry.accesses(&ctx, &flow, ffi::isl_union_flow_get_must_no_source)?,
            may_no_source: registry.accesses(&ctx, &flow, ffi::isl_union_flow_get_may_no_source)?,
        })
    }

    fn registry(&self) -> Result<Registry, IslError> {
        let mut registry = Registry { statements: Vec::new(), arrays: Vec::new() };
        let mut length = None;
        for map in &self.schedule {
            let named = map.in_tuple().filter(|_| map.out_tuple().is_none());
            let same_length = *length.get_or_insert(map.out_dims().len()) == map.out_dims().len();
            let (Some(statement), true) = (named, same_length) else {
                return Err(mismatch("schedules from a named tuple to time vectors of one length", map));
            };
            if lookup(&registry.statements, statement).is_some() {
                return Err(mismatch("one schedule for each statement", map));
            }
            registry.statements.push((statement.to_owned(), map.in_dims().to_vec()));
        }
        let sources = self.must_sources.iter().chain(&self.may_sources).chain(&self.kills);
        for map in self.sinks.iter().chain(sources) {
            let (Some(_), Some(array)) = (map.in_tuple(), map.out_tuple()) else {
                return Err(mismatch("accesses from a statement tuple to an array tuple", map));
            };
            if lookup(&registry.arrays, array).is_none() {
                registry.arrays.push((array.to_owned(), map.out_dims().to_vec()));
            }
        }
        Ok(registry)
    }
}

fn mismatch(needed: &str, map: &Map) -> IslError {
    let right = map.space().map_or_else(|error| error.to_string(), |space| space.to_string());
    IslError::SpaceMismatch { operation: OPERATION, left: needed.to_owned(), right }
}

/// The union of maps that carry their tuples; `None` of none.
pub(crate) fn union(
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

/// `__isl_give info *set(__isl_take info *, __isl_take union_map *)`.
type Setter = unsafe extern "C" fn(
    *mut ffi::isl_union_access_info,
    *mut ffi::isl_union_map,
) -> *mut ffi::isl_union_access_info;

/// `__isl_give union_map *get(__isl_keep flow *)`.
type Getter = unsafe extern "C" fn(*mut ffi::isl_union_flow) -> *mut ffi::isl_union_map;

fn solve(
    ctx: &Rc<Context>,
    sinks: Option<Owned<ffi::isl_union_map>>,
    parts: [(Setter, Option<Owned<ffi::isl_union_map>>); 4],
) -> Result<Owned<ffi::isl_union_flow>, IslError> {
    let Some(sinks) = sinks else {
        return Err(IslError::Solver { operation: OPERATION, message: "no sink".to_owned() });
    };
    // SAFETY: every reference is handed over; null is checked by `Owned`.
    unsafe {
        let mut info = Owned::new(ctx, ffi::isl_union_access_info_from_sink(sinks.into_raw()), OPERATION)?;
        for (set, part) in parts {
            if let Some(part) = part {
                info = Owned::new(ctx, set(info.into_raw(), part.into_raw()), OPERATION)?;
            }
        }
        Owned::new(ctx, ffi::isl_union_access_info_compute_flow(info.into_raw()), OPERATION)
    }
}

impl Registry {
    /// An access with its tuples, its dimensions in the order of the registry.
    fn labelled(&self, map: &Map) -> Result<Owned<ffi::isl_map>, IslError> {
        let (Some(statement), Some(array)) = (map.in_tuple(), map.out_tuple()) else {
            return Err(mismatch("named tuples", map));
        };
        let Some(in_dims) = lookup(&self.statements, statement) else {
            return Err(mismatch("an access of a statement that has a schedule", map));
        };
        let Some(out_dims) = lookup(&self.arrays, array) else {
            return Err(mismatch("an access of a known array", map));
        };
        let raw = map.side_aligned(Side::In, Some(statement), in_dims, OPERATION)?;
        let half = Map { raw, shape: Rc::clone(&map.shape) };
        let raw = half.side_aligned(Side::Out, Some(array), out_dims, OPERATION)?;
        Map { raw, shape: Rc::clone(&map.shape) }.labelled(false)
    }

    /// The maps of one part of the result, without their tuples.
    fn maps(
        &self,
        ctx: &Rc<Context>,
        flow: &Owned<ffi::isl_union_flow>,
        get: Getter,
        ranges: &[(String, Vec<String>)],
    ) -> Result<Vec<Map>, IslError> {
        // SAFETY: isl keeps the flow and the union; the list is owned here.
        let list = unsafe {
            let part = Owned::new(ctx, get(flow.keep()), OPERATION)?;
            Owned::new(ctx, ffi::isl_union_map_get_map_list(part.keep()), OPERATION)?
        };
        // SAFETY: isl keeps the list.
        let size = ctx.size(unsafe { ffi::isl_map_list_size(list.keep()) }, OPERATION)?;
        let mut maps = Vec::with_capacity(size);
        for position in 0..size {
            // SAFETY: isl keeps the list; the position is in range.
            let raw = unsafe { ffi::isl_map_list_get_at(list.keep(), position as c_int) };
            // SAFETY: the map was handed out just now.
            let map = self.map(ctx, unsafe { Owned::new(ctx, raw, OPERATION)? }, ranges)?;
            // isl leaves explicit empty parts in its result.
            if !map.is_empty()? {
                maps.push(map);
            }
        }
        // isl's order is that of a hash table.
        maps.sort_by(|a, b| (a.in_tuple(), a.out_tuple()).cmp(&(b.in_tuple(), b.out_tuple())));
        Ok(maps)
    }

    fn map(
        &self,
        ctx: &Rc<Context>,
        raw: Owned<ffi::isl_map>,
        ranges: &[(String, Vec<String>)],
    ) -> Result<Map, IslError> {
        let (in_tuple, out_tuple) = (tuple_name(&raw, IN)?, tuple_name(&raw, OUT)?);
        let dims = |known: &[(String, Vec<String>)], tuple: &Option<String>| {
            tuple.as_deref().and_then(|tuple| lookup(known, tuple)).map(<[String]>::to_vec)
        };
        let (Some(in_dims), Some(out_dims)) = (dims(&self.statements, &in_tuple), dims(ranges, &out_tuple))
        else {
            let message = "isl returned an unknown tuple".to_owned();
            return Err(IslError::Solver { operation: OPERATION, message });
        };
        let out_dims = primed_apart(&out_dims, &[&in_dims]);
        let shape = Rc::new(MapShape { in_tuple, in_dims, out_tuple, out_dims });
        // SAFETY: the reference is handed over; null passes through; the dimensions are those of
        // the registry.
        unsafe {
            let raw = ffi::isl_map_reset_tuple_id(raw.into_raw(), IN);
            Map::wrap_raw(ctx, ffi::isl_map_reset_tuple_id(raw, OUT), &shape, OPERATION)?.checked()
        }
    }

    fn edges(
        &self,
        ctx: &Rc<Context>,
        flow: &Owned<ffi::isl_union_flow>,
        get: Getter,
    ) -> Result<Vec<FlowEdge>, IslError> {
        // Every output name gets a prime, also between statements without a common name.
        let primed: Vec<(String, Vec<String>)> = self
            .statements
            .iter()
            .map(|(tuple, dims)| (tuple.clone(), dims.iter().map(|dim| format!("{dim}'")).collect()))
            .collect();
        let name = |tuple: Option<&str>| tuple.unwrap_or_default().to_owned();
        let edge = |map: Map| FlowEdge { source: name(map.in_tuple()), sink: name(map.out_tuple()), map };
        Ok(self.maps(ctx, flow, get, &primed)?.into_iter().map(edge).collect())
    }

    fn accesses(
        &self,
        ctx: &Rc<Context>,
        flow: &Owned<ffi::isl_union_flow>,
        get: Getter,
    ) -> Result<Vec<(String, Map)>, IslError> {
        let named = |map: Map| (map.in_tuple().unwrap_or_default().to_owned(), map);
        Ok(self.maps(ctx, flow, get, &self.arrays)?.into_iter().map(named).collect())
    }
}
