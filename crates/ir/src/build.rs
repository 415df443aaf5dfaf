//! Building kernels in Rust, in textual order.

use crate::affine::Affine;
use crate::constant::TableData;
use crate::domain::Domain;
use crate::expr::{Access, Expr, UpdateOp};
use crate::guards::{Branches, Guarding, Guards};
use crate::ids::{Arena, Id, InameId, InsnId, RuleId, VarId};
use crate::kernel::{
    AddressSpace, Assumption, AxisTag, Direction, Iname, Insn, Kernel, Node, Rule, SubGroup, VarKind,
    Variable, WriteOp,
};
use crate::types::ScalarType;
use crate::verify::KernelError;
use std::collections::BTreeSet;

/// Builds a kernel from top to bottom.
///
/// ```
/// use kingpost_ir::{Access, Affine, Direction, Expr, KernelBuilder, ScalarType};
///
/// let mut b = KernelBuilder::new("scale");
/// let n = b.param("n", ScalarType::I32);
/// let x = b.argument("x", ScalarType::F64, [Affine::var(n)], Direction::In);
/// let y = b.argument("y", ScalarType::F64, [Affine::var(n)], Direction::Out);
/// let i = b.open_loop("i", Affine::constant(0), Affine::var(n));
/// b.assign("s", Access::new(y, [i.into()]), Expr::load(x, [i.into()]) * 2.0);
/// b.close_loop();
/// let kernel = b.finish()?;
/// assert_eq!(kernel.insns.len(), 1);
/// # Ok::<(), kingpost_ir::KernelError>(())
/// ```
#[derive(Clone, Debug)]
pub struct KernelBuilder {
    pub(crate) kernel: Kernel,
    open: Vec<Block>,
    pub(crate) unbalanced: bool,
    pub(crate) guards: Guards,
}

/// A block that is open.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub(crate) kind: BlockKind,
    /// What stands in it so far; of an `if`, in its last branch.
    pub(crate) nodes: Vec<Node>,
}

/// What opened a block.
#[derive(Clone, Debug)]
pub(crate) enum BlockKind {
    /// A loop, with the condition that ends it.
    Loop(InameId, Option<Expr>),
    /// An `if`: its conditions, of which a last `else` has none, and the branches that are closed.
    If(Vec<Option<Expr>>, Vec<Vec<Node>>),
}

impl KernelBuilder {
    /// An empty kernel.
    pub fn new(name: impl Into<String>) -> Self {
        let kernel = Kernel {
            name: name.into(),
            launch: crate::kernel::Launch::default(),
            sub_group: SubGroup::default(),
            arithmetic: crate::kernel::Arithmetic::default(),
            vars: Arena::default(),
            inames: Arena::default(),
            insns: Arena::default(),
            rules: Arena::default(),
            callees: Arena::default(),
            assumptions: Vec::new(),
            body: Vec::new(),
        };
        Self { kernel, open: Vec::new(), unbalanced: false, guards: Guards::default() }
    }

    /// Gives sub-groups another width than 32.
    pub fn sub_group(&mut self, width: SubGroup) {
        self.kernel.sub_group = width;
    }

    /// Declares an integer parameter.
    pub fn param(&mut self, name: impl Into<String>, ty: ScalarType) -> VarId {
        self.variable(Variable::new(name, ty, VarKind::Param, [], AddressSpace::Private))
    }

    /// Declares an integer parameter that is computed from parameters before it.
    pub fn defined_param(
        &mut self,
        name: impl Into<String>,
        ty: ScalarType,
        value: impl Into<Expr>,
    ) -> VarId {
        let param = self.param(name, ty);
        self.assume(Assumption::Defined(param, value.into()));
        param
    }

    /// Declares an argument; without axes and `In` it is a scalar passed by value.
    pub fn argument(
        &mut self,
        name: impl Into<String>,
        ty: ScalarType,
        shape: impl IntoIterator<Item = Affine>,
        direction: Direction,
    ) -> VarId {
        let mut var = Variable::new(name, ty, VarKind::Argument(direction), shape, AddressSpace::Global);
        if var.shape.is_empty() && direction == Direction::In {
            var.space = AddressSpace::Private;
        }
        self.variable(var)
    }

    /// Declares a private temporary.
    pub fn temporary(
        &mut self,
        name: impl Into<String>,
        ty: ScalarType,
        shape: impl IntoIterator<Item = Affine>,
    ) -> VarId {
        self.variable(Variable::new(name, ty, VarKind::Temporary, shape, AddressSpace::Private))
    }

    /// Declares a constant table in global memory; extents are element counts.
    pub fn table(
        &mut self,
        name: impl Into<String>,
        ty: ScalarType,
        extents: impl IntoIterator<Item = usize>,
        data: TableData,
    ) -> VarId {
        let shape = extents.into_iter().map(|n| Affine::constant(n as i64));
        self.variable(Variable::new(name, ty, VarKind::Table(data), shape, AddressSpace::Global))
    }

    /// Declares any variable.
    pub fn variable(&mut self, variable: Variable) -> VarId {
        self.kernel.vars.push(variable)
    }

    /// Declares a substitution rule.
    pub fn rule(&mut self, rule: Rule) -> RuleId {
        self.kernel.rules.push(rule)
    }

    /// Adds an assumption.
    pub fn assume(&mut self, assumption: Assumption) {
        self.kernel.assumptions.push(assumption);
    }

