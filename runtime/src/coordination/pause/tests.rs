//! The pause gate.

use std::time::Duration;

use futures::FutureExt as _;

use super::*;

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[tokio::test]
async fn the_operator_runs_while_no_handle_pauses_it() {
    let (switch, pause_gate) = PauseSwitch::new();
    assert!(pause_gate.is_running());
    let (first, second) = (switch.handle(), switch.handle());
    assert!(!pause_gate.is_running(), "both handles still pause");
    first.resume();
    assert!(!pause_gate.is_running());
    second.resume();
    assert!(pause_gate.is_running());
    first.pause(PauseReason::Tie("them".to_owned()));
    assert!(!pause_gate.is_running());
    assert!(pause_gate.may_write(), "running handlers may finish");
}

#[test]
fn handles_that_come_and_go_leave_no_slots_behind() {
    let (switch, pause_gate) = PauseSwitch::new();
    let lasting = switch.handle();
    lasting.resume();
    for _ in 0..100 {
        let passing = switch.handle_without_pause();
        passing.pause(PauseReason::Tie("them".to_owned()));
        assert!(!pause_gate.is_running());
        passing.resume();
        assert!(pause_gate.is_running());
    }
    let next = switch.handle_without_pause();
    assert_eq!(next.index, 1, "the slots of the others are free again");
    drop(switch.handle());
    assert!(!pause_gate.is_running(), "the pause outlives its handle");
}

#[tokio::test]
async fn each_pause_begins_an_epoch_even_if_it_was_not_observed() {
    let (switch, pause_gate) = PauseSwitch::new();
    let handle = switch.handle();
    handle.resume();
    let epoch = pause_gate.running().await;
    handle.pause(PauseReason::LeaseLost);
    handle.resume();
    pause_gate.paused_since(epoch).await;
    assert_eq!(pause_gate.running().await, epoch + 1);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_lease_stops_work_at_its_current_step() {
    let (switch, pause_gate) = PauseSwitch::new();
    let handle = switch.handle();
    handle.resume_until(Instant::now() + secs(10));
    let work = async {
        tokio::time::sleep(secs(9)).await;
        handle.resume_until(Instant::now() + secs(10));
        tokio::time::sleep(secs(9)).await;
        std::future::pending::<()>().await;
    };
    let begun = Instant::now();
    assert_eq!(pause_gate.while_leading(work).await, Err(LeaseEnded));
    assert_eq!(begun.elapsed(), secs(19));
    assert!(!pause_gate.is_running() && !pause_gate.may_write());
}

#[tokio::test(start_paused = true)]
async fn a_lease_renewed_too_late_begins_a_new_epoch() {
    let (switch, pause_gate) = PauseSwitch::new();
    let handle = switch.handle();
    handle.resume_until(Instant::now() + secs(1));
    let epoch = pause_gate.epoch();
    handle.resume_until(Instant::now() + secs(1));
    assert_eq!(pause_gate.epoch(), epoch);
    tokio::time::advance(secs(1)).await;
    assert!(!pause_gate.is_running());
    handle.resume_until(Instant::now() + secs(1));
    assert!(pause_gate.is_running());
    assert_eq!(pause_gate.epoch(), epoch + 1);
}

#[tokio::test]
async fn work_does_not_begin_without_a_lease() {
    let (switch, pause_gate) = PauseSwitch::new();
    switch.handle().forbid(PauseReason::LeaseLost);
    let work = async { panic!("it began") };
    assert_eq!(
        pause_gate.while_leading(work).await,
        Err::<(), _>(LeaseEnded)
    );
}

#[tokio::test]
async fn a_stream_that_runs_in_pauses_waits_only_until_the_pause_is_known() {
    let (switch, pause_gate) = PauseSwitch::new();
    let handle = switch.handle();
    assert!(pause_gate.next_period(true).now_or_never().is_none());
    handle.pause(PauseReason::Standby { leader: None });
    let standby = pause_gate.next_period(true).await;
    assert!(!standby.running);
    assert!(pause_gate.next_period(false).now_or_never().is_none());
    assert!(pause_gate.period_ended(standby).now_or_never().is_none());
    handle.resume();
    pause_gate.period_ended(standby).await;
    let running = pause_gate.next_period(false).await;
    assert!(running.running);
    handle.pause(PauseReason::Standby { leader: None });
    handle.resume();
    pause_gate.period_ended(running).await;
    assert_ne!(pause_gate.period(), running, "the pause was not missed");
}
