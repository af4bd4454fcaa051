//! Creations, updates and patches.

use std::sync::Arc;

use serde_json::{Value, json};

use super::admission::{AdmissionRule, AdmissionStage, ReviewedWrite};
use super::answer::{ApiAnswer, Failure, FieldError};
use super::decode::{self, DecodeFailure};
use super::kind::{KindDefinition, KindId, Scope, StatusSubresource, WriteStrategy};
use super::metadata;
use super::object_view::{
    copy, generation, member, metadata as metadata_of, same, same_content, set, text_of,
};
use super::ownership::UnownedFields;
use super::patch;
use super::request::{Endpoint, SimulatedPatch};
use super::store::{ObjectPath, StoredObject};
use super::{ApiServer, Served};

/// The size of an object that etcd accepts.
const LARGEST_OBJECT: usize = 1_572_864;

/// The alphabet of generated names.
const NAME_LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// A write to an existing object.
struct ObjectUpdate {
    kind: KindId,
    path: ObjectPath,
    endpoint: Endpoint,
    /// The uid that the object must have.
    uid: Option<String>,
    new: Value,
}

/// An object as its client has sent it, and as webhooks have changed it.
struct Mutation {
    sent: Value,
    mutated: Value,
}

// === impl ApiServer ===

impl ApiServer {
    pub(super) fn create(
        &mut self,
        kind: KindId,
        namespace: Option<&Arc<str>>,
        body: &Value,
    ) -> Result<ApiAnswer, Failure> {
        let definition = self.definition_arc(kind);
        let mut new = body.clone();
        decode::body(&definition, &mut new).map_err(|it| it.of_body(&definition))?;
        self.fill_namespace(&definition, namespace, &mut new)?;
        self.generate_name(&mut new);
        self.admit_namespace(&definition, &new)?;
        decode::check_kind(&definition, &new)?;
        let mutation = self.mutate(kind, Endpoint::Object, None, &mut new)?;
        self.complete_new(&definition, &mut new);
        let mut errors = metadata::validate(&new);
        errors.extend(content_errors(&definition, Endpoint::Object, &new));
        self.reject_invalid(&definition, &new, errors)?;
        self.validate(kind, Endpoint::Object, true)?;
        if !text_of(&new, "resourceVersion").is_empty() {
            let message = "resourceVersion should not be set on objects to be created";
            return Err(Failure::new(500, "", message));
        }
        let path = path_of(&new);
        if let Some(existing) = self.store.get(kind, &path) {
            return Err(already_exists(&definition, &path.name, existing));
        }
        check_size(&new)?;
        let unowned = unowned_after(&Arc::default(), &Value::Null, mutation.as_ref(), &new);
        let created = self.store.put(kind, path, new, unowned);
        Ok(ApiAnswer::object(201, created))
    }

    pub(super) fn update(
        &mut self,
        kind: KindId,
        path: ObjectPath,
        endpoint: Endpoint,
        body: &Value,
    ) -> Result<ApiAnswer, Failure> {
        let definition = self.definition_arc(kind);
        let mut new = body.clone();
        decode::body(&definition, &mut new).map_err(|it| it.of_body(&definition))?;
        check_name(&path, &new)?;
        let namespace = (definition.scope == Scope::Namespaced).then_some(&path.namespace);
        self.fill_namespace(&definition, namespace, &mut new)?;
        check_endpoint(&definition, &path, endpoint)?;
        if self.store.get(kind, &path).is_none() {
            if definition.strategy.creates_on_update() {
                check_number(text_of(&new, "resourceVersion"))?;
                set(&mut new, "resourceVersion", None);
                return self.create(kind, namespace, &new);
            }
            return Err(Failure::not_found(&definition, &path.name));
        }
        let uid = Some(text_of(&new, "uid").to_owned()).filter(|it| !it.is_empty());
        self.finish_update(ObjectUpdate {
            kind,
            path,
            endpoint,
            uid,
            new,
        })
    }

