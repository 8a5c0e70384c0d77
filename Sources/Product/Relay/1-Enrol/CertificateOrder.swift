import Crypto
import Domain

/// The certificate that a phone is to get.
public struct CertificateOrder: Sendable {
    public let device: DeviceID
    /// The tag of a further certificate; nil for the one that authenticates the phone.
    public let tag: CertificateTag?
    public let key: P256PublicKey
    /// The phone's own request, which is signed by the key; nil if the phone sent none.
    public let request: SigningRequest?
    /// Whether the phone has had a certificate of this kind.
    public let isRenewal: Bool

    public init(
        of device: DeviceID, tag: CertificateTag? = nil, key: P256PublicKey, request: SigningRequest? = nil,
        isRenewal: Bool = false
    ) {
        self.device = device
        self.tag = tag
        self.key = key
        self.request = request
        self.isRenewal = isRenewal
    }

    /// The name of the certificate.
    public var name: CertificateName {
        CertificateName(uri: tag.map { Relay.signerURI(of: device, tag: $0) } ?? Relay.deviceURI + device.text)
    }

    /// Whether an authority outside of the installation can be asked: the phone has sent its own
    /// request, and it asks for this name and nothing else.
    public var isNamed: Bool { request.map { $0.key == key && name.isWhole(of: $0) } ?? false }
}
