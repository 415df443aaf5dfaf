//! The last check of code that the work-items along some axes run together: no condition on its way may
//! send them apart.

use crate::ast::{Block, Expr, Name, Stmt};
use crate::completions::Completions;
use crate::error::CodegenError;
use std::collections::BTreeSet;

/// Checks that code for all work-items along a number of axes, from l.0 on, stands where they arrive together.
///
/// `uniform`: parameters passed by value and hardware indices that are the same for all of them.
///
/// # Errors
/// [`CodegenError::DivergentIntrinsic`] with the condition.
pub(crate) fn check(
    body: &Block,
    completions: &Completions,
    uniform: &BTreeSet<Name>,
    axes: u8,
) -> Result<(), CodegenError> {
    walk(body, completions, &mut uniform.clone(), None, axes)
}

fn walk(
    block: &Block,
    completions: &Completions,
    uniform: &mut BTreeSet<Name>,
    divergent: Option<&Expr>,
    axes: u8,
) -> Result<(), CodegenError> {
    let refuse = |what: &str| match divergent {
        None => Ok(()),
        Some(condition) => Err(CodegenError::DivergentIntrinsic {
            callee: what.to_owned(),
            along: match axes {
                1 => "l.0",
                2 => "l.0 and l.1",
                _ => "l.0, l.1 and l.2",
            },
            condition: crate::print::expression(condition),
        }),
    };
    for stmt in block {
        match stmt {
            Stmt::Intrinsic(i) if i.together == axes => refuse(&i.name)?,
            Stmt::Barrier(fence) => {
                let mut statements = fence.commits.iter().chain(fence.completions.keys());
                let together = statements.find(|s| completions.axes_together(s) == Some(axes));
                together.map_or(Ok(()), |statement| refuse(statement))?;
            }
            Stmt::If { condition, body } => {
                let here = divergent.or((!is_uniform(condition, uniform, axes)).then_some(condition));
                walk(body, completions, uniform, here, axes)?;
            }
            Stmt::For(f) => {
                let bound = [&f.lower, &f.upper].into_iter().find(|e| !is_uniform(e, uniform, axes));
                let new = bound.is_none() && uniform.insert(f.name.clone());
                walk(&f.body, completions, uniform, divergent.or(bound), axes)?;
                if new {
                    uniform.remove(&f.name);
                }
            }
            Stmt::Declare(d) => {
                if d.constant && d.value.as_ref().is_some_and(|v| is_uniform(v, uniform, axes)) {
                    uniform.insert(d.name.clone());
                }
            }
            Stmt::Intrinsic(_)
            | Stmt::Comment(_)
            | Stmt::Assign { .. }
            | Stmt::Atomic(_)
            | Stmt::Iteration(_) => {}
        }
    }
    Ok(())
}

/// Whether all work-items along the axes find the same value: nothing is read but what is known to be the
/// same.
fn is_uniform(e: &Expr, uniform: &BTreeSet<Name>, axes: u8) -> bool {
    let mut same = true;
    e.for_each(&mut |e| {
        if let Expr::Load(place) = e {
            same &= place.offset.is_none() && uniform.contains(&place.name);
        }
        if let Expr::Hardware { group, axis } = e {
            same &= *group || *axis >= axes;
        }
    });
    same
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ast::{Declare, For, Intrinsic, LoopKind, Op};
    use kingpost_ir::ScalarType;

    fn var(name: &str) -> Expr {
        Expr::var(&name.into())
    }

    fn less(a: Expr, b: i64) -> Expr {
        Expr::binary(Op::Lt, a, Expr::int(b))
    }

    fn matrix() -> Stmt {
        called(1)
    }

    fn called(together: u8) -> Stmt {
        let (name, pieces, written, origins) = ("matrix".into(), Vec::new(), Vec::new(), Vec::new());
        Stmt::Intrinsic(Intrinsic { name, pieces, written, origins, together, asynchronous: false })
    }

    fn repeated(name: &str, upper: Expr, body: Block) -> Stmt {
        let (ty, kind) = (ScalarType::I32, LoopKind::Sequential);
        Stmt::For(For {
            name: name.into(),
            ty,
            lower: Expr::int(0),
            upper,
            step: 1,
            kind,
            rolled: false,
            flag: None,
            body,
        })
    }

    fn found(body: Stmt) -> Result<(), String> {
        let uniform = ["n".into(), "g".into()].into();
        let check = |axes| check(&vec![body.clone()], &Completions::default(), &uniform, axes);
        check(1).and(check(2)).map_err(|e| e.to_string())
    }

    #[test]
    fn parameters_and_loops_over_them_keep_work_items_together() {
        let inner = Stmt::If { condition: less(var("k"), 3), body: vec![matrix()] };
        assert_eq!(found(repeated("k", var("n"), vec![inner])), Ok(()));
        let group =
            Stmt::If { condition: less(Expr::Hardware { group: true, axis: 0 }, 3), body: vec![matrix()] };
        assert_eq!(found(group), Ok(()));
    }

    #[test]
    fn sub_groups_of_a_team_stay_together() {
        let row = |axis, body| Stmt::If {
            condition: less(Expr::Hardware { group: false, axis }, 3),
            body: vec![body],
        };
        assert_eq!(found(row(1, called(1))), Ok(()));
        assert_eq!(found(row(2, called(2))), Ok(()));
        assert!(found(row(1, called(2))).is_err_and(|e| e.contains("along l.0 and l.1 together")));
    }

    #[test]
    fn indices_of_work_items_and_memory_send_them_apart() {
        let apart = |condition: &str| {
            format!(
                "`matrix` must be run by the work-items along l.0 together, and `{condition}` may send them apart; \
                 let the loop around it have exact bounds"
            )
        };
        let item = Stmt::If { condition: less(var("l0"), 3), body: vec![matrix()] };
        assert_eq!(found(item), Err(apart("l0 < 3")));
        assert_eq!(found(repeated("k", var("m"), vec![matrix()])), Err(apart("m")));
        let value = Expr::binary(Op::Add, var("l0"), Expr::int(1));
        let next = Stmt::Declare(Declare::constant("next".into(), ScalarType::I32, value));
        let made_of_it = Stmt::If { condition: less(var("next"), 3), body: vec![matrix()] };
        assert_eq!(found(repeated("k", var("n"), vec![next, made_of_it])), Err(apart("next < 3")));
        // the loop variable of such a loop differs as well
        let inner = Stmt::If { condition: less(var("k"), 3), body: vec![matrix()] };
        assert_eq!(found(repeated("k", var("m"), vec![inner])), Err(apart("m")));
    }
}
