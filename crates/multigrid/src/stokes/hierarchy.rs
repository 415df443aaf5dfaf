//! The levels of a mesh with their kernels, and the V-cycle.

use super::kernels::{StokesOperation, program};
use super::line::StokesLine;
use super::patch::PatchLine;
use crate::arguments::taken;
use crate::hierarchy::fits;
use crate::on_mesh::upload;
use crate::texts::{Vectors, compiled, narrow_and_widen};
use crate::{Element, MultigridError, Precision};
use kingpost_runtime::{Arg, Backend, Buffer, Device, Executable, buffer_of};
use kingpost_solve::{Call, Operator, Queue};

/// The highest degree: blocks of the Schur complement have (k + 1)^d rows, whose eigenvectors are
/// computed.
const MAX_DEGREE: usize = 7;

fn check(element: Element) -> Result<(), MultigridError> {
    match element.degree {
        1..=MAX_DEGREE => Ok(()),
        degree => Err(MultigridError::Degree { degree, highest: MAX_DEGREE }),
    }
}

/// Numbers of a vector, those around the mesh among them, or the largest number.
#[must_use]
pub fn numbers(element: Element, cells: usize) -> usize {
    let axes = element.dimension.axes();
    let side = (element.degree + 1).saturating_mul(cells.saturating_add(2));
    side.saturating_pow(axes as u32).saturating_mul(axes + 1)
}

/// The operator of a mesh without its matrix.
pub struct StokesOperator {
    element: Element,
    cells: usize,
    precision: Precision,
    clear: Executable,
    residual: Executable,
    tables: Vec<(&'static str, Buffer)>,
    /// Whether a cell is the first along an axis, lies between others, or is the last.
    places: Buffer,
}

impl StokesOperator {
    /// On `cells` cells a side, in double precision.
    ///
    /// # Errors
    /// A degree that is not from 1 to 7, fewer than two cells a side, a device that refuses its
    /// kernel.
    pub fn new(device: &dyn Device, element: Element, cells: usize) -> Result<Self, MultigridError> {
        check(element)?;
        if cells < 2 {
            return Err(MultigridError::Cells { cells, nearest: 2 });
        }
        Self::with(device, element, cells, Precision::Double)
    }

    fn with(
        device: &dyn Device,
        element: Element,
        cells: usize,
        precision: Precision,
    ) -> Result<Self, MultigridError> {
        let line = StokesLine::new(element.degree)?;
        let of = |name, values: &[f64]| Ok::<_, MultigridError>((name, upload(device, values, precision)?));
        let places: Vec<i32> =
            (0..cells).map(|cell| i32::from(cell > 0) + i32::from(cell + 1 == cells)).collect();
        Ok(Self {
            element,
            cells,
            precision,
            clear: compiled(device, include_str!("../../kernels/clear.kingpost"), &["v"], precision)?,
            residual: device.compile(&program(
                StokesOperation::Residual,
                element,
                precision,
                device.info().backend,
            )?)?,
            tables: vec![
                of("K", &line.across.entries)?,
                of("A", &line.stiffness.entries)?,
                of("M", &line.mass.entries)?,
                of("G", &line.gradient.entries)?,
                of("D", &line.divergence.entries)?,
            ],
            places: buffer_of(device, &places)?,
        })
    }

    /// `r = beta b - alpha A x`
    fn residual<'a>(&'a self, [alpha, beta]: [f64; 2], [x, b, r]: [&'a Buffer; 3]) -> Call<'a> {
        let number = |value: f64| match self.precision {
            Precision::Double => Arg::F64(value),
            Precision::Single => Arg::F32(value as f32),
        };
        let mut args = vec![
            ("n", Arg::Param(self.cells as i64)),
            ("alpha", number(alpha)),
            ("beta", number(beta)),
            ("x", Arg::Buffer(x)),
            ("b", Arg::Buffer(b)),
            ("r", Arg::Buffer(r)),
            ("place", Arg::Buffer(&self.places)),
        ];
        args.extend(self.tables.iter().map(|(name, buffer)| (*name, Arg::Buffer(buffer))));
        Call::new(&self.residual, taken(&self.residual, args))
    }
}

impl Operator for StokesOperator {
    fn size(&self) -> usize {
        numbers(self.element, self.cells)
    }

