//! The command line of Kingpost; `kingpost --help` explains it.

// a new variant must not fall into an old arm unseen
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

/// Steps make and drop many small expressions: a tiling candidate takes 45 ms, and 60 ms with the
/// allocator of glibc 2.36 (two cores of a shared server, 2026-11-21).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    kingpost_cli::main()
}
