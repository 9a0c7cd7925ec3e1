//! Changes are shown as they come.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use crate::house::{House, PROGRAM};

/// How long a line may take; generous, for machines with other work to do.
const PATIENCE: Duration = Duration::from_secs(60);

/// A command that goes on.
struct Following {
    child: Child,
    lines: Receiver<String>,
}

impl Following {
    fn start(house: &House, line: &str) -> Following {
        let mut child = house.command(PROGRAM, line).spawn().expect("the program runs");
        let lines = lines(child.stdout.take().expect("asked for"));
        Following { child, lines }
    }

    /// The next line that begins with these words, blanks counted as one.
    fn says(&self, words: &str) {
        let mut seen = Vec::new();
        loop {
            let Ok(line) = self.lines.recv_timeout(PATIENCE) else { panic!("no {words:?} in {seen:#?}") };
            let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
            if line.starts_with(words) {
                return;
            }
            seen.push(line);
        }
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn lines(stdout: ChildStdout) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

fn service(name: &str, kind: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Service\nmetadata: {{name: {name}}}\nspec: {{type: {kind}, ports: [{{port: 80}}]}}\n"
    )
}

#[test]
fn a_watched_list_goes_on() {
    let house = House::new();
    house.fed("apply -f -", &service("web", "ClusterIP"));
    let table = Following::start(&house, "get svc -w");
    table.says("NAME TYPE CLUSTER-IP");
    table.says("web ClusterIP");
    let names = Following::start(&house, "get svc web -w -o name");
    names.says("service/web");
    let marked = Following::start(&house, "watch svc");
    marked.says("NAME TYPE");
    marked.says("web ClusterIP");
    house.fed("apply -f -", &service("web", "NodePort"));
    table.says("web NodePort");
    names.says("service/web");
    marked.says("~ web NodePort");
    house.fed("apply -f -", &service("db", "ClusterIP"));
    table.says("db ClusterIP");
    marked.says("+ db ClusterIP");
    house.run("delete svc db");
    table.says("db ClusterIP");
    marked.says("- db ClusterIP");
}

#[test]
fn events_are_shown_as_they_happen() {
    let house = House::new();
    let events = Following::start(&house, "events --for svc/web -w");
    let event = |name: &str, about: &str| {
        format!(
            "apiVersion: v1\nkind: Event\nmetadata: {{name: {name}}}\ninvolvedObject: {{apiVersion: v1, kind: Service, namespace: default, name: {about}}}\n\
             type: Warning\nreason: Odd\nmessage: {name} happened\n"
        )
    };
    // Whether it follows yet is seen by what it says.
    for at in 0..40 {
        house.fed("apply -f -", &event(&format!("other.{at}"), "other"));
        house.fed("apply -f -", &event(&format!("web.{at}"), "web"));
        if let Ok(line) = events.lines.recv_timeout(Duration::from_millis(250)) {
            assert!(line.starts_with("LAST SEEN"), "{line}");
            events.says("<unknown> Warning Odd Service/web web.");
            return;
        }
    }
    panic!("no Event is shown");
}
