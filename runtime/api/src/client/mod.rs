//! The client: the gRPC services, and calls that outlast a host's restart.

mod sync_now;

use std::path::PathBuf;
use std::time::Duration;

use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};
use tonic::{Request, Status};

use crate::error::{Code, Error};
use crate::v1::catalog_client::CatalogClient;
use crate::v1::collections_client::CollectionsClient;
use crate::v1::task_control_client::TaskControlClient;
use crate::v1::tasks_client::TasksClient;

pub use self::sync_now::{Heard, SyncNowCall};

/// How long a connection may take: a host that is there answers at once.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);

/// How often a host is asked whether it is still there, and how long it has to
/// answer. A machine that lost its power sends no goodbye.
const PING_EVERY: Duration = Duration::from_secs(20);
/// See [`PING_EVERY`].
const PING_TIME_MAX: Duration = Duration::from_secs(10);

/// Bytes of an answer: a document of 16 MiB, or a catalog of some hundred files.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// What to call, and as whom.
#[derive(Clone)]
pub struct Target {
    /// The host's URL.
    pub url: String,
    /// The token to show, if there is one.
    pub token: Option<String>,
    /// The certificate to trust; what the machine trusts unless given.
    pub certificate: Option<PathBuf>,
}

/// A connection to a host.
#[derive(Clone)]
pub struct Client {
    channel: Channel,
    bearer: Bearer,
}

/// A connection that shows a token.
pub type Authorized = InterceptedService<Channel, Bearer>;

impl Client {
    /// Connects to a host. One that is not there is UNAVAILABLE.
    pub async fn connect(target: &Target) -> Result<Client, Error> {
        let invalid = |message: String| Error::new(Code::InvalidArgument, message);
        let url = &target.url;
        let endpoint = Endpoint::from_shared(url.clone())
            .ok()
            .filter(|it| matches!(it.uri().scheme_str(), Some("http" | "https")));
        let mut endpoint = endpoint.ok_or_else(|| {
            invalid(format!(
                "{url} is no URL of a host; one looks like http://127.0.0.1:9400"
            ))
        })?;
        if endpoint.uri().scheme_str() == Some("https") {
            let mut tls = ClientTlsConfig::new();
            tls = match &target.certificate {
                None => tls.with_enabled_roots(),
                Some(file) => {
                    let certificate = std::fs::read(file).map_err(|error| {
                        invalid(format!("cannot read {}: {error}", file.display()))
                    })?;
                    tls.ca_certificate(Certificate::from_pem(certificate))
                }
            };
            endpoint = endpoint
                .tls_config(tls)
                .map_err(|error| invalid(format!("cannot use TLS with {url}: {error}")))?;
        }
        let endpoint = endpoint
            .connect_timeout(CONNECT_TIME_MAX)
            .http2_keep_alive_interval(PING_EVERY)
            .keep_alive_timeout(PING_TIME_MAX)
            .keep_alive_while_idle(true)
            .tcp_nodelay(true);
        let bearer = Bearer::new(target.token.as_deref())?;
        let channel = endpoint.connect().await.map_err(|error| {
            let cause = crate::error::root_cause(&error);
            Error::new(
                Code::Unavailable,
                format!("no host answers at {url}: {cause}"),
            )
        })?;
        Ok(Client { channel, bearer })
    }

    /// Returns the client of `TaskControl`.
    pub fn task_control(&self) -> TaskControlClient<Authorized> {
        TaskControlClient::with_interceptor(self.channel.clone(), self.bearer.clone())
    }

    /// Returns the client of `Tasks`.
    pub fn tasks(&self) -> TasksClient<Authorized> {
        TasksClient::with_interceptor(self.channel.clone(), self.bearer.clone())
            .max_decoding_message_size(ANSWER_BYTES_MAX)
    }

    /// Returns the client of `Collections`.
    pub fn collections(&self) -> CollectionsClient<Authorized> {
        CollectionsClient::with_interceptor(self.channel.clone(), self.bearer.clone())
            .max_decoding_message_size(ANSWER_BYTES_MAX)
    }

    /// Returns the client of `Catalog`.
    pub fn catalog(&self) -> CatalogClient<Authorized> {
        CatalogClient::with_interceptor(self.channel.clone(), self.bearer.clone())
            .max_decoding_message_size(ANSWER_BYTES_MAX)
    }
}

/// Shows a token with each call.
#[derive(Clone)]
pub struct Bearer(Option<MetadataValue<Ascii>>);

impl Bearer {
    fn new(token: Option<&str>) -> Result<Bearer, Error> {
        let Some(token) = token else {
            return Ok(Bearer(None));
        };
        // The token itself is in no message.
        let value = format!("Bearer {}", token.trim()).parse();
        let mut value: MetadataValue<Ascii> = value.map_err(|_| {
            Error::new(
                Code::InvalidArgument,
                "the token has characters that no token has: `tidegate token` prints one",
            )
        })?;
        value.set_sensitive(true);
        Ok(Bearer(Some(value)))
    }
}

impl Interceptor for Bearer {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(value) = &self.0 {
            request
                .metadata_mut()
                .insert("authorization", value.clone());
        }
        Ok(request)
    }
}
