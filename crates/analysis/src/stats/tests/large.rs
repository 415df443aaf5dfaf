//! Sizes no run could count, in closed form.

use super::{F64, I32, c, footprint, params};
use crate::stats::{AccessKind, StatsError, statistics};
use kingpost_ir::{
    Access, AddressSpace, Affine, Constraint, Direction, Domain, Expr, KernelBuilder, UpdateOp,
};

#[test]
fn a_million_cells_split_into_groups() {
    let (n, nodes) = (1_053_696_i64, 35);
    let mut b = KernelBuilder::new("action");
    let (cells, dofs) = (b.param("n", I32), b.param("m", I32));
    let dof = b.argument("dof", I32, [Affine::var(cells), c(nodes)], Direction::In);
    let x = b.argument("x", F64, [Affine::var(dofs)], Direction::In);
    let a = b.argument("a", F64, [c(nodes), c(nodes)], Direction::In);
    let y = b.argument("y", F64, [Affine::var(dofs)], Direction::InOut);
    let o = b.open_loop("o", c(0), Affine::var(cells).plus_constant(31).floor_div(32));
    let l = b.iname("l", |l| {
        let l = Affine::iname(l);
        Domain::conjunction([
            Constraint::le(&c(0), &l),
            Constraint::le(&l, &c(31)),
            Constraint::lt(&Affine::iname(o).times(32).plus(&l), &Affine::var(cells)),
        ])
    });
    b.open(l);
    let i = b.open_loop("i", c(0), c(nodes));
    let k = b.range("k", c(0), c(nodes));
    let cell = || Expr::from(o) * 32 + Expr::from(l);
    let term = Expr::load(a, [i.into(), k.into()]) * Expr::load(x, [Expr::load(dof, [cell(), k.into()])]);
    let row = Access::new(y, [Expr::load(dof, [cell(), i.into()])]);
    b.update("s", row, UpdateOp::Add, Expr::reduce(UpdateOp::Add, [k], term));
    b.close_loop();
    b.close_loop();
    b.close_loop();
    let kernel = b.finish().unwrap();
    let stats = statistics(&kernel, &params(&[("n", n), ("m", 12_000_000)])).unwrap();
    // Counted by formula: visiting the points would take minutes.
    assert_eq!(stats.flops() as i64, n * (2 * nodes * nodes + nodes));
    assert_eq!(footprint(&stats, "dof", AccessKind::Read), ((n * nodes) as u64, true));
    assert_eq!(footprint(&stats, "a", AccessKind::Read), ((nodes * nodes) as u64, true));
    assert_eq!(footprint(&stats, "x", AccessKind::Read), (12_000_000, false));
    assert_eq!(stats.bytes(AddressSpace::Global, AccessKind::Write) as i64, 8 * n * nodes);
    assert!(stats.exact());
}

#[test]
fn large_triangle_and_large_stride() {
    let n = 30_000;
    let mut b = KernelBuilder::new("triangle");
    let size = b.param("n", I32);
    let t = b.temporary("t", F64, [Affine::var(size), Affine::var(size)]);
    let i = b.open_loop("i", c(0), Affine::var(size));
    let j = b.open_loop("j", Affine::iname(i), Affine::var(size));
    b.assign("s", Access::new(t, [i.into(), j.into()]), 0.0);
    b.close_loop();
    b.close_loop();
    let odd = b.iname("odd", |x| {
        let x = Affine::iname(x);
        let size = Affine::var(size);
        Domain::conjunction([
            Constraint::le(&c(0), &x),
            Constraint::lt(&x, &size.times(1000)),
            Constraint::equal(&x.modulo(2), &c(1)),
        ])
    });
    b.open(odd);
    b.assign("u", Access::new(t, [c_expr(0), c_expr(0)]), 0.0);
    b.close_loop();
    let stats = statistics(&b.finish().unwrap(), &params(&[("n", n)])).unwrap();
    assert_eq!(stats.insns[0].instances as i64, n * (n + 1) / 2);
    assert_eq!(stats.insns[1].instances as i64, n * 500);
    assert_eq!(footprint(&stats, "t", AccessKind::Write), ((n * (n + 1) / 2) as u64, true));
}

fn c_expr(value: i64) -> Expr {
    Expr::Int(value)
}

