use crate::story::{assert_style, kernel};
use kingpost_primitives::Primitive;
use kingpost_primitives::primitives::FixArgument;

/// The text of schedules has no infinity.
#[test]
fn refuses_infinity() {
    let text = "kernel k\narg c: f64 in\narg y: f64 inout\ns: y += c\n";
    let message = FixArgument::real("c", [f64::INFINITY]).apply(&kernel(text)).unwrap_err().to_string();
    assert_style(&message);
    assert_eq!(
        message,
        "fix `c` to inf: `c` has type f64, which holds finite values of that type only [fix_argument.finite]"
    );
}
