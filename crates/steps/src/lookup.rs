//! Names and selections, with errors that say what there is.

use crate::obligation::Obligation;
use crate::refusal::Refusal;
use kingpost_ir::{Access, Expr, InameId, Insn, InsnId, Kernel, VarId, VarKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Which instructions a primitive concerns. A selection that matches nothing is an error.
///
/// In JSON: `{"insn": "scatter_*"}`, `{"tag": "scatter"}`, `{"writes": "y"}`, `{"reads": "x"}`,
/// `{"inside": "cell"}`, `{"all": [{"tag": "scatter"}, {"inside": "cell"}]}`. In every name `*`
/// stands for any number of letters.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Selection {
    /// The instruction of this name.
    Insn(String),
    /// Every instruction with this tag.
    Tag(String),
    /// Every instruction that writes this variable.
    Writes(String),
    /// Every instruction that reads this variable: in its value, an index or its predicate, also
    /// through a rule.
    Reads(String),
    /// Every instruction inside the loop of this name.
    Inside(String),
    /// Every instruction in all of these.
    All(Vec<Selection>),
}

impl Selection {
    /// The instructions, in textual order.
    ///
    /// # Errors
    /// [`Refusal::EmptySelection`] with the names or tags there are, nearest first.
    pub fn resolve(&self, kernel: &Kernel) -> Result<Vec<InsnId>, Refusal> {
        let Some((what, pattern)) = self.pattern() else { return self.resolve_all(kernel) };
        let schedule = kernel.schedule();
        let found = schedule.iter().filter(|(insn, loops)| {
            what.names(kernel, *insn, loops).into_iter().any(|name| matches(pattern, name))
        });
        let found: Vec<_> = found.map(|(insn, _)| *insn).collect();
        if !found.is_empty() {
            return Ok(found);
        }
        let names = schedule.iter().flat_map(|(insn, loops)| what.names(kernel, *insn, loops));
        Err(Refusal::EmptySelection { selection: self.to_string(), known: near(pattern, names) })
    }

    /// What a name of the selection stands for, and the name; `None` for an intersection.
    fn pattern(&self) -> Option<(Named, &str)> {
        Some(match self {
            Self::Insn(name) => (Named::Insn, name),
            Self::Tag(tag) => (Named::Tag, tag),
            Self::Writes(var) => (Named::Written, var),
            Self::Reads(var) => (Named::Read, var),
            Self::Inside(iname) => (Named::Around, iname),
            Self::All(_) => return None,
        })
    }

    fn resolve_all(&self, kernel: &Kernel) -> Result<Vec<InsnId>, Refusal> {
        let parts = match self {
            Self::All(parts) => parts.as_slice(),
            Self::Insn(_) | Self::Tag(_) | Self::Writes(_) | Self::Reads(_) | Self::Inside(_) => &[],
        };
        if parts.is_empty() {
            return Err(Refusal::argument("all", "an intersection of no selections", "at least one"));
        }
        let mut found: Vec<_> = kernel.schedule().into_iter().map(|(insn, _)| insn).collect();
        let mut known = Vec::new();
        for part in parts {
            let insns = part.resolve(kernel)?;
            found.retain(|insn| insns.contains(insn));
            let names = insns.iter().map(|insn| kernel.insns[*insn].name.as_str());
            known.push(format!("{} for {part}", near("", names)));
        }
        if found.is_empty() {
            return Err(Refusal::EmptySelection { selection: self.to_string(), known: known.join("; ") });
        }
        Ok(found)
    }
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Insn(name) => write!(f, "`{name}`"),
            Self::Tag(tag) => write!(f, "tag `{tag}`"),
            Self::Writes(var) => write!(f, "writes of `{var}`"),
            Self::Reads(var) => write!(f, "reads of `{var}`"),
            Self::Inside(iname) => write!(f, "inside `{iname}`"),
            Self::All(parts) => {
                let parts: Vec<_> = parts.iter().map(Self::to_string).collect();
                f.write_str(&parts.join(" and "))
            }
        }
    }
}

/// What of an instruction has a name to select it by.
#[derive(Clone, Copy)]
enum Named {
    Insn,
    Tag,
    Written,
    Read,
    Around,
}

impl Named {
    fn names<'k>(self, kernel: &'k Kernel, insn: InsnId, loops: &[InameId]) -> Vec<&'k str> {
        let data = &kernel.insns[insn];
        let var = |v: VarId| kernel.vars[v].name.as_str();
        match self {
            Self::Insn => vec![&data.name],
            Self::Tag => data.tags.iter().map(String::as_str).collect(),
            Self::Written => vec![var(data.lhs.var)],
            Self::Read => vars_read(kernel, insn).into_iter().map(var).collect(),
            Self::Around => loops.iter().map(|l| kernel.inames[*l].name.as_str()).collect(),
        }
    }
}

