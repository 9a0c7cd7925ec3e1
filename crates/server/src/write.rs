//! Creating and changing objects: what a client sent becomes what is stored, in the order the reference server works.
//!
//! ```text
//! body -> decode -> default -> managed fields -> prepare -> allocate -> validate -> commit
//!                                                  ^ rules of the kind ^     | guard refused: again from the stored object
//! ```

use std::time::Instant;

use bytes::Bytes;
use fairlead_api::field::FieldErrors;
use fairlead_api::managed::{self, Writer};
use fairlead_api::status::Subject;
use fairlead_api::value::{Value, json};
use fairlead_api::{Failure, Kind, Look, kinds, validation};
use fairlead_store::{Draft, Guard, Outcome, Revision, Txn, Write};

use crate::allocate::{self, Allocation};
use crate::auth::rbac::{Attributes, Target as About};
use crate::auth::{User, nodes};
use crate::large_requests::{LARGE, apart_if};
use crate::options::{WriteOptions, revision};
use crate::read::{subject, unavailable};
use crate::reply::Reply;
use crate::route::Target;
use crate::{Inner, admission, clock, object, privileges, scale};

/// How often a write that lost a race starts again before it gives up with a conflict.
const ATTEMPTS: usize = 12;
/// How often a generated name that is taken is drawn again; as often as the reference server does.
const NAME_ATTEMPTS: usize = 8;

/// One write of one client.
pub(crate) struct Request<'a> {
    pub(crate) server: &'a Inner,
    pub(crate) target: &'a Target,
    /// Who writes; nobody when the server writes for itself.
    pub(crate) user: Option<&'a User>,
    pub(crate) options: WriteOptions,
    /// Sent back as Warning headers.
    pub(crate) warnings: Vec<String>,
    pub(crate) how: How,
    /// When the request came.
    pub(crate) started: Instant,
    /// True if the request has a place for large requests already.
    pub(crate) placed: bool,
}

/// How an existing object is changed; the ways differ in what is a condition and in whether an absent object is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// PUT, and POST: a uid in the object is a condition.
    Replace,
    /// Patches of an object that must be there.
    Patch,
    /// Server-side apply makes what is absent.
    Apply,
}

