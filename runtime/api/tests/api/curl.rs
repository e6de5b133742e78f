//! The example of the documentation, by the program that it is written for.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::Arc;

use tidegate_api::client::Client;
use tidegate_api::server::{ServerOptions, TlsFiles};
use tidegate_api::{local, v1};
use tokio::task::spawn_blocking;

use crate::host::{MemoryHost, done};
use crate::server::{TestServer, soon};

#[tokio::test]
async fn sync_now() {
    let server = TestServer::start().await;
    let authorization = format!("Authorization: Bearer {}", server.token());
    let url = format!("{}/v1/task-control/sync-now", server.url);
    let curl = Command::new("curl")
        .args([
            "-sN",
            "-H",
            &authorization,
            "-d",
            r#"{"task":"acmeCo/a"}"#,
            &url,
        ])
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut curl) = curl else {
        eprintln!("there is no curl here, so nothing was tested");
        return;
    };
    let mut lines = BufReader::new(curl.stdout.take().unwrap()).lines();
    let first = spawn_blocking(move || (lines.next().unwrap().unwrap(), lines));
    let (ack, lines) = soon("a line", first).await.unwrap();
    let want = r#"{"result":{"ack":{"outcome":"HELD_COLLAPSED","status":{"#;
    assert!(ack.starts_with(want), "{ack}");
    server.host.commit(&Ok(done()));
    let last = spawn_blocking(move || lines.last().unwrap().unwrap());
    assert_eq!(
        soon("the last line", last).await.unwrap(),
        r#"{"result":{"done":{"committedDocsTotal":"5000","committedBytesTotal":"1099511627776","durationMillis":"7"}}}"#
    );
    let ended = spawn_blocking(move || curl.wait());
    assert!(soon("its end", ended).await.unwrap().unwrap().success());
}

/// Makes a certificate for this machine.
fn secure(options: &mut ServerOptions) {
    let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    let files = TlsFiles {
        certificate: options.data_dir.join("certificate.pem"),
        key: options.data_dir.join("key.pem"),
    };
    std::fs::write(&files.certificate, made.cert.pem()).unwrap();
    std::fs::write(&files.key, made.signing_key.serialize_pem()).unwrap();
    options.tls = Some(files);
}

#[tokio::test]
async fn tls() {
    let host = Arc::new(MemoryHost::new());
    let server = TestServer::with(host, secure).await;
    assert!(server.url.starts_with("https://"));
    let address = local::Address::read(server.dir.path()).unwrap().unwrap();
    let mut target = server.target();
    // What the machine trusts is not this.
    let error = Client::connect(&target).await;
    assert!(error.is_err());
    target.certificate = address.certificate;
    let client = Client::connect(&target).await.unwrap();
    let tasks = client
        .tasks()
        .list(v1::ListTasksRequest::default())
        .await
        .unwrap();
    assert_eq!(tasks.into_inner().tasks.len(), 3);
    let certificate = target.certificate.unwrap();
    let mut curl = Command::new("curl");
    curl.args(["-s", "--cacert"])
        .arg(certificate)
        .arg(format!("{}/healthz", server.url));
    let output = spawn_blocking(move || curl.output());
    if let Ok(output) = soon("its end", output).await.unwrap() {
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "ok\n");
    }
}
