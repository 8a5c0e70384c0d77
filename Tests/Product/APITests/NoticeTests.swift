import Crypto
import Domain
import HTTP
import JSON
import Relay
import TestSupport
import Testing
import World

@testable import API

/// Notices from the website to the phone, through the API and the store.
struct NoticeTests {
    private static let hello: JSONObject = ["title": "Maintenance", "text": "No logins on Sunday.\n\nThe Shop"]

    private func leave(_ shop: Site, _ user: String, _ body: JSONObject = hello) async throws -> String {
        let left = await shop.send("POST", "/user/\(user)/messages", body)
        try #require(left.status == 201, "\(left.text)")
        return try #require(left["message"]?.string)
    }

    private func ids(_ response: Response) -> [String] {
        response["messages"]?.array?.compactMap { $0.object?["message"]?.string } ?? []
    }

    @Test(arguments: StoreKind.all) func fetchedNoticeMovesToTheArchive(kind: StoreKind) async throws {
        let rig = try await APIRig(kind)
        let shop = try await rig.site("shop", ["answers": "certificate"])
        let (token, phone) = try await shop.enrol("bob")
        let first = await phone.send("POST", "/pending", [:])
        #expect(first.status == 200 && first.fields["x-messagecount"] == nil)

        let older = try await leave(shop, "bob")
        rig.relay.time.advance(by: .seconds(1))
        let newer = try await leave(shop, "bob", ["title": "Prices", "text": "New prices."])
        // Refusals have the count, too.
        #expect(await phone.send("POST", "/pending", [:]).fields["x-messagecount"] == "2")
        #expect(await phone.send("POST", "/pending", ["later": 1]).fields["x-messagecount"] == "2")
        #expect(await phone.send("POST", "/success", ["challenge": "x"]).fields["x-messagecount"] == "2")
        #expect(await shop.send("GET", "/user/bob").fields["x-messagecount"] == nil)

        let list = await phone.send("GET", "/messages")
        #expect(ids(list) == [newer, older] && list["unread"] == 2 && list["archived"] == 0, "\(list.text)")
        let entry = try #require(list["messages"]?.array?.last?.object)
        #expect(entry["title"] == "Maintenance" && entry["from"] == "website" && entry["text"] == nil)

        let fetched = await phone.send("GET", "/messages/\(older)")
        #expect(fetched.fields["x-messagecount"] == "1")
        let certificate = try RelayRig.server.get().certificate
        let signed = try #require(fetched["statement"]?.string, "\(fetched.text)")
        let statement = try #require(certificate.verified(signed))
        #expect(statement.type == "twoefay-message+jwt")
        let claims = try #require(try JSONReader.read(statement.payload).object)
        #expect(claims["aud"]?.string == "\(RelayRig.origin)#shop" && claims["id_token"]?.string == token)
        #expect(claims["message"]?.string == older && claims["from"] == "website" && claims["v"] == 1)
        #expect(claims["title"] == Self.hello["title"] && claims["text"] == Self.hello["text"])
        #expect(claims["created_at"] == entry["created_at"])

        #expect(ids(await phone.send("GET", "/messages")) == [newer])
        let archive = await phone.send("GET", "/messages/archive")
        #expect(ids(archive) == [older] && archive["unread"] == 1 && archive["archived"] == 1)
        // The answer may have been lost: the archive gives it again.
        let again = await phone.send("GET", "/messages/\(older)")
        #expect(again.status == 200 && again.fields["x-messagecount"] == "1")
        #expect(await phone.send("GET", "/messages/\(newer)").fields["x-messagecount"] == nil)

        let seen = await shop.send("GET", "/user/bob/messages")
        #expect(ids(seen) == [newer, older])
        #expect(seen["messages"]?.array?.allSatisfy { $0.object?["read_at"]?.string != nil } == true, "\(seen.text)")
        #expect(seen["messages"]?.array?.last?.object?["text"] == Self.hello["text"])
    }

