/// The authenticator data of App Attest, which has the form of WebAuthn (§6.1): the digest of the
/// App ID, flags, and a counter. Attestations add the credential. Since iOS 27, both end with a map
/// of extensions.
///
/// The flags do not say which of these are present: Apple sets the flag for a credential in
/// assertions, too, and none for the extensions. So each kind has its own initializer.
struct AuthenticatorData {
    static let maxBytes = 2048

    let appIDHash: [UInt8]
    let counter: UInt32
    let extensions: AppAttestExtensions

    /// Reads the authenticator data of an assertion.
    init(assertion bytes: [UInt8]) throws(AttestationFault) {
        var rest = bytes[...]
        (appIDHash, counter) = try Self.header(&rest)
        extensions = try AppAttestExtensions(rest)
    }

    fileprivate static func header(
        _ rest: inout ArraySlice<UInt8>
    ) throws(AttestationFault) -> (appIDHash: [UInt8], counter: UInt32) {
        guard rest.count <= maxBytes else { throw .size }
        guard rest.count >= 37 else { throw .malformed }
        let appIDHash = Array(rest.prefix(32))
        let counter = rest.dropFirst(33).prefix(4).reduce(0 as UInt32) { $0 << 8 | UInt32($1) }
        rest = rest.dropFirst(37)
        return (appIDHash, counter)
    }
}

/// The authenticator data of an attestation.
struct AttestedCredential {
    let appIDHash: [UInt8]
    let counter: UInt32
    /// The environment of App Attest, as 16 bytes.
    let aaguid: [UInt8]
    let credentialID: [UInt8]
    /// The credential's public key in the uncompressed form of X9.63.
    let publicKey: [UInt8]
    let extensions: AppAttestExtensions

    init(_ bytes: [UInt8]) throws(AttestationFault) {
        var rest = bytes[...]
        (appIDHash, counter) = try AuthenticatorData.header(&rest)
        guard rest.count >= 18 else { throw .malformed }
        aaguid = Array(rest.prefix(16))
        let count = rest.dropFirst(16).prefix(2).reduce(0) { $0 << 8 | Int($1) }
        rest = rest.dropFirst(18)
        guard rest.count >= count else { throw .malformed }
        credentialID = Array(rest.prefix(count))
        rest = rest.dropFirst(count)
        publicKey = try Self.publicKey(&rest)
        extensions = try AppAttestExtensions(rest)
    }

    /// Reads a COSE key (RFC 9052): EC2, ES256, P-256, x and y, and nothing else.
    private static func publicKey(_ rest: inout ArraySlice<UInt8>) throws(AttestationFault) -> [UInt8] {
        guard let key = try? CBORReader.readFirst(&rest), key.map?.count == 5, key[1] == .unsigned(2),
            key[3] == .negative(6), key[-1] == .unsigned(1), let x = key[-2]?.bytes, x.count == 32,
            let y = key[-3]?.bytes, y.count == 32
        else { throw .malformed }
        return [4] + x + y
    }
}

/// The extensions that Apple writes since iOS 27. Unknown ones are ignored, since they are covered
/// by the same signature.
struct AppAttestExtensions {
    private(set) var bundleVersion: String?

    init(_ bytes: ArraySlice<UInt8>) throws(AttestationFault) {
        guard !bytes.isEmpty else { return }
        guard let map = try? CBORReader.read(Array(bytes)), map.map != nil else { throw .malformed }
        if let version = map["apple_bundle_version_01"] {
            guard let text = version.text, text.utf8.count <= 64 else { throw .malformed }
            bundleVersion = text
        }
    }
}
