import COpenSSL

/// Locked pages for private keys inside OpenSSL, which puts the secret numbers of keys there once it has such memory.
///
/// Keys that were read before `prepare` stay where they are. Handshakes draw their short-lived keys
/// from these pages, too, so the size bounds how many TLS 1.2 handshakes may stand between two
/// flights at a time: at some 64 bytes each, 32,768.
public enum KeyMemory {
    public enum State: Sendable {
        case locked
        /// In pages that are left out of core dumps, but may be swapped.
        case unlocked
        case missing
    }

    private static let size = 2 << 20
    private static let smallest = 32

    /// To be called once, before any key is read and any other thread begins.
    public static func prepare() -> State {
        switch CRYPTO_secure_malloc_init(size, smallest) {
        case 1: .locked
        case 2: .unlocked
        default: .missing
        }
    }
}
