//! That a dialect is a file: one of sub-groups of 64 work-items, which shares with CUDA what it does not
//! name.

use super::{ShuffleWord, SubGroups, Target, TargetDescription, Words, cuda};
use crate::error::CodegenError;
use crate::placed::PlacedKernel;
use crate::program::{Options, program};

const WAVES: TargetDescription = TargetDescription {
    sub_groups: SubGroups::Hardware {
        widths: &[64],
        shuffle: &[
            ShuffleWord::To,
            ShuffleWord::Text(" = __shfl("),
            ShuffleWord::Value,
            ShuffleWord::Text(", "),
            ShuffleWord::Lane,
            ShuffleWord::Text(", "),
            ShuffleWord::Width,
            ShuffleWord::Text("); // of "),
            ShuffleWord::Mask,
        ],
    },
    words: Words { inline: "__device__ inline", ..cuda::CUDA.words },
    ..cuda::CUDA
};

/// Rows of `items` work-items each reverse what they hold.
fn reversed(attributes: &str, items: i64) -> String {
    format!(
        "kernel k{attributes}\n\narg x: f64[2, {items}] in\narg y: f64[2, {items}] out\ntemp h: f64[2, {items}] subgroup\n\n\
         for r in 0..2 {{l.1}}\n  for i in 0..{items} {{l.0}}\n    w: h[r, i] = x[r, i]\n  \
         for j in 0..{items} {{l.0}}\n    s: y[r, j] = h[r, {} - j]\n",
        items - 1
    )
}

fn source(text: &str, target: &'static TargetDescription) -> Result<String, CodegenError> {
    let kernel = kingpost_ir::text::parse(text).unwrap_or_else(|e| panic!("{}", e.render(text)));
    let placed = PlacedKernel::new(&kernel)?;
    Ok(program(&placed, target, &Options::default())?.1.source)
}

#[test]
fn a_dialect_has_sub_groups_of_its_own_width() {
    let whole = source(&reversed(" {sub_group(64)}", 64), &WAVES).unwrap();
    assert!(whole.contains("h_read = __shfl(h, (63 - l0), 64); // of 0xffffffffffffffffull"), "{whole}");
    let part = source(&reversed(" {sub_group(64)}", 16), &WAVES).unwrap();
    let mask = "0xffffull << (16*(threadIdx.y + 2*threadIdx.z) % 64)";
    assert!(part.contains(&format!("h_read = __shfl(h, (15 - l0), 16); // of {mask}")), "{part}");
    // a row of the width 32 does not reach into the next one
    let refused = source(&reversed("", 64), &WAVES).unwrap_err().to_string();
    assert!(refused.contains("sub-group"), "{refused}");
}

#[test]
fn a_width_that_a_dialect_does_not_have_is_refused() {
    let refused = |text: &str, target| source(text, target).unwrap_err();
    let wide = refused(&reversed(" {sub_group(64)}", 32), Target::Cuda.description());
    assert_eq!(
        wide.to_string(),
        "the kernel has sub-groups of 64 work-items, and cuda has sub-groups of 32; give it such a width, or print \
         it for opencl or c"
    );
    let default = refused(&reversed("", 32), &WAVES);
    assert!(matches!(default, CodegenError::SubGroupWidth { .. }), "{default}");
    // a kernel that names no width and holds nothing in sub-groups runs anywhere
    let plain = reversed("", 32).replace("subgroup", "local");
    let code = source(&plain, &WAVES).unwrap();
    assert!(code.contains("__syncthreads();") && !code.contains("__syncwarp();"), "{code}");
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
        let code = source(&text(attributes), &WAVES).unwrap();
        ["__syncwarp();", "__syncthreads();"].map(|barrier| code.matches(barrier).count())
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
