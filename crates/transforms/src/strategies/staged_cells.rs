//! One cell a work-item, with gather and scatter by consecutive work-items along the degrees of freedom.

use super::multi_level_tiling::{TilingError, distribute, split};
use super::single_cell::constant_tables;
use super::stages::Stages;
use super::staging::{STAGED, commit_flat, gather_flat, roll_gathers, stage_results, unrolled_rounds};
use crate::primitives::{ExpandArray, MakeAtomic, MoveInsns, Place, PrefetchArray, TagIname, TagInames};
use crate::recipe::Recipe;
use purlin_ir::{AddressSpace, Kernel};

/// Arguments of [`staged_cells`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StagedCells {
    /// Cells, and so work-items, of a group.
    pub work_group: i64,
    /// Whether the tables go to constant memory.
    pub constant_tables: bool,
}

/// Maps every cell to one work-item, but gathers and scatters all degrees of freedom of the group's cells through
/// local memory, one after the other along the work-items.
///
/// The single-cell strategy (Kulkarni & Klöckner 2025, §4.1) reads and updates with a stride of one cell
/// between work-items, so that every work-item touches a memory segment of its own; here neighbours touch
/// neighbours, as far as the numbering has them together. Arithmetic is the same.
///
/// # Errors
/// A kernel without the stages of an action, a group of no or more than 1024 work-items, or a step that was refused.
///
/// # Source
/// Kulkarni & Klöckner 2025, §6.3.1 names the layout of the degrees of freedom as what bounds low orders.
pub fn staged_cells(kernel: &Kernel, args: &StagedCells) -> Result<(Kernel, Recipe), TilingError> {
    let stages = Stages::of(kernel)?;
    if !(1..=1024).contains(&args.work_group) {
        return Err(TilingError::Parameter {
            symbol: "the number of cells of a group".into(),
            found: args.work_group,
            needed: "1 to 1024, the work-items of a group on any device".into(),
        });
    }
    let mut recipe = args.recipe(&stages);
    if args.constant_tables {
        recipe = constant_tables(kernel, recipe);
    }
    Ok((recipe.apply(kernel)?, recipe))
}

impl StagedCells {
    fn recipe(&self, s: &Stages) -> Recipe {
        let recipe = stage_results(s, &s.scatter, "commit_dof", Recipe::default());
        let recipe = self.cells_of_a_group(s, roll_gathers(s, recipe));
        let recipe = self.through_local_memory(s, recipe);
        let flat = s.gathers.iter().cloned().chain(["commit".into()]).map(|name| format!("{name}_l0"));
        let items: Vec<String> = flat.chain(["cell_compute".into()]).collect();
        let rounds = unrolled_rounds(s, s.row_count, self.work_group, self.work_group);
        let recipe = recipe.then(MakeAtomic::tag("scatter"));
        let recipe = match rounds.is_empty() {
            true => recipe,
            false => recipe.then(TagInames::new(rounds, "unroll")),
        };
        recipe.then(TagIname::new("cell_group", "g.0")).then(TagInames::new(items, "l.0"))
    }

    fn cells_of_a_group(&self, s: &Stages, mut recipe: Recipe) -> Recipe {
        if !s.late_gathers.is_empty() {
            let to = Place::Before(s.first.clone());
            recipe = recipe.then(MoveInsns { statements: s.late_gathers.clone(), to });
        }
        let function =
            |gather: &String| s.fields.iter().find(|f| f.gathered.iter().any(|g| g.gather == *gather));
        let mut names: Vec<String> =
            s.gathers.iter().filter_map(function).map(|f| format!("cells_{}", f.name)).collect();
        recipe = recipe.then(split(&s.cell, self.work_group, "cell_group", &names[0]));
        let arrays = s.fields.iter().flat_map(|f| &f.gathered).map(|g| &g.array);
        for var in arrays.map(String::as_str).chain([STAGED]) {
            recipe = recipe.then(ExpandArray::new(var, [&names[0]]));
        }
        let mut parts: Vec<String> = s.gathers.iter().skip(1).cloned().collect();
        parts.extend([s.first.clone(), "commit_dof".into()]);
        names.extend(["cell_compute".into(), "cell_commit".into()]);
        recipe.then(distribute(&names[0], &parts, &names[1..]))
    }

    fn through_local_memory(&self, s: &Stages, mut recipe: Recipe) -> Recipe {
        let group = [self.work_group, 1];
        for f in &s.fields {
            for g in &f.gathered {
                recipe = recipe.then(PrefetchArray::new(&g.array, "cell_compute", AddressSpace::Private));
            }
            recipe = gather_flat(f, |_| format!("cells_{}", f.name), group, recipe);
        }
        commit_flat(s, s.row_count, ["cell_commit", "commit_dof"], group, recipe)
    }
}
