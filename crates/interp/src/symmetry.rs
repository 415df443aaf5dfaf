//! Arrays that are assumed symmetric.

use crate::InterpError;
use crate::memory::{Memory, Value};
use crate::node::Program;
use crate::store::element_name;
use kingpost_ir::ids::Id;
use kingpost_ir::kernel::{Assumption, Direction, Kernel, VarKind};
use kingpost_ir::symmetry::{Element, Symmetry};
use kingpost_ir::{Affine, Atom, VarId};
use std::collections::BTreeMap;
use std::fmt::Display;

/// Arrays assumed symmetric that have values from the start must be; those that the kernel fills
/// are returned.
pub(crate) fn check_symmetric(
    kernel: &Kernel,
    program: &Program,
    memory: &Memory,
) -> Result<Vec<VarId>, InterpError> {
    let mut unchecked = Vec::new();
    for assumption in &kernel.assumptions {
        let Assumption::Symmetric(symmetry) = assumption else { continue };
        let (var, shape) = (&kernel.vars[symmetry.var], &program.shapes[symmetry.var.index()]);
        let wrong = match (&var.kind, memory.get(&var.name)) {
            (VarKind::Table(data), _) => {
                with_elements!(&Value::of_table(var.ty, data), v => wrong(symmetry, shape, v))
            }
            (VarKind::Argument(Direction::In | Direction::InOut), Some(value)) => {
                let value = crate::store::checked(var, value, shape, shape.iter().product())?;
                with_elements!(value, v => wrong(symmetry, shape, v))
            }
            (VarKind::Argument(_) | VarKind::Temporary | VarKind::Param, _) => {
                unchecked.push(symmetry.var);
                continue;
            }
        };
        if let Some(Wrong { first, image, found, needed }) = wrong {
            let name = |at| element_name(&var.name, shape, at);
            let assumption = kernel.show_assumption(assumption).to_string();
            let (first, image) = (name(first), name(image));
            return Err(InterpError::NotSymmetric { assumption, first, found, needed, image });
        }
    }
    Ok(unchecked)
}

/// An element that has not the value that its image says.
struct Wrong {
    first: usize,
    image: usize,
    found: String,
    needed: String,
}

fn wrong<T: Element + Display>(symmetry: &Symmetry, shape: &[usize], values: &[T]) -> Option<Wrong> {
    let (first, image) = symmetry.clash(shape, values)?;
    let needed = if symmetry.negated { values[image].negative() } else { values[image] };
    Some(Wrong { first, image, found: values[first].to_string(), needed: needed.to_string() })
}

/// Gives the elements of an array the values that the symmetries say that a kernel assumes of it,
/// for inputs that are drawn. An array of another size than `params` say stays as it is.
pub fn impose_symmetries(kernel: &Kernel, var: VarId, params: &BTreeMap<String, i64>, value: &mut Value) {
    let extent = |e: &Affine| {
        let of = |atom: &Atom| match atom {
            Atom::Var(v) => params.get(&kernel.vars[*v].name).copied(),
            Atom::Iname(_) | Atom::Floor(..) => None,
        };
        usize::try_from(e.eval(&mut |atom| of(atom))?).ok()
    };
    let Some(shape) = kernel.vars[var].shape.iter().map(extent).collect::<Option<Vec<_>>>() else { return };
    if shape.iter().product::<usize>() != value.len() {
        return;
    }
    for assumption in &kernel.assumptions {
        let Assumption::Symmetric(symmetry) = assumption else { continue };
        if symmetry.var != var {
            continue;
        }
        with_elements!(&mut *value, v => symmetry.impose(&shape, v));
    }
}