impl Request<'_> {
    fn kind(&self) -> &'static Kind {
        self.target.kind
    }

    /// The kind the object is stored as; rules see it in that form, and failures name it.
    fn stored(&self) -> &'static Kind {
        object::stored(self.target.kind)
    }

    fn writer<'b>(&'b self, api_version: &'b str, now: &'b str) -> Writer<'b> {
        Writer { manager: &self.options.field_manager, api_version, subresource: &self.target.subresource, now }
    }

    /// POST: `object` is decoded, nothing more.
    pub(crate) async fn create(&mut self, object: Value) -> Result<Reply, Failure> {
        let mut object = object::to_stored(self.kind(), object);
        self.match_namespace(&mut object)?;
        self.admit_namespace(&object).await?;
        self.admit(&object, None).await?;
        (self.kind().rules.default)(&mut object, &self.server.options.settings);
        self.create_defaulted(object, true).await
    }

    /// The rest of a create, also of a PUT or apply that creates. `own` says whether managed fields are still to be booked.
    async fn create_defaulted(&mut self, mut object: Value, own: bool) -> Result<Reply, Failure> {
        if !matches!(object.at("metadata").text("resourceVersion"), "" | "0") && own {
            return Err(Failure::new(500, "", "resourceVersion should not be set on objects to be created"));
        }
        let (api_version, now) = (self.kind().api_version(), clock::now());
        if own {
            managed::update(self.stored().schema, None, &mut object, self.writer(&api_version, &now));
        }
        // Before the volume of the account is added, which no template has.
        let warning =
            privileges::grant(self.server, self.user, &self.target.namespace, self.kind(), &mut object).await?;
        self.warnings.extend(warning);
        if *self.kind() == kinds::POD && self.server.options.admission.service_accounts {
            admission::service_account::admit(self.server, &self.target.namespace, &mut object).await?;
        }
        (self.kind().rules.admit)(&mut object, &self.server.options.settings)?;
        let generated =
            object.at("metadata").text("name").is_empty() && !object.at("metadata").text("generateName").is_empty();
        for _ in 1..if generated { NAME_ATTEMPTS } else { 1 } {
            let mut named = object.clone();
            fill_system_fields(&mut named, &now);
            match self.try_create(named).await {
                Err(Failure { reason: "AlreadyExists", .. }) => {}
                other => return other,
            }
        }
        fill_system_fields(&mut object, &now);
        self.try_create(object).await
    }

    async fn try_create(&mut self, mut object: Value) -> Result<Reply, Failure> {
        let asked = allocate::asked(self.kind(), &object);
        for attempt in 0..ATTEMPTS {
            if let (1.., Some(spec)) = (attempt, &asked) {
                object.set("spec", spec.clone());
            }
            let allocation = allocate::begin(self.server, self.kind(), &mut object, None, self.options.dry_run).await?;
            self.prepare_create(&mut object);
            self.check_create(&object)?;
            let warnings = (self.kind().rules.warnings)(&object, None, &self.server.options.settings);
            let name = object.at("metadata").text("name").to_owned();
            let key = object::key(self.kind(), &self.target.namespace, &name);
            if self.options.dry_run {
                self.exists(&key, &name).await?;
                self.warnings.extend(warnings);
                return Ok(self.reply(201, &object, &object::encode(&object), None));
            }
            let draft = object::encode(&object);
            let Allocation { mut guards, mut writes, lock, .. } = allocation;
            guards.insert(0, Guard::Absent(key.clone()));
            writes.insert(0, Write::Put(key, draft.clone()));
            let outcome = self.server.commit(Txn { guards, writes }, self.started).await?;
            drop(lock);
            match outcome {
                Outcome::Done(revision) => {
                    self.warnings.extend(warnings);
                    return Ok(self.reply(201, &object, &draft, Some(revision)));
                }
                Outcome::Refused(0) => return Err(self.already_exists(&name).await),
                Outcome::Refused(_) => {}
            }
        }
        Err(self.lost_race())
    }

    async fn exists(&self, key: &str, name: &str) -> Result<(), Failure> {
        match self.server.store.get(key).await.map_err(unavailable)? {
            Some(_) => Err(self.already_exists(name).await),
            None => Ok(()),
        }
    }

    async fn already_exists(&self, name: &str) -> Failure {
        let mut failure = Failure::already_exists(Subject { name, ..subject(self.target) });
        let key = object::key(self.kind(), &self.target.namespace, name);
        let entry = self.server.store.get(&key).await.ok().flatten();
        let leaving = entry
            .and_then(|entry| object::load(self.stored(), &entry).ok())
            .is_some_and(|object| !object.at("metadata").text("deletionTimestamp").is_empty());
        if leaving {
            failure.message = format!("object is being deleted: {}", failure.message);
        }
        failure
    }

    fn prepare_create(&self, object: &mut Value) {
        if self.kind().traits.generation {
            set_metadata(object, "generation", 1);
        }
        (self.kind().rules.prepare_create)(object, &self.server.options.settings);
        object.map_mut("metadata").shift_remove("selfLink");
    }

    fn check_create(&self, object: &Value) -> Result<(), Failure> {
        self.invalid(object, validation::create(self.kind(), object, &self.server.options.settings))
    }

    fn invalid(&self, object: &Value, errors: FieldErrors) -> Result<(), Failure> {
        if errors.is_empty() {
            return Ok(());
        }
        let name = object.at("metadata").text("name");
        Err(Failure::invalid(Subject { group: self.stored().group, kind: self.stored().kind, name }, &errors))
    }

    /// PUT: `object` is decoded, nothing more.
    pub(crate) async fn replace(&mut self, object: Value) -> Result<Reply, Failure> {
        let (kind, stored) = (self.kind(), self.stored());
        let object = object::to_stored(kind, object);
        let settings = self.server.options.settings.clone();
        let (options, subresource) = (self.options.clone(), self.target.subresource.clone());
        self.update(move |live, _| {
            let mut new = object.clone();
            (kind.rules.default)(&mut new, &settings);
            let (api_version, now) = (kind.api_version(), clock::now());
            let manager = &options.field_manager;
            let writer = Writer { manager, api_version: &api_version, subresource: &subresource, now: &now };
            managed::update(stored.schema, live, &mut new, writer);
            Ok(new)
        })
        .await
    }

    /// PUT of subresource `scale`: `object` is a decoded Scale.
    pub(crate) async fn replace_scale(&mut self, object: Value) -> Result<Reply, Failure> {
        let settings = self.server.options.settings.clone();
        let (options, target) = (self.options.clone(), self.target.clone());
        let reply = self
            .update(move |live, _| {
                let live = live.ok_or_else(|| Failure::not_found(subject(&target)))?;
                let (old, mut new) = (scale::load(live)?, object.clone());
                let (api_version, now) = (kinds::SCALE.api_version(), clock::now());
                let manager = &options.field_manager;
                let writer = Writer { manager, api_version: &api_version, subresource: &target.subresource, now: &now };
                managed::update(kinds::SCALE.schema, Some(&old), &mut new, writer);
                scale::save(&target, live, &new, &settings)
            })
            .await?;
        scale::reply(reply)
    }

    /// PUT, PATCH and apply: `produce` makes the new object from the stored one (`None`: there is none), defaulted and with
    /// its managed fields booked, all in the stored form. It runs again when another write came first.
    pub(crate) async fn update(
        &mut self,
        produce: impl Fn(Option<&Value>, &mut Vec<String>) -> Result<Value, Failure>,
    ) -> Result<Reply, Failure> {
        let key = object::key(self.kind(), &self.target.namespace, &self.target.name);
        for _ in 0..ATTEMPTS {
            let mut warnings = Vec::new();
            let Some(entry) = self.server.store.get(&key).await.map_err(unavailable)? else {
                let object = produce(None, &mut warnings)?;
                self.warnings.extend(warnings);
                return self.create_by_update(object).await;
            };
            // The body of a patch may be small and the object large: then the request waits for its
            // place here.
            let large = entry.json.len() > LARGE;
            let place = match self.placed {
                true => None,
                false => self.server.large.enter(self.user.map_or("", |user| &user.name), entry.json.len()).await,
            };
            let old = apart_if(large, || object::load(self.stored(), &entry))?;
            let mut new = apart_if(large, || produce(Some(&old), &mut warnings))?;
            self.match_namespace(&mut new)?;
            self.precondition(&new, &old)?;
            privileges::keep(self.kind(), &mut new, &old);
            self.admit(&new, Some(&old)).await?;
            let namespace = &self.target.namespace;
            warnings.extend(privileges::grant_update(self.server, self.user, namespace, self.kind(), &mut new, &old));
            let allocation = self.prepare_update(&mut new, &old).await?;
            apart_if(large, || self.check_update(&new, &old))?;
            managed::keep_times(&old, &mut new);
            let mut notes = self.update_warnings(&new, &old);
            notes.splice(0..0, warnings);
            let draft = apart_if(large, || object::encode(&new));
            drop(place);
            if self.options.dry_run {
                self.warnings.extend(notes);
                return Ok(self.reply(200, &new, &draft, Some(entry.revision)));
            }
            if draft.at(entry.revision) == entry.json {
                self.warnings.extend(notes);
                return Ok(Reply::object(200, self.kind(), object::text(self.kind(), &entry)?));
            }
            let gone = is_finished(&new, self.kind());
            let Allocation { mut guards, mut writes, lock, .. } = match gone {
                true => {
                    // Both may need the node-port map, which only one can hold.
                    drop(allocation);
                    crate::delete::release(self.server, self.kind(), &old).await?
                }
                false => allocation,
            };
            guards.insert(0, Guard::At(key.clone(), entry.revision));
            writes.insert(0, if gone { Write::Delete(key.clone()) } else { Write::Put(key.clone(), draft.clone()) });
            let outcome = self.server.commit(Txn { guards, writes }, self.started).await?;
            drop(lock);
            if let Outcome::Done(revision) = outcome {
                self.warnings.extend(notes);
                // What is gone with this write was never stored in its last form.
                return Ok(self.reply(200, &new, &draft, Some(if gone { entry.revision } else { revision })));
            }
        }
        Err(self.modified())
    }

    async fn create_by_update(&mut self, mut object: Value) -> Result<Reply, Failure> {
        let creates = self.kind().traits.create_on_update && self.target.subresource.is_empty();
        if !(creates || self.how == How::Apply) {
            return Err(Failure::not_found(subject(self.target)));
        }
        if let Some(user) = self.user {
            let Target { namespace, name, .. } = self.target;
            let (group, resource) = (self.kind().group, self.kind().resource);
            let target = About::Resource { group, resource, subresource: "", namespace, name };
            self.server.access.authorize_request(user, &Attributes { verb: "create", target }).await?;
        }
        let uid = object.at("metadata").text("uid");
        if !uid.is_empty() {
            return Err(match self.how {
                How::Apply => Failure::conflict(
                    subject(self.target),
                    &format!("uid mismatch: the provided object specified uid {uid}, and no existing object was found"),
                ),
                _ => self.uid_conflict(uid, ""),
            });
        }
        self.match_namespace(&mut object)?;
        self.admit_namespace(&object).await?;
        self.admit(&object, None).await?;
        object.map_mut("metadata").shift_remove("resourceVersion");
        self.create_defaulted(object, false).await
    }

    /// A uid or resourceVersion in the object is a condition on what is stored.
    fn precondition(&self, new: &Value, old: &Value) -> Result<(), Failure> {
        let (new, old) = (new.at("metadata"), old.at("metadata"));
        let (uid, stored) = (new.text("uid"), old.text("uid"));
        if self.how == How::Replace && !uid.is_empty() && uid != stored {
            return Err(self.uid_conflict(uid, stored));
        }
        let version = new.text("resourceVersion");
        let wanted =
            if version.is_empty() { 0 } else { revision(version).map_err(|why| Failure::new(500, "", why))? };
        if wanted != 0 && version != old.text("resourceVersion") {
            return Err(self.modified());
        }
        Ok(())
    }

    async fn prepare_update(&self, new: &mut Value, old: &Value) -> Result<Allocation, Failure> {
        keep_system_fields(new, old, self.kind());
        let settings = &self.server.options.settings;
        let rules = self.kind().rules;
        match self.target.subresource.as_str() {
            "status" => {
                (rules.prepare_status)(new, old, settings);
                Ok(Allocation::default())
            }
            // Binding changes what no other write may: the node.
            "binding" => Ok(Allocation::default()),
            "finalize" => {
                kinds::namespace::prepare_finalize(new, old);
                Ok(Allocation::default())
            }
            _ => {
                let allocation =
                    allocate::begin(self.server, self.kind(), new, Some(old), self.options.dry_run).await?;
                if self.kind().traits.generation && self.kind().schema.field("spec").is_none() {
                    count_generation(new, old, content);
                }
                (rules.prepare_update)(new, old, settings);
                if self.kind().traits.generation && self.kind().schema.field("spec").is_some() {
                    count_generation(new, old, |object| object.at("spec").clone());
                }
                Ok(allocation)
            }
        }
    }

    fn check_update(&self, new: &Value, old: &Value) -> Result<(), Failure> {
        let settings = &self.server.options.settings;
        let errors = match self.target.subresource.as_str() {
            "" | scale::NAME => validation::update(self.kind(), new, old, settings),
            "status" => validation::update_status(self.kind(), new, old, settings),
            "finalize" => kinds::namespace::validate_finalize(new),
            // Binding changes one field, checked where it is changed.
            _ => FieldErrors::new(),
        };
        self.invalid(new, errors)
    }

    fn update_warnings(&self, new: &Value, old: &Value) -> Vec<String> {
        if self.target.subresource == "status" && self.kind().resource == "services" {
            return kinds::service::status_warnings(new);
        }
        (self.kind().rules.warnings)(new, Some(old), &self.server.options.settings)
    }

    /// The namespace of the object is that of the URL.
    fn match_namespace(&self, object: &mut Value) -> Result<(), Failure> {
        let given = object.at("metadata").text("namespace");
        let wanted = &self.target.namespace;
        if !self.kind().namespaced {
            if !given.is_empty() {
                object.map_mut("metadata").shift_remove("namespace");
            }
            return Ok(());
        }
        if given.is_empty() {
            object.map_mut("metadata");
            set_metadata(object, "namespace", wanted.clone());
        } else if given != *wanted {
            return Err(Failure::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        Ok(())
    }

    /// Nothing is made in a namespace that is not there or on its way out.
    async fn admit_namespace(&self, object: &Value) -> Result<(), Failure> {
        if !self.kind().namespaced {
            return Ok(());
        }
        let name = &self.target.namespace;
        let namespaces = &fairlead_api::kinds::NAMESPACE;
        let key = object::key(namespaces, "", name);
        let Some(entry) = self.server.store.get(&key).await.map_err(unavailable)? else {
            return Err(Failure::not_found(Subject { group: "", kind: "namespaces", name }));
        };
        // Most namespaces stay, and one that does is told by its text: reading it would cost as much as reading the body.
        let stays = !object::may_be_leaving(&entry)
            || object::load(namespaces, &entry)?.at("metadata").text("deletionTimestamp").is_empty();
        if stays {
            return Ok(());
        }
        let why = format!("unable to create new content in namespace {name} because it is being terminated");
        let created = object.at("metadata").text("name");
        let mut failure = Failure::forbidden(Subject { name: created, ..subject(self.target) }, &why);
        let cause = json!([{
            "reason": "NamespaceTerminating",
            "message": format!("namespace {name} is being terminated"),
            "field": "metadata.namespace",
        }]);
        if let Some(details) = &mut failure.details {
            details.set("causes", cause);
        }
        Err(failure)
    }

    /// What an administrator forbade.
    async fn admit(&self, object: &Value, old: Option<&Value>) -> Result<(), Failure> {
        if let Some(user) = self.user {
            self.server.access.check_escalation(user, self.target, object, old)?;
        }
        privileges::check(self.kind(), object, old)?;
        let name = object.at("metadata").text("name");
        if let Some(Err(why)) = self.user.map(|user| nodes::restrict(user, self.kind(), object, old)) {
            return Err(Failure::forbidden(Subject { name, ..subject(self.target) }, &why));
        }
        if *self.kind() == kinds::SERVICE && self.target.subresource.is_empty() {
            let about = Subject { name, ..subject(self.target) };
            admission::external_ips::admit(self.server, self.user, about, object, old).await?;
        }
        admission::admit(&self.server.options.admission, self.kind(), object, old)
            .map_err(|why| Failure::forbidden(Subject { name, ..subject(self.target) }, &why))
    }

    fn modified(&self) -> Failure {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Failure::conflict(subject(self.target), why)
    }

    fn lost_race(&self) -> Failure {
        Failure::new(500, "ServerTimeout", "too many writes at once; please try again")
    }

    fn uid_conflict(&self, wanted: &str, stored: &str) -> Failure {
        let key = object::key(self.kind(), &self.target.namespace, &self.target.name);
        let why = format!(
            "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: \
             UID in precondition: {wanted}, UID in object meta: {stored}"
        );
        Failure::conflict(subject(self.target), &why)
    }

    /// The object as the client gets it back; `stored` is its text. Without a revision it was not stored and has none.
    fn reply(&self, code: u16, object: &Value, stored: &Draft, revision: Option<Revision>) -> Reply {
        let converted;
        let draft = match self.kind().conversion {
            None => stored,
            Some(_) => {
                converted = object::encode(&object::from_stored(self.kind(), object));
                &converted
            }
        };
        let text: Bytes = match revision {
            Some(revision) => draft.at(revision),
            None => draft.json.clone(),
        };
        Reply::object(code, self.kind(), text)
    }
}

/// A value in the canonical form of its kind.
pub(crate) fn canonical(kind: &'static Kind, value: Value) -> Value {
    let mut value = match fairlead_api::decode::decode(kind.schema, value.clone()) {
        Ok(decoded) => decoded.value,
        // Only called with values made from canonical ones; keep what there is.
        Err(_) => value,
    };
    crate::body::set_type(&mut value, &crate::body::Expected::object(kind));
    value
}

/// Puts metadata into its order after fields were added.
pub(crate) fn arrange_metadata(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata") {
        fairlead_api::schema::meta::OBJECT_META.arrange(metadata);
    }
}

