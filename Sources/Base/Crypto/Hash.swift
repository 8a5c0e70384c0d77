import Bytes
import COpenSSL

public enum SHA256 {
    public static func hash(_ bytes: [UInt8]) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: 32) { buffer, filled in
            let done = EVP_Digest(bytes, bytes.count, buffer.baseAddress, nil, Algorithm.sha256.pointer, nil)
            precondition(done == 1, "SHA-256 fails only without memory")
            filled = 32
        }
    }
}

/// HMAC (RFC 2104).
public enum HMAC {
    public static func sha1(key: Secret, _ message: [UInt8]) -> [UInt8] {
        code(Algorithm.sha1, count: 20, key: key, message)
    }

    public static func sha256(key: Secret, _ message: [UInt8]) -> [UInt8] {
        code(Algorithm.sha256, count: 32, key: key, message)
    }

    public static func sha512(key: Secret, _ message: [UInt8]) -> [UInt8] {
        code(Algorithm.sha512, count: 64, key: key, message)
    }

    private static func code(_ digest: SharedHandle, count: Int, key: Secret, _ message: [UInt8]) -> [UInt8] {
        // An empty array may have a null address, which OpenSSL takes for "the key of the last
        // call".
        let key = key.count == 0 ? Secret([0]) : key
        return [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            let code = key.withBytes { key in
                COpenSSL.HMAC(
                    digest.pointer, key.baseAddress, Int32(key.count), message, message.count, buffer.baseAddress, nil)
            }
            precondition(code != nil, "HMAC fails only without memory")
            filled = count
        }
    }
}
