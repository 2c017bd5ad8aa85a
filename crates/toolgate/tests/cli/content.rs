//! `resources`, `read`, `prompts` and `prompt`, their arguments in a chat, and resources as tools.

use fakellm::Answer;
use serde_json::{Value, json};

use crate::llm::ScriptedLlm;
use crate::run::{ProgramRun, RunOutput};

/// A server that offers a text, a picture and a prompt, and records its requests.
const SERVER: &str = r#"
while read -r line; do
  echo "$line" >> asked
  id=$(printf '%s' "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
  case "$line" in
    *'"method":"initialize"'*) result='{"protocolVersion":"2025-06-18","capabilities":{"resources":{},"prompts":{}},"serverInfo":{"name":"notes","version":"1"}}' ;;
    *'"method":"resources/list"'*) result='{"resources":[{"uri":"notes://today","name":"today","description":"What happened","mimeType":"text/plain","size":12},{"uri":"notes://picture","name":"picture","mimeType":"image/png"}]}' ;;
    *'"method":"resources/templates/list"'*) result='{"resourceTemplates":[{"uriTemplate":"notes://day/{day}","name":"day"}]}' ;;
    *'"method":"prompts/list"'*) result='{"prompts":[{"name":"review","description":"Reviews code","arguments":[{"name":"code","required":true},{"name":"style"}]}]}' ;;
    *'"uri":"notes://today"'*) result='{"contents":[{"uri":"notes://today","text":"it\u001b[2J rained"}]}' ;;
    *'"uri":"notes://picture"'*) result='{"contents":[{"uri":"notes://picture","mimeType":"image/png","blob":"/wAB"}]}' ;;
    *'"method":"resources/read"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32002,"message":"Resource not found"}}\n' "$id"; continue ;;
    *'"method":"prompts/get"'*) result='{"messages":[{"role":"user","content":{"type":"text","text":"Review this"}}]}' ;;
    *'"method":"ping"'*) result='{}' ;;
    *'"id"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}\n' "$id"; continue ;;
    *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
"#;

fn config(more: &Value) -> String {
    let entry = json!({ "command": "sh", "args": ["server.sh"] });
    let mut config = json!({ "mcpServers": { "notes": entry } });
    for (key, value) in more.as_object().into_iter().flatten() {
        config[key] = value.clone();
    }
    config.to_string()
}

fn program(arguments: &[&str], more: &Value) -> ProgramRun {
    ProgramRun::new([])
        .args(arguments)
        .config(&config(more))
        .file("server.sh", SERVER)
}

fn run(arguments: &[&str]) -> RunOutput {
    program(arguments, &json!({})).done()
}

#[test]
fn lists_show_what_to_type() {
    let done = run(&["resources"]);
    let expected = "notes://today\tnotes\ttext/plain\t12\ttoday: What happened\n\
        notes://picture\tnotes\timage/png\t\tpicture\n\
        notes://day/{day}\tnotes\t\t\tday\n";
    assert_eq!(
        (done.stdout.as_str(), done.code),
        (expected, Some(0)),
        "{done:?}"
    );
    let done = run(&["prompts", "--server", "notes"]);
    let expected = "review\tnotes\tcode=… [style=…]\tReviews code\n";
    assert_eq!(
        (done.stdout.as_str(), done.code),
        (expected, Some(0)),
        "{done:?}"
    );
    let lists = run(&["resources", "--json"]).json();
    assert_eq!(lists["resources"][0]["server"], "notes", "{lists}");
    assert_eq!(lists["templates"][0]["uriTemplate"], "notes://day/{day}");
    let done = run(&["resources", "--server", "note"]);
    assert!(done.stderr.contains("did you mean 'notes'?"), "{done:?}");
    assert_eq!(done.code, Some(1));
}

#[test]
fn a_pipe_and_a_file_get_what_the_server_sent() {
    for uri in ["notes://today", "toolgate://notes/notes://today"] {
        let done = run(&["read", uri]);
        assert_eq!(done.stdout, "it\u{1b}[2J rained", "{done:?}");
        assert_eq!((done.stderr.as_str(), done.code), ("", Some(0)));
    }
    let read = program(&["read", "notes://picture", "-o", "a.png"], &json!({}));
    let (child, folder) = read.start();
    assert!(child.wait_with_output().unwrap().status.success());
    let written = std::fs::read(folder.path().join("a.png")).unwrap();
    assert_eq!(written, [0xff, 0, 1]);
    let envelope = run(&["read", "notes://picture", "--json"]).json();
    assert_eq!(envelope["result"]["contents"][0]["blob"], "/wAB");
    assert_eq!(
        (&envelope["success"], &envelope["tool_name"]),
        (&json!(true), &json!("resources/read"))
    );
}

