//! Registers, shared memory and spills of all 70 operator actions on sm_90, as CSV:
//! `cargo run --release --example cuda_resources > results/cuda_resources.csv`.

use kingpost::codegen::{Options, Target, generate};
use kingpost::forms::lowering::{LoweringOptions, lower};
use kingpost::forms::quadrature::QuadratureScheme;
use kingpost::kernels::Operator;
use kingpost::runtime::Cache;
use kingpost::runtime::cuda::nvrtc;
use kingpost::{Mapping, transform};
use std::error::Error;
use std::process::Command;

fn main() -> Result<(), Box<dyn Error>> {
    let compiler = nvrtc::version()?;
    let date = String::from_utf8(Command::new("date").arg("+%F").output()?.stdout)?;
    println!(
        "# {compiler}, sm_90, strategy single-cell, quadrature rules of Kulkarni & Klöckner 2025, {}",
        date.trim()
    );
    println!(
        "operator,dim,degree,registers,stack_bytes,spill_store_bytes,spill_load_bytes,shared_bytes,kernel"
    );
    for operator in Operator::ALL {
        for (dim, last) in [(2, 8), (3, 6)] {
            for degree in 1..=last {
                println!("{}", row(operator, dim, degree)?);
            }
        }
    }
    Ok(())
}

fn row(operator: Operator, dim: usize, degree: usize) -> Result<String, Box<dyn Error>> {
    let name = format!("{operator}_{dim}d_p{degree}");
    let options = LoweringOptions::new(&name).with_scheme(QuadratureScheme::XiaoGimbutas);
    let lowered = lower(&operator.form(dim, degree)?, &options)?;
    let (kernel, _) = transform(&lowered.kernel, &Mapping::single_cell())?;
    let program = generate(&kernel, Target::Cuda, &Options::default())?;
    let object = nvrtc::compile_for("sm_90", &name, &program.source, &Cache::from_environment())?;
    let r = object.resources.first().ok_or("ptxas reported no kernel")?;
    let hash = kernel.content_hash();
    let hash = hash.get(..16).unwrap_or(&hash);
    Ok(format!(
        "{operator},{dim},{degree},{},{},{},{},{},{hash}",
        r.registers, r.stack_bytes, r.spill_stores, r.spill_loads, r.shared_bytes
    ))
}
