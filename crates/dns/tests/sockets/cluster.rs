//! The cluster's names, while the cluster comes, changes and goes away.

use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use fairlead_api::Failure;
use fairlead_api::source::{Event, Key, Later, List, Object, Selection, Source, Watch};
use fairlead_cluster::Cluster;
use fairlead_dns::Settings;
use fairlead_kernel::link::Links;
use http::{Request, Response};
use http_body_util::Full;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::lab::{SERVER, Server, Upstream, ask, ask_within, in_network, one, short, until};

/// An API server that does as it is told.
struct Fake {
    objects: Mutex<Vec<(&'static str, Object)>>,
    /// Whether it answers.
    there: watch::Sender<bool>,
    watches: Mutex<Vec<(&'static str, mpsc::UnboundedSender<Event>)>>,
}

struct Watching(mpsc::UnboundedReceiver<Event>, watch::Receiver<bool>);

impl Fake {
    fn new(there: bool) -> Arc<Fake> {
        let fake = Fake { objects: Mutex::default(), there: watch::Sender::new(there), watches: Mutex::default() };
        let fake = Arc::new(fake);
        fake.put("Namespace", &json!({"metadata": {"name": "default"}}));
        fake
    }

    fn cluster(self: &Arc<Self>) -> Cluster {
        let nobody = tower::service_fn(|_: Request<Full<Bytes>>| async {
            Ok::<_, std::convert::Infallible>(Response::new(Full::<Bytes>::default()))
        });
        Cluster::new(nobody, self.clone())
    }

    fn put(&self, kind: &'static str, value: &Value) {
        let text = |name: &str| value["metadata"][name].as_str().unwrap_or_default().to_owned();
        let object =
            Object { key: Key::new(text("namespace"), text("name")), revision: 2, json: value.to_string().into() };
        self.objects.lock().expect("no test failed").push((kind, object.clone()));
        for (watched, events) in self.watches.lock().expect("no test failed").iter() {
            if *watched == kind {
                let _ = events.send(Event::Put(object.clone()));
            }
        }
    }

    fn service(&self, name: &str, address: &str) {
        let spec = json!({"clusterIP": address, "clusterIPs": [address], "type": "ClusterIP"});
        self.put("Service", &json!({"metadata": {"name": name, "namespace": "default"}, "spec": spec}));
    }
}

impl Source for Fake {
    fn list<'a>(&'a self, selection: &'a Selection, _: Option<&'a str>) -> Later<'a, Result<List, Failure>> {
        Box::pin(async move {
            let mut there = self.there.subscribe();
            let _ = there.wait_for(|there| *there).await;
            let objects = self.objects.lock().expect("no test failed");
            let of_kind = objects.iter().filter(|(kind, _)| *kind == selection.kind.kind);
            Ok(List { objects: of_kind.map(|(_, object)| object.clone()).collect(), revision: 1, more: None })
        })
    }

    fn watch<'a>(&'a self, selection: &'a Selection, _: u64) -> Later<'a, Result<Box<dyn Watch>, Failure>> {
        Box::pin(async move {
            if !*self.there.borrow() {
                return Err(Failure::new(503, "ServiceUnavailable", "nobody is there"));
            }
            let (events, seen) = mpsc::unbounded_channel();
            self.watches.lock().expect("no test failed").push((selection.kind.kind, events));
            Ok(Box::new(Watching(seen, self.there.subscribe())) as Box<dyn Watch>)
        })
    }
}

impl Watch for Watching {
    fn next(&mut self) -> Later<'_, Result<Vec<Event>, Failure>> {
        Box::pin(async {
            tokio::select! {
                event = self.0.recv() => Ok(event.into_iter().collect()),
                _ = self.1.wait_for(|there| !there) => Err(Failure::new(503, "ServiceUnavailable", "nobody is there")),
            }
        })
    }

    fn progress(&self) -> u64 {
        1
    }
}

const COREFILE: &str = ".:1053 {
  kubernetes cluster.local in-addr.arpa {
    startup_timeout 100ms
    fallthrough in-addr.arpa
  }
  prometheus 127.0.0.1:9153
  ready 127.0.0.1:8181
  health 127.0.0.1:8080
  forward . 127.0.0.2
}";

