/// A shell for which the programs print a completion script.
public enum Shell: String, Sendable, CaseIterable {
    case bash, zsh, fish
}

/// The scripts with which shells complete the commands of a program, made from their declarations.
///
/// A script walks through the words before the cursor, from group to group: `website`, `website
/// add`, and counts the operands behind them. It skips options with their values, because those may
/// stand anywhere. Then it offers the words that can follow there, the values of an operand or option
/// if the declaration has a list, or the options. The functions here write the tables of the scripts.
///
/// Tested in `CompletionTests.swift` with the shells that are installed.
extension CommandLineReader {
    public func completion(for shell: Shell) -> String {
        switch shell {
        case .bash: bash
        case .zsh: zsh
        case .fish: fish
        }
    }

    /// A place in the tree of commands: a group of commands, or a command.
    struct Node {
        let words: [String]
        /// The words that can follow, each with a text about it.
        var next: [(word: String, about: String)] = []
        var options: [Command.Option]
        var operands: [Command.Operand] = []

        var name: String { words.joined(separator: " ") }
    }

    var nodes: [Node] {
        var nodes = [Node(words: [], options: shared + [Self.helpOption])]
        for command in commands {
            for depth in 1...max(1, command.words.count) where depth <= command.words.count {
                let words = Array(command.words.prefix(depth))
                let isWhole = depth == command.words.count
                if let above = nodes.firstIndex(where: { $0.words == Array(words.dropLast()) }),
                    !nodes[above].next.contains(where: { $0.word == words[depth - 1] })
                {
                    let about = isWhole ? command.about : "Commands about \(words.joined(separator: " "))."
                    nodes[above].next.append((words[depth - 1], about))
                }
                if let same = nodes.firstIndex(where: { $0.words == words }) {
                    if isWhole {
                        nodes[same].options = command.options + shared + [Self.helpOption]
                        nodes[same].operands = command.operands
                    }
                } else {
                    let own = isWhole ? command.options : []
                    nodes.append(
                        Node(
                            words: words, options: own + shared + [Self.helpOption],
                            operands: isWhole ? command.operands : []))
                }
            }
        }
        if let single = commands.first(where: { $0.words.isEmpty }) {
            nodes[0].options = single.options + nodes[0].options
        }
        return nodes
    }

    /// The options whose value is the next word.
    private func valued(_ nodes: [Node]) -> [String] {
        var names: [String] = []
        for option in nodes.flatMap(\.options) where option.takes != .nothing && !names.contains(option.name) {
            names.append(option.name)
        }
        return names.map { "--\($0)" }
    }

    /// The lists of values, each with its place: a node, and there an option or the number of operands
    /// before.
    private func choices(_ nodes: [Node]) -> [(place: String, words: [String])] {
        var all: [(place: String, words: [String])] = []
        for node in nodes {
            all += node.options.map { ("\(node.name) --\($0.name)", $0.choices) }
            all += node.operands.enumerated().map { ("\(node.name) \($0.offset)", $0.element.choices) }
        }
        return all.filter { !$0.words.isEmpty }
    }

    /// The name of the function in a script.
    private var function: String { "_" + program.replacing("-", with: "_") }

    // MARK: bash

    private var bash: String {
        let nodes = nodes
        let cases = nodes.map { node in
            """
                    \(Self.quoted(node.name)))
                        next=\(Self.quoted(node.next.map(\.word).joined(separator: " ")))
                        options=\(Self.quoted(node.options.map { "--\($0.name)" }.joined(separator: " "))) ;;
            """
        }
        let choices = choices(nodes).map { place, words in
            "        \(Self.quoted(place))) choices=\(Self.quoted(words.joined(separator: " "))) ;;"
        }
        return """
            # bash completion for \(program), printed by `twoefay completion bash`.
            \(function)() {
                local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
                local node="" next="" options="" choices="" place index word
                local -i count=0
                for ((index = 1; index < COMP_CWORD; index++)); do
                    word=${COMP_WORDS[index]}
                    case $word in
                        \(valued(nodes).joined(separator: " | "))) ((index++)); continue ;;
                        -*) continue ;;
                    esac
                    case "$count:${node:+$node }$word" in
                        \(Self.patterns(nodes))) node="${node:+$node }$word" ;;
                        *) count+=1 ;;
                    esac
                done
                case $node in
            \(cases.joined(separator: "\n"))
                esac
                place=$count
                case $before in
                    \(valued(nodes).joined(separator: " | "))) place=$before ;;
                esac
                case "$node $place" in
            \(choices.joined(separator: "\n"))
                esac
                COMPREPLY=()
                if [[ -n $choices && $current != -* ]]; then
                    mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$current")
                elif [[ $place == --* ]]; then
                    mapfile -t COMPREPLY < <(compgen -f -- "$current")
                elif [[ $current == -* ]]; then
                    mapfile -t COMPREPLY < <(compgen -W "$options" -- "$current")
                elif [[ -n $next ]]; then
                    mapfile -t COMPREPLY < <(compgen -W "$next" -- "$current")
                else
                    mapfile -t COMPREPLY < <(compgen -f -- "$current")
                fi
            }
            complete -o filenames -F \(function) \(program)

            """
    }

