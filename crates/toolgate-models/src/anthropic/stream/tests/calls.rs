//! Calls, piece by piece.

use super::*;

#[test]
fn ai1_text_and_calls_keep_their_order_and_our_tool_names() {
    let (reply, reported) = run(&[
        START,
        TEXT,
        HELLO,
        END_0,
        &tool_start(1, "toolu_1", "home_time"),
        &piece(1, ""),
        &piece(1, r#"{"zone": "Euro"#),
        &piece(1, r#"pe/Oslo"}"#),
        END_1,
        &tool_start(2, "toolu_2", "made_up"),
        r#"{"type":"content_block_stop","index":2}"#,
        &ended("tool_use"),
        STOP,
    ]);
    assert_eq!(reported, "Hello");
    let reply = reply.unwrap();
    assert_eq!(reply.stop, StopReason::Calls);
    assert_eq!(
        reply.message.parts,
        [
            said("Hello"),
            call("toolu_1", "home.time", r#"{"zone":"Europe/Oslo"}"#),
            call("toolu_2", "made_up", "{}"),
        ]
    );
}

#[test]
fn arguments_are_what_the_model_wrote() {
    for (pieces, expected) in [
        (vec![], "{}"),
        (vec![""], "{}"),
        (vec!["null"], "{}"),
        (vec![r#"{"n":"#, "\"5\"}"], r#"{"n":"5"}"#),
        // Encoded twice, as small models do.
        (vec![r#""{\"n\":5}""#], r#"{"n":5}"#),
    ] {
        let pieces: Vec<String> = pieces.iter().map(|partial| piece(0, partial)).collect();
        let start = tool_start(0, "t", "dice");
        let mut events = vec![START, &start];
        events.extend(pieces.iter().map(String::as_str));
        let end = ended("tool_use");
        events.extend([END_0, &end, STOP]);
        let (reply, _) = run(&events);
        assert_eq!(
            reply.unwrap().message.parts,
            [call("t", "dice", expected)],
            "{pieces:?}"
        );
    }
}

#[test]
fn duplicate_arguments_are_kept_for_the_executor_to_refuse() {
    for twice in [r#"{"n":1,"n":2}"#, r#"{"n":"#, "[1]"] {
        let (reply, _) = run(&[
            &tool_start(0, "t", "dice"),
            &piece(0, twice),
            END_0,
            &ended("tool_use"),
            STOP,
        ]);
        let unusable = CallArguments::Unusable(twice.to_owned());
        let reply = reply.unwrap();
        let call = reply.message.calls().next().unwrap();
        assert_eq!(call.arguments, unusable);
    }
    let whole = r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"dice","input":{"n":1,"n":2}}}"#;
    let (reply, _) = run(&[whole, END_0, STOP]);
    let reply = reply.unwrap();
    let call = reply.message.calls().next().unwrap();
    assert!(matches!(call.arguments, CallArguments::Unusable(_)));
}

#[test]
fn input_at_the_start_of_a_block_is_used() {
    let whole = r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"dice","input":{"n":2}}}"#;
    let (reply, _) = run(&[whole, END_0, &ended("tool_use"), STOP]);
    assert_eq!(
        reply.unwrap().message.parts,
        [call("t", "dice", r#"{"n":2}"#)]
    );
}

#[test]
fn ids_are_kept_and_missing_ones_generated() {
    let no_id = r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","name":"dice"}}"#;
    let mut events = vec![no_id.to_owned(), END_0.to_owned()];
    for id in ["", "t", "t"] {
        events.extend([tool_start(0, id, "dice"), END_0.to_owned()]);
    }
    events.extend([ended("tool_use"), STOP.to_owned()]);
    let events: Vec<&str> = events.iter().map(String::as_str).collect();
    let reply = run(&events).0.unwrap();
    let ids: Vec<&str> = reply.message.calls().map(|call| call.id.as_str()).collect();
    assert_eq!(ids[2..], ["t", "t"]);
    assert!(!ids[0].is_empty() && !ids[1].is_empty() && ids[0] != ids[1]);
}

#[test]
fn a_call_cut_by_the_token_limit_is_dropped() {
    for (pieces, made) in [(r#"{"n": 1"#, false), ("", false), (r#"{"n": 1}"#, true)] {
        let (reply, _) = run(&[
            &tool_start(0, "whole", "dice"),
            END_0,
            &tool_start(1, "last", "dice"),
            &piece(1, pieces),
            END_1,
            &ended("max_tokens"),
            STOP,
        ]);
        let reply = reply.unwrap();
        let stop = if made {
            StopReason::Length
        } else {
            StopReason::TruncatedCall
        };
        assert_eq!(reply.stop, stop, "{pieces}");
        let ids: Vec<&str> = reply.message.calls().map(|call| call.id.as_str()).collect();
        let expected: &[&str] = if made { &["whole", "last"] } else { &["whole"] };
        assert_eq!(ids, expected, "{pieces}");
    }
}

#[test]
fn calls_count_with_any_stop_reason_except_refusal() {
    let start = tool_start(0, "t", "dice");
    for (reason, expected, calls) in [
        ("end_turn", StopReason::Calls, 1),
        ("refusal", StopReason::Refusal, 0),
        ("pause_turn", StopReason::Pause, 1),
    ] {
        let (reply, _) = run(&[&start, END_0, &ended(reason), STOP]);
        let reply = reply.unwrap();
        let found = (reply.stop, reply.message.calls().count());
        assert_eq!(found, (expected, calls), "{reason}");
    }
}

#[test]
fn two_hundred_calls_are_all_read() {
    let mut events = Vec::new();
    for index in 0..200 {
        events.push(tool_start(index, "same", "dice"));
        events.push(format!(
            r#"{{"type":"content_block_stop","index":{index}}}"#
        ));
    }
    events.extend([ended("tool_use"), STOP.to_owned()]);
    let events: Vec<&str> = events.iter().map(String::as_str).collect();
    let reply = run(&events).0.unwrap();
    assert_eq!(reply.message.calls().count(), 200);
}
