//! Values for the kernel of an imported form: a perturbed unit mesh, the rest random.

use super::failure::Failure;
use super::inputs::{Inputs, Wanted};
use super::source::{FileSource, ImportedKernel, Source};
use purlin::Random;
use purlin::autotune::{Candidate, Mapping};

/// Divisions of a side of the unit mesh, by dimension: the interpreter judges the result.
const DIVISIONS: [usize; 3] = [64, 8, 3];

/// Arrays on the unit mesh of `--cells`.
pub fn imported_inputs(args: &Wanted<'_>, of: &ImportedKernel, seed: u64) -> Result<Inputs, Failure> {
    if args.mesh.is_some() || !args.param.is_empty() || args.values.is_some() {
        let message = "--mesh, --param and --values are not for exported forms, which run on a unit mesh; \
                       give its divisions with --cells";
        return Err(Failure::Usage(message.into()));
    }
    let form = &of.form;
    let divisions = args.cells.unwrap_or(DIVISIONS[form.form.cell.dim() - 1]);
    let mut random = Random::new(seed);
    let mut draw = || random.numbers(1).first().copied().unwrap_or(0.0);
    let refused = |e| Failure::Usage(format!("{e}"));
    let unit = form.unit_inputs(divisions, &mut draw).map_err(refused)?;
    let memory = form.bind(of.place, &unit.of(of.place)).map_err(refused)?;
    let origin =
        format!("a perturbed unit mesh of {} cells, {}, the rest random", unit.cells, unit.numbering);
    Ok(Inputs { memory, origin: Some(origin) })
}

/// The sources of all kernels of an exported form that was named as a whole.
pub fn kernels_of(source: Source, what: &str) -> Vec<Source> {
    match source {
        Source::File(file) => match file.form {
            Some(of) if !what.contains('#') => {
                let each = of.form.kernels.iter().enumerate().map(|(place, lowered)| {
                    let form = Some(ImportedKernel { form: of.form.clone(), place });
                    Source::File(Box::new(FileSource { kernel: lowered.kernel.clone(), script: None, form }))
                });
                each.collect()
            }
            form => vec![Source::File(Box::new(FileSource { form, ..*file }))],
        },
        form @ Source::Form(_) => vec![form],
    }
}

/// Mappings of one entity to a work-item: those of kernels that no other strategy takes.
pub fn single_cells() -> Vec<Candidate> {
    let sizes = [32, 64, 128, 256];
    let plain = sizes.map(|cells| Mapping::SingleCell { cells });
    let constant = sizes.map(|cells| Mapping::ConstantCells { cells });
    plain.into_iter().chain(constant).map(Candidate::unranked).collect()
}
