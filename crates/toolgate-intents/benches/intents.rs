//! Measures how long a sentence takes: `cargo bench -p toolgate-intents`. The
//! target is a millisecond.

#![expect(clippy::unwrap_used, reason = "a bench that fails should stop")]

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::runtime::Runtime;
use toolgate_core::{
    Annotations, FunctionTool, ToolDefinition, ToolError, ToolExecutor, ToolManager, ToolWait,
    Toolbox,
};
use toolgate_intents::{Pack, SentenceContext, SentenceInterpreter};
use toolgate_tools::HandlerRegistry;
use toolgate_tools::builtin::BuiltinSettings;

fn main() {
    divan::main();
}

/// The built-in tools and English pack, and a house with this many devices.
fn english_interpreter(devices: usize) -> SentenceInterpreter {
    let manager = Arc::new(ToolManager::new());
    manager.add_all(HandlerRegistry::new(&BuiltinSettings::default()).builtin_tools());
    let any = json!({ "type": "object" });
    let list = ToolDefinition::builder("list_zwave_devices", "…", any.clone())
        .annotations(Annotations::READ_ONLY);
    let names: Vec<Value> =
        (1..=devices).map(|n| json!({ "name": format!("Kitchen Light {n}"), "location": format!("Room {}", n % 20) })).collect();
    let answer = json!({ "devices": names });
    let list_devices = move |_: Value, _| std::future::ready(Ok::<_, ToolError>(answer.clone()));
    manager.add(FunctionTool::with_definition(list, list_devices).unwrap());
    let control = ToolDefinition::builder("control_zwave_device", "…", any);
    manager.add(
        FunctionTool::with_definition(control, async |_: Value, _| Ok::<_, ToolError>("on"))
            .unwrap(),
    );
    let toolbox = Toolbox::new(ToolExecutor::new(manager));
    SentenceInterpreter::new(toolbox, Pack::english()).unwrap()
}

const SENTENCES: [&str; 7] = [
    "what time is it in Tokyo",
    "turn on kitchen light 3 and then tell me the time",
    "turn on kitchen light 1, kitchen light 2 and the fridge, and tell me a joke and a story",
    "turn on kitchen light one",
    "Could you please turn the kitchen light 7 off?",
    "turn on the kichen ligth 7",
    "make the volume purple and tell me a story about it",
];

#[divan::bench(args = SENTENCES, consts = [12, 1000])]
fn interpret_sentence<const DEVICES: usize>(bencher: divan::Bencher<'_, '_>, sentence: &str) {
    let runtime = Runtime::new().unwrap();
    let sentences = english_interpreter(DEVICES);
    let context = SentenceContext::default();
    let ask = || {
        let mut nobody = |_: ToolWait<'_>| {};
        runtime.block_on(sentences.interpret(sentence, &context, true, &mut nobody))
    };
    ask();
    bencher.bench_local(ask);
}

#[divan::bench]
fn compile_english_pack() -> SentenceInterpreter {
    english_interpreter(0)
}