    fn apply<'a>(&'a self, x: &'a Buffer, y: &'a Buffer, queue: &mut Queue<'a>) {
        // nothing else writes what lies around the mesh
        queue.push(Call::of(&self.clear, &[("n", self.size())], &[("v", y)]));
        queue.push(self.residual([-1.0, 0.0], [x, x, y]));
    }
}

/// The vectors of a level with its operator.
struct Level {
    operator: StokesOperator,
    x: Buffer,
    b: Buffer,
    r: Buffer,
}

/// The vectors that a cycle works on.
#[derive(Clone, Copy)]
struct At<'a> {
    level: &'a Level,
    x: &'a Buffer,
    b: &'a Buffer,
}

impl Level {
    const fn own(&self) -> At<'_> {
        At { level: self, x: &self.x, b: &self.b }
    }
}

/// The kernels of a step of the smoother. Both have the same results up to roundings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StokesSmoother {
    /// Residuals of the whole mesh, then the solutions on the patches of a colour.
    Global,
    /// Both in one kernel, which reads what it needs around a patch, and writes another vector.
    Fused,
}

impl StokesSmoother {
    /// The fastest that is known of a device's kind.
    #[must_use]
    pub const fn fastest(backend: Backend) -> Self {
        match backend {
            Backend::C => Self::Global,
            Backend::OpenCl | Backend::Cuda => Self::Fused,
        }
    }
}

/// What a fused step launches for a colour.
struct Fused {
    smooth: Executable,
    keep: Executable,
}

/// Nested meshes of the unit square or cube on a device, from two cells a side to the finest one,
/// with the kernels of their levels.
pub struct StokesHierarchy<'d> {
    device: &'d dyn Device,
    element: Element,
    steps: [u32; 2],
    solve: Executable,
    fused: Option<Fused>,
    prolongate: Executable,
    restrict: Executable,
    tables: Vec<(&'static str, Buffer)>,
    vectors: Vectors,
    narrow_and_widen: Option<[Executable; 2]>,
    /// The coarsest first.
    levels: Vec<Level>,
}

impl<'d> StokesHierarchy<'d> {
    /// Compiles the kernels and allocates the vectors of all levels up to `cells` cells a side, for
    /// elements RT_k of the degree k of `element`, with a number of smoothing steps before the
    /// coarser level and after it.
    ///
    /// # Errors
    /// A degree that is not from 1 to 7; cells that are no power of two from 2 on; no smoothing
    /// step; vectors that do not fit, before one is allocated; a device that refuses.
    pub fn new(
        device: &'d dyn Device,
        element: Element,
        cells: usize,
        precision: Precision,
        steps: [u32; 2],
    ) -> Result<Self, MultigridError> {
        let smoother = StokesSmoother::fastest(device.info().backend);
        Self::with_smoother(device, element, cells, precision, steps, smoother)
    }

    /// The same with the kernels of a smoother instead of the fastest that are known.
    ///
    /// # Errors
    /// As [`Self::new`], and patches that do not fit into the device's local memory.
    pub fn with_smoother(
        device: &'d dyn Device,
        element: Element,
        cells: usize,
        precision: Precision,
        steps: [u32; 2],
        smoother: StokesSmoother,
    ) -> Result<Self, MultigridError> {
        check(element)?;
        if steps == [0, 0] {
            return Err(MultigridError::NoSteps);
        }
        if cells < 2 || !cells.is_power_of_two() {
            let nearest = cells.max(2).checked_next_power_of_two().unwrap_or(2);
            return Err(MultigridError::Cells { cells, nearest });
        }
        fits(device, bytes(element, cells, precision))?;
        let made = |operation| -> Result<Executable, MultigridError> {
            Ok(device.compile(&program(operation, element, precision, device.info().backend)?)?)
        };
        let level = |log: u32| -> Result<Level, MultigridError> {
            let vector = || zeros(device, precision.bytes() * numbers(element, 1 << log) as u64);
            let operator = StokesOperator::with(device, element, 1 << log, precision)?;
            Ok(Level { operator, x: vector()?, b: vector()?, r: vector()? })
        };
        Ok(Self {
            device,
            element,
            steps,
            solve: made(StokesOperation::Solve)?,
            fused: match smoother {
                StokesSmoother::Global => None,
                StokesSmoother::Fused => {
                    Some(Fused { smooth: made(StokesOperation::Smooth)?, keep: made(StokesOperation::Keep)? })
                }
            },
            prolongate: made(StokesOperation::Prolongate)?,
            restrict: made(StokesOperation::Restrict)?,
            tables: tables(device, element, precision)?,
            vectors: Vectors::new(device, precision)?,
            narrow_and_widen: match precision {
                Precision::Double => None,
                Precision::Single => Some(narrow_and_widen(device)?),
            },
            levels: (1..=cells.ilog2()).map(level).collect::<Result<_, _>>()?,
        })
    }

