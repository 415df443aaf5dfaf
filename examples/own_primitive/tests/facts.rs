//! The facts of this crate's primitive, run as Kingpost's own are.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/facts"));
    match own_primitive::steps() {
        Ok(set) => kingpost_step_facts::main(&set, folder),
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
