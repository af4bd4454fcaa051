//! An application that runs an operator in a thread of its own.

mod application;
#[rustfmt::skip]
mod generated;
mod handlers;

use std::error::Error;
use std::thread;

use kopf_runtime::Namespaces;
use kube::Client;
use tokio::runtime;
use tokio::sync::oneshot;

type Failure = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let log = tracing_subscriber::fmt().with_writer(std::io::stderr);
    log.init();
    let namespace = std::env::var("NAMESPACE").unwrap_or_else(|_| "default".to_owned());
    let (stop, stopped) = oneshot::channel();
    let operator = thread::spawn({
        let namespace = namespace.clone();
        move || run_operator(namespace, stopped)
    });

    // The application knows nothing of the operator, but for the objects in the cluster.
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let outcome = runtime.block_on(application::run(&namespace));

    drop(stop);
    operator.join().expect("the operator does not panic")?;
    println!("The operator has stopped, and the application ends.");
    outcome
}

/// Runs the operator until the sender of `stopped` is dropped.
fn run_operator(namespace: String, stopped: oneshot::Receiver<()>) -> Result<(), Failure> {
    let runtime = runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let client = Client::try_default().await?;
        let operator = generated::operator(handlers::Operator::default())
            .namespaces(Namespaces::Only(vec![namespace]));
        let stop = async {
            // The sender sends nothing; it is dropped.
            let _ = stopped.await;
        };
        Ok(operator.run(client, stop).await?)
    })
}
