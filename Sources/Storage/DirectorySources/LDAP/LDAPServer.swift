import Bytes
import World

/// The server of an LDAP directory, and the account that reads it.
public struct LDAPServer: Sendable {
    /// The URLs, such as `ldaps://dc1.example.com`. The first server that accepts a connection is
    /// used.
    public let urls: [String]
    /// The path of the authorities to trust, in PEM format; nil for those of the system.
    public let authority: String?
    /// Whether `ldap:` URLs may be used, whose connections have no TLS.
    public let isPlain: Bool
    /// The account that reads the directory; nil for an anonymous bind.
    public let account: Account?
    /// The longest wait for each step: a connection, a handshake, a message.
    public let timeout: Duration

    public struct Account: Sendable {
        public let dn: String
        public let password: Secret

        public init(dn: String, password: Secret) {
            self.dn = dn
            self.password = password
        }
    }

    public init(
        urls: [String], authority: String? = nil, isPlain: Bool = false, account: Account? = nil,
        timeout: Duration = .seconds(30)
    ) {
        self.urls = urls
        self.authority = authority
        self.isPlain = isPlain
        self.account = account
        self.timeout = timeout
    }

    /// Returns the fault of a URL; nil if it is `ldaps://HOST[:PORT]`, or `ldap://HOST[:PORT]`
    /// where that is permitted. libldap would read more into a URL, such as a base and a filter.
    ///
    /// - Parameter isPlain: whether a connection without TLS is permitted.
    public static func fault(of url: String, isPlain: Bool) -> String? {
        let fault = "must be ldaps://HOST or ldaps://HOST:PORT"
        let bytes = Array(url.utf8)
        guard let scheme = ["ldaps://", "ldap://"].first(where: { bytes.starts(with: $0.utf8) }) else { return fault }
        let rest = bytes.dropFirst(scheme.utf8.count)
        let isHost = { (byte: UInt8) in
            (0x30...0x39).contains(byte) || (0x61...0x7a).contains(byte | 0x20) || ".-:[]".utf8.contains(byte)
        }
        guard !rest.isEmpty, rest.count <= 255, rest.allSatisfy(isHost) else { return fault }
        guard !isPlain, scheme == "ldap://" else { return nil }
        // The port of ldap: does not speak TLS, so it is left out; the usual one of ldaps: is 636.
        let host =
            rest.first == UInt8(ascii: "[")
            ? rest.prefix { $0 != UInt8(ascii: "]") } + [UInt8(ascii: "]")]
            : rest.prefix { $0 != UInt8(ascii: ":") }
        return "\(url) has no TLS; write ldaps://\(String(decoding: host, as: UTF8.self)), "
            + "or insecure: true to read without TLS"
    }
}

/// The bounds of one read. A directory beyond them is refused as a whole.
public struct LDAPLimits: Sendable {
    /// The most entries.
    public var entries: Int
    /// The most bytes of one value. A longer one makes its entry unusable.
    public var value = 1024
    /// The most values of one attribute that are kept.
    public var values = 64
    /// The most bytes of one message from the server.
    public var message = 4 << 20
    /// The longest time for the connection and all searches together.
    public var total = Duration.seconds(900)

    public init(entries: Int = 200_000) { self.entries = entries }
}

/// The reason why a directory could not be read. Nothing of it is used then.
public struct LDAPFailure: Error, Sendable, Equatable {
    public enum Kind: Sendable, Equatable {
        /// No server accepted a connection, or the connection ended.
        case unreachable
        /// The server's certificate is not trusted, or names another host.
        case certificate
        /// The server refused the account or its password.
        case credentials
        /// The server did not answer in time, or not to the end.
        case timeout
        /// The server sent something that is not LDAP.
        case malformed
        /// The server returned fewer entries than there are.
        case incomplete
        /// The server refused the search, for example because the base does not exist.
        case refused
        /// The answer exceeds a limit of this client.
        case tooLarge
    }

    public let kind: Kind
    /// The reason, without control characters of the server.
    public let message: String

    init(_ kind: Kind, _ message: String) {
        self.kind = kind
        self.message = message
    }
}
