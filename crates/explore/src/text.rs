//! The text of a kernel, and the line of each loop and statement in it.

use kingpost_ir::text::{PrintOptions, TableStyle, print_with};
use kingpost_ir::{InameId, InsnId, Kernel, Node};
use std::collections::BTreeMap;

/// A text and where things are in it.
pub struct Text {
    /// The text, tables abridged.
    pub text: String,
    /// Line of each statement, from 0.
    pub insns: BTreeMap<InsnId, usize>,
    /// Line of each loop.
    pub loops: BTreeMap<InameId, usize>,
}

impl Text {
    /// Prints a kernel. Its loop tree follows the declarations, a line each node and each call.
    pub fn of(kernel: &Kernel) -> Self {
        let print = |kernel: &Kernel| print_with(kernel, PrintOptions { tables: TableStyle::Abridged });
        let text = print(kernel);
        let lines: Vec<&str> = text.lines().collect();
        let without = print(&Kernel { body: Vec::new(), ..kernel.clone() });
        // tables follow the tree: the first line that differs is in it, or the blank line before it
        let same = lines.iter().zip(without.lines()).take_while(|(a, b)| **a == *b).count();
        let start = if lines.get(same).is_some_and(|line| line.is_empty()) { same + 1 } else { same };
        let mut found = Self { insns: BTreeMap::new(), loops: BTreeMap::new(), text: String::new() };
        let mut at = start;
        found.walk(&kernel.body, &lines, !kernel.callees.is_empty(), &mut at);
        found.text = text;
        found
    }

    fn walk(&mut self, body: &[Node], lines: &[&str], calls: bool, at: &mut usize) {
        for node in body {
            if calls && lines.get(*at).is_some_and(|line| line.trim_start().starts_with("call ")) {
                *at += 1;
            }
            match node {
                Node::Insn(insn) => {
                    self.insns.insert(*insn, *at);
                    *at += 1;
                }
                Node::Loop(iname, inner) => {
                    self.loops.insert(*iname, *at);
                    *at += 1;
                    self.walk(inner, lines, calls, at);
                }
            }
        }
    }
}
