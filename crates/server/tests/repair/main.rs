//! Allocations damaged by hand, and what passes of the server make of them, on every store that needs no other program.

mod bystanders;
mod damage;
mod house;
mod life;