    pub(super) fn patch(
        &mut self,
        kind: KindId,
        path: ObjectPath,
        endpoint: Endpoint,
        content: &SimulatedPatch,
    ) -> Result<ApiAnswer, Failure> {
        let definition = self.definition_arc(kind);
        check_endpoint(&definition, &path, endpoint)?;
        let Some(existing) = self.store.get(kind, &path) else {
            return Err(Failure::not_found(&definition, &path.name));
        };
        let mut new = Value::clone(&existing.object);
        patch::apply(&mut new, content)?;
        decode::patched(&definition, &mut new).map_err(DecodeFailure::of_patch)?;
        check_name(&path, &new)?;
        self.finish_update(ObjectUpdate {
            kind,
            path,
            endpoint,
            uid: None,
            new,
        })
    }

    /// The part that updates and patches have in common: conditions, rules, webhooks, storage.
    fn finish_update(&mut self, update: ObjectUpdate) -> Result<ApiAnswer, Failure> {
        let ObjectUpdate {
            kind,
            path,
            endpoint,
            uid,
            mut new,
        } = update;
        let definition = self.definition_arc(kind);
        let Some(stored) = self.store.get(kind, &path).cloned() else {
            return Err(Failure::not_found(&definition, &path.name));
        };
        let old = stored.object;
        let mutation = self.mutate(kind, endpoint, Some(&old), &mut new)?;
        if let Some(uid) = uid.filter(|uid| uid != text_of(&old, "uid")) {
            let cause = format!(
                "StorageError: invalid object, Code: 4, Key: {}, ResourceVersion: 0, \
                 AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, UID in \
                 object meta: {}",
                storage_key(&definition, &path),
                text_of(&old, "uid")
            );
            return Err(Failure::conflict(&definition, &path.name, &cause));
        }
        check_version(&definition, &path, &mut new, &old)?;
        prepare_update(&definition, endpoint, &mut new, &old);
        decode::check_kind(&definition, &new)?;
        let mut errors = metadata::validate_update(&new, &old);
        errors.extend(content_errors(&definition, endpoint, &new));
        self.reject_invalid(&definition, &old, errors)?;
        self.validate(kind, endpoint, false)?;
        let deleting = !text_of(&new, "deletionTimestamp").is_empty();
        if deleting && self.is_released(&definition, &new) {
            // The answer has no new version: the object is not written but removed.
            self.store.remove(kind, &path);
            return Ok(ApiAnswer::object(200, Arc::new(new)));
        }
        let unowned = unowned_after(&stored.unowned, &old, mutation.as_ref(), &new);
        if same(&new, &old) && unowned == stored.unowned {
            return Ok(ApiAnswer::object(200, old));
        }
        check_size(&new)?;
        let updated = self.store.put(kind, path, new, unowned);
        Ok(ApiAnswer::object(200, updated))
    }

    /// Whether nothing holds an object that is being deleted.
    pub(super) fn is_released(&self, definition: &KindDefinition, object: &Value) -> bool {
        let held = definition.strategy == WriteStrategy::Namespace
            && object["spec"]["finalizers"]
                .as_array()
                .is_some_and(|it| !it.is_empty());
        !held && metadata::finalizers(object).next().is_none()
    }

    fn fill_namespace(
        &self,
        definition: &KindDefinition,
        namespace: Option<&Arc<str>>,
        new: &mut Value,
    ) -> Result<(), Failure> {
        match (definition.scope, namespace) {
            (Scope::Cluster, _) => set(new, "namespace", None),
            (Scope::Namespaced, None) => {
                let message = "an empty namespace may not be set during creation";
                return Err(Failure::bad_request(message));
            }
            (Scope::Namespaced, Some(namespace)) => {
                let given = text_of(new, "namespace");
                if !given.is_empty() && given != &**namespace {
                    let message = "the namespace of the provided object does not match the \
                                   namespace sent on the request";
                    return Err(Failure::bad_request(message));
                }
                set(new, "namespace", Some(json!(**namespace)));
            }
        }
        Ok(())
    }

