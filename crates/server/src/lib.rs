//! The API over HTTP.

pub mod audit;
pub mod auth;
pub mod serve;
