import Bytes
import Crypto

/// The content coding `aes128gcm` (RFC 8188). `seal` writes a single record; `open` accepts
/// several.
enum ContentCoding {
    static let name = "aes128gcm"
    /// The length of the header: salt, record size and length of the key id.
    private static let headBytes = 21
    private static let tagBytes = 16

    /// Encrypts a text.
    ///
    /// - Parameter salt: 16 bytes that were never used with this key.
    /// - Parameter padding: the number of zeros after the text, which hide its length.
    static func seal(
        _ text: [UInt8], key: Secret, salt: [UInt8], keyID: [UInt8] = [], recordSize: UInt32 = 4096, padding: Int = 0
    ) throws(CryptoFailure) -> [UInt8] {
        // The delimiter 2 marks the last record.
        let record = text + [2] + [UInt8](repeating: 0, count: padding)
        guard record.count + tagBytes <= Int(recordSize), salt.count == 16, keyID.count <= 255 else {
            throw CryptoFailure("too long for one record")
        }
        let derived = Derived(key: key, salt: salt)
        let (ciphertext, tag) = try GCM.seal(record, key: derived.key, nonce: derived.nonce(0), authenticated: [])
        let size = withUnsafeBytes(of: recordSize.bigEndian) { Array($0) }
        return salt + size + [UInt8(keyID.count)] + keyID + ciphertext + tag
    }

    /// Decrypts a coded text. Returns nil unless every record is authentic and the last one is
    /// present.
    ///
    /// - Parameter key: returns the key with that id, if there is one.
    static func open(_ coded: [UInt8], key: (_ keyID: [UInt8]) -> Secret?) -> [UInt8]? {
        guard coded.count > headBytes else { return nil }
        let recordSize = Int(coded[16..<20].reduce(0) { $0 << 8 | UInt32($1) })
        let start = headBytes + Int(coded[20])
        guard recordSize > tagBytes + 1, coded.count > start, let key = key(Array(coded[headBytes..<start])) else {
            return nil
        }
        let derived = Derived(key: key, salt: Array(coded[..<16]))
        var text: [UInt8] = []
        var at = start
        var number: UInt64 = 0
        while at < coded.count {
            let end = min(at + recordSize, coded.count)
            guard end - at > tagBytes,
                let record = GCM.open(
                    Array(coded[at..<(end - tagBytes)]), tag: Array(coded[(end - tagBytes)..<end]), key: derived.key,
                    nonce: derived.nonce(number), authenticated: []),
                let delimiter = record.lastIndex(where: { $0 != 0 }),
                record[delimiter] == (end == coded.count ? 2 : 1)
            else { return nil }
            text += record[..<delimiter]
            (at, number) = (end, number + 1)
        }
        return text
    }

    /// The content key and the nonces derived from key and salt.
    private struct Derived {
        let key: Secret
        private let base: [UInt8]

        init(key: Secret, salt: [UInt8]) {
            let info = { (what: String) in Array("Content-Encoding: \(what)\0".utf8) }
            self.key = HKDF.sha256(key, salt: salt, info: info(ContentCoding.name), count: 16)
            base = HKDF.sha256(key, salt: salt, info: info("nonce"), count: 12).reveal()
        }

        func nonce(_ number: UInt64) -> [UInt8] {
            var nonce = base
            for place in 0..<8 { nonce[11 - place] ^= UInt8(truncatingIfNeeded: number >> (8 * place)) }
            return nonce
        }
    }
}
