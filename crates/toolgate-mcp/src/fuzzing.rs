//! Properties that must hold for any input. `fuzz/` checks them with libFuzzer. The tests here
//! check them with random input, so that they keep compiling.

use crate::client::message;
use crate::server::client_message;

pub fn json_rpc(bytes: &[u8]) {
    message::assert_round_trip(bytes);
    client_message::assert_both_parsers_agree(bytes);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PIECES: &str = r#"([{}\[\]:,]|"(jsonrpc|2\.0|id|method|tools/call|params|name|arguments|_meta|result|error|code|message)"|-?[0-9]{1,3}|1e999|null|true|1\.0| |\\u0000|x){0,40}"#;

    proptest! {
        #[test]
        fn malformed_messages_do_no_harm(text in PIECES) {
            json_rpc(text.as_bytes());
        }

        #[test]
        fn a_call_is_read_the_same_either_way(
            id in r#"(-?[0-9]{1,19}|1\.0|1e3|"[a-z]{0,4}"|null|true)"#,
            arguments in r#"(null|\{\}|\{"a":(1|1\.50|-0|"x"|\[1,\{"b":null\}\])\}|\{"a":1,"a":2\}|\[\]|5)"#,
        ) {
            let line = format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"t","arguments":{arguments}}}}}"#
            );
            json_rpc(line.as_bytes());
        }
    }
}
