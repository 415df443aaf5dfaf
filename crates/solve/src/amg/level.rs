//! A level of a hierarchy with a coarser one, all of whose numbers are found on the device.

use super::measured::{MeasureKernels, Measured, NO_BOUND};
use super::multiply::MultiplyKernels;
use super::sliced::{CycleKernels, Layout, Scaling, Sliced, Slices};
use super::structure::{Product, Structure, StructureKernels};
use crate::texts::{compiled, compiled_block_product, text};
use crate::{
    BlockCsrOperator, BlockRows, Call, Chebyshev, ConjugateGradients, CycleNumbers, Eigenvalues,
    LinearOptions, Queue, SolveError, Spectrum, put,
};
use kingpost_runtime::{Buffer, Device, Executable, check_interrupt, download_values};
use rayon::join;

/// Iterations that find the largest eigenvalue of a level, and how much larger it is than what they
/// find: after six they find 0.944 of that of Poisson's equation on 60 divisions, after twelve
/// 0.984.
const ITERATIONS: usize = 6;
const LARGER: f64 = 1.042;
/// A bound of the eigenvalues of a level up to which nothing is asked of the matrix but sums of its rows. A matrix
/// that dominates its off-diagonals has two, as Poisson's equation does on a cube: what six iterations find there is
/// taken as 2.1.
const BOUNDED: f64 = 2.2;
/// Blocks this much smaller than those on the diagonal are roundings.
const ROUNDING: f64 = 1e-13;
/// Columns of a basis that are this much shorter than the first are not independent.
const DEPENDENT: f64 = 1e-8;

/// The kernels that find the numbers of a level whose nodes have `side` unknowns, and those of the coarser one
/// `width`.
pub(super) struct NumberKernels {
    side: usize,
    width: usize,
    measure: MeasureKernels,
    connections: Executable,
    missing: Executable,
    bases: Executable,
    smooth: Executable,
    transpose: Executable,
    image: MultiplyKernels,
    coarse: MultiplyKernels,
}

impl NumberKernels {
    /// Compiles the kernels.
    ///
    /// # Errors
    /// A device that refuses them.
    pub fn new(device: &dyn Device, side: usize, width: usize) -> Result<Self, SolveError> {
        let of = |text: &str, [height, _, width]: [usize; 3]| {
            let text = text.replace("HEIGHT", &height.to_string());
            compiled(device, &text.replace("WIDTH", &width.to_string()).replace("SIDE", &side.to_string()))
        };
        let sides = [side, side, width];
        Ok(Self {
            side,
            width,
            measure: MeasureKernels::new(device, side)?,
            connections: of(text!("aggregation/connections"), sides)?,
            missing: of(text!("aggregation/missing_aggregates"), sides)?,
            bases: of(text!("aggregation/orthonormal_bases"), sides)?,
            smooth: of(text!("aggregation/smoothed_interpolation"), sides)?,
            transpose: of(text!("aggregation/transposed_blocks"), sides)?,
            image: MultiplyKernels::new(device, sides)?,
            coarse: MultiplyKernels::new(device, [width, side, width])?,
        })
    }
}

/// Blocks a row of interpolations, and of coarse matrices and restrictions: about as many as is
/// usual.
const BLOCKS: [usize; 2] = [4, 32];

/// Compiles the kernels of a cycle where interpolations have blocks of `side` rows and `width` columns.
///
/// # Errors
/// A device that refuses them.
pub(super) fn prepare_cycles(
    device: &dyn Device,
    [side, width]: [usize; 2],
    numbers: CycleNumbers,
) -> Result<(), SolveError> {
    let eigenvalues = || {
        ConjugateGradients::prepare(device)?;
        ConjugateGradients::new(device, 1, LinearOptions::default())?;
        compiled(device, text!("random_numbers"))?;
        compiled(device, text!("dense_product"))
    };
    let products = || {
        let [few, many] = BLOCKS;
        compiled_block_product(device, [side, width], few)?;
        compiled_block_product(device, [width, side], many)?;
        compiled_block_product(device, [width; 2], many)
    };
    let cycles = || Layout::prepare(device, [side, width], numbers);
    let (eigenvalues, (products, cycles)) = join(eigenvalues, || join(products, cycles));
    eigenvalues.and(products).and(cycles).map(drop)
}

