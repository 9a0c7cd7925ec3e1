//! A namespace with Services in it, changed as the server would change it.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};
use std::net::IpAddr;

use fairlead_api::Value;
use fairlead_api::alloc::{self, Ledger, NodePorts};
use fairlead_api::kinds::{SERVICE, service};
use fairlead_api::status::Subject;
use fairlead_api::{Failure, Look, Settings, decode, json};

use super::template::Bindings;

/// How a case went.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) played: usize,
    pub(crate) left_out: usize,
    pub(crate) failure: Option<String>,
}

pub(crate) struct World {
    settings: Settings,
    services: BTreeMap<String, Value>,
    ips: HashSet<IpAddr>,
    node_ports: NodePorts,
    seed: u64,
    saved: BTreeMap<String, Value>,
    bindings: Bindings,
}

impl Default for World {
    fn default() -> World {
        let settings = Settings {
            service_ranges: vec!["10.0.0.0/16".parse().expect("a range"), "fd00:10::/108".parse().expect("a range")],
            node_ports: 30000..=32767,
            service_topology: false,
        };
        World {
            node_ports: NodePorts::new(settings.node_ports.clone()),
            settings,
            services: BTreeMap::new(),
            // The Service of the API itself.
            ips: HashSet::from([IpAddr::from([10, 0, 0, 1])]),
            seed: 1,
            saved: BTreeMap::new(),
            bindings: Bindings::default(),
        }
    }
}

/// An answer: the object and the warnings, or a failure.
type Answer = Result<(Value, Vec<String>), Failure>;

impl World {
    pub(crate) fn play(mut self, case: &Value) -> Outcome {
        let mut outcome = Outcome::default();
        let steps = case.list("steps");
        for (i, step) in steps.iter().enumerate() {
            let Some(answer) = self.answer(step) else {
                // Later steps depend on this one.
                outcome.left_out += steps.len() - i;
                return outcome;
            };
            outcome.played += 1;
            if let (Some(name), Ok((object, _))) = (step.text_opt("save"), &answer) {
                self.saved.insert(name.to_owned(), object.clone());
            }
            if let Some(failure) = self.compare(&step["expect"], &answer, step.get("pick").is_some()) {
                outcome.failure = Some(format!("step {i}: {failure}"));
                return outcome;
            }
        }
        outcome
    }

    /// `None` for what is the server's matter.
    fn answer(&mut self, step: &Value) -> Option<Answer> {
        let (status, path) = (step["expect"].int("status"), step.text("path"));
        let rest = path.strip_prefix("/api/v1/namespaces/${ns}/services")?.trim_start_matches('/');
        let plain = step.at("headers").text_opt("Content-Type").is_none_or(|t| t == "application/merge-patch+json");
        let strict = ["strict", "ignore"].contains(&step.at("query").text("fieldValidation").to_lowercase().as_str());
        // Conflicts, absent objects and bodies that do not decode never reach the rules; neither do options of requests.
        let ours = [200, 201, 422, 500].contains(&status);
        let options = step["expect"].at("details").text("group") == "meta.k8s.io";
        if !ours || !plain || strict || options || is_about_metadata(step) {
            return None;
        }
        let dry = step.at("query").text("dryRun") == "All";
        let (name, subresource) = rest.split_once('/').unwrap_or((rest, ""));
        match step.text("method") {
            "POST" => Some(self.create(self.body(step)?, dry)),
            "PUT" => {
                let body = self.body(step)?;
                if !self.services.contains_key(name) {
                    return None;
                }
                Some(self.update(name, body, subresource, dry))
            }
            "PATCH" => {
                let mut object = self.services.get(name)?.clone();
                merge(&mut object, &self.body(step)?);
                Some(self.update(name, object, subresource, dry))
            }
            "GET" => self.services.get(name).map(|service| Ok((service.clone(), Vec::new()))),
            "DELETE" => Some(Ok((self.delete(name)?, Vec::new()))),
            _ => None,
        }
    }

