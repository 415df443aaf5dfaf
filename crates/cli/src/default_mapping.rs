//! The mapping of a form that the user leaves open.

use super::failure::Failure;
use super::progress::Progress;
use super::results::warn_of_damage;
use super::run_args::RunArgs;
use super::source::Source;
use super::transform::Transformed;
use kingpost::check_room;
use kingpost::codegen::{Program, generate};
use kingpost::forms::CellKernel;
use kingpost::forms::numbering::NumberingOrder;
use kingpost::interp::Memory;
use kingpost::runtime::Device;
use kingpost::tuning::Database;
use kingpost::tuning::known::{
    Known, Sought, by_block, by_entity, first, for_device, in_any_order, mapped, unstructured,
};

/// The kernel and its code: as the user asks, or else by the best mapping that is known for the
/// device and has room for the lists of `memory`; none is for a kernel that is no form's.
pub fn choose(
    args: &RunArgs,
    source: &Source,
    form: &dyn CellKernel,
    sought: Option<Sought<'_>>,
    device: &dyn Device,
    (memory, order): (&Memory, NumberingOrder),
    progress: &Progress,
) -> Result<(Transformed, Program), Failure> {
    let info = device.info();
    let Some(sought) = sought.filter(|_| !args.transform.is_given_for(source)) else {
        let applied = args.transform.apply(source, form)?;
        // a device takes an array for each field of a record
        let kernel = applied.kernel.scalar_form().into_owned();
        let transformed = Transformed { kernel, ..applied };
        let program = generate(&transformed.kernel, info.backend.target(), &args.options())?;
        return Ok((transformed, program));
    };
    args.transform.refuse_holes()?;
    let database = Database::at(&args.db);
    let contents = database.read()?;
    warn_of_damage(&contents, database.path());
    progress.stage("choosing a mapping");
    let known = for_device(form, sought, device, &contents.records);
    let records = &contents.records;
    let on_mesh = |known| match args.inputs.mesh {
        Some(_) => unstructured(form, sought, info, records, known),
        None => known,
    };
    let candidates = match order {
        NumberingOrder::FirstTouch => in_any_order(on_mesh(known)),
        NumberingOrder::ByDimension => on_mesh(known),
        NumberingOrder::ByEntity => on_mesh(by_entity(form, sought, info, records, known)),
        NumberingOrder::ByBlock => by_block(form, sought, info, records, in_any_order(on_mesh(known))),
    };
    let attempt = |known: &Known| -> Result<_, Failure> {
        let (kernel, recipe, program) = mapped(form, &known.mapping, info, &args.options())?;
        let definitions = kingpost::definitions(form, &recipe)?;
        check_room(&definitions, memory)?;
        Ok((kernel, recipe, program, definitions))
    };
    let (Known { mapping, source }, (kernel, recipe, program, definitions)) = first(candidates, attempt)?;
    Ok((Transformed { kernel, recipe, name: format!("{mapping} ({source})"), definitions }, program))
}
