//! The command line of Purlin; `purlin --help` explains it.

/// Steps make and drop many small expressions: a tiling candidate takes 45 ms, and 60 ms with the allocator of glibc
/// 2.36 (two cores of a shared server, 2026-11-21).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    purlin::cli::main()
}
