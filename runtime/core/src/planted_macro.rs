//! The places of planted faults: nothing in every published build.

/// Whether a fault is planted; never in an ordinary build.
macro_rules! planted {
    ($fault:ident) => {{
        #[cfg(kopf_planted_faults)]
        {
            crate::planted::is_planted(crate::planted::PlantedFault::$fault)
        }
        #[cfg(not(kopf_planted_faults))]
        {
            false
        }
    }};
}
