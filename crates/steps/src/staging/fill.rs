//! The loops that fill and store a temporary, and the uses of it.

use super::loops::Loops;
use crate::condition::condition;
use crate::lookup;
use crate::nest::wrapped;
use crate::proofs::footprint::element_names;
use crate::refusal::Refusal;
use crate::schedule::{Array, Handles, Loop, Made, Statement};
use crate::staging::{CLOSED_FORM, Region, Temporary, Tile};
use crate::tree::edit_body;
use kingpost_analysis::Analysis;
use kingpost_analysis::polyhedral::{Polyhedral, Side};
use kingpost_ir::{
    Access, AddressSpace, Affine, Atom, AxisTag, Constraint, Domain, Expr, Iname, InameId, Insn, InsnId,
    Kernel, Node, ScalarType, VarId, VarKind, Variable, WriteOp,
};
use kingpost_isl as isl;
use std::collections::BTreeSet;

/// A temporary with what fills and stores it, for the kernel from which it was planned.
pub struct Staging {
    region: Region,
    temporary: Variable,
    /// They mention one another, and the instructions them, by the next ids of the kernel's tables.
    inames: Vec<Iname>,
    /// What stands before the region and what stands after it.
    around: [Option<Sweep>; 2],
    /// The instructions of the region, which use the temporary now.
    redirected: Vec<(InsnId, Insn)>,
}

/// An instruction for every element of the temporary, and its loops, outer first.
pub struct Sweep {
    loops: Vec<InameId>,
    insn: Insn,
}

/// Handles to a temporary that stands for a part of an array, and to what fills and stores it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Staged {
    /// The temporary.
    pub temporary: Array,
    /// The loops that fill it and those that store it, outer first.
    pub loops: Vec<Loop>,
    /// The instruction that fills it, if there is one, and the one that stores it.
    pub insns: Vec<Statement>,
}

impl Handles for Staged {
    fn list(&self, made: &mut Made) {
        self.temporary.list(made);
        self.loops.list(made);
        self.insns.list(made);
    }
}

/// A temporary that is being planned. Names are taken and ids are given in a copy of the kernel; what is
/// new there is what the edit adds.
pub struct Plan<'a, 'k> {
    asked: Temporary<'a>,
    analysis: &'a Analysis<'k>,
    region: Region,
    tile: Tile,
    temporary: Variable,
    id: VarId,
    draft: Kernel,
}

impl<'a> Temporary<'a> {
    /// Plans a temporary of a type in a memory that stands for a tile in a region.
    pub fn plan<'k>(
        self,
        analysis: &'a Analysis<'k>,
        region: Region,
        tile: Tile,
        (ty, space): (ScalarType, AddressSpace),
    ) -> Plan<'a, 'k> {
        let mut draft = analysis.kernel().clone();
        let temporary = Variable::new(self.name, ty, VarKind::Temporary, tile.shape(), space);
        let id = draft.vars.push(temporary.clone());
        Plan { asked: self, analysis, region, tile, temporary, id, draft }
    }
}

impl Plan<'_, '_> {
    /// Fills the temporary before the first read and reads it in the region.
    ///
    /// # Errors
    /// Names that are taken or of the wrong number; [`CLOSED_FORM`].
    pub fn filled(mut self) -> Result<Staging, Refusal> {
        let (name, stem) = (self.asked.insn_name(), self.asked.name);
        let entry = |plan: &Self, at: &[Affine]| (plan.in_temporary(at), Expr::Load(plan.in_array(at)));
        let fill = self.sweep((name, stem), WriteOp::Assign, &entry)?;
        let redirected = self.redirected(false);
        Ok(self.finish([Some(fill), None], redirected))
    }

    /// Reads each element into the temporary, which has one place and which nothing reads: those of
    /// the iteration of the loop around that is `ahead` of this one, where there is one.
    ///
    /// # Errors
    /// Names that are taken or of the wrong number; [`CLOSED_FORM`].
    pub fn touched(mut self, ahead: i64) -> Result<Staging, Refusal> {
        self.temporary.shape.clear();
        self.draft.vars[self.id] = self.temporary.clone();
        let (name, stem) = (self.asked.insn_name(), self.asked.name);
        let later = self.region.at.filter(|_| ahead > 0).map(|at| (at, self.later(at, ahead, stem)));
        let later = later.map(|(at, later)| later.map(|later| (at, later))).transpose()?;
        let replace = |atom: &Atom| {
            let (at, later) = later.as_ref()?;
            (*atom == Atom::Iname(*at)).then(|| Affine::iname(*later))
        };
        let entry = |plan: &Self, at: &[Affine]| {
            let element =
                plan.tile.element_at(at).into_iter().map(|e| Expr::from_affine(&e.substitute(&replace)));
            let seen = Access::new(plan.id, Vec::<Expr>::new());
            (seen, Expr::Load(Access::new(plan.region.var, element.collect::<Vec<_>>())))
        };
        let mut touch = self.sweep((name, stem), WriteOp::Assign, &entry)?;
        for iname in &touch.loops {
            let domain = &mut self.draft.inames[*iname].domain;
            *domain = domain.substitute(&replace);
        }
        touch.loops.splice(0..0, later.map(|(_, later)| later));
        Ok(self.finish([Some(touch), None], Vec::new()))
    }

