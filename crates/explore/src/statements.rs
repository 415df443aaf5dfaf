//! The statements of a kernel with their loops, conditions and accesses.

use crate::data::{Access, Array, Loop, Statement};
use crate::rows::{Row, of_domain};
use crate::text::Text;
use kingpost_analysis::Analysis;
use kingpost_analysis::deps::{AccessSite, Mode};
use kingpost_analysis::polyhedral::affine_condition;
use kingpost_ir::layout::strides;
use kingpost_ir::{AxisTag, Expr, InameId, InsnId, Kernel, VarKind};
use std::collections::BTreeMap;

/// The statements in textual order.
pub fn statements(analysis: &Analysis, text: &Text) -> Vec<Statement> {
    let kernel = analysis.expanded();
    let mut accesses: BTreeMap<InsnId, Vec<Access>> = BTreeMap::new();
    for site in analysis.all_sites().iter().flatten() {
        let (found, access) = (accesses.entry(site.insn).or_default(), access(kernel, site));
        if !found.contains(&access) {
            found.push(access);
        }
    }
    let statement = |(id, around): (InsnId, Vec<InameId>)| {
        let insn = &kernel.insns[id];
        let parts: Vec<&Expr> = insn.predicate.iter().flat_map(Expr::conjuncts).collect();
        let known: Vec<_> = parts.iter().filter_map(|part| affine_condition(part)).collect();
        let mut reductions = Vec::new();
        insn.rhs.for_each(&mut |e| {
            if let Expr::Reduce(reduction) = e {
                reductions.extend(reduction.inames.iter().map(|i| loop_of(kernel, *i, None)));
            }
        });
        Statement {
            name: insn.name.clone(),
            line: text.insns[&id], // every instruction is in the tree
            loops: around.iter().map(|i| loop_of(kernel, *i, text.loops.get(i).copied())).collect(),
            reductions,
            when: known.iter().map(|domain| of_domain(kernel, domain)).collect(),
            exact: known.len() == parts.len(),
            tags: insn.tags.iter().cloned().collect(),
            access: accesses.remove(&id).unwrap_or_default(), // of a constant to nothing: none
            origin: Vec::new(),
        }
    };
    kernel.schedule().into_iter().map(statement).collect()
}

fn loop_of(kernel: &Kernel, id: InameId, line: Option<usize>) -> Loop {
    let iname = &kernel.inames[id];
    let tag = (iname.tag != AxisTag::Sequential).then(|| iname.tag.to_string());
    Loop { name: iname.name.clone(), tag, line, domain: of_domain(kernel, &iname.domain) }
}

fn access(kernel: &Kernel, site: &AccessSite) -> Access {
    let mode = match site.mode {
        Mode::Read => "read",
        Mode::Assign => "write",
        Mode::Update(_) => "update",
    };
    let index = site.index.iter().map(|e| e.as_ref().map(|e| Row::of(kernel, e))).collect();
    let var = kernel.vars[site.access.var].name.clone();
    Access { var, mode, index, text: kernel.show_access(&site.access).to_string() }
}

/// The variables that are no parameters.
pub fn arrays(kernel: &Kernel) -> BTreeMap<String, Array> {
    let rows = |all: &[kingpost_ir::Affine]| all.iter().map(|e| Row::of(kernel, e)).collect::<Vec<_>>();
    let others = kernel.vars.values().filter(|var| var.kind != VarKind::Param);
    let array = |var: &kingpost_ir::Variable| Array {
        ty: var.ty.to_string(),
        bytes: var.ty.bytes(),
        space: var.space.name(),
        shape: rows(&var.shape),
        strides: strides(var, &vec![false; var.shape.len()]).map(|all| rows(&all)),
        swizzle: var.layout.swizzle.map(|s| [s.axis, s.by]),
    };
    others.map(|var| (var.name.clone(), array(var))).collect()
}
