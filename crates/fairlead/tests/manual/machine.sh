# Makes a machine of this shell, which has namespaces of its own: file systems nobody else sees, a name, nothing running.
mount -t tmpfs tmpfs /mnt
for tree in etc var/lib usr/local; do
  mkdir -p "/mnt/$tree/new" "/mnt/$tree/work"
  mount -t overlay overlay -o "lowerdir=/$tree,upperdir=/mnt/$tree/new,workdir=/mnt/$tree/work" "/$tree"
done
mount -t tmpfs tmpfs /run
# Control groups have no namespace: machines with the same paths would end each other's Pods.
umount --recursive --lazy /sys/fs/cgroup
hostname "$MACHINE"
ip link set lo up
mkdir -p "$HOME" && cd "$HOME"