    fn body(&self, step: &Value) -> Option<Value> {
        if let Some(raw) = step.text_opt("raw") {
            let parsed = json::parse(raw.as_bytes()).ok()?;
            return parsed.duplicates.is_empty().then_some(parsed.value);
        }
        let body = step.get("body")?;
        let Some(from) = body.text_opt("$from") else {
            let special = body.to_string();
            return (!special.contains("\"$") && !special.contains("${var")).then(|| body.clone());
        };
        let mut object = self.saved.get(from)?.clone();
        for pointer in body.texts("unset") {
            let (parent, key) = pointer.rsplit_once('/')?;
            object.pointer_mut(parent)?.unset(key);
        }
        for (pointer, value) in body.map("set").into_iter().flatten() {
            let (parent, key) = pointer.rsplit_once('/')?;
            match object.pointer_mut(parent)? {
                Value::Array(items) => *items.get_mut(key.parse::<usize>().ok()?)? = value.clone(),
                parent => parent.set(key.to_string(), value.clone()),
            }
        }
        Some(object)
    }

    fn decoded(&self, body: Value) -> Result<(Value, Vec<String>), Failure> {
        let decoded = decode::decode(SERVICE.schema, body).map_err(|e| Failure::bad_request(e.to_string()))?;
        let unknown = decoded.unknown.iter().map(|field| format!("unknown field \"{field}\"")).collect();
        let mut object = decoded.value;
        (SERVICE.rules.default)(&mut object, &self.settings);
        Ok((object, unknown))
    }

    fn create(&mut self, body: Value, dry: bool) -> Answer {
        let (mut object, mut warnings) = self.decoded(body)?;
        let metadata = &mut object["metadata"];
        metadata.set("namespace", "ns");
        if metadata.text("name").is_empty() && !metadata.text("generateName").is_empty() {
            metadata.set("name", format!("{}bcdfg", metadata.text("generateName")));
        }
        let settings = self.settings.clone();
        let (mut object, _) = self.with_ledger(dry, |ledger| {
            alloc::create(&mut object, ledger, &settings)?;
            (SERVICE.rules.prepare_create)(&mut object, &settings);
            let errors = (SERVICE.rules.validate)(&object, None, &settings);
            if errors.is_empty() { Ok((object.clone(), Vec::<String>::new())) } else { Err(invalid(&object, &errors)) }
        })?;
        warnings.extend((SERVICE.rules.warnings)(&object, None, &self.settings));
        object.set("kind", "Service");
        if !dry {
            self.services.insert(object["metadata"].text("name").to_owned(), object.clone());
        }
        Ok((object, warnings))
    }

    fn update(&mut self, name: &str, body: Value, subresource: &str, dry: bool) -> Answer {
        let (mut object, mut warnings) = self.decoded(body)?;
        let old = self.services[name].clone();
        let settings = self.settings.clone();
        let object = self.with_ledger(dry, |ledger| {
            let errors = if subresource == "status" {
                (SERVICE.rules.prepare_status)(&mut object, &old, &settings);
                (SERVICE.rules.validate_status)(&object, &old, &settings)
            } else {
                alloc::update(&mut object, &old, ledger, &settings)?;
                (SERVICE.rules.prepare_update)(&mut object, &old, &settings);
                let mut errors = (SERVICE.rules.validate_update)(&object, &old, &settings);
                errors.extend((SERVICE.rules.validate)(&object, Some(&old), &settings));
                errors
            };
            if errors.is_empty() { Ok(object.clone()) } else { Err(invalid(&object, &errors)) }
        })?;
        warnings.extend(if subresource == "status" {
            service::status_warnings(&object)
        } else {
            (SERVICE.rules.warnings)(&object, Some(&old), &self.settings)
        });
        if !dry {
            self.services.insert(name.to_owned(), object.clone());
        }
        Ok((object, warnings))
    }

    fn delete(&mut self, name: &str) -> Option<Value> {
        // With finalizers it stays, and keeps what it has.
        if !self.services.get(name)?["metadata"].list("finalizers").is_empty() {
            return None;
        }
        let service = self.services.remove(name)?;
        let done = self.with_ledger(false, |ledger| {
            alloc::delete(&service, ledger);
            Ok(())
        });
        done.ok().map(|()| service)
    }

