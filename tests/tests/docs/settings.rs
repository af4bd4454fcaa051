//! The table of settings in `docs/settings.md` is what the code does.

use std::collections::BTreeMap;
use std::time::Duration;

use kopf_gen::load::manifest;
use kopf_runtime::{
    BackgroundSettings, DiffBaseStore, ExecutionSettings, HealthSettings, Lifecycle,
    NetworkingSettings, PersistenceSettings, PostingLevel, PostingSettings, ProgressPosting,
    ProgressStore, QueueingSettings, ScanningSettings, Settings, ShutdownSettings,
    WatchingSettings,
};
use serde_json::Value;

use super::repository;

/// A time as the table writes it.
fn time(time: Duration) -> String {
    let (seconds, millis) = (time.as_secs(), time.subsec_millis());
    match (seconds, millis) {
        (0, millis) if millis > 0 => format!("{millis}ms"),
        (seconds, _) if seconds >= 120 && seconds % 60 == 0 => format!("{}m", seconds / 60),
        (seconds, _) => format!("{seconds}s"),
    }
}

fn pauses(pauses: &[Duration]) -> String {
    let seconds = pauses.iter().map(|pause| format!("{}s", pause.as_secs()));
    seconds.collect::<Vec<_>>().join(", ")
}

/// The defaults of the code. Nothing can be added to the settings without being named here.
fn defaults() -> BTreeMap<String, String> {
    let Settings {
        networking,
        watching,
        scanning,
        queueing,
        execution,
        background,
        persistence: _,
        posting,
        health,
        shutdown,
    } = Settings::default();
    let NetworkingSettings {
        request_timeout,
        connect_timeout,
    } = networking;
    let PersistenceSettings {
        finalizer,
        prefix,
        progress: progress_place,
        diffbase,
        status_field,
        ignored,
    } = PersistenceSettings::default();
    let WatchingSettings {
        page_size,
        inactivity_timeout,
        server_timeout,
        reconnect_backoff,
        longest_backoff,
    } = watching;
    let ScanningSettings { disabled } = scanning;
    let QueueingSettings {
        worker_limit,
        worker_patience,
        waiting_bytes,
        error_delays,
    } = queueing;
    let ExecutionSettings {
        lifecycle,
        default_backoff,
        blocking_threads,
    } = execution;
    let BackgroundSettings {
        cancellation_polling,
        initial_spread,
    } = background;
    let PostingSettings {
        enabled,
        level,
        progress,
        loggers,
        reporting_component,
        reporting_instance,
        event_name_prefix,
        burst,
        refill,
        backlog,
        error_backoffs,
    } = posting;
    let HealthSettings {
        stuck_after,
        probe_cache,
    } = health;
    let ShutdownSettings {
        grace,
        posting_grace,
        deadline,
    } = shutdown;
    let progress_place = match progress_place {
        ProgressStore::Smart => "smart",
        _ => "another",
    };
    let diffbase = match diffbase {
        DiffBaseStore::Annotations => "annotations",
        _ => "another",
    };
    let ignored = if ignored.is_empty() { "none" } else { "some" };
    let lifecycle = match lifecycle {
        Lifecycle::Asap => "asap",
        _ => "another",
    };
    let level = match level {
        PostingLevel::Info => "info",
        _ => "another",
    };
    let progress = match progress {
        ProgressPosting::Failures => "failures",
        _ => "another",
    };
    let table = [
        ("networking.request_timeout", time(request_timeout)),
        ("networking.connect_timeout", time(connect_timeout)),
        ("persistence.finalizer", finalizer),
        ("persistence.prefix", prefix),
        ("persistence.progress", progress_place.to_owned()),
        ("persistence.diffbase", diffbase.to_owned()),
        ("persistence.status_field", status_field),
        ("persistence.ignored", ignored.to_owned()),
        ("watching.page_size", page_size.to_string()),
        ("watching.inactivity_timeout", time(inactivity_timeout)),
        ("watching.server_timeout", time(server_timeout)),
        ("watching.reconnect_backoff", time(reconnect_backoff)),
        ("watching.longest_backoff", time(longest_backoff)),
        ("scanning.disabled", disabled.to_string()),
        (
            "queueing.worker_limit",
            worker_limit.map_or("none".to_owned(), |limit| limit.to_string()),
        ),
        ("queueing.worker_patience", time(worker_patience)),
        ("queueing.waiting_bytes", waiting_bytes.to_string()),
        ("queueing.error_delays", pauses(&error_delays)),
        ("execution.lifecycle", lifecycle.to_owned()),
        ("execution.default_backoff", time(default_backoff)),
        ("execution.blocking_threads", blocking_threads.to_string()),
        (
            "background.cancellation_polling",
            time(cancellation_polling),
        ),
        ("background.initial_spread", time(initial_spread)),
        ("posting.enabled", enabled.to_string()),
        ("posting.level", level.to_owned()),
        ("posting.progress", progress.to_owned()),
        ("posting.loggers", loggers.to_string()),
        ("posting.reporting_component", reporting_component),
        ("posting.reporting_instance", reporting_instance),
        ("posting.event_name_prefix", event_name_prefix),
        ("posting.burst", burst.to_string()),
        ("posting.refill", time(refill)),
        ("posting.backlog", backlog.to_string()),
        ("posting.error_backoffs", pauses(&error_backoffs)),
        ("health.stuck_after", time(stuck_after)),
        ("health.probe_cache", time(probe_cache)),
        ("shutdown.grace", time(grace)),
        ("shutdown.posting_grace", time(posting_grace)),
        ("shutdown.deadline", time(deadline)),
    ];
    let rows = table.into_iter();
    rows.map(|(key, value)| (key.to_owned(), value)).collect()
}

