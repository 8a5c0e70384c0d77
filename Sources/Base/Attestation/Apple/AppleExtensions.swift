import Crypto

/// The extensions of the leaf certificate of App Attest.
enum AppleExtensions {
    private static let nonceIdentifier = "1.2.840.113635.100.8.2"
    private static let deviceIdentifier = "1.2.840.113635.100.8.7"
    private static let osVersionTag: UInt32 = 1400

    /// Reads the nonce: a sequence with one octet string under the tag 1.
    static func nonce(_ leaf: Certificate) throws(AttestationFault) -> [UInt8] {
        guard let values = try? leaf.extensions(nonceIdentifier), values.count == 1 else { throw .statement }
        do {
            var reader = DERReader(values[0])
            var sequence = try reader.open(.sequence)
            try reader.finish()
            var tagged = try sequence.open(.explicit(1))
            try sequence.finish()
            let nonce = try tagged.octets()
            try tagged.finish()
            return nonce
        } catch {
            throw .statement
        }
    }

    /// Reads the version of the operating system from an extension that Apple does not document.
    /// Returns nil if it is missing or has another form.
    static func osVersion(_ leaf: Certificate) -> DottedVersion? {
        guard let values = try? leaf.extensions(deviceIdentifier), values.count == 1 else { return nil }
        return try? osVersion(in: values[0])
    }

    private static func osVersion(in value: [UInt8]) throws(DERError) -> DottedVersion? {
        var reader = DERReader(value)
        var fields = try reader.open(.sequence)
        while !fields.isAtEnd {
            var (number, field) = try fields.openExplicit()
            guard number == osVersionTag else { continue }
            return DottedVersion(String(decoding: try field.octets(), as: UTF8.self))
        }
        return nil
    }
}
