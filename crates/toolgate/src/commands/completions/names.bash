_toolgate_with_names() {
    _toolgate "$@"
    local kind names="" IFS=$'\n'
    case "$3" in
        call|--tool|--tools|-t) set -- "$2" tools ;;
        inspect) set -- "$2" tools servers ;;
        remove|--server) set -- "$2" servers ;;
        *) return ;;
    esac
    for kind in "${@:2}"; do
        names+="$(toolgate completions --names "$kind" 2>/dev/null)"$'\n'
    done
    COMPREPLY=( $(compgen -W "$names" -- "$1" | sort -u) "${COMPREPLY[@]}" )
}
complete -F _toolgate_with_names -o bashdefault -o default toolgate
