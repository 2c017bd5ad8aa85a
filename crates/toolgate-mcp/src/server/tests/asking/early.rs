//! Answers that a client sends before it was asked.

use super::*;

fn early(keys: &[&str]) -> Value {
    let answers = keys.iter().map(|key| ((*key).to_owned(), accepted()));
    json!({ "inputResponses": Map::from_iter(answers) })
}

fn questions_in(message: &Value) -> Vec<&String> {
    let requests = message["result"]["inputRequests"].as_object();
    requests.map_or_else(Vec::new, |requests| requests.keys().collect())
}

#[tokio::test(start_paused = true)]
async fn answers_to_the_whole_first_round_may_come_with_the_call() {
    let (server, _) = asking_server();
    let mut client = LineClient::new(server);
    let several = early(&["one", "two", "three"]);
    let done = client.modern("several", json!({}), several).await;
    assert_eq!(text(&done), json!([accepted(), accepted()]).to_string());

    let asked = client.modern("several", json!({}), early(&["one"])).await;
    assert_eq!(questions_in(&asked), ["one", "two"]);

    // They count for the first round only.
    let both = early(&["round 0", "round 1"]);
    let asked = client.modern("ask", json!({ "a": 2 }), both).await;
    assert_eq!(questions_in(&asked), ["round 1"]);
}

#[tokio::test(start_paused = true)]
async fn our_own_questions_are_not_answered_before_a_person_saw_them() {
    let manager = ToolManager::new();
    manager.add(tool("approve", |_, context| {
        Box::pin(async move {
            let mut question = form("approval");
            question.server = Question::OWN.to_owned();
            let answers = context.questions().unwrap().ask(vec![question]).await;
            Ok(ToolOutput::text(answers_to_json(answers).to_string()))
        })
    }));
    let mut client = LineClient::new(server(&Arc::new(manager)));
    let asked = client
        .modern("approve", json!({}), early(&["approval"]))
        .await;
    assert_eq!(questions_in(&asked), ["approval"]);
}
