//! Images of the elements of an array, as steps name them.

use crate::draw;
use crate::lookup;
use crate::refusal::Refusal;
use kingpost_ir::{AxisImage, Kernel, NoSymmetry, Symmetry};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The index of an image along one axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImageAxis {
    /// The axis of the element whose index is taken, from 0.
    pub axis: u32,
    /// Whether it counts from the other end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mirrored: bool,
}

impl ImageAxis {
    /// The index along `axis`, from the other end.
    pub const fn mirrored(axis: u32) -> Self {
        Self { axis, mirrored: true }
    }

    /// The index along `axis`.
    pub const fn of(axis: u32) -> Self {
        Self { axis, mirrored: false }
    }
}

/// `symmetric(B, mirrored 0, 1)`, as kernels write it.
pub fn text(var: &str, axes: &[ImageAxis], negated: bool) -> String {
    let axis =
        |image: &ImageAxis| format!(", {}{}", if image.mirrored { "mirrored " } else { "" }, image.axis);
    let axes: String = axes.iter().map(axis).collect();
    format!("{}({var}{axes})", if negated { "antisymmetric" } else { "symmetric" })
}

/// The symmetry of an array with these images, if it is one.
pub fn symmetry(kernel: &Kernel, name: &str, axes: &[ImageAxis], negated: bool) -> Result<Symmetry, Refusal> {
    let var = lookup::var(kernel, name)?;
    let data = &kernel.vars[var];
    let image = |image: &ImageAxis| AxisImage { axis: image.axis, mirrored: image.mirrored };
    let symmetry = Symmetry { var, axes: axes.iter().map(image).collect(), negated };
    let refused = |found: String, needed: &str| Err(Refusal::argument("axes", found, needed));
    match symmetry.check(&data.shape) {
        Err(NoSymmetry::Axes) => {
            let needed = format!("{}, the axes of `{name}`", data.shape.len());
            refused(format!("the number of axes is {}", axes.len()), &needed)
        }
        Err(NoSymmetry::Permutation) => {
            refused("an axis is missing, or named twice".into(), "each axis of the array once")
        }
        Err(NoSymmetry::Extents) => {
            refused("axes of other extents are exchanged".into(), "axes of one extent, or mirrored axes only")
        }
        Ok(()) if symmetry.is_identity() => {
            refused("every element is its own image".into(), "a mirrored axis, or another order of the axes")
        }
        Ok(()) if negated && data.ty.is_exact() => Err(Refusal::argument(
            "negated",
            format!("`{name}` holds {}", data.ty),
            "an array of reals, which all have a negative",
        )),
        Ok(()) => Ok(symmetry),
    }
}

/// Every image along one or two axes, and its sign, for a variable of a kernel.
pub fn images(kernel: &Kernel, name: &str) -> Vec<(Vec<ImageAxis>, bool)> {
    let axes = draw::axes(kernel, name);
    let orders: &[&[u32]] = match axes {
        1 => &[&[0]],
        2 => &[&[0, 1], &[1, 0]],
        _ => &[],
    };
    let mut all = Vec::new();
    for order in orders {
        for bits in 0..1_u32 << axes {
            let axis = |(d, axis): (usize, &u32)| ImageAxis { axis: *axis, mirrored: (bits >> d) & 1 == 1 };
            let image: Vec<ImageAxis> = order.iter().enumerate().map(axis).collect();
            all.extend([false, true].map(|negated| (image.clone(), negated)));
        }
    }
    all
}
