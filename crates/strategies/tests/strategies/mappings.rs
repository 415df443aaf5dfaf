//! Strategies on small kernels: the recipe, the result, and what is refused.
#![allow(clippy::unwrap_used, clippy::panic)] // what a failed test does

use insta::assert_snapshot;
use kingpost_forms::CellKernel;
use kingpost_forms::program::{CellLoop, CellProgram, NotAnAction};
use kingpost_forms::tabulated::IntegralType;
use kingpost_interp::{Memory, interpret};
use kingpost_ir::{AxisTag, Kernel};
use kingpost_primitives::Recipe;
use kingpost_primitives::schedule::Loop;
use kingpost_strategies::{FewestOperations, HoleValues, SingleCell, strategies};
use kingpost_strategies::{Mapping, MappingError};
use std::borrow::Cow;
use std::collections::BTreeMap;

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

fn story(text: &str, cells: u64) -> String {
    story_of(text, |kernel| Mapping::from(SingleCell { cells }).apply(kernel))
}

fn story_of(text: &str, strategy: impl Fn(&Kernel) -> Result<(Kernel, Recipe), MappingError>) -> String {
    let kernel = kingpost_ir::text::parse(text).unwrap_or_else(|e| panic!("{}", e.render(text)));
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
    assert_snapshot!(story(ACTION, 4));
}

/// The loop over cells is the one around the scatter, whatever its name; the new loops give way to
/// what is there.
#[test]
fn finds_the_cells_by_the_scatter() {
    let text = ACTION.replace("cell", "c").replace(" u", " cell").replace("temp l", "temp c_item");
    let text = text.replace("temp r", "temp c_group").replace("r[", "c_group[").replace(" l[", " c_item[");
    let text = text.replace("*l[", "*c_item[");
    let kernel = kingpost_ir::text::parse(&text).unwrap_or_else(|e| panic!("{}", e.render(&text)));
    let cells = CellLoop::read(&kernel).unwrap();
    assert_eq!((cells.cell.name(), cells.commits[0].name()), ("c", "scatter"));
    let (result, _) = Mapping::single_cell().apply(&kernel).unwrap();
    let (outer, inner) = (result.iname("c_group_1").unwrap(), result.iname("c_item_1").unwrap());
    assert_eq!(result.inames[outer].tag, AxisTag::Group(0));
    assert_eq!(result.inames[inner].tag, AxisTag::Local(0));
}

#[test]
fn refuses_without_a_scatter() {
    assert_snapshot!(story(&ACTION.replace("{scatter}", ""), 32));
}

#[test]
fn refuses_a_scatter_outside_of_loops() {
    let text = "kernel k\narg y: f64[2] inout\nscatter: y[0] += 1.0 {scatter}\n";
    let found = "no loop is around what has the tag `scatter`".into();
    let kernel = kingpost_ir::text::parse(text).unwrap();
    assert_eq!(CellLoop::read(&kernel), Err(NotAnAction { kernel: "k".into(), found }));
}

/// A kernel whose roles name a loop that it does not have.
struct OfElements<'k>(&'k Kernel);

impl CellKernel for OfElements<'_> {
    fn kernel(&self) -> &Kernel {
        self.0
    }

    fn cell_loop(&self) -> Result<Cow<'_, CellLoop>, NotAnAction> {
        Ok(Cow::Owned(CellLoop { cell: Loop::named("element"), ..CellLoop::read(self.0)? }))
    }

    fn program(&self) -> Result<Cow<'_, CellProgram>, NotAnAction> {
        self.0.program()
    }

    fn over(&self) -> Option<IntegralType> {
        self.0.over()
    }
}

#[test]
fn refuses_without_cells() {
    assert_snapshot!(story_of(ACTION, |kernel| Mapping::single_cell().apply(&OfElements(kernel))));
}

#[test]
fn refuses_cells_that_read_what_others_wrote() {
    let dependent = ACTION.replace("u[dof[cell, j]]", "u[dof[cell, j]] + y[dof[cell, j]]");
    assert_snapshot!(story(&dependent, 32));
}

#[test]
fn refuses_groups_of_nothing() {
    assert_snapshot!(story(ACTION, 0));
}

