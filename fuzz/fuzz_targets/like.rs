//! See `holdfast_fuzz::TARGETS`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    holdfast_fuzz::run("like", bytes);
});
