//! Tests of the harness itself: API server, controllers, faults, clean-up.

use kopf_tests::TestFailure;

mod access;
mod api;
mod binaries;
mod control_plane_faults;
mod controllers;
mod leak;
mod named;
mod processes;
mod proxy;

/// The HTTP status of an error response.
#[track_caller]
fn code<T>(response: kube::Result<T>) -> Result<u16, TestFailure> {
    match response {
        Ok(_) => Err(TestFailure::new("the request was expected to fail")),
        Err(kube::Error::Api(status)) => Ok(status.code),
        Err(other) => Err(other.into()),
    }
}
