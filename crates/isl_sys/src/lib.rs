//! Links libisl, the integer set library, of version 0.27.
//!
//! The build script compiles the sources in `isl-0.27.tar.gz` (MIT, unchanged; `scripts/isl-archive.sh` writes
//! it) with the C compiler that the crate `cc` finds: no autotools, and nothing but IMath, which is among
//! them. Integers of at most 32 bits stand in the pointer to a long one (isl's `--with-int=imath-32`):
//! without that isl allocates for each number, and proofs take 1.7 to 3.6 times as long.
//!
//! Declarations of its functions are in `kingpost-isl`.

#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]