#[test]
fn bounds_on_data_are_refused() {
    let mut b = KernelBuilder::new("rows");
    let ptr = b.argument("ptr", I32, [c(2)], Direction::In);
    let end = b.temporary("end", I32, []);
    b.assign("last", Access::scalar(end), Expr::load(ptr, [Expr::Int(1)]));
    b.open_loop("k", c(0), Affine::var(end));
    b.assign("s", Access::scalar(end), 0);
    b.close_loop();
    let error = statistics(&b.finish().unwrap(), &params(&[])).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the bounds of `k` depend on the value of `end`; statistics need bounds in parameters"
    );
}

#[test]
fn missing_parameters_and_bounds_are_refused() {
    let mut b = KernelBuilder::new("open");
    let n = b.param("n", I32);
    let t = b.temporary("t", F64, [Affine::var(n)]);
    let i = b.iname("i", |i| Domain::conjunction([Constraint::le(&c(0), &Affine::iname(i))]));
    b.open(i);
    b.assign("s", Access::new(t, [i.into()]), 0.0);
    b.close_loop();
    let kernel = b.finish().unwrap();
    let error = statistics(&kernel, &params(&[])).unwrap_err();
    assert_eq!(error.to_string(), "parameter `n` is missing; give it a value");
    let error = statistics(&kernel, &params(&[("n", 3)])).unwrap_err();
    assert_eq!(error, StatsError::Unbounded { iname: "i".into(), missing: "upper" });
}

/// A tile copied by 32 work-items: `tile[f / 24, f mod 24] = a[f / 24, f mod 24]`, `f = 32 i + l`.
#[test]
fn flattened_copy_of_a_tile() {
    let (rows, columns, groups) = (35, 24, 100_000);
    let mut b = KernelBuilder::new("copy");
    let a = b.argument("a", F64, [c(rows), c(columns)], Direction::In);
    let tile = b.temporary("tile", F64, [c(rows), c(columns)]);
    b.open_loop("g", c(0), c(groups));
    let i = b.open_loop("i", c(0), c((rows * columns + 31) / 32));
    let l = b.iname("l", |l| {
        let l = Affine::iname(l);
        Domain::conjunction([
            Constraint::le(&c(0), &l),
            Constraint::le(&l, &c(31)),
            Constraint::lt(&Affine::iname(i).times(32).plus(&l), &c(rows * columns)),
        ])
    });
    b.open(l);
    let flat = Affine::iname(i).times(32).plus(&Affine::iname(l));
    let at = || [flat.floor_div(columns), flat.modulo(columns)].map(|e| Expr::from_affine(&e));
    b.assign("s", Access::new(tile, at()), Expr::load(a, at()));
    b.close_loop();
    b.close_loop();
    b.close_loop();
    let stats = statistics(&b.finish().unwrap(), &params(&[])).unwrap();
    assert_eq!(stats.insns[0].instances as i64, rows * columns * groups);
    assert_eq!(footprint(&stats, "a", AccessKind::Read), ((rows * columns) as u64, true));
    assert_eq!(footprint(&stats, "tile", AccessKind::Write), ((rows * columns) as u64, true));
}

/// A stencil reads its neighbours: the footprint is the union of three shifted images.
#[test]
fn stencil_over_a_large_grid() {
    let n = 4_000;
    let mut b = KernelBuilder::new("stencil");
    let size = b.param("n", I32);
    let grid = [Affine::var(size), Affine::var(size)];
    let x = b.argument("x", F64, grid.clone(), Direction::In);
    let y = b.argument("y", F64, grid, Direction::Out);
    let i = b.open_loop("i", c(1), Affine::var(size).plus_constant(-1));
    let j = b.open_loop("j", c(1), Affine::var(size).plus_constant(-1));
    let near = |di: i64, dj: i64| Expr::load(x, [Expr::from(i) + di, Expr::from(j) + dj]);
    let sum = near(-1, 0) + near(1, 0) + near(0, -1) + near(0, 1) - near(0, 0) * 4.0;
    b.assign("s", Access::new(y, [i.into(), j.into()]), sum);
    b.close_loop();
    b.close_loop();
    let stats = statistics(&b.finish().unwrap(), &params(&[("n", n)])).unwrap();
    // all but the four corners
    assert_eq!(footprint(&stats, "x", AccessKind::Read), ((n * n - 4) as u64, true));
    assert_eq!(stats.flops() as i64, 5 * (n - 2) * (n - 2));
}