/// The first two columns of the table under a heading.
fn table(text: &str, heading: &str) -> BTreeMap<String, String> {
    let section = text.split("\n## ").find(|it| it.starts_with(heading));
    let section = section.expect("the heading is there");
    let rows = section.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| `")?.split(" | ");
        let key = cells.next()?.strip_suffix('`')?;
        let value = cells.next()?.trim_end_matches(" |");
        Some((key.to_owned(), value.to_owned()))
    });
    rows.collect()
}

fn page() -> String {
    let page = repository().join("docs/settings.md");
    std::fs::read_to_string(page).expect("the page is there")
}

#[test]
fn the_table_has_the_defaults_of_the_code() {
    assert_eq!(table(&page(), "All settings"), defaults());
}

#[test]
fn the_table_has_the_keys_of_the_manifest() {
    let schema = serde_json::to_value(manifest::schema()).expect("JSON");
    let properties = |definition: &str| -> Vec<(String, Value)> {
        let properties = &schema["$defs"][definition]["properties"];
        let properties = properties.as_object().expect("a section has keys");
        let pairs = properties.iter();
        pairs
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    };
    let mut keys = Vec::new();
    for (section, reference) in properties("SettingsSection") {
        let definition = reference["anyOf"][0]["$ref"].as_str().expect("a section");
        let definition = definition.trim_start_matches("#/$defs/");
        let fields = properties(definition);
        keys.extend(
            fields
                .into_iter()
                .map(|(key, _)| format!("{section}.{key}")),
        );
    }
    keys.sort();
    let documented: Vec<String> = table(&page(), "All settings").into_keys().collect();
    assert_eq!(documented, keys);
}

#[test]
fn the_table_has_the_settings_of_kopf_that_mean_nothing_here() {
    let refused: BTreeMap<String, String> = manifest::kopf_only_settings()
        .map(|(key, why)| (key, why.to_owned()))
        .collect();
    assert_eq!(
        table(&page(), "Settings of Kopf that have no meaning"),
        refused
    );
}
