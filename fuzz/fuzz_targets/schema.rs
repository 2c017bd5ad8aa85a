//! Reads `[schema, arguments]` as JSON. An accepted schema must check any arguments in bounded
//! time, and always with the same result. libFuzzer's `-timeout` is the bound.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use toolgate_core::{Schema, SchemaLimits};

fuzz_target!(|bytes: &[u8]| {
    let Ok([document, arguments]) = serde_json::from_slice::<[Value; 2]>(bytes) else {
        return;
    };
    let limits = SchemaLimits::default();
    let Ok(schema) = Schema::compile(document.clone(), &limits) else {
        return;
    };
    let check = |schema: &Schema| match schema.check(arguments.clone()) {
        Ok(_) => "valid".to_owned(),
        Err(error) => error.to_string(),
    };
    let result = check(&schema);
    let deferred = Schema::deferred(document, &limits).expect("it was accepted a moment ago");
    assert_eq!(result, check(&deferred));
});
