//! Programs made of whole ones, and counts as formulas.

use crate::failure::{self, Failure};
use crate::kernel::Kernel;
use kingpost::analysis::stats::{Counted, StatsError, formulas};
use kingpost::codegen::synchronisation;
use kingpost::transforms::programs::{self, Batches, Fused};
use pyo3::prelude::*;
use std::collections::BTreeMap;

type Names = BTreeMap<String, String>;

/// Two kernels in a row, and which names of each became others.
#[pyfunction]
pub(crate) fn fuse_kernels(
    py: Python<'_>,
    first: &Bound<'_, Kernel>,
    second: &Bound<'_, Kernel>,
    name: &str,
) -> PyResult<(Kernel, Names, Names)> {
    let (one, two) = (&first.get().0, &second.get().0);
    failure::run(py, || {
        let Fused { kernel, first, second } = programs::fuse_kernels(one, two, name)?;
        Ok((Kernel::new(kernel), first, second))
    })
}

/// A number of batches, or the name of a parameter.
#[derive(FromPyObject)]
pub(crate) enum Number {
    Given(i64),
    Param(String),
}

/// A kernel for each of many data.
#[pyfunction]
pub(crate) fn to_batched(
    py: Python<'_>,
    kernel: &Bound<'_, Kernel>,
    batches: Number,
    arguments: Vec<String>,
    iname: &str,
) -> PyResult<Kernel> {
    let kernel = &kernel.get().0;
    failure::run(py, || {
        let batches = match &batches {
            Number::Given(number) => Batches::Number(*number),
            Number::Param(name) => Batches::Param(name.clone()),
        };
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        Ok(Kernel::new(programs::to_batched(kernel, &batches, &arguments, iname)?))
    })
}

/// The kernel with other names of parameters and arguments.
#[pyfunction]
pub(crate) fn rename_arguments(py: Python<'_>, kernel: &Bound<'_, Kernel>, names: Names) -> PyResult<Kernel> {
    let kernel = &kernel.get().0;
    failure::run(py, || {
        let pairs: Vec<(&str, &str)> = names.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        Ok(Kernel::new(programs::rename_arguments(kernel, &pairs)?))
    })
}

/// The kernel without parameters and arguments that nothing mentions, and their names.
#[pyfunction]
pub(crate) fn remove_unused_arguments(
    py: Python<'_>,
    kernel: &Bound<'_, Kernel>,
) -> PyResult<(Kernel, Vec<String>)> {
    let kernel = &kernel.get().0;
    failure::run(py, || {
        let (kernel, removed) = programs::remove_unused_arguments(kernel)?;
        Ok((Kernel::new(kernel), removed))
    })
}

/// A count as a formula in the parameters of a kernel.
#[pyclass(frozen, module = "kingpost")]
pub(crate) struct CountFormula(Counted);

#[pymethods]
impl CountFormula {
    /// Whether it is exact; else it is an upper bound, because a condition depends on data.
    #[getter]
    fn exact(&self) -> bool {
        self.0.exact
    }

    /// Why there is no formula; ``None`` if there is one.
    #[getter]
    fn reason(&self) -> Option<&str> {
        self.0.formula.as_ref().err().map(String::as_str)
    }

    /// The count at these parameters.
    #[pyo3(signature = (**params))]
    fn __call__(&self, py: Python<'_>, params: Option<BTreeMap<String, i64>>) -> PyResult<u64> {
        failure::run(py, || {
            let given = params.unwrap_or_default();
            self.0.at(&given).ok_or_else(|| {
                let names: Vec<_> = given.keys().map(|name| format!("`{name}`")).collect();
                let found = if names.is_empty() { "no parameter".to_owned() } else { names.join(", ") };
                let message = format!("`{}` has no value with {found}, needed all its parameters", self.0);
                Failure::new("StatisticsError", message)
            })
        })
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("<kingpost.CountFormula {}>", self.0)
    }
}

type Counts = BTreeMap<String, CountFormula>;

/// Statistics as formulas: operations on reals, operations by kind and type, instances by statement,
/// reads and writes by array, and launches, barriers and those of sub-groups.
#[pyfunction]
#[allow(clippy::type_complexity, reason = "what statistics have")]
pub(crate) fn statistics(
    py: Python<'_>,
    kernel: &Bound<'_, Kernel>,
) -> PyResult<(CountFormula, Vec<(String, String, CountFormula)>, Counts, Counts, Counts, [CountFormula; 3])>
{
    let kernel = &kernel.get().0;
    failure::run(py, || {
        let refused = |e: StatsError| Failure::new("StatisticsError", e.to_string());
        let (found, waits) = (formulas(kernel).map_err(refused)?, synchronisation(kernel).map_err(refused)?);
        let ops = found.ops.into_iter();
        let ops = ops.map(|op| (op.kind.to_string(), op.ty.to_string(), CountFormula(op.count))).collect();
        let instances = found.insns.into_iter().map(|(name, count)| (name, CountFormula(count))).collect();
        let (mut reads, mut writes) = (Counts::new(), Counts::new());
        for var in found.vars {
            reads.insert(var.name.clone(), CountFormula(var.reads));
            writes.insert(var.name, CountFormula(var.writes));
        }
        let waits = [waits.launches, waits.barriers, waits.sub_group_barriers].map(CountFormula);
        Ok((CountFormula(found.flops), ops, instances, reads, writes, waits))
    })
}
