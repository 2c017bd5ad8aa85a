//! Tests every sentence of the pack, and generated sentences.

use std::sync::LazyLock;

use toolgate_core::ToolCall;

use super::*;

#[tokio::test]
async fn every_example_is_understood() {
    let interpreter = interpreter_with_all_tools();
    // Loads the names of the test home, which the examples use.
    say(&interpreter, "help").await;
    let known = interpreter
        .live_lists
        .snapshot(&interpreter.engine, &interpreter.toolbox.current());
    let examples = interpreter.engine.examples(&MatchContext {
        tools: &known.tools,
        lists: &known.lists,
        today: (interpreter.today)(),
        last_slots: &[],
        lookups: &LookupCache::default(),
    });
    let intents = interpreter.engine.pack.intents.iter();
    let with_example = intents.filter(|intent| intent.example.is_some());
    assert_eq!(examples.len(), with_example.count());
    for (index, example) in &examples {
        let intent = &interpreter.engine.pack.intents[*index];
        let said = example.replace('…', "dinner");
        let reply = ask(&interpreter, &[user(&said)]).await;
        assert_eq!(
            reply.calls.first().map(|(tool, _)| tool),
            intent.tool.as_ref(),
            "{example}"
        );
    }
}

#[tokio::test]
async fn the_arguments_of_every_sentence_are_valid() {
    let interpreter = interpreter_with_all_tools();
    let mut tried = BTreeSet::new();
    for (index, intent) in interpreter.engine.pack.intents.iter().enumerate() {
        for template in &intent.sentences {
            for text in samples(&template.parts) {
                let reply = ask(&interpreter, &[user(&text)]).await;
                let Some(tool) = intent.tool.as_ref().filter(|_| intent.ask.is_none()) else {
                    assert_eq!(reply.calls.len(), 0, "{text}");
                    continue;
                };
                // If several devices may be meant, the answer is a question.
                let asked = describe_answer(&reply);
                let reply = match intent.any.is_some() && asked.starts_with("Which one: ") {
                    true => {
                        let history = with_answer(vec![user(&text)], &reply);
                        ask(&interpreter, &[history, vec![user("the first")]].concat()).await
                    }
                    false => reply,
                };
                let Some((name, arguments)) = reply.calls.first() else {
                    panic!(
                        "'{text}' of '{template}' is not understood: {}",
                        describe_answer(&reply)
                    );
                };
                assert_eq!(name, tool, "'{text}' of '{template}'");
                let rehearsed = interpreter
                    .toolbox
                    .executor()
                    .dry_run(&ToolCall::new(name.as_str(), arguments.clone()));
                assert!(rehearsed.is_ok(), "'{text}': {:?}", rehearsed.err());
                tried.insert(index);
            }
        }
    }
    let calling = interpreter
        .engine
        .pack
        .intents
        .iter()
        .filter(|intent| intent.tool.is_some() && intent.ask.is_none());
    assert_eq!(tried.len(), calling.count());
}

// Expands a template so that each alternative occurs at least once, with filled slots.
fn samples(parts: &[template::TemplatePart]) -> Vec<String> {
    let mut all = vec![String::new()];
    for part in parts {
        let pieces = match part {
            template::TemplatePart::Word(word) => vec![word.clone()],
            template::TemplatePart::Slot(slot) => vec![sample(slot)],
            template::TemplatePart::OneOf(choices) => choices
                .iter()
                .flat_map(|parts| samples(parts))
                .chain(choices.iter().any(Vec::is_empty).then(String::new))
                .collect(),
        };
        // Not all combinations: each piece occurs once while the others rotate.
        let count = all.len().max(pieces.len());
        all = (0..count)
            .map(|index| {
                format!(
                    "{} {}",
                    all[index % all.len()],
                    pieces[index % pieces.len()]
                )
            })
            .collect();
    }
    all.iter()
        .map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect()
}

fn sample(slot: &template::TemplateSlot) -> String {
    if let Some(choice) = slot.choices.first() {
        return choice.clone();
    }
    let text = match slot.name.as_str() {
        "device" | "appliance" | "dimmer" => "kitchen light",
        "thermostat" => "living room thermostat",
        "door" => "front door",
        "room" => "bedroom",
        "zone" => "tokyo",
        "state" => "on",
        "sensor" => "temperature",
        "date" => "december 24",
        "from" => "december 1",
        "expression" => "5 times 7",
        "query" | "text" => "purple cats",
        "scene" => "dinner",
        "level" | "step" | "volume" => "30",
        "weekday" => "friday",
        "temperature" => "21.5",
        other => panic!("no sample for the slot '{other}'"),
    };
    text.to_owned()
}

static CLIENT: LazyLock<SentenceInterpreter> = LazyLock::new(interpreter_with_all_tools);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]


    #[test]
    fn no_sentence_panics_or_calls_several_tools(text in "(turn|on|off|the|kitchen|light|set|to|[0-9]{1,3}|what|is|plus|[a-zé%.'’(){}\\-]{1,8}| ){0,40}") {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let reply = runtime.block_on(async { ask(&CLIENT, &[user(&text)]).await });
        let tools: BTreeSet<&str> = reply.calls.iter().map(|(tool, _)| tool.as_str()).collect();
        prop_assert!(tools.len() <= 1);
    }
}

#[tokio::test]
async fn hostile_sentences_are_interpreted_quickly() {
    let interpreter = interpreter_with_all_tools();
    let started = Instant::now();
    for text in [
        "turn on ".repeat(32),
        "the ".repeat(64),
        "please ".repeat(64),
        "search for ".repeat(30),
        "what is ".to_owned() + &"1+".repeat(200),
        "what is ".to_owned() + &"(".repeat(500),
        "what is ".to_owned() + &"minus ".repeat(50) + "1",
        "what is ".to_owned() + &"sqrt ".repeat(60) + "1",
        "kitchen ".repeat(64),
        "\u{301}".repeat(200),
        "é".repeat(300),
        "one hundred million ".repeat(20),
        "x".repeat(1_000_000),
    ] {
        ask(&interpreter, &[user(&text)]).await;
    }
    // Guards against a hang: this takes a second, or ten on a busy machine, but exponential
    // matching would never end.
    assert!(
        started.elapsed() < Duration::from_secs(100),
        "{:?}",
        started.elapsed()
    );
}
