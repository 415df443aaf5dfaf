//! Kernels as text.

use super::attributes::write_attributes;
use super::number::write_table_real;
use super::show::{Names, spelled, write_label, write_quoted};
use crate::calls::{Beginning, Call, Callee, Piece, TargetCode, groups};
use crate::constant::TableData;
use crate::ids::{InsnId, VarId};
use crate::kernel::{AddressSpace, Assumption, Direction, Kernel, Node, Rule, VarKind, Variable};
use crate::places::{Layout, Places, Swizzle};
use crate::types::ScalarType;
use std::fmt;

/// How a kernel is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PrintOptions {
    /// The values of tables.
    pub tables: TableStyle,
}

/// How the values of a table are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TableStyle {
    /// Every value, so that the text parses back.
    #[default]
    Full,
    /// The first few values, their number and a hash: for people and snapshots. The parser refuses
    /// it.
    Abridged,
}

/// The full text of a kernel, which `parse` reads back to an equal kernel.
pub fn print(kernel: &Kernel) -> String {
    kernel.to_string()
}

/// The text of a kernel with its tables in the chosen style.
pub fn print_with(kernel: &Kernel, options: PrintOptions) -> String {
    Printed { kernel, options }.to_string()
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Printed { kernel: self, options: PrintOptions::default() }.fmt(f)
    }
}

struct Printed<'k> {
    kernel: &'k Kernel,
    options: PrintOptions,
}

impl fmt::Display for Printed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let k = self.kernel;
        write!(f, "kernel {}", spelled(&k.name))?;
        write_attributes(f, k)?;
        writeln!(f)?;
        if k.vars.len() + k.rules.len() + k.assumptions.len() > 0 {
            writeln!(f)?;
        }
        super::show_record::write_declared(f, k)?;
        let names = Names { kernel: k, rule: None };
        for (id, _) in k.vars.iter() {
            declaration(f, &names, id)?;
        }
        for rule in k.rules.values() {
            substitution(f, k, rule)?;
        }
        for assumption in k.assumptions.iter().filter(|a| !matches!(a, Assumption::Defined(..))) {
            f.write_str("assume ")?;
            names.assumption(f, assumption)?;
            writeln!(f)?;
        }
        for callee in k.callees.values() {
            writeln!(f)?;
            print_callee(f, callee)?;
        }
        if !k.body.is_empty() {
            writeln!(f)?;
            let calls = k.calls().unwrap_or_default(); // of a kernel that is not well formed: none
            Body { names: &names, calls: &calls, inside_call: false }.nodes(f, &k.body, 0)?;
        }
        for var in k.vars.values() {
            if let VarKind::Table(data) = &var.kind {
                table(f, var, data, self.options.tables)?;
            }
        }
        Ok(())
    }
}

pub(super) fn declaration(f: &mut fmt::Formatter<'_>, names: &Names<'_>, id: VarId) -> fmt::Result {
    let var = &names.kernel.vars[id];
    let (keyword, direction) = match var.kind {
        VarKind::Param => ("param", ""),
        VarKind::Argument(direction) => ("arg", direction_name(direction)),
        VarKind::Temporary => ("temp", ""),
        VarKind::Table(_) => ("table", ""),
    };
    write!(f, "{keyword} {}: {}", spelled(&var.name), var.ty)?;
    if !var.shape.is_empty() {
        list(f, names, &var.shape, "[", "]")?;
    }
    if !direction.is_empty() {
        write!(f, " {direction}")?;
    }
    let implied = match var.kind {
        VarKind::Param | VarKind::Argument(_) => var.space == default_space(&var.kind, var.shape.is_empty()),
        VarKind::Temporary | VarKind::Table(_) => false, // where it lives is what a reader wants to know
    };
    if !implied {
        write!(f, " {}", var.space.name())?;
    }
    if var.layout != Layout::default() {
        f.write_str(" ")?;
        write_layout(f, names, &var.layout)?;
    }
    if let Some(value) = names.kernel.definition(id) {
        f.write_str(" = ")?;
        names.expr(f, value, super::show::Level::Or)?;
    }
    if let Some(storage) = &var.storage {
        f.write_str(" storage(")?;
        write_label(f, storage)?;
        f.write_str(")")?;
    }
    writeln!(f)
}

/// `strides(...)` or `order(...)`, `vector(axis)`, `swizzle(axis ^= other)`, with blanks between, or nothing.
pub(super) fn write_layout(f: &mut fmt::Formatter<'_>, names: &Names<'_>, layout: &Layout) -> fmt::Result {
    let mut blank = " ";
    match &layout.places {
        Places::RowMajor => blank = "",
        Places::Strides(strides) => {
            f.write_str("strides")?;
            list(f, names, strides, "(", ")")?;
        }
        Places::Order(order) => {
            let axes: Vec<_> = order.iter().map(u32::to_string).collect();
            write!(f, "order({})", axes.join(", "))?;
        }
    }
    if let Some(axis) = layout.vector_axis {
        write!(f, "{blank}vector({axis})")?;
        blank = " ";
    }
    match layout.swizzle {
        Some(Swizzle { axis, by }) => write!(f, "{blank}swizzle({axis} ^= {by})"),
        None => Ok(()),
    }
}

