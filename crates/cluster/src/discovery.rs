//! What the server serves, kinds we have never heard of included: for who must reach every object there is, whatever it is.

use bytes::Bytes;
use fairlead_api::{Kind, Look, kinds};
use futures_util::stream::{self, StreamExt};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{Method, Request};
use serde_json::Value;

use crate::request::{JSON, encode, read};
use crate::{Cluster, Delete, Error};

/// Asks for names and finalizers instead of whole objects, where the server can.
const ONLY_METADATA: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
/// Objects a page: what client-go asks for.
const PAGE: usize = 500;
/// A cluster has some dozens of group versions; so many are asked for at a time.
const AT_ONCE: usize = 8;

/// What a server serves.
#[derive(Debug, Clone, Default)]
pub struct Discovery {
    /// Each resource in the version the server prefers.
    pub resources: Vec<Resource>,
    /// Group versions that could not be asked for, and why: what they hold is not known.
    pub failures: Vec<(String, Error)>,
}

/// A resource of the server, of a kind we know or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// The API group, empty for the core group.
    pub group: String,
    /// The API version.
    pub version: String,
    /// The name, as in URLs.
    pub name: String,
    /// The kind, as in manifests.
    pub kind_name: String,
    /// The name of one object: `service`.
    pub singular: String,
    /// What people also call it.
    pub short_names: Vec<String>,
    /// What it belongs to, such as `all`.
    pub categories: Vec<String>,
    /// Whether objects live in a namespace.
    pub namespaced: bool,
    /// What can be done with it.
    pub verbs: Vec<String>,
}

/// All objects of a resource, by what every object has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Heads {
    /// The objects.
    pub items: Vec<Head>,
    /// A watch after this revision misses nothing; `None` where it is no number.
    pub revision: Option<u64>,
}

/// What is known of an object of any kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The name.
    pub name: String,
    /// Whether it is on its way out.
    pub terminating: bool,
    /// What must happen before it may go.
    pub finalizers: Vec<String>,
}

impl Resource {
    /// The resource of a kind we know.
    pub fn of(kind: &Kind) -> Resource {
        Resource {
            group: kind.group.to_owned(),
            version: kind.version.to_owned(),
            name: kind.resource.to_owned(),
            kind_name: kind.kind.to_owned(),
            singular: kind.singular(),
            short_names: kind.short_names.iter().map(|&name| name.to_owned()).collect(),
            categories: kind.categories.iter().map(|&name| name.to_owned()).collect(),
            namespaced: kind.namespaced,
            verbs: kind.verbs.iter().map(|verb| format!("{verb:?}").to_lowercase()).collect(),
        }
    }

    /// The resources of a group version, from the server's list of them; parts of others are left out.
    pub fn read(group: &str, version: &str, list: &Value) -> Vec<Resource> {
        let whole = list.list("resources").iter().filter(|item| !item.text("name").contains('/'));
        let resource = |item: &Value| {
            let texts = |name: &str| item.texts(name).into_iter().map(str::to_owned).collect();
            Resource {
                group: group.to_owned(),
                version: version.to_owned(),
                name: item.text("name").to_owned(),
                kind_name: item.text("kind").to_owned(),
                singular: item.text("singularName").to_owned(),
                short_names: texts("shortNames"),
                categories: texts("categories"),
                namespaced: item.flag("namespaced"),
                verbs: texts("verbs"),
            }
        };
        whole.map(resource).collect()
    }

    /// Whether a verb is served.
    pub fn can(&self, verb: &str) -> bool {
        self.verbs.iter().any(|known| known == verb)
    }

    /// The kind, if it is one of ours.
    pub fn kind(&self) -> Option<&'static Kind> {
        kinds::find(&self.group, &self.version, &self.name)
    }

    /// `v1`, `discovery.k8s.io/v1`.
    pub fn api_version(&self) -> String {
        group_version(&self.group, &self.version)
    }

    /// Where its objects are: those of a namespace, or, with "", all.
    pub fn path(&self, namespace: &str) -> String {
        let group_version = group_version_path(&self.group, &self.version);
        if namespace.is_empty() || !self.namespaced {
            return format!("{group_version}/{}", self.name);
        }
        format!("{group_version}/namespaces/{}/{}", encode(namespace), self.name)
    }
}

