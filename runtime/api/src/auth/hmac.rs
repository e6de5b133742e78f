//! HS256 by ring, for `jsonwebtoken`. Every other algorithm is refused here, so
//! that no setting elsewhere can let one in.

use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::signature::{self, Signer, Verifier};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey};
use ring::hmac;

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory,
    verifier_factory,
    key_utils: KeyUtils::new_unimplemented(),
};

/// Makes `jsonwebtoken` use what is here.
pub(super) fn install() {
    // It is installed already, the second time.
    let _ = PROVIDER.install_default();
}

struct Hs256(hmac::Key);

impl Hs256 {
    fn new(algorithm: &Algorithm, secret: &[u8]) -> Result<Hs256, Error> {
        match algorithm {
            Algorithm::HS256 => Ok(Hs256(hmac::Key::new(hmac::HMAC_SHA256, secret))),
            _ => Err(ErrorKind::InvalidAlgorithm.into()),
        }
    }
}

impl Signer<Vec<u8>> for Hs256 {
    fn try_sign(&self, message: &[u8]) -> Result<Vec<u8>, signature::Error> {
        Ok(hmac::sign(&self.0, message).as_ref().to_vec())
    }
}

impl JwtSigner for Hs256 {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}

impl Verifier<Vec<u8>> for Hs256 {
    /// Compares in constant time.
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), signature::Error> {
        hmac::verify(&self.0, message, signature).map_err(|_| signature::Error::new())
    }
}

impl JwtVerifier for Hs256 {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}

fn signer_factory(algorithm: &Algorithm, key: &EncodingKey) -> Result<Box<dyn JwtSigner>, Error> {
    Ok(Box::new(Hs256::new(algorithm, key.as_bytes())?))
}

fn verifier_factory(
    algorithm: &Algorithm,
    key: &DecodingKey,
) -> Result<Box<dyn JwtVerifier>, Error> {
    Ok(Box::new(Hs256::new(algorithm, key.try_get_as_bytes()?)?))
}
