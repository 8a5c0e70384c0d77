import Bytes
import COpenSSL

/// PBKDF2 (RFC 8018): derives a key from a password.
package enum PBKDF2 {
    package enum Function: Sendable {
        case sha1, sha256, sha512

        fileprivate var algorithm: SharedHandle {
            switch self {
            case .sha1: Algorithm.sha1
            case .sha256: Algorithm.sha256
            case .sha512: Algorithm.sha512
            }
        }
    }

    package static func derive(
        from password: Secret, salt: [UInt8], iterations: Int, count: Int, function: Function
    ) throws(CryptoFailure) -> Secret {
        guard let rounds = Int32(exactly: iterations), rounds > 0, (1...1024).contains(count),
            let size = Int32(exactly: salt.count), let length = Int32(exactly: password.count)
        else { throw CryptoFailure("invalid parameters for PBKDF2") }
        var key = [UInt8](repeating: 0, count: count)
        // An empty array may have a null address, which OpenSSL does not take for an empty
        // password.
        let letters = (password.count == 0 ? [0] : password.reveal()).map { CChar(bitPattern: $0) }
        guard
            PKCS5_PBKDF2_HMAC(
                letters, length, salt, size, rounds, function.algorithm.pointer, Int32(count), &key) == 1
        else { throw CryptoFailure.drained("deriving a key") }
        return Secret(key)
    }
}
