//! What tests share: the built program on a free port, a real etcd, a small HTTPS client, and the rule for tests that need
//! something the machine lacks. For tests only; nothing here is shipped.

pub mod component;
pub mod declined;
pub mod etcd;
pub mod http;
pub mod https;
pub mod image;
pub mod kubectl;
pub mod need;
pub mod relay;
pub mod server;
pub mod suites;

pub use component::Component;
pub use etcd::Etcd;
pub use kubectl::Kubectl;
pub use need::{full, need};
pub use relay::Relay;
pub use server::{ADMIN_TOKEN, Server};

use std::net::TcpListener;
use std::path::{Path, PathBuf};

/// The top of the project.
pub fn project() -> PathBuf {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    top.canonicalize().expect("the project is where it was built")
}

/// A port nobody listens on now. Somebody else may take it before you do: try again then.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .expect("loopback has a free port")
        .port()
}
