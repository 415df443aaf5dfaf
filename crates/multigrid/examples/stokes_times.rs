//! Unknowns a second of Stokes' equations on a device: the operator, a step of each smoother, a
//! V-cycle and a solve to 1e-8 with the fastest one, in double precision and with cycles in single
//! precision. Lines of JSON.
//!
//!     cargo run --release -p kingpost-multigrid --example stokes_times -- cuda:0 3 2 32 64
//!
//! stands for three dimensions, elements RT_2, and 32 and 64 cells a side.

use kingpost_multigrid::stokes::{SourceTerm, StokesHierarchy, StokesSmoother, StokesSolver};
use kingpost_multigrid::{Dimension, Element, MultigridError, Precision};
use kingpost_runtime::{Device, open, upload_values};
use kingpost_solve::GmresOptions;
use std::error::Error;

const AFTER_WARM_UP: usize = 7;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [device, dimension, degree, cells @ ..] = &args[..] else {
        return Err("needed: DEVICE DIMENSION DEGREE CELLS …".into());
    };
    let dimension = match dimension.as_str() {
        "2" => Dimension::Two,
        "3" => Dimension::Three,
        other => return Err(format!("dimension {other}: needed 2 or 3").into()),
    };
    let (device, element) = (open(device)?, Element::new(dimension, degree.parse()?)?);
    for cells in cells {
        for precision in [Precision::Double, Precision::Single] {
            time(&*device, element, cells.parse()?, precision)?;
        }
    }
    Ok(())
}

fn time(
    device: &dyn Device,
    element: Element,
    cells: usize,
    precision: Precision,
) -> Result<(), Box<dyn Error>> {
    let options = GmresOptions { relative: 1e-8, max_iterations: 30, ..GmresOptions::default() };
    let mut solver = StokesSolver::new(device, element, cells, precision, options)?;
    let unknowns = solver.unknowns() as f64;
    let levels = solver.hierarchy();
    fill(device, levels, precision)?;
    let other = match levels.smoother() {
        StokesSmoother::Global => StokesSmoother::Fused,
        StokesSmoother::Fused => StokesSmoother::Global,
    };
    let with_other = StokesHierarchy::with_smoother(device, element, cells, precision, [1, 1], other)?;
    fill(device, &with_other, precision)?;
    let parts = [
        ("operator", median(|| levels.residual())?),
        ("step", median(|| levels.smooth())?),
        ("other_step", median(|| with_other.smooth())?),
        ("cycle", median(|| levels.v_cycle())?),
    ];
    drop(with_other);
    let mut lines: Vec<String> = parts
        .iter()
        .map(|(name, seconds)| {
            format!("\"{name}_s\": {seconds:.4e}, \"{name}_rate\": {:.3e}", unknowns / seconds)
        })
        .collect();
    solver.set_source(&SourceTerm::swirl(element.dimension))?;
    solver.solve()?; // warm-up: vectors are allocated
    let report = solver.solve()?;
    let seconds = report.seconds;
    lines.push(format!(
        "\"iterations\": {}, \"converged\": {}, \"solve_s\": {seconds:.4e}, \"solve_rate\": {:.3e}, \"divergence\": {:.1e}",
        report.iterations(),
        report.converged(),
        unknowns / seconds,
        solver.divergence()?
    ));
    println!(
        "{{\"axes\": {}, \"degree\": {}, \"cells\": {cells}, \"precision\": \"{precision:?}\", \"unknowns\": {unknowns}, {}}}",
        element.dimension.axes(),
        element.degree,
        lines.join(", ")
    );
    Ok(())
}

/// A right-hand side of any numbers: those of zeros would leave the card cooler.
fn fill(
    device: &dyn Device,
    levels: &StokesHierarchy<'_>,
    precision: Precision,
) -> Result<(), Box<dyn Error>> {
    let [b, _] = levels.vectors();
    let numbers = |count: u64| (0..count).map(|at| ((at * 7919 % 1009) as f64 / 1009.0) - 0.5);
    match precision {
        Precision::Double => upload_values(device, b, &numbers(b.bytes() / 8).collect::<Vec<f64>>())?,
        Precision::Single => {
            upload_values(device, b, &numbers(b.bytes() / 4).map(|x| x as f32).collect::<Vec<f32>>())?;
        }
    }
    Ok(())
}

/// The middle of the seconds of some runs, after two that warm up.
fn median(mut run: impl FnMut() -> Result<f64, MultigridError>) -> Result<f64, MultigridError> {
    for _ in 0..2 {
        run()?;
    }
    let mut seconds = (0..AFTER_WARM_UP).map(|_| run()).collect::<Result<Vec<_>, _>>()?;
    seconds.sort_by(f64::total_cmp);
    Ok(seconds[AFTER_WARM_UP / 2])
}
