/// The name that a certificate has for a phone or its key: one URI, as the only alternative name,
/// and as the common name if that has room for it.
///
/// An authority of the installation ignores what a request asks for. An outside one may grant it,
/// so the request must ask for this name and nothing else, and the certificate must have it.
public struct CertificateName: Sendable, Hashable {
    public let uri: String

    public init(uri: String) { self.uri = uri }

    private static let commonName: [UInt8] = [0x55, 0x04, 0x03]
    private static let alternativeNames: [UInt8] = [0x55, 0x1d, 0x11]
    private static let extensionRequest: [UInt8] = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x0e]
    private static let longestCommonName = 64

    private var isCommonName: Bool { uri.utf8.count <= Self.longestCommonName }

    /// The subject of a request, in DER.
    var subject: [UInt8] {
        guard isCommonName else { return DER.sequence() }
        return DER.sequence(DER.set(DER.sequence(X509Identifier.commonName, DER.utf8(uri))))
    }

    /// The content of the extension with the alternative name.
    private var alternatives: [UInt8] { DER.sequence(DER.value(0x86, Array(uri.utf8))) }

    /// The attributes of a request: the extension with the alternative name.
    var attributes: [UInt8] {
        let extensions = DER.sequence(DER.sequence(X509Identifier.subjectAltName, DER.octets(alternatives)))
        return DER.sequence(DER.identifier(Self.extensionRequest), DER.set(extensions))
    }

    /// Whether a request asks for exactly this name: its subject is the URI, and it asks for no
    /// extension but the alternative name.
    public func isWhole(of request: SigningRequest) -> Bool {
        guard (try? subjects(in: request.subject)) == (isCommonName ? 1 : 0),
            (try? hasOnlyCommonNames(request.subject)) == true
        else { return false }
        return request.attributes.isEmpty ? isCommonName : (try? isRequested(by: request.attributes)) == true
    }

    /// Whether a certificate has this name: the URI is the only alternative name, and each common
    /// name is the URI. Other parts of the subject, such as the organisation, are the authority's.
    public func isName(of certificate: Certificate) -> Bool {
        guard let found = try? certificate.extensions("2.5.29.17"), found == [alternatives] else { return false }
        return (try? subjects(in: certificate.subject)) != nil
    }

    /// Counts the common names. Throws if one is another text.
    private func subjects(in name: [UInt8]) throws(DERError) -> Int {
        var count = 0
        try Self.pairs(of: name) { (type, value) throws(DERError) in
            guard type == Self.commonName else { return }
            guard value == Array(uri.utf8) else { throw .content }
            count += 1
        }
        return count
    }

    private func hasOnlyCommonNames(_ name: [UInt8]) throws(DERError) -> Bool {
        var isOnly = true
        try Self.pairs(of: name) { (type, _) throws(DERError) in if type != Self.commonName { isOnly = false } }
        return isOnly
    }

    private static func pairs(
        of name: [UInt8], _ body: ([UInt8], [UInt8]) throws(DERError) -> Void
    ) throws(DERError) {
        var whole = DERReader(name)
        var parts = try whole.open(.sequence)
        while !parts.isAtEnd {
            var set = try parts.open(.set)
            while !set.isAtEnd {
                var pair = try set.open(.sequence)
                try body(Array(try pair.content(.identifier)), Array(try pair.next().content))
            }
        }
    }

    private func isRequested(by attributes: [UInt8]) throws(DERError) -> Bool {
        var all = DERReader(attributes)
        var attribute = try all.open(.sequence)
        try all.finish()
        guard try attribute.content(.identifier).elementsEqual(Self.extensionRequest) else { return false }
        var values = try attribute.open(.set)
        var extensions = try values.open(.sequence)
        try values.finish()
        var one = try extensions.open(.sequence)
        try extensions.finish()
        guard try one.content(.identifier).elementsEqual(Self.alternativeNames) else { return false }
        var value = try one.next()
        if value.tag == .boolean { value = try one.next() }
        return value.tag == .octets && value.content.elementsEqual(alternatives)
    }
}
