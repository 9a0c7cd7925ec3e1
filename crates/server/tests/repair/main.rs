//! What the server does by itself, on every store that needs no other program: it mends allocations damaged by hand, and lets old
//! Events go.

mod bystanders;
mod damage;
mod expiry;
mod house;
mod life;
