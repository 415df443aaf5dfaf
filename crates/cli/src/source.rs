//! What a command works on: a form by name or a kernel in a file.

use super::failure::Failure;
use super::text_file::{read, section};
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use kingpost::forms::Relowered;
use kingpost::forms::element::CellShape;
use kingpost::forms::element::Nodes;
use kingpost::forms::form::Form;
use kingpost::forms::import::{self, Imported};
use kingpost::forms::lowering::{
    LoweredForm, LoweringOptions, MatrixResult, TabulatedOptions, lower, tabulate,
};
use kingpost::forms::quadrature::QuadratureScheme;
use kingpost::forms::tabulated::TabulatedError;
use kingpost::ir::{Kernel, text};
use kingpost::kernels::{BakeOff, Operator, TensorProduct};
use kingpost::transforms::Script;
use kingpost::transforms::steps;
use std::path::Path;

/// A form or a file.
#[derive(Args, Clone)]
pub struct SourceArgs {
    /// A form by name (mass, helmholtz, laplace, elasticity, hyperelasticity), the sparse matrix of
    /// one (mass-matrix), a bake-off problem on hexahedra (bp1 to bp6; screened: bp30, bp35), a
    /// .kingpost file, which may end with its schedule, or the .json file of an exported form
    /// (`FORM.json#KERNEL`, `FILE.kingpost#KERNEL` for one of its kernels)
    #[arg(value_name = "WHAT")]
    pub what: String,
    #[command(flatten)]
    options: FormOptions,
}

/// What a form is lowered with.
#[derive(Args, Clone)]
pub struct FormOptions {
    /// Dimension of the cells of a form: 2 for triangles, 3 for tetrahedra [default: 3]
    #[arg(long, value_parser = clap::value_parser!(u8).range(2..=3), conflicts_with = "cell")]
    dim: Option<u8>,
    /// Cells of other shapes; the form then goes the way of an exported one, and takes the same
    /// options
    #[arg(long, value_enum)]
    cell: Option<Cell>,
    /// Polynomial degree of a form's elements: 1 to 8 on triangles, 1 to 6 on tetrahedra [default:
    /// 2]
    #[arg(long)]
    degree: Option<usize>,
    /// Quadrature rules of a form [default: default]
    #[arg(long, value_enum)]
    scheme: Option<Scheme>,
    /// What a bilinear form becomes [default: cells for a .json file, sparse for a form by name]
    #[arg(long, value_enum)]
    matrix: Option<Matrix>,
    /// A kernel for each sub-element of the result of a form of a .json file, which all strategies
    /// take
    #[arg(long)]
    split_results: bool,
}

/// Cells that are no triangles or tetrahedra.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Cell {
    /// Cells of one dimension
    Interval,
    /// Bilinear cells of two dimensions
    Quadrilateral,
    /// Trilinear cells of three dimensions
    Hexahedron,
    /// Triangles times intervals, of degree 1 or 2
    Prism,
    /// Squares with an apex, of degree 1 or 2
    Pyramid,
}

impl From<Cell> for CellShape {
    fn from(cell: Cell) -> Self {
        match cell {
            Cell::Interval => Self::Interval,
            Cell::Quadrilateral => Self::Quadrilateral,
            Cell::Hexahedron => Self::Hexahedron,
            Cell::Prism => Self::Prism,
            Cell::Pyramid => Self::Pyramid,
        }
    }
}

/// What a bilinear form becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Matrix {
    /// The matrix of each cell or facet
    Cells,
    /// The diagonal of the assembled matrix
    Diagonal,
    /// The entries of a sparse matrix
    Sparse,
}

impl FormOptions {
    /// How a form of a file is lowered.
    fn tabulated(&self) -> TabulatedOptions {
        let matrix = match self.matrix {
            None | Some(Matrix::Cells) => MatrixResult::Cells,
            Some(Matrix::Diagonal) => MatrixResult::Diagonal,
            Some(Matrix::Sparse) => MatrixResult::Sparse,
        };
        TabulatedOptions { matrix, split_results: self.split_results, ..TabulatedOptions::default() }
    }
}

