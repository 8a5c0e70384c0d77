import Bytes
import COpenSSL

/// AES in CBC mode, for old file formats. It does not detect changes, so the caller must check an
/// authentication code first.
package enum CBC {
    /// Decrypts blocks and leaves the padding, which differs between formats. Returns nil if the
    /// key or the input has a wrong size.
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
        // OpenSSL requires room for one more block, for padding.
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
