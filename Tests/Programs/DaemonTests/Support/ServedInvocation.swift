import Crypto
import Glibc
import Log
import TestSupport
import Testing
import World

@testable import Daemon
@testable import Storage

/// A command that a relay performs for a caller of its control socket, without the socket: the test has
/// both ends of the connection.
final class ServedInvocation {
    let invocation: Invocation
    private let reply: ControlReply
    private let store: Store
    private var ends: [Int32] = [-1, -1]

    init(_ arguments: [String], wantsProgress: Bool) throws {
        try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
        let reader = CommandLineReader(
            program: "twoefay", about: "", shared: Program.sharedOptions,
            commands: [Command("user list", "Lists users.")])
        let text = "origin: https://login.example.com:8080\nlisten: 127.0.0.1:8080\nstorage: sqlite:twoefay.db\n"
        let settings = try SettingsReader.read(Array(text.utf8), file: "/twoefay.yaml")
        store = try Store.open(
            .memory, schema: .migrate, time: SystemTime(), log: Log(minimum: .error, sink: MemorySink()))
        reply = ControlReply(ends[0])
        guard case .run(var invocation) = try reader.read(arguments) else {
            throw Child.Problem(description: "\(arguments) is no command")
        }
        let keys = MasterKey.generate(SystemRandomness(), at: SystemTime().now()).dataKeys
        invocation.host = CommandHost(
            settings: settings, store: store, keys: keys, isColored: false, showsProgress: wantsProgress, caller: reply
        ) { () throws(Failure) in
            throw Failure(.failed, "nothing is reloaded", next: "")
        }
        self.invocation = invocation
    }

    deinit {
        for end in ends where end >= 0 { close(end) }
        store.close()
    }

    /// Ends the answer, and returns its lines.
    func answer() -> String {
        reply.end(.ok)
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = recv(ends[1], &bytes, bytes.count, 0)
        return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
    }
}
