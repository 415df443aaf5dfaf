//! Registers that asynchronous calls update: after a wait for all of them, the compiler is told that they change
//! there, so that it reads none of them earlier. A wait alone mentions no registers.

use crate::ast::{Block, CodePiece, Expr, Intrinsic, Name, Place, Stmt};
use crate::completions::Completions;
use crate::declare::Private;
use crate::storage::Storage;
use kingpost_ir::{Id, ScalarType};

/// Elements that one statement holds.
const SOME: usize = 32;

/// Puts such statements after waits, with the name of the registers of each type.
pub(crate) fn hold(
    body: &mut Block,
    completions: &Completions,
    storage: &Storage,
    class: fn(ScalarType) -> &'static str,
) {
    let held = |wait: &Name| {
        let names = completions.accumulators(wait).map(|var| &storage.names[var.index()]);
        let privates = names.filter_map(|name| storage.privates.iter().find(|p| p.name == *name));
        privates.flat_map(|array| statements(array, class)).collect::<Vec<_>>()
    };
    walk(body, &held);
}

fn walk(block: &mut Block, held: &dyn Fn(&Name) -> Vec<Stmt>) {
    for mut stmt in std::mem::take(block) {
        if let Some(body) = stmt.body_mut() {
            walk(body, held);
        }
        let after = match &stmt {
            Stmt::Barrier(fence) => {
                let of_all = fence.completions.iter().filter(|(_, going_on)| **going_on == 0);
                of_all.flat_map(|(wait, _)| held(wait)).collect()
            }
            Stmt::Comment(_)
            | Stmt::Declare(_)
            | Stmt::Assign { .. }
            | Stmt::Atomic(_)
            | Stmt::Intrinsic(_)
            | Stmt::If { .. }
            | Stmt::For(_)
            | Stmt::Iteration(_) => Vec::new(),
        };
        block.push(stmt);
        block.extend(after);
    }
}

fn statements(array: &Private, class: fn(ScalarType) -> &'static str) -> Vec<Stmt> {
    let element = |k: u64| {
        let offset = i64::try_from(k).unwrap_or(i64::MAX); // registers are far fewer
        Expr::Load(match array.len {
            Some(_) => Place::element(array.name.clone(), Expr::int(offset)),
            None => Place::scalar(array.name.clone()),
        })
    };
    let all: Vec<u64> = (0..array.len.unwrap_or(1)).collect(); // a scalar is one element
    let of_some = |some: &[u64]| {
        let mut pieces = vec![CodePiece::Text("asm volatile(\"\" : ".into())];
        for (n, k) in some.iter().enumerate() {
            let between = match n {
                0 => "",
                n if n % 8 == 0 => ",\n    ",
                _ => ", ",
            };
            pieces.push(CodePiece::Text(format!("{between}\"+{}\"(", class(array.ty))));
            pieces.push(CodePiece::Value(element(*k)));
            pieces.push(CodePiece::Text(")".into()));
        }
        pieces.push(CodePiece::Text(");".into()));
        Stmt::Intrinsic(Intrinsic {
            written: vec![array.name.clone()],
            ..crate::code::plain("what calls have updated", pieces)
        })
    };
    all.chunks(SOME).map(of_some).collect()
}