fn list(
    f: &mut fmt::Formatter<'_>,
    names: &Names<'_>,
    items: &[crate::affine::Affine],
    open: &str,
    close: &str,
) -> fmt::Result {
    f.write_str(open)?;
    for (k, e) in items.iter().enumerate() {
        f.write_str(if k > 0 { ", " } else { "" })?;
        names.affine(f, e)?;
    }
    f.write_str(close)
}

/// Name of a direction in the text format.
pub(super) fn direction_name(direction: Direction) -> &'static str {
    match direction {
        Direction::In => "in",
        Direction::Out => "out",
        Direction::InOut => "inout",
    }
}

/// Where a variable lives if its declaration does not say.
pub(super) fn default_space(kind: &VarKind, is_scalar: bool) -> AddressSpace {
    match kind {
        VarKind::Param | VarKind::Temporary => AddressSpace::Private,
        VarKind::Argument(Direction::In) if is_scalar => AddressSpace::Private,
        VarKind::Argument(_) | VarKind::Table(_) => AddressSpace::Global,
    }
}

fn substitution(f: &mut fmt::Formatter<'_>, kernel: &Kernel, rule: &Rule) -> fmt::Result {
    let params: Vec<_> = rule.params.iter().map(|param| spelled(param)).collect();
    write!(f, "rule {}({}) := ", spelled(&rule.name), params.join(", "))?;
    Names { kernel, rule: Some(rule) }.expr(f, &rule.body, super::show::Level::Or)?;
    writeln!(f)
}

/// The loop tree with what its calls are of.
pub(super) struct Body<'a, 'k> {
    pub(super) names: &'a Names<'k>,
    pub(super) calls: &'a [Call],
    pub(super) inside_call: bool,
}

impl Body<'_, '_> {
    pub(super) fn nodes(&self, f: &mut fmt::Formatter<'_>, body: &[Node], depth: usize) -> fmt::Result {
        let kernel = self.names.kernel;
        if kernel.callees.is_empty() || self.inside_call {
            return body.iter().try_for_each(|node| self.node(f, node, depth));
        }
        for group in groups(kernel, body) {
            let Some(callee) = group.callee else {
                group.nodes.iter().try_for_each(|node| self.node(f, node, depth))?;
                continue;
            };
            let name = kernel.callees.get(callee).map_or("", |c| c.name());
            write!(f, "{:width$}call {}", "", spelled(name), width = 2 * depth)?;
            match self.calls.iter().find(|c| c.binding.insns.first().copied() == first_insn(group.nodes)) {
                Some(call) => writeln!(f, "  # {}", kernel.show_arguments(call))?,
                None => writeln!(f)?,
            }
            Self { inside_call: true, ..*self }.nodes(f, group.nodes, depth + 1)?;
        }
        Ok(())
    }

    fn node(&self, f: &mut fmt::Formatter<'_>, node: &Node, depth: usize) -> fmt::Result {
        write!(f, "{:width$}", "", width = 2 * depth)?;
        match node {
            Node::Insn(id) => {
                match self.names.kernel.insns.get(*id) {
                    Some(insn) => self.names.insn(f, insn)?,
                    None => write!(f, "{id:?}")?, // a kernel that is not well formed, in a message
                }
                writeln!(f)
            }
            Node::Loop(iname, inner) => {
                match self.names.kernel.inames.get(*iname) {
                    Some(launch) if launch.is_one_launch(*iname) => {
                        write!(f, "launch {}", spelled(&launch.name))?
                    }
                    Some(_) | None => {
                        f.write_str("for ")?;
                        self.names.loop_header(f, *iname)?;
                    }
                }
                writeln!(f)?;
                self.nodes(f, inner, depth + 1)
            }
        }
    }
}

/// The first instruction of some statements.
fn first_insn(nodes: &[Node]) -> Option<InsnId> {
    nodes.iter().find_map(|node| match node {
        Node::Insn(insn) => Some(*insn),
        Node::Loop(_, body) => first_insn(body),
    })
}

/// Values on one line of a table.
const VALUES_PER_LINE: usize = 16;
/// Values of an abridged table.
const VALUES_ABRIDGED: usize = 4;
/// Hexadecimal digits of the hash of an abridged table.
const HASH_DIGITS: usize = 16;

