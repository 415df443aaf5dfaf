//! Names for what a step makes: a stem as it is where it is free, else with a number behind it.

use super::{Applied, Array, Loop, Made, Schedule, Statement};
use crate::primitives::{
    DistributeLoop, InterchangeInames, JoinInames, PrefetchArray, SeparateArray, SplitIname,
};
use crate::primitives::{NameKind, Rename, RollInsns, SplitAccumulation, StageValue, TagInames};
use crate::refusal::{Refusal, TransformError};
use purlin_ir::AxisTag;

/// What [`PrefetchArray`] puts behind the name of its temporary for its loops.
const COPY_LOOPS: [&str; 8] = ["_0", "_1", "_2", "_3", "_o", "_l0", "_l1", "_l2"];

impl Schedule {
    /// A free name: `stem`, or with a number behind it.
    pub fn fresh(&self, stem: &str) -> String {
        self.kernel().fresh_name(stem)
    }

    /// The first of `stem`, `stem_1`, `stem_2`, … that is free and `suits`.
    fn fresh_that(&self, stem: &str, suits: impl Fn(&str) -> bool) -> String {
        let mut name = stem.to_owned();
        let mut k = 0;
        while self.fresh(&name) != name || !suits(&name) {
            k += 1;
            name = format!("{stem}_{k}");
        }
        name
    }

    /// A free name of which `derived` are free, too.
    fn fresh_with(&self, stem: &str, derived: impl Fn(&str) -> Vec<String>) -> String {
        self.fresh_that(stem, |name| derived(name).iter().all(|d| self.fresh(d) == *d))
    }

    /// Different free names for several things at once.
    fn fresh_names(&self, stems: &[&str]) -> Vec<String> {
        stems.iter().fold(Vec::new(), |mut names: Vec<String>, stem| {
            let name = self.fresh_that(stem, |name| names.iter().all(|n| n != name));
            names.push(name);
            names
        })
    }

    /// [`Schedule::split`] into loops with names from two stems.
    ///
    /// # Errors
    /// Those of [`SplitIname`].
    pub fn split_as(
        &mut self,
        iname: impl Into<String>,
        factor: i64,
        stems: [&str; 2],
    ) -> Applied<[Loop; 2]> {
        let mut names = self.fresh_names(&stems).into_iter();
        self.make(SplitIname { outer: names.next(), inner: names.next(), ..SplitIname::new(iname, factor) })
    }

    /// [`Schedule::distribute`] into loops with names from stems, one for each part behind the
    /// first.
    ///
    /// # Errors
    /// Those of [`DistributeLoop`].
    pub fn distribute_as<I: Into<String>>(
        &mut self,
        iname: impl Into<String>,
        before: impl IntoIterator<Item = I>,
        stems: &[&str],
    ) -> Applied<Vec<Loop>> {
        let names = self.fresh_names(stems);
        self.make(DistributeLoop { names, ..DistributeLoop::new(iname, before) })
    }

    /// The same before one part; returns the loop over it and what follows.
    ///
    /// # Errors
    /// Those of [`DistributeLoop`].
    pub fn distribute_one(
        &mut self,
        iname: impl Into<String>,
        before: impl Into<String>,
        stem: &str,
    ) -> Applied<Loop> {
        let name = self.fresh(stem);
        self.make(DistributeLoop { names: vec![name.clone()], ..DistributeLoop::new(iname, [before]) })?;
        Ok(Loop::named(name))
    }

    /// Joins a loop and the loop directly inside it.
    ///
    /// # Errors
    /// Those of [`JoinInames`].
    pub fn join(&mut self, outer: impl Into<String>, inner: impl Into<String>) -> Applied<Loop> {
        let (outer, inner) = (outer.into(), inner.into());
        let joined = Some(self.fresh(&format!("{outer}_{inner}")));
        self.make(JoinInames { joined, ..JoinInames::new(outer, inner) })
    }

