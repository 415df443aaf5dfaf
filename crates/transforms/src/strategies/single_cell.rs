//! One cell a work-item (*document 000*, §4.1, Algorithm 3).

use crate::primitives::{MakeAtomic, SetAddressSpace, SplitIname, TagIname};
use crate::recipe::{Recipe, RecipeError};
use purlin_ir::{AddressSpace, Kernel, VarKind};

/// Arguments of [`single_cell_per_work_item`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SingleCell {
    /// The loop over cells.
    pub cells: String,
    /// Tag of the instructions that scatter into global memory.
    pub scatter: String,
    /// Work-items of a group; 32 fills a sub-group of every NVIDIA device.
    pub work_group: i64,
}

impl Default for SingleCell {
    fn default() -> Self {
        Self { cells: "cell".into(), scatter: "scatter".into(), work_group: 32 }
    }
}

/// Maps every cell to one work-item: temporaries private, the scatter atomic, cells in groups of 32 on
/// g.0 × l.0.
///
/// Returns the kernel and the recipe that made it.
///
/// # Errors
/// A step that is refused: no loop over cells, no scatter, cells that depend on each other.
///
/// # Source
/// *document 000*, §4.1 and Algorithm 3.
pub fn single_cell_per_work_item(
    kernel: &Kernel,
    args: &SingleCell,
) -> Result<(Kernel, Recipe), RecipeError> {
    let (group, item) = (format!("{}_group", args.cells), format!("{}_item", args.cells));
    let split = SplitIname {
        outer: Some(group.clone()),
        inner: Some(item.clone()),
        ..SplitIname::new(&args.cells, args.work_group)
    };
    let shared =
        kernel.vars.values().filter(|v| v.kind == VarKind::Temporary && v.space != AddressSpace::Private);
    let mut recipe = Recipe::default();
    for var in shared {
        recipe = recipe.then(SetAddressSpace::new(&var.name, AddressSpace::Private));
    }
    let recipe = recipe
        .then(MakeAtomic::tag(&args.scatter))
        .then(split)
        .then(TagIname::new(group, "g.0"))
        .then(TagIname::new(item, "l.0"));
    Ok((recipe.apply(kernel)?, recipe))
}
