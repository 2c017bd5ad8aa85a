//! Measures what a round with a model costs besides the model, for a side-by-side comparison with
//! LangChain.js. The last line of output is one JSON object.
//!
//! ```text
//! models_slot double                a model that answers at once; prints its address, ends when
//! stdin closes models_slot rounds SECONDS URL    {"wall_us": …, "cpu_us": …, "user_us": …,
//! "system_us": …}: one round with 30 tools, a call in every second one models_slot convert SECONDS
//! {"new_ms": …, "changed_ms": …, "again_ms": …}: 1,000 tools into Qwen form, ready to be sent;
//! then
//!                                   with one of them exchanged, and once more
//! models_slot first_token COUNT     {"p50_us": …, "p99_us": …}: from the server's write of a first
//! word to the listener
//! ```

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use fakellm::{Answer, FakeLlm, Script};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::Instant;
use toolgate_core::{
    Arguments, FunctionTool, Tool, ToolDefinition, ToolError, ToolExecutor, ToolManager,
};
use toolgate_models::{
    Conversation, ModelClient, ModelEvent, ModelSettings, OfferedTools, OllamaClient, ToolList,
    Toolbox,
};

type Failure = Box<dyn std::error::Error>;

const WARM_UP: Duration = Duration::from_millis(500);
// `/proc` counts CPU time in ticks of 10 ms.
const TICK_US: f64 = 10_000.0;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["double"] => double().await?,
        ["rounds", seconds, url] => println(&rounds(seconds.parse()?, url).await?),
        ["convert", seconds] => println(&convert(seconds.parse()?)?),
        ["first_token", count] => println(&first_token(count.parse()?).await?),
        _ => return Err(
            "usage: models_slot double | rounds SECONDS URL | convert SECONDS | first_token COUNT"
                .into(),
        ),
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the measurement is the output")]
fn println(line: &(impl std::fmt::Display + ?Sized)) {
    println!("{line}");
}

/// Alternates between a call and an answer.
async fn double() -> Result<(), Failure> {
    let mut calls = true;
    let script = Script::from_fn(move |_| {
        calls = !calls;
        match calls {
            true => Answer::text("Switch One is on."),
            false => Answer::call(
                "call_1",
                "tool_7",
                &json!({ "device": "Switch One", "level": 7, "on": true }),
            ),
        }
    });
    let fake = Arc::new(FakeLlm::lenient(script).await);
    println(fake.url());
    let forgetting = Arc::clone(&fake);
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_millis(100)).await;
            forgetting.clear_requests();
        }
    });
    let input = || std::io::stdin().read_to_end(&mut Vec::new());
    tokio::task::spawn_blocking(input).await??;
    Ok(())
}

/// The tools of both sides: `benches/langchain/slot.mjs` has the same list.
fn tools(count: usize) -> Result<Vec<Arc<dyn Tool>>, Failure> {
    let schema = json!({ "type": "object", "required": ["device", "on"], "properties": {
        "device": { "type": "string", "description": "The device as people call it" },
        "on": { "type": "boolean", "description": "Whether it should be on" },
        "level": { "type": "integer", "description": "How bright, in percent" },
        "mode": { "type": "string", "enum": ["now", "later"] },
        "rooms": { "type": "array", "items": { "type": "string" } } } });
    let tools = (0..count).map(|index| {
        let description = format!("Switches the devices of group {index} and reports the outcome");
        let definition =
            ToolDefinition::builder(format!("tool_{index}"), description, schema.clone());
        let tool =
            FunctionTool::with_definition(definition, |arguments: Arguments, _| async move {
                Ok::<_, ToolError>(json!({ "device": arguments.get("device"), "state": "on" }))
            })?;
        Ok(Arc::new(tool) as Arc<dyn Tool>)
    });
    tools.collect()
}

fn settings(url: &str) -> ModelSettings {
    let mut settings = ModelSettings::default();
    settings.name = "fake".to_owned();
    settings.url = url.to_owned();
    settings
}

async fn rounds(seconds: f64, url: &str) -> Result<Value, Failure> {
    let manager = Arc::new(ToolManager::new());
    manager.add_all(tools(30)?);
    // Logging is off in the other program too.
    let toolbox = Toolbox::new(ToolExecutor::builder(manager).without_observers().build());
    let settings = settings(url);
    let client = Arc::new(OllamaClient::new(&settings)?);
    let turn = async || -> Result<usize, Failure> {
        let client: Arc<dyn ModelClient> = Arc::<OllamaClient>::clone(&client);
        let mut conversation = Conversation::new(client, toolbox.clone(), settings.clone());
        let turn = conversation
            .turn("Turn on Switch One", &mut |_: ModelEvent<'_>| {})
            .await?;
        if turn.answer != "Switch One is on." || turn.rounds.len() != 2 {
            return Err(format!("{turn:?}").into());
        }
        Ok(turn.rounds.len())
    };
    let warm = Instant::now();
    while warm.elapsed() < WARM_UP {
        turn().await?;
    }
    let ((user, system), start, mut count) = (cpu_us()?, Instant::now(), 0);
    while start.elapsed().as_secs_f64() < seconds {
        count += turn().await?;
    }
    let each = |whole: f64| (whole / count as f64 * 10.0).round() / 10.0;
    let wall = start.elapsed().as_secs_f64() * 1e6;
    let (user_now, system_now) = cpu_us()?;
    let (user, system) = (user_now - user, system_now - system);
    Ok(
        json!({ "wall_us": each(wall), "cpu_us": each(user + system), "user_us": each(user), "system_us": each(system), "rounds": count }),
    )
}

/// User and system CPU time of this process so far.
fn cpu_us() -> Result<(f64, f64), Failure> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    // The process name before the `)` may contain spaces. Counted from the start of the line,
    // fields 14 and 15 are user and system time.
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    let ticks = |index: usize| {
        fields
            .get(index)
            .and_then(|field| field.parse::<f64>().ok())
    };
    let (user, system) = ticks(11)
        .zip(ticks(12))
        .ok_or("no times in /proc/self/stat")?;
    Ok((user * TICK_US, system * TICK_US))
}

