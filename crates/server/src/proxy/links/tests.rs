use super::*;

fn links() -> Links {
    Links {
        prefix: "/api/v1/namespaces/ns/pods/p:80/proxy".to_owned(),
        hosts: ["10.1.2.3:80".to_owned(), "localhost:6443".to_owned()],
    }
}

#[test]
fn links_to_the_pod_lead_through_the_proxy() {
    let table = [
        ("/page", Some("/api/v1/namespaces/ns/pods/p:80/proxy/page")),
        ("/", Some("/api/v1/namespaces/ns/pods/p:80/proxy/")),
        ("/a?b=/c#d", Some("/api/v1/namespaces/ns/pods/p:80/proxy/a?b=/c#d")),
        ("http://10.1.2.3:80/a", Some("/api/v1/namespaces/ns/pods/p:80/proxy/a")),
        ("https://localhost:6443/a", Some("/api/v1/namespaces/ns/pods/p:80/proxy/a")),
        ("//10.1.2.3:80/a", Some("/api/v1/namespaces/ns/pods/p:80/proxy/a")),
        ("http://10.1.2.3:80/api/v1/namespaces/ns/pods/p:80/proxy/a", Some("/api/v1/namespaces/ns/pods/p:80/proxy/a")),
        ("/api/v1/namespaces/ns/pods/p:80/proxy/a", None),
        ("http://example.com/a", None),
        ("//example.com/a", None),
        ("http://10.1.2.3:80", None),
        ("mailto:a@example.com", None),
        ("page", None),
        ("../page", None),
        ("", None),
    ];
    for (link, want) in table {
        assert_eq!(links().rewrite(link).as_deref(), want, "{link}");
    }
}

/// Rewrites a page that comes in pieces of a length.
fn rewritten(page: &str, length: usize) -> String {
    let mut html = Html { links: Links { prefix: "/P".to_owned(), ..links() }, pending: Vec::new(), until: None };
    let mut out = Vec::new();
    for piece in page.as_bytes().chunks(length) {
        out.extend(html.feed(piece));
    }
    out.extend(html.finish());
    String::from_utf8(out).expect("text")
}

#[test]
fn only_links_of_a_page_change_however_it_comes() {
    let table = [
        (r#"<a href="/rewriteme">test</a>"#, r#"<a href="/P/rewriteme">test</a>"#),
        ("<A HREF='/x' class=/y>", "<A HREF='/P/x' class=/y>"),
        ("<img alt=\"/no\" src=/i.png>", "<img alt=\"/no\" src=/P/i.png>"),
        (
            "<script src=\"/s.js\">if (a</b) '<a href=\"/x\">'</script><a href=/y>",
            "<script src=\"/P/s.js\">if (a</b) '<a href=\"/x\">'</script><a href=/P/y>",
        ),
        ("<!-- <a href=\"/x\"> --><a href=\"/y\">", "<!-- <a href=\"/x\"> --><a href=\"/P/y\">"),
        ("<!doctype html><link rel=icon href=\"/i\"/>", "<!doctype html><link rel=icon href=\"/P/i\"/>"),
        ("a < b <3 </a> <b href=\"/x\">", "a < b <3 </a> <b href=\"/x\">"),
        ("<a href = \"/x\" download>", "<a href = \"/P/x\" download>"),
        ("<a title=\"> \" href=\"/x\">", "<a title=\"> \" href=\"/P/x\">"),
        ("<a href=\"/never closed", "<a href=\"/never closed"),
        ("<a href=\"page\"><a href=\"https://example.com/\">", "<a href=\"page\"><a href=\"https://example.com/\">"),
        ("<", "<"),
        ("", ""),
    ];
    for (page, want) in table {
        for length in [1, 2, 3, 7, 1000] {
            assert_eq!(rewritten(page, length), want, "in pieces of {length}");
        }
    }
}

#[test]
fn a_tag_without_an_end_is_not_kept() {
    let page = format!("<a {}", "x ".repeat(MAX_TAG));
    let mut html = Html { links: links(), pending: Vec::new(), until: None };
    let mut passed = 0;
    for piece in page.as_bytes().chunks(1000) {
        passed += html.feed(piece).len();
        assert!(html.pending.len() <= MAX_TAG);
    }
    assert_eq!(passed + html.finish().len(), page.len());
}

#[test]
fn a_redirection_leads_through_the_proxy_and_permissions_of_the_pod_are_removed() {
    let mut response = crate::reply::plain(302, "");
    let headers = response.headers_mut();
    headers.insert(LOCATION, HeaderValue::from_static("/login"));
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    let response = links().rewrite_response(response);
    assert_eq!(response.headers()[LOCATION], "/api/v1/namespaces/ns/pods/p:80/proxy/login");
    assert!(!response.headers().contains_key(ACCESS_CONTROL_ALLOW_ORIGIN));
}
