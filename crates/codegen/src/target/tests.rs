//! Sub-groups of 64 and 32 work-items of a dialect that shares with CUDA what it does not name.

use super::Target;
use crate::error::CodegenError;
use crate::placed::PlacedKernel;
use crate::program::{Options, program};

/// Rows of `items` work-items each reverse what they hold.
fn reversed(attributes: &str, items: i64) -> String {
    format!(
        "kernel k{attributes}\n\narg x: f64[2, {items}] in\narg y: f64[2, {items}] out\ntemp h: f64[2, {items}] subgroup\n\n\
         for r in 0..2 {{l.1}}\n  for i in 0..{items} {{l.0}}\n    w: h[r, i] = x[r, i]\n  \
         for j in 0..{items} {{l.0}}\n    s: y[r, j] = h[r, {} - j]\n",
        items - 1
    )
}

fn source(text: &str, target: Target) -> Result<String, CodegenError> {
    let kernel = kingpost_ir::text::parse(text).unwrap_or_else(|e| panic!("{}", e.render(text)));
    let placed = PlacedKernel::new(&kernel)?;
    Ok(program(&placed, target.description(), &Options::default())?.1.source)
}

/// Of a wavefront, of half of one and of less: neither a shuffle nor a barrier leaves the sub-group.
#[test]
fn a_dialect_has_sub_groups_of_its_own_widths() {
    for (attributes, items) in [(" {sub_group(64)}", 64), (" {sub_group(64)}", 16), ("", 32), ("", 8)] {
        let code = source(&reversed(attributes, items), Target::Hip).unwrap();
        assert!(code.contains(&format!("h_read = __shfl(h, ({} - l0), {items});\n", items - 1)), "{code}");
    }
    // a row of the width 32 does not reach into the next one
    let refused = source(&reversed("", 64), Target::Hip).unwrap_err().to_string();
    assert!(refused.contains("sub-group"), "{refused}");
}

/// Rows of a wavefront may run apart, but not the work-items of one.
#[test]
fn conditions_keep_the_lanes_of_a_shuffle_together() {
    for attributes in [" {sub_group(64)}", ""] {
        let text = reversed(attributes, 32);
        let apart = |condition: &str| {
            let text = text.replace("h[r, 31 - j]", &format!("h[r, 31 - j] if {condition}"));
            source(&text, Target::Hip)
        };
        assert!(apart("r < 1").unwrap().contains("__shfl("));
        assert!(matches!(apart("x[r, j] < 1.0"), Err(CodegenError::DivergentIntrinsic { .. })));
    }
}

#[test]
fn a_width_that_a_dialect_does_not_have_is_refused() {
    let refused = |width: u32, target| {
        let attributes = format!(" {{sub_group({width})}}");
        source(&reversed(&attributes, width.into()), target).unwrap_err().to_string()
    };
    assert_eq!(
        refused(64, Target::Cuda),
        "the kernel has sub-groups of 64 work-items, and cuda has sub-groups of 32; give it such a width, or print \
         it for hip, opencl or c"
    );
    assert_eq!(
        refused(16, Target::Hip),
        "the kernel has sub-groups of 16 work-items, and hip has sub-groups of 32 or 64; give it such a width, or \
         print it for opencl or c"
    );
}

/// What waits is a sub-group, whose width is the kernel's, also for a buffer that two arrays share.
#[test]
fn barriers_are_of_sub_groups_where_a_dialect_has_their_width() {
    let text = |attributes: &str| {
        format!(
            "kernel k{attributes}\n\narg y: f64[64] inout\ntemp t: f64[64] local storage(b)\n\
             temp u: f64[64] local storage(b)\n\nfor a in 0..64 {{l.0}}\n  p: t[a] = 1.0\nfor b in 0..64 {{l.0}}\n  \
             q: y[b] = t[63 - b]\nfor c in 0..64 {{l.0}}\n  r: u[c] = 2.0\nfor d in 0..64 {{l.0}}\n  \
             s: y[d] += u[63 - d]\n"
        )
    };
    let barriers = |attributes: &str| {
        let code = source(&text(attributes), Target::Hip).unwrap();
        ["__builtin_amdgcn_wave_barrier();", "__syncthreads();"].map(|barrier| code.matches(barrier).count())
    };
    assert_eq!((barriers(" {sub_group(64)}"), barriers("")), ([3, 0], [0, 3]));
}

#[test]
fn targets_are_known_by_their_names() {
    for target in Target::ALL {
        assert_eq!(target.description().target, *target);
        assert_eq!(Target::named(&target.to_string()), Some(*target));
    }
    assert_eq!(Target::named("fortran"), None);
}
