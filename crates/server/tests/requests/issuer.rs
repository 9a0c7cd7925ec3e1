//! What others must know to check tokens of ServiceAccounts.

use fairlead_server::{Admission, Authorization};
use serde_json::json;

use crate::world::{TestServer, admin, user};

#[tokio::test]
async fn others_can_find_the_keys_that_check_tokens() {
    let server = TestServer::new(Admission::default(), Authorization::Rbac).await;
    let account = user("system:serviceaccount:a:b", &["system:serviceaccounts", "system:authenticated"]);
    let stranger = user("ann", &["system:authenticated"]);
    let path = "/.well-known/openid-configuration";
    let answer = server.send(account.clone(), "GET", path, "").await;
    assert_eq!(
        answer.body,
        json!({
            "issuer": "https://issuer.example", "jwks_uri": "https://issuer.example/openid/v1/jwks",
            "response_types_supported": ["id_token"], "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"],
        })
    );
    let answer = server.send(account.clone(), "GET", "/openid/v1/jwks", "").await;
    let keys = answer.body["keys"].as_array().expect("keys");
    assert_eq!((keys.len(), &keys[0]["kty"], &keys[0]["use"]), (1, &json!("EC"), &json!("sig")));
    for path in [path, "/openid/v1/jwks"] {
        assert_eq!(server.send(stranger.clone(), "GET", path, "").await.code, 403);
        assert_eq!(server.send(account.clone(), "POST", path, "").await.code, 403);
        assert_eq!(server.send(admin(), "POST", path, "").await.code, 405);
    }
}
