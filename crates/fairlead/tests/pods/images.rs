//! Images, end to end: names that the config file maps, and archives that `fairlead image load` unpacks while the program runs.

use std::fs;
use std::path::Path;

use fairlead_testkit::{image, need};

use super::machine::{Machine, machine, possible};

const SCRIPT: &str = include_str!("image.py");
const PROGRAMS: [&str; 4] = ["sh", "cat", "sleep", "id"];

/// A Pod with an image, as kubectl takes it.
fn pod(name: &str, image: &str, more: &str) -> String {
    let spec = format!("{{containers: [{{name: c, image: '{image}'}}]{more}}}");
    format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec: {spec}\n")
}

fn status(machine: &Machine, name: &str, path: &str) -> String {
    let path = format!("jsonpath={{.status.{path}}}");
    machine.kubectl(&["get", "pod", name, "-o", &path]).out
}

/// Makes an archive of the files below a directory.
fn archive(machine: &Machine, out: &Path, root: &Path, evil: &str) {
    let script = machine.path("image.py");
    fs::write(&script, SCRIPT).unwrap();
    let line = format!("python3 {} {} {} example.com/loaded:1 {evil}", script.display(), out.display(), root.display());
    machine.shell(&line).fine();
}

#[test]
fn images_are_mapped_by_the_config_file_and_loaded_while_it_runs() {
    let test = "images_are_mapped_by_the_config_file_and_loaded_while_it_runs";
    if !possible(test) || !PROGRAMS.iter().chain(&["ldd"]).all(|program| need(test, program)) {
        return;
    }
    let folder = tempfile::tempdir_in("/opt").unwrap();
    let (root, config) = (folder.path().join("root"), folder.path().join("config.yaml"));
    image::fill(&root, &PROGRAMS);
    let entry =
        "entrypoint: [/bin/sh, -c]\n  command: [\"echo mapped; sleep 1000\"]\n  user: web\n  workingDir: /home/web";
    fs::write(&config, format!("images:\n- match: tools:*\n  root: {}\n  {entry}\n", root.display())).unwrap();
    let Some(mut machine) = machine(test, &["--config", &config.display().to_string()]) else { return };
    machine.wait_ready();

    machine.apply(&pod("mapped", "registry.example.com/tests/tools:1.2", ""), &["apply", "-f", "-"]).fine();
    machine.wait("the mapped image runs", || machine.kubectl(&["logs", "mapped"]).out == "mapped\n");
    let said = machine.kubectl(&["exec", "mapped", "--", "sh", "-c", "cat /marker; id -u; pwd"]).fine();
    assert_eq!(said, "image\n1234\n/home/web\n");
    assert_eq!(status(&machine, "mapped", "containerStatuses[0].imageID"), format!("file://{}", root.display()));
    // What asks for the host's network is granted to an administrator with an image as well.
    let mapped = pod("network", "tools", ", hostNetwork: true");
    machine.apply(&mapped, &["apply", "-f", "-"]).fine();
    machine.wait("it runs in the host's network", || machine.kubectl(&["logs", "network"]).out == "mapped\n");

    machine.apply(&pod("loaded", "example.com/loaded:1", ""), &["apply", "-f", "-"]).fine();
    let why = || status(&machine, "loaded", "containerStatuses[0].state.waiting.message");
    machine.wait("it says what it waits for", || why().contains("fairlead image load"));
    let data = machine.path("data").display().to_string();
    let image = |machine: &Machine, words: &[&str]| {
        let words: Vec<&str> = ["image"].iter().chain(words).chain(&["--data-dir", &data]).copied().collect();
        machine.fairlead(&words)
    };
    let (good, evil) = (folder.path().join("good.tar"), folder.path().join("evil.tar"));
    archive(&machine, &evil, &root, "../../etc/shadow");
    let said = image(&machine, &["load", &evil.display().to_string()]);
    assert!(said.code != 0 && said.err.contains("entry \"evil\""), "{said:?}");
    assert_eq!(image(&machine, &["ls"]).fine(), "No images.\n");
    archive(&machine, &good, &root, "");
    let said = image(&machine, &["load", &good.display().to_string()]).fine();
    assert!(said.starts_with("example.com/loaded:1 loaded: "), "{said}");
    machine.wait("the loaded image runs", || machine.kubectl(&["logs", "loaded"]).out == "loaded\n");
    assert!(status(&machine, "loaded", "containerStatuses[0].imageID").starts_with("sha256:"));
    assert!(image(&machine, &["ls"]).fine().contains("example.com/loaded:1"));

    // Killed and started again, it has its Pods and its images.
    machine.restart();
    machine.wait("it is applied", || {
        machine.apply(&pod("second", "example.com/loaded:1", ""), &["apply", "-f", "-"]).code == 0
    });
    machine.wait("the image is still there", || machine.kubectl(&["logs", "second"]).out == "loaded\n");
    assert_eq!(machine.kubectl(&["exec", "loaded", "--", "cat", "/marker"]).fine(), "image\n");
    let said = image(&machine, &["rm", "example.com/loaded:1"]);
    assert!(said.code != 0 && said.err.contains("in use by Pod"), "{said:?}");
    machine.fairlead(&["stop", "loaded", "second"]).fine();
    machine.wait("the image is removed", || {
        image(&machine, &["rm", "example.com/loaded:1"]).out == "example.com/loaded:1 removed\n"
    });
    assert_eq!(image(&machine, &["ls"]).fine(), "No images.\n");
}