/// Which quadrature rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Scheme {
    /// The fewest points of each degree
    Default,
    /// Rules of Xiao & Gimbutas 2010, as Kulkarni & Klöckner 2025 has them
    #[value(alias = "document")]
    XiaoGimbutas,
}

impl From<Scheme> for QuadratureScheme {
    fn from(scheme: Scheme) -> Self {
        match scheme {
            Scheme::Default => Self::Default,
            Scheme::XiaoGimbutas => Self::XiaoGimbutas,
        }
    }
}

impl std::fmt::Display for Scheme {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Default => "default",
            Self::XiaoGimbutas => "xiao-gimbutas",
        })
    }
}

/// A form or a kernel.
pub enum Source {
    /// A form that is known by name.
    Form(FormSource),
    /// A kernel from a file.
    File(Box<FileSource>),
}

/// A kernel from a file, and the schedule after it.
pub struct FileSource {
    /// The kernel.
    pub kernel: Kernel,
    /// Its schedule, if the file has one.
    pub script: Option<Script>,
    /// The form that the kernel is of, if the file holds one.
    pub form: Option<ImportedKernel>,
}

/// A kernel of an imported form.
#[derive(Clone)]
pub struct ImportedKernel {
    /// The form.
    pub form: Imported,
    /// Place of the kernel.
    pub place: usize,
}

/// A form with its discretisation.
#[derive(Clone, Copy)]
pub struct FormSource {
    /// The operator.
    pub operator: Operator,
    /// Dimension of the cells.
    pub dim: usize,
    /// Polynomial degree.
    pub degree: usize,
    /// Quadrature scheme.
    pub scheme: Scheme,
}

impl SourceArgs {
    /// Finds the form or reads the file.
    pub fn source(&self) -> Result<Source, Failure> {
        self.options.source(&self.what)
    }

    /// What was given, as a command line has it.
    pub fn given(&self) -> String {
        format!("{}{}", self.what, self.options.given())
    }
}

impl FormOptions {
    /// The form of that name, or the kernel of that file.
    pub fn source(&self, what: &str) -> Result<Source, Failure> {
        if is_file(what) {
            self.refuse_for_file(what)?;
            let file = if is_json(what) { read_form(what, &self.tabulated())? } else { read_file(what)? };
            return Ok(Source::File(Box::new(file)));
        }
        match self.by_tables(what)? {
            Some(form) => Ok(Source::File(Box::new(form.file()?))),
            None => Ok(Source::Form(self.form(what)?)),
        }
    }

    /// The form of that name, if it is one that goes by way of its tables.
    pub fn by_tables(&self, what: &str) -> Result<Option<FormByTables>, Failure> {
        if let Some(problem) = Benchmark::named(what) {
            return self.benchmark(problem).map(Some);
        }
        if let Some(name) = what.strip_suffix(MATRIX) {
            return Ok(Some(self.matrix_of(operator(name)?)));
        }
        self.cell.map(|cell| Ok(self.form_on(operator(what)?, cell.into()))).transpose()
    }

    /// The form of that name on triangles or tetrahedra.
    fn form(&self, what: &str) -> Result<FormSource, Failure> {
        let operator = operator(what)?;
        refuse(&self.of_exported(), || {
            format!("`{what}` is an action by name, which has one result and no matrix; leave it out")
        })?;
        let dim = self.dim.unwrap_or(3).into();
        Ok(FormSource { operator, dim, degree: self.degree(), scheme: self.scheme() })
    }

    /// The options that were given, as a command line has them.
    pub fn given(&self) -> String {
        let name = |value: Option<PossibleValue>| value.map(|v| v.get_name().to_owned());
        let options = [
            ("--dim", self.dim.map(|dim| dim.to_string())),
            ("--cell", self.cell.and_then(|cell| name(cell.to_possible_value()))),
            ("--degree", self.degree.map(|degree| degree.to_string())),
            ("--scheme", self.scheme.map(|scheme| scheme.to_string())),
            ("--matrix", self.matrix.and_then(|matrix| name(matrix.to_possible_value()))),
        ];
        let given = options.into_iter().filter_map(|(option, value)| Some(format!(" {option} {}", value?)));
        given.chain(self.split_results.then(|| " --split-results".into())).collect()
    }

