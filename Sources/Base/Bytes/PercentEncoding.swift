/// Percent-encoding of text in a URI.
public enum PercentEncoding {
    /// Encodes all bytes except the unreserved characters of RFC 3986 §2.3.
    public static func encode(_ text: String) -> String {
        var encoded = ""
        for byte in text.utf8 {
            switch byte {
            case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, 0x2d, 0x2e, 0x5f, 0x7e:
                encoded.unicodeScalars.append(Unicode.Scalar(byte))
            default: encoded += "%" + Hex.encode([byte]).uppercased()
            }
        }
        return encoded
    }
}
