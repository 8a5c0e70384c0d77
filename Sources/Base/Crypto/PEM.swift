import Bytes
import COpenSSL

/// PEM text (RFC 7468) with DER inside.
enum PEM {
    static func encode(_ label: String, _ der: [UInt8]) throws(CryptoFailure) -> [UInt8] {
        let bio = try Owned(BIO_new(BIO_s_mem()), else: "writing PEM") { BIO_free($0) }
        guard PEM_write_bio(bio.pointer, label, "", der, der.count) > 0 else {
            throw CryptoFailure.drained("writing PEM")
        }
        return contents(of: bio.pointer)
    }

    /// Decodes the first block with this label.
    static func decode(_ label: String, _ pem: [UInt8]) throws(CryptoFailure) -> [UInt8] {
        guard let block = try blocks(label, pem, atMost: 1).first else {
            throw CryptoFailure("there is no \(label) in this PEM text")
        }
        return block
    }

    static func blocks(_ label: String, _ pem: [UInt8], atMost: Int = 100) throws(CryptoFailure) -> [[UInt8]] {
        // `withUnsafeBytes` rethrows untyped errors.
        try pem.withUnsafeBytes { text in
            Result { () throws(CryptoFailure) in try blocks(label, in: text, atMost: atMost) }
        }.get()
    }

    /// Decodes blocks. OpenSSL reads from the memory of `text` until the end of this function.
    private static func blocks(
        _ label: String, in text: UnsafeRawBufferPointer, atMost: Int
    ) throws(CryptoFailure) -> [[UInt8]] {
        // Other code that uses OpenSSL (MariaDB's client) leaves errors in this thread's queue,
        // which is evaluated below.
        ERR_clear_error()
        let bio = try Owned(BIO_new_mem_buf(text.baseAddress, Int32(clamping: text.count)), else: "reading PEM") {
            BIO_free($0)
        }
        var blocks: [[UInt8]] = []
        while blocks.count < atMost {
            var name: UnsafeMutablePointer<CChar>?
            var header: UnsafeMutablePointer<CChar>?
            var data: UnsafeMutablePointer<UInt8>?
            var count = 0
            guard PEM_read_bio(bio.pointer, &name, &header, &data, &count) == 1 else { break }
            defer {
                CRYPTO_free(name, #file, #line)
                CRYPTO_free(header, #file, #line)
                CRYPTO_clear_free(data, count, #file, #line)
            }
            guard let name, let data, String(cString: name) == label else { continue }
            blocks.append([UInt8](UnsafeBufferPointer(start: data, count: count)))
        }
        let end = CryptoFailure.drained("reading PEM")
        // OpenSSL reports the end of the text as an error.
        guard end.reasons.allSatisfy({ $0 == "no start line" }) else { throw end }
        return blocks
    }

    /// Reads an unencrypted private key. The caller owns the result.
    static func privateKey(_ pem: Secret) throws(CryptoFailure) -> OpaquePointer {
        try pem.withBytes { text throws(CryptoFailure) in
            let what = "reading a private key"
            let bio = try Owned(BIO_new_mem_buf(text.baseAddress, Int32(clamping: text.count)), else: what) {
                BIO_free($0)
            }
            guard let key = PEM_read_bio_PrivateKey(bio.pointer, nil, refusePassword, nil) else {
                throw CryptoFailure.drained(what)
            }
            return key
        }
    }

    /// Writes an unencrypted private key in PKCS #8.
    static func encode(privateKey key: OpaquePointer) throws(CryptoFailure) -> Secret {
        let what = "writing a private key"
        let bio = try Owned(BIO_new(BIO_s_mem()), else: what) { BIO_free($0) }
        guard PEM_write_bio_PrivateKey(bio.pointer, key, nil, nil, 0, nil, nil) == 1 else {
            throw CryptoFailure.drained(what)
        }
        return Secret(contents(of: bio.pointer))
    }

    static func contents(of bio: OpaquePointer) -> [UInt8] {
        var start: UnsafeMutablePointer<UInt8>?
        let count = withUnsafeMutablePointer(to: &start) { BIO_ctrl(bio, BIO_CTRL_INFO, 0, $0) }
        return [UInt8](UnsafeBufferPointer(start: start, count: count))
    }
}

/// Refuses to give a password. Without this OpenSSL would ask at the terminal, and a daemon would
/// hang.
private func refusePassword(
    _ buffer: UnsafeMutablePointer<CChar>?, _ size: Int32, _ writing: Int32, _ context: UnsafeMutableRawPointer?
) -> Int32 { -1 }
