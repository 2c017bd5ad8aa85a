_toolgate_with_names() {
    _toolgate "$@"
    # The whole words: bash splits addresses at their colons.
    local typed="${COMP_LINE:0:COMP_POINT}" word previous kind names="" IFS=$'\n'
    word="${typed##*[[:space:]]}"
    previous="${typed%"$word"}"
    previous="${previous%"${previous##*[![:space:]]}"}"
    previous="${previous##*[[:space:]]}"
    case "$previous" in
        call|--tool|--tools|-t) set -- "$2" tools ;;
        read) set -- "$2" resources ;;
        prompt) set -- "$2" prompts ;;
        inspect) set -- "$2" tools servers ;;
        remove|--server) set -- "$2" servers ;;
        *) return ;;
    esac
    for kind in "${@:2}"; do
        names+="$(toolgate completions --names "$kind" 2>/dev/null)"$'\n'
    done
    local -a found=( $(compgen -W "$names" -- "$word" | sort -u) )
    # A reply replaces only what follows the last colon.
    local before="${word%"${word##*:}"}"
    COMPREPLY=( "${found[@]#"$before"}" "${COMPREPLY[@]}" )
}
complete -F _toolgate_with_names -o bashdefault -o default toolgate
