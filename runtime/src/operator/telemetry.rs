//! Traces for OpenTelemetry: spans of objects and attempts, sent by OTLP over HTTP.
//!
//! Where to is said by the usual variables; without them nothing is exported, and nothing is made
//! ready for it either.

mod sender;

use std::env;
use std::time::Duration;

use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{
    ExporterBuildError, OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT,
    SpanExporter, WithExportConfig as _, WithHttpConfig as _,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SdkTracerProvider, Tracer};
use tracing::Subscriber;
use tracing_opentelemetry::OpenTelemetryLayer;
use tracing_subscriber::registry::LookupSpan;

use self::sender::Sender;

/// How long the last spans may take to be sent.
const FAREWELL: Duration = Duration::from_secs(5);

/// The export of traces; what is left is sent when this is dropped.
pub(super) struct Telemetry {
    provider: SdkTracerProvider,
}

/// Why traces are not exported, though they should be.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("the sender could not be made ready")]
    Sender(#[source] std::io::Error),
    #[error("the exporter does not like its settings")]
    Exporter(#[source] ExporterBuildError),
}

impl Telemetry {
    /// The export that the environment asks for, if it does.
    pub(super) fn from_environment(operator: &'static str) -> Result<Option<Self>, Error> {
        let places = [
            OTEL_EXPORTER_OTLP_ENDPOINT,
            OTEL_EXPORTER_OTLP_TRACES_ENDPOINT,
        ];
        let wanted = places
            .iter()
            .any(|name| env::var_os(name).is_some_and(|place| !place.is_empty()));
        if !wanted {
            return Ok(None);
        }
        Self::new(operator, None).map(Some)
    }

    fn new(operator: &'static str, endpoint: Option<&str>) -> Result<Self, Error> {
        let sender = Sender::new().map_err(Error::Sender)?;
        let mut exporter = SpanExporter::builder().with_http().with_http_client(sender);
        if let Some(endpoint) = endpoint {
            exporter = exporter.with_endpoint(endpoint);
        }
        let exporter = exporter.build().map_err(Error::Exporter)?;
        // Both read the variables, too: OTEL_RESOURCE_ATTRIBUTES, OTEL_TRACES_SAMPLER and so on.
        let mut resource = Resource::builder();
        if env::var_os("OTEL_SERVICE_NAME").is_none() {
            resource = resource.with_service_name(operator);
        }
        let provider = SdkTracerProvider::builder()
            .with_resource(resource.build())
            .with_batch_exporter(exporter)
            .build();
        Ok(Self { provider })
    }

    /// What makes spans of the log into spans of a trace.
    pub(super) fn layer<S>(&self) -> OpenTelemetryLayer<S, Tracer>
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
    {
        tracing_opentelemetry::layer()
            .with_location(false)
            .with_threads(false)
            .with_tracer(self.provider.tracer("kopf-runtime"))
    }
}

impl Drop for Telemetry {
    fn drop(&mut self) {
        if let Err(error) = self.provider.shutdown_with_timeout(FAREWELL) {
            tracing::warn!("the last traces are lost: {error}");
        }
    }
}

#[cfg(test)]
mod tests;
