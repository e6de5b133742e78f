//! Where requests go, and what all of them have.
//!
//! ```text
//! address + path -> URI
//! method, headers, URI, batch -> request
//! ```

use std::collections::BTreeMap;

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::uri::{Authority, Parts, PathAndQuery, Scheme};
use http::{Method, Request, Uri};
use tidegate_boilerplate::ConnectorError;

/// What a repeated request is known by.
pub(crate) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Headers that are made for each request, or that are of the connection.
const OWN_HEADERS: [HeaderName; 10] = [
    IDEMPOTENCY_KEY,
    header::HOST,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::CONNECTION,
    header::UPGRADE,
    header::TE,
    header::TRAILER,
    header::EXPECT,
    header::PROXY_AUTHORIZATION,
];

/// Names and values of all headers: servers take 8 KiB, some more. The host ends a guest
/// that sends twice as many.
const HEADERS_BYTES_MAX: usize = 32 << 10;

/// Shorter values of headers are found in any text, and keep nothing secret.
const SECRET_CHARS_MIN: usize = 4;

/// A server, and how it is spoken to. It has no `Debug`: it holds secrets.
#[derive(Clone)]
pub(crate) struct Target {
    scheme: Scheme,
    authority: Authority,
    /// Without a slash at its end.
    path: String,
    query: Option<String>,
    method: Method,
    headers: HeaderMap,
}

impl Target {
    /// Reads the parts of an endpoint configuration.
    pub(crate) fn new(
        address: &str,
        method: &str,
        headers: &BTreeMap<String, String>,
    ) -> Result<Self, ConnectorError> {
        let parts = address_parts(address).map_err(|reason| {
            // The text may hold a secret, so it is not repeated.
            let message = format!("the address cannot be used: {reason}");
            ConnectorError::config(message).of_field("address")
        })?;
        let (scheme, authority, path) = parts;
        Ok(Self {
            scheme,
            authority,
            path: path.path().trim_end_matches('/').to_owned(),
            query: path.query().map(str::to_owned),
            method: Method::from_bytes(method.as_bytes())
                .map_err(|_| ConnectorError::config("the method is none").of_field("method"))?,
            headers: header_map(headers)?,
        })
    }

    /// Returns the URI of a binding's path.
    pub(crate) fn uri(&self, path: &str) -> Result<Uri, ConnectorError> {
        let refused = |reason: &str| {
            let message = format!("path {path:?} cannot be used: {reason}");
            ConnectorError::config(message).of_field("path")
        };
        if !path.is_empty() && !path.starts_with('/') {
            return Err(refused("it does not start with a slash"));
        }
        if path.contains('#') {
            return Err(refused("a server never sees what follows a #"));
        }
        let path_is_ascii = path.is_ascii();
        let (path, query) = match path.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (path, None),
        };
        let queries: Vec<_> = self.query.as_deref().into_iter().chain(query).collect();
        let mut whole = format!("{}{path}", self.path);
        if !whole.starts_with('/') {
            whole.insert(0, '/');
        }
        if !queries.is_empty() {
            whole = format!("{whole}?{}", queries.join("&"));
        }
        let uri = Uri::builder()
            .scheme(self.scheme.clone())
            .authority(self.authority.clone())
            .path_and_query(whole)
            .build();
        match uri {
            Ok(uri) if path_is_ascii => Ok(uri),
            _ => Err(refused(
                "it has characters that no URL has: write them percent-encoded",
            )),
        }
    }

    /// Returns a request.
    pub(crate) fn request(&self, uri: &Uri, key: &str, body: Vec<u8>) -> Request<Vec<u8>> {
        let length = HeaderValue::from(body.len());
        let mut request = Request::new(body);
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = uri.clone();
        let json = HeaderValue::from_static("application/json");
        let headers = request.headers_mut();
        *headers = self.headers.clone();
        headers.entry(header::CONTENT_TYPE).or_insert(json);
        headers.insert(header::CONTENT_LENGTH, length);
        let key = HeaderValue::from_str(key).expect("a key is hexadecimal");
        headers.insert(IDEMPOTENCY_KEY, key);
        request
    }

    /// Leaves out of a text what is configured to be sent: a server may repeat what it
    /// was sent in what it answers.
    pub(crate) fn without_secrets(&self, text: &str) -> String {
        let mut clean = text.to_owned();
        for value in self.headers.values() {
            let value = value.to_str().unwrap_or_default();
            // Of "Bearer x", the x alone is secret as well.
            for secret in std::iter::once(value).chain(value.split_whitespace()) {
                if secret.len() >= SECRET_CHARS_MIN {
                    clean = clean.replace(secret, "[secret]");
                }
            }
        }
        for part in [Some(&*self.path), self.query.as_deref()]
            .into_iter()
            .flatten()
        {
            if part.len() >= SECRET_CHARS_MIN {
                clean = clean.replace(part, "[secret]");
            }
        }
        clean
    }
}

