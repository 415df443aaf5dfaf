//! The corpus, `facts/corpus`: programs that other systems get wrong.

use std::path::Path;

/// The corpus is what its names say: nothing illegal passes.
#[test]
fn nothing_illegal_passes() {
    let facts = kingpost_facts::load(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/facts"))).unwrap();
    let (mut refused, mut silent, mut accepted) = (0, Vec::new(), 0);
    for (_, fact) in facts.iter().filter(|(file, _)| file.starts_with("corpus::")) {
        match (fact.name.starts_with("illegal"), crate::story::is_refusal(fact)) {
            (true, true) => refused += 1,
            (false, false) => accepted += 1,
            (true, false) | (false, true) => silent.push(&fact.name),
        }
    }
    println!("{refused} illegal programs refused, {accepted} legal ones accepted, {} silent", silent.len());
    assert!(silent.is_empty(), "{silent:?}");
    assert!(refused >= 64 && accepted >= 22);
}
