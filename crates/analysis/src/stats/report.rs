//! The result: plain data in a fixed order.

use kingpost_interp::OpKind;
use kingpost_ir::kernel::AddressSpace;
use kingpost_ir::types::ScalarType;
use serde::{Deserialize, Serialize};

/// Whether something is read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum AccessKind {
    /// Read; an update reads the element it writes.
    Read,
    /// Written.
    Write,
}

/// Operations of one kind on one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpCount {
    /// Kind of operation.
    pub kind: OpKind,
    /// Type it works on; indices count as `i64`.
    pub ty: ScalarType,
    /// How many.
    pub count: u64,
}

/// How often an instruction runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InsnStatistics {
    /// Name.
    pub name: String,
    /// Instances whose predicate holds.
    pub instances: u64,
    /// Floating-point operations of all its instances.
    pub flops: u64,
    /// Whether both are exact, not upper bounds.
    pub exact: bool,
}

/// How a variable is used in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// Number of accesses.
    pub accesses: u64,
    /// Whether `accesses` is exact, not an upper bound.
    pub exact: bool,
    /// Number of distinct elements.
    pub footprint: u64,
    /// Whether `footprint` is exact; through a map it is bounded by accesses and by the array.
    pub footprint_exact: bool,
}

/// How a variable is used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VarStatistics {
    /// Name.
    pub name: String,
    /// Type of one element.
    pub ty: ScalarType,
    /// Who shares it.
    pub space: AddressSpace,
    /// Number of elements it has.
    pub elements: u64,
    /// Reads.
    pub reads: Traffic,
    /// Writes.
    pub writes: Traffic,
    /// Distinct elements read or written.
    pub touched: u64,
    /// Whether `touched` is exact.
    pub touched_exact: bool,
}

impl VarStatistics {
    /// Use in one direction.
    pub fn traffic(&self, kind: AccessKind) -> &Traffic {
        match kind {
            AccessKind::Read => &self.reads,
            AccessKind::Write => &self.writes,
        }
    }
}

/// Statistics of a kernel at fixed parameters.
///
/// Parameters are not memory: reading one is no access.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statistics {
    /// Instructions by id, which is textual order in a canonical kernel.
    pub insns: Vec<InsnStatistics>,
    /// Operations that occur, by kind and type; integer ones include those of indices and
    /// predicates.
    pub ops: Vec<OpCount>,
    /// Whether `ops` is exact; conditions on data make it an upper bound.
    pub ops_exact: bool,
    /// Variables that are not parameters, in order of declaration.
    pub vars: Vec<VarStatistics>,
}

impl Statistics {
    /// Floating-point operations of all types; see [`OpKind::flops`].
    pub fn flops(&self) -> u64 {
        ScalarType::ALL.into_iter().map(|ty| self.flops_of(ty)).sum()
    }

    /// Floating-point operations of one type (zero for integers).
    pub fn flops_of(&self, ty: ScalarType) -> u64 {
        let of_type = self.ops.iter().filter(|o| o.ty == ty);
        of_type.map(|o| o.kind.flops(ty).saturating_mul(o.count)).sum()
    }

    /// Operations of one kind on one type.
    pub fn ops_of(&self, kind: OpKind, ty: ScalarType) -> u64 {
        self.ops.iter().filter(|o| o.kind == kind && o.ty == ty).map(|o| o.count).sum()
    }

    /// Instances of all instructions.
    pub fn instances(&self) -> u64 {
        self.insns.iter().map(|i| i.instances).sum()
    }

    /// Use of one variable.
    pub fn var(&self, name: &str) -> Option<&VarStatistics> {
        self.vars.iter().find(|v| v.name == name)
    }

    /// Accesses to an address space.
    pub fn accesses(&self, space: AddressSpace, kind: AccessKind) -> u64 {
        self.within(space).map(|v| v.traffic(kind).accesses).sum()
    }

    /// Bytes of all accesses to an address space.
    pub fn bytes(&self, space: AddressSpace, kind: AccessKind) -> u64 {
        self.within(space).map(|v| v.ty.bytes().saturating_mul(v.traffic(kind).accesses)).sum()
    }

    /// Whether every count is exact (footprints apart).
    pub fn exact(&self) -> bool {
        self.ops_exact
            && self.insns.iter().all(|i| i.exact)
            && self.vars.iter().all(|v| v.reads.exact && v.writes.exact)
    }

    fn within(&self, space: AddressSpace) -> impl Iterator<Item = &VarStatistics> {
        self.vars.iter().filter(move |v| v.space == space)
    }
}
