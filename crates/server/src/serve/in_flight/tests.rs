use super::*;

#[track_caller]
fn check(method: &str, path: &str, lasts: bool) {
    let request = Request::builder().method(method).uri(path).body(()).expect("a request");
    assert_eq!(lasts_long(&request), lasts, "{method} {path}");
}

#[test]
fn watches_and_streams_of_pods_last_long_and_nothing_else_does() {
    for path in ["/api/v1/services?watch=1", "/api/v1/services?limit=5&watch", "/fairlead/v1/services?watch=true"] {
        check("GET", path, true);
        for method in ["HEAD", "POST", "PUT", "PATCH", "DELETE"] {
            check(method, path, false);
        }
    }
    check("GET", "/api/v1/services", false);
    check("GET", "/api/v1/services?watch=false", false);
    check("GET", "/api/v1/services?watch=0", false);
    for stream in ["log", "exec", "attach", "portforward"] {
        check("GET", &format!("/api/v1/namespaces/a/pods/web/{stream}"), true);
        check("POST", &format!("/api/v1/namespaces/a/pods/web/{stream}"), true);
    }
    check("POST", "/api/v1/namespaces/a/pods/web/binding", false);
}