    fn degree(&self) -> usize {
        self.degree.unwrap_or(2)
    }

    fn scheme(&self) -> Scheme {
        self.scheme.unwrap_or(Scheme::Default)
    }

    /// Options of exported forms alone, and whether they are given.
    fn of_exported(&self) -> [(&'static str, bool); 2] {
        [("--matrix", self.matrix.is_some()), ("--split-results", self.split_results)]
    }

    /// Refuses what a file decides.
    fn refuse_for_file(&self, what: &str) -> Result<(), Failure> {
        let of_name = [
            ("--cell", self.cell.is_some()),
            ("--dim", self.dim.is_some()),
            ("--degree", self.degree.is_some()),
            ("--scheme", self.scheme.is_some()),
        ];
        if is_json(what) {
            return refuse(&of_name, || {
                format!(
                    "`{what}` is an exported form, which has its cells, elements and quadrature rules; leave it out, \
                     or export the form with others"
                )
            });
        }
        refuse(&[&of_name[..], &self.of_exported()].concat(), || {
            format!("`{what}` is a kernel, which stays what it is; leave it out, or name a form")
        })
    }

    /// An operator on cells of a shape, by way of its tables.
    fn form_on(&self, operator: Operator, cell: CellShape) -> FormByTables {
        let form = operator.action_on(&operator.space_on(cell, self.degree()));
        let name = format!("{operator}_{cell}_q{}", self.degree());
        self.tables_of(form, LoweringOptions::new(name).with_scheme(self.scheme().into()))
    }

    /// The matrix of an operator, by way of its tables: a sparse one if nothing else is asked for.
    fn matrix_of(&self, operator: Operator) -> FormByTables {
        let cell = match (self.cell, self.dim) {
            (Some(cell), _) => cell.into(),
            (None, Some(2)) => CellShape::Triangle,
            (None, _) => CellShape::Tetrahedron,
        };
        let form = operator.bilinear_on(&operator.space_on(cell, self.degree()));
        let name = format!("{operator}_matrix_{cell}_p{}", self.degree());
        let options = Self { matrix: self.matrix.or(Some(Matrix::Sparse)), ..self.clone() };
        options.tables_of(form, LoweringOptions::new(name).with_scheme(self.scheme().into()))
    }

    /// A benchmark problem, on hexahedra or on quadrilaterals.
    fn benchmark(&self, problem: Benchmark) -> Result<FormByTables, Failure> {
        let given = [("--dim", self.dim.is_some()), ("--scheme", self.scheme.is_some())];
        refuse(&given, || {
            format!(
                "`{problem}` has the points of its own, on hexahedra or with --cell quadrilateral; leave it out"
            )
        })?;
        let cell = match self.cell {
            None | Some(Cell::Hexahedron) => CellShape::Hexahedron,
            Some(Cell::Quadrilateral) => CellShape::Quadrilateral,
            Some(Cell::Interval | Cell::Prism | Cell::Pyramid) => {
                return Err(Failure::Usage(format!(
                    "--cell: `{problem}` is on hexahedra or quadrilaterals; leave it out"
                )));
            }
        };
        let name = format!("{problem}_{cell}_q{}", self.degree());
        Ok(self.tables_of(problem.action_on(cell, self.degree()), LoweringOptions::new(name)))
    }

    fn tables_of(&self, form: Form, lowering: LoweringOptions) -> FormByTables {
        FormByTables { form, lowering, options: self.tabulated() }
    }
}

/// A form by name that is lowered by way of its tables, as an exported one.
pub struct FormByTables {
    /// The form.
    pub form: Form,
    lowering: LoweringOptions,
    options: TabulatedOptions,
}

impl FormByTables {
    /// Its kernels.
    pub fn file(&self) -> Result<FileSource, Failure> {
        let tabulated = tabulate(&self.form, &self.lowering)?;
        let form = Imported::new(tabulated, &self.options).map_err(|e| Failure::Usage(e.to_string()))?;
        Ok(FileSource::of_form(form, 0))
    }
}

/// A problem that has cells and points of its own.
#[derive(Clone, Copy)]
enum Benchmark {
    /// Of Fischer et al. 2020.
    BakeOff(BakeOff),
    /// Of Świrydowicz et al. 2019.
    TensorProduct(TensorProduct),
}

impl Benchmark {
    /// The one of that name.
    fn named(what: &str) -> Option<Self> {
        let bake_off = what.parse().ok().map(Self::BakeOff);
        bake_off.or_else(|| what.parse().ok().map(Self::TensorProduct))
    }

