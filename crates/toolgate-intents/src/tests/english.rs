//! Sentences for the shipped tools, and the calls they become.

use super::*;

#[tokio::test]
async fn sentences_for_built_in_tools_become_calls() {
    let interpreter = interpreter_with_all_tools();
    let now = r#"datetime {}"#;
    let up = r#"volume {"action":"up"}"#;
    let down = r#"volume {"action":"down"}"#;
    let mute = r#"volume {"action":"mute"}"#;
    let forty = r#"volume {"action":"set","level":40}"#;
    let christmas = r#"datetime {"action":"difference","until":"2026-12-25"}"#;
    for (text, expected) in [
        ("what time is it", now),
        ("What time is it?", now),
        ("WHAT TIME IS IT", now),
        ("What's the time?", now),
        ("whats the time please", now),
        ("Hey, could you tell me what time it is?", now),
        ("time", now),
        ("Um, what time is it right now?", now),
        (
            "what time is it in Tokyo",
            r#"datetime {"timezone":"Asia/Tokyo"}"#,
        ),
        (
            "What time is it in New York?",
            r#"datetime {"timezone":"America/New_York"}"#,
        ),
        (
            "what's the time in São Paulo",
            r#"datetime {"timezone":"America/Sao_Paulo"}"#,
        ),
        (
            "time in germany",
            r#"datetime {"timezone":"Europe/Berlin"}"#,
        ),
        (
            "what time is it in Europe/Berlin",
            r#"datetime {"timezone":"Europe/Berlin"}"#,
        ),
        (
            "what time is it in tokio",
            r#"datetime {"timezone":"Asia/Tokyo"}"#,
        ),
        (
            "what is the current time in the uk",
            r#"datetime {"timezone":"Europe/London"}"#,
        ),
        ("what day is it today", now),
        ("What's today's date?", now),
        (
            "what is the date in sydney",
            r#"datetime {"timezone":"Australia/Sydney"}"#,
        ),
        ("which day of the week is it", now),
        ("what week is it", now),
        (
            "what day is December 24th?",
            r#"datetime {"action":"weekday","date":"2026-12-24"}"#,
        ),
        (
            "what weekday was 2000-02-29",
            r#"datetime {"action":"weekday","date":"2000-02-29"}"#,
        ),
        (
            "what day is tomorrow",
            r#"datetime {"action":"weekday","date":"2026-11-17"}"#,
        ),
        ("how many days until christmas", christmas),
        ("How many days is it until Christmas?", christmas),
        ("how long until the 25th of december", christmas),
        ("when is christmas", christmas),
        ("days until 2026-12-25", christmas),
        (
            "how many days are there between march 1 2026 and april 1 2026",
            r#"datetime {"action":"difference","date":"2026-03-01","until":"2026-04-01"}"#,
        ),
        ("what is 2 plus 2", r#"math_eval {"expression":"2 + 2"}"#),
        (
            "What's two plus two?",
            r#"math_eval {"expression":"2 + 2"}"#,
        ),
        ("what is 2+2", r#"math_eval {"expression":"2 + 2"}"#),
        ("what is 2 + 2 =", r#"math_eval {"expression":"2 + 2"}"#),
        ("2+2", r#"math_eval {"expression":"2 + 2"}"#),
        (
            "what is 12% of 80",
            r#"math_eval {"expression":"12% * 80"}"#,
        ),
        (
            "What is twelve percent of eighty.",
            r#"math_eval {"expression":"12% * 80"}"#,
        ),
        (
            "how much is 5 times 7",
            r#"math_eval {"expression":"5 * 7"}"#,
        ),
        (
            "calculate the square root of 16",
            r#"math_eval {"expression":"sqrt(16)"}"#,
        ),
        (
            "please calculate (1.2 + 3) * 2",
            r#"math_eval {"expression":"(1.2 + 3) * 2"}"#,
        ),
        ("what is -5 + 3", r#"math_eval {"expression":"-5 + 3"}"#),
        (
            "convert 5 feet to inches",
            r#"math_eval {"expression":"5 ft to inch"}"#,
        ),
        (
            "what is 20 degrees celsius in fahrenheit",
            r#"math_eval {"expression":"20 degC to degF"}"#,
        ),
        (
            "what is three hundred and five divided by five",
            r#"math_eval {"expression":"305 / 5"}"#,
        ),
        ("set the volume to 40", forty),
        ("Set volume to 40%.", forty),
        ("set the volume to forty percent", forty),
        ("volume 40", forty),
        ("turn the volume down to 40 percent", forty),
        (
            "could you please set the volume to 40 percent for me",
            forty,
        ),
        ("set the volume to 150", "The volume goes from 0 to 100."),
        ("add 5 and 7", r#"math_eval {"expression":"5 + 7"}"#),
        ("two plus two equals", r#"math_eval {"expression":"2 + 2"}"#),
        (
            "what is a 20 percent tip on 45 dollars",
            r#"math_eval {"expression":"20% * 45"}"#,
        ),
        ("1 000 times 3", r#"math_eval {"expression":"1000 * 3"}"#),
        (
            "one and a half times two",
            r#"math_eval {"expression":"1.5 * 2"}"#,
        ),
        (
            "convert 72 f to c",
            r#"math_eval {"expression":"72 degF to degC"}"#,
        ),
        (
            "what time is it in EST",
            r#"datetime {"timezone":"America/New_York"}"#,
        ),
        ("what time is it in CET", r#"datetime {"timezone":"CET"}"#),
        ("time in cest", r#"datetime {"timezone":"CET"}"#),
        ("what time is it in GMT", r#"datetime {"timezone":"UTC"}"#),
        (
            "what time is it in MST",
            r#"datetime {"timezone":"America/Denver"}"#,
        ),
        (
            "what time is it in BST",
            "Which one: Asia/Dhaka or Europe/London?",
        ),
        (
            "what time is it in tokyo japan",
            r#"datetime {"timezone":"Asia/Tokyo"}"#,
        ),
        (
            "what time is it in atlanta, georgia",
            r#"datetime {"timezone":"America/New_York"}"#,
        ),
        (
            "what time is it in georgia",
            "Which one: America/New_York or Asia/Tbilisi?",
        ),
        (
            "what date is it tomorrow",
            r#"datetime {"action":"weekday","date":"2026-11-17"}"#,
        ),
        (
            "what day is next friday",
            r#"datetime {"action":"weekday","date":"2026-11-20"}"#,
        ),
        (
            "what day is december twenty fourth",
            r#"datetime {"action":"weekday","date":"2026-12-24"}"#,
        ),
        ("is it friday today", now),
        ("how many weeks until christmas", christmas),
        ("turn it up to eleven", up),
        ("turn it up to 40", r#"volume {"action":"set","level":40}"#),
        ("turn the volume up", up),
        ("Turn up the volume!", up),
        ("louder", up),
        ("make it a bit louder please", up),
        ("turn it up", up),
        (
            "increase the volume by ten percent",
            r#"volume {"action":"up","step":10}"#,
        ),
        ("volume up 5", r#"volume {"action":"up","step":5}"#),
        ("turn the volume down", down),
        ("quieter", down),
        ("lower the volume", down),
        (
            "decrease the volume by 20",
            r#"volume {"action":"down","step":20}"#,
        ),
        ("mute", mute),
        ("Mute the sound.", mute),
        ("turn off the sound", mute),
        ("unmute", r#"volume {"action":"unmute"}"#),
        ("turn the sound back on", r#"volume {"action":"unmute"}"#),
        ("what is the volume", r#"volume {"action":"get"}"#),
        ("how loud is it", r#"volume {"action":"get"}"#),
        (
            "search for Ada Lovelace",
            r#"search {"query":"Ada Lovelace"}"#,
        ),
        (
            "Search the web for the tallest mountain in Europe.",
            r#"search {"query":"the tallest mountain in Europe"}"#,
        ),
        (
            "look up C++ templates",
            r#"search {"query":"C++ templates"}"#,
        ),
        ("google cats please", r#"search {"query":"cats"}"#),
        (
            "search my notes for the warranty",
            r#"documents {"query":"the warranty"}"#,
        ),
        (
            "search for passport in my documents",
            r#"documents {"query":"passport"}"#,
        ),
        ("echo hello there", r#"echo {"text":"hello there"}"#),
        ("waht time is it", now),
        ("set the volme to 40", forty),
        ("serach for cats", r#"search {"query":"cats"}"#),
    ] {
        assert_eq!(say(&interpreter, text).await, expected, "{text}");
    }
}

#[tokio::test]
async fn other_sentences_cause_no_calls() {
    let interpreter = interpreter_with_all_tools();
    for text in [
        "what is the weather",
        "what is love",
        "what is the meaning of life",
        "tell me a joke",
        "turn",
        "turn on",
        "the",
        "set a timer for 5 minutes",
        "what is 5",
        "how many days until",
        "what is the capital of France",
        "open the pod bay doors",
        "set the volume",
        "search",
        "what time is it in Atlantis Springs",
        "who is 5 plus 5",
        "play some music",
        "remind me to buy milk",
        "increese",
        "kitchen",
        "light",
        "do not turn on the kitchen light",
        "never turn off the kitchen light",
        "turn on the kitchen light tomorrow",
        "turn on",
        "",
        "   ",
        "?!",
        "…",
        "{device}",
        "turn on {device}",
        "'; drop table devices; --",
    ] {
        let reply = ask(&interpreter, &[user(text)]).await;
        assert_eq!(reply.calls.len(), 0, "{text}: {}", describe_answer(&reply));
        assert!(!reply.text.is_empty(), "{text}");
    }
}

#[tokio::test]
async fn plain_answers_need_no_tool() {
    let interpreter = english_interpreter(&manager_with(Vec::new()));
    for (text, expected) in [
        ("thanks", "You're welcome."),
        ("Thank you very much!", "You're welcome."),
        ("never mind", "All right."),
        ("hello", "Hello! Say “help” to hear what I can do."),
        (
            "help",
            "I don't know any sentences for the tools I have. Add tools, or add your own sentences for them.",
        ),
    ] {
        assert_eq!(say(&interpreter, text).await, expected);
    }
    let long = "turn on ".repeat(100);
    assert_eq!(
        say(&interpreter, &long).await,
        "That's too long for me. Please say it in one short sentence."
    );
}

#[tokio::test]
async fn help_lists_examples_for_available_tools() {
    let builtin = english_interpreter(&manager_with(
        HandlerRegistry::new(&BuiltinSettings::default()).builtin_tools(),
    ));
    let help = say(&builtin, "What can you do?").await;
    assert!(
        help.starts_with("You can say, for example:\n- what time is it in Tokyo\n"),
        "{help}"
    );
    assert!(!help.contains("kitchen light"), "{help}");
    assert!(
        say(&interpreter_with_all_tools(), "help")
            .await
            .contains("\n- turn on the kitchen light"),
        "the house has lights"
    );
}

#[tokio::test]
async fn examples_name_existing_devices() {
    let device = |name: &str, kind: &str| json!({ "name": name, "location": "Hall", "type": kind });
    let devices = json!({ "devices": [
        device("Balcony Door", "sensor"), device("Climate Sensor", "sensor"), device("TV Plug", "switch"),
        device("Entrance", "lock"), device("Floor Lamp", "dimmer"),
    ] });
    let house = english_interpreter(&manager_with(house_tools(move || Ok(devices.clone()))));
    let help = say(&house, "help").await;
    for example in [
        "is the TV plug on",
        "turn on the TV plug",
        "dim the floor lamp to 30 percent",
        "what is the temperature of the climate sensor",
        "lock the entrance",
        "activate the scene …",
    ] {
        assert!(
            help.contains(&format!("\n- {example}\n")),
            "{example}: {help}"
        );
    }
    assert!(!help.contains("degrees"), "{help}");
    let away = house_tools(|| Err(ToolError::failed("The gateway is away")));
    let help = say(&english_interpreter(&manager_with(away)), "help").await;
    assert!(help.contains("\n- turn on the …\n"), "{help}");
}

#[tokio::test]
async fn unknown_sentences_get_the_nearest_examples() {
    let interpreter = interpreter_with_all_tools();
    for (text, example) in [
        ("make the volume purple", "“turn the volume up”"),
        ("what about some sound", "“mute the sound”"),
        ("brighten my mood", "“dim the kitchen light to 30 percent”"),
        ("which year is it", "“what day is it today”"),
    ] {
        let said = say(&interpreter, text).await;
        let start = format!("I did not understand that. You could say {example}");
        assert!(said.starts_with(&start), "{text}: {said}");
    }
}
