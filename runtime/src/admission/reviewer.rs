//! From the text of a review to the text of its answer, whoever transported it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kopf_core::admission::configuration::{ConfiguredWebhook, WebhookNamespaces};
use kopf_core::admission::review::{
    AdmissionReview, Denial, Malformed, ReviewAnswer, ReviewRequest,
};
use kopf_core::admission::{FailurePolicy, Operation, ReviewedObject, WebhookSpec};
use kopf_core::object::diff::Baseline;
use kopf_core::object::essence::Essence;
use kube::Client;
use serde::Deserialize;
use serde_json::Value;
use tracing::{Instrument as _, debug, error, info_span};

use crate::client::resource::{ResourceDescription, ResourceSpec};
use crate::context::validation::{Caller, ReviewFacts, States};
use crate::handler::memo::{AnyMemo, Memos};
use crate::health::metrics::{Metrics, ReviewOutcome, WebhookMetrics};
use crate::index::readiness::ReadyIndices;
use crate::registration::RegisteredWebhook;
use crate::registration::function::webhook::{ReviewFunction, ReviewVerdict};

/// Where the paths of conversions begin; those of webhooks begin with their roles.
const CONVERSIONS: &str = "convert";

/// Answers reviews; cheap to clone.
#[derive(Clone)]
pub struct Reviewer {
    routes: Arc<Routes>,
}

struct Routes {
    /// By path, as the configuration has it.
    webhooks: HashMap<String, Route>,
    reach: WebhookNamespaces,
    client: Client,
    lookup: ReadyIndices,
}

struct Route {
    resource: ResourceSpec,
    spec: WebhookSpec,
    function: Arc<dyn ReviewFunction>,
    param: Option<Arc<Value>>,
    memos: Option<Arc<Memos>>,
    description: ResourceDescription,
    metrics: Arc<WebhookMetrics>,
}

/// Why a review got no answer.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// Nothing is served there.
    #[error("there is no webhook at `{0}`")]
    UnknownWebhook(String),
    /// Conversions between versions would be asked for there.
    #[error(
        "nothing is converted at `{0}`: the versions of no kind are converted by this operator"
    )]
    NoConversion(String),
    /// The text is not a review.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// The review is about another kind of objects.
    #[error("the webhook at `{path}` is not about `{resource}`")]
    OtherResource {
        /// The path of the webhook.
        path: String,
        /// What the review is about.
        resource: String,
    },
}

// === impl Refusal ===

impl Refusal {
    /// The HTTP status that says the same.
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
        webhooks: Vec<(ResourceSpec, RegisteredWebhook)>,
        reach: WebhookNamespaces,
        client: Client,
        lookup: ReadyIndices,
        metrics: &Metrics,
    ) -> Self {
        let webhooks = webhooks.into_iter().map(|(resource, webhook)| {
            let path = configured(&resource, &webhook.spec).path();
            let id = webhook.spec.id.as_str();
            let route = Route {
                metrics: metrics.webhook(resource.kind, resource.group, id),
                description: webhook
                    .description
                    .unwrap_or_else(|| ResourceDescription::declared(&resource.into())),
                resource,
                spec: webhook.spec,
                function: webhook.function,
                param: webhook.param,
                memos: webhook.memos,
            };
            (path, route)
        });
        Self {
            routes: Arc::new(Routes {
                webhooks: webhooks.collect(),
                reach,
                client,
                lookup,
            }),
        }
    }

    /// Answers a review that came for the webhook at this path, within `patience` if the API
    /// server says how long it waits.
    ///
    /// # Errors
    /// If there is no such webhook, or the text is not a review of its kind.
    pub async fn review(
        &self,
        path: &str,
        text: &[u8],
        caller: Caller,
        patience: Option<Duration>,
    ) -> Result<Vec<u8>, Refusal> {
        let route = self.routes.find(path)?;
        let review = AdmissionReview::parse(text)?;
        let about = &review.request.resource;
        if (about.group.as_str(), about.resource.as_str())
            != (route.resource.group, route.resource.plural)
        {
            return Err(Refusal::OtherResource {
                path: path.to_owned(),
                resource: format!("{}.{}", about.resource, about.group),
            });
        }
        let version = review.version;
        let request = Arc::new(review.request);
        let answer = self.routes.decide(route, &request, caller, patience).await;
        let request = Arc::unwrap_or_clone(request);
        Ok(AdmissionReview { version, request }.answer(&answer))
    }
}

/// The memo of the object that a request is about; one that is being created has none to last.
fn recall(memos: &Memos, request: &ReviewRequest) -> AnyMemo {
    #[derive(Deserialize)]
    struct Identified {
        metadata: Identity,
    }
    #[derive(Deserialize)]
    struct Identity {
        uid: String,
    }
    let body = match request.operation {
        Operation::Create => None,
        _ => request.body(),
    };
    let known = body.and_then(|body| serde_json::from_str::<Identified>(body.get()).ok());
    match known {
        Some(known) => memos.anticipate(&known.metadata.uid),
        None => memos.fresh(),
    }
}

