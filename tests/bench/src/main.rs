//! Benchmarks that compare our runtime with Kopf, kube's Controller and controller-runtime.

mod admission;
mod api_server;
mod children;
mod cold_start;
mod compile;
mod dev;
mod edit_storm;
mod growth;
mod index;
mod latency;
mod new_crate;
mod page;
mod peer;
mod process;
mod timers;
mod widgets;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Benchmarks against Python Kopf and kube's Controller.
#[derive(Debug, Parser)]
struct Cli {
    #[command(subcommand)]
    benchmark: Benchmark,
}

#[derive(Debug, Subcommand)]
enum Benchmark {
    /// Edit objects while their handlers run and retry; count those whose quick handler never saw
    /// the final spec
    EditStorm(edit_storm::Options),
    /// Review objects: rate, latency at half of it, memory
    Admission(admission::Options),
    /// Keep one child for each of many objects: requests, CPU time, memory, bytes
    Children(children::Options),
    /// Handle objects that are already there, and start again over handled ones
    ColdStart(cold_start::Options),
    /// Compile a new operator, from nothing and after an edit, beside kube-rs's controller template
    Compile(compile::Options),
    /// Edit a handler under `kopf-gen dev`, beside a bare `cargo build`
    Dev(dev::Options),
    /// Fill an index, look into it and change it: memory and CPU time
    Index(index::Options),
    /// Start over more and more objects that were handled before
    Growth(growth::Options),
    /// Create objects at a steady rate and measure the time to their results
    Latency(latency::Options),
    /// Handle objects with the crate that `kopf-gen new` writes, beside a typed Controller
    NewCrate(new_crate::Options),
    /// Open the live page over very many objects, and measure idle operators with and without it
    Page(page::Options),
    /// Run a timer that does nothing beside each of many objects, and measure what is used
    Timers(timers::Options),
}

fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let done = runtime.block_on(async {
        match Cli::parse().benchmark {
            Benchmark::EditStorm(options) => edit_storm::run(&options).await,
            Benchmark::Admission(options) => admission::run(&options).await,
            Benchmark::Children(options) => children::run(&options).await,
            Benchmark::ColdStart(options) => cold_start::run(&options).await,
            Benchmark::Compile(options) => compile::run(&options),
            Benchmark::Dev(options) => dev::run(&options).await,
            Benchmark::Index(options) => index::run(&options).await,
            Benchmark::Growth(options) => growth::run(&options).await,
            Benchmark::Latency(options) => latency::run(&options).await,
            Benchmark::NewCrate(options) => new_crate::run(&options).await,
            Benchmark::Page(options) => page::run(&options).await,
            Benchmark::Timers(options) => timers::run(&options).await,
        }
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure:?}");
            ExitCode::FAILURE
        }
    }
}
