//! The loop over messages, and what each asks for.

use crate::completion::complete;
use crate::document::Document;
use crate::hover::{definition, hover};
use crate::lens::{KERNEL_AFTER, kernel_after, lenses};
use crate::wire::{self, Incoming};
use kingpost_primitives::StepSet;
use serde_json::{Value, json};
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};

/// How a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By `shutdown` and `exit`.
    Asked,
    /// By `exit` alone, or by the end of the input.
    Abandoned,
}

/// Why a request fails.
struct Failed {
    code: i64,
    message: String,
}

/// Codes of the protocol.
const NO_JSON: i64 = -32700;
const NO_REQUEST: i64 = -32600;
const NO_METHOD: i64 = -32601;
const NO_PARAMS: i64 = -32602;
const INTERNAL: i64 = -32603;
const NOT_INITIALISED: i64 = -32002;

const BUG: &str = "this is a bug of kingpost, please report it with the text";

fn failed(code: i64, message: impl Into<String>) -> Failed {
    Failed { code, message: message.into() }
}

/// Answers the messages of a client until it ends the session. Schedules take steps from a set.
///
/// # Errors
/// What the system says of the streams.
pub fn serve(input: impl BufRead + Send, output: impl Write, steps: &StepSet) -> io::Result<End> {
    let (sender, receiver) = channel();
    std::thread::scope(|scope| {
        // the text may change several times while a schedule is applied: only the last one counts
        scope.spawn(move || receive(input, &sender));
        Server { output, steps, documents: BTreeMap::new(), changed: BTreeSet::new(), state: State::New }
            .run(&receiver)
    })
}

/// Reads messages up to the one that ends the session.
fn receive(mut input: impl BufRead, sender: &Sender<io::Result<Incoming>>) {
    loop {
        let message = match wire::read(&mut input) {
            Ok(Some(message)) => Ok(message),
            Ok(None) => return,
            Err(error) => Err(error),
        };
        let is_last = match &message {
            Ok(Incoming::Message(message)) => method(message) == Some("exit"),
            Ok(Incoming::Broken(_)) => false,
            Err(_) => true,
        };
        if sender.send(message).is_err() || is_last {
            return;
        }
    }
}

fn method(message: &Value) -> Option<&str> {
    message.get("method").and_then(Value::as_str)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    Running,
    ShutDown,
}

/// A text that is open, and what is found in it once a request needs it: it may change before.
struct Open {
    text: String,
    document: OnceCell<Document>,
}

impl Open {
    fn document(&self, steps: &StepSet) -> &Document {
        self.document.get_or_init(|| Document::new(self.text.clone(), steps))
    }
}

struct Server<'s, W> {
    output: W,
    steps: &'s StepSet,
    documents: BTreeMap<String, Open>,
    /// Documents whose problems the client does not know.
    changed: BTreeSet<String>,
    state: State,
}