#[test]
fn errors_say_what_to_do() {
    for (arguments, expected) in [
        (
            &["read", "note://today"][..],
            "No server offers the resource 'note://today'",
        ),
        (&["read", "note://today"], "did you mean 'notes://today'?"),
        (&["read", "notes://tody"], "did you mean 'notes://today'"),
        (&["prompt", "reviw"], "did you mean 'review'?"),
        (
            &["prompt", "review", "style=x"],
            "Invalid parameters: missing 'code'",
        ),
        (&["prompt", "review", "cod=x"], "missing 'code'"),
    ] {
        let done = run(arguments);
        assert!(done.stderr.contains(expected), "{expected}: {done:?}");
        assert_eq!((done.stdout.as_str(), done.code), ("", Some(1)));
    }
    let envelope = run(&["prompt", "review", "--json"]).json();
    assert_eq!(envelope["error_kind"], "invalid_arguments", "{envelope}");
    for pattern in ["notes/resources/read", "*/resources/read"] {
        let deny = json!({ "policy": { "deny": [pattern] } });
        let done = program(&["read", "notes://today"], &deny).done();
        assert!(done.stderr.contains("No server offers"), "{done:?}");
    }
}

#[test]
fn a_missing_argument_is_noticed_before_the_server_is_asked() {
    for (words, is_asked) in [(&["style=1"][..], false), (&["code=1"], true)] {
        let arguments = [&["prompt", "review"], words].concat();
        let (child, folder) = program(&arguments, &json!({})).start();
        let done = RunOutput::from(child.wait_with_output().unwrap());
        let asked = std::fs::read_to_string(folder.path().join("asked")).unwrap();
        assert_eq!(asked.contains("prompts/get"), is_asked, "{done:?}");
        if is_asked {
            assert_eq!(done.stdout, "Review this\n");
            assert!(
                asked.contains(r#""code":"1""#),
                "arguments are texts: {asked}"
            );
        }
    }
}

#[test]
fn a_read_is_recorded_and_the_list_is_remembered() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("server.sh"), SERVER).unwrap();
    let within = |arguments: &[&str]| {
        let run = ProgramRun::new([])
            .args(arguments)
            .config(&config(&json!({})));
        std::fs::write(folder.path().join("toolgate.json"), config(&json!({}))).unwrap();
        run.within(folder.path()).done()
    };
    within(&["read", "notes://today"]);
    std::fs::remove_file(folder.path().join("asked")).unwrap();
    let calls = within(&["calls", "--json"]);
    assert_eq!(calls.json()["tool"], "resources/read", "{calls:?}");
    let listed = within(&["resources"]);
    assert!(listed.stdout.starts_with("notes://today\t"), "{listed:?}");
    assert!(listed.stderr.contains("are remembered"), "{listed:?}");
    let names = within(&["completions", "--names", "resources"]);
    assert_eq!(names.stdout, "notes://today\nnotes://picture\n");
    let names = within(&["completions", "--names", "prompts"]);
    assert_eq!(names.stdout, "review\n");
    assert!(
        !folder.path().join("asked").exists(),
        "no server was started"
    );
}

#[test]
fn a_chat_attaches_resources_and_shows_prompts() {
    let llm = ScriptedLlm::new([Answer::text("one"), Answer::text("two")]);
    let chat = program(&["chat", "-p", "ollama"], &json!({}));
    let chat = chat.stdin("/prompt review code=1\nwhat of @notes://today?\n/prompt review\n");
    let done = llm.known_to(chat, "ollama").done();
    let requests = llm.requests();
    let said = |at: usize| requests[at].json()["messages"].to_string();
    assert!(said(0).contains("Review this"), "{done:?}");
    let attached = said(1);
    assert!(attached.contains("what of @notes://today?"), "{attached}");
    assert!(
        attached.contains("Resource notes://today:\\nit"),
        "{attached}"
    );
    assert!(done.stderr.contains("missing 'code'"), "{done:?}");
    assert_eq!(done.stdout, "one\ntwo\n", "{done:?}");
}

const SKILL: &str = "---\nname: tidy\ndescription: Tidies up\n---\nFirst the desk.";

