//! An authority of a test's own, and a server's certificate of it, made by `openssl`.

use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// Files in PEM, in a directory of the caller's.
pub struct Certificates<'a>(&'a Path);

impl Certificates<'_> {
    /// Makes the files. The server is the one at 127.0.0.1.
    pub fn make(dir: &Path) -> Certificates<'_> {
        let made = Certificates(dir);
        let new = ["req", "-newkey", "rsa:2048", "-nodes", "-days", "2"];
        for (name, subject) in [("ca", "/CN=Our own"), ("other", "/CN=Somebody")] {
            let (key, pem) = (format!("{name}.key"), format!("{name}.pem"));
            let authority = ["-x509", "-subj", subject, "-keyout", &key, "-out", &pem];
            made.openssl(&[&new[..], &authority].concat());
        }
        let request = "-subj /CN=server -keyout server.key -out server.csr";
        let request: Vec<_> = request.split(' ').collect();
        made.openssl(&[&new[..4], &request].concat());
        fs::write(dir.join("names"), "subjectAltName=IP:127.0.0.1").expect("it can be written");
        let sign = "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 \
            -extfile names -out server.pem";
        made.openssl(&sign.split_whitespace().collect::<Vec<_>>());
        made
    }

    fn openssl(&self, arguments: &[&str]) {
        let mut openssl = Command::new("openssl");
        let made = openssl.args(arguments).current_dir(self.0).output();
        let made = made.expect("openssl can be run");
        assert!(
            made.status.success(),
            "openssl {arguments:?}: {}",
            String::from_utf8_lossy(&made.stderr)
        );
    }

    /// Returns the authority of the server's certificate.
    pub fn authority(&self) -> PathBuf {
        self.0.join("ca.pem")
    }

    /// Returns an authority that has nothing to do with it.
    pub fn other_authority(&self) -> PathBuf {
        self.0.join("other.pem")
    }

    /// Returns the server's certificate.
    pub fn certificate(&self) -> PathBuf {
        self.0.join("server.pem")
    }

    /// Returns the server's key.
    pub fn key(&self) -> PathBuf {
        self.0.join("server.key")
    }

    /// Returns what makes the server's end of TLS of a connection.
    pub fn accept(&self) -> impl Fn(TcpStream) -> StreamOwned<ServerConnection, TcpStream> + use<> {
        let certificate = CertificateDer::from_pem_file(self.certificate()).expect("it is PEM");
        let key = PrivateKeyDer::from_pem_file(self.key()).expect("it is PEM");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the provider has them")
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .expect("the two belong together");
        let config = Arc::new(config);
        move |connection| {
            let server = ServerConnection::new(config.clone()).expect("the configuration is whole");
            StreamOwned::new(server, connection)
        }
    }
}
