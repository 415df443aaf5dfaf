//! Vectors as types of a language, or of C's compilers.

use super::Printer;
use crate::ast::{Expr, Extent, Name, Place};
use crate::print::Helper;
use crate::target::Vectors;
use kingpost_ir::{ScalarType, UpdateOp};

impl Printer {
    /// A place that is read: a vector is loaded.
    pub(super) fn load(&mut self, place: &Place) {
        let Extent::Vector(ty, width) = place.extent else { return self.place(place) };
        self.doubles |= ty == ScalarType::F64;
        match self.dialect.vectors {
            Vectors::Operators => {
                self.out.push_str(&format!("vload{width}(0, &"));
                self.place(place);
            }
            Vectors::Accesses { .. } => {
                let name = self.dialect.vector(ty, width);
                self.out.push_str(&format!("*reinterpret_cast<const {name} *>(&"));
                self.place(place);
            }
            Vectors::OfCompilers => {
                let name = self.vector_type(ty, width);
                self.out.push_str(&format!("(*(const {name} *)&"));
                self.place(place);
            }
        }
        self.out.push(')');
    }

    /// The name of a type of vectors, which the source defines if only compilers have it.
    pub(super) fn vector_type(&mut self, ty: ScalarType, width: u8) -> String {
        if self.dialect.vectors == Vectors::OfCompilers {
            let may_be_narrower = u64::from(width) * ty.bytes() > 16;
            self.helpers.extend(may_be_narrower.then_some(Helper::VectorBytes));
            self.helpers.insert(Helper::Vector(ty, width));
        }
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
        match self.dialect.vectors {
            Vectors::Operators => {
                self.out.push_str(&format!("vstore{width}("));
                self.expr(value, 0);
                self.out.push_str(", 0, &");
                self.place(place);
                self.out.push_str(");\n");
            }
            Vectors::OfCompilers => {
                let name = self.vector_type(ty, width);
                self.out.push_str(&format!("*({name} *)&"));
                self.place(place);
                self.out.push_str(match op {
                    None => " = ",
                    Some(UpdateOp::Mul) => " *= ",
                    Some(
                        UpdateOp::Add
                        | UpdateOp::Min
                        | UpdateOp::Max
                        | UpdateOp::Or
                        | UpdateOp::And
                        | UpdateOp::Named(_),
                    ) => " += ",
                });
                self.expr(value, 0);
                self.out.push_str(";\n");
            }
            Vectors::Accesses { .. } => {
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
        match self.dialect.vectors {
            Vectors::Operators => self.out.push_str(&format!("({name})")),
            Vectors::Accesses { .. } => self.out.push_str(&format!("make_{name}")),
            Vectors::OfCompilers => {
                self.vector_type(ty, width);
                if let Some((from, places)) = lanes_of_two(width, lanes) {
                    return self.shuffled((ty, width), from, &places);
                }
                let helper = match lanes {
                    [_] => Helper::Splat(ty, width),
                    _ => Helper::List(ty, width),
                };
                self.out.push_str(&helper.name(self.dialect));
                self.helpers.insert(helper);
            }
        }
        self.arguments(lanes.iter());
    }

    /// The vector that lanes of two others make.
    fn shuffled(&mut self, (ty, width): (ScalarType, u8), from: [&Name; 2], places: &[usize]) {
        let helper = Helper::Shuffle(ty, width);
        let places: Vec<String> = places.iter().map(usize::to_string).collect();
        let text = format!("{}({}, {}, {})", helper.name(self.dialect), from[0], from[1], places.join(", "));
        self.out.push_str(&text);
        self.helpers.insert(helper);
    }
}

/// The two variables whose lanes a vector has, and the places of these among those of both; none for
/// other vectors.
fn lanes_of_two(width: u8, lanes: &[Expr]) -> Option<([&Name; 2], Vec<usize>)> {
    let lanes: Vec<(&Name, u8)> = lanes.iter().map(lane).collect::<Option<_>>()?;
    let (first, _) = lanes.first()?;
    let second = lanes.iter().map(|(name, _)| name).find(|name| name != &first).unwrap_or(first);
    let place = |(name, lane): &(&Name, u8)| {
        let of = [first, second].iter().position(|known| *known == name)?;
        Some(of * usize::from(width) + usize::from(*lane))
    };
    Some(([first, second], lanes.iter().map(place).collect::<Option<_>>()?))
}

/// A lane of a variable.
fn lane(e: &Expr) -> Option<(&Name, u8)> {
    let Expr::Load(Place { name, offset: None, extent: Extent::Lane(lane) }) = e else { return None };
    Some((name, *lane))
}
