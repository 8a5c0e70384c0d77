import Bytes
import HTTP

/// The data that a website receives from the operator: its name, the relay's address and its client
/// certificate.
public struct WebsiteAccess: Sendable {
    public let name: String
    public let displayName: String
    public let relay: WebAddress
    /// The authority that signed the relay's certificate, as PEM.
    public let authority: [UInt8]
    public let certificate: [UInt8]
    public let key: Secret

    public init(
        name: String, displayName: String, relay: WebAddress, authority: [UInt8], certificate: [UInt8], key: Secret
    ) {
        self.name = name
        self.displayName = displayName
        self.relay = relay
        self.authority = authority
        self.certificate = certificate
        self.key = key
    }
}
