//! A loop program, a recipe, and the kernel before and after.

/// Runs the example; a test does, too.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    // [readme]
    use purlin::prelude::*;

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
    let recipe = Recipe::default()
        .then(SplitIname::new("i", 128))
        .then(TagIname::new("i_o", AxisTag::Group(0)))
        .then(TagIname::new("i_i", AxisTag::Local(0)));
    let mapped = recipe.apply(&kernel)?; // every step is proved legal, or refused with two instances
    println!("{kernel}\n{mapped}");
    let program = generate(&mapped, Target::Cuda, &Options::default())?;
    println!("{}", program.source);
    // [/readme]
    Ok(())
}