fn table(f: &mut fmt::Formatter<'_>, var: &Variable, data: &TableData, style: TableStyle) -> fmt::Result {
    write!(f, "\ntable {} = [", spelled(&var.name))?;
    match style {
        TableStyle::Abridged if data.len() > VALUES_ABRIDGED => {
            values(f, var.ty, data, 0..VALUES_ABRIDGED)?;
            let hash = blake3::hash(&data.to_bytes(var.ty)).to_hex();
            writeln!(f, ", ... {} values, blake3 {}]", data.len(), &hash[..HASH_DIGITS])
        }
        TableStyle::Full | TableStyle::Abridged if data.len() <= VALUES_PER_LINE => {
            values(f, var.ty, data, 0..data.len())?;
            writeln!(f, "]")
        }
        TableStyle::Full | TableStyle::Abridged => {
            writeln!(f)?;
            let row =
                var.shape.last().and_then(|n| usize::try_from(n.as_constant()?).ok()).unwrap_or(1).max(1);
            let mut start = 0;
            while start < data.len() {
                // a row of the last axis starts a line
                let end = (start + VALUES_PER_LINE).min(start / row * row + row).min(data.len());
                f.write_str("  ")?;
                values(f, var.ty, data, start..end)?;
                writeln!(f, ",")?;
                start = end;
            }
            writeln!(f, "]")
        }
    }
}

fn values(
    f: &mut fmt::Formatter<'_>,
    ty: ScalarType,
    data: &TableData,
    range: std::ops::Range<usize>,
) -> fmt::Result {
    for k in range.clone() {
        if k > range.start {
            f.write_str(", ")?;
        }
        match data {
            TableData::Real(v) => write_table_real(f, v[k], ty)?,
            TableData::Int(v) => write!(f, "{}", v[k])?,
            TableData::Complex(v) => {
                f.write_str("complex(")?;
                write_table_real(f, v[k].re, ty.part())?;
                f.write_str(", ")?;
                write_table_real(f, v[k].im, ty.part())?;
                f.write_str(")")?;
            }
        }
    }
    Ok(())
}

/// Writes a callee.
fn print_callee(f: &mut fmt::Formatter<'_>, callee: &Callee) -> fmt::Result {
    let kernel = &callee.kernel;
    let names = Names { kernel, rule: None };
    write!(f, "callee {}", spelled(&kernel.name))?;
    write_attributes(f, kernel)?;
    writeln!(f)?;
    for id in kernel.vars.ids() {
        f.write_str("  ")?;
        declaration(f, &names, id)?;
    }
    writeln!(f)?;
    Body { names: &names, calls: &[], inside_call: false }.nodes(f, &kernel.body, 1)?;
    for code in &callee.code {
        print_code(f, &names, code)?;
    }
    Ok(())
}

fn print_code(f: &mut fmt::Formatter<'_>, names: &Names<'_>, code: &TargetCode) -> fmt::Result {
    f.write_str("  code ")?;
    write_label(f, &code.target)?;
    if !code.needs.is_empty() {
        f.write_str(" needs(")?;
        for (k, need) in code.needs.iter().enumerate() {
            f.write_str(if k > 0 { ", " } else { "" })?;
            write_label(f, need)?;
        }
        f.write_str(")")?;
    }
    if !code.memory.is_empty() {
        f.write_str(" memory(")?;
        for (k, (var, space)) in code.memory.iter().enumerate() {
            let name = spelled(&names.kernel.vars[*var].name);
            write!(f, "{}{name}: {}", if k > 0 { ", " } else { "" }, space.name())?;
        }
        f.write_str(")")?;
    }
    if let Some(bytes) = code.aligned {
        write!(f, " aligned({bytes})")?;
    }
    if let Some(fence) = &code.proxy {
        f.write_str(" proxy(")?;
        write_quoted(f, fence)?;
        f.write_str(")")?;
    }
    if let Some(completion) = &code.completes {
        f.write_str(" completes(")?;
        if let Some(Beginning { local_bytes, text }) = completion.begin() {
            write!(f, "begin({local_bytes}) (")?;
            for (k, line) in text.split('\n').enumerate() {
                f.write_str(if k > 0 { " " } else { "" })?;
                write_quoted(f, line)?;
            }
            f.write_str("), ")?;
        }
        if let Some(commit) = completion.commit() {
            f.write_str("commit ")?;
            write_quoted(f, commit)?;
            f.write_str(", wait ")?;
        }
        write_quoted(f, completion.wait())?;
        f.write_str(")")?;
    }
    f.write_str(if code.hint { " hint" } else { "" })?;
    let mut text = String::new();
    for piece in &code.text {
        match piece {
            Piece::Text(plain) => text += &plain.replace('{', "{{").replace('}', "}}"),
            Piece::Element(access) => text += &format!("{{{}}}", names.kernel.show_access(access)),
            Piece::Address(access, None) => text += &format!("{{&{}}}", names.kernel.show_access(access)),
            Piece::Address(access, Some(n)) => {
                text += &format!("{{&{}; {n}}}", names.kernel.show_access(access));
            }
            Piece::Map(var) => text += &format!("{{map {}}}", spelled(&names.kernel.vars[*var].name)),
            Piece::Begin(var, axis) => {
                text += &format!("{{begin {}, {axis}}}", spelled(&names.kernel.vars[*var].name));
            }
        }
    }
    writeln!(f, " (")?;
    for line in text.split('\n') {
        f.write_str("    ")?;
        write_quoted(f, line)?;
        writeln!(f)?;
    }
    writeln!(f, "  )")
}
