//! Sets of neighbouring nodes, each of which is a node of the next level.

use crate::sorting::{Scan, Sort};
use crate::texts::{compiled, text};
use crate::{BlockRows, Call, PatternKernels, SolveError, put};
use kingpost_runtime::{Buffer, Device, Executable};

/// Rounds after which the host asks whether a node is open, at first and then: about as many suffice
/// for meshes of any size, nine of them for a cube of a million nodes (H200, 2026-11-30).
const ROUNDS: [usize; 2] = [10, 4];

/// A node of the next level for each set of nodes, on the device.
pub(super) struct Aggregates {
    /// How many there are.
    pub count: usize,
    /// All nodes, those of none included.
    pub n_members: usize,
    /// The node of the next level for each node. Nodes without neighbours, such as prescribed ones,
    /// are in none: -1.
    pub of: Buffer,
    /// First member of each, and the end of the last.
    pub starts: Buffer,
    /// The nodes of each, ascending, after those of none.
    pub members: Buffer,
    /// The place of each node among the members.
    pub places: Buffer,
}

/// The kernels that find sets of strongly connected nodes.
///
/// Roots are chosen at once everywhere: a node whose key is the largest within two connections, until all nodes
/// have a root there. So no order of nodes is needed, keys of nodes that are near each other differ like random
/// numbers, and rounds are few. The roots are those of a loop over all nodes from the largest key on. A root is
/// a set with its neighbours, and what is left joins a neighbour.
///
/// # Source
/// Vaněk et al. 1996, Algorithm 2, with the roots of Bell et al. 2012, §3.2.
pub(super) struct SetKernels {
    keys: Executable,
    largest: Executable,
    choose: Executable,
    count: Executable,
    roots: Executable,
    neighbours: Executable,
    places: Executable,
}

impl SetKernels {
    /// Compiles the kernels.
    ///
    /// # Errors
    /// A device that refuses them.
    pub fn new(device: &dyn Device) -> Result<Self, SolveError> {
        Ok(Self {
            keys: compiled(device, text!("aggregation/root_keys"))?,
            largest: compiled(device, text!("aggregation/largest_around"))?,
            choose: compiled(device, text!("aggregation/choose_roots"))?,
            count: compiled(device, text!("aggregation/count_roots"))?,
            roots: compiled(device, text!("aggregation/join_roots"))?,
            neighbours: compiled(device, text!("aggregation/join_neighbours"))?,
            places: compiled(device, text!("aggregation/member_places"))?,
        })
    }

    /// The sets of a matrix whose connections are of some `kinds`.
    ///
    /// # Errors
    /// No memory, a failing driver.
    pub fn find(
        &self,
        device: &dyn Device,
        lists: &PatternKernels,
        matrix: &BlockRows<'_>,
        kinds: &Buffer,
    ) -> Result<Aggregates, SolveError> {
        let n = matrix.rows;
        let integers = |n: usize| device.allocate_unset(4 * n as u64);
        let (sizes, rows) = (matrix.sizes(), [&matrix.lists()[..], &[("kinds", kinds)]].concat());
        let keys = self.roots(device, lists, matrix, kinds)?;
        let [is_root, numbers] = [integers(n + 1)?, integers(n + 1)?];
        device.fill(&is_root, 0)?;
        let scan = Scan::new(device, n + 1)?;
        let mut calls = vec![Call::of(&self.count, &sizes[..1], &[("keys", &keys), ("is_root", &is_root)])];
        scan.push(lists, (&is_root, &numbers), &mut calls);
        let [of, other] = [integers(n)?, integers(n)?];
        let arrays = [("keys", &keys), ("numbers", &numbers), ("aggregates", &of)];
        calls.push(Call::of(&self.roots, &sizes, &[&rows[..], &arrays].concat()));
        let join = |before, after| {
            let arrays = [("before", before), ("aggregates", after)];
            Call::of(&self.neighbours, &sizes, &[&rows[..], &arrays].concat())
        };
        // the second time for what roundings keep from being connected both ways
        calls.extend([join(&of, &other), join(&other, &of)]);
        put(device, &calls)?;
        let count = scan.total(device)?;

        let sort = Sort::new(device, count, n)?;
        let [starts, places] = [integers(count + 1)?, integers(n)?];
        let mut calls = Vec::new();
        sort.push(lists, &of, &mut calls);
        let [sorted, members] = sort.sorted();
        calls.push(lists.first_places((count + 1, &starts), (n, sorted)));
        let arrays = [("members", members), ("places", &places)];
        calls.push(Call::of(&self.places, &sizes[..1], &arrays));
        put(device, &calls)?;
        drop(calls);
        let [_, members] = sort.into_sorted();
        Ok(Aggregates { count, n_members: n, of, starts, members, places })
    }

    /// The keys of nodes, those of roots the largest number of all.
    fn roots(
        &self,
        device: &dyn Device,
        lists: &PatternKernels,
        matrix: &BlockRows<'_>,
        kinds: &Buffer,
    ) -> Result<Buffer, SolveError> {
        let n = matrix.rows;
        let (sizes, rows) = (matrix.sizes(), [&matrix.lists()[..], &[("kinds", kinds)]].concat());
        let integers = |n: usize| device.allocate_unset(4 * n as u64);
        let [keys, near, is_open] = [integers(n)?, integers(n)?, integers(n)?];
        // what is largest around a node is not known yet
        device.fill(&near, 0)?;
        let open = Scan::new(device, n)?;
        let arrays = [("row_starts", &**matrix.row_starts), ("kinds", kinds), ("keys", &keys)];
        let mut calls = vec![Call::of(&self.keys, &sizes, &arrays)];
        for turn in 0.. {
            let round = || {
                let of_keys = [("keys", &keys), ("largest", &near)];
                let around = Call::of(&self.largest, &sizes, &[&rows[..], &of_keys].concat());
                let of_open = [&rows[..], &of_keys, &[("is_open", &is_open)]].concat();
                [around, Call::of(&self.choose, &sizes, &of_open)]
            };
            calls.extend((0..ROUNDS[turn.min(1)]).flat_map(|_| round()));
            open.push_total(lists, &is_open, &mut calls);
            put(device, &calls)?;
            // each round has a root, that of the largest key
            if open.total(device)? == 0 {
                break;
            }
            calls.clear();
        }
        drop(calls);
        Ok(keys)
    }
}
