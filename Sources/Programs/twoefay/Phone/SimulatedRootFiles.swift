import Bytes
import Crypto
import Daemon
import Phone
import World

/// The options with which a phone attests its key under a simulated root, and the files of that
/// root.
enum SimulatedRootFiles {
    static let kind = Command.Option(
        "attest", .one("PLATFORM"),
        "Simulate the attestation of a phone with ios or android. Only a relay that trusts --attest-root accepts it.")
    static let directory = Command.Option(
        "attest-root", .one("DIR"),
        "The directory with root.pem and root.key of the simulated root; they are created if they are missing.")
    static let app = Command.Option(
        "attest-app", .one("ID"), "The App ID or package name that is attested (default: one for tests).")

    static let options = [kind, directory, app]

    /// Returns the platform that the options describe; nil if none is simulated.
    static func platform(_ invocation: Invocation) throws(Failure) -> SimulatedPlatform? {
        let help = "Run 'twoefay phone enrol --help' for usage."
        guard let text = invocation.value(kind.name) else {
            for option in [directory, app] where invocation.value(option.name) != nil {
                throw Failure(.usage, "--\(option.name) needs --attest", next: help)
            }
            return nil
        }
        guard let kind = SimulatedPlatform.Kind(rawValue: text) else {
            throw Failure(.usage, "--attest must be ios or android, not \(text)", next: help)
        }
        guard invocation.value(directory.name) != nil else {
            throw Failure(.usage, "--attest needs --attest-root", next: help)
        }
        do throws(CryptoFailure) {
            return try SimulatedPlatform(kind, app: invocation.value(app.name))
        } catch {
            throw Failure(.failed, "the key cannot be created: \(error)", next: Failure.cryptoRemedy)
        }
    }

    /// Reads the root, or creates it. Returns nil if no platform is simulated.
    static func root(_ invocation: Invocation) throws(Failure) -> SimulatedRoot? {
        guard let directory = invocation.value(directory.name) else { return nil }
        let (certificate, key) = (Files.resolve("root.pem", in: directory), Files.resolve("root.key", in: directory))
        do {
            if Files.exists(certificate) {
                return SimulatedRoot(
                    certificate: try Certificate(pem: try Files.read(certificate)),
                    key: try P256PrivateKey(pem: try Files.readSecret(key)))
            }
            let root = try SimulatedRoot(at: SystemTime().now())
            try Files.makeDirectories(directory, mode: 0o700)
            try Files.create(key, try root.key.pem().reveal(), mode: 0o600)
            try Files.create(certificate, try root.certificate.pem(), mode: 0o644)
            return root
        } catch {
            throw Failure(
                .failed, "the simulated root in \(directory) cannot be used: \(error)",
                next: "Correct or remove root.pem and root.key; without them, the command creates new ones.")
        }
    }
}
