//! Inverses of affine maps.

use kingpost_ir::{Affine, Id, InameId};
use kingpost_steps::inverse::preimage;

fn i(k: usize) -> Affine {
    Affine::iname(InameId::from_index(k))
}

/// The inverse of rows in loops 0 and 1, as functions of loops 10, 11 and so on.
fn inverse(rows: &[Affine]) -> Option<Vec<Affine>> {
    let new = (10..).map(InameId::from_index);
    let rows: Vec<_> = new.zip(rows.iter().cloned()).collect();
    preimage(&rows, &[InameId::from_index(0), InameId::from_index(1)])
}

#[test]
fn unimodular_rows_leave_no_quotients() {
    let found = inverse(&[i(0).times(2).plus(&i(1)), i(0).plus(&i(1)).plus_constant(3)]);
    let t = i(10).minus(&i(11)).plus_constant(3);
    assert_eq!(found, Some(vec![t, i(11).times(2).minus(&i(10)).plus_constant(-6)]));
}

#[test]
fn strides_and_tiles_are_inverted() {
    assert_eq!(inverse(&[i(0).times(-2), i(1)]), Some(vec![i(10).times(-1).floor_div(2), i(11)]));
    let tile = [i(0).floor_div(32), i(1), i(0).modulo(32)];
    assert_eq!(inverse(&tile), Some(vec![i(10).times(32).plus(&i(12)), i(11)]));
}

#[test]
fn rows_that_leave_a_loop_open_have_no_inverse() {
    assert_eq!(inverse(&[i(0).plus(&i(1))]), None);
    assert_eq!(inverse(&[i(0), i(1).floor_div(2)]), None);
}
