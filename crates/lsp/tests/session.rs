//! Sessions with a scripted client, over pipes.

#![allow(clippy::panic)] // how a test fails

use kingpost_lsp::{End, serve};
use kingpost_primitives::steps;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Read, Write, pipe};
use std::thread::JoinHandle;

const URI: &str = "file:///my.kingpost";

struct Client {
    to: PipeWriter,
    from: BufReader<PipeReader>,
    server: JoinHandle<std::io::Result<End>>,
    next: u64,
}

impl Client {
    /// A client of a server that knows nothing of it.
    fn start() -> Self {
        let (input, to) = pipe().expect("a pipe");
        let (from, output) = pipe().expect("a pipe");
        let server = std::thread::spawn(move || serve(BufReader::new(input), output, steps()));
        Self { to, from: BufReader::new(from), server, next: 1 }
    }

    /// A client whose session is initialised.
    fn running() -> Self {
        let mut client = Self::start();
        let abilities = client.ask("initialize", json!({"capabilities": {}}));
        assert_eq!(abilities["capabilities"]["hoverProvider"], true);
        client.tell("initialized", json!({}));
        client
    }

    fn send(&mut self, text: &str) {
        write!(self.to, "Content-Length: {}\r\n\r\n{text}", text.len()).expect("the server listens");
    }

    fn receive(&mut self) -> Value {
        let mut header = String::new();
        let mut length = 0;
        while header.trim() != "" || length == 0 {
            header.clear();
            self.from.read_line(&mut header).expect("the server speaks");
            if let Some(text) = header.trim().strip_prefix("Content-Length: ") {
                length = text.parse().expect("a length");
            }
        }
        let mut body = vec![0; length];
        self.from.read_exact(&mut body).expect("as long as it says");
        let message: Value = serde_json::from_slice(&body).expect("it is JSON");
        assert_eq!(message["jsonrpc"], "2.0");
        message
    }

    fn tell(&mut self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string());
    }

    /// The answer to a request; diagnostics in between are passed over.
    fn answer(&mut self, method: &str, params: Value) -> Value {
        let id = self.next;
        self.next += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string());
        loop {
            let message = self.receive();
            if message["id"] == id {
                return message;
            }
            assert_eq!(message["method"], "textDocument/publishDiagnostics");
        }
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        let answer = self.answer(method, params);
        assert_eq!(answer.get("error"), None);
        answer["result"].clone()
    }

    fn error(&mut self, method: &str, params: Value) -> (i64, String) {
        let answer = self.answer(method, params);
        let error = &answer["error"];
        (error["code"].as_i64().expect("an error"), error["message"].as_str().expect("with words").to_owned())
    }

    /// What is wrong with a text after it is opened or changed.
    fn open(&mut self, text: &str) -> Vec<Value> {
        self.tell("textDocument/didOpen", json!({"textDocument": {"uri": URI, "text": text, "version": 1}}));
        self.diagnostics()
    }

    fn change(&mut self, text: &str) -> Vec<Value> {
        let document = json!({"uri": URI, "version": 2});
        self.tell(
            "textDocument/didChange",
            json!({"textDocument": document, "contentChanges": [{"text": text}]}),
        );
        self.diagnostics()
    }

    fn diagnostics(&mut self) -> Vec<Value> {
        let message = self.receive();
        assert_eq!(message["method"], "textDocument/publishDiagnostics");
        assert_eq!(message["params"]["uri"], URI);
        message["params"]["diagnostics"].as_array().expect("a list").clone()
    }

    /// A request about the place after a piece of a text.
    fn at(&mut self, method: &str, text: &str, piece: &str) -> Value {
        let before = &text[..text.find(piece).expect("it is there") + piece.len()];
        let line = before.matches('\n').count();
        let character = before.rsplit('\n').next().expect("a line").encode_utf16().count();
        let position = json!({"line": line, "character": character});
        self.ask(method, json!({"textDocument": {"uri": URI}, "position": position}))
    }

    fn hover(&mut self, text: &str, piece: &str) -> String {
        let found = self.at("textDocument/hover", text, piece);
        found["contents"]["value"].as_str().unwrap_or("nothing").to_owned()
    }

    fn labels(&mut self, text: &str, piece: &str) -> Vec<String> {
        let found = self.at("textDocument/completion", text, piece);
        let items = found["items"].as_array().expect("a list").iter();
        items.map(|item| item["label"].as_str().expect("a label").to_owned()).collect()
    }

    fn end(mut self) {
        assert_eq!(self.ask("shutdown", Value::Null), Value::Null);
        assert_eq!(self.error("shutdown", Value::Null).0, -32600);
        self.tell("exit", Value::Null);
        assert_eq!(self.server.join().expect("no panic").expect("the pipes work"), End::Asked);
    }
}

