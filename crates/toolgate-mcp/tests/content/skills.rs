//! Skills of servers and of our own pass through, under addresses that stay unique.

use serde_json::{Value, json};
use toolgate_mcp::ProtocolEra;
use toolgate_mcp::skills::{SkillFolders, verify_skill_file};

use crate::gateway::{Gateway, era_pairs};

const SKILLS: &str = "io.modelcontextprotocol/skills";

fn text(name: &str, owner: &str) -> String {
    format!("---\nname: {name}\ndescription: Of {owner}\n---\n# {owner}\n")
}

/// SHA-256 is tested elsewhere, so any digest will do here.
fn entry(path: &str, owner: &str) -> Value {
    let name = path.rsplit('/').next().unwrap();
    let file = |file: &str, size: usize| {
        let digest = format!("sha256:{}", "0".repeat(64));
        json!({ "uri": format!("skill://{path}/{file}"), "digest": digest, "size": size })
    };
    json!({
        "uri": format!("skill://{path}/SKILL.md"),
        "frontmatter": { "name": name, "description": format!("Of {owner}"), "x": [1.50] },
        "resources": [file("SKILL.md", text(name, owner).len()), file("docs/a.md", 3)],
        "_meta": { "k": 1 },
    })
}

fn server(owner: &str, settings: &Value) -> Value {
    let uri = "skill://acme/refunds/SKILL.md";
    let file = json!({ "uri": uri, "mimeType": "text/markdown", "text": text("refunds", owner) });
    let child = json!({ "uri": "skill://acme/refunds/docs/a.md", "name": "a.md" });
    json!({
        "extensions": { SKILLS: settings },
        "skills": [entry("acme/refunds", owner)],
        "answers": { uri: { "contents": [file] } },
        "folders": { "skill://acme/refunds/docs": { "resources": [child], "nextCursor": "2" } },
    })
}

#[tokio::test]
async fn two_servers_may_have_a_skill_of_the_same_name() {
    for (client_era, server_era) in era_pairs() {
        let servers = [
            ("a", server("a", &json!({ "directoryRead": true }))),
            ("b", server("b", &json!({ "directoryRead": true }))),
        ];
        let gateway = Gateway::start(server_era, &servers).await;
        let mut client = gateway.client(client_era).await;
        let declared = &client.hello["capabilities"]["extensions"][SKILLS];
        assert_eq!(*declared, json!({ "directoryRead": true }));
        let listed = client.result("skills/list", json!({})).await;
        let is_modern = client_era == ProtocolEra::Modern;
        assert_eq!(
            listed["ttlMs"].is_u64() && listed["cacheScope"].is_string(),
            is_modern
        );
        for (at, owner, base) in [
            (0, "a", "skill://acme/refunds"),
            (1, "b", "skill://toolgate/b/acme/refunds"),
        ] {
            let expected = entry("acme/refunds", owner).to_string();
            let expected = expected.replace("skill://acme/refunds", base);
            assert_eq!(listed["skills"][at].to_string(), expected);

            let uri = format!("{base}/SKILL.md");
            assert_eq!(client.read(&uri).await, text("refunds", owner));
            let got = client.result("skills/get", json!({ "uri": uri })).await;
            assert_eq!(got["skill"].to_string(), expected);
            assert_eq!(
                got["ttlMs"].is_u64() && got["cacheScope"].is_string(),
                is_modern
            );

            let params = json!({ "uri": format!("{base}/docs"), "cursor": "1" });
            let folder = client.result("resources/directory/read", params).await;
            assert_eq!(folder["resources"][0]["uri"], format!("{base}/docs/a.md"));
            assert_eq!(folder["nextCursor"], "2");
            let received = gateway.received(owner, "resources/directory/read").await;
            assert_eq!(received[0]["uri"], "skill://acme/refunds/docs");
            assert_eq!(received[0]["cursor"], "1");
        }
        // Nobody reads a file before it is asked for.
        assert_eq!(gateway.received("a", "resources/read").await.len(), 1);
        for method in ["skills/get", "resources/directory/read"] {
            let error = client
                .expect_error(method, json!({ "uri": "skill://acme/none/SKILL.md" }))
                .await;
            assert_eq!(error["code"], -32602, "{method}: {error}");
            let error = client
                .expect_error(method, json!({ "uri": "other://x" }))
                .await;
            assert_eq!(error["code"], -32602, "{method}: {error}");
        }
        gateway.stop().await;
    }
}

