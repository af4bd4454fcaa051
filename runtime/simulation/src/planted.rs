//! Faults that are planted on purpose, to prove that the claims find them.
//!
//! They exist only in the package `kopf-simulation-planted`, which builds the same files.

/// Whether a fault is planted; never in an ordinary build.
macro_rules! planted {
    ($fault:ident) => {{
        #[cfg(kopf_planted_faults)]
        {
            kopf_core::planted::is_planted(kopf_core::planted::PlantedFault::$fault)
        }
        #[cfg(not(kopf_planted_faults))]
        {
            false
        }
    }};
}