/// Values among the eigenvalues of a matrix times a diagonal, near the largest.
fn eigenvalues(
    device: &dyn Device,
    matrix: &BlockRows<'_>,
    inverse: &Buffer,
) -> Result<Vec<f64>, SolveError> {
    check_interrupt()?;
    let found = Eigenvalues::new(device, matrix.unknowns(), ITERATIONS)?.of(matrix.operator, inverse)?;
    Ok(found.into_iter().map(|value| LARGER * value).collect())
}

/// What smooths on a level.
pub(super) struct Smoother {
    /// The inverse of the diagonal.
    pub inverse: Buffer,
    /// Of the matrix times the inverse of its diagonal.
    pub spectrum: Spectrum,
    pub steps: Chebyshev,
}

impl Smoother {
    /// Of a level without a coarser one, which reduces the eigenvalues down to a `ratio`-th of the largest.
    ///
    /// # Errors
    /// [`SolveError::Spectrum`] of a matrix that is not positive; what the device refuses.
    pub fn new(
        device: &dyn Device,
        matrix: &BlockRows<'_>,
        is_finest: bool,
        ratio: f64,
    ) -> Result<Self, SolveError> {
        let rows = MeasureKernels::new(device, matrix.side)?.rows(device, matrix, is_finest)?;
        let (inverse, steps) = (rows.inverse, Chebyshev::new(device, matrix.unknowns())?);
        let spectrum = Spectrum::of_upper(&eigenvalues(device, matrix, &inverse)?, ratio)?;
        Ok(Self { inverse, spectrum, steps })
    }
}

/// A level with a coarser one.
///
/// A cycle smooths `A D⁻¹ y = b` instead of `A x = b`, with the copies of the matrix and of the
/// interpolation that are scaled so: products with them are all that steps need, and update the
/// vectors themselves.
pub(super) struct Level {
    pub matrices: Matrices,
    copies: Copies,
    r: Buffer,
    /// Right-hand side and solution of the coarser level.
    pub coarse_b: Buffer,
    pub coarse_x: Buffer,
}

/// The matrices of a level.
pub(super) struct Matrices {
    structure: Structure,
    is_finest: bool,
    /// The inverse of the diagonal.
    pub inverse: Buffer,
    /// Of the matrix times the inverse of its diagonal.
    pub spectrum: Spectrum,
    /// What its eigenvalues are not beyond, f64 `[1]`, and which part of that the largest is taken as.
    bound: Buffer,
    part: f64,
    /// From the coarser level.
    pub interpolation: BlockCsrOperator,
    /// To it: the transpose.
    pub restriction: BlockCsrOperator,
    /// The matrix of the coarser level, and its near kernel.
    pub coarse: BlockCsrOperator,
    pub near: Buffer,
}

/// Copies of the matrix, the interpolation and the restriction, and what cycles do with them.
struct Copies {
    kernels: CycleKernels,
    own: Sliced,
    up: Sliced,
    down: Sliced,
}

