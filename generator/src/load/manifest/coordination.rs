//! Reads `operator.peering` and `operator.leader_election`.

use schemars::JsonSchema;

use super::duration::ManifestDuration;
use super::mapping::MappingFields;
use super::reader::ManifestReader;
use super::spanned::Spanned;

/// How the operator treats other operators of the same objects: `standalone`, or options.
#[derive(Clone, Debug, PartialEq, JsonSchema)]
#[schemars(untagged)]
pub enum PeeringSection {
    /// It ignores them.
    Standalone(Spanned<Standalone>),
    /// It takes part in a peering.
    Options(PeeringOptions),
}

/// The word for an operator without peering.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "lowercase")]
pub enum Standalone {
    /// The operator ignores others.
    Standalone,
}

/// The options of a peering.
#[derive(Clone, Debug, PartialEq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PeeringOptions {
    /// The name of the ClusterKopfPeering or KopfPeering objects of the operators; if left out,
    /// `default`, if it exists.
    pub name: Option<Spanned<String>>,
    /// Whether the operator pauses until the peering exists; true if it has a name.
    pub mandatory: Option<Spanned<bool>>,
    /// Whether an operator of single namespaces joins the ClusterKopfPeering, not the KopfPeerings of
    /// its namespaces.
    pub clusterwide: Option<Spanned<bool>>,
    /// The operator with the highest priority works, the others pause; 0 if left out.
    #[schemars(range(min = -2_147_483_648i64, max = 2_147_483_647i64))]
    pub priority: Option<Spanned<i32>>,
    /// How long the other operators consider this one alive after a heartbeat; `60s` if left out.
    pub lifetime: Option<Spanned<ManifestDuration>>,
    /// Whether heartbeats are not logged.
    pub stealth: Option<Spanned<bool>>,
    /// The rule for operators of the same priority; all of them pause if left out.
    pub ties: Option<Spanned<Ties>>,
}

/// The rule for operators of the same priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case")]
pub enum Ties {
    /// All of them pause, as Kopf does.
    Pause,
    /// The one whose identity sorts first works.
    FirstIdentity,
}

/// The leader election among replicas.
#[derive(Clone, Debug, PartialEq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct LeaderElectionSection {
    /// The name of the Lease; that of the operator if left out.
    pub lease: Option<Spanned<String>>,
    /// A leader that does not renew its lease for this time is replaced; `15s` if left out.
    pub lease_duration: Option<Spanned<ManifestDuration>>,
    /// A leader that cannot renew its lease for this time stops; `10s` if left out.
    pub renew_deadline: Option<Spanned<ManifestDuration>>,
    /// The pause between renewals; `2s` if left out.
    pub retry_period: Option<Spanned<ManifestDuration>>,
}

const STANDALONE: &[(&str, Standalone)] = &[("standalone", Standalone::Standalone)];

const TIES: &[(&str, Ties)] = &[
    ("pause", Ties::Pause),
    ("first-identity", Ties::FirstIdentity),
];

impl ManifestReader<'_> {
    pub(super) fn peering(&mut self, fields: &mut MappingFields<'_>) -> Option<PeeringSection> {
        let node = fields.optional("peering")?;
        if node.as_str().is_some() {
            let word = self.word(node, "`peering`", STANDALONE)?;
            return Some(PeeringSection::Standalone(word));
        }
        let mut fields = self.fields(node, "`peering`")?;
        let options = PeeringOptions {
            name: self.optional_string(&mut fields, "name"),
            mandatory: self.boolean(&mut fields, "mandatory"),
            clusterwide: self.boolean(&mut fields, "clusterwide"),
            priority: self.integer(&mut fields, "priority"),
            lifetime: self.duration(&mut fields, "lifetime"),
            stealth: self.boolean(&mut fields, "stealth"),
            ties: fields
                .optional("ties")
                .and_then(|node| self.word(node, "`ties`", TIES)),
        };
        fields.finish(self);
        Some(PeeringSection::Options(options))
    }

    pub(super) fn leader_election(
        &mut self,
        fields: &mut MappingFields<'_>,
    ) -> Option<LeaderElectionSection> {
        let node = fields.optional("leader_election")?;
        let mut fields = self.fields(node, "`leader_election`")?;
        let section = LeaderElectionSection {
            lease: self.optional_string(&mut fields, "lease"),
            lease_duration: self.duration(&mut fields, "lease_duration"),
            renew_deadline: self.duration(&mut fields, "renew_deadline"),
            retry_period: self.duration(&mut fields, "retry_period"),
        };
        fields.finish(self);
        Some(section)
    }
}
