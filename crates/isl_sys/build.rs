//! Unpacks isl's sources and compiles them with a prepared configuration.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

const ARCHIVE: &str = "isl-0.27.tar.gz";

/// The C files of the library: of `libisl_la_SOURCES` in isl's Makefile, those for IMath with small integers.
const SOURCES: &str = include_str!("sources.txt");

fn main() -> Result<(), Box<dyn Error>> {
    for input in [ARCHIVE, "isl_config.h", "sources.txt", "build.rs"] {
        println!("cargo::rerun-if-changed={input}");
    }
    let isl = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?).join("isl");
    unpack(&isl)?;
    let mut build = cc::Build::new();
    build.std("gnu99").define("HAVE_CONFIG_H", None).warnings(false).debug(false);
    // A debug build of Kingpost proves as much as any other: isl is optimised in each. At the first level it takes two
    // thirds of the time to compile, and is some 5 % slower.
    build.opt_level(if env::var_os("OPT_LEVEL").is_some_and(|level| level == "1") { 1 } else { 2 });
    for folder in ["", "include", "imath_wrap"] {
        build.include(isl.join(folder));
    }
    build.files(SOURCES.lines().map(|file| isl.join(file)));
    if let Err(error) = build.try_compile("isl") {
        println!(
            "cargo::error=isl, Kingpost's solver, is compiled from C: {error}; where there is no C compiler, install \
             one (Debian: `apt install gcc libc6-dev`) or name it in `CC`"
        );
    }
    Ok(())
}

/// Writes the sources, and the three headers that isl's configure would write.
fn unpack(isl: &Path) -> Result<(), Box<dyn Error>> {
    if isl.exists() {
        fs::remove_dir_all(isl)?;
    }
    tar::Archive::new(flate2::read::GzDecoder::new(fs::File::open(ARCHIVE)?)).unpack(isl)?;
    fs::copy("isl_config.h", isl.join("isl_config.h"))?;
    fs::write(isl.join("gitversion.h"), "#define GIT_HEAD_ID \"UNKNOWN\"\n")?;
    fs::write(isl.join("include/isl/stdint.h"), "#include <stdint.h>\n")?;
    Ok(())
}
