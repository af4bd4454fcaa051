//! Answers admission reviews: finds the webhook, checks its filters, calls it, encodes the answer.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kopf_core::admission::configuration::WebhookNamespaces;
use kopf_core::admission::review::{
    AdmissionReview, Denial, Malformed, ReviewAnswer, ReviewRequest,
};
use kopf_core::admission::{FailurePolicy, Operation, ReviewedObject, WebhookSpec};
use kopf_core::object::diff::Baseline;
use kopf_core::object::essence::Essence;
use kopf_core::selection::DiscoveredResource;
use kube::Client;
use serde::Deserialize;
use serde_json::Value;
use tracing::{Instrument as _, debug, error, info_span};

use super::selected_kinds::SelectedKinds;
use crate::client::resource::{KindSpec, ResourceDescription, ResourceTarget};
use crate::context::filter::{FilterMemo, FilterOccasion, FilterResource, FilterScope};
use crate::context::validation::{Caller, ReviewInputs, ReviewedStates};
use crate::handler::memo::{AnyMemo, Memos};
use crate::health::metrics::{Metrics, ReviewOutcome, WebhookMetrics};
use crate::index::list_gate::GatedIndices;
use crate::registration::RegisteredWebhook;
use crate::registration::function::webhook::{ReviewFunction, ReviewResult, ReviewVerdict};

/// The first path segment of conversion webhooks; that of admission webhooks is their role.
const CONVERSIONS: &str = "convert";

/// Answers admission reviews; cheap to clone.
#[derive(Clone)]
pub struct Reviewer {
    routes: Arc<WebhookRoutes>,
}

struct WebhookRoutes {
    /// By the path in the webhook configuration.
    webhooks: HashMap<String, WebhookRoute>,
    namespaces: WebhookNamespaces,
    client: Client,
    lookup: GatedIndices,
    selected: SelectedKinds,
}

struct WebhookRoute {
    target: ResourceTarget,
    spec: WebhookSpec,
    function: Arc<dyn ReviewFunction>,
    param: Option<Arc<Value>>,
    memos: Option<Arc<Memos>>,
    /// None on a selection, whose resources differ by request.
    description: Option<ResourceDescription>,
    metrics: Arc<WebhookMetrics>,
}

/// A review that cannot be answered.
#[derive(Debug, thiserror::Error)]
pub enum ReviewError {
    /// No webhook has this path.
    #[error("there is no webhook at `{0}`")]
    UnknownWebhook(String),
    /// The path is that of a conversion webhook.
    #[error("nothing is converted at `{0}`: this operator has no conversion webhooks")]
    NoConversion(String),
    /// The text is not an admission review.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// The review is about another resource.
    #[error("the webhook at `{path}` is not about `{resource}`")]
    OtherResource {
        /// The path of the webhook.
        path: String,
        /// The resource of the review.
        resource: String,
    },
}

// === impl ReviewError ===

impl ReviewError {
    /// The HTTP status code for this error.
    #[must_use]
    pub fn status(&self) -> u16 {
        match self {
            Self::UnknownWebhook(_) | Self::NoConversion(_) | Self::OtherResource { .. } => 404,
            Self::Malformed(_) => 400,
        }
    }
}

// === impl Reviewer ===

impl Reviewer {
    pub(super) fn new(
        webhooks: Vec<(ResourceTarget, RegisteredWebhook)>,
        namespaces: WebhookNamespaces,
        client: Client,
        lookup: GatedIndices,
        selected: SelectedKinds,
        metrics: &Metrics,
    ) -> Self {
        let webhooks = webhooks.into_iter().map(|(target, mut webhook)| {
            let filter_scope = FilterScope {
                indices: lookup.indices.clone(),
                memo: FilterMemo::of_kind(webhook.memos.as_ref()),
                param: webhook.param.clone(),
                resource: FilterResource::OfRequest,
            };
            filter_scope.bind(&mut webhook.spec.filters);
            let path = selected.configured(&target, &webhook.spec).path();
            let id = webhook.spec.id.as_str();
            let metrics = match &target {
                ResourceTarget::Kind(kind) => metrics.webhook(kind.kind, kind.group, id),
                ResourceTarget::Selection(selector) => {
                    metrics.webhook(&selector.to_string(), "", id)
                }
            };
            let route = WebhookRoute {
                metrics,
                description: webhook.description,
                target,
                spec: webhook.spec,
                function: webhook.function,
                param: webhook.param,
                memos: webhook.memos,
            };
            (path, route)
        });
        Self {
            routes: Arc::new(WebhookRoutes {
                webhooks: webhooks.collect(),
                namespaces,
                client,
                lookup,
                selected,
            }),
        }
    }

