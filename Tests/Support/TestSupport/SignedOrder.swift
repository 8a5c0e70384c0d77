import Crypto
import Domain
import Relay

extension CertificateOrder {
    /// An order with the request that the phone signed.
    ///
    /// - Parameters:
    ///   - key: the key of the phone or, with a tag, its key for documents.
    ///   - tag: the tag of a further certificate; nil for the phone's own.
    public static func signed(
        of device: DeviceID, key: P256PrivateKey, tag: CertificateTag? = nil, renews: Bool = false
    ) throws -> CertificateOrder {
        let bare = CertificateOrder(of: device, tag: tag, key: key.publicKey)
        return CertificateOrder(
            of: device, tag: tag, key: key.publicKey, request: try SigningRequest(bare.name, key: key),
            isRenewal: renews)
    }
}
