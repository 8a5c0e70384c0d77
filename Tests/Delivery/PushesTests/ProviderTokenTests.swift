import Bytes
import Crypto
import FakePushServices
import JSON
import Log
import Synchronization
import TLS
import Testing
import World

@testable import Pushes

@Suite struct ProviderTokenTests {
    private let time = ManualTime()
    private let sink = MemorySink()
    private let key: P256PrivateKey
    private let token: ProviderToken

    init() throws {
        key = try P256PrivateKey.generate()
        token = try ProviderToken(
            key: key, keyID: "ABC123DEFG", teamID: "DEF123GHIJ", time: time, log: Log(time: time, sink: sink))
    }

    /// Returns the token. Renewals that can be deferred are done at once.
    private func bearer() -> String { token.bearer { $0() } }

    private func minutes(_ count: Int) -> Duration { .seconds(count * 60) }

    @Test func providerTokenHasTheFormAppleRequires() throws {
        let bearer = bearer()
        #expect(bearer.hasPrefix("bearer "))
        let object = try JWS.parse(String(bearer.dropFirst(7)))
        #expect(object.header == ["alg": "ES256", "kid": "ABC123DEFG"])
        #expect(object.verify(key.publicKey))
        #expect(object.signature.count == 64)
        #expect(try JSONReader.read(object.payload).object == ["iss": "DEF123GHIJ", "iat": 1_800_000_000])
    }

    @Test func providerTokenIsReusedFor45Minutes() {
        let first = bearer()
        time.advance(by: minutes(44) + .seconds(59))
        #expect(bearer() == first)
        time.advance(by: .seconds(1))
        #expect(bearer() == first, "the push that finds it old does not wait for the next")
        #expect(bearer() != first)
    }

    @Test func expiredProviderTokenIsNotSent() {
        let first = bearer()
        time.advance(by: minutes(50))
        #expect(token.bearer { _ in Issue.record("this renewal cannot wait") } != first)
    }

    @Test func renewalIsRequestedOnce() {
        time.advance(by: minutes(46))
        var asked = 0
        for _ in 0..<10 { _ = token.bearer { _ in asked += 1 } }
        #expect(asked == 1)
    }

    @Test func concurrentRequestsMintOneToken() async {
        time.advance(by: minutes(55))
        let bearers = await withTaskGroup(of: String.self) { group in
            for _ in 0..<64 { group.addTask { token.bearer { $0() } } }
            return await group.reduce(into: Set<String>()) { $0.insert($1) }
        }
        #expect(bearers.count == 1)
        #expect(sink.lines.filter { $0.contains("apns.token.minted") }.count == 1)
    }

    @Test func concurrentRefusalsReplaceTheTokenOnce() async {
        let first = bearer()
        time.advance(by: minutes(21))
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<64 { group.addTask { token.replace(first) } }
        }
        #expect(bearer() != first)
        #expect(sink.lines.filter { $0.contains("apns.token.minted") }.count == 1)
    }

    @Test func noNewTokenIsMintedWithin20Minutes() {
        let first = bearer()
        time.advance(by: minutes(20) - .seconds(1))
        #expect(!token.mayFollow(first))
        token.replace(first)
        #expect(bearer() == first)
        time.advance(by: .seconds(1))
        #expect(token.mayFollow(first))
        token.replace(first)
        #expect(bearer() != first)
        #expect(token.mayFollow(first), "there is another one already")
    }

    @Test func previousTokenIsUsedAfterTooManyUpdates() {
        let first = bearer()
        time.advance(by: minutes(45))
        _ = bearer()
        let second = bearer()
        #expect(second != first)
        token.tooMany(second)
        #expect(bearer() == first)
        // The token is older than usual, but Apple allows no new one for twenty minutes.
        time.advance(by: minutes(14))
        #expect(bearer() == first)
        time.advance(by: minutes(6))
        #expect(bearer() != first)
    }

    @Test func prematureTokenReplacesTheExpiringToken() {
        let first = bearer()
        time.advance(by: minutes(46))
        _ = bearer()
        let second = bearer()
        token.tooMany(second)
        #expect(bearer() == first)
        time.advance(by: minutes(13))
        #expect(bearer() == first)
        time.advance(by: minutes(1))
        #expect(bearer() == second, "Apple would call the first expired, and none may be minted")
        #expect(sink.lines.filter { $0.contains("apns.token.minted") }.count == 1)
    }

    @Test func expiredAnswerInvalidatesTheToken() {
        let first = bearer()
        time.advance(by: minutes(46))
        _ = bearer()
        let second = bearer()
        token.tooMany(second)
        #expect(token.mayFollow(first))
        token.replace(first)
        #expect(bearer() == second)
        #expect(sink.lines.filter { $0.contains("apns.token.minted") }.count == 1)
    }

    @Test func restoredKeyKeepsItsToken() throws {
        let team = try FakeTeam(at: time.now())
        let provider = try team.issueProvider(at: time.now())
        let log = Log(time: time, sink: sink)
        func identity(_ credential: APNsCredential, after former: PushIdentity?) throws -> PushIdentity {
            try PushIdentity(
                credential, trust: .pem(try team.authority.certificatePEM()), former: former, time: time, log: log)
        }
        let other = try P256PrivateKey.generate()
        let mine = APNsCredential.token(key: key, keyID: "ABC123DEFG", teamID: "DEF123GHIJ")
        let first = try identity(mine, after: nil)
        let second = try identity(.token(key: other, keyID: "ABC123DEFG", teamID: "DEF123GHIJ"), after: first)
        #expect(second.authorization !== first.authorization)
        #expect(try identity(mine, after: second).authorization === first.authorization)
        let certificate = APNsCredential.certificate(
            chainPEM: try provider.certificatePEM(), key: try provider.keyPEM())
        #expect(try identity(mine, after: identity(certificate, after: first)).authorization === first.authorization)
        #expect(try identity(mine, after: nil).authorization !== first.authorization)
    }

    @Test func firstTokenIsKeptAfterTooManyUpdates() {
        let first = bearer()
        token.tooMany(first)
        #expect(bearer() == first)
    }

    @Test func neitherTokenNorKeyIsLogged() {
        time.advance(by: minutes(60))
        let second = bearer()
        #expect(!sink.lines.isEmpty)
        for line in sink.lines { #expect(!line.contains(second.dropFirst(7)) && !line.contains("eyJ")) }
    }
}