/// The text of a range.
fn piece<'t>(text: &'t str, range: &Value) -> &'t str {
    let byte = |position: &Value| {
        let number = |name: &str| position[name].as_u64().expect("a number") as usize;
        let line: usize = text.split_inclusive('\n').take(number("line")).map(str::len).sum();
        let units = text[line..].char_indices().map(|(at, c)| (at, c.len_utf16()));
        let mut left = number("character");
        for (at, units) in units {
            if left == 0 {
                return line + at;
            }
            left -= units;
        }
        text.len()
    };
    &text[byte(&range["start"])..byte(&range["end"])]
}

const SUMS: &str = "\
kernel sums  # 𝄞 of rows

param n: i32
arg x: f64[n, 4] in
arg y: f64[n] out
temp t: f64 private

for i in 0..n
  start: t = 0.0
  for j in 0..4
    add: t += x[i, j]
  y[i] = t

schedule
let block, item = split(i, 64)
tag(block, g.0)
tag(item, tag: l.0)
";

#[test]
fn a_session() {
    let mut client = Client::running();
    // mistakes of the text, with their places
    let wrong = SUMS.replace("+= x[i, j]", "+= z[i, j]");
    let [mistake] = &client.open(&wrong)[..] else { panic!("one mistake") };
    assert_eq!(mistake["message"], "the name `z` is not known");
    assert_eq!(piece(&wrong, &mistake["range"]), "z");
    assert_eq!(client.at("textDocument/formatting", &wrong, "z"), Value::Null);
    let wrong = SUMS.replace("split(i, 64)", "splt(i, 64)");
    let [mistake] = &client.change(&wrong)[..] else { panic!("one mistake") };
    assert_eq!(mistake["message"], "there is no step `splt`; did you mean `split`?");
    assert_eq!(piece(&wrong, &mistake["range"]), "splt");
    // and of a kernel that is well formed
    let wrong = SUMS.replace("x[i, j]", "x[i, j + 1]");
    let [mistake] = &client.change(&wrong)[..] else { panic!("one mistake") };
    assert!(
        mistake["message"].as_str().expect("words").starts_with("`add[0,3]` accesses `x[0,4]`"),
        "{mistake}"
    );
    assert_eq!(piece(&wrong, &mistake["range"]), "add: t += x[i, j + 1]");
    assert_eq!(client.change(SUMS), Vec::<Value>::new());

    // what is under the cursor
    assert_eq!(client.hover(SUMS, "t += x"), "```kingpost\narg x: f64[n, 4] in\n```\n\nread by `add`\n");
    let of_loop = client.hover(SUMS, "for j");
    assert!(
        of_loop.starts_with("```kingpost\nfor j in 0..4\n```\n\ninside `i`\n\nruns `add`\n"),
        "{of_loop}"
    );
    let statement = client.hover(SUMS, "add");
    assert!(statement.contains("add: t += x[i, j]") && statement.contains("for `i in 0..n`"), "{statement}");
    assert!(statement.contains("flow   t: ") && statement.contains("start"), "{statement}");
    assert!(client.hover(SUMS, "  y[i] =").contains("s0: y[i] = t"));
    assert_eq!(client.hover(SUMS, "𝄞"), "nothing");
    assert!(
        client
            .hover(SUMS, "= spli")
            .starts_with("`split(iname, factor, outer, inner, tail)`\n\nSplits `iname`")
    );
    assert!(
        client.hover(SUMS, "let block").starts_with("```kingpost\nfor i_o in 0..floor_div(n + 63, 64)\n")
    );
    assert!(client.hover(SUMS, "tag(item").starts_with("```kingpost\nfor i_i in 0..min(64, n - 64*i_o)\n"));
    assert!(client.hover(SUMS, ", tag").contains("g.0"), "{}", client.hover(SUMS, ", tag"));
    // where it comes from
    let place = client.at("textDocument/definition", SUMS, "tag(item");
    assert_eq!((place["uri"].as_str(), piece(SUMS, &place["range"])), (Some(URI), "item"));
    let place = client.at("textDocument/definition", SUMS, "split(i");
    assert_eq!(piece(SUMS, &place["range"]), "for i in 0..n");
    assert_eq!(client.at("textDocument/definition", SUMS, "𝄞"), Value::Null);

    // the kernel after a step
    let document = json!({"textDocument": {"uri": URI}});
    let lenses = client.ask("textDocument/codeLens", document.clone());
    let lenses = lenses.as_array().expect("a list");
    let steps: Vec<_> = lenses.iter().map(|lens| piece(SUMS, &lens["range"])).collect();
    assert_eq!(steps, ["let block, item = split(i, 64)", "tag(block, g.0)", "tag(item, tag: l.0)"]);
    let command = json!({"command": "kingpost.kernelAfter", "arguments": lenses[1]["command"]["arguments"]});
    let kernels = client.ask("workspace/executeCommand", command);
    let text = |name: &str| kernels[name].as_str().expect("a kernel").to_owned();
    assert!(text("before").contains("for i_o in 0..floor_div(n + 63, 64)\n"));
    assert!(text("after").contains("for i_o in 0..floor_div(n + 63, 64) {g.0}\n"));

    // layout
    assert_eq!(client.ask("textDocument/formatting", document.clone()), json!([]));
    let untidy = SUMS.replace("split(i, 64)", "split( i,64 )");
    assert_eq!(client.change(&untidy), Vec::<Value>::new());
    let edits = client.ask("textDocument/formatting", document);
    assert_eq!(piece(&untidy, &edits[0]["range"]), untidy);
    assert_eq!(edits[0]["newText"], SUMS);
    client.tell("textDocument/didClose", json!({"textDocument": {"uri": URI}}));
    assert_eq!(client.diagnostics(), Vec::<Value>::new());
    client.end();
}

