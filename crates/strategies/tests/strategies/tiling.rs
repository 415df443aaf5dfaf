//! Multi-level tiling on small kernels: the recipe, the result, and what is refused.
#![allow(clippy::unwrap_used, clippy::panic)] // what a failed test does

use insta::assert_snapshot;
use kingpost_interp::Value;
use kingpost_interp::{Memory, interpret};
use kingpost_ir::Kernel;
use kingpost_primitives::Recipe;
use kingpost_strategies::tiling::TilingParameters;
use kingpost_strategies::{Mapping, MappingError};
use kingpost_strategies::{MultiLevelTiling, PointTiles, StagedCells, StagedTiling, StrategyError};

type Mapped = Result<(Kernel, Recipe), MappingError>;

fn multi_level_tiling(kernel: &Kernel, parameters: &TilingParameters) -> Mapped {
    Mapping::from(MultiLevelTiling(parameters.clone())).apply(kernel)
}

fn staged_multi_level_tiling(kernel: &Kernel, parameters: &TilingParameters) -> Mapped {
    Mapping::from(StagedTiling(parameters.clone())).apply(kernel)
}

fn staged_cells(kernel: &Kernel, cells: u64, constant_tables: bool) -> Mapped {
    Mapping::from(StagedCells { cells, constant_tables }).apply(kernel)
}

fn point_tiles(kernel: &Kernel, sums: u64) -> Mapped {
    Mapping::from(PointTiles { cells: 4, sums }).apply(kernel)
}

/// What a strategy made, or the kernel that a step was refused for.
fn made(mapped: Mapped) -> (Kernel, Recipe) {
    mapped.unwrap_or_else(|e| match e {
        MappingError::Strategy(StrategyError::Step(e)) => panic!("{e}\n{}", e.kernel),
        other => panic!("{other}"),
    })
}

/// A scalar and a vector function, three quadrature points, four test functions.
const ACTION: &str = "kernel action
param n_cells: i32
param n_dofs: i32
arg y: f64[n_dofs] inout
arg dofs: i32[n_cells, 4] in
arg c: f64[n_cells, 2] in
arg u: f64[n_dofs] in
arg v: f64[n_dofs, 2] in
temp c_cell: f64[2] private
temp u_cell: f64[4] private
temp v_cell: f64[4, 2] private
temp y_cell: f64[4] private
temp det: f64 private
temp u_d0: f64 private
temp u_d1: f64 private
temp v0: f64 private
temp v1: f64 private
temp t: f64 private
temp e0: f64 private
temp e1: f64 private
table phi: f64[3, 4] global
table phi_d0: f64[3, 4] global
table phi_d1: f64[3, 4] global
table weights: f64[3] global
for cell in 0..n_cells
  for k in 0..2
    gather_c: c_cell[k] = c[cell, k] {gather, of_c}
  for i_gather_u in 0..4
    gather_u: u_cell[i_gather_u] = u[dofs[cell, i_gather_u]] {gather, of_u}
  for i_gather_v in 0..4
    gather_v0: v_cell[i_gather_v, 0] = v[dofs[cell, i_gather_v], 0] {gather, of_v}
    gather_v1: v_cell[i_gather_v, 1] = v[dofs[cell, i_gather_v], 1] {gather, of_v}
  set_det: det = c_cell[0] + 2.0*c_cell[1] {geometry}
  for i_zero in 0..4
    zero_y: y_cell[i_zero] = 0.0 {init, quadrature}
  for q in 0..3
    init_u_d0: u_d0 = 0.0 {evaluation, init, of_u}
    init_u_d1: u_d1 = 0.0 {evaluation, init, of_u}
    for j_u in 0..4
      eval_u_d0: u_d0 += phi_d0[q, j_u]*u_cell[j_u] {evaluation, of_u}
      eval_u_d1: u_d1 += phi_d1[q, j_u]*u_cell[j_u] {evaluation, of_u}
    init_v0: v0 = 0.0 {evaluation, init, of_v}
    init_v1: v1 = 0.0 {evaluation, init, of_v}
    for j_v in 0..4
      eval_v0: v0 += phi[q, j_v]*v_cell[j_v, 0] {evaluation, of_v}
      eval_v1: v1 += phi[q, j_v]*v_cell[j_v, 1] {evaluation, of_v}
    set_t: t = weights[q]*det {pointwise}
    set_e0: e0 = t*(u_d0 + v0) {pointwise}
    set_e1: e1 = t*(u_d1*v1 + c_cell[0]) {pointwise}
    for i in 0..4
      quad_d0: y_cell[i] += phi_d0[q, i]*e0 {quadrature}
      quad_d1: y_cell[i] += phi_d1[q, i]*e1 {quadrature}
  for i_scatter in 0..4
    scatter_y: y[dofs[cell, i_scatter]] += y_cell[i_scatter] {scatter}

