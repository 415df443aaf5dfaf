//! A server for one page on this machine alone.
//!
//! It listens on 127.0.0.1, below a path that nobody can guess, and answers a browser that shows its own page:
//! other origins are refused, and so are names that their owner made to lead here. A question is short, comes in
//! time, and is answered once.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

/// Bytes of the longest head of a request.
const HEAD: usize = 16 << 10;
/// Bytes of the longest body.
const BODY: usize = 1 << 20;
/// Time for a whole request, and for its answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Connections at a time; browsers open some that they may need.
const CONNECTIONS: usize = 32;
/// What a page may do: nothing but ask the server.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// What is asked.
pub enum Question {
    /// The page.
    Page,
    /// What the page sent, a JSON text.
    Post(String),
}

/// An answer.
pub struct Answer {
    /// As in `text/html`.
    pub kind: &'static str,
    /// The text.
    pub body: String,
}

/// A server that does not answer yet.
pub struct Server {
    listener: TcpListener,
    place: Place,
}

/// Where the page is.
#[derive(Clone)]
struct Place {
    port: u16,
    secret: String,
}

/// Why a request is not answered.
type Refused = (u16, &'static str);

impl Server {
    /// Listens on a port of 127.0.0.1, or on any that is free if it is 0.
    ///
    /// # Errors
    /// The port is taken, or not allowed.
    pub fn listen(port: u16) -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        let port = listener.local_addr()?.port();
        // the keys come from the system's random numbers, and the hashes do not show them
        let part = || RandomState::new().build_hasher().finish();
        Ok(Self { listener, place: Place { port, secret: format!("{:016x}{:016x}", part(), part()) } })
    }

    /// Where the page is.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/{}/", self.place.port, self.place.secret)
    }

    /// Answers, one question after the other, for as long as the program runs.
    ///
    /// # Errors
    /// The listener is gone.
    pub fn answer(self, mut answer: impl FnMut(Question) -> Answer) -> std::io::Result<()> {
        let (sender, questions) = channel::<(Question, TcpStream)>();
        let Self { listener, place } = self;
        let accepting = std::thread::spawn(move || accept(&listener, &place, &sender));
        for (question, mut stream) in questions {
            let Answer { kind, body } = answer(question);
            // a browser that has gone needs no answer
            let _ = write(&mut stream, (200, "OK"), kind, &body);
        }
        accepting.join().unwrap_or_else(|_| Err(std::io::Error::other("the listener panicked")))
    }
}

/// Reads requests, each on a thread, so that a connection that says nothing holds nobody up.
fn accept(
    listener: &TcpListener,
    place: &Place,
    sender: &Sender<(Question, TcpStream)>,
) -> std::io::Result<()> {
    let open = Arc::new(AtomicUsize::new(0));
    loop {
        let (mut stream, _) = match listener.accept() {
            Ok(accepted) => accepted,
            // it was closed before it was accepted, or too many files are open for now
            Err(error) if matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::Interrupted) => {
                continue;
            }
            Err(error) => return Err(error),
        };
        if open.load(Ordering::SeqCst) >= CONNECTIONS {
            continue;
        }
        open.fetch_add(1, Ordering::SeqCst);
        let (place, sender, open) = (place.clone(), sender.clone(), Arc::clone(&open));
        std::thread::spawn(move || {
            match read(&mut stream, &place) {
                Ok(question) => {
                    let _ = sender.send((question, stream)); // the program ends
                }
                Err(refused) => {
                    let _ = refuse(&mut stream, refused); // nobody listens any more
                }
            }
            open.fetch_sub(1, Ordering::SeqCst);
        });
    }
}

/// Reads and judges a request.
fn read(stream: &mut TcpStream, place: &Place) -> Result<Question, Refused> {
    let until = Instant::now() + PATIENCE;
    let mut bytes = Vec::new();
    let (head, start) = loop {
        more(stream, &mut bytes, until)?;
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut request = httparse::Request::new(&mut headers);
        match request.parse(&bytes) {
            Ok(httparse::Status::Complete(start)) => break (Head::of(&request, place)?, start),
            Ok(httparse::Status::Partial) if bytes.len() <= HEAD => {}
            Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
                return Err((431, "Request Header Fields Too Large"));
            }
            Err(_) => return Err((400, "Bad Request")),
        }
    };
    let Head::Post(length) = head else { return Ok(Question::Page) };
    while bytes.len() < start + length {
        more(stream, &mut bytes, until)?;
    }
    let body = bytes[start..start + length].to_vec();
    String::from_utf8(body).map(Question::Post).map_err(|_| (400, "Bad Request"))
}

