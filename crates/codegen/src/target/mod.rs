//! The languages that are printed: a file for each dialect, a row in the list.
//!
//! A pass asks the description, never which target it is. Another dialect is a file such as
//! [`cuda`], which may take over what it shares (`..cuda::CUDA`), its name in [`Target`] and its row below.

mod c;
mod cuda;
mod description;
mod hip;
mod opencl;

pub use description::*;
use std::fmt;

impl Target {
    /// What it has, and how it writes it.
    #[must_use]
    pub const fn description(self) -> &'static TargetDescription {
        match self {
            Self::Cuda => &cuda::CUDA,
            Self::Hip => &hip::HIP,
            Self::OpenCl => &opencl::OPENCL,
            Self::C => &c::C,
        }
    }

    /// The target of a name, such as `cuda`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|target| target.description().name == name)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.description().name)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)] // how a test fails
mod tests;