impl Level {
    /// Appends two steps from zero and the right-hand side of the coarser level.
    pub fn descend<'a>(&'a self, b: &'a Buffer, x: &'a Buffer, queue: &mut Queue<'a>) {
        let [alpha, beta] = self.matrices.spectrum.two_steps();
        let start = self.copies.own.update(&self.copies.kernels.start, &[("x", b), ("b", b), ("y", x)]);
        queue.push(start.with("alpha", alpha).with("beta", beta));
        queue.push(self.residual(b, x));
        let vectors = [("x", &self.r), ("y", &self.coarse_b)];
        queue.push(self.copies.down.update(&self.copies.kernels.restrict, &vectors));
    }

    /// Appends what adds the solution of the coarser level, and two steps more.
    pub fn ascend<'a>(&'a self, b: &'a Buffer, x: &'a Buffer, queue: &mut Queue<'a>) {
        let [alpha, beta] = self.matrices.spectrum.two_steps();
        queue.push(self.copies.up.update(&self.copies.kernels.add, &[("x", &self.coarse_x), ("y", x)]));
        queue.push(self.residual(b, x));
        let vectors = [("x", &self.r), ("b", &self.r), ("inverse", &self.matrices.inverse), ("y", x)];
        queue.push(
            self.copies
                .own
                .update(&self.copies.kernels.finish, &vectors)
                .with("alpha", alpha)
                .with("beta", beta),
        );
    }

    fn residual<'a>(&'a self, b: &'a Buffer, x: &'a Buffer) -> Call<'a> {
        self.copies.own.update(&self.copies.kernels.residual, &[("x", x), ("b", b), ("y", &self.r)])
    }

    /// Takes the part of what sums of rows bound the eigenvalues of another matrix by, once its launches have
    /// ended.
    ///
    /// # Errors
    /// A failing driver.
    pub fn take_bound(&mut self, device: &dyn Device, ratio: f64) -> Result<(), SolveError> {
        let Matrices { bound, part, spectrum, .. } = &mut self.matrices;
        let bound = download_values::<f64>(device, bound)?.into_iter().sum::<f64>();
        *spectrum = Spectrum::of_bound(*part * bound, ratio);
        Ok(())
    }

    /// Copies all matrices for cycles.
    fn copy(&self, device: &dyn Device, values: &Buffer) -> Result<(), SolveError> {
        let (Matrices { interpolation, restriction, inverse, .. }, copies) = (&self.matrices, &self.copies);
        let up = copies.up.fill(interpolation.values(), Some(inverse));
        put(device, &[self.take(values), up, copies.down.fill(restriction.values(), None)])
    }

    /// Copies another matrix of the pattern near that of the hierarchy, to be smoothed instead of
    /// it.
    pub fn take<'a>(&'a self, values: &'a Buffer) -> Call<'a> {
        self.copies.own.fill(values, Some(&self.matrices.inverse))
    }
}

/// What finds levels.
pub(super) struct Finder<'d> {
    pub device: &'d dyn Device,
    pub structures: &'d StructureKernels,
    pub numbers: &'d NumberKernels,
    /// The ratio of the eigenvalues that smoothers reduce.
    pub ratio: f64,
    /// Numbers of the copies for cycles.
    pub of_cycles: CycleNumbers,
}

impl Structure {
    /// Bytes of its lists and of the numbers of its matrices, with those that the level does not keep.
    pub fn bytes(&self, kernels: &NumberKernels) -> [u64; 2] {
        let NumberKernels { side, width, .. } = kernels;
        let (fine, coarse) = (self.own.rows * side, self.sets.count * width);
        let lists = 4
            * (2 * self.own.rows + self.sets.count + self.sets.n_members + self.own.n_blocks) as u64
            + self.interpolation.bytes()
            + self.restriction.bytes()
            + [&self.image, &self.coarse].map(Product::bytes).iter().sum::<u64>()
            + 4 * self.interpolation.n_blocks as u64;
        let numbers =
            2 * self.interpolation.n_blocks * side * width + self.coarse.pattern.n_blocks * width * width;
        let vectors = 2 * fine + (2 + width) * coarse;
        let [own, up, down] = &self.slices;
        let slices = own.bytes(side * side) + up.bytes(side * width) + down.bytes(side * width);
        let bases = self.sets.n_members * side * width;
        let image = self.image.pattern.n_blocks * side * width;
        [lists + slices + 8 * (numbers + vectors) as u64, 8 * (bases + image) as u64]
    }
}

