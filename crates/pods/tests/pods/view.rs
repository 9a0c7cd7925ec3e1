//! What programs in a Pod see: who they are, their names, their variables, their files.

use std::time::Duration;

use fairlead_api::{Look, kinds};
use fairlead_cluster::Patch;
use serde_json::json;

use crate::house::in_house;

#[test]
fn a_program_has_no_rights_in_a_world_of_its_own() {
    in_house("a_program_has_no_rights_in_a_world_of_its_own", |house| async move {
        let script = "id -u; id -G; grep -E '^(CapEff|CapBnd|NoNewPrivs)' /proc/self/status | cut -f2; hostname; \
                      ls -d /proc/[0-9]* | wc -l; pwd; touch /etc/fairlead-x 2>/dev/null || echo no; echo end; sleep 100";
        house.pod("who", &["sh", "-c", script], json!({})).await;
        let pod = house.ready("who").await;
        let said = house.says(&pod, "c", "end").await;
        let lines: Vec<&str> = said.lines().collect();
        let user = user(&house, &pod).to_string();
        assert_eq!(&lines[..6], [&*user, &user, "0000000000000000", "0000000000000000", "1", "who"]);
        assert!(lines[6].trim().parse::<u32>().unwrap() <= 5, "it sees processes of others: {said}");
        assert_eq!(&lines[7..], ["/", "no", "end"]);
    });
}

/// The user of a Pod, as its record on disk has it.
fn user(house: &crate::house::House, pod: &serde_json::Value) -> u64 {
    let file = house.data().join("state").join(pod.at("metadata").text("uid")).join("pod.json");
    let record: serde_json::Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    record["user"].as_u64().unwrap()
}

#[test]
fn pods_share_neither_their_user_nor_temporary_files() {
    in_house("pods_share_neither_their_user_nor_temporary_files", |house| async move {
        house.make(&kinds::NAMESPACE, json!({"metadata": {"name": "others"}})).await;
        let account = json!({"name": "default", "namespace": "others"});
        house.make(&kinds::SERVICE_ACCOUNT, json!({"metadata": account})).await;
        let places = ["/tmp", "/var/tmp", "/dev/shm"];
        let name = format!("fairlead-test-{}", std::process::id());
        let write = places.map(|place| format!("(umask 077; echo secret > {place}/{name})")).join("; ");
        let script = format!("{write}; id -u; echo end; sleep 100");
        house.pod("mine", &["sh", "-c", &script], json!({})).await;
        let mine = house.ready("mine").await;
        house.says(&mine, "c", "end").await;
        let read = places.map(|place| format!("cat {place}/{name}; ls -A {place} | wc -l")).join("; ");
        let script = format!("{read}; id -u; echo end; sleep 100");
        let more = json!({"metadata": {"namespace": "others"}});
        let theirs = house.pod("theirs", &["sh", "-c", &script], more).await;
        let said = house.says(&theirs, "c", "end").await;
        assert!(!said.contains("secret"), "{said}");
        assert_eq!(said.lines().filter(|line| *line == "0").count(), 3, "{said}");
        for place in places {
            assert!(!std::path::Path::new(place).join(&name).exists(), "it is in the host's {place}");
        }
        let users = [user(&house, &mine), user(&house, &theirs)];
        assert_ne!(users[0], users[1]);
        assert!(said.contains(&users[1].to_string()), "{said}");
        assert!(users.iter().all(|user| (1_900_000_000..=1_900_065_535).contains(user)), "{users:?}");
        // The next runner gives none of them to another Pod.
        house.stop_runner().await;
        house.start_runner();
        let third = house.pod("third", &["sh", "-c", "id -u; echo end; sleep 100"], json!({})).await;
        house.says(&third, "c", "end").await;
        assert!(!users.contains(&user(&house, &third)));
        assert_eq!([user(&house, &mine), user(&house, &theirs)], users);
    });
}

