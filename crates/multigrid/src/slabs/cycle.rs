//! V-cycles of a part, and its operator.

use super::Exchanges;
use super::level::{Gathering, Level, OnLevel, Planes, Slab, SlabMesh};
use crate::hierarchy::{Matrices, scale, taken};
use crate::kernels::Operation;
use crate::line::Line;
use crate::schedules::program_on_slab;
use crate::texts::{compiled, narrow_and_widen};
use crate::{Element, HierarchyOptions, MultigridError, Precision};
use purlin_codegen::Program;
use purlin_runtime::{Arg, Backend, Buffer, Device, Executable};
use purlin_solve::{Call, Communicator, Operator, Queue, Wire};

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

/// Kernels on any vectors, in the precision of cycles.
struct Texts {
    clear: Executable,
    copy: Executable,
    pack: Executable,
    unpack: Executable,
    add: Executable,
}

/// The levels of a part.
pub(super) struct SlabCycle {
    element: Element,
    precision: Precision,
    pub(super) exchanges: Exchanges,
    matrices: Matrices,
    smooth: Executable,
    residual: Executable,
    restrict: Executable,
    prolongate: Executable,
    texts: Texts,
    narrow_and_widen: Option<[Executable; 2]>,
    /// Those that every part has as a whole, then those in slabs, the coarsest first.
    levels: Vec<Level>,
    /// How many of them every part has.
    n_whole: usize,
    /// Steps of the smoother that solve on the coarsest level.
    steps: usize,
    gathering: Gathering,
}

impl SlabCycle {
    /// Levels in slabs from the finest mesh down, as long as slabs have so many layers of cells.
    pub(super) fn new(
        device: &dyn Device,
        element: Element,
        (mesh, precision, least): (SlabMesh, Precision, usize),
        communicator: &dyn Communicator,
        programs: &Programs,
    ) -> Result<Self, MultigridError> {
        let (rank, size) = (communicator.rank(), communicator.size());
        let line = Line::new(element.degree)?;
        let (in_slabs, whole) = mesh.levels(size, least);
        let new = |slab: Slab| Level::new(device, element, slab, precision, rank);
        let of_slabs = in_slabs.iter().map(|cells| new(Slab::of(mesh.at(*cells), rank, size)));
        let of_whole = whole.iter().map(|cells| new(Slab::of(mesh.at(*cells), 0, 1)));
        let levels = of_slabs.chain(of_whole).rev().collect::<Result<_, _>>()?;
        let options = HierarchyOptions { precision, ..HierarchyOptions::default() };
        let made = |operation| programs.compile(device, operation, precision);
        let text = |text, vars: &[&str]| compiled(device, text, vars, precision);
        Ok(Self {
            element,
            precision,
            exchanges: Exchanges::default(),
            matrices: Matrices::new(device, element, &line, options)?,
            smooth: made(Operation::Smooth)?,
            residual: made(Operation::Residual)?,
            restrict: made(Operation::Restrict)?,
            prolongate: made(Operation::Prolongate)?,
            texts: Texts {
                clear: text(include_str!("../../kernels/clear.purlin"), &["v"])?,
                copy: text(include_str!("../../kernels/copy.purlin"), &["from", "to"])?,
                pack: text(include_str!("../../kernels/pack.purlin"), &["from"])?,
                unpack: text(include_str!("../../kernels/unpack.purlin"), &["to"])?,
                add: text(include_str!("../../kernels/add_received.purlin"), &["to"])?,
            },
            narrow_and_widen: match precision {
                Precision::Double => None,
                Precision::Single => Some(narrow_and_widen(device)?),
            },
            levels,
            n_whole: whole.len(),
            steps: mesh.steps_of_coarsest(),
            gathering: Gathering::new(device, element, mesh.at(whole[0]), communicator)?,
        })
    }

