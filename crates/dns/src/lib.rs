//! Cluster DNS: sockets, a chain of steps a Corefile describes, cache and forwarding around the records of `zone`.