#[test]
fn a_skill_of_our_own_is_listed_read_and_attached() {
    let skills = json!({ "skills": { "folders": ["mine"] } });
    let with_skill = |run: ProgramRun| run.file("mine/home/tidy/SKILL.md", SKILL);
    let listed = with_skill(program(&["resources"], &skills)).done();
    let line = format!(
        "skill://home/tidy/SKILL.md\tinternal\ttext/markdown\t{}\ttidy: Tidies up\n",
        SKILL.len()
    );
    assert!(listed.stdout.starts_with(&line), "{listed:?}");
    let read = with_skill(program(&["read", "skill://home/tidy/SKILL.md"], &skills)).done();
    assert_eq!(read.stdout, SKILL, "{read:?}");

    let llm = ScriptedLlm::new([Answer::text("done")]);
    let chat = with_skill(program(&["chat", "-p", "ollama"], &skills));
    let chat = chat.stdin("use @skill://home/tidy/SKILL.md\n");
    let done = llm.known_to(chat, "ollama").done();
    let said = llm.requests()[0].json()["messages"].to_string();
    assert!(said.contains("First the desk."), "{said} {done:?}");
    assert!(said.contains("from a skill of the user"), "{said}");
    assert!(said.contains("below skill://home/tidy)"), "{said}");
}

/// A server with one skill, whose file isn't the one that the entry promises unless
/// the digest is right.
fn skill_server(digest: &str) -> String {
    let uri = "skill://tidy/SKILL.md";
    let file = json!({ "uri": uri, "digest": digest, "size": SKILL.len() });
    let entry = json!({
        "uri": uri, "resources": [file],
        "frontmatter": { "name": "tidy", "description": "Tidies up" },
    });
    let extensions = json!({ "io.modelcontextprotocol/skills": {} });
    let hello = json!({
        "protocolVersion": "2025-06-18", "serverInfo": { "name": "s", "version": "1" },
        "capabilities": { "resources": {}, "extensions": extensions },
    });
    let content = json!({ "contents": [{ "uri": uri, "text": SKILL }] });
    SERVER
        .replace("notes://today", uri)
        .lines()
        .map(|line| match line {
            line if line.contains("initialize") => {
                format!("*'\"method\":\"initialize\"'*) result='{hello}' ;;\n")
            }
            line if line.contains("\"uri\":\"skill://tidy/SKILL.md\"'") => format!(
                "*'\"method\":\"skills/list\"'*) result='{}' ;;\n*'\"method\":\"skills/get\"'*) result='{}' ;;\n*'\"method\":\"resources/read\"'*) result='{}' ;;\n",
                json!({ "skills": [entry] }),
                json!({ "skill": entry }),
                content,
            ),
            line => format!("{line}\n"),
        })
        .collect()
}

#[test]
fn a_skill_that_does_not_match_its_entry_is_not_given_to_the_model() {
    let right = "sha256:6def02fe1e03ddee6cf6857820702919a67ee673c659203785e8acabf2e52bab";
    for (digest, is_used) in [(right, true), ("sha256:0000", false)] {
        let llm = ScriptedLlm::new([Answer::text("done")]);
        let chat = program(&["chat", "-p", "ollama"], &json!({}));
        let chat = chat
            .file("server.sh", skill_server(digest))
            .stdin("use @skill://tidy/SKILL.md\n");
        let done = llm.known_to(chat, "ollama").done();
        assert_eq!(llm.requests().len(), usize::from(is_used), "{done:?}");
        if is_used {
            let said = llm.requests()[0].json()["messages"].to_string();
            assert!(said.contains("First the desk."), "{said}");
            assert!(said.contains("the server 'notes' offers"), "{said}");
        } else {
            assert!(done.stderr.contains("doesn't match its skill"), "{done:?}");
        }
    }
}

#[test]
fn tools_for_resources_exist_only_if_switched_on() {
    let on = json!({ "resources": { "tools": true } });
    let listed = program(&["call", "list_resources", "query=today"], &on).json();
    assert_eq!(
        listed["result"]["resources"][0]["uri"], "notes://today",
        "{listed}"
    );
    let read = program(&["call", "read_resource", "uri=notes://today"], &on).json();
    assert_eq!(read["result"], "it\u{1b}[2J rained", "{read}");
    let off = run(&["call", "read_resource", "uri=notes://today"]).json();
    assert_eq!(off["error_kind"], "not_found", "{off}");
}
