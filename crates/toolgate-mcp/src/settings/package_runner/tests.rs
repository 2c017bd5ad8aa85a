use super::*;

fn program(line: &str) -> ServerProgram {
    let mut words = line.split(' ').map(str::to_owned);
    ServerProgram {
        command: words.next().unwrap(),
        args: words.collect(),
        ..ServerProgram::default()
    }
}

#[test]
fn package_runners_are_recognized_in_every_form() {
    for (line, expected) in [
        ("npx -y @upstash/context7-mcp", true),
        ("/usr/local/bin/npx firecrawl-mcp", true),
        ("C:\\nodejs\\npx.cmd -y x", true),
        ("NPX.CMD -y x", true),
        ("npm exec -- x", true),
        ("npm --prefix /tmp/a --silent exec x", true),
        ("npm x x", true),
        ("npm start", false),
        ("npm run exec", false),
        ("pnpm dlx x", true),
        ("pnpm --silent -C dir dlx x", true),
        ("pnpm run dlx", false),
        ("pnpx x", true),
        ("yarn dlx x", true),
        ("bunx x", true),
        ("bun x x", true),
        ("bun run x.ts", false),
        ("uvx mcp-server-fetch", true),
        ("uv run server.py", true),
        ("uv --directory /srv/a run server", true),
        ("uv tool run x", true),
        ("uv pip run", false),
        ("pipx run x", true),
        ("pipx list", false),
        ("docker run -i --rm mcp/time", true),
        ("docker --context far container run x", true),
        ("docker exec -i x y", false),
        ("podman run -i x", true),
        ("node server.js", false),
        ("python -m server", false),
        ("my-npx x", false),
        ("env KEY=1 -i npx -y x", true),
        ("/usr/bin/env uvx x", true),
        ("env", false),
        ("env node x.js", false),
        ("npm", false),
        ("npm --prefix", false),
    ] {
        assert_eq!(program(line).is_package_runner(), expected, "{line}");
    }
    for (script, expected) in [
        ("npx -y @upstash/context7-mcp 2>/dev/null", true),
        ("exec uvx mcp-server-fetch", true),
        ("node server.js | npx x", false),
        ("", false),
    ] {
        let args = ["-c", script].map(str::to_owned).to_vec();
        let program = ServerProgram {
            command: "/bin/sh".to_owned(),
            args,
            ..ServerProgram::default()
        };
        assert_eq!(program.is_package_runner(), expected, "{script}");
    }
}

#[test]
fn a_toolgate_below_itself_is_recognized() {
    for (line, expected) in [
        ("toolgate mcp", true),
        ("/usr/local/bin/toolgate -v mcp", true),
        ("Toolgate.exe mcp", true),
        ("toolgate serve", true),
        ("env A=1 toolgate mcp", true),
        ("npx -y toolgate mcp", true),
        ("npx -y @x/toolgate@latest mcp", true),
        ("uvx toolgate==1.0 mcp", true),
        ("toolgate zwave-mcp-server", false),
        ("toolgate -v zwave-mcp-server", false),
        ("toolgate mcp --config other.json", false),
        ("toolgate --config=other.json mcp", false),
        ("toolgate mcp --at http://localhost:7460", false),
        ("docker run -i toolgate mcp", false),
        ("node toolgate mcp", false),
        ("my-toolgate mcp", false),
    ] {
        assert_eq!(program(line).starts_itself(), expected, "{line}");
    }
    let mut shell = program("sh -c");
    shell.args.push("exec toolgate mcp 2>/dev/null".to_owned());
    assert!(shell.starts_itself());
    let mut elsewhere = program("toolgate mcp");
    let variable = ("TOOLGATE_CONFIG".to_owned(), "/srv/other.json".to_owned());
    elsewhere.env = [variable].into();
    assert!(!elsewhere.starts_itself());
}

/// The folders are those that npm 11 made for these packages.
#[test]
fn the_folder_of_npx_is_the_one_that_npm_makes() {
    let home = BTreeMap::from([("HOME".into(), "/home/ada".into())]);
    let mut elsewhere = home.clone();
    elsewhere.insert("NPM_CONFIG_CACHE".into(), "/var/npm".into());
    let context7 = "/home/ada/.npm/_npx/eea2bd7412d4593b";
    for (line, expected) in [
        ("npx -y @upstash/context7-mcp", Some(context7)),
        ("env A=1 npx -y @upstash/context7-mcp", Some(context7)),
        ("npx @upstash/context7-mcp --api-key x", Some(context7)),
        (
            "npx -y -p @upstash/context7-mcp context7-mcp",
            Some(context7),
        ),
        (
            "npm exec --package=@upstash/context7-mcp -- context7-mcp",
            Some(context7),
        ),
        ("npm exec -y -- @upstash/context7-mcp", Some(context7)),
        (
            "npx -y firecrawl-mcp",
            Some("/home/ada/.npm/_npx/12b05d58670d8359"),
        ),
        ("npx ./here", None),
        ("npx", None),
        ("uvx @upstash/context7-mcp", None),
    ] {
        let found = program(line).npx_folder(&home);
        assert_eq!(found.as_deref(), expected.map(Path::new), "{line}");
    }
    let program = program("npx -y @upstash/context7-mcp");
    assert_eq!(
        program.npx_folder(&elsewhere).as_deref(),
        Some(Path::new("/var/npm/_npx/eea2bd7412d4593b"))
    );
    assert_eq!(program.npx_folder(&BTreeMap::new()), None);
}
