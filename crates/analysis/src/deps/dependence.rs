//! A dependence between two instructions, and its instance relation.

use super::pair::{Span, named};
use crate::polyhedral::{Polyhedral, Side, difference, smallest_pair};
use crate::question::Relation;
use crate::witness::{Instance, Witness};
use kingpost_ir::affine::{Affine, Atom};
use kingpost_ir::ids::{Id, InameId, InsnId, VarId};
use kingpost_ir::kernel::Kernel;
use kingpost_isl as isl;
use std::fmt;
use std::sync::Arc;

/// Why something must come after something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DependenceKind {
    /// Read after write.
    Flow,
    /// Write after read.
    Anti,
    /// Write after write.
    Output,
    /// Update after update by the same commuting operator: the order does not matter, only that
    /// they do not tear each other.
    Update,
}

impl fmt::Display for DependenceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Flow => "flow",
            Self::Anti => "anti",
            Self::Output => "output",
            Self::Update => "update",
        })
    }
}

/// A dependence between two instructions through one variable.
#[derive(Clone, Debug)]
pub struct Dependence {
    /// The instruction whose instances come first.
    pub source: InsnId,
    /// The instruction whose instances come after.
    pub sink: InsnId,
    /// Why.
    pub kind: DependenceKind,
    /// The variable.
    pub var: VarId,
    /// Common loops, outer first, on whose values source and sink agree in every pair.
    pub equal: Vec<InameId>,
    /// Whether it only says that memory is used again: no value flows between iterations of these
    /// loops through the variable. Reordering whole iterations of them keeps it irrelevant.
    pub reuse_across: Vec<InameId>,
    /// The array through which the element is found, if any.
    pub through: Option<VarId>,
    /// Arrays through which both accesses find the element, and the entries that injectivity would
    /// make the same.
    pub(super) maps: Vec<(VarId, Vec<(Affine, Affine)>)>,
    /// The indices of both accesses, as far as they are quasi-affine.
    pub(super) indices: [Arc<[Option<Affine>]>; 2],
    /// Loops at the source that have the value of a loop at the sink.
    pub(super) agreeing: Vec<(InameId, InameId)>,
    /// All that isl is told of the pairs: those of two accesses, less those with a certain write in
    /// between.
    pub(super) relation: Arc<Relation>,
    pub(super) labels: Arc<Labels>,
}

/// How the instructions of a kernel and the loops around them are called.
#[derive(Debug)]
pub(crate) struct Labels {
    /// Shares what it holds with the kernel that is analysed.
    kernel: Kernel,
    loops: Vec<Vec<InameId>>,
}

impl Labels {
    pub(crate) fn of(poly: &Polyhedral) -> Self {
        let kernel = &*poly.kernel;
        let loops = kernel.insns.ids().map(|i| poly.loops(i).to_vec()).collect();
        Self { kernel: kernel.clone(), loops }
    }

    /// A map from instances to instances whose loops go by number, with the names of the kernel;
    /// those of the sink end in `'`.
    pub(crate) fn name(&self, map: &isl::Map, insns: [InsnId; 2]) -> Result<isl::Map, isl::IslError> {
        let loops = |i: InsnId| self.loops[i.index()].iter().map(|l| self.kernel.inames[*l].name.as_str());
        named(map, insns.map(|i| (self.kernel.insns[i].name.as_str(), loops(i).collect())))
    }
}

impl Dependence {
    /// Whether a value goes from source to sink: a read of what was written, or an update of it.
    pub fn carries_value(&self) -> bool {
        match self.kind {
            DependenceKind::Flow | DependenceKind::Update => true,
            DependenceKind::Anti | DependenceKind::Output => false,
        }
    }

    /// Whether `i` at the source has the value of `j` at the sink in every pair, as far as the
    /// indices tell.
    pub fn agrees(&self, i: InameId, j: InameId) -> bool {
        (i == j && self.equal.contains(&i)) || self.agreeing.contains(&(i, j))
    }

    /// Whether `x` at the source and `y` at the sink, which mention no scalar that may change, have
    /// one value in every pair, as far as the indices tell.
    pub fn agree_on(&self, x: &Affine, y: &Affine) -> bool {
        if let (Some(i), Some(j)) = (x.as_iname(), y.as_iname()) {
            return self.agrees(i, j);
        }
        let mut same = x == y;
        x.for_each_symbol(&mut |atom| match atom {
            Atom::Iname(i) => same &= self.agrees(*i, *i),
            Atom::Var(_) | Atom::Floor(..) => {}
        });
        same
    }

    /// The index of the element at the source, as far as it is quasi-affine.
    pub(crate) fn source_index(&self) -> &[Option<Affine>] {
        &self.indices[0]
    }

    /// What decides the order of the pairs.
    pub fn span(&self) -> Span {
        self.relation.pairs.span
    }

    /// The instance relation, from source to sink instances; sink names end in `'`.
    ///
    /// # Errors
    /// A failure of isl.
    pub fn relation(&self) -> Result<isl::Map, isl::IslError> {
        self.name(&self.relation.map()?)
    }

