//! The tuned kernels of the publication, each a recipe that differs from the one before it by the
//! step that the publication names.

mod bp10;
mod bp10_mma;
mod bp30_cubes;
mod bp30_in_place;
mod bp30_lines;
mod bp30_planes;
mod bp35_cubes;
mod bp35_host;
mod bp35_lines;
mod bp35_mma;
mod bp35_planes;
mod bp35_vertices;
mod bp35_vertices_mma;
mod bulk;
mod even_odd;
mod lines;
mod matrix_lines;
mod nest;

use crate::problem::{Precision, Problem, Sizes};
use kingpost::ir::Kernel;
use kingpost::ir::text::ParseErrors;
use kingpost::prelude::{FixParameter, Schedule, SetResidentGroups};
use kingpost::transforms::TransformError;
use std::fmt;
use std::str::FromStr;

/// How the work-items of an element are arranged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Threads {
    /// A work-item for each node of a layer.
    Planes,
    /// A work-item for each node.
    Cubes,
    /// None: an element after the other on each core of a processor.
    Host,
}

/// One of the tuned kernels: `bp35.2d.10`, `bp35.2d.13x4` with four elements a work-group, or
/// `bp10.2d.13r2` with registers for two work-groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tuned {
    /// What it computes.
    pub problem: Problem,
    /// How.
    pub threads: Threads,
    /// Its number in the publication, from 1; those beyond the publication follow.
    pub number: u32,
    /// Elements of a work-group, where the kernel has several; the best known number if absent.
    pub elements: Option<u16>,
    /// Groups whose registers a multiprocessor has; the best known number if absent.
    pub resident: Option<u16>,
}

/// A launch of a tuned kernel.
#[derive(Clone, Debug)]
pub struct Launch {
    /// What its steps start from.
    pub plain: Kernel,
    /// What they make of it.
    pub schedule: Schedule,
}

/// Why a tuned kernel is not there.
#[derive(Debug, thiserror::Error)]
pub enum RecipeError {
    /// A work-item for each point takes more work-items than a group has.
    #[error(
        "`{kernel}` takes {needed} work-items a group at degree {degree}, and a group has at most {MAX_WORK_ITEMS}; choose a lower degree, fewer elements or 2-D threads"
    )]
    TooManyWorkItems {
        /// The kernel.
        kernel: Tuned,
        /// Its degree.
        degree: usize,
        /// Work-items.
        needed: usize,
    },
    /// An instruction takes lines of another length, or other numbers.
    #[error(
        "`{kernel}` takes lines in double precision that fill instructions: of 8 or 16 nodes, or of 9 to 15 in even and odd parts; degree {degree} in {precision} has {nodes}; choose degree 7 or 15, for BP1.0 one from 8 to 14, and f64"
    )]
    OtherLines {
        /// The kernel.
        kernel: Tuned,
        /// Its degree.
        degree: usize,
        /// Its type.
        precision: Precision,
        /// Nodes of a line.
        nodes: usize,
    },
    /// A step is refused.
    #[error("`{kernel}` at degree {degree}: {cause}")]
    Refused {
        /// The kernel.
        kernel: Tuned,
        /// Its degree.
        degree: usize,
        /// The step, and why.
        #[source]
        cause: Box<TransformError>,
    },
    /// The text of a plain kernel cannot be read.
    #[error("bug of the study: the plain kernel of `{problem}` is malformed: {cause}")]
    Plain {
        /// The problem.
        problem: Problem,
        /// What is wrong.
        #[source]
        cause: ParseErrors,
    },
}

/// Maximum number of work-items of a group.
///
/// # Source
/// Świrydowicz et al. 2019, §6 (limit of CUDA).
pub const MAX_WORK_ITEMS: usize = 1024;

impl fmt::Display for Tuned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let threads = match self.threads {
            Threads::Planes => "2d",
            Threads::Cubes => "3d",
            Threads::Host => "c",
        };
        let elements = self.elements.map(|n| format!("x{n}")).unwrap_or_default();
        let resident = self.resident.map(|n| format!("r{n}")).unwrap_or_default();
        f.pad(&format!("{}.{threads}.{}{elements}{resident}", self.problem, self.number))
    }
}

