//! Peering with other operators on the same objects, and leader election among replicas.

use std::time::Duration;

use crate::diagnostic::{Code, Diagnostic, Diagnostics, Span};
use crate::load::manifest::{
    LeaderElectionSection, Manifest, ManifestDuration, PeeringOptions, PeeringSection, Spanned,
    Ties,
};

use crate::load::names::{NameRule, QuotedName};

/// The peering of an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Peering {
    /// It ignores other operators.
    Standalone,
    /// It joins the peering if that exists.
    Auto(Membership),
    /// It joins the peering, and pauses until that exists.
    Mandatory(Membership),
}

/// The options with which an operator joins a peering.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    /// The name of the peering; Kopf's default if `None`.
    pub name: Option<String>,
    /// Whether it is the ClusterKopfPeering also for an operator of single namespaces.
    pub clusterwide: bool,
    /// The priority, if it is not zero.
    pub priority: i32,
    /// The lifetime of its peering record, if it is not the default.
    pub lifetime: Option<Duration>,
    /// Whether keep-alives are not logged.
    pub stealth: bool,
    /// The rule for operators of the same priority.
    pub ties: Ties,
}

/// The leader election among the replicas of an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaderElection {
    /// The name of the Lease.
    pub lease: String,
    /// The duration of the lease, if it is not the default.
    pub lease_duration: Option<Duration>,
    /// The time after which a leader that cannot renew stops, if it is not the default.
    pub renew_deadline: Option<Duration>,
    /// The time between renewals, if it is not the default.
    pub retry_period: Option<Duration>,
}

/// The name of the peering that operators join by default.
pub const DEFAULT_PEERING: &str = "default";

const DEFAULT_LEASE: Duration = Duration::from_secs(15);
const DEFAULT_DEADLINE: Duration = Duration::from_secs(10);
const DEFAULT_RETRY: Duration = Duration::from_secs(2);

/// Lowers `peering` and `leader_election` of the manifest, and reports wrong values.
pub(super) fn lower(
    manifest: &Manifest,
    diagnostics: &mut Diagnostics,
) -> (Peering, Option<LeaderElection>) {
    let mut checks = CoordinationChecks {
        manifest,
        diagnostics,
    };
    let operator = &manifest.operator;
    let election = operator.leader_election.as_ref();
    let election = election.map(|section| checks.election(section));
    let peering = match &operator.peering {
        Some(PeeringSection::Standalone(_)) => Peering::Standalone,
        Some(PeeringSection::Options(options)) => checks.peering(options),
        // With leader election, peering is off unless the manifest asks for it.
        None if election.is_some() => Peering::Standalone,
        None => Peering::Auto(Membership::default()),
    };
    (peering, election)
}

struct CoordinationChecks<'a> {
    manifest: &'a Manifest,
    diagnostics: &'a mut Diagnostics,
}

impl CoordinationChecks<'_> {
    fn peering(&mut self, options: &PeeringOptions) -> Peering {
        if let Some(name) = &options.name {
            self.name(name, "a peering");
        }
        if let Some(lifetime) = &options.lifetime {
            self.whole_seconds(lifetime, "lifetime");
        }
        let membership = Membership {
            name: options.name.as_ref().map(|it| it.value.clone()),
            clusterwide: options.clusterwide.as_ref().is_some_and(|it| it.value),
            priority: options.priority.as_ref().map_or(0, |it| it.value),
            lifetime: value(options.lifetime.as_ref()),
            stealth: options.stealth.as_ref().is_some_and(|it| it.value),
            ties: options.ties.as_ref().map_or(Ties::Pause, |it| it.value),
        };
        let mandatory = options.mandatory.as_ref().map(|it| it.value);
        if mandatory.unwrap_or(options.name.is_some()) {
            Peering::Mandatory(membership)
        } else {
            Peering::Auto(membership)
        }
    }

    fn election(&mut self, section: &LeaderElectionSection) -> LeaderElection {
        if let Some(lease) = &section.lease {
            self.name(lease, "a Lease");
        }
        if let Some(duration) = &section.lease_duration {
            self.whole_seconds(duration, "lease_duration");
        }
        let election = LeaderElection {
            lease: section.lease.as_ref().map_or_else(
                || self.manifest.operator.name.value.clone(),
                |lease| lease.value.clone(),
            ),
            lease_duration: value(section.lease_duration.as_ref()),
            renew_deadline: value(section.renew_deadline.as_ref()),
            retry_period: value(section.retry_period.as_ref()),
        };
        let lease = election.lease_duration.unwrap_or(DEFAULT_LEASE);
        let deadline = election.renew_deadline.unwrap_or(DEFAULT_DEADLINE);
        let retry = election.retry_period.unwrap_or(DEFAULT_RETRY);
        let place = |it: &Option<Spanned<ManifestDuration>>| it.as_ref().map(|it| it.span);
        let [in_lease, in_deadline, in_retry] = [
            &section.lease_duration,
            &section.renew_deadline,
            &section.retry_period,
        ]
        .map(place);
        if deadline >= lease {
            self.error(
                in_deadline.or(in_lease),
                format!("`renew_deadline` ({deadline:?}) must be shorter than `lease_duration` ({lease:?})"),
                "a leader must stop before another may start",
            );
        }
        if retry.is_zero() || retry >= deadline {
            self.error(
                in_retry.or(in_deadline),
                format!("`retry_period` ({retry:?}) must be shorter than `renew_deadline` ({deadline:?}), and not zero"),
                "a leader must renew the lease in time",
            );
        }
        election
    }

    fn whole_seconds(&mut self, duration: &Spanned<ManifestDuration>, key: &str) {
        let value = duration.value.0;
        if value.is_zero() || value.subsec_nanos() != 0 {
            self.error(
                Some(duration.span),
                format!("`{key}` must be whole seconds, at least one"),
                "other operators read it as a whole number of seconds",
            );
        }
    }

    fn name(&mut self, name: &Spanned<String>, what: &str) {
        if !NameRule::Subdomain.accepts(&name.value) {
            self.error(
                Some(name.span),
                format!("{} cannot name {what}", QuotedName(&name.value)),
                "lower-case letters, digits, dashes and dots",
            );
        }
    }

    fn error(&mut self, span: Option<Span>, message: String, label: &str) {
        let span = span.unwrap_or(self.manifest.operator.name.span);
        let diagnostic = Diagnostic::error(Code::PeersOption, message);
        self.diagnostics
            .push(diagnostic.at(self.manifest.source, span, label));
    }
}

fn value(duration: Option<&Spanned<ManifestDuration>>) -> Option<Duration> {
    duration.map(|it| it.value.0)
}

// === impl Peering ===

impl Peering {
    /// The options of the peering, unless the operator is standalone.
    #[must_use]
    pub fn membership(&self) -> Option<&Membership> {
        match self {
            Self::Standalone => None,
            Self::Auto(membership) | Self::Mandatory(membership) => Some(membership),
        }
    }

    /// Whether `deploy/` contains the peering: only one that the manifest names or requires.
    #[must_use]
    pub fn is_deployed(&self) -> bool {
        self.membership().is_some_and(|it| it.name.is_some()) || matches!(self, Self::Mandatory(_))
    }
}

// === impl Membership ===

impl Default for Membership {
    fn default() -> Self {
        Self {
            name: None,
            clusterwide: false,
            priority: 0,
            lifetime: None,
            stealth: false,
            ties: Ties::Pause,
        }
    }
}

impl Membership {
    /// The name of the peering.
    #[must_use]
    pub fn peering(&self) -> &str {
        self.name.as_deref().unwrap_or(DEFAULT_PEERING)
    }
}
