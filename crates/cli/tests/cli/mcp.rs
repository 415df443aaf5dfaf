//! `kingpost mcp`: a scripted client.

use crate::{root, write};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};

const GEMM: &str = "kernel gemm

param n: i32
arg a: f64[n, n] in
arg b: f64[n, n] in
arg c: f64[n, n] inout

for i in 0..n
  for j in 0..n
    z: c[i, j] *= 0.5
  for k in 0..n
    for l in 0..n
      u: c[i, l] += a[i, k]*b[k, l]
";

struct Client {
    server: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Client {
    fn start(more: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kingpost"));
        command.arg("mcp").args(more).current_dir(root()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut server = command.spawn().unwrap();
        let (input, output) = (server.stdin.take(), BufReader::new(server.stdout.take().unwrap()));
        Self { server, input, output }
    }

    fn send(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(bytes).and_then(|()| input.write_all(b"\n")).and_then(|()| input.flush()).unwrap();
    }

    fn answer(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        let answer = serde_json::from_str(&line);
        assert!(answer.is_ok(), "{line}");
        answer.unwrap()
    }

    fn ask(&mut self, message: &Value) -> Value {
        self.send(message.to_string().as_bytes());
        self.answer()
    }

    /// The result of a plain call.
    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.ask(&json!({ "tool": tool, "arguments": arguments }));
        assert_eq!(answer["ok"], true, "{tool}: {answer}");
        answer["result"].clone()
    }

    /// The error of a plain call.
    fn refused(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.ask(&json!({ "tool": tool, "arguments": arguments }));
        assert_eq!(answer["ok"], false, "{tool}: {answer}");
        answer["error"].clone()
    }

    fn end(mut self) {
        drop(self.input.take());
        assert!(self.server.wait().unwrap().success());
    }
}

fn replay(file: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kingpost"));
    command.args(["mcp", "--replay", file]).current_dir(root()).output().unwrap()
}

/// The whole way, by the protocol; a replay gives the same bytes, and says where it does not.
#[test]
fn a_dialogue_is_proved_timed_and_replayed() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("talk.jsonl").to_string_lossy().into_owned();
    let mut client = Client::start(&["--record", &file]);
    let start = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize",
                        "params": { "protocolVersion": "2025-03-26", "capabilities": {} } });
    let hello = client.ask(&start);
    assert_eq!(hello["result"]["protocolVersion"], "2025-03-26");
    assert_eq!(hello["result"]["serverInfo"]["name"], "kingpost");
    client.send(br#"{"jsonrpc": "2.0", "method": "notifications/initialized"}"#); // has no answer
    let listed = client.ask(&json!({ "jsonrpc": "2.0", "id": "a", "method": "tools/list" }));
    assert_eq!(listed["id"], "a");
    let tools = listed["result"]["tools"].as_array().unwrap();
    for tool in tools {
        assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
    }
    assert!(tools.iter().any(|tool| tool["name"] == "apply"));
    let mut id = 0;
    let mut call = |client: &mut Client, name: &str, arguments: Value| {
        id += 1;
        let params = json!({ "name": name, "arguments": arguments });
        let answer =
            client.ask(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }));
        assert_eq!(answer["id"], id);
        let result = answer["result"].clone();
        let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(text, result["structuredContent"]);
        (result["isError"] == true, text)
    };
    let (_, loaded) = call(&mut client, "load", json!({ "text": GEMM }));
    assert_eq!(loaded["text"], GEMM);
    assert_eq!(loaded["parts"]["insns"][1]["loops"][2]["name"], "l");
    let (_, steps) = call(&mut client, "steps", json!({ "only": ["interchange_inames", "distribute_loop"] }));
    let legal: Vec<&str> = steps
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|tried| tried["legal"].as_array().unwrap())
        .map(|legal| legal["step"].as_str().unwrap())
        .collect();
    assert_eq!(legal, ["interchange_inames(k, inner: l)", "distribute_loop(i, before: [k])"]);
    // every step that was said to be legal is
    for step in legal {
        let (is_error, done) = call(&mut client, "apply", json!({ "steps": step }));
        assert!(!is_error, "{done}");
        call(&mut client, "undo", json!({}));
    }
    let (_, done) = call(
        &mut client,
        "apply",
        json!({ "steps": "distribute_loop(i, before: [k])\nlet block, row = split_iname(i_1, factor: 8)\ntag(row, unroll)" }),
    );
    assert_eq!(done["applied"][1]["made"]["loops"], json!(["i_1_o", "i_1_i"]));
    assert_eq!(done["applied"][0]["keeps"][0], "results up to the order of sums and products");
    assert!(
        done["applied"][0]["obligations"]
            .as_array()
            .unwrap()
            .contains(&json!(["order", "every dependence still runs forward"]))
    );
    // `z` and the sums in another group
    let (is_error, why) = call(&mut client, "apply", json!({ "steps": "tag(j, g.0)" }));
    assert!(
        is_error && why["refused"]["kind"] == "placement" && why["refused"]["element"] == "c[0,1]",
        "{why}"
    );
    assert_eq!(why["refused"]["source"]["insn"], "z");
    assert_eq!(why["refused"]["sink"]["point"].as_array().unwrap().len(), 4);
    let (_, dependences) = call(&mut client, "dependences", json!({}));
    assert!(dependences.as_array().unwrap().iter().any(|d| d["source"] == "z" && d["sink"] == "u"));
    let (_, source) = call(&mut client, "source", json!({ "target": "cuda" }));
    assert!(source["source"].as_str().unwrap().contains("__global__"));
    let run = json!({ "params": { "n": 40 }, "device": "c" });
    let (is_error, time) = call(&mut client, "time", run.clone());
    assert!(
        !is_error
            && time["seconds"].as_f64().unwrap() > 0.0
            && time["roofline"]["part"].as_f64().unwrap() > 0.0,
        "{time}"
    );
    let (_, predicted) = call(&mut client, "predict", run);
    assert!(predicted["prediction"]["cycles"].as_f64().unwrap() > 40.0 * 40.0 * 40.0 / 16.0, "{predicted}");
    let (_, saved) = call(&mut client, "save", json!({ "format": "file" }));
    let text = saved["text"].as_str().unwrap();
    let (_, again) = call(&mut client, "load", json!({ "text": text }));
    assert_eq!(again["applied"].as_array().unwrap().len(), 3);
    assert_eq!(call(&mut client, "save", json!({ "format": "file" })).1["text"], text);
    client.end();

    let record = std::fs::read_to_string(&file).unwrap();
    let first = replay(&file);
    assert!(first.status.success(), "{}", String::from_utf8_lossy(&first.stderr));
    let answers = record.lines().filter_map(|line| {
        let entry: Value = serde_json::from_str(line).unwrap();
        entry["answer"].as_str().map(|answer| answer.to_owned() + "\n")
    });
    assert_eq!(String::from_utf8(first.stdout).unwrap(), answers.collect::<String>());
    // an answer that was another one is found
    let forged =
        write(dir.path(), "forged.jsonl", &record.replacen("distribute `i` before `k`", "distribute `i`", 1));
    let second = replay(&forged);
    assert_eq!(second.status.code(), Some(1));
    assert!(
        String::from_utf8_lossy(&second.stderr).contains("1 of "),
        "{}",
        String::from_utf8_lossy(&second.stderr)
    );
}

