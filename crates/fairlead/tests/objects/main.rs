//! `fairlead get`, `describe`, `apply`, `delete`, `watch` and `events` as people call them, against a real server; what kubectl
//! has, too, is compared with kubectl, to the letter.

mod apply;
mod errors;
mod follow;
mod house;
mod kubectl;
mod shell;
