import Glibc
import TestSupport
import Testing

/// The completion scripts, run by the shells themselves.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct CompletionTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let words: [String]
        /// The words that are offered.
        let offered: [String]
        /// The words that are not offered.
        let missing: [String]

        var testDescription: String { words.joined(separator: " ") }
    }

    private static let cases = [
        Case(words: [""], offered: ["website", "status", "completion"], missing: ["add", "--config", "website add"]),
        Case(words: ["web"], offered: ["website"], missing: ["status"]),
        Case(words: ["website", ""], offered: ["add", "list", "webhook"], missing: ["status", "website"]),
        Case(words: ["phone", "pin", ""], offered: ["show", "set", "unlock"], missing: ["enrol", "watch"]),
        Case(words: ["--config", "website", ""], offered: ["website", "status"], missing: ["add"]),
        Case(
            words: ["website", "add", "--"], offered: ["--webhook", "--config", "--json"], missing: ["--all", "--date"]),
        Case(words: ["website", "--json", "add", "--we"], offered: ["--webhook"], missing: ["--config"]),
        Case(words: ["website", "add", "shop", "--out"], offered: ["--out"], missing: ["--webhook"]),
        // Values of operands and options that the declarations list.
        Case(words: ["authority", "replace", ""], offered: ["websites", "phones"], missing: ["script", "--back"]),
        Case(words: ["authority", "replace", "ph"], offered: ["phones"], missing: ["websites"]),
        Case(words: ["authority", "replace", "--"], offered: ["--back"], missing: ["phones"]),
        Case(words: ["keys", "roll", "--now", ""], offered: ["nonces"], missing: ["script"]),
        Case(words: ["website", "webhook", "shop", ""], offered: ["rotate-secret"], missing: ["list", "script"]),
        Case(words: ["user", "list", "--state", ""], offered: ["locked", "frozen"], missing: ["script", "--limit"]),
        Case(words: ["website", "edit", "shop", "--answers", "s"], offered: ["signed"], missing: ["certificate"]),
        Case(words: ["website", "webhook", ""], offered: [], missing: ["rotate-secret", "list"]),
    ]

    private static func has(_ shell: String) -> Bool {
        ["/usr/bin", "/bin", "/usr/local/bin"].contains { access("\($0)/\(shell)", X_OK) == 0 }
    }

    /// Writes the script of a shell, and returns its path.
    private static func script(_ shell: String, in directory: TemporaryDirectory) async throws -> String {
        let printed = try await BuiltProgram.twoefay("completion", shell)
        try #require(printed.status == 0, "\(printed.errors)")
        try TextFile.write(printed.output, to: directory("script"))
        return directory("script")
    }

    private static func check(_ output: String, _ example: Case) {
        // Some shells append a text about each word.
        let words = Set(
            output.split(separator: "\n").map { String($0.prefix { $0 != "\t" && $0 != ":" }) })
        for word in example.offered { #expect(words.contains(word), "\(word) in \(output)") }
        for word in example.missing { #expect(!words.contains(word), "\(word) in \(output)") }
    }

    @Test(.enabled(if: CompletionTests.has("bash"), "bash is missing"), arguments: cases)
    func bashOffers(_ example: Case) async throws {
        let directory = try TemporaryDirectory()
        let script = try await Self.script("bash", in: directory)
        let run = """
            source "$0"; COMP_WORDS=(twoefay "$@"); COMP_CWORD=$#; _twoefay
            printf '%s\\n' "${COMPREPLY[@]}"
            """
        let ended = try await Child.run("bash", ["--norc", "-c", run, script] + example.words, in: directory.path)
        #expect(ended.status == 0 && ended.errors.isEmpty, "\(ended.errors)")
        Self.check(ended.output, example)
    }

    /// The functions of zsh's completion system exist only at a prompt, so the test has its own.
    @Test(.enabled(if: CompletionTests.has("zsh"), "zsh is missing"), arguments: cases)
    func zshOffers(_ example: Case) async throws {
        let directory = try TemporaryDirectory()
        let script = try await Self.script("zsh", in: directory)
        let run = """
            script=$1; shift
            compdef() { }
            _files() { }
            _describe() { local name=${@[-1]}; print -l -- ${(M)${(P)name}:#${words[CURRENT]}*} }
            source $script
            words=(twoefay "$@"); CURRENT=${#words}; _twoefay
            """
        let ended = try await Child.run("zsh", ["-f", "-c", run, "zsh", script] + example.words, in: directory.path)
        #expect(ended.status == 0 && ended.errors.isEmpty, "\(ended.errors)")
        Self.check(ended.output, example)
    }

    @Test(.enabled(if: CompletionTests.has("fish"), "fish is missing"), arguments: cases)
    func fishOffers(_ example: Case) async throws {
        let directory = try TemporaryDirectory()
        let script = try await Self.script("fish", in: directory)
        let line = (["twoefay"] + example.words).joined(separator: " ")
        let child = try Child(
            "fish", ["--no-config", "-c", "source \(script); complete -C '\(line)'"],
            environment: ["HOME": directory.path, "XDG_CONFIG_HOME": directory.path], in: directory.path)
        let ended = await child.ended()
        #expect(ended.status == 0 && ended.errors.isEmpty, "\(ended.errors)")
        Self.check(ended.output, example)
    }

    @Test func unknownShellIsRefused() async throws {
        let ended = try await BuiltProgram.twoefay("completion", "tcsh")
        #expect(ended.status == 2 && ended.errors.contains("bash, zsh, fish"), "\(ended.errors)")
    }
}
