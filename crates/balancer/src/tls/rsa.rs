//! How does a load balancer sign with its key? As ring does, but with keys of RSA as AWS-LC does, which takes half the time: most of what a
//! handshake with such a certificate costs.

use std::sync::Arc;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    KeyPair, RSA_PKCS1_SHA256, RSA_PKCS1_SHA384, RSA_PKCS1_SHA512, RSA_PSS_SHA256, RSA_PSS_SHA384, RSA_PSS_SHA512,
    RsaEncoding, RsaKeyPair,
};
use rustls::crypto::{CryptoProvider, KeyProvider, ring};
use rustls::pki_types::{PrivateKeyDer, SubjectPublicKeyInfoDer, alg_id};
use rustls::sign::{Signer, SigningKey, public_key_to_spki};
use rustls::{Error, SignatureAlgorithm, SignatureScheme};

#[cfg(test)]
mod tests;

/// Everything as ring does it, but for keys of RSA.
pub(super) fn provider() -> CryptoProvider {
    CryptoProvider { key_provider: &Keys, ..ring::default_provider() }
}

/// What keys are made of.
#[derive(Debug)]
struct Keys;

impl KeyProvider for Keys {
    fn load_private_key(&self, key: PrivateKeyDer<'static>) -> Result<Arc<dyn SigningKey>, Error> {
        let rsa = match &key {
            PrivateKeyDer::Pkcs1(der) => RsaKeyPair::from_der(der.secret_pkcs1_der()).ok(),
            PrivateKeyDer::Pkcs8(der) => RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()).ok(),
            _ => None,
        };
        match rsa {
            Some(pair) => Ok(Arc::new(Key(Arc::new(pair)))),
            // Of another kind, or nobody's: ring says which.
            None => ring::default_provider().key_provider.load_private_key(key),
        }
    }
}

/// A key of RSA.
#[derive(Debug)]
struct Key(Arc<RsaKeyPair>);

/// What signatures it makes, in the order of preference.
const SCHEMES: [(SignatureScheme, &dyn RsaEncoding); 6] = [
    (SignatureScheme::RSA_PSS_SHA512, &RSA_PSS_SHA512),
    (SignatureScheme::RSA_PSS_SHA384, &RSA_PSS_SHA384),
    (SignatureScheme::RSA_PSS_SHA256, &RSA_PSS_SHA256),
    (SignatureScheme::RSA_PKCS1_SHA512, &RSA_PKCS1_SHA512),
    (SignatureScheme::RSA_PKCS1_SHA384, &RSA_PKCS1_SHA384),
    (SignatureScheme::RSA_PKCS1_SHA256, &RSA_PKCS1_SHA256),
];

impl SigningKey for Key {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        let (scheme, encoding) = SCHEMES.into_iter().find(|(scheme, _)| offered.contains(scheme))?;
        Some(Box::new(Signing { key: self.0.clone(), scheme, encoding }))
    }

    fn public_key(&self) -> Option<SubjectPublicKeyInfoDer<'_>> {
        Some(public_key_to_spki(&alg_id::RSA_ENCRYPTION, self.0.public_key()))
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        SignatureAlgorithm::RSA
    }
}

/// A key that signs in one way.
#[derive(Debug)]
struct Signing {
    key: Arc<RsaKeyPair>,
    scheme: SignatureScheme,
    encoding: &'static dyn RsaEncoding,
}

impl Signer for Signing {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        let mut signature = vec![0; self.key.public_modulus_len()];
        let signed = self.key.sign(self.encoding, &SystemRandom::new(), message, &mut signature);
        signed.map(|()| signature).map_err(|_| Error::General("signing failed".to_owned()))
    }

    fn scheme(&self) -> SignatureScheme {
        self.scheme
    }
}