/// Reads what has come.
fn more(stream: &mut TcpStream, bytes: &mut Vec<u8>, until: Instant) -> Result<(), Refused> {
    let late = (408, "Request Timeout");
    let left = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()).ok_or(late)?;
    let mut some = [0; 4096];
    let read = stream.set_read_timeout(Some(left)).and_then(|()| stream.read(&mut some)).map_err(|_| late)?;
    bytes.extend_from_slice(&some[..read]);
    if read == 0 { Err((400, "Bad Request")) } else { Ok(()) }
}

/// What the head of a request asks for.
enum Head {
    Page,
    /// A body of this length follows.
    Post(usize),
}

impl Head {
    fn of(request: &httparse::Request<'_, '_>, place: &Place) -> Result<Self, Refused> {
        let header = |name: &str| {
            let mut all = request.headers.iter().filter(|h| h.name.eq_ignore_ascii_case(name));
            let first = all.next().map(|h| std::str::from_utf8(h.value)).transpose();
            if all.next().is_some() {
                Err((400, "Bad Request"))
            } else {
                first.map_err(|_| (400, "Bad Request"))
            }
        };
        let (path, forbidden) = (request.path.ok_or((400, "Bad Request"))?, (403, "Forbidden"));
        let hosts = ["127.0.0.1", "localhost"].map(|host| format!("{host}:{}", place.port));
        // a name that leads here by its owner's will is another host
        if !header("host")?.is_some_and(|host| hosts.iter().any(|own| own == host)) {
            return Err(forbidden);
        }
        let origin = header("origin")?;
        let is_own = |origin: &str| hosts.iter().any(|host| origin.strip_prefix("http://") == Some(host));
        if !origin.is_none_or(is_own) {
            return Err(forbidden);
        }
        let Some(rest) = path.strip_prefix('/').and_then(|path| path.strip_prefix(&*place.secret)) else {
            return Err((404, "Not Found"));
        };
        match (request.method, rest) {
            (Some("GET"), "/") => Ok(Self::Page),
            (Some("POST"), "/explore") => {
                // a page of another origin has to ask before it may send this type, and is refused
                if origin.is_none() || header("content-type")? != Some("application/json") {
                    return Err((415, "Unsupported Media Type"));
                }
                let length = header("content-length")?.ok_or((411, "Length Required"))?;
                match length.parse() {
                    Ok(length) if length <= BODY => Ok(Self::Post(length)),
                    Ok(_) => Err((413, "Content Too Large")),
                    Err(_) => Err((400, "Bad Request")),
                }
            }
            (_, "/" | "/explore") => Err((405, "Method Not Allowed")),
            _ => Err((404, "Not Found")),
        }
    }
}

/// Says why a request is not answered. What is left of it is read, as far as it is short: a connection that is
/// closed before that looks broken to the other side, which may then not read why.
fn refuse(stream: &mut TcpStream, refused: Refused) -> std::io::Result<()> {
    write(stream, refused, "text/plain", refused.1)?;
    stream.shutdown(Shutdown::Write)?;
    stream.set_read_timeout(Some(Duration::from_millis(500)))?;
    std::io::copy(&mut stream.take(BODY as u64), &mut std::io::sink()).map(drop)
}

fn write(stream: &mut TcpStream, (status, reason): Refused, kind: &str, body: &str) -> std::io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let head = format!(
        "HTTP/1.1 {status} {reason}\r\nContent-Type: {kind}; charset=utf-8\r\nContent-Length: {}\r\n\
         Connection: close\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n\
         Referrer-Policy: no-referrer\r\nCross-Origin-Resource-Policy: same-origin\r\n\
         Content-Security-Policy: {POLICY}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())?;
    stream.flush()
}
