//! What a server's answer means.
//!
//! ```text
//! 2xx                             accepted
//! 413                             too large
//! 400, 422                        refused: a document is at fault
//! 408, 425, 429, 500, 502 to 504  again, after a pause
//! 401, 403, the rest              an error that another attempt would not change
//! ```

use std::time::SystemTime;

use http::{Response, header};
use tidegate_boilerplate::retry::{Again, Failure, retry_after};
use tidegate_boilerplate::{ConnectorError, ErrorKind};

/// How much of a server's words is repeated in an error: a sentence or two.
const WORDS_CHARS_MAX: usize = 300;

/// What a server said to a request, where that is not an error of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// All of it is taken.
    Accepted,
    /// The body is larger than the server allows.
    TooLarge,
    /// The server finds fault with a document: its words.
    Refused(String),
}

/// Reads a response. `server` names who gave it; `clean` leaves secrets out of a text.
pub(crate) fn read(
    response: &Response<Vec<u8>>,
    server: &str,
    clean: impl Fn(&str) -> String,
    now: SystemTime,
) -> Result<Answer, Failure> {
    let status = response.status();
    let said = format!("{server} answers {}", words(response, clean));
    let failed = |kind, what: String, again| {
        let error = ConnectorError::new(kind, what);
        Err(Failure { error, again })
    };
    match status.as_u16() {
        200..=299 => Ok(Answer::Accepted),
        413 => Ok(Answer::TooLarge),
        400 | 422 => Ok(Answer::Refused(said)),
        408 | 425 | 429 | 500 | 502 | 503 | 504 => {
            let asked = response.headers().get(header::RETRY_AFTER);
            let asked = asked.and_then(|it| retry_after(it.to_str().ok()?, now));
            let again = asked.map_or(Again::Soon, Again::After);
            failed(ErrorKind::Transient, said, again)
        }
        401 | 403 => failed(
            ErrorKind::Auth,
            format!("{said}; correct the config's headers"),
            Again::Never,
        ),
        300..=399 => failed(
            ErrorKind::Config,
            format!("{said}, a redirect, which is not followed: write the address it leads to"),
            Again::Never,
        ),
        _ => failed(
            ErrorKind::Config,
            format!("{said}; correct the config's address or method, or the binding's path"),
            Again::Never,
        ),
    }
}

/// Returns the status and the beginning of the body.
fn words(response: &Response<Vec<u8>>, clean: impl Fn(&str) -> String) -> String {
    let status = response.status();
    let reason = status.canonical_reason().unwrap_or_default();
    let status = format!("{} {reason}", status.as_str())
        .trim_end()
        .to_owned();
    let body = String::from_utf8_lossy(response.body());
    let printable = |it: char| if it.is_control() { ' ' } else { it };
    // Cut only then: half a secret would not be found.
    let body: String = clean(&body).chars().map(printable).collect();
    let body: Vec<_> = body.split_whitespace().collect();
    let body: String = body.join(" ").chars().take(WORDS_CHARS_MAX).collect();
    match body.is_empty() {
        true => status,
        false => format!("{status}: {body}"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn response(status: u16, body: &str) -> Response<Vec<u8>> {
        let response = Response::builder().status(status);
        response.body(body.as_bytes().to_vec()).unwrap()
    }

    fn read(response: &Response<Vec<u8>>) -> Result<Answer, Failure> {
        let clean = |text: &str| text.replace("t0ken", "[secret]");
        super::read(response, "h:1", clean, SystemTime::UNIX_EPOCH)
    }

    #[test]
    fn every_status_means_something() {
        use ErrorKind::{Auth, Config, Transient};
        let failures = [
            (301, Config, Again::Never),
            (307, Config, Again::Never),
            (401, Auth, Again::Never),
            (403, Auth, Again::Never),
            (404, Config, Again::Never),
            (405, Config, Again::Never),
            (408, Transient, Again::Soon),
            (429, Transient, Again::Soon),
            (500, Transient, Again::Soon),
            (501, Config, Again::Never),
            (502, Transient, Again::Soon),
            (503, Transient, Again::Soon),
            (504, Transient, Again::Soon),
            (599, Config, Again::Never),
        ];
        for (status, kind, again) in failures {
            let failure = read(&response(status, "")).unwrap_err();
            assert_eq!(
                (failure.error.kind, failure.again),
                (kind, again),
                "{status}"
            );
            let named = failure
                .error
                .message
                .contains(&format!("h:1 answers {status}"));
            assert!(named, "{}", failure.error);
        }
        for status in [200, 201, 202, 204] {
            assert_eq!(read(&response(status, "no")), Ok(Answer::Accepted));
        }
        assert_eq!(read(&response(413, "")), Ok(Answer::TooLarge));
        let refused = read(&response(422, "id is no\n number")).unwrap();
        let words = "h:1 answers 422 Unprocessable Entity: id is no number";
        assert_eq!(refused, Answer::Refused(words.to_owned()));
    }

    #[test]
    fn a_pause_that_is_asked_for_is_read() {
        let mut busy = response(429, "");
        let mut asked = |value: &str| {
            busy.headers_mut()
                .insert(header::RETRY_AFTER, value.parse().unwrap());
            read(&busy).unwrap_err().again
        };
        assert_eq!(asked("7"), Again::After(Duration::from_secs(7)));
        let date = "Thu, 01 Jan 1970 00:01:00 GMT";
        assert_eq!(asked(date), Again::After(Duration::from_secs(60)));
        assert_eq!(asked("later"), Again::Soon);
    }

    #[test]
    fn a_server_s_words_are_cut_and_hold_no_secret() {
        // The secret lies across the cut.
        let body = format!("{}t0ken and more", "x".repeat(WORDS_CHARS_MAX - 2));
        let said = read(&response(404, &body)).unwrap_err().error.message;
        assert!(!said.contains("t0"), "{said}");
        assert!(!said.contains("more"), "{said}");
    }
}