impl Routes {
    /// What a path leads to: its first segment tells what sort of review is expected there.
    fn find(&self, path: &str) -> Result<&Route, Refusal> {
        // Strangers may send anything; what is told and logged of it is short.
        let told = || path.chars().take(100).collect();
        match path.split('/').nth(1) {
            Some(CONVERSIONS) => Err(Refusal::NoConversion(told())),
            _ => {
                let webhook = self.webhooks.get(path);
                webhook.ok_or_else(|| Refusal::UnknownWebhook(told()))
            }
        }
    }

    async fn decide(
        &self,
        route: &Route,
        request: &Arc<ReviewRequest>,
        caller: Caller,
        patience: Option<Duration>,
    ) -> ReviewAnswer {
        let spec = &route.spec;
        let namespace = request.namespace.as_deref();
        // An unmanaged configuration may ask for more than the webhook is about.
        if !spec.concerns(request.operation, request.subresource())
            || !namespace.is_none_or(|namespace| self.reach.includes(namespace))
        {
            return ReviewAnswer::allowed();
        }
        let began = Instant::now();
        let limit = limit(spec.timeout, patience);
        // Conditions may look into the indices, too.
        if let Err(missing) = self.lookup.complete(limit).await {
            let message = format!("the indices are not complete yet; missing: {missing}");
            let answer = |denial, warnings| ReviewAnswer {
                denial,
                warnings,
                patch: None,
            };
            return conclude(spec, ReviewVerdict::Failed(message), Vec::new(), answer);
        }
        let mut states = None;
        if spec.is_conditional() {
            let read = States::read(request);
            if !matches(spec, request, &read) {
                return ReviewAnswer::allowed();
            }
            states = Some(Arc::new(read));
        }
        let facts = ReviewFacts {
            request: Arc::clone(request),
            caller: Arc::new(caller),
            client: self.client.clone(),
            indices: self.lookup.indices.clone(),
            handler: spec.id.clone(),
            param: route.param.clone(),
            states,
            memo: route.memos.as_ref().map(|memos| recall(memos, request)),
            resource: route.description.get(),
        };
        let span = info_span!(
            "review",
            kind = route.resource.kind,
            webhook = %spec.id,
            operation = %request.operation,
            namespace,
            name = request.name.as_deref(),
        );
        let begun = Instant::now();
        let reviewed = route
            .function
            .call(facts, limit.saturating_sub(began.elapsed()))
            .instrument(span.clone())
            .await;
        let counted = match &reviewed.verdict {
            ReviewVerdict::Allowed => ReviewOutcome::Allowed,
            ReviewVerdict::Denied(_) => ReviewOutcome::Denied,
            ReviewVerdict::Failed(_) => ReviewOutcome::Failed,
        };
        route.metrics.reviewed(counted, begun.elapsed());
        let _entered = span.enter();
        conclude(
            spec,
            reviewed.verdict,
            reviewed.warnings,
            |denial, warnings| ReviewAnswer {
                denial,
                warnings,
                patch: reviewed.patch,
            },
        )
    }
}

fn conclude(
    spec: &WebhookSpec,
    verdict: ReviewVerdict,
    mut warnings: Vec<String>,
    answer: impl FnOnce(Option<Denial>, Vec<String>) -> ReviewAnswer,
) -> ReviewAnswer {
    match verdict {
        ReviewVerdict::Allowed => answer(None, warnings),
        ReviewVerdict::Denied(denial) => {
            debug!(code = denial.code, "denied: {}", denial.message);
            answer(Some(denial), warnings)
        }
        ReviewVerdict::Failed(message) => {
            let message = format!("webhook `{}` failed: {message}", spec.id);
            error!("{message}");
            match spec.on_failure {
                FailurePolicy::Ignore => {
                    warnings.push(message);
                    answer(None, warnings)
                }
                FailurePolicy::Refuse => answer(Some(Denial { message, code: 500 }), warnings),
            }
        }
    }
}

/// Whether the conditions of a webhook hold for a request.
fn matches(spec: &WebhookSpec, request: &ReviewRequest, states: &States) -> bool {
    let essence = |state: &Option<Value>| Essence::from_value(state.clone().unwrap_or_default());
    let old = match &states.old {
        Some(_) => Baseline::Known(essence(&states.old)),
        None => Baseline::Absent,
    };
    let sight = ReviewedObject {
        body: states.body(),
        old: &old,
        new: &essence(&states.new),
    };
    spec.matches(request.operation, &sight)
}

/// The answer must be on its way before the API server gives up.
fn limit(timeout: Duration, patience: Option<Duration>) -> Duration {
    let limit = patience.map_or(timeout, |patience| patience.min(timeout));
    limit.saturating_sub((limit / 10).min(Duration::from_secs(1)))
}

/// A webhook as the configuration describes it.
pub(super) fn configured<'a>(
    resource: &ResourceSpec,
    spec: &'a WebhookSpec,
) -> ConfiguredWebhook<'a> {
    ConfiguredWebhook {
        group: resource.group,
        version: resource.version,
        plural: resource.plural,
        spec,
    }
}

impl std::fmt::Debug for Reviewer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reviewer").finish_non_exhaustive()
    }
}
