//! Relations that have pairs have a witness.

use kingpost_analysis::Analysis;
use kingpost_analysis::deps::pair::{Order, pair_relation};
use kingpost_analysis::polyhedral::smallest_pair;

#[test]
fn a_pair_of_an_odd_number_below_a_wide_one_is_found() {
    let kernel = kingpost_ir::text::parse(
        "kernel sample\n\nparam m: i32\nparam row: i64\narg word: u32[4] inout\nassume m >= 1\nassume m <= row\n
for i in 0..m where m mod 2 == 1\n  for j in 0..m\n    s: word[0] *= word[0]\n",
    )
    .unwrap();
    let analysis = Analysis::of(&kernel);
    let poly = analysis.polyhedral();
    let sites = analysis.sites(kernel.var("word").unwrap());
    let [write, read] = [true, false].map(|writes| sites.iter().find(|s| s.writes() == writes).unwrap());
    let outer = &poly.loops(write.insn)[..1];
    let map = pair_relation(poly, write, read, Order::Within(outer)).unwrap().map(poly).unwrap();
    assert!(!map.is_empty().unwrap());
    let pair = smallest_pair(&kernel, &map).unwrap();
    assert!(pair.is_some(), "{map}");
}
