//! Records and operators of them, written as text.

use super::show::{Level, Names};
use crate::kernel::Kernel;
use std::fmt;

/// Writes the records and operators that a kernel uses.
pub(super) fn write_declared(f: &mut fmt::Formatter<'_>, kernel: &Kernel) -> fmt::Result {
    if !kernel.has_records() {
        return Ok(());
    }
    let declared = kernel.declared();
    for record in &declared.records {
        write!(f, "record {}(", record.name())?;
        for (k, field) in record.fields.iter().enumerate() {
            write!(f, "{}{}: {}", if k > 0 { ", " } else { "" }, field.name, field.ty)?;
        }
        writeln!(f, ")")?;
    }
    for operator in &declared.operators {
        let ([a, b], record) = (&operator.params, operator.record.name());
        write!(f, "operator {}({a}: {record}, {b}: {record}) := ", operator.name())?;
        let rule = operator.as_rule();
        Names { kernel, rule: Some(&rule) }.expr(f, &rule.body, Level::Or)?;
        f.write_str(" identity ")?;
        Names { kernel, rule: None }.expr(f, &operator.identity(), Level::Or)?;
        let laws: Vec<&str> = operator.laws.iter().map(|law| law.name()).collect();
        if !laws.is_empty() {
            write!(f, " {{{}}}", laws.join(", "))?;
        }
        writeln!(f)?;
    }
    Ok(())
}