/// A name that is no kernel's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no kernel is called `{0}`; kernels are called like bp35.2d.10 and, with 4 elements a group, bp35.2d.13x4, with registers for 2 groups bp10.2d.13r2; `list` shows them"
)]
pub struct UnknownKernel(pub String);

impl FromStr for Tuned {
    type Err = UnknownKernel;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let unknown = || UnknownKernel(name.into());
        let positive = |n: &str| n.parse().ok().filter(|n: &u16| *n > 0).ok_or_else(unknown);
        let option = |text: &str, mark: char| match text.split_once(mark) {
            Some((base, n)) => positive(n).map(|n| (base.to_owned(), Some(n))),
            None => Ok((text.to_owned(), None)),
        };
        let (base, resident) = option(name, 'r')?;
        let (base, elements) = option(&base, 'x')?;
        let kernel = Self::all().into_iter().find(|k| k.to_string() == base).ok_or_else(unknown)?;
        let has_no_such = elements.is_some() && !kernel.has_several_elements();
        if has_no_such || resident.is_some() && !kernel.has_resident_groups() {
            return Err(unknown());
        }
        Ok(Self { elements, resident, ..kernel })
    }
}

impl Tuned {
    /// Every kernel of the publication, and those beyond it.
    ///
    /// # Source
    /// Świrydowicz et al. 2019, §6 to §8.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let families = [
            (Problem::Bp10, Threads::Planes),
            (Problem::Bp35, Threads::Planes),
            (Problem::Bp35, Threads::Cubes),
            (Problem::Bp30, Threads::Planes),
            (Problem::Bp30, Threads::Cubes),
            (Problem::Bp35Vertices, Threads::Planes),
            (Problem::Bp35, Threads::Host),
        ];
        let kernels = |(problem, threads)| {
            let ideas = ideas(problem, threads).len() as u32;
            (1..=ideas).map(move |number| Self { problem, threads, number, elements: None, resident: None })
        };
        families.into_iter().flat_map(kernels).collect()
    }

    /// Whether a work-group has several elements.
    #[must_use]
    pub fn has_several_elements(self) -> bool {
        match self.problem {
            Problem::Bp10 => self.number >= 10 && !self.by_instructions(),
            Problem::Bp35 => self.threads == Threads::Planes && self.number >= 13,
            Problem::Bp35Vertices => self.number >= 2,
            Problem::Bp30 => self.threads == Threads::Planes && (11..17).contains(&self.number),
        }
    }

    /// Whether matrix instructions compute its contractions, in double precision.
    #[must_use]
    pub fn by_instructions(self) -> bool {
        match self.problem {
            Problem::Bp35Vertices => [3, 4].contains(&self.number),
            Problem::Bp35 => self.threads == Threads::Planes && [14, 15].contains(&self.number),
            Problem::Bp10 => self.number == 17,
            Problem::Bp30 => false,
        }
    }

    /// The lowest degree at which the kernel is there: matrix instructions take lines of 8 or 16
    /// nodes, or parts of lines of more than 8 and at most 16.
    #[must_use]
    pub fn first_degree(self) -> usize {
        match self.problem {
            Problem::Bp10 if self.by_instructions() => bp10_mma::HALF,
            Problem::Bp35 | Problem::Bp35Vertices if self.by_instructions() => 7,
            Problem::Bp10 | Problem::Bp35 | Problem::Bp30 | Problem::Bp35Vertices => 1,
        }
    }

    /// Whether contractions are even–odd: of sums and differences of opposite values.
    #[must_use]
    pub fn by_halves(self) -> bool {
        let first = match (self.problem, self.threads) {
            (Problem::Bp10, Threads::Planes) => 12,
            (Problem::Bp35, Threads::Planes) => 17,
            (Problem::Bp30, Threads::Planes) => 13,
            (Problem::Bp35Vertices, Threads::Planes) => 6,
            (_, Threads::Cubes | Threads::Host) => return false,
        };
        self.number >= first && !self.by_instructions()
    }

    /// Whether a work-group has one element where that has two sub-groups or more, and a
    /// multiprocessor registers for several groups.
    fn has_resident_groups(self) -> bool {
        match (self.problem, self.threads) {
            (Problem::Bp10, Threads::Planes) => self.number >= 11,
            (Problem::Bp35, Threads::Planes) => self.number >= 16,
            (Problem::Bp30, Threads::Planes) => self.number >= 12,
            (Problem::Bp35Vertices, Threads::Planes) => self.number >= 5,
            (_, Threads::Host | Threads::Cubes) => false,
        }
    }

    /// Elements of a work-group at a degree.
    #[must_use]
    pub fn elements_of_a_group(self, sizes: Sizes) -> i64 {
        match self.elements {
            Some(n) => n.into(),
            // local arrays of several elements are parts of one, which compilers cannot tell apart
            None if self.by_instructions() => 1,
            None if self.has_resident_groups() && sizes.degree >= ONE_ELEMENT => 1,
            None if self.has_several_elements() => best_elements(sizes, self.number),
            None => 1,
        }
    }

    /// By what the kernel differs from the one before it.
    #[must_use]
    pub fn idea(self) -> &'static str {
        ideas(self.problem, self.threads).get(self.number as usize - 1).copied().unwrap_or_default()
    }

    /// Its launches at a degree, in the order in which they run, as a rule one: the plain kernel of each
    /// and the steps that make it this one.
    ///
    /// # Errors
    /// [`RecipeError::TooManyWorkItems`] for a degree beyond 3-D threads,
    /// [`RecipeError::OtherLines`] for one whose lines no instruction takes.
    pub fn launches(self, degree: usize) -> Result<Vec<Launch>, RecipeError> {
        self.launches_in(degree, Precision::Double)
    }

    /// As [`Self::launches`], with all real numbers of `precision`.
    ///
    /// # Errors
    /// As [`Self::launches`].
    pub fn launches_in(self, degree: usize, precision: Precision) -> Result<Vec<Launch>, RecipeError> {
        let sizes = Sizes { problem: self.problem, degree, precision };
        let needed = match self.threads {
            Threads::Cubes => sizes.points().pow(3),
            Threads::Planes => sizes.points().pow(2) * self.elements_of_a_group(sizes) as usize,
            Threads::Host => 1,
        };
        if needed > MAX_WORK_ITEMS {
            return Err(RecipeError::TooManyWorkItems { kernel: self, degree, needed });
        }
        let nodes = sizes.nodes();
        let takes = match self.problem {
            Problem::Bp10 => nodes > bp10_mma::HALF && sizes.points() <= 2 * bp10_mma::HALF,
            Problem::Bp35 | Problem::Bp30 | Problem::Bp35Vertices => nodes.is_multiple_of(8),
        };
        if self.by_instructions() && !(takes && precision == Precision::Double) {
            return Err(RecipeError::OtherLines { kernel: self, degree, precision, nodes });
        }
        let by_columns = match self.problem {
            Problem::Bp35Vertices => self.number >= 8,
            Problem::Bp30 => self.number >= 17,
            Problem::Bp10 | Problem::Bp35 => false,
        };
        let plain = if by_columns { sizes.plain_by_columns() } else { sizes.plain() };
        let plain = plain.map_err(|cause| RecipeError::Plain { problem: self.problem, cause })?;
        let mut s = Schedule::of(&plain);
        let before = self.steps(&mut s, sizes);
        let mut launches =
            before.map_err(|cause| RecipeError::Refused { kernel: self, degree, cause: Box::new(cause) })?;
        launches.push(Launch { plain, schedule: s });
        Ok(launches)
    }

    /// Makes the kernel of the last launch, and returns the launches before it.
    fn steps(self, s: &mut Schedule, sizes: Sizes) -> Result<Vec<Launch>, TransformError> {
        for (param, value) in sizes.fixed() {
            s.apply(FixParameter::new(param, value))?;
        }
        if (self.problem, self.threads, self.number) == (Problem::Bp30, Threads::Cubes, 1) {
            return bp30_cubes::three_launches(s, sizes);
        }
        self.one_launch(s, sizes)?;
        if let Some(groups) = self.resident {
            s.apply(SetResidentGroups::new(groups.into()))?;
        }
        Ok(Vec::new())
    }

    fn one_launch(self, s: &mut Schedule, sizes: Sizes) -> Result<(), TransformError> {
        match (self.problem, self.threads) {
            (Problem::Bp10, _) if self.by_instructions() => bp10_mma::steps(s, sizes),
            (Problem::Bp10, _) => bp10::steps(s, sizes, self.number, self.elements_of_a_group(sizes)),
            (Problem::Bp35, Threads::Planes) if self.by_instructions() => {
                bp35_mma::steps(s, sizes, self.number, self.elements_of_a_group(sizes))
            }
            (Problem::Bp35, Threads::Planes) if self.number >= 16 => {
                bp35_lines::in_place(s, sizes, self.number, self.elements_of_a_group(sizes))
            }
            (Problem::Bp35, Threads::Planes) if self.number > 10 => {
                bp35_lines::steps(s, sizes, self.number, self.elements_of_a_group(sizes))
            }
            (Problem::Bp35, Threads::Planes) => bp35_planes::steps(s, sizes, self.number),
            (Problem::Bp35, Threads::Cubes) => bp35_cubes::steps(s, sizes, self.number),
            (Problem::Bp35, Threads::Host) => bp35_host::steps(s),
            (Problem::Bp30, Threads::Planes) if self.number >= 17 => {
                bp30_in_place::steps(s, sizes, self.number)
            }
            (Problem::Bp30, Threads::Planes) if self.number > 9 => {
                bp30_lines::steps(s, sizes, self.number, self.elements_of_a_group(sizes))
            }
            (Problem::Bp30, Threads::Planes) => bp30_planes::steps(s, sizes, self.number),
            (Problem::Bp30, Threads::Cubes | Threads::Host) => bp30_cubes::steps(s, sizes, self.number),
            (Problem::Bp35Vertices, _) if self.by_instructions() => {
                bp35_vertices_mma::steps(s, sizes, self.number, self.elements_of_a_group(sizes))
            }
            (Problem::Bp35Vertices, _) => {
                bp35_vertices::steps(s, sizes, self.number, self.elements_of_a_group(sizes))
            }
        }
    }
}

