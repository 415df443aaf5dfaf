//! Why a backend cannot be used, and how to get it.

use std::path::PathBuf;

/// Why a backend cannot be used on this machine, and how to get it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    /// Kingpost was built without it.
    #[error("this build of Kingpost leaves out `{feature}`; build it with the feature `{feature}`")]
    LeftOut {
        /// The feature.
        feature: &'static str,
    },
    /// No C compiler was found.
    #[error(
        "no C compiler among {searched}; install one (Debian: `apt install gcc`) or set `CC` to its path"
    )]
    NoCompiler {
        /// The names that were looked for.
        searched: String,
    },
    /// A C compiler does not answer.
    #[error("the C compiler `{path}` does not run: {reason}; set `CC` to one that does")]
    BrokenCompiler {
        /// The compiler.
        path: PathBuf,
        /// What happened.
        reason: String,
    },
    /// The OpenCL loader is not installed.
    #[error(
        "no OpenCL library: {reason}; install a loader and a CPU device (Debian: `apt install ocl-icd-libopencl1 pocl-opencl-icd`; x86-64: `pip install intel-opencl-rt intel-cmplr-lib-rt`) or set `OPENCL_DYLIB_PATH`"
    )]
    NoOpenClLibrary {
        /// The loader's message.
        reason: String,
    },
    /// There is an OpenCL loader, but no device behind it.
    #[error(
        "an OpenCL library, but no device: {reason}; install one (Debian: `apt install pocl-opencl-icd`; x86-64: `pip install intel-opencl-rt intel-cmplr-lib-rt`)"
    )]
    NoOpenClDevice {
        /// What the loader answered.
        reason: String,
    },
    /// Intel's OpenCL runtime lies in a Python environment and cannot be used.
    #[error(
        "`{path}` does not load: {reason}; install what it needs (`pip install intel-cmplr-lib-rt`) or remove it (`pip uninstall intel-opencl-rt`)"
    )]
    BrokenOpenClPackage {
        /// The library.
        path: PathBuf,
        /// What happened.
        reason: String,
    },
    /// No NVIDIA driver.
    #[error("no NVIDIA driver (`libcuda.so.1`); install the driver of the card")]
    NoCudaDriver,
    /// The NVIDIA driver lacks a function.
    #[error("the NVIDIA driver has no `{symbol}`; install driver 580 or newer")]
    OldCudaDriver {
        /// The function.
        symbol: &'static str,
    },
    /// The driver sees no card.
    #[error("the NVIDIA driver sees no card ({reason}); check `nvidia-smi` and `CUDA_VISIBLE_DEVICES`")]
    NoCudaDevice {
        /// What the driver answered.
        reason: String,
    },
    /// NVRTC was not found.
    #[error(
        "no NVRTC in {searched}; `pip install nvidia-cuda-nvrtc`, set `CUDA_HOME`, or set `KINGPOST_CUDA_WHEELS` to the `site-packages` that holds it"
    )]
    NoNvrtc {
        /// Where it was looked for.
        searched: String,
    },
    /// NCCL was not found.
    #[error(
        "no NCCL (`libnccl.so.2`) in {searched}; install it, or set `KINGPOST_CUDA_WHEELS` to the `site-packages` that holds nvidia-nccl-cu13"
    )]
    NoNccl {
        /// Where it was looked for.
        searched: String,
    },
    /// ptxas was not found.
    #[error(
        "no ptxas in {searched}; `pip install nvidia-cuda-nvcc`, set `CUDA_HOME`, or set `KINGPOST_CUDA_WHEELS` to the `site-packages` that holds it"
    )]
    NoPtxas {
        /// Where it was looked for.
        searched: String,
    },
    /// No compiler of HIP was found.
    #[error(
        "no HIP compiler (`llvm/bin/clang`) in {searched}; set `ROCM_PATH` to an installation of ROCm (Debian, without a card: `scripts/amd-compiler.sh`)"
    )]
    NoHipCompiler {
        /// Where it was looked for.
        searched: String,
    },
    /// oclgrind was not found.
    #[error(
        "no oclgrind ICD (`liboclgrind-rt-icd.so`) in {searched}; install it (Debian: `apt install oclgrind`)"
    )]
    NoOclgrind {
        /// Where it was looked for.
        searched: String,
    },
}
