import Bytes
import EventLoop
import HTTP

/// The address of a mail server: `smtp://mail.example.com` or `smtps://mail.example.com:465`.
public struct SMTPAddress: Sendable, Hashable {
    /// Whether TLS begins with the first byte (RFC 8314). Otherwise it begins with STARTTLS.
    public let isImplicitTLS: Bool
    /// The host in lower case, without brackets.
    public let host: String
    /// The port as written; nil for 25, or 465 with implicit TLS.
    public let port: UInt16?

    /// Parses an address. Returns nil for anything else.
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

    /// Whether the host is this machine by its name or address, so that no other machine can read
    /// the traffic.
    var isNamedLoopback: Bool {
        host == "localhost" || host == "::1"
            || AddressRange.bytes(of: host).map { $0.count == 4 && $0[0] == 127 } == true
    }
}

/// A mail server and the settings for its use.
public struct SMTPServer: Sendable {
    public var address: SMTPAddress
    /// The credentials, if the server requires a login.
    public var login: Login?
    /// Certificates (PEM) of further authorities to trust, in addition to the system's.
    public var extraTrust: [UInt8]?
    /// The name in EHLO: a host name, or an address in brackets. Nil for the machine's name.
    public var name: String?
    /// Mails that are sent at the same time, each over its own connection and thread.
    public var connections = 4
    /// The most mails that wait for a connection. Further ones are refused.
    public var waiting = 1000
    /// The time for name resolution, TCP and TLS together.
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

    /// Whether TLS is required: always, except to this machine without a password and without
    /// configured authorities.
    var wantsTLS: Bool { !address.isNamedLoopback || login != nil || extraTrust != nil }
}