    /// Nothing is created in a namespace that does not exist or is being deleted.
    fn admit_namespace(&self, definition: &KindDefinition, new: &Value) -> Result<(), Failure> {
        if definition.scope == Scope::Cluster {
            return Ok(());
        }
        let namespace = text_of(new, "namespace");
        let namespaces = self.definition_arc(self.namespaces);
        let Some(stored) = self.store.get(self.namespaces, &cluster_path(namespace)) else {
            return Err(Failure::not_found(&namespaces, namespace));
        };
        if stored.object["status"]["phase"] != "Terminating" {
            return Ok(());
        }
        let name = text_of(new, "name");
        let message = format!(
            "{} \"{name}\" is forbidden: unable to create new content in namespace {namespace} \
             because it is being terminated",
            definition.resource_name()
        );
        let mut failure = Failure::new(403, "Forbidden", message).about(definition, name);
        let cause = FieldError::new(
            "NamespaceTerminating",
            "metadata.namespace",
            format!("namespace {namespace} is being terminated"),
        );
        failure.details.get_or_insert_default().causes.push(cause);
        Err(failure)
    }

    fn generate_name(&mut self, new: &mut Value) {
        if !text_of(new, "name").is_empty() || text_of(new, "generateName").is_empty() {
            return;
        }
        let mut number = self.take_number().wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut name: String = text_of(new, "generateName").chars().take(58).collect();
        for _ in 0..5 {
            let letters = NAME_LETTERS.len() as u64;
            name.push(char::from(NAME_LETTERS[(number % letters) as usize]));
            number /= letters;
        }
        set(new, "name", Some(json!(name)));
    }

    /// Adds what the API server gives to a new object, and drops what clients may not give.
    fn complete_new(&mut self, definition: &KindDefinition, new: &mut Value) {
        for field in [
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "selfLink",
        ] {
            set(new, field, None);
        }
        let uid = format!("00000000-0000-4000-8000-{:012x}", self.take_number());
        set(new, "uid", Some(json!(uid)));
        let now = self.now.whole_seconds();
        set(new, "creationTimestamp", Some(json!(now)));
        let generation = definition.strategy.has_generation();
        set(new, "generation", generation.then_some(json!(1)));
        match definition.strategy {
            WriteStrategy::Namespace => {
                new["spec"] = json!({"finalizers": ["kubernetes"]});
                new["status"] = json!({"phase": "Active"});
                let name = text_of(new, "name").to_owned();
                new["metadata"]["labels"]["kubernetes.io/metadata.name"] = json!(name);
            }
            _ if definition.status == StatusSubresource::Present => {
                if let Some(fields) = new.as_object_mut() {
                    fields.shift_remove("status");
                }
            }
            _ => {}
        }
    }

    fn reject_invalid(
        &self,
        definition: &KindDefinition,
        object: &Value,
        errors: Vec<FieldError>,
    ) -> Result<(), Failure> {
        if errors.is_empty() {
            return Ok(());
        }
        let KindDefinition { group, kind, .. } = definition;
        Err(Failure::invalid(
            group,
            kind,
            text_of(object, "name"),
            errors,
        ))
    }

    /// Lets mutating webhooks change what is written; returns what they did, if there are any.
    fn mutate(
        &mut self,
        kind: KindId,
        endpoint: Endpoint,
        old: Option<&Value>,
        new: &mut Value,
    ) -> Result<Option<Mutation>, Failure> {
        if !self.has_webhook(kind, endpoint, old.is_none()) {
            return Ok(None);
        }
        let sent = new.clone();
        let number = self.take_number();
        for rule in &self.webhooks {
            let mutating = rule.stage == AdmissionStage::Mutating;
            if mutating && rule.applies(kind, endpoint, old.is_none()) {
                rule.verdict()?;
                let mut write = ReviewedWrite { old, new, number };
                rule.action.mutate(&mut write);
            }
        }
        let definition = self.definition_arc(kind);
        decode::patched(&definition, new).map_err(DecodeFailure::of_patch)?;
        let mutated = new.clone();
        Ok(Some(Mutation { sent, mutated }))
    }