    /// Writes what the ledger noted, unless the work failed or was a dry run.
    fn with_ledger<T>(
        &mut self,
        dry: bool,
        work: impl FnOnce(&mut Ledger<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let ranges = self.settings.service_ranges.clone();
        let ips = RefCell::new(std::mem::take(&mut self.ips));
        let taken = |ip: IpAddr| ips.borrow().contains(&ip);
        let seed = &mut self.seed;
        let mut random = |below: u64| {
            *seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (*seed >> 33) % below
        };
        let mut ledger = Ledger::new(&ranges, &taken, &mut random, self.node_ports.clone());
        ledger.dry_run = dry;
        let done = work(&mut ledger);
        if done.is_ok() && !dry {
            let (new, gone) = (std::mem::take(&mut ledger.taken_ips), std::mem::take(&mut ledger.freed_ips));
            self.node_ports = ledger.settle();
            ips.borrow_mut().extend(new);
            ips.borrow_mut().retain(|ip| !gone.contains(ip));
        }
        self.ips = ips.into_inner();
        done
    }

    fn compare(&mut self, expect: &Value, answer: &Answer, picked: bool) -> Option<String> {
        match answer {
            Ok((_, _)) if expect.int("status") >= 300 => {
                Some(format!("expected {} {}, but it was accepted", expect["status"], expect["messages"]))
            }
            Ok((object, warnings)) => {
                let body = &expect["body"];
                let parts: &[&str] = if picked || body.is_null() { &[] } else { &["spec", "status"] };
                let differs =
                    parts.iter().find_map(|part| self.bindings.difference(&body[*part], &object[*part], part));
                differs.or_else(|| self.list("warnings", &expect.texts("warnings"), warnings))
            }
            Err(failure) if i64::from(failure.code) != expect.int("status") => {
                Some(format!("expected {}, got {} {}", expect["status"], failure.code, failure.message))
            }
            Err(failure) => {
                let status = failure.status();
                let mut messages = vec![failure.message.clone()];
                let causes = status["details"].list("causes");
                messages.extend(causes.iter().map(|cause| cause.text("message").to_owned()));
                let field = |cause: &Value| json!([cause.text("field"), cause.text("reason")]);
                let got: Vec<Value> = causes.iter().map(field).collect();
                let wanted: Vec<Value> = expect.list("causes").iter().map(field).collect();
                if got != wanted {
                    return Some(format!("causes: expected {wanted:?}, got {got:?} {messages:?}"));
                }
                self.list("messages", &expect.texts("messages"), &messages)
            }
        }
    }

    fn list(&mut self, what: &str, expected: &[&str], got: &[String]) -> Option<String> {
        let same = expected.len() == got.len() && expected.iter().zip(got).all(|(e, g)| self.bindings.matches(e, g));
        (!same).then(|| format!("{what}: expected {expected:#?}, got {got:#?}"))
    }
}

fn invalid(object: &Value, errors: &fairlead_api::field::FieldErrors) -> Failure {
    let name = object["metadata"].text("name");
    Failure::invalid(Subject { group: "", kind: "Service", name }, errors)
}

/// Rules on metadata are tested where they are; those of Service on its annotations are tested here.
fn is_about_metadata(step: &Value) -> bool {
    let causes = step["expect"].list("causes").iter().map(|cause| cause.text("field"));
    let about = causes.into_iter().any(|f| f.starts_with("metadata.") && !f.starts_with("metadata.annotations["));
    about || step.text("method") == "POST" && step["body"].at("metadata").get("resourceVersion").is_some()
}

/// A JSON merge patch.
fn merge(target: &mut Value, patch: &Value) {
    let Some(patch) = patch.as_object() else {
        *target = patch.clone();
        return;
    };
    for (key, value) in patch {
        if value.is_null() {
            target.unset(key);
            continue;
        }
        if !target.at(key).is_object() || !value.is_object() {
            target.set(key, if value.is_object() { json!({}) } else { value.clone() });
        }
        if value.is_object() {
            merge(target.get_mut(key).expect("set above"), value);
        }
    }
}
