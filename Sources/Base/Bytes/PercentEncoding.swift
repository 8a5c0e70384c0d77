/// Percent-encoding of text in a URI.
public enum PercentEncoding {
    /// Encodes all bytes except the unreserved characters of RFC 3986 §2.3. Forms write `space` as
    /// `+`.
    public static func encode(_ text: String, space: String = "%20") -> String {
        var encoded = ""
        for byte in text.utf8 {
            switch byte {
            case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, 0x2d, 0x2e, 0x5f, 0x7e:
                encoded.unicodeScalars.append(Unicode.Scalar(byte))
            case 0x20: encoded += space
            default: encoded += "%" + Hex.encode([byte]).uppercased()
            }
        }
        return encoded
    }

    /// Encodes the names and values of a form or query.
    public static func form(_ pairs: [(String, String)], space: String = "+") -> String {
        pairs.map { "\(encode($0, space: space))=\(encode($1, space: space))" }.joined(separator: "&")
    }
}