    /// Lets validating webhooks deny what is written.
    fn validate(&self, kind: KindId, endpoint: Endpoint, creates: bool) -> Result<(), Failure> {
        self.webhooks
            .iter()
            .filter(|rule| rule.stage == AdmissionStage::Validating)
            .filter(|rule| rule.applies(kind, endpoint, creates))
            .try_for_each(AdmissionRule::verdict)
    }

    fn has_webhook(&self, kind: KindId, endpoint: Endpoint, creates: bool) -> bool {
        self.webhooks
            .iter()
            .any(|rule| rule.applies(kind, endpoint, creates))
    }

    pub(super) fn definition_arc(&self, kind: KindId) -> Arc<KindDefinition> {
        let Served { definition, .. } = &self.kinds[kind.0];
        Arc::clone(definition)
    }
}

/// The fields that no client owns after a write.
fn unowned_after(
    before: &Arc<UnownedFields>,
    old: &Value,
    mutation: Option<&Mutation>,
    new: &Value,
) -> Arc<UnownedFields> {
    match mutation {
        None if before.is_empty() => Arc::clone(before),
        None => Arc::new(before.after(old, new, new)),
        Some(Mutation { sent, mutated }) => Arc::new(before.after(old, sent, mutated)),
    }
}

/// The place of an object in etcd.
fn storage_key(definition: &KindDefinition, path: &ObjectPath) -> String {
    let mut key = "/registry".to_owned();
    let group = (definition.strategy == WriteStrategy::Custom).then_some(&*definition.group);
    for part in [
        group,
        Some(&definition.plural),
        Some(&path.namespace),
        Some(&path.name),
    ] {
        if let Some(part) = part.filter(|it| !it.is_empty()) {
            key.push('/');
            key.push_str(part);
        }
    }
    key
}

/// The name in a body must be that of the path.
fn check_name(path: &ObjectPath, new: &Value) -> Result<(), Failure> {
    let name = text_of(new, "name");
    if name == &*path.name {
        return Ok(());
    }
    let message = format!(
        "the name of the object ({name}) does not match the name on the URL ({})",
        path.name
    );
    Err(Failure::bad_request(message))
}

/// The status endpoint exists only where the kind has it.
fn check_endpoint(
    definition: &KindDefinition,
    path: &ObjectPath,
    endpoint: Endpoint,
) -> Result<(), Failure> {
    match (endpoint, definition.status, definition.strategy) {
        (Endpoint::Object, _, _) | (_, StatusSubresource::Present, _) => Ok(()),
        (_, StatusSubresource::Absent, WriteStrategy::Custom) => {
            Err(Failure::not_found(definition, &path.name))
        }
        _ => {
            let message = "the server could not find the requested resource";
            let details = Some(Box::default());
            Err(Failure {
                details,
                ..Failure::new(404, "NotFound", message)
            })
        }
    }
}

/// A version must be a number.
fn check_number(version: &str) -> Result<(), Failure> {
    if version.is_empty() || version.parse::<u64>().is_ok() {
        return Ok(());
    }
    let message = format!("strconv.ParseUint: parsing \"{version}\": invalid syntax");
    Err(Failure::new(500, "", message))
}

/// The version of the request must be that of the object, where it must give one.
fn check_version(
    definition: &KindDefinition,
    path: &ObjectPath,
    new: &mut Value,
    old: &Value,
) -> Result<(), Failure> {
    let (given, present) = (
        text_of(new, "resourceVersion"),
        text_of(old, "resourceVersion"),
    );
    if given == present {
        return Ok(());
    }
    check_number(given)?;
    if !matches!(given, "" | "0") {
        return Err(Failure::modified(definition, &path.name));
    }
    if !definition.strategy.updates_without_version() {
        let error = FieldError::invalid(
            "metadata.resourceVersion",
            "Invalid value: 0: must be specified for an update",
        );
        let KindDefinition { group, plural, .. } = definition;
        return Err(Failure::invalid(group, plural, &path.name, vec![error]));
    }
    copy(new, ["resourceVersion"], old);
    Ok(())
}

