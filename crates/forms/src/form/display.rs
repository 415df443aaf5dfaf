//! Printing expressions and forms as they would be written.

use super::expr::{Binary, Expr, Kind, MathFunction, Unary};
use super::integral::{Form, Measure, Region};
use super::shape::Shape;
use super::walk::{operands, operands_first};
use crate::side::Side;
use std::collections::{BTreeSet, HashMap};
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
        let printer = Printer::new([self]);
        printer.node(f, self)?;
        printer.definitions(f)
    }
}

/// Prints expressions; what is used more than once gets a name, or the text would grow
/// exponentially.
struct Printer<'a> {
    /// By address.
    names: HashMap<usize, String>,
    /// Named nodes, operands first.
    named: Vec<&'a Expr>,
}

impl<'a> Printer<'a> {
    fn new(roots: impl IntoIterator<Item = &'a Expr>) -> Self {
        let (mut uses, mut sizes, mut order) = (HashMap::new(), HashMap::new(), Vec::new());
        let mut taken = BTreeSet::new();
        for node in roots.into_iter().flat_map(operands_first) {
            if sizes.contains_key(&node.address()) {
                continue;
            }
            let below = operands(node);
            let size = below
                .iter()
                .map(|o| sizes[&o.address()])
                .fold(usize::from(!below.is_empty()), usize::saturating_add);
            sizes.insert(node.address(), size);
            below.iter().for_each(|o| *uses.entry(o.address()).or_insert(0_usize) += 1);
            taken.extend(terminal_name(node));
            order.push(node);
        }
        let is_named = |node: &&Expr| {
            let shared = uses.get(&node.address()).is_some_and(|n| *n > 1);
            shared && (sizes[&node.address()] > 1 || matches!(node.kind(), Kind::Variable(..)))
        };
        let named: Vec<&Expr> = order.into_iter().filter(is_named).collect();
        let free = (0_usize..).map(|k| format!("t{k}")).filter(|name| !taken.contains(name.as_str()));
        let names = named.iter().map(|node| node.address()).zip(free).collect();
        Self { names, named }
    }

    /// `where t0 = .., t1 = ..`, if anything has a name.
    fn definitions(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (k, node) in self.named.iter().enumerate() {
            let before = if k == 0 { " where " } else { ", " };
            write!(f, "{before}{} = ", self.names[&node.address()])?;
            self.top(f, node)?;
        }
        Ok(())
    }

    fn node(&self, f: &mut fmt::Formatter<'_>, expr: &Expr) -> fmt::Result {
        match self.names.get(&expr.address()) {
            Some(name) => write!(f, "{name}"),
            None => self.top(f, expr),
        }
    }

    fn call(&self, f: &mut fmt::Formatter<'_>, name: &str, arguments: &[&Expr]) -> fmt::Result {
        write!(f, "{name}(")?;
        for (k, argument) in arguments.iter().enumerate() {
            write!(f, "{}", if k > 0 { ", " } else { "" })?;
            self.node(f, argument)?;
        }
        write!(f, ")")
    }

    fn top(&self, f: &mut fmt::Formatter<'_>, expr: &Expr) -> fmt::Result {
        match expr.kind() {
            Kind::Literal(value) => write!(f, "{value}"),
            Kind::Identity(n) => write!(f, "identity({n})"),
            Kind::Constant(c) => write!(f, "{}", c.name),
            Kind::Coefficient(c) => write!(f, "{}", c.name),
            Kind::Argument(role, _) => f.write_str(role.word()),
            Kind::Coordinate => write!(f, "x"),
            Kind::FacetNormal => write!(f, "n"),
            Kind::Size(size) => f.write_str(size.word()),
            Kind::Components(list) => self.components(f, list, expr.shape()),
            Kind::Unary(Unary::Negate, a) => {
                write!(f, "-")?;
                self.operand(f, a, Level::Product)
            }
            Kind::Unary(op, a) => self.call(f, unary_name(*op), &[a]),
            Kind::Binary(op, a, b) => self.binary(f, *op, a, b),
            Kind::Math(function @ (MathFunction::BesselJ(order) | MathFunction::BesselY(order)), a) => {
                write!(f, "{}({order}, ", math_name(*function))?;
                self.node(f, a)?;
                write!(f, ")")
            }
            Kind::Math(function, a) => self.call(f, math_name(*function), &[a]),
            Kind::Index(a, i, j) => {
                self.operand(f, a, Level::Atom)?;
                match a.shape() {
                    Shape::Scalar | Shape::Vector(_) => write!(f, "[{i}]"),
                    Shape::Matrix(..) => write!(f, "[{i}, {j}]"),
                }
            }
            Kind::Conditional(c, a, b) => {
                write!(f, "conditional(")?;
                self.node(f, &c.left)?;
                write!(f, " {} ", c.comparison.symbol())?;
                for (part, after) in [(&c.right, ", "), (a, ", "), (b, ")")] {
                    self.node(f, part)?;
                    write!(f, "{after}")?;
                }
                Ok(())
            }
            Kind::Restricted(Side::Plus, a) => self.call(f, "plus", &[a]),
            Kind::Restricted(Side::Minus, a) => self.call(f, "minus", &[a]),
            Kind::Variable(_, a) => self.call(f, "variable", &[a]),
            Kind::Diff(a, by) => self.call(f, "diff", &[a, by]),
            Kind::Gateaux(a, by, to) => self.call(f, "derivative", &[a, by, to]),
            Kind::Error(error) => write!(f, "error({error})"),
        }
    }

