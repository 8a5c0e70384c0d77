import COpenSSL

/// OpenSSL at the end of a process.
///
/// By default, OpenSSL frees its tables in an exit handler. `exit` then still writes buffered
/// output, and other threads still run. A thread that uses OpenSSL at that time, or only ends,
/// reads freed memory and crashes.
public enum CryptoAtExit {
    /// Keeps OpenSSL usable until the process is gone; the kernel frees its memory. Call it before
    /// anything else uses OpenSSL.
    public static func keepUsable() {
        OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil)
    }
}