/// Restores what the endpoint may not change, and counts the generation.
fn prepare_update(definition: &KindDefinition, endpoint: Endpoint, new: &mut Value, old: &Value) {
    match (endpoint, definition.status) {
        (Endpoint::Status, _) => {
            let status = new.as_object_mut().and_then(|it| it.swap_remove("status"));
            *new = old.clone();
            put_status(new, status);
        }
        (Endpoint::Object, StatusSubresource::Present) => {
            let status = old.get("status");
            if new.get("status") != status {
                put_status(new, status.cloned());
            }
        }
        (Endpoint::Object, StatusSubresource::Absent) => {}
    }
    copy(new, ["generation"], old);
    if endpoint == Endpoint::Object
        && definition.strategy.has_generation()
        && !same_content(new, old)
    {
        set(new, "generation", Some(json!(generation(old) + 1)));
    }
    if text_of(new, "uid").is_empty() {
        copy(new, ["uid"], old);
    }
    copy(new, ["creationTimestamp", "selfLink"], old);
    let deletion = ["deletionTimestamp", "deletionGracePeriodSeconds"];
    let present = |field: &&str| metadata_of(old).is_some_and(|it| member(it, field).is_some());
    copy(new, deletion.into_iter().filter(present), old);
}

fn put_status(object: &mut Value, status: Option<Value>) {
    if let Some(fields) = object.as_object_mut() {
        match status {
            Some(status) => fields.insert("status".to_owned(), status),
            None => fields.shift_remove("status"),
        };
    }
}

/// The errors of the fields outside of the metadata.
fn content_errors(
    definition: &KindDefinition,
    endpoint: Endpoint,
    object: &Value,
) -> Vec<FieldError> {
    match (definition.strategy, endpoint) {
        (WriteStrategy::Custom, Endpoint::Object) => definition.schema.validate_object(object),
        (WriteStrategy::Custom, Endpoint::Status) => definition.schema.validate_status(object),
        (WriteStrategy::Lease, _) => lease_errors(&object["spec"]),
        _ => Vec::new(),
    }
}

fn lease_errors(spec: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Some(seconds) = spec["leaseDurationSeconds"].as_i64().filter(|it| *it <= 0) {
        let message = format!("Invalid value: {seconds}: must be greater than 0");
        errors.push(FieldError::invalid("spec.leaseDurationSeconds", message));
    }
    if let Some(count) = spec["leaseTransitions"].as_i64().filter(|it| *it < 0) {
        let message = format!("Invalid value: {count}: must be greater than or equal to 0");
        errors.push(FieldError::invalid("spec.leaseTransitions", message));
    }
    errors
}

fn already_exists(definition: &KindDefinition, name: &str, existing: &StoredObject) -> Failure {
    let deleting = !text_of(&existing.object, "deletionTimestamp").is_empty();
    let prefix = if deleting {
        "object is being deleted: "
    } else {
        ""
    };
    let message = format!(
        "{prefix}{} \"{name}\" already exists",
        definition.resource_name()
    );
    Failure::new(409, "AlreadyExists", message).about(definition, name)
}

/// Rejects an object that etcd would not take.
fn check_size(object: &Value) -> Result<(), Failure> {
    struct ByteCounter(usize);
    impl std::io::Write for ByteCounter {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    // JSON escapes a letter by six at most, and adds a few around each text and number.
    if decode::rough_length(object) < LARGEST_OBJECT / 16 {
        return Ok(());
    }
    let mut counter = ByteCounter(0);
    // The counter accepts everything.
    let _ = serde_json::to_writer(&mut counter, object);
    if counter.0 > LARGEST_OBJECT {
        return Err(Failure::new(500, "", "etcdserver: request is too large"));
    }
    Ok(())
}

pub(super) fn path_of(object: &Value) -> ObjectPath {
    ObjectPath {
        namespace: text_of(object, "namespace").into(),
        name: text_of(object, "name").into(),
    }
}

pub(super) fn cluster_path(name: &str) -> ObjectPath {
    ObjectPath {
        namespace: "".into(),
        name: name.into(),
    }
}
