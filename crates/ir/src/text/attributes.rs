//! What stands in braces after the name of a kernel or callee.

use super::cursor::Cursor;
use super::error::Fail;
use super::lex::Kind;
use crate::kernel::{Arithmetic, Kernel, RESIDENT_GROUPS, SubGroup};
use std::fmt;

/// Writes `{resident_groups(4), dynamic_local, ordered_groups, sub_group(64), double_single}`, as
/// far as they are not the default.
pub(super) fn write_attributes(f: &mut fmt::Formatter<'_>, kernel: &Kernel) -> fmt::Result {
    let resident = kernel.launch.resident_groups.map(|groups| format!("resident_groups({groups})"));
    let dynamic = kernel.launch.dynamic_local.then(|| "dynamic_local".to_owned());
    let ordered = kernel.launch.ordered_groups.then(|| "ordered_groups".to_owned());
    let width = (!kernel.sub_group.is_default()).then(|| format!("sub_group({})", kernel.sub_group));
    let pairs = (kernel.arithmetic == Arithmetic::DoubleSingle).then(|| "double_single".to_owned());
    let attributes = resident.into_iter().chain(dynamic).chain(ordered).chain(width).chain(pairs);
    let attributes: Vec<String> = attributes.collect();
    if attributes.is_empty() { Ok(()) } else { write!(f, " {{{}}}", attributes.join(", ")) }
}

/// Reads `{resident_groups(4), dynamic_local, ordered_groups, sub_group(64), double_single}`.
pub(super) fn attributes(c: &mut Cursor<'_, '_>, kernel: &mut Kernel) -> Result<(), Fail> {
    c.advance();
    loop {
        if c.take_word("resident_groups") {
            kernel.launch.resident_groups = Some(resident_groups(c)?);
        } else if c.take_word("dynamic_local") {
            kernel.launch.dynamic_local = true;
        } else if c.take_word("ordered_groups") {
            kernel.launch.ordered_groups = true;
        } else if c.is_word("sub_group") {
            kernel.sub_group = sub_group_width(c)?;
        } else if c.take_word("double_single") {
            kernel.arithmetic = Arithmetic::DoubleSingle;
        } else {
            return Err(c.expected(
                "`resident_groups(...)`, `dynamic_local`, `ordered_groups`, `sub_group(...)` or `double_single`",
            ));
        }
        if !c.take_symbol(",") {
            return c.expect_symbol("}", "after the attributes of the kernel");
        }
    }
}

/// Reads `sub_group(64)`.
pub(super) fn sub_group_width(c: &mut Cursor<'_, '_>) -> Result<SubGroup, Fail> {
    if !c.take_word("sub_group") {
        return Err(c.expected("`sub_group(...)`"));
    }
    c.expect_symbol("(", "after `sub_group`")?;
    let width = match c.peek() {
        Some(Kind::Int(width)) => width.parse().ok().and_then(SubGroup::new),
        _ => None,
    };
    let width = width.ok_or_else(|| c.expected("a number of work-items, a power of two from 1 to 128"))?;
    c.advance();
    c.expect_symbol(")", "after the number of work-items")?;
    Ok(width)
}

fn resident_groups(c: &mut Cursor<'_, '_>) -> Result<u32, Fail> {
    c.expect_symbol("(", "after `resident_groups`")?;
    let groups = match c.peek() {
        Some(Kind::Int(groups)) => groups.parse().ok().filter(|n| RESIDENT_GROUPS.contains(n)),
        _ => None,
    };
    let groups = groups.ok_or_else(|| c.expected("a number of work-groups, 1 to 32"))?;
    c.advance();
    c.expect_symbol(")", "after the number of work-groups")?;
    Ok(groups)
}
