//! The gate under paused time.

use std::time::Duration;

use super::*;

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[tokio::test]
async fn all_sources_have_to_agree() {
    let (switch, pause_gate) = PauseSwitch::new();
    assert!(pause_gate.is_running());
    let (first, second) = (switch.handle(), switch.handle());
    assert!(!pause_gate.is_running(), "nobody has decided yet");
    first.resume();
    assert!(!pause_gate.is_running());
    second.resume();
    assert!(pause_gate.is_running());
    first.pause(PauseReason::Tie("them".to_owned()));
    assert!(!pause_gate.is_running());
    assert!(pause_gate.may_write(), "what runs may finish");
}

#[tokio::test]
async fn each_pause_begins_an_epoch_even_if_nobody_looked() {
    let (switch, pause_gate) = PauseSwitch::new();
    let source = switch.handle();
    source.resume();
    let epoch = pause_gate.running().await;
    source.pause(PauseReason::LeaseLost);
    source.resume();
    pause_gate.paused_since(epoch).await;
    assert_eq!(pause_gate.running().await, epoch + 1);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_tenure_stops_work_where_it_stands() {
    let (switch, pause_gate) = PauseSwitch::new();
    let source = switch.handle();
    source.resume_until(Instant::now() + secs(10));
    let work = async {
        tokio::time::sleep(secs(9)).await;
        source.resume_until(Instant::now() + secs(10));
        tokio::time::sleep(secs(9)).await;
        std::future::pending::<()>().await;
    };
    let begun = Instant::now();
    assert_eq!(pause_gate.while_leading(work).await, Err(LeaseEnded));
    assert_eq!(begun.elapsed(), secs(19));
    assert!(!pause_gate.is_running() && !pause_gate.may_write());
}

#[tokio::test(start_paused = true)]
async fn a_late_extension_is_a_new_epoch() {
    let (switch, pause_gate) = PauseSwitch::new();
    let source = switch.handle();
    source.resume_until(Instant::now() + secs(1));
    let epoch = pause_gate.epoch();
    source.resume_until(Instant::now() + secs(1));
    assert_eq!(pause_gate.epoch(), epoch);
    tokio::time::advance(secs(1)).await;
    assert!(!pause_gate.is_running());
    source.resume_until(Instant::now() + secs(1));
    assert!(pause_gate.is_running());
    assert_eq!(pause_gate.epoch(), epoch + 1);
}

#[tokio::test]
async fn work_that_was_forbidden_is_not_even_begun() {
    let (switch, pause_gate) = PauseSwitch::new();
    switch.handle().forbid(PauseReason::LeaseLost);
    let work = async { panic!("it began") };
    assert_eq!(
        pause_gate.while_leading(work).await,
        Err::<(), _>(LeaseEnded)
    );
}
