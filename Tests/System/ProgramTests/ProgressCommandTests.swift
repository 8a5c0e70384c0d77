import Glibc
import TestSupport
import Testing

/// The progress of a long command of the built tool at a terminal.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct ProgressCommandTests {
    private static let python = "/usr/bin/python3"
    /// The program that `twoefay backup` runs for a store in MariaDB.
    private static let dump = "/usr/bin/mariadb-dump"

    /// Runs a command with its standard error at a terminal, and passes on what the terminal gets.
    private static let script = """
        import os, pty, subprocess, sys
        terminal, end = pty.openpty()
        command = subprocess.Popen(sys.argv[1:], stderr=end)
        os.close(end)
        try:
            while chunk := os.read(terminal, 65536):
                sys.stderr.buffer.write(chunk.replace(b"\\r", b""))
                sys.stderr.flush()
        except OSError:
            pass
        sys.exit(command.wait())
        """

    /// The copy goes on when the test has seen a line, however long that takes.
    @Test(.enabled(if: access(python, X_OK) == 0 && access(dump, X_OK) == 0, "python3 or mariadb-dump is missing"))
    func backupShowsProgressAtATerminal() async throws {
        let fixture = try await Fixture(.mariadb)
        let relay = fixture.relay
        let (programs, gate) = (relay.directory("programs"), relay.directory("gate"))
        try #require(mkdir(programs, 0o700) == 0 && mkfifo(gate, 0o600) == 0)
        let slow = "\(programs)/mariadb-dump"
        try TextFile.write("#!/bin/sh\nread word < '\(gate)'\nexec \(Self.dump) \"$@\"\n", to: slow)
        try #require(chmod(slow, 0o700) == 0)
        let file = relay.directory("copy")
        let path = getenv("PATH").map { String(cString: $0) } ?? "/usr/bin:/bin"
        let words = ["-c", Self.script, try BuiltProgram.twoefay.path, "--config", relay.settings, "backup", file]
        let child = try Child(Self.python, words, environment: ["PATH": "\(programs):\(path)"])
        let line = try await child.line(.errors, with: "MiB written", number: 2)
        #expect(line.hasPrefix("0 MiB written"))
        // Opened for both directions, so that it waits for nobody.
        let opened = open(gate, O_RDWR | O_CLOEXEC)
        try #require(opened >= 0 && write(opened, "go\n", 3) == 3)
        let ended = await child.ended()
        close(opened)
        #expect(ended.status == 0 && ended.output.hasPrefix("\(file) is a copy of"), "\(ended)")
        #expect(ended.errors.split { $0.isNewline }.allSatisfy { $0.hasSuffix("MiB written") }, "\(ended.errors)")
    }
}
