/// The application protocol inside TLS, as ALPN names it.
public enum Application: Sendable, Equatable {
    case http2
    /// A protocol without an ALPN name: client and server are configured for it.
    case unnamed
}
