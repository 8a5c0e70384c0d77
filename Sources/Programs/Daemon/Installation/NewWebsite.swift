import Bytes
import Crypto
import Domain
import HTTP
import JSON
import Relay
import Storage
import Webhooks
import World

/// A website to be added, as `website add` describes it.
public struct NewWebsite: Sendable {
    public let name: String
    public let displayName: String
    public let webhookURL: String?
    /// The policies that were given, as JSON for the store: only those that differ from the
    /// installation's.
    let policy: String
    /// Whether the website may get the name of a removed one.
    let isNameReused: Bool

    /// The files that the website needs for its requests.
    public struct Credentials: Sendable {
        public let certificatePath: String
        public let keyPath: String
        /// The file with the webhook secret; nil for a website without a webhook URL.
        public let secretPath: String?
        public let expiresAt: Timestamp
    }

    /// Checks the fields of the website.
    ///
    /// - Parameters:
    ///   - allowed: the ranges of `webhooks.allow`.
    ///   - policies: texts by the policies' names, as on the command line.
    public init(
        name: String, displayName: String? = nil, webhook: String? = nil, allowed: AddressRanges? = nil,
        policies: [(name: String, text: String)] = [], reusingName isNameReused: Bool = false
    ) throws(Failure) {
        let fields = WebsiteFields(command: "website add")
        if let fault = FieldRule.websiteName(name) { throw Failure(.usage, "NAME \(fault)", next: fields.help) }
        if let displayName { try fields.check(displayName: displayName) }
        if let webhook { try fields.check(webhook: webhook, allowed: allowed) }
        var given = JSONObject()
        for (name, text) in policies {
            try fields.check(policy: name, text)
            given.set(name, .string(text))
        }
        self.name = name
        self.displayName = displayName ?? name
        self.webhookURL = webhook
        policy = JSONWriter.text(.object(given))
        self.isNameReused = isNameReused
    }

    /// Writes NAME.key, NAME.pem and, if there is a webhook URL, NAME.secret into a directory, then
    /// adds the website to the store.
    ///
    /// The files are written first, because a name can be used only once. If the key were lost
    /// after the website was added, the website could not be added again under this name.
    public func add(
        to store: Store, settings: Settings, directory: String, time: any TimeSource = SystemTime(),
        randomness: any Randomness = SystemRandomness()
    ) throws(Failure) -> Credentials {
        let now = time.now()
        let masterKey = try settings.loadMasterKey()
        let issued = try WebsiteAuthority.load(settings).issue(for: name, at: now)
        let credentials = Credentials(
            certificatePath: Files.resolve("\(name).pem", in: directory),
            keyPath: Files.resolve("\(name).key", in: directory),
            secretPath: webhookURL.map { _ in Files.resolve("\(name).secret", in: directory) },
            expiresAt: issued.stored.notAfter)
        let operations = Operations(masterKey: masterKey.secret, randomness: randomness)
        let id: WebsiteID = operations.draw()
        let secret = WebhookSecret.make(randomness)
        let sealed = try masterKey.seal(WebhookSecrets(current: secret), of: id)
        let row = Websites.New(
            id: id, name: name, displayName: displayName, policy: policy,
            webhook: webhookURL.map { Storage.WebhookEndpoints.New(url: $0, secrets: sealed) },
            keyThumbprint: issued.thumbprint, certificate: issued.stored,
            predecessor: try predecessor(in: store), createdAt: now)
        try write(issued, secret, credentials)

        let added: Bool
        do throws(StoreFailure) {
            added = try store.runBlocking(Websites.add(row, as: operations.new()))
        } catch {
            throw Failure(
                store: error,
                next: "Run 'twoefay website list'. If it shows \(name), \(credentials.certificatePath) and its key are "
                    + "valid. If not, remove the files and try again.")
        }
        guard added else {
            credentials.remove()
            throw Failure(
                .conflict, "there is or was a website \(name)",
                next: "A name can be used only once. Choose another; 'twoefay website list' shows the names in use.")
        }
        return credentials
    }

    /// Returns the removed website of this name, if the name may be given again.
    private func predecessor(in store: Store) throws(Failure) -> WebsiteID? {
        let found: Websites.Listed?
        do throws(StoreFailure) {
            found = try store.runBlocking(Websites.named(name))
        } catch {
            throw Failure(store: error)
        }
        guard let found, found.isRemoved else { return nil }
        guard isNameReused else {
            throw Failure(
                .conflict, "there was a website \(name), which is removed",
                next: "Choose another name, or give the name again with --reuse-name.")
        }
        return found.id
    }

    private func write(
        _ issued: WebsiteAuthority.Issued, _ secret: WebhookSecret, _ credentials: Credentials
    ) throws(Failure) {
        var written: [String] = []
        do throws(Files.Problem) {
            try Files.create(credentials.keyPath, issued.key, mode: 0o600)
            written.append(credentials.keyPath)
            try Files.create(credentials.certificatePath, issued.certificate, mode: 0o644)
            written.append(credentials.certificatePath)
            if let path = credentials.secretPath { try secret.write(to: path) }
        } catch {
            for path in written { Files.remove(path) }
            throw Failure(
                error.exists ? .conflict : .failed, error.text,
                next: "Nothing was added. Choose another directory with --out, or move the existing file away.")
        }
    }
}

extension NewWebsite.Credentials {
    fileprivate func remove() {
        Files.remove(keyPath)
        Files.remove(certificatePath)
        if let secretPath { Files.remove(secretPath) }
    }
}
