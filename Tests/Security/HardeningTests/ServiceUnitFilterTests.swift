import Glibc
import TestSupport
import Testing

@testable import Hardening

/// The system call filter of the units in deploy/systemd, beside the filter of the programs.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct ServiceUnitFilterTests {
    /// The calls of newer kernels, which the C library tries and can do without.
    private static let newer: Set = ["futex_requeue", "futex_wait", "futex_wake", "mseal"]
    /// The calls that only a process of root makes, or that `prlimit64` replaces.
    private static let unneeded: Set = ["fchown", "setrlimit"]
    private static let own: Set = ["landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self", "seccomp"]

    /// A call that the unit refuses fails, although the programs count on it.
    @Test(
        .enabled(if: access("/usr/bin/systemd-analyze", X_OK) == 0, "systemd-analyze is missing"),
        arguments: ["twoefayd.service", "twoefay-keys.service"])
    func unitAllowsWhatTheProgramsNeed(_ name: String) async throws {
        let root = #filePath.split(separator: "/").dropLast(4).map { "/\($0)" }.joined()
        var allowed: Set<String> = []
        for line in try TextFile.read("\(root)/deploy/systemd/\(name)").split(separator: "\n") {
            guard line.hasPrefix("SystemCallFilter=") else { continue }
            let words = line.dropFirst(17).drop { $0 == "~" }.split(separator: " ").map(String.init)
            let calls = try await Self.calls(words)
            if line.hasPrefix("SystemCallFilter=~") { allowed.subtract(calls) } else { allowed.formUnion(calls) }
        }
        // systemd adds these by itself.
        allowed.formUnion(try await Self.calls(["@default"]))
        let needed = Set(SyscallFilter.allowed).union(Self.own).union([
            "chmod", "clone", "fchmodat", "prctl", "prlimit64", "socket", "ioctl",
        ])
        let missing = needed.subtracting(allowed).subtracting(Self.newer).subtracting(Self.unneeded)
        #expect(missing.isEmpty, "\(missing.sorted())")
    }

    /// Returns the calls of these words, of which those with an `@` are names of groups.
    private static func calls(_ words: [String]) async throws -> Set<String> {
        var calls: Set<String> = []
        var groups = words
        while let word = groups.popLast() {
            guard word.hasPrefix("@") else {
                calls.insert(word)
                continue
            }
            let ended = try await Child.run("systemd-analyze", ["syscall-filter", "--no-pager", word])
            try #require(ended.status == 0, "\(ended.errors)")
            groups += ended.output.split(separator: "\n").dropFirst()
                .map { $0.drop { $0 == " " } }.filter { !$0.isEmpty && !$0.hasPrefix("#") }.map(String.init)
        }
        return calls
    }
}