/// Whatever comes, the next message is answered.
#[test]
fn bad_input_is_answered_and_ends_nothing() {
    let mut client = Client::start(&[]);
    let mut code = |bytes: &[u8]| {
        client.send(bytes);
        client.answer()["error"]["code"].as_i64()
    };
    let deep = "[".repeat(100_000);
    for bytes in
        [&b"{"[..], b"\xff\xfe", b"nonsense", deep.as_bytes(), b"{\"jsonrpc\": \"2.0\", \"id\": \"\\ud800\"}"]
    {
        assert_eq!(code(bytes), Some(-32700));
    }
    for bytes in
        [&b"[]"[..], b"3", b"null", br#"{"jsonrpc": "2.0"}"#, br#"{"jsonrpc": "2.0", "id": 1, "method": 3}"#]
    {
        assert_eq!(code(bytes), Some(-32600));
    }
    assert_eq!(code(br#"{"jsonrpc": "2.0", "id": 1, "method": "tools/burn"}"#), Some(-32601));
    assert_eq!(
        code(br#"{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "burn"}}"#),
        Some(-32602)
    );
    client.send(b"  \r"); // a blank line has no answer
    client.send(br#"{"jsonrpc": "2.0", "id": 7, "result": {}}"#); // nor has an answer
    let usage = |client: &mut Client, tool: &str, arguments: Value, says: &str| {
        let error = client.refused(tool, arguments);
        assert!(error["message"].as_str().unwrap().contains(says), "{error}");
    };
    usage(&mut client, "kernel", json!({}), "no kernel is loaded");
    usage(&mut client, "burn", json!({}), "there is no tool `burn`; there is load, kernel");
    usage(&mut client, "load", json!({}), "needed either `text` or `form`");
    usage(&mut client, "load", json!({ "text": 3 }), "arguments: ");
    usage(&mut client, "load", json!({ "file": "x" }), "unknown field `file`");
    usage(&mut client, "load", json!({ "form": "laplce" }), "did you mean `laplace`?");
    usage(&mut client, "load", json!({ "form": "laplace --degree 99" }), "degree");
    usage(&mut client, "load", json!({ "form": "--help" }), "--help");
    usage(&mut client, "load", json!({ "form": "no/such.kingpost" }), "no/such.kingpost");
    let mistakes = client.refused("load", json!({ "text": "kernel k\narg x: f63 in\n" }));
    assert_eq!(
        (&mistakes["kind"], &mistakes["mistakes"][0]["line"]),
        (&json!("text"), &json!(2)),
        "{mistakes}"
    );
    client.call("load", json!({ "text": GEMM }));
    usage(&mut client, "apply", json!({}), "needed either `steps` (with `holes`) or `recipe`");
    usage(&mut client, "apply", json!({ "steps": "splt_iname(i, 8)" }), "there is no step `splt_iname`");
    usage(&mut client, "apply", json!({ "recipe": [{ "split_iname": { "iname": "i" } }] }), "factor");
    usage(&mut client, "apply", json!({ "recipe": { "steps": 3 } }), "list of steps");
    usage(&mut client, "undo", json!({}), "there are 0 calls to undo, not 1");
    usage(&mut client, "steps", json!({ "only": ["split"] , "limit": -1 }), "integer `-1`");
    usage(&mut client, "source", json!({ "target": "metal" }), "there is no target `metal`; there is");
    usage(&mut client, "time", json!({ "device": "c" }), "parameter `n` has no value");
    usage(&mut client, "time", json!({ "device": "abacus", "params": { "n": 3 } }), "abacus");
    usage(&mut client, "time", json!({ "device": "c", "params": { "n": 1_i64 << 40 } }), "n");
    usage(
        &mut client,
        "tune",
        json!({ "run": { "params": { "n": 3 }, "device": "c" } }),
        "no schedule with holes",
    );
    // of several steps none is applied if one is refused
    let refused = client.refused("apply", json!({ "steps": "split_iname(i, factor: 4)\ntag(q, g.0)" }));
    assert_eq!((&refused["line"], &refused["refused"]["kind"]), (&json!(2), &json!("unknown")), "{refused}");
    assert_eq!(client.call("kernel", json!({}))["text"], GEMM);
    client.end();
}

/// Holes and proposals: what is returned can be applied, and was timed on the same inputs.
#[test]
fn schedules_are_found_within_a_budget() {
    let mut client = Client::start(&[]);
    client.call("load", json!({ "text": GEMM }));
    let run = json!({ "params": { "n": 48 }, "device": "c" });
    let steps = "f in [4, 8, 16]\nrequire f < 16\nlet outer, inner = split_iname(l, f)\ntag(inner, unroll)\n";
    let tuned = client.call("tune", json!({ "run": run, "steps": steps }));
    assert_eq!(tuned["trials"].as_array().unwrap().len(), 2, "{tuned}");
    assert!(tuned["trials"][1]["seconds"].as_f64().unwrap() > 0.0, "{tuned}");
    let best = tuned["steps"].as_str().unwrap();
    assert!(best.starts_with(&format!("split_iname(l, factor: {}", tuned["holes"]["f"])), "{best}");
    client.call("apply", json!({ "steps": best }));
    client.call("undo", json!({}));
    client.call("apply", json!({ "steps": steps, "holes": { "f": 8 } }));
    client.call("undo", json!({}));
    let found = client.call("auto", json!({ "run": run, "budget": 3 }));
    assert_eq!(found["trials"].as_array().unwrap().len(), 3);
    assert!(found["trials"].as_array().unwrap().iter().any(|trial| trial["name"] == "as written"));
    client.call("apply", json!({ "steps": found["steps"] }));
    assert!(client.call("time", run)["seconds"].as_f64().unwrap() > 0.0);
    // a form by the words of the command line, on its unit mesh
    let form = client.call("load", json!({ "form": "laplace --dim 2 --degree 1" }));
    assert!(form["text"].as_str().unwrap().starts_with("kernel laplace"), "{form}");
    assert!(client.call("time", json!({ "cells": 4, "device": "c" }))["seconds"].as_f64().unwrap() > 0.0);
    client.end();
}