#[tokio::test]
async fn skills_need_the_right_to_get_them_and_to_read_their_files() {
    for (client_era, server_era) in era_pairs() {
        let servers = [
            ("a", server("a", &json!({}))),
            ("b", server("b", &json!({ "directoryRead": true }))),
        ];
        let gateway = Gateway::start(server_era, &servers).await;
        for (allow, deny, count, folders) in [
            (&["*"][..], &[][..], 2, false),
            (&["*"], &["a/*"], 1, true),
            (&["*"], &["a/skills/get"], 1, true),
            (&["*"], &["b/resources/read", "a/resources/read"], 0, false),
            (&["b/resources/read", "b/skills/get"], &[], 1, false),
            (&["b/resources/read"], &[], 0, false),
        ] {
            let mut client = gateway.client_within(client_era, allow, deny).await;
            let listed = client.result("skills/list", json!({})).await;
            let listed = listed["skills"].as_array().unwrap();
            assert_eq!(listed.len(), count, "{allow:?} {deny:?}");
            let settings = &client.hello["capabilities"]["extensions"][SKILLS];
            assert_eq!(
                settings["directoryRead"] == true,
                folders,
                "{allow:?} {deny:?}"
            );
            let hidden = json!({ "uri": "skill://acme/refunds/SKILL.md" });
            if !listed.iter().any(|it| it["uri"] == hidden["uri"]) {
                assert_eq!(
                    client.expect_error("skills/get", hidden).await["code"],
                    -32602
                );
            }
        }
        gateway.stop().await;
    }
}

#[tokio::test]
async fn entries_that_clients_would_reject_are_left_out() {
    let good = entry("good", "s");
    let mut skills = vec![
        json!({}),
        json!("x"),
        json!({ "uri": "skill://a/SKILL.md" }),
    ];
    for (key, value) in [
        ("uri", json!(7)),
        ("uri", json!("x".repeat(9000))),
        ("frontmatter", json!({ "name": "bad" })),
        ("resources", Value::Null),
        ("resources", json!("static")),
        (
            "resources",
            json!([{ "uri": "skill://bad/SKILL.md", "digest": "sha256:0" }]),
        ),
        ("resources", json!(vec![good["resources"][0].clone(); 2000])),
    ] {
        let mut bad = entry("bad", "s");
        bad[key] = value;
        skills.push(bad);
    }
    let mut dynamic = entry("made", "s");
    dynamic["resources"] = json!("dynamic");
    skills.extend([good.clone(), dynamic.clone()]);
    for (client_era, server_era) in era_pairs() {
        let content = json!({ "extensions": { SKILLS: {} }, "skills": skills });
        let gateway = Gateway::start(server_era, &[("s", content)]).await;
        let mut client = gateway.client(client_era).await;
        let listed = client.result("skills/list", json!({})).await;
        assert_eq!(listed["skills"], json!([good, dynamic]));
        gateway.stop().await;
    }
}

#[tokio::test]
async fn our_own_skills_come_first_and_match_their_entries() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("acme/refunds");
    std::fs::create_dir_all(&path).unwrap();
    std::fs::write(path.join("SKILL.md"), text("refunds", "us")).unwrap();
    for (client_era, server_era) in era_pairs() {
        let servers = [("s", server("s", &json!({ "directoryRead": true })))];
        let gateway = Gateway::start(server_era, &servers).await;
        let skills = SkillFolders::new(gateway.executor.manager());
        skills.set_folders(vec![folder.path().to_owned()]).await;
        let mut client = gateway.client(client_era).await;
        let listed = client.result("skills/list", json!({})).await;
        let own = &listed["skills"][0];
        let uri = "skill://acme/refunds/SKILL.md";
        assert_eq!(own["uri"], uri);
        assert_eq!(
            listed["skills"][1]["uri"],
            "skill://toolgate/s/acme/refunds/SKILL.md"
        );
        let read = client.result("resources/read", json!({ "uri": uri })).await;
        assert_eq!(verify_skill_file(own, uri, &read), Ok(()));
        let got = client.result("skills/get", json!({ "uri": uri })).await;
        assert_eq!(got["skill"], *own);
        let folders = json!({ "uri": "skill://acme/refunds" });
        let children = client.result("resources/directory/read", folders).await;
        assert_eq!(children["resources"][0]["uri"], uri);
        gateway.stop().await;
    }
}
