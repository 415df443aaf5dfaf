//! The C-family printer: one walk over the code, a thin dialect for each target.

mod comment;
mod complex;
mod copies;
mod dialect;
mod double_single;
mod expr;
mod function;
mod helpers;
mod host;
mod marks;
mod pointers;
mod printer;
mod vector;
mod work_items;

use crate::ast::{
    Atomic, Block, CodePiece, Coding, Declare, Expr, Extent, For, HostStmt, Intrinsic, LoopKind, Name, Place,
    Stmt,
};
pub use crate::function::{Constant, Function, Param};
use crate::target::TargetDescription;
use crate::vectors::host::is_width;
use comment::comment;
pub(crate) use helpers::Helper;
use kingpost_ir::{ScalarType, TableData, UpdateOp};
use marks::Marks;
pub(crate) use marks::{Mark, Marked};
use printer::Printer;
use std::collections::BTreeSet;
use std::fmt::Write;

/// The source of a function, and whether it needs 64-bit atomics and double precision.
pub(crate) struct Source {
    pub(crate) text: String,
    pub(crate) wide_atomics: bool,
    pub(crate) doubles: bool,
    /// Where statements stand in the text, inner ones first; empty if nobody asked.
    pub(crate) marks: Vec<Mark>,
}

/// Prints functions for a target, and in C what runs several of them.
pub(crate) fn source(
    functions: &[&Function],
    host: Option<(&Function, &[HostStmt])>,
    target: &'static TargetDescription,
    contraction: bool,
) -> Source {
    printed(Printer::new(target), functions, host, contraction)
}

/// The same with where each statement stands in the text.
pub(crate) fn marked(
    functions: &[&Function],
    host: Option<(&Function, &[HostStmt])>,
    target: &'static TargetDescription,
    contraction: bool,
) -> Source {
    let mut printer = Printer::new(target);
    printer.marks = Some(Marks::default());
    printed(printer, functions, host, contraction)
}

fn printed(
    mut printer: Printer,
    functions: &[&Function],
    host: Option<(&Function, &[HostStmt])>,
    contraction: bool,
) -> Source {
    let target = printer.dialect;
    printer.in_region = host.is_some();
    let bodies: Vec<String> = functions.iter().map(|function| printer.body(function)).collect();
    let region = host.map(|(_, region)| {
        printer.indent = 1;
        printer.region(region);
        std::mem::take(&mut printer.out)
    });
    let mut text = if contraction { String::new() } else { target.contraction.forbidden.to_owned() };
    for function in functions {
        let params = function.params.iter().map(|param| param.ty);
        params.chain(function.constants.iter().map(|c| c.ty)).for_each(|ty| printer.mentions(ty));
    }
    let doubles = printer.doubles || functions.iter().any(|function| uses_doubles(function));
    text += &(target.words.preamble)(doubles, printer.wide_atomics());
    for helper in &printer.helpers {
        let whole = helper.is_whole(&printer.helpers);
        text.push_str(&helper.source(target, whole));
        text.push('\n');
    }
    if functions.iter().any(|function| !function.maps.is_empty()) {
        text += target.words.map[1];
    }
    printer.aligned = functions.iter().flat_map(|function| function.aligned.clone()).collect();
    let mut declared = BTreeSet::new();
    for constant in functions.iter().flat_map(|function| &function.constants) {
        if declared.insert(&constant.name) {
            printer.constant(constant);
        }
    }
    for (k, (function, body)) in functions.iter().zip(&bodies).enumerate() {
        if k > 0 {
            printer.out.push('\n');
        }
        printer.signature(function);
        printer.unused(function);
        let start = text.len() + printer.out.len();
        if let Some(marks) = &mut printer.marks {
            marks.shift(k, start);
        }
        printer.out.push_str(body);
        printer.out.push_str("}\n");
    }
    if let (Some((main, _)), Some(region)) = (host, region) {
        printer.in_region = false;
        printer.out.push('\n');
        printer.signature(main);
        printer.out.push_str(&region);
        printer.out.push_str("}\n");
        printer.launcher(main);
    } else if let ([function], true) = (functions, target.is_host()) {
        printer.launcher(function);
    }
    text.push_str(&printer.out);
    let (wide_atomics, doubles) = (printer.wide_atomics(), printer.doubles);
    Source { text, wide_atomics, doubles, marks: printer.marks.map_or_else(Vec::new, Marks::into_found) }
}

