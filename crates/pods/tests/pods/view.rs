//! What programs in a Pod see: who they are, their names, their variables, their files.

use std::time::Duration;

use fairlead_api::{Look, kinds};
use fairlead_cluster::Patch;
use serde_json::json;

use crate::house::in_house;

#[test]
fn a_program_is_nobody_in_a_world_of_its_own() {
    in_house("a_program_is_nobody_in_a_world_of_its_own", |house| async move {
        let script = "id -u; id -G; grep -E '^(CapEff|CapBnd|NoNewPrivs)' /proc/self/status | cut -f2; hostname; \
                      ls -d /proc/[0-9]* | wc -l; pwd; touch /etc/fairlead-x 2>/dev/null || echo no; echo end; sleep 100";
        house.pod("who", &["sh", "-c", script], json!({})).await;
        let pod = house.ready("who").await;
        let said = house.says(&pod, "c", "end").await;
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(&lines[..6], ["65534", "65534", "0000000000000000", "0000000000000000", "1", "who"]);
        assert!(lines[6].trim().parse::<u32>().unwrap() <= 5, "it sees processes of others: {said}");
        assert_eq!(&lines[7..], ["/", "no", "end"]);
    });
}

#[test]
fn a_program_has_the_names_and_variables_kubernetes_gives_it() {
    in_house("a_program_has_the_names_and_variables_kubernetes_gives_it", |house| async move {
        let port = json!({"port": 80, "name": "http"});
        let spec = json!({"clusterIP": "10.0.0.11", "ports": [port]});
        house
            .make(&kinds::SERVICE, json!({"metadata": {"name": "redis-primary", "namespace": "default"}, "spec": spec}))
            .await;
        house
            .make(&kinds::CONFIG_MAP, json!({"metadata": {"name": "c", "namespace": "default"}, "data": {"a": "1"}}))
            .await;
        let env = json!([
            {"name": "OWN", "value": "$(REDIS_PRIMARY_SERVICE_HOST):$(MAP)"},
            {"name": "MAP", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "a"}}},
            {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        ]);
        let more = json!({
            "container": {"env": env, "args": ["$(IP)"]},
            "spec": {
                "hostname": "h", "subdomain": "sub",
                "hostAliases": [{"ip": "192.0.2.9", "hostnames": ["alias"]}],
                "dnsConfig": {"options": [{"name": "edns0"}]},
            },
        });
        let script =
            "echo arg $1; env | sort; cat /etc/resolv.conf /etc/hosts; hostname; hostname -f; echo end; sleep 100";
        house.pod("env", &["sh", "-c", script, "sh"], more).await;
        let pod = house.ready("env").await;
        let said = house.says(&pod, "c", "end").await;
        let expected = [
            "arg 10.244.7.2",
            "REDIS_PRIMARY_SERVICE_HOST=10.0.0.11",
            "REDIS_PRIMARY_PORT_80_TCP=tcp://10.0.0.11:80",
            "KUBERNETES_SERVICE_PORT=443",
            "OWN=10.0.0.11:$(MAP)",
            "MAP=1",
            "IP=10.244.7.2",
            "HOSTNAME=h",
            "search default.svc.cluster.local svc.cluster.local cluster.local",
            "nameserver 10.0.0.10",
            "options ndots:5 edns0",
            "10.244.7.2\th.sub.default.svc.cluster.local\th",
            "192.0.2.9\talias",
            "h.sub.default.svc.cluster.local",
        ];
        for line in expected {
            assert!(said.lines().any(|said| said.starts_with(line)), "{line} is not in\n{said}");
        }
    });
}