table phi = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0]

table phi_d0 = [1.0, -2.0, 3.0, -4.0, 5.0, -6.0, 7.0, -8.0, 9.0, -10.0, 11.0, -12.0]

table phi_d1 = [0.0, 1.0, 0.0, 2.0, 0.0, 3.0, 4.0, 0.0, 5.0, 0.0, 6.0, 0.0]

table weights = [1.0, 2.0, 3.0]
";

fn action() -> Kernel {
    kingpost_ir::text::parse(ACTION).unwrap_or_else(|e| panic!("{}", e.render(ACTION)))
}

fn parameters() -> TilingParameters {
    TilingParameters {
        cells: 4,
        work_items_per_cell: 2,
        quad_tile: 2,
        eval_rows: 2,
        eval_cols: vec![3, 4],
        quad_rows: 3,
        quad_cols: 2,
    }
}

/// The vector `y` after the kernel ran on small integers.
fn run(kernel: &Kernel) -> Value {
    run_on(kernel, &["c", "u", "v"])
}

/// The same with values for these arguments, each as many as it holds.
fn run_on(kernel: &Kernel, inputs: &[&str]) -> Value {
    let (cells, dofs) = (7, 11);
    let numbers = |n: i32| (0..n).map(|k| f64::from(k * 7 % 5) - 2.0).collect::<Vec<f64>>();
    let mut memory = Memory::new().param("n_cells", i64::from(cells)).param("n_dofs", i64::from(dofs));
    memory.set("dofs", (0..4 * cells).map(|k| k * 5 % dofs).collect::<Vec<i32>>());
    for name in inputs {
        let components = kernel.vars[kernel.var(name).unwrap()].shape.get(1).and_then(|n| n.as_constant());
        let rows = if *name == "c" { cells } else { dofs };
        memory.set(*name, numbers(rows * components.unwrap_or(1) as i32));
    }
    memory.set("y", numbers(dofs));
    interpret(kernel, &mut memory).unwrap();
    memory.values().get("y").unwrap().clone()
}

#[test]
fn tiles() {
    let kernel = action();
    let (tiled, recipe) = made(multi_level_tiling(&kernel, &parameters()));
    assert_eq!(run(&kernel), run(&tiled));
    assert_snapshot!(format!("{recipe}\n=== result\n\n{tiled}"));
}

#[test]
fn tiles_with_staging() {
    let kernel = action();
    let (tiled, recipe) = made(staged_multi_level_tiling(&kernel, &parameters()));
    assert_eq!(run(&kernel), run(&tiled));
    assert_snapshot!(format!("{recipe}\n=== result\n\n{tiled}"));
}

#[test]
fn stages_cells() {
    let kernel = action();
    let (staged, recipe) = made(staged_cells(&kernel, 4, true));
    assert_eq!(run(&kernel), run(&staged));
    assert_snapshot!(format!("{recipe}\n=== result\n\n{staged}"));
}

/// Four sums are two points of two sums: a tile of two points, and the third point apart.
#[test]
fn takes_several_points_at_once() {
    let kernel = action();
    let (tiled, recipe) = made(point_tiles(&kernel, 4));
    assert_eq!(run(&kernel), run(&tiled));
    assert_snapshot!(format!("{recipe}\n=== result\n\n{tiled}"));
}

