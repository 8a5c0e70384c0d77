import Bytes
import Crypto
import DeliveryOutcomes
import EventLoop
import FakePushServices
import HTTP
import JSON
import Log
import TLS
import TestSupport
import Testing
import World

@testable import Pushes

/// The access token of FCM: obtained once for the process, renewed in time, and replaced once if it is refused.
@Suite(.serialized) struct AccessTokenTests {
    @Test func processHasOneTokenForAllLoops() async throws {
        try await FCMRig.with { rig in
            for (number, loop) in rig.loops.enumerated() {
                await loop.perform { rig.sender.connectEagerly() }
                for _ in 0..<20 { #expect(await rig.send(rig.message(), on: number) == .accepted(by: nil)) }
            }
            #expect(rig.fcm.service.issuedTokens == 1)
            #expect(rig.count("fcm.token.issued") == 1)
            #expect(rig.sender.snapshot().tokenAge != nil && rig.sender.fault == nil)
        }
    }

    @Test func concurrentPushesWaitForOneToken() async throws {
        try await FCMRig.with { rig in
            var begun: [Begun] = []
            for number in 0..<40 { begun.append(await rig.begin(rig.message(), on: number % 2)) }
            for push in begun { #expect(await push.outcome() == .accepted(by: nil)) }
            #expect(rig.fcm.service.issuedTokens == 1)
        }
    }

    /// All pushes in flight meet the refusal; one token follows, and each push is sent once more.
    @Test func withdrawnTokenIsReplacedOnce() async throws {
        try await FCMRig.with { rig in
            #expect(await rig.send(rig.message()) == .accepted(by: nil))
            rig.fcm.service.revokeTokens()
            var begun: [Begun] = []
            for _ in 0..<20 { begun.append(await rig.begin(rig.message())) }
            for push in begun { #expect(await push.outcome() == .accepted(by: nil)) }
            #expect(rig.fcm.service.issuedTokens == 2)
            #expect(rig.fcm.service.deliveries.twice == [])
            #expect(rig.count("fcm.credential.refused") == 0)
            #expect(rig.count("fcm.connected") == 1, "the connection is kept")
        }
    }

    @Test func refusedAccountOpensTheCircuit() async throws {
        try await FCMRig.with { rig in
            rig.fcm.service.setTokenAnswers([.refuse])
            for _ in 0..<3 {
                guard case .misconfigured(.service, let reason) = await rig.send(rig.message()) else {
                    Issue.record("not refused")
                    return
                }
                #expect(reason.contains("127.0.0.1 answers invalid_grant: check the account and the clock"))
            }
            #expect(rig.count("fcm.credential.refused") == 1)
            #expect(rig.fcm.service.requestCount == 1, "no push asks while the circuit is open")
            #expect(rig.sender.fault?.contains("invalid_grant") == true)
        }
    }

    /// Without a token the relay is not ready, so a balancer may send it no logins.
    @Test func tokenIsAskedForAgainWithoutAPush() async throws {
        try await FCMRig.with { rig in
            rig.fcm.service.setTokenAnswers([.unavailable, .issue(life: .seconds(3600))])
            await rig.loops[0].perform { rig.sender.connectEagerly() }
            await rig.sink.lines(of: "fcm.token.issued", count: 1)
            #expect(rig.sender.fault == nil)
        }
    }

    @Test func pushesWaitUntilTheTokenServiceIsBack() async throws {
        try await FCMRig.with { rig in
            rig.fcm.service.setTokenAnswers([.unavailable, .unavailable, .issue(life: .seconds(3600))])
            let push = await rig.begin(rig.message())
            #expect(await push.outcome() == .accepted(by: nil))
            #expect(rig.count("fcm.token.missing") == 2)
            #expect(rig.fcm.service.issuedTokens == 1)
        }
    }

    /// A push that ends before the next attempt is returned, so that the next factor can follow.
    @Test func pushThatEndsBeforeTheNextAttemptIsReturned() async throws {
        try await FCMRig.with { rig in
            rig.fcm.service.setTokenAnswers([.unavailable])
            await rig.loops[0].perform { rig.sender.connectEagerly() }
            await rig.sink.lines(of: "fcm.token.missing", count: 1)
            let outcome = await rig.send(rig.message(lives: .milliseconds(900)))
            guard case .unavailable(_, let reason) = outcome else {
                Issue.record("\(outcome)")
                return
            }
            #expect(reason.contains("no access token: 127.0.0.1 answers 503"), "\(reason)")
        }
    }

    /// The life of a token that is about to end is short, so it is renewed before each push.
    @Test func tokenNearItsEndIsRenewedInTheBackground() async throws {
        try await FCMRig.with { rig in
            // It may be renewed after a quarter of a second less than its life.
            rig.fcm.service.setTokenAnswers([.issue(life: .seconds(1)), .issue(life: .seconds(3600))])
            #expect(await rig.send(rig.message()) == .accepted(by: nil))
            while rig.fcm.service.issuedTokens < 2 {
                #expect(await rig.send(rig.message()) == .accepted(by: nil))
            }
            #expect(rig.count("fcm.token.missing") == 0)
        }
    }

    @Test func anotherProjectNeedsARestart() async throws {
        let fcm = try await TestFCM.start()
        let text = String(decoding: fcm.project.account(origin: fcm.origin).reveal(), as: UTF8.self)
        let other = Secret(utf8: text.replacing("fake-project\"", with: "other-project\""))
        try await FCMRig.with { rig in
            let account = try FCMServiceAccount(json: other)
            #expect(throws: FCMServiceAccount.Fault.self) { try rig.sender.replace(account: account) }
            #expect(await rig.send(rig.message()) == .accepted(by: nil))
        }
    }

    @Test func replacedKeyIsUsedForLaterPushes() async throws {
        try await FCMRig.with { rig in
            #expect(await rig.send(rig.message()) == .accepted(by: nil))
            // The same account is no change.
            let account = try FCMServiceAccount(json: rig.fcm.project.account(origin: rig.fcm.origin))
            try rig.sender.replace(account: account)
            #expect(await rig.send(rig.message()) == .accepted(by: nil))
            #expect(rig.fcm.service.issuedTokens == 1)
            let foreign = try FakeProject(team: rig.fcm.project.team, keyPEM: CertificateKey.generateRSA())
            try rig.sender.replace(account: try FCMServiceAccount(json: foreign.account(origin: rig.fcm.origin)))
            guard case .misconfigured(.service, _) = await rig.send(rig.message()) else {
                Issue.record("sent under a key that the account does not have")
                return
            }
            try rig.sender.replace(account: account)
            #expect(await rig.send(rig.message()) == .accepted(by: nil))
        }
    }

    /// The log has neither the key, nor the statement, nor the access token, nor a registration token.
    @Test func logHasNoSecret() async throws {
        try await FCMRig.with { rig in
            rig.fcm.service.setTokenAnswers([.unavailable, .issue(life: .seconds(3600))])
            let message = rig.message("a")
            rig.fcm.service.script("a", .refuse(.senderIDMismatch), repeatsLast: true)
            _ = await rig.send(message)
            let log = rig.sink.lines.joined(separator: "\n")
            #expect(log.contains("fcm.refused") && log.contains("fcm.token.issued"))
            for secret in ["fake.", "eyJ", "PRIVATE KEY", message.token, "Bearer"] {
                #expect(!log.contains(secret), "\(secret)")
            }
        }
    }
}

@Suite struct FCMServiceAccountTests {
    private static let whole: JSONObject = [
        "type": "service_account", "project_id": "the-project", "private_key_id": "k1", "private_key": "-",
        "client_email": "relay@the-project.iam.gserviceaccount.com", "token_uri": "https://oauth2.example.com/token",
    ]

    private func fault(_ name: String, _ value: JSONValue?, key: String) -> String? {
        var object = Self.whole
        object["private_key"] = .string(key)
        object[name] = value
        do throws(FCMServiceAccount.Fault) {
            _ = try FCMServiceAccount(json: Secret(JSONWriter.write(object)))
            return nil
        } catch {
            return error.description
        }
    }

    @Test func faultNamesTheMemberAndNotItsValue() throws {
        let key = String(decoding: try CertificateKey.generateRSA().reveal(), as: UTF8.self)
        let curve = String(decoding: try P256PrivateKey.generate().pem().reveal(), as: UTF8.self)
        #expect(fault("type", "service_account", key: key) == nil)
        #expect(fault("type", nil, key: key) == nil)
        #expect(fault("token_uri", "https://oauth2.example.com:8443", key: key) == nil)
        let wrong: [(String, JSONValue?, String)] = [
            ("client_email", nil, "has no text client_email"), ("project_id", "", "has no text project_id"),
            ("project_id", "../x", "has a project_id that is none"), ("private_key", "PRIVATE", "has a private_key"),
            ("private_key", .string(curve), "has a private_key that is not an RSA key"),
            ("token_uri", "http://oauth2.example.com/token", "has a token_uri that is not an https: URL"),
            ("token_uri", "https:///token", "has a token_uri"), ("token_uri", "https://a/b c", "has a token_uri"),
            ("token_uri", 7, "has no text token_uri"),
        ]
        for (name, value, message) in wrong {
            let text = try #require(fault(name, value, key: key), "\(name) \(message)")
            #expect(text.hasPrefix(message), "\(text)")
            for secret in ["PRIVATE KEY", "../x", curve] { #expect(!text.contains(secret)) }
        }
        #expect(throws: FCMServiceAccount.Fault.self) { try FCMServiceAccount(json: Secret(utf8: "no JSON")) }
    }

    /// The statement is what RFC 7523 and Google ask for.
    @Test func statementNamesTheAccountTheScopeAndTheReceiver() throws {
        let pem = try CertificateKey.generateRSA()
        var object = Self.whole
        object["private_key"] = .string(String(decoding: pem.reveal(), as: UTF8.self))
        let account = try FCMServiceAccount(json: Secret(JSONWriter.write(object)))
        let time = ManualTime()
        let request = AccessTokenRequest(
            account: account, tls: try TLSClientContext(roots: .system), options: PushOptions(), time: time,
            log: Log(minimum: .error))
        let statement = try #require(try CertificateKey(pem: pem).verified(try request.signed()))
        #expect(statement.header == ["alg": "RS256", "typ": "JWT", "kid": "k1"])
        let now = time.now().seconds
        let claims: JSONObject = [
            "iss": "relay@the-project.iam.gserviceaccount.com",
            "scope": "https://www.googleapis.com/auth/firebase.messaging",
            "aud": "https://oauth2.example.com/token", "iat": .integer(now), "exp": .integer(now + 3600),
        ]
        #expect(try JSONReader.read(statement.payload).object == claims)
        #expect(try CertificateKey(pem: CertificateKey.generateRSA()).verified(try request.signed()) == nil)
    }
}