    @Test(arguments: StoreKind.all) func withdrawnNoticeIsGone(kind: StoreKind) async throws {
        let rig = try await APIRig(kind)
        let shop = try await rig.site("shop", ["answers": "certificate"])
        let (_, phone) = try await shop.enrol("bob")
        let notice = try await leave(shop, "bob")
        #expect(await shop.send("DELETE", "/user/bob/messages/\(notice)").status == 204)
        #expect(await shop.send("DELETE", "/user/bob/messages/\(notice)").status == 404)
        #expect(await phone.send("GET", "/messages/\(notice)").status == 404)
        let list = await phone.send("GET", "/messages")
        #expect(ids(list) == [] && list.fields["x-messagecount"] == nil)
    }

    /// Another user's or website's notice reads as not found.
    @Test func noticeIsOnlyForItsUser() async throws {
        let rig = try await APIRig()
        let (shop, bank) = (
            try await rig.site("shop", ["answers": "certificate"]),
            try await rig.site("bank", ["answers": "certificate"])
        )
        let (_, bob) = try await shop.enrol("bob")
        let (_, eve) = try await shop.enrol("eve")
        let (_, other) = try await bank.enrol("bob")
        let notice = try await leave(shop, "bob")
        for phone in [eve, other] {
            #expect(await phone.send("GET", "/messages/\(notice)").status == 404)
            #expect(ids(await phone.send("GET", "/messages")) == [])
        }
        #expect(await bank.send("DELETE", "/user/bob/messages/\(notice)").status == 404)
        #expect(await shop.send("DELETE", "/user/eve/messages/\(notice)").status == 404)
        #expect(ids(await bank.send("GET", "/user/bob/messages")) == [])
        #expect(await bob.send("GET", "/messages").fields["x-messagecount"] == "1")
        #expect(await bob.send("GET", "/messages/x").status == 404)
        #expect(await shop.send("POST", "/user/nobody/messages", Self.hello).status == 404)
        #expect(await shop.send("GET", "/messages").code == "forbidden")
        #expect(await bob.send("GET", "/user/bob/messages").code == "forbidden")
    }

