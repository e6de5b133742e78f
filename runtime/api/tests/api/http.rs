//! HTTP by hand: what a test sends is exactly what it says.

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use crate::server::{TestServer, soon};

pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(it, _)| it == name);
        found.map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{}: {error}", self.text()))
    }

    pub fn lines(&self) -> Vec<Value> {
        let lines = self.text().lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// Returns the code of the error that it is.
    pub fn code(&self) -> String {
        self.json()["error"]["code"].as_str().unwrap().to_owned()
    }
}

/// A request of HTTP/1.0, whose answer ends with the connection.
pub struct Ask<'a> {
    pub method: &'a str,
    pub path: &'a str,
    pub token: Option<&'a str>,
    pub headers: &'a [(&'a str, &'a str)],
    pub body: &'a [u8],
}

impl Ask<'_> {
    fn head(&self) -> String {
        let mut head = format!("{} {} HTTP/1.0\r\nHost: host\r\n", self.method, self.path);
        if let Some(token) = self.token {
            head += &format!("Authorization: Bearer {token}\r\n");
        }
        for (name, value) in self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        if !self.body.is_empty() {
            head += &format!("Content-Length: {}\r\n", self.body.len());
        }
        head + "\r\n"
    }

    /// Sends the request; returns the connection and the answer's head.
    pub async fn open(&self, server: &TestServer) -> (BufReader<TcpStream>, Answer) {
        let mut stream = TcpStream::connect(server.address()).await.unwrap();
        stream.write_all(self.head().as_bytes()).await.unwrap();
        // A server that has heard enough closes; its answer counts all the same.
        let _ = stream.write_all(self.body).await;
        let mut reader = BufReader::new(stream);
        let answer = soon("an answer", read_head(&mut reader)).await;
        (reader, answer)
    }

    /// Sends the request and reads the whole answer.
    pub async fn send(&self, server: &TestServer) -> Answer {
        let (mut reader, mut answer) = self.open(server).await;
        let read = reader.read_to_end(&mut answer.body);
        soon("the end of an answer", read).await.unwrap();
        answer
    }
}

async fn read_head(reader: &mut BufReader<TcpStream>) -> Answer {
    let mut line = String::new();
    reader.read_line(&mut line).await.unwrap();
    let status = line.split(' ').nth(1).unwrap_or_else(|| panic!("{line:?}"));
    let mut answer = Answer {
        status: status.parse().unwrap(),
        headers: Vec::new(),
        body: Vec::new(),
    };
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).await.unwrap();
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            return answer;
        };
        answer
            .headers
            .push((name.to_ascii_lowercase(), value.to_owned()));
    }
}

pub async fn get(server: &TestServer, path: &str) -> Answer {
    send(server, "GET", path, b"").await
}

/// Asks as the owner of the data directory.
pub async fn send(server: &TestServer, method: &str, path: &str, body: &[u8]) -> Answer {
    let token = server.token();
    let ask = Ask {
        method,
        path,
        token: Some(&token),
        headers: &[],
        body,
    };
    ask.send(server).await
}
