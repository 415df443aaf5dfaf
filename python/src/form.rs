//! Variational forms: lowered, and mapped to devices.

use crate::failure::{self, Failure};
use crate::kernel::Kernel;
use crate::program::device;
use crate::schedule::Engine;
use crate::sparse::{Matrix, matrices};
use kingpost::codegen::Options;
use kingpost::forms::Relowered;
use kingpost::forms::element::CellShape;
use kingpost::forms::import::{Imported, from_json_with};
use kingpost::forms::lowering::{
    LoweredKernel, LoweredRole, LoweringOptions, MatrixResult, TabulatedOptions, VectorResult, lower,
    tabulate,
};
use kingpost::forms::relowered;
use kingpost::forms::strategies::{
    ConstantCells, PointTiles, SingleCell, StagedCells, StagedTiling, SummedCells, strategies,
};
use kingpost::forms::strategy::{Arguments, Question};
use kingpost::forms::tabulated::IntegralType;
use kingpost::kernels::{BakeOff, Operator};
use kingpost::runtime::{Backend, Device};
use kingpost::transforms::Recipe;
use kingpost::tuning::known::{
    Known, Sought, first, for_device, in_any_order, mapped, trials, without_setup,
};
use kingpost::tuning::staged_tilings;
use kingpost::{Mapping, staged_tiling_sizes, transform};
use pyo3::prelude::*;
use std::path::{Path, PathBuf};

/// A kernel of a form after lowering, with the roles of its parts.
#[pyclass(frozen, module = "kingpost._kingpost")]
pub(crate) struct Form {
    lowered: Relowered,
    /// What it runs over, and the numbers of its parts of the mesh.
    name: String,
    /// The name under which known mappings are found; none for imported forms.
    case: Option<String>,
    /// Dimension of its cells.
    dim: usize,
    /// The sparse matrices that it adds to.
    matrices: Vec<Matrix>,
    /// The constants of the form that have components.
    constants: Vec<Constant>,
}

/// A constant: its name, its shape, and the arguments that its components are, row by row.
type Constant = (String, Vec<usize>, Vec<String>);

/// The constants that have components, those that a kernel does not take included.
fn constants(imported: &Imported, kernel: &LoweredKernel) -> Vec<Constant> {
    let with_components = imported.form.constants.iter().enumerate().filter(|(_, c)| !c.shape.is_empty());
    let found = with_components.map(|(place, declared)| {
        let argument = |k: usize| {
            let role = LoweredRole::Constant { constant: place, component: k };
            let taken = kernel.arguments.iter().find(|a| a.role == role);
            taken.map_or_else(|| format!("{}_{k}", declared.name), |a| a.name.clone())
        };
        let components = declared.shape.iter().product();
        (declared.name.clone(), declared.shape.clone(), (0..components).map(argument).collect())
    });
    found.collect()
}

/// What a kernel runs over, and the numbers of its parts of the mesh.
fn over(kernel: &LoweredKernel) -> String {
    let over = match kernel.over {
        IntegralType::Cell => "cells",
        IntegralType::ExteriorFacet => "exterior_facets",
        IntegralType::InteriorFacet => "interior_facets",
    };
    kernel.subdomains.iter().fold(over.to_owned(), |name, number| format!("{name}_{number}"))
}

/// The names of the forms that this package knows.
#[pyfunction]
pub(crate) fn forms() -> Vec<&'static str> {
    Operator::ALL.map(Operator::name).into_iter().chain(BakeOff::ALL.map(BakeOff::name)).collect()
}

/// Forms whose kernels are made from their JSON, as those of forms of UFL.
#[pyfunction]
pub(crate) fn tabulated_forms() -> Vec<&'static str> {
    BakeOff::ALL.map(BakeOff::name).to_vec()
}

/// A form that this package knows: operators on Lagrange elements of affine simplices, bake-off
/// problems on squares and cubes; with the options of its kernel, and the name under which mappings
/// are known.
fn known_form(
    name: &str,
    dim: usize,
    degree: usize,
) -> Result<(kingpost::forms::form::Form, LoweringOptions, Option<String>), Failure> {
    let refused = |e: &dyn std::fmt::Display| Failure::new("FormError", e.to_string());
    if let Ok(problem) = name.parse::<BakeOff>() {
        let cell = match dim {
            2 => CellShape::Quadrilateral,
            3 => CellShape::Hexahedron,
            _ => return Err(refused(&format!("dim is {dim}: needed 2 or 3"))),
        };
        return Ok((
            problem.action_on(cell, degree),
            LoweringOptions::new(format!("{name}_{dim}d_q{degree}")),
            None,
        ));
    }
    let operator: Operator = name.parse().map_err(|e| refused(&e))?;
    let form = operator.form(dim, degree).map_err(|e| refused(&e))?;
    Ok((
        form,
        LoweringOptions::new(operator.kernel_name(dim, degree)),
        Some(operator.action_name(dim, degree)),
    ))
}

