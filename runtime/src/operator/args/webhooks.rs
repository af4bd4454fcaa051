//! The options for webhooks that a developer's machine serves.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::Args;

use crate::admission::{ConfigurationOwner, ServerChoice, Tunnel, Webhooks};

/// The options for webhooks that the operator serves outside of the cluster.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Webhooks")]
pub(in crate::operator) struct WebhookArgs {
    /// The name under which the cluster reaches this machine, to serve webhooks
    #[arg(long, value_name = "HOST", env = "KOPF_RUN_WEBHOOK_HOST")]
    webhook_host: Option<String>,

    /// The port for webhooks; any free one by default
    #[arg(long, value_name = "PORT", env = "KOPF_RUN_WEBHOOK_PORT")]
    webhook_port: Option<u16>,

    /// The address to listen on for webhooks; by default loopback, or all addresses if the cluster is
    /// not on this machine itself
    #[arg(long, value_name = "ADDRESS", env = "KOPF_RUN_WEBHOOK_LISTEN")]
    webhook_listen: Option<IpAddr>,

    /// Write the certificate authority of the webhook server to this file, for `curl --cacert`
    #[arg(long, value_name = "FILE", env = "KOPF_RUN_WEBHOOK_CA_FILE")]
    webhook_ca_file: Option<PathBuf>,

    /// Serve webhooks through a tunnel, unless the cluster reaches this machine by itself: `ngrok`, or
    /// a command with `{port}` that prints its public address, to which every client can send requests
    #[arg(
        long,
        value_name = "COMMAND",
        env = "KOPF_RUN_WEBHOOK_TUNNEL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "ngrok",
        value_parser = Tunnel::parse
    )]
    webhook_tunnel: Option<Tunnel>,

    /// The name of the webhook configurations, for an operator that runs beside another of its kind
    #[arg(long, value_name = "NAME", env = "KOPF_RUN_WEBHOOK_CONFIGURATION")]
    webhook_configuration: Option<String>,
}

impl WebhookArgs {
    pub(in crate::operator) fn apply_to(&self, webhooks: &mut Webhooks) {
        let Self {
            webhook_host,
            webhook_port,
            webhook_listen,
            webhook_ca_file,
            webhook_tunnel,
            webhook_configuration,
        } = self.clone();
        if let (Some(name), ConfigurationOwner::Managed(managed)) =
            (webhook_configuration, &mut webhooks.configuration)
        {
            *managed = Some(name);
        }
        let ServerChoice::Automatic(options) = &mut webhooks.server else {
            return;
        };
        options.host = webhook_host.or(options.host.take());
        options.port = webhook_port.or(options.port);
        options.listen = webhook_listen.or(options.listen);
        options.ca_file = webhook_ca_file.or(options.ca_file.take());
        options.tunnel = webhook_tunnel.or(options.tunnel.take());
    }
}
