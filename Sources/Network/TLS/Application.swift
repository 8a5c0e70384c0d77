/// The application protocol inside TLS, as ALPN names it.
public enum Application: Sendable, Equatable {
    case http2
    /// HTTP/2, or HTTP/1.1 with a client that prefers it or names no protocol; for servers only.
    case http
    /// A protocol without an ALPN name: client and server are configured for it.
    case unnamed
}
