//! Tokens: made, and verified.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};

use super::claims::Claims;
use super::hmac;
use super::keys::{KeyError, Keys};
use crate::error::{Code, Error};

/// How often the key file is looked at: a key that was taken out is refused, and
/// a new one accepted, this much later.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Longer tokens are refused unread: the longest that are made here have a few
/// hundred prefixes.
const TOKEN_BYTES_MAX: usize = 8 << 10;

/// Why a token cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum MintError {
    /// It would be too long.
    #[error(
        "the token would have {bytes} bytes; {TOKEN_BYTES_MAX} are the most: give fewer or shorter prefixes"
    )]
    TooLong {
        /// How long.
        bytes: usize,
    },
}

/// Makes a token with the key that signs.
pub fn mint(keys: &Keys, claims: &Claims) -> Result<String, MintError> {
    hmac::install();
    let key = keys.0.first().expect("there is at least one key");
    let mut header = Header::new(Algorithm::HS256);
    header.kid = Some(key.kid.clone());
    let secret = EncodingKey::from_secret(&key.secret).expect("the secret is long enough");
    let token = jsonwebtoken::encode(&header, claims, &secret).expect("claims can be signed");
    match token.len() {
        bytes if bytes > TOKEN_BYTES_MAX => Err(MintError::TooLong { bytes }),
        _ => Ok(token),
    }
}

/// Verifies tokens by the keys of a file, which may change meanwhile.
pub struct Verifier {
    file: PathBuf,
    state: Mutex<State>,
}

struct State {
    keys: Arc<Keys>,
    /// What the file looked like when the keys were read.
    stamp: Option<(SystemTime, u64)>,
    looked: Instant,
}

impl Verifier {
    /// Reads a key file.
    pub fn open(file: &Path) -> Result<Verifier, KeyError> {
        // Before the keys: what is written in between is then read again.
        let stamp = stamp(file);
        let state = State {
            keys: Arc::new(Keys::read(file)?),
            stamp,
            looked: Instant::now(),
        };
        Ok(Verifier {
            file: file.to_owned(),
            state: Mutex::new(state),
        })
    }

    /// Verifies the value of an `Authorization` header.
    pub fn verify(&self, header: Option<&[u8]>) -> Result<Claims, Error> {
        verify(&self.keys(), header, now())
    }

    /// Returns the keys as the file has them.
    pub fn keys(&self) -> Arc<Keys> {
        let mut state = self.state.lock().expect("no holder panics");
        if state.looked.elapsed() >= LOOK_EVERY {
            state.looked = Instant::now();
            let stamp = stamp(&self.file);
            if stamp != state.stamp {
                match Keys::read(&self.file) {
                    Ok(keys) => {
                        state.keys = Arc::new(keys);
                        state.stamp = stamp;
                    }
                    // A file that is being edited must not lock everybody out.
                    Err(error) => tracing::error!("the keys stay as they were: {error}"),
                }
            }
        }
        state.keys.clone()
    }
}

fn stamp(file: &Path) -> Option<(SystemTime, u64)> {
    let metadata = std::fs::metadata(file).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

/// Returns the seconds since the Unix epoch.
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

fn verify(keys: &Keys, header: Option<&[u8]>, now: u64) -> Result<Claims, Error> {
    hmac::install();
    let Some(header) = header else {
        return Err(refused(
            "there is no token: send it as `Authorization: Bearer TOKEN`. On the host's machine, \
             `tidegate token` prints one",
        ));
    };
    // The same words for every token that is not ours: they say nothing about
    // which part of a forged one was right.
    let bad = || refused("the token is not one of this host: `tidegate token` prints one that is");
    let token = bearer(header).ok_or_else(bad)?;
    let kid = jsonwebtoken::decode_header(token)
        .ok()
        .and_then(|header| header.kid)
        .ok_or_else(bad)?;
    let key = keys.0.iter().find(|key| key.kid == kid).ok_or_else(bad)?;
    let secret = DecodingKey::from_secret(&key.secret).expect("the secret is long enough");
    let mut validation = Validation::new(Algorithm::HS256);
    // By the clock that is given, below; that there is an expiry, the type says.
    validation.validate_exp = false;
    validation.required_spec_claims.clear();
    let claims = jsonwebtoken::decode::<Claims>(token, &secret, &validation)
        .map_err(|_| bad())?
        .claims;
    if claims.exp <= now {
        return Err(refused(
            "the token has expired: `tidegate token` prints one that has not",
        ));
    }
    Ok(claims)
}

fn bearer(header: &[u8]) -> Option<&str> {
    let header = std::str::from_utf8(header).ok()?;
    let (scheme, token) = header.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && token.len() <= TOKEN_BYTES_MAX).then_some(token)
}