    /// The finest level.
    pub(super) fn finest(&self) -> OnLevel<'_> {
        self.levels[self.levels.len() - 1].vectors()
    }

    /// How many levels are in slabs, and how many every part has as a whole.
    pub(super) const fn n_levels(&self) -> [usize; 2] {
        [self.levels.len() - self.n_whole, self.n_whole]
    }

    /// Numbers that a part sends in a V-cycle.
    pub(super) fn sent(&self) -> usize {
        let of = |wire: &Option<Wire>| wire.as_ref().map_or(0, Wire::n_sent);
        let levels: usize = self.levels.iter().map(|level| 3 * of(&level.wire)).sum();
        // the right-hand side of the finest level is not exchanged
        levels - self.levels.last().map_or(0, |level| of(&level.wire)) + of(&self.gathering.wire)
    }

    /// One step of the smoother, with what is exchanged in its midst.
    fn smooth<'a>(&'a self, at: OnLevel<'a>, queue: &mut Queue<'a>) {
        let Slab { below, own, above, .. } = at.slab;
        let cuts = [(below > 0).then_some(0), (above > 0).then_some(below + own - 1)];
        let inner = |queue: &mut Queue<'a>| {
            if own > 2 {
                self.colours(at, below + 1, own / 2 - 1, queue);
            }
        };
        self.colours(at, below, own / 2, queue);
        let exchanged = at.wire.filter(|_| self.exchanges != Exchanges::LeftOut);
        if let Some(wire) = exchanged {
            let [sent, received] = at.slab.of_vectors(self.element);
            queue.extend(self.packed(at.slab, at.x, sent, wire));
            queue.start(wire);
            if self.exchanges == Exchanges::Overlapped {
                inner(queue);
            }
            queue.finish(wire);
            queue.extend(self.received(&self.texts.unpack, at.slab, at.x, received, wire));
        }
        if exchanged.is_none() || self.exchanges == Exchanges::InTurn {
            inner(queue);
        }
        for layer in cuts.into_iter().flatten() {
            self.colours(at, layer, 1, queue);
        }
    }

    /// Patches from a layer on, so many above each other, in every colour of the other axes.
    fn colours<'a>(&'a self, at: OnLevel<'a>, layer: usize, patches: usize, queue: &mut Queue<'a>) {
        let others = self.element.dimension.axes() - 1;
        let m = &self.matrices;
        for colour in 0..1_i64 << others {
            let mut args = vec![
                ("n", Arg::Param(at.slab.cells as i64)),
                ("nz", Arg::Param(patches as i64)),
                ("nl", Arg::Param(at.slab.layers() as i64)),
                ("scale", self.scale(at.slab)),
                ("x", Arg::Buffer(at.x)),
                ("b", Arg::Buffer(at.b)),
                ("A", Arg::Buffer(&m.stiffness)),
                ("M", Arg::Buffer(&m.mass)),
                ("S", Arg::Buffer(&m.eigenvectors)),
                ("lambda", Arg::Buffer(&m.eigenvalues)),
            ];
            // along the slowest axis it is the first layer
            let places = (0..others).map(|axis| colour >> axis & 1).chain([layer as i64]);
            args.extend(["c0", "c1", "c2"].into_iter().zip(places.map(Arg::Param)));
            queue.push(Call::new(&self.smooth, taken(&self.smooth, args)));
        }
    }

    fn scale(&self, slab: Slab) -> Arg<'static> {
        let scale = scale(self.element, slab.cells);
        match self.precision {
            Precision::Double => Arg::F64(scale),
            Precision::Single => Arg::F32(scale as f32),
        }
    }

    /// A piece of a vector and its place among what is under way: numbers, first, all, place, all
    /// there.
    fn pieces(
        &self,
        slab: Slab,
        planes: [Planes; 2],
    ) -> impl Iterator<Item = [(&'static str, usize); 3]> + use<> {
        let plane = slab.plane(self.element);
        let is_there = [slab.below > 0, slab.above > 0];
        let mut at = 0;
        planes.into_iter().zip(is_there).filter(|(_, is_there)| *is_there).map(move |(planes, _)| {
            let n = planes.count * plane;
            at += n;
            [("n", n), ("first", planes.first * plane), ("at", at - n)]
        })
    }

    fn packed<'a>(&'a self, slab: Slab, v: &'a Buffer, planes: [Planes; 2], wire: &'a Wire) -> Vec<Call<'a>> {
        let all = [("n_from", slab.nodes(self.element)), ("n_to", wire.n_sent())];
        let call = |piece: [_; 3]| {
            let sizes = [&piece[..], &all].concat();
            Call::of(&self.texts.pack, &sizes, &[("from", v), ("to", wire.packed())])
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
        let all = [("n_to", slab.nodes(self.element)), ("n_from", wire.n_sent())];
        let call = |piece: [_; 3]| {
            let sizes = [&piece[..], &all].concat();
            Call::of(kernel, &sizes, &[("from", wire.ghosts()), ("to", v)])
        };
        self.pieces(slab, planes).map(call).collect()
    }

    fn cleared<'a>(&'a self, n: usize, v: &'a Buffer) -> Call<'a> {
        Call::of(&self.texts.clear, &[("n", n)], &[("v", v)])
    }

    /// The residual at all nodes that a restriction reads.
    fn residual<'a>(&'a self, at: OnLevel<'a>, queue: &mut Queue<'a>) {
        let n = at.slab.nodes(self.element);
        queue.push(Call::of(&self.texts.copy, &[("n", n)], &[("from", at.b), ("to", at.r)]));
        let args = vec![
            ("n", Arg::Param(at.slab.cells as i64)),
            ("nz", Arg::Param((at.slab.below + at.slab.own) as i64)),
            ("nl", Arg::Param(at.slab.layers() as i64)),
            ("scale", self.scale(at.slab)),
            ("x", Arg::Buffer(at.x)),
            ("A", Arg::Buffer(&self.matrices.cell_stiffness)),
            ("M", Arg::Buffer(&self.matrices.cell_mass)),
            ("r", Arg::Buffer(at.r)),
        ];
        queue.push(Call::new(&self.residual, taken(&self.residual, args)));
    }

    /// Sizes of a transfer between a level and the one below: of the coarser one its cells a side,
    /// the first layer that counts and all layers, and of the finer one likewise.
    const fn between(coarse: (usize, usize, usize), fine: Slab) -> [(&'static str, usize); 5] {
        let (n, z, nl) = coarse;
        [("n", n), ("z", z), ("nl", nl), ("zf", fine.below), ("nf", fine.layers())]
    }

    fn v_cycle<'a>(&'a self, level: usize, at: OnLevel<'a>, queue: &mut Queue<'a>) {
        let Some(below) = level.checked_sub(1).map(|below| self.levels[below].vectors()) else {
            return (0..self.steps).for_each(|_| self.smooth(at, queue));
        };
        self.smooth(at, queue);
        self.residual(at, queue);
        let p = &self.matrices.prolongation;
        let is_gathered = level == self.n_whole;
        let OnLevel { slab, x, b, .. } = below;
        let first = if is_gathered { self.gathering.slab.first } else { slab.below };
        let n = slab.nodes(self.element);
        let sizes = Self::between((slab.cells, first, slab.layers()), at.slab);
        let layers = |layers: usize| [&sizes[..], &[("nz", layers)]].concat();
        queue.extend([self.cleared(n, b), self.cleared(n, x)]);
        let arrays = [("r", at.r), ("P", p), ("rc", b)];
        queue.push(Call::of(&self.restrict, &layers(at.slab.own / 2), &arrays));
        match is_gathered {
            true => self.gather(below, queue),
            false => self.share_right_hand_side(below, queue),
        }
        self.v_cycle(level - 1, below, queue);
        let arrays = [("xc", x), ("P", p), ("x", at.x)];
        // the plane of the cut above belongs to the layer behind it
        let sizes = layers(at.slab.own / 2 + at.slab.above);
        queue.push(Call::of(&self.prolongate, &sizes, &arrays));
        self.smooth(at, queue);
    }

    /// Adds what neighbours have of a right-hand side.
    fn share_right_hand_side<'a>(&'a self, at: OnLevel<'a>, queue: &mut Queue<'a>) {
        let Some(wire) = at.wire.filter(|_| self.exchanges != Exchanges::LeftOut) else { return };
        let [sent, added] = at.slab.of_right_hand_sides(self.element);
        queue.extend(self.packed(at.slab, at.b, sent, wire));
        queue.start(wire);
        queue.finish(wire);
        queue.extend(self.received(&self.texts.add, at.slab, at.b, added, wire));
    }

    /// Adds what all others have of a right-hand side.
    fn gather<'a>(&'a self, OnLevel { slab: whole, b, .. }: OnLevel<'a>, queue: &mut Queue<'a>) {
        let Gathering { slab, rank, size, wire } = &self.gathering;
        let Some(wire) = wire.as_ref().filter(|_| self.exchanges != Exchanges::LeftOut) else { return };
        let (plane, all) = (slab.plane(self.element), whole.nodes(self.element));
        let piece = self.element.nodes_of_side(slab.own) * plane;
        let first = |part: usize| self.element.degree * slab.own * part * plane;
        let sizes = [("n", piece), ("first", first(*rank)), ("n_from", all), ("at", 0), ("n_to", piece)];
        queue.push(Call::of(&self.texts.pack, &sizes, &[("from", b), ("to", wire.packed())]));
        queue.start(wire);
        queue.finish(wire);
        let others = (0..*size).filter(|peer| peer != rank).enumerate();
        queue.extend(others.map(|(at, peer)| {
            let place = [("at", at * piece), ("n_from", wire.n_sent())];
            let sizes = [&[("n", piece), ("first", first(peer)), ("n_to", all)][..], &place].concat();
            Call::of(&self.texts.add, &sizes, &[("from", wire.ghosts()), ("to", b)])
        }));
    }
}