    fn finest(&self) -> &Level {
        &self.levels[self.levels.len() - 1]
    }

    /// One step of the smoother on the finest level, from what its vectors hold; its seconds by the
    /// device's clock.
    ///
    /// # Errors
    /// A failing driver.
    pub fn smooth(&self) -> Result<f64, MultigridError> {
        let mut queue = Queue::new();
        self.smooth_in(self.finest().own(), &mut queue);
        Ok(queue.run(self.device)?)
    }

    /// One V-cycle on the finest level, likewise.
    ///
    /// # Errors
    /// A failing driver.
    pub fn v_cycle(&self) -> Result<f64, MultigridError> {
        let mut queue = Queue::new();
        self.cycle_in(self.levels.len() - 1, self.finest().own(), &mut queue);
        Ok(queue.run(self.device)?)
    }

    /// `r = b - A x` on the finest level, likewise.
    ///
    /// # Errors
    /// A failing driver.
    pub fn residual(&self) -> Result<f64, MultigridError> {
        let Level { operator, x, b, r } = self.finest();
        let mut queue = Queue::new();
        queue.push(operator.residual([1.0, 1.0], [x, b, r]));
        Ok(queue.run(self.device)?)
    }

    /// The right-hand side and the solution of the finest level, in the precision of the hierarchy.
    #[must_use]
    pub fn vectors(&self) -> [&Buffer; 2] {
        let Level { b, x, .. } = self.finest();
        [b, x]
    }

    /// The kernels of its smoother on meshes of more than two cells a side.
    #[must_use]
    pub const fn smoother(&self) -> StokesSmoother {
        match self.fused {
            None => StokesSmoother::Global,
            Some(_) => StokesSmoother::Fused,
        }
    }

    /// The patches of one colour after the other: bit `a` of a colour is that of the first cell of
    /// its patches along axis `a`.
    fn smooth_in<'a>(&'a self, At { level, x, b }: At<'a>, queue: &mut Queue<'a>) {
        let (n, r) = (level.operator.cells, &level.r);
        let colours = match n {
            2 => 1, // one patch
            _ => 1_i64 << self.element.dimension.axes(),
        };
        let Some(Fused { smooth, keep }) = self.fused.as_ref().filter(|_| n > 2) else {
            for colour in 0..colours {
                queue.push(level.operator.residual([1.0, 1.0], [x, b, r]));
                queue.push(self.of_colour(&self.solve, (n, colour), &[("x", x), ("r", r)]));
            }
            return;
        };
        // patches read what others of their colour replace; after an even number of colours it is in x
        let [mut from, mut to] = [x, r];
        for colour in 0..colours {
            queue.push(self.of_colour(smooth, (n, colour), &[("x", from), ("b", b), ("y", to)]));
            if colour > 0 {
                queue.push(self.of_colour(keep, (n, colour), &[("x", from), ("y", to)]));
            }
            [from, to] = [to, from];
        }
    }

    /// A kernel on the patches of a colour.
    fn of_colour<'a>(
        &'a self,
        kernel: &'a Executable,
        (cells, colour): (usize, i64),
        vectors: &[(&'a str, &'a Buffer)],
    ) -> Call<'a> {
        let of_axis = |axis: i64| Arg::Param(colour >> axis & 1);
        let mut args =
            vec![("n", Arg::Param(cells as i64)), ("c0", of_axis(0)), ("c1", of_axis(1)), ("c2", of_axis(2))];
        args.extend(vectors.iter().map(|(name, vector)| (*name, Arg::Buffer(vector))));
        args.extend(self.table_args());
        Call::new(kernel, taken(kernel, args))
    }

    fn table_args<'a>(&'a self) -> impl Iterator<Item = (&'a str, Arg<'a>)> {
        self.tables.iter().map(|(name, buffer)| (*name, Arg::Buffer(buffer)))
    }

    /// Between the level above a coarser one and that.
    fn transferred<'a>(
        &'a self,
        transfer: &'a Executable,
        coarse: &'a Level,
        [from, to]: [(&'a str, &'a Buffer); 2],
    ) -> Call<'a> {
        let mut args = vec![
            ("n", Arg::Param(coarse.operator.cells as i64)),
            (from.0, Arg::Buffer(from.1)),
            (to.0, Arg::Buffer(to.1)),
        ];
        args.extend(self.table_args());
        Call::new(transfer, taken(transfer, args))
    }

    /// The launches of a V-cycle on a level. The colours are taken in the same order before the
    /// coarser level and after it: in two dimensions at degree 2, 6 cycles to 1e-8 for 11 with a
    /// symmetric cycle.
    fn cycle_in<'a>(&'a self, at_level: usize, at: At<'a>, queue: &mut Queue<'a>) {
        let Some(below) = at_level.checked_sub(1) else {
            return self.smooth_in(at, queue); // the patch is the domain
        };
        let At { level, x, b } = at;
        let [before, behind] = self.steps;
        (0..before).for_each(|_| self.smooth_in(at, queue));
        queue.push(level.operator.residual([1.0, 1.0], [x, b, &level.r]));
        let coarse = &self.levels[below];
        for vector in [&coarse.x, &coarse.b] {
            queue.push(self.vectors.cleared(coarse.operator.size(), vector));
        }
        queue.push(self.transferred(&self.restrict, coarse, [("r", &level.r), ("rc", &coarse.b)]));
        self.cycle_in(below, coarse.own(), queue);
        queue.push(self.transferred(&self.prolongate, coarse, [("xc", &coarse.x), ("x", x)]));
        (0..behind).for_each(|_| self.smooth_in(at, queue));
    }
}