    /// Declares an iname without a place in the tree: for a reduction, or for [`Self::open`].
    pub fn iname(&mut self, name: impl Into<String>, domain: impl FnOnce(InameId) -> Domain) -> InameId {
        let id = InameId::from_index(self.kernel.inames.len());
        self.kernel.inames.push(Iname { name: name.into(), domain: domain(id), tag: AxisTag::Sequential })
    }

    /// Declares `lo <= name < hi` without a place in the tree.
    pub fn range(&mut self, name: impl Into<String>, lo: Affine, hi: Affine) -> InameId {
        self.iname(name, |i| Domain::range(i, &lo, &hi))
    }

    /// Gives a declared iname a tag.
    pub fn tag(&mut self, iname: InameId, tag: AxisTag) {
        self.kernel.inames[iname].tag = tag;
    }

    /// Opens the loop of a declared iname; what follows is inside it until [`Self::close_loop`].
    pub fn open(&mut self, iname: InameId) {
        self.open_block(BlockKind::Loop(iname, None));
    }

    pub(crate) fn open_block(&mut self, kind: BlockKind) {
        self.open.push(Block { kind, nodes: Vec::new() });
    }

    pub(crate) fn innermost(&mut self) -> Option<&mut Block> {
        self.open.last_mut()
    }

    /// Opens `for name in lo..hi`.
    pub fn open_loop(&mut self, name: impl Into<String>, lo: Affine, hi: Affine) -> InameId {
        let iname = self.range(name, lo, hi);
        self.open(iname);
        iname
    }

    /// Closes the innermost open loop.
    pub fn close_loop(&mut self) {
        match self.open.pop() {
            Some(Block { kind: BlockKind::Loop(iname, None), nodes }) => {
                self.push_node(Node::Loop(iname, nodes))
            }
            Some(Block { kind: BlockKind::Loop(iname, Some(condition)), nodes }) => {
                let nodes = self.ended(iname, nodes, (condition, ()));
                nodes.into_iter().for_each(|node| self.push_node(node));
            }
            Some(Block { kind: BlockKind::If(..), .. }) | None => self.unbalanced = true,
        }
    }

    /// Closes the innermost block, if it is an `if`.
    pub fn close_if(&mut self) {
        if let Some(Block { kind: BlockKind::If(conditions, mut bodies), nodes }) = self.open.pop() {
            bodies.push(nodes);
            let conditions = conditions.into_iter().map(|condition| (condition, ())).collect();
            let nodes = self.guarded(Branches { conditions, bodies });
            nodes.into_iter().for_each(|node| self.push_node(node));
        } else {
            self.unbalanced = true;
        }
    }

    /// `lhs = rhs`.
    pub fn assign(&mut self, name: impl Into<String>, lhs: Access, rhs: impl Into<Expr>) -> InsnId {
        self.insn(name, lhs, WriteOp::Assign, rhs.into())
    }

    /// `lhs op= rhs`, not atomic.
    pub fn update(
        &mut self,
        name: impl Into<String>,
        lhs: Access,
        op: UpdateOp,
        rhs: impl Into<Expr>,
    ) -> InsnId {
        self.insn(name, lhs, WriteOp::Update { op, atomic: false }, rhs.into())
    }

    fn insn(&mut self, name: impl Into<String>, lhs: Access, op: WriteOp, rhs: Expr) -> InsnId {
        let insn =
            Insn { name: name.into(), lhs, op, rhs, predicate: None, tags: BTreeSet::new(), callee: None };
        self.push_insn(insn)
    }

    /// Adds any instruction.
    pub fn push_insn(&mut self, insn: Insn) -> InsnId {
        let id = self.kernel.insns.push(insn);
        self.push_node(Node::Insn(id));
        id
    }

    /// The instruction, to set its predicate, tags or atomicity.
    pub fn insn_mut(&mut self, id: InsnId) -> &mut Insn {
        &mut self.kernel.insns[id]
    }

    /// Labels an instruction.
    pub fn label(&mut self, id: InsnId, tag: impl Into<String>) {
        self.kernel.insns[id].tags.insert(tag.into());
    }

    /// What has been built so far, for its tables of names.
    pub fn so_far(&self) -> &Kernel {
        &self.kernel
    }

    fn push_node(&mut self, node: Node) {
        match self.open.last_mut() {
            Some(block) => block.nodes.push(node),
            None => self.kernel.body.push(node),
        }
    }

    /// The kernel, verified and canonical.
    ///
    /// # Errors
    /// A rule of [`crate::verify`] that is broken; a loop or an `if` left open, or closed by what closes the
    /// other or is closed already.
    pub fn finish(mut self) -> Result<Kernel, KernelError> {
        if self.unbalanced || !self.open.is_empty() {
            let of_loop = |block: &Block| match &block.kind {
                BlockKind::Loop(iname, _) => Some(self.kernel.inames[*iname].name.clone()),
                BlockKind::If(..) => None,
            };
            let iname = self.open.iter().find_map(of_loop).unwrap_or_else(|| "if".to_owned());
            return Err(KernelError::InameUses { iname, count: 0 });
        }
        let nodes = std::mem::take(&mut self.kernel.body);
        self.kernel.body = self.guard_bounds(nodes);
        self.kernel.verify()?;
        Ok(self.kernel.canonical())
    }
}
