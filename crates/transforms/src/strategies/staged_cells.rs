//! One cell a work-item, with gather and scatter by consecutive work-items along the degrees of freedom.

use super::multi_level_tiling::{TilingError, distribute, split};
use super::single_cell::constant_tables;
use super::stages::{Gathered, Stages};
use crate::primitives::{
    ExpandArray, JoinInames, MakeAtomic, MoveInsns, PadArray, Place, PrefetchArray, SetAddressSpace,
    StageValue, TagIname, TagInames,
};
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
/// The single-cell strategy (*document 000*, §4.1) reads and updates with a stride of one cell between work-items,
/// so that every work-item touches a memory segment of its own; here neighbours touch neighbours, as far as the
/// numbering has them together. Arithmetic is the same.
///
/// # Errors
/// A kernel without the stages of an action, a group of no or more than 1024 work-items, or a step that was refused.
///
/// # Source
/// *Document 000*, §6.3.1 names the layout of the degrees of freedom as what bounds low orders.
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

/// The loop of the scatter stores what it adds, and a loop behind it commits that.
pub(super) fn stage_results(
    s: &Stages,
    outs: &[String],
    scatter: &str,
    commit: &str,
    mut recipe: Recipe,
) -> Recipe {
    for (insn, out) in s.commits.iter().zip(outs) {
        recipe = recipe.then(StageValue::new(insn, out));
    }
    if let [first, others @ ..] = &s.commits[..]
        && !others.is_empty()
    {
        let statements = outs[1..].iter().map(|o| format!("set_{o}")).collect();
        recipe = recipe.then(MoveInsns { statements, to: Place::Before(first.clone()) });
    }
    for out in outs {
        recipe = recipe.then(ExpandArray::new(out, [scatter]));
    }
    recipe.then(distribute(scatter, &s.commits[..1], &[commit.into()]))
}

impl StagedCells {
    fn recipe(&self, s: &Stages) -> Recipe {
        let outs = s.staged_results();
        let recipe = stage_results(s, &outs, &s.scatter, "commit_dof", Recipe::default());
        let recipe = self.cells_of_a_group(s, &outs, recipe);
        let recipe = self.through_local_memory(s, &outs, recipe);
        let rounds = s.fields.iter().map(|f| format!("gather_{}", f.name)).chain(["commit".into()]);
        let items: Vec<String> = rounds.map(|n| format!("{n}_item")).chain(["cell_compute".into()]).collect();
        recipe
            .then(MakeAtomic::tag("scatter"))
            .then(TagIname::new("cell_group", "g.0"))
            .then(TagInames::new(items, "l.0"))
    }

    fn cells_of_a_group(&self, s: &Stages, outs: &[String], mut recipe: Recipe) -> Recipe {
        if !s.late_gathers.is_empty() {
            let to = Place::Before(s.first.clone());
            recipe = recipe.then(MoveInsns { statements: s.late_gathers.clone(), to });
        }
        let mut names: Vec<String> = s.fields.iter().map(|f| format!("cells_{}", f.name)).collect();
        recipe = recipe.then(split(&s.cell, self.work_group, "cell_group", &names[0]));
        let arrays = s.fields.iter().flat_map(|f| &f.gathered).map(|g| &g.array);
        for var in outs.iter().chain(arrays) {
            recipe = recipe.then(ExpandArray::new(var, [&names[0]]));
        }
        let mut parts = s.gathers().split_off(1);
        parts.extend([s.first.clone(), "commit_dof".into()]);
        names.extend(["cell_compute".into(), "cell_commit".into()]);
        recipe.then(distribute(&names[0], &parts, &names[1..]))
    }

    fn through_local_memory(&self, s: &Stages, outs: &[String], mut recipe: Recipe) -> Recipe {
        let gathered = s.fields.iter().flat_map(|f| f.gathered.iter().map(move |g| (f, g)));
        for (f, Gathered { array, components, gather }) in gathered {
            let copy = PrefetchArray::new(array, "cell_compute", AddressSpace::Private);
            recipe = recipe
                .then(copy)
                .then(SetAddressSpace::new(array, AddressSpace::Local))
                .then(JoinInames::new(format!("cells_{}", f.name), gather))
                .then(self.flat(&format!("cells_{}_{gather}", f.name), &format!("gather_{}", f.name)));
            // an even stride between work-items would meet in the same banks
            if f.dof_count * components.unwrap_or(1) % 2 == 0 {
                recipe = recipe.then(PadArray { var: array.clone(), axis: 1, by: 1 });
            }
        }
        for out in outs {
            recipe = recipe.then(SetAddressSpace::new(out, AddressSpace::Local));
            if s.row_count % 2 == 0 {
                recipe = recipe.then(PadArray { var: out.clone(), axis: 1, by: 1 });
            }
        }
        recipe
            .then(JoinInames::new("cell_commit", "commit_dof"))
            .then(self.flat("cell_commit_commit_dof", "commit"))
    }

    /// A joined loop over the work-items of the group, in rounds.
    fn flat(&self, joined: &str, name: &str) -> crate::primitives::SplitIname {
        split(joined, self.work_group, &format!("{name}_round"), &format!("{name}_item"))
    }
}
