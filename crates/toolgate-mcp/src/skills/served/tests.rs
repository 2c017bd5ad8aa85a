use std::path::Path;

use toolgate_core::{Scope, ToolExecutor};

use super::*;

fn write(root: &Path, path: &str, bytes: &[u8]) {
    let file = root.join(path);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, bytes).unwrap();
}

fn skill(name: &str) -> String {
    format!("---\nname: {name}\ndescription: Does {name}\n---\n# {name}\n")
}

async fn ask(executor: &ToolExecutor, method: ContentMethod, uri: &str) -> Value {
    let params = Map::from_iter([("uri".to_owned(), json!(uri))]);
    let request = executor.find_content(method, &params, &Scope::default());
    let request = request.unwrap();
    let mut outcome = executor.execute(request.to_call()).await;
    request.finish(&mut outcome);
    match outcome.result {
        Ok(output) => output.structured.unwrap(),
        Err(error) => json!({ "error": error.to_string() }),
    }
}

#[tokio::test]
async fn a_skill_is_listed_read_and_walked_through() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write(root, "a/SKILL.md", skill("a").as_bytes());
    write(root, "a/templates/two words.md", b"text");
    write(root, "a/templates/deep/pixel.png", &[0x89, 0xff]);
    let manager = Arc::new(ToolManager::new());
    let folders = SkillFolders::new(&manager);
    folders.set_folders(vec![root.to_owned()]).await;
    let executor = ToolExecutor::new(Arc::clone(&manager));
    let content = manager.content();
    let resource = content.resources().next().unwrap();
    assert_eq!(
        *resource.entry,
        json!({
            "uri": "skill://a/SKILL.md", "name": "a", "description": "Does a",
            "mimeType": "text/markdown", "size": skill("a").len(),
        })
    );
    let read = ContentMethod::ReadResource;
    let text = ask(&executor, read, "skill://a/SKILL.md").await;
    assert_eq!(text["contents"][0]["text"], skill("a"));
    let pixel = ask(&executor, read, "skill://a/templates/deep/pixel.png").await;
    let expected = json!([{ "uri": "skill://a/templates/deep/pixel.png", "mimeType": "image/png", "blob": "if8=" }]);
    assert_eq!(pixel["contents"], expected);
    for absent in [
        "skill://a/x",
        "skill://a",
        "skill://b/SKILL.md",
        "skill://a/../a/SKILL.md",
    ] {
        let answer = ask(&executor, read, absent).await;
        assert!(
            answer["error"].as_str().unwrap().contains("no resource"),
            "{answer}"
        );
    }

    let walk = ContentMethod::ReadDirectory;
    let listed = ask(&executor, walk, "skill://a/templates").await;
    assert_eq!(
        listed["resources"],
        json!([
            { "uri": "skill://a/templates/deep", "name": "deep", "mimeType": "inode/directory" },
            { "uri": "skill://a/templates/two%20words.md", "name": "two words.md", "mimeType": "text/markdown", "size": 4 },
        ])
    );
    let top = ask(&executor, walk, "skill://a").await;
    assert_eq!(top["resources"].as_array().unwrap().len(), 2);
    for absent in [
        "skill://a/SKILL.md",
        "skill://a/templates/",
        "skill://a/none",
    ] {
        let answer = ask(&executor, walk, absent).await;
        assert!(
            answer["error"].as_str().unwrap().contains("no folder"),
            "{answer}"
        );
    }

    let got = ask(&executor, ContentMethod::GetSkill, "skill://a/SKILL.md").await;
    assert_eq!(got["skill"], content.sources()[0].content.skills[0]);
}

#[tokio::test(start_paused = true)]
async fn a_change_is_noticed_when_somebody_lists() {
    let folder = tempfile::tempdir().unwrap();
    let manager = Arc::new(ToolManager::new());
    let folders = SkillFolders::new(&manager);
    folders.set_folders(vec![folder.path().to_owned()]).await;
    assert!(manager.content().sources().is_empty());
    write(folder.path(), "a/SKILL.md", skill("a").as_bytes());
    manager.refresh_lists().await;
    assert!(
        manager.content().sources().is_empty(),
        "not more often than the interval"
    );
    tokio::time::advance(MIN_SCAN_INTERVAL).await;
    folders.scan_if_old().await;
    assert_eq!(manager.content().skills().count(), 1);
    let version = *manager.subscribe().borrow();
    tokio::time::advance(MIN_SCAN_INTERVAL).await;
    folders.scan_if_old().await;
    assert_eq!(
        *manager.subscribe().borrow(),
        version,
        "nothing has changed"
    );
    folders.set_folders(Vec::new()).await;
    assert!(manager.content().sources().is_empty());
}
