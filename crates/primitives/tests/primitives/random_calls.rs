//! Random programs outlined: the callee, run alone on the windows that its call has, does what
//! the program does.

use kingpost_interp::{Memory, Value, interpret};
use kingpost_ir::calls::{Arg, Call, Window};
use kingpost_ir::{Affine, Atom, Expr, Kernel, Node, ScalarType, VarKind, Variable};
use kingpost_primitives::Primitive;
use kingpost_primitives::primitives::{InlineCall, OutlineInsns};
use kingpost_sample::{Sample, SampleConfig, arbitrary_kernel, config};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::cell::Cell;

/// An element: a number, and the imaginary part of a complex one.
type Element = [f64; 2];

fn numbers(value: &Value) -> Vec<Element> {
    let parts = value.to_f64();
    parts.chunks(value.ty().parts()).map(|z| [z[0], z.get(1).copied().unwrap_or(0.0)]).collect()
}

fn value(ty: ScalarType, numbers: &[Element]) -> Value {
    let parts: Vec<f64> = numbers.iter().flat_map(|z| z[..ty.parts()].to_vec()).collect();
    match ty.part().is_real() {
        true => Value::of_reals(ty, &parts),
        false => Value::of_bits(ty, &parts.iter().map(|x| *x as i64).collect::<Vec<_>>()),
    }
}

/// The value of an expression of parameters and scalar arguments.
fn at(kernel: &Kernel, memory: &Memory, e: &Affine) -> Option<i64> {
    e.eval(&mut |atom| match atom {
        Atom::Var(v) => {
            let name = &kernel.vars[*v].name;
            memory.get_param(name).or_else(|| memory.values().get(name).map(|v| numbers(v)[0][0] as i64))
        }
        Atom::Iname(_) | Atom::Floor(..) => None,
    })
}

fn extents(kernel: &Kernel, memory: &Memory, var: &Variable) -> Vec<i64> {
    var.shape.iter().map(|e| at(kernel, memory, e).unwrap().max(0)).collect()
}

/// Every index of a box, row by row.
fn points(extents: &[i64]) -> Vec<Vec<i64>> {
    extents.iter().fold(vec![Vec::new()], |points, n| {
        points.iter().flat_map(|p| (0..*n).map(move |k| p.iter().copied().chain([k]).collect())).collect()
    })
}

/// Position in the array's buffer of each element of a window; `None` outside the array.
fn positions(kernel: &Kernel, memory: &Memory, window: &Window, extents_of: &[i64]) -> Vec<Option<usize>> {
    let shape = extents(kernel, memory, &kernel.vars[window.var]);
    let position = |point: Vec<i64>| {
        let index: Vec<Expr> = point.into_iter().map(Expr::Int).collect();
        window.element(&index).index.iter().zip(&shape).try_fold(0_usize, |flat, (e, n)| {
            let k = at(kernel, memory, &e.as_affine()?)?;
            (0..*n).contains(&k).then_some(flat * *n as usize + k as usize)
        })
    };
    points(extents_of).into_iter().map(position).collect()
}

