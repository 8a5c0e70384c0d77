import COpenSSL

/// Locked pages for private keys inside OpenSSL. If they exist, OpenSSL stores the secret numbers
/// of keys there.
///
/// Keys that were read before `prepare` stay in ordinary memory. Handshakes allocate their
/// ephemeral keys from these pages, too. So the size limits the number of TLS 1.2 handshakes that
/// wait between two flights: 32,768, at about 64 bytes each.
public enum KeyMemory {
    public enum State: Sendable {
        case locked
        /// The pages are left out of core dumps, but may be swapped.
        case unlocked
        case missing
    }

    private static let size = 2 << 20
    private static let smallest = 32

    /// Reserves the pages. Call it once, before any key is read and any other thread starts.
    public static func prepare() -> State {
        switch CRYPTO_secure_malloc_init(size, smallest) {
        case 1: .locked
        case 2: .unlocked
        default: .missing
        }
    }
}