impl Finder<'_> {
    /// The structure of a level of a matrix whose connections have a threshold, and what its rows measure; none where
    /// nothing coarsens.
    ///
    /// # Errors
    /// More than 32 bits count, no memory, a failing driver.
    pub fn structure(
        &self,
        (matrix, is_finest): (&BlockRows<'_>, bool),
        threshold: f64,
    ) -> Result<Option<(Structure, Measured)>, SolveError> {
        check_interrupt()?;
        let rows = self.numbers.measure.rows(self.device, matrix, is_finest)?;
        let kinds = self.connections((matrix, &rows.norms), threshold)?;
        let sets = self.structures.aggregates(self.device, matrix, &kinds)?;
        let coarse = sets.count * self.numbers.width;
        if coarse == 0 || 5 * coarse > 4 * matrix.unknowns() {
            return Ok(None); // it no longer coarsens
        }
        let structure = self.structures.of_sets(self.device, (matrix, &kinds), sets, self.of_cycles)?;
        Ok(Some((structure, rows)))
    }

    /// What connects the nodes of each block of a matrix. Nodes `i` and `j` are strongly connected where
    /// `|A_ij|² > θ² |A_ii| |A_jj|`, for Frobenius norms and the threshold `θ`.
    ///
    /// # Source
    /// Vaněk et al. 1996, §5.
    fn connections(
        &self,
        (matrix, norms): (&BlockRows<'_>, &Buffer),
        threshold: f64,
    ) -> Result<Buffer, SolveError> {
        let kinds = self.device.allocate_unset(4 * matrix.n_blocks as u64)?;
        let arrays = [("values", matrix.values), ("norms", norms), ("kinds", &kinds)];
        let arrays = [&matrix.lists()[..], &arrays].concat();
        let judge = Call::of(&self.numbers.connections, &matrix.sizes(), &arrays);
        let judge = judge.with("strength", threshold * threshold).with("rounding", ROUNDING * ROUNDING);
        put(self.device, &[judge])?;
        Ok(kinds)
    }

    /// A level of a structure, with the numbers of a matrix, what its rows measure, and its near kernel.
    ///
    /// # Errors
    /// [`SolveError::Spectrum`] of a matrix that is not positive; what the device refuses.
    pub fn level(
        &self,
        structure: Structure,
        is_finest: bool,
        (matrix, rows): (&BlockRows<'_>, Measured),
        near: &Buffer,
    ) -> Result<Level, SolveError> {
        let (device, NumberKernels { side, width, .. }) = (self.device, self.numbers);
        let (fine, below) = (matrix.unknowns(), structure.sets.count * width);
        let vector = |n: usize| device.allocate_unset(8 * n as u64);
        let blocks = |pattern: &super::places::Pattern, extents| {
            let lists = [&pattern.starts, &pattern.at].map(std::sync::Arc::clone);
            BlockCsrOperator::of_lists(
                device,
                ([pattern.rows, pattern.columns], pattern.n_blocks),
                extents,
                lists,
            )
        };
        let (spectrum, part) = self.spectrum(matrix, &rows)?;
        let mut matrices = Matrices {
            is_finest,
            inverse: rows.inverse,
            spectrum,
            bound: rows.bound,
            part,
            interpolation: blocks(&structure.interpolation, [*side, *width])?,
            restriction: blocks(&structure.restriction, [*width, *side])?,
            coarse: blocks(&structure.coarse.pattern, [*width; 2])?,
            near: vector(below * width)?,
            structure,
        };
        self.find(&mut matrices, matrix, near)?;
        // a card multiplies meanwhile
        let copy = |slices: &Slices, extents, scaling| Sliced::new(device, slices.clone(), extents, scaling);
        let [own, up, down] = &matrices.structure.slices;
        let copies = Copies {
            kernels: CycleKernels::new(device, [own, up, down].map(|of| of.layout), [*side, *width])?,
            own: copy(own, [*side; 2], Scaling::Columns)?,
            up: copy(up, [*side, *width], Scaling::Rows)?,
            down: copy(down, [*width, *side], Scaling::None)?,
        };
        let (r, coarse_b, coarse_x) = (vector(fine)?, vector(below)?, vector(below)?);
        let level = Level { matrices, copies, r, coarse_b, coarse_x };
        level.copy(device, matrix.values)?;
        Ok(level)
    }

    /// What is smoothed, and which part the largest eigenvalue is taken as of what rows bound all by.
    fn spectrum(&self, matrix: &BlockRows<'_>, rows: &Measured) -> Result<(Spectrum, f64), SolveError> {
        let bound = download_values::<f64>(self.device, &rows.bound)?.into_iter().sum();
        if bound <= BOUNDED {
            return Ok((Spectrum::of_bound(bound, self.ratio), 1.0));
        }
        let found = Spectrum::of_upper(&eigenvalues(self.device, matrix, &rows.inverse)?, self.ratio)?;
        let part = if bound < NO_BOUND { (found.largest / bound).min(1.0) } else { 1.0 };
        Ok((found, part))
    }

    /// Gives a level the numbers of another matrix of its pattern, and adds to the number of connections
    /// that are `missing`, i32 `[1]`: those of nodes that were not connected. The host does not wait, and
    /// [`Level::take_bound`] completes it.
    ///
    /// # Errors
    /// As [`Finder::level`].
    pub fn renew(
        &self,
        level: &mut Level,
        matrix: &BlockRows<'_>,
        near: &Buffer,
        missing: &Buffer,
    ) -> Result<(), SolveError> {
        let matrices = &mut level.matrices;
        let Measured { inverse, norms, bound } =
            self.numbers.measure.rows(self.device, matrix, matrices.is_finest)?;
        let Structure { sets, interpolation, .. } = &matrices.structure;
        let sizes = [&matrix.sizes()[..], &[("n_found", interpolation.n_blocks)]].concat();
        let arrays = [("values", matrix.values), ("norms", &norms), ("aggregates", &sets.of)];
        let found = [("starts", &*interpolation.starts), ("found", &interpolation.at), ("missing", missing)];
        let arrays = [&matrix.lists()[..], &arrays, &found].concat();
        let look = Call::of(&self.numbers.missing, &sizes, &arrays);
        put(self.device, &[look.with("rounding", ROUNDING * ROUNDING)])?;
        (matrices.inverse, matrices.bound) = (inverse, bound);
        self.find(matrices, matrix, near)?;
        level.copy(self.device, matrix.values)
    }

    /// The numbers of all but its copies.
    fn find(&self, level: &mut Matrices, matrix: &BlockRows<'_>, near: &Buffer) -> Result<(), SolveError> {
        let (device, kernels) = (self.device, self.numbers);
        let NumberKernels { side, width, .. } = *kernels;
        let Structure { sets, own, interpolation, transposes, image, coarse, restriction, .. } =
            &level.structure;
        let numbers = |n: usize| device.allocate_unset(8 * n as u64);
        let basis = numbers(sets.n_members * side * width)?;
        let sizes = [("n", own.rows), ("n_aggregates", sets.count), ("n_members", sets.n_members)];
        let arrays = [("starts", &sets.starts), ("members", &sets.members), ("near", near)];
        let arrays = [&arrays[..], &[("basis", &basis), ("coarse", &level.near)]].concat();
        let bases = Call::of(&kernels.bases, &sizes, &arrays).with("dependent", DEPENDENT * DEPENDENT);
        put(device, &[bases])?;

        let sizes = [("n", own.rows), ("n_a", own.n_blocks), ("n_members", sets.n_members)];
        let sizes = [&sizes[..], &[("n_blocks", interpolation.n_blocks)]].concat();
        let a = [("a_starts", &*own.starts), ("a_columns", &*own.at), ("a", matrix.values)];
        let arrays = [("inverse", &level.inverse), ("aggregates", &sets.of), ("bound", &level.bound)];
        let arrays = [&arrays[..], &[("places", &sets.places), ("basis", &basis)]].concat();
        let to = [("values", level.interpolation.values())];
        let arrays = [&interpolation.places()[..], &a, &arrays, &to].concat();
        let smooth = Call::of(&kernels.smooth, &sizes, &arrays).with("part", level.part);

        let arrays = [("from", transposes), ("values", level.interpolation.values())];
        let arrays = [&arrays[..], &[("transposed", level.restriction.values())]].concat();
        let transpose = Call::of(&kernels.transpose, &[("n_blocks", interpolation.n_blocks)], &arrays);
        let of_image = numbers(image.pattern.n_blocks * side * width)?;
        let up = (interpolation, level.interpolation.values());
        let down = (restriction, level.restriction.values());
        let all = [
            smooth,
            transpose,
            kernels.image.call([(own, matrix.values), up], (image, &of_image)),
            kernels.coarse.call([down, (&image.pattern, &of_image)], (coarse, level.coarse.values())),
        ];
        put(device, &all)
    }
}
