//! A voice in place of the machine's speakers.

use toolgate_core::{ToolCall, ToolExecutor, ToolManager};

use super::*;
use crate::Handlers;
use crate::builtin::BuiltinSettings;

#[derive(Debug)]
struct Voice(std::sync::Mutex<VolumeState>);

impl Sounding for Voice {
    fn volume(&self) -> VolumeState {
        *self.0.lock().unwrap()
    }

    fn set_volume(&self, state: VolumeState) {
        *self.0.lock().unwrap() = state;
    }
}

#[tokio::test]
async fn a_voice_of_its_own_is_governed_in_place_of_the_machine() {
    let state = VolumeState {
        level: 40,
        muted: false,
    };
    let voice = Arc::new(Voice(std::sync::Mutex::new(state)));
    let settings = BuiltinSettings {
        sounding: Some(voice.clone()),
        ..BuiltinSettings::default()
    };
    let manager = Arc::new(ToolManager::new());
    manager.add_all(Handlers::new(&settings).builtin_tools());
    let executor = ToolExecutor::new(manager);
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
