//! What goes wrong between us and a model: faults E1 to E5 and D3.

use std::time::Duration;

use fakellm::{Answer, Api, Script};
use tokio::time::{Instant, timeout};
use toolgate_models::ModelError;

use crate::recorded_tools::RecordedTools;
use crate::test_conversation::{APIS, HANG, TestConversation};

/// A request that fails for a while and then succeeds, and how often it was sent.
pub(crate) async fn after(
    api: Api,
    failures: impl IntoIterator<Item = Answer>,
) -> (TestConversation, Result<String, ModelError>) {
    let answers: Vec<_> = failures
        .into_iter()
        .chain([Answer::text("Here.")])
        .collect();
    let mut talk = TestConversation::new(api, answers).await;
    let turn = talk.tries("hello").await;
    (talk, turn.map(|turn| turn.answer))
}

#[tokio::test]
async fn e1_temporary_errors_are_retried() {
    for api in APIS {
        for status in [429, 500, 502, 503, 529] {
            let (talk, answer) =
                after(
                    api,
                    [Answer::fails(status, "overloaded_error", "try later")
                        .header("retry-after", "0")],
                )
                .await;
            assert_eq!(answer.unwrap(), "Here.", "{api:?} {status}");
            assert_eq!(talk.fake.requests().len(), 2, "{api:?} {status}");
            let bodies: Vec<_> = talk
                .fake
                .requests()
                .into_iter()
                .map(|request| request.body)
                .collect();
            assert_eq!(
                bodies[0], bodies[1],
                "{api:?} {status}: the very same request"
            );
        }
    }
}

#[tokio::test]
async fn e1_retry_after_is_honored() {
    for api in APIS {
        let started = Instant::now();
        let busy = Answer::fails(429, "rate_limit_error", "slow down").header("retry-after", "1");
        let mut talk = TestConversation::new(api, [busy, Answer::text("Here.")]).await;
        let turn = talk.tries("hello").await.unwrap();
        assert_eq!(turn.answer, "Here.", "{api:?}");
        assert!(started.elapsed() >= Duration::from_secs(1), "{api:?}");
        // The time to the first token includes the failed attempts.
        assert_eq!(turn.rounds[0].retries, 1, "{api:?}");
        assert!(turn.rounds[0].first_token_ms >= Some(1000.0), "{api:?}");
    }
}

#[tokio::test]
async fn e1_after_three_attempts_the_error_is_reported() {
    for api in APIS {
        let busy = Answer::fails(529, "overloaded_error", "Overloaded").header("retry-after", "0");
        let (talk, answer) = after(api, vec![busy; 3]).await;
        let error = answer.unwrap_err();
        assert!(error.to_string().contains("Overloaded"), "{api:?}: {error}");
        assert_eq!(talk.fake.requests().len(), 3, "{api:?}");
    }
}

#[tokio::test]
async fn e1_permanent_errors_are_not_retried() {
    for api in APIS {
        let spent = match api {
            Api::Anthropic => Answer::fails(
                400,
                "invalid_request_error",
                "Your credit balance is too low to access the API.",
            ),
            Api::Ollama => Answer::fails(403, "", "this model requires a subscription"),
            Api::OpenAi | Api::Gemini => Answer::fails(
                429,
                "insufficient_quota",
                "You exceeded your current quota, please check your plan and billing details.",
            ),
        };
        let cases = [
            Answer::fails(400, "invalid_request_error", "no"),
            Answer::fails(401, "authentication_error", "invalid x-api-key"),
            Answer::fails(403, "permission_error", "no"),
            Answer::fails(404, "not_found_error", "no such model"),
            Answer::fails(413, "request_too_large", "too large"),
            spent,
        ];
        for case in cases {
            let (talk, answer) = after(api, [case]).await;
            let error = answer.unwrap_err();
            assert!(!error.is_retryable(), "{api:?}: {error:?}");
            assert_eq!(talk.fake.requests().len(), 1, "{api:?}: {error}");
        }
    }
}

#[tokio::test]
async fn e1_a_spent_budget_is_not_waited_for() {
    let spent = Answer::fails(
        429,
        "rate_limit_error",
        "This request would exceed your organization's monthly spend limit.",
    );
    let (talk, answer) = after(Api::Anthropic, [spent]).await;
    assert!(
        matches!(
            answer,
            Err(ModelError::Limited {
                retryable: false,
                ..
            })
        ),
        "{answer:?}"
    );
    assert_eq!(talk.fake.requests().len(), 1);
}

#[tokio::test]
async fn e1_no_error_shows_the_key() {
    for api in APIS {
        let echo = Answer::fails(
            401,
            "authentication_error",
            "invalid key test-key-1234567890",
        );
        let (_, answer) = after(api, [echo]).await;
        let error = answer.unwrap_err();
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("test-key"), "{shown}");
    }
}

