//! The names that a model knows, and the tools that it may use.

use toolgate_core::{Policy, ToolPattern};

use super::*;

fn dotted() -> Arc<dyn Tool> {
    tool("house.lamp", async |_| {
        Err(ToolError::TimedOut {
            tool: "house.lamp".to_owned(),
            after: Duration::from_secs(3),
        })
    })
}

#[tokio::test(start_paused = true)]
async fn errors_use_the_tool_names_the_model_knows() {
    let script = ModelScript::new([calls([
        call("a", "house.lamp", json!({})),
        call("b", "house_lomp", json!({})),
    ])]);
    let mut conversation = conversation(&script, [dotted(), echo()]);
    say(&mut conversation, "?").await;
    let wire_name = script.asked()[0].tools[1].clone();
    assert!(!wire_name.contains('.'), "{wire_name}");
    let results = last_results(&conversation);
    assert_eq!(
        results[0].text,
        format!("Tool '{wire_name}' timed out after 3 s")
    );
    assert_eq!(
        results[1].text,
        format!(
            "Unknown tool: 'house_lomp'. Did you mean '{wire_name}'? Available tools: {wire_name}, echo"
        )
    );
}

#[tokio::test(start_paused = true)]
async fn unknown_tool_errors_name_similar_tools_first() {
    let many = (0..300).map(|n| tool(&format!("tool_{n:03}"), async |_| Ok(ToolOutput::text(""))));
    let last = tool("weather", async |_| Ok(ToolOutput::text("")));
    let script = ModelScript::new([calls([call("a", "wether", json!({}))])]);
    let mut conversation = conversation(&script, many.chain([last]));
    say(&mut conversation, "?").await;
    let text = &last_results(&conversation)[0].text;
    assert!(
        text.starts_with(
            "Unknown tool: 'wether'. Did you mean 'weather'? Available tools: weather, tool_000, tool_001"
        ),
        "{text}"
    );
    assert!(text.ends_with(" and 251 more"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn an_absurdly_long_name_is_cut() {
    let name = "n\n".repeat(100_000);
    let script = ModelScript::new([calls([call("a", &name, json!({}))])]);
    let mut conversation = conversation(&script, [echo()]);
    say(&mut conversation, "?").await;
    let text = &last_results(&conversation)[0].text;
    assert!(
        text.starts_with("Unknown tool: 'n\\nn\\n") && text.len() < 500,
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_was_not_offered_does_not_run() {
    let secret = || tool("secret", async |_| panic!("it ran"));
    let executor = ToolExecutor::new(manager([echo(), secret()]));
    let toolbox = Toolbox::new(executor).only_if_any([ToolPattern::new("ec*")]);
    let script = ModelScript::new([calls([
        call("a", "secret", json!({})),
        call("b", "echo", json!({})),
    ])]);
    let mut conversation = Conversation::new(script.clone(), toolbox, ModelSettings::default());
    say(&mut conversation, "?").await;
    let results = last_results(&conversation);
    assert_eq!(
        results[0].text,
        "Unknown tool: 'secret'. Available tools: echo"
    );
    assert_eq!(results[1].text, "{}");
    assert_eq!(script.asked()[0].tools, ["echo"]);
}

#[tokio::test(start_paused = true)]
async fn a_hidden_tool_is_not_offered_named_or_run() {
    let mut policy = Policy::default();
    policy.deny = vec![ToolPattern::new("secret")];
    let secret = tool("secret", async |_| panic!("it ran"));
    let executor = ToolExecutor::builder(manager([echo(), secret]))
        .policy(policy)
        .build();
    let script = ModelScript::new([calls([call("a", "secret", json!({}))])]);
    let mut conversation = Conversation::new(
        script.clone(),
        Toolbox::new(executor),
        ModelSettings::default(),
    );
    say(&mut conversation, "?").await;
    assert_eq!(
        last_results(&conversation)[0].text,
        "Unknown tool: 'secret'. Available tools: echo"
    );
    assert_eq!(script.asked()[0].tools, ["echo"]);
}

#[test]
fn a_tool_list_is_reused_until_something_changes() {
    let manager = manager([echo()]);
    let toolbox = Toolbox::new(ToolExecutor::new(Arc::clone(&manager)));
    let first = toolbox.current();
    assert!(Arc::ptr_eq(&first, &toolbox.current()));
    assert!(
        Arc::ptr_eq(&first, &toolbox.clone().current()),
        "clones share it"
    );
    manager.add_all([hang()]);
    let second = toolbox.current();
    assert_eq!((first.tools().len(), second.tools().len()), (1, 2));
    let only = toolbox.clone().only_if_any([ToolPattern::new("hang")]);
    assert_eq!(only.current().tools().len(), 1);
    assert_eq!(toolbox.current().tools().len(), 2);
    assert!(only.allows("hang") && only.allows("nope") && !only.allows("echo"));
}
