import Crypto
import Domain
import Relay

/// The purposes of phones' keys.
///
/// Invariant: a key has one purpose for ever, whatever becomes of its phone. A key that signs bare
/// hashes may have signed the hash of a proof, of a decision or of a statement; if it became an
/// enrolment key or a key for statements later, that signature would count.
///
/// Two relays may record one key for two purposes at the same time, and neither sees the other's
/// row. The second row then has the key of the first and fails, its script runs again, and its
/// guard finds the first.
enum UsedKeys {
    static let enrolment = "enrolment"
    static let agreement = "agreement"

    static func purpose(of tag: String, isRaw: Bool) -> String { (isRaw ? "raw:" : "statement:") + tag }

    /// The condition that the keys of a phone, `:thumbprint` and `:agreementThumbprint`, have no
    /// other purpose. The second one may be null.
    static let areFreeForPhone = """
        NOT EXISTS (SELECT 1 FROM used_key k WHERE k.thumbprint = :thumbprint AND k.purpose <> '\(enrolment)')
        AND NOT EXISTS
        (SELECT 1 FROM used_key k WHERE k.thumbprint = :agreementThumbprint AND k.purpose <> '\(agreement)')
        """

    /// The condition that the key `:thumbprint` has no other purpose than `:purpose` of this phone.
    static let isFreeForTag = """
        NOT EXISTS (SELECT 1 FROM used_key k
        WHERE k.thumbprint = :thumbprint AND (k.purpose <> :purpose OR k.device_id <> :device))
        """

    /// Records the keys of a phone, after its row was written.
    static func recorded(of device: NewDevice, as operation: Operation) -> [BoundStatement] {
        func recorded(_ thumbprint: [UInt8], _ purpose: String) -> BoundStatement {
            recordOfPhone(
                thumbprint: .blob(thumbprint), purpose: .text(purpose), device: .id(device.id),
                operation: .id(operation))
        }
        return (device.thumbprint.map { [recorded($0, enrolment)] } ?? [])
            + (device.agreementThumbprint.map { [recorded($0, agreement)] } ?? [])
    }

    /// Records the key of a tagged certificate, after the audit row of the change.
    static func recorded(
        _ thumbprint: SQLValue, _ purpose: String, of device: SQLValue, as operation: SQLValue
    ) -> BoundStatement {
        recordOfTag(thumbprint: thumbprint, purpose: .text(purpose), device: device, operation: operation)
    }

    private static let recordOfPhone = Statement(
        """
        INSERT INTO used_key (thumbprint, purpose, device_id) SELECT :thumbprint, :purpose, d.id FROM device d
        WHERE d.id = :device AND d.operation = :operation AND NOT EXISTS
        (SELECT 1 FROM used_key k WHERE k.thumbprint = :thumbprint AND k.purpose = :purpose)
        """)

    private static let recordOfTag = Statement(
        """
        INSERT INTO used_key (thumbprint, purpose, device_id) SELECT :thumbprint, :purpose, a.device_id FROM audit a
        WHERE a.operation = :operation AND a.device_id = :device AND NOT EXISTS
        (SELECT 1 FROM used_key k
        WHERE k.thumbprint = :thumbprint AND k.purpose = :purpose AND k.device_id = :device)
        """)
}

extension NewDevice {
    /// The thumbprint of the key to which secrets are sealed; nil if the phone has none.
    var agreementThumbprint: [UInt8]? {
        agreementKey.flatMap { try? P256PublicKey(x963: $0) }.map(\.spkiThumbprint)
    }
}
