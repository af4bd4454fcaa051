//! How handlers tell people about their object in Kubernetes events.

/// The methods for events, on a context that finds its surroundings there.
macro_rules! reporting {
    ($context:ident, $($scope:ident).+) => {
        impl<K> $context<K> {
            /// Posts a Kubernetes event about the object: something happened as it should.
            pub fn info(&self, reason: &str, message: impl Into<String>) {
                self.recorder().info(reason, message);
            }

            /// Posts a Kubernetes event about the object: something needs attention.
            pub fn warn(&self, reason: &str, message: impl Into<String>) {
                self.recorder().warn(reason, message);
            }

            /// Posts a Kubernetes event about the object: something failed, because of this error.
            pub fn exception(&self, reason: &str, message: &str, error: impl std::fmt::Display) {
                self.recorder().exception(reason, message, error);
            }

            /// Posts a Kubernetes event of any type about the object.
            pub fn event(
                &self,
                severity: impl Into<$crate::EventSeverity>,
                reason: &str,
                message: impl Into<String>,
            ) {
                self.recorder().event(severity, reason, message);
            }

            /// The means to post Kubernetes events about the object, for work that outlives the
            /// call; with [`on`]($crate::EventRecorder::on) about any other object.
            pub fn recorder(&self) -> $crate::EventRecorder {
                self.$($scope).+.recorder()
            }
        }
    };
}

pub(super) use reporting;
