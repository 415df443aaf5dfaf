//! Printing expressions and forms as they would be written.

use super::expr::{Binary, Expr, Kind, MathFunction, Role, Unary};
use super::integral::Form;
use super::shape::Shape;
use std::fmt;

/// How tightly the top operation of an expression binds.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Level {
    Sum,
    Product,
    Prefix,
    Atom,
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind() {
            Kind::Literal(value) => write!(f, "{value}"),
            Kind::Identity(n) => write!(f, "identity({n})"),
            Kind::Constant(c) => write!(f, "{}", c.name),
            Kind::Coefficient(c) => write!(f, "{}", c.name),
            Kind::Argument(Role::Test, _) => write!(f, "test"),
            Kind::Argument(Role::Trial, _) => write!(f, "trial"),
            Kind::Coordinate => write!(f, "x"),
            Kind::Components(list) => write_components(f, list, self.shape()),
            Kind::Unary(Unary::Negate, a) => {
                write!(f, "-")?;
                write_operand(f, a, Level::Product)
            }
            Kind::Unary(op, a) => write!(f, "{}({a})", unary_name(*op)),
            Kind::Binary(op, a, b) => write_binary(f, *op, a, b),
            Kind::Math(function, a) => write!(f, "{}({a})", math_name(*function)),
            Kind::Index(a, i, j) => {
                write_operand(f, a, Level::Atom)?;
                match a.shape() {
                    Shape::Scalar | Shape::Vector(_) => write!(f, "[{i}]"),
                    Shape::Matrix(..) => write!(f, "[{i}, {j}]"),
                }
            }
            Kind::Conditional(c, a, b) => {
                write!(f, "conditional({} {} {}, {a}, {b})", c.left, c.comparison.symbol(), c.right)
            }
            Kind::Variable(_, a) => write!(f, "variable({a})"),
            Kind::Diff(a, by) => write!(f, "diff({a}, {by})"),
            Kind::Gateaux(a, by, to) => write!(f, "derivative({a}, {by}, {to})"),
            Kind::Error(error) => write!(f, "error({error})"),
        }
    }
}

impl fmt::Debug for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}: {}", self.shape())
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (k, integral) in self.integrals().iter().enumerate() {
            if k > 0 {
                write!(f, " + ")?;
            }
            write_operand(f, &integral.integrand, Level::Product)?;
            write!(f, " * dx")?;
            if let Some(degree) = integral.measure.degree() {
                write!(f, "(degree = {degree})")?;
            }
            if let Some(scheme) = integral.measure.scheme() {
                write!(f, "(scheme = {scheme})")?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

fn unary_name(op: Unary) -> &'static str {
    match op {
        Unary::Negate => "-",
        Unary::Transpose => "transpose",
        Unary::Trace => "tr",
        Unary::Determinant => "det",
        Unary::Inverse => "inv",
        Unary::Symmetric => "sym",
        Unary::Gradient => "grad",
        Unary::Divergence => "div",
        Unary::Curl => "curl",
    }
}

fn math_name(function: MathFunction) -> &'static str {
    match function {
        MathFunction::Exp => "exp",
        MathFunction::Ln => "ln",
        MathFunction::Sqrt => "sqrt",
        MathFunction::Sin => "sin",
        MathFunction::Cos => "cos",
    }
}

fn level(expr: &Expr) -> Level {
    match expr.kind() {
        Kind::Binary(Binary::Add | Binary::Subtract, ..) => Level::Sum,
        Kind::Binary(Binary::Multiply | Binary::Divide, ..) => Level::Product,
        Kind::Unary(Unary::Negate, _) => Level::Prefix,
        Kind::Literal(value) if *value < 0.0 => Level::Prefix,
        _ => Level::Atom,
    }
}

/// Writes an operand, in parentheses if it binds less tightly than needed.
fn write_operand(f: &mut fmt::Formatter<'_>, expr: &Expr, needed: Level) -> fmt::Result {
    if level(expr) < needed { write!(f, "({expr})") } else { write!(f, "{expr}") }
}

fn write_binary(f: &mut fmt::Formatter<'_>, op: Binary, a: &Expr, b: &Expr) -> fmt::Result {
    let (symbol, left, right) = match op {
        Binary::Add => (" + ", Level::Sum, Level::Product),
        Binary::Subtract => (" - ", Level::Sum, Level::Product),
        Binary::Multiply => ("*", Level::Product, Level::Prefix),
        Binary::Divide => ("/", Level::Product, Level::Prefix),
        Binary::Power => {
            write_operand(f, a, Level::Atom)?;
            return write!(f, ".pow({b})");
        }
        Binary::Inner => return write!(f, "inner({a}, {b})"),
        Binary::Dot => return write!(f, "dot({a}, {b})"),
        Binary::Outer => return write!(f, "outer({a}, {b})"),
    };
    write_operand(f, a, left)?;
    write!(f, "{symbol}")?;
    write_operand(f, b, right)
}

fn write_components(f: &mut fmt::Formatter<'_>, list: &[Expr], shape: Shape) -> fmt::Result {
    match shape {
        Shape::Matrix(rows, _) => write!(f, "as_matrix({rows}, [")?,
        Shape::Scalar | Shape::Vector(_) => write!(f, "as_vector([")?,
    }
    for (k, component) in list.iter().enumerate() {
        let comma = if k > 0 { ", " } else { "" };
        write!(f, "{comma}{component}")?;
    }
    write!(f, "])")
}
