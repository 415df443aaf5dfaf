//! Vectors of CUDA and OpenCL.

use super::Printer;
use crate::ast::{Expr, Extent, Place};
use crate::plan::Target;
use crate::print::Helper;
use purlin_ir::{ScalarType, UpdateOp};

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
            Target::Cuda => {
                let name = self.dialect.vector(ty, width);
                self.out.push_str(&format!("*reinterpret_cast<const {name} *>(&"));
                self.place(place);
            }
            Target::C => {
                let name = self.vector_type(ty, width);
                self.out.push_str(&format!("(*(const {name} *)&"));
                self.place(place);
            }
        }
        self.out.push(')');
    }

    /// The name of a type of vectors, which C's source defines.
    pub(super) fn vector_type(&mut self, ty: ScalarType, width: u8) -> String {
        self.helpers.insert(Helper::Vector(ty, width));
        self.dialect.vector(ty, width)
    }

    /// Stores a vector.
    ///
    /// Only C's vectors have updates, and those of sums and products alone.
    pub(super) fn store_vector(
        &mut self,
        place: &Place,
        op: Option<UpdateOp>,
        (ty, width): (ScalarType, u8),
        value: &Expr,
    ) {
        self.start();
        match self.dialect.0 {
            Target::OpenCl => {
                self.out.push_str(&format!("vstore{width}("));
                self.expr(value, 0);
                self.out.push_str(", 0, &");
                self.place(place);
                self.out.push_str(");\n");
            }
            Target::C => {
                let name = self.vector_type(ty, width);
                self.out.push_str(&format!("*({name} *)&"));
                self.place(place);
                self.out.push_str(match op {
                    None => " = ",
                    Some(UpdateOp::Mul) => " *= ",
                    Some(UpdateOp::Add | UpdateOp::Min | UpdateOp::Max) => " += ",
                });
                self.expr(value, 0);
                self.out.push_str(";\n");
            }
            Target::Cuda => {
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
            Target::Cuda => self.out.push_str(&format!("make_{name}")),
            Target::C => {
                self.vector_type(ty, width);
                let helper = Helper::Splat(ty, width);
                self.out.push_str(&helper.name(&self.dialect));
                self.helpers.insert(helper);
            }
        }
        self.arguments(lanes.iter());
    }
}
