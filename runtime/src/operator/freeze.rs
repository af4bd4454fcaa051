//! The commands that pause operators by hand: a record in the peering, written or removed.

use std::time::Duration;

use kopf_core::peering::Peer;
use kube::Client;
use tracing::info;

use super::args::{FreezeArgs, ResumeArgs};
use super::{Error, Namespaces, Operator, identity};
use crate::coordination::peering::Seat;

impl Operator {
    /// Makes the operators of a peering pause for a while.
    pub(super) async fn freeze(self, client: Client, args: &FreezeArgs) -> Result<(), Error> {
        let seats = self.seats(
            &client,
            args.peering.as_deref(),
            &args.namespace,
            args.all_namespaces,
        )?;
        let peer = Peer {
            identity: args.id.clone().unwrap_or_else(identity::of_person),
            priority: args.priority(),
            lifetime: Duration::from_secs(args.lifetime.into()),
            lastseen: kopf_core::time::to_micros(self.clock.now()),
        };
        // A record that counts for no time is none.
        let record = Some(&peer).filter(|peer| !peer.lifetime.is_zero());
        for seat in seats {
            set(&seat, &peer.identity, record).await?;
            info!(
                "operators with a priority below {} pause for {} s: {} in {}",
                peer.priority,
                peer.lifetime.as_secs(),
                peer.identity,
                describe(&seat)
            );
        }
        Ok(())
    }

    /// Lets the operators of a peering go on.
    pub(super) async fn unfreeze(self, client: Client, args: &ResumeArgs) -> Result<(), Error> {
        let seats = self.seats(
            &client,
            args.peering.as_deref(),
            &args.namespace,
            args.all_namespaces,
        )?;
        let identity = args.id.clone().unwrap_or_else(identity::of_person);
        for seat in seats {
            set(&seat, &identity, None).await?;
            info!(
                "operators may go on: {identity} is not in {} any more",
                describe(&seat)
            );
        }
        Ok(())
    }

    fn seats(
        &self,
        client: &Client,
        peering: Option<&str>,
        namespaces: &[String],
        all_namespaces: bool,
    ) -> Result<Vec<Seat>, Error> {
        let asked = !namespaces.is_empty() || all_namespaces;
        let served = match &self.namespaces {
            Namespaces::Only(served) if !asked => served,
            Namespaces::Matching(_) if !asked => {
                let hint = "name the namespaces, for the operator serves whichever match patterns";
                return Err(Error::Peering(hint.to_owned()));
            }
            Namespaces::All | Namespaces::Only(_) | Namespaces::Matching(_) => namespaces,
        };
        let places: Vec<Option<String>> = if served.is_empty() {
            vec![None]
        } else {
            served.iter().cloned().map(Some).collect()
        };
        let seat = |namespace| Seat {
            client: client.clone(),
            name: peering.unwrap_or(&self.peering.name).to_owned(),
            namespace,
        };
        Ok(places.into_iter().map(seat).collect())
    }
}

async fn set(seat: &Seat, identity: &str, peer: Option<&Peer>) -> Result<(), Error> {
    match seat.set(identity, peer).await {
        Ok(0) => Err(Error::Peering(format!("there is no {}", describe(seat)))),
        Ok(_) => Ok(()),
        Err(error) => Err(Error::Peering(error.to_string())),
    }
}

fn describe(seat: &Seat) -> String {
    match &seat.namespace {
        Some(namespace) => format!("KopfPeering {:?} in the namespace {namespace:?}", seat.name),
        None => format!("ClusterKopfPeering {:?}", seat.name),
    }
}
