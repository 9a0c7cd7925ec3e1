//! What others can ask of Pods: logs, commands, streams, connections; and that Pods reach each other.

use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::time::Duration;

use bytes::Bytes;
use fairlead_kernel::link::{Links, Prefix};
use fairlead_kernel::netns::Namespace;
use fairlead_pods::host::{Exit, Refusal, Streams, Target};
use fairlead_server::auth::User;
use http::Request;
use http_body_util::{BodyExt, Full};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tower::Service;

use crate::house::{House, addresses, get, in_house};

fn target(pod: &str) -> Target {
    Target { namespace: "default".to_owned(), pod: pod.to_owned(), container: None }
}

const ALL: Streams = Streams { stdin: true, stdout: true, stderr: true, tty: false };

/// Runs a command with some input: what it said, what it complained of, how it ended.
async fn exec(house: &House, pod: &str, command: &[&str], input: &str, streams: Streams) -> (String, String, Exit) {
    let command = command.iter().map(|word| (*word).to_owned()).collect();
    let mut session = house.host.exec(&target(pod), command, streams).await.unwrap();
    let mut stdin = session.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).await.unwrap();
    if !streams.tty {
        stdin.shutdown().await.unwrap();
        drop(stdin);
    }
    let (mut out, mut complaints) = (Vec::new(), Vec::new());
    let mut stdout = session.stdout.take().unwrap();
    let said = async {
        // A terminal ends with an error.
        let _ = stdout.read_to_end(&mut out).await;
    };
    let complained = async {
        if let Some(mut stderr) = session.stderr.take() {
            stderr.read_to_end(&mut complaints).await.unwrap();
        }
    };
    let ((), (), exit) = tokio::join!(said, complained, session.exit);
    (String::from_utf8_lossy(&out).into_owned(), String::from_utf8_lossy(&complaints).into_owned(), exit)
}

#[test]
fn commands_run_beside_the_container() {
    in_house("commands_run_beside_the_container", |house| async move {
        house.pod("web", &["sleep", "100"], json!({"container": {"env": [{"name": "MINE", "value": "yes"}]}})).await;
        house.ready("web").await;
        let script = "cat; echo $MINE; hostname; id -u; ps ax | grep -c '[s]leep 100'; echo bad >&2; exit 4";
        let (out, complaints, exit) = exec(&house, "web", &["sh", "-c", script], "input\n", ALL).await;
        let lines: Vec<&str> = out.lines().collect();
        assert_eq!((&lines[..3], lines[4]), (&["input", "yes", "web"][..], "1"), "{out}");
        assert!(lines[3].parse::<u32>().is_ok_and(|user| user >= 1_900_000_000), "{out}");
        assert_eq!((complaints.as_str(), exit), ("bad\n", Exit::Code(4)));
        let tty = Streams { tty: true, stderr: false, ..ALL };
        let (out, _, exit) =
            exec(&house, "web", &["sh", "-c", "tty; read x; echo got $x; exit 5"], "typed\n", tty).await;
        assert!(out.contains("/dev/pts/") && out.contains("got typed"), "{out}");
        assert_eq!(exit, Exit::Code(5));
        let (_, complaints, exit) = exec(&house, "web", &["no-such-program"], "", ALL).await;
        assert_eq!(complaints, "exec: \"no-such-program\": executable file not found in $PATH\n");
        assert_eq!(exit, Exit::Code(127));
        let none = house.host.exec(&target("other"), vec!["true".to_owned()], ALL).await;
        assert!(matches!(none, Err(Refusal::NotFound(_))));
    });
}

/// Answers with the method, the path and some headers of each request, and its body.
const ECHO: &str = r#"
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    def answer(self):
        size = int(self.headers.get("content-length") or 0)
        body = self.rfile.read(size)
        kept = [self.headers.get(name) or "-" for name in ("x-mine", "authorization", "impersonate-user")]
        text = "%s %s %s %s" % (self.command, self.path, ",".join(kept), body.decode())
        if self.path == "/page":
            text = '<a href="/next">next</a>'
        self.send_response(302 if self.path == "/go" else 200)
        if self.path == "/go":
            self.send_header("location", "/gone")
        self.send_header("content-type", "text/html" if self.path == "/page" else "text/plain")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text.encode())
    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = answer
    def log_message(self, *words):
        pass
http.server.HTTPServer(("", 8080), Handler).serve_forever()
"#;

/// An answer: code, header `Location` and body.
type Answer = (u16, String, String);

