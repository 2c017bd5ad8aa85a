//! The answer to the gateway's own question needs neither a wake word nor a key.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use fakewyoming::FakeAsr;
use serde_json::{Value, json};
use toolgate_core::{
    Annotations, FunctionTool, ToolDefinition, ToolError, ToolExecutor, ToolManager,
};
use toolgate_models::Toolbox;

use crate::model::ModelStep;
use crate::stage::{TestStage, speech};

#[tokio::test]
async fn a_question_is_answered_without_a_key() {
    let opened = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&opened);
    let mut destructive = Annotations::default();
    destructive.destructive = Some(true);
    let definition = ToolDefinition::builder("unlock", "Unlocks", json!({ "type": "object" }));
    let unlock =
        FunctionTool::with_definition(definition.annotations(destructive), move |_: Value, _| {
            counter.fetch_add(1, Ordering::Relaxed);
            async { Ok::<_, ToolError>("open") }
        });
    let manager = ToolManager::new();
    manager.add(unlock.unwrap());
    let asr = FakeAsr::start(["unlock the door", "yes"]).await;
    let says = [
        ModelStep::Call("", "unlock"),
        ModelStep::Words("It is open."),
    ];
    let stage = TestStage::new(says).await.with(|parts, _| {
        let executor = ToolExecutor::builder(Arc::new(manager)).approver(parts.approvals.clone());
        parts.toolbox = Toolbox::new(executor.build());
        parts.settings.asr = asr.address();
    });
    let stage = stage.ready().await;
    stage.ask().await;
    stage.sees("state listening", 2).await;
    assert_eq!(opened.load(Ordering::Relaxed), 0);
    stage.mic.send_sound(&speech());
    stage.sees("turn answered", 1).await;
    assert_eq!(opened.load(Ordering::Relaxed), 1);
    assert_eq!(
        stage.tts.texts(),
        ["Shall I use unlock?", "Say yes or no.", "It is open."]
    );
    stage.end().await;
}
