use serde_json::json;

use super::*;

#[test]
fn limits_become_what_the_kernel_reads() {
    let check = |limits: Value, expected: &[(&str, &str)]| {
        let made = Limits::of(&json!({"resources": {"limits": limits}})).files();
        let made: Vec<(&str, &str)> = made.iter().map(|(file, value)| (*file, value.as_str())).collect();
        assert_eq!(made, expected);
    };
    check(json!({}), &[]);
    check(json!({"memory": "64Mi"}), &[("memory.max", "67108864")]);
    check(json!({"cpu": "1500m", "memory": "1G"}), &[("memory.max", "1000000000"), ("cpu.max", "150000 100000")]);
    check(json!({"cpu": "1m"}), &[("cpu.max", "1000 100000")]);
    check(json!({"cpu": "nonsense", "memory": "0"}), &[]);
}

#[test]
fn groups_are_found_wherever_they_are_mounted() {
    let line = |at: &str, kind: &str| format!("31 23 0:27 / {at} rw,nosuid shared:9 - {kind} {kind} rw\n");
    let hybrid = line("/sys/fs/cgroup/cpu", "cgroup") + &line("/sys/fs/cgroup/unified", "cgroup2");
    assert_eq!(mounted(&hybrid), Some(PathBuf::from("/sys/fs/cgroup/unified")));
    assert_eq!(mounted(&line("/sys/fs/cgroup", "cgroup2")), Some(PathBuf::from("/sys/fs/cgroup")));
    assert_eq!(mounted(&line("/sys/fs/cgroup/cpu", "cgroup")), None);
}
