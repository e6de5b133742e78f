//! See `tidegate_validator_fuzz::schedule`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tidegate_validator_fuzz::schedule(bytes));
