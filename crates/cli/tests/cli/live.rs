//! The editor of `kingpost explore --live`, by a scripted client.

#![allow(clippy::unwrap_used)]

use kingpost_sample::is_long_run;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const KERNEL: &str = "\
kernel jacobi
param T: i32
param n: i32
arg u: f64[T + 1, n] inout

for t in 0..T
  for x in 1..n - 1
    s: u[t + 1, x] = 0.25*(u[t, x - 1] + 2.0*u[t, x] + u[t, x + 1])
";

/// A server, ended with the test.
struct Live {
    child: Child,
    /// `127.0.0.1:PORT`.
    host: String,
    /// The path of the page.
    path: String,
    _dir: tempfile::TempDir,
}

impl Drop for Live {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Live {
    fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("jacobi.kingpost");
        std::fs::write(&file, KERNEL).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_kingpost"));
        let mut child =
            command.args(["explore", "--live"]).arg(&file).stdout(Stdio::piped()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        let (host, path) = url.trim().strip_prefix("http://").unwrap().split_once('/').unwrap();
        Self { child, host: host.into(), path: format!("/{path}"), _dir: dir }
    }

    /// Sends bytes; status and body of the answer.
    fn raw(&self, request: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    fn get(&self, path: &str, host: &str) -> (u16, String) {
        self.raw(&format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"))
    }

    fn post(&self, origin: &str, kind: &str, body: &str) -> (u16, String) {
        let (path, host, length) = (&self.path, &self.host, body.len());
        self.raw(&format!(
            "POST {path}explore HTTP/1.1\r\nHost: {host}\r\nOrigin: {origin}\r\nContent-Type: {kind}\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        ))
    }

    /// What the page is told of a text.
    fn edit(&self, text: &str) -> Value {
        let body = serde_json::json!({ "text": text }).to_string();
        let (status, told) = self.post(&format!("http://{}", self.host), "application/json", &body);
        assert_eq!(status, 200, "{told}");
        serde_json::from_str(&told).unwrap()
    }
}

fn steps(told: &Value) -> &[Value] {
    told["steps"].as_array().unwrap()
}

#[test]
fn edits_are_answered_with_steps_refusals_and_mistakes() {
    let live = Live::start();
    let (status, page) = live.get(&live.path, &live.host);
    assert_eq!(status, 200);
    assert!(
        page.starts_with("<!doctype html>")
            && page.contains("id=\"editor\"")
            && page.contains("kernel jacobi")
    );

    assert_eq!(steps(&live.edit(KERNEL)).len(), 1);
    let told = live.edit(&format!("{KERNEL}\nschedule\nsplit(t, 4)\nsplit(x, 8)\n"));
    assert_eq!(steps(&told).len(), 3, "{told}");
    assert!(steps(&told).iter().all(|step| step["refusal"].is_null()));

    let told =
        live.edit(&format!("{KERNEL}\nschedule\nlet outer, inner = split(x, 8)\ninterchange(t, outer)\n"));
    let all = steps(&told);
    let refusal = &all[2]["refusal"];
    assert_eq!((all.len(), refusal["kind"].as_str()), (3, Some("reordered")), "{refusal}");
    assert!(refusal["source"]["point"].is_array(), "{refusal}");

    let told = live.edit(&KERNEL.replace("u[t + 1, x] =", "u[t + 1, y] ="));
    let mistake = &told["errors"][0];
    assert_eq!((mistake["line"].as_u64(), mistake["start"].as_u64().is_some()), (Some(8), true), "{told}");
    // what was wrong is forgotten
    assert_eq!(steps(&live.edit(KERNEL)).len(), 1);
}

#[test]
fn others_are_refused() {
    let live = Live::start();
    let own = format!("http://{}", live.host);
    let body = serde_json::json!({ "text": KERNEL }).to_string();
    let json = "application/json";
    // pages of other origins, and names that are made to lead here
    for origin in ["http://example.org", "null", "https://127.0.0.1", "http://127.0.0.1:1"] {
        assert_eq!(live.post(origin, json, &body).0, 403, "{origin}");
    }
    assert_eq!(live.get(&live.path, "example.org").0, 403);
    // what a form of another page may send without asking
    assert_eq!(live.post(&own, "text/plain", &body).0, 415);
    // who does not know the path
    assert_eq!(live.get("/", &live.host).0, 404);
    assert_eq!(live.get("/00000000000000000000000000000000/", &live.host).0, 404);
    assert_eq!(live.get(&format!("{}other", live.path), &live.host).0, 404);
    assert_eq!(live.get(&format!("{}explore", live.path), &live.host).0, 405);
    // what is no request, too long, or not all there
    assert_eq!(live.raw("what?\r\n\r\n").0, 400);
    let long = format!("GET {} HTTP/1.1\r\nHost: {}\r\nX: {}", live.path, live.host, "x".repeat(30 << 10));
    assert_eq!(live.raw(&long).0, 431);
    let head = format!(
        "POST {}explore HTTP/1.1\r\nHost: {}\r\nOrigin: {own}\r\nContent-Type: {json}\r\n",
        live.path, live.host
    );
    assert_eq!(live.raw(&format!("{head}\r\n")).0, 411);
    assert_eq!(live.raw(&format!("{head}Content-Length: 99999999\r\n\r\n")).0, 413);
    assert_eq!(live.raw(&format!("{head}Content-Length: -1\r\n\r\n")).0, 400);
    if is_long_run() {
        // after five seconds
        assert_eq!(live.raw(&format!("{head}Content-Length: 9\r\n\r\n{{")).0, 408);
    }
    let (status, told) = live.post(&own, json, "{\"text\": 1}");
    assert!(status == 200 && told.contains("errors"), "{told}");
    // and goes on
    assert_eq!(steps(&live.edit(KERNEL)).len(), 1);
}

/// A connection that says nothing holds nobody up.
#[test]
fn a_silent_connection_waits_alone() {
    let live = Live::start();
    let _silent: Vec<TcpStream> = (0..4).map(|_| TcpStream::connect(&live.host).unwrap()).collect();
    let start = std::time::Instant::now();
    assert_eq!(live.get(&live.path, &live.host).0, 200);
    assert!(start.elapsed() < Duration::from_secs(4), "{:?}", start.elapsed());
}

#[test]
fn other_sources_are_refused() {
    for (args, says) in [
        (vec!["explore", "--live", "laplace"], "--live edits a file"),
        (vec!["explore", "--live", "a.kingpost", "-o", "a.html"], "cannot be used with"),
    ] {
        let output = crate::kingpost(&args);
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && told.contains(says), "{args:?}: {told}");
    }
}
