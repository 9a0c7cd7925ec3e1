//! Examples at the end of each command's help. A test reads every one of them as the program would.

/// Of `up`.
pub(crate) const UP: &str = "\
Examples:
  fairlead up                             everything on this machine
  fairlead up --bind-address 192.0.2.1    other machines may join
  fairlead up --store memory              nothing is kept";
/// Of `join`.
pub(crate) const JOIN: &str = "\
Example:
  fairlead join --server https://192.0.2.1:6443 --token TOKEN    `fairlead token --join-command` there prints it";
/// Of `token`.
pub(crate) const TOKEN: &str = "\
Examples:
  fairlead token                   the token alone
  fairlead token --join-command    the command to run on the other machine";
/// Of `server`.
pub(crate) const SERVER: &str = "\
Example:
  fairlead server --service-cluster-ip-range 10.0.0.0/16    no Pods, no proxy, no DNS";
/// Of `control`.
pub(crate) const CONTROL: &str = "\
Example:
  fairlead control --kubeconfig admin.kubeconfig    controllers of a cluster whose API server has none";
/// Of `proxy`.
pub(crate) const PROXY: &str = "\
Examples:
  fairlead proxy --kubeconfig proxy.kubeconfig             in place of kube-proxy
  fairlead proxy --config kube-proxy.yaml                  with its configuration
  fairlead proxy --kubeconfig k --proxy-mode=iptables      another mode";
/// Of `dns`.
pub(crate) const DNS: &str = "\
Examples:
  fairlead dns --kubeconfig dns.kubeconfig                 in place of CoreDNS
  fairlead dns --corefile Corefile --kubeconfig k          with its configuration";
/// Of `balancer`.
pub(crate) const BALANCER: &str = "\
Example:
  fairlead balancer --kubeconfig lb.kubeconfig --pool 192.0.2.64/28    in place of MetalLB";
/// Of `lb`.
pub(crate) const LB: &str = "\
Examples:
  fairlead lb ls                 all load balancers
  fairlead lb describe web       one, and why it is as it is";
/// Of `lb ls`.
pub(crate) const LB_LS: &str = "\
Example:
  fairlead lb ls -n default -o json";
/// Of `lb describe`.
pub(crate) const LB_DESCRIBE: &str = "\
Example:
  fairlead lb describe web -n default";
/// Of `lb drain`.
pub(crate) const LB_DRAIN: &str = "\
Examples:
  fairlead lb drain web web-1          no new connections to a Pod
  fairlead lb drain --node n1          nor to a Node
  fairlead lb drain web web-1 --undo   and back";
/// Of `cleanup`.
pub(crate) const CLEANUP: &str = "\
Example:
  fairlead cleanup    after `fairlead up` has ended";
/// Of `trace`.
pub(crate) const TRACE: &str = "\
Examples:
  fairlead trace --from pod/web-1 --to svc/db:5432       what happens, and why
  fairlead trace --from node --to 10.96.0.10:53/UDP      by address

It exits with 0 if the packet reaches an endpoint, with 1 if it does not, and with 2 if that cannot be told.";
/// Of `env`.
pub(crate) const ENV: &str = "\
Example:
  fairlead env web-1 -n default";
/// Of `run`.
pub(crate) const RUN: &str = "\
Examples:
  fairlead run --name web-1 -l app=web -p 8080 -- python3 -m http.server 8080
  fairlead run -l app=web -p http=8080 --ready http:/healthz -d -- ./web";
/// Of `ps`.
pub(crate) const PS: &str = "\
Example:
  fairlead ps -A";
/// Of `logs`.
pub(crate) const LOGS: &str = "\
Example:
  fairlead logs web-1 -f";
/// Of `exec`.
pub(crate) const EXEC: &str = "\
Example:
  fairlead exec -it web-1 -- sh";
/// Of `stop`.
pub(crate) const STOP: &str = "\
Example:
  fairlead stop web-1 web-2 --grace 5";
/// Of `image`.
pub(crate) const IMAGE: &str = "\
Examples:
  fairlead image load agnhost.tar    an OCI archive, or of docker save
  fairlead image ls                  what was loaded
  fairlead image rm agnhost:2.59     one of them goes";
/// Of `image load`.
pub(crate) const IMAGE_LOAD: &str = "\
Examples:
  fairlead image load agnhost.tar                        named as in the file
  fairlead image load layout --name example.com/web:1    a directory that is an OCI image layout
  fairlead image load nginx.tar --user root              it may be root, with a container's usual capabilities";
/// Of `image ls`.
pub(crate) const IMAGE_LS: &str = "\
Example:
  fairlead image ls";
/// Of `image rm`.
pub(crate) const IMAGE_RM: &str = "\
Examples:
  fairlead image rm example.com/web:1    by its name
  fairlead image rm 0123456789ab         by its digest";
/// Of `register`.
pub(crate) const REGISTER: &str = "\
Example:
  fairlead register web --address 192.0.2.7 --port 8080";
/// Of `backup`.
pub(crate) const BACKUP: &str = "\
Example:
  fairlead backup store.backup    while the server runs";
/// Of `restore`.
pub(crate) const RESTORE: &str = "\
Example:
  fairlead restore store.backup    while it does not run";
/// Of `version`.
pub(crate) const VERSION: &str = "\
Example:
  fairlead version";
/// Of `completion`.
pub(crate) const COMPLETION: &str = "\
Examples:
  fairlead completion bash > /etc/bash_completion.d/fairlead
  fairlead completion zsh > ~/.zfunc/_fairlead
  fairlead completion fish > ~/.config/fish/completions/fairlead.fish";
/// Of `man`.
pub(crate) const MAN: &str = "\
Examples:
  fairlead man get | man -l -                     one page
  fairlead man --dir /usr/local/share/man/man1    all of them";
