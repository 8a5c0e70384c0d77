/// A certificate request (PKCS #10, RFC 2986) for a key that signs documents.
enum CertificateRequest {
    private static let commonName: [UInt8] = [0x55, 0x04, 0x03]
    private static let alternativeName: [UInt8] = [0x55, 0x1d, 0x11]
    private static let extensionRequest: [UInt8] = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x0e]
    private static let ecdsaWithSHA256: [UInt8] = [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02]

    /// Returns a request in PEM for a name, as the common name and as the only alternative name.
    static func pem(name: String, key: any SigningKey) throws -> String {
        let text = Array(name.utf8)
        // A common name has 64 characters at most.
        let subject =
            text.count > 64 ? [] : element(0x31, element(0x30, element(0x06, commonName), element(0x0c, text)))
        let names = element(0x30, element(0x06, alternativeName), element(0x04, element(0x30, element(0x86, text))))
        let attribute = element(0x30, element(0x06, extensionRequest), element(0x31, element(0x30, names)))
        let content = element(
            0x30, element(0x02, [0]), element(0x30, subject), key.publicKey.info, element(0xa0, attribute))
        guard let signature = ECDSASignature.der(raw: try key.sign(content)) else {
            throw PhoneError.unable("the key returned no signature")
        }
        let whole = element(
            0x30, content, element(0x30, element(0x06, ecdsaWithSHA256)), element(0x03, [0] + signature))
        return PEM.encode(whole, "CERTIFICATE REQUEST")
    }

    private static func element(_ tag: UInt8, _ contents: [UInt8]...) -> [UInt8] {
        let content = contents.flatMap { $0 }
        let length: [UInt8] =
            switch content.count {
            case ..<0x80: [UInt8(content.count)]
            case ..<0x100: [0x81, UInt8(content.count)]
            default: [0x82, UInt8(content.count >> 8), UInt8(content.count & 0xff)]
            }
        return [tag] + length + content
    }
}

/// DER as text (RFC 7468).
package enum PEM {
    package static func encode(_ der: [UInt8], _ label: String) -> String {
        var text = Base64URL.encode(der).replacing("-", with: "+").replacing("_", with: "/")
        text += String(repeating: "=", count: (4 - text.utf8.count % 4) % 4)
        var lines = ["-----BEGIN \(label)-----"]
        while !text.isEmpty {
            lines.append(String(text.prefix(64)))
            text = String(text.dropFirst(64))
        }
        return (lines + ["-----END \(label)-----", ""]).joined(separator: "\n")
    }

    /// Returns the bytes of the first block with this label; nil if there is none.
    package static func decode(_ text: String, _ label: String) -> [UInt8]? {
        let lines = text.split(whereSeparator: \.isNewline)
        guard let start = lines.firstIndex(of: "-----BEGIN \(label)-----"),
            let end = lines[start...].firstIndex(of: "-----END \(label)-----")
        else { return nil }
        let body = lines[(start + 1)..<end].joined()
        let plain = body.replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
        return Base64URL.decode(plain)
    }
}
