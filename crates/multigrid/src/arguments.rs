//! What a program takes of all that a level could give it.

use kingpost_codegen::{ArgKind, ArgSpec};
use kingpost_runtime::{Arg, Executable};

/// The arguments that a program takes: matrices that are part of its code, or tables that the
/// launch brings itself, are none.
pub(crate) fn taken<'a>(
    executable: &Executable,
    mut args: Vec<(&'a str, Arg<'a>)>,
) -> Vec<(&'a str, Arg<'a>)> {
    args.retain(|(name, _)| takes(&executable.plan().args, name));
    args
}

fn takes(args: &[ArgSpec], name: &str) -> bool {
    args.iter().any(|arg| arg.name == name && !matches!(arg.kind, ArgKind::Table(_)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::takes;
    use crate::kernels::Operation;
    use crate::schedules::{Structure, program};
    use crate::{Dimension, Element, Precision};
    use kingpost_runtime::Backend;

    /// The launch brings a table of a kernel that has the name of an argument of the plain one.
    #[test]
    fn tables_are_not_given() {
        let element = Element { dimension: Dimension::Three, degree: 2 };
        let of = |structure, backend| {
            let made =
                program(Operation::SmoothBlended, element, structure, Precision::Double, backend).unwrap();
            made.plan.args
        };
        let mapped = of(Structure::lines(1), Backend::Cuda);
        assert!(mapped.iter().any(|arg| arg.name == "inverses"));
        assert!(takes(&mapped, "x") && !takes(&mapped, "inverses") && !takes(&mapped, "S"));
        assert!(takes(&of(Structure::Blocks, Backend::C), "inverses"));
    }
}
