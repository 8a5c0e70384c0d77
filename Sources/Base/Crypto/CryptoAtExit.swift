import COpenSSL

/// Prevents crashes in OpenSSL at the end of a process.
///
/// OpenSSL registers an exit handler that frees its tables. After the handler, `exit` still writes
/// buffered output, and other threads still run. A thread that uses OpenSSL then, or only ends,
/// reads freed memory and crashes.
public enum CryptoAtExit {
    /// Keeps OpenSSL usable until the process is gone; the kernel frees its memory. Call it before
    /// anything else uses OpenSSL.
    public static func keepUsable() {
        OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil)
    }
}
