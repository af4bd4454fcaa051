//! The live page of an operator: what it does at this moment, as a page and as JSON.
//!
//! A thread of its own serves it. The page reads the journal and the metrics. It asks the API server
//! for nothing, unless the operator was started with `--page-edits`.

pub(crate) mod address;
mod allowed_hosts;
mod assets;
mod edits;
pub(crate) mod journal;
mod query;
mod response;
pub(crate) mod running_parts;
mod server;
mod stream;
mod view;

use std::io;
use std::net::TcpListener;

use tokio_util::sync::CancellationToken;
use tracing::info;

use self::address::PageSetup;
use self::allowed_hosts::AllowedHosts;
use self::edits::PageEdits;
use self::journal::PageJournal;
use self::running_parts::RunningParts;
use crate::coordination::pause::PauseGate;
use crate::health::metrics::Metrics;
use crate::task::SupervisedThread;
use crate::task::heartbeat::Heartbeats;

/// The parts of the operator that the page reads.
pub(crate) struct Page {
    pub(crate) operator: &'static str,
    pub(crate) version: Option<&'static str>,
    pub(crate) journal: PageJournal,
    pub(crate) heartbeats: Heartbeats,
    pub(crate) pause_gate: PauseGate,
    pub(crate) metrics: Metrics,
    pub(crate) serves_webhooks: bool,
    pub(crate) parts: RunningParts,
}

/// The page cannot be served.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The address is no loopback address.
    #[error(
        "{0} can be reached from other machines: use a loopback address, or name the hosts under \
         which the page may be opened by --page-host"
    )]
    NotLoopback(PageSetup),
    #[error("a page with edits is served to this machine only")]
    EditsFromElsewhere,
    #[error("cannot listen on {setup} for the page")]
    Listen {
        setup: PageSetup,
        #[source]
        source: io::Error,
    },
}

// === impl Page ===

impl Page {
    /// Starts to serve the page, until `stop`.
    pub(crate) fn serve(
        self,
        setup: &PageSetup,
        stop: CancellationToken,
    ) -> Result<SupervisedThread, Error> {
        let failed = |source| Error::Listen {
            setup: setup.clone(),
            source,
        };
        let addresses = setup.addresses().map_err(failed)?;
        let is_local = addresses.iter().all(|address| address.ip().is_loopback());
        if !is_local && setup.hosts().is_empty() {
            return Err(Error::NotLoopback(setup.clone()));
        }
        if setup.has_edits() && !(is_local && setup.hosts().is_empty()) {
            return Err(Error::EditsFromElsewhere);
        }
        let listener = TcpListener::bind(&*addresses).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let edits = match setup.has_edits() {
            true => Some(PageEdits::new().map_err(failed)?),
            false => None,
        };
        match &edits {
            // What follows the # is never sent to a server.
            Some(edits) => info!(
                "the page is served at http://{address}/#/?token={}",
                edits.token()
            ),
            None => info!("the page is served at http://{address}/"),
        }
        let service = server::PageService {
            page: self,
            hosts: AllowedHosts::new(setup.hosts()),
            edits,
        };
        SupervisedThread::start("page", move || server::run(listener, service, &stop))
            .map_err(failed)
    }
}
