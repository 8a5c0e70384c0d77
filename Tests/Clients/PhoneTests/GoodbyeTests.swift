import Bytes
import Crypto
import EventLoop
import HTTP
import JSON
import TestSupport
import Testing
import World

@testable import Phone

/// The end of an enrolment, as the phone sees it.
@Suite(.timeLimit(.minutes(15))) struct GoodbyeTests {
    @Test func phoneBelievesOnlyAFarewellForItself() async throws {
        let changes: [(String, JSONValue)] = [
            ("aud", "https://127.0.0.1#bank"), ("device", "d2"), ("thumbprint", "other"), ("nonce", "other"), ("v", 2),
            ("by", 1), ("time", "now"),
        ]
        let relay = try FakeRelay()
        try await relay.run { loop, address in
            let enrolment = try relay.bound(address)
            let phone = try Responder(enrolment, loop: loop)
            defer { phone.close() }
            for (name, value) in changes {
                relay.answer { try relay.signedFarewell(for: $0, of: enrolment, device: "d1") { $0[name] = value } }
                await #expect(throws: CallFailure.self, "\(name)") { try await phone.leave() }
            }
            relay.answer { try relay.signedFarewell(for: $0, of: enrolment, device: "d1", type: "twoefay-time+jwt") }
            await #expect(throws: CallFailure.self) { try await phone.leave() }
            relay.answer(200, ["device": "d1", "bound": true])
            await #expect(throws: CallFailure.self) { try await phone.leave() }
            relay.answer(200, ["device": "d1", "bound": true])
            #expect(try await phone.farewell() == nil)
            relay.answer { try relay.signedFarewell(for: $0, of: enrolment, device: "d1") }
            #expect(try await phone.leave().by == "website")
        }
        let last = try #require(relay.asked.last?.body["goodbye"]?.string)
        let claims = try #require(try JSONReader.read(try JWS.parse(last).payload).object)
        #expect(claims.names == ["v", "aud", "nonce", "leaves", "iat"] && claims["leaves"] == true)
        let nonces = try relay.asked.map {
            try JSONReader.read(try JWS.parse($0.body["goodbye"]?.string ?? "").payload).object?["nonce"]?.string
        }
        #expect(Set(nonces).count == nonces.count)
    }

    /// Every call of a phone that was unbound ends with the relay's signed statement.
    @Test func unboundPhoneLearnsItAtItsNextCall() async throws {
        let relay = try FakeRelay()
        try await relay.run { loop, address in
            let enrolment = try relay.bound(address)
            let phone = try Responder(enrolment, loop: loop)
            defer { phone.close() }
            relay.answer(401, ["code": "unauthenticated"])
            relay.answer { try relay.signedFarewell(for: $0, of: enrolment, device: "d1") }
            do throws(CallFailure) {
                _ = try await phone.pending()
                Issue.record("answered")
            } catch {
                guard case .unbound(let farewell) = error else { return #expect(Bool(false), "\(error)") }
                #expect(farewell.by == "website")
            }
            // A relay that signs nothing proves nothing.
            for answer in [(401, ["code": "unauthenticated"]), (200, ["bound": true])] as [(Int, JSONObject)] {
                relay.answer(401, ["code": "unauthenticated"])
                relay.answer(answer.0, answer.1)
                do throws(CallFailure) {
                    _ = try await phone.pending()
                    Issue.record("answered")
                } catch {
                    guard case .refused(let refusal) = error else { return #expect(Bool(false), "\(error)") }
                    #expect(refusal.status == 401)
                }
            }
        }
    }

    @Test(arguments: [StoreKind.file, .mariadb]) func personsPhoneLeavesARealRelay(kind: StoreKind) async throws {
        let relay = try await RunningRelay.start(kind)
        let shop = try await relay.website("shop", "--number", "0")
        func enrolled(_ name: String) async throws -> (owner: Owner, device: String) {
            let owner = try Owner()
            let registered = try await shop.curl("POST", "/register", json: #"{"username":"\#(name)"}"#)
            let uri = try #require(registered["activation"]?.object?["uri"]?.string, "\(registered)")
            let bound = try await owner.phone("enrol", uri)
            try #require(bound.status == 0, "\(bound.errors)")
            let user = try await shop.curl("GET", "/user/\(name)")
            return (owner, try #require(user["devices"]?.array?.first?.object?["device"]?.string, "\(user)"))
        }
        let (alice, first) = try await enrolled("alice")
        let left = try await alice.phone("unbind", "--json")
        let report = try #require(try JSONReader.read(Array(left.output.utf8)).object, "\(left)")
        #expect(report["unbound_by"] == "phone" && report["device"] == .string(first), "\(report)")
        #expect(alice.names == [])
        let statement = try JWS.parse(try #require(report["farewell"]?.string))
        #expect(try JSONReader.read(statement.payload).object?["device"] == .string(first))

        let (bob, second) = try await enrolled("bob")
        try await relay.tool(["device", "revoke", second, "--yes"])
        let told = try await bob.phone("watch", "--auto", "deny")
        #expect(told.status == 1 && told.errors.contains("was unbound (operator)"), "\(told)")
        #expect(bob.names.count == 1)
        let cleared = try await bob.phone("unbind")
        #expect(cleared.status == 0 && cleared.output.contains("unbound at the relay (operator)"), "\(cleared)")
        #expect(bob.names == [])

        let (carol, third) = try await enrolled("carol")
        #expect(try await shop.curl("DELETE", "/user/carol/devices/\(third)").status == 204)
        let gone = try await carol.phone("approve", "--challenge", String(repeating: "0", count: 32))
        #expect(gone.status == 1 && gone.errors.contains("was unbound (website)"), "\(gone)")
        // A suspended phone is told nothing, and keeps its key.
        let (dave, fourth) = try await enrolled("dave")
        try await relay.tool(["device", "suspend", fourth])
        let held = try await dave.phone("unbind")
        #expect(held.status == 1 && held.errors.contains("unbind --forget"), "\(held)")
        #expect(dave.names.count == 1)
    }
}