/// The JSON of a form that this package knows.
#[pyfunction]
pub(crate) fn form_json(py: Python<'_>, name: &str, dim: usize, degree: usize) -> PyResult<String> {
    failure::run(py, || {
        let refused = |e: &dyn std::fmt::Display| Failure::new("FormError", e.to_string());
        let (form, options, _) = known_form(name, dim, degree)?;
        tabulate(&form, &options).map_err(|e| refused(&e))?.to_json().map_err(|e| refused(&e))
    })
}

/// A mapped kernel: its schedule, the mapping as JSON, and in words.
type Mapped = (Engine, String, String);

#[pymethods]
impl Form {
    /// A form that is known by name.
    #[staticmethod]
    fn named(py: Python<'_>, name: &str, dim: usize, degree: usize) -> PyResult<Self> {
        failure::run(py, || {
            let (form, options, case) = known_form(name, dim, degree)?;
            let lowered = lower(&form, &options).map_err(|e| Failure::new("FormError", e.to_string()))?;
            let (matrices, constants) = (Vec::new(), Vec::new());
            Ok(Self { lowered: Box::new(lowered), name: "cells".into(), case, dim, matrices, constants })
        })
    }

    /// The kernels of a form in JSON: one a kind of entity and part of the mesh.
    /// `position_width` is the number of components of an entry of the positions, if it has more
    /// than space has dimensions; `matrix` is what bilinear forms become: `cells`, `diagonal` or
    /// `sparse`; `vector` what linear forms become: `assembled` or `cells`. The coefficients of
    /// `cell_values` are given cell by cell.
    #[staticmethod]
    #[pyo3(signature = (text, position_width=None, matrix="cells", vector="assembled", cell_values=Vec::new()))]
    fn json(
        py: Python<'_>,
        text: &str,
        position_width: Option<usize>,
        matrix: &str,
        vector: &str,
        cell_values: Vec<String>,
    ) -> PyResult<Vec<Self>> {
        failure::run(py, || {
            let of = matrix;
            let matrix = match matrix {
                "cells" => MatrixResult::Cells,
                "diagonal" => MatrixResult::Diagonal,
                "sparse" => MatrixResult::Sparse,
                other => {
                    let message = format!("matrix=`{other}`: needed `cells`, `diagonal` or `sparse`");
                    return Err(Failure::new("FormError", message));
                }
            };
            let vector = vector_result(vector)?;
            let cell_values = cell_values.into_iter().collect();
            let options = TabulatedOptions {
                position_width,
                matrix,
                vector,
                cell_values,
                ..TabulatedOptions::default()
            };
            let form =
                from_json_with(text, &options).map_err(|e| Failure::new("FormError", e.to_string()))?;
            if vector == VectorResult::Entities && form.form.rank != 1 {
                let found = if form.form.rank == 0 { "a functional" } else { "a bilinear form" };
                let message = format!("vector=`cells` is for linear forms, found {found}; leave it out");
                return Err(Failure::new("FormError", message));
            }
            if matrix != MatrixResult::Cells && form.form.rank != 2 {
                let found = if form.form.rank == 0 { "a functional" } else { "a linear form" };
                let message = format!("matrix=`{of}` is for bilinear forms, found {found}; leave it out");
                return Err(Failure::new("FormError", message));
            }
            let dim = form.form.cell.dim();
            let own = |k: &LoweredKernel| {
                let (matrices, constants) = (matrices(&form, k), constants(&form, k));
                Self { lowered: Box::new(k.clone()), name: over(k), case: None, dim, matrices, constants }
            };
            Ok(form.kernels.iter().map(own).collect())
        })
    }

    /// What it runs over, and the numbers of its parts of the mesh.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// The sparse matrices that it adds to.
    #[getter]
    fn matrices(&self) -> Vec<Matrix> {
        self.matrices.clone()
    }

    /// The constants of the form that have components: name, shape, and the arguments that they are.
    #[getter]
    fn constants(&self) -> Vec<Constant> {
        self.constants.clone()
    }

    /// The degrees of freedom of a cell on vertices, edges, faces and in the interior, as far as there
    /// are any; none where the form does not say so.
    #[getter]
    fn entity_parts(&self) -> Option<Vec<u64>> {
        self.lowered.entity_parts()
    }

    /// The kernel before any step.
    #[getter]
    fn kernel(&self) -> Kernel {
        Kernel::new(self.lowered.kernel().clone())
    }

