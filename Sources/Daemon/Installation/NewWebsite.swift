import Bytes
import Crypto
import Domain
import HTTP
import JSON
import Relay
import Storage
import World

/// A website to be made known, as `website add` describes it.
public struct NewWebsite: Sendable {
    public let name: String
    public let displayName: String
    public let callback: String?
    /// The policies that were given, as the store keeps them: JSON of what differs from the installation's.
    let policy: String

    /// What it needs to call.
    public struct Credentials: Sendable {
        public let certificatePath: String
        public let keyPath: String
        public let expiresAt: Timestamp
    }

    static let days = 825

    /// - Parameter policies: texts by the policies' names, as on the command line.
    public init(
        name: String, displayName: String? = nil, callback: String? = nil, policies: [(name: String, text: String)] = []
    ) throws(Failure) {
        let fields = WebsiteFields(command: "website add")
        if let fault = FieldRule.websiteName(name) { throw Failure(.usage, "NAME \(fault)", next: fields.help) }
        if let displayName { try fields.check(displayName: displayName) }
        if let callback { try fields.check(callback: callback) }
        var given = JSONObject()
        for (name, text) in policies {
            try fields.check(policy: name, text)
            given.set(name, .string(text))
        }
        self.name = name
        self.displayName = displayName ?? name
        self.callback = callback
        policy = JSONWriter.text(.object(given))
    }

    /// Writes NAME.key and NAME.pem into a directory, then makes the website known. The files come first, since a name is
    /// never given twice: a website whose key was lost on the way could not be added again.
    public func add(
        to store: Store, settings: Settings, directory: String, time: any TimeSource = SystemTime(),
        randomness: any Randomness = SystemRandomness()
    ) throws(Failure) -> Credentials {
        let now = time.now()
        let masterKey = try settings.loadMasterKey()
        let issued = try issue(settings, at: now)
        let credentials = Credentials(
            certificatePath: Files.resolve("\(name).pem", in: directory),
            keyPath: Files.resolve("\(name).key", in: directory), expiresAt: issued.expiresAt)
        try write(issued, credentials)

        let operations = Operations(masterKey: masterKey.secret, randomness: randomness)
        let row = Websites.New(
            id: operations.draw(), name: name, displayName: displayName, policy: policy, callback: callback,
            keyThumbprint: issued.thumbprint, createdAt: now)
        let added: Bool
        do throws(StoreFailure) {
            added = try store.runBlocking(Websites.add(row, as: operations.new()))
        } catch {
            let failure = Failure(store: error)
            throw Failure(
                failure.code, failure.message,
                next: "See 'website list': if \(name) is there, it goes by \(credentials.certificatePath) and its key. "
                    + "If not, remove the two files and try again.")
        }
        guard added else {
            credentials.remove()
            throw Failure(
                .conflict, "there is or was a website \(name)",
                next: "A name is never given twice. Choose another; 'website list' shows those that are taken.")
        }
        return credentials
    }

    private struct Issued {
        let certificate: [UInt8]
        let key: [UInt8]
        let thumbprint: [UInt8]
        let expiresAt: Timestamp
    }

    /// The websites' authority is loaded for this alone: the relay itself never needs its key.
    private func issue(_ settings: Settings, at now: Timestamp) throws(Failure) -> Issued {
        let keyPath = settings.path(of: settings.tls.websitesKey)
        let certificate: [UInt8]
        let key: [UInt8]
        do throws(Files.Problem) {
            certificate = try Files.read(settings.path(of: settings.tls.websites))
            key = try Files.readPrivate(keyPath)
        } catch {
            throw Failure(
                .failed, error.text, next: "The websites' authority signs new certificates: bring its two files back.")
        }
        do throws(CryptoFailure) {
            let authority = try CertificateAuthority(certificatePEM: certificate, keyPEM: Secret(key))
            let issued = try authority.issueClient(uri: "twoefay:website:\(name)", days: Self.days, at: now)
            return Issued(
                certificate: try issued.certificatePEM(), key: try issued.keyPEM().reveal(),
                thumbprint: issued.certificate.spkiThumbprint, expiresAt: issued.certificate.notAfter)
        } catch {
            throw Failure(
                .failed, "\(keyPath): \(error.description)",
                next: "It must be the key of the websites' authority, in PEM.")
        }
    }

    private func write(_ issued: Issued, _ credentials: Credentials) throws(Failure) {
        do throws(Files.Problem) {
            try Files.create(credentials.keyPath, issued.key, mode: 0o600)
            do throws(Files.Problem) {
                try Files.create(credentials.certificatePath, issued.certificate, mode: 0o644)
            } catch {
                Files.remove(credentials.keyPath)
                throw error
            }
        } catch {
            throw Failure(
                error.exists ? .conflict : .failed, error.text,
                next: "Nothing was added. Choose another directory with --out, or move that file away.")
        }
    }
}

extension NewWebsite.Credentials {
    fileprivate func remove() {
        Files.remove(keyPath)
        Files.remove(certificatePath)
    }
}
