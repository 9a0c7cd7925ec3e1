//! Where redirects lead.

use super::Target;
use crate::{Http, Scheme};

fn from(path: &str) -> Target {
    let (scheme, host, port) = (Scheme::Http, "10.0.0.1".to_owned(), 8080);
    Target::of(&Http { scheme, host, port, path: path.to_owned(), headers: Vec::new() })
}

#[track_caller]
fn check(path: &str, location: &str, want: Option<&str>) {
    let led = from(path).follow(location).map(|target| target.to_string());
    assert_eq!(led.as_deref(), want, "{path} -> {location}");
}

#[test]
fn a_location_is_read_from_where_it_was_said() {
    check("/a/b", "/c", Some("http://10.0.0.1:8080/c"));
    check("/a/b?q", "c", Some("http://10.0.0.1:8080/a/c"));
    check("/a/b", "../c?x=1", Some("http://10.0.0.1:8080/c?x=1"));
    check("/a/b", "../../../c", Some("http://10.0.0.1:8080/c"));
    check("/a/b?q", "?z", Some("http://10.0.0.1:8080/a/b?z"));
    check("/a", "", Some("http://10.0.0.1:8080/a"));
    check("/a", "#top", Some("http://10.0.0.1:8080/a"));
    check("/a", "https://example.org", Some("https://example.org:443/"));
    check("/a", "HTTP://u:p@example.org:81/x", Some("http://example.org:81/x"));
    check("/a", "//[fd00::1]/x", Some("http://[fd00::1]:80/x"));
}

#[test]
fn what_is_no_url_leads_nowhere() {
    check("/a", "ftp://example.org/", None);
    check("/a", "http://", None);
    check("/a", "http://host:port/", None);
    check("/a", "http://host:99999/", None);
}

#[test]
fn nothing_in_a_path_ends_the_request_line() {
    assert_eq!(from("a b\r\nX: y").path, "/a%20b%0D%0AX:%20y");
    assert_eq!(from("/\u{e9}#end").path, "/%C3%A9");
}
