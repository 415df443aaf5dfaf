//! CUDA: NVRTC for the code, the driver for the rest; both found when they are needed.
//!
//! Sources are compiled in every build; cards and what they exchange take the feature `cuda`.

#[cfg(feature = "cuda")]
mod card;
#[cfg(feature = "cuda")]
mod context;
#[cfg(feature = "cuda")]
mod graph;
#[cfg(feature = "cuda")]
pub mod nccl;
#[cfg(feature = "cuda")]
mod nvml;
pub mod nvrtc;
pub mod ptxas;
#[cfg(feature = "cuda")]
mod running;
#[cfg(feature = "cuda")]
mod spare;
#[cfg(feature = "cuda")]
mod staging;
#[cfg(feature = "cuda")]
mod tensors;
mod toolkit;

#[cfg(feature = "cuda")]
pub(crate) use card::{CudaDriver, list};
