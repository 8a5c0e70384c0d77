import Domain
import HTTP
import JSON
import Relay
import TestSupport
import Testing
import World

@testable import API

/// The enrolment, change and removal of phones, over the wire.
struct DevicesTests {
    @Test func furtherPhoneNeedsApprovalBeforeItsActivationCode() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop", ["answers": "certificate"])
        let (token, phone) = try await shop.enrol("bob")
        let path = "/user/bob/activation"
        let first = await shop.send("POST", path, fields: [("idempotency-key", "1")])
        #expect(first.status == 403)
        #expect(first.code == "approval_required")
        let challenge = try #require(first["challenge"])
        let number = try #require(first["number"])
        // The same request under the same key asks the user once.
        #expect(await shop.send("POST", path, fields: [("idempotency-key", "1")])["challenge"] == challenge)
        let waiting = await shop.send("POST", path, ["approval": challenge])
        #expect(waiting.status == 403 && waiting["challenge"] == challenge && waiting["number"] == number)
        #expect(await phone.send("POST", "/success", ["challenge": challenge, "number": number])["login"] == "success")
        let given = await shop.send("POST", path, ["approval": challenge], fields: [("idempotency-key", "2")])
        #expect(given.status == 201)
        let again = await shop.send("POST", path, ["approval": challenge], fields: [("idempotency-key", "2")])
        #expect(again.code == "shown_once")
        let used = await shop.send("POST", path, ["approval": challenge])
        #expect(used.status == 403 && used.code == "forbidden")
        let code = try #require(given["code"]?.string)
        let verified = try await shop.verify(try TestPhone(pushToken: "second"), token: token, code: code)
        #expect(verified.json.names == ["login", "device", "certificate", "revocation_code"])
        #expect(await shop.devices("bob").count == 2)
    }

    @Test func furtherPhoneWithAnEarlierCodeWaitsForApproval() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop", ["answers": "certificate"])
        let (token, code) = try await shop.register("bob")
        let other = try #require(await shop.send("POST", "/user/bob/activation")["code"]?.string)
        let first = try TestPhone(pushToken: "first")
        let id = try #require(try await shop.verify(first, token: token, code: code)["device"]?.string)
        let phone = Site(rig: rig, certificate: first.certificate(device: try #require(DeviceID(id))))
        let second = try TestPhone(pushToken: "second")
        let waiting = try await shop.verify(second, token: token, code: other)
        #expect(waiting.status == 200)
        #expect(waiting.json.names == ["login", "device", "number"])
        #expect(waiting["login"] == "wait")
        #expect(await shop.send("GET", "/user/bob")["factors"] == [["kind": "push", "state": "active"]])
        #expect(Set(await shop.devices("bob").compactMap { $0["state"]?.string }) == ["active", "waiting"])
        // A certificate that the waiting phone made up is refused.
        let device = try #require(waiting["device"]?.string.flatMap { DeviceID($0) })
        let eager = Site(rig: rig, certificate: second.certificate(device: device))
        for (method, path) in [("POST", "/pending"), ("POST", "/device"), ("DELETE", "/device")] {
            let body: JSONObject? = path == "/device" && method == "POST" ? ["name": "x"] : nil
            #expect(await eager.send(method, path, body).status == 401, "\(method) \(path)")
        }
        await rig.relay.settled()
        let challenge = try #require(rig.relay.pushes.sent.last?.challenge.text)
        let answer = await phone.send(
            "POST", "/success", ["challenge": .string(challenge), "number": try #require(waiting["number"])])
        #expect(answer["login"] == "success")
        #expect(try await shop.verify(second, token: token, code: other)["login"] == "verified")
        #expect(await eager.send("POST", "/pending").status == 200)
    }

    @Test func websiteCannotUndoAnOperatorsSuspension() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop", ["answers": "website", "further-factors": "website"])
        let (token, _) = try await shop.enrol("bob")
        let bind: JSONObject = ["id_token": .string(token), "dev_token": "moved"]
        #expect(await shop.send("POST", "/verify", bind).status == 200)
        let ids = await shop.devices("bob").compactMap { $0["device"]?.string }
        try #require(ids.count == 2)
        try rig.relay.execute("UPDATE device SET state = 'suspended', stopped_by = 'operator'")
        try rig.relay.execute("UPDATE user SET state = 'locked', stopped_by = 'operator'")
        let refused = [
            (await shop.send("PATCH", "/user/bob/devices/\(ids[0])", ["state": "active"]), "device resume \(ids[0])"),
            (await shop.send("POST", "/verify", bind), "device resume"),
            (await shop.send("POST", "/user/bob/unlock"), "user unlock"),
        ]
        for (answer, command) in refused {
            #expect(answer.status == 403 && answer.code == "forbidden", "\(answer.text)")
            let detail = answer["detail"]?.string ?? ""
            #expect(detail.contains("operator") && detail.contains("twoefay \(command)"), "\(detail)")
        }
        #expect(await shop.devices("bob").allSatisfy { $0["state"] == "suspended" })
    }

    @Test func websiteRenamesSuspendsResumesAndUnbindsPhone() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop", ["answers": "certificate"])
        let (_, phone) = try await shop.enrol("bob")
        let id = try #require(await shop.devices("bob").first?["device"]?.string)
        let path = "/user/bob/devices/\(id)"
        let held = await rig.start(phone.request("POST", "/pending", fields: [("prefer", "wait=30")]))
        guard case .held(let hold) = held else { throw RigFailure("not held") }

        let changed = await shop.send("PATCH", path, ["name": "Bob's", "state": "suspended"])
        #expect(changed.status == 200)
        #expect(changed["name"] == "Bob's" && changed["state"] == "suspended")
        #expect(await shop.devices("bob") == [changed.json])
        #expect(await shop.send("GET", "/user/bob")["factors"] == [["kind": "push", "state": "suspended"]])
        // The suspension wakes the held request, which is refused.
        #expect(await rig.end(hold).status == 401)
        #expect(await phone.send("POST", "/pending").status == 401)
        #expect(await shop.send("PATCH", path, ["state": "active"])["state"] == "active")
        #expect(await phone.send("POST", "/pending").status == 200)

        for (body, fault) in [
            ([:], "name missing"), (["state": "revoked"], "state format"), (["name": ""], "name length"),
        ] as [(JSONObject, String)] {
            #expect(await shop.send("PATCH", path, body).faults == [fault])
        }
        for _ in 0..<2 { #expect(await shop.send("DELETE", path).status == 204) }
        #expect(await phone.send("POST", "/pending").status == 401)
        let late = await shop.send("PATCH", path, ["state": "active"])
        #expect(late.status == 409 && late.faults == ["device state"])
        #expect(await shop.devices("bob").first?["state"] == "revoked")
        #expect(await shop.send("GET", "/user/bob")["factors"] == [])
    }

    @Test func phoneChangesAndUnbindsItself() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop", ["answers": "certificate"])
        let (token, code) = try await shop.register("bob")
        let key = try TestPhone(pushToken: "first")
        let verified = try await shop.verify(key, token: token, code: code)
        let device = try #require(verified["device"]?.string.flatMap { DeviceID($0) })
        let phone = Site(rig: rig, certificate: key.certificate(device: device))
        let moved = try key.movedTo(
            "second", device: device, origin: RelayRig.origin, website: "shop", at: rig.relay.time.now())
        let answer = await phone.send("POST", "/device", ["dev_token": .string(moved), "name": "Mine"])
        #expect(answer.status == 200)
        #expect(answer.json == ["device": .string(device.text)])
        let renewed = await phone.send("POST", "/device", ["certificate": true])
        #expect(renewed.json.names == ["device", "certificate"])
        #expect(await phone.send("POST", "/device", ["certificate": false]).json.names == ["device"])
        #expect(await phone.send("POST", "/device", [:]).faults == ["dev_token missing"])
        #expect(await phone.send("POST", "/device", ["dev_token": "plain"]).faults == ["dev_token format"])
        _ = try await shop.login("bob")
        #expect(await rig.relay.pushes.next().deviceToken == "second")
        #expect(await shop.devices("bob").first?["name"] == "Mine")
        #expect(await phone.send("DELETE", "/device").status == 204)
        #expect(await phone.send("DELETE", "/device").status == 401)
    }

    @Test func revocationCodeUnbindsWithoutProofAndRevealsNothing() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop", ["answers": "certificate"])
        let (token, code) = try await shop.register("bob")
        let verified = try await shop.verify(try TestPhone(pushToken: "first"), token: token, code: code)
        let right = try #require(verified["revocation_code"]?.string)
        let malformed = await rig.stranger.send("POST", "/revoke", ["revocation_code": "wrong"])
        #expect(malformed.status == 400 && malformed.faults == ["revocation_code format"])
        var answers: [Response] = []
        for code in [String(repeating: "A", count: 20), right, right] {
            answers.append(await rig.stranger.send("POST", "/revoke", ["revocation_code": .string(code)]))
        }
        #expect(answers[0].status == 204)
        #expect(Set(answers.map { "\($0.withoutID)" }).count == 1)
        #expect(await shop.devices("bob").first?["state"] == "revoked")
    }

    @Test func onlyTheSenderOfWrongCodesIsThrottled() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop")
        let (token, code) = try await shop.register("bob")
        let phone = try TestPhone(pushToken: "push")
        for number in 0..<5 {
            let answer = try await shop.verify(phone, token: token, code: "guess-\(number)", from: "2001:db8::1")
            #expect(answer.status == 401)
        }
        for remote in ["2001:db8::1", "2001:db8::ffff:1"] {
            let slowed = try await shop.verify(phone, token: token, code: code, from: remote)
            #expect(slowed.status == 429 && slowed.code == "limited")
            #expect(slowed.fields["retry-after"] == "5")
        }
        #expect(try await shop.verify(phone, token: token, code: code, from: "2001:db8:0:1::1").status == 200)
    }
}
