//! What primitives that rename the elements of a variable share: who may be renamed, and where.

use crate::expected::Expected;
use crate::lookup;
use crate::obligation::Obligation;
use crate::proofs::entries::constant_shape;
use crate::refusal::Refusal;
use kingpost_analysis::deps::AccessSite;
use kingpost_analysis::polyhedral::Polyhedral;
use kingpost_ir::{Access, Affine, Assumption, Atom, Expr, Kernel, Rule, VarId, VarKind, Variable};
use std::iter::repeat_n;

/// Nobody outside knows its elements.
pub const TEMPORARY: Obligation = Obligation::new("temporary", "the variable is a temporary");

/// The axis that is named is there.
pub const AXIS: Obligation = Obligation::new("axis", "the variable has the axis");

/// Vectors stay whole, and so do permuted axes.
pub const OF_NO_LAYOUT: Obligation =
    Obligation::new("of_no_layout", "the axis is not that of vectors and takes part in no swizzle");

/// Renaming elements renames all that is said of them.
pub const ONLY_ACCESSED: Obligation =
    Obligation::new("only_accessed", "no bound of a loop and no assumption mentions the variable");

/// Rules know no loops.
pub const NO_RULE: Obligation = Obligation::new("no_rule", "no substitution rule accesses the variable");

/// Its elements may lie elsewhere.
pub const MOVABLE: Obligation = Obligation::new("movable", "the variable is a temporary or an argument");

/// The temporary of a name; `help` says what to do with another variable.
///
/// # Errors
/// An unknown name, or a parameter, argument or table.
pub fn temporary(kernel: &Kernel, name: &str, help: &str) -> Result<VarId, Refusal> {
    let var = lookup::var(kernel, name)?;
    let other = match kernel.vars[var].kind {
        VarKind::Temporary => None,
        VarKind::Param => Some("a parameter"),
        VarKind::Argument(_) => Some("an argument"),
        VarKind::Table(_) => Some("a table"),
    };
    TEMPORARY.forbid(other, |kind| format!("`{name}` is {kind}, needed a temporary; {help}"))?;
    Ok(var)
}

/// Checks that a variable has the axis.
///
/// # Errors
/// [`Refusal::Argument`] with the number of axes.
pub fn check_axis(variable: &Variable, axis: u32) -> Result<usize, Refusal> {
    let axes = variable.shape.len();
    let k = axis as usize;
    let name = &variable.name;
    AXIS.find((k < axes).then_some(k), || match axes {
        0 => format!("`{name}` is a scalar and has no axis {axis}; name an array"),
        1 => format!("`{name}` has one axis, needed axis {axis}; axes count from 0"),
        _ => format!("`{name}` has {axes} axes, needed axis {axis}; axes count from 0"),
    })
}

/// Checks that no vectors lie along an axis, and that it takes part in no swizzle.
///
/// # Errors
/// [`OF_NO_LAYOUT`].
pub fn check_of_no_layout(variable: &Variable, axis: usize) -> Result<(), Refusal> {
    OF_NO_LAYOUT.require(!variable.layout.uses_axis(axis), || {
        let name = &variable.name;
        format!("axis {axis} of `{name}` is that of vectors or in a swizzle; change the layout first")
    })
}

/// Checks that nothing but accesses mentions a variable: no bound of a loop, no assumption.
///
/// # Errors
/// [`Refusal::Argument`] with the loop, or that it is assumed injective or symmetric.
pub fn check_only_accessed(kernel: &Kernel, var: VarId) -> Result<(), Refusal> {
    let name = &kernel.vars[var].name;
    for iname in kernel.inames.values() {
        ONLY_ACCESSED.require(!(iname.domain.any_symbol(&mut |atom| *atom == Atom::Var(var))), || {
            format!(
                "the bounds of `{}` mention `{name}`, and bounds mention scalars only; make them conditions by guard_iname, or copy it to another \
                 temporary for them",
                iname.name
            )
        })?;
    }
    for assumption in &kernel.assumptions {
        let assumed = match assumption {
            Assumption::Injective(v) if *v == var => "injective",
            Assumption::Ascending(v) if *v == var => "ascending",
            Assumption::Outside(outside) if outside.inputs(kernel).contains(&var) => "outside a range",
            Assumption::Symmetric(symmetry) if symmetry.var == var => "symmetric",
            Assumption::Lists(lists) if lists.vars().contains(&var) => "to have or to be lists",
            Assumption::Injective(_)
            | Assumption::Ascending(_)
            | Assumption::Outside(_)
            | Assumption::Symmetric(_)
            | Assumption::Lists(_)
            | Assumption::Params(_)
            | Assumption::Defined(..) => continue,
        };
        return Err(ONLY_ACCESSED.unfit(format!(
            "`{name}` is assumed {assumed}, which would no longer say the same; drop the assumption first"
        )));
    }
    Ok(())
}

/// Checks that no substitution rule accesses a variable.
///
/// # Errors
/// [`Refusal::Argument`] with the rule.
pub fn check_no_rule(kernel: &Kernel, var: VarId) -> Result<(), Refusal> {
    NO_RULE.forbid(rule_that_reads(kernel, var), |rule| {
        let name = &kernel.vars[var].name;
        format!("rule `{}` reads `{name}`, and rules know no loops; expand the rule first", rule.name)
    })
}

/// The first substitution rule that reads a variable.
pub fn rule_that_reads(kernel: &Kernel, var: VarId) -> Option<&Rule> {
    kernel.rules.values().find(|rule| rule.body.loads(var))
}