    /// Mapped as asked for, or else by the first known mapping that the device can hold; trials are
    /// those of the database in a file. The schedule starts from the kernel that the mapping lowers.
    /// Where numbers are `by_dimension`, known mappings keep their transfers in parts.
    #[pyo3(signature = (device_name, mapping=None, database=None, by_dimension=false))]
    fn map(
        &self,
        py: Python<'_>,
        device_name: &str,
        mapping: Option<&str>,
        database: Option<PathBuf>,
        by_dimension: bool,
    ) -> PyResult<Mapped> {
        failure::run(py, || {
            if let Some(text) = mapping {
                let mapping: Mapping = serde_json::from_str(text).map_err(|e| {
                    let needed = "needed one such as {\"strategy\": \"single_cell\", \"cells\": 32}";
                    Failure::new("MappingError", format!("mapping {text}: {e}; {needed}"))
                })?;
                let (_, recipe) = transform(&*self.lowered, &mapping).map_err(refused)?;
                return self.described(&recipe, &mapping, mapping.to_string());
            }
            self.best_known(&*device(device_name)?, database.as_deref(), by_dimension)
        })
    }

    /// Mappings to try on a device, as JSON.
    fn candidates(&self, py: Python<'_>, device_name: &str) -> PyResult<Vec<String>> {
        failure::run(py, || {
            let device = device(device_name)?;
            let known = for_device(&*self.lowered, self.sought(), &*device, &[]);
            let mut all = vec![Mapping::single_cell()];
            // as they are for numbers by dimension, and for any others
            let usable = known.iter().filter(|k| !k.mapping.needs().setup);
            all.extend(usable.map(|k| k.mapping.clone()));
            all.extend(without_setup(known).into_iter().map(|k| k.mapping));
            let (form, local_bytes) = (&*self.lowered, device.info().local_mem_bytes);
            let is_card = device.info().backend == Backend::Cuda;
            let question = Question { is_card, local_bytes, ..Question::of(form) };
            let quick = strategies().rows().filter(|row| QUICK.contains(&row.name));
            all.extend(quick.flat_map(|row| row.candidates(&question)));
            if device.info().backend == Backend::Cuda
                && let Ok(sizes) = staged_tiling_sizes(&*self.lowered)
            {
                let tilings = staged_tilings(&sizes, device.info().local_mem_bytes).take(STAGED);
                all.extend(tilings.map(|p| Mapping::from(StagedTiling(p))));
            }
            let mut json: Vec<String> = Vec::new();
            for mapping in all {
                let text = serde_json::to_string(&mapping).map_err(internal)?;
                if !json.contains(&text) {
                    json.push(text);
                }
            }
            Ok(json)
        })
    }
}

/// Strategies of which everything is tried that they say.
const QUICK: [&str; 5] =
    [SingleCell::NAME, ConstantCells::NAME, StagedCells::NAME, PointTiles::NAME, SummedCells::NAME];

/// Most staged tilings that are tried.
const STAGED: usize = 5;

fn vector_result(vector: &str) -> Result<VectorResult, Failure> {
    match vector {
        "assembled" => Ok(VectorResult::Assembled),
        "cells" => Ok(VectorResult::Entities),
        other => Err(Failure::new("FormError", format!("vector=`{other}`: needed `assembled` or `cells`"))),
    }
}

fn refused(error: impl std::fmt::Display) -> Failure {
    Failure::new("MappingError", error.to_string())
}

fn internal(error: impl std::fmt::Display) -> Failure {
    Failure::new("InternalError", error.to_string())
}

impl Form {
    fn sought(&self) -> Sought<'_> {
        Sought { case: self.case.as_deref(), dim: self.dim }
    }

    fn best_known(
        &self,
        device: &dyn Device,
        database: Option<&Path>,
        by_dimension: bool,
    ) -> Result<Mapped, Failure> {
        let records = trials(database).map_err(refused)?;
        let mut candidates = for_device(&*self.lowered, self.sought(), device, &records);
        // every call may come with another mesh
        candidates.retain(|known| !known.mapping.needs().setup);
        if !by_dimension {
            candidates = in_any_order(candidates);
        }
        let attempt = |known: &Known| {
            mapped(&*self.lowered, &known.mapping, device.info(), &Options::default()).map_err(refused)
        };
        let (Known { mapping, source }, (_, recipe, _)) = first(candidates, attempt)?;
        self.described(&recipe, &mapping, format!("{mapping} ({source})"))
    }

    /// The schedule of a recipe from the kernel that it starts from, which need not be that of the form.
    fn described(&self, recipe: &Recipe, mapping: &Mapping, words: String) -> Result<Mapped, Failure> {
        let json = serde_json::to_string(mapping).map_err(internal)?;
        let start = match relowered(&*self.lowered, &recipe.lowering).map_err(internal)? {
            Some(lowered) => lowered.kernel().clone(),
            None => self.lowered.kernel().clone(),
        };
        Ok((Engine::replayed(start, recipe)?, json, words))
    }
}
