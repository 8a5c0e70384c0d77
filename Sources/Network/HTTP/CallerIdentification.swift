/// Reports that a caller without a certificate has proved its identity, so that its connection
/// counts as that caller's. A handler calls it for each request with an accepted proof, from any
/// thread.
public protocol CallerIdentification: Sendable {
    /// Counts the connection as a connection of this phone.
    /// - Parameter key: the SHA-256 of the phone's public key.
    func isPhone(_ key: [UInt8])
}
