//! A loop program, a schedule by handles, and the kernel before and after.

/// Runs the example; a test does, too.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    // [readme]
    use kingpost::prelude::*;

    let kernel = text::parse(
        "
kernel axpy
param n: i32
arg a: f64 in
arg x: f64[n] in
arg y: f64[n] inout

for i in 0..n
  s: y[i] += a*x[i]
",
    )?;
    let mut schedule = Schedule::of(&kernel);
    let [block, item] = schedule.split("i", 128)?; // proved legal, or refused with two instances
    schedule.tag(&block, AxisTag::Group(0))?;
    schedule.tag(&item, AxisTag::Local(0))?;
    println!("{kernel}\n{}", schedule.kernel());
    let program = generate(schedule.kernel(), Target::Cuda, &Options::default())?;
    println!("{}", program.source);
    // [/readme]
    Ok(())
}
