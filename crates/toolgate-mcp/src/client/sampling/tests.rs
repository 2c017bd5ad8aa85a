use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

/// Repeats what it was asked, and counts a token for each letter.
#[derive(Default)]
struct EchoHandler {
    hangs: AtomicBool,
    fails: AtomicBool,
}

impl SamplingHandler for EchoHandler {
    fn sample<'a>(
        &'a self,
        request: &'a SamplingRequest,
    ) -> BoxFuture<'a, Result<SamplingAnswer, String>> {
        Box::pin(async move {
            if self.hangs.load(Ordering::Relaxed) {
                std::future::pending::<()>().await;
            }
            if self.fails.load(Ordering::Relaxed) {
                return Err("nobody listens at 10.0.0.7".to_owned());
            }
            let messages = request.messages.iter().map(|message| message.text.as_str());
            let text: String = messages.collect();
            let longest = usize::try_from(request.max_tokens).unwrap();
            let is_cut = text.len() > longest;
            let text: String = text.chars().take(longest).collect();
            Ok(SamplingAnswer {
                model: "echo-1".to_owned(),
                is_cut,
                input_tokens: self.input_tokens(request),
                output_tokens: text.len() as u64,
                text,
            })
        })
    }

    fn input_tokens(&self, request: &SamplingRequest) -> u64 {
        let messages = request.messages.iter();
        messages.map(|message| message.text.len() as u64).sum()
    }
}

fn allowance(max_tokens: u64, tokens_per_day: u64) -> SamplingAllowance {
    SamplingAllowance::new(SamplingSettings {
        max_tokens,
        tokens_per_day,
    })
}

fn ask(text: &str, max_tokens: u64) -> Value {
    let content = json!({ "type": "text", "text": text });
    json!({ "messages": [{ "role": "user", "content": content }], "maxTokens": max_tokens })
}

async fn answer(allowance: &SamplingAllowance, params: &Value) -> Result<Value, RpcError> {
    let handler = EchoHandler::default();
    let redactor = Redactor::default();
    allowance
        .answer(&handler, &redactor, "notes", params, None)
        .await
}

#[tokio::test]
async fn an_answer_has_the_form_of_mcp_and_says_why_it_ended() {
    let allowance = allowance(5, 1000);
    let mut stopped = ask("ab|cd", 9);
    stopped["stopSequences"] = json!(["x", "|"]);
    let mut blocks = ask("", 9);
    blocks["messages"][0]["content"] =
        json!([{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }]);
    for (params, text, reason) in [
        (ask("abc", 9), "abc", "endTurn"),
        (ask("abcdefgh", 9), "abcde", "maxTokens"),
        (ask("abc", 2), "ab", "maxTokens"),
        (stopped, "ab", "stopSequence"),
        (blocks, "a\nb", "endTurn"),
    ] {
        let expected = json!({
            "role": "assistant",
            "content": { "type": "text", "text": text },
            "model": "echo-1",
            "stopReason": reason,
        });
        assert_eq!(answer(&allowance, &params).await.unwrap(), expected);
    }
    assert_eq!(allowance.usage().requests, 5);
}

#[tokio::test]
async fn what_the_model_is_not_given_is_refused_with_a_reason() {
    let allowance = allowance(5, 1000);
    let mut tools = ask("abc", 9);
    tools["tools"] = json!([{ "name": "x" }]);
    let mut image = ask("abc", 9);
    image["messages"][0]["content"] =
        json!({ "type": "image", "data": "", "mimeType": "image/png" });
    let mut role = ask("abc", 9);
    role["messages"][0]["role"] = json!("system");
    for (params, code, reason) in [
        (tools, REJECTED, "without tools"),
        (image, REJECTED, "'image'"),
        (role, INVALID_PARAMS, "role"),
        (ask("abc", 0), INVALID_PARAMS, "maxTokens"),
        (
            json!({ "maxTokens": 1, "messages": [] }),
            INVALID_PARAMS,
            "messages",
        ),
        (
            ask(&"x".repeat(MAX_TEXT + 1), 1),
            INVALID_PARAMS,
            "too long",
        ),
    ] {
        let error = answer(&allowance, &params).await.unwrap_err();
        assert_eq!(error.code, code, "{error:?}");
        assert!(error.message.contains(reason), "{error:?}");
    }
    let usage = allowance.usage();
    assert_eq!((usage.requests, usage.refused, usage.tokens), (0, 6, 0));
}

#[tokio::test(start_paused = true)]
async fn a_day_has_no_more_tokens_than_allowed() {
    let allowance = allowance(10, 20);
    // 4 to read and at most 10 to write, of which 4 are written.
    answer(&allowance, &ask("abcd", 99)).await.unwrap();
    assert_eq!(allowance.usage().tokens, 8);
    let error = answer(&allowance, &ask("abcd", 99)).await.unwrap_err();
    assert!(error.message.contains("12 of 20 per day"), "{error:?}");
    answer(&allowance, &ask("abcd", 8)).await.unwrap();
    assert_eq!(allowance.usage().tokens, 16);
    tokio::time::advance(DAY).await;
    assert_eq!(allowance.usage().tokens, 0);
    answer(&allowance, &ask("abcd", 99)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_model_that_hangs_is_given_up_and_counts_as_used() {
    let allowance = allowance(10, 20);
    let handler = EchoHandler::default();
    handler.hangs.store(true, Ordering::Relaxed);
    let redactor = Redactor::default();
    let params = ask("abcd", 10);
    let hung = allowance.answer(&handler, &redactor, "notes", &params, None);
    let error = hung.await.unwrap_err();
    assert_eq!(error.message, "the model did not answer in time");
    assert_eq!(allowance.usage().tokens, 14);
}

#[tokio::test]
async fn a_server_is_not_told_why_the_model_failed() {
    let allowance = allowance(10, 20);
    let handler = EchoHandler::default();
    handler.fails.store(true, Ordering::Relaxed);
    let redactor = Redactor::default();
    for _ in 0..5 {
        let params = ask("abcd", 10);
        let failed = allowance.answer(&handler, &redactor, "notes", &params, None);
        let error = failed.await.unwrap_err();
        assert_eq!(error.message, "the model can't answer at the moment");
    }
    let usage = allowance.usage();
    assert_eq!((usage.tokens, usage.refused), (0, 5));
}
