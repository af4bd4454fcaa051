//! Fills, reads and changes an index of ours, and prints memory and CPU time on one line.

use std::env;
use std::error::Error;
use std::fs;
use std::sync::{Arc, RwLock};

use kopf_core::index::IndexTable;
use rustix::time::{ClockId, clock_gettime};

/// The identity of an object, which the runtime has anyway and shares with the indices.
#[derive(PartialEq, Eq, Hash)]
struct BenchObject {
    kind: u16,
    uid: Box<str>,
    namespace: Option<Box<str>>,
    name: Box<str>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Result<Vec<usize>, _> = env::args().skip(1).map(|it| it.parse()).collect();
    let [objects, keys, operations] = arguments?[..] else {
        return Err("give the numbers of objects, keys and operations".into());
    };
    let identities: Vec<Arc<BenchObject>> = (0..objects).map(identity).collect();
    let mut random = fastrand::Rng::with_seed(1);
    let before = resident()?;
    let index = RwLock::new(IndexTable::default());
    for (number, identity) in identities.iter().enumerate() {
        let entry = (key(number % keys), identity.name.to_string());
        index
            .write()
            .expect("no thread panics")
            .replace(identity, [entry]);
    }
    let memory = resident()? - before;

    let wanted: Vec<String> = (0..operations).map(|_| key(random.usize(..keys))).collect();
    let mut found = 0;
    let began = cpu_nanoseconds();
    for key in &wanted {
        let index = index.read().expect("no thread panics");
        found += index.get(key.as_str()).next().map_or(0, String::len);
    }
    let lookup = cpu_nanoseconds() - began;
    assert_eq!(found, operations * identities[0].name.len());

    let changed: Vec<usize> = (0..operations).map(|_| random.usize(..objects)).collect();
    let began = cpu_nanoseconds();
    for number in changed {
        let identity = &identities[number];
        let entry = (key((number + 1) % keys), identity.name.to_string());
        index
            .write()
            .expect("no thread panics")
            .replace(identity, [entry]);
    }
    let update = cpu_nanoseconds() - began;
    let each = |total: f64, count: usize| total / count as f64;
    println!(
        "{} {} {}",
        each(memory, objects),
        each(lookup, operations),
        each(update, operations)
    );
    Ok(())
}

fn identity(number: usize) -> Arc<BenchObject> {
    Arc::new(BenchObject {
        kind: 0,
        uid: format!("{number:08x}-0000-4000-8000-000000000000").into(),
        namespace: Some("default".into()),
        name: format!("pod-{number:08}").into(),
    })
}

fn key(number: usize) -> String {
    format!("claim-{number:08}")
}

fn resident() -> Result<f64, Box<dyn Error>> {
    let statistics = fs::read_to_string("/proc/self/statm")?;
    let pages = statistics.split_whitespace().nth(1).unwrap_or_default();
    Ok(pages.parse::<f64>()? * 4096.0)
}

fn cpu_nanoseconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}
