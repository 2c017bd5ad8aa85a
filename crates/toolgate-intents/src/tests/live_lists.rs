//! Lists of names that come from tools.

use super::*;

#[tokio::test]
async fn an_unreadable_list_is_reported_and_affects_only_sentences_with_names() {
    let interpreter = english_interpreter(&manager_with(house_tools(|| {
        Err(ToolError::failed("The gateway is away"))
    })));
    assert_eq!(
        say(&interpreter, "turn on the kitchen light").await,
        "I can't tell which device that is, because the list of devices could not be read: The gateway is away."
    );
    assert_eq!(
        say(&interpreter, "check z-wave").await,
        "check_zwave_health {}"
    );
}

#[tokio::test]
async fn only_read_only_tools_are_called_for_names() {
    let mut tools = house_tools(|| Ok(devices()));
    tools[0] = tool(
        "list_zwave_devices",
        object(json!({}), &[]),
        changing(),
        || panic!("must not be called"),
    );
    let text = say(
        &english_interpreter(&manager_with(tools)),
        "turn on the kitchen light",
    )
    .await;
    assert!(
        text.contains("the tool list_zwave_devices is not marked as read-only"),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_slow_list_times_out() {
    let (interpreter, _) = interpreter_with_slow_list(Duration::from_secs(60));
    let started = Instant::now();
    let text = say(&interpreter, "turn on the kitchen light").await;
    assert!(
        text.contains("the list of devices could not be read"),
        "{text}"
    );
    assert_eq!(started.elapsed(), crate::live_lists::LIST_TIMEOUT);
    say(&interpreter, "turn on the kitchen light").await;
    assert_eq!(
        started.elapsed(),
        crate::live_lists::LIST_TIMEOUT,
        "it is not asked again at once"
    );
}

#[tokio::test(start_paused = true)]
async fn a_list_is_cached_for_thirty_seconds_or_until_the_tools_change() {
    let reads = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&reads);
    let manager = manager_with(house_tools(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        Ok(devices())
    }));
    let interpreter = english_interpreter(&manager);
    let on = || say(&interpreter, "turn on the kitchen light");
    say(&interpreter, "check z-wave").await;
    assert_eq!(reads.load(Ordering::Relaxed), 0, "nobody asked for a name");
    on().await;
    on().await;
    say(&interpreter, "how warm is the bedroom").await;
    assert_eq!(
        reads.load(Ordering::Relaxed),
        1,
        "one reading for all slots"
    );
    tokio::time::advance(Duration::from_secs(29)).await;
    on().await;
    assert_eq!(reads.load(Ordering::Relaxed), 1);
    tokio::time::advance(Duration::from_secs(2)).await;
    on().await;
    assert_eq!(reads.load(Ordering::Relaxed), 2);
    manager.add_all(vec![tool(
        "more",
        object(json!({}), &[]),
        changing(),
        || Ok(json!(1)),
    )]);
    on().await;
    assert_eq!(reads.load(Ordering::Relaxed), 3);
}