/// Times three lists: a new one, one with a single tool exchanged, and that list again.
fn convert(seconds: f64) -> Result<Value, Failure> {
    let settings = settings("");
    let tools = tools(1000)?;
    let mut changed = tools.clone();
    changed[500] = Arc::clone(&self::tools(501)?[500]);
    let (mut times, start) = ([const { Vec::new() }; 3], Instant::now());
    while start.elapsed().as_secs_f64() < seconds || times[0].len() < 20 {
        let client = OllamaClient::new(&settings)?;
        let [new, changed] = [&tools, &changed].map(|list| Arc::new(ToolList::new(list.clone())));
        for (times, list) in times.iter_mut().zip([&new, &changed, &changed]) {
            let before = Instant::now();
            let text = serde_json::to_string(&OfferedTools::all(client.catalog(list)))?;
            times.push(before.elapsed().as_secs_f64() * 1e3);
            if text.len() < 100_000 {
                return Err(text.into());
            }
        }
    }
    let [new, changed, again] = times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        (times[times.len() / 2] * 1000.0).round() / 1000.0
    });
    Ok(json!({ "new_ms": new, "changed_ms": changed, "again_ms": again }))
}

/// A server on its own thread writes the head of an answer and, a moment later, the first word.
async fn first_token(count: usize) -> Result<Value, Failure> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}", listener.local_addr()?);
    let written = Arc::new(Mutex::new(Instant::now()));
    let server = Arc::clone(&written);
    std::thread::spawn(move || serve(&listener, &server));
    let settings = settings(&url);
    let client: Arc<dyn ModelClient> = Arc::new(OllamaClient::new(&settings)?);
    let toolbox = Toolbox::new(ToolExecutor::new(Arc::new(ToolManager::new())));
    let mut delays = Vec::new();
    for _ in 0..count {
        let mut conversation =
            Conversation::new(Arc::clone(&client), toolbox.clone(), settings.clone());
        let mut first_text = None;
        let mut listener = |event: ModelEvent<'_>| {
            if let ModelEvent::Text(_) = event {
                first_text.get_or_insert_with(Instant::now);
            }
        };
        conversation.turn("hello", &mut listener).await?;
        let first_text = first_text.ok_or("the model sent no text")?;
        let written = *written.lock();
        delays.push(first_text.duration_since(written).as_secs_f64() * 1e6);
    }
    delays.sort_by(f64::total_cmp);
    let at = |part: f64| delays[((delays.len() - 1) as f64 * part) as usize].round();
    Ok(json!({ "p50_us": at(0.5), "p99_us": at(0.99), "max_us": at(1.0) }))
}

fn serve(listener: &TcpListener, written: &Mutex<Instant>) {
    for stream in listener.incoming().map_while(Result::ok) {
        // A client that disconnects is not an error.
        drop(answer(stream, written));
    }
}

#[expect(clippy::disallowed_methods, reason = "on a thread of its own")]
fn answer(mut stream: std::net::TcpStream, written: &Mutex<Instant>) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut request = Vec::new();
    let mut buffer = [0; 65_536];
    // The last byte of a JSON body is its brace, so no length has to be parsed.
    while !request.ends_with(b"}") {
        let count = stream.read(&mut buffer)?;
        if count == 0 {
            return Ok(());
        }
        request.extend_from_slice(&buffer[..count]);
    }
    if !request.starts_with(b"POST /api/chat") {
        return stream.write_all(
            b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
        );
    }
    stream.write_all(
        b"HTTP/1.1 200 OK\r\ncontent-type: application/x-ndjson\r\nconnection: close\r\n\r\n",
    )?;
    std::thread::sleep(Duration::from_millis(5));
    *written.lock() = Instant::now();
    stream.write_all(
        b"{\"message\":{\"role\":\"assistant\",\"content\":\"Hello\"},\"done\":false}\n",
    )?;
    std::thread::sleep(Duration::from_millis(2));
    stream.write_all(b"{\"message\":{\"role\":\"assistant\",\"content\":\".\"},\"done\":true,\"done_reason\":\"stop\"}\n")
}