impl Operator for SlabCycle {
    fn size(&self) -> usize {
        self.finest().slab.nodes(self.element)
    }

    /// A V-cycle from zero.
    fn apply<'a>(&'a self, x: &'a Buffer, y: &'a Buffer, queue: &mut Queue<'a>) {
        let (own, n, level) = (self.finest(), self.size(), self.levels.len() - 1);
        match &self.narrow_and_widen {
            None => {
                queue.push(self.cleared(n, y));
                self.v_cycle(level, OnLevel { x: y, b: x, ..own }, queue);
            }
            Some([narrow, widen]) => {
                queue.push(Call::of(narrow, &[("n", n)], &[("from", x), ("to", own.b)]));
                queue.push(self.cleared(n, own.x));
                self.v_cycle(level, own, queue);
                queue.push(Call::of(widen, &[("n", n)], &[("from", own.x), ("to", y)]));
            }
        }
    }
}

/// The operator of a slab, in double precision. What it makes is right at all nodes but those of
/// the outermost planes beside the slab, which nothing reads.
pub(super) struct SlabOperator {
    element: Element,
    slab: Slab,
    mass: Buffer,
    stiffness: Buffer,
    clear: Executable,
    residual: Executable,
}

impl SlabOperator {
    pub(super) fn new(
        device: &dyn Device,
        element: Element,
        slab: Slab,
        programs: &Programs,
    ) -> Result<Self, MultigridError> {
        let line = Line::new(element.degree)?;
        Ok(Self {
            element,
            slab,
            mass: purlin_runtime::buffer_of(device, &line.cell_mass.entries)?,
            stiffness: purlin_runtime::buffer_of(device, &line.cell_stiffness.entries)?,
            clear: compiled(device, include_str!("../../kernels/clear.purlin"), &["v"], Precision::Double)?,
            residual: programs.compile(device, Operation::Residual, Precision::Double)?,
        })
    }
}

impl Operator for SlabOperator {
    fn size(&self) -> usize {
        self.slab.nodes(self.element)
    }

    fn apply<'a>(&'a self, x: &'a Buffer, y: &'a Buffer, queue: &mut Queue<'a>) {
        let layers = Arg::Param(self.slab.layers() as i64);
        let args = vec![
            ("n", Arg::Param(self.slab.cells as i64)),
            ("nz", layers),
            ("nl", layers),
            ("scale", Arg::F64(-scale(self.element, self.slab.cells))), // the kernel subtracts
            ("x", Arg::Buffer(x)),
            ("A", Arg::Buffer(&self.stiffness)),
            ("M", Arg::Buffer(&self.mass)),
            ("r", Arg::Buffer(y)),
        ];
        queue.push(Call::of(&self.clear, &[("n", self.size())], &[("v", y)]));
        queue.push(Call::new(&self.residual, taken(&self.residual, args)));
    }
}