impl Cluster {
    /// Asks what the server serves. It fails when not even the groups are known.
    pub async fn discover(&self) -> Result<Discovery, Error> {
        let asked = stream::iter(self.group_versions().await?).map(|(group, version)| async move {
            let path = group_version_path(&group, &version);
            let answer = self.request(Method::GET, &path, None).await;
            (group, version, answer)
        });
        let mut discovery = Discovery::default();
        let mut answers = asked.buffered(AT_ONCE);
        while let Some((group, version, answer)) = answers.next().await {
            match answer {
                Ok(list) => discovery.add(&group, &version, &list),
                // It went between the two questions.
                Err(Error::NotFound(_)) => {}
                Err(error) => discovery.failures.push((group_version(&group, &version), error)),
            }
        }
        Ok(discovery)
    }

    /// Groups with their versions, the preferred one of each group first.
    async fn group_versions(&self) -> Result<Vec<(String, String)>, Error> {
        let core = self.request(Method::GET, "/api", None).await?;
        let mut found: Vec<_> =
            core.texts("versions").into_iter().map(|version| (String::new(), version.to_owned())).collect();
        let groups = self.request(Method::GET, "/apis", None).await?;
        for group in groups.list("groups") {
            let preferred = group.at("preferredVersion").text("version");
            let mut versions: Vec<&str> =
                group.list("versions").iter().map(|version| version.text("version")).collect();
            versions.sort_by_key(|version| *version != preferred);
            found.extend(versions.into_iter().map(|version| (group.text("name").to_owned(), version.to_owned())));
        }
        Ok(found)
    }

    /// The metadata of all objects of a resource in a namespace.
    pub async fn heads(&self, resource: &Resource, namespace: &str) -> Result<Heads, Error> {
        let (mut heads, mut more) = (Heads::default(), String::new());
        loop {
            let path = format!("{}?limit={PAGE}&continue={}", resource.path(namespace), encode(&more));
            let request = Request::get(path).header(ACCEPT, ONLY_METADATA);
            let page: Value = read(&self.answer(request, Bytes::new()).await?)?;
            heads.revision = heads.revision.or_else(|| page.at("metadata").text("resourceVersion").parse().ok());
            heads.items.extend(page.list("items").iter().map(Head::read));
            more = page.at("metadata").text("continue").to_owned();
            if more.is_empty() {
                return Ok(heads);
            }
        }
    }

    /// Deletes all objects of a resource in a namespace.
    pub async fn delete_every(&self, resource: &Resource, namespace: &str, how: &Delete) -> Result<(), Error> {
        let request = Request::delete(resource.path(namespace)).header(ACCEPT, ONLY_METADATA);
        self.answer(request.header(CONTENT_TYPE, JSON), how.body().to_string().into()).await.map(drop)
    }

    /// Deletes one object of a resource in a namespace.
    pub async fn delete_one(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
        how: &Delete,
    ) -> Result<(), Error> {
        let path = format!("{}/{}", resource.path(namespace), encode(name));
        self.request(Method::DELETE, &path, Some(&how.body())).await.map(drop)
    }
}

impl Discovery {
    /// Adds the resources of a group version, but for parts of others and for those known in a version the server prefers.
    fn add(&mut self, group: &str, version: &str, list: &Value) {
        for resource in Resource::read(group, version, list) {
            let known = |one: &Resource| one.group == group && one.name == resource.name;
            if !self.resources.iter().any(known) {
                self.resources.push(resource);
            }
        }
    }
}

impl Head {
    fn read(object: &Value) -> Head {
        let metadata = object.at("metadata");
        Head {
            name: metadata.text("name").to_owned(),
            terminating: !metadata.text("deletionTimestamp").is_empty(),
            finalizers: metadata.texts("finalizers").into_iter().map(str::to_owned).collect(),
        }
    }
}

fn group_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

fn group_version_path(group: &str, version: &str) -> String {
    let root = if group.is_empty() { "/api" } else { "/apis" };
    format!("{root}/{}", group_version(group, version))
}