/// Code of an expression, for messages.
pub(crate) fn expression(e: &Expr) -> String {
    let mut printer = Printer::new(crate::Target::C.description());
    printer.expr(e, 0);
    printer.out
}

fn uses_doubles(function: &Function) -> bool {
    function.params.iter().any(|p| p.ty.part() == ScalarType::F64)
        || function.constants.iter().any(|c| c.ty.part() == ScalarType::F64)
}

impl Printer {
    /// The statements of a function.
    fn body(&mut self, function: &Function) -> String {
        self.items_of_last.clone_from(&function.items_of_last);
        self.aligned.clone_from(&function.aligned);
        self.kept = function.kept.iter().cloned().collect();
        if self.dialect.is_host() {
            self.summed = if self.in_region { Vec::new() } else { copies::summed(function) };
            self.grid = function.grid.iter().map(|(_, name)| name.clone()).collect();
        }
        (self.in_groups, self.indent) = (false, 1);
        self.provided.clone_from(&function.provided);
        self.provides_pairs = !self.provided.is_empty() && declares_pairs(&function.body);
        self.provided_bytes = 0;
        if let Some(marks) = &mut self.marks {
            marks.enter(&function.body);
        }
        self.block(&function.body);
        std::mem::take(&mut self.out)
    }

    fn wide_atomics(&self) -> bool {
        self.helpers.iter().any(Helper::is_wide_atomic)
    }

    fn line(&mut self, text: &str) {
        for _ in 0..self.indent {
            self.out.push_str("    ");
        }
        self.out.push_str(text);
        self.out.push('\n');
    }

    fn start(&mut self) {
        for _ in 0..self.indent {
            self.out.push_str("    ");
        }
    }

    fn block(&mut self, block: &Block) {
        for stmt in block {
            self.stmt(stmt);
        }
    }

    fn braced(&mut self, body: &Block) {
        self.out.push_str(" {\n");
        self.indent += 1;
        self.block(body);
        self.indent -= 1;
        self.line("}");
    }

    fn stmt(&mut self, stmt: &Stmt) {
        let start = self.out.len();
        self.unmarked(stmt);
        if let Some(marks) = &mut self.marks {
            marks.note(stmt, start..self.out.len());
        }
    }