    /// The pairs of the relation for which one of these conjunctions holds; names of the sink end
    /// in `'`. What they leave out need not be computed.
    ///
    /// # Errors
    /// A failure of isl.
    pub fn relation_where(&self, disjuncts: &[Vec<isl::Constraint>]) -> Result<isl::Map, isl::IslError> {
        let part = |pairs: isl::Map| {
            let named = self.name(&pairs)?;
            let part = named.intersect(&isl::Map::from_disjuncts(&named.space()?, disjuncts)?)?;
            let numbered = pairs.in_dims().iter().chain(pairs.out_dims()).map(String::as_str);
            let names = named.in_dims().iter().chain(named.out_dims()).map(String::as_str);
            Ok(part.rename(&names.zip(numbered).collect::<Vec<_>>())?.with_tuples(None, None))
        };
        self.name(&self.relation.select(&part)?)
    }

    /// A part of the relation whose loops go by number, with the names of the kernel.
    ///
    /// # Errors
    /// A failure of isl.
    pub(crate) fn name(&self, part: &isl::Map) -> Result<isl::Map, isl::IslError> {
        self.labels.name(part, [self.source, self.sink])
    }

    /// The array that, if it was injective, would leave nothing of a part of the relation.
    ///
    /// # Errors
    /// A failure of isl.
    pub(crate) fn injective_map_against(
        &self,
        poly: &Polyhedral,
        part: &isl::Map,
    ) -> Result<Option<VarId>, isl::IslError> {
        // the pairs say nothing of the inames of reductions
        let known = |e: &Affine, insn| {
            poly.kernel.inames.ids().all(|i| !e.mentions(i) || poly.loops(insn).contains(&i))
        };
        for (map, entries) in &self.maps {
            let same = |(x, y): &(Affine, Affine)| {
                if !(known(x, self.source) && known(y, self.sink)) {
                    return None;
                }
                let (x, y) = (poly.affine(x, Side::Source)?, poly.affine(y, Side::Sink)?);
                Some(isl::Constraint::zero(difference(&x, &y)))
            };
            let same: Vec<_> = entries.iter().filter_map(same).collect();
            if part.intersect(&isl::Map::from_constraints(&part.space()?, &same)?)?.is_empty()? {
                return Ok(Some(*map));
            }
        }
        Ok(None)
    }

    /// All that isl is told of the pairs.
    pub(crate) fn told(&self) -> &Arc<Relation> {
        &self.relation
    }

    /// The smallest pair of a part of the relation as a witness.
    ///
    /// # Errors
    /// A failure of isl.
    pub fn witness(&self, kernel: &Kernel, part: &isl::Map) -> Result<Option<Witness>, isl::IslError> {
        let Some(pair) = smallest_pair(kernel, part)? else { return Ok(None) };
        let point = |p: &[(String, i64)]| p.iter().map(|(_, v)| *v).collect::<Vec<_>>();
        let params: Vec<_> = pair.params.clone();
        let source = Instance::new(kernel, self.source, point(&pair.input));
        let element = self.element(kernel, [&pair.input, &pair.output], &params);
        let sink = Instance::new(kernel, self.sink, point(&pair.output));
        let through = self.through.map(|v| kernel.vars[v].name.clone());
        // Parameters that the clash does not depend on would only distract.
        let constraints = part.disjuncts()?;
        let matters = |name: &str| constraints.iter().flatten().any(|c| c.expr.mentions(name));
        let params = params.into_iter().filter(|(name, _)| matters(name)).collect();
        Ok(Some(Witness { source, sink, element, through, params }))
    }

    /// The element the two accesses touch, where one of them says which.
    fn element(&self, kernel: &Kernel, points: [&[(String, i64)]; 2], params: &[(String, i64)]) -> String {
        let name = &kernel.vars[self.var].name;
        for (index, point) in self.indices.iter().zip(points) {
            let value = |name: &str| point.iter().chain(params).find(|(n, _)| n == name).map(|(_, v)| *v);
            let at = |e: &Option<Affine>| {
                e.as_ref()?.eval(&mut |atom| match atom {
                    Atom::Iname(i) => {
                        let iname = &kernel.inames[*i].name;
                        value(iname).or_else(|| value(&format!("{iname}'")))
                    }
                    Atom::Var(v) => value(&kernel.vars[*v].name),
                    Atom::Floor(..) => None,
                })
            };
            if let Some(index) = index.iter().map(at).collect::<Option<Vec<_>>>() {
                let index: Vec<_> = index.iter().map(i64::to_string).collect();
                return if index.is_empty() { name.clone() } else { format!("{name}[{}]", index.join(",")) };
            }
        }
        name.clone()
    }
}

/// Which dependences are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kinds {
    /// All.
    All,
    /// Flows: what the placement of a private variable depends on.
    Flows,
}

impl Kinds {
    pub(crate) fn hold(self, kind: DependenceKind) -> bool {
        match self {
            Self::All => true,
            Self::Flows => kind == DependenceKind::Flow,
        }
    }
}