#[test]
fn volumes_are_where_they_should_be_and_follow_what_they_come_from() {
    in_house("volumes_are_where_they_should_be_and_follow_what_they_come_from", |house| async move {
        let meta = |name: &str| json!({"name": name, "namespace": "default"});
        house.make(&kinds::CONFIG_MAP, json!({"metadata": meta("c"), "data": {"a": "one", "b": "two"}})).await;
        house.make(&kinds::SECRET, json!({"metadata": meta("s"), "stringData": {"key": "secret"}})).await;
        house.make(&kinds::SERVICE_ACCOUNT, json!({"metadata": meta("default")})).await;
        let volumes = json!([
            {"name": "map", "configMap": {"name": "c", "items": [{"key": "a", "path": "deep/a"}]}},
            {"name": "secret", "secret": {"secretName": "s", "defaultMode": 0o444}},
            {"name": "empty", "emptyDir": {}},
            {"name": "facts", "downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
        ]);
        let mounts = json!([
            {"name": "map", "mountPath": "/fairlead-test/map"},
            {"name": "secret", "mountPath": "/fairlead-test/secret", "readOnly": true},
            {"name": "secret", "mountPath": "/etc/fairlead-key", "subPath": "key"},
            {"name": "empty", "mountPath": "/fairlead-empty"},
            {"name": "facts", "mountPath": "/fairlead-facts"},
        ]);
        let more = json!({
            "container": {"volumeMounts": mounts},
            "spec": {"volumes": volumes},
            "metadata": {"labels": {"app": "x"}},
        });
        let account = "/var/run/secrets/kubernetes.io/serviceaccount";
        let script = format!(
            "cat /fairlead-test/map/deep/a; echo; cat /fairlead-test/secret/key /etc/fairlead-key; echo; \
             echo written > /fairlead-empty/x && cat /fairlead-empty/x; cat /fairlead-facts/labels; echo; \
             (echo no > /fairlead-test/secret/x) 2>/dev/null || echo read-only; \
             cat {account}/namespace; echo; cat {account}/ca.crt; cut -c1-3 {account}/token; echo end; \
             while ! grep -q new /fairlead-test/map/deep/a; do sleep 0.1; done; echo changed; sleep 100"
        );
        house.pod("files", &["sh", "-c", &script], more).await;
        let pod = house.ready("files").await;
        let said = house.says(&pod, "c", "end").await;
        let expected = "one\nsecretsecret\nwritten\napp=\"x\"\nread-only\ndefault\nTHE CA\neyJ\nend\n";
        assert_eq!(said, expected);
        assert!(!std::path::Path::new("/fairlead-test").exists(), "the machine's own files have changed");
        let patch = Patch::Merge(json!({"data": {"a": "new"}}));
        house.cluster.patch(&kinds::CONFIG_MAP, "default", "c", &patch).await.unwrap();
        house.says(&pod, "c", "changed").await;
        tokio::time::sleep(Duration::from_millis(1)).await;
    });
}

#[test]
fn a_read_only_file_system_leaves_volumes_writable() {
    in_house("a_read_only_file_system_leaves_volumes_writable", |house| async move {
        let script = "for at in /tmp /fairlead-new /fairlead-empty /var/tmp /dev/shm; do \
                      if touch $at/fairlead-x 2>/dev/null; then echo $at yes; rm $at/fairlead-x; else echo $at no; fi; done; \
                      cat /sys/class/net/eth0/mtu; echo end; sleep 100";
        let mounts = json!([
            {"name": "v", "mountPath": "/fairlead-empty"},
            {"name": "v", "mountPath": "/fairlead-new/deep"},
        ]);
        let more = json!({
            "container": {"securityContext": {"readOnlyRootFilesystem": true}, "volumeMounts": mounts},
            "spec": {"volumes": [{"name": "v", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}]},
        });
        house.pod("closed", &["sh", "-c", script], more).await;
        let pod = house.ready("closed").await;
        let said = house.says(&pod, "c", "end").await;
        let expected = "/tmp no\n/fairlead-new no\n/fairlead-empty yes\n/var/tmp no\n/dev/shm yes\n";
        assert!(said.starts_with(expected), "{said}");
        let mounted = || std::fs::read_to_string("/proc/mounts").unwrap().contains(&*house.data().to_string_lossy());
        assert!(mounted(), "a volume in memory is a mount");
        house.delete("closed", 0).await;
        house.until_gone("closed").await;
        tokio::time::sleep(Duration::from_millis(2000)).await;
        assert!(!mounted(), "a volume is still mounted");
    });
}

#[test]
fn containers_of_a_pod_share_the_network_and_nothing_else() {
    in_house("containers_of_a_pod_share_the_network_and_nothing_else", |house| async move {
        let container = |name: &str, command: &[&str]| json!({"name": name, "image": "host", "command": command});
        let ask = "until python3 -c 'import urllib.request as u; print(u.urlopen(\"http://localhost:8000/\").status)'; \
                   do sleep 0.1; done; ps ax | grep -c [h]ttp.server; sleep 100";
        let serve = container("serve", &["python3", "-m", "http.server", "8000", "--bind", "127.0.0.1"]);
        house.pod_of("two", &[serve, container("ask", &["sh", "-c", ask])], json!({})).await;
        let pod = house.ready("two").await;
        let said = house.says(&pod, "ask", "200\n").await;
        assert!(said.contains("200\n"), "{said}");
        house.says(&pod, "ask", "200\n0\n").await;
        assert_eq!(pod.at("status").list("containerStatuses").len(), 2);
    });
}
