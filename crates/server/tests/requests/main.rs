//! Requests that ask for too much: what one may cost, and what a user may not do with it.

mod cost;
mod rights;
mod world;
