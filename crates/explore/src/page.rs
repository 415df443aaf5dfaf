//! The page: a template with the data in it.

use crate::data::Exploration;
use crate::pool::Pool;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::{Compression, GzBuilder};
use serde_json::{Value, json};
use std::io::Write;

/// Bytes of the largest page.
const LARGEST: usize = 5 << 20;

const TEMPLATE: &str = include_str!("../page/page.html");
/// What [`is_page`] looks for, in the template.
const GENERATOR: &str = r#"<meta name="generator" content="kingpost explore">"#;
const STYLE: &str = include_str!("../page/style.css");
const EDITOR: &str = include_str!("../page/editor.html");
const LIVE: &str = include_str!("../page/live.js");
const SCRIPTS: [&str; 8] = [
    include_str!("../page/instances.js"),
    include_str!("../page/state.js"),
    include_str!("../page/rows.js"),
    include_str!("../page/texts.js"),
    include_str!("../page/space.js"),
    include_str!("../page/details.js"),
    include_str!("../page/roofline.js"),
    include_str!("../page/main.js"),
];

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// Data that has no JSON.
    #[error("the page's data: {0}")]
    Json(#[from] serde_json::Error),
    /// Compression failed.
    #[error("the page's data: {0}")]
    Pack(#[from] std::io::Error),
}

/// One file of HTML with everything in it; equal explorations give equal bytes.
///
/// Where it would be larger than 5 MiB the relations of dependences are left out, those of the first
/// steps first, and the page says so.
///
/// # Errors
/// [`PageError`].
pub fn page(explored: &Exploration) -> Result<String, PageError> {
    let fixed = TEMPLATE.len() + STYLE.len() + SCRIPTS.iter().map(|script| script.len()).sum::<usize>();
    let mut packed = packed(explored)?;
    let mut smaller = explored.clone();
    for step in 0..smaller.steps.len() {
        if fixed + packed.len() <= LARGEST {
            break;
        }
        let state = &mut smaller.steps[step];
        state.without_relations = true;
        state.deps.iter_mut().for_each(|d| d.pieces.clear());
        smaller.left_out = vec![format!(
            "The page would be larger than 5 MiB: relations of dependences are left out up to step {step}."
        )];
        packed = self::packed(&smaller)?;
    }
    Ok(filled(&explored.title, &SCRIPTS.concat(), &packed, ""))
}

/// Whether a text is a page that [`page`] wrote.
#[must_use]
pub fn is_page(text: &str) -> bool {
    text.contains(GENERATOR)
}

/// The page of an editor with a text in it, which asks the server that it is from for the data.
///
/// # Errors
/// [`PageError`].
pub fn live_page(title: &str, text: &str) -> Result<String, PageError> {
    // no tag of the text ends the script
    let text = serde_json::to_string(text)?.replace('<', "\\u003c");
    let editor = EDITOR.replace("{{text}}", &text);
    Ok(filled(title, &[&SCRIPTS.concat(), LIVE].concat(), "", &editor))
}

/// The data of a page as JSON, uncompressed.
///
/// # Errors
/// [`PageError`].
pub fn data(explored: &Exploration) -> Result<String, PageError> {
    Ok(serde_json::to_string(&pooled(explored)?)?)
}

fn filled(title: &str, script: &str, data: &str, editor: &str) -> String {
    let title = html(title);
    let parts = [("style", STYLE), ("script", script), ("data", data), ("title", &title), ("editor", editor)];
    parts
        .iter()
        .fold(TEMPLATE.to_owned(), |page, (name, part)| page.replace(&format!("{{{{{name}}}}}"), part))
}

/// The data as JSON whose equal values are written once.
fn pooled(explored: &Exploration) -> Result<Value, PageError> {
    let mut pool = Pool::default();
    let data = pool.put(serde_json::to_value(explored)?)?;
    Ok(json!({ "pool": pool.into_values(), "data": data }))
}

/// The data as JSON whose equal values are written once, compressed, as text.
fn packed(explored: &Exploration) -> Result<String, PageError> {
    let json = pooled(explored)?;
    let mut gzip = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    gzip.write_all(&serde_json::to_vec(&json)?)?;
    Ok(STANDARD.encode(gzip.finish()?))
}

fn html(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