/// A V-cycle from zero, as an operator on vectors in double precision. It computes in the precision
/// of its hierarchy.
pub struct StokesCycle<'h, 'd>(pub &'h StokesHierarchy<'d>);

impl Operator for StokesCycle<'_, '_> {
    fn size(&self) -> usize {
        self.0.finest().operator.size()
    }

    fn apply<'a>(&'a self, x: &'a Buffer, y: &'a Buffer, queue: &mut Queue<'a>) {
        let (levels, top) = (self.0, self.0.levels.len() - 1);
        let (own, n) = (levels.finest().own(), [("n", self.size())]);
        match &levels.narrow_and_widen {
            None => {
                queue.push(levels.vectors.cleared(self.size(), y));
                levels.cycle_in(top, At { x: y, b: x, ..own }, queue);
            }
            Some([narrow, widen]) => {
                queue.push(Call::of(narrow, &n, &[("from", x), ("to", own.b)]));
                queue.push(levels.vectors.cleared(self.size(), own.x));
                levels.cycle_in(top, own, queue);
                queue.push(Call::of(widen, &n, &[("from", own.x), ("to", y)]));
            }
        }
    }
}

/// Matrices that kernels take by name, those that are part of their code too.
fn tables(
    device: &dyn Device,
    element: Element,
    precision: Precision,
) -> Result<Vec<(&'static str, Buffer)>, MultigridError> {
    let line = StokesLine::new(element.degree)?;
    let patch = PatchLine::new(&line);
    let (inverses, complement) = (line.inverses(element.dimension), line.complement(element.dimension));
    let of_line = [
        ("T", &line.normal_modes.entries),
        ("S", &line.modes.entries),
        ("E", &line.derivatives.entries),
        ("W", &inverses),
        ("Z", &complement),
        ("P", &line.prolongation.entries),
        ("C", &line.continuous_prolongation.entries),
    ];
    let of_patch = patch.by_name().map(|(name, matrix)| (name, &matrix.entries));
    let all = of_line.into_iter().chain(of_patch);
    all.map(|(name, values)| Ok((name, upload(device, values, precision)?))).collect()
}

/// A buffer of zeros.
pub(super) fn zeros(device: &dyn Device, bytes: u64) -> Result<Buffer, MultigridError> {
    let buffer = device.allocate(bytes)?;
    device.fill(&buffer, 0)?;
    Ok(buffer)
}

/// Bytes of three vectors a level.
pub(super) fn bytes(element: Element, cells: usize, precision: Precision) -> u64 {
    let levels = std::iter::successors(Some(cells), |n| (*n > 2).then_some(n / 2));
    let of_level = |n: usize| (numbers(element, n) as u64).saturating_mul(3 * precision.bytes());
    levels.map(of_level).fold(0, u64::saturating_add)
}
