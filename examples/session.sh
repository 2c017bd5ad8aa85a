#!/bin/sh
# A first session with Toolgate: builds it and runs a few commands, each shown before its output.
# Needs only Rust.
set -eu
cd "$(dirname "$0")/.."
cargo build --locked --package toolgate
toolgate=$(cd "${CARGO_TARGET_DIR:-target}/debug" && pwd)/toolgate

# In a temporary folder with its own configuration, so that yours has no effect.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{}' > toolgate.json
export TOOLGATE_CONFIG="$folder/toolgate.json"

show() {
    printf '\n$ toolgate'
    for word in "$@"; do
        case $word in *[\ \{]*) printf " '%s'" "$word" ;; *) printf ' %s' "$word" ;; esac
    done
    printf '\n'
    "$toolgate" "$@" 2>/dev/null || {
        code=$?
        printf '(exit code %s)\n' "$code"
        [ "$code" -le 2 ]
    }
}

show list
show inspect datetime
show call datetime timezone=Europe/Berlin
show call datetime action=difference date=2026-11-15 until=2026-12-24
show call math_eval 'expression=5 km / 2 hours to m/s'
show call echo '{"nested": {"a": [1, 2]}}'
show call datetim
show call volume action=set level=loud
show call volume action=set level=30 --dry-run
printf '\nNext: %s --help\n' "$toolgate"
