/// Converts BER (X.690) with indefinite lengths to definite lengths.
///
/// CMS allows BER, and some servers send indefinite lengths: the content then ends with two zero
/// bytes. `DERReader` refuses them. This conversion changes nothing but lengths, so the result
/// need not be DER, and the caller reads it as strictly as before. Tests: `CertificateBagTests`.
enum BER {
    /// The maximum depth of values, which bounds the work for a peer.
    private static let mostDepth = 16

    /// Returns the value with definite lengths.
    static func definite(_ bytes: [UInt8]) throws(DERError) -> [UInt8] {
        var rest = bytes[...]
        let value = try value(&rest, depth: 0)
        guard rest.isEmpty else { throw .trailingBytes }
        return value
    }

    /// Reads the next value, and returns it with definite lengths.
    private static func value(_ rest: inout ArraySlice<UInt8>, depth: Int) throws(DERError) -> [UInt8] {
        guard depth < mostDepth else { throw .length }
        let header = rest
        guard let tag = rest.popFirst(), let length = rest.popFirst() else { throw .incomplete }
        // The messages that are read have no tags of several bytes outside of primitive values.
        guard tag & 31 != 31 else { throw .tag }
        let isConstructed = tag & 0x20 != 0
        guard length != 0x80 else {
            guard isConstructed else { throw .length }
            var content: [UInt8] = []
            while rest.prefix(2) != [0, 0] { content += try value(&rest, depth: depth + 1) }
            rest = rest.dropFirst(2)
            return DER.value(tag, content)
        }
        // Certificates are DER, and stay as they are: their signatures are over these bytes.
        var reader = DERReader(header)
        _ = try reader.next()
        rest = reader.rest
        return Array(header[..<rest.startIndex])
    }
}