fn refused(message: &str) -> Error {
    Error::new(Code::Unauthenticated, message)
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use serde_json::{Value, json};

    use super::super::keys::Key;
    use super::*;

    fn key(kid: &str, byte: u8) -> Key {
        Key {
            kid: kid.to_owned(),
            secret: vec![byte; 32],
        }
    }

    /// Makes a token by hand, so that it can say anything.
    fn forge(header: &Value, claims: &Value, secret: &[u8]) -> String {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let message = format!("{}.{}", part(header), part(claims));
        let signing = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, secret);
        let signature = ring::hmac::sign(&signing, message.as_bytes());
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    #[test]
    fn tokens() {
        let keys = Keys(vec![key("new", 1), key("old", 2)]);
        let header = json!({"alg": "HS256", "typ": "JWT", "kid": "new"});
        let claims = json!({"scope": "admin", "prefixes": [""], "exp": 1_000});
        let good = forge(&header, &claims, &[1; 32]);
        let with = |change: &[(&str, Value)]| {
            let mut header = header.clone();
            for (name, value) in change {
                header[*name] = value.clone();
            }
            header
        };
        let unsigned = |token: &str| format!("{}.", token.rsplit_once('.').unwrap().0);
        let none = forge(&with(&[("alg", json!("none"))]), &claims, &[1; 32]);
        let swapped = {
            let other = forge(&header, &json!({"scope": "admin", "exp": 9_999}), &[1; 32]);
            let body = other.split('.').nth(1).unwrap().to_owned();
            let mut parts: Vec<_> = good.split('.').map(str::to_owned).collect();
            parts[1] = body;
            parts.join(".")
        };
        struct Case {
            name: &'static str,
            token: String,
            now: u64,
            want: Result<(), &'static str>,
        }
        let not_ours = Err("not one of this host");
        #[rustfmt::skip]
        let cases = [
            Case { name: "good", token: good.clone(), now: 999, want: Ok(()) },
            Case { name: "expired", token: good.clone(), now: 1_000, want: Err("has expired") },
            Case { name: "an older key", token: forge(&with(&[("kid", json!("old"))]), &claims, &[2; 32]), now: 0, want: Ok(()) },
            Case { name: "another key's id", token: forge(&with(&[("kid", json!("old"))]), &claims, &[1; 32]), now: 0, want: not_ours },
            Case { name: "a wrong key", token: forge(&header, &claims, &[3; 32]), now: 0, want: not_ours },
            Case { name: "an unknown key", token: forge(&with(&[("kid", json!("x"))]), &claims, &[1; 32]), now: 0, want: not_ours },
            Case { name: "no key id", token: forge(&json!({"alg": "HS256"}), &claims, &[1; 32]), now: 0, want: not_ours },
            Case { name: "alg none, unsigned", token: unsigned(&none), now: 0, want: not_ours },
            Case { name: "alg none, signed", token: none, now: 0, want: not_ours },
            Case { name: "another alg of the same key", token: forge(&with(&[("alg", json!("HS512"))]), &claims, &[1; 32]), now: 0, want: not_ours },
            Case { name: "alg RS256", token: forge(&with(&[("alg", json!("RS256"))]), &claims, &[1; 32]), now: 0, want: not_ours },
            Case { name: "no signature", token: unsigned(&good), now: 0, want: not_ours },
            Case { name: "other claims under the signature", token: swapped, now: 0, want: not_ours },
            Case { name: "no expiry", token: forge(&header, &json!({"scope": "admin"}), &[1; 32]), now: 0, want: not_ours },
            Case { name: "no scope", token: forge(&header, &json!({"exp": 1_000}), &[1; 32]), now: 0, want: not_ours },
            Case { name: "for somebody else", token: forge(&header, &json!({"scope": "admin", "exp": 1_000, "aud": "other"}), &[1; 32]), now: 0, want: not_ours },
            Case { name: "nothing", token: String::new(), now: 0, want: not_ours },
            Case { name: "too long", token: "a".repeat(TOKEN_BYTES_MAX + 1), now: 0, want: not_ours },
        ];
        for case in cases {
            let header = format!("Bearer {}", case.token);
            let got = verify(&keys, Some(header.as_bytes()), case.now);
            match (got, case.want) {
                (Ok(claims), Ok(())) => assert_eq!(claims.scope, "admin"),
                (Err(error), Err(want)) => {
                    assert_eq!(error.code, Code::Unauthenticated, "{}", case.name);
                    assert!(error.message.contains(want), "{}: {error}", case.name);
                }
                (got, want) => panic!("{}: {got:?}, not {want:?}", case.name),
            }
        }
    }

    #[test]
    fn headers() {
        let keys = Keys(vec![key("new", 1)]);
        let claims = Claims {
            sub: String::new(),
            scope: "admin".to_owned(),
            prefixes: vec![String::new()],
            iat: 0,
            exp: 10,
        };
        let token = mint(&keys, &claims).unwrap();
        for (header, want) in [
            (format!("Bearer {token}"), true),
            (format!("bearer {token}"), true),
            (format!("Bearer  {token} "), true),
            (format!("Basic {token}"), false),
            (token.clone(), false),
            (format!("Bearer\t{token}"), false),
        ] {
            let got = verify(&keys, Some(header.as_bytes()), 0);
            assert_eq!(got.is_ok(), want, "{header}");
        }
        assert!(verify(&keys, None, 0).is_err());
        assert!(verify(&keys, Some(b"Bearer \xff"), 0).is_err());
    }

    #[test]
    fn a_token_too_long_to_be_read_is_not_made() {
        let claims = Claims {
            sub: String::new(),
            scope: "admin".to_owned(),
            prefixes: vec!["a/b".repeat(100); 100],
            iat: 0,
            exp: 10,
        };
        assert!(mint(&Keys(vec![key("new", 1)]), &claims).is_err());
    }

    #[test]
    fn a_key_file_may_change_meanwhile() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("keys.json");
        Keys::read_or_make(&file).unwrap();
        let verifier = Verifier::open(&file).unwrap();
        let kids = || -> Vec<String> {
            let mut state = verifier.state.lock().unwrap();
            state.looked = state.looked.checked_sub(LOOK_EVERY).unwrap();
            drop(state);
            verifier
                .keys()
                .0
                .iter()
                .map(|key| key.kid.clone())
                .collect()
        };
        let first = kids();
        let rotated = Keys::rotate(&file).unwrap();
        assert_eq!(kids(), rotated);
        // A file that is being edited locks nobody out.
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, "{").unwrap();
        assert_eq!(kids(), rotated);
        let mut keys: Value = serde_json::from_str(&text).unwrap();
        keys["keys"].as_array_mut().unwrap().pop();
        std::fs::write(&file, keys.to_string()).unwrap();
        assert_eq!(kids(), rotated[..1]);
        assert_eq!(rotated[1..], first);
    }
}
