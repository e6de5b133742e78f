//! An HTTP server of a test's own: it records every request, and answers as it is
//! told.
//!
//! ```text
//! connection -> one request, whole -> recorded -> answer | silence | hung up
//! ```
//!
//! A request is recorded before it is answered, as a server would store it. The native
//! tests of `materialize-webhook` use the same file.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;

/// A server that runs until the test ends.
pub struct Receiver {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

/// One end of a connection.
pub trait Connection: Read + Write + Send {}

impl<T: Read + Write + Send> Connection for T {}

/// A request, as it arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// Such as `POST`.
    pub method: String,
    /// With its query.
    pub path: String,
    /// By lower-case name.
    pub headers: BTreeMap<String, String>,
    /// The body.
    pub body: String,
    /// What it was answered; none if it was not.
    pub status: Option<u16>,
}

/// What a request is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A status, headers, a body.
    Status(u16, Vec<(&'static str, String)>, String),
    /// Nothing, for ever.
    Silence,
    /// Nothing, and the connection is closed.
    HangUp,
}

impl Answer {
    /// Returns an answer that is a status alone.
    pub fn status(status: u16) -> Answer {
        Answer::Status(status, Vec::new(), String::new())
    }
}

struct State {
    received: Vec<Received>,
    answer: Box<dyn FnMut(&Received) -> Answer + Send>,
    /// Connections that are never answered; closed they would be an answer.
    silent: Vec<Box<dyn Connection>>,
}

impl Receiver {
    /// Starts a server on a free port.
    pub fn start(answer: impl FnMut(&Received) -> Answer + Send + 'static) -> Receiver {
        Receiver::start_over(|connection| connection, answer)
    }

    /// Starts a server that speaks HTTP over what is made of each connection.
    pub fn start_over<C: Connection + 'static>(
        over: impl Fn(TcpStream) -> C + Send + Sync + 'static,
        answer: impl FnMut(&Received) -> Answer + Send + 'static,
    ) -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
        let address = listener.local_addr().expect("it is bound");
        let state = Arc::new(Mutex::new(State {
            received: Vec::new(),
            answer: Box::new(answer),
            silent: Vec::new(),
        }));
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let shared = Arc::clone(&shared);
                let connection = Box::new(over(connection));
                // A client that was killed breaks off; what it sent whole is recorded.
                thread::spawn(move || serve(connection, &shared).unwrap_or_default());
            }
        });
        Receiver { address, state }
    }

    /// Starts a server that accepts everything.
    pub fn accepting() -> Receiver {
        Receiver::start(|_| Answer::status(204))
    }

    /// Returns its URL, without a slash at the end.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns its `host:port`.
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// Returns every request so far, in the order in which they came.
    pub fn received(&self) -> Vec<Received> {
        lock(&self.state).received.clone()
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().expect("no answer panics")
}

fn serve(mut connection: Box<dyn Connection>, state: &Mutex<State>) -> Option<()> {
    let request = read(&mut connection)?;
    let mut state = lock(state);
    let answer = (state.answer)(&request);
    let status = match &answer {
        Answer::Status(status, ..) => Some(*status),
        Answer::Silence | Answer::HangUp => None,
    };
    state.received.push(Received { status, ..request });
    match answer {
        Answer::Silence => state.silent.push(connection),
        Answer::HangUp => {}
        Answer::Status(status, headers, body) => {
            drop(state);
            let mut head = format!("HTTP/1.1 {status} Told\r\nConnection: close\r\n");
            for (name, value) in headers {
                head += &format!("{name}: {value}\r\n");
            }
            // A 204 has no body, and says so by having no length.
            if status != 204 {
                head += &format!("Content-Length: {}\r\n", body.len());
            }
            connection
                .write_all(format!("{head}\r\n{body}").as_bytes())
                .and_then(|()| connection.flush())
                .ok()?;
        }
    }
    Some(())
}

/// Reads a request; none if it breaks off.
fn read(connection: &mut dyn Connection) -> Option<Received> {
    let mut reader = BufReader::new(connection);
    let mut line = || {
        let mut line = String::new();
        let read = reader.read_line(&mut line).ok()?;
        (read > 0).then(|| line.trim_end().to_owned())
    };
    let first = line()?;
    let mut words = first.split(' ');
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = BTreeMap::new();
    loop {
        let line = line()?;
        let Some((name, value)) = line.split_once(':') else {
            break;
        };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").map_or("0", String::as_str);
    let mut body = vec![0; length.parse().ok()?];
    reader.read_exact(&mut body).ok()?;
    Some(Received {
        method,
        path,
        headers,
        body: String::from_utf8(body).ok()?,
        status: None,
    })
}
