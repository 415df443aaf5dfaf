//! A step that would break the program is refused, with two instances that clash.

use kingpost::forms::lowering::{LoweringOptions, lower};
use kingpost::kernels::Operator;
use kingpost::prelude::*;

/// Runs the example; a test does, too.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    let kernel = lower(&Operator::Mass.form(2, 1)?, &LoweringOptions::new("mass"))?.kernel;
    let careless = Recipe::default().then(Tag::new("cell", AxisTag::Group(0)));
    match careless.apply(&kernel) {
        Ok(_) => return Err("a race went unnoticed".into()),
        Err(refusal) => println!("{refusal}"),
    }
    let careful =
        Recipe::default().then(MakeAtomic::tag("scatter")).then(Tag::new("cell", AxisTag::Group(0)));
    println!("{}", careful.apply(&kernel)?);
    Ok(())
}
