import Bytes
import Crypto
import Domain
import HTTP
import Log
import Relay
import Storage
import World

/// A new installation as `twoefay init` creates it: settings, keys, certificates and an empty
/// store. After a failure nothing of it remains.
///
/// Tested in `InitTests.swift`.
public struct NewInstallation: Sendable {
    public let directory: String
    public let settings: Settings
    /// The names and addresses in the server's certificate.
    public let hosts: [String]
    /// The user of the relay; nil for the user of this process.
    private let owner: FileOwner?

    public static let settingsName = "twoefay.yaml"
    /// The longest validity that Apple's devices accept for a server certificate, whichever
    /// authority signed it.
    static let serverDays = 825
    static let authorityDays = 3650

    public var settingsPath: String { Files.resolve(Self.settingsName, in: directory) }

    /// Checks the options.
    ///
    /// - Parameter hosts: the first one becomes the host of the origin; without any, only this
    ///   machine can reach the installation.
    public init(
        directory: String, storage: StorageText = StorageText(path: "twoefay.db"),
        listen: HostPort = HostPort(host: "127.0.0.1", port: 8080), hosts: [String] = [], owner: String? = nil,
        reason: String? = nil
    ) throws(Failure) {
        let help = "Run 'twoefay init --help' for usage."
        guard listen.port != 0 else {
            throw Failure(.usage, "--listen needs a port: it becomes part of the origin", next: help)
        }
        for host in hosts {
            guard let (_, port) = WebAddress.split(host.contains(":") ? "[\(host)]" : host), port == nil else {
                throw Failure(.usage, "--host \(host) is neither a host name nor an address", next: help)
            }
        }
        self.owner = try owner.map { (name) throws(Failure) in try FileOwner(name) }
        self.directory = directory
        self.hosts = hosts.isEmpty ? ["localhost", "127.0.0.1", "::1"] : hosts
        var settings = Settings(
            directory: directory, origin: WebAddress(secure: true, host: self.hosts[0], port: listen.port),
            listen: listen, storage: storage)
        settings.reason = reason
        self.settings = settings
    }

    /// Creates the installation. Existing files are never overwritten.
    public func create(
        time: any TimeSource = SystemTime(), randomness: any Randomness = SystemRandomness(), log: Log
    ) throws(Failure) {
        var site = InstallationDirectory(directory: directory)
        do throws(Failure) {
            try site.open()
            let files = try contents(at: time.now(), randomness)
            for file in files where Files.exists(site.path(file.name)) { throw occupied(file.name) }
            for file in files { try site.write(file) }
            try createStore(&site, time: time, log: log)
            try recordCreation(at: time.now())
            // The settings are written last, because their existence is what makes a directory an
            // installation.
            let text = SettingsExample.annotated(settings)
            try site.write(File(name: Self.settingsName, bytes: Array(text.utf8), isPrivate: true))
            try site.give(to: owner)
            try site.sync()
        } catch {
            site.undo()
            throw error
        }
    }

    struct File {
        let name: String
        let bytes: [UInt8]
        let isPrivate: Bool
    }

    private func contents(at now: Timestamp, _ randomness: any Randomness) throws(Failure) -> [File] {
        let names = settings.tls
        do throws(CryptoFailure) {
            func authority(_ commonName: String) throws(CryptoFailure) -> CertificateAuthority {
                try CertificateAuthority.create(
                    commonName: commonName, days: Self.authorityDays, at: now, randomness: randomness)
            }
            let server = try authority("Twoefay server authority")
            let websites = try authority("Twoefay website authority")
            let phones = try authority("Twoefay phone authority")
            let issued = try server.issueServer(names: hosts, days: Self.serverDays, at: now)
            // The key for pushes to browsers, which the settings can turn on later.
            let vapid = try P256PrivateKey.generate(randomness)
            // Phones know only the pin of the authority, so the chain must contain its certificate.
            let chain = try issued.certificatePEM() + server.certificatePEM()
            return [
                File(name: names.authority.written, bytes: try server.certificatePEM(), isPrivate: false),
                File(name: "ca.key", bytes: try server.keyPEM().reveal(), isPrivate: true),
                File(name: names.certificate.written, bytes: chain, isPrivate: false),
                File(name: names.key.written, bytes: try issued.keyPEM().reveal(), isPrivate: true),
                File(name: names.websites.written, bytes: try websites.certificatePEM(), isPrivate: false),
                File(name: names.websitesKey.written, bytes: try websites.keyPEM().reveal(), isPrivate: true),
                File(name: names.phones.written, bytes: try phones.certificatePEM(), isPrivate: false),
                File(name: names.phonesKey.written, bytes: try phones.keyPEM().reveal(), isPrivate: true),
                File(name: "vapid.key", bytes: try vapid.pem().reveal(), isPrivate: true),
                File(
                    name: settings.masterKey.written, bytes: MasterKey.generate(randomness, at: now).file,
                    isPrivate: true),
            ]
        } catch {
            throw Failure(
                .failed, "the certificates cannot be created: \(error.description)", next: Failure.cryptoRemedy)
        }
    }

