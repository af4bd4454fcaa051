//! A program that runs an operator, and reads its indices.

#[rustfmt::skip]
mod generated;
mod handlers;

use std::collections::BTreeSet;
use std::error::Error;
use std::time::Duration;

use generated::indices::FieldByName;
use kopf_runtime::{IndexView, Namespaces};
use kube::Client;
use tokio::signal::unix::{SignalKind, signal};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let log = tracing_subscriber::fmt().with_writer(std::io::stderr);
    log.init();
    let client = Client::try_default().await?;
    let namespace = std::env::var("NAMESPACE");
    let namespace = namespace.unwrap_or_else(|_| client.default_namespace().to_owned());
    let mut operator = generated::operator(handlers::Operator::default())
        .namespaces(Namespaces::Only(vec![namespace]))
        .spawn(client);
    operator.ready().await?;
    println!("The operator is ready.");

    let fields = operator.indices().get(FieldByName);
    let mut shown = None;
    // Reading an index sends no request to the cluster.
    let mut clock = tokio::time::interval(Duration::from_secs(1));
    let mut terminated = signal(SignalKind::terminate())?;
    loop {
        tokio::select! {
            _ = clock.tick() => show(&fields, &mut shown),
            _ = tokio::signal::ctrl_c() => break,
            _ = terminated.recv() => break,
            ended = operator.ended() => return Ok(ended?),
        }
    }
    println!("The program ends after the operator has stopped.");
    operator.stop().await?;
    println!("The operator has stopped.");
    Ok(())
}

/// Prints the entries of the index if they have changed.
fn show(fields: &IndexView<FieldByName>, shown: &mut Option<BTreeSet<String>>) {
    let fields = fields.read();
    let entries = fields.iter();
    let lines = entries.flat_map(|(name, values)| values.map(move |it| format!("{name}={it}")));
    let lines = lines.collect();
    if shown.as_ref() != Some(&lines) {
        println!("The cluster has {lines:?}.");
        *shown = Some(lines);
    }
}
