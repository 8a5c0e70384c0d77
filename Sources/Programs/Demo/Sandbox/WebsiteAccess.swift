import Bytes
import HTTP

/// What a website has from the operator: how it is called, where the relay is, and the certificate to call it with.
public struct WebsiteAccess: Sendable {
    public let name: String
    public let displayName: String
    public let relay: WebAddress
    /// PEM; signed the relay's certificate.
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
