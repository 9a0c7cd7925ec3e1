use clap::Parser;

use super::*;

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    flags: RegisterFlags,
}

/// What a command line asks for, or what is wrong with it.
fn read(line: &str) -> Result<Wanted, String> {
    let words = std::iter::once("register").chain(line.split_whitespace());
    let line = Line::try_parse_from(words).map_err(|error| error.to_string())?;
    Wanted::read(&line.flags).map_err(|error| error.to_string())
}

#[track_caller]
fn refused(line: &str, expect: &str) {
    let told = read(line).expect_err(line);
    assert!(told.contains(expect), "{told}");
}

#[test]
fn ports_are_read() {
    let port = |text: &str| text.parse::<Port>().map(|port| (port.name, port.number, port.protocol));
    assert_eq!(port("8080"), Ok((String::new(), 8080, Protocol::Tcp)));
    assert_eq!(port("dns=53/udp"), Ok(("dns".to_owned(), 53, Protocol::Udp)));
    for text in ["", "0", "70000", "a=b", "80/ICMP", "A_B=80"] {
        assert!(port(text).is_err(), "{text}");
    }
}

#[test]
fn a_line_says_what_to_register() {
    let wanted = read("web --address 192.0.2.7 --port 8080 --check http:/healthz --weight 3").expect("a line");
    assert_eq!((wanted.name.as_str(), wanted.endpoint().as_str()), ("web", "192.0.2.7:8080"));
    assert_eq!(wanted.schedule.period, Duration::from_secs(5));
    assert!(matches!(wanted.check, Some(Check::Network(_))));
    let wanted = read("web --address 2001:db8::7 --port a=1 --port b=2/UDP -- sleep 1").expect("a line");
    assert_eq!(wanted.endpoint(), "[2001:db8::7]:1,2");
}

#[test]
fn mistakes_are_named_by_their_flag() {
    refused("web --address example.com", "--address: \"example.com\" is no IP address");
    refused("web --address 127.0.0.1", "--address: 127.0.0.1 cannot be an endpoint: may not be in the loopback range");
    refused("web --address 192.0.2.7 --port 1 --port 2", "--port: several ports need names");
    refused("web --address 192.0.2.7 --port 1/UDP --check tcp", "--check: say which TCP port to look at");
    refused("web --address 192.0.2.7 --check nope", "is no check");
    refused("web --address 192.0.2.7 --interval 0s", "--interval, --timeout: want more than 0");
    refused("web --address 192.0.2.7 --interval soon", "want a duration");
    refused("web --address 192.0.2.7 --hostname A.b", "--hostname: a lowercase RFC 1123 label");
    refused("web --address 192.0.2.7 --weight 101", "101");
    refused("web --address 192.0.2.7 --pid 1 -- sleep 1", "cannot be used with");
    refused("web", "--address");
}
