//! The reading of bounds, as instructions: what the proof of an order must not overlook.

use crate::polyhedral::is_symbol;
use kingpost_ir::affine::Atom;
use kingpost_ir::expr::{Access, Expr, UpdateOp};
use kingpost_ir::ids::{Id, InameId, InsnId, VarId};
use kingpost_ir::kernel::{AddressSpace, Insn, Kernel, Node, VarKind, Variable, WriteOp};
use kingpost_ir::types::ScalarType;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// A kernel with an instruction before each loop whose bounds may change, which reads them.
///
/// A loop reads its bounds when it is entered, also if it holds no instance. What is inside reads
/// them too, as far as dependences say, but only where it runs.
#[derive(Debug)]
pub struct Entries<'k> {
    /// The kernel.
    pub kernel: Cow<'k, Kernel>,
    /// How many instructions it had.
    own: usize,
    /// For each one added, an instruction inside the loop.
    inside: Vec<InsnId>,
}

impl<'k> Entries<'k> {
    /// The entries of the loops of a kernel.
    pub fn of(kernel: &'k Kernel) -> Self {
        let own = kernel.insns.len();
        let mut this = Self { kernel: Cow::Borrowed(kernel), own, inside: Vec::new() };
        if kernel.inames.ids().any(|iname| !changing_bounds(kernel, iname).is_empty()) {
            let entered = kernel.fresh_name("entered");
            let entered = Variable::new(
                entered,
                ScalarType::I32,
                VarKind::Temporary,
                Vec::new(),
                AddressSpace::Private,
            );
            let entered = this.kernel.to_mut().vars.push(entered);
            this.kernel.to_mut().body = this.with_reads(&kernel.body, entered);
        }
        this
    }

    /// The instruction, or one inside the loop before which it stands.
    pub fn inside(&self, insn: InsnId) -> InsnId {
        let added = insn.index().checked_sub(self.own).and_then(|k| self.inside.get(k));
        added.copied().unwrap_or(insn)
    }

    fn with_reads(&mut self, nodes: &[Node], entered: VarId) -> Vec<Node> {
        let mut all = Vec::with_capacity(nodes.len());
        for node in nodes {
            let Node::Loop(iname, body) = node else {
                all.push(node.clone());
                continue;
            };
            all.extend(self.read(*iname, body, entered).map(Node::Insn));
            all.push(Node::Loop(*iname, self.with_reads(body, entered)));
        }
        all
    }

    /// `entered += bounds`, which commutes with all others.
    fn read(&mut self, iname: InameId, body: &[Node], entered: VarId) -> Option<InsnId> {
        let bounds = changing_bounds(&self.kernel, iname).into_iter().map(Expr::scalar);
        let rhs = bounds.reduce(|sum, bound| sum + bound)?;
        self.inside.push(first_insn(body)?);
        let name = format!("for {}", self.kernel.inames[iname].name);
        Some(self.kernel.to_mut().insns.push(Insn {
            name,
            lhs: Access::scalar(entered),
            op: WriteOp::Update { op: UpdateOp::Add, atomic: false },
            rhs,
            predicate: None,
            tags: BTreeSet::new(),
            callee: None,
        }))
    }
}

/// The scalars in the bounds of a loop that may change while the kernel runs, in order of
/// declaration.
pub fn changing_bounds(kernel: &Kernel, iname: InameId) -> Vec<VarId> {
    let mut found = Vec::new();
    kernel.inames[iname].domain.for_each_symbol(&mut |atom| {
        if let Atom::Var(v) = atom
            && !is_symbol(kernel, *v)
        {
            found.push(*v);
        }
    });
    found.sort_unstable();
    found.dedup();
    found
}

fn first_insn(nodes: &[Node]) -> Option<InsnId> {
    nodes.iter().find_map(|node| match node {
        Node::Insn(insn) => Some(*insn),
        Node::Loop(_, body) => first_insn(body),
    })
}
