//! Forms from other front ends, such as UFL, by the JSON of [`tabulated`](crate::tabulated).
//!
//! ```
//! let text = r#"{
//!   "kingpost_form": 1, "name": "mass", "cell": "interval", "gdim": 1, "rank": 1,
//!   "spaces": [{ "name": "x", "columns": 2, "block": 1 },
//!              { "name": "p1", "columns": 2, "block": 1 }],
//!   "functions": [{ "name": "x", "role": "coordinates", "space": 0 },
//!                 { "name": "u", "role": "coefficient", "space": 1 }],
//!   "constants": [],
//!   "outputs": [{ "name": "y", "spaces": [1] }],
//!   "integrals": [{
//!     "type": "cell", "subdomains": [], "points": [[0.5]], "weights": [1.0],
//!     "tables": [{ "name": "p1", "values": [[0.5, 0.5]] },
//!                { "name": "p1_d0", "values": [[-1, 1]] }],
//!     "evaluations": [{ "function": 0, "table": 1, "name": "x_d0" },
//!                     { "function": 1, "table": 0, "name": "u_q" }],
//!     "nodes": [["evaluation", 0], ["math", "abs", 0], ["weight"], ["multiply", 1, 2],
//!               ["evaluation", 1], ["multiply", 3, 4]],
//!     "terms": [{ "output": 0, "factor": 5, "arguments": [{ "table": 0 }] }]
//!   }]
//! }"#;
//! let form = kingpost_forms::import::from_json(text)?;
//! let names: Vec<&str> = form.kernels[0].arguments.iter().map(|a| a.name.as_str()).collect();
//! assert_eq!(names, ["n_cells", "n_x", "n_p1", "y", "x", "x_dofs", "p1_dofs", "u"]);
//! # Ok::<(), kingpost_forms::tabulated::TabulatedError>(())
//! ```

mod bind;
mod bytes;
mod entities;
mod inputs;

pub use crate::array::Array;
pub use bind::Given;
pub use inputs::MeshInputs;

use crate::lowering::{LoweredKernel, TabulatedOptions, lower_tabulated};
use crate::tabulated::{TabulatedError, TabulatedForm};
use kingpost_fem::sparse::{CsrPart, CsrPattern};

/// A form that was read and lowered.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The form.
    pub form: TabulatedForm,
    /// Its kernels: one a kind of entity and part of the mesh.
    pub kernels: Vec<LoweredKernel>,
}

/// Reads and lowers a form.
///
/// # Errors
/// A text that is not of the format, parts that do not fit each other, what has no kernel.
pub fn from_json(text: &str) -> Result<Imported, TabulatedError> {
    from_json_with(text, &TabulatedOptions::default())
}

/// Reads a form and lowers it with options.
///
/// # Errors
/// As [`from_json`].
pub fn from_json_with(text: &str, options: &TabulatedOptions) -> Result<Imported, TabulatedError> {
    Imported::new(TabulatedForm::from_json(text)?, options)
}

impl Imported {
    /// Checks and lowers a form.
    ///
    /// # Errors
    /// As [`from_json`].
    pub fn new(form: TabulatedForm, options: &TabulatedOptions) -> Result<Self, TabulatedError> {
        form.validate()?;
        if let Some(width) = options.position_width
            && width < form.gdim
        {
            let needed = format!("at least {}, the dimension of space", form.gdim);
            return Err(TabulatedError::invalid("position_width", width, needed));
        }
        let kernels = lower_tabulated(&form, options)?;
        Ok(Self { form, kernels })
    }
}

impl TabulatedForm {
    /// The pattern of a matrix over cells, from the maps `[cells, columns]` of its test and trial
    /// spaces and the numbers of their degrees of freedom.
    ///
    /// # Errors
    /// As [`CsrPattern::of_components`], or an output that is no matrix.
    pub fn pattern(
        &self,
        output: usize,
        [rows, columns]: [&[i32]; 2],
        sizes: [usize; 2],
    ) -> Result<CsrPattern, TabulatedError> {
        let Some([test, trial]) = self.outputs.get(output).map(|o| &o.spaces[..]) else {
            return Err(TabulatedError::invalid("output", output, "the place of a bilinear form"));
        };
        let [test, trial] = [&self.spaces[*test], &self.spaces[*trial]];
        let part = CsrPart { extents: [test.columns, trial.columns], rows, columns };
        Ok(CsrPattern::of_part(sizes, [test.block, trial.block], part)?)
    }
}
