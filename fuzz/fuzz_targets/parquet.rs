//! See `holdfast_fuzz::TARGETS`.
#![no_main]

use libfuzzer_sys::fuzz_target;

// The decoder is not ours; the server catches its panics, so they are no finding here.
fuzz_target!(
    init: {
        drop(std::panic::take_hook());
        std::panic::set_hook(Box::new(|_| {}));
    },
    |bytes: &[u8]| {
        holdfast_fuzz::run("parquet", bytes);
    }
);
