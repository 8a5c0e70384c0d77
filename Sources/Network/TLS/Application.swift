/// What is spoken inside TLS, and agreed on in the handshake.
public enum Application: Sendable, Equatable {
    case http2
    /// Something that has no name there: it is agreed on by whom one connects to.
    case unnamed
}