    /// The commands and their groups, which lead on if no operand came before.
    private static func patterns(_ nodes: [Node]) -> String {
        let names = nodes.map(\.name).filter { !$0.isEmpty }.map { quoted("0:\($0)") }
        // A program without commands has no word that leads on.
        return names.isEmpty ? "''" : names.joined(separator: " | ")
    }

    /// A text in single quotes, for bash and zsh.
    static func quoted(_ text: String) -> String { "'\(text.replacing("'", with: "'\\''"))'" }

    // MARK: zsh

    private var zsh: String {
        let nodes = nodes
        let cases = nodes.map { node in
            let next = node.next.map { Self.quoted("\($0.word):\($0.about)") }.joined(separator: " ")
            let options = node.options.map { Self.quoted("--\($0.name):\($0.about)") }.joined(separator: " ")
            return "        \(Self.quoted(node.name))) next=(\(next)); options=(\(options)) ;;"
        }
        let choices = choices(nodes).map { place, words in
            "        (\(Self.quoted(place))) choices=(\(words.map(Self.quoted).joined(separator: " "))) ;;"
        }
        return """
            #compdef \(program)
            # zsh completion for \(program), printed by `twoefay completion zsh`.
            \(function)() {
                local node="" word place before=${words[CURRENT-1]} current=${words[CURRENT]}
                local -a next options choices
                local -i index count=0
                for ((index = 2; index < CURRENT; index++)); do
                    word=${words[index]}
                    case $word in
                        (\(valued(nodes).joined(separator: "|"))) ((index++)); continue ;;
                        (-*) continue ;;
                    esac
                    case "$count:${node:+$node }$word" in
                        (\(Self.patterns(nodes))) node="${node:+$node }$word" ;;
                        (*) ((count += 1)) ;;
                    esac
                done
                case $node in
            \(cases.map { $0.replacing(/^ +/, with: "        (") }.joined(separator: "\n"))
                esac
                place=$count
                case $before in
                    (\(valued(nodes).joined(separator: "|"))) place=$before ;;
                esac
                case "$node $place" in
            \(choices.joined(separator: "\n"))
                esac
                if (( ${#choices} )) && [[ $current != -* ]]; then
                    _describe value choices
                elif [[ $place == --* ]]; then
                    _files
                elif [[ $current == -* ]]; then
                    _describe -o option options
                elif (( ${#next} )); then
                    _describe command next
                else
                    _files
                fi
            }
            if [ "$funcstack[1]" = "\(function)" ]; then \(function) "$@"; else compdef \(function) \(program); fi

            """
    }

    // MARK: fish

    private var fish: String {
        let nodes = nodes
        let at = "__\(function.dropFirst())_at"
        var lines: [String] = []
        for node in nodes {
            let condition = Self.fishQuoted("\(at) \(Self.fishQuoted(node.name))")
            for (word, about) in node.next {
                lines.append("complete -c \(program) -f -n \(condition) -a \(word) -d \(Self.fishQuoted(about))")
            }
            for (index, operand) in node.operands.enumerated() where !operand.choices.isEmpty {
                let here = Self.fishQuoted("\(at) \(Self.fishQuoted(node.name)) \(index)")
                let words = Self.fishQuoted(operand.choices.joined(separator: " "))
                lines.append("complete -c \(program) -f -n \(here) -a \(words)")
            }
            for option in node.options {
                let words = Self.fishQuoted(option.choices.joined(separator: " "))
                let value = option.takes == .nothing ? "" : option.choices.isEmpty ? " -r -F" : " -x -a \(words)"
                lines.append(
                    "complete -c \(program) -n \(condition) -l \(option.name)\(value) -d \(Self.fishQuoted(option.about))"
                )
            }
        }
        let names = nodes.map(\.name).filter { !$0.isEmpty }
        return """
            # fish completion for \(program), printed by `twoefay completion fish`.
            function \(at)
                set -l node
                set -l skips 0
                set -l operands 0
                for word in (commandline -opc)[2..-1]
                    if test $skips = 1
                        set skips 0
                        continue
                    end
                    switch $word
                        case \(valued(nodes).joined(separator: " "))
                            set skips 1
                            continue
                        case '-*'
                            continue
                    end
                    switch $operands:(string join ' ' $node $word)
                        case \(names.map { Self.fishQuoted("0:\($0)") }.joined(separator: " "))
                            set -a node $word
                        case '*'
                            set operands (math $operands + 1)
                    end
                end
                test "$node" = "$argv[1]"; and test (count $argv) = 1 -o "$operands" = "$argv[2]"
            end
            \(lines.joined(separator: "\n"))

            """
    }

    private static func fishQuoted(_ text: String) -> String {
        "'\(text.replacing("\\", with: "\\\\").replacing("'", with: "\\'"))'"
    }
}
