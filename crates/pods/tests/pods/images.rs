//! Containers with images: directories that the config file names, and archives that were loaded.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fairlead_api::Look;
use fairlead_pods::images::{Load, Store};
use fairlead_testkit::{image, need};
use flate2::Compression;
use flate2::write::GzEncoder;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use crate::house::{House, in_house};

const PROGRAMS: [&str; 11] = ["sh", "cat", "id", "sleep", "ls", "touch", "chown", "mkdir", "grep", "mknod", "stat"];

/// Runs `work` in a house whose image has files, where this machine can make an image.
fn with_image<F: Future<Output = ()>>(test: &str, work: impl FnOnce(std::sync::Arc<House>) -> F + Send) {
    if PROGRAMS.iter().chain(&["ldd"]).all(|program| need(test, program)) {
        in_house(test, |house| {
            image::fill(&house.image_root(), &PROGRAMS);
            work(house)
        });
    }
}

/// A container with an image that runs a line of shell by its entrypoint.
fn container(name: &str, image: &str, line: &str) -> Value {
    json!({"name": name, "image": image, "args": [line]})
}

fn status(pod: &Value) -> &Value {
    &pod.at("status").list("containerStatuses")[0]
}

#[test]
fn a_mapped_directory_is_the_root_of_its_container() {
    with_image("a_mapped_directory_is_the_root_of_its_container", |house| async move {
        let line = "cat /marker /tmp/of-image; pwd; echo $OF_IMAGE $BOTH $HOSTNAME; ls /home; test -e /proc/1/stat && echo proc; \
                    touch /tmp/written && echo wrote; echo x > /data/deep/x && cat /data/deep/x; grep -q alone /etc/hosts && echo hosts; \
                    test -e /.fairlead-old-root || echo no old root; ls /dev; echo > /dev/null; echo end; sleep 1000";
        let mut main = container("c", "example.com/tests/mapped:1.0", line);
        main.set("env", json!([{"name": "BOTH", "value": "mine"}]));
        main.set("volumeMounts", json!([{"name": "data", "mountPath": "/data/deep"}]));
        // A command beside it sees the same files.
        main.set("readinessProbe", json!({"exec": {"command": ["cat", "/tmp/written"]}, "periodSeconds": 1}));
        let more = json!({"spec": {"volumes": [{"name": "data", "emptyDir": {}}]}});
        house.pod_of("alone", &[main], more).await;
        let pod = house.ready("alone").await;
        let said = house.says(&pod, "c", "end").await;
        let devices =
            "fd\nfull\nnull\nptmx\npts\nrandom\nshm\nstderr\nstdin\nstdout\ntermination-log\ntty\nurandom\nzero\n";
        let head = "image\nin its /tmp\n/work-in-it\nfrom-image mine alone\nweb\nproc\nwrote\nx\nhosts\nno old root\n";
        assert_eq!(said, format!("{head}{devices}end\n"));
        let root = house.image_root();
        assert!(!root.join("tmp/written").exists() && !root.join("data").exists());
        let id = format!("file://{}", root.display());
        assert_eq!((status(&pod).text("image"), status(&pod).text("imageID")), ("example.com/tests/mapped:1.0", &*id));
        // The next run begins with the image's files again, and the next runner finds the Pod.
        house.stop_runner().await;
        house.start_runner();
        let again = container("c", "mapped", "test -e /tmp/written || echo clean; echo end; sleep 1000");
        house.pod_of("again", &[again], json!({})).await;
        let pod = house.ready("again").await;
        assert_eq!(house.says(&pod, "c", "end").await, "clean\nend\n");
        assert_eq!(status(&house.ready("alone").await).text("imageID"), id);
    });
}

