//! README's picture: a kernel, its steps, the code and where its time stands under the roofline.
//!
//! The time is a measurement, `results/h200/axpy.json`, by
//! `kingpost run examples/axpy.kingpost --device cuda --param n=134217728`.

use kingpost::autotune::{Point, known_devices, roofline_svg};
use kingpost::{kernel_work, prelude::*};
use std::collections::BTreeMap;

/// Pixels of a line of text, and of a letter.
const LINE: usize = 17;
const LETTER: f64 = 7.2;

/// Writes the picture; a test compares it.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    std::fs::write("docs/book/src/pictures/axpy.svg", picture()?)?;
    Ok(())
}

/// The picture.
pub fn picture() -> Result<String, Box<dyn std::error::Error>> {
    let source = include_str!("axpy.kingpost");
    let (kernel, script) = kingpost::transforms::steps().file(source)?;
    let schedule = script.ok_or("a schedule")?.apply(&kernel)?;
    let program = generate(schedule.kernel(), Target::Cuda, &Options::default())?;
    let (text, steps) = source.split_once("\nschedule\n").ok_or("a schedule")?;
    let code = program.source.split_once("extern").map_or(program.source.as_str(), |(_, rest)| rest);

    let measured: serde_json::Value = serde_json::from_str(include_str!("../results/h200/axpy.json"))?;
    let (n, seconds) = measured["n"].as_i64().zip(measured["seconds"].as_f64()).ok_or("a measurement")?;
    let devices = known_devices()?;
    let model = devices.iter().find(|d| d.name == measured["device"]).ok_or("a model of the device")?;
    let work = kernel_work(&kernel, &BTreeMap::from([("n".to_owned(), n)]))?;
    let label = format!("axpy of {n} numbers on an {}", model.name);
    let point = Point { label, work, executed_flops: None, seconds };
    let roofline = roofline_svg(model, &[point])?;

    let panels = [
        ("a kernel", text.trim()),
        ("its steps, each proved", steps.trim()),
        ("CUDA, OpenCL, C", &format!("extern{code}")),
    ];
    composed(&panels, &roofline)
}

/// Panels of text one below the other, and a picture next to them.
fn composed(panels: &[(&str, &str)], beside: &str) -> Result<String, Box<dyn std::error::Error>> {
    let letters = panels.iter().flat_map(|(_, text)| text.lines().map(str::len)).max().unwrap_or(0);
    let width = (letters as f64 * LETTER).ceil() as usize + 40;
    let (mut y, mut body) = (28, String::new());
    for (title, text) in panels {
        body += &format!(
            "<text x=\"20\" y=\"{y}\" font-weight=\"bold\" font-family=\"sans-serif\">{title}</text>\n"
        );
        for line in text.lines() {
            y += LINE;
            let line = line.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
            body += &format!("<text x=\"20\" y=\"{y}\" xml:space=\"preserve\">{line}</text>\n");
        }
        y += 2 * LINE;
    }
    let inner = beside.replacen("<svg ", &format!("<svg x=\"{width}\" y=\"0\" "), 1);
    let size = |name: &str| -> Option<usize> {
        beside.split_once(&format!(" {name}=\""))?.1.split('"').next()?.parse().ok()
    };
    let (wide, high) = size("width").zip(size("height")).ok_or("a picture that says its size")?;
    let (all, high) = (width + wide, y.max(high));
    Ok(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{all}\" height=\"{high}\" viewBox=\"0 0 {all} {high}\" \
         font-family=\"monospace\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{body}{inner}</svg>\n"
    ))
}
