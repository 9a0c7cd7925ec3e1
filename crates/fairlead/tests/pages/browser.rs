//! A browser as far as servers see one: it keeps a cookie and what signing in answered, and says where its requests come from.

use fairlead_testkit::Server;
use fairlead_testkit::https::{Answer, Client};
use serde_json::{Value, json};

/// The program under test.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_fairlead");

/// Somebody who signed in.
pub(crate) struct Browser {
    /// With the cookie and its proof.
    pub(crate) client: Client,
    /// With the cookie alone, as a page of another port has it.
    pub(crate) bare: Client,
    pub(crate) proof: String,
}

/// The header that proves that a request comes from the page that signed in.
pub(crate) const PROOF: &str = "X-Fairlead-Proof";

/// A client that is nobody.
pub(crate) fn stranger(server: &Server) -> Client {
    server.client().with_token("")
}

/// The token of a new link.
pub(crate) fn token(server: &Server, write: bool) -> String {
    let body = json!({"write": write}).to_string();
    let link = server.client().request("POST", "/fairlead/v1/links", &body).unwrap();
    assert_eq!(link.status, 201, "{}", link.body);
    text(&read(&link), "token")
}

/// Tries to sign in.
pub(crate) fn login(client: &Client, token: &str) -> Answer {
    client.request("POST", "/ui/login", &json!({"token": token}).to_string()).unwrap()
}

/// The cookie an answer sets, as it is sent back.
pub(crate) fn cookie(answer: &Answer) -> String {
    header(answer, "set-cookie").expect("it sets a cookie").split(';').next().unwrap().to_owned()
}

/// Signs in with a new link.
pub(crate) fn sign_in(server: &Server, write: bool) -> Browser {
    signed_in(server, &token(server, write))
}

/// Signs in with a token.
pub(crate) fn signed_in(server: &Server, token: &str) -> Browser {
    let signed = login(&stranger(server), token);
    assert_eq!(signed.status, 200, "{}", signed.body);
    let (bare, proof) = (stranger(server).with_header("Cookie", &cookie(&signed)), text(&read(&signed), "proof"));
    let client = bare.with_header(PROOF, &proof);
    let session = client.get("/fairlead/v1/session").unwrap();
    assert_eq!(session.status, 200, "{}", session.body);
    Browser { client, bare, proof }
}

impl Browser {
    /// Asks for something.
    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> Value {
        let answer = self.client.get(path).unwrap();
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        read(&answer)
    }

    /// Asks for something, whatever the answer is.
    pub(crate) fn try_get(&self, path: &str) -> (u16, String) {
        let answer = self.client.get(path).unwrap();
        (answer.status, text(&serde_json::from_str(&answer.body).unwrap_or_default(), "message"))
    }

    /// Sends what the page would send.
    pub(crate) fn send(&self, method: &str, path: &str, body: &Value) -> Answer {
        let own = format!("https://{}", self.client.address());
        self.client.with_header("Origin", &own).request(method, path, &body.to_string()).unwrap()
    }
}

/// A header of an answer.
pub(crate) fn header(answer: &Answer, name: &str) -> Option<String> {
    let mut lines = answer.head.lines().filter_map(|line| line.split_once(": "));
    lines.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned())
}

pub(crate) fn read(answer: &Answer) -> Value {
    serde_json::from_str(&answer.body).unwrap_or_else(|error| panic!("{error}: {}", answer.body))
}

pub(crate) fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_default().to_owned()
}

/// A Service without Pods.
pub(crate) fn service(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
        "spec": {"selector": {"app": name}, "ports": [{"name": "http", "port": 80, "targetPort": "web"}]},
    })
}

/// Where Services are made.
pub(crate) const SERVICES: &str = "/api/v1/namespaces/default/services";
