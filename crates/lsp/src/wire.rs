//! Messages on a pair of streams: a header with a length, then JSON.

use serde_json::{Value, json};
use std::io::{self, BufRead, Read, Write};

/// Maximum length of a message; a text of this size is no kernel.
const LONGEST: u64 = 64 << 20;
/// Maximum length of a line of a header.
const HEADER: u64 = 4096;

/// What was read.
#[derive(Debug, PartialEq)]
pub enum Incoming {
    Message(Value),
    /// Why what was read is no message.
    Broken(String),
}

/// The next message; none at the end.
pub fn read(input: &mut impl BufRead) -> io::Result<Option<Incoming>> {
    let mut length = None;
    let mut any = false;
    loop {
        let mut line = Vec::new();
        if input.by_ref().take(HEADER).read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        let line = String::from_utf8_lossy(&line);
        match line.trim().split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.trim().parse::<u64>().ok();
            }
            Some(_) => {}
            None if line.trim().is_empty() && any => break,
            None => {}
        }
        any |= !line.trim().is_empty();
    }
    let Some(length) = length else {
        return Ok(Some(Incoming::Broken("a header without `Content-Length: NUMBER`".into())));
    };
    if length > LONGEST {
        io::copy(&mut input.by_ref().take(length), &mut io::sink())?;
        return Ok(Some(Incoming::Broken(format!("{length} bytes; a message has {LONGEST} at most"))));
    }
    let mut body = vec![0; length as usize]; // which is small, as was just checked
    match input.read_exact(&mut body) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    Ok(Some(match serde_json::from_slice(&body) {
        Ok(message) => Incoming::Message(message),
        Err(why) => Incoming::Broken(format!("no JSON: {why}")),
    }))
}

/// Writes a message.
pub fn write(output: &mut impl Write, mut message: Value) -> io::Result<()> {
    if let Value::Object(fields) = &mut message {
        fields.insert("jsonrpc".into(), json!("2.0"));
    }
    let body = message.to_string();
    write!(output, "Content-Length: {}\r\n\r\n{body}", body.len())?;
    output.flush()
}

#[cfg(test)]
#[allow(clippy::panic)] // how a test fails
mod tests {
    use super::*;

    fn all(mut input: &[u8]) -> Vec<Incoming> {
        std::iter::from_fn(|| read(&mut input).expect("memory has no errors")).collect()
    }

    #[test]
    fn messages_are_framed() {
        let mut output = Vec::new();
        write(&mut output, json!({"id": 1, "result": "ä"})).expect("memory takes everything");
        assert_eq!(all(&output), [Incoming::Message(json!({"jsonrpc": "2.0", "id": 1, "result": "ä"}))]);
        let text = "content-length:2\r\nContent-Type: x\r\n\r\n{}\r\nContent-Length: 1\n\n1";
        assert_eq!(all(text.as_bytes()), [Incoming::Message(json!({})), Incoming::Message(json!(1))]);
    }

    #[test]
    fn what_is_no_message_is_passed_over() {
        let text = "Content-Length: -1\r\n\r\nContent-Length: 2\r\n\r\n{}";
        let [Incoming::Broken(_), Incoming::Message(_)] = &all(text.as_bytes())[..] else { panic!() };
        let text = b"Content-Length: 2\r\n\r\n\xff{Content-Length: 2\r\n\r\n{}";
        let [Incoming::Broken(_), Incoming::Message(_)] = &all(text)[..] else { panic!() };
        assert_eq!(all(b"Content-Length: 9\r\n\r\n{}"), []);
        assert_eq!(all(b"Content-Le"), []);
        assert_eq!(
            all(b"\xff\n\n\n"),
            [Incoming::Broken("a header without `Content-Length: NUMBER`".into())]
        );
    }
}
