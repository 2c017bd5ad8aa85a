//! Calls that the model wrote and the server could not parse.

use super::*;

const XML: &str = "XML syntax error on line 8: element <function> closed by </parameter>";

/// Servers report this either with a status before anything else, or inside a
/// stream that began well.
fn refusals() -> Vec<(Vec<LoopbackStep>, &'static str)> {
    let before = |error: Value| {
        let text = answer(500, "retry-after: 0\r\n", &error.to_string());
        vec![LoopbackStep::Send(text.into_bytes())]
    };
    // The error quotes part of the call, so its words are not Ollama's.
    let raw = "error parsing tool call: raw='{\"text\": \"gemma does not support tools\"', err=unexpected end of JSON input";
    vec![
        (before(json!({ "error": XML })), XML),
        (lines(&[says("Let me see."), json!({ "error": XML })]), XML),
        (before(json!({ "error": raw })), raw),
        (
            before(json!({ "error": format!("failed to parse XML: {XML}") })),
            XML,
        ),
        (
            before(json!({ "error": "expected element type <function> but have <parameter>" })),
            "expected element type <function> but have <parameter>",
        ),
        (
            before(
                json!({ "error": "invalid character '@'\nrepair failed to produce valid JSON arguments" }),
            ),
            "invalid character '@'",
        ),
        (
            lines(&[json!({ "error parsing tool call": "invalid character 'c'" })]),
            "invalid character 'c'",
        ),
    ]
}

#[tokio::test]
async fn a_call_that_ollama_cannot_parse_is_explained() {
    for (refusal, said) in refusals() {
        let server = LoopbackServer::start(vec![show(), refusal]).await;
        let settings = ModelSettings {
            attempts: 1,
            ..settings(&server)
        };
        let error = ask(&settings, &offer()).await.reply.unwrap_err();
        let text = error.to_string();
        let expected = "the model 'qwen3' wrote a tool call that Ollama couldn't parse (";
        for part in [
            expected,
            said,
            "update Ollama",
            "less compressed version",
            "model.maxTools",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(error.is_retryable(), "{error:?}");
    }
}

#[tokio::test]
async fn a_long_call_is_cut_in_the_message() {
    let raw = format!("error parsing tool call: raw='{}'", "x".repeat(400));
    let server = LoopbackServer::start(vec![
        show(),
        whole(500, &json!({ "error": raw }).to_string()),
    ]);
    let server = server.await;
    let settings = ModelSettings {
        attempts: 1,
        ..settings(&server)
    };
    let text = ask(&settings, &offer()).await.reply.unwrap_err();
    let text = text.to_string();
    assert!(text.contains("xxx…); update Ollama"), "{text}");
    assert!(!text.contains(&"x".repeat(200)), "{text}");
}

#[tokio::test]
async fn the_model_is_asked_again_only_if_its_reply_may_differ() {
    let free = ModelSettings::default();
    let warm = ModelSettings {
        temperature: Some(0.7),
        ..ModelSettings::default()
    };
    let cold = ModelSettings {
        temperature: Some(0.0),
        ..ModelSettings::default()
    };
    let seeded = ModelSettings {
        seed: Some(7),
        ..ModelSettings::default()
    };
    for (sampling, again) in [(free, true), (warm, true), (cold, false), (seeded, false)] {
        let refused = answer(
            500,
            "retry-after: 0\r\n",
            &json!({ "error": XML }).to_string(),
        );
        let refused = vec![LoopbackStep::Send(refused.into_bytes())];
        let yes = lines(&[says("Yes."), done()]);
        let server = LoopbackServer::start(vec![show(), refused, yes]).await;
        let settings = ModelSettings {
            temperature: sampling.temperature,
            seed: sampling.seed,
            ..settings(&server)
        };
        let asked = ask(&settings, &offer()).await;
        match asked.reply {
            Ok(reply) => {
                assert!(again, "{sampling:?}");
                assert_eq!(reply.message.to_text(), "Yes.");
                assert!(
                    asked.reported[0].starts_with("Retrying"),
                    "{:?}",
                    asked.reported
                );
            }
            Err(error) => {
                assert!(!again, "{error}");
                let text = error.to_string();
                let expected = "a retry would produce the same call";
                assert!(text.ends_with(expected), "{text}");
                assert_eq!(asked.reported, [""; 0]);
            }
        }
    }
}
