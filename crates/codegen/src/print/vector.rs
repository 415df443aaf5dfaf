//! Vectors of CUDA and OpenCL.

use super::Printer;
use crate::ast::{Expr, Extent, Place};
use crate::plan::Target;
use purlin_ir::ScalarType;

impl Printer {
    /// A place that is read: a vector is loaded.
    pub(super) fn load(&mut self, place: &Place) {
        let Extent::Vector(ty, width) = place.extent else { return self.place(place) };
        self.doubles |= ty == ScalarType::F64;
        match self.dialect.0 {
            Target::OpenCl => {
                self.out.push_str(&format!("vload{width}(0, &"));
                self.place(place);
            }
            Target::Cuda | Target::C => {
                let name = self.dialect.vector(ty, width);
                self.out.push_str(&format!("*reinterpret_cast<const {name} *>(&"));
                self.place(place);
            }
        }
        self.out.push(')');
    }

    /// Stores a vector.
    pub(super) fn store_vector(&mut self, place: &Place, ty: ScalarType, width: u8, value: &Expr) {
        self.start();
        match self.dialect.0 {
            Target::OpenCl => {
                self.out.push_str(&format!("vstore{width}("));
                self.expr(value, 0);
                self.out.push_str(", 0, &");
                self.place(place);
                self.out.push_str(");\n");
            }
            Target::Cuda | Target::C => {
                let name = self.dialect.vector(ty, width);
                self.out.push_str(&format!("*reinterpret_cast<{name} *>(&"));
                self.place(place);
                self.out.push_str(") = ");
                self.expr(value, 0);
                self.out.push_str(";\n");
            }
        }
    }

    /// A vector of its lanes.
    pub(super) fn vector(&mut self, ty: ScalarType, width: u8, lanes: &[Expr]) {
        self.doubles |= ty == ScalarType::F64;
        let name = self.dialect.vector(ty, width);
        match self.dialect.0 {
            Target::OpenCl => self.out.push_str(&format!("({name})")),
            Target::Cuda | Target::C => self.out.push_str(&format!("make_{name}")),
        }
        self.arguments(lanes.iter());
    }
}
