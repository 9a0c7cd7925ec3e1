//! The manifests of the documentation.
