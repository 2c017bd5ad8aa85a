//! A program's own voice instead of the machine's speakers.

use toolgate_core::{ToolCall, ToolExecutor, ToolManager};

use super::*;
use crate::HandlerRegistry;
use crate::builtin::BuiltinSettings;

#[derive(Debug)]
struct TestVoice(parking_lot::Mutex<VolumeState>, Option<&'static str>);

impl VolumeControl for TestVoice {
    fn volume(&self) -> VolumeState {
        *self.0.lock()
    }

    fn set_volume(&self, state: VolumeState) {
        *self.0.lock() = state;
    }

    fn inaudible_reason(&self) -> Option<String> {
        self.1.map(str::to_owned)
    }
}

fn executor(voice: &Arc<TestVoice>) -> ToolExecutor {
    let settings = BuiltinSettings {
        volume_control: Some(voice.clone()),
        ..BuiltinSettings::default()
    };
    let manager = Arc::new(ToolManager::new());
    manager.add_all(HandlerRegistry::new(&settings).builtin_tools());
    ToolExecutor::new(manager)
}

#[tokio::test]
async fn a_custom_volume_control_replaces_the_speakers() {
    let state = VolumeState {
        level: 40,
        muted: false,
    };
    let voice = Arc::new(TestVoice(parking_lot::Mutex::new(state), None));
    let executor = executor(&voice);
    let call = async |arguments: Value| {
        let outcome = executor.execute(ToolCall::new("volume", arguments)).await;
        outcome.to_envelope()
    };
    for (arguments, expected) in conversation() {
        let answer = call(arguments.clone()).await;
        assert_eq!(answer["result"], expected, "{arguments}");
        assert_eq!(voice.volume().muted, expected["muted"] == true);
    }
    let refused = call(json!({ "action": "set" })).await;
    assert_eq!(
        refused["error"],
        "Invalid parameters: 'level' is needed to set the volume: a percentage from 0 to 100"
    );
    let tool = executor.find("volume").unwrap();
    assert!(
        tool.definition()
            .description()
            .contains("the voice that speaks")
    );
}

#[tokio::test]
async fn an_inaudible_voice_has_no_volume_to_read_or_change() {
    let state = VolumeState {
        level: 40,
        muted: false,
    };
    let voice = Arc::new(TestVoice(
        parking_lot::Mutex::new(state),
        Some("Nobody hears me."),
    ));
    let executor = executor(&voice);
    for arguments in [json!({ "action": "get" }), json!({ "action": "mute" })] {
        let outcome = executor.execute(ToolCall::new("volume", arguments)).await;
        assert_eq!(outcome.error().as_deref(), Some("Nobody hears me."));
    }
    assert_eq!(voice.volume(), state);
}
