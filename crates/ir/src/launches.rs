//! Launches: the loops that are tagged so, and what may stand around them.

use crate::affine::{Affine, Atom};
use crate::domain::Domain;
use crate::ids::InameId;
use crate::kernel::{AxisTag, Iname, Kernel, Node, VarKind};
use crate::verify::KernelError;

impl Iname {
    /// The values `0..1` of a launch of its own, whose loop is written `launch name`.
    pub(crate) fn only_value(id: InameId) -> Domain {
        Domain::range(id, &Affine::constant(0), &Affine::constant(1))
    }

    /// Whether the loop is a launch of its own, which no launch repeats.
    pub fn is_one_launch(&self, id: InameId) -> bool {
        self.tag == AxisTag::Launch && self.domain == Self::only_value(id)
    }
}

impl Kernel {
    /// Whether the body is a sequence of launches; else it is one.
    pub fn has_launches(&self) -> bool {
        self.inames.values().any(|i| i.tag == AxisTag::Launch)
    }

    /// The loop of launches among the loops around an instruction, if the kernel has any.
    pub fn launch_among(&self, loops: &[InameId]) -> Option<InameId> {
        loops.iter().copied().find(|l| self.inames[*l].tag == AxisTag::Launch)
    }

    /// Whether a loop is one of launches, or around launches: its value is the same in a whole launch.
    pub fn is_of_host(&self, iname: InameId) -> bool {
        fn holds(kernel: &Kernel, nodes: &[Node], iname: InameId) -> bool {
            nodes.iter().any(|node| match node {
                Node::Loop(l, body) if *l == iname => {
                    kernel.inames[*l].tag == AxisTag::Launch || launches(kernel, body)
                }
                Node::Loop(_, body) => holds(kernel, body, iname),
                Node::Insn(_) => false,
            })
        }
        fn launches(kernel: &Kernel, nodes: &[Node]) -> bool {
            nodes.iter().any(|node| match node {
                Node::Loop(l, body) => kernel.inames[*l].tag == AxisTag::Launch || launches(kernel, body),
                Node::Insn(_) => false,
            })
        }
        self.has_launches() && holds(self, &self.body, iname)
    }

    /// Checks a loop of launches, the last of some loops, and the loops around it.
    pub(crate) fn verify_launch(&self, loops: &[InameId]) -> Result<(), KernelError> {
        let Some((launch, _)) = loops.split_last() else { return Ok(()) };
        for around in loops {
            let Iname { name, tag, domain } = &self.inames[*around];
            if around != launch && *tag != AxisTag::Sequential {
                let (outer, inner) = (name.clone(), self.inames[*launch].name.clone());
                return Err(KernelError::LaunchInside { outer, inner, tag: *tag });
            }
            let mut other = None;
            domain.for_each_symbol(&mut |atom| match atom {
                Atom::Var(v) if self.vars[*v].kind != VarKind::Param => {
                    other = Some(self.vars[*v].name.clone());
                }
                Atom::Iname(_) | Atom::Var(_) | Atom::Floor(..) => {}
            });
            if let Some(var) = other {
                return Err(KernelError::LaunchBound { iname: name.clone(), var });
            }
        }
        Ok(())
    }
}
