//! The keys that tokens are signed with: a file with a JWK Set (RFC 7517) of
//! `oct` keys.
//!
//! ```text
//! the first key signs, every key verifies
//! rotation: new key in front -> tokens made anew -> old key taken out
//! ```

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};

use crate::local;

/// How long a secret is at least: as long as the signature (RFC 7518, 3.2).
const SECRET_BYTES_MIN: usize = 32;

/// How many keys a file has at most: a rotation needs two, and a forgotten
/// clean-up a few more.
const KEYS_MAX: usize = 16;

/// Why keys cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file cannot be read or written.
    #[error("cannot use the key file {}: {source}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Others can read it.
    #[error(
        "the key file {} can be read by others: `chmod 600` it, and make new keys if others had \
         access",
        file.display()
    )]
    Open {
        /// The file.
        file: PathBuf,
    },
    /// What it holds is no set of keys.
    #[error("the key file {} cannot be used: {reason}", file.display())]
    Malformed {
        /// The file.
        file: PathBuf,
        /// Why; never with a part of a secret.
        reason: String,
    },
    /// The machine has no random numbers.
    #[error("the machine gives no random numbers, so no key can be made")]
    Random,
}

/// A key.
#[derive(Clone)]
pub(super) struct Key {
    pub(super) kid: String,
    pub(super) secret: Vec<u8>,
}

/// The keys of a host, the one that signs first. At least one.
#[derive(Clone)]
pub struct Keys(pub(super) Vec<Key>);

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kids = self.0.iter().map(|key| &key.kid);
        f.debug_tuple("Keys")
            .field(&kids.collect::<Vec<_>>())
            .finish()
    }
}

#[derive(Serialize, Deserialize)]
struct JwkSet {
    keys: Vec<Jwk>,
}

#[derive(Serialize, Deserialize)]
struct Jwk {
    kty: String,
    kid: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    alg: Option<String>,
    k: String,
}

impl Keys {
    /// Reads a key file.
    pub fn read(file: &Path) -> Result<Keys, KeyError> {
        let io = |source| KeyError::Io {
            file: file.to_owned(),
            source,
        };
        if local::others_can_read(file).map_err(io)? {
            return Err(KeyError::Open {
                file: file.to_owned(),
            });
        }
        Keys::parse(&std::fs::read(file).map_err(io)?).map_err(|reason| KeyError::Malformed {
            file: file.to_owned(),
            reason,
        })
    }

    /// Reads a key file, and makes it with one key if there is none.
    pub fn read_or_make(file: &Path) -> Result<Keys, KeyError> {
        match Keys::read(file) {
            Err(KeyError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                let keys = Keys(vec![Key::random()?]);
                keys.write(file)?;
                Ok(keys)
            }
            read => read,
        }
    }

    /// Puts a new key in front of those of a file; returns the ids of all. The
    /// file is made if there is none. Hosts that run see it within seconds.
    pub fn rotate(file: &Path) -> Result<Vec<String>, KeyError> {
        let mut keys = match Keys::read(file) {
            Err(KeyError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                Keys(Vec::new())
            }
            read => read?,
        };
        keys.0.insert(0, Key::random()?);
        if keys.0.len() > KEYS_MAX {
            return Err(KeyError::Malformed {
                file: file.to_owned(),
                reason: format!("it has {KEYS_MAX} keys already: take old ones out"),
            });
        }
        keys.write(file)?;
        Ok(keys.0.into_iter().map(|key| key.kid).collect())
    }

    fn write(&self, file: &Path) -> Result<(), KeyError> {
        let set = JwkSet {
            keys: self.0.iter().map(Key::to_jwk).collect(),
        };
        let text = serde_json::to_string_pretty(&set).expect("keys are JSON");
        local::write_private(file, text.as_bytes()).map_err(|source| KeyError::Io {
            file: file.to_owned(),
            source,
        })
    }

    fn parse(text: &[u8]) -> Result<Keys, String> {
        // The parser's words could quote a secret; only the place is kept.
        let set: JwkSet = serde_json::from_slice(text).map_err(|error| {
            format!(
                "line {}, column {} is no part of a JWK set of `oct` keys with `kid` and `k`",
                error.line(),
                error.column()
            )
        })?;
        if set.keys.is_empty() || set.keys.len() > KEYS_MAX {
            return Err(format!(
                "it has {} keys; one to {KEYS_MAX} are possible",
                set.keys.len()
            ));
        }
        let mut keys: Vec<Key> = Vec::new();
        for (index, jwk) in set.keys.into_iter().enumerate() {
            let key = jwk
                .parse()
                .map_err(|reason| format!("key {index}: {reason}"))?;
            if keys.iter().any(|it| it.kid == key.kid) {
                return Err(format!("two keys have the id {}", key.kid));
            }
            keys.push(key);
        }
        Ok(Keys(keys))
    }
}