    /// Answers an admission review for the webhook at this path, within the `timeout` of the API
    /// server, if it sends one.
    ///
    /// # Errors
    /// If there is no such webhook, or the text is not a review of its resource.
    pub async fn review(
        &self,
        path: &str,
        text: &[u8],
        caller: Caller,
        timeout: Option<Duration>,
    ) -> Result<Vec<u8>, ReviewError> {
        let route = self.routes.find(path)?;
        let review = AdmissionReview::parse(text)?;
        let Some(resource) = self.routes.resource_of(route, &review.request) else {
            let about = &review.request.resource;
            return Err(ReviewError::OtherResource {
                path: path.to_owned(),
                resource: format!("{}.{}", about.resource, about.group),
            });
        };
        let version = review.version;
        let request = Arc::new(review.request);
        let deciding = self
            .routes
            .decide(route, &request, resource, caller, timeout);
        let answer = deciding.await;
        let request = Arc::unwrap_or_clone(request);
        Ok(AdmissionReview { version, request }.answer(&answer))
    }
}

/// The memo of the object in a request; a new one, which is not kept, if it is being created.
fn recall(memos: &Memos, request: &ReviewRequest) -> AnyMemo {
    #[derive(Deserialize)]
    struct ObjectWithUid {
        metadata: MetadataWithUid,
    }
    #[derive(Deserialize)]
    struct MetadataWithUid {
        uid: String,
    }
    let body = match request.operation {
        Operation::Create => None,
        _ => request.body(),
    };
    let object = body.and_then(|body| serde_json::from_str::<ObjectWithUid>(body.get()).ok());
    match object {
        Some(object) => memos.anticipate(&object.metadata.uid),
        None => memos.fresh(),
    }
}

impl WebhookRoutes {
    /// The webhook at a path.
    fn find(&self, path: &str) -> Result<&WebhookRoute, ReviewError> {
        // Any client may send a long path; messages and logs have its first part only.
        let shortened = || path.chars().take(100).collect();
        match path.split('/').nth(1) {
            Some(CONVERSIONS) => Err(ReviewError::NoConversion(shortened())),
            _ => {
                let webhook = self.webhooks.get(path);
                webhook.ok_or_else(|| ReviewError::UnknownWebhook(shortened()))
            }
        }
    }

    /// The resource that a request is about; none if the webhook is for other ones.
    fn resource_of(
        &self,
        route: &WebhookRoute,
        request: &ReviewRequest,
    ) -> Option<Arc<DiscoveredResource>> {
        let about = &request.resource;
        match &route.target {
            ResourceTarget::Kind(kind) => {
                let is_same =
                    (about.group.as_str(), about.resource.as_str()) == (kind.group, kind.plural);
                let declared = || ResourceDescription::declared(&KindSpec::from(*kind));
                is_same.then(|| route.description.clone().unwrap_or_else(declared).get())
            }
            ResourceTarget::Selection(selector) => {
                let known = self.selected.of(selector).into_iter();
                let mut known =
                    known.filter(|it| (&it.group, &it.plural) == (&about.group, &about.resource));
                // Another replica may know a new kind earlier than this one.
                let new = || {
                    selector
                        .may_select(&about.group, &request.kind.kind, &about.resource)
                        .then(|| Arc::new(described_by(request)))
                };
                known.next().or_else(new)
            }
        }
    }

