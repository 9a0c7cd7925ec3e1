//! Search paths.
