//! Randomness that can be had again.

use std::env;

/// Returns a generator that starts from `TIDEGATE_TEST_SEED`, or from anywhere,
/// and prints how to repeat the run.
pub fn random(test: &str) -> fastrand::Rng {
    let seed = match env::var("TIDEGATE_TEST_SEED") {
        Ok(text) => text.parse().expect("TIDEGATE_TEST_SEED is a whole number"),
        Err(_) => fastrand::u64(..),
    };
    println!("repeat with: TIDEGATE_TEST_SEED={seed} scripts/test -p tidegate-tests {test}");
    fastrand::Rng::with_seed(seed)
}