    async fn decide(
        &self,
        route: &WebhookRoute,
        request: &Arc<ReviewRequest>,
        resource: Arc<DiscoveredResource>,
        caller: Caller,
        timeout: Option<Duration>,
    ) -> ReviewAnswer {
        let spec = &route.spec;
        let namespace = request.namespace.as_deref();
        // A configuration that another program writes may send more than the webhook declares.
        if !spec.concerns(request.operation, request.subresource())
            || !namespace.is_none_or(|namespace| self.namespaces.includes(namespace))
        {
            return ReviewAnswer::allowed();
        }
        let received = Instant::now();
        let limit = limit(spec.timeout, timeout);
        // Filters may read indices, too.
        if let Err(missing) = self.lookup.complete(limit).await {
            let message = format!("the indices are not complete yet; missing: {missing}");
            return conclude(spec, ReviewResult::failed(message));
        }
        let caller = Arc::new(caller);
        let mut states = None;
        if spec.is_conditional() {
            let read = ReviewedStates::read(request);
            let occasion = FilterOccasion::Review {
                request: Arc::clone(request),
                caller: Arc::clone(&caller),
                resource: Arc::clone(&resource),
            };
            if !matches(spec, request.operation, &read, &occasion) {
                return ReviewAnswer::allowed();
            }
            states = Some(Arc::new(read));
        }
        let inputs = ReviewInputs {
            request: Arc::clone(request),
            caller,
            client: self.client.clone(),
            indices: self.lookup.indices.clone(),
            handler: spec.id.clone(),
            param: route.param.clone(),
            states,
            memo: route.memos.as_ref().map(|memos| recall(memos, request)),
            resource,
        };
        let time_left = limit.saturating_sub(received.elapsed());
        route.call(request, inputs, time_left).await
    }
}

impl WebhookRoute {
    /// Calls the webhook function, and counts its outcome.
    async fn call(
        &self,
        request: &ReviewRequest,
        inputs: ReviewInputs,
        limit: Duration,
    ) -> ReviewAnswer {
        let kind = match &self.target {
            ResourceTarget::Kind(kind) => kind.kind,
            ResourceTarget::Selection(_) => inputs.resource.kind.as_str(),
        };
        let span = info_span!(
            "review",
            kind,
            webhook = %self.spec.id,
            operation = %request.operation,
            namespace = request.namespace.as_deref(),
            name = request.name.as_deref(),
        );
        let called = Instant::now();
        let call = self.function.call(inputs, limit);
        let result = call.instrument(span.clone()).await;
        let outcome = match &result.verdict {
            ReviewVerdict::Allowed => ReviewOutcome::Allowed,
            ReviewVerdict::Denied(_) => ReviewOutcome::Denied,
            ReviewVerdict::Failed(_) => ReviewOutcome::Failed,
        };
        self.metrics.reviewed(outcome, called.elapsed());
        let _entered = span.enter();
        conclude(&self.spec, result)
    }
}

/// The answer to a review: the failure policy of the webhook decides about failures.
fn conclude(spec: &WebhookSpec, result: ReviewResult) -> ReviewAnswer {
    let ReviewResult {
        verdict,
        mut warnings,
        patch,
    } = result;
    let denial = match verdict {
        ReviewVerdict::Allowed => None,
        ReviewVerdict::Denied(denial) => {
            debug!(code = denial.code, "denied: {}", denial.message);
            Some(denial)
        }
        ReviewVerdict::Failed(message) => {
            let message = format!("webhook `{}` failed: {message}", spec.id);
            error!("{message}");
            match spec.on_failure {
                FailurePolicy::Ignore => {
                    warnings.push(message);
                    None
                }
                FailurePolicy::Refuse => Some(Denial { message, code: 500 }),
            }
        }
    };
    ReviewAnswer {
        denial,
        warnings,
        patch,
    }
}

/// Returns true if the filters of a webhook match a request.
fn matches(
    spec: &WebhookSpec,
    operation: Operation,
    states: &ReviewedStates,
    occasion: &FilterOccasion,
) -> bool {
    let essence = |state: &Option<Value>| Essence::from_value(state.clone().unwrap_or_default());
    let old = match &states.old {
        Some(_) => Baseline::Known(essence(&states.old)),
        None => Baseline::Absent,
    };
    let reviewed = ReviewedObject {
        body: states.body(),
        old: &old,
        new: &essence(&states.new),
        context: occasion,
    };
    spec.matches(operation, &reviewed)
}

/// The time for the webhook, so that the answer arrives before the API server gives up.
fn limit(declared: Duration, timeout: Option<Duration>) -> Duration {
    let limit = timeout.map_or(declared, |timeout| timeout.min(declared));
    limit.saturating_sub((limit / 10).min(Duration::from_secs(1)))
}

/// What a request says about its resource.
fn described_by(request: &ReviewRequest) -> DiscoveredResource {
    DiscoveredResource {
        group: request.resource.group.clone(),
        version: request.resource.version.clone(),
        kind: request.kind.kind.clone(),
        plural: request.resource.resource.clone(),
        singular: request.kind.kind.to_lowercase(),
        namespaced: request.namespace.is_some(),
        ..DiscoveredResource::default()
    }
}
