import Bytes
import Testing
import TwoefayClient
import World

/// The cookie by which a website recognises the browser of a user.
@Suite struct KnownBrowsersTests {
    private let browsers: KnownBrowsers
    private let now = Timestamp(seconds: 1_795_249_354)

    init() throws { browsers = try KnownBrowsers(key: Secret([UInt8](repeating: 7, count: 32))) }

    @Test func keysThatSomebodyCouldGuessAreRefused() throws {
        let short = Secret([UInt8](repeating: 7, count: 31))
        #expect(throws: KnownBrowsers.ShortKey.self) { try KnownBrowsers(key: short) }
        let value = KnownBrowsers().value(for: "ada", at: now)
        #expect(!KnownBrowsers().knows(value, as: "ada", at: now))
    }

    @Test func cookieIsValidOnlyForItsUser() throws {
        let value = browsers.value(for: "ada", at: now)
        #expect(browsers.knows(value, as: "ada", at: now))
        #expect(!browsers.knows(value, as: "bob", at: now))
        #expect(!browsers.knows(value, as: "ad", at: now))
        let other = try KnownBrowsers(key: Secret([UInt8](repeating: 8, count: 32)))
        #expect(!other.knows(value, as: "ada", at: now))
        #expect(browsers.value(for: "ada", at: now) != value)
        // The value must be valid in a cookie: letters, digits, hyphens and underscores.
        #expect(value.utf8.count < 128 && value.allSatisfy { $0.isLetter || $0.isNumber || $0 == "-" || $0 == "_" })
    }

    @Test func cookieExpires() {
        let value = browsers.value(for: "ada", at: now)
        #expect(browsers.knows(value, as: "ada", at: now + KnownBrowsers.life - .seconds(1)))
        #expect(!browsers.knows(value, as: "ada", at: now + KnownBrowsers.life))
        #expect(browsers.knows(value, as: "ada", at: now + .seconds(9), notBefore: now))
        #expect(!browsers.knows(value, as: "ada", at: now + .seconds(9), notBefore: now + .seconds(1)))
        // A cookie from more than a minute in the future is invalid.
        #expect(browsers.knows(value, as: "ada", at: now - .seconds(60)))
        #expect(!browsers.knows(value, as: "ada", at: now - .seconds(61)))
    }

    @Test func changedCookieIsRefused() throws {
        let value = browsers.value(for: "ada", at: now)
        let bytes = try #require(Base64URL.decode(value))
        for index in bytes.indices {
            var other = bytes
            other[index] ^= 1
            #expect(!browsers.knows(Base64URL.encode(other), as: "ada", at: now), "byte \(index)")
        }
        for other in [nil, "", "x", "=", String(value.dropLast()), value + "A", String(repeating: "A", count: 4096)] {
            #expect(!browsers.knows(other, as: "ada", at: now), "\(other ?? "none")")
        }
    }
}
