//! Variational forms: lowered, and mapped to devices.

use crate::failure::{self, Failure};
use crate::kernel::Kernel;
use crate::program::device;
use purlin::autotune::Candidate;
use purlin::forms::import::from_json_with;
use purlin::forms::lowering::{LoweredForm, LoweredKernel, LoweringOptions, TabulatedOptions, lower};
use purlin::forms::tabulated::IntegralType;
use purlin::ir;
use purlin::kernels::Operator;
use purlin::runtime::DeviceInfo;
use purlin::transforms::schedule::print;
use purlin::tuning::known::{Known, known};
use purlin::{Mapping, transform};
use pyo3::prelude::*;
use std::sync::Arc;

/// A kernel of a form after lowering, with the roles of its parts.
#[pyclass(frozen, module = "purlin._purlin")]
pub(crate) struct Form {
    lowered: Lowered,
    /// The name under which known mappings are found; none for imported forms.
    case: String,
}

/// A kernel of a form that is known by name, or of one that was imported.
enum Lowered {
    Named(Box<LoweredForm>),
    Imported(Box<LoweredKernel>),
}

impl Lowered {
    fn kernel(&self) -> &ir::Kernel {
        match self {
            Self::Named(form) => &form.kernel,
            Self::Imported(kernel) => &kernel.kernel,
        }
    }
}

/// The names of the forms that this package knows.
#[pyfunction]
pub(crate) fn forms() -> Vec<&'static str> {
    Operator::ALL.map(Operator::name).to_vec()
}

/// A mapped kernel: the kernel, its recipe as text, the mapping as JSON, and in words.
type Mapped = (Kernel, String, String, String);

#[pymethods]
impl Form {
    /// A form that is known by name, on Lagrange elements of affine simplices.
    #[staticmethod]
    fn named(py: Python<'_>, name: &str, dim: usize, degree: usize) -> PyResult<Self> {
        failure::run(py, || {
            let refused = |e: &dyn std::fmt::Display| Failure::new("FormError", e.to_string());
            let operator: Operator = name.parse().map_err(|e| refused(&e))?;
            let form = operator.form(dim, degree).map_err(|e| refused(&e))?;
            let options = LoweringOptions::new(operator.kernel_name(dim, degree));
            let lowered = lower(&form, &options).map_err(|e| refused(&e))?;
            Ok(Self { lowered: Lowered::Named(Box::new(lowered)), case: operator.action_name(dim, degree) })
        })
    }

    /// The kernels of a form in JSON: one a kind of entity and part of the mesh.
    /// `position_width` is the number of components of an entry of the positions, if it has more
    /// than space has dimensions.
    #[staticmethod]
    #[pyo3(signature = (text, position_width=None))]
    fn json(py: Python<'_>, text: &str, position_width: Option<usize>) -> PyResult<Vec<Self>> {
        failure::run(py, || {
            let options = TabulatedOptions { position_width, ..TabulatedOptions::default() };
            let form =
                from_json_with(text, &options).map_err(|e| Failure::new("FormError", e.to_string()))?;
            let kernels = form.kernels.into_iter();
            Ok(kernels
                .map(|k| Self { lowered: Lowered::Imported(Box::new(k)), case: String::new() })
                .collect())
        })
    }

    /// What it runs over, and the numbers of its parts of the mesh.
    #[getter]
    fn name(&self) -> String {
        let Lowered::Imported(kernel) = &self.lowered else { return "cells".into() };
        let over = match kernel.over {
            IntegralType::Cell => "cells",
            IntegralType::ExteriorFacet => "exterior_facets",
            IntegralType::InteriorFacet => "interior_facets",
        };
        kernel.subdomains.iter().fold(over.to_owned(), |name, number| format!("{name}_{number}"))
    }

    /// The kernel before any step.
    #[getter]
    fn kernel(&self) -> Kernel {
        Kernel::new(self.lowered.kernel().clone())
    }

    /// Mapped as asked for, or else by the first known mapping that the device can hold.
    #[pyo3(signature = (device_name, mapping=None))]
    fn map(&self, py: Python<'_>, device_name: &str, mapping: Option<&str>) -> PyResult<Mapped> {
        failure::run(py, || {
            if let Some(text) = mapping {
                let mapping = serde_json::from_str(text).map_err(|e| {
                    Failure::new("MappingError", format!("mapping {text}: {e}; see Op.candidates()"))
                })?;
                return self.mapped(&mapping, mapping_words(&mapping));
            }
            let device = device(device_name)?;
            self.best_known(device.info())
        })
    }

    /// Mappings to try on a device, as JSON.
    fn candidates(&self, py: Python<'_>, device_name: &str) -> PyResult<Vec<String>> {
        failure::run(py, || {
            device(device_name)?;
            let all = [Candidate::single_cell()]
                .into_iter()
                .chain(Candidate::beyond_single_cell(table_bytes(self.lowered.kernel())));
            let json = |c: Candidate| serde_json::to_string(&c.parameters).ok();
            let mut all: Vec<String> = all.filter_map(json).collect();
            all.dedup();
            Ok(all)
        })
    }
}

fn mapping_words(mapping: &Mapping) -> String {
    mapping.to_string()
}

/// Bytes of all tables of a kernel.
fn table_bytes(kernel: &ir::Kernel) -> u64 {
    let bytes = |var: &ir::Variable| match &var.kind {
        ir::VarKind::Table(data) => data.len() as u64 * var.ty.bytes(),
        ir::VarKind::Param | ir::VarKind::Argument(_) | ir::VarKind::Temporary => 0,
    };
    kernel.vars.values().map(bytes).sum()
}

impl Form {
    fn mapped(&self, mapping: &Mapping, words: String) -> Result<Mapped, Failure> {
        let mapped = match &self.lowered {
            Lowered::Named(form) => transform(&**form, mapping),
            Lowered::Imported(kernel) => transform(&**kernel, mapping),
        };
        let (kernel, recipe) = mapped.map_err(|e| Failure::new("MappingError", e.to_string()))?;
        let json =
            serde_json::to_string(mapping).map_err(|e| Failure::new("InternalError", e.to_string()))?;
        Ok((Kernel(Arc::new(kernel)), print(&recipe), json, words))
    }

    fn best_known(&self, info: &DeviceInfo) -> Result<Mapped, Failure> {
        let mut refused = Failure::new("InternalError", "this is a bug of purlin: no mapping to try");
        for Known { mapping, source } in known(&self.case, self.lowered.kernel(), info, &[]) {
            match self.mapped(&mapping, format!("{mapping} ({source})")) {
                Ok(mapped) => return Ok(mapped),
                Err(why) => refused = why,
            }
        }
        Err(refused)
    }
}
