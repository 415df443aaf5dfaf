//! What samples hold.

use kingpost_interp::Memory;
use kingpost_ir::kernel::Kernel;
use std::fmt;

/// What samples may hold; everything by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SampleConfig {
    /// Maximum number of nests, one after the other.
    pub nests: usize,
    /// Maximum number of loops in a nest.
    pub depth: usize,
    /// Maximum number of statements in all.
    pub statements: usize,
    /// Maximum number of idioms after the nests.
    pub idioms: usize,
    /// Largest value of a parameter.
    pub extent: i64,
    /// Reductions in right-hand sides.
    pub reductions: bool,
    /// Reads and writes through integer arrays.
    pub indirect: bool,
    /// Statements with a condition.
    pub predicates: bool,
    /// Loops whose bounds are loaded from an array.
    pub data_dependent: bool,
    /// Triangular, banded, strided and split loops, those under conditions, and unrolled ones.
    pub shaped: bool,
    /// Single precision, 64-bit integers, arithmetic of literals, nans and infinities.
    pub typed: bool,
    /// Several launches, with loops of the host around them; not by default.
    pub launches: bool,
    /// Records and operators of them, declared functions, truth values that are compared, parameters that are
    /// computed, halves; not by default, as their interpreted form has other variables.
    pub records: bool,
    /// Strides that are parameters; not by default, as such arrays do not lie row by row.
    pub strides: bool,
    /// Complements of extrema, shifts and quotients of either sign, conversions to every type of integers,
    /// subnormal numbers, stores in one place: what compilers were found wrong about. Of typed samples; not by
    /// default, as their programs are other ones.
    pub arithmetic: bool,
}

impl Default for SampleConfig {
    fn default() -> Self {
        Self {
            nests: 3,
            depth: 3,
            statements: 4,
            idioms: 1,
            extent: 5,
            reductions: true,
            indirect: true,
            predicates: true,
            data_dependent: true,
            shaped: true,
            typed: true,
            launches: false,
            records: false,
            strides: false,
            arithmetic: false,
        }
    }
}

impl SampleConfig {
    /// Rectangular loops, affine accesses, plain statements.
    pub fn simple() -> Self {
        let none = Self { reductions: false, indirect: false, predicates: false, ..Self::default() };
        Self { data_dependent: false, shaped: false, ..none }
    }
}

/// A kernel and what it runs on.
#[derive(Clone, PartialEq)]
pub struct Sample {
    /// Well formed and canonical.
    pub kernel: Kernel,
    /// Values of its parameters and its `in` and `inout` arguments.
    pub memory: Memory,
}

impl fmt::Debug for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n# with {:?}", self.kernel, self.memory)
    }
}