#[test]
fn a_container_of_an_image_is_root_only_where_that_was_chosen() {
    with_image("a_container_of_an_image_is_root_only_where_that_was_chosen", |house| async move {
        // The Pod's own user: what the image says of none is root.
        let line =
            "id -u; grep -E '^(CapEff|NoNewPrivs)' /proc/self/status; touch /etc/x || echo no; echo end; sleep 1000";
        house.pod_of("plain", &[container("c", "mapped", line)], json!({})).await;
        let pod = house.ready("plain").await;
        let said = house.says(&pod, "c", "end").await;
        let user: u32 = said.lines().next().unwrap().parse().unwrap();
        assert!(user >= 1_900_000_000, "{said}");
        assert!(said.contains("CapEff:\t0000000000000000\nNoNewPrivs:\t1") && said.contains("no\nend"), "{said}");

        let line = "id -u; id -g; touch /etc/x && chown 7 /etc/x && stat -c %u /etc/x; mknod /tmp/sda b 8 0 || echo no device; \
                    (echo x > /proc/sys/kernel/hostname) || echo no kernel; cat /proc/keys; echo end; sleep 1000";
        house.pod_of("root", &[container("c", "rooted", line)], json!({})).await;
        let pod = house.ready("root").await;
        let said = house.says(&pod, "c", "end").await;
        let lines: Vec<&str> = said.lines().filter(|line| !line.contains(": ")).collect();
        assert_eq!(lines, ["0", "0", "7", "no device", "no kernel", "end"], "{said}");

        // By name, with the groups the image gives it.
        let line = "id -u; id -G; echo $HOME; echo end; sleep 1000";
        house.pod_of("named", &[container("c", "named", line)], json!({})).await;
        let pod = house.ready("named").await;
        assert_eq!(house.says(&pod, "c", "end").await, "1234\n1235 4321\n/home/web\nend\n");
        let context = json!({"runAsUser": 1234, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": true});
        let mut main = container(
            "c",
            "rooted",
            "id -u; id -g; touch /x || echo no; echo x > /dev/shm/x && echo shm; echo end; sleep 1000",
        );
        main.set("securityContext", context);
        house.pod_of("chosen", &[main], json!({})).await;
        let pod = house.ready("chosen").await;
        let said = house.says(&pod, "c", "end").await;
        let lines: Vec<&str> = said.lines().filter(|line| !line.contains(": ")).collect();
        assert_eq!(lines, ["1234", "1235", "no", "shm", "end"], "{said}");
    });
}

#[test]
fn containers_with_images_share_processes_and_have_what_others_have() {
    with_image("containers_with_images_share_processes_and_have_what_others_have", |house| async move {
        let own = format!("/dev/fairlead-words-{}", std::process::id());
        let sees = "until grep -qsx sleep /proc/[0-9]*/comm; do sleep 0.1; done; read me rest < /proc/self/stat; \
                    test $$$$ != 1 && test $$$$ = $me && echo sees; \
                    test -s /var/run/secrets/kubernetes.io/serviceaccount/token && echo token; \
                    printf words > /dev/termination-log; exit 1";
        let mut second = container("second", "mapped", sees);
        second.set("securityContext", json!({"readOnlyRootFilesystem": true}));
        // Its /dev is the machine's.
        let line = format!("test -e /dev/zero && echo devices; printf words > {own}; exit 1");
        let mut third = container("third", "rooted", &line);
        third.set("securityContext", json!({"privileged": true}));
        third.set("terminationMessagePath", own.clone());
        let spec = json!({"shareProcessNamespace": true, "restartPolicy": "Never", "terminationGracePeriodSeconds": 1});
        let all = [container("first", "mapped", "sleep 1000; true"), second, third];
        house.pod_of("shares", &all, json!({"spec": spec})).await;
        let terminated = |pod: &Value| -> Vec<String> {
            let statuses = pod.at("status").list("containerStatuses").iter();
            statuses.map(|status| status.at("state").at("terminated").text("message").to_owned()).collect()
        };
        let pod = house.until("shares", |pod| terminated(pod) == ["", "words", "words"]).await;
        assert_eq!(house.said(&pod, "second", 0), "sees\ntoken\n");
        assert_eq!(house.said(&pod, "third", 0), "devices\n");
        assert!(!Path::new(&own).exists(), "a place was made in the machine's /dev");
    });
}

#[test]
fn places_for_mounts_are_made_in_the_container_and_not_on_the_host() {
    with_image("places_for_mounts_are_made_in_the_container_and_not_on_the_host", |house| async move {
        // Below /tmp the root of a container that is being made would hide it.
        let outside = tempfile::tempdir_in("/var/tmp").unwrap();
        let old = format!("/.fairlead-old-root{}", outside.path().display());
        std::os::unix::fs::symlink(&old, house.image_root().join("linked")).unwrap();
        let mut main = container("c", "mapped", "echo end; sleep 1000");
        let mounts = [format!("{old}/direct"), "/linked/by-link".to_owned(), "/made/../and/back".to_owned()];
        let mounts = mounts.map(|path| json!({"name": "data", "mountPath": path}));
        main.set("volumeMounts", json!(mounts));
        main.set("terminationMessagePath", format!("{old}/words"));
        let more = json!({"spec": {"volumes": [{"name": "data", "emptyDir": {}}]}});
        house.pod_of("places", &[main], more).await;
        let pod = house.ready("places").await;
        house.says(&pod, "c", "end").await;
        let made: Vec<PathBuf> = fs::read_dir(&outside).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(made, Vec::<PathBuf>::new());
    });
}

#[test]
fn a_name_may_stand_for_a_command_on_the_machines_files() {
    with_image("a_name_may_stand_for_a_command_on_the_machines_files", |house| async move {
        house.pod_of("hosted", &[json!({"name": "c", "image": "hosted:2"})], json!({})).await;
        let pod = house.ready("hosted").await;
        assert_eq!(house.says(&pod, "c", "end").await, "from-image end\n");
        assert_eq!(status(&pod).text("imageID"), "host");
        house.pod_of("missing", &[container("c", "missing", "true")], json!({})).await;
        let message = house.event("missing", "Failed").await;
        assert!(message.contains("/nowhere"), "{message}");
    });
}

/// A file of `docker save`, with one layer of these files.
fn save(file: &Path, root: &Path, name: &str) {
    let mut layer = tar::Builder::new(Vec::new());
    layer.follow_symlinks(false);
    layer.append_dir_all(".", root).unwrap();
    let layer = layer.into_inner().unwrap();
    let hash =
        |bytes: &[u8]| -> String { digest(&SHA256, bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect() };
    let run = json!({"Entrypoint": ["/bin/sh", "-c"], "Cmd": ["echo default"], "User": "web", "Env": ["PATH=/bin"]});
    let rootfs = json!({"type": "layers", "diff_ids": [format!("sha256:{}", hash(&layer))]});
    let config = json!({"os": "linux", "config": run, "rootfs": rootfs}).to_string();
    let config_name = format!("{}.json", hash(config.as_bytes()));
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(&layer).unwrap();
    let manifest = json!([{"Config": config_name, "RepoTags": [name], "Layers": ["layer.tar"]}]).to_string();
    let files = [
        ("manifest.json", manifest.into_bytes()),
        (&*config_name, config.into_bytes()),
        ("layer.tar", gzip.finish().unwrap()),
    ];
    let mut whole = tar::Builder::new(fs::File::create(file).unwrap());
    for (name, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(u64::try_from(bytes.len()).unwrap());
        header.set_mode(0o644);
        whole.append_data(&mut header, name, bytes.as_slice()).unwrap();
    }
    whole.into_inner().unwrap().sync_all().unwrap();
}

#[test]
fn a_pod_that_waits_for_an_image_starts_once_it_is_loaded() {
    with_image("a_pod_that_waits_for_an_image_starts_once_it_is_loaded", |house| async move {
        let line = "cat /marker; id -u; echo $HOME; stat -c %U /marker; echo end; sleep 1000";
        house.pod_of("waits", &[container("c", "example.com/loaded:1", line)], json!({})).await;
        let waits = |pod: &Value| {
            let statuses = pod.at("status").list("containerStatuses");
            statuses
                .first()
                .is_some_and(|status| status.at("state").at("waiting").text("reason") == "ImageNotSupported")
        };
        house.until("waits", waits).await;
        let archive: PathBuf = house.data().join("archive.tar");
        save(&archive, &house.image_root(), "example.com/loaded:1");
        let store = Store::new(&house.data());
        let loaded = store.load(&archive, &Load::default()).unwrap().remove(0);
        let pod = house.ready("waits").await;
        assert_eq!(house.says(&pod, "c", "end").await, "image\n1234\n/home/web\nroot\nend\n");
        assert_eq!(status(&pod).text("imageID"), loaded.id);
        // While it runs its files stay.
        let refused = store.remove("example.com/loaded:1").unwrap_err().to_string();
        assert!(refused.contains("waits_default"), "{refused}");
        house.delete("waits", 0).await;
        house.until_gone("waits").await;
        // Its state goes just after it.
        let end = Instant::now() + Duration::from_secs(30);
        while let Err(error) = store.remove("example.com/loaded:1") {
            assert!(Instant::now() < end, "{error}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(store.list(), []);
    });
}
