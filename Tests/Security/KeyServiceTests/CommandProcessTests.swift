import Glibc
import Synchronization
import TestSupport
import Testing
import World

@testable import KeyService

/// Single runs of the command, without a launcher.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct CommandProcessTests {
    private static let never = "exec tail -f /dev/null"

    /// A command may end without reading its input. The launcher ignores this signal, too.
    init() { signal(SIGPIPE, SIG_IGN) }

    private func run(
        _ script: String, request: [UInt8] = Array("a request\n".utf8), timeout: Duration = .seconds(600),
        time: any TimeSource = SystemTime()
    ) throws -> CommandEnd {
        var pair: [Int32] = [0, 0]
        try #require(socketpair(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue), 0, &pair) == 0)
        defer { for fd in pair { close(fd) } }
        return CommandProcess.run(
            ["/bin/sh", "-c", script, "a word", "two words"], Self.input(request), timeout: timeout, owner: pair[0],
            time: time)
    }

    private static func input(_ request: [UInt8]) -> CommandRun {
        CommandRun(id: 1, name: "twoefay:device:ab", usage: "clientAuth", isRenewal: true, request: request)
    }

    private func lines(_ script: String) throws -> [String] {
        let end = try run(script)
        #expect(end.cause == .exited(0), "\(end)")
        return String(decoding: end.output, as: UTF8.self).split(separator: "\n").map(String.init)
    }

    @Test func commandGetsTheRequestAndNoShellReadsItsWords() throws {
        #expect(try lines(#"cat; echo "$0|$1""#) == ["a request", "a word|two words"])
        #expect(try run("cat; echo end", request: []).output == Array("end\n".utf8))
        // Longer than the buffer of a pipe.
        let long = [UInt8](repeating: 0x61, count: 1 << 20)
        #expect(String(decoding: try run("wc -c", request: long).output, as: UTF8.self).contains("1048576"))
        // A command need not read its input.
        #expect(try run("exec <&-; echo done", request: long).output == Array("done\n".utf8))
    }

    @Test func environmentIsClean() throws {
        let end = CommandProcess.run(["/usr/bin/env"], Self.input([]), timeout: .seconds(600), owner: -1)
        let names = String(decoding: end.output, as: UTF8.self).split(separator: "\n").compactMap {
            $0.split(separator: "=").first
        }
        #expect(Set(names) == ["PATH", "LC_ALL", "TWOEFAY_NAME", "TWOEFAY_USAGE", "TWOEFAY_RENEWAL"])
        let values = try lines(#"echo "$TWOEFAY_NAME $TWOEFAY_USAGE $TWOEFAY_RENEWAL"; pwd"#)
        #expect(values == ["twoefay:device:ab clientAuth yes", "/"])
    }

    @Test func onlyThreeDescriptorsAreOpen() throws {
        var pipes: [Int32] = [0, 0]
        try #require(pipe(&pipes) == 0)
        defer { for fd in pipes { close(fd) } }
        // `ls` itself has the directory open.
        #expect(Set(try lines("exec ls /proc/self/fd")).isSubset(of: ["0", "1", "2", "3"]))
    }

    @Test func commandHasItsOwnGroup() throws {
        let parts = try lines("cut -d ' ' -f 5 /proc/$$/stat; echo $$")
        #expect(parts.count == 2 && parts[0] == parts[1] && parts[0] != "\(getpgrp())", "\(parts)")
    }

    @Test func statusAndLastLineAreReported() throws {
        let end = try run("echo one >&2; printf 'two\\033[31m\\n\\n \\n' >&2; echo out; exit 3")
        #expect(end.cause == .exited(3) && end.lastError == "two[31m")
        #expect(end.output == Array("out\n".utf8))
        #expect(try run("kill -9 $$").cause == .signalled(9))
        #expect(try run(#"printf '\357\277\276a\357\267\220b\360\237\277\277' >&2"#).lastError == "ab")
        let flood = try run("head -c 3000000 /dev/zero | tr '\\0' x >&2; echo >&2; echo last >&2; exit 1")
        #expect(flood.cause == .exited(1) && flood.lastError == "last")
        #expect(try run("head -c 3000 /dev/zero | tr '\\0' x >&2; exit 1").lastError.count == 200)
    }

    @Test func missingProgramIsReported() throws {
        let end = CommandProcess.run(["/nowhere/issue"], Self.input([]), timeout: .seconds(600), owner: -1)
        #expect(end.cause == .unstarted("/nowhere/issue cannot be started: posix_spawn: No such file or directory"))
    }

    @Test func outputIsBounded() throws {
        #expect(try run("exec cat /dev/zero").cause == .tooLong)
        #expect(try run("head -c 65536 /dev/zero").output.count == 65_536)
        #expect(try run("head -c 65537 /dev/zero").cause == .tooLong)
    }

    /// A stream that is closed says nothing about the end.
    @Test(arguments: [
        never, "exec >&- 2>&-; while :; do :; done", "trap '' TERM INT HUP; while :; do :; done", "exec yes >&2",
    ])
    func commandThatNeverEndsIsKilled(script: String) throws {
        let place = try TemporaryDirectory()
        try #require(mkfifo(place("pipe"), 0o600) == 0)
        let reader = open(place("pipe"), O_RDONLY | O_NONBLOCK)
        defer { close(reader) }
        // The time of the run is not over before the shell has begun, so each run tests the kill.
        let end = try run(
            "exec 3> '\(place("pipe"))'; echo >&3; \(script)", timeout: .milliseconds(20),
            time: TimeAfterWriting(reader))
        #expect(end.cause == .timeout && end.output.isEmpty)
        #expect(Self.hasEnded(reader))
    }

    /// A clock that stands still until somebody has written to a pipe. Then it is an hour later each
    /// time that it is read.
    private final class TimeAfterWriting: TimeSource {
        private let reader: Int32
        private let hours = Atomic<Int64>(0)

        init(_ reader: Int32) { self.reader = reader }

        func now() -> Timestamp { Timestamp(seconds: 0) }

        func instant() -> Instant {
            var watched = pollfd(fd: reader, events: Int16(POLLIN), revents: 0)
            let isWritten = poll(&watched, 1, 0) > 0 && watched.revents & Int16(POLLIN) != 0
            let hour = hours.wrappingAdd(isWritten ? 1 : 0, ordering: .relaxed).newValue
            return Instant(nanoseconds: 0) + .seconds(3600 * hour)
        }
    }

    /// Waits until the last writer of a pipe has ended.
    private static func hasEnded(_ reader: Int32) -> Bool {
        var watched = pollfd(fd: reader, events: 0, revents: 0)
        while poll(&watched, 1, -1) < 0, errno == EINTR {}
        return watched.revents & Int16(POLLHUP) != 0
    }

    /// A process in the background holds standard output and a named pipe open. It is not waited for,
    /// and is killed.
    @Test func backgroundOfTheCommandEndsWithIt() throws {
        let place = try TemporaryDirectory()
        try #require(mkfifo(place("pipe"), 0o600) == 0)
        let reader = open(place("pipe"), O_RDONLY | O_NONBLOCK)
        defer { close(reader) }
        let end = try run("exec 3> '\(place("pipe"))'; tail -f /dev/null & echo done")
        #expect(end.cause == .exited(0) && end.output == Array("done\n".utf8))
        #expect(Self.hasEnded(reader))
    }

    @Test func commandEndsWithItsOwner() throws {
        var pair: [Int32] = [0, 0]
        try #require(socketpair(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue), 0, &pair) == 0)
        close(pair[1])
        let end = CommandProcess.run(
            ["/bin/sh", "-c", Self.never], Self.input([]), timeout: .seconds(600), owner: pair[0])
        close(pair[0])
        #expect(end.cause == .timeout)
    }

    @Test func messagesRoundTrip() throws {
        let run = Self.input(Array("a\nb".utf8))
        #expect(CommandRun(message: run.message) == run)
        for cause in [
            .exited(3), .signalled(9), .timeout, .tooLong, .unstarted("away"),
        ] as [CommandEnd.Cause] {
            let isStarted = cause != .unstarted("away")
            let end = CommandEnd(cause, output: isStarted ? [0, 255] : [], lastError: isStarted ? "x" : "away")
            #expect(CommandEnd(message: end.message(of: 7)) == end)
            #expect(CommandEnd.id(of: end.message(of: 7)) == 7)
        }
        for text in ["", "{}", #"{"id":1,"end":"else","output":"","error":""}"#] {
            #expect(CommandEnd(message: Array(text.utf8)) == nil && CommandRun(message: Array(text.utf8)) == nil)
        }
    }
}
