import Bytes
import EventLoop
import HTTP

/// `smtp://mail.example.com`, `smtps://mail.example.com:465`: where mails are handed in.
public struct SMTPAddress: Sendable, Hashable {
    /// TLS from the first byte on (RFC 8314), where otherwise it is asked for with STARTTLS.
    public let isImplicitTLS: Bool
    /// In small letters, without brackets.
    public let host: String
    /// As written; nil is 25, or 465 with TLS from the first byte.
    public let port: UInt16?

    /// Nil for everything else.
    public init?(_ text: String) {
        let schemes = [("smtps://", true), ("smtp://", false)]
        guard let (scheme, implicit) = schemes.first(where: { text.hasPrefix($0.0) }),
            let (host, port) = WebAddress.split(String(text.dropFirst(scheme.count))), port != 0
        else { return nil }
        isImplicitTLS = implicit
        self.host = host.lowercased()
        self.port = port
    }

    public var text: String {
        (isImplicitTLS ? "smtps://" : "smtp://") + WebAddress(secure: true, host: host, port: port).authority
    }

    /// On this machine, by its name: what is said to it is heard by nobody else.
    var isNamedLoopback: Bool {
        host == "localhost" || host == "::1"
            || AddressRange.bytes(of: host).map { $0.count == 4 && $0[0] == 127 } == true
    }
}

/// A mail server, and how it is used.
public struct SMTPServer: Sendable {
    public var address: SMTPAddress
    /// Who hands in, where the server wants to know.
    public var login: Login?
    /// Certificates (PEM) that the server is believed by, besides the machine's.
    public var extraTrust: [UInt8]?
    /// What we call ourselves: a host name, or an address in brackets. Nil is the machine's name.
    public var name: String?
    /// Mails that are handed in at once, each over a connection and on a thread of its own.
    public var connections = 4
    /// Mails that may wait for one. More are refused.
    public var waiting = 1000
    /// Names, addresses and TLS together.
    public var connectTimeout = Duration.seconds(10)

    public init(_ address: SMTPAddress) { self.address = address }

    public struct Login: Sendable {
        public let username: String
        public let password: Secret

        public init(username: String, password: Secret) {
            self.username = username
            self.password = password
        }
    }

    /// Everywhere but to this machine itself; and there, too, where a password is said or somebody set whom to believe.
    var wantsTLS: Bool { !address.isNamedLoopback || login != nil || extraTrust != nil }
}
