use ::ring::signature as verified;
use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
use aws_lc_rs::rsa::{KeyPair as Pair, KeySize};

use super::*;

fn pkcs8() -> Vec<u8> {
    let pair = Pair::generate(KeySize::Rsa2048).expect("a key");
    let der: Pkcs8V1Der<'_> = pair.as_der().expect("its text");
    der.as_ref().to_vec()
}

#[test]
fn what_a_key_of_rsa_signs_others_verify() {
    let der = pkcs8();
    let key = provider().key_provider.load_private_key(PrivateKeyDer::Pkcs8(der.clone().into())).expect("a key");
    assert_eq!(key.algorithm(), SignatureAlgorithm::RSA);
    let public = ::ring::signature::RsaKeyPair::from_pkcs8(&der).expect("a key");
    let public = verified::KeyPair::public_key(&public).as_ref().to_vec();
    let check = |scheme: SignatureScheme, by: &'static dyn verified::VerificationAlgorithm| {
        let signer = key.choose_scheme(&[SignatureScheme::ED25519, scheme]).expect("a way to sign");
        assert_eq!(signer.scheme(), scheme);
        let signature = signer.sign(b"message").expect("a signature");
        let public = verified::UnparsedPublicKey::new(by, &public);
        assert!(public.verify(b"message", &signature).is_ok(), "{scheme:?}");
        assert!(public.verify(b"another", &signature).is_err(), "{scheme:?}");
    };
    check(SignatureScheme::RSA_PSS_SHA256, &verified::RSA_PSS_2048_8192_SHA256);
    check(SignatureScheme::RSA_PSS_SHA384, &verified::RSA_PSS_2048_8192_SHA384);
    check(SignatureScheme::RSA_PSS_SHA512, &verified::RSA_PSS_2048_8192_SHA512);
    check(SignatureScheme::RSA_PKCS1_SHA256, &verified::RSA_PKCS1_2048_8192_SHA256);
    check(SignatureScheme::RSA_PKCS1_SHA384, &verified::RSA_PKCS1_2048_8192_SHA384);
    check(SignatureScheme::RSA_PKCS1_SHA512, &verified::RSA_PKCS1_2048_8192_SHA512);
    assert!(key.choose_scheme(&[SignatureScheme::ECDSA_NISTP256_SHA256]).is_none());
}

#[test]
fn other_keys_are_rings() {
    let made = rcgen::generate_simple_self_signed(["web.example".to_owned()]).expect("a certificate");
    let der = PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("a key");
    let key = provider().key_provider.load_private_key(der).expect("a key");
    assert_eq!(key.algorithm(), SignatureAlgorithm::ECDSA);
    let nobodys = PrivateKeyDer::Pkcs8(vec![0x30, 0x00].into());
    assert!(provider().key_provider.load_private_key(nobodys).is_err());
}
