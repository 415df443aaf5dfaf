//! One cell a work-item (Kulkarni & Klöckner 2025, §4.1, Algorithm 3).

use crate::primitives::{MakeAtomic, SetAddressSpace, SplitIname, TagIname};
use crate::recipe::{Recipe, RecipeError};
use purlin_ir::{AddressSpace, Kernel, VarKind, Variable};

/// Arguments of [`single_cell_per_work_item`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SingleCell {
    /// The loop over cells; if none is named, the outermost loop around the instructions that scatter.
    pub cells: Option<String>,
    /// Tag of the instructions that scatter into global memory.
    pub scatter: String,
    /// Work-items of a group; 32 fills a sub-group of every NVIDIA device.
    pub work_group: i64,
    /// Whether the tables go to constant memory: all work-items of a sub-group read the same entry, which constant
    /// memory serves as fast as a register while its cache holds them (4 KB: 15 TFLOP/s, local memory 17, cached
    /// global memory 8; H200, 2026-11-21).
    pub constant_tables: bool,
}

impl Default for SingleCell {
    fn default() -> Self {
        Self { cells: None, scatter: "scatter".into(), work_group: 32, constant_tables: false }
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
/// Kulkarni & Klöckner 2025, §4.1 and Algorithm 3.
pub fn single_cell_per_work_item(
    kernel: &Kernel,
    args: &SingleCell,
) -> Result<(Kernel, Recipe), RecipeError> {
    // Where nothing scatters, no loop is found, and the first step says why.
    let cells = args.cells.clone().or_else(|| loop_around(kernel, &args.scatter)).unwrap_or_default();
    let (group, item) =
        (kernel.fresh_name(&format!("{cells}_group")), kernel.fresh_name(&format!("{cells}_item")));
    let split = SplitIname {
        outer: Some(group.clone()),
        inner: Some(item.clone()),
        ..SplitIname::new(&cells, args.work_group)
    };
    let shared =
        kernel.vars.values().filter(|v| v.kind == VarKind::Temporary && v.space != AddressSpace::Private);
    let mut recipe = Recipe::default();
    for var in shared {
        recipe = recipe.then(SetAddressSpace::new(&var.name, AddressSpace::Private));
    }
    if args.constant_tables {
        recipe = constant_tables(kernel, recipe);
    }
    let recipe = recipe
        .then(MakeAtomic::tag(&args.scatter))
        .then(split)
        .then(TagIname::new(group, "g.0"))
        .then(TagIname::new(item, "l.0"));
    Ok((recipe.apply(kernel)?, recipe))
}

/// The outermost loop around the first instruction with a tag.
fn loop_around(kernel: &Kernel, tag: &str) -> Option<String> {
    let schedule = kernel.schedule();
    let (_, loops) = schedule.iter().find(|(insn, _)| kernel.insns[*insn].tags.contains(tag))?;
    Some(kernel.inames[*loops.first()?].name.clone())
}

/// Moves every table to constant memory.
pub(super) fn constant_tables(kernel: &Kernel, mut recipe: Recipe) -> Recipe {
    let is_global = |v: &&Variable| matches!(v.kind, VarKind::Table(_)) && v.space == AddressSpace::Global;
    for table in kernel.vars.values().filter(is_global) {
        recipe = recipe.then(SetAddressSpace::new(&table.name, AddressSpace::Constant));
    }
    recipe
}