    fn action_on(self, cell: CellShape, degree: usize) -> Form {
        match self {
            Self::BakeOff(problem) => problem.action_on(cell, degree),
            Self::TensorProduct(problem) => problem.action_on(cell, degree),
        }
    }
}

impl std::fmt::Display for Benchmark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::BakeOff(problem) => problem.fmt(f),
            Self::TensorProduct(problem) => problem.fmt(f),
        }
    }
}

/// What the name of the matrix of a form ends with.
const MATRIX: &str = "-matrix";

/// Refuses the first option that is given.
fn refuse(options: &[(&str, bool)], why: impl FnOnce() -> String) -> Result<(), Failure> {
    match options.iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => Err(Failure::Usage(format!("{option}: {}", why()))),
        None => Ok(()),
    }
}

/// The operator of that name.
fn operator(what: &str) -> Result<Operator, Failure> {
    let there = Path::new(what);
    if there.exists() {
        let found = if there.is_dir() { "is a folder" } else { "does not end in `.kingpost` or `.json`" };
        return Err(Failure::Usage(format!(
            "`{what}` {found}; a kernel is a text file whose name ends in `.kingpost`, and an imported form one that \
             ends in `.json`"
        )));
    }
    what.parse::<Operator>().map_err(|error| {
        let names = Operator::ALL.map(Operator::name);
        let hint = nearest(what, &names).map(|n| format!("; did you mean `{n}`?"));
        let others = ", on hexahedra `bp1` to `bp6`, `bp10`, `bp30`, `bp35`, and matrices such as \
                      `mass-matrix`; a file has to end in `.kingpost` or `.json`";
        Failure::Usage(format!("{error}{}", hint.as_deref().unwrap_or(others)))
    })
}

impl Source {
    /// The kernel, before any transformation.
    pub fn kernel(&self) -> Result<Kernel, Failure> {
        Ok(self.lower()?.kernel().clone())
    }

    /// The kernel with its roles.
    pub fn lower(&self) -> Result<Relowered, Failure> {
        match self {
            Self::Form(form) => Ok(Box::new(form.lower()?)),
            Self::File(file) => Ok(file.lower()),
        }
    }
}

impl Source {
    /// Number of kernels of the form, if it is an exported one; else there is one.
    pub fn kernels(&self) -> usize {
        match self {
            Self::File(file) => file.form.as_ref().map_or(1, |of| of.form.kernels.len()),
            Self::Form(_) => 1,
        }
    }

    /// The nodes that the tables and arrays of degrees of freedom of a form are for, if it is known
    /// by name.
    pub fn nodes(&self) -> Result<Vec<Nodes>, Failure> {
        match self {
            Self::Form(form) => Ok(form.lower()?.nodes),
            Self::File(_) => Ok(Vec::new()),
        }
    }

    /// Turns to another kernel of an exported form.
    pub fn select(&mut self, place: usize) {
        if let Self::File(file) = self
            && let Some(of) = &mut file.form
        {
            of.place = place;
            file.kernel = of.form.kernels[place].kernel.clone();
        }
    }
}

impl FileSource {
    /// A kernel of an imported form.
    pub fn of_form(form: Imported, place: usize) -> Self {
        let kernel = form.kernels[place].kernel.clone();
        Self { kernel, script: None, form: Some(ImportedKernel { form, place }) }
    }

