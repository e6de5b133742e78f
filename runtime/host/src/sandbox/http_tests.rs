use std::sync::Mutex;

use http_body_util::{Empty, Full};
use rcgen::{CertificateParams, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::super::dial::tests::network;
use super::super::limits::Limits;
use super::super::log::LogLine;
use super::*;

/// Far above what a busy machine adds to a sleep.
const STEP: Duration = Duration::from_millis(200);

/// Sends requests under grants, and keeps what is logged.
struct Fixture {
    http: Http,
    logged: Arc<Mutex<Vec<String>>>,
}

impl Fixture {
    fn granted(patterns: &[&str]) -> Fixture {
        let logged: Arc<Mutex<Vec<String>>> = Arc::default();
        let sink = logged.clone();
        let sink = Arc::new(move |line: LogLine| sink.lock().unwrap().push(line.message));
        let log = Arc::new(GuestLog::new("acme/orders", &Limits::default(), sink));
        let http = Http::new(&network(patterns), &log);
        Fixture { http, logged }
    }

    async fn get(&mut self, uri: &str) -> Result<Answered, Error> {
        let body = Empty::new().map_err(|it| match it {}).boxed_unsync();
        self.send(Request::get(uri).body(body).unwrap()).await
    }

    /// Sends a request with little patience, and keeps its connection going.
    async fn send(&mut self, request: Request<WasiBody>) -> Result<Answered, Error> {
        let options = RequestOptions {
            connect_timeout: Some(STEP),
            first_byte_timeout: Some(STEP),
            between_bytes_timeout: Some(STEP),
        };
        let ignored = Box::new(async { Ok(()) });
        let sending = self.http.send_request(request, Some(options), ignored);
        let (response, driving) = Pin::from(sending).await?;
        let _driving = wasmtime_wasi::runtime::spawn(Pin::from(driving));
        Ok(Answered { response, _driving })
    }
}

struct Answered {
    response: Response<WasiBody>,
    _driving: wasmtime_wasi::runtime::AbortOnDropJoinHandle<Result<(), Error>>,
}

impl Answered {
    async fn body(self) -> Result<Bytes, Error> {
        Ok(self.response.into_body().collect().await?.to_bytes())
    }
}

/// Starts a server that answers each connection with bytes, and then waits. Returns
/// its port and the heads of requests that it got.
async fn server(answer: &'static str) -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let heads: Arc<Mutex<Vec<String>>> = Arc::default();
    let got = heads.clone();
    tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            let head = head(&mut stream).await;
            got.lock().unwrap().push(head);
            stream.write_all(answer.as_bytes()).await.unwrap();
            open.push(stream);
        }
    });
    (port, heads)
}

async fn head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap()
}

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

#[tokio::test]
async fn a_granted_server_is_asked_and_its_answer_returned() {
    let (port, heads) = server(OK).await;
    let mut fixture = Fixture::granted(&[&format!("localhost:{port}")]);
    let url = format!("http://localhost:{port}/a/b?c=d");
    let answered = fixture.get(&url).await.unwrap();
    assert_eq!(answered.response.status(), 200);
    assert_eq!(fixture.http.name_wait("wasi:io/streams"), WAIT);
    assert_eq!(
        fixture.http.name_wait("wasi:clocks/wall-clock"),
        "wasi:clocks/wall-clock"
    );
    assert_eq!(answered.body().await.unwrap(), "ok");
    assert_eq!(fixture.http.name_wait("wasi:io/poll"), "wasi:io/poll");
    let heads = heads.lock().unwrap();
    assert!(
        heads[0].starts_with("GET /a/b?c=d HTTP/1.1\r\n"),
        "{heads:?}"
    );
}

