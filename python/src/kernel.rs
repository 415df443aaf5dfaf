//! Kernels.

use crate::failure::{self, Failure};
use kingpost::ir;
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// A kernel: one complete loop program with one meaning. It never changes.
#[pyclass(frozen, module = "kingpost")]
#[derive(Clone)]
pub(crate) struct Kernel(pub(crate) Arc<ir::Kernel>);

impl Kernel {
    pub(crate) fn new(kernel: ir::Kernel) -> Self {
        Self(Arc::new(kernel))
    }
}

#[pymethods]
impl Kernel {
    /// Reads the text of a kernel. With ``types``, arguments whose declarations have no type take
    /// theirs from there.
    #[staticmethod]
    #[pyo3(signature = (text, types=None))]
    fn parse(py: Python<'_>, text: &str, types: Option<BTreeMap<String, String>>) -> PyResult<Self> {
        failure::run(py, || {
            let Some(types) = types else { return Ok(Self::new(ir::text::parse(text)?)) };
            let types = types.iter().map(|(name, ty)| Ok((name.clone(), scalar_type(ty)?)));
            let types = types.collect::<Result<_, Failure>>()?;
            Ok(Self::new(ir::text::parse_typed(text, &types)?))
        })
    }

    /// Reads all kernels of a text.
    #[staticmethod]
    fn parse_all(py: Python<'_>, text: &str) -> PyResult<Vec<Self>> {
        failure::run(py, || Ok(ir::text::parse_all(text)?.into_iter().map(Self::new).collect()))
    }

    /// The name.
    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    /// A hash of the content, the same in every process.
    #[getter]
    fn content_hash(&self) -> String {
        self.0.content_hash()
    }

    /// The loops, in the order of their declaration.
    #[getter]
    fn loops(&self) -> Vec<&str> {
        self.0.inames.values().map(|iname| iname.name.as_str()).collect()
    }

    /// The instructions, in the order of their declaration.
    #[getter]
    fn statements(&self) -> Vec<&str> {
        self.0.insns.values().map(|insn| insn.name.as_str()).collect()
    }

    /// The parameters, arguments, temporaries and tables.
    #[getter]
    fn variables(&self) -> Vec<&str> {
        self.0.vars.values().map(|var| var.name.as_str()).collect()
    }

    /// How many work-items a sub-group has.
    #[getter]
    fn sub_group(&self) -> u32 {
        self.0.sub_group.width()
    }

    /// The laws of each declared operator, and whether they are proved or sampled.
    #[getter]
    fn laws(&self) -> BTreeMap<&'static str, (Vec<&'static str>, String)> {
        let operators = self.0.declared().operators.into_iter();
        let row = |op: ir::NamedOperator| {
            (op.name(), (op.laws.iter().map(|law| law.name()).collect(), op.proof().to_string()))
        };
        operators.map(row).collect()
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("<kingpost.Kernel {}>", self.0.name)
    }

    /// For notebooks.
    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        py.import("kingpost.show")?.call_method1("highlighted", (self.0.to_string(), "kingpost"))?.extract()
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| other.get().0 == self.0)
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.0.hash(&mut hasher);
        hasher.finish()
    }

    fn __reduce__(&self, py: Python<'_>) -> PyResult<(Py<PyAny>, (String,))> {
        let parse = py.get_type::<Self>().getattr("parse")?;
        Ok((parse.unbind(), (self.0.to_string(),)))
    }
}

/// The type of this name.
fn scalar_type(name: &str) -> Result<ir::ScalarType, Failure> {
    let found = ir::ScalarType::ALL.into_iter().find(|ty| ty.name() == name);
    found.ok_or_else(|| Failure::new("DtypeError", format!("`{name}` is no type, needed one such as `f64`")))
}

impl From<ir::KernelError> for Failure {
    fn from(error: ir::KernelError) -> Self {
        Self::new("TextError", error.to_string())
    }
}
