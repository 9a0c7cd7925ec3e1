//! Kubernetes' protobuf encoding, driven by the schema tables: what client-go sends and what kube-apiserver stores.

use serde_json::Value;
use thiserror::Error;

use crate::schema::Struct;

/// Bytes that are not what they should be.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum Error {
    /// No `k8s\0` at the beginning.
    #[error("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")]
    NoMagic,
    /// Cut off or malformed.
    #[error("{0}")]
    Malformed(String),
}

/// The wrapper around every object: what it is, and its bytes.
#[derive(Debug, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// `apiVersion`.
    pub api_version: String,
    /// `kind`.
    pub kind: String,
    /// The object itself.
    pub raw: &'a [u8],
}

/// Opens the wrapper.
pub fn unwrap(_body: &[u8]) -> Result<Envelope<'_>, Error> {
    Err(Error::NoMagic)
}

/// Puts an object into the wrapper.
pub fn wrap(_api_version: &str, _kind: &str, _raw: &[u8]) -> Vec<u8> {
    Vec::new()
}

/// Reads an object of type `of` into JSON (not yet canonical: pass it through [`crate::decode`]). Unknown fields are skipped.
pub fn read(_of: &'static Struct, _raw: &[u8]) -> Result<Value, Error> {
    Err(Error::NoMagic)
}

/// Writes a canonical object of type `of`.
pub fn write(_of: &'static Struct, _object: &Value) -> Vec<u8> {
    Vec::new()
}
