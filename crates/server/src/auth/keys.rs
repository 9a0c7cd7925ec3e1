//! Keys that sign and check ServiceAccount tokens. A key knows its one algorithm, so a token cannot choose another.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use fairlead_api::Look;
use fairlead_api::value::{Value, json};
use ring::rand::SystemRandom;
use ring::signature::{self, EcdsaKeyPair, KeyPair, RsaKeyPair, UnparsedPublicKey};
use ring::{digest, rand};
use rustls_pki_types::pem::{PemObject, SectionKind};
use thiserror::Error;
use x509_parser::prelude::{FromDer, X509Certificate};
use x509_parser::public_key::PublicKey;
use x509_parser::x509::SubjectPublicKeyInfo;

/// What a signature is made with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// ECDSA on P-256: keys we make ourselves.
    Es256,
    /// RSA: keys of existing clusters.
    Rs256,
}

impl Algorithm {
    /// The name in a token's header.
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::Es256 => "ES256",
            Algorithm::Rs256 => "RS256",
        }
    }
}

/// A key that cannot be used.
#[derive(Debug, Error)]
pub enum Error {
    /// Not PEM.
    #[error("not a PEM file: {0}")]
    Pem(String),
    /// No key in it.
    #[error("no key found")]
    Missing,
    /// A key we cannot use.
    #[error("unusable key: {0}")]
    Unusable(String),
}

/// Signs tokens.
#[derive(Debug)]
pub struct SigningKey {
    pair: Pair,
    /// Checks what this key signed.
    pub public: VerifyingKey,
}

#[derive(Debug)]
enum Pair {
    Ec(EcdsaKeyPair),
    Rsa(RsaKeyPair),
}

/// Checks tokens.
#[derive(Debug, Clone)]
pub struct VerifyingKey {
    /// `kid` in the header of tokens: the digest of the public key.
    pub id: String,
    /// The only algorithm this key is used with.
    pub algorithm: Algorithm,
    info: Vec<u8>,
    key: Vec<u8>,
}

impl SigningKey {
    /// Reads a private key: PKCS #8, SEC1 (P-256) or PKCS #1 (RSA).
    pub fn from_pem(pem: &str) -> Result<SigningKey, Error> {
        for (kind, der) in sections(pem)? {
            match kind {
                SectionKind::PrivateKey => return SigningKey::from_pkcs8(&der),
                SectionKind::EcPrivateKey => return SigningKey::from_pkcs8(&der::pkcs8_of_sec1(&der)),
                SectionKind::RsaPrivateKey => {
                    return RsaKeyPair::from_der(&der).map_err(unusable).and_then(SigningKey::rsa);
                }
                _ => {}
            }
        }
        Err(Error::Missing)
    }

    fn from_pkcs8(der: &[u8]) -> Result<SigningKey, Error> {
        if let Ok(pair) = RsaKeyPair::from_pkcs8(der) {
            return SigningKey::rsa(pair);
        }
        let algorithm = &signature::ECDSA_P256_SHA256_FIXED_SIGNING;
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, der, &SystemRandom::new()).map_err(unusable)?;
        let public = VerifyingKey::from_info(&der::info_of_p256(pair.public_key().as_ref()))?;
        Ok(SigningKey { pair: Pair::Ec(pair), public })
    }

    fn rsa(pair: RsaKeyPair) -> Result<SigningKey, Error> {
        let public = VerifyingKey::from_info(&der::info_of_rsa(pair.public_key().as_ref()))?;
        Ok(SigningKey { pair: Pair::Rsa(pair), public })
    }

    /// Signs.
    pub fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        let random: &dyn rand::SecureRandom = &SystemRandom::new();
        match &self.pair {
            Pair::Ec(pair) => pair.sign(random, message).map(|s| s.as_ref().to_vec()).map_err(unusable),
            Pair::Rsa(pair) => {
                let mut signed = vec![0; pair.public().modulus_len()];
                pair.sign(&signature::RSA_PKCS1_SHA256, random, message, &mut signed).map_err(unusable)?;
                Ok(signed)
            }
        }
    }
}

impl VerifyingKey {
    /// Every key in a file: public keys, certificates, and the public halves of private keys.
    pub fn all_from_pem(pem: &str) -> Result<Vec<VerifyingKey>, Error> {
        let mut keys = Vec::new();
        for (kind, der) in sections(pem)? {
            match kind {
                SectionKind::PublicKey => keys.push(VerifyingKey::from_info(&der)?),
                SectionKind::Certificate => {
                    let (_, certificate) = X509Certificate::from_der(&der).map_err(unusable)?;
                    keys.push(VerifyingKey::from_info(certificate.public_key().raw)?);
                }
                SectionKind::PrivateKey | SectionKind::EcPrivateKey | SectionKind::RsaPrivateKey => {
                    keys.push(SigningKey::from_pem(pem)?.public);
                }
                _ => {}
            }
        }
        if keys.is_empty() { Err(Error::Missing) } else { Ok(keys) }
    }