    /// A loop of one iteration, if a loop has one that is `ahead`: that one.
    fn later(&mut self, at: InameId, ahead: i64, stem: &str) -> Result<InameId, Refusal> {
        let name = format!("{stem}_at");
        lookup::free(&self.draft, &name)?;
        let later =
            self.draft.inames.push(Iname { name, domain: Domain::universe(), tag: AxisTag::Sequential });
        let value = Affine::iname(later);
        let own = self.draft.inames[at]
            .domain
            .substitute(&|atom| (*atom == Atom::Iname(at)).then(|| value.clone()));
        let first = Affine::iname(at).plus_constant(ahead);
        let one = Domain::range(later, &first, &first.plus_constant(1));
        self.draft.inames[later].domain = one.intersect(&own);
        Ok(later)
    }

    /// Starts the temporary with `first`, uses it for all reads and writes of the region, and stores it.
    ///
    /// # Errors
    /// Names that are taken.
    pub fn stored(mut self, first: Option<Start>, store: WriteOp) -> Result<Staging, Refusal> {
        let [start_name, store_name] = ["start", "store"].map(|verb| format!("{verb}_{}", self.asked.name));
        let start = first.map(|first| {
            self.sweep((start_name.clone(), &start_name), WriteOp::Assign, &|plan, at| {
                let value = match &first {
                    Start::Value(value) => value.clone(),
                    Start::Copy => Expr::Load(plan.in_array(at)),
                };
                (plan.in_temporary(at), value)
            })
        });
        let start = start.transpose()?;
        let store = self.sweep((store_name.clone(), &store_name), store, &|plan, at| {
            (plan.in_array(at), Expr::Load(plan.in_temporary(at)))
        })?;
        let redirected = self.redirected(true);
        Ok(self.finish([start, Some(store)], redirected))
    }

    fn in_temporary(&self, at: &[Affine]) -> Access {
        Access::new(self.id, self.tile.temporary_at(at))
    }

    fn in_array(&self, at: &[Affine]) -> Access {
        Access::new(self.region.var, self.tile.array_at(at))
    }

    /// An instruction of a name for every element of the tile, in loops that are named by a stem.
    fn sweep(
        &mut self,
        (name, stem): (String, &str),
        op: WriteOp,
        entry: &Entry<'_, Self>,
    ) -> Result<Sweep, Refusal> {
        let loops = if self.asked.work_items.is_empty() {
            self.tile.box_loops(&mut self.draft, self.asked.inames, stem)?
        } else {
            self.tile.flat_loops(&mut self.draft, self.asked.work_items, stem)?
        };
        let predicate = restrict(&mut self.draft, self.analysis.polyhedral(), &loops, &self.tile)?;
        let (lhs, rhs) = entry(self, &loops.offsets);
        let insn = Insn { name, lhs, op, rhs, predicate, tags: BTreeSet::new(), callee: None };
        Ok(Sweep { loops: loops.inames, insn })
    }

    /// The instructions of the region with the temporary instead of the array, whose affine elements it
    /// holds: where they read, and perhaps where they write.
    fn redirected(&self, writes: bool) -> Vec<(InsnId, Insn)> {
        let (kernel, poly) = (self.analysis.kernel(), self.analysis.polyhedral());
        let var = self.region.var;
        let affine = |index: &[Expr]| {
            let known = |e: &Expr| e.as_affine().is_some_and(|a| poly.affine(&a, Side::Source).is_some());
            index.iter().all(known)
        };
        // of the instructions as they are: an index that reads the temporary is none of the kernel's
        let mut chosen = Vec::new();
        for e in self.region.insns.iter().flat_map(|id| kernel.insns[*id].expressions()) {
            e.for_each(&mut |e| {
                let own = e.as_load().filter(|a| a.var == var && affine(&a.index));
                chosen.extend(own.filter(|a| self.region.is_chosen(kernel, a)).cloned());
            });
        }
        let mut rewrite = |mut e: Expr| {
            if let Expr::Load(access) = &mut e
                && chosen.contains(access)
            {
                *access = Access::new(self.id, self.tile.index(&access.index));
            }
            e
        };
        let mut through_temporary = |id: &InsnId| {
            let mut insn = self.analysis.kernel().insns[*id].clone();
            insn.map_expressions(&mut rewrite);
            if writes && insn.lhs.var == var {
                insn.lhs = Access::new(self.id, self.tile.index(&insn.lhs.index));
                if let WriteOp::Update { atomic, .. } = &mut insn.op {
                    *atomic &= self.temporary.space != AddressSpace::Private; // nobody else sees it
                }
            }
            (*id, insn)
        };
        self.region.insns.iter().map(&mut through_temporary).collect()
    }