impl<W: Write> Server<'_, W> {
    fn run(mut self, messages: &Receiver<io::Result<Incoming>>) -> io::Result<End> {
        loop {
            let message = match messages.try_recv() {
                Err(TryRecvError::Empty) => {
                    self.publish()?;
                    messages.recv().ok()
                }
                message => message.ok(),
            };
            match message.transpose()? {
                None => {
                    self.publish()?;
                    return Ok(End::Abandoned);
                }
                Some(Incoming::Broken(why)) => self.answer(&Value::Null, Err(failed(NO_JSON, why)))?,
                Some(Incoming::Message(message)) if method(&message) == Some("exit") => {
                    return Ok(if self.state == State::ShutDown { End::Asked } else { End::Abandoned });
                }
                Some(Incoming::Message(message)) => self.take(&message)?,
            }
        }
    }

    /// Answers a request or notes a notification.
    fn take(&mut self, message: &Value) -> io::Result<()> {
        let Some(method) = method(message) else {
            // an answer to a request of this server, of which there are none, asks for nothing
            let is_answer = message.get("result").is_some() || message.get("error").is_some();
            let error = failed(NO_REQUEST, "a message without a method");
            let id = message.get("id").unwrap_or(&Value::Null); // default: what cannot be told gets null
            return if is_answer { Ok(()) } else { self.answer(id, Err(error)) };
        };
        let params = message.get("params").unwrap_or(&Value::Null); // default: some methods have none
        let Some(id) = message.get("id") else {
            self.notification(method, params);
            return Ok(());
        };
        // a bug that one question shows must not take the session away
        let result = catch_unwind(AssertUnwindSafe(|| self.request(method, params)));
        self.answer(id, result.unwrap_or_else(|_| Err(failed(INTERNAL, BUG))))
    }

    fn answer(&mut self, id: &Value, result: Result<Value, Failed>) -> io::Result<()> {
        let message = match result {
            Ok(result) => json!({"id": id, "result": result}),
            Err(Failed { code, message }) => json!({"id": id, "error": {"code": code, "message": message}}),
        };
        wire::write(&mut self.output, message)
    }

    fn request(&mut self, method: &str, params: &Value) -> Result<Value, Failed> {
        match (self.state, method) {
            (State::New, "initialize") => {
                self.state = State::Running;
                Ok(abilities())
            }
            (State::New, _) => Err(failed(NOT_INITIALISED, "the first request is `initialize`")),
            (State::ShutDown, _) => Err(failed(NO_REQUEST, "the session is shut down")),
            (State::Running, "initialize") => Err(failed(NO_REQUEST, "the session is initialised already")),
            (State::Running, "shutdown") => {
                self.state = State::ShutDown;
                Ok(Value::Null)
            }
            (State::Running, "textDocument/hover") => {
                let (document, at) = self.place(params)?;
                Ok(hover(document, at).map_or(Value::Null, |(text, place)| {
                    let range = document.lines.range(&document.text, &place);
                    json!({"contents": {"kind": "markdown", "value": text}, "range": range})
                }))
            }
            (State::Running, "textDocument/completion") => {
                let (document, at) = self.place(params)?;
                Ok(json!({"isIncomplete": false, "items": complete(document, at)}))
            }
            (State::Running, "textDocument/definition") => {
                let (document, at) = self.place(params)?;
                let uri = uri(params)?;
                Ok(definition(document, at).map_or(
                    Value::Null,
                    |place| json!({"uri": uri, "range": document.lines.range(&document.text, &place)}),
                ))
            }
            (State::Running, "textDocument/codeLens") => {
                Ok(Value::from(lenses(self.document(params)?, uri(params)?)))
            }
            (State::Running, "textDocument/formatting") => self.format(params),
            (State::Running, "workspace/executeCommand") => self.execute(params),
            (State::Running, _) => Err(failed(NO_METHOD, format!("there is no method `{method}`"))),
        }
    }

    /// Malformed ones are passed over: nobody waits for an answer.
    fn notification(&mut self, method: &str, params: &Value) {
        if self.state != State::Running {
            return;
        }
        let Ok(uri) = uri(params) else { return };
        let text = match method {
            "textDocument/didOpen" => params.pointer("/textDocument/text"),
            // the whole text, as `abilities` asks for
            "textDocument/didChange" => params
                .get("contentChanges")
                .and_then(Value::as_array)
                .and_then(|changes| changes.last()?.get("text")),
            "textDocument/didClose" => {
                if self.documents.remove(uri).is_some() {
                    self.changed.insert(uri.to_owned());
                }
                return;
            }
            _ => return,
        };
        if let Some(text) = text.and_then(Value::as_str) {
            let open = Open { text: text.to_owned(), document: OnceCell::new() };
            self.documents.insert(uri.to_owned(), open);
            self.changed.insert(uri.to_owned());
        }
    }

    /// Tells the client what is wrong with the documents that have changed.
    fn publish(&mut self) -> io::Result<()> {
        for uri in std::mem::take(&mut self.changed) {
            let problems = self.documents.get(&uri).map(|open| {
                let document = open.document(self.steps);
                let of = |problem: &crate::problem::Problem| {
                    problem.diagnostic(&uri, &document.text, &document.lines)
                };
                document.problems.iter().map(of).collect::<Vec<_>>()
            });
            let params = json!({"uri": uri, "diagnostics": problems.unwrap_or_default()}); // default: of a closed one none
            wire::write(
                &mut self.output,
                json!({"method": "textDocument/publishDiagnostics", "params": params}),
            )?;
        }
        Ok(())
    }

    fn document(&self, params: &Value) -> Result<&Document, Failed> {
        let uri = uri(params)?;
        let open =
            self.documents.get(uri).ok_or_else(|| failed(NO_PARAMS, format!("`{uri}` is not open")))?;
        Ok(open.document(self.steps))
    }

    fn place(&self, params: &Value) -> Result<(&Document, usize), Failed> {
        let document = self.document(params)?;
        let at = params.get("position").and_then(|position| document.lines.byte(&document.text, position));
        Ok((document, at.ok_or_else(|| failed(NO_PARAMS, "needed `position` with `line` and `character`"))?))
    }

    /// The edit that lays out a text; none of a text with mistakes, which are known as its problems.
    fn format(&self, params: &Value) -> Result<Value, Failed> {
        let document = self.document(params)?;
        let text = &document.text;
        Ok(match self.steps.format(text) {
            Err(_) => Value::Null,
            Ok(formatted) if formatted == *text => json!([]),
            Ok(formatted) => {
                json!([{"range": document.lines.range(text, &(0..text.len())), "newText": formatted}])
            }
        })
    }

    fn execute(&self, params: &Value) -> Result<Value, Failed> {
        let command = params.get("command").and_then(Value::as_str);
        if command != Some(KERNEL_AFTER) {
            return Err(failed(NO_PARAMS, format!("the commands are `{KERNEL_AFTER}`")));
        }
        let argument = params.pointer("/arguments/0").unwrap_or(&Value::Null); // default: refused below
        let uri = argument.get("uri").and_then(Value::as_str).unwrap_or_default(); // default: refused below
        let open = self.documents.get(uri);
        let found = open.and_then(|open| kernel_after(open.document(self.steps), argument));
        let needed = "needed `uri`, `section` and `step` as a code lens of an open text has them";
        found.ok_or_else(|| failed(NO_PARAMS, needed))
    }
}

fn uri(params: &Value) -> Result<&str, Failed> {
    let uri = params.pointer("/textDocument/uri").and_then(Value::as_str);
    uri.ok_or_else(|| failed(NO_PARAMS, "needed `textDocument` with a `uri`"))
}

/// What this server can do.
fn abilities() -> Value {
    json!({
        "capabilities": {
            "textDocumentSync": {"openClose": true, "change": 1},
            "hoverProvider": true,
            "completionProvider": {"triggerCharacters": ["(", ",", ":"]},
            "definitionProvider": true,
            "codeLensProvider": {"resolveProvider": false},
            "documentFormattingProvider": true,
            "executeCommandProvider": {"commands": [KERNEL_AFTER]},
        },
        "serverInfo": {"name": "kingpost", "version": env!("CARGO_PKG_VERSION")},
    })
}
