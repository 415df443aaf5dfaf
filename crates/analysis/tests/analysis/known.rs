//! What one analysis of a kernel finds out, the next one knows.

use kingpost_analysis::Known;

#[test]
fn analyses_of_a_known_kernel_share_what_they_find() {
    let text = "kernel k\narg a: f64[64] in\narg b: f64[64] out\ntemp t: f64[64] local\n\nfor i in 0..64 {l.0}\n  \
                s: t[i] = a[i]\nfor j in 0..64 {l.0}\n  r: b[j] = t[63 - j]\n";
    let known = Known::of(kingpost_ir::text::parse(text).unwrap());
    let copy = known.clone();
    let (first, second, of_copy) = (known.analysis(), known.analysis(), copy.analysis());
    let placement = first.place().unwrap();
    assert_eq!(placement.barriers.len(), 1);
    assert!(std::ptr::eq(placement, second.place().unwrap()));
    assert!(std::ptr::eq(first.all_sites(), second.all_sites()));
    assert!(std::ptr::eq(placement, of_copy.place().unwrap()));
    let other = Known::of(copy.into_kernel());
    assert!(!std::ptr::eq(placement, other.analysis().place().unwrap()));
}
