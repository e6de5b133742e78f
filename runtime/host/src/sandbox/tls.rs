//! TLS for guests: whom to trust, and how far.
//!
//! The host does it, so that no connector brings a TLS library of its own, and
//! so that the system's authorities count.

use std::io;
use std::sync::{Arc, LazyLock};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio_rustls::TlsConnector;

use super::bindings::net::Verify;

/// A TLS configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum TlsError {
    #[error("the certificate authority in `ca` cannot be read: {0}; it must be PEM")]
    Authority(String),
    #[error("the certificate authority in `ca` holds no certificate; it must be PEM")]
    NoAuthority,
    #[error("{0:?} is no name that a certificate can have")]
    ServerName(String),
    #[error("TLS cannot be set up: {0}")]
    Setup(#[from] rustls::Error),
}

/// The authorities that are trusted where the guest names none: the system's
/// and Mozilla's.
static AUTHORITIES: LazyLock<Arc<RootCertStore>> = LazyLock::new(|| {
    let mut roots = RootCertStore::from_iter(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    // A system without a store of its own, or with one that is broken in
    // parts, still has Mozilla's.
    let system = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(system.certs);
    Arc::new(roots)
});

/// Returns what turns a stream into TLS.
pub(super) fn connector(verify: Verify, ca: Option<&str>) -> Result<TlsConnector, TlsError> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()?;
    let config = match verify {
        Verify::Full => builder.with_root_certificates(authorities(ca)?),
        Verify::Ca => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Lenient {
                authorities: Some(authorities(ca)?),
                provider,
            })),
        Verify::None => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Lenient {
                authorities: None,
                provider,
            })),
    };
    Ok(Arc::new(config.with_no_client_auth()).into())
}

/// Reads the name of a server.
pub(super) fn server_name(name: &str) -> Result<ServerName<'static>, TlsError> {
    ServerName::try_from(name.to_owned()).map_err(|_| TlsError::ServerName(name.to_owned()))
}

/// Whether a handshake failed because the two sides do not agree, so that it
/// would fail again.
pub(super) fn is_refusal(error: &io::Error) -> bool {
    error
        .get_ref()
        .is_some_and(|source| source.is::<rustls::Error>())
}

fn authorities(ca: Option<&str>) -> Result<Arc<RootCertStore>, TlsError> {
    let Some(pem) = ca else {
        return Ok(AUTHORITIES.clone());
    };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
        let certificate = certificate.map_err(|error| TlsError::Authority(error.to_string()))?;
        roots
            .add(certificate)
            .map_err(|error| TlsError::Authority(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(TlsError::NoAuthority);
    }
    Ok(Arc::new(roots))
}

/// Checks less than usual: the chain without the name, or nothing at all.
/// That the server has the certificate's key is checked in any case.
#[derive(Debug)]
struct Lenient {
    /// Who must have signed; None is anyone.
    authorities: Option<Arc<RootCertStore>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Lenient {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if let Some(authorities) = &self.authorities {
            verify_server_cert_signed_by_trust_anchor(
                &ParsedCertificate::try_from(end_entity)?,
                authorities,
                intermediates,
                now,
                self.provider.signature_verification_algorithms.all,
            )?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
    use rustls::ServerConfig;
    use rustls::pki_types::PrivateKeyDer;
    use tokio::net::{TcpListener, TcpStream};
    use tokio_rustls::TlsAcceptor;

    use super::*;

    /// An authority, in PEM, and a server for the name `db` that it signed.
    fn server() -> (String, TlsAcceptor) {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["db".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &authority).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
            )
            .unwrap();
        (authority.pem(), Arc::new(config).into())
    }

    async fn handshake(
        acceptor: &TlsAcceptor,
        verify: Verify,
        ca: Option<&str>,
        name: &str,
    ) -> io::Result<()> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let accept = async {
            let (stream, _) = listener.accept().await.unwrap();
            // Whether the server is content shows on the other side too.
            let _ = acceptor.accept(stream).await;
        };
        let connect = async {
            let stream = TcpStream::connect(address).await.unwrap();
            let connector = connector(verify, ca).unwrap();
            connector.connect(server_name(name).unwrap(), stream).await
        };
        tokio::join!(accept, connect).1.map(drop)
    }

    #[tokio::test]
    async fn certificates_are_checked_as_far_as_asked() {
        let (authority, acceptor) = server();
        let (stranger, _) = server();
        let ours = Some(&*authority);
        let cases = [
            (Verify::Full, ours, "db", true),
            (Verify::Full, ours, "other", false),
            (Verify::Full, Some(&*stranger), "db", false),
            (Verify::Full, None, "db", false),
            (Verify::Ca, ours, "other", true),
            (Verify::Ca, Some(&*stranger), "db", false),
            (Verify::Ca, None, "db", false),
            (Verify::None, None, "other", true),
        ];
        for (verify, ca, name, want) in cases {
            let done = handshake(&acceptor, verify, ca, name).await;
            assert_eq!(done.is_ok(), want, "{verify:?} {name}: {done:?}");
            if let Err(error) = done {
                assert!(is_refusal(&error), "{error}");
            }
        }
    }

    #[test]
    fn authorities_and_names_that_cannot_be_read_are_refused() {
        for pem in [
            "",
            "nonsense",
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        ] {
            let error = connector(Verify::Full, Some(pem)).err().unwrap();
            assert!(error.to_string().contains("PEM"), "{error}");
        }
        assert!(server_name("not a name").is_err());
    }
}
