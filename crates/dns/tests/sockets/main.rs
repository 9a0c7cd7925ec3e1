//! Does the server answer over real sockets as it should, whatever others do? Each test has a network of its own.

mod abuse;
mod cluster;
mod flood;
mod forwarding;
mod lab;
mod serving;