    fn unmarked(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Comment(text) => self.line(&comment(text)),
            Stmt::Declare(d) => self.declare(d),
            Stmt::Assign { place, op, value, .. } => self.assign(place, *op, value),
            Stmt::Atomic(a) => self.atomic(a),
            Stmt::Intrinsic(i) => self.intrinsic(i),
            Stmt::If { condition, body } => self.conditional(condition, body),
            Stmt::For(f) => self.for_loop(f),
            Stmt::Iteration(_) => {}
            Stmt::Barrier(fence) => self.dialect.barrier(fence).for_each(|statement| self.line(&statement)),
        }
    }

    fn declare(&mut self, d: &Declare) {
        self.mentions(d.ty);
        if self.provided.contains(&d.name) {
            return self.declare_provided(d);
        }
        // one type of pointers points into all memory
        if let (Some(pointee), Some(value), true) = (&d.into, &d.value, self.dialect.words.global.is_empty())
        {
            return self.declare_pointer(d, pointee, value);
        }
        self.start();
        if d.local {
            self.out.push_str(self.dialect.words.local);
        }
        if self.kept.contains(&d.name) {
            self.out.push_str("static _Thread_local ");
        }
        if let Some(bytes) = self.alignment(&d.name) {
            self.out.push_str(&(self.dialect.words.aligned)(bytes));
        }
        if d.constant {
            self.out.push_str("const ");
        }
        let ty = match d.lanes {
            1 => self.dialect.ty(d.ty).to_owned(),
            lanes => self.vector_type(d.ty, lanes),
        };
        let _ = write!(self.out, "{ty} {}", d.name);
        if let Some(len) = d.len {
            let _ = write!(self.out, "[{len}]");
        }
        if let Some(value) = &d.value {
            self.out.push_str(" = ");
            self.expr(value, 0);
        }
        self.out.push_str(";\n");
    }

    /// Notes what the source has to define or ask for before a type.
    fn mentions(&mut self, ty: ScalarType) {
        self.doubles |= ty.part() == ScalarType::F64;
        if ty.is_complex() && self.dialect.is_host() {
            self.helpers.insert(Helper::Pair(ty));
        }
    }

    /// Bytes to whose multiples an array is aligned, where its type does not say enough.
    fn alignment(&self, name: &Name) -> Option<u64> {
        self.aligned.iter().find(|(aligned, _)| aligned == name).map(|(_, bytes)| *bytes)
    }

    /// The next part of the local memory that the launch provides.
    fn declare_provided(&mut self, d: &Declare) {
        let offset = self.provided_bytes;
        if offset == 0 {
            let words = &self.dialect.words;
            let plain = self.aligned.is_empty() && !self.provides_pairs;
            let most = self.aligned.iter().map(|(_, bytes)| *bytes).fold(16, u64::max);
            let align = if plain { String::new() } else { (words.aligned)(most) };
            self.line(&format!("extern {}{align}double local_memory[];", words.local));
        }
        let offset = offset.next_multiple_of(self.alignment(&d.name).unwrap_or(1).max(d.ty.bytes()));
        let (ty, name) = (self.dialect.ty(d.ty), &d.name);
        let start = match offset {
            0 => "local_memory".to_owned(),
            _ => format!("((char *)local_memory + {offset})"),
        };
        let text = match d.len {
            Some(_) => format!("{ty} *const {name} = ({ty} *){start};"),
            None => format!("{ty} &{name} = *({ty} *){start};"),
        };
        self.line(&text);
        self.provided_bytes = offset + d.len.unwrap_or(1) * d.ty.bytes();
    }

    fn assign(&mut self, place: &Place, op: Option<UpdateOp>, value: &Expr) {
        if let Extent::Vector(ty, width) = place.extent {
            return self.store_vector(place, op, (ty, width), value);
        }
        let pointed = self.pointers.get(&place.name).filter(|_| op.is_none()).cloned();
        if let Some(array) = pointed {
            let text = format!("{} = &{array}[", place.name);
            self.start();
            self.out.push_str(&text);
            self.expr(value, 0);
            self.out.push_str("];\n");
            return;
        }
        self.start();
        self.place(place);
        let plain = match op {
            None => " = ",
            Some(UpdateOp::Add) => " += ",
            Some(UpdateOp::Mul) => " *= ",
            Some(UpdateOp::Min | UpdateOp::Max | UpdateOp::Or | UpdateOp::And | UpdateOp::Named(_)) => {
                self.out.push_str(" = ");
                self.expr(value, 0);
                self.out.push_str(";\n");
                return;
            }
        };
        match (op, value) {
            (Some(UpdateOp::Add), Expr::Neg(v)) => {
                self.out.push_str(" -= ");
                self.expr(v, expr::PRODUCT);
            }
            _ => {
                self.out.push_str(plain);
                self.expr(value, 0);
            }
        }
        self.out.push_str(";\n");
    }

    fn intrinsic(&mut self, i: &Intrinsic) {
        let before = std::mem::take(&mut self.out);
        for piece in &i.pieces {
            match piece {
                CodePiece::Text(text) => self.out.push_str(text),
                CodePiece::Value(e) => self.expr(e, expr::ATOM),
                CodePiece::Address(e) => {
                    self.out.push_str("(&");
                    self.expr(e, expr::ATOM);
                    self.out.push(')');
                }
            }
        }
        let code = std::mem::replace(&mut self.out, before);
        self.line(&comment(&i.name));
        for line in code.lines() {
            self.line(line);
        }
    }

    fn atomic(&mut self, a: &Atomic) {
        let is_half = a.ty.is_half();
        let has_operators = !is_half && !a.ty.is_complex();
        if self.dialect.is_host() {
            if a.local {
                // The work-items of a group run on one thread.
                return self.assign(&a.place, Some(a.op).filter(|_| has_operators), &helpers::combined(a));
            }
            if matches!(a.op, UpdateOp::Add | UpdateOp::Mul) && has_operators {
                return self.atomic_of_threads(a);
            }
        }
        let helper = Helper::atomic(a, self.dialect);
        self.start();
        self.out.push_str(&helper.name(self.dialect));
        self.out.push_str("(&");
        self.place(&a.place);
        self.out.push_str(", ");
        self.expr(&a.value, 0);
        self.out.push_str(");\n");
        if is_half {
            self.helpers.extend([Coding::Encode, Coding::Decode].map(|coding| Helper::Half(coding, a.ty)));
        }
        if a.ty.is_complex() {
            let part = Helper::atomic(&Atomic { ty: a.ty.part(), ..a.clone() }, self.dialect);
            if !part.is_native(self.dialect) && !self.dialect.is_host() {
                self.helpers.insert(part);
            }
        }
        if !helper.is_native(self.dialect) {
            self.helpers.insert(helper);
        }
    }

    fn for_loop(&mut self, f: &For) {
        if f.kind == LoopKind::Groups && !self.in_groups && !self.summed.is_empty() {
            return self.groups_with_copies(f);
        }
        match f.kind {
            LoopKind::Vector if self.dialect.is_host() && self.may_vectorise(&f.body) => {
                self.line("#pragma omp simd");
            }
            LoopKind::Sequential if f.rolled => {
                if let Some(pragma) = self.dialect.words.rolled {
                    self.line(pragma);
                }
            }
            LoopKind::Sequential | LoopKind::Vector | LoopKind::Pieces(..) => {}
            // `collapse` of the outermost counts the inner ones.
            LoopKind::Groups if self.in_groups => {}
            LoopKind::Groups => self.line(&dialect::groups_pragma(f, self.in_region)),
            LoopKind::WorkItems => self.work_items_pragma(f),
        }
        self.loop_head(f);
        self.in_groups |= f.kind == LoopKind::Groups;
        self.braced(&f.body);
    }

    /// Whether the iterations should run in lanes: see [`may_vectorise`]. Lanes have no copies of what
    /// outlives them, and the last group is not worth the code.
    fn may_vectorise(&self, body: &Block) -> bool {
        !self.in_last_group && may_vectorise(body) && !declares(body, &self.kept)
    }

    fn loop_head(&mut self, f: &For) {
        self.start();
        let _ = write!(self.out, "for ({} {} = ", self.dialect.ty(f.ty), f.name);
        self.expr(&f.lower, 0);
        let _ = write!(self.out, "; {} < ", f.name);
        self.expr(&f.upper, expr::COMPARISON + 1);
        if let Some(flag) = &f.flag {
            let _ = write!(self.out, " && {flag} != 0");
        }
        let _ = match (f.kind, f.step) {
            (LoopKind::Pieces(ty, lanes), _) => {
                let vector = self.vector_type(ty, lanes);
                write!(self.out, "; {} += {vector}_lanes)", f.name)
            }
            (_, 1) => write!(self.out, "; ++{})", f.name),
            (_, step) => write!(self.out, "; {} += {step})", f.name),
        };
    }

    fn constant(&mut self, c: &Constant) {
        let len = c.data.len();
        let aligned = self.alignment(&c.name).map_or(String::new(), self.dialect.words.aligned);
        let (space, ty) = (self.dialect.words.constant, self.dialect.ty(c.ty));
        let head = format!("{space} {aligned}{ty} {}[{len}] = {{", c.name);
        self.out.push_str(&head);
        let [open, close] = match c.ty.is_complex() {
            true => (self.dialect.words.pair)(ty),
            false => [String::new(), String::new()],
        };
        let values: Vec<Expr> = match &c.data {
            TableData::Real(_) if c.ty.is_half() => {
                let bits =
                    |bytes: &[u8]| bytes.iter().rev().fold(0, |bits, byte| bits * 256 + i64::from(*byte));
                c.data.to_bytes(c.ty).chunks(2).map(|bytes| Expr::int(bits(bytes))).collect()
            }
            TableData::Real(v) => v.iter().map(|r| Expr::Real(r.0, c.ty)).collect(),
            TableData::Int(v) => v.iter().map(|i| Expr::Int(*i, c.ty)).collect(),
            TableData::Complex(v) => {
                v.iter().flat_map(|z| [z.re, z.im]).map(|part| Expr::Real(part.0, c.ty.part())).collect()
            }
        };
        for (k, entry) in values.chunks(c.ty.parts()).enumerate() {
            self.out.push_str(if k % 4 == 0 { "\n    " } else { " " });
            self.out.push_str(&open);
            for (part, value) in entry.iter().enumerate() {
                self.out.push_str(if part > 0 { ", " } else { "" });
                if let Expr::Real(v, ty) = value
                    && !v.is_finite()
                {
                    self.out.push_str(dialect::constant_special(*v, *ty));
                } else {
                    self.expr(value, 0);
                }
            }
            self.out.push_str(&close);
            self.out.push(',');
        }
        self.out.push_str("\n};\n\n");
    }
}