/// With sums for one point alone the loop over points stays; with more, one tile has all points.
#[test]
fn takes_as_many_points_as_there_are_sums_for() {
    let kernel = action();
    let expected = run(&kernel);
    for (sums, points) in [(1, 1), (3, 1), (4, 2), (5, 2), (6, 3), (100, 3)] {
        let (tiled, recipe) = point_tiles(&kernel, sums).unwrap();
        assert_eq!(run(&tiled), expected, "{sums}");
        let text = recipe.to_string();
        assert_eq!(text.contains("quad_tile"), points > 1, "{text}");
        assert_eq!(text.contains("peel"), points == 2, "{text}");
    }
    let none = point_tiles(&kernel, 0).unwrap_err().to_string();
    assert_eq!(none, "the number of sums is 0, needed at least 1");
}

#[test]
fn refuses_parameters_out_of_bounds() {
    let kernel = action();
    let good = parameters();
    let cases = [
        TilingParameters { cells: 0, ..good.clone() },
        TilingParameters { work_items_per_cell: 300, ..good.clone() },
        TilingParameters { work_items_per_cell: u64::MAX, ..good.clone() },
        TilingParameters { quad_tile: 4, ..good.clone() },
        TilingParameters { eval_rows: 3, ..good.clone() },
        TilingParameters { eval_cols: vec![3], ..good.clone() },
        TilingParameters { eval_cols: vec![3, 5], ..good.clone() },
        TilingParameters { quad_rows: 5, ..good.clone() },
        TilingParameters { quad_cols: 3, ..good.clone() },
    ];
    let mut messages: Vec<String> =
        cases.iter().map(|args| multi_level_tiling(&kernel, args).unwrap_err().to_string()).collect();
    messages.push(staged_cells(&kernel, 0, false).unwrap_err().to_string());
    assert_snapshot!(messages.join("\n"));
}

#[test]
fn refuses_kernels_without_stages() {
    let texts = [
        ACTION.replace("{scatter}", ""),
        ACTION.replace(", quadrature}", "}"),
        ACTION.replace("v_cell[j_v, 1]", "u_cell[j_v]"),
        ACTION.replace("for q in 0..3", "for q in 0..n_dofs"),
        ACTION.replace("{geometry}", "{pointwise}"),
        ACTION.replace(" {pointwise}", ""),
    ];
    let refused = |text: &String| {
        let kernel = kingpost_ir::text::parse(text).unwrap_or_else(|e| panic!("{}", e.render(text)));
        multi_level_tiling(&kernel, &parameters()).unwrap_err().to_string()
    };
    assert_snapshot!(texts.iter().map(refused).collect::<Vec<_>>().join("\n"));
}

/// Functions of the form: name, matrix, components.
const FUNCTIONS: [(&str, &str, usize); 4] =
    [("u", "phi", 0), ("v", "psi", 2), ("w", "phi", 0), ("x", "psi", 0)];

