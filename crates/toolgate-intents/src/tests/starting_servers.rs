//! Sentences that are spoken while the home server is still starting.

use tokio::sync::watch;
use toolgate_core::ToolReadiness;

use super::*;

/// A server that starts when the test says so.
struct StartingHomeServer(watch::Sender<bool>);

impl StartingHomeServer {
    fn new() -> Arc<Self> {
        Arc::new(Self(watch::Sender::new(false)))
    }
}

impl ToolReadiness for StartingHomeServer {
    fn wait_until_complete(&self) -> BoxFuture<'_, ()> {
        let mut is_there = self.0.subscribe();
        Box::pin(async move { drop(is_there.wait_for(|is_there| *is_there).await) })
    }

    fn starting_servers(&self) -> Vec<String> {
        vec!["house".to_owned()]
    }

    fn wait_until_known<'a>(&'a self, tool: &'a str) -> BoxFuture<'a, ()> {
        let is_local = ["datetime", "math_eval", "search", "volume"].contains(&tool);
        match is_local {
            true => Box::pin(std::future::ready(())),
            false => self.wait_until_complete(),
        }
    }
}

#[test]
fn each_sentence_waits_for_the_tool_it_needs() {
    let local = HandlerRegistry::new(&BuiltinSettings::default()).builtin_tools();
    let interpreter = english_interpreter(&manager_with(local));
    let starting = StartingHomeServer::new();
    interpreter
        .toolbox
        .set_readiness(Arc::<StartingHomeServer>::clone(&starting));
    for (text, expected) in [
        ("turn on the kitchen light", Some("control_zwave_device")),
        ("trun on the kitchen light", Some("control_zwave_device")),
        (
            "dim the bedside lamp to 30 percent",
            Some("control_zwave_device"),
        ),
        ("how warm is the bedroom", Some("get_device_sensor_data")),
        ("unlock the front door", Some("control_lock")),
        ("set the thermostat to 21 degrees", Some("set_thermostat")),
        (
            "what time is it and turn on the kitchen light",
            Some("control_zwave_device"),
        ),
        ("what time is it", None),
        ("what is 2 plus 2", None),
        ("set the volume to 40 percent", None),
        ("search the web for the tallest mountain", None),
        ("sing a song for the bear", None),
        ("thanks", None),
    ] {
        assert_eq!(
            interpreter
                .awaited_tool(text, &SentenceContext::default())
                .as_deref(),
            expected,
            "{text}"
        );
    }
    starting.0.send_replace(true);
    let light = "turn on the kitchen light";
    assert_eq!(
        interpreter.awaited_tool(light, &SentenceContext::default()),
        None
    );
}

#[tokio::test(start_paused = true)]
async fn names_are_read_once_the_listing_tool_can_be_called() {
    let interpreter = english_interpreter(&manager_with(house_tools(|| Ok(devices()))));
    let starting = StartingHomeServer::new();
    interpreter
        .toolbox
        .set_readiness(Arc::<StartingHomeServer>::clone(&starting));
    let begin = Instant::now();
    // `certain_calls` doesn't wait and has no side effect.
    let light = "turn on the kitchen light";
    let context = SentenceContext::default();
    assert!(interpreter.certain_calls(light, &context).await.is_none());
    assert_eq!(begin.elapsed(), Duration::ZERO);
    let arriving = async {
        tokio::time::sleep(Duration::from_secs(4)).await;
        starting.0.send_replace(true);
    };
    let (said, ()) = tokio::join!(say(&interpreter, "turn on the kitchen light"), arriving);
    assert_eq!(
        said,
        r#"control_zwave_device {"deviceName":"Kitchen Light","action":"on"}"#
    );
    assert_eq!(begin.elapsed(), Duration::from_secs(4));
}