/// Sets a field of metadata, in its place.
pub(crate) fn set_metadata(object: &mut Value, name: &'static str, value: impl Into<Value>) {
    if let Some(metadata) = object.get_mut("metadata") {
        fairlead_api::schema::meta::OBJECT_META.place(metadata, name, value);
    }
}

/// Returns the end of a generated name: five characters, none of which make words
/// (k8s.io/apimachinery, util/rand).
pub(crate) fn random_suffix() -> String {
    const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    (0..5).map(|_| ALPHABET[fastrand::usize(..ALPHABET.len())] as char).collect()
}

/// Name, uid and time of a new object.
pub(crate) fn fill_system_fields(object: &mut Value, now: &str) {
    const MAX_PREFIX: usize = 58;
    arrange_metadata(object);
    let given = object.at("metadata");
    let prefix = given.text("generateName");
    if given.text("name").is_empty() && !prefix.is_empty() {
        let prefix: String = prefix.chars().take(MAX_PREFIX).collect();
        set_metadata(object, "name", format!("{prefix}{}", random_suffix()));
    }
    object.map_mut("metadata");
    set_metadata(object, "uid", uuid::Uuid::new_v4().to_string());
    set_metadata(object, "creationTimestamp", now);
    let metadata = object.map_mut("metadata");
    for unset in ["deletionTimestamp", "deletionGracePeriodSeconds", "resourceVersion", "selfLink"] {
        metadata.shift_remove(unset);
    }
}