async fn send(house: &House, method: &str, path: &str, body: &str) -> Answer {
    let groups = vec!["system:masters".to_owned()];
    let user = User { name: "admin".to_owned(), groups, ..User::default() };
    let request = Request::builder().method(method).uri(path).header("x-mine", "yes").header("host", "server");
    let request = request.header("authorization", "Bearer secret").body(Full::new(Bytes::from(body.to_owned())));
    let answer = house.server.local(user).call(request.unwrap()).await.unwrap();
    let location = answer.headers().get("location").map_or("", |value| value.to_str().unwrap()).to_owned();
    let code = answer.status().as_u16();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (code, location, String::from_utf8_lossy(&body).into_owned())
}

#[test]
fn requests_are_passed_on_to_a_pod() {
    in_house("requests_are_passed_on_to_a_pod", |house| async move {
        let ports = json!([{"containerPort": 8080}]);
        let probe = json!({"httpGet": {"port": 8080, "path": "/"}, "periodSeconds": 1});
        let container = json!({"ports": ports, "readinessProbe": probe});
        house.pod("echo", &["python3", "-c", ECHO], json!({"container": container})).await;
        house.ready("echo").await;
        let pods = "/api/v1/namespaces/default/pods";
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] {
            let said = send(&house, method, &format!("{pods}/echo/proxy/a/b?c=d"), "body").await;
            let want = format!("{method} /a/b?c=d yes,-,- body");
            assert_eq!(said, (200, String::new(), want));
        }
        let head = send(&house, "HEAD", &format!("{pods}/echo/proxy/a"), "").await;
        assert_eq!(head, (200, String::new(), String::new()));
        for name in ["echo:8080", "http:echo:8080", "http:echo:"] {
            let (code, _, said) = send(&house, "GET", &format!("{pods}/{name}/proxy/x"), "").await;
            assert_eq!((code, said.as_str()), (200, "GET /x yes,-,- "), "{name}");
        }
        // A relative link of a page needs the slash at its end.
        for (method, code) in [("GET", 301), ("HEAD", 301), ("POST", 200)] {
            let (said, location, _) = send(&house, method, &format!("{pods}/echo/proxy?a=b"), "").await;
            let slash = if code == 301 { format!("{pods}/echo/proxy/?a=b") } else { String::new() };
            assert_eq!((said, location), (code, slash), "{method}");
        }
        let (_, _, page) = send(&house, "GET", &format!("{pods}/echo:8080/proxy/page"), "").await;
        assert_eq!(page, format!("<a href=\"{pods}/echo:8080/proxy/next\">next</a>"));
        let (code, location, _) = send(&house, "GET", &format!("{pods}/echo/proxy/go"), "").await;
        assert_eq!((code, location), (302, format!("{pods}/echo/proxy/gone")));
        let (code, _, said) = send(&house, "GET", &format!("{pods}/echo:9/proxy/x"), "").await;
        assert_eq!(code, 503, "{said}");
        assert!(said.contains("error trying to reach service: dial tcp"), "{said}");
    });
}

#[test]
fn whoever_attaches_hears_and_types() {
    in_house("whoever_attaches_hears_and_types", |house| async move {
        let script = "while read line; do echo heard $line; echo also >&2; done; echo over; exit 6";
        let more = json!({"container": {"stdin": true, "stdinOnce": true}, "spec": {"restartPolicy": "Never"}});
        house.pod("talk", &["sh", "-c", script], more).await;
        let pod = house.ready("talk").await;
        let mut session = house.host.attach(&target("talk"), ALL).await.unwrap();
        let mut stdin = session.stdin.take().unwrap();
        stdin.write_all(b"one\n").await.unwrap();
        let (mut stdout, mut buffer) = (session.stdout.take().unwrap(), [0; 100]);
        let length = stdout.read(&mut buffer).await.unwrap();
        assert_eq!(&buffer[..length], b"heard one\n");
        stdin.shutdown().await.unwrap();
        drop(stdin);
        let mut rest = String::new();
        let (read, exit) = tokio::join!(stdout.read_to_string(&mut rest), session.exit);
        read.unwrap();
        assert_eq!((rest.as_str(), exit), ("over\n", Exit::Code(6)));
        assert!(house.said(&pod, "c", 0).contains("heard one\n"));
    });
}

#[test]
fn logs_of_this_run_and_the_one_before_are_there() {
    in_house("logs_of_this_run_and_the_one_before_are_there", |house| async move {
        house.pod("log", &["sh", "-c", "echo hello; test -e /fairlead-log/x && sleep 100; touch /fairlead-log/x; exit 1"], json!({
            "container": {"volumeMounts": [{"name": "v", "mountPath": "/fairlead-log", "subPath": "made/here"}]},
            "spec": {"volumes": [{"name": "v", "emptyDir": {}}]},
        }))
        .await;
        house.until("log", |pod| pod["status"]["containerStatuses"][0]["restartCount"] == 1).await;
        house.ready("log").await;
        let now = house.host.logs(&target("log"), false).unwrap();
        let before = house.host.logs(&target("log"), true).unwrap();
        assert!(!now.ended.is_cancelled() && before.ended.is_cancelled());
        assert_ne!(now.files, before.files);
        for logs in [now, before] {
            let text = std::fs::read_to_string(&logs.files[0]).unwrap();
            assert!(text.trim_end().ends_with("stdout F hello"), "{text}");
        }
    });
}

