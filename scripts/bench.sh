# Benchmarks, and the same work done by other projects. Sourced by test.sh.

# The process id of the speech engine that a benchmark started, which is stopped at the end.
engine=

bench() {
    run "benchmarks" cargo bench --workspace --locked
    if install_mathjs; then
        run "math beside mathjs" cargo run --profile dist --locked -p toolgate-math --example beside_mathjs -- "$cache/npm/node_modules"
    else
        skip "math beside mathjs" "npm can't install mathjs"
    fi
    if install_models; then
        beside_langchain
    else
        skip "models beside LangChain.js" "npm or pip can't install it"
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

# The gateway for the peers' benchmark: without logs, like the peers, and with its own journal, which
# has the durability given as argument.
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

# Rounds with a model that answers at once, and the conversion of tools. Both sides alternate, and
# everything runs on one core, so that the time to wake another core isn't counted.
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
    # The double ends when its input is closed.
    exec {DOUBLE[1]}>&-
    end
}

# The time of a spoken request without its engines, which fails if it is too long; then with real
# engines, if they are installed.
voice_stages() {
    run "voice: our own time" env VOICE_STAGES=200 cargo test --profile dist --locked -p toolgate-voice --lib -- \
        --ignored --exact --nocapture turn::tests::voice_stages::voice_stages
    if ! command -v espeak-ng >/dev/null || ! install_voice; then
        skip "voice with real engines" "Whisper or espeak-ng can't be installed"
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

# Waits for up to a minute, because loading a model takes long, but not for an engine that exited.
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
