//! The story the README tells: two Pods, a Service in front of them, a client that finds it by name, and an end nobody notices.

use super::machine::{Machine, machine};

/// The first example of the documentation.
const SERVICE: &str = "
apiVersion: v1
kind: Service
metadata:
  name: my-service
spec:
  selector:
    app: MyApp
  ports:
  - protocol: TCP
    port: 80
    targetPort: 9376
";

fn serve(machine: &Machine, name: &str) {
    let line = format!(
        "run -d --name {name} --labels app=MyApp --port http=9376 --ready http:/ --workdir /etc -- python3 -u -m http.server 9376"
    );
    let words: Vec<&str> = line.split(' ').collect();
    assert_eq!(machine.fairlead(&words).fine(), format!("pod/{name}\n"));
}

fn wait_ready(machine: &Machine, pods: &[&str]) {
    let pods: Vec<String> = pods.iter().map(|pod| format!("pod/{pod}")).collect();
    let pods: Vec<&str> = pods.iter().map(String::as_str).collect();
    machine.kubectl(&[&["wait", "--for=condition=Ready", "--timeout=30s"], pods.as_slice()].concat()).fine();
}

#[test]
fn a_service_in_front_of_pods_is_found_by_name() {
    let Some(mut machine) = machine("a_service_in_front_of_pods_is_found_by_name", &[]) else { return };
    machine.wait_ready();
    serve(&machine, "web-1");
    serve(&machine, "web-2");
    machine.apply(SERVICE, &["apply", "-f", "-"]).fine();
    wait_ready(&machine, &["web-1", "web-2"]);

    let client = ["run", "--rm", "-i", "--", "curl", "-sS", "-m", "5", "http://my-service/hostname"];
    let is_a_pod = |said: &str| ["web-1\n", "web-2\n"].contains(&said);
    machine.wait("the Service answers", || is_a_pod(&machine.fairlead(&client).out));

    // On the host, which has chosen to ask our resolver.
    let line = "unshare -m sh -c 'echo nameserver 10.96.0.10 > /tmp/resolv.$$; mount --bind /tmp/resolv.$$ /etc/resolv.conf; \
                rm -f /tmp/resolv.$$; curl -sS -m 5 http://my-service.default.svc.cluster.local/hostname'";
    let said = machine.shell(line).fine();
    assert!(is_a_pod(&said), "{said}");

    // What a Pod sees.
    let exec = |line: &str| machine.fairlead(&["exec", "web-1", "--", "sh", "-c", line]);
    assert!(exec("cat /etc/resolv.conf").fine().starts_with("search default.svc.cluster.local svc.cluster.local"));
    let said = exec("id -u; hostname").fine();
    let (user, name) = said.split_once('\n').unwrap();
    assert!(user.parse::<u32>().is_ok_and(|user| user >= 1_900_000_000) && name == "web-1\n", "{said}");
    assert_eq!(exec("exit 7").code, 7);
    let account = "/var/run/secrets/kubernetes.io/serviceaccount";
    let call = format!(
        "curl -sS -m 5 --cacert {account}/ca.crt -H \"Authorization: Bearer $(cat {account}/token)\" \
         https://kubernetes.default.svc/version"
    );
    assert!(exec(&call).fine().contains("gitVersion"));

    // kubectl's own ways into it.
    let log = machine.kubectl(&["logs", "web-1"]).fine();
    assert!(log.starts_with("Serving HTTP on"), "{log}");
    assert_eq!(machine.kubectl(&["exec", "web-1", "--", "echo", "hello"]).fine(), "hello\n");
    assert_eq!(machine.apply("typed", &["exec", "-i", "web-1", "--", "cat"]).fine(), "typed");
    let copy = machine.path("copy").display().to_string();
    machine.kubectl(&["cp", "web-1:/etc/hostname", &copy]).fine();
    assert_eq!(std::fs::read_to_string(&copy).unwrap(), "web-1\n");
    let forward = "$KUBECTL port-forward pod/web-1 18080:9376 > /dev/null & \
                   for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.3; curl -sf -m 5 http://127.0.0.1:18080/hostname && break; done; \
                   kill $!";
    assert_eq!(machine.shell(forward).fine(), "web-1\n");

    // Killed and started again, it finds its Pods: the same processes.
    let process = |machine: &Machine| machine.fairlead(&["exec", "web-2", "--", "stat", "-c", "%y", "/proc/1"]);
    let before = process(&machine).fine();
    machine.restart();
    machine.wait("the machine is back", || process(&machine).out == before);
    assert!(
        machine.fairlead(&["ps"]).fine().contains("web-2   1/1     Running   0"),
        "{:?}",
        machine.fairlead(&["ps"])
    );

    assert_eq!(machine.fairlead(&["stop", "web-1", "web-2"]).code, 0);
    assert_eq!(machine.fairlead(&["ps"]).fine(), "No Pods.\n");
}

#[test]
fn a_command_in_a_pod_has_its_input_output_and_exit_code() {
    let Some(machine) = machine("a_command_in_a_pod_has_its_input_output_and_exit_code", &[]) else { return };
    machine.wait_ready();
    let said = machine.fairlead(&["run", "--rm", "--", "sh", "-c", "echo out; echo err >&2; exit 3"]);
    assert_eq!((said.code, said.out.as_str()), (3, "out\nerr\n"), "{said:?}");
    let said = machine.fairlead(&["run", "--rm", "--", "no-such-command"]);
    assert!(said.code != 0 && said.err.contains("no-such-command"), "{said:?}");
    let said = machine.fairlead(&["run", "--rm", "-e", "A=b", "--", "sh", "-c", "echo $A $KUBERNETES_SERVICE_HOST"]);
    assert_eq!(said.fine(), "b 10.96.0.1\n");
}

#[test]
fn a_pod_with_an_image_waits_and_says_why() {
    let Some(machine) = machine("a_pod_with_an_image_waits_and_says_why", &[]) else { return };
    machine.wait_ready();
    machine.kubectl(&["run", "web", "--image=nginx"]).fine();
    let path = "jsonpath={.status.phase} {.status.containerStatuses[0].state.waiting.message}";
    let state = || machine.kubectl(&["get", "pod", "web", "-o", path]).fine();
    machine.wait("it says why", || state().starts_with("Pending ") && state().contains("host"));
    machine.wait("an Event says so", || machine.kubectl(&["get", "events"]).fine().contains("nginx"));
}

#[test]
fn a_machine_with_both_families_reports_again_after_a_restart() {
    let Some(mut machine) = machine("a_machine_with_both_families_reports_again_after_a_restart", &[]) else { return };
    machine.shell("ip address add 2001:db8::2/64 dev way nodad").fine();
    machine.restart();
    machine.wait("both addresses are told", || status(&machine, "addresses[*].address").contains("2001:db8::2"));
    let heartbeat = |machine: &Machine| status(machine, "conditions[?(@.type==\"Ready\")].lastHeartbeatTime");
    let before = heartbeat(&machine);
    // It is told in whole seconds.
    std::thread::sleep(std::time::Duration::from_millis(1100));
    machine.restart();
    machine.wait("the Node is reported again", || !["", &*before].contains(&&*heartbeat(&machine)));
    assert!(!machine.log().contains("cannot be made"), "{}", machine.log());
}

/// A part of the Node's status.
fn status(machine: &Machine, path: &str) -> String {
    machine.kubectl(&["get", "node", "here", "-o", &format!("jsonpath={{.status.{path}}}")]).out
}