/// What an update may leave out and cannot change: uid, times, generation.
fn keep_system_fields(new: &mut Value, old: &Value, kind: &Kind) {
    let old = old.at("metadata");
    let metadata = new.map_mut("metadata");
    // A write that names no version is based on whichever there is.
    let unconditional = metadata.get("resourceVersion").is_none_or(|version| version == "" || version == "0");
    if let (true, false, Some(version)) = (unconditional, kind.traits.conditional_update, old.get("resourceVersion")) {
        metadata.insert("resourceVersion", version.clone());
    }
    metadata.shift_remove("generation");
    if let Some(generation) = old.get("generation") {
        metadata.insert("generation", generation.clone());
    }
    for name in ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        let missing = metadata.get(name).is_none_or(|value| value.is_null() || value == "");
        if let (true, Some(value)) = (missing, old.get(name)) {
            metadata.insert(name, value.clone());
        }
    }
    metadata.shift_remove("selfLink");
    arrange_metadata(new);
}

/// Counts a change of what is asked for.
fn count_generation(new: &mut Value, old: &Value, asked: impl Fn(&Value) -> Value) {
    if asked(new) != asked(old) {
        let next = old.at("metadata").int("generation") + 1;
        set_metadata(new, "generation", next);
    }
}

/// What is asked for in a kind without a spec: all of it, and its labels.
fn content(object: &Value) -> Value {
    let mut asked = object.clone();
    asked.set("metadata", object.at("metadata").at("labels").clone());
    asked
}

/// Whether an object marked for deletion has nothing left to wait for.
fn is_finished(object: &Value, kind: &Kind) -> bool {
    if kind.resource == "namespaces" {
        return kinds::namespace::is_finalized(object);
    }
    let metadata = object.at("metadata");
    !metadata.text("deletionTimestamp").is_empty()
        && metadata.list("finalizers").is_empty()
        && metadata.int("deletionGracePeriodSeconds") == 0
}
