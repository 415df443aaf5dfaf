//! Values for the kernel of an imported form: a perturbed unit mesh or that of a file, the rest
//! random.

use super::failure::Failure;
use super::inputs::{Inputs, Wanted};
use super::source::{FileSource, ImportedKernel, Source};
use super::values::{order_of, read_mesh};
use kingpost::forms::CellKernel;
use kingpost::forms::numbering::NumberingOrder;
use kingpost::forms::strategies::{ConstantCells, SingleCell, SummedCells, is_functional, table_bytes};
use kingpost::ir::Kernel;
use kingpost::tuning::{Candidate, factorised};
use kingpost::{Mapping, Random};

/// Divisions of a side of the unit mesh, by dimension: the interpreter judges the result.
const DIVISIONS: [usize; 3] = [64, 8, 3];

/// Most entries of tables that all cells read together: the interpreter takes about two steps for
/// each (2.3 million a cell for 1.1 million entries of the Laplace action of Q7), and gives up
/// after 50 million.
const READS: u64 = 1 << 24;

/// Divisions of a side of the unit mesh: those of [`DIVISIONS`], or fewer where the tables are so
/// large that the result could not be interpreted.
fn divisions(kernel: &Kernel, dim: usize) -> usize {
    let entries = table_bytes(kernel) / 8;
    let most = DIVISIONS[dim - 1];
    let fits = |n: &usize| (*n as u64).pow(dim as u32) * entries <= READS;
    (1..=most).rev().find(fits).unwrap_or(1)
}

/// Arrays on the mesh of `--mesh`, or the unit mesh of `--cells`.
pub fn imported_inputs(args: &Wanted<'_>, of: &ImportedKernel, seed: u64) -> Result<Inputs, Failure> {
    if !args.param.is_empty() || args.values.is_some() {
        let message = "--param and --values are not for exported forms, whose sizes are those of a mesh; give \
                       one with --mesh, or the divisions of a unit mesh with --cells";
        return Err(Failure::Usage(message.into()));
    }
    let form = &of.form;
    // the order of actions was measured on simplices; transfers by parts are of those alone
    let order = match args.order {
        None if !form.form.cell.is_simplex() => NumberingOrder::FirstTouch,
        asked => order_of(asked),
    };
    let mut random = Random::new(seed);
    let mut draw = || random.numbers(1).first().copied().unwrap_or(0.0);
    let refused = |e| Failure::Usage(format!("{e}"));
    let (found, mesh) = match args.mesh {
        Some(path) => {
            let refused = |e: String| Failure::Usage(format!("mesh `{}`: {e}", path.display()));
            let found =
                form.mesh_inputs(&read_mesh(path)?, order, &mut draw).map_err(|e| refused(e.to_string()))?;
            (found, "the mesh of the file, with")
        }
        None => {
            if args.cells == Some(0) {
                return Err(Failure::Usage("--cells 0: needed at least 1 division of a side".into()));
            }
            let divisions =
                args.cells.unwrap_or_else(|| divisions(&form.kernels[of.place].kernel, form.form.cell.dim()));
            (form.unit_inputs(divisions, order, &mut draw).map_err(refused)?, "a perturbed unit mesh of")
        }
    };
    let memory = form.bind(of.place, &found.of(of.place)).map_err(refused)?;
    let origin = format!("{mesh} {} cells, {}, the rest random", found.cells, found.numbering);
    Ok(Inputs { memory, origin: Some(origin), order: found.order })
}

/// The sources of all kernels of an exported form that was named as a whole.
pub fn kernels_of(source: Source, what: &str) -> Vec<Source> {
    match source {
        Source::File(file) => match file.form {
            Some(of) if !what.contains('#') => {
                let each = |place| Source::File(Box::new(FileSource::of_form(of.form.clone(), place)));
                (0..of.form.kernels.len()).map(each).collect()
            }
            form => vec![Source::File(Box::new(FileSource { form, ..*file }))],
        },
        form @ Source::Form(_) => vec![form],
    }
}

/// Mappings of one entity to a work-item: those of kernels that no other strategy takes, and of
/// squares and cubes.
pub fn single_cells(form: &dyn CellKernel) -> Vec<Candidate> {
    let sizes = [32, 64, 128, 256];
    let plain = sizes.map(|cells| Mapping::from(SingleCell { cells }));
    let constant = sizes.map(|cells| Mapping::from(ConstantCells { cells }));
    let summed = sizes.map(|cells| Mapping::from(SummedCells { cells, constant_tables: true }));
    let summed = summed.into_iter().filter(|_| is_functional(form));
    let all = plain.into_iter().chain(constant).chain(summed).map(Candidate::unranked);
    all.chain(factorised(form)).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // how a test fails
mod tests {
    use super::*;
    use kingpost::forms::element::CellShape;
    use kingpost::forms::lowering::{LoweringOptions, MeshForm};
    use kingpost::kernels::Operator;

    /// Tables of Q7 have 3*512^2 entries and more, of which 27 cells read too many.
    #[test]
    fn large_tables_have_few_cells() {
        let of = |degree| {
            let space = Operator::Laplace.space_on(CellShape::Hexahedron, degree);
            let form = Operator::Laplace.action_on(&space);
            let lowered = MeshForm::new(&form, &LoweringOptions::new("laplace")).unwrap();
            divisions(&lowered.kernels()[0].kernel, 3)
        };
        assert_eq!([of(2), of(7)], [3, 2]);
    }
}
