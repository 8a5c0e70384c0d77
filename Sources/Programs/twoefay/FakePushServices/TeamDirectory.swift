import Bytes
import Crypto
import Daemon
import FakePushServices
import Glibc
import JSON
import World

/// A test team on disk. A later run uses the same team, so the relay's settings stay valid.
struct TeamDirectory {
    /// The absolute path, because the settings that name it are in another directory.
    let path: String
    let team: FakeTeam
    let isNew: Bool

    private enum Name {
        static let key = "AuthKey.p8"
        static let authority = (certificate: "apple-ca.pem", key: "apple-ca.key")
        static let providers = (certificate: "provider-ca.pem", key: "provider-ca.key")
        static let provider = (certificate: "provider.pem", key: "provider.key")
        static let all = [
            key, authority.certificate, authority.key, providers.certificate, providers.key, provider.certificate,
            provider.key,
        ]
    }

    private static let days = 3650
    private static let again =
        "Remove the directory to create a new team; the relay then needs the printed settings."

    init(_ directory: String, topic: String, names: [String], at now: Timestamp) throws(Failure) {
        do {
            try Files.makeDirectories(directory, mode: 0o700)
            path = try Self.absolute(directory)
            (team, isNew) = try Self.open(path, topic: topic, names: names, at: now)
        } catch let failure as Failure {
            throw failure
        } catch let problem as Files.Problem {
            throw Failure(.failed, problem.text, next: "Check the directory of the team (--directory).")
        } catch {
            throw Failure(.failed, "\(directory): \(error)", next: Self.again)
        }
    }

    private static func open(
        _ path: String, topic: String, names: [String], at now: Timestamp
    ) throws -> (FakeTeam, isNew: Bool) {
        let there = Name.all.filter { Files.exists(Files.resolve($0, in: path)) }
        guard let first = there.first else { return (try make(in: path, topic: topic, names: names, at: now), true) }
        if let missing = Name.all.first(where: { !there.contains($0) }) {
            throw Failure(.conflict, "\(path): \(missing) is missing, but \(first) exists", next: again)
        }
        let team = try load(from: path, topic: topic, names: names, at: now)
        guard team.authority.certificate.notAfter > now else {
            throw Failure(.failed, "\(path): \(Name.authority.certificate) has expired", next: again)
        }
        return (team, false)
    }

    /// Returns the keys and values for `push.apns` in the relay's settings.
    func settings(endpoint: String, showsCertificate: Bool) -> [(key: String, value: String)] {
        let file = { (name: String) in Files.resolve(name, in: path) }
        let credential =
            showsCertificate
            ? [("certificate", file(Name.provider.certificate)), ("certificate_key", file(Name.provider.key))]
            : [("key", file(Name.key)), ("key_id", team.keyID), ("team_id", team.teamID)]
        return [("endpoint", endpoint), ("topic", team.topic)] + credential + [("ca", file(Name.authority.certificate))]
    }

    // MARK: FCM

    private static let accountKey = "account.key"
    private static let account = "account.json"

    /// Returns the Firebase project of this team. Its key is created by the first call.
    func project() throws(Failure) -> FakeProject {
        let file = Files.resolve(Self.accountKey, in: path)
        do {
            if !Files.exists(file) { try Files.create(file, CertificateKey.generateRSA().reveal(), mode: 0o600) }
            return try FakeProject(team: team, keyPEM: Files.readSecret(file))
        } catch {
            throw Failure(.failed, "\(file): \(error)", next: Self.again)
        }
    }

    /// Returns the keys and values for `push.fcm` in the relay's settings. Writes the account's file
    /// anew, because it names the port.
    func settings(endpoint: String, of project: FakeProject) throws(Failure) -> [(key: String, value: String)] {
        let file = Files.resolve(Self.account, in: path)
        do throws(Files.Problem) {
            try Files.replace(file, project.account(origin: endpoint).reveal(), mode: 0o600)
        } catch {
            throw Failure(.failed, error.text, next: "Check the directory of the team (--directory).")
        }
        return [
            ("endpoint", endpoint), ("account", file), ("ca", Files.resolve(Name.authority.certificate, in: path)),
        ]
    }

    private static func make(
        in path: String, topic: String, names: [String], at now: Timestamp
    ) throws -> FakeTeam {
        let team = try FakeTeam(topic: topic, names: names, days: days, at: now)
        let provider = try team.issueProvider(days: days, at: now)
        let files: [(String, [UInt8], mode_t)] = [
            (Name.key, try team.key.pem().reveal(), 0o600),
            (Name.authority.certificate, try team.authority.certificatePEM(), 0o644),
            (Name.authority.key, try team.authority.keyPEM().reveal(), 0o600),
            (Name.providers.certificate, try team.providers.certificatePEM(), 0o644),
            (Name.providers.key, try team.providers.keyPEM().reveal(), 0o600),
            (Name.provider.certificate, try provider.certificatePEM(), 0o644),
            (Name.provider.key, try provider.keyPEM().reveal(), 0o600),
        ]
        for (name, bytes, mode) in files { try Files.create(Files.resolve(name, in: path), bytes, mode: mode) }
        return team
    }

    private static func load(
        from path: String, topic: String, names: [String], at now: Timestamp
    ) throws -> FakeTeam {
        let read = { (name: String) throws(Files.Problem) in try Files.read(Files.resolve(name, in: path)) }
        let authorities = try [Name.authority, Name.providers].map { name in
            try CertificateAuthority(certificatePEM: read(name.certificate), keyPEM: Secret(read(name.key)))
        }
        return try FakeTeam(
            topic: topic, names: names, key: P256PrivateKey(pem: Secret(read(Name.key))), authority: authorities[0],
            providers: authorities[1], days: days, at: now)
    }

    private static func absolute(_ path: String) throws(Files.Problem) -> String {
        guard let found = realpath(path, nil) else { throw Files.Problem(path, String(cString: strerror(errno))) }
        defer { free(found) }
        return String(cString: found)
    }
}