#[test]
fn a_refusal_has_its_instances() {
    let mut client = Client::running();
    let text = "\
kernel shifted

arg a: f64[9] inout

for i in 0..8
  s: a[i + 1] = a[i]

schedule
let block, item = split(i, 4)
tag(block, g.0)
tag(item, l.0)
";
    let [refusal] = &client.open(text)[..] else { panic!("one refusal") };
    assert_eq!(piece(text, &refusal["range"]), "tag(block, g.0)");
    let message = refusal["message"].as_str().expect("words");
    assert!(
        message.contains("`a[4]`") && message.contains("`s[0,3]`") && message.contains("`s[1,0]`"),
        "{message}"
    );
    assert_eq!(refusal["data"]["source"], json!({"insn": "s", "point": [0, 3]}));
    assert_eq!(refusal["data"]["sink"], json!({"insn": "s", "point": [1, 0]}));
    assert_eq!(refusal["code"], "placement");
    let [source, _] = &refusal["relatedInformation"].as_array().expect("a list")[..] else {
        panic!("two instances")
    };
    assert_eq!(piece(text, &source["location"]["range"]), "s: a[i + 1] = a[i]");
    // the step before it is there
    let lenses = client.ask("textDocument/codeLens", json!({"textDocument": {"uri": URI}}));
    assert_eq!(lenses.as_array().map(Vec::len), Some(1));
    client.end();
}

#[test]
fn completion() {
    let mut client = Client::running();
    client.open(SUMS);
    let steps = client.labels(SUMS, "schedule\n");
    for step in ["split_iname", "split", "tile", "prefetch_array", "let", "require"] {
        assert!(steps.iter().any(|other| other == step), "{step} is not in {steps:?}");
    }
    let found = client.at("textDocument/completion", SUMS, "schedule\n");
    let split = found["items"].as_array().expect("a list").iter().find(|item| item["label"] == "split");
    let split = split.expect("it is a verb");
    assert_eq!(split["insertText"], "split(${1:iname}, ${2:factor})");
    assert!(split["documentation"]["value"].as_str().expect("text").contains("# Precondition"));
    // arguments, handles and names where a line is being written
    let text = format!("{SUMS}prefetch_array(");
    client.change(&text);
    let labels = client.labels(&text, "prefetch_array(");
    for label in ["var", "at", "space", "block", "item", "i_o", "x", "add"] {
        assert!(labels.iter().any(|other| other == label), "{label} is not in {labels:?}");
    }
    assert!(!labels.iter().any(|other| other == "i"), "the loop was split");
    let text = format!("{SUMS}split_iname(j, 2, tail: ");
    client.change(&text);
    assert_eq!(client.labels(&text, "tail: ")[..3], ["guard", "peel", "exact"]);
    // the kernel above the schedule
    let labels = client.labels(SUMS, "for ");
    for label in ["for", "inout", "sqrt", "x", "start"] {
        assert!(labels.iter().any(|other| other == label), "{label} is not in {labels:?}");
    }
    let text = format!("{SUMS}# split(");
    client.change(&text);
    assert_eq!(client.labels(&text, "# split("), Vec::<String>::new());
    client.end();
}