    fn finish(self, around: [Option<Sweep>; 2], redirected: Vec<(InsnId, Insn)>) -> Staging {
        let inames = self.draft.inames.values().skip(self.analysis.kernel().inames.len()).cloned().collect();
        Staging { region: self.region, temporary: self.temporary, inames, around, redirected }
    }
}

/// What an instruction writes and reads at the offsets of an element.
type Entry<'a, P> = dyn Fn(&P, &[Affine]) -> (Access, Expr) + 'a;

/// What a temporary that is stored holds at first.
#[derive(Clone, Debug)]
pub enum Start {
    /// A value.
    Value(Expr),
    /// What the array holds.
    Copy,
}

impl Staging {
    /// Puts the temporary and what fills and stores it into the kernel, and uses it in the region.
    pub fn edit(&self, kernel: &mut Kernel) -> Staged {
        kernel.vars.push(self.temporary.clone());
        for iname in &self.inames {
            kernel.inames.push(iname.clone());
        }
        for (id, insn) in &self.redirected {
            kernel.insns[*id] = insn.clone();
        }
        let mut nest = |sweep: &Sweep| {
            let insn = Node::Insn(kernel.insns.push(sweep.insn.clone()));
            wrapped(sweep.loops.iter().copied(), vec![insn])
        };
        let [before, after] =
            self.around.each_ref().map(|sweep| sweep.iter().flat_map(&mut nest).collect::<Vec<Node>>());
        let (from, to) = self.region.nodes;
        edit_body(kernel, self.region.at, &mut |body| {
            body.splice(to + 1..to + 1, after.iter().cloned());
            body.splice(from..from, before.iter().cloned());
        });
        Staged {
            temporary: Array::named(&self.temporary.name),
            loops: self.inames.iter().map(|l| Loop::named(&l.name)).collect(),
            insns: self.around.iter().flatten().map(|sweep| Statement::named(&sweep.insn.name)).collect(),
        }
    }

    /// The instructions that use the temporary.
    pub fn users(&self) -> &[InsnId] {
        &self.region.insns
    }
}

/// Leaves out the elements that do not satisfy the conditions: by the bounds of the innermost loop,
/// or by the predicate that is returned where there is no loop.
fn restrict(
    kernel: &mut Kernel,
    poly: &Polyhedral,
    loops: &Loops,
    tile: &Tile,
) -> Result<Option<Expr>, Refusal> {
    let elements = tile.element_at(&loops.offsets);
    let names = element_names(elements.len());
    let value = |name: &str| match names.iter().position(|n| n == name) {
        Some(k) => elements.get(k).cloned(),
        None => poly.to_affine(&isl::Affine::name(name)),
    };
    let one = |c: &isl::Constraint| {
        let e = with_values(&c.expr, &value)?;
        Some(match c.kind {
            isl::ConstraintKind::Zero => Constraint::equal(&e, &Affine::default()),
            isl::ConstraintKind::NonNegative => Constraint::le(&Affine::default(), &e),
        })
    };
    let all: Option<Vec<Vec<_>>> = tile.conditions.iter().map(|d| d.iter().map(one).collect()).collect();
    let all = CLOSED_FORM
        .known(all, || "what is read has no closed form; copy the box around it instead".into())?;
    let wanted = Domain::union(all);
    if wanted == Domain::universe() {
        return Ok(None);
    }
    match loops.inames.last() {
        Some(last) => {
            kernel.inames[*last].domain = kernel.inames[*last].domain.intersect(&wanted);
            Ok(None)
        }
        None => Ok(condition(&wanted)),
    }
}

/// An expression by names with a value for each name.
fn with_values(e: &isl::Affine, value: &dyn Fn(&str) -> Option<Affine>) -> Option<Affine> {
    let mut result = Affine::constant(e.constant);
    for (name, c) in &e.terms {
        result = result.plus(&value(name)?.times(*c));
    }
    for (div, c) in &e.divs {
        let floor = with_values(&div.numerator, value)?.floor_div(div.denominator);
        result = result.plus(&floor.times(*c));
    }
    Some(result)
}
