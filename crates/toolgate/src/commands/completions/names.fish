complete -c toolgate -n "__fish_seen_subcommand_from call inspect" -f -a "(toolgate completions --names tools 2>/dev/null)"
complete -c toolgate -n "__fish_seen_subcommand_from inspect remove" -f -a "(toolgate completions --names servers 2>/dev/null)"
complete -c toolgate -n "__fish_seen_subcommand_from read" -f -a "(toolgate completions --names resources 2>/dev/null)"
complete -c toolgate -n "__fish_seen_subcommand_from prompt" -f -a "(toolgate completions --names prompts 2>/dev/null)"
