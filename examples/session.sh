#!/bin/sh
# A first session with Toolgate: builds it and runs a few commands, each shown before its answer. Needs only Rust.
set -eu
cd "$(dirname "$0")/.."
cargo build --release --locked --package toolgate
toolgate=$PWD/target/release/toolgate
cd "$(mktemp -d)" # so that no configuration of yours is in the way

show() {
    printf '\n$ toolgate'
    for word in "$@"; do
        case $word in *[\ \{]*) printf " '%s'" "$word" ;; *) printf ' %s' "$word" ;; esac
    done
    printf '\n'
    "$toolgate" --quiet "$@" || printf '(exit code %s)\n' "$?"
}

show list
show inspect datetime
show call datetime timezone=Europe/Berlin
show call datetime action=difference date=2026-11-15 until=2026-12-24
show call echo '{"nested": {"a": [1, 2]}}'
show call datetim
show call volume action=set level=loud
show call volume action=set level=30 --dry-run
printf '\nNext: %s --help\n' "$toolgate"
