//! The facts of the text format: `facts/text/*.txt`; `> print` asks for the text that a program is
//! printed as,
//! `> errors` for what is wrong with it.
#![allow(clippy::panic, clippy::unwrap_used)] // what a failed test does

use kingpost_facts::{Answers, Fact};
use kingpost_ir::text::{parse, print};
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    kingpost_facts::main(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/facts")), answer)
}

fn answer(fact: &Fact) -> Result<Answers, String> {
    let text = &fact.kernel.text;
    if let [question] = &fact.questions[..]
        && question.text == "errors"
    {
        let errors = parse(text).err().ok_or("nothing is wrong with it")?;
        return Ok(Answers { kernel: None, answers: vec![errors.render(text)] });
    }
    let kernel = parse(text).map_err(|e| e.render(text))?;
    let printed = print(&kernel);
    assert_eq!(parse(&printed).as_ref(), Ok(&kernel), "it is read back as another program");
    let asked = fact.questions.iter().map(|q| match q.text.as_str() {
        "print" => Ok(printed.clone()),
        other => Err(format!("`{other}` is no question")),
    });
    Ok(Answers { kernel: None, answers: asked.collect::<Result<_, _>>()? })
}
