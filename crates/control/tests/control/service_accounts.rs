//! The account `default` of every namespace.

use fairlead_api::{Look, kinds};
use fairlead_cluster::Delete;
use serde_json::Value;

use crate::house::House;

#[tokio::test]
async fn every_namespace_has_the_account_and_gets_it_again() {
    for house in [House::near().await, House::far().await] {
        house.namespace("before").await;
        house.control("serviceaccount-controller");
        house.namespace("after").await;
        for namespace in ["default", "before", "after"] {
            let account = house.until(&kinds::SERVICE_ACCOUNT, namespace, "default", |_| true).await;
            let uid = account.at("metadata").text("uid");
            let how = Delete::default();
            house.cluster.delete(&kinds::SERVICE_ACCOUNT, namespace, "default", &how).await.expect("deleted");
            let is_another = |account: &Value| account.at("metadata").text("uid") != uid;
            house.until(&kinds::SERVICE_ACCOUNT, namespace, "default", is_another).await;
        }
    }
}
