import Commands
import Daemon
import JSON

extension Tool {
    static let printCompletion = Subcommand(
        command: Command(
            "completion", "Prints a script with which a shell completes the commands of the programs.",
            operands: [
                .init(
                    "SHELL", "One of: \(Shell.allCases.map(\.rawValue).joined(separator: ", ")).",
                    choices: Shell.allCases.map(\.rawValue))
            ],
            notes: """
                The Debian package installs these scripts. Otherwise, write the output to a file that your shell reads:
                bash  ~/.local/share/bash-completion/completions/twoefay
                zsh   a file _twoefay in a directory of $fpath
                fish  ~/.config/fish/completions/twoefay.fish
                """)
    ) { invocation throws(Failure) in
        guard let shell = Shell(rawValue: invocation.operand(0)) else {
            throw Failure(
                .usage, "\(invocation.operand(0)) is not a shell that is supported",
                next: "Give one of: \(Shell.allCases.map(\.rawValue).joined(separator: ", ")).")
        }
        let script = reader.completion(for: shell)
        return Report(String(script.dropLast()), json: .object(["script": .string(script)]))
    }
}