fn address_parts(address: &str) -> Result<(Scheme, Authority, PathAndQuery), &'static str> {
    if address.contains('#') {
        return Err("a server never sees what follows a #");
    }
    if !address.is_ascii() {
        return Err("it has characters that no URL has");
    }
    let uri: Uri = address.parse().map_err(|_| "it is not a URL")?;
    let Parts {
        scheme: Some(scheme),
        authority: Some(authority),
        path_and_query: Some(path),
        ..
    } = uri.into_parts()
    else {
        return Err("it is not a URL: write https://host/path");
    };
    if scheme != Scheme::HTTP && scheme != Scheme::HTTPS {
        return Err("its scheme is neither https:// nor http://");
    }
    if authority.as_str().contains('@') {
        return Err("it has a user or a password: write them into the header Authorization");
    }
    // The parser overlooks a port that is none.
    let host_only = authority.as_str() == authority.host();
    if authority.host().is_empty() || (authority.port_u16().is_none() && !host_only) {
        return Err("it has no host, or no port up to 65535");
    }
    Ok((scheme, authority, path))
}

fn header_map(headers: &BTreeMap<String, String>) -> Result<HeaderMap, ConnectorError> {
    let bytes: usize = headers.iter().map(|(name, it)| name.len() + it.len()).sum();
    if bytes > HEADERS_BYTES_MAX {
        let message =
            format!("the headers have {bytes} bytes, and {HEADERS_BYTES_MAX} are the most");
        return Err(ConnectorError::config(message).of_field("headers"));
    }
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let refused = |reason: &str| {
            let message = format!("header {name:?} cannot be sent: {reason}");
            ConnectorError::config(message).of_field("headers")
        };
        let name = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| refused("that is no name of a header"))?;
        if OWN_HEADERS.contains(&name) {
            return Err(refused("it is made for each request; leave it out"));
        }
        let mut value = HeaderValue::from_str(value)
            .map_err(|_| refused("its value has characters that no header has"))?;
        value.set_sensitive(true);
        if map.insert(name, value).is_some() {
            return Err(refused("it is there twice"));
        }
    }
    Ok(map)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(address: &str, headers: &[(&str, &str)]) -> Result<Target, ConnectorError> {
        let headers = headers.iter();
        let headers = headers.map(|&(name, value)| (name.to_owned(), value.to_owned()));
        Target::new(address, "POST", &headers.collect())
    }

    #[test]
    fn paths_are_appended() {
        let cases = [
            ("https://h", "", "https://h/"),
            ("https://h/", "/a", "https://h/a"),
            ("http://h:8080/base/", "/a/b", "http://h:8080/base/a/b"),
            ("http://[::1]:8080/base", "", "http://[::1]:8080/base"),
            ("https://h/b?k=v", "/a", "https://h/b/a?k=v"),
            ("https://h/b?k=v", "/a?x=y", "https://h/b/a?k=v&x=y"),
        ];
        for (address, path, want) in cases {
            let uri = target(address, &[]).ok().unwrap().uri(path).unwrap();
            assert_eq!(uri.to_string(), want, "{address} {path}");
        }
        for path in ["a", "/a b", "/a#b", "/\u{e9}", "/a\n"] {
            let error = target("https://h", &[])
                .ok()
                .unwrap()
                .uri(path)
                .unwrap_err();
            assert!(error.message.contains("cannot be used"), "{error}");
        }
    }

    #[test]
    fn an_address_that_cannot_be_used_is_not_repeated() {
        let cases = [
            ("s3cret", "https://host"),
            ("ftp://s3cret/", "neither https"),
            ("https://me:s3cret@h/", "Authorization"),
            ("https://h/s3cret#x", "#"),
            ("https://h:s3cret/", "cannot be used"),
            ("https://h\u{e9}/", "characters"),
            ("https://h:99999/", "65535"),
            ("https://s3cret h/", "not a URL"),
        ];
        for (address, want) in cases {
            let error = target(address, &[]).err().unwrap();
            assert!(error.message.contains(want), "{address}: {error}");
            assert!(!error.message.contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn headers_are_refused_by_name_alone() {
        let cases = [
            (vec![("a b", "s3cret")], "no name of a header"),
            (vec![("Idempotency-Key", "s3cret")], "leave it out"),
            (vec![("hOsT", "s3cret")], "leave it out"),
            (
                vec![("x", "s3cret\r\nHost: y")],
                "characters that no header",
            ),
            (vec![("X-A", "s3cret"), ("x-a", "s3cret")], "twice"),
        ];
        for (headers, want) in cases {
            let error = target("https://h", &headers).err().unwrap();
            assert!(error.message.contains(want), "{headers:?}: {error}");
            assert!(!error.message.contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn what_a_server_repeats_is_left_out() {
        let headers = [("Authorization", "Bearer t0ken"), ("X", "1")];
        let target = target("https://h/hooks/T123?key=abcdef", &headers)
            .ok()
            .unwrap();
        let said = "401 for Bearer t0ken (t0ken) on /hooks/T123?key=abcdef at 10:11";
        let clean = target.without_secrets(said);
        assert_eq!(
            clean,
            "401 for [secret] ([secret]) on [secret]?[secret] at 10:11"
        );
        let request = target.request(&target.uri("").unwrap(), "00ff", b"[]".to_vec());
        assert!(!format!("{:?}", request.headers()).contains("t0ken"));
    }
}
