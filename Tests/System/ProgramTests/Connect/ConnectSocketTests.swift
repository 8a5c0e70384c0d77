import Glibc
import TestSupport
import Testing

/// The files and the socket of `twoefay connect`.
@Suite("Files of twoefay connect", .timeLimit(.minutes(15)), .mayBlock) struct ConnectSocketTests {
    /// The files of a website, without a relay: the program starts without it, too.
    private struct Files {
        let installed: Installed
        var directory: TemporaryDirectory { installed.directory }

        init() async throws {
            installed = try await Installed()
            _ = try await installed.tool("website", "add", "shop", "--out", directory.path)
            try TextFile.write("\(RunningSidecar.token)\n", to: directory("token"))
            try #require(chmod(directory("token"), 0o600) == 0)
        }

        /// - Parameter more: further options, or others in the place of the usual ones.
        func arguments(_ more: [String]) -> [String] {
            let usual = [
                ("--relay", "https://localhost:1"), ("--certificate", directory("shop.pem")),
                ("--authority", directory("relay/ca.pem")),
            ]
            return ["connect"] + usual.filter { !more.contains($0.0) }.flatMap { [$0.0, $0.1] } + more
        }

        func refused(
            _ more: [String], _ status: Int32, _ message: String, at place: SourceLocation = #_sourceLocation
        ) async throws {
            let ended = try await Child.run(try BuiltProgram.twoefay.path, arguments(more))
            #expect(
                ended.status == status && ended.errors.contains(message), "\(more): \(ended)", sourceLocation: place)
        }

        /// Starts the program, and waits until it listens.
        func start(_ more: [String]) async throws -> Child {
            let child = try Child(try BuiltProgram.twoefay.path, arguments(more + ["--json"]))
            _ = try await child.line(.output, with: #""event":"listening""#)
            return child
        }
    }

    private static func mode(_ path: String) async throws -> String {
        try await Child.run("stat", ["-c", "%a %g %F", path]).output
    }

    @Test func wrongOptionsAreRefused() async throws {
        let files = try await Files()
        let (socket, token) = (files.directory("a.sock"), files.directory("token"))
        try await files.refused([], 2, "--socket or --listen must be given")
        try await files.refused(["--listen", "127.0.0.1:0"], 2, "--listen and --token-file must be given together")
        try await files.refused(["--socket", socket, "--token-file", token], 2, "must be given together")
        for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:80", "localhost:0"] {
            try await files.refused(["--listen", address, "--token-file", token], 2, "is not a loopback address")
        }
        try await files.refused(["--socket", socket, "--group", "no-such-group"], 2, "there is no group no-such-group")
        try await files.refused(
            ["--socket", socket, "--relay", "http://localhost"], 2, "--relay must be https://HOST")
        try await files.refused(
            [
                "--socket", socket, "--certificate", files.directory("relay/ca.pem"), "--key",
                files.directory("shop.key"),
            ],
            1, "is not the certificate of a website")
        try await files.refused(
            ["--socket", socket, "--key", files.directory("relay/server.key")], 1, "cannot be used")
        try await files.refused(["--socket", socket, "--key", files.directory("absent")], 3, "No such file")
    }

    @Test func secretsMustBePrivate() async throws {
        let files = try await Files()
        let token = files.directory("token")
        let listen = ["--listen", "127.0.0.1:0", "--token-file", token]
        try #require(chmod(token, 0o640) == 0)
        try await files.refused(listen, 1, "can be read by others")
        try #require(chmod(token, 0o600) == 0)
        for text in ["", "short", RunningSidecar.token + " x", "\(RunningSidecar.token)\n\(RunningSidecar.token)\n"] {
            try TextFile.write(text, to: token)
            try await files.refused(listen, 1, "token")
        }
        try #require(chmod(files.directory("shop.key"), 0o604) == 0)
        try await files.refused(["--socket", files.directory("a.sock")], 1, "can be read by others")
    }

    @Test func socketHasItsModeAndGroup() async throws {
        let files = try await Files()
        let path = files.directory("run/a.sock")
        var child = try await files.start(["--socket", path])
        #expect(try await Self.mode(path) == "600 \(getegid()) socket\n")
        #expect(try await Self.mode(files.directory("run")) == "700 \(getegid()) directory\n")
        // Another process does not take a socket that is in use.
        try await files.refused(["--socket", path], 4, "Another process listens there")
        // A killed process leaves its socket, and the next one replaces it.
        child.signal(SIGKILL)
        _ = await child.ended()
        #expect(access(path, F_OK) == 0)
        child = try await files.start(["--socket", path, "--group", "\(getegid())"])
        #expect(try await Self.mode(path) == "660 \(getegid()) socket\n")
        child.signal(SIGTERM)
        #expect(await child.ended().status == 0)
        #expect(access(path, F_OK) != 0)
        // A new directory is one of the group, too.
        let other = files.directory("other/a.sock")
        child = try await files.start(["--socket", other, "--group", "\(getegid())"])
        #expect(try await Self.mode(files.directory("other")) == "750 \(getegid()) directory\n")
        child.signal(SIGTERM)
        _ = await child.ended()
    }

    @Test func foreignFilesAreNotReplaced() async throws {
        let files = try await Files()
        try TextFile.write("content", to: files.directory("file"))
        try await files.refused(["--socket", files.directory("file")], 4, "it is no socket")
        #expect(try TextFile.read(files.directory("file")) == "content")
        // A link is not followed, whether its target exists or not.
        for target in ["file", "absent"] {
            let link = files.directory("link-\(target)")
            try #require(symlink(files.directory(target), link) == 0)
            try await files.refused(["--socket", link], 4, "it is no socket")
        }
        #expect(access(files.directory("absent"), F_OK) != 0)
        try #require(chmod(files.directory.path, 0o777) == 0)
        try await files.refused(["--socket", files.directory("a.sock")], 1, "can be written to by others")
        try await files.refused(
            ["--socket", files.directory(String(repeating: "x", count: 120))], 1, "can be written to by others")
        try #require(chmod(files.directory.path, 0o700) == 0)
        try await files.refused(
            ["--socket", files.directory(String(repeating: "x", count: 120))], 1, "File name too long")
    }

    @Test func serviceManagerIsNotified() async throws {
        let files = try await Files()
        let manager = try NotifySocket(path: nil)
        let child = try Child(
            try BuiltProgram.twoefay.path, files.arguments(["--socket", files.directory("run/a.sock")]),
            environment: ["NOTIFY_SOCKET": manager.address])
        let ready = try await blocking { () throws in try manager.next("READY=1") }
        #expect(ready.contains { $0.hasPrefix("STATUS=Offers") })
        child.signal(SIGTERM)
        _ = try await blocking { () throws in try manager.next("STOPPING=1") }
        #expect(await child.ended().status == 0)
    }
}
