//! Does something answer? One look at a process or host, by HTTP, TCP, gRPC or a command, and what to make of several.