    /// The kernel with its roles.
    pub fn lower(&self) -> Relowered {
        match &self.form {
            Some(of) => Box::new(of.form.kernels[of.place].clone()),
            None => Box::new(self.kernel.clone()),
        }
    }
}

impl FormSource {
    /// The kernel of the form and what its arguments stand for.
    pub fn lower(&self) -> Result<LoweredForm, Failure> {
        let name = self.operator.kernel_name(self.dim, self.degree);
        let form = self.operator.form(self.dim, self.degree).map_err(|e| Failure::Usage(e.to_string()))?;
        Ok(lower(&form, &LoweringOptions::new(name).with_scheme(self.scheme.into()))?)
    }
}

/// Whether a name is that of a file, and not of a form.
pub fn is_file(what: &str) -> bool {
    KERNEL_FILES.iter().any(|end| what.ends_with(end) || what.contains(&format!("{end}#")))
        || is_json(what)
        || what.contains(['/', '\\'])
}

/// How names of kernels' files end; the second is of versions before 0.3.
const KERNEL_FILES: [&str; 2] = [".kingpost", ".purlin"];

/// Whether a name is that of an exported form, or of one of its kernels.
pub fn is_json(what: &str) -> bool {
    what.ends_with(".json") || what.contains(".json#")
}

/// Reads an exported form; `FORM.json#KERNEL` is one of its kernels, else the first.
fn read_form(what: &str, options: &TabulatedOptions) -> Result<FileSource, Failure> {
    let (path, name) = what.split_once('#').map_or((what, None), |(path, name)| (path, Some(name)));
    let refused = |e: TabulatedError| Failure::Usage(format!("`{path}`: {e}"));
    let form = import::from_json_with(&read(Path::new(path))?, options).map_err(refused)?;
    let names: Vec<&str> = form.kernels.iter().map(|k| k.kernel.name.as_str()).collect();
    let place = match name {
        None if names.is_empty() => {
            return Err(Failure::Usage(format!(
                "`{path}`: found a form without integrals, needed at least one"
            )));
        }
        None => 0,
        Some(name) => names.iter().position(|n| *n == name).ok_or_else(|| {
            let list = names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ");
            Failure::Usage(format!("`{path}` has no kernel `{name}`; it has {list}"))
        })?,
    };
    Ok(FileSource::of_form(form, place))
}

/// Reads and parses a kernel, and the schedule that may stand after it; `FILE.kingpost#KERNEL` is one of
/// several kernels.
fn read_file(what: &str) -> Result<FileSource, Failure> {
    let (path, name) = KERNEL_FILES
        .iter()
        .find_map(|end| {
            let (file, name) = what.split_at(what.find(&format!("{end}#"))? + end.len());
            Some((file, Some(&name[1..])))
        })
        .unwrap_or((what, None)); // default: the whole file
    let path = Path::new(path);
    if path.extension().is_some_and(|end| end == "msh") {
        return Err(Failure::Usage(format!(
            "`{0}` is a mesh; name a form and give the mesh with --mesh {0}",
            path.display()
        )));
    }
    let source = read(path)?;
    let text = section(path, &source, name)?;
    let (kernel, script) = steps().file(&text).map_err(|errors| Failure::Text {
        name: path.display().to_string(),
        source,
        errors,
    })?;
    Ok(FileSource { kernel, script, form: None })
}

/// The name that is most like `word`, if one is like it at all.
fn nearest<'n>(word: &str, names: &[&'n str]) -> Option<&'n str> {
    let word = word.to_lowercase();
    let (far, best) = names
        .iter()
        .map(|name| (text::edit_distance(&word, name, name.len()), *name))
        .min_by_key(|(d, _)| *d)?;
    (far <= 1 + best.len() / 3).then_some(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_names_are_recognised() {
        let names = Operator::ALL.map(Operator::name);
        assert_eq!(nearest("laplce", &names), Some("laplace"));
        assert_eq!(nearest("hyperelastic", &names), Some("hyperelasticity"));
        assert_eq!(nearest("stokes", &names), None);
        assert_eq!(nearest("massage", &names), None);
    }
}