    /// Writes an operand, in parentheses if it binds less tightly than needed.
    fn operand(&self, f: &mut fmt::Formatter<'_>, expr: &Expr, needed: Level) -> fmt::Result {
        if self.names.contains_key(&expr.address()) || level(expr) >= needed {
            return self.node(f, expr);
        }
        write!(f, "(")?;
        self.node(f, expr)?;
        write!(f, ")")
    }

    fn binary(&self, f: &mut fmt::Formatter<'_>, op: Binary, a: &Expr, b: &Expr) -> fmt::Result {
        let (symbol, left, right) = match op {
            Binary::Add => (" + ", Level::Sum, Level::Product),
            Binary::Subtract => (" - ", Level::Sum, Level::Product),
            Binary::Multiply => ("*", Level::Product, Level::Prefix),
            Binary::Divide => ("/", Level::Product, Level::Prefix),
            Binary::Power => {
                self.operand(f, a, Level::Atom)?;
                return self.call(f, ".pow", &[b]);
            }
            Binary::Atan2 => return self.call(f, "atan2", &[a, b]),
            Binary::Inner => return self.call(f, "inner", &[a, b]),
            Binary::Dot => return self.call(f, "dot", &[a, b]),
            Binary::Outer => return self.call(f, "outer", &[a, b]),
        };
        self.operand(f, a, left)?;
        write!(f, "{symbol}")?;
        self.operand(f, b, right)
    }

    fn components(&self, f: &mut fmt::Formatter<'_>, list: &[Expr], shape: Shape) -> fmt::Result {
        match shape {
            Shape::Matrix(rows, _) => write!(f, "as_matrix({rows}, ")?,
            Shape::Scalar | Shape::Vector(_) => write!(f, "as_vector(")?,
        }
        for (k, component) in list.iter().enumerate() {
            write!(f, "{}", if k > 0 { ", " } else { "[" })?;
            self.node(f, component)?;
        }
        write!(f, "])")
    }
}

fn terminal_name(node: &Expr) -> Option<&str> {
    match node.kind() {
        Kind::Coefficient(c) => Some(&c.name),
        Kind::Constant(c) => Some(&c.name),
        _ => None,
    }
}

impl fmt::Debug for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}: {}", self.shape())
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let printer = Printer::new(self.integrals().iter().map(|i| &i.integrand));
        for (k, integral) in self.integrals().iter().enumerate() {
            if k > 0 {
                write!(f, " + ")?;
            }
            printer.operand(f, &integral.integrand, Level::Product)?;
            write!(f, " * {}", integral.measure)?;
        }
        printer.definitions(f)
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.region() {
            Region::Cells => "dx",
            Region::BoundaryFacets => "ds",
            Region::InteriorFacets => "dS",
        })?;
        if let Some(tag) = self.tag() {
            write!(f, "(tag = {tag})")?;
        }
        if let Some(degree) = self.degree() {
            write!(f, "(degree = {degree})")?;
        }
        match self.scheme() {
            Some(scheme) => write!(f, "(scheme = {scheme})"),
            None => Ok(()),
        }
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
        MathFunction::Tan => "tan",
        MathFunction::Asin => "asin",
        MathFunction::Acos => "acos",
        MathFunction::Atan => "atan",
        MathFunction::Sinh => "sinh",
        MathFunction::Cosh => "cosh",
        MathFunction::Tanh => "tanh",
        MathFunction::Erf => "erf",
        MathFunction::BesselJ(_) => "bessel_j",
        MathFunction::BesselY(_) => "bessel_y",
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
