import Bytes
import Crypto
import Glibc
import TestSupport
import Testing
import World

/// The files of a relay that reloads them under load: each good change must be taken, and each bad
/// one refused with its reason.
final class ReloadedInstallation {
    let relay: RunningRelay
    private let load: LoginLoad
    private var reloads = 0

    init(_ relay: RunningRelay, _ load: LoginLoad) {
        self.relay = relay
        self.load = load
    }

    /// Makes a change, reloads, and expects the relay to take it while logins continue.
    func takes(place: SourceLocation = #_sourceLocation, _ change: () throws -> Void) async throws {
        try change()
        let line = try await reload()
        #expect(line.contains("event=daemon.reloaded"), "\(line)", sourceLocation: place)
        await load.logins(4)
    }

    /// Makes a bad change, reloads, and expects the relay to say why it refuses. Then it restores the
    /// files.
    func refuses(
        _ reason: String, _ files: String..., place: SourceLocation = #_sourceLocation, _ change: () throws -> Void
    ) async throws {
        let names = ["twoefay.yaml"] + files
        let before = names.map { try? TextFile.bytes(relay.file($0)) }
        try change()
        let line = try await reload()
        #expect(line.contains("level=error") && line.contains(reason), "\(line)", sourceLocation: place)
        await load.logins(4)
        for (name, bytes) in zip(names, before) {
            if let bytes { try TextFile.write(bytes, to: relay.file(name)) } else { unlink(relay.file(name)) }
            chmod(relay.file(name), 0o600)
        }
    }

    /// Reloads, and returns the line about the outcome: `daemon.reloaded` or `daemon.reload`.
    private func reload() async throws -> String {
        reloads += 1
        relay.signal(SIGHUP)
        return try await relay.logged("event=daemon.reload", number: reloads)
    }

    func set(_ key: String, to value: String) throws { try relay.change { try $0.set(key, to: value) } }
    func write(_ name: String, _ text: String) throws { try TextFile.write(text, to: relay.file(name)) }
    func write(_ name: String, _ bytes: [UInt8]) throws { try TextFile.write(bytes, to: relay.file(name)) }
    func bytes(_ name: String) throws -> [UInt8] { try TextFile.bytes(relay.file(name)) }

    func authority(_ name: String) throws -> CertificateAuthority {
        try CertificateAuthority(
            certificatePEM: try bytes("\(name).pem"), keyPEM: Secret(try bytes("\(name).key")))
    }

    /// Writes a server certificate of the installation's authority.
    func issueServer(_ names: [String] = ["localhost", "127.0.0.1"], days: Int = 90, age: Int = 0) throws {
        let ca = try authority("ca")
        let issued = try ca.issueServer(names: names, days: days, at: SystemTime().now() - .seconds(age * 86_400))
        try write("server.pem", try issued.certificatePEM() + ca.certificatePEM())
        try write("server.key", try issued.keyPEM().reveal())
    }

    /// The log lines at the level `error`, without those of refused reloads.
    var errors: [Substring] {
        relay.log.split(separator: "\n").filter {
            $0.contains(" level=error ") && !$0.contains("event=daemon.reload ")
        }
    }
}

/// Contents that no file of an installation may have.
enum SpoiltFile {
    static let certificate = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    static let key = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"
}