#[test]
fn ports_inside_a_pod_can_be_dialled() {
    in_house("ports_inside_a_pod_can_be_dialled", |house| async move {
        let probe = json!({"tcpSocket": {"port": 8000}, "periodSeconds": 1});
        let serve = ["python3", "-m", "http.server", "8000"];
        house.pod("web", &serve, json!({"container": {"readinessProbe": probe}})).await;
        house.ready("web").await;
        let mut stream = house.host.dial(&target("web"), 8000).await.unwrap();
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.0 200 OK"), "{answer}");
        assert!(matches!(house.host.dial(&target("web"), 8001).await, Err(Refusal::Failed(_))));
    });
}

#[test]
fn pods_reach_each_other_and_see_who_asks() {
    in_house("pods_reach_each_other_and_see_who_asks", |house| async move {
        let probe = json!({"tcpSocket": {"port": 8000}, "periodSeconds": 1});
        let serve = ["python3", "-u", "-m", "http.server", "8000", "--bind", "::"];
        house.pod("web", &serve, json!({"container": {"readinessProbe": probe}})).await;
        let web = house.ready("web").await;
        for (number, ip) in addresses(&web).into_iter().enumerate() {
            let url = format!("http://{}/", SocketAddr::new(ip, 8000));
            let script = format!("import urllib.request as u; print(u.urlopen('{url}', timeout=5).status)");
            let name = format!("ask-{number}");
            house.pod(&name, &["python3", "-c", &script], json!({"spec": {"restartPolicy": "Never"}})).await;
            let asked = house.until(&name, |pod| fairlead_api::Look::at(pod, "status")["phase"] == "Succeeded").await;
            assert_eq!(house.said(&asked, "c", 0), "200\n");
            let from = &addresses(&asked)[number].to_string();
            house.says(&web, "c", from).await;
        }
    });
}

#[test]
fn pods_reach_other_networks_under_the_address_of_their_node() {
    in_house("pods_reach_other_networks_under_the_address_of_their_node", |house| async move {
        // Another machine, which knows no way to Pods.
        let other = Namespace::unnamed().unwrap();
        let mut links = Links::open().unwrap();
        links.add_veth("up0", "eth0", Some(other.as_fd())).unwrap();
        let address = |text: &str, length| Prefix { address: text.parse().unwrap(), length };
        let set = |links: &mut Links, name: &str, last: u8| {
            let index = links.index(name).unwrap();
            links.set_up(index).unwrap();
            links.add_address(index, address(&format!("192.168.78.{last}"), 24)).unwrap();
        };
        set(&mut links, "up0", 1);
        let server = other.run(|| {
            set(&mut Links::open().unwrap(), "eth0", 2);
            std::net::TcpListener::bind("192.168.78.2:80").unwrap()
        });
        let server = server.unwrap();
        let peer = tokio::task::spawn_blocking(move || server.accept().unwrap().1.ip().to_string());
        let script = "import socket; socket.create_connection(('192.168.78.2', 80), timeout=5)";
        house.pod("out", &["python3", "-c", script], json!({"spec": {"restartPolicy": "Never"}})).await;
        let pod = house.until("out", |pod| fairlead_api::Look::at(pod, "status")["phase"] != "Pending").await;
        assert_eq!(peer.await.unwrap(), "192.168.78.1", "{pod}");
    });
}

