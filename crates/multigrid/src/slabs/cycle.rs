//! What the parts of a mesh in slabs exchange in a V-cycle.

use super::Exchanges;
use super::level::{Gathering, Planes, Slab, SlabMesh};
use super::neighbours::Neighbours;
use crate::hierarchy::{Hierarchy, LevelKernels};
use crate::kernels::Operation;
use crate::level::{At, Level};
use crate::options::HierarchyOptions;
use crate::schedules::program_on_slab;
use crate::texts::compiled;
use crate::{Element, MultigridError, Precision};
use kingpost_codegen::Program;
use kingpost_runtime::{Backend, Buffer, Device, Executable};
use kingpost_solve::{Call, Communicator, Queue, Wire};

/// A program for a kind of device.
struct Made {
    on: (Backend, String),
    of: (Operation, Precision),
    program: Program,
}

/// The programs of operations on slabs for the devices of a solver: proved once for each kind of
/// device.
pub(super) struct Programs(Vec<Made>);

impl Programs {
    pub(super) fn new(
        devices: &[&dyn Device],
        element: Element,
        precision: Precision,
    ) -> Result<Self, MultigridError> {
        let mut all: Vec<Made> = Vec::new();
        let of_cycle = [Operation::Smooth, Operation::Residual, Operation::Restrict, Operation::Prolongate];
        let in_double = [Operation::Residual, Operation::Load, Operation::SquaredError];
        let of_cycle = of_cycle.map(|operation| (operation, precision));
        let in_double = in_double.map(|operation| (operation, Precision::Double));
        for info in devices.iter().map(|device| device.info()) {
            let on = (info.backend, info.arch.clone());
            for of in of_cycle.into_iter().chain(in_double) {
                if all.iter().all(|made| (&made.on, made.of) != (&on, of)) {
                    let program = program_on_slab(of.0, element, of.1, (on.0, &on.1))?;
                    all.push(Made { on: on.clone(), of, program });
                }
            }
        }
        Ok(Self(all))
    }

    /// The code of an operation on a device.
    pub(super) fn compile(
        &self,
        device: &dyn Device,
        operation: Operation,
        precision: Precision,
    ) -> Result<Executable, MultigridError> {
        let info = device.info();
        let suits = |made: &&Made| {
            (made.on.0, &made.on.1, made.of) == (info.backend, &info.arch, (operation, precision))
        };
        match self.0.iter().find(suits) {
            Some(made) => Ok(device.compile(&made.program)?),
            None => Err(MultigridError::NoSlab(operation)),
        }
    }
}

impl<'d> Hierarchy<'d> {
    /// Levels in slabs from the finest mesh down, as long as slabs have enough layers of cells.
    pub(super) fn of_part(
        device: &'d dyn Device,
        element: Element,
        (mesh, precision, least): (SlabMesh, Precision, usize),
        communicator: &dyn Communicator,
        programs: &Programs,
    ) -> Result<Self, MultigridError> {
        let (rank, size) = (communicator.rank(), communicator.size());
        let (in_slabs, whole) = mesh.levels(size, least);
        let new = |slab: Slab| Level::new(device, element, slab, precision, rank);
        let of_slabs = in_slabs.iter().map(|cells| new(Slab::of(mesh.at(*cells), rank, size)));
        let of_whole = whole.iter().map(|cells| new(Slab::of(mesh.at(*cells), 0, 1)));
        let levels = of_slabs.chain(of_whole).rev().collect::<Result<_, _>>()?;
        let options = HierarchyOptions { precision, ..HierarchyOptions::default() };
        let made = |operation| programs.compile(device, operation, precision);
        let kernels = LevelKernels {
            smooth: vec![(Operation::Smooth.blocks(), made(Operation::Smooth)?)],
            coarse: Vec::new(),
            residual: made(Operation::Residual)?,
            prolongate: made(Operation::Prolongate)?,
            restrict: made(Operation::Restrict)?,
        };
        let text = |text, vars: &[&str]| compiled(device, text, vars, precision);
        let neighbours = Neighbours {
            exchanges: Exchanges::default(),
            pack: text(include_str!("../../kernels/pack.kingpost"), &["from"])?,
            unpack: text(include_str!("../../kernels/unpack.kingpost"), &["to"])?,
            add: text(include_str!("../../kernels/add_received.kingpost"), &["to"])?,
            n_whole: whole.len(),
            steps: mesh.steps_of_coarsest(),
            gathering: Gathering::new(device, element, mesh.at(whole[0]), communicator)?,
        };
        let mut hierarchy = Self::of_levels(device, element, options, kernels, levels)?;
        hierarchy.neighbours = Some(neighbours);
        Ok(hierarchy)
    }
}

