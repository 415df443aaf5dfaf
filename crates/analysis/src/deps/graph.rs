//! Dependences as a graph: text and DOT.

use crate::Analysis;
use crate::deps::{Dependence, DependenceKind};
use kingpost_ir::ids::{Id, InsnId};
use kingpost_ir::kernel::Kernel;
use kingpost_isl as isl;
use petgraph::graph::{DiGraph, NodeIndex};
use std::fmt::Write;

/// Instructions and the dependences between them.
pub type DependenceGraph = DiGraph<InsnId, Dependence>;

impl Analysis<'_> {
    /// The dependences as a graph: nodes in order of ids, edges in order of variables and text.
    ///
    /// # Errors
    /// A failure of isl.
    pub fn dependence_graph(&self) -> Result<DependenceGraph, isl::IslError> {
        let mut graph = DiGraph::new();
        for insn in self.kernel().insns.ids() {
            graph.add_node(insn);
        }
        for d in self.dependences()? {
            if d.relation()?.is_empty()? {
                continue;
            }
            graph.add_edge(NodeIndex::new(d.source.index()), NodeIndex::new(d.sink.index()), d.clone());
        }
        Ok(graph)
    }
}

/// One line a dependence: kind, variable, instructions, instance relation.
///
/// # Errors
/// A failure of isl.
pub fn show_dependences(kernel: &Kernel, graph: &DependenceGraph) -> Result<String, isl::IslError> {
    let mut text = String::new();
    for d in graph.edge_weights() {
        let var = &kernel.vars[d.var].name;
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{:<6} {var}: {}", d.kind.to_string(), d.relation()?.coalesce()?);
    }
    Ok(text)
}

/// The graph for Graphviz: one node an instruction, one edge for each kind and variable.
pub fn to_dot(kernel: &Kernel, graph: &DependenceGraph) -> String {
    let mut text = format!("digraph {} {{\n  node [shape=box, fontname=monospace];\n", kernel.name);
    for (id, insn) in kernel.insns.iter() {
        let _ = writeln!(text, "  n{} [label=\"{}\"];", id.index(), insn.name);
    }
    for d in graph.edge_weights() {
        let style = match d.kind {
            DependenceKind::Flow => "solid",
            DependenceKind::Anti => "dashed",
            DependenceKind::Output => "dotted",
            DependenceKind::Update => "bold",
        };
        let _ = writeln!(
            text,
            "  n{} -> n{} [label=\"{} {}\", style={style}];",
            d.source.index(),
            d.sink.index(),
            d.kind,
            kernel.vars[d.var].name
        );
    }
    text.push_str("}\n");
    text
}
