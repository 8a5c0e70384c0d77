import Crypto
import HTTP
import JSON
import Testing
import World

@testable import FakePushServices

@Suite struct ProviderTokenCheckTests {
    private let now = Timestamp(seconds: 1_800_000_000)
    private let team: FakeTeam

    init() throws { team = try FakeTeam(at: Timestamp(seconds: 1_800_000_000)) }

    private func check(limit: Int = 50) -> ProviderTokenCheck {
        ProviderTokenCheck(team.tokenAuthentication, updateLimit: limit)
    }

    private func token(
        _ issued: JSONValue, kid: String? = nil, iss: String? = nil, key: P256PrivateKey? = nil
    ) throws -> String {
        try JWS.sign(
            header: ["kid": .string(kid ?? team.keyID)],
            payload: JSONWriter.write(["iss": .string(iss ?? team.teamID), "iat": issued] as JSONObject),
            key: key ?? team.key)
    }

    private func request(_ authorization: String?) -> Request {
        let fields = authorization.map { [Fields.Field("authorization", $0)] } ?? []
        return Request(method: "POST", path: "/3/device/ab", fields: Fields(fields))
    }

    @Test func validTokenIsAcceptedForAnHour() throws {
        var check = check()
        let token = try token(1_800_000_000)
        #expect(check.look(at: request("bearer " + token), now: now) == .right(token: token))
        #expect(check.look(at: request("Bearer " + token), now: now + .seconds(3600)) == .right(token: token))
        #expect(
            check.look(at: request("bearer " + token), now: now + .seconds(3601)) == .wrong(.expiredProviderToken))
    }

    @Test func missingOrInvalidTokenIsRefused() throws {
        var check = check()
        let stranger = try P256PrivateKey.generate()
        #expect(check.look(at: request(nil), now: now) == .wrong(.missingProviderToken))
        #expect(check.look(at: request("basic abc"), now: now) == .wrong(.missingProviderToken))
        for wrong in [
            "nonsense", try token(1_800_000_000, kid: "OTHERKEY12"), try token(1_800_000_000, iss: "OTHERTEAM1"),
            try token(1_800_000_000, key: stranger), try token("1800000000"), try token(1_800_000_000_000),
            try token(1_800_000_301),
        ] {
            #expect(check.look(at: request("bearer " + wrong), now: now) == .wrong(.invalidProviderToken))
        }
    }

    @Test func tooManyTokenUpdatesWithin20MinutesAreRefused() throws {
        var check = check(limit: 2)
        let tokens = try (0..<3).map { try token(.integer(1_800_000_000 + $0)) }
        #expect(check.look(at: request("bearer " + tokens[0]), now: now) == .right(token: tokens[0]))
        #expect(check.look(at: request("bearer " + tokens[1]), now: now) == .right(token: tokens[1]))
        #expect(check.look(at: request("bearer " + tokens[2]), now: now) == .wrong(.tooManyProviderTokenUpdates))
        #expect(check.look(at: request("bearer " + tokens[0]), now: now) == .right(token: tokens[0]))
        let later = now + .seconds(1200)
        #expect(check.look(at: request("bearer " + tokens[2]), now: later) == .right(token: tokens[2]))
    }

    @Test func certificateIsAcceptedWithoutAToken() throws {
        var check = ProviderTokenCheck(team.anyAuthentication, updateLimit: 5)
        let token = try token(1_800_000_000)
        #expect(check.look(at: request(nil), now: now) == .wrong(.missingProviderToken))
        #expect(check.look(at: request("bearer " + token), now: now) == .right(token: token))
        var shown = request(nil)
        shown.certificate = ClientCertificate(authority: .websites, uris: [], keyThumbprint: [])
        #expect(check.look(at: shown, now: now) == .right(token: nil))
        var both = request("bearer nonsense")
        both.certificate = shown.certificate
        #expect(check.look(at: both, now: now) == .wrong(.invalidProviderToken))
    }

    @Test func certificateAuthenticationNeedsNoToken() {
        var check = ProviderTokenCheck(.certificate, updateLimit: 1)
        #expect(check.look(at: request(nil), now: now) == .wrong(.missingProviderToken))
        var shown = request(nil)
        shown.certificate = ClientCertificate(authority: .websites, uris: [], keyThumbprint: [])
        #expect(check.look(at: shown, now: now) == .right(token: nil))
    }
}