impl Hierarchy<'_> {
    /// How many levels are in slabs, and how many every part has as a whole.
    pub(super) fn n_levels(&self) -> [usize; 2] {
        let n_whole = self.neighbours.as_ref().map_or(0, |all| all.n_whole);
        [self.levels.len() - n_whole, n_whole]
    }

    /// Numbers that a part sends in a V-cycle.
    pub(super) fn sent(&self) -> usize {
        let levels: usize = self.levels.iter().map(|level| 3 * level.sent()).sum();
        let gathered = self.neighbours.as_ref().and_then(|all| all.gathering.wire.as_ref());
        // the right-hand side of the finest level is not exchanged
        levels - self.levels.last().map_or(0, Level::sent) + gathered.map_or(0, Wire::n_sent)
    }

    /// One step of the smoother, with what is exchanged in its midst.
    pub(crate) fn smooth_slab<'a>(&'a self, with: &'a Neighbours, at: At<'a>, queue: &mut Queue<'a>) {
        let Slab { below, own, above, .. } = at.slab;
        let cuts = [(below > 0).then_some(0), (above > 0).then_some(below + own - 1)];
        let inner = |queue: &mut Queue<'a>| {
            if own > 2 {
                self.colours(at, below + 1, own / 2 - 1, queue);
            }
        };
        self.colours(at, below, own / 2, queue);
        let exchanged = at.wire.filter(|_| with.exchanges != Exchanges::LeftOut);
        if let Some(wire) = exchanged {
            let [sent, received] = at.slab.of_vectors(self.element());
            queue.extend(self.packed(with, at.slab, at.x, sent, wire));
            queue.start(wire);
            if with.exchanges == Exchanges::Overlapped {
                inner(queue);
            }
            queue.finish(wire);
            queue.extend(self.received(&with.unpack, at.slab, at.x, received, wire));
        }
        if exchanged.is_none() || with.exchanges == Exchanges::InTurn {
            inner(queue);
        }
        for layer in cuts.into_iter().flatten() {
            self.colours(at, layer, 1, queue);
        }
    }

    /// Patches from a layer on, several above each other, in every colour of the other axes.
    fn colours<'a>(&'a self, at: At<'a>, layer: usize, patches: usize, queue: &mut Queue<'a>) {
        for colour in 0..1_usize << (self.element().dimension.axes() - 1) {
            for (blocks, executable) in &self.smooth {
                let place = (colour, [0; 3], Some([layer, patches]));
                queue.push(Call::new(executable, self.smoothing(at, place, *blocks, executable)));
            }
        }
    }

    /// A piece of a vector and its place among what is under way: numbers, first, all, place, all
    /// there.
    fn pieces(
        &self,
        slab: Slab,
        planes: [Planes; 2],
    ) -> impl Iterator<Item = [(&'static str, usize); 3]> + use<> {
        let plane = slab.plane(self.element());
        let is_there = [slab.below > 0, slab.above > 0];
        let mut at = 0;
        planes.into_iter().zip(is_there).filter(|(_, is_there)| *is_there).map(move |(planes, _)| {
            let n = planes.count * plane;
            at += n;
            [("n", n), ("first", planes.first * plane), ("at", at - n)]
        })
    }

    fn packed<'a>(
        &'a self,
        with: &'a Neighbours,
        slab: Slab,
        v: &'a Buffer,
        planes: [Planes; 2],
        wire: &'a Wire,
    ) -> Vec<Call<'a>> {
        let all = [("n_from", slab.nodes(self.element())), ("n_to", wire.n_sent())];
        let call = |piece: [_; 3]| {
            let sizes = [&piece[..], &all].concat();
            Call::of(&with.pack, &sizes, &[("from", v), ("to", wire.packed())])
        };
        self.pieces(slab, planes).map(call).collect()
    }

    fn received<'a>(
        &'a self,
        kernel: &'a Executable,
        slab: Slab,
        v: &'a Buffer,
        planes: [Planes; 2],
        wire: &'a Wire,
    ) -> Vec<Call<'a>> {
        let all = [("n_to", slab.nodes(self.element())), ("n_from", wire.n_sent())];
        let call = |piece: [_; 3]| {
            let sizes = [&piece[..], &all].concat();
            Call::of(kernel, &sizes, &[("from", wire.ghosts()), ("to", v)])
        };
        self.pieces(slab, planes).map(call).collect()
    }

    /// Adds what other parts have of the right-hand side below a level: neighbours, or all of a level that
    /// each has as a whole.
    pub(crate) fn add_residuals<'a>(
        &'a self,
        with: &'a Neighbours,
        level: usize,
        below: At<'a>,
        queue: &mut Queue<'a>,
    ) {
        match level == with.n_whole {
            true => self.gather(with, below, queue),
            false => self.share_right_hand_side(with, below, queue),
        }
    }

    /// Adds what neighbours have of a right-hand side.
    fn share_right_hand_side<'a>(&'a self, with: &'a Neighbours, at: At<'a>, queue: &mut Queue<'a>) {
        let Some(wire) = at.wire.filter(|_| with.exchanges != Exchanges::LeftOut) else { return };
        let [sent, added] = at.slab.of_right_hand_sides(self.element());
        queue.extend(self.packed(with, at.slab, at.b, sent, wire));
        queue.start(wire);
        queue.finish(wire);
        queue.extend(self.received(&with.add, at.slab, at.b, added, wire));
    }

    /// Adds what all others have of a right-hand side.
    fn gather<'a>(&'a self, with: &'a Neighbours, at: At<'a>, queue: &mut Queue<'a>) {
        let (element, At { slab: whole, b, .. }) = (self.element(), at);
        let Gathering { slab, rank, size, wire } = &with.gathering;
        let Some(wire) = wire.as_ref().filter(|_| with.exchanges != Exchanges::LeftOut) else { return };
        let (plane, all) = (slab.plane(element), whole.nodes(element));
        let piece = element.nodes_of_side(slab.own) * plane;
        let first = |part: usize| element.degree * slab.own * part * plane;
        let sizes = [("n", piece), ("first", first(*rank)), ("n_from", all), ("at", 0), ("n_to", piece)];
        queue.push(Call::of(&with.pack, &sizes, &[("from", b), ("to", wire.packed())]));
        queue.start(wire);
        queue.finish(wire);
        let others = (0..*size).filter(|peer| peer != rank).enumerate();
        queue.extend(others.map(|(at, peer)| {
            let place = [("at", at * piece), ("n_from", wire.n_sent())];
            let sizes = [&[("n", piece), ("first", first(peer)), ("n_to", all)][..], &place].concat();
            Call::of(&with.add, &sizes, &[("from", wire.ghosts()), ("to", b)])
        }));
    }
}
