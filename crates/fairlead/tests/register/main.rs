//! `fairlead register` and the controller beside it, against a real server and real listeners, in a network namespace of their
//! own: endpoints may not be loopback addresses.

mod controller;
mod house;
mod life;
