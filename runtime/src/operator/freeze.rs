//! The commands `freeze` and `resume`: write or remove a record in a peering, to pause operators.

use std::time::Duration;

use kopf_core::peering::Peer;
use kube::Client;
use tracing::info;

use super::args::{FreezeArgs, ResumeArgs};
use super::{Error, Namespaces, Operator, identity};
use crate::coordination::peering::PeeringRef;

impl Operator {
    /// Pauses the operators of a peering for a while.
    pub(super) async fn freeze(self, client: Client, args: &FreezeArgs) -> Result<(), Error> {
        let peerings = self.peerings(
            &client,
            args.peering.as_deref(),
            &args.namespace,
            args.all_namespaces,
        )?;
        let peer = Peer {
            identity: args.id.clone().unwrap_or_else(identity::of_user),
            priority: args.priority(),
            lifetime: Duration::from_secs(args.lifetime.into()),
            lastseen: kopf_core::time::to_micros(self.clock.now()),
        };
        // A record without a lifetime is removed instead.
        let record = Some(&peer).filter(|peer| !peer.lifetime.is_zero());
        for peering in peerings {
            set(&peering, &peer.identity, record).await?;
            info!(
                "operators with a priority below {} pause for {} s: {} in {}",
                peer.priority,
                peer.lifetime.as_secs(),
                peer.identity,
                describe(&peering)
            );
        }
        Ok(())
    }

    /// Lets the operators of a peering continue.
    pub(super) async fn unfreeze(self, client: Client, args: &ResumeArgs) -> Result<(), Error> {
        let peerings = self.peerings(
            &client,
            args.peering.as_deref(),
            &args.namespace,
            args.all_namespaces,
        )?;
        let identity = args.id.clone().unwrap_or_else(identity::of_user);
        for peering in peerings {
            set(&peering, &identity, None).await?;
            info!(
                "operators may continue: {identity} is not in {} any more",
                describe(&peering)
            );
        }
        Ok(())
    }

    fn peerings(
        &self,
        client: &Client,
        peering: Option<&str>,
        namespaces: &[String],
        all_namespaces: bool,
    ) -> Result<Vec<PeeringRef>, Error> {
        let is_given = !namespaces.is_empty() || all_namespaces;
        let served = match &self.namespaces {
            _ if self.peering.clusterwide && !is_given => namespaces,
            Namespaces::Only(served) if !is_given => served,
            Namespaces::Matching(_) if !is_given => {
                let hint = "name the namespaces: the operator serves all that match its patterns";
                return Err(Error::Peering(hint.to_owned()));
            }
            Namespaces::All | Namespaces::Only(_) | Namespaces::Matching(_) => namespaces,
        };
        let namespaces: Vec<Option<String>> = if served.is_empty() {
            vec![None]
        } else {
            served.iter().cloned().map(Some).collect()
        };
        let peering = |namespace| PeeringRef {
            client: client.clone(),
            name: peering.unwrap_or(&self.peering.name).to_owned(),
            namespace,
        };
        Ok(namespaces.into_iter().map(peering).collect())
    }
}

async fn set(peering: &PeeringRef, identity: &str, peer: Option<&Peer>) -> Result<(), Error> {
    match peering.set(identity, peer).await {
        Ok(0) => Err(Error::Peering(format!("there is no {}", describe(peering)))),
        Ok(_) => Ok(()),
        Err(error) => Err(Error::Peering(error.to_string())),
    }
}

fn describe(peering: &PeeringRef) -> String {
    match &peering.namespace {
        Some(namespace) => format!(
            "KopfPeering {:?} in the namespace {namespace:?}",
            peering.name
        ),
        None => format!("ClusterKopfPeering {:?}", peering.name),
    }
}
