//! Gather and scatter of a group's cells through local memory, along consecutive work-items.

use super::multi_level_tiling::{distribute, split};
use super::stages::{Field, Gathered, Stages};
use crate::primitives::{
    ExpandArray, JoinArrayAxes, JoinArrays, JoinInames, MoveInsns, PadArray, Place, RollInsns,
    SetAddressSpace, StageValue,
};
use crate::recipe::Recipe;
use purlin_ir::AddressSpace;

/// What the scatter adds, before it is committed.
pub(super) const STAGED: &str = "staged";

/// Most rounds of a gather that are written out.
const MAX_ROUNDS: i64 = 32;

/// The loop over the components of what is committed.
const COMMIT: &str = "commit_component";

/// The loop of the scatter stores what it adds, and a loop behind it commits that: all components of a degree of
/// freedom in a loop.
pub(super) fn stage_results(s: &Stages, scatter: &str, commit: &str, mut recipe: Recipe) -> Recipe {
    let parts: Vec<String> = match s.commits.len() {
        1 => vec![STAGED.into()],
        n => (0..n).map(|k| format!("{STAGED}_{k}")).collect(),
    };
    for (insn, part) in s.commits.iter().zip(&parts) {
        recipe = recipe.then(StageValue::new(insn, part));
    }
    let mut rolled = s.commits[0].clone();
    if parts.len() > 1 {
        let statements = parts[1..].iter().map(|o| format!("set_{o}")).collect();
        recipe = recipe
            .then(MoveInsns { statements, to: Place::Before(s.commits[0].clone()) })
            .then(JoinArrays::new(&parts, STAGED, 0))
            .then(RollInsns::new(&s.commits, COMMIT));
        rolled = COMMIT.into();
    }
    recipe.then(ExpandArray::new(STAGED, [scatter])).then(distribute(scatter, &[rolled], &[commit.into()]))
}

/// The components of each function are gathered in a loop.
pub(super) fn roll_gathers(s: &Stages, mut recipe: Recipe) -> Recipe {
    for g in s.fields.iter().flat_map(|f| &f.gathered).filter(|g| g.insns.len() > 1) {
        recipe = recipe.then(RollInsns::new(&g.insns, component_loop(g)));
    }
    recipe
}

fn component_loop(g: &Gathered) -> String {
    format!("{}_component", g.gather)
}

/// Gathers the functions of a field into local memory by the work-items of a group: `cells` is the loop over the
/// cells around each.
pub(super) fn gather_flat(
    f: &Field,
    cells: impl Fn(&Gathered) -> String,
    group: [i64; 2],
    mut recipe: Recipe,
) -> Recipe {
    for g in &f.gathered {
        let components = g.insns.len() as i64;
        recipe = to_local(&g.array, f.dof_count, components, recipe);
        let component = (components > 1).then(|| component_loop(g));
        recipe = flat(&cells(g), &g.gather, component, &g.gather, group, recipe);
    }
    recipe
}

/// Commits the staged results of `rows` rows likewise.
pub(super) fn commit_flat(
    s: &Stages,
    rows: i64,
    [cells, row]: [&str; 2],
    group: [i64; 2],
    recipe: Recipe,
) -> Recipe {
    let components = s.commits.len() as i64;
    let recipe = to_local(STAGED, rows, components, recipe);
    flat(cells, row, (components > 1).then(|| COMMIT.into()), "commit", group, recipe)
}

/// The loops over rounds that are written out, so that a round's reads need not wait for those of the one before:
/// names as [`gather_flat`] and [`commit_flat`] give them.
pub(super) fn unrolled_rounds(s: &Stages, rows: i64, cells: i64, items: i64) -> Vec<String> {
    let gathers = s.fields.iter().flat_map(|f| f.gathered.iter().map(move |g| (f, g)));
    let gathers = gathers.map(|(f, g)| (g.gather.clone(), f.dof_count * g.insns.len() as i64));
    let all = gathers.chain([("commit".to_owned(), rows * s.commits.len() as i64)]);
    let few = all.filter(|(_, words)| (cells * words + items - 1) / items <= MAX_ROUNDS);
    few.map(|(name, _)| format!("{name}_round")).collect()
}

/// An array of cells, each a row, to local memory. Work-items that read neighbouring cells would meet in the same
/// banks if a row had an even number of words.
pub(super) fn to_local(array: &str, dofs: i64, components: i64, recipe: Recipe) -> Recipe {
    let recipe = recipe.then(SetAddressSpace::new(array, AddressSpace::Local));
    let recipe = match components {
        1 => recipe,
        _ => recipe.then(JoinArrayAxes { var: array.into(), axis: 1 }),
    };
    if (dofs * components) % 2 != 0 {
        return recipe;
    }
    recipe.then(PadArray { var: array.into(), axis: 1, by: 1 })
}

/// A nest over cells, degrees of freedom and perhaps components, dealt out to the work-items of a group in rounds:
/// loops `{name}_l0`, `{name}_l1` if the group has two axes, and `{name}_round`.
fn flat(
    cells: &str,
    dofs: &str,
    component: Option<String>,
    name: &str,
    [l0, l1]: [i64; 2],
    recipe: Recipe,
) -> Recipe {
    let (mut row, mut recipe) = (dofs.to_owned(), recipe);
    if let Some(component) = component {
        recipe = recipe.then(JoinInames::new(&row, &component));
        row = format!("{row}_{component}");
    }
    let recipe = recipe.then(JoinInames::new(cells, &row));
    let joined = format!("{cells}_{row}");
    let (round, flat) = (format!("{name}_round"), format!("{name}_flat"));
    match l1 {
        1 => recipe.then(split(&joined, l0, &round, &format!("{name}_l0"))),
        _ => recipe.then(split(&joined, l0 * l1, &round, &flat)).then(split(
            &flat,
            l0,
            &format!("{name}_l1"),
            &format!("{name}_l0"),
        )),
    }
}
