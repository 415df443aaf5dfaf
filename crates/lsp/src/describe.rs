//! Things of a kernel in Markdown: what they are, and what they depend on.

use kingpost_analysis::Analysis;
use kingpost_analysis::deps::{Dependence, show_dependences};
use kingpost_ir::text::{PrintOptions, TableStyle, print_with};
use kingpost_ir::{AxisTag, InameId, InsnId, Kernel, VarId};

/// The thing of a name.
pub fn describe(kernel: &Kernel, name: &str) -> Option<String> {
    if let Some(var) = kernel.var(name) {
        return Some(variable(kernel, var));
    }
    if let Some(iname) = kernel.iname(name) {
        return Some(a_loop(kernel, iname));
    }
    if let Some(insn) = kernel.insn(name) {
        return Some(instruction(kernel, insn));
    }
    kernel.rule(name).map(|_| code(&declaration(kernel, "rule", name)))
}

fn code(text: &str) -> String {
    format!("```kingpost\n{text}\n```\n")
}

/// The line of a kernel's text that declares a variable or a rule.
fn declaration(kernel: &Kernel, keyword: &str, name: &str) -> String {
    let text = print_with(kernel, PrintOptions { tables: TableStyle::Abridged });
    let declares = |line: &&str| {
        let rest = line.strip_prefix(keyword).and_then(|rest| rest.strip_prefix(' '));
        let own = rest.and_then(|rest| rest.split([':', '(']).next());
        own.is_some_and(|own| own.trim_matches('`') == name)
    };
    text.lines().find(declares).unwrap_or(name).to_owned() // default: a name that is declared nowhere
}

fn variable(kernel: &Kernel, id: VarId) -> String {
    let var = &kernel.vars[id];
    let keywords = ["param", "arg", "temp", "table"];
    let lines = keywords.map(|keyword| declaration(kernel, keyword, &var.name));
    let line = lines.iter().find(|line| **line != var.name).unwrap_or(&var.name); // default: as above
    let mut text = code(line);
    let names = |of: &dyn Fn(&kingpost_ir::Insn) -> bool| {
        let all = kernel.insns.values().filter(|insn| of(insn)).map(|insn| format!("`{}`", insn.name));
        all.collect::<Vec<_>>().join(", ")
    };
    let (written, read) = (names(&|insn| insn.lhs.var == id), names(&|insn| insn.loads(id)));
    for (what, insns) in [("written by", written), ("read by", read)] {
        if !insns.is_empty() {
            text += &format!("\n{what} {insns}\n");
        }
    }
    text
}

fn a_loop(kernel: &Kernel, id: InameId) -> String {
    let iname = &kernel.inames[id];
    let tag = if iname.tag == AxisTag::Sequential { String::new() } else { format!(" {{{}}}", iname.tag) };
    let mut text = code(&format!("for {}{tag}", kernel.show_domain(id, &iname.domain)));
    let inside: Vec<_> = kernel.schedule().into_iter().filter(|(_, loops)| loops.contains(&id)).collect();
    if let Some((_, loops)) = inside.first() {
        let around: Vec<_> = loops.iter().take_while(|other| **other != id).collect();
        let names: Vec<_> = around.iter().map(|i| format!("`{}`", kernel.inames[**i].name)).collect();
        if !names.is_empty() {
            text += &format!("\ninside {}\n", names.join(", "));
        }
        let insns: Vec<_> =
            inside.iter().map(|(insn, _)| format!("`{}`", kernel.insns[*insn].name)).collect();
        text += &format!("\nruns {}\n", insns.join(", "));
    } else {
        text += "\na loop of a reduction\n";
    }
    text
}

fn instruction(kernel: &Kernel, id: InsnId) -> String {
    let mut text = code(&kernel.show_insn(&kernel.insns[id]).to_string());
    if let Some((_, loops)) = kernel.schedule().into_iter().find(|(insn, _)| *insn == id) {
        for iname in loops {
            text += &format!("\nfor `{}`\n", kernel.show_domain(iname, &kernel.inames[iname].domain));
        }
    }
    text + &dependences(kernel, id)
}

/// The dependences of an instruction, a line each.
fn dependences(kernel: &Kernel, id: InsnId) -> String {
    let analysis = Analysis::of(kernel);
    let mut graph = match analysis.dependence_graph() {
        Ok(graph) => graph,
        Err(why) => return format!("\nDependences: the integer-set library failed: {why}\n"),
    };
    graph.retain_edges(|graph, edge| {
        let of: &Dependence = &graph[edge];
        of.source == id || of.sink == id
    });
    match show_dependences(kernel, &graph) {
        Ok(shown) if shown.is_empty() => "\nNo dependences.\n".to_owned(),
        Ok(shown) => format!("\nDependences, source to sink:\n```text\n{shown}```\n"),
        Err(why) => format!("\nDependences: the integer-set library failed: {why}\n"),
    }
}