#[tokio::test]
async fn e1_an_error_after_200_is_retried_and_its_text_withdrawn() {
    for api in APIS {
        let begun = Answer::text("Wrong words").body_for(api);
        let error = match api {
            Api::Anthropic => {
                "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n"
            }
            Api::Ollama => "{\"error\":\"an error was encountered while running the model\"}\n",
            Api::OpenAi => {
                "data: {\"error\":{\"message\":\"The server had an error\",\"type\":\"server_error\",\"code\":null}}\n\n"
            }
            Api::Gemini => {
                "data: {\"error\":{\"code\":503,\"message\":\"The model is overloaded.\",\"status\":\"UNAVAILABLE\"}}\n\n"
            }
        };
        let marker: &[u8] = match api {
            Api::Anthropic => b"event: content_block_stop",
            Api::Ollama => b"{\"model\":\"fake\",\"created_at\":\"2026-11-16T00:00:01",
            Api::OpenAi => b"data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"fake\",\"choices\":[{\"index\":0,\"delta\":{},",
            Api::Gemini => b"data: {\"candidates\":[{\"finishReason\"",
        };
        let at = begun
            .windows(marker.len())
            .position(|bytes| bytes == marker)
            .unwrap();
        let body = [&begun[..at], error.as_bytes()].concat();
        let (talk, answer) = after(api, [Answer::raw(body)]).await;
        assert_eq!(answer.unwrap(), "Here.", "{api:?}");
        let reported = talk.reported.concat();
        let (before, after) = reported
            .split_once("<void>")
            .unwrap_or_else(|| panic!("{api:?}: {reported}"));
        assert!(
            before.contains("Wrong words") && after.contains("Here."),
            "{api:?}: {reported}"
        );
        assert!(after.contains("<retrying"), "{api:?}: {reported}");
    }
}

#[tokio::test]
async fn e1_a_reset_or_closed_connection_is_retried() {
    for api in APIS {
        for broken in [
            Answer::text("Wrong").reset_after(0),
            Answer::text("Wrong").cut_after(0),
            Answer::text("Wrong words").cut_in(api, "Wron"),
            Answer::text("Wrong").reset_after(20),
        ] {
            let (talk, answer) = after(api, [broken]).await;
            assert_eq!(answer.unwrap(), "Here.", "{api:?}");
            assert_eq!(talk.fake.requests().len(), 2, "{api:?}");
        }
    }
}

/// A body that ends properly but before the answer does: no provider ends a stream
/// without its last event.
#[tokio::test]
async fn e1_an_unfinished_stream_is_not_an_answer() {
    for api in APIS {
        let whole = Answer::text("Half a sentence").body_for(api);
        let end: &[u8] = match api {
            Api::Anthropic => b"event: message_delta",
            Api::Ollama => b"{\"model\":\"fake\",\"created_at\":\"2026-11-16T00:00:01",
            Api::OpenAi => b"data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"fake\",\"choices\":[{\"index\":0,\"delta\":{},",
            Api::Gemini => b"data: {\"candidates\":[{\"finishReason\"",
        };
        let at = whole
            .windows(end.len())
            .position(|bytes| bytes == end)
            .unwrap();
        let (talk, answer) = after(api, [Answer::raw(whole[..at].to_vec())]).await;
        assert_eq!(answer.unwrap(), "Here.", "{api:?}");
        assert_eq!(talk.fake.requests().len(), 2, "{api:?}");
    }
}

#[tokio::test]
async fn e1_a_silent_server_ends_at_the_first_byte_limit() {
    for api in APIS {
        let script = Script::always(Answer::black_hole());
        let mut talk = TestConversation::with(api, script, RecordedTools::new(), |settings| {
            settings.first_byte = Duration::from_millis(200);
        })
        .await;
        let error = talk.tries("hello").await.unwrap_err();
        assert!(
            matches!(&error, ModelError::TimedOut { what, .. } if *what == "begin to answer"),
            "{api:?}: {error:?}"
        );
        timeout(HANG, talk.fake.wait_for_disconnects(1))
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn e1_a_stream_that_stalls_ends_at_the_limit_of_the_turn() {
    for api in APIS {
        let script = Script::always(Answer::text("Well, you see").stall_after(40));
        let mut talk = TestConversation::with(api, script, RecordedTools::new(), |settings| {
            settings.timeout = Duration::from_millis(500);
        })
        .await;
        let error = talk.tries("hello").await.unwrap_err();
        assert!(
            matches!(&error, ModelError::TimedOut { .. }),
            "{api:?}: {error:?}"
        );
        timeout(HANG, talk.fake.wait_for_disconnects(1))
            .await
            .unwrap();
    }
}