    /// Swaps a loop and the loop directly inside it.
    ///
    /// # Errors
    /// Those of [`InterchangeInames`].
    pub fn interchange(&mut self, outer: impl Into<String>, inner: impl Into<String>) -> Applied<()> {
        self.apply(InterchangeInames::new(outer, inner)).map(|_| ())
    }

    /// Applies a prefetch into a temporary with a name from `stem`; returns it and the copy loops.
    ///
    /// # Errors
    /// Those of [`PrefetchArray`].
    pub fn prefetch_as(&mut self, fetch: PrefetchArray, stem: &str) -> Applied<(Array, Vec<Loop>)> {
        let derived = |name: &str| {
            let loops = COPY_LOOPS.iter().map(|end| format!("{name}{end}"));
            loops.chain([format!("fetch_{name}")]).collect()
        };
        let filled = self.make(fetch.into_temporary(self.fresh_with(stem, derived)))?;
        Ok((filled.temporary, filled.loops))
    }

    /// Makes one array of each index along an axis.
    ///
    /// # Errors
    /// Those of [`SeparateArray`].
    pub fn separate(&mut self, array: impl Into<String>, axis: u32) -> Applied<Vec<Array>> {
        let mut array = array.into();
        let id = self.kernel().var(&array);
        let extent = id.and_then(|v| self.kernel().vars[v].shape.get(axis as usize)?.as_constant());
        let extent = extent.unwrap_or(0); // default: the step tells of an array or axis that is not there
        let parts = |name: &str| (0..extent).map(|k| format!("{name}_{k}")).collect::<Vec<_>>();
        if parts(&array).iter().any(|part| self.fresh(part) != *part) {
            let to = self.fresh_with(&array, parts);
            self.apply(Rename { kind: NameKind::Var, from: array, to: to.clone() })?;
            array = to;
        }
        self.make(SeparateArray::new(array, axis))
    }

    /// Commits an accumulator that is started and committed in a loop each before the statement
    /// `before`, too, and accumulates the rest in a temporary of its own: returns that, the loops
    /// of the new commit and of the new start, and their instructions, those of the commit first.
    ///
    /// # Errors
    /// Those of [`SplitAccumulation`].
    pub fn split_accumulation(
        &mut self,
        array: impl Into<String>,
        before: impl Into<String>,
    ) -> Applied<(Array, [Loop; 2], Vec<Statement>)> {
        let step = SplitAccumulation::new(array, before);
        let operation = step.to_string();
        let Made { arrays, loops, insns, .. } = self.apply(step)?;
        let made = arrays.into_iter().next().zip(loops.try_into().ok());
        let (array, loops) = made.ok_or_else(|| {
            let cause = Refusal::internal(
                "the accumulator is not started and committed in a loop each",
                self.kernel(),
            );
            TransformError { operation, cause }
        })?;
        Ok((array, loops, insns))
    }

    /// Computes the value of an instruction into a temporary with a name from `stem` first; returns
    /// it and the instruction that sets it.
    ///
    /// # Errors
    /// Those of [`StageValue`].
    pub fn stage(&mut self, insn: impl Into<String>, stem: &str) -> Applied<(Array, Statement)> {
        self.make(StageValue::new(insn, self.fresh_with(stem, |name| vec![format!("set_{name}")])))
    }

    /// Makes a loop, with a name from `stem`, of statements that repeat each other.
    ///
    /// # Errors
    /// Those of [`RollInsns`].
    pub fn roll<I: Into<String>>(&mut self, insns: impl IntoIterator<Item = I>, stem: &str) -> Applied<Loop> {
        self.make(RollInsns::new(insns, self.fresh(stem)))
    }

    /// Says where the iterations of several loops run, in one step; of none, nothing is done.
    ///
    /// # Errors
    /// Those of [`TagInames`].
    pub fn tag_all(&mut self, loops: &[Loop], tag: AxisTag) -> Applied<()> {
        if loops.is_empty() {
            return Ok(());
        }
        self.apply(TagInames::new(loops, tag)).map(|_| ())
    }
}
