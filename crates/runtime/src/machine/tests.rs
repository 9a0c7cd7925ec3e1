use super::*;

#[test]
fn the_soft_limit_of_open_files_is_read() {
    let text = "Limit                     Soft Limit           Hard Limit           Units     \n\
                Max processes             95930                95930                processes \n\
                Max open files            1024                 524288               files     \n";
    assert_eq!(open_files(text), Some(1024));
    assert_eq!(open_files("Max open files            unlimited  unlimited  files"), Some(u64::from(u32::MAX)));
    assert_eq!(open_files("Max processes 1 1 processes"), None);
}

#[test]
fn the_smallest_memory_limit_of_a_cgroup_and_its_ancestors_holds() {
    let root = tempfile::tempdir().unwrap();
    let unit = root.path().join("system.slice/fairlead.service");
    fs::create_dir_all(&unit).unwrap();
    fs::write(unit.join("memory.max"), "max\n").unwrap();
    fs::write(root.path().join("system.slice/memory.max"), "1073741824\n").unwrap();
    assert_eq!(cgroup_memory("0::/system.slice/fairlead.service\n", root.path()), Some(1 << 30));
    fs::write(unit.join("memory.max"), "536870912\n").unwrap();
    assert_eq!(cgroup_memory("0::/system.slice/fairlead.service\n", root.path()), Some(512 << 20));
    assert_eq!(cgroup_memory("0::/elsewhere\n", root.path()), None);
}

#[test]
fn cgroup_v1_has_its_own_mount_and_file() {
    let root = tempfile::tempdir().unwrap();
    let group = root.path().join("memory/fairlead");
    fs::create_dir_all(&group).unwrap();
    fs::write(group.join("memory.limit_in_bytes"), "268435456\n").unwrap();
    let text = "5:cpu,cpuacct:/fairlead\n4:memory:/fairlead\n0::/\n";
    assert_eq!(cgroup_memory(text, root.path()), Some(256 << 20));
}

#[test]
fn this_machine_has_limits_and_clients_leave_a_reserve() {
    let machine = MachineLimits::read();
    assert!(machine.descriptors > 0 && machine.memory > 0, "{machine:?}");
    let client = |descriptors| MachineLimits { descriptors, memory: 1 }.client_descriptors();
    assert_eq!(client(20_000), 20_000 - RESERVED_DESCRIPTORS);
    assert_eq!(client(300), 150);
}
