//! Trouble between the operator and the API server, made by the proxy between them.

use std::time::Duration;

use http::{Method, StatusCode};
use kopf_tests::{Fault, RequestMatch};
use tokio::time::sleep;

use super::Trouble;
use crate::stage::Stage;

/// The time by which slow requests are late.
const DELAY: Duration = Duration::from_secs(1);

pub(super) async fn make(trouble: Trouble, stage: &Stage, lasts: Duration) {
    let proxy = &stage.proxy;
    let any = RequestMatch::any;
    match trouble {
        Trouble::TruncateWatches => proxy.always(any().watches(), Fault::TruncateAfter(2)),
        Trouble::TooManyRequests => {
            let status = StatusCode::TOO_MANY_REQUESTS;
            let fault = Fault::AnswerRetryAfter(status, Duration::from_secs(1));
            proxy.always(any(), fault);
        }
        Trouble::ServerErrors => {
            proxy.always(any(), Fault::Answer(StatusCode::INTERNAL_SERVER_ERROR));
        }
        Trouble::RejectCredentials => {
            proxy.always(any(), Fault::Answer(StatusCode::UNAUTHORIZED));
        }
        Trouble::SlowAnswers => proxy.always(any().not_watches(), Fault::Delay(DELAY)),
        Trouble::LostAnswers => {
            proxy.always(any().method(Method::PATCH), Fault::CutAfter);
        }
        _ => {}
    }
    // Watches that are open would not notice the rules.
    proxy.cut_all();
    sleep(lasts).await;
    proxy.clear_faults();
}
