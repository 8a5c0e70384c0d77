import Crypto

/// The extension of Android's Key Attestation, in which the secure hardware describes a key.
///
/// Schema: <https://source.android.com/docs/security/features/keystore/attestation>. Versions 1 to
/// 4 are Keymaster's; 100, 200, 300 and 400 are KeyMint's. Tests: `KeyDescriptionTests`.
public struct KeyDescription: Sendable, Equatable {
    public static let identifier = "1.3.6.1.4.1.11129.2.1.17"
    private static let versions: Set<Int64> = [1, 2, 3, 4, 100, 200, 300, 400]

    public enum SecurityLevel: Int64, Sendable {
        case software = 0
        case trustedEnvironment = 1
        case strongBox = 2
    }

    public let version: Int64
    /// The place of the key that signed this description.
    public let attestationLevel: SecurityLevel
    /// The place of the described key.
    public let keyLevel: SecurityLevel
    public let challenge: [UInt8]
    public let softwareEnforced: AuthorizationList
    public let hardwareEnforced: AuthorizationList

    /// Reads the content of the extension.
    public init(_ bytes: [UInt8]) throws(DERError) {
        var reader = DERReader(bytes)
        var fields = try reader.open(.sequence)
        try reader.finish()
        version = try fields.integer()
        guard Self.versions.contains(version) else { throw .content }
        attestationLevel = try Self.level(&fields)
        // The version of Keymaster or KeyMint, which says no more than the first one.
        _ = try fields.integer()
        keyLevel = try Self.level(&fields)
        challenge = try fields.octets()
        // The unique id, which no app gets.
        _ = try fields.octets()
        softwareEnforced = try AuthorizationList(try fields.open(.sequence))
        hardwareEnforced = try AuthorizationList(try fields.open(.sequence))
        try fields.finish()
    }

    private static func level(_ fields: inout DERReader) throws(DERError) -> SecurityLevel {
        guard let level = SecurityLevel(rawValue: try fields.enumerated()) else { throw .content }
        return level
    }
}