/// The degree from which on a work-group of one element has two sub-groups or more.
const ONE_ELEMENT: usize = 7;

/// The number of elements of a work-group that is fastest on an H200: two, more where they leave a
/// sub-group idle, and one where they need too much local memory.
fn best_elements(sizes: Sizes, number: u32) -> i64 {
    let items = sizes.points().pow(2);
    let few = |wanted: usize| (wanted / items).max(2) as i64;
    match sizes.problem {
        // those that fill sub-groups: of BP1.0 among the fastest of those tried on an H200 (2026-11-26), of BP3.0
        // not timed
        Problem::Bp10 if number >= 14 && sizes.degree <= 3 => [14, 8, 5][sizes.degree - 1],
        Problem::Bp30 if number >= 14 && sizes.degree == 3 => 5,
        Problem::Bp10 | Problem::Bp30 if sizes.degree >= 10 => 1,
        Problem::Bp10 | Problem::Bp30 => few(64),
        Problem::Bp35Vertices if number >= 9 && sizes.degree >= 6 => 1,
        Problem::Bp35 | Problem::Bp35Vertices => few(32),
    }
}

fn ideas(problem: Problem, threads: Threads) -> &'static [&'static str] {
    match (problem, threads) {
        (Problem::Bp10, Threads::Planes) => &bp10::IDEAS,
        (Problem::Bp10 | Problem::Bp35Vertices, Threads::Cubes) => &[],
        (Problem::Bp35, Threads::Host) => &bp35_host::IDEAS,
        (Problem::Bp10 | Problem::Bp30 | Problem::Bp35Vertices, Threads::Host) => &[],
        (Problem::Bp35, Threads::Planes) => &bp35_planes::IDEAS,
        (Problem::Bp35, Threads::Cubes) => &bp35_cubes::IDEAS,
        (Problem::Bp30, Threads::Planes) => &bp30_planes::IDEAS,
        (Problem::Bp30, Threads::Cubes) => &bp30_cubes::IDEAS,
        (Problem::Bp35Vertices, Threads::Planes) => &bp35_vertices::IDEAS,
    }
}