    @Test func repeatedRequestLeavesOneNotice() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop")
        _ = try await shop.register("bob")
        let key = [("idempotency-key", "n-1")]
        let first = await shop.send("POST", "/user/bob/messages", Self.hello, fields: key)
        let second = await shop.send("POST", "/user/bob/messages", Self.hello, fields: key)
        #expect(first.status == 201 && second["message"] == first["message"])
        #expect(ids(await shop.send("GET", "/user/bob/messages")).count == 1)
    }

    @Test(arguments: StoreKind.all) func unreadNoticesAreLimited(kind: StoreKind) async throws {
        let rig = try await APIRig(kind)
        let shop = try await rig.site("shop", ["answers": "certificate"])
        let (_, phone) = try await shop.enrol("bob")
        var notices: [String] = []
        for _ in 0..<NoticeLimits.unread { notices.append(try await leave(shop, "bob")) }
        let refused = await shop.send("POST", "/user/bob/messages", Self.hello)
        #expect(refused.status == 409 && refused.code == "conflict", "\(refused.text)")
        #expect(await phone.send("GET", "/messages/\(notices[0])").status == 200)
        _ = try await leave(shop, "bob")
    }

    @Test(arguments: StoreKind.all) func archivedNoticesCountForTheLimitOfAUser(kind: StoreKind) async throws {
        let rig = try await APIRig(kind)
        let shop = try await rig.site("shop")
        _ = try await shop.register("bob")
        _ = try await shop.register("eve")
        var notice = ""
        for _ in 0..<NoticeLimits.stored / NoticeLimits.unread {
            for _ in 0..<NoticeLimits.unread { notice = try await leave(shop, "bob") }
            // A limit does not depend on the MAC of the rows that it counts.
            try rig.relay.forge("UPDATE notice SET read_at = created_at")
        }
        let refused = await shop.send("POST", "/user/bob/messages", Self.hello)
        #expect(refused.status == 409 && refused.code == "conflict", "\(refused.text)")
        _ = try await leave(shop, "eve")
        #expect(await shop.send("DELETE", "/user/bob/messages/\(notice)").status == 204)
        _ = try await leave(shop, "bob")
    }

    @Test(
        arguments: [
            ["title": "", "text": "x"], ["title": "a\nb", "text": "x"], ["title": "x", "text": ""],
            ["title": "x", "text": " \n "], ["title": "x", "text": "a\u{202e}b"], ["title": "x", "text": "a\rb"],
            ["title": "x"], ["text": "x"],
        ] as [JSONObject])
    func unshowableNoticeIsRefused(body: JSONObject) async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop")
        _ = try await shop.register("bob")
        let refused = await shop.send("POST", "/user/bob/messages", body)
        #expect(refused.status == 400 && refused.faults.count == 1, "\(refused.text)")
        let long: JSONObject = [
            "title": .string(String(repeating: "a", count: 65)), "text": .string(String(repeating: "a", count: 1001)),
        ]
        #expect(await shop.send("POST", "/user/bob/messages", long).faults == ["title length", "text length"])
    }

    /// A phone would show a row that somebody has planted in the database as the website's words.
    @Test(arguments: StoreKind.all) func forgedNoticeIsNotShown(kind: StoreKind) async throws {
        let rig = try await APIRig(kind)
        let shop = try await rig.site("shop", ["answers": "certificate"])
        let (_, phone) = try await shop.enrol("bob")
        let notice = try await leave(shop, "bob")
        try rig.relay.forge("UPDATE notice SET body = 'Approve the next login.'")
        #expect(await phone.send("GET", "/messages/\(notice)").status == 500)
        #expect(await phone.send("GET", "/messages").status == 500)
        // It can be deleted, and the user's logins go on.
        #expect(await phone.send("POST", "/pending", [:]).status == 200)
        #expect(await shop.send("DELETE", "/user/bob/messages/\(notice)").status == 204)
        #expect(await phone.send("GET", "/messages").status == 200)
    }

    @Test(arguments: StoreKind.all) func forgedNoticeFailsItsOwnListOnly(kind: StoreKind) async throws {
        let rig = try await APIRig(kind)
        let shop = try await rig.site("shop", ["answers": "certificate"])
        let (_, phone) = try await shop.enrol("bob")
        let archived = try await leave(shop, "bob")
        let unread = try await leave(shop, "bob")
        #expect(await phone.send("GET", "/messages/\(archived)").status == 200)
        try rig.relay.forge("UPDATE notice SET body = 'Approve the next login.' WHERE read_at IS NOT NULL")
        #expect(ids(await phone.send("GET", "/messages")) == [unread])
        #expect(await phone.send("GET", "/messages/archive").status == 500)
        #expect(await shop.send("DELETE", "/user/bob/messages/\(archived)").status == 204)
        try rig.relay.forge("UPDATE notice SET body = 'Approve the next login.'")
        #expect(await phone.send("GET", "/messages").status == 500)
        #expect(await phone.send("GET", "/messages/archive").status == 200)
    }

    @Test func heldRequestHasTheCountOfItsEnd() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop", ["answers": "certificate"])
        let (_, phone) = try await shop.enrol("bob")
        guard
            case .held(let hold) = await rig.start(
                phone.request("POST", "/pending", [:], fields: [("prefer", "wait=9")]))
        else { throw RigFailure("not held") }
        _ = try await leave(shop, "bob")
        #expect(await rig.giveUp(hold).fields["x-messagecount"] == "1")
    }

    @Test(arguments: StoreKind.all) func deletedUserHasNoNotices(kind: StoreKind) async throws {
        let rig = try await APIRig(kind)
        let shop = try await rig.site("shop")
        _ = try await shop.register("bob")
        _ = try await leave(shop, "bob")
        #expect(await shop.send("DELETE", "/user/bob").status == 204)
        _ = try await shop.register("bob")
        #expect(ids(await shop.send("GET", "/user/bob/messages")) == [])
        #expect(try rig.relay.count("SELECT count(*) FROM notice") == 0)
    }
}
