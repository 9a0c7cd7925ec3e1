//! Logs, exec, attach, cp and port-forward by a real kubectl, through a real API server, to a node whose Pods are plain
//! processes: once in the same process, once over TLS.

mod access;
mod commands;
mod forward;
mod host;
mod house;
mod logs;