    fn from_info(info: &[u8]) -> Result<VerifyingKey, Error> {
        let (_, parsed) = SubjectPublicKeyInfo::from_der(info).map_err(unusable)?;
        let key = parsed.subject_public_key.data.to_vec();
        let algorithm = match parsed.parsed().map_err(unusable)? {
            PublicKey::RSA(rsa) if rsa.key_size() >= 2048 => Algorithm::Rs256,
            PublicKey::EC(point) if point.key_size() == 256 && key.len() == 65 => Algorithm::Es256,
            _ => return Err(Error::Unusable("want RSA of 2048 bits or more, or ECDSA on P-256".to_owned())),
        };
        let id = URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, info));
        Ok(VerifyingKey { id, algorithm, info: info.to_vec(), key })
    }

    /// Whether this key signed a message.
    pub fn verify(&self, message: &[u8], signed: &[u8]) -> bool {
        let algorithm: &dyn signature::VerificationAlgorithm = match self.algorithm {
            Algorithm::Es256 => &signature::ECDSA_P256_SHA256_FIXED,
            Algorithm::Rs256 => &signature::RSA_PKCS1_2048_8192_SHA256,
        };
        UnparsedPublicKey::new(algorithm, &self.key).verify(message, signed).is_ok()
    }

    /// The key as `/openid/v1/jwks` shows it.
    pub fn jwk(&self) -> Value {
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let mut jwk = json!({"use": "sig", "kid": self.id, "alg": self.algorithm.name()});
        let parts =
            match SubjectPublicKeyInfo::from_der(&self.info).ok().and_then(|(_, info)| match info.parsed().ok()? {
                PublicKey::RSA(rsa) => {
                    let unsigned = |n: &[u8]| text(&n[n.iter().take_while(|byte| **byte == 0).count()..]);
                    Some(json!({"kty": "RSA", "n": unsigned(rsa.modulus), "e": unsigned(rsa.exponent)}))
                }
                _ => {
                    Some(json!({"kty": "EC", "crv": "P-256", "x": text(&self.key[1..33]), "y": text(&self.key[33..])}))
                }
            }) {
                Some(Value::Object(parts)) => parts,
                _ => fairlead_api::value::Map::new(),
            };
        for (field, value) in parts {
            jwk.set(field, value);
        }
        jwk
    }
}

fn sections(pem: &str) -> Result<Vec<(SectionKind, Vec<u8>)>, Error> {
    <(SectionKind, Vec<u8>)>::pem_slice_iter(pem.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(|error| Error::Pem(error.to_string()))
}

fn unusable(error: impl std::fmt::Display) -> Error {
    Error::Unusable(error.to_string())
}

/// The little DER that wraps one form of a key into another.
mod der {
    const EC_P256: &[u8] = b"\x30\x13\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07";
    const RSA: &[u8] = b"\x30\x0d\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01\x05\x00";
    const SEQUENCE: u8 = 0x30;
    const BIT_STRING: u8 = 0x03;
    const OCTET_STRING: u8 = 0x04;

    pub(super) fn pkcs8_of_sec1(key: &[u8]) -> Vec<u8> {
        element(SEQUENCE, &[b"\x02\x01\x00", EC_P256, &element(OCTET_STRING, &[key])])
    }

    pub(super) fn info_of_p256(point: &[u8]) -> Vec<u8> {
        element(SEQUENCE, &[EC_P256, &element(BIT_STRING, &[b"\0", point])])
    }

    pub(super) fn info_of_rsa(key: &[u8]) -> Vec<u8> {
        element(SEQUENCE, &[RSA, &element(BIT_STRING, &[b"\0", key])])
    }

    fn element(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
        let body = parts.concat();
        let length = (body.len() as u64).to_be_bytes();
        let length = &length[length.iter().take_while(|byte| **byte == 0).count()..];
        let mut out = vec![tag];
        if body.len() >= 128 {
            out.push(0x80 | u8::try_from(length.len()).expect("at most eight bytes of length"));
        }
        out.extend_from_slice(if body.is_empty() { &[0] } else { length });
        out.extend(body);
        out
    }
}
