/// A shell for which the programs print a completion script.
public enum Shell: String, Sendable, CaseIterable {
    case bash, zsh, fish
}

/// The scripts with which shells complete the commands of a program, made from their declarations.
///
/// A script walks through the words before the cursor, from group to group: `website`, `website
/// add`. It skips options with their values, because those may stand anywhere. Then it offers the
/// words that can follow there, or the options. The functions here write the tables of the scripts.
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
                    if isWhole { nodes[same].options = command.options + shared + [Self.helpOption] }
                } else {
                    let own = isWhole ? command.options : []
                    nodes.append(Node(words: words, options: own + shared + [Self.helpOption]))
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
        return """
            # bash completion for \(program), printed by `twoefay completion bash`.
            \(function)() {
                local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
                local node="" next="" options="" index word
                for ((index = 1; index < COMP_CWORD; index++)); do
                    word=${COMP_WORDS[index]}
                    case $word in
                        \(valued(nodes).joined(separator: " | "))) ((index++)); continue ;;
                        -*) continue ;;
                    esac
                    case "${node:+$node }$word" in
                        \(Self.patterns(nodes))) node="${node:+$node }$word" ;;
                        *) break ;;
                    esac
                done
                case $node in
            \(cases.joined(separator: "\n"))
                esac
                COMPREPLY=()
                case $before in
                    \(valued(nodes).joined(separator: " | "))) mapfile -t COMPREPLY < <(compgen -f -- "$current"); return ;;
                esac
                if [[ $current == -* ]]; then
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

    private static func patterns(_ nodes: [Node]) -> String {
        let names = nodes.map(\.name).filter { !$0.isEmpty }.map(quoted)
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
        return """
            #compdef \(program)
            # zsh completion for \(program), printed by `twoefay completion zsh`.
            \(function)() {
                local node="" word before=${words[CURRENT-1]} current=${words[CURRENT]}
                local -a next options
                local -i index
                for ((index = 2; index < CURRENT; index++)); do
                    word=${words[index]}
                    case $word in
                        (\(valued(nodes).joined(separator: "|"))) ((index++)); continue ;;
                        (-*) continue ;;
                    esac
                    case "${node:+$node }$word" in
                        (\(Self.patterns(nodes))) node="${node:+$node }$word" ;;
                        (*) break ;;
                    esac
                done
                case $node in
            \(cases.map { $0.replacing(/^ +/, with: "        (") }.joined(separator: "\n"))
                esac
                case $before in
                    (\(valued(nodes).joined(separator: "|"))) _files; return ;;
                esac
                if [[ $current == -* ]]; then
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
            for option in node.options {
                let value = option.takes == .nothing ? "" : " -r -F"
                lines.append(
                    "complete -c \(program) -n \(condition) -l \(option.name)\(value) -d \(Self.fishQuoted(option.about))"
                )
            }
        }
        return """
            # fish completion for \(program), printed by `twoefay completion fish`.
            function \(at)
                set -l node
                set -l skips 0
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
                    switch (string join ' ' $node $word)
                        case \(nodes.map(\.name).filter { !$0.isEmpty }.map(Self.fishQuoted).joined(separator: " "))
                            set -a node $word
                        case '*'
                            break
                    end
                end
                test "$node" = "$argv[1]"
            end
            \(lines.joined(separator: "\n"))

            """
    }

    private static func fishQuoted(_ text: String) -> String {
        "'\(text.replacing("\\", with: "\\\\").replacing("'", with: "\\'"))'"
    }
}