/// Passes every load of `var`, also in rules, through `edit`. What loads nothing of it stays shared
/// with the kernel before.
pub fn map_loads(kernel: &mut Kernel, var: VarId, edit: &mut dyn FnMut(Access) -> Expr) {
    let mut rewrite = |e: Expr| {
        let Expr::Load(access) = e else { return e };
        if access.var == var { edit(access) } else { Expr::Load(access) }
    };
    for id in kernel.rules.ids().filter(|id| kernel.rules[*id].body.loads(var)).collect::<Vec<_>>() {
        let rule = &mut kernel.rules[id];
        rule.body = rule.body.map(&mut rewrite);
    }
    for id in kernel.insns.ids().filter(|id| kernel.insns[*id].loads(var)).collect::<Vec<_>>() {
        kernel.insns[id].map_expressions(&mut rewrite);
    }
}

/// Passes every access to `var`, also in rules, through `edit`.
pub fn map_accesses(kernel: &mut Kernel, var: VarId, edit: &mut dyn FnMut(Access) -> Access) {
    map_loads(kernel, var, &mut |access| Expr::Load(edit(access)));
    for id in kernel.insns.ids().filter(|id| kernel.insns[*id].lhs.var == var).collect::<Vec<_>>() {
        let insn = &mut kernel.insns[id];
        let index = std::mem::take(&mut insn.lhs.index);
        insn.lhs = edit(Access { var, index });
    }
}

/// Passes the index of every access to `var`, also in rules, through `edit`.
pub fn rewrite_accesses(kernel: &mut Kernel, var: VarId, edit: &mut dyn FnMut(Vec<Expr>) -> Vec<Expr>) {
    redirect_accesses(kernel, var, var, edit);
}

/// Lets every access to `var` go to `into`, with another index.
pub fn redirect_accesses(
    kernel: &mut Kernel,
    var: VarId,
    into: VarId,
    edit: &mut dyn FnMut(Vec<Expr>) -> Vec<Expr>,
) {
    map_accesses(kernel, var, &mut |access| Access { var: into, index: edit(access.index) });
}

/// The element an access touches at a point of its loops, as far as it is known.
pub fn element_at(poly: &Polyhedral, site: &AccessSite, point: &[i64], params: &[(String, i64)]) -> String {
    let loops = poly.loops(site.insn);
    let name = &poly.kernel.vars[site.access.var].name;
    let mut value = |atom: &Atom| match atom {
        Atom::Iname(i) => point.get(loops.iter().position(|l| l == i)?).copied(),
        Atom::Var(v) => params.iter().find(|(n, _)| *n == poly.kernel.vars[*v].name).map(|(_, value)| *value),
        Atom::Floor(..) => None,
    };
    let index = site.index.iter().map(|e| e.as_ref()?.eval(&mut value).map(|v| v.to_string()));
    match index.collect::<Option<Vec<_>>>() {
        Some(index) if !index.is_empty() => format!("{name}[{}]", index.join(",")),
        Some(_) | None => name.clone(),
    }
}

/// Checks that the layout of a variable may change: tables are row-major, parameters have no place.
///
/// # Errors
/// [`Refusal::Argument`] with what it is.
pub fn check_movable(variable: &Variable) -> Result<(), Refusal> {
    let other = match variable.kind {
        VarKind::Temporary | VarKind::Argument(_) => None,
        VarKind::Param => Some("a parameter, which has no layout"),
        VarKind::Table(_) => Some("a table, which is row-major; copy it to a temporary first"),
    };
    MOVABLE.forbid(other, |what| format!("`{}` is {what}", variable.name))
}

/// The product, if it is affine.
pub fn product(a: &Affine, b: &Affine) -> Option<Affine> {
    match (a.as_constant(), b.as_constant()) {
        (Some(c), _) => Some(b.times(c)),
        (_, Some(c)) => Some(a.times(c)),
        (None, None) => None,
    }
}

/// Strides of a dense array whose axes lie in memory in this order, outermost first; `None` for a
/// product of parameters, which is not affine.
pub fn dense_strides(shape: &[Affine], order: &[usize]) -> Option<Vec<Affine>> {
    let mut strides = vec![Affine::constant(1); shape.len()];
    let mut stride = Some(Affine::constant(1));
    for axis in order.iter().rev() {
        let here = stride?;
        stride = product(&here, &shape[*axis]);
        strides[*axis] = here;
    }
    Some(strides)
}

/// The strides a variable has, those of a dense one if its layout gives none.
pub fn dense_or_given_strides(variable: &Variable) -> Option<Vec<Affine>> {
    match variable.layout.strides() {
        Some(strides) => Some(strides.to_vec()),
        None => dense_strides(&variable.shape, &variable.layout.order(variable.shape.len())),
    }
}

/// A variable with `length` elements along an axis, no fewer than now: a table with zeros after its
/// values.
pub fn with_longer_axis(kernel: &Kernel, var: VarId, axis: usize, length: i64) -> Result<Variable, Refusal> {
    let mut variable = kernel.vars[var].clone();
    variable.shape[axis] = Affine::constant(length);
    let VarKind::Table(data) = &mut variable.kind else { return Ok(variable) };
    let extents = constant_shape(kernel, &kernel.vars[var])?;
    let rows: usize = extents[..axis].iter().product();
    let inner: usize = extents[axis + 1..].iter().product();
    let row = extents[axis] * inner;
    let longer = usize::try_from(length).ok().and_then(|n| n.checked_sub(extents[axis]));
    let more = longer.expected("longer axis", kernel)? * inner;
    let of_row = |k: usize| (k * row..(k + 1) * row).map(Some).chain(repeat_n(None, more));
    *data = data.picked((0..rows).flat_map(of_row));
    Ok(variable)
}
