//! Copies of vectors: what is no loop in CUDA and OpenCL.

use super::Printer;
use crate::ast::{Expr, For, LoopKind, Name, Op, Place, Stmt};
use crate::plan::Target;
use purlin_ir::ScalarType;

impl Printer {
    /// Prints a loop over lanes that copies one vector as loads and stores of vectors; whether it did.
    pub(super) fn vector_copy(&mut self, f: &For) -> bool {
        let LoopKind::VectorCopy { ty, lanes } = f.kind else { return false };
        let [Stmt::Assign { place: to, op: None, value: Expr::Load(from), .. }] = f.body.as_slice() else {
            return false;
        };
        let width = match self.dialect.0 {
            Target::C => return false,
            // what a thread loads at once
            Target::Cuda => (16 / ty.bytes()).min(u64::from(lanes)),
            Target::OpenCl => u64::from(lanes),
        };
        self.doubles |= ty == ScalarType::F64;
        let name = self.dialect.vector(ty, width);
        for start in (0..i64::from(lanes)).step_by(width as usize) {
            let (to, from) = (at(to, &f.name, start), at(from, &f.name, start));
            self.start();
            match self.dialect.0 {
                Target::OpenCl => {
                    self.out.push_str(&format!("vstore{width}(vload{width}(0, &"));
                    self.place(&from);
                    self.out.push_str("), 0, &");
                    self.place(&to);
                    self.out.push_str(");\n");
                }
                Target::Cuda | Target::C => {
                    self.out.push_str(&format!("*reinterpret_cast<{name} *>(&"));
                    self.place(&to);
                    self.out.push_str(&format!(") = *reinterpret_cast<const {name} *>(&"));
                    self.place(&from);
                    self.out.push_str(");\n");
                }
            }
        }
        true
    }
}

/// The place with the loop variable replaced by a number.
fn at(place: &Place, name: &Name, value: i64) -> Place {
    let mut place = place.clone();
    if let Some(offset) = &mut place.offset {
        offset.for_each_mut(&mut |e| match e {
            Expr::Load(p) if p.offset.is_none() && p.name == *name => *e = Expr::int(value),
            Expr::Binary(Op::Add, a, b) if matches!(**b, Expr::Int(0, _)) => *e = (**a).clone(),
            Expr::Binary(Op::Add, a, b) if matches!(**a, Expr::Int(0, _)) => *e = (**b).clone(),
            _ => {}
        });
    }
    place
}
