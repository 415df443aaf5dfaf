//! Says what isl is built with, and what it cannot be built without.
//!
//! isl-rs configures isl in a build script of its own, which nothing but the environment reaches:
//! autoconf reads `CONFIG_SITE`, and `.cargo/config.toml` of the crate that is built sets it. A
//! dependency cannot. That script does not look whether the tools that it calls are there, and panics
//! at the first file that none of them has made; both scripts run at a time, so that this one tells
//! what is missing, before it or with it.

mod build_tools;

use std::path::PathBuf;

/// The line of `isl.config.site`.
const SMALL_INTEGERS: &str = "with_int=imath-32";

fn main() {
    println!("cargo::rerun-if-env-changed=CONFIG_SITE");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=build_tools.rs");
    let path = std::env::var_os("PATH").unwrap_or_default();
    if let Some(missing) = build_tools::missing(&path) {
        println!("cargo::error={missing}");
    }
    let site = std::env::var_os("CONFIG_SITE").map(PathBuf::from);
    if let Some(site) = &site {
        println!("cargo::rerun-if-changed={}", site.display());
    }
    let text = site.and_then(|site| std::fs::read_to_string(site).ok()).unwrap_or_default();
    if !text.lines().any(|line| line.trim() == SMALL_INTEGERS) {
        println!(
            "cargo::warning=isl is built without its small integers and will be 2 to 8 times slower; in \
             `.cargo/config.toml` of your crate set `CONFIG_SITE` to Purlin's `isl.config.site` \
             (docs/book/src/library.md), then `cargo clean -p isl-rs`"
        );
    }
}
