//! Records, operators of them and functions with code for targets, written as text.

use super::show::{Level, Names, write_label, write_quoted};
use crate::functions::ExternalFn;
use crate::kernel::Kernel;
use std::fmt;

/// Writes the records, operators and declared functions that a kernel uses.
pub(super) fn write_declared(f: &mut fmt::Formatter<'_>, kernel: &Kernel) -> fmt::Result {
    let declared = kernel.declared();
    declared.externals.iter().try_for_each(|function| write_external(f, kernel, *function))?;
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

fn write_external(f: &mut fmt::Formatter<'_>, kernel: &Kernel, function: ExternalFn) -> fmt::Result {
    let params: Vec<String> =
        function.params.iter().map(|param| format!("{}: {}", param.name, param.ty)).collect();
    write!(f, "extern {}({}) -> {}", function.name(), params.join(", "), function.result)?;
    if let Some(rule) = function.as_rule() {
        f.write_str(" := ")?;
        Names { kernel, rule: Some(&rule) }.expr(f, &rule.body, Level::Or)?;
    }
    for code in &function.code {
        f.write_str(" code ")?;
        if let Some(target) = &code.target {
            write_label(f, target)?;
            f.write_str(" ")?;
        }
        writeln!(f, "(")?;
        for line in code.text.split('\n') {
            f.write_str("  ")?;
            write_quoted(f, line)?;
            writeln!(f)?;
        }
        f.write_str(")")?;
    }
    writeln!(f)
}