/// The variables an instruction reads, also through rules.
fn vars_read(kernel: &Kernel, insn: InsnId) -> Vec<VarId> {
    let insn = &kernel.insns[insn];
    let mut found = Vec::new();
    for e in insn.expressions() {
        kernel.expand_rules(e).for_each(&mut |e| {
            if let Expr::Load(access) = e {
                found.push(access.var);
            }
        });
    }
    found
}

/// Whether a name is what a pattern says, in which `*` stands for any number of letters.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(first) else { return false };
    let parts: Vec<_> = rest.split('*').collect();
    let Some((last, inner)) = parts.split_last() else { return true };
    // the leftmost place of each part leaves most to the others
    for part in inner {
        let Some(k) = name.find(part) else { return false };
        name = &name[k + part.len()..];
    }
    name.ends_with(last)
}

/// Most names in a message.
const MOST_NAMES: usize = 12;

/// The names there are, in alphabetical order; of too many the nearest to `wanted`.
pub fn near<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> String {
    let mut names: Vec<_> = names.collect();
    names.sort_unstable();
    names.dedup();
    if names.is_empty() {
        return "none".into();
    }
    let left_out = names.len().saturating_sub(MOST_NAMES);
    if left_out > 0 {
        let wanted = wanted.replace('*', "");
        names.sort_by_key(|name| kingpost_ir::text::edit_distance(&wanted, name, usize::MAX - 1)); // stable
        names.truncate(MOST_NAMES);
    }
    let quoted: Vec<_> = names.iter().map(|n| format!("`{n}`")).collect();
    let more = if left_out > 0 { format!(" and {left_out} more") } else { String::new() };
    quoted.join(", ") + &more
}

/// The iname of a name.
pub fn iname(kernel: &Kernel, name: &str) -> Result<InameId, Refusal> {
    kernel.iname(name).ok_or_else(|| {
        let known = near(name, kernel.inames.values().map(|i| i.name.as_str()));
        Refusal::Unknown { kind: "iname", name: name.into(), known }
    })
}

/// The variable of a name.
pub fn var(kernel: &Kernel, name: &str) -> Result<VarId, Refusal> {
    kernel.var(name).ok_or_else(|| {
        let known = near(name, kernel.vars.values().map(|v| v.name.as_str()));
        Refusal::Unknown { kind: "variable", name: name.into(), known }
    })
}

/// Checks that a new name is free.
pub fn free(kernel: &Kernel, name: &str) -> Result<(), Refusal> {
    if !kingpost_ir::verify::is_name(name) {
        return Err(Refusal::Malformed(kingpost_ir::KernelError::BadName { name: name.into() }));
    }
    if !kernel.is_free_name(name) {
        return Err(Refusal::Taken { name: name.into() });
    }
    Ok(())
}

/// The name of what a step makes: the one that is asked for, or else the first of `stem`, `stem_1`, … that is
/// free, as are all names that are made of it.
///
/// # Errors
/// A name that is asked for and taken, or one that is made of it.
pub fn made(
    kernel: &Kernel,
    asked: Option<&str>,
    stem: &str,
    of: impl Fn(&str) -> Vec<String>,
) -> Result<String, Refusal> {
    let mut name = asked.unwrap_or(stem).to_owned();
    let mut k = 1;
    while asked.is_none() && !of(&name).iter().all(|name| kernel.is_free_name(name)) {
        name = format!("{stem}_{k}");
        k += 1;
    }
    of(&name).iter().try_for_each(|name| free(kernel, name))?;
    Ok(name)
}

/// A loop of the tree is asked for.
pub const NO_REDUCTION: Obligation =
    Obligation::new("no_reduction", "the loop is one of the program, and not that of a reduction");

/// The iname of a name, which must be a loop of the tree and not that of a reduction.
pub fn tree_loop(kernel: &Kernel, name: &str) -> Result<InameId, Refusal> {
    let found = iname(kernel, name)?;
    NO_REDUCTION.require(crate::tree::loop_body(&kernel.body, found).is_some(), || {
        format!("`{name}` runs inside a reduction; realise the reduction first")
    })?;
    Ok(found)
}

