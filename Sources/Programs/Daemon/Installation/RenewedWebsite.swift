import Bytes
import Crypto
import Domain
import Relay
import Storage
import World

/// A new key and certificate of a website, beside those that it has.
public struct RenewedWebsite: Sendable {
    public let name: String
    /// The end of the keys that the website has; nil if they stay valid.
    public let othersEnd: Timestamp?

    public struct Credentials: Sendable {
        public let certificatePath: String
        public let keyPath: String
        public let thumbprint: [UInt8]
        public let expiresAt: Timestamp
    }

    public init(name: String, othersEnd: Timestamp?) {
        self.name = name
        self.othersEnd = othersEnd
    }

    /// Writes the new key and certificate into a directory, then registers the key. The names of
    /// the files contain the first digits of the key's thumbprint, so they are beside the present
    /// ones. Files whose key was not registered are removed.
    public func write(
        of website: WebsiteID, to store: Store, settings: Settings, directory: String, at now: Timestamp,
        as operation: Operation
    ) throws(Failure) -> Credentials {
        let issued = try WebsiteAuthority.load(settings).issue(for: name, at: now)
        let base = "\(name)-\(issued.thumbprint.prefix(4).hexDigits)"
        let credentials = Credentials(
            certificatePath: Files.resolve("\(base).pem", in: directory),
            keyPath: Files.resolve("\(base).key", in: directory), thumbprint: issued.thumbprint,
            expiresAt: issued.stored.notAfter)
        do throws(Files.Problem) {
            try Files.create(credentials.keyPath, issued.key, mode: 0o600)
            try Files.create(credentials.certificatePath, issued.certificate, mode: 0o644)
        } catch {
            Files.remove(credentials.keyPath)
            throw Failure(
                .failed, error.text, next: "Nothing was changed. Choose another directory with --out.")
        }
        let renewal = Websites.Renewal(
            of: website, thumbprint: issued.thumbprint, certificate: issued.stored, othersEnd: othersEnd, at: now)
        let isDone: Bool
        do throws(StoreFailure) {
            isDone = try store.runBlocking(Websites.renew(renewal, as: operation))
        } catch {
            throw Failure(
                store: error,
                next: "Run 'twoefay website show \(name)'. If it shows the key \(base), the files are valid. If not, "
                    + "remove them and try again.")
        }
        guard isDone else {
            Files.remove(credentials.keyPath)
            Files.remove(credentials.certificatePath)
            throw Failure(
                .conflict, "\(name) was removed in the meantime",
                next: "Nothing was changed. To give the name to a new website: twoefay website add \(name) "
                    + "--reuse-name")
        }
        return credentials
    }
}

extension ArraySlice<UInt8> {
    fileprivate var hexDigits: String { Hex.encode(Array(self)) }
}
