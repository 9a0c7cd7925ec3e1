//! Services of type LoadBalancer as users have them: `fairlead up --pool` on a machine with a LAN, clients and backends.

mod elsewhere;
mod lab;
mod life;
mod paths;
mod people;
mod refusals;
mod sharing;
