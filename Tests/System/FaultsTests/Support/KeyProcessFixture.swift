import Glibc
import TestSupport

/// A relay whose keys are in another process. Its key files are moved away while that process is not starting.
struct KeyProcessFixture {
    let fixture: Fixture
    private(set) var keys: KeyProcess
    let socket: String

    private static let files = ["master.key", "device-ca.key"]

    static func start(_ kind: StoreKind = .file) async throws -> KeyProcessFixture {
        let fixture = try await Fixture.start(kind)
        await fixture.relay.stop()
        let socket = fixture.relay.file("keys/socket")
        guard mkdir(fixture.relay.file("keys"), 0o700) == 0 else { throw Unexpected(text: "mkdir: \(errno)") }
        try fixture.relay.change { try $0.set("key_service", to: "unix:keys/socket") }
        let keys = try await KeyProcess.start(fixture.relay.settings)
        try moveKeyFiles(fixture)
        try await fixture.relay.restart()
        return KeyProcessFixture(fixture: fixture, keys: keys, socket: socket)
    }

    mutating func restartKeys() async throws {
        for file in Self.files {
            guard rename(fixture.relay.file("\(file).away"), fixture.relay.file(file)) == 0 else {
                throw Unexpected(text: "rename: \(errno)")
            }
        }
        keys = try await KeyProcess.start(fixture.relay.settings)
        try Self.moveKeyFiles(fixture)
    }

    private static func moveKeyFiles(_ fixture: Fixture) throws {
        for file in files {
            guard rename(fixture.relay.file(file), fixture.relay.file("\(file).away")) == 0 else {
                throw Unexpected(text: "rename: \(errno)")
            }
        }
    }

    /// Returns the paths of all files that a process has open.
    static func openFiles(of pid: pid_t) -> [String] {
        TemporaryDirectory.names(in: "/proc/\(pid)/fd").compactMap { name in
            var target = [UInt8](repeating: 0, count: 4096)
            let count = readlink("/proc/\(pid)/fd/\(name)", &target, target.count)
            return count > 0 ? String(decoding: target[..<count], as: UTF8.self) : nil
        }
    }
}
