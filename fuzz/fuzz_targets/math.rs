//! Any text, evaluated, written and dropped: the same as the property test in `toolgate-math`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|expression: &str| {
    if let Ok(answer) = toolgate_math::evaluate(expression, &toolgate_math::Budget::default()) {
        let _text = answer.to_string();
        let _json = answer.to_json();
    }
});
