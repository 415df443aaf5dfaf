//! Shapes of arrays against those of a kernel's arguments; parameters that follow from them.

use crate::failure::Failure;
use kingpost::ir::{Affine, Atom, DefinitionError, Kernel, VarId, VarKind, Variable};
use std::collections::BTreeMap;

/// A parameter's value, and what says it; none if the user does.
type Known = BTreeMap<String, (i64, Option<String>)>;

/// The layout of an array that is given for an argument.
pub(crate) struct Given<'a> {
    pub(crate) name: &'a str,
    pub(crate) shape: &'a [i64],
    /// In bytes; none if its elements lie row by row.
    pub(crate) strides: Option<&'a [i64]>,
}

impl Given<'_> {
    /// Elements between neighbours along an axis; none if they are no whole number. Where there are no
    /// neighbours, as if there were some.
    fn stride(&self, axis: usize, bytes: i64) -> Option<i64> {
        let dense = self.shape.get(axis + 1..)?.iter().product();
        match self.strides {
            None => Some(dense),
            Some(strides) => {
                let found = strides.get(axis).filter(|s| **s % bytes == 0).map(|s| s / bytes)?;
                Some(if self.has_neighbours(axis) { found } else { found.max(dense) })
            }
        }
    }

    /// Whether an axis has neighbours.
    fn has_neighbours(&self, axis: usize) -> bool {
        !self.shape.contains(&0) && self.shape.get(axis).is_some_and(|extent| *extent > 1)
    }
}

/// The values of all parameters: those that are given, and those that follow from the shapes of
/// arrays.
///
/// # Errors
/// A parameter without a value, a shape that does not fit.
pub(crate) fn parameters(
    kernel: &Kernel,
    given: BTreeMap<String, i64>,
    arrays: &[Given<'_>],
) -> Result<BTreeMap<String, i64>, Failure> {
    let mut known: Known = given.into_iter().map(|(name, value)| (name, (value, None))).collect();
    // strides between no elements say parameters that nothing else says
    let (mut pairs, mut idle) = (Vec::new(), Vec::new());
    for array in arrays {
        let Some(var) = kernel.var(array.name).map(|v| &kernel.vars[v]) else { continue };
        if is_one_element(var, array.shape) {
            continue;
        }
        let axes = axes(var, array.shape);
        if var.shape.len() != axes.len() {
            return Err(misfit(kernel, var, array, &known));
        }
        let of_array = |(extent, found): (&Affine, &i64)| (array.name, extent.clone(), *found);
        pairs.extend(var.shape.iter().zip(axes).map(of_array));
        for (axis, stride) in var.layout.strides().unwrap_or_default().iter().enumerate() {
            let found = array.stride(axis, var.ty.bytes() as i64);
            let strides = if array.has_neighbours(axis) { &mut pairs } else { &mut idle };
            strides.extend(found.map(|found| (array.name, stride.clone(), found)));
        }
    }
    // an equation says either side
    for (param, value) in kernel.definitions() {
        let name = kernel.vars[param].name.as_str();
        pairs.extend(value.as_affine().map(|value| (name, value.minus(&Affine::var(param)), 0)));
    }
    // each round finds a parameter or ends
    while let Some((name, value, from)) = computed(kernel, &known)?
        .or_else(|| pairs.iter().chain(&idle).find_map(|pair| solve(kernel, &known, pair)))
    {
        known.insert(name, (value, Some(from)));
    }
    for array in arrays {
        let Some(var) = kernel.var(array.name).map(|v| &kernel.vars[v]) else { continue };
        let extents = var.shape.iter().map(|extent| evaluate(kernel, extent, &known));
        let fits = extents.zip(array.shape).all(|(extent, found)| extent.is_none_or(|e| e == *found));
        if !fits && !is_one_element(var, array.shape) {
            return Err(misfit(kernel, var, array, &known));
        }
    }
    if let Some(var) = kernel.vars.values().find(|v| v.kind == VarKind::Param && !known.contains_key(&v.name))
    {
        let name = &var.name;
        let message = format!(
            "parameter `{name}` of `{}` has no value, and no shape of an array says it; give {name}=",
            kernel.name
        );
        return Err(Failure::about("MissingArgument", name, message));
    }
    Ok(known.into_iter().map(|(name, (value, _))| (name, value)).collect())
}

/// The elements between neighbours along each axis, as the kernel wants them.
pub(crate) fn strides(kernel: &Kernel, var: &Variable, params: &BTreeMap<String, i64>) -> Option<Vec<i64>> {
    let value =
        |e: &Affine| evaluate(kernel, e, &params.iter().map(|(n, v)| (n.clone(), (*v, None))).collect());
    if let Some(strides) = var.layout.strides() {
        return strides.iter().map(value).collect();
    }
    let mut strides = vec![1; var.shape.len()];
    let mut step = 1_i64;
    for axis in var.layout.order(var.shape.len()).into_iter().rev() {
        strides[axis] = step;
        step = step.checked_mul(value(&var.shape[axis])?)?;
    }
    Some(strides)
}

/// The extents that count: `(n, 1)` is `(n,)`, as positions in one dimension have it.
fn axes<'s>(var: &Variable, shape: &'s [i64]) -> &'s [i64] {
    match shape {
        [n, 1] if var.shape.len() == 1 => std::slice::from_ref(n),
        all => all,
    }
}

