//! Without the smart home, the time is still announced.

use serde_json::json;

use crate::engines::{EngineProcess, speak};
use crate::program::VoiceFolder;

#[tokio::test(flavor = "multi_thread")]
async fn vo1_without_the_zwave_server_the_time_is_still_spoken() {
    let Some(whisper) = EngineProcess::whisper() else {
        return;
    };
    let folder = VoiceFolder::new();
    let wav = folder.path("request.wav");
    speak("what time is it", &wav);
    let config = json!({
        "mcpServers": { "zwave": {
            // The documented configuration, with nothing else installed.
            "command": "/nowhere/zwave-mcp-server",
        } },
        "retry": { "baseDelay": "100ms" },
        "model": { "provider": "intents" },
        "voice": { "asr": whisper.address(), "tts": "espeak-ng", "tones": false },
    });
    let (done, answer) = folder.answered(&config, &wav);
    assert_eq!(done.code, Some(0), "{}", done.log);
    for line in [
        "❌ Failed to initialize MCP tools after 3 attempts",
        "   Reason: Connection to stdio server 'zwave' failed",
        "   Check: MQTT broker running, zwave-mcp-server installed",
        "⚠️ Continuing with local tools only",
    ] {
        assert!(done.log.contains(line), "{line}\n{}", done.log);
    }
    let turn = &done.turns[0];
    assert_eq!(turn["outcome"], "answered", "{turn}");
    let said = whisper.understands(&answer).await;
    // First the announcement of what is missing, then the time.
    assert!(said.contains("smart home"), "{said}");
    assert!(said.chars().any(|c| c.is_ascii_digit()), "{said}");
}