    private func createStore(_ site: inout InstallationDirectory, time: any TimeSource, log: Log) throws(Failure) {
        let url = try settings.store()
        switch url {
        case .memory:
            throw Failure(
                .usage, "a store in memory is lost when the program ends",
                next: "Give --storage sqlite:FILE or --storage mariadb://USER@HOST/DATABASE.")
        case .sqlite(let path):
            if Files.exists(path) { throw occupiedStore(url) }
            site.made(path)
            site.made(path + "-wal")
            site.made(path + "-shm")
        case .mariadb:
            // A store that has tables belongs to an installation, and its secrets are sealed under
            // the master key of that installation.
            if try plan(url).present != nil { throw occupiedStore(url) }
        }
        do throws(StoreFailure) {
            try Store.open(url, schema: .migrate, time: time, log: log).close()
        } catch {
            throw Failure(store: error)
        }
    }

    private func plan(_ url: StorageURL) throws(Failure) -> MigrationPlan {
        do throws(StoreFailure) {
            return try Store.migrationPlan(url)
        } catch {
            throw Failure(store: error)
        }
    }

    private func occupied(_ name: String) -> Failure {
        Failure(
            .conflict, "\(Files.resolve(name, in: directory)) exists already",
            next: "Nothing was changed. Choose another directory, or move the file away; its keys may be in use.")
    }

    /// Writes the first row of the audit: who made the installation and its authorities.
    private func recordCreation(at now: Timestamp) throws(Failure) {
        let store = try settings.openStore()
        defer { store.close() }
        let operation = Operations(masterKey: try settings.loadMasterKey().secret, randomness: SystemRandomness()).new()
        let note = "origin \(settings.origin.settingsText), new authorities of the server, the websites and the phones"
        do throws(StoreFailure) {
            try store.runBlocking(ProgramEvents.record("installation.created", note: note, at: now, as: operation))
        } catch {
            throw Failure(store: error)
        }
    }

    private func occupiedStore(_ url: StorageURL) -> Failure {
        Failure(
            .conflict, "\(url) exists already, and belongs to an installation",
            next: "Nothing was changed. Choose another --storage: this one needs the keys of its installation. If an "
                + "init failed and left it, drop it first.")
    }
}

/// A directory that is being filled, with the list of files to remove after a failure.
private struct InstallationDirectory {
    let directory: String
    private var files: [String] = []
    private var madeDirectory = false

    init(directory: String) { self.directory = directory }

    func path(_ name: String) -> String { Files.resolve(name, in: directory) }

    mutating func open() throws(Failure) {
        let settings = path(NewInstallation.settingsName)
        if Files.exists(settings) {
            throw Failure(
                .conflict, "\(settings) exists already: this is an installation",
                next: "Nothing was changed. Choose another directory, or run this one: twoefayd --config \(settings)")
        }
        do throws(Files.Problem) {
            madeDirectory = try Files.makeDirectory(directory, mode: 0o700)
        } catch {
            throw Failure(
                .failed, error.text, next: "Its parent directory must exist, and you must be able to write to it.")
        }
    }

    /// Gives the files to the relay's user, but not the keys that only the operator's tool signs with.
    /// A directory that was made for them comes last: from then on the user can replace its files.
    func give(to owner: FileOwner?) throws(Failure) {
        guard let owner else { return }
        let kept = [path("ca.key"), path("website-ca.key")]
        let given = files.filter { Files.exists($0) && !kept.contains($0) }
        for path in given + (madeDirectory ? [directory] : []) { try owner.take(path) }
    }

    mutating func made(_ path: String) { files.append(path) }

    mutating func write(_ file: NewInstallation.File) throws(Failure) {
        do throws(Files.Problem) {
            try Files.create(path(file.name), file.bytes, mode: file.isPrivate ? 0o600 : 0o644)
            made(path(file.name))
        } catch {
            throw Failure(
                error.exists ? .conflict : .failed, error.text,
                next: "The files created so far are removed. Correct the problem, then try again.")
        }
    }

    func sync() throws(Failure) {
        do throws(Files.Problem) {
            try Files.sync(directory: directory)
        } catch {
            throw Failure(
                .failed, error.text, next: "The files created so far are removed. Correct the problem, then try again.")
        }
    }

    func undo() {
        for file in files { Files.remove(file) }
        if madeDirectory { Files.removeDirectory(directory) }
    }
}
