use super::*;

#[test]
fn names_are_near_that_differ_by_a_slip() {
    let check = |one: &str, other: &str, near: bool| assert_eq!(is_near(one, other), near, "{one} {other}");
    check("web", "wbe", true);
    check("web", "Web", true);
    check("web", "webs", true);
    check("web", "we", false);
    check("web", "wab", true);
    check("web", "api", false);
    check("web", "web", false);
    check("http", "https", true);
    check("http", "htp", true);
    check("frontend", "fronted", true);
    check("frontend", "backend", false);
    check("db", "dc", false);
    check("", "a", false);
    check(&"a".repeat(65), &"a".repeat(66), false);
}

#[test]
fn the_nearest_name_is_found() {
    assert_eq!(nearest("frontend", ["frontned", "frontendss", "backend"]), Some("frontned"));
    assert_eq!(nearest("frontend", ["backend"]), None);
}

fn labels(text: &str) -> Labels {
    text.split(',').filter_map(|pair| pair.split_once('=')).map(|(key, value)| (key.into(), value.into())).collect()
}

#[test]
fn a_pod_misses_a_selector_by_slips_or_by_one_label_of_several() {
    let check = |selector: &str, pod: &str, expected: Option<Difference>| {
        let found = miss(&labels(selector), &labels(pod)).map(|miss| miss.difference);
        assert_eq!(found, expected, "{selector} against {pod}");
    };
    let text = str::to_owned;
    check("app=web", "app=wbe", Some(Difference::ValueNear(text("wbe"))));
    check("app=web", "app=Web", Some(Difference::Case(text("app"), text("Web"))));
    check("app=web", "App=web", Some(Difference::Case(text("App"), text("web"))));
    check("app=web", "k8s-app=web", Some(Difference::Key(text("k8s-app"))));
    check("app=web", "apps=web", Some(Difference::Key(text("apps"))));
    check("app=web", "owner=web", None);
    check("app=web", "app=api", None);
    check("app=web", "", None);
    check("app=web,tier=front", "app=web", Some(Difference::Missing));
    check("app=web,tier=front", "app=web,tier=back", Some(Difference::Value(text("back"))));
    check("app=web,tier=front", "app=api,tier=back", None);
    check("app=web,tier=front", "app=api,tier=front", None);
    check("app=web,tier=front", "app=wen,tier=front", Some(Difference::ValueNear(text("wen"))));
    check("app=web,tier=front,env=prod", "app=web,tier=frnt", Some(Difference::Missing));
}
