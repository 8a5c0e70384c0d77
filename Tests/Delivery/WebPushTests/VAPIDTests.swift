import Bytes
import Crypto
import JSON
import Log
import Synchronization
import TestSupport
import Testing
import World

@testable import WebPush

@Suite struct VAPIDTests {
    /// The example of RFC 8292 §2.4 passes the check that the test push service uses.
    @Test func publishedVAPIDTokenVerifies() throws {
        let field =
            "vapid t=eyJ0eXAiOiJKV1QiLCJhbGciOiJFUzI1NiJ9.eyJhdWQiOiJodHRwczovL3B1c2guZXhhbXBsZS5uZXQiLCJleHAiOjE0NTM1MjM3"
            + "NjgsInN1YiI6Im1haWx0bzpwdXNoQGV4YW1wbGUuY29tIn0.i3CYb7t4xfxCDquptFOepC9GAu_HLGkMlMuCGSK2rpiUfnK9ojFwDXb1JrErtmys"
            + "azNjjvW2L9OkSSHzvoD1oA, k=BA1Hxzyi1RUM1b5wjxsn7nGxAszw2u61m164i3MrAIxHF6YK5h4SDYic-dRuU_RCPCfA5aq9ojSwk5Y2EmClBPs"
        let claims = try #require(try VAPIDCheck.claims(of: field))
        #expect(claims["aud"]?.string == "https://push.example.net")
        #expect(claims["exp"]?.integer == 1_453_523_768)
        #expect(claims["sub"]?.string == "mailto:push@example.com")
        #expect(try VAPIDCheck.claims(of: field.replacing("i3CYb7", with: "i3CZb7")) == nil)
    }

    private func makeVAPID(_ time: TestTime) throws -> (vapid: VAPID, key: P256PrivateKey) {
        let key = try P256PrivateKey.generate()
        return (VAPID(key: key, contact: "mailto:op@example.com", time: time, log: Log(sink: MemorySink())), key)
    }

    @Test func tokenNamesAudienceAndExpiry() throws {
        let time = TestTime()
        let (vapid, key) = try makeVAPID(time)
        let field = try vapid.authorization(for: "https://push.example.net") { _ in }
        let claims = try #require(try VAPIDCheck.claims(of: field))
        #expect(claims["aud"]?.string == "https://push.example.net")
        #expect(claims["sub"]?.string == "mailto:op@example.com")
        let life = try #require(claims["exp"]?.integer) - time.now().seconds
        #expect(life > 0 && life <= 24 * 3600)
        #expect(field.hasSuffix(", k=" + Base64URL.encode(key.publicKey.x963)))
        #expect(vapid.applicationServerKey == Base64URL.encode(key.publicKey.x963))
    }

    @Test func tokenIsCachedPerServiceAndRenewedInTheBackground() throws {
        let time = TestTime()
        let (vapid, _) = try makeVAPID(time)
        let later = Mutex<[@Sendable () -> Void]>([])
        func ask(_ origin: String = "https://a.example") throws -> String {
            try vapid.authorization(for: origin) { work in later.withLock { $0.append(work) } }
        }
        let first = try ask()
        #expect(try ask() == first)
        #expect(try ask("https://b.example") != first)
        time.advance(by: .seconds(6 * 3600 - 1))
        #expect(try ask() == first)
        #expect(later.withLock { $0.count } == 0)
        time.advance(by: .seconds(1))
        // The old token stays in use, and only one caller has to make the next one.
        #expect(try ask() == first)
        #expect(try ask() == first)
        let work = later.withLock { $0 }
        #expect(work.count == 1)
        work.first?()
        let second = try ask()
        #expect(second != first)
        // Nobody has made the next token in time, so the caller makes it.
        time.advance(by: .seconds(11 * 3600))
        let third = try ask()
        #expect(third != second)
        let claims = try #require(try VAPIDCheck.claims(of: third))
        #expect(try #require(claims["exp"]?.integer) > time.now().seconds)
    }

    @Test func clockSetBackMintsANewToken() throws {
        let time = TestTime()
        let (vapid, _) = try makeVAPID(time)
        let first = try vapid.authorization(for: "https://a.example") { _ in }
        time.advance(by: .seconds(-48 * 3600))
        let second = try vapid.authorization(for: "https://a.example") { _ in }
        #expect(second != first)
        let claims = try #require(try VAPIDCheck.claims(of: second))
        #expect(try #require(claims["exp"]?.integer) <= time.now().seconds + 24 * 3600)
    }

    @Test func tokenCacheIsBounded() throws {
        let time = TestTime()
        let (vapid, _) = try makeVAPID(time)
        for number in 0..<(VAPID.remembered + 10) {
            _ = try vapid.authorization(for: "https://\(number).example") { _ in }
        }
        #expect(vapid.count == VAPID.remembered)
    }
}
