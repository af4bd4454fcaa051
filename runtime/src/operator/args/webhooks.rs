//! The options for webhooks: those that a developer's machine serves, and names in a cluster.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::admission::{ConfigurationOwner, ServerChoice, Tunnel, Webhooks};

/// The writer of the webhook configurations, and the source of the certificates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum WebhookMode {
    /// The operator itself
    Managed,
    /// cert-manager, for configurations that you apply
    CertManager,
}

/// The options for webhooks.
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

    /// In a pod, the Service through which the cluster calls the webhooks, and the Secret of the same
    /// name with their certificates; by default the name of the operator and `-webhook`
    #[arg(long, value_name = "NAME", env = "KOPF_RUN_WEBHOOK_SERVICE")]
    webhook_service: Option<String>,

    /// The writer of the webhook configurations and certificates, if it is not that of kopf.yaml
    #[arg(long, value_enum, value_name = "MODE", env = "KOPF_RUN_WEBHOOK_MODE")]
    webhook_mode: Option<WebhookMode>,
}

impl WebhookArgs {
    pub(in crate::operator) fn apply_to(&self, webhooks: &mut Webhooks, operator: &str) {
        let Self {
            webhook_host,
            webhook_port,
            webhook_listen,
            webhook_ca_file,
            webhook_tunnel,
            webhook_configuration,
            webhook_service,
            webhook_mode,
        } = self.clone();
        match (webhook_mode, &webhooks.configuration) {
            (Some(WebhookMode::Managed), ConfigurationOwner::External) => {
                webhooks.configuration = ConfigurationOwner::Managed(None);
            }
            (Some(WebhookMode::CertManager), _) => {
                webhooks.configuration = ConfigurationOwner::External;
            }
            (Some(WebhookMode::Managed), ConfigurationOwner::Managed(_)) | (None, _) => {}
        }
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
        options.service = webhook_service.or(options.service.take());
        let service = options.service_name(operator);
        options.secret = match webhook_mode {
            Some(WebhookMode::Managed) => None,
            Some(WebhookMode::CertManager) => Some(service),
            // cert-manager stores the certificate of another Service elsewhere.
            None if self.webhook_service.is_some() => options.secret.as_ref().map(|_| service),
            None => options.secret.take(),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The writer of the configurations, the Service and the Secret.
    fn applied(
        args: &WebhookArgs,
        mut webhooks: Webhooks,
    ) -> (ConfigurationOwner, Option<String>, Option<String>) {
        args.apply_to(&mut webhooks, "widgets");
        let ServerChoice::Automatic(options) = webhooks.server else {
            panic!("the server is chosen");
        };
        (webhooks.configuration, options.service, options.secret)
    }

    #[test]
    fn a_release_names_the_service_and_with_cert_manager_the_secret() {
        let args = WebhookArgs {
            webhook_service: Some("mine-webhook".to_owned()),
            ..WebhookArgs::default()
        };
        let (_, service, secret) = applied(&args, Webhooks::default());
        assert_eq!(service.as_deref(), Some("mine-webhook"));
        assert_eq!(secret, None);
        let compiled = Webhooks::default().unmanaged();
        let compiled = compiled.certificates_in("widgets-webhook");
        let (_, _, secret) = applied(&args, compiled);
        assert_eq!(secret.as_deref(), Some("mine-webhook"));
    }

    #[test]
    fn the_mode_of_a_release_overrides_the_compiled_one() {
        let mode = |mode| WebhookArgs {
            webhook_mode: Some(mode),
            ..WebhookArgs::default()
        };
        let (writer, _, secret) = applied(&mode(WebhookMode::CertManager), Webhooks::default());
        assert_eq!(writer, ConfigurationOwner::External);
        assert_eq!(secret.as_deref(), Some("widgets-webhook"));
        let compiled = Webhooks::default().unmanaged();
        let compiled = compiled.certificates_in("widgets-webhook");
        let (writer, _, secret) = applied(&mode(WebhookMode::Managed), compiled);
        assert_eq!(writer, ConfigurationOwner::Managed(None));
        assert_eq!(secret, None);
    }
}
