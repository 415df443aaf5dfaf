//! Messages and their answers: JSON-RPC 2.0 as the Model Context Protocol has it, and plain calls.

use super::answer::{Answer, Wrong};
use super::server::Server;
use super::tools::{TOOLS, Tool};
use serde_json::{Map, Value, json};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The versions of the Model Context Protocol that are spoken, the newest first.
const VERSIONS: [&str; 3] = ["2025-06-18", "2025-03-26", "2024-11-05"];

/// Codes of JSON-RPC 2.0.
const PARSE_ERROR: i32 = -32700;
const INVALID_REQUEST: i32 = -32600;
const METHOD_NOT_FOUND: i32 = -32601;
const INVALID_PARAMS: i32 = -32602;

/// The answer to a line; nothing to a blank one, a notification or an answer.
pub fn answer(server: &mut Server, line: &[u8]) -> Option<String> {
    if line.iter().all(u8::is_ascii_whitespace) {
        return None;
    }
    let message = match serde_json::from_slice::<Value>(line) {
        Ok(message) => message,
        Err(e) => {
            return Some(error(&Value::Null, PARSE_ERROR, &format!("no JSON in one line: {e}")).to_string());
        }
    };
    let Value::Object(message) = message else {
        let found = "found no object, needed one message a line, such as {\"tool\": \"tools\"}";
        return Some(error(&Value::Null, INVALID_REQUEST, found).to_string());
    };
    let answer =
        if message.contains_key("jsonrpc") { rpc(server, &message) } else { Some(plain(server, &message)) };
    answer.map(|answer| answer.to_string())
}

/// The tool that a line calls, whichever way.
pub fn called(line: &[u8]) -> Option<&'static Tool> {
    let message: Value = serde_json::from_slice(line).ok()?;
    let name = message.get("tool").or_else(|| message.get("params")?.get("name"))?;
    TOOLS.iter().find(|tool| Some(tool.name) == name.as_str())
}

fn error(id: &Value, code: i32, message: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
}

fn rpc(server: &mut Server, message: &Map<String, Value>) -> Option<Value> {
    let (method, id) = (message.get("method"), message.get("id"));
    let params = message.get("params").unwrap_or(&Value::Null); // default: most methods take none
    let Some(id) = id else {
        // a notification, which has no answer
        return method
            .is_none()
            .then(|| error(&Value::Null, INVALID_REQUEST, "a message without method and id"));
    };
    let Some(method) = method.and_then(Value::as_str) else {
        let is_answer = message.contains_key("result") || message.contains_key("error");
        return (!is_answer).then(|| error(id, INVALID_REQUEST, "a message without a method"));
    };
    let result = match method {
        "initialize" => initialize(params),
        "ping" => json!({}),
        "tools/list" => json!({ "tools": TOOLS.iter().map(Tool::listed).collect::<Vec<_>>() }),
        "tools/call" => {
            let name = params.get("name").and_then(Value::as_str);
            let Some(tool) = TOOLS.iter().find(|tool| Some(tool.name) == name) else {
                return Some(error(id, INVALID_PARAMS, &unknown(name)));
            };
            let (content, is_error) = match call(server, tool, params.get("arguments")) {
                Ok(result) => (result, false),
                Err(wrong) => (wrong.to_json(), true),
            };
            let text = json!({ "type": "text", "text": content.to_string() });
            json!({ "content": [text], "structuredContent": content, "isError": is_error })
        }
        other => {
            let known = "there is initialize, ping, tools/list, tools/call";
            return Some(error(id, METHOD_NOT_FOUND, &format!("there is no method `{other}`; {known}")));
        }
    };
    Some(json!({ "jsonrpc": "2.0", "id": id, "result": result }))
}

fn initialize(params: &Value) -> Value {
    let asked = params.get("protocolVersion").and_then(Value::as_str);
    let version = VERSIONS.into_iter().find(|version| Some(*version) == asked).unwrap_or(VERSIONS[0]); // default: the newest
    json!({
        "protocolVersion": version,
        "capabilities": { "tools": {} },
        "serverInfo": { "name": "kingpost", "version": env!("CARGO_PKG_VERSION") },
        "instructions": "Load a kernel, ask for legal steps or write some, apply them (each is proved, or refused with two \
                         instances that clash), time the result, save the schedule.",
    })
}

/// `{"tool": "apply", "arguments": {...}}`, with an `id` that comes back if there is one.
fn plain(server: &mut Server, message: &Map<String, Value>) -> Value {
    let name = message.get("tool").and_then(Value::as_str);
    let result = match (name, TOOLS.iter().find(|tool| Some(tool.name) == name)) {
        (Some("tools"), _) => Ok(json!(TOOLS.iter().map(Tool::listed).collect::<Vec<_>>())),
        (_, Some(tool)) => call(server, tool, message.get("arguments")),
        (name, None) => Err(Wrong::new("usage", unknown(name))),
    };
    let mut answer = match result {
        Ok(result) => json!({ "ok": true, "result": result }),
        Err(wrong) => json!({ "ok": false, "error": wrong.to_json() }),
    };
    if let Some(id) = message.get("id") {
        answer["id"] = id.clone();
    }
    answer
}

fn unknown(name: Option<&str>) -> String {
    let known: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
    let found = name.map_or("no tool is named".into(), |name| format!("there is no tool `{name}`"));
    format!("{found}; there is {}", known.join(", "))
}

/// Calls a tool. A bug of it is an answer, too: whoever asks goes on.
fn call(server: &mut Server, tool: &Tool, arguments: Option<&Value>) -> Answer {
    let arguments = arguments.cloned().unwrap_or_else(|| json!({})); // default: a tool without arguments
    catch_unwind(AssertUnwindSafe(|| (tool.call)(server, arguments))).unwrap_or_else(|_| {
        let message = format!(
            "this is a bug of kingpost, please report it: `{}` panicked; standard error says where",
            tool.name
        );
        Err(Wrong::new("bug", message))
    })
}
