import Bytes
import JSON
import Relay
import Storage
import World

/// The keys of a website, for `website show`.
extension Websites.Key {
    static let headings = ["KEY", "CREATED", "EXPIRES", "ENDS", "LAST USED", "AUTHORITY"]

    /// - Parameter current: the authority that signs new certificates; nil if it is unknown.
    func row(_ current: [UInt8]?) -> [String] {
        let authority =
            switch (certificate?.issuer, current) {
            case (nil, _), (_, nil): "unknown"
            case (let issuer, let current): issuer == current ? "present" : "former"
            }
        return [
            Hex.encode(thumbprint), createdAt.rfc3339, certificate?.notAfter.rfc3339 ?? "unknown",
            endsAt?.rfc3339 ?? "", usedAt?.rfc3339 ?? "never", authority,
        ]
    }

    var json: JSONValue {
        .object([
            "thumbprint": .string(Hex.encode(thumbprint)), "created_at": .string(createdAt.rfc3339),
            "expires_at": .text(certificate?.notAfter.rfc3339), "serial": .text(certificate?.serial),
            "issuer": .text(certificate.map { Hex.encode($0.issuer) }), "ends_at": .text(endsAt?.rfc3339),
            "used_at": .text(usedAt?.rfc3339),
        ])
    }
}
