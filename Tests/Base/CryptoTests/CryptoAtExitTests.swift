import Crypto
import Glibc
import Testing

@Suite struct CryptoAtExitTests {
    /// Exit handlers run in reverse order, so the handler here runs after OpenSSL's own, if there is
    /// one. After that handler, OpenSSL generates no key.
    @Test func openSSLIsUsableInTheLastExitHandler() async {
        await #expect(processExitsWith: .exitCode(7)) {
            atexit {
                let key = try? P256PrivateKey.generate()
                _exit(key == nil ? 1 : 7)
            }
            CryptoAtExit.keepUsable()
            _ = try P256PrivateKey.generate()
            exit(0)
        }
    }
}
