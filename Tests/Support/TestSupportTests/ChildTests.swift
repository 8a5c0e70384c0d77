import Glibc
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(15))) struct ChildTests {
    @Test func childReportsOutputAndStatus() async throws {
        let ended = try await Child.run("sh", ["-c", "echo out; echo err >&2; exit 7"])
        #expect(ended.status == 7)
        #expect(ended.output == "out\n")
        #expect(ended.errors == "err\n")
    }

    @Test func childIsReadByLineAndEndedBySignal() async throws {
        let child = try Child("sh", ["-c", "echo one; echo two; exec tail -f /dev/null"])
        #expect(try await child.line(.output, with: "tw") == "two")
        child.signal(SIGTERM)
        #expect(await child.ended().status == 128 + SIGTERM)
        await #expect(throws: Child.Problem.self) { try await child.line(.errors, with: "never") }
    }

    @Test func missingProgramIsNamed() {
        #expect(throws: Child.Problem.self) { try Child("/no/such/program", []) }
    }

    @Test func childGetsItsEnvironmentAndDirectory() async throws {
        let directory = try TemporaryDirectory()
        let child = try Child("sh", ["-c", "echo $WORD; pwd"], environment: ["WORD": "given"], in: directory.path)
        #expect(await child.ended().output == "given\n\(directory.path)\n")
    }

    @Test func childLeavesNoProcess() throws {
        var directory: TemporaryDirectory? = try TemporaryDirectory()
        let path = try #require(directory?.path)
        mkdir("\(path)/a", 0o700)
        close(open("\(path)/a/b", O_CREAT | O_WRONLY, 0o600))
        #expect(TemporaryDirectory.names(in: "\(path)/a") == ["b"])
        #expect(directory?.names == ["a"])
        directory = nil
        #expect(access(path, F_OK) != 0)
    }
}
