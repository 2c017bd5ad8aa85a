//! A gateway that was suspended, for example by SIGSTOP or with its machine.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::ending::in_flight;
use crate::support::{ServeProcess, fake_server, pause, request};

#[test]
fn h4_an_answer_that_arrives_during_a_stall_is_not_a_timeout() {
    let folder = tempfile::tempdir().unwrap();
    let config = json!({ "mcpServers": { "house": fake_server(&[]) } });
    let gateway = ServeProcess::start(folder.path(), &config);
    gateway.ready();
    for (ms, expected) in [(800, Value::Null), (600_000, json!("timeout"))] {
        let address = gateway.address.clone();
        let caller = std::thread::spawn(move || {
            let body = json!({ "ms": ms }).to_string();
            request(
                &address,
                "POST",
                "/api/tools/sleep/call?timeout=1500ms",
                &body,
            )
        });
        in_flight(&gateway, 1);
        gateway.signal(Signal::STOP);
        pause(4000);
        gateway.signal(Signal::CONT);
        let (status, envelope) = caller.join().unwrap().unwrap();
        assert_eq!(
            (status, &envelope["error_kind"]),
            (200, &expected),
            "{ms}: {envelope}"
        );
    }
}