/// An action whose functions are gathered and evaluated in these orders.
fn in_order(gathered: &[usize], evaluated: &[usize]) -> String {
    let parts = |f: usize| -> Vec<String> {
        match FUNCTIONS[f].2 {
            0 => vec![String::new()],
            n => (0..n).map(|c| c.to_string()).collect(),
        }
    };
    let at = |c: &str| if c.is_empty() { String::new() } else { format!(", {c}") };
    let (mut declared, mut gathers, mut evaluations) = (String::new(), String::new(), String::new());
    for (name, _, components) in FUNCTIONS {
        let more = if components == 0 { String::new() } else { format!(", {components}") };
        declared += &format!("arg {name}: f64[n_dofs{more}] in\ntemp {name}_cell: f64[4{more}] private\n");
    }
    for f in gathered {
        let name = FUNCTIONS[*f].0;
        gathers += &format!("  for i_{name} in 0..4\n");
        for c in parts(*f) {
            let k = at(&c);
            gathers += &format!(
                "    gather_{name}{c}: {name}_cell[i_{name}{k}] = {name}[dofs[cell, i_{name}]{k}] {{gather, of_{name}}}\n"
            );
        }
    }
    for f in evaluated {
        let (name, matrix, _) = FUNCTIONS[*f];
        for c in parts(*f) {
            declared += &format!("temp {name}{c}_q: f64 private\n");
            evaluations +=
                &format!("    init_{name}{c}: {name}{c}_q = 0.0 {{evaluation, init, of_{name}}}\n");
        }
        evaluations += &format!("    for j_{name} in 0..4\n");
        for c in parts(*f) {
            let k = at(&c);
            evaluations += &format!(
                "      eval_{name}{c}: {name}{c}_q += {matrix}[q, j_{name}]*{name}_cell[j_{name}{k}] \
                 {{evaluation, of_{name}}}\n"
            );
        }
    }
    format!(
        "kernel action\nparam n_cells: i32\nparam n_dofs: i32\narg y: f64[n_dofs] inout\n\
         arg dofs: i32[n_cells, 4] in\narg c: f64[n_cells, 2] in\n{declared}temp y_cell: f64[4] private\n\
         temp e: f64 private\ntemp det: f64 private\n\
         table phi: f64[3, 4] global\ntable psi: f64[3, 4] global\nfor cell in 0..n_cells\n{gathers}  \
         set_det: det = c[cell, 0] + 2.0*c[cell, 1] {{geometry}}\n  for i_zero in 0..4\n    zero_y: y_cell[i_zero] = 0.0 {{init, quadrature}}\n  for q in 0..3\n{evaluations}    \
         set_e: e = det*(u_q*v0_q + w_q*v1_q*x_q) {{pointwise}}\n    for i in 0..4\n      \
         quad: y_cell[i] += phi[q, i]*e {{quadrature}}\n  for i_scatter in 0..4\n    \
         scatter_y: y[dofs[cell, i_scatter]] += y_cell[i_scatter] {{scatter}}\n\n\
         table phi = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0]\n\n\
         table psi = [1.0, -2.0, 3.0, -4.0, 5.0, -6.0, 7.0, -8.0, 9.0, -10.0, 11.0, -12.0]\n"
    )
}

fn orders(of: &[usize]) -> Vec<Vec<usize>> {
    if of.is_empty() {
        return vec![vec![]];
    }
    let with_first = |first: usize| {
        let rest: Vec<usize> = of.iter().copied().filter(|k| *k != first).collect();
        orders(&rest).into_iter().map(move |rest| [vec![first], rest].concat())
    };
    of.iter().flat_map(|first| with_first(*first)).collect()
}

/// Functions of the same matrices share a tile in whatever order they are gathered and evaluated.
#[test]
fn every_order_of_functions_is_tiled() {
    // every seventh: a few seconds, each first function once
    for evaluated in orders(&[0, 1, 2, 3]).into_iter().step_by(7) {
        for gathered in [vec![0, 1, 2, 3], evaluated.iter().rev().copied().collect()] {
            let text = in_order(&gathered, &evaluated);
            let kernel = kingpost_ir::text::parse(&text).unwrap_or_else(|e| panic!("{}", e.render(&text)));
            let expected = run_on(&kernel, &["c", "u", "v", "w", "x"]);
            let found = |result: Mapped| match result {
                Ok((mapped, _)) => {
                    assert_eq!(run_on(&mapped, &["c", "u", "v", "w", "x"]), expected, "{mapped}")
                }
                Err(MappingError::Strategy(StrategyError::Step(e))) => {
                    panic!("{gathered:?} {evaluated:?}: {e}\n{}", e.kernel)
                }
                Err(other) => panic!("{gathered:?} {evaluated:?}: {other}"),
            };
            found(staged_multi_level_tiling(&kernel, &parameters()));
            found(multi_level_tiling(
                &kernel,
                &TilingParameters { eval_cols: vec![3, 4, 2, 1], ..parameters() },
            ));
            found(staged_cells(&kernel, 4, false));
            found(point_tiles(&kernel, 8));
        }
    }
}
