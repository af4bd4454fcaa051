//! A controller after kube-rs's template.

use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Registry, fmt};

#[cfg(not(feature = "extras"))]
#[tokio::main]
async fn main() -> Result<(), kube::Error> {
    let log = fmt::layer().json();
    Registry::default()
        .with(EnvFilter::from_default_env())
        .with(log)
        .init();
    let client = kube::Client::try_default().await?;
    controller::run(controller::context(client)).await;
    Ok(())
}

#[cfg(feature = "extras")]
#[actix_web::main]
async fn main() -> anyhow::Result<()> {
    use actix_web::{App, HttpServer, web};
    use opentelemetry::trace::TracerProvider as _;
    use opentelemetry_sdk::trace::SdkTracerProvider;

    let provider = SdkTracerProvider::builder().build();
    let traces = tracing_opentelemetry::layer().with_tracer(provider.tracer("controller"));
    let log = fmt::layer().json();
    Registry::default()
        .with(EnvFilter::from_default_env())
        .with(log)
        .with(traces)
        .init();
    let client = kube::Client::try_default().await?;
    let context = controller::context(client);
    let metrics = context.metrics.clone();
    let started = chrono::Utc::now();
    let server = HttpServer::new(move || {
        let metrics = metrics.clone();
        App::new()
            .route("/health", web::get().to(|| async { "healthy" }))
            .route(
                "/",
                web::get().to(move || async move { web::Json(started) }),
            )
            .route(
                "/metrics",
                web::get().to(move || {
                    let text = metrics.text();
                    async move { text }
                }),
            )
    });
    let server = server.bind("127.0.0.1:8080")?.shutdown_timeout(5);
    tokio::join!(controller::run(context), server.run()).1?;
    Ok(())
}
