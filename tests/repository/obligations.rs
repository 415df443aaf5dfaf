//! What a step proved is shown only if its checks say so: who refuses by an obligation says where it holds.

use super::architecture::{code, sources};
use std::path::Path;

const REFUSES: [&str; 3] = [".unfit(", ".undecided(", ".not_proved("];
const TELLS: [&str; 9] =
    [".require(", ".forbid(", ".find(", ".known(", ".met(", ".decide(", ".refute(", ".holds(", ".holds_in("];

#[test]
fn checks_say_what_holds() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for part in ["crates/steps", "crates/transforms", "crates/algebra", "examples/own_primitive"] {
        sources(&root.join(part), &mut files);
    }
    let (mut silent, mut seen) = (Vec::new(), 0);
    for file in files {
        // what every step keeps is told in `kept`
        if file.ends_with("steps/src/refusal.rs") {
            continue;
        }
        let text = code(&std::fs::read_to_string(&file).unwrap()).concat();
        let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        for (at, call) in REFUSES.iter().flat_map(|call| text.match_indices(call)) {
            seen += 1;
            let is_name = |c: char| c.is_alphanumeric() || c == '_';
            let start = text[..at].rfind(|c| !is_name(c)).map_or(0, |k| k + 1);
            let name = &text[start..at];
            if !TELLS.iter().any(|tells| text.contains(&format!("{name}{tells}"))) {
                silent.push(format!("{}: {name}{call}", file.display()));
            }
        }
    }
    assert!(seen > 20, "{seen}");
    assert_eq!(silent, [""; 0], "these refuse by a condition, and do not say where it holds");
}