#[tokio::test]
async fn what_is_not_granted_is_refused_with_words_and_logged() {
    let (port, heads) = server(OK).await;
    let (other, others) = server(OK).await;
    let mut fixture = Fixture::granted(&[&format!("127.0.0.1:{port}"), &format!("127.1:{port}")]);
    let granted = format!("granted is 127.0.0.1:{port}, 127.1:{port}");
    let cases = [
        (
            format!("http://127.0.0.1:{other}/"),
            format!("127.0.0.1:{other} is not granted; {granted}"),
        ),
        (
            format!("http://localhost:{port}/"),
            format!("localhost:{port} is not granted; {granted}"),
        ),
        (
            "http://127.0.0.1/".to_owned(),
            format!("127.0.0.1:80 is not granted; {granted}"),
        ),
        (
            "https://127.0.0.1/".to_owned(),
            format!("127.0.0.1:443 is not granted; {granted}"),
        ),
        // The user of a URL is no host.
        (
            format!("http://127.0.0.1:{port}@127.0.0.1:{other}/"),
            format!("127.0.0.1:{other} is not"),
        ),
    ];
    for (uri, want) in cases {
        let Err(Error::InternalError(Some(words))) = fixture.get(&uri).await else {
            panic!("{uri} was reached");
        };
        assert!(words.starts_with(&want), "{uri}: {words}");
        let logged = fixture.logged.lock().unwrap().pop().unwrap();
        assert_eq!(logged, format!("wasi:http: {words}"));
    }
    assert!(heads.lock().unwrap().is_empty() && others.lock().unwrap().is_empty());
    assert_eq!(fixture.http.under_way.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_granted_name_that_leads_inside_is_refused() {
    let (port, heads) = server(OK).await;
    // The system's resolver takes it for 127.0.0.1, and it is no address in itself.
    let mut fixture = Fixture::granted(&[&format!("127.1:{port}")]);
    let refused = fixture.get(&format!("http://127.1:{port}/")).await;
    let Err(Error::InternalError(Some(words))) = refused else {
        panic!("it was reached");
    };
    assert!(
        words.contains("resolves to 127.0.0.1, which is this machine"),
        "{words}"
    );
    assert!(heads.lock().unwrap().is_empty());
}

#[tokio::test]
async fn waits_end() {
    let (silent, _) = server("").await;
    let (half, _) = server("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf").await;
    let address = |port| format!("127.0.0.1:{port}");
    let mut fixture = Fixture::granted(&[&address(silent), &address(half)]);
    let uri = |port| format!("http://{}/", address(port));
    let ended = fixture.get(&uri(silent)).await.err();
    assert!(
        matches!(ended, Some(Error::ConnectionReadTimeout)),
        "{ended:?}"
    );
    let answered = fixture.get(&uri(half)).await.unwrap();
    let ended = answered.body().await.err();
    assert!(
        matches!(ended, Some(Error::ConnectionReadTimeout)),
        "{ended:?}"
    );

    // A server that is gone, and one that says nothing at all, not even TLS.
    let deaf = {
        let gone = TcpListener::bind("127.0.0.1:0").await.unwrap();
        gone.local_addr().unwrap().port()
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mute = listener.local_addr().unwrap().port();
    let mut fixture = Fixture::granted(&[&address(mute), &address(deaf)]);
    let ended = fixture
        .get(&format!("https://{}/", address(mute)))
        .await
        .err();
    assert!(matches!(ended, Some(Error::ConnectionTimeout)), "{ended:?}");
    let ended = fixture.get(&uri(deaf)).await.err();
    assert!(matches!(ended, Some(Error::ConnectionRefused)), "{ended:?}");
}

#[tokio::test]
async fn a_guest_s_patience_is_no_longer_than_ours() {
    let asked = |time| RequestOptions {
        connect_timeout: Some(time),
        first_byte_timeout: Some(time),
        between_bytes_timeout: Some(time),
    };
    let ours = Patience::of(RequestOptions::default());
    assert_eq!(Patience::of(asked(Duration::MAX)), ours);
    assert_eq!(Patience::of(asked(STEP)).connect, STEP);
}

#[tokio::test]
async fn lost_connections_and_nonsense_are_told_apart() {
    let (closed, nonsense) = (
        TcpListener::bind("127.0.0.1:0").await.unwrap(),
        server("no\r\n\r\n"),
    );
    let port = closed.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (mut stream, _) = closed.accept().await.unwrap();
        head(&mut stream).await;
    });
    let (other, _) = nonsense.await;
    let grants = [format!("127.0.0.1:{port}"), format!("127.0.0.1:{other}")];
    let mut fixture = Fixture::granted(&[&grants[0], &grants[1]]);
    let ended = fixture.get(&format!("http://{}/", grants[0])).await.err();
    assert!(
        matches!(ended, Some(Error::ConnectionTerminated)),
        "{ended:?}"
    );
    let ended = fixture.get(&format!("http://{}/", grants[1])).await.err();
    assert!(matches!(ended, Some(Error::HttpProtocolError)), "{ended:?}");
}

#[tokio::test]
async fn a_redirect_is_an_answer() {
    let (port, heads) =
        server("HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n").await;
    let mut fixture = Fixture::granted(&[&format!("127.0.0.1:{port}")]);
    let answered = fixture.get(&format!("http://127.0.0.1:{port}/")).await;
    assert_eq!(answered.unwrap().response.status(), 302);
    assert_eq!(heads.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn bodies_have_an_end() {
    let body = || Full::new(Bytes::from_static(b"12345")).map_err(|it| match it {});
    let response = || Side::Response { patience: None };
    let collect = |limited: Limited<_>| async { limited.collect().await.map(|it| it.to_bytes()) };
    assert_eq!(
        collect(Limited::new(body(), 5, response())).await.unwrap(),
        "12345"
    );
    let ended = collect(Limited::new(body(), 4, response())).await;
    assert!(
        matches!(ended, Err(Error::HttpResponseBodySize(Some(4)))),
        "{ended:?}"
    );
    let ended = collect(Limited::new(body(), 4, Side::Request)).await;
    assert!(
        matches!(ended, Err(Error::HttpRequestBodySize(Some(4)))),
        "{ended:?}"
    );
}

#[tokio::test]
async fn a_certificate_of_a_stranger_is_refused_with_words() {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
        )
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        // It is the client that is not content.
        let _ = acceptor.accept(stream).await;
    });
    let mut fixture = Fixture::granted(&[&format!("localhost:{port}")]);
    // Its patience is for a busy machine.
    let body = Empty::new().map_err(|it| match it {}).boxed_unsync();
    let request = Request::get(format!("https://localhost:{port}/"))
        .body(body)
        .unwrap();
    let ignored = Box::new(async { Ok(()) });
    let sending = fixture.http.send_request(request, None, ignored);
    let refused = Pin::from(sending).await.err();
    let Some(Error::InternalError(Some(words))) = refused else {
        panic!("it was {refused:?}");
    };
    assert!(
        words.contains(&format!("TLS with localhost:{port}")),
        "{words}"
    );
    assert!(words.contains("certificate"), "{words}");
}
