//! How much of a prompt the server has read.

use super::*;

/// The notices for a prompt of 200 tools if the server reports `count` tokens read, and a
/// window of `held` tokens.
async fn told_of_reading(count: usize, held: Option<usize>) -> Vec<String> {
    let many: Vec<Arc<dyn Tool>> = (0..200)
        .map(|n| remote(&format!("tool_{n}"), "house", &format!("tool_{n}")))
        .collect();
    let reply =
        json!({ "message": { "content": "Hello." }, "done": true, "prompt_eval_count": count });
    let mut scripts = vec![show(), lines(&[reply])];
    if let Some(held) = held {
        let loaded = json!({ "models": [{ "name": "qwen3:latest", "context_length": held }] });
        scripts.push(whole(200, &loaded.to_string()));
    }
    let server = LoopbackServer::start(scripts).await;
    let mut asked = ask(&settings(&server), &offer_of(&many)).await;
    assert!(asked.reply.is_ok());
    asked.reported.split_off(1)
}

#[tokio::test]
async fn a_cut_prompt_is_reported() {
    for (count, held, parts) in [
        (
            1024,
            None,
            ["read only 1024 of about", "OLLAMA_CONTEXT_LENGTH"],
        ),
        (
            4096,
            Some(4096),
            ["window of 4096 tokens", "OLLAMA_CONTEXT_LENGTH"],
        ),
    ] {
        let told = told_of_reading(count, held).await;
        assert!(
            told.len() == 1 && parts.iter().all(|part| told[0].contains(part)),
            "{told:?}"
        );
    }
    assert_eq!(told_of_reading(1024, Some(32_768)).await, [""; 0]);
}
