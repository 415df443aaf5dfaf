//! Parameters that are computed from others.

use kingpost_ir::{Affine, Expr, Kernel, VarId};

/// Why a value may not stand for a parameter: it is computed as something else, or others are computed from
/// it, and a definition mentions parameters above it alone, so that only a constant may.
#[must_use]
pub fn unfit_definition(kernel: &Kernel, param: VarId, value: &Affine) -> Option<String> {
    let name = &kernel.vars[param].name;
    if let Some(own) = kernel.definition(param).filter(|own| own.as_affine().as_ref() != Some(value)) {
        let own = kernel.show_expr(own);
        return Some(format!("`{name}` is computed as `{own}`; fix the parameters that it is computed from"));
    }
    let is_term = |e: &Expr| e.as_load().is_some_and(|access| access.var == param);
    let (user, _) = kernel.definitions().find(|(_, e)| e.any(&mut |e| is_term(e)))?;
    let user = &kernel.vars[user].name;
    value
        .as_constant()
        .is_none()
        .then(|| format!("`{user}` is computed from `{name}`; fix that to a constant"))
}