/// Each strategy is one row of the table of the book, and has a name of its own.
#[test]
fn names_are_documented_once() {
    let book = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/book/src/tuning.md");
    let book = std::fs::read_to_string(book).unwrap();
    let mut of_strategies = false;
    let rows = book.lines().filter(|line| {
        of_strategies = line.starts_with("| strategy |") || of_strategies && line.starts_with('|');
        of_strategies
    });
    let table: Vec<&str> = rows.filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    assert_eq!(table.len(), strategies().rows().len());
    for row in strategies().rows() {
        assert_eq!(
            table.iter().filter(|name| **name == row.name).count(),
            1,
            "{}: {}",
            row.name,
            row.summary
        );
        assert!(row.summary.ends_with('.'), "{}", row.summary);
        assert_eq!(strategies().row(row.name).map(|found| found.summary), Some(row.summary));
    }
}

/// The text of a mapping is that which was read, whatever the order of its fields.
#[test]
fn mappings_are_written_as_they_were_read() {
    let read = |json: &str| serde_json::from_str::<Mapping>(json).unwrap();
    for json in [
        r#"{"strategy":"sequential"}"#,
        r#"{"strategy":"straight_cells","cells":64,"whole_groups":true,"parts":[3,3]}"#,
        r#"{"strategy":"staged_tiling","cells":8,"work_items_per_cell":2,"quad_tile":3,"eval_rows":3,"eval_cols":[6],"quad_rows":6,"quad_cols":3}"#,
        r#"{"strategy":"orbits","resident_groups":3,"then":{"strategy":"listed_cells","cells":64,"items":96,"compact":true}}"#,
        r#"{"strategy":"dynamic_local","then":{"strategy":"modes","then":{"strategy":"matrix_groups"}}}"#,
        r#"{"strategy":"map_runs","runs":[[1,3],[2,3],[1,1]],"interior":true,"then":{"strategy":"straight_cells","cells":64,"parts":[3,6,1]}}"#,
        r#"{"strategy":"map_runs","runs":[[1,3],[2,3],[1,1]],"by_vertices":true,"then":{"strategy":"straight_cells","cells":64,"parts":[3,6,1]}}"#,
        r#"{"strategy":"fewest_operations","memory":9,"objective":"operations_and_misses","then":{"strategy":"rules","scheme":"default","then":{"strategy":"single_cell","cells":1}}}"#,
        r#"{"strategy":"schedule","values":{"tile":"16"}}"#,
    ] {
        assert_eq!(serde_json::to_string(&read(json)).unwrap(), json);
    }
    let turned = read(r#"{"then":{"cells":32,"strategy":"single_cell"},"strategy":"modes"}"#);
    assert_eq!(turned, Mapping::single_cell().with_modes());
    assert_ne!(turned, Mapping::from(SingleCell { cells: 31 }).with_modes());
    assert_ne!(turned, Mapping::single_cell());
    let brief = read(r#"{"strategy":"fewest_operations","then":{"strategy":"sequential"}}"#);
    assert_eq!(brief.get::<FewestOperations>().unwrap().memory, FewestOperations::MEMORY);
}

#[test]
fn refuses_json_of_no_mapping() {
    let texts = [
        r#"{"strategy":"matrix_basis","resident_groups":2}"#,
        r#"{"strategy":"modes","then":{"strategy":"matrix_basis"}}"#,
        r#"{"strategy":"single_cells","cells":32}"#,
        r#"{"strategy":"nothing of this kind"}"#,
        r#"{"cells":32}"#,
        r#"{"strategy":7}"#,
        r#"{"strategy":"single_cell"}"#,
        r#"{"strategy":"single_cell","cells":32,"then":{"strategy":"sequential"}}"#,
        r#"{"strategy":"single_cell","cells":32,"cells":64}"#,
        r#"{"strategy":"modes"}"#,
        r#"{"strategy":"modes","then":32}"#,
        r#"["single_cell"]"#,
    ];
    let refused = |json: &&str| format!("{json}\n  {}", serde_json::from_str::<Mapping>(json).unwrap_err());
    assert_snapshot!(texts.iter().map(refused).collect::<Vec<_>>().join("\n"));
}

#[test]
fn schedules_have_no_values_without_one() {
    let values = BTreeMap::from([("tile".to_owned(), "16".to_owned())]);
    let refused = Mapping::from(HoleValues { values }).apply(&kingpost_ir::text::parse(ACTION).unwrap());
    assert!(refused.unwrap_err().to_string().starts_with("values of holes belong to a schedule"));
}