/// What the arrays of the program hold before and after the callee has run on the windows of its
/// call.
fn run_alone(kernel: &Kernel, call: &Call, memory: &Memory) -> Option<Memory> {
    let callee = &kernel.callees[call.callee].kernel;
    let mut arrays = memory.clone();
    for var in kernel.vars.values().filter(|v| !matches!(v.kind, VarKind::Param)) {
        if !arrays.values().contains_key(&var.name) {
            let len = extents(kernel, memory, var).iter().product::<i64>();
            let zeros = match &var.kind {
                VarKind::Table(data) => table_values(data),
                _ => vec![[0.0; 2]; len as usize],
            };
            arrays.set(var.name.clone(), value(var.ty, &zeros));
        }
    }
    let mut alone = Memory::new();
    for (var, arg) in callee.vars.values().zip(&call.binding.args) {
        match arg {
            Arg::Param(e) => alone.set_param(var.name.clone(), at(kernel, &arrays, e)?),
            Arg::Value(Expr::Load(a)) if a.index.is_empty() => {
                alone.set(var.name.clone(), arrays.values().get(&kernel.vars[a.var].name)?.clone());
            }
            Arg::Value(_) | Arg::Unused => return None,
            Arg::Window(_) => {}
        }
    }
    let mut places = Vec::new();
    for (var, arg) in callee.vars.values().zip(&call.binding.args) {
        let Arg::Window(window) = arg else { continue };
        let held = numbers(arrays.values().get(&kernel.vars[window.var].name)?);
        let shape = extents(callee, &alone, var);
        let positions = positions(kernel, &arrays, window, &shape);
        let taken: Vec<Element> = positions.iter().map(|p| p.map_or([0.0; 2], |p| held[p])).collect();
        alone.set(var.name.clone(), value(var.ty, &taken));
        places.push((var.name.clone(), window.var, positions));
    }
    interpret(callee, &mut alone).unwrap_or_else(|e| panic!("{e}\n{kernel}"));
    for (name, var, positions) in places {
        let var = &kernel.vars[var];
        let mut held = numbers(arrays.values().get(&var.name)?);
        for (p, x) in positions.iter().zip(numbers(alone.values().get(&name)?)) {
            if let Some(p) = p {
                held[*p] = x;
            }
        }
        arrays.set(var.name.clone(), value(var.ty, &held));
    }
    Some(arrays)
}

fn table_values(data: &kingpost_ir::TableData) -> Vec<Element> {
    match data {
        kingpost_ir::TableData::Real(v) => v.iter().map(|r| [r.0, 0.0]).collect(),
        kingpost_ir::TableData::Int(v) => v.iter().map(|i| [*i as f64, 0.0]).collect(),
        kingpost_ir::TableData::Complex(v) => v.iter().map(|z| [z.re.0, z.im.0]).collect(),
    }
}

fn name(kernel: &Kernel, node: &Node) -> String {
    match node {
        Node::Loop(iname, _) => kernel.inames[*iname].name.clone(),
        Node::Insn(insn) => kernel.insns[*insn].name.clone(),
    }
}

#[test]
fn callees_do_what_the_program_does() {
    let (outlined, compared) = (Cell::new(0_u32), Cell::new(0_u32));
    let mut runner = TestRunner::new(config(900));
    let samples = SampleConfig { nests: 2, ..SampleConfig::default() };
    let result = runner.run(&arbitrary_kernel(samples), |Sample { kernel, memory }| {
        let statements: Vec<String> = kernel.body.iter().map(|n| name(&kernel, n)).collect();
        let Ok(after) = OutlineInsns::new(statements, "whole").apply(&kernel) else { return Ok(()) };
        outlined.set(outlined.get() + 1);
        prop_assert_eq!(kingpost_ir::text::parse(&after.to_string()), Ok(after.clone()));
        prop_assert_eq!(&InlineCall::new("whole").apply(&after).unwrap(), &kernel);
        let calls = after.calls().unwrap();
        let [call] = calls.as_slice() else { return Err(TestCaseError::fail(format!("one call\n{after}"))) };
        let Some(alone) = run_alone(&after, call, &memory) else { return Ok(()) };
        let mut expected = memory.clone();
        interpret(&kernel, &mut expected).unwrap();
        for var in kernel.vars.values().filter(|v| matches!(v.kind, VarKind::Argument(_))) {
            let (found, expected) = (&alone.values()[&var.name], &expected.values()[&var.name]);
            // a nan is like any other
            let shown = |v: &Value| format!("{:?}", numbers(v));
            prop_assert_eq!(shown(found), shown(expected), "{}\n{}", var.name, after);
        }
        compared.set(compared.get() + 1);
        Ok(())
    });
    println!("{} outlined, {} of them run alone", outlined.get(), compared.get());
    result.unwrap_or_else(|e| panic!("{e}"));
    assert!(outlined.get() > 100 && compared.get() > 60, "{} {}", outlined.get(), compared.get());
}