fn page(server: &Server, port: u16, path: &str) -> (u16, String) {
    until("the page is served", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
    let (status, _, body) = server.block_on(fairlead_testkit::http::get(([127, 0, 0, 1], port).into(), path));
    (status, body)
}

#[test]
fn before_the_cluster_is_known_names_fail_and_then_they_are_there() {
    in_network("before_the_cluster_is_known_names_fail_and_then_they_are_there", || {
        let _upstream = Upstream::start("127.0.0.2:53", |query, _| Some(one(query, 2)));
        let fake = Fake::new(false);
        fake.service("web", "10.96.0.7");
        let server = Server::ready(COREFILE, Some(fake.cluster()));
        let web = "web.default.svc.cluster.local";
        assert_eq!(short(&ask(web)), (2, vec![]), "never a name error");
        assert_eq!(short(&ask("www.example")), (0, vec![2]), "others are answered");
        assert_eq!(page(&server, 8181, "/ready"), (503, "kubernetes".to_owned()));
        assert_eq!(page(&server, 8080, "/health"), (200, "OK".to_owned()));
        fake.there.send_replace(true);
        until("the name is known", || short(&ask(web)) == (0, vec![7]));
        assert_eq!(page(&server, 8181, "/ready"), (200, "OK".to_owned()));
        assert_eq!(short(&ask("none.default.svc.cluster.local")), (3, vec![]));
        let metrics = page(&server, 9153, "/metrics").1;
        for line in [
            "coredns_dns_requests_total{server=\"dns://127.0.0.1:1053\",zone=\".\",view=\"\",proto=\"udp\",family=\"1\",type=\"A\"}",
            "coredns_dns_responses_total{server=\"dns://127.0.0.1:1053\",zone=\".\",view=\"\",rcode=\"NXDOMAIN\",plugin=\"kubernetes\"} 1",
            "coredns_forward_responses_total{to=\"127.0.0.2:53\",rcode=\"NOERROR\"} 1",
            "fairlead_dns_stale_seconds 0",
            "coredns_plugin_enabled{server=\"dns://127.0.0.1:1053\",zone=\".\",view=\"\",name=\"kubernetes\"} 1",
        ] {
            assert!(metrics.contains(line), "{line}\n{metrics}");
        }
    });
}

#[test]
fn a_name_is_there_right_after_it_is_made_though_it_was_asked_for_before() {
    in_network("a_name_is_there_right_after_it_is_made_though_it_was_asked_for_before", || {
        let fake = Fake::new(true);
        let _server = Server::ready(COREFILE, Some(fake.cluster()));
        until("the cluster is known", || short(&ask("default.svc.cluster.local")).0 == 0);
        let mut worst = Duration::ZERO;
        for number in 1..=50_u8 {
            let name = format!("web-{number}.default.svc.cluster.local");
            assert_eq!(short(&ask(&name)), (3, vec![]));
            fake.service(&format!("web-{number}"), &format!("10.96.0.{number}"));
            let made = Instant::now();
            until("the name is there", || short(&ask(&name)) == (0, vec![number]));
            worst = worst.max(made.elapsed());
        }
        println!("the slowest of 50 names: {worst:?}");
        assert!(worst < Duration::from_secs(1), "{worst:?}");
    });
}

#[test]
fn what_is_known_is_kept_while_the_api_is_away_and_its_age_is_told() {
    in_network("what_is_known_is_kept_while_the_api_is_away_and_its_age_is_told", || {
        let fake = Fake::new(true);
        fake.service("web", "10.96.0.7");
        let server = Server::ready(COREFILE, Some(fake.cluster()));
        let web = "web.default.svc.cluster.local";
        until("the name is known", || short(&ask(web)) == (0, vec![7]));
        fake.there.send_replace(false);
        let age = || {
            let metrics = page(&server, 9153, "/metrics").1;
            let line =
                metrics.lines().find_map(|line| line.strip_prefix("fairlead_dns_stale_seconds ")).map(str::to_owned);
            line.and_then(|age| age.parse::<f64>().ok()).expect("an age")
        };
        until("it is told", || age() > 0.0);
        assert_eq!(short(&ask(web)), (0, vec![7]));
        fake.there.send_replace(true);
        until("it is up to date", || age() == 0.0);
        let answer = ask_within(SERVER, "7.0.96.10.in-addr.arpa", 12, Duration::from_secs(5)).expect("an answer");
        assert_eq!(answer.answer[0].target().expect("a name").to_string(), format!("{web}."));
    });
}

#[test]
fn without_a_corefile_the_cluster_is_served_at_the_addresses_asked_for() {
    in_network("without_a_corefile_the_cluster_is_served_at_the_addresses_asked_for", || {
        let fake = Fake::new(true);
        fake.service("web", "10.96.0.7");
        let domain = "cluster.local".parse().expect("a name");
        let listen: Vec<IpAddr> = ["10.96.0.10", "fd00:96::a"].map(|ip| ip.parse().expect("an address")).to_vec();
        let mut links = Links::open().expect("netlink");
        let lo = links.index("lo").expect("a loopback link");
        listen.iter().for_each(|ip| links.add_virtual_address(lo, *ip).expect("an address"));
        let settings = Settings::cluster(domain, listen, &[]);
        let (runtime, stop) = (tokio::runtime::Runtime::new().expect("threads"), CancellationToken::new());
        let running = runtime.spawn(fairlead_dns::run(Some(fake.cluster()), settings, stop.clone()));
        for server in ["10.96.0.10:53", "[fd00:96::a]:53"] {
            let ask = || ask_within(server, "web.default.svc.cluster.local", 1, Duration::from_millis(200));
            until("it answers", || {
                assert!(!running.is_finished(), "{:?}", ask());
                ask().is_some_and(|answer| short(&answer) == (0, vec![7]))
            });
        }
        let missing = ask_within("10.96.0.10:53", "8.0.96.10.in-addr.arpa", 12, Duration::from_secs(5));
        assert_eq!(missing.map(|answer| answer.rcode.0), Some(3), "without upstreams that is certain");
        stop.cancel();
        runtime.block_on(running).expect("no defect").expect("a good end");
    });
}

#[test]
fn a_pod_with_a_search_path_is_answered_at_once() {
    in_network("a_pod_with_a_search_path_is_answered_at_once", || {
        let upstream = Upstream::start("127.0.0.2:53", |query, _| Some(one(query, 2)));
        let fake = Fake::new(true);
        fake.service("web", "10.96.0.7");
        let status = json!({"phase": "Running", "podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}]});
        fake.put("Pod", &json!({"metadata": {"name": "client", "namespace": "default"}, "status": status}));
        let text = COREFILE.replace("  health", "  autopath @kubernetes\n  health");
        let _server = Server::ready(&text, Some(fake.cluster()));
        until("the name is known", || short(&ask("web.default.svc.cluster.local")) == (0, vec![7]));
        let answer = ask("www.example.com.default.svc.cluster.local");
        assert_eq!(short(&answer), (0, vec![2]));
        assert_eq!(answer.answer[0].target().expect("an alias").to_string(), "www.example.com.");
        assert_eq!(*upstream.names.lock().expect("no test failed"), ["www.example.com."]);
    });
}
