//! Strategies on small kernels: the recipe, the result, and what is refused.
#![allow(clippy::unwrap_used, clippy::panic)] // what a failed test does

use insta::assert_snapshot;
use purlin_forms::program::{CellLoop, NotAnAction};
use purlin_forms::strategies::{SingleCell, StrategyError, single_cell_per_work_item};
use purlin_interp::{Memory, interpret};
use purlin_ir::{AxisTag, Kernel};
use purlin_primitives::Recipe;
use purlin_primitives::schedule::Loop;

const ACTION: &str = "kernel action
param n: i32
param m: i32
arg dof: i32[n, 3] in
arg u: f64[m] in
arg y: f64[m] inout
temp l: f64[3] local
temp r: f64[3] private
table a: f64[3, 3] constant
for cell in 0..n
  for j in 0..3
    gather: l[j] = u[dof[cell, j]] {gather}
  for i in 0..3
    evaluate: r[i] = sum(k in 0..3: a[i, k]*l[k])
  for q in 0..3
    scatter: y[dof[cell, q]] += r[q] {scatter}

table a = [2.0, -1.0, -1.0, -1.0, 2.0, -1.0, -1.0, -1.0, 2.0]
";

fn story(text: &str, args: &SingleCell) -> String {
    story_of(text, |kernel| single_cell_per_work_item(kernel, &CellLoop::read(kernel)?, args))
}

fn story_of(text: &str, strategy: impl Fn(&Kernel) -> Result<(Kernel, Recipe), StrategyError>) -> String {
    let kernel = purlin_ir::text::parse(text).unwrap_or_else(|e| panic!("{}", e.render(text)));
    match strategy(&kernel) {
        Err(error) => format!("{kernel}\nrefused: {error}\n"),
        Ok((result, recipe)) => {
            assert_eq!(recipe.apply(&kernel).as_ref(), Ok(&result));
            let run = |kernel| {
                let mut memory = Memory::new().param("n", 5).param("m", 7);
                memory.set("dof", (0..15).map(|k| k * 5 % 7).collect::<Vec<i32>>());
                memory.set("u", (0..7).map(f64::from).collect::<Vec<_>>());
                memory.set("y", vec![0.5; 7]);
                interpret(kernel, &mut memory).unwrap();
                memory
            };
            assert_eq!(run(&kernel), run(&result));
            format!("{kernel}\n=== recipe\n\n{recipe}\n=== result\n\n{result}")
        }
    }
}

#[test]
fn single_cell() {
    assert_snapshot!(story(ACTION, &SingleCell { work_group: 4, ..SingleCell::default() }));
}

/// The loop over cells is the one around the scatter, whatever its name; the new loops give way to
/// what is there.
#[test]
fn finds_the_cells_by_the_scatter() {
    let text = ACTION.replace("cell", "c").replace(" u", " cell").replace("temp l", "temp c_item");
    let text = text.replace("temp r", "temp c_group").replace("r[", "c_group[").replace(" l[", " c_item[");
    let text = text.replace("*l[", "*c_item[");
    let kernel = purlin_ir::text::parse(&text).unwrap_or_else(|e| panic!("{}", e.render(&text)));
    let cells = CellLoop::read(&kernel).unwrap();
    assert_eq!((cells.cell.name(), cells.commits[0].name()), ("c", "scatter"));
    let (result, _) = single_cell_per_work_item(&kernel, &cells, &SingleCell::default()).unwrap();
    let (outer, inner) = (result.iname("c_group_1").unwrap(), result.iname("c_item_1").unwrap());
    assert_eq!(result.inames[outer].tag, AxisTag::Group(0));
    assert_eq!(result.inames[inner].tag, AxisTag::Local(0));
}

#[test]
fn refuses_without_a_scatter() {
    assert_snapshot!(story(&ACTION.replace("{scatter}", ""), &SingleCell::default()));
}

#[test]
fn refuses_a_scatter_outside_of_loops() {
    let text = "kernel k\narg y: f64[2] inout\nscatter: y[0] += 1.0 {scatter}\n";
    let found = "no loop is around what has the tag `scatter`".into();
    let kernel = purlin_ir::text::parse(text).unwrap();
    assert_eq!(CellLoop::read(&kernel), Err(NotAnAction { kernel: "k".into(), found }));
}

#[test]
fn refuses_without_cells() {
    let strategy = |kernel: &Kernel| {
        let cells = CellLoop { cell: Loop::named("element"), ..CellLoop::read(kernel)? };
        single_cell_per_work_item(kernel, &cells, &SingleCell::default())
    };
    assert_snapshot!(story_of(ACTION, strategy));
}

#[test]
fn refuses_cells_that_read_what_others_wrote() {
    let dependent = ACTION.replace("u[dof[cell, j]]", "u[dof[cell, j]] + y[dof[cell, j]]");
    assert_snapshot!(story(&dependent, &SingleCell::default()));
}

#[test]
fn refuses_groups_of_nothing() {
    assert_snapshot!(story(ACTION, &SingleCell { work_group: 0, ..SingleCell::default() }));
}
