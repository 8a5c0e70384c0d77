import Bytes
import COpenSSL

/// AES in CBC, as old formats of files have it. It notices no change: whoever opens has looked at a code of authentication
/// before.
package enum CBC {
    /// The blocks without a look at their padding, which differs from format to format. Nil for a key or an input of no such size.
    package static func open(_ ciphertext: [UInt8], key: Secret, vector: [UInt8]) -> [UInt8]? {
        let cipher: SharedHandle
        switch key.count {
        case 16: cipher = Algorithm.aes128CBC
        case 24: cipher = Algorithm.aes192CBC
        case 32: cipher = Algorithm.aes256CBC
        default: return nil
        }
        guard vector.count == 16, !ciphertext.isEmpty, ciphertext.count.isMultiple(of: 16),
            let size = Int32(exactly: ciphertext.count),
            let context = try? Owned(EVP_CIPHER_CTX_new(), else: "opening", free: { EVP_CIPHER_CTX_free($0) })
        else { return nil }
        // Room for a block more, as OpenSSL asks for it where padding may follow.
        var plaintext = [UInt8](repeating: 0, count: ciphertext.count + 16)
        var count: Int32 = 0
        guard EVP_DecryptInit_ex2(context.pointer, cipher.pointer, key.reveal(), vector, nil) == 1,
            EVP_CIPHER_CTX_set_padding(context.pointer, 0) == 1,
            EVP_DecryptUpdate(context.pointer, &plaintext, &count, ciphertext, size) == 1, count == size
        else {
            ERR_clear_error()
            return nil
        }
        return Array(plaintext.prefix(ciphertext.count))
    }
}
