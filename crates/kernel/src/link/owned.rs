//! Routes that have an owner: the kernel keeps a number beside each route that says who made it, so that whoever made some finds
//! exactly those again.

use std::net::IpAddr;

use super::{Links, NEW_ROUTE, Route, put_route, route, route_header};
use crate::error::Error;
use crate::netlink::flag;

/// Where the number of the owner is in a message of a route.
pub(super) const OWNER: usize = 5;

impl Links {
    /// The routes of an owner in the main table, of the family that has `like`.
    pub fn owned_routes(&mut self, owner: u8, like: IpAddr) -> Result<Vec<Route>, Error> {
        self.dump("the routes", super::GET_ROUTE, &super::dump_routes(like), |message| {
            Ok(route(message).filter(|_| message.payload.get(OWNER) == Some(&owner)))
        })
    }

    /// Makes a route of an owner. Where there is one to the same destination it stays, and this is an error.
    pub fn add_owned_route(&mut self, owner: u8, route: &Route) -> Result<(), Error> {
        let what = format!("new route to {}/{}", route.destination.address, route.destination.length);
        let mut header = route_header(route);
        header[OWNER] = owner;
        self.change(&what, NEW_ROUTE, flag::CREATE | flag::EXCL, &header, &|w| put_route(w, route))
    }

    /// Deletes a route of an owner, and no other to the same destination.
    pub fn delete_owned_route(&mut self, owner: u8, route: &Route) -> Result<(), Error> {
        let what = format!("deletion of the route to {}/{}", route.destination.address, route.destination.length);
        let mut header = route_header(route);
        header[OWNER] = owner;
        self.change(&what, super::DEL_ROUTE, 0, &header, &|w| put_route(w, route))
    }
}