#[test]
fn malformed_messages_are_errors() {
    let mut client = Client::start();
    assert_eq!(client.error("textDocument/hover", json!({})).0, -32002);
    client.tell("textDocument/didOpen", json!({"textDocument": {"uri": URI, "text": ""}})); // too early
    client.send("{");
    let answer = client.receive();
    assert_eq!((&answer["id"], answer["error"]["code"].as_i64()), (&Value::Null, Some(-32700)));
    client.to.write_all(b"Content-Length: many\r\n\r\n").expect("the server listens");
    assert_eq!(client.receive()["error"]["code"], -32700);
    for message in ["1", "[]", "null", "{}", r#"{"id": 7}"#, r#"{"method": 3, "id": 7}"#] {
        client.send(message);
        assert_eq!(client.receive()["error"]["code"], -32600, "{message}");
    }
    client.send(r#"{"id": 7, "result": null}"#); // an answer to nothing
    client.ask("initialize", Value::Null);
    assert_eq!(client.error("initialize", Value::Null).0, -32600);
    assert_eq!(
        client.error("textDocument/rename", json!({})),
        (-32601, "there is no method `textDocument/rename`".into())
    );
    client.tell("$/cancelRequest", json!({"id": 1}));
    for params in
        [json!(null), json!([]), json!({"textDocument": URI}), json!({"textDocument": {"uri": URI}})]
    {
        for method in ["hover", "completion", "definition", "codeLens", "formatting"] {
            assert_eq!(client.error(&format!("textDocument/{method}"), params.clone()).0, -32602);
        }
        client.tell("textDocument/didOpen", params.clone());
        client.tell("textDocument/didChange", params.clone());
        client.tell("textDocument/didClose", json!({"textDocument": {"uri": "file:///other"}}));
    }
    client.answer("workspace/executeCommand", json!({"command": "kingpost.kernelAfter", "arguments": []}));
    client.open("kernel");
    for position in [json!(null), json!({"line": "a", "character": 0}), json!({"line": -1, "character": 1.5})]
    {
        let params = json!({"textDocument": {"uri": URI}, "position": position});
        assert_eq!(client.error("textDocument/hover", params).0, -32602);
    }
    let far = json!({"textDocument": {"uri": URI}, "position": {"line": 1e9 as u64, "character": u64::MAX}});
    assert_eq!(client.ask("textDocument/hover", far), Value::Null);
    for argument in
        [json!({"uri": URI, "section": 0, "step": 9}), json!({"uri": URI, "section": -1}), json!(3)]
    {
        let params = json!({"command": "kingpost.kernelAfter", "arguments": [argument]});
        assert_eq!(client.error("workspace/executeCommand", params).0, -32602);
    }
    // texts that are no kernels have mistakes, and no request fails on them
    for text in
        ["", "\u{0}", "schedule\n", "kernel k\nschedule\nx(", "kernel k\nkernel k\n", "kernel ä\n\n)]}\n"]
    {
        assert!(!client.change(text).is_empty() || text.contains("kernel k\nkernel"), "{text:?}");
        for line in 0..4 {
            for character in 0..9 {
                let position = json!({"line": line, "character": character});
                for method in ["hover", "completion", "definition"] {
                    let params = json!({"textDocument": {"uri": URI}, "position": position});
                    client.ask(&format!("textDocument/{method}"), params);
                }
            }
        }
    }
    client.end();
}

#[test]
fn the_input_may_end() {
    let client = Client::running();
    drop(client.to);
    assert_eq!(client.server.join().expect("no panic").expect("the pipes work"), End::Abandoned);
    let mut client = Client::running();
    client.tell("exit", Value::Null);
    assert_eq!(client.server.join().expect("no panic").expect("the pipes work"), End::Abandoned);
}