/// Whether the iterations may run in lanes: no atomics inside (OpenMP forbids them in `simd`), no
/// vectors, nothing stored to a scalar from outside.
fn may_vectorise(body: &Block) -> bool {
    fn visit(block: &Block, declared: &mut BTreeSet<Name>) -> bool {
        block.iter().all(|stmt| {
            match stmt {
                Stmt::Atomic(_) | Stmt::Intrinsic(_) | Stmt::Barrier(_) => return false,
                Stmt::For(f) if matches!(f.kind, LoopKind::Pieces(..)) => return false,
                Stmt::Declare(d) => {
                    declared.insert(d.name.clone());
                }
                Stmt::Assign { place, .. } if place.offset.is_none() && !declared.contains(&place.name) => {
                    return false;
                }
                Stmt::Assign { .. }
                | Stmt::Comment(_)
                | Stmt::If { .. }
                | Stmt::For(_)
                | Stmt::Iteration(_) => {}
            }
            stmt.body().is_none_or(|b| visit(b, declared))
        })
    }
    visit(body, &mut BTreeSet::new())
}

/// Whether a block declares local memory for complex numbers, which are read in one piece.
fn declares_pairs(block: &Block) -> bool {
    let here = |stmt: &Stmt| matches!(stmt, Stmt::Declare(d) if d.local && d.ty.is_complex());
    block.iter().any(|stmt| here(stmt) || stmt.body().is_some_and(declares_pairs))
}

/// Whether a block declares one of some names.
fn declares(block: &Block, names: &BTreeSet<Name>) -> bool {
    let here = |stmt: &Stmt| matches!(stmt, Stmt::Declare(d) if names.contains(&d.name));
    block.iter().any(|stmt| here(stmt) || stmt.body().is_some_and(|body| declares(body, names)))
}

fn innermost(f: &For) -> bool {
    !f.body.iter().any(|s| matches!(s, Stmt::For(inner) if inner.kind == LoopKind::WorkItems))
}
