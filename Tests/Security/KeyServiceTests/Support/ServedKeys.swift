import Bytes
import CLinux
import Crypto
import Domain
import EventLoop
import Glibc
import Log
import Relay
import TestSupport
import World

@testable import KeyService

/// A key server on its own loop and in its own directory.
final class ServedKeys: Sendable {
    let path: String
    let keys: DataKeys
    let authority: CertificateAuthority
    let sink = ObservedSink()
    let time = SystemTime()
    private let directory: TemporaryDirectory
    private let group: LoopGroup
    private let server: LoopBound<KeyServer>
    private let launcher: pid_t?

    var client: KeyServiceClient { KeyServiceClient(path: path, time: time) }

    init(
        users: Set<uid_t> = [getuid()], limits: KeyServer.Limits = KeyServer.Limits(),
        command: [String]? = nil, timeout: Duration = .seconds(60),
        issuing issue: (@Sendable (DeviceID, P256PublicKey) -> KeyReply)? = nil
    ) async throws {
        directory = try TemporaryDirectory()
        path = directory("socket")
        let listener = try KeyListener(path: path, isShared: false)
        group = try LoopGroup.start(count: 1, time: time)
        let keys = Self.someKeys()
        self.keys = keys
        let authority = try CertificateAuthority.create(commonName: "phones", days: 10, at: time.now())
        self.authority = authority
        let (loop, log, time) = (group.loops[0], Log(minimum: .debug, sink: sink), time)
        let program = try BuiltProgram.keys.path
        let launcher = try command.map { try CommandLauncher.start($0, timeout: timeout, program: program) }
        self.launcher = launcher?.pid
        let outcome = await loop.perform { () async -> Result<LoopBound<KeyServer>, SystemFailure> in
            let commands = launcher.map { CommandService(loop: loop, launcher: $0.socket, timeout: timeout, log: log) }
            let server = KeyServer(
                loop: loop, listener: listener, users: users, limits: limits, log: log, commands: commands
            ) { request, _ in
                switch request {
                case .unwrap: .keys(keys)
                case .issue(let device, let key):
                    issue?(device, key)
                        ?? (try? authority.phoneCertificate(for: key, of: device, at: time.now())).map {
                            .certificate($0)
                        } ?? .refused("not now")
                case .issueTagged(let device, let tag, let key):
                    (try? authority.signerCertificate(for: key, tag: tag, of: device, at: time.now())).map {
                        .certificate($0)
                    } ?? .refused("not now")
                case .issueWebsite(let name, let key):
                    (try? authority.websiteCertificate(for: name, key: key, at: time.now()).pem()).map {
                        .certificate(String(decoding: $0, as: UTF8.self))
                    } ?? .refused("not now")
                case .request: .refused("there is no command")
                case .revocationList(let revoked):
                    (try? authority.phoneRevocationList(revoked, at: time.now())).map { .revocationList($0) }
                        ?? .refused("not now")
                }
            }
            return Result { () throws(SystemFailure) in
                try server.start()
                return LoopBound(server, on: loop)
            }
        }
        server = try outcome.get()
    }

    func stop() async {
        let server = server
        await server.loop.perform { server.value.stop() }
        await withCheckedContinuation { continuation in
            group.stopAndJoin()
            continuation.resume()
        }
        if let launcher { while waitpid(launcher, nil, 0) < 0, errno == EINTR {} }
    }

    static func someKeys() -> DataKeys {
        let secrets = (0..<6).map { _ in Secret(SystemRandomness().bytes(32)) }
        return DataKeys(
            sealing: [
                Sealer.Key(id: "new", key: secrets[0], isNext: true), Sealer.Key(id: "old", key: secrets[1]),
            ], signing: Array(secrets[4...]), relay: RelayKeys(operations: secrets[2], proofs: secrets[3]))
    }

    static func device() -> DeviceID? { DeviceID(SystemRandomness().bytes(16)) }
}

/// A peer that writes arbitrary bytes.
final class RawPeer {
    private let fd: Int32

    init(_ path: String) throws {
        fd = try UnixSocket.connect(path)
        // The socket blocks, as in most programs.
        _ = fcntl(fd, F_SETFL, 0)
    }

    deinit { close(fd) }

    func send(_ bytes: [UInt8]) { _ = Glibc.send(fd, bytes, bytes.count, Int32(MSG_NOSIGNAL)) }

    /// Returns all bytes that arrive until the server closes the connection.
    func rest() -> [UInt8] {
        var all: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = recv(fd, &chunk, chunk.count, 0)
            guard count > 0 else { return all }
            all += chunk[..<count]
        }
    }
}