#[test]
fn a_pod_keeps_its_user_and_the_containers_of_a_pod_share_temporary_files() {
    in_house("a_pod_keeps_its_user_and_the_containers_of_a_pod_share_temporary_files", |house| async move {
        let first = "id -u; id -g; if test -e /tmp/again; then echo again; echo end; sleep 100; fi; \
                     echo shared > /dev/shm/x; touch /tmp/again; while ! test -e /tmp/seen; do sleep 0.1; done; exit 1";
        let second = "while ! test -e /dev/shm/x; do sleep 0.1; done; cat /dev/shm/x; id -u; touch /tmp/seen; echo end; sleep 100";
        let container =
            |name: &str, script: &str| json!({"name": name, "image": "host", "command": ["sh", "-c", script]});
        house.pod_of("both", &[container("a", first), container("b", second)], json!({})).await;
        let pod = house
            .until("both", |pod| {
                pod.at("status").list("containerStatuses").iter().any(|one| one.int("restartCount") == 1)
            })
            .await;
        let user = user(&house, &pod).to_string();
        let end = std::time::Instant::now() + Duration::from_secs(30);
        while !house.said(&pod, "a", 1).contains("end") {
            assert!(std::time::Instant::now() < end, "{}", house.said(&pod, "a", 1));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(house.said(&pod, "a", 1), format!("{user}\n{user}\nagain\nend\n"));
        assert_eq!(house.says(&pod, "b", "end").await, format!("shared\n{user}\nend\n"));
    });
}

#[test]
fn temporary_files_are_bounded_and_volumes_belong_to_the_group_of_the_pod() {
    in_house("temporary_files_are_bounded_and_volumes_belong_to_the_group_of_the_pod", |house| async move {
        let meta = |name: &str| json!({"name": name, "namespace": "default"});
        house.make(&kinds::SECRET, json!({"metadata": meta("s"), "stringData": {"key": "secret"}})).await;
        let volumes = json!([
            {"name": "secret", "secret": {"secretName": "s", "defaultMode": 0o400}},
            {"name": "empty", "emptyDir": {}},
            {"name": "other", "emptyDir": {}},
        ]);
        let mounts = json!([
            {"name": "secret", "mountPath": "/tmp/secret"},
            {"name": "empty", "mountPath": "/fairlead-empty"},
            {"name": "empty", "mountPath": "/fairlead-part", "subPath": "made/part"},
            {"name": "other", "mountPath": "/var/tmp"},
        ]);
        let account = "/var/run/secrets/kubernetes.io/serviceaccount";
        let script = format!(
            "cat /tmp/secret/key; echo; cut -c1-3 {account}/token; echo x > /fairlead-empty/x; stat -c '%g' /fairlead-empty/x; \
             stat -c '%a %g' /fairlead-empty /fairlead-part; id -G; echo x > /var/tmp/x && echo mounted; echo x > /tmp/x && echo beside; \
             for at in /tmp /dev/shm; do head -c 200m /dev/zero > $at/large 2>/dev/null || echo full; rm $at/large; done; \
             echo end; sleep 100"
        );
        let more = json!({
            "container": {"volumeMounts": mounts},
            "spec": {"volumes": volumes, "securityContext": {"fsGroup": 70_000}},
        });
        house.pod("files", &["sh", "-c", &script], more).await;
        let pod = house.ready("files").await;
        let said = house.says(&pod, "c", "end").await;
        let user = user(&house, &pod);
        assert_eq!(
            said,
            format!("secret\neyJ\n70000\n2777 70000\n2777 70000\n{user} 70000\nmounted\nbeside\nfull\nfull\nend\n")
        );
        // A user that the Pod names wins.
        let context = json!({"container": {"securityContext": {"runAsUser": 70_001, "runAsGroup": 70_002}}});
        house.pod("named", &["sh", "-c", "id -u; id -g; touch /tmp/x; echo end; sleep 100"], context).await;
        let pod = house.ready("named").await;
        assert_eq!(house.says(&pod, "c", "end").await, "70001\n70002\nend\n");
        // One that another Pod may have is no user to name.
        house.pod_without_right("thief", u32::try_from(user).unwrap()).await;
        let event = house.event("thief", "HostPrivilegesNotGranted").await;
        assert!(event.contains("runAsUser"), "{event}");
        let mounted = || std::fs::read_to_string("/proc/mounts").unwrap().contains("volumes/.tmp");
        assert!(mounted());
        for name in ["files", "named"] {
            house.delete(name, 0).await;
            house.until_gone(name).await;
        }
        let end = std::time::Instant::now() + Duration::from_secs(20);
        while mounted() {
            assert!(std::time::Instant::now() < end, "temporary files of a Pod that has gone are still mounted");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
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
fn a_pod_sets_kernel_parameters_of_its_own() {
    in_house("a_pod_sets_kernel_parameters_of_its_own", |house| async move {
        let ports = "net.ipv4.ip_local_port_range";
        let before = fairlead_kernel::sysctl::read(ports).unwrap();
        let sysctls = json!([
            {"name": "kernel.shm_rmid_forced", "value": "1"},
            {"name": "net/ipv4/ip_local_port_range", "value": "40000 50000"},
        ]);
        let script = "cd /proc/sys; cat kernel/shm_rmid_forced net/ipv4/ip_local_port_range; echo end; sleep 100";
        let context = json!({"spec": {"securityContext": {"sysctls": sysctls}}});
        house.pod("set", &["sh", "-c", script], context).await;
        let pod = house.ready("set").await;
        assert_eq!(house.says(&pod, "c", "end").await, "1\n40000\t50000\nend\n");
        assert_eq!(fairlead_kernel::sysctl::read(ports).unwrap(), before);
    });
}

#[test]
fn the_default_seccomp_profile_refuses_system_calls_of_administrators() {
    in_house("the_default_seccomp_profile_refuses_system_calls_of_administrators", |house| async move {
        let script = "grep '^Seccomp:' /proc/self/status | cut -f2; unshare -U true 2>/dev/null && echo made; \
                      python3 -c 'import threading; t = threading.Thread(target=print, args=(\"runs\",)); t.start(); t.join()'; \
                      echo end; sleep 100";
        let profile = |kind: &str| json!({"spec": {"securityContext": {"seccompProfile": {"type": kind}}}});
        // Without a filter of its own a container has that of this process, if it has one.
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let own = status.lines().find_map(|line| line.strip_prefix("Seccomp:")).unwrap().trim();
        let own = format!("{own}\n");
        let cases = [("default", "RuntimeDefault", "2\nruns\nend\n"), ("open", "Unconfined", own.as_str())];
        for (name, kind, expected) in cases {
            house.pod(name, &["sh", "-c", script], profile(kind)).await;
            let pod = house.ready(name).await;
            let said = house.says(&pod, "c", "end").await;
            assert!(said.starts_with(expected), "{kind}: {said}");
        }
    });
}

#[test]
fn a_pod_has_a_token_only_where_its_spec_mounts_one() {
    in_house("a_pod_has_a_token_only_where_its_spec_mounts_one", |house| async move {
        let metadata = json!({"name": "closed", "namespace": "default"});
        let closed = json!({"metadata": metadata, "automountServiceAccountToken": false});
        house.make(&kinds::SERVICE_ACCOUNT, closed).await;
        let account = "/var/run/secrets/kubernetes.io/serviceaccount";
        let script = format!("if test -e {account}/token; then echo token; else echo none; fi; echo end; sleep 100");
        let table = [
            ("usual", json!({}), "token\nend\n"),
            ("closed", json!({"spec": {"serviceAccountName": "closed"}}), "none\nend\n"),
            ("without", json!({"spec": {"automountServiceAccountToken": false}}), "none\nend\n"),
        ];
        for (name, more, said) in table {
            let made = house.pod(name, &["sh", "-c", &script], more).await;
            let volumes = made.at("spec").list("volumes").iter().map(|volume| volume.text("name"));
            let mounted = volumes.filter(|name| name.starts_with("kube-api-access-")).count();
            assert_eq!(mounted, usize::from(said.starts_with("token")), "{name}");
            let pod = house.ready(name).await;
            assert_eq!(house.says(&pod, "c", "end").await, said, "{name}");
        }
    });
}

#[test]
fn host_paths_show_the_files_of_the_host_where_the_pod_has_its_own() {
    in_house("host_paths_show_the_files_of_the_host_where_the_pod_has_its_own", |house| async move {
        let own = ["hosts", "resolv.conf", "hostname"];
        let names = own.into_iter().filter(|name| std::path::Path::new("/etc").join(name).is_file());
        let (mut volumes, mut mounts, mut script, mut expected) =
            (Vec::new(), Vec::new(), String::new(), String::new());
        for (at, name) in names.enumerate() {
            volumes.push(json!({"name": format!("file-{at}"), "hostPath": {"path": format!("/etc/{name}")}}));
            mounts.push(json!({"name": format!("file-{at}"), "mountPath": format!("/fairlead-host/{name}")}));
            script += &format!("cat /fairlead-host/{name} /fairlead-etc/{name}; echo; ");
            let file = std::fs::read_to_string(format!("/etc/{name}")).unwrap();
            expected += &format!("{file}{file}\n");
        }
        volumes.push(json!({"name": "etc", "hostPath": {"path": "/etc"}}));
        mounts.push(json!({"name": "etc", "mountPath": "/fairlead-etc"}));
        let more = json!({"container": {"volumeMounts": mounts}, "spec": {"volumes": volumes}});
        house.pod("files", &["sh", "-c", &format!("{script}echo end; head -1 /etc/hosts; sleep 100")], more).await;
        let pod = house.ready("files").await;
        let said = house.says(&pod, "c", "# Kubernetes-managed hosts file.").await;
        let (said, own) = said.split_once("end\n").unwrap();
        assert_eq!(said.trim_end(), expected.trim_end());
        assert_eq!(own, "# Kubernetes-managed hosts file.\n");
    });
}

#[test]
fn a_sub_path_that_leads_out_of_its_volume_waits_for_another() {
    in_house("a_sub_path_that_leads_out_of_its_volume_waits_for_another", |house| async move {
        let make = |name: &'static str, expression: &'static str, value: &'static str| {
            let house = house.clone();
            async move {
                let env = json!([
                    {"name": "PART", "value": value},
                    {"name": "NOTE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['part']"}}},
                ]);
                let mounts = json!([
                    {"name": "v", "mountPath": "/fairlead-part", "subPathExpr": expression},
                    {"name": "v", "mountPath": "/fairlead-whole"},
                ]);
                let more = json!({
                    "container": {"env": env, "volumeMounts": mounts},
                    "spec": {"volumes": [{"name": "v", "emptyDir": {}}]},
                });
                house.pod(name, &["sh", "-c", "cd /fairlead-whole; find . -type d; sleep 100"], more).await;
                let waiting = |pod: &serde_json::Value| {
                    let containers = pod.at("status").list("containerStatuses");
                    containers.first().map(|container| container.at("state").at("waiting").clone()).unwrap_or_default()
                };
                let reason = "CreateContainerConfigError";
                let pod = house.until(name, |pod| waiting(pod).text("reason") == reason).await;
                assert_eq!(pod.at("status").list("containerStatuses")[0].int("restartCount"), 0);
                waiting(&pod).text("message").to_owned()
            }
        };
        let message = make("up", "$(PART)", "..").await;
        assert_eq!(message, "unable to provision SubPath `..`: must not contain '..'");
        let message = make("unknown", "$(OTHER)", "x").await;
        assert_eq!(message, "missing value for \"OTHER\"");
        let message = make("absolute", "$(NOTE)/$(PART)", "tmp").await;
        assert_eq!(message, "error SubPath `/tmp` must not be an absolute path");
        // The expression means something else once the Pod has the annotation.
        let patch = Patch::Merge(json!({"metadata": {"annotations": {"part": "made"}}}));
        house.cluster.patch(&kinds::POD, "default", "absolute", &patch).await.unwrap();
        let pod = house.ready("absolute").await;
        assert!(house.says(&pod, "c", "./made/tmp").await.starts_with(".\n./made\n"));
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

#[test]
fn the_file_for_last_words_is_bounded() {
    in_house("the_file_for_last_words_is_bounded", |house| async move {
        let script = "head -c 200m /dev/zero > /dev/termination-log 2>/dev/null || echo full; \
                      printf words > /dev/termination-log; exit 1";
        house.pod("speaks", &["sh", "-c", script], json!({"spec": {"restartPolicy": "Never"}})).await;
        let end = |pod: &serde_json::Value| {
            let containers = pod.at("status").list("containerStatuses");
            containers.first().map(|container| container.at("state").at("terminated").clone()).unwrap_or_default()
        };
        let pod = house.until("speaks", |pod| end(pod).is_object()).await;
        assert_eq!(end(&pod).text("message"), "words");
        assert_eq!(house.said(&pod, "c", 0), "full\n");
    });
}

#[test]
fn the_first_process_of_a_pod_has_nothing_of_the_host() {
    in_house("the_first_process_of_a_pod_has_nothing_of_the_host", |house| async move {
        let script = "grep -c eth0 /proc/1/net/dev; grep -c '' /proc/1/mountinfo; echo end; sleep 100";
        house.pod("shares", &["sh", "-c", script], json!({"spec": {"shareProcessNamespace": true}})).await;
        let pod = house.ready("shares").await;
        assert_eq!(house.says(&pod, "c", "end").await, "1\n1\nend\n");
        // A Pod in the host's network has no network of its own to be entered.
        let spec = json!({"shareProcessNamespace": true, "hostNetwork": true});
        house.pod("host", &["sh", "-c", script], json!({"spec": spec})).await;
        let pod = house.ready("host").await;
        assert_eq!(house.says(&pod, "c", "end").await, "0\n1\nend\n");
    });
}
