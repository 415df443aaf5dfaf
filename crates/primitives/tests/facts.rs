//! The facts of the primitives: `facts/PRIMITIVE/*.txt`.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/facts"));
    kingpost_step_facts::main(kingpost_primitives::steps(), folder)
}
