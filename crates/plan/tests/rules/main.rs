//! The rules of the plan, row by row of the list of behaviours (the number is in the name of each test), and what must hold
//! whatever comes in.

mod addresses;
mod choice;
mod incremental;
mod lab;
mod mangled;
mod policies;
mod random;
mod reasons;
mod trace;
