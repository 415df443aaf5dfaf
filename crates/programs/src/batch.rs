//! A program for many data at once.

use crate::fuse::assumed_arrays;
use crate::{checked, refused};
use kingpost_ir::{
    AddressSpace, Affine, Atom, AxisTag, Domain, Expr, Iname, Kernel, Node, Places, ScalarType, VarId,
    VarKind, Variable,
};
use kingpost_steps::lookup;
use kingpost_steps::refusal::{Refusal, TransformError};
use std::collections::BTreeSet;

/// How many data there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Batches {
    /// This many.
    Number(i64),
    /// As many as a parameter says, which is declared if it is not there.
    Param(String),
}

/// The program once for each of many data: chosen arguments get an axis in front, and a loop `iname`
/// around everything has its index.
///
/// ```
/// use kingpost_programs::{Batches, to_batched};
///
/// let dot = "kernel dot\nparam n: i32\narg a: f64[n] in\narg b: f64[n] in\narg s: f64 out\n\ns0: s = sum(i in 0..n: a[i]*b[i])\n";
/// let dot = kingpost_ir::text::parse(dot)?;
/// let batched = to_batched(&dot, &Batches::Param("m".into()), &["a", "s"], "batch")?;
/// assert_eq!(batched.to_string(), "\
/// kernel dot
///
/// param n: i32
/// arg a: f64[m, n] in
/// arg b: f64[n] in
/// arg s: f64[m] out
/// param m: i32
///
/// for batch in 0..m
///   s0: s[batch] = sum(i in 0..n: a[batch, i]*b[i])
/// ");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// A name that is no argument; an argument that is written and has no axis for the data, because they
/// would all write it; an argument with strides, or one that bounds or assumptions mention, if it gets an
/// axis; names that are taken.
///
/// # Elsewhere
/// Loopy `to_batched`; JAX `vmap`.
pub fn to_batched(
    kernel: &Kernel,
    batches: &Batches,
    arguments: &[&str],
    iname: &str,
) -> Result<Kernel, TransformError> {
    let quoted: Vec<_> = arguments.iter().map(|name| format!("`{name}`")).collect();
    let operation = format!(
        "batch {} by `{iname}`",
        if quoted.is_empty() { "nothing".into() } else { quoted.join(", ") }
    );
    let made = batched(kernel, batches, arguments, iname).map_err(|cause| refused(&operation, cause))?;
    checked(&operation, made)
}

fn batched(kernel: &Kernel, batches: &Batches, arguments: &[&str], iname: &str) -> Result<Kernel, Refusal> {
    let chosen = chosen(kernel, arguments)?;
    // a rule has no loops, whose index its loads would need
    let mut result = kernel.with_rules_expanded();
    let extent = match batches {
        Batches::Number(n) if *n < 0 => {
            return Err(Refusal::argument("batches", format!("{n} batches"), "0 or more"));
        }
        Batches::Number(n) => Affine::constant(*n),
        Batches::Param(name) => Affine::var(param(&mut result, name)?),
    };
    lookup::free(&result, iname)?;
    let index = result.inames.push(Iname {
        name: iname.to_owned(),
        domain: Domain::universe(),
        tag: AxisTag::Sequential,
    });
    result.inames[index].domain = Domain::range(index, &Affine::constant(0), &extent);
    for var in &chosen {
        let var = &mut result.vars[*var];
        var.layout.insert_axis(0, true);
        var.shape.insert(0, extent.clone());
        var.space = AddressSpace::Global;
    }
    for insn in result.insns.values_mut() {
        insn.map_expressions(&mut |mut e| {
            if let Expr::Load(access) = &mut e
                && chosen.contains(&access.var)
            {
                access.index.insert(0, Expr::Iname(index));
            }
            e
        });
        if chosen.contains(&insn.lhs.var) {
            insn.lhs.index.insert(0, Expr::Iname(index));
        }
    }
    let body = std::mem::take(&mut result.body);
    result.body = vec![Node::Loop(index, body)];
    Ok(result)
}

/// The parameter of this name, which is declared if nothing has the name.
fn param(kernel: &mut Kernel, name: &str) -> Result<VarId, Refusal> {
    match kernel.var(name) {
        Some(known) if kernel.vars[known].kind == VarKind::Param => Ok(known),
        Some(_) | None => {
            lookup::free(kernel, name)?;
            let shape: [Affine; 0] = [];
            Ok(kernel.vars.push(Variable::new(
                name,
                ScalarType::I32,
                VarKind::Param,
                shape,
                AddressSpace::Private,
            )))
        }
    }
}

/// The arguments that get an axis.
fn chosen(kernel: &Kernel, arguments: &[&str]) -> Result<BTreeSet<VarId>, Refusal> {
    let mut chosen = BTreeSet::new();
    for name in arguments {
        let id = lookup::var(kernel, name)?;
        let var = &kernel.vars[id];
        if !matches!(var.kind, VarKind::Argument(_)) {
            let found = format!("`{name}` is no argument");
            return Err(Refusal::argument(
                "arguments",
                found,
                "arguments; parameters are the same for all data",
            ));
        }
        if matches!(var.layout.places, Places::Strides(_)) {
            let found = format!("`{name}` has strides");
            return Err(Refusal::argument("arguments", found, "arrays without; change its layout first"));
        }
        let in_bounds = kernel.inames.values().any(|i| i.domain.any_symbol(&mut |a| *a == Atom::Var(id)));
        let assumed = kernel.assumptions.iter().any(|a| assumed_arrays(a).contains(&id));
        if in_bounds || assumed {
            let what = if in_bounds { "a bound" } else { "an assumption" };
            let found = format!("{what} mentions `{name}`");
            return Err(Refusal::argument("arguments", found, "arguments that only instructions mention"));
        }
        chosen.insert(id);
    }
    for insn in kernel.insns.values() {
        let var = &kernel.vars[insn.lhs.var];
        if var.is_output() && !chosen.contains(&insn.lhs.var) {
            let found = format!("`{}` writes `{}` for all data", insn.name, var.name);
            return Err(Refusal::argument("arguments", found, format!("`{}` among them", var.name)));
        }
    }
    Ok(chosen)
}