impl Key {
    fn random() -> Result<Key, KeyError> {
        let random = SystemRandom::new();
        let mut secret = vec![0; SECRET_BYTES_MIN];
        random.fill(&mut secret).map_err(|_| KeyError::Random)?;
        let mut id = [0; 9];
        random.fill(&mut id).map_err(|_| KeyError::Random)?;
        Ok(Key {
            kid: URL_SAFE_NO_PAD.encode(id),
            secret,
        })
    }

    fn to_jwk(&self) -> Jwk {
        Jwk {
            kty: "oct".to_owned(),
            kid: self.kid.clone(),
            alg: Some("HS256".to_owned()),
            k: URL_SAFE_NO_PAD.encode(&self.secret),
        }
    }
}

impl Jwk {
    fn parse(self) -> Result<Key, String> {
        if self.kty != "oct" || self.alg.as_deref().is_some_and(|alg| alg != "HS256") {
            return Err("only `kty` oct with `alg` HS256 is possible".to_owned());
        }
        let secret = URL_SAFE_NO_PAD
            .decode(self.k)
            .map_err(|_| "`k` is not base64url without padding".to_owned())?;
        if secret.len() < SECRET_BYTES_MIN {
            return Err(format!(
                "its secret has {} bytes; {SECRET_BYTES_MIN} are the least",
                secret.len()
            ));
        }
        Ok(Key {
            kid: self.kid,
            secret,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

    #[test]
    fn made_read_and_rotated() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("keys.json");
        let made = Keys::read_or_make(&file).unwrap();
        let read = Keys::read_or_make(&file).unwrap();
        assert_eq!(made.0[0].secret, read.0[0].secret);
        let kids = Keys::rotate(&file).unwrap();
        let rotated = Keys::read(&file).unwrap();
        assert_eq!(kids.len(), 2);
        assert_eq!(rotated.0[0].kid, kids[0], "the new key signs");
        assert_ne!(rotated.0[0].secret, made.0[0].secret);
        assert_eq!(rotated.0[1].secret, made.0[0].secret);
        let debug = format!("{rotated:?}");
        assert!(!debug.contains(&URL_SAFE_NO_PAD.encode(&made.0[0].secret)));
    }

    #[test]
    fn what_others_can_read_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("keys.json");
        Keys::read_or_make(&file).unwrap();
        let mode = std::fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o640)).unwrap();
        let error = Keys::read(&file).unwrap_err();
        assert!(matches!(error, KeyError::Open { .. }), "{error}");
    }

    #[test]
    fn malformed_files_say_why_and_keep_the_secret() {
        let key = |kid: &str, kty: &str, alg: &str, k: &str| {
            format!(r#"{{"kty":"{kty}","kid":"{kid}","alg":"{alg}","k":"{k}"}}"#)
        };
        let set = |keys: &[String]| format!(r#"{{"keys":[{}]}}"#, keys.join(","));
        let good = key("a", "oct", "HS256", SECRET);
        assert_eq!(
            Keys::parse(set(std::slice::from_ref(&good)).as_bytes())
                .unwrap()
                .0
                .len(),
            1
        );
        #[rustfmt::skip]
        let cases = [
            (set(&[]), "it has 0 keys"),
            (set(&[good.clone(), good.clone()]), "two keys have the id a"),
            (set(&[key("a", "RSA", "HS256", SECRET)]), "key 0: only `kty` oct"),
            (set(&[key("a", "oct", "none", SECRET)]), "key 0: only `kty` oct"),
            (set(&[key("a", "oct", "HS256", "AAAA")]), "its secret has 3 bytes"),
            (set(&[key("a", "oct", "HS256", "!secret!")]), "not base64url"),
            (format!(r#"{{"keys":[{{"kty":"oct","k":"{SECRET}"}}]}}"#), "line 1"),
            (format!(r#""{SECRET}""#), "line 1"),
            ("{".to_owned(), "line 1"),
        ];
        for (text, want) in cases {
            let reason = Keys::parse(text.as_bytes()).unwrap_err();
            assert!(reason.contains(want), "{text}: {reason}");
            assert!(
                !reason.contains(SECRET) && !reason.contains("!secret!"),
                "{reason}"
            );
        }
    }
}
