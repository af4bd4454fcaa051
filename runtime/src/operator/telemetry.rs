//! Exports the spans of objects and attempts as OpenTelemetry traces, by OTLP over HTTP.
//!
//! The usual `OTEL_` variables name the collector; without them this does nothing.

mod http_client;

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

use self::http_client::TraceHttpClient;

/// The time to send the last spans.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);

/// The export of traces; dropping it sends the spans that are left.
pub(super) struct Telemetry {
    provider: SdkTracerProvider,
}

/// The reason for which traces are not exported, though the environment asks for it.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("the HTTP client could not be started")]
    HttpClient(#[source] std::io::Error),
    #[error("the exporter rejects its settings")]
    Exporter(#[source] ExporterBuildError),
}

impl Telemetry {
    /// The export, if the environment asks for one.
    pub(super) fn from_environment(operator: &'static str) -> Result<Option<Self>, Error> {
        let variables = [
            OTEL_EXPORTER_OTLP_ENDPOINT,
            OTEL_EXPORTER_OTLP_TRACES_ENDPOINT,
        ];
        let wanted = variables
            .iter()
            .any(|name| env::var_os(name).is_some_and(|value| !value.is_empty()));
        if !wanted {
            return Ok(None);
        }
        Self::new(operator, None).map(Some)
    }

    fn new(operator: &'static str, endpoint: Option<&str>) -> Result<Self, Error> {
        let client = TraceHttpClient::new().map_err(Error::HttpClient)?;
        let mut exporter = SpanExporter::builder().with_http().with_http_client(client);
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

    /// The layer that turns spans of the log into spans of a trace.
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
        if let Err(error) = self.provider.shutdown_with_timeout(FLUSH_TIMEOUT) {
            tracing::warn!("the last traces are lost: {error}");
        }
    }
}

#[cfg(test)]
mod tests;