/// A number of the kernel's that is passed by address may come as an array of one element.
fn is_one_element(var: &Variable, shape: &[i64]) -> bool {
    var.shape.is_empty() && shape.iter().all(|extent| *extent == 1)
}

/// A parameter that is computed from known ones.
fn computed(kernel: &Kernel, known: &Known) -> Result<Option<(String, i64, String)>, Failure> {
    let values = known.iter().map(|(name, (value, _))| (name.clone(), *value)).collect();
    let all = kernel.with_defined(&values).map_err(|error| contradiction(kernel, known, &error))?;
    let new = all.iter().find(|(name, _)| !known.contains_key(*name));
    Ok(new.map(|(name, value)| (name.clone(), *value, name.clone())))
}

/// The value of a parameter that is computed does not fit, or is another one than what is given says.
fn contradiction(kernel: &Kernel, known: &Known, error: &DefinitionError) -> Failure {
    if let DefinitionError::Differs { name, value, found, needed } = error
        && let Some((_, Some(array))) = known.get(name)
    {
        let kernel = &kernel.name;
        let message = format!(
            "argument `{array}` of `{kernel}` says {name} = {found}, and that is computed as `{value}` = {needed}"
        );
        return Failure::about("ShapeError", array, message);
    }
    Failure::new("ArgumentError", error.to_string())
}

/// A parameter that one extent determines.
fn solve(
    kernel: &Kernel,
    known: &Known,
    (array, extent, found): &(&str, Affine, i64),
) -> Option<(String, i64, String)> {
    let extent = substituted(kernel, extent, known);
    let [(Atom::Var(var), factor)] = extent.terms() else { return None };
    let rest = found.checked_sub(extent.constant_term())?;
    let is_param = kernel.vars[*var].kind == VarKind::Param;
    // a product says nothing of its factors
    let is_product = kernel.definition(*var).is_some_and(|value| value.as_affine().is_none());
    if !is_param || is_product || *factor == 0 || rest % factor != 0 {
        return None;
    }
    Some((kernel.vars[*var].name.clone(), rest / factor, (*array).to_owned()))
}

fn substituted(kernel: &Kernel, e: &Affine, known: &Known) -> Affine {
    let value = |v: &VarId| known.get(&kernel.vars[*v].name).map(|(value, _)| Affine::constant(*value));
    e.substitute(&|atom: &Atom| match atom {
        Atom::Var(v) => value(v),
        Atom::Iname(_) | Atom::Floor(..) => None,
    })
}

fn evaluate(kernel: &Kernel, e: &Affine, known: &Known) -> Option<i64> {
    substituted(kernel, e, known).as_constant()
}

fn misfit(kernel: &Kernel, var: &Variable, array: &Given<'_>, known: &Known) -> Failure {
    let needed = var.shape.iter().map(|e| match evaluate(kernel, e, known) {
        Some(value) => value.to_string(),
        None => kernel.show_affine(e).to_string(),
    });
    let mut mentioned = Vec::new();
    for extent in &var.shape {
        extent.for_each_symbol(&mut |atom| {
            if let Atom::Var(v) = atom {
                let name = &kernel.vars[*v].name;
                if let Some((value, from)) = known.get(name) {
                    let from = from.as_ref().map_or(" as given".into(), |a| format!(", as `{a}` says"));
                    let text = format!("{name} = {value}{from}");
                    if !mentioned.contains(&text) {
                        mentioned.push(text);
                    }
                }
            }
        });
    }
    let params = if mentioned.is_empty() { String::new() } else { format!(" ({})", mentioned.join("; ")) };
    let message = format!(
        "argument `{}` of `{}` has shape {}, needed {}{params}",
        array.name,
        kernel.name,
        tuple(array.shape.iter().map(i64::to_string)),
        tuple(needed),
    );
    Failure::about("ShapeError", array.name, message)
}

/// A shape as Python prints it.
fn tuple(items: impl Iterator<Item = String>) -> String {
    let items: Vec<String> = items.collect();
    match items.as_slice() {
        [one] => format!("({one},)"),
        all => format!("({})", all.join(", ")),
    }
}
