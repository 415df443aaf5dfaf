//! The same program with other names of arguments, or fewer of them.

use crate::{checked, refused};
use kingpost_ir::{Assumption, Atom, Expr, Id, Kernel, VarId, VarKind, Variable};
use kingpost_steps::lookup;
use kingpost_steps::mentioned::mentioned;
use kingpost_steps::refusal::{Refusal, TransformError};

/// Renames parameters and arguments: pairs of the name and the new one, all at once.
///
/// ```
/// use kingpost_programs::rename_arguments;
///
/// let kernel = kingpost_ir::text::parse("kernel k\narg a: f64[4] in\narg b: f64[4] out\n\nfor i in 0..4\n  s: b[i] = a[i]\n")?;
/// let swapped = rename_arguments(&kernel, &[("a", "b"), ("b", "a")])?;
/// assert!(swapped.to_string().contains("s: a[i] = b[i]"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// A name that is no parameter or argument, or is renamed twice; a new name that is taken.
///
/// # Elsewhere
/// Loopy `rename_argument`; inside a program, the step `rename`.
pub fn rename_arguments(kernel: &Kernel, names: &[(&str, &str)]) -> Result<Kernel, TransformError> {
    let shown: Vec<_> = names.iter().map(|(from, to)| format!("`{from}` to `{to}`")).collect();
    let operation = format!("rename arguments {}", shown.join(", "));
    let rename = || {
        let mut vars = Vec::with_capacity(names.len());
        for (from, _) in names {
            let var = lookup::var(kernel, from)?;
            match kernel.vars[var].kind {
                VarKind::Param | VarKind::Argument(_) => {}
                VarKind::Temporary | VarKind::Table(_) => {
                    let found = format!("`{from}` is a temporary or a table");
                    return Err(Refusal::argument("names", found, "arguments; the step `rename` is for it"));
                }
            }
            if vars.contains(&var) {
                let found = format!("`{from}` gets two names");
                return Err(Refusal::argument("names", found, "one"));
            }
            vars.push(var);
        }
        let mut renamed = kernel.clone();
        for var in &vars {
            renamed.vars[*var].name.clear(); // names may be exchanged
        }
        for (var, (_, to)) in vars.iter().zip(names) {
            lookup::free(&renamed, to)?;
            (*to).clone_into(&mut renamed.vars[*var].name);
        }
        Ok(renamed)
    };
    checked(&operation, rename().map_err(|cause| refused(&operation, cause))?)
}

/// The program without the parameters and arguments that nothing mentions, and their names.
///
/// # Errors
/// None but those of the verifier.
///
/// # Elsewhere
/// Loopy `remove_unused_arguments`; of temporaries,
/// the step `remove_unused_vars`.
pub fn remove_unused_arguments(kernel: &Kernel) -> Result<(Kernel, Vec<String>), TransformError> {
    let mut kept = kernel.clone();
    // an array that is left out may be all that mentions a parameter
    for of_arrays in [true, false] {
        let used = mentioned(&kept);
        let unused = |(id, v): &(VarId, &Variable)| match v.kind {
            VarKind::Argument(_) => of_arrays && !used[id.index()],
            VarKind::Param => !of_arrays && !used[id.index()] && !in_shapes(&kept, *id),
            VarKind::Temporary | VarKind::Table(_) => false,
        };
        let vars: Vec<VarId> = kept.vars.iter().filter(unused).map(|(id, _)| id).collect();
        // from the back, so that the ids in front stay
        for var in vars.into_iter().rev() {
            kept = kept.with_var_fixed(var, 0);
        }
    }
    let names = kernel.vars.values().map(|v| v.name.clone());
    let removed = names.filter(|name| kept.var(name).is_none()).collect();
    Ok((checked("remove unused arguments", kept)?, removed))
}

/// Whether a shape, a stride or an assumption mentions a parameter.
fn in_shapes(kernel: &Kernel, param: VarId) -> bool {
    let mut is = |atom: &Atom| *atom == Atom::Var(param);
    let of_vars =
        kernel.vars.values().flat_map(|v| v.shape.iter().chain(v.layout.strides().into_iter().flatten()));
    let assumed = kernel.assumptions.iter().flat_map(|a| match a {
        Assumption::Params(c) => vec![c.expr()],
        Assumption::Outside(outside) => vec![&outside.from, &outside.to],
        Assumption::Defined(..)
        | Assumption::Injective(_)
        | Assumption::Ascending(_)
        | Assumption::Symmetric(_)
        | Assumption::Lists(_) => Vec::new(),
    });
    let is_term = |value: &Expr| value.any(&mut |e| e.as_load().is_some_and(|access| access.var == param));
    of_vars.chain(assumed).any(|e| e.any_symbol(&mut is)) || kernel.definitions().any(|(_, e)| is_term(e))
}
