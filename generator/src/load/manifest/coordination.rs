//! What the manifest says about other operators on the same objects, and about replicas.

use schemars::JsonSchema;

use super::duration::ManifestDuration;
use super::mapping::MappingFields;
use super::reader::ManifestReader;
use super::spanned::Spanned;

/// How the operator gets along with others on the same objects: `standalone`, or options.
#[derive(Clone, Debug, PartialEq, JsonSchema)]
#[schemars(untagged)]
pub enum PeeringSection {
    /// It takes no notice of others.
    Standalone(Spanned<Standalone>),
    /// It looks for others, in this way.
    Options(PeeringOptions),
}

/// The word for an operator that takes no notice of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "lowercase")]
pub enum Standalone {
    /// It takes no notice of others.
    Standalone,
}

/// How the operator looks for others, and what it does if it finds some.
#[derive(Clone, Debug, PartialEq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PeeringOptions {
    /// The name of the ClusterKopfPeering or the KopfPeering objects by which operators meet;
    /// `default`, if there is one, if left out.
    pub name: Option<Spanned<String>>,
    /// Whether the operator pauses until the peering exists; true if it has a name.
    pub mandatory: Option<Spanned<bool>>,
    /// The operator with the highest priority goes ahead, the others pause; 0 if left out.
    #[schemars(range(min = -2_147_483_648i64, max = 2_147_483_647i64))]
    pub priority: Option<Spanned<i32>>,
    /// How long others believe that the operator is alive without hearing of it; `60s` if left out.
    pub lifetime: Option<Spanned<ManifestDuration>>,
    /// Whether signs of life are kept out of the log.
    pub stealth: Option<Spanned<bool>>,
    /// What happens among operators of the same priority; all of them pause if left out.
    pub ties: Option<Spanned<Ties>>,
}

/// What happens among operators of the same priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case")]
pub enum Ties {
    /// All of them pause, as Kopf does.
    Pause,
    /// The one whose identity sorts first goes ahead.
    FirstIdentity,
}

/// How one of several replicas is made the only one that acts.
#[derive(Clone, Debug, PartialEq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct LeaderElectionSection {
    /// The name of the Lease; that of the operator if left out.
    pub lease: Option<Spanned<String>>,
    /// A leader that is not heard of for so long is replaced; `15s` if left out.
    pub lease_duration: Option<Spanned<ManifestDuration>>,
    /// A leader that cannot renew its lease for so long stops; `10s` if left out.
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
