//! The server's certificate.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use super::TlsFiles;

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {}: {source}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file is not what it should be.
    #[error("{} has no {what} in PEM", file.display())]
    Malformed {
        /// The file.
        file: PathBuf,
        /// What it should have.
        what: &'static str,
    },
    /// The certificate and its key do not go together.
    #[error("the certificate {} and its key cannot be used: {source}", file.display())]
    Unusable {
        /// The certificate.
        file: PathBuf,
        /// Why.
        source: rustls::Error,
    },
}

/// Reads the files, and returns what makes connections secure.
pub(super) fn acceptor(files: &TlsFiles) -> Result<TlsAcceptor, TlsError> {
    let wrong = |file: &Path, what, error| match error {
        PemError::Io(source) => TlsError::Read {
            file: file.to_owned(),
            source,
        },
        // The parser's words could quote a part of a key.
        _ => TlsError::Malformed {
            file: file.to_owned(),
            what,
        },
    };
    let chain: Result<Vec<_>, _> =
        CertificateDer::pem_file_iter(&files.certificate).and_then(Iterator::collect);
    let chain = chain.map_err(|error| wrong(&files.certificate, "certificate", error))?;
    let key = PrivateKeyDer::from_pem_file(&files.key)
        .map_err(|error| wrong(&files.key, "private key", error))?;
    let unusable = |source| TlsError::Unusable {
        file: files.certificate.clone(),
        source,
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(unusable)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(unusable)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
