//! A kubeconfig with everything in it, for the administrator of this server.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::certificates::Pair;

/// The URL at which a client on this machine reaches the server.
pub fn server_url(address: SocketAddr) -> String {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    format!("https://{}", SocketAddr::new(ip, address.port()))
}

/// The text of a kubeconfig. `authorities` are certificates as PEM.
pub fn render(server: &str, authorities: &str, admin: &Pair) -> String {
    let text = |pem: &str| STANDARD.encode(pem);
    format!(
        "apiVersion: v1\n\
         kind: Config\n\
         current-context: fairlead\n\
         clusters:\n\
         - name: fairlead\n  \
           cluster:\n    \
             server: {server}\n    \
             certificate-authority-data: {}\n\
         contexts:\n\
         - name: fairlead\n  \
           context:\n    \
             cluster: fairlead\n    \
             user: fairlead-admin\n\
         users:\n\
         - name: fairlead-admin\n  \
           user:\n    \
             client-certificate-data: {}\n    \
             client-key-data: {}\n",
        text(authorities),
        text(&admin.certificate),
        text(&admin.key),
    )
}
