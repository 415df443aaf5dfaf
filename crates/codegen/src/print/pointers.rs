//! Places in arrays as pointers.

use super::printer::Printer;
use crate::ast::{Declare, Expr, Op, Place, Pointee};
use std::fmt::Write;

impl Printer {
    /// A pointer to an element.
    pub(super) fn declare_pointer(&mut self, d: &Declare, pointee: &Pointee, value: &Expr) {
        self.start();
        let Pointee { array, ty, constant } = pointee;
        let (qualifier, ty) = (if *constant { "const " } else { "" }, self.dialect.ty(*ty));
        let kept = if d.constant { "const " } else { "" };
        let _ = write!(self.out, "{qualifier}{ty} *{kept}{} = &{array}[", d.name);
        self.expr(value, 0);
        self.out.push_str("];\n");
        self.pointers.insert(d.name.clone(), array.clone());
    }

    /// Writes an element at a constant distance of a pointer; returns whether it is one.
    pub(super) fn pointed(&mut self, place: &Place) -> bool {
        let Some(offset) = place.offset.as_deref() else { return false };
        let zero = Expr::int(0);
        let sum = if let Expr::Binary(Op::Add, at, distance) = offset { Some((at, distance)) } else { None };
        let (at, distance) = sum.map_or((offset, &zero), |(at, distance)| (&**at, &**distance));
        let Expr::Load(Place { name, offset: None, .. }) = at else { return false };
        if self.pointers.get(name) != Some(&place.name) {
            return false;
        }
        let _ = write!(self.out, "{name}[");
        self.expr(distance, 0);
        self.out.push(']');
        true
    }
}
