//! Each planted fault is found.

use kopf_core::planted::{PlantedFault, plant};
use kopf_simulation_planted::claims::OperatorScenario;
use kopf_simulation_planted::explore::explore;

/// The histories in which a fault must be found.
const HISTORIES: u64 = 4_000;

#[test]
#[ignore = "takes minutes; the command planted-faults prints the same as a table"]
fn every_planted_fault_is_found() {
    let missed: Vec<&PlantedFault> = PlantedFault::ALL
        .iter()
        .filter(|fault| {
            plant(Some(**fault));
            let explored = explore(OperatorScenario::new, 0..HISTORIES);
            plant(None);
            explored.failure.is_none()
        })
        .collect();
    assert!(missed.is_empty(), "not found: {missed:?}");
}
