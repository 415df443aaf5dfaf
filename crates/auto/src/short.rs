//! Short loops of constant length, written out: what is done with small matrices is straight-line code.

use crate::draft::{Draft, Tried};
use crate::program::{Part, Reader};
use kingpost_ir::{AddressSpace, Atom, AxisTag, InameId, Kernel, Node};
use kingpost_steps::tree::loop_around;
use kingpost_transforms::primitives::{BufferWrites, Tag};

/// Iterations of a short loop.
const LENGTH: f64 = 16.0;

/// Instances of instructions that are written out together.
const INSTANCES: f64 = 512.0;

impl Draft<'_> {
    /// Writes out nests of short loops.
    ///
    /// # Errors
    /// A bug.
    pub(crate) fn write_out_short(&mut self) -> Tried {
        let parts = Reader::new(self.kernel(), self.params).parts();
        let mut nests = Vec::new();
        short_nests(self.kernel(), &parts, &mut nests);
        for nest in nests {
            let names: Vec<String> = nest.iter().map(|l| self.kernel().inames[*l].name.clone()).collect();
            // what compilers make of straight-line code, the model does not know
            self.restart(&format!("write out `{}`", names.join("`, `")), |d| {
                names.iter().try_for_each(|name| d.make(Tag::new(name, AxisTag::Unrolled)))
            })?;
        }
        Ok(())
    }

    /// Keeps what nests of short loops update in private memory, and writes them out, with the copies: each iteration
    /// of the loop around has its matrices in registers.
    ///
    /// # Errors
    /// A bug.
    pub(crate) fn hold_short(&mut self) -> Tried {
        let parts = Reader::new(self.kernel(), self.params).parts();
        let mut nests = Vec::new();
        short_nests(self.kernel(), &parts, &mut nests);
        let mut held: Vec<(String, String)> = Vec::new();
        for first in nests.iter().filter_map(|nest| nest.first()) {
            let is_first = |node: &Node| matches!(node, Node::Loop(l, _) if l == first);
            let Some(around) = loop_around(&self.kernel().body, &is_first) else { continue };
            let around = self.kernel().inames[around].name.clone();
            for insn in self.insns(&around) {
                let var = &self.kernel().vars[self.kernel().insns[insn].lhs.var];
                let one = (var.name.clone(), around.clone());
                if var.space == AddressSpace::Global && !held.contains(&one) {
                    held.push(one);
                }
            }
        }
        for (var, around) in held {
            let step = BufferWrites::new(var, around, AddressSpace::Private);
            self.attempt(|d| d.make(step).map(|_| ()))?;
        }
        self.write_out_short()
    }
}

/// The loops of the largest subtrees of short loops, outer ones first.
fn short_nests(kernel: &Kernel, parts: &[Part], found: &mut Vec<Vec<InameId>>) {
    for part in parts {
        let Part::Loop(level, body) = part else { continue };
        let mut loops = Vec::new();
        let count = instances(std::slice::from_ref(part), &mut loops);
        let inside = |atom: &Atom| match atom {
            Atom::Iname(i) => loops.iter().any(|(l, _)| l == i),
            Atom::Var(_) => false,
            Atom::Floor(..) => true,
        };
        let is_constant = |iname: InameId| {
            let mut constant = true;
            kernel.inames[iname].domain.for_each_symbol(&mut |atom| constant &= inside(atom));
            constant
        };
        let is_short = |(iname, trips): &(InameId, f64)| *trips <= LENGTH && is_constant(*iname);
        if count <= INSTANCES && loops.iter().all(is_short) && level.tag == AxisTag::Sequential {
            found.push(loops.into_iter().map(|(iname, _)| iname).collect());
        } else {
            short_nests(kernel, body, found);
        }
    }
}

/// Instances of instructions in some parts, and the loops there.
fn instances(parts: &[Part], loops: &mut Vec<(InameId, f64)>) -> f64 {
    parts
        .iter()
        .map(|part| match part {
            Part::Insn(_) => 1.0,
            Part::Loop(level, body) => {
                loops.push((level.iname, level.trips));
                level.trips * instances(body, loops)
            }
        })
        .sum()
}
