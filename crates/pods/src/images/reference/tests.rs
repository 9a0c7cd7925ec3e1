use super::*;

#[track_caller]
fn check(pattern: &str, image: &str, matches: bool) {
    let pattern: Pattern = pattern.parse().expect("a pattern");
    let image: Reference = image.parse().expect("a name");
    assert_eq!(pattern.matches(&image), matches, "{pattern:?} {image}");
}

#[test]
fn a_name_without_a_registry_is_of_docker_hub() {
    let check = |text: &str, whole: &str| {
        assert_eq!(text.parse::<Reference>().map(|name| name.to_string()), Ok(whole.to_owned()), "{text}");
    };
    check("nginx", "docker.io/library/nginx:latest");
    check("me/tool:1", "docker.io/me/tool:1");
    check("localhost/tool", "localhost/tool:latest");
    check("host:5000/a/b:1", "host:5000/a/b:1");
    check("quay.io/a@sha256:00", "quay.io/a@sha256:00");
    for wrong in ["", "a//b", "/a", "a:", "a@", "a b", ":1"] {
        assert!(wrong.parse::<Reference>().is_err(), "{wrong:?}");
    }
}

#[test]
fn a_pattern_is_compared_with_the_end_of_the_path() {
    let agnhost = "registry.k8s.io/e2e-test-images/agnhost:2.59";
    for pattern in [
        "agnhost:*",
        "agnhost",
        "agnhost:2.59",
        "agnhost:2.*",
        "agnhost:2.??",
        "e2e-test-images/agnhost",
        "registry.k8s.io/*/agnhost:*",
        "registry.k8s.io/e2e-test-images/agnhost:2.59",
        "*",
        "*:*",
        "*/*",
        "a*t",
    ] {
        check(pattern, agnhost, true);
    }
    for pattern in [
        "host:*",
        "agnhost:2.5",
        "agnhost:3*",
        "registry.k8s.io/agnhost",
        "registry.k8s.io/*",
        "a/*/*/agnhost",
        "agnhost@sha256:*",
    ] {
        check(pattern, agnhost, false);
    }
}

#[test]
fn a_name_without_a_tag_is_the_latest_and_one_with_a_digest_alone_has_no_tag() {
    check("nginx:latest", "nginx", true);
    check("docker.io/library/nginx:latest", "nginx", true);
    check("library/nginx:1.*", "nginx", false);
    check("nginx", "nginx@sha256:ab", true);
    check("nginx:*", "nginx@sha256:ab", true);
    check("nginx:latest", "nginx@sha256:ab", false);
    check("nginx@sha256:a*", "nginx:1@sha256:ab", true);
    check("nginx@sha256:b*", "nginx:1@sha256:ab", false);
    check("localhost:5000/nginx", "localhost:5000/nginx:1", true);
}

#[test]
fn stars_take_no_long_time() {
    let pattern = "*a".repeat(2000);
    assert!(!glob(&pattern, &format!("{}b", "a".repeat(4000))));
    assert!(glob("*a*b*", "xxaxxbxx") && glob("", "") && glob("*", "") && !glob("?", ""));
}