/// Runs a command that must succeed.
fn tool(command: &str) {
    let words: Vec<&str> = command.split(' ').collect();
    let output = std::process::Command::new(words[0]).args(&words[1..]).output().unwrap();
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn what_is_removed_of_the_network_of_a_pod_comes_back() {
    in_house("what_is_removed_of_the_network_of_a_pod_comes_back", |house| async move {
        let serve = ["python3", "-m", "http.server", "8000", "--bind", "::"];
        let probe = json!({"tcpSocket": {"port": 8000}, "periodSeconds": 1});
        for name in ["web", "other"] {
            house.pod(name, &serve, json!({"container": {"readinessProbe": probe}})).await;
        }
        let pods = [house.ready("web").await, house.ready("other").await];
        let ips: Vec<_> = pods.iter().flat_map(addresses).collect();
        let link_to = |ip: std::net::IpAddr| {
            let mut links = Links::open().unwrap();
            let route = links.routes(ip).unwrap().into_iter().find(|route| route.destination == Prefix::host(ip));
            let index = route.and_then(|route| route.link);
            links.list().unwrap().into_iter().find(|link| Some(link.index) == index).map(|link| link.name)
        };
        let link = link_to(ips[0]).unwrap();
        let namespace = {
            let file = fairlead_pods::namespace_of(ips[0]).unwrap().unwrap();
            file.file_name().unwrap().to_str().unwrap().to_owned()
        };
        let damages = [
            format!("ip link del {link}"),
            format!("ip link set {link} down"),
            format!("ip route del {}", ips[0]),
            format!("ip -6 route del {}", ips[1]),
            format!("ip netns exec {namespace} ip link del eth0"),
            format!("ip route flush dev {link}"),
            format!("ip netns exec {namespace} ip addr flush dev eth0"),
            format!("ip netns exec {namespace} ip link set eth0 down"),
        ];
        for damage in damages {
            tool(&damage);
            let end = std::time::Instant::now() + Duration::from_secs(20);
            for ip in &ips {
                let reach = |ip: std::net::IpAddr| tokio::task::spawn_blocking(move || get(SocketAddr::new(ip, 8000)));
                while link_to(*ip).is_none() || reach(*ip).await.unwrap().is_err() {
                    assert!(std::time::Instant::now() < end, "{ip} is not reached after {damage}");
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
        }
        // A Pod that goes takes its link with it, and nothing makes it again.
        house.delete("web", 1).await;
        house.until_gone("web").await;
        assert!(Links::open().unwrap().find(&link).unwrap().is_none());
    });
}

#[test]
fn the_table_of_pods_on_their_way_out_is_restored() {
    let test = "the_table_of_pods_on_their_way_out_is_restored";
    if !fairlead_testkit::need(test, "nft") {
        return;
    }
    in_house(test, |house| async move {
        house.pod("web", &["sleep", "100"], json!({})).await;
        house.ready("web").await;
        let listed = || {
            let output = std::process::Command::new("nft").args(["list", "ruleset"]).output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        let whole = async |after: &str| {
            let end = std::time::Instant::now() + Duration::from_secs(20);
            while listed().matches("masquerade").count() != 2 || listed().contains("192.0.2.1") {
                assert!(std::time::Instant::now() < end, "after {after}: {}", listed());
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        whole("the start").await;
        let damages = [
            "nft flush ruleset",
            "nft delete table ip fairlead-pods",
            "nft delete table ip6 fairlead-pods",
            "nft flush table ip fairlead-pods",
            "nft flush chain ip6 fairlead-pods nat-postrouting",
            "nft insert rule ip fairlead-pods nat-postrouting ip daddr 192.0.2.1 accept",
        ];
        for damage in damages {
            tool(damage);
            whole(damage).await;
        }
        // Rules of others are no reason to make the table again, which would count up the
        // generation for ever.
        let mut nft = fairlead_kernel::nft::Connection::open().unwrap();
        tool("nft add table inet others");
        let handle = || {
            let output =
                std::process::Command::new("nft").args(["-a", "list", "table", "ip", "fairlead-pods"]).output();
            String::from_utf8(output.unwrap().stdout).unwrap()
        };
        let generation = nft.generation().unwrap();
        let before = handle();
        tokio::time::sleep(Duration::from_millis(2500)).await;
        assert_eq!((handle(), nft.generation().unwrap()), (before, generation));
    });
}

#[test]
fn a_link_that_was_removed_comes_back_with_the_next_runner() {
    in_house("a_link_that_was_removed_comes_back_with_the_next_runner", |house| async move {
        let probe = json!({"tcpSocket": {"port": 8000}, "periodSeconds": 1});
        let serve = ["python3", "-m", "http.server", "8000", "--bind", "::"];
        house.pod("web", &serve, json!({"container": {"readinessProbe": probe}})).await;
        let pod = house.ready("web").await;
        house.stop_runner().await;
        let mut links = Links::open().unwrap();
        let ours = links.list().unwrap().into_iter().find(|link| link.name.starts_with("fl")).unwrap();
        links.delete(ours.index).unwrap();
        let reach = |ip: std::net::IpAddr| tokio::task::spawn_blocking(move || get(SocketAddr::new(ip, 8000)));
        assert!(reach(addresses(&pod)[0]).await.unwrap().is_err(), "it is reached without a link");
        house.start_runner();
        let end = std::time::Instant::now() + Duration::from_secs(10);
        for ip in addresses(&pod) {
            while reach(ip).await.unwrap().is_err() {
                assert!(std::time::Instant::now() < end, "{ip} is not reached");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    });
}
