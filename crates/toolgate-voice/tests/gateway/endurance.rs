//! Many files through the whole gateway, up to the MQTT broker.

use std::sync::atomic::Ordering;
use std::time::Duration;

use fakewyoming::FakeAsr;
use tokio::runtime::Handle;
use toolgate_mqtt::{Broker, BrokerSettings, MqttClientSettings};
use toolgate_voice::{AudioInput, ListenMode};

use crate::isolated_test::{resident_bytes, run_isolated};
use crate::model::ModelStep;
use crate::stage::{SPOKEN, TestStage};

const MANY: usize = 120;
// The fakes keep everything they receive until they are told to forget it.
const FORGET: usize = 10;

#[test]
fn many_files_leave_no_memory_behind() {
    run_isolated("endurance::many_files");
}

#[tokio::test]
#[ignore = "run alone, by the test above"]
async fn many_files() {
    let broker = Broker::start(BrokerSettings::default()).await.unwrap();
    let texts = ["hello there", "[BLANK_AUDIO]", "never mind"];
    let asr = FakeAsr::start(texts.into_iter().cycle().take(MANY)).await;
    let stage = TestStage::new([ModelStep::Words("It is noon.")]).await;
    let stage = stage.with(|parts, _| {
        parts.input = Some(AudioInput::Wav(vec![SPOKEN.into(); MANY]));
        parts.mode = ListenMode::Always;
        parts.mqtt = Some(MqttClientSettings::new(&broker.url()).unwrap());
        parts.settings.asr = asr.address();
        // A conversation grows until it fills the model's window.
        parts.settings.forget_after = Duration::ZERO;
    });
    stage.recorder.is_brief.store(true, Ordering::Relaxed);
    let mut stage = stage.start();
    let mut seen = Vec::new();
    for count in (FORGET..MANY).step_by(FORGET) {
        let ended = |recorder: &crate::event_recorder::EventRecorder| {
            recorder.ends.load(Ordering::Relaxed) >= count
        };
        stage.recorder.until("the next files", ended).await;
        asr.forget();
        stage.tts.forget();
        let tasks = Handle::current().metrics().num_alive_tasks();
        seen.push((tasks, resident_bytes()));
    }
    let summary = stage.over().await.unwrap();
    let third = MANY as u64 / 3;
    assert_eq!((summary.turns, summary.dropped), (third, 2 * third));
    let half = seen.len() / 2;
    let most = |part: &[(usize, usize)]| {
        let tasks = part.iter().map(|(tasks, _)| *tasks).max();
        let bytes = part.iter().map(|(_, bytes)| *bytes).max();
        (tasks.unwrap(), bytes.unwrap())
    };
    let (before, after) = (most(&seen[..half]), most(&seen[half..]));
    assert!(after.0 <= before.0 + 4, "tasks: {seen:?}");
    // The sound of sixteen of them would be more.
    assert!(after.1 < before.1 + (1 << 20), "memory: {seen:?}");
    broker.stop().await;
}
