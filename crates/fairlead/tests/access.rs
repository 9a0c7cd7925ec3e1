//! Who is let in, and what may they do? Asked of the built program with its defaults: nobody unless known, nothing unless given.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use fairlead_testkit::Server;
use fairlead_testkit::https::{Answer, Client};
use serde_json::{Value, json};

const PROGRAM: &str = env!("CARGO_BIN_EXE_fairlead");
const SERVICES: &str = "/api/v1/namespaces/default/services";

#[test]
fn strangers_see_health_and_version_and_nothing_else() {
    let server = Server::start(PROGRAM, &[]);
    let stranger = server.client().with_token("");
    for path in ["/healthz", "/livez", "/readyz", "/version"] {
        assert_eq!(get(&stranger, path).status, 200, "{path}");
    }
    for path in ["/", "/api", "/apis", "/metrics", "/openapi/v2", "/openapi/v3", SERVICES, "/fairlead/backup"] {
        assert_eq!(get(&stranger, path).status, 401, "{path}");
        assert_eq!(get(&server.client().with_token("wrong"), path).status, 401, "{path} with a wrong token");
    }
}

#[test]
fn a_service_account_may_do_what_a_role_gives_it() {
    let server = Server::start(PROGRAM, &[]);
    let admin = server.client();
    create(&admin, "/api/v1/namespaces/default/serviceaccounts", &json!({"metadata": {"name": "reader"}}));
    let account = server.client().with_token(&token(&admin, "reader"));
    assert_eq!(get(&account, SERVICES).status, 403, "nothing is allowed that is not given");

    create(
        &admin,
        "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings",
        &json!({
            "metadata": {"name": "reader"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
            "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": "default"}],
        }),
    );
    assert_eq!(get(&account, SERVICES).status, 200, "a role gives it, at once");
    assert_eq!(get(&account, "/api/v1/services").status, 403, "in its own namespace only");
    assert_eq!(get(&account, "/api/v1/namespaces/default/secrets").status, 403, "a viewer sees no Secrets");
    assert_eq!(account.request("POST", SERVICES, "{}").expect("an answer").status, 403, "a viewer changes nothing");

    let gone = admin.request("DELETE", "/api/v1/namespaces/default/serviceaccounts/reader", "").expect("an answer");
    assert_eq!(gone.status, 200, "{}", gone.body);
    assert_eq!(get(&account, SERVICES).status, 401, "a token ends with its account");
}

#[test]
fn a_role_for_all_paths_is_not_enough_for_a_copy_of_the_store() {
    let server = Server::start(PROGRAM, &[]);
    let admin = server.client();
    create(&admin, "/api/v1/namespaces/default/serviceaccounts", &json!({"metadata": {"name": "probe"}}));
    let account = server.client().with_token(&token(&admin, "probe"));
    let rules = |rules: Value| {
        let role = json!({"metadata": {"name": "probe"}, "rules": rules});
        let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
        let _ = admin.request("DELETE", &format!("{roles}/probe"), "");
        create(&admin, roles, &role);
    };
    let paths = json!({"verbs": ["*"], "nonResourceURLs": ["*"]});
    rules(json!([paths]));
    create(
        &admin,
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        &json!({
            "metadata": {"name": "probe"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "probe"},
            "subjects": [{"kind": "ServiceAccount", "name": "probe", "namespace": "default"}],
        }),
    );
    assert_eq!(get(&account, "/metrics").status, 200, "every path");
    assert_eq!(get(&account, "/fairlead/backup").status, 403, "but no Secrets");
    rules(json!([paths, {"verbs": ["list"], "apiGroups": ["*"], "resources": ["*"]}]));
    assert_eq!(get(&account, "/fairlead/backup").status, 200, "who may read everything may have it at once");
}

#[test]
fn what_a_start_leaves_on_disk_is_its_owners_alone() {
    let server = Server::start(PROGRAM, &[]);
    let (mut seen, mut open) = (0, Vec::new());
    let mut folders = vec![server.data_dir()];
    while let Some(folder) = folders.pop() {
        open.extend(open_to_others(&folder));
        for entry in fs::read_dir(&folder).expect("a folder").flatten() {
            seen += 1;
            match entry.path().is_dir() {
                true => folders.push(entry.path()),
                false => open.extend(open_to_others(&entry.path())),
            }
        }
    }
    assert!(seen > 5 && open.is_empty(), "{seen} files, {open:?}");
}

/// What others may do to a file, if anything.
fn open_to_others(path: &Path) -> Option<String> {
    let mode = fs::metadata(path).expect("it is there").permissions().mode();
    (mode & 0o077 != 0).then(|| format!("{} {:o}", path.display(), mode & 0o777))
}

fn get(client: &Client, path: &str) -> Answer {
    client.get(path).expect("an answer")
}

fn create(client: &Client, path: &str, object: &Value) -> Value {
    let answer = client.request("POST", path, &object.to_string()).expect("an answer");
    assert_eq!(answer.status, 201, "{path}: {}", answer.body);
    serde_json::from_str(&answer.body).expect("JSON")
}

/// A token as `kubectl create token` asks for it: with nothing said but for whom.
fn token(client: &Client, account: &str) -> String {
    let path = format!("/api/v1/namespaces/default/serviceaccounts/{account}/token");
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let answer = create(client, &path, &request);
    answer["status"]["token"].as_str().expect("a token").to_owned()
}
