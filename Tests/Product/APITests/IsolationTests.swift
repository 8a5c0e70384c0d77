import Bytes
import Domain
import HTTP
import JSON
import Relay
import TestSupport
import Testing

@testable import API

/// The isolation of websites: objects of another website get the same answer as unknown ones, to
/// the byte, with the same store statements.
@Suite(.timeLimit(.minutes(5))) struct IsolationTests {
    private static let stores: [StoreKind] = [.file, .mariadb]
    private let statements = Statements()

    /// An answer, and the statements that it needed.
    private struct Seen: Equatable {
        let response: Response
        let statements: [String]
    }

    private func see(_ site: Site, _ method: String, _ path: String, _ body: JSONObject? = nil) async -> Seen {
        await site.rig.relay.settled()
        _ = statements.take()
        let response = await site.send(method, path, body)
        return Seen(response: response.withoutID, statements: statements.take())
    }

    /// Expects that all answers are the same, and that the store was queried at all.
    private func expectSame(_ seen: [Seen], _ what: String, status: Int = 404) {
        #expect(seen[0].response.status == status, "\(what): \(seen[0].response.text)")
        #expect(seen[0].statements.count >= 2, "\(what): \(seen[0].statements)")
        for other in seen.dropFirst() { #expect(other == seen[0], "\(what)") }
    }

    /// The bodies of routes with required parameters.
    private let bodies: [String: JSONObject] = [
        "/user/{username}": ["display_name": "x"], "/user/{username}/devices/{device}": ["name": "x"],
        "/challenge/{challenge}/factor": ["factor": "totp"], "/user/{username}/confirm": ["address": "x@example.com"],
        "/user/{username}/totp/confirm": ["otp": "123456"],
        "/user/{username}/recovery-codes/confirm": ["otp": "abcd-efgh-2345-ijkl"],
        "/user/{username}/hotp": ["secret": "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"],
        "/user/{username}/messages": ["title": "x", "text": "x"], "/user/{username}/recovery": ["factor": "totp"],
        "/user/{username}/hotp/resync": ["otps": ["123456", "123456"]],
    ]

    /// Begins two recoveries at a website. Returns the token of a link that was not opened, and the
    /// handle of another one.
    private func recovery(at site: Site) async throws -> (link: String, handle: String) {
        let about: JSONObject = ["username": "carol", "email": "carol@example.com"]
        try #require(await site.send("POST", "/register", about).status == 201)
        let seed = bodies["/user/{username}/hotp"]
        try #require(await site.send("POST", "/user/carol/hotp", seed).status == 201)
        var tokens: [String] = []
        var handle = ""
        for round in 0..<2 {
            try #require(await site.send("POST", "/user/carol/recovery", ["factor": "hotp"]).status == 202)
            await site.rig.relay.settled()
            guard case .recovery(.begin(let link))? = site.rig.relay.mails.sent.last?.content else { continue }
            let text = String(decoding: link.reveal(), as: UTF8.self)
            tokens.append(String(text.split(separator: "=").last ?? ""))
            guard round == 0 else { continue }
            let opened = await site.send("POST", "/recovery", ["token": .string(tokens[0])])
            handle = try #require(opened["handle"]?.string, "\(opened.text)")
        }
        return (try #require(tokens.last), handle)
    }

    private let nothing = String(repeating: "0", count: 32)

    /// Returns the path of a route with the given values of its path parameters.
    private func path(_ route: Route, _ places: [String: String]) -> String {
        "/"
            + route.path.segments.map { segment in
                switch segment {
                case .word(let word): word
                case .parameter(let name): places[name] ?? nothing
                }
            }.joined(separator: "/")
    }

    @Test(arguments: stores) func foreignUserIsIndistinguishableFromUnknownUser(kind: StoreKind) async throws {
        let rig = try await APIRig(kind, noting: statements)
        let policies = ["answers": "website", "recovery-url": "https://shop.example/recover"]
        let shop = try await rig.site("shop", policies)
        let bank = try await rig.site("bank", policies)
        _ = try await shop.enrol("bob")
        let (link, handle) = try await recovery(at: bank)
        let (token, _) = try await bank.enrol("alice")
        let (challenge, _) = try await bank.login("alice")
        let device = try #require(await bank.devices("alice").first?["device"]?.string)
        var visited: Set<String> = []
        // Routes about the relay's own state give everybody the same answer, and phones use others.
        let aboutUsers = API.table.routes.filter { route in
            route.forms.contains { if case .website = $0.action { true } else { false } }
        }
        for route in aboutUsers where route.path.text.contains("{") {
            let body: JSONObject? =
                route.method == "DELETE" || route.method == "GET" ? nil : bodies[route.path.text]
            var seen: [Seen] = []
            for places in [["username": "alice", "device": device, "challenge": challenge], ["username": "nobody"]] {
                seen.append(await see(shop, route.method, path(route, places), body))
            }
            // A recovery begins for everybody, so that nobody learns who is known.
            let begins = route.path.text == "/user/{username}/recovery" && route.method == "POST"
            expectSame(seen, "\(route.method) \(route.path.text)", status: begins ? 202 : 404)
            visited.insert("\(route.method) \(route.path.text)")
        }
        let signed: JSONObject = [
            "tag": "sign", "hash": .string(Base64URL.encode([UInt8](repeating: 1, count: 32))), "statement": "a.b.c",
        ]
        let named: [(path: String, name: String, ids: [String], more: JSONObject)] = [
            ("/login", "username", ["alice", "nobody"], [:]), ("/login", "token", [token, nothing], [:]),
            ("/auth", "token", [token, nothing], [:]), ("/auth", "challenge", [challenge, nothing], [:]),
            ("/backup", "token", [token, nothing], ["otp": "123456"]),
            ("/backup", "challenge", [challenge, nothing], ["otp": "123456"]),
            ("/success", "token", [token, nothing], [:]), ("/failure", "token", [token, nothing], [:]),
            ("/verify", "id_token", [token, nothing], ["dev_token": "x"]),
            ("/recovery", "token", [link, nothing], [:]), ("/recovery/cancel", "token", [link, nothing], [:]),
            ("/recovery/state", "handle", [handle, nothing], [:]),
            ("/recovery/proof", "handle", [handle, nothing], [:]),
            ("/recovery/approval", "handle", [handle, nothing], [:]),
            ("/recovery/finish", "handle", [handle, nothing], [:]),
            ("/verify-otp", "username", ["alice", "nobody"], ["otp": "123456"]),
            ("/verify-otp", "device", [device, nothing], ["otp": "123456"]),
            ("/verify-signature", "device", [device, nothing], signed),
        ]
        for (path, name, ids, more) in named {
            var seen: [Seen] = []
            for id in ids {
                var body = more
                body.set(name, .string(id))
                seen.append(await see(shop, "POST", path, body))
            }
            expectSame(seen, "POST \(path) \(name)")
            visited.insert("POST \(path)")
        }
        // These name no user and no phone.
        let ownOnly = ["POST /register", "GET /webhook/secrets", "POST /website/certificate"]
        // A new route of websites must be added here.
        for route in API.table.routes
        where route.forms.contains(where: { if case .website = $0.action { true } else { false } }) {
            let name = "\(route.method) \(route.path.text)"
            #expect(visited.contains(name) || ownOnly.contains(name), "\(name)")
        }
    }

    @Test(arguments: stores) func foreignPhoneIsIndistinguishableFromUnknownPhone(kind: StoreKind) async throws {
        let rig = try await APIRig(kind, noting: statements)
        let shop = try await rig.site("shop")
        let bank = try await rig.site("bank")
        _ = try await shop.enrol("bob")
        _ = try await shop.enrol("ann")
        _ = try await bank.enrol("bob")
        var devices = [nothing]
        for (site, user) in [(shop, "ann"), (bank, "bob")] {
            devices.append(try #require(await site.devices(user).first?["device"]?.string))
        }
        for (method, body) in [("PATCH", ["state": "suspended"]), ("DELETE", nil)] as [(String, JSONObject?)] {
            var seen: [Seen] = []
            for device in devices { seen.append(await see(shop, method, "/user/bob/devices/\(device)", body)) }
            expectSame(seen, method)
        }
        for (site, user) in [(shop, "ann"), (bank, "bob")] {
            #expect(await site.devices(user).first?["state"] == "active")
        }
    }

    @Test(arguments: stores) func foreignApprovalIsIndistinguishableFromUnknownApproval(kind: StoreKind) async throws {
        let rig = try await APIRig(kind, noting: statements)
        let shop = try await rig.site("shop", ["answers": "certificate", "number": "0"])
        let bank = try await rig.site("bank", ["answers": "certificate", "number": "0"])
        _ = try await shop.enrol("bob")
        var approvals = [nothing, "x"]
        for (site, user) in [(shop, "ann"), (bank, "bob")] {
            let (_, phone) = try await site.enrol(user)
            let asked = await site.send("POST", "/user/\(user)/activation")
            let challenge = try #require(asked["challenge"]?.string)
            #expect(await phone.send("POST", "/success", ["challenge": .string(challenge)])["login"] == "success")
            approvals.append(challenge)
        }
        var seen: [Seen] = []
        for approval in approvals {
            seen.append(await see(shop, "POST", "/user/bob/activation", ["approval": .string(approval)]))
        }
        #expect(seen[0].response.status == 403)
        #expect(seen[0].statements.count >= 2, "\(seen[0].statements)")
        for (other, approval) in zip(seen, approvals) { #expect(other == seen[0], "\(approval)") }
    }

    @Test(arguments: stores) func validAndInvalidRevocationCodesGetTheSameAnswer(kind: StoreKind) async throws {
        let rig = try await APIRig(kind, noting: statements)
        let shop = try await rig.site("shop")
        let (token, code) = try await shop.register("bob")
        let verified = try await shop.verify(try TestPhone(pushToken: "first"), token: token, code: code)
        let right = try #require(verified["revocation_code"]?.string)
        var seen: [Seen] = []
        for code in [String(repeating: "A", count: 20), right, right] {
            seen.append(await see(rig.stranger, "POST", "/revoke", ["revocation_code": .string(code)]))
        }
        #expect(seen[0].response.status == 204)
        for other in seen { #expect(other == seen[0]) }
        #expect(await shop.devices("bob").first?["state"] == "revoked")
        let malformed = await see(rig.stranger, "POST", "/revoke", ["revocation_code": "wrong"])
        #expect(malformed.response.status == 400 && malformed.statements.isEmpty)
    }
}
