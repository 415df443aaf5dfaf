//! The proof of every primitive that evaluates something where nothing did before: it reads what there is.

use crate::error::Cause;
use crate::proofs::written::may_be_undefined;
use purlin_ir::inside::{Cause as Unknown, Reach, accesses_of};
use purlin_ir::witness::params_text;
use purlin_ir::{InsnId, Kernel};

/// Checks that an instruction, wherever it runs, reads defined elements inside of their arrays.
///
/// Formula: for every read `r` along an axis of extent `n`, `{ i in D : r(i) < 0 or r(i) >= n }` is empty.
///
/// # Errors
/// [`Cause::Argument`] with the smallest element outside, or with what cannot be known: an index that is not
/// affine, a bound that is read from memory, an element that may be undefined.
pub(crate) fn check_inside(kernel: &Kernel, insn: InsnId, help: &str) -> Result<(), Cause> {
    let expanded = kernel.with_rules_expanded();
    let refuse = |what: &str| {
        let name = &kernel.insns[insn].name;
        Err(Cause::Argument(format!("`{name}` would read {what}, where perhaps nothing did before; {help}")))
    };
    for read in expanded.insns[insn].reads() {
        let var = &kernel.vars[read.var];
        if may_be_undefined(&var.kind) {
            return refuse(&format!("elements of `{}` that may be undefined", var.name));
        }
    }
    for read in accesses_of(&expanded, &|i| i == insn).iter().filter(|a| !a.writes) {
        match &read.reach {
            Reach::Inside => {}
            Reach::Outside(outside) => {
                return refuse(&format!("`{}`{}", outside.element, params_text(&outside.params)));
            }
            Reach::Open(Unknown::Index) => {
                let var = &kernel.vars[read.var].name;
                return refuse(&format!("`{var}` through an index that is not affine"));
            }
            Reach::Open(Unknown::Domain | Unknown::Solver) => {
                return refuse(&format!("`{}`, perhaps outside of its shape", read.access));
            }
        }
    }
    Ok(())
}
