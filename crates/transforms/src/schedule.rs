//! Steps of a schedule in short: methods that make a primitive of this crate and choose free names.

use crate::interleave;
use crate::primitives::{
    CutIname, DistributeLoop, ExpandArray, FuseLoops, InterchangeInames, JoinInames, MapInames, NameKind,
    PrefetchArray, RealiseReduction, Rename, Reschedule, RollInsns, SeparateArray, SplitAccumulation,
    SplitIname, StageValue, Tag, TileBand,
};
use crate::separate;
use crate::tile;
use kingpost_ir::{AddressSpace, AxisTag};
use kingpost_steps::lookup;
use kingpost_steps::nest;
use kingpost_steps::refusal::{Refusal, TransformError};
use kingpost_steps::schedule::{Array, Loop, Made, Schedule, Statement};

type Applied<T> = Result<T, TransformError>;

/// What [`PrefetchArray`] puts after the name of its temporary for its loops.
const COPY_LOOPS: [&str; 8] = ["_0", "_1", "_2", "_3", "_o", "_l0", "_l1", "_l2"];

/// The primitives of this crate as methods of a schedule, with names of their own where one is
/// needed.
///
/// ```
/// use kingpost_steps::Schedule;
/// use kingpost_transforms::ScheduleSteps;
/// use kingpost_ir::AxisTag;
///
/// let kernel = kingpost_ir::text::parse(
///     "kernel scale\nparam n: i32\narg y: f64[n] inout\n\nfor i in 0..n\n  s: y[i] = 2.0*y[i]\n",
/// )?;
/// let mut s = Schedule::of(&kernel);
/// let [block, item] = s.split("i", 128)?;
/// s.tag(&block, AxisTag::Group(0))?;
/// s.tag(&item, AxisTag::Local(0))?;
/// assert_eq!(s.recipe().apply(&kernel)?, *s.kernel());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait ScheduleSteps {
    /// The schedule that steps are applied to.
    fn schedule(&mut self) -> &mut Schedule;

    /// Splits a loop into blocks of `factor` iterations: the loop over blocks, and the loop inside
    /// a block.
    ///
    /// # Errors
    /// As [`SplitIname`].
    fn split(&mut self, iname: impl Into<String>, factor: i64) -> Applied<[Loop; 2]> {
        self.schedule().make(SplitIname::new(iname, factor))
    }

    /// Says where the iterations of a loop run.
    ///
    /// # Errors
    /// As [`Tag`].
    fn tag(&mut self, iname: impl Into<String>, tag: AxisTag) -> Applied<()> {
        self.schedule().make(Tag::new(iname, tag))
    }

    /// Writes out the iterations of a loop.
    ///
    /// # Errors
    /// As [`Tag`].
    fn unroll(&mut self, iname: impl Into<String>) -> Applied<()> {
        self.tag(iname, AxisTag::Unrolled)
    }

    /// Nests the loops of a perfect nest in this order, outer first, by interchanges of neighbours.
    ///
    /// # Errors
    /// A name that is no loop, loops that are not one directly inside another, and those of
    /// [`InterchangeInames`]. The schedule stays as it was.
    fn reorder<I: Into<String>>(&mut self, order: impl IntoIterator<Item = I>) -> Applied<()> {
        let order: Vec<String> = order.into_iter().map(Into::into).collect();
        let operation = format!("reorder {}", lookup::quoted(&order));
        let refused = |cause| TransformError { operation: operation.clone(), cause };
        let mut draft = self.schedule().clone();
        for k in 0..order.len() {
            loop {
                let nest = nest::names(draft.kernel(), &order).map_err(refused)?;
                let at = nest.iter().position(|name| *name == order[k]).unwrap_or(k);
                if at <= k {
                    break;
                }
                draft.apply(InterchangeInames::new(&nest[at - 1], &nest[at]))?;
            }
        }
        *self.schedule() = draft;
        Ok(())
    }

    /// Splits loops, one inside the other, into blocks of these lengths, and brings the loops over
    /// blocks outside: returns these and the loops inside a block, outer first.
    ///
    /// Where a loop holds more than the next one, temporaries that its parts share get an axis for
    /// it, and it is distributed. Records [`split_iname`](crate::primitives::SplitIname),
    /// [`expand_array`](ExpandArray), [`distribute_loop`](crate::primitives::DistributeLoop) and
    /// [`interchange_inames`](InterchangeInames).
    ///
    /// ```
    /// use kingpost_steps::Schedule;
    /// use kingpost_transforms::ScheduleSteps;
    ///
    /// let kernel = kingpost_ir::text::parse(
    ///     "kernel t\narg a: f64[32, 32] in\narg b: f64[32, 32] out\n\nfor i in 0..32\n  for j in 0..32\n    s: b[i, j] = a[j, i]\n",
    /// )?;
    /// let mut s = Schedule::of(&kernel);
    /// let [blocks, inside] = s.tile(["i", "j"], [8, 4])?;
    /// assert_eq!((blocks[1].name(), inside[0].name()), ("j_o", "i_i"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Loops and factors that differ in number, loops that are not one inside the other, and those
    /// of the steps. The schedule stays as it was.
    fn tile<I: Into<String>>(
        &mut self,
        loops: impl IntoIterator<Item = I>,
        factors: impl IntoIterator<Item = i64>,
    ) -> Applied<[Vec<Loop>; 2]> {
        self.tile_on(loops, factors, [])
    }

    /// The same with tags of the loop over blocks and the one inside, for the first of the loops: a product of
    /// matrices by tiles is `tile_on(["i", "j", "k"], [16; 3], [[Group(1), Local(1)], [Group(0), Local(0)]])`.
    ///
    /// # Errors
    /// More pairs of tags than loops, and those of [`tile`](Self::tile) and [`Tag`].
    fn tile_on<I: Into<String>>(
        &mut self,
        loops: impl IntoIterator<Item = I>,
        factors: impl IntoIterator<Item = i64>,
        tags: impl IntoIterator<Item = [AxisTag; 2]>,
    ) -> Applied<[Vec<Loop>; 2]> {
        let (loops, tags) =
            (loops.into_iter().map(Into::into).collect(), tags.into_iter().collect::<Vec<_>>());
        tile::tile(self.schedule(), loops, factors.into_iter().collect(), &tags)
    }

    /// Copies what an iteration of `at` reads of an array to a temporary.
    ///
    /// # Errors
    /// As [`PrefetchArray`].
    fn prefetch(
        &mut self,
        array: impl Into<String>,
        at: impl Into<String>,
        space: AddressSpace,
    ) -> Applied<Array> {
        Ok(self.schedule().make(PrefetchArray::new(array, at, space))?.temporary)
    }

    /// The same, with tags for the loops that copy, outer first: `l.1`, `l.0` for a tile that work-items
    /// fill.
    ///
    /// # Errors
    /// More tags than loops, and those of [`PrefetchArray`] and [`Tag`]. The schedule stays as it was.
    fn prefetch_on(
        &mut self,
        fetch: PrefetchArray,
        tags: impl IntoIterator<Item = AxisTag>,
    ) -> Applied<(Array, Vec<Loop>)> {
        let tags: Vec<AxisTag> = tags.into_iter().collect();
        let operation = fetch.to_string();
        let mut draft = self.schedule().clone();
        let filled = draft.make(fetch)?;
        if tags.len() > filled.loops.len() {
            let found = format!("{} loops that copy and {} tags", filled.loops.len(), tags.len());
            let cause = Refusal::argument("tags", found, "a tag for each of some loops");
            return Err(TransformError { operation, cause });
        }
        for (iname, tag) in filled.loops.iter().zip(tags) {
            draft.tag(iname, tag)?;
        }
        *self.schedule() = draft;
        Ok((filled.temporary, filled.loops))
    }

    /// Tags all loops with names that a pattern says, in one step; `*` stands for any number of letters.
    ///
    /// # Errors
    /// No such loop, and those of [`Tag`].
    fn tag_matching(&mut self, pattern: &str, tag: AxisTag) -> Applied<Vec<Loop>> {
        let loops = lookup::loops_matching(self.schedule().kernel(), pattern)
            .map_err(|cause| TransformError { operation: format!("tag `{pattern}` {tag}"), cause })?;
        let loops: Vec<Loop> = loops.into_iter().map(Loop::named).collect();
        self.tag_all(&loops, tag)?;
        Ok(loops)
    }

    /// Runs the iterations of a loop side by side: brings it inside all loops that it holds, and writes it
    /// out. Returns its parts. Temporaries that the parts share get an axis for it.
    ///
    /// Records [`expand_array`](ExpandArray), [`distribute_loop`](DistributeLoop),
    /// [`interchange_inames`](InterchangeInames) and [`tag`](Tag).
    ///
    /// ```
    /// use kingpost_steps::Schedule;
    /// use kingpost_transforms::ScheduleSteps;
    ///
    /// let kernel = kingpost_ir::text::parse(
    ///     "kernel k\narg a: f64[4, 9] in\narg b: f64[4] out\ntemp s: f64 private\n\nfor i in 0..4\n  \
    ///      start: s = 0.0\n  for j in 0..9\n    add: s += a[i, j]\n  put: b[i] = s\n",
    /// )?;
    /// let mut s = Schedule::of(&kernel);
    /// assert_eq!(s.interleave("i")?.len(), 3);
    /// assert!(s.kernel().to_string().contains("for j in 0..9\n  for i_1 in 0..4 {unroll}\n    add: s[i_1] += a[i_1, j]"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As these steps. The schedule stays as it was.
    ///
    /// # Elsewhere
    /// Loopy's tag `ilp`.
    fn interleave(&mut self, iname: impl Into<String>) -> Applied<Vec<Loop>> {
        interleave::interleave(self.schedule(), &iname.into())
    }

    /// Turns the reduction over a loop into a loop that accumulates in a temporary.
    ///
    /// # Errors
    /// As [`RealiseReduction`].
    fn realise(&mut self, iname: impl Into<String>, accumulator: impl Into<String>) -> Applied<Array> {
        let accumulator = accumulator.into();
        self.schedule().apply(RealiseReduction::new(iname).into_temporary(&accumulator))?;
        Ok(Array::named(accumulator))
    }

    /// Gives a temporary an axis for each of some loops.
    ///
    /// # Errors
    /// As [`ExpandArray`].
    fn expand<I: Into<String>>(
        &mut self,
        array: impl Into<String>,
        loops: impl IntoIterator<Item = I>,
    ) -> Applied<()> {
        self.schedule().apply(ExpandArray::new(array, loops)).map(|_| ())
    }

    /// Distributes a loop over the parts of its body; a part begins before each of the named
    /// statements or loops.
    ///
    /// # Errors
    /// As [`DistributeLoop`].
    fn distribute<I: Into<String>>(
        &mut self,
        iname: impl Into<String>,
        before: impl IntoIterator<Item = I>,
    ) -> Applied<Vec<Loop>> {
        self.schedule().make(DistributeLoop::new(iname, before))
    }

    /// Fuses two neighbouring loops; the first one's name stays.
    ///
    /// # Errors
    /// As [`FuseLoops`].
    fn fuse(&mut self, first: impl Into<String>, second: impl Into<String>) -> Applied<Loop> {
        let first = first.into();
        self.schedule().apply(FuseLoops::new(&first, second))?;
        Ok(Loop::named(first))
    }

    /// Replaces a loop and all that it holds by a nest of new loops, in which each instruction runs where
    /// its rows say.
    ///
    /// ```
    /// use kingpost_steps::Schedule;
    /// use kingpost_transforms::ScheduleSteps;
    ///
    /// let kernel = kingpost_ir::text::parse(
    ///     "kernel k\nparam n: i32\narg a: f64[n] inout\n\nfor t in 0..n\n  for i in 0..n - 1\n    s: a[i] += a[i + 1]\n",
    /// )?;
    /// let mut s = Schedule::of(&kernel);
    /// let loops = s.reschedule("t", ["t", "c"], [("s", ["t", "2*t + i"])])?;
    /// assert_eq!(loops[1].name(), "c");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Reschedule`].
    fn reschedule<L: Into<String>, S: Into<String>, R: Into<String>>(
        &mut self,
        iname: impl Into<String>,
        loops: impl IntoIterator<Item = L>,
        maps: impl IntoIterator<Item = (S, impl IntoIterator<Item = R>)>,
    ) -> Applied<Vec<Loop>> {
        let step = Reschedule::new([iname], loops);
        self.schedule().make(maps.into_iter().fold(step, |step, (insn, rows)| step.map(insn, rows)))
    }

    /// Cuts a loop in two at an expression of loops around and parameters: the iterations below come
    /// first. Returns both loops, or one where nothing runs in the other.
    ///
    /// # Errors
    /// As [`CutIname`].
    fn cut(&mut self, iname: impl Into<String>, at: impl Into<String>) -> Applied<Vec<Loop>> {
        self.schedule().make(CutIname::new(iname, at))
    }

    /// Cuts a loop, and the loops inside down to a depth (1 is the loop alone, none all of them), wherever
    /// that takes conditions of instructions away, or bounds that others imply. So full tiles have constant
    /// bounds, partial ones stand apart, and the innermost loops decide nothing. Returns the pieces of
    /// the loop in order.
    ///
    /// ```
    /// use kingpost_steps::Schedule;
    /// use kingpost_transforms::ScheduleSteps;
    ///
    /// let kernel = kingpost_ir::text::parse(
    ///     "kernel triangle\nparam n: i32\narg a: f64[n, n] inout\n\nfor i in 0..n\n  for j in 0..n\n    \
    ///      s: a[i, j] = 1.0 if j < i\n    r: a[i, j] = 2.0 if i <= j\n",
    /// )?;
    /// let mut s = Schedule::of(&kernel);
    /// assert_eq!(s.separate_loops("j", None)?.len(), 2);
    /// assert!(!s.kernel().to_string().contains(" if "));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// An unknown loop, a depth of 0, cuts that the solver does not decide within the operations that a step
    /// may take. The schedule stays as it was.
    fn separate_loops(
        &mut self,
        iname: impl Into<String>,
        depth: impl Into<Option<usize>>,
    ) -> Applied<Vec<Loop>> {
        separate::separate(self.schedule(), &iname.into(), depth.into())
    }

    /// Puts loops over tiles of these sizes around a perfect nest, along `rows`, expressions of its loops;
    /// along the loops themselves if there are none.
    ///
    /// # Errors
    /// As [`TileBand`].
    fn tile_band<I: Into<String>, R: Into<String>>(
        &mut self,
        loops: impl IntoIterator<Item = I>,
        rows: impl IntoIterator<Item = R>,
        sizes: impl IntoIterator<Item = i64>,
    ) -> Applied<Vec<Loop>> {
        self.schedule().make(TileBand::new(loops, sizes).by(rows))
    }

    /// Lets the outermost loop of a perfect nest count waves: the sum of all its loops. Iterations of one
    /// wave are independent where no loop runs backward along a dependence, as loops over tiles.
    ///
    /// # Errors
    /// As [`MapInames`].
    fn wavefront<I: Into<String>>(&mut self, loops: impl IntoIterator<Item = I>) -> Applied<Vec<Loop>> {
        let loops: Vec<String> = loops.into_iter().map(Into::into).collect();
        let row = |k: usize| (0..loops.len()).map(|j| i64::from(k == 0 || j == k)).collect::<Vec<_>>();
        let rows: Vec<_> = (0..loops.len()).map(row).collect();
        self.schedule().make(MapInames::new(loops.clone(), rows))
    }

    /// Gives a loop another name.
    ///
    /// # Errors
    /// As [`Rename`].
    fn rename_loop(&mut self, iname: impl Into<String>, name: impl Into<String>) -> Applied<Loop> {
        let name = name.into();
        self.schedule().apply(Rename::iname(iname, &name))?;
        Ok(Loop::named(name))
    }
    /// [`split`](ScheduleSteps::split) into loops with names from two stems.
    ///
    /// # Errors
    /// As [`SplitIname`].
    fn split_as(&mut self, iname: impl Into<String>, factor: i64, stems: [&str; 2]) -> Applied<[Loop; 2]> {
        let mut names = self.schedule().fresh_names(&stems).into_iter();
        self.schedule().make(SplitIname {
            outer: names.next(),
            inner: names.next(),
            ..SplitIname::new(iname, factor)
        })
    }

    /// [`distribute`](ScheduleSteps::distribute) into loops with names from stems, one for each
    /// part after the first.
    ///
    /// # Errors
    /// As [`DistributeLoop`].
    fn distribute_as<I: Into<String>>(
        &mut self,
        iname: impl Into<String>,
        before: impl IntoIterator<Item = I>,
        stems: &[&str],
    ) -> Applied<Vec<Loop>> {
        let names = self.schedule().fresh_names(stems);
        self.schedule().make(DistributeLoop { names, ..DistributeLoop::new(iname, before) })
    }

    /// The same before one part; returns the loop over it and what follows.
    ///
    /// # Errors
    /// As [`DistributeLoop`].
    fn distribute_one(
        &mut self,
        iname: impl Into<String>,
        before: impl Into<String>,
        stem: &str,
    ) -> Applied<Loop> {
        let name = self.schedule().fresh(stem);
        self.schedule()
            .make(DistributeLoop { names: vec![name.clone()], ..DistributeLoop::new(iname, [before]) })?;
        Ok(Loop::named(name))
    }

    /// Joins a loop and the loop directly inside it.
    ///
    /// # Errors
    /// As [`JoinInames`].
    fn join(&mut self, outer: impl Into<String>, inner: impl Into<String>) -> Applied<Loop> {
        let (outer, inner) = (outer.into(), inner.into());
        let joined = Some(self.schedule().fresh(&format!("{outer}_{inner}")));
        self.schedule().make(JoinInames { joined, ..JoinInames::new(outer, inner) })
    }

    /// Swaps a loop and the loop directly inside it.
    ///
    /// # Errors
    /// As [`InterchangeInames`].
    fn interchange(&mut self, outer: impl Into<String>, inner: impl Into<String>) -> Applied<()> {
        self.schedule().apply(InterchangeInames::new(outer, inner)).map(|_| ())
    }

    /// Applies a prefetch into a temporary with a name from `stem`; returns it and the copy loops.
    ///
    /// # Errors
    /// As [`PrefetchArray`].
    fn prefetch_as(&mut self, fetch: PrefetchArray, stem: &str) -> Applied<(Array, Vec<Loop>)> {
        let derived = |name: &str| {
            let loops = COPY_LOOPS.iter().map(|end| format!("{name}{end}"));
            loops.chain([format!("fetch_{name}")]).collect()
        };
        let name = self.schedule().fresh_with(stem, derived);
        let filled = self.schedule().make(fetch.into_temporary(name))?;
        Ok((filled.temporary, filled.loops))
    }

    /// Makes one array of each index along an axis.
    ///
    /// # Errors
    /// As [`SeparateArray`].
    fn separate(&mut self, array: impl Into<String>, axis: u32) -> Applied<Vec<Array>> {
        let mut array = array.into();
        let id = self.schedule().kernel().var(&array);
        let extent =
            id.and_then(|v| self.schedule().kernel().vars[v].shape.get(axis as usize)?.as_constant());
        let extent = extent.unwrap_or(0); // default: the step tells of an array or axis that is not there
        let parts = |name: &str| (0..extent).map(|k| format!("{name}_{k}")).collect::<Vec<_>>();
        if parts(&array).iter().any(|part| self.schedule().fresh(part) != *part) {
            let to = self.schedule().fresh_with(&array, parts);
            self.schedule().apply(Rename { kind: NameKind::Var, from: array, to: to.clone() })?;
            array = to;
        }
        self.schedule().make(SeparateArray::new(array, axis))
    }

    /// Commits an accumulator that is started and committed in a loop each before the statement
    /// `before`, too, and accumulates the rest in a temporary of its own: returns that, the loops
    /// of the new commit and of the new start, and their instructions, those of the commit first.
    ///
    /// # Errors
    /// As [`SplitAccumulation`].
    fn split_accumulation(
        &mut self,
        array: impl Into<String>,
        before: impl Into<String>,
    ) -> Applied<(Array, [Loop; 2], Vec<Statement>)> {
        let step = SplitAccumulation::new(array, before);
        let operation = step.to_string();
        let Made { arrays, loops, insns, .. } = self.schedule().apply(step)?;
        let made = arrays.into_iter().next().zip(loops.try_into().ok());
        let (array, loops) = made.ok_or_else(|| {
            let says = "the accumulator is not started and committed in a loop each";
            let cause = Refusal::internal(says, self.schedule().kernel());
            TransformError { operation, cause }
        })?;
        Ok((array, loops, insns))
    }

    /// Computes the value of an instruction into a temporary with a name from `stem` first; returns
    /// it and the instruction that sets it.
    ///
    /// # Errors
    /// As [`StageValue`].
    fn stage(&mut self, insn: impl Into<String>, stem: &str) -> Applied<(Array, Statement)> {
        let name = self.schedule().fresh_with(stem, |name| vec![format!("set_{name}")]);
        self.schedule().make(StageValue::new(insn, name))
    }

    /// Makes a loop, with a name from `stem`, of statements that repeat each other.
    ///
    /// # Errors
    /// As [`RollInsns`].
    fn roll<I: Into<String>>(&mut self, insns: impl IntoIterator<Item = I>, stem: &str) -> Applied<Loop> {
        let name = self.schedule().fresh(stem);
        self.schedule().make(RollInsns::new(insns, name))
    }

    /// Says where the iterations of several loops run, in one step; of none, nothing is done.
    ///
    /// # Errors
    /// As [`Tag`].
    fn tag_all(&mut self, loops: &[Loop], tag: AxisTag) -> Applied<()> {
        if loops.is_empty() {
            return Ok(());
        }
        self.schedule().apply(Tag::all(loops, tag)).map(|_| ())
    }
}

impl ScheduleSteps for Schedule {
    fn schedule(&mut self) -> &mut Schedule {
        self
    }
}
