use super::super::Target;
use super::*;

#[test]
fn intervals_end_by_the_clock() {
    let cases = [
        ("2014-02-15T23:35:00Z", 5, "2014-02-15T23:40:00Z"),
        ("2014-02-15T23:39:59.999Z", 5, "2014-02-15T23:40:00Z"),
        ("2014-02-15T23:40:00Z", 5, "2014-02-15T23:45:00Z"),
        ("2014-02-15T23:40:00Z", 60, "2014-02-16T00:00:00Z"),
        ("1969-12-31T23:59:00Z", 60, "1970-01-01T00:00:00Z"),
    ];
    for (time, minutes, expected) in cases {
        let end = end_of_interval(time.parse().expect("a time"), Duration::from_secs(minutes * 60));
        assert_eq!(end.to_string(), expected, "{time}");
    }
    assert!(end_of_interval(Timestamp::now(), Duration::ZERO) > Timestamp::now());
}

#[track_caller]
fn check(prefix: &str, address: &str, expected: &str) {
    let owner = Owner { account: "123456789012".to_owned(), region: "us-west-2".to_owned() };
    let destination = Destination {
        name: "my-loadbalancer".to_owned(),
        address: address.parse().expect("an address"),
        target: Target::Directory("/logs".into()),
        prefix: prefix.to_owned(),
        interval: Duration::from_secs(300),
    };
    let end = "2014-02-15T23:40:00Z".parse().expect("a time");
    assert_eq!(of_file(&owner, &destination, end, "20sg8hgm"), expected);
}

#[test]
fn files_are_called_as_aws_calls_them() {
    let path = "AWSLogs/123456789012/elasticloadbalancing/us-west-2/2014/02/15/123456789012_elasticloadbalancing\
                _us-west-2_my-loadbalancer_20140215T2340Z_172.160.1.192_20sg8hgm.log";
    check("my-app", "172.160.1.192", &format!("my-app/{path}"));
    check("", "172.160.1.192", path);
    check("/my-app/prod/", "172.160.1.192", &format!("my-app/prod/{path}"));
}

#[test]
fn a_prefix_stays_inside() {
    assert_eq!(clean("../../etc"), "etc");
    assert_eq!(clean("/etc//x/./y/../z"), "etc/x/y/z");
}