/// The names of the loops of the tree that a pattern says, in which `*` stands for any number of letters.
///
/// # Errors
/// [`Refusal::Unknown`] if there are none.
pub fn loops_matching(kernel: &Kernel, pattern: &str) -> Result<Vec<String>, Refusal> {
    let is_in_tree = |l: &InameId| crate::tree::loop_body(&kernel.body, *l).is_some();
    let loops = kernel.inames.ids().filter(is_in_tree);
    let all: Vec<&str> = loops.map(|l| kernel.inames[l].name.as_str()).collect();
    let found: Vec<String> = all.iter().filter(|n| matches(pattern, n)).map(|n| (*n).to_owned()).collect();
    if found.is_empty() {
        let known = near(pattern, all.into_iter());
        return Err(Refusal::Unknown { kind: "loop", name: pattern.to_owned(), known });
    }
    Ok(found)
}

/// The instructions and loops inside some nodes, for messages.
pub fn names_in(kernel: &Kernel, nodes: &[kingpost_ir::Node]) -> String {
    let mut found = Vec::new();
    let mut open: Vec<_> = nodes.iter().collect();
    while let Some(node) = open.pop() {
        match node {
            kingpost_ir::Node::Insn(insn) => found.push(kernel.insns[*insn].name.as_str()),
            kingpost_ir::Node::Loop(iname, body) => {
                found.push(kernel.inames[*iname].name.as_str());
                open.extend(body);
            }
        }
    }
    near("", found.into_iter())
}

/// The instruction of a name.
pub fn insn(kernel: &Kernel, name: &str) -> Result<InsnId, Refusal> {
    kernel.insn(name).ok_or_else(|| {
        let known = near(name, kernel.insns.values().map(|i| i.name.as_str()));
        Refusal::Unknown { kind: "instruction", name: name.into(), known }
    })
}

/// The callee of a name.
pub fn callee(kernel: &Kernel, name: &str) -> Result<kingpost_ir::CalleeId, Refusal> {
    kernel.callee(name).ok_or_else(|| {
        let known = near(name, kernel.callees.values().map(kingpost_ir::Callee::name));
        Refusal::Unknown { kind: "callee", name: name.into(), known }
    })
}

/// The substitution rule of a name.
pub fn rule(kernel: &Kernel, name: &str) -> Result<kingpost_ir::RuleId, Refusal> {
    kernel.rule(name).ok_or_else(|| {
        let known = near(name, kernel.rules.values().map(|r| r.name.as_str()));
        Refusal::Unknown { kind: "rule", name: name.into(), known }
    })
}

/// The instructions that load an array: all that do, or the named ones, all of which must.
///
/// # Errors
/// No instruction, or a named one that does not load it itself.
pub fn loading(
    kernel: &Kernel,
    var: VarId,
    insns: Option<&Selection>,
    obligation: Obligation,
) -> Result<Vec<InsnId>, Refusal> {
    let name = &kernel.vars[var].name;
    let chosen = match insns {
        Some(selection) => selection.resolve(kernel)?,
        None => kernel.insns.ids().filter(|id| kernel.insns[*id].loads(var)).collect(),
    };
    let without = chosen.iter().find(|id| !kernel.insns[**id].loads(var));
    obligation.require(without.is_none() && !chosen.is_empty(), || match without {
        Some(id) if insns.is_some() => format!(
            "`{}` does not load `{name}` itself; choose instructions that do, or expand the rule that does",
            kernel.insns[*id].name
        ),
        Some(_) | None => format!("no instruction loads `{name}` itself; expand the rule that does"),
    })?;
    Ok(chosen)
}

/// Whether an expression has one of the texts, spaces left out, in which `*` stands for any number of
/// letters; also if none is given.
pub fn has_text(kernel: &Kernel, e: &Expr, only: &[String]) -> bool {
    let plain = |text: &str| text.replace(' ', "");
    let text = plain(&kernel.show_expr(e).to_string());
    only.is_empty() || only.iter().any(|pattern| matches(&plain(pattern), &text))
}

/// ` with` and the texts of [`has_text`], if there are any: for names of operations.
pub fn with_texts(only: &[String]) -> String {
    let texts: Vec<_> = only.iter().map(|text| format!("`{text}`")).collect();
    if texts.is_empty() { String::new() } else { format!(", only {}", texts.join(", ")) }
}

/// The loads of tables that are factors of an instruction's value.
pub fn table_factors<'k>(kernel: &Kernel, insn: &'k Insn) -> Vec<&'k Access> {
    let is_table = |access: &&Access| matches!(kernel.vars[access.var].kind, VarKind::Table(_));
    insn.rhs.loaded_factors().filter(is_table).collect()
}

/// Names in backquotes.
#[must_use]
pub fn quoted(names: &[String]) -> String {
    names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(" ")
}
