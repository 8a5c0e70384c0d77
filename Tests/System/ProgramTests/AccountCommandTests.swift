import Bytes
import Crypto
import JSON
import TestSupport
import Testing
import World

/// The commands `twoefay user` and `twoefay device`, on the store of a running relay.
@Suite("twoefay user and device", .timeLimit(.minutes(15)), .mayBlock) struct AccountCommandTests {
    static let stores: [StoreKind] = [.file, .mariadb]

    @Test(arguments: stores) func suspendedPhoneIsUnauthenticated(_ kind: StoreKind) async throws {
        let fixture = try await Fixture(kind)
        let phone = try await fixture.bind(try await fixture.registered("ada"))
        #expect(try await phone.isKnown())

        let list = try await fixture.json("device", "list", "ada", "--website", "shop")
        let listed = try #require(list["devices"]?.array?.first?.object)
        #expect(listed["device"]?.string == phone.device && listed["state"] == "active")
        #expect(listed["thumbprint"]?.string == phone.key.publicKey.thumbprint)
        var shown = try await fixture.json("device", "show", phone.device)
        let certificate = try #require(shown["certificates"]?.array?.first?.object)
        #expect(certificate.names == ["serial", "created_at", "expires_at"])
        #expect(certificate["serial"]?.string == (try phone.certificate.serial))
        #expect(shown["certificates"]?.array?.count == 1)
        #expect(shown["tagged_certificates"] == [])
        shown["certificates"] = nil
        shown["tagged_certificates"] = nil
        #expect(shown == listed)

        let suspended = try await fixture.json("device", "suspend", phone.device)
        #expect(suspended["before"] == "active" && suspended["state"] == "suspended")
        #expect(suspended["user"] == "ada" && suspended["website"] == "shop")
        let held = try await fixture.json("device", "show", phone.device)
        #expect(held["stopped_by"] == "operator")
        #expect(held["certificates"]?.array?.first?.object?["on_hold"] == true)
        let text = try await fixture.tool(["device", "show", phone.device]).output
        #expect(text.contains("on hold since "), "\(text)")
        let table = try await fixture.tool(["device", "list", "ada", "--website", "shop"]).output
        #expect(table.contains("suspended  operator"), "\(table)")
        #expect(try await !phone.isKnown())
        try await fixture.refused(["device", "suspend", phone.device], 4, "is suspended already")
        #expect(try await fixture.json("device", "resume", phone.device)["state"] == "active")
        #expect(try await phone.isKnown())
        try await fixture.refused(["device", "resume", phone.device], 4, "is active already")

        // Without a terminal, nobody can confirm.
        try await fixture.refused(["device", "revoke", phone.device], 2, "is unbound for good")
        #expect(try await phone.isKnown())
        #expect(try await fixture.json("device", "revoke", phone.device, "--yes")["state"] == "revoked")
        #expect(try await !phone.isKnown())
        try await fixture.refused(["device", "revoke", phone.device], 4, "is revoked already")
        try await fixture.refused(["device", "resume", phone.device], 4, "twoefay user activate ada --website shop")
        #expect(try await !phone.isKnown())
        for event in ["device.suspended", "device.resumed", "device.unbound"] {
            #expect(try fixture.trail(event, outcome: "operator", device: phone.device) == 1, "\(event)")
        }
    }

    /// The phone has no key, so only the operator's revocation keeps its website from binding it
    /// again.
    @Test(arguments: stores) func operatorUnbindsAndRestoresAWebsitesPhone(_ kind: StoreKind) async throws {
        let fixture = try await Fixture(kind)
        let club = try await fixture.relay.website("club", "--answers", "website")
        let registered = try await club.curl("POST", "/register", json: #"{"username":"bob"}"#)
        let token = try #require(registered["token"]?.string, "\(registered)")
        func verify() async throws -> Int {
            try await club.curl("POST", "/verify", json: #"{"id_token":"\#(token)","dev_token":"abcd"}"#).status
        }
        #expect(try await verify() == 200)
        let listed = try await fixture.json("device", "list", "bob", "--website", "club")
        let device = try #require(listed["devices"]?.array?.first?.object?["device"]?.string)
        for before in ["active", "revoked"] {
            if before == "revoked" {
                _ = try await club.curl("DELETE", "/user/bob/devices/\(device)")
                try await fixture.refused(["device", "resume", device], 4, "Its website may bind it again.")
            }
            let revoked = try await fixture.json("device", "revoke", device)
            #expect(revoked["before"]?.string == before && revoked["state"] == "revoked")
            try await fixture.refused(["device", "revoke", device], 4, "is revoked already")
            #expect(try await verify() == 403)
            let resumed = try await fixture.json("device", "resume", device)
            #expect(resumed["before"] == "revoked" && resumed["state"] == "revoked")
            #expect(try await verify() == 200)
            #expect(try await fixture.json("device", "show", device)["state"] == "active")
        }
    }

    @Test(arguments: stores) func removeFactorDeletesTheFactor(_ kind: StoreKind) async throws {
        let fixture = try await Fixture(kind)
        _ = try await fixture.registered("ada")
        let seed = #"{"secret":"GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"}"#
        #expect(try await fixture.shop.curl("POST", "/user/ada/hotp", json: seed).status == 201)
        let shown = try await fixture.json("user", "show", "ada", "--website", "shop")
        // Besides the address that the website gave.
        #expect(shown["factors"]?.array?.map { $0.object?["kind"] } == ["mail", "hotp"])
        #expect(try await fixture.tool(["user", "show", "ada", "--website", "shop"]).output.contains("hotp    active"))
        try await fixture.refused(
            ["user", "remove-factor", "ada", "push", "--website", "shop"], 2, "KIND must be one of")
        try await fixture.refused(["user", "remove-factor", "ada", "totp", "--website", "shop"], 4, "has no totp")
        // No mail server is set, so the token is the only way in, and no website could add another one.
        try await fixture.refused(
            ["user", "remove-factor", "ada", "hotp", "--website", "shop"], 4, "ada of shop cannot log in without hotp")
        let words = ["user", "remove-factor", "ada", "hotp", "--website", "shop", "--last"]
        try await fixture.refused(words, 2, "hotp of ada of shop is removed")
        let dropped = try await fixture.tool(words + ["--yes", "--json"]).json
        #expect(dropped["kind"] == "hotp" && dropped["state"] == "dropped" && dropped["ways_in"] == [])
        let left = try await fixture.json("user", "show", "ada", "--website", "shop")["factors"]?.array
        #expect(left?.map { $0.object?["kind"] } == ["mail"])
    }

    /// The way back that the command names works: a phone binds without the approval of a factor that is
    /// gone.
    @Test(arguments: stores) func userWithoutAFactorGetsBackByAnActivation(_ kind: StoreKind) async throws {
        let fixture = try await Fixture(kind)
        let enrolment = try await fixture.registered("ada")
        let phone = try await fixture.bind(enrolment)
        let seed = #"{"secret":"GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"}"#
        try fixture.relay.execute("UPDATE user SET language = 'en'")
        #expect(try await fixture.json("device", "revoke", phone.device, "--yes")["state"] == "revoked")
        // The user had a factor, so the website cannot add one without an approval that nobody can give.
        #expect(try await fixture.shop.curl("POST", "/user/ada/hotp", json: seed).status == 403)
        let shown = try await fixture.tool(["user", "show", "ada", "--website", "shop"]).output
        #expect(shown.contains("The user has no factor, and cannot log in."), "\(shown)")
        #expect(shown.contains("No login ends by mail: no mail server is set."), "\(shown)")
        #expect(shown.contains("twoefay user activate ada --website shop"), "\(shown)")
        let json = try await fixture.json("user", "show", "ada", "--website", "shop")
        #expect(json["ways_in"] == [] && json["idle_factors"]?.object?["mail"] == "no mail server is set")
        let made = try await fixture.json("user", "activate", "ada", "--website", "shop")
        _ = try await fixture.bind((enrolment.token, try #require(made["code"]?.string)))
        let back = try await fixture.json("user", "show", "ada", "--website", "shop")
        #expect(back["ways_in"] == ["push"])
    }

    /// Nothing else tells the operator that a locked user learns nothing of it.
    @Test(arguments: stores) func operatorSeesThatUsersAreNotTold(_ kind: StoreKind) async throws {
        let fixture = try await Fixture(kind)
        _ = try await fixture.registered("ada")
        let locked = try await fixture.tool(["user", "lock", "ada", "--website", "shop"]).output
        #expect(locked.contains("The user is not told of it: no mail server is set."), "\(locked)")
        let unsent = "SELECT count(*) FROM audit WHERE event = 'mail.settled' AND outcome = 'no mail server is set'"
        while try fixture.relay.count(unsent) == 0 { _ = try await fixture.shop.curl("GET", "/user/ada") }
        let shown = try await fixture.json("user", "show", "ada", "--website", "shop")["announcements"]?.object
        #expect(shown?["told_by_mail"] == false && shown?["reason"] == "no_server" && shown?["unsent"] == 1)
        let text = try await fixture.tool(["user", "show", "ada", "--website", "shop"]).output
        #expect(text.contains("no mail server is set (mail.url)") && text.contains("reached nobody: 1"), "\(text)")
        let factors = try await fixture.shop.curl("GET", "/user/ada")["factors"]?.array?.compactMap(\.object)
        // A lock of the user is shown first.
        #expect(factors?.map { $0["state"] } == ["locked"])
        _ = try await fixture.json("user", "unlock", "ada", "--website", "shop")
        let open = try await fixture.shop.curl("GET", "/user/ada")["factors"]?.array?.compactMap(\.object)
        #expect(open?.map { $0["state"] } == ["undeliverable"])
        let status = try await fixture.tool(["status"]).output
        #expect(status.contains("No mail server is set (mail.url): users are told nothing"), "\(status)")
    }

    @Test(arguments: stores) func userIsFoundByAddress(_ kind: StoreKind) async throws {
        let fixture = try await Fixture(kind)
        _ = try await fixture.registered("ada", email: "ada@example.org")
        let found = try await fixture.json("user", "find", "ada@example.org")
        let users = try #require(found["users"]?.array).compactMap(\.object)
        #expect(users.contains { $0["username"] == "ada" && $0["website"] == "shop" && $0["found_in"] == "user.email" })
        let shown = try await fixture.tool(["user", "find", "ada@example.org"])
        #expect(shown.status == 0 && shown.output.contains("user.email"))
        try await fixture.refused(["user", "find", "ADA@example.org"], 3, "no user has ADA@example.org")
    }

    @Test(arguments: stores) func deviceRenameChangesTheName(_ kind: StoreKind) async throws {
        let fixture = try await Fixture(kind)
        let phone = try await fixture.bind(try await fixture.registered("ada"))
        let before = try await fixture.json("device", "show", phone.device)
        let renamed = try await fixture.json("device", "rename", phone.device, "Ada's old phone")
        #expect(renamed["name"] == "Ada's old phone" && renamed["before"] == before["name"])
        #expect(renamed["user"] == "ada" && renamed["website"] == "shop")
        #expect(try await fixture.json("device", "show", phone.device)["name"] == "Ada's old phone")
        #expect(try await phone.isKnown())
        let result = try await fixture.tool(["device", "rename", phone.device, "--", "-"])
        #expect(result.output.contains("of ada at shop is now called -"), "\(result.output)")
        #expect(try fixture.trail("device.changed", outcome: "operator", device: phone.device) == 2)
        try await fixture.refused(["device", "rename", phone.device, "a\u{202e}b"], 2, "NAME must not contain control")
        let long = String(repeating: "x", count: 65)
        try await fixture.refused(["device", "rename", phone.device, long], 2, "NAME must have at most 64 characters")
        _ = try await fixture.json("device", "suspend", phone.device)
        #expect(try await fixture.json("device", "rename", phone.device, "Lost")["before"] == "-")
        _ = try await fixture.json("device", "revoke", phone.device, "--yes")
        try await fixture.refused(["device", "rename", phone.device, "Gone"], 4, "is revoked")
        #expect(try await fixture.json("device", "show", phone.device)["name"] == "Lost")
    }

    @Test(arguments: stores) func lockedUserCannotLogIn(_ kind: StoreKind) async throws {
        let fixture = try await Fixture(kind)
        _ = try await fixture.bind(try await fixture.registered("ada"))
        let waiting = try await fixture.login("ada")
        #expect(try await fixture.result(waiting)["login"] == "wait")

        let locked = try await fixture.json("user", "lock", "ada", "--website", "shop")
        #expect(locked["before"] == "active" && locked["state"] == "locked")
        for challenge in [waiting, try await fixture.login("ada")] {
            let result = try await fixture.result(challenge)
            #expect(result["login"] == "failure" && result["reason"] == "locked", "\(result)")
        }
        try await fixture.refused(["user", "lock", "ada", "--website", "shop"], 4, "is locked already")
        let shown = try await fixture.json("user", "show", "ada", "--website", "shop")
        #expect(shown["state"] == "locked" && shown["stopped_by"] == "operator")
        #expect(shown["challenge"]?.object?["reason"] == "locked")
        let result = try await fixture.tool(["user", "show", "ada", "--website", "shop"])
        #expect(result.output.contains("An operator locked the user"), "\(result.output)")
        #expect(result.output.contains("twoefay user unlock ada --website shop"), "\(result.output)")

        let unlocked = try await fixture.json("user", "unlock", "ada", "--website", "shop")
        #expect(unlocked["before"] == "locked" && unlocked["state"] == "active")
        #expect(try await fixture.result(try await fixture.login("ada"))["login"] == "wait")
        try await fixture.refused(["user", "unlock", "ada", "--website", "shop"], 4, "is neither locked nor frozen")
        #expect(try fixture.trail("user.locked", outcome: "operator") == 1)
        #expect(try fixture.trail("user.unlocked", outcome: "operator") == 1)
    }

    /// Otherwise the website could undo a lock or suspension that the operator wants to keep.
    @Test(arguments: stores) func operatorTakesOverAWebsitesSuspension(_ kind: StoreKind) async throws {
        let fixture = try await Fixture(kind)
        let phone = try await fixture.bind(try await fixture.registered("ada"))
        try fixture.relay.execute("UPDATE user SET state = 'locked', stopped_by = 'phone'")
        try fixture.relay.execute("UPDATE device SET state = 'suspended', stopped_by = 'website'")
        #expect(try await fixture.json("device", "show", phone.device)["stopped_by"] == "website")
        let suspended = try await fixture.json("device", "suspend", phone.device)
        #expect(suspended["before"] == "suspended" && suspended["state"] == "suspended")
        #expect(try await fixture.json("user", "lock", "ada", "--website", "shop")["before"] == "locked")
        let shown = try await fixture.json("user", "show", "ada", "--website", "shop")
        #expect(shown["stopped_by"] == "operator")
        #expect(shown["devices"]?.array?.first?.object?["stopped_by"] == "operator")
    }

    @Test func printedCommandsAreShellQuoted() async throws {
        let fixture = try await Fixture(.file)
        _ = try await fixture.registered("it's $(id)", email: "ada@example.com")
        let locked = try await fixture.tool(["user", "lock", "it's $(id)", "--website", "shop"])
        #expect(locked.output.contains(#"twoefay user unlock 'it'\''s $(id)' --website shop"#), "\(locked.output)")
    }

    @Test(arguments: stores) func userUnlockLiftsAFreeze(_ kind: StoreKind) async throws {
        let fixture = try await Fixture(kind)
        _ = try await fixture.registered("ada")
        try fixture.relay.execute("UPDATE user SET state = 'frozen'")
        let result = try await fixture.tool(["user", "show", "ada", "--website", "shop"])
        #expect(result.output.contains("reported a fraudulent login"), "\(result.output)")
        #expect(try await fixture.json("user", "unlock", "ada", "--website", "shop")["before"] == "frozen")
        #expect(try await fixture.json("user", "show", "ada", "--website", "shop")["state"] == "active")
        #expect(try fixture.trail("user.unlocked", outcome: "operator") == 1)
        // The audit says what was lifted: a freeze, locked codes, and a lock by the website.
        try fixture.relay.execute("UPDATE user SET code_failures = 3, codes_locked_at = '2026-11-27 08:00:00.000'")
        #expect(try await fixture.json("user", "unlock", "ada", "--website", "shop")["codes_before"] == "locked")
        try fixture.relay.execute("UPDATE user SET state = 'locked', stopped_by = 'phone'")
        #expect(try await fixture.shop.curl("POST", "/user/ada/unlock", json: "{}").status == 204)
        let rows = try #require(
            try await fixture.json("audit", "search", "--event", "user.unlocked")["rows"]?.array)
        func change(_ row: Int, _ name: String) -> String? {
            rows.indices.contains(row) ? rows[row].object?["changes"]?.object?[name].map { JSONWriter.text($0) } : nil
        }
        #expect(change(0, "state") == #"{"before":"frozen","after":"active"}"#, "\(rows)")
        #expect(change(1, "codes") == #"{"before":"locked","after":"open"}"#, "\(rows)")
        #expect(change(1, "code_failures") == #"{"before":3,"after":0}"# && change(1, "state") == nil, "\(rows)")
        #expect(change(2, "state") == #"{"before":"locked","after":"active"}"#, "\(rows)")
    }

    /// No phone can approve, or the phone is not asked: the operator's command is enough, for one
    /// phone.
    @Test(arguments: stores) func userActivateBindsAFurtherPhone(_ kind: StoreKind) async throws {
        let fixture = try await Fixture(kind)
        let enrolment = try await fixture.registered("ada")
        let first = try await fixture.bind(enrolment)
        let made = try await fixture.json("user", "activate", "ada", "--website", "shop")
        #expect(made["user"] == "ada" && made["qr"]?.string?.hasPrefix("<svg") == true)
        let code = try #require(made["code"]?.string)
        let uri = try #require(made["uri"]?.string)
        #expect(uri.hasPrefix("twoefay://enrol?relay=https%3A%2F%2Flocalhost%3A") && uri.contains("code=\(code)"))
        let authority = try Certificate.all(pem: try TextFile.bytes(fixture.relay.file("ca.pem")))[0]
        #expect(uri.contains("pin=\(Base64URL.encode(authority.spkiThumbprint))"))
        #expect(uri.contains("token=\(enrolment.token)"))

        let second = try await fixture.bind((enrolment.token, code))
        #expect(try await second.isKnown())
        #expect(try await first.isKnown())
        #expect(try await fixture.json("device", "list", "ada", "--website", "shop")["devices"]?.array?.count == 2)
        #expect(try fixture.trail("user.activation", outcome: "operator") == 1)
        let again = try await fixture.verify((enrolment.token, code), TestPhone(pushToken: "third"))
        #expect(again.status == 401, "\(again)")
    }

    /// No command that leads to a phone helps a leaver: the way back is the directory, or `user
    /// enable`.
    @Test(arguments: stores) func leaverGetsNoActivation(_ kind: StoreKind) async throws {
        let fixture = try await Fixture(kind)
        _ = try await fixture.registered("ada")
        try fixture.relay.execute("UPDATE user SET prior_state = state, directory = 'staff', directory_id = '1'")
        try fixture.relay.execute("UPDATE user SET state = 'disabled'")
        let check = ["user", "confirm-identity", "ada", "--by", "Ben", "--document", "passport"]
        for command in [["user", "activate", "ada"], check, ["user", "unlock", "ada"]] {
            try await fixture.refused(
                command + ["--website", "shop"], 4, "is disabled: the user has left the directory staff")
        }
        #expect(try fixture.relay.count("SELECT count(*) FROM activation") == 1)
        #expect(try await fixture.json("user", "show", "ada", "--website", "shop")["identity"]?.isNull != false)
    }

    @Test func printedQRCodeIsScannable() async throws {
        let fixture = try await Fixture(.file)
        _ = try await fixture.registered("ada")
        let printed = try await fixture.tool(["user", "activate", "ada", "--website", "shop"])
        #expect(printed.output.contains("█"))
        // The output is not a terminal here, so it has no escape sequences.
        #expect(!printed.output.contains("\u{1b}"))
        #expect(printed.output.contains("\ntwoefay://enrol?"))
    }

    @Test func userAndDeviceTextsAreReadable() async throws {
        let fixture = try await Fixture(.file)
        let phone = try await fixture.bind(try await fixture.registered("ada"))
        let user = try await fixture.tool(["user", "show", "ada", "--website", "shop"])
        #expect(user.output.hasPrefix("ada of shop is active, registered at "))
        #expect(user.output.contains("\nE-mail: ada@example.com\n"))
        let rows = user.output.split(separator: "\n").map { $0.split(separator: " ") }
        #expect(rows.contains { $0.first == phone.device[...] && $0.contains("ios") && $0.contains("active") })
        let device = try await fixture.tool(["device", "show", phone.device])
        #expect(device.output.contains("A phone of ada at shop; its key has the thumbprint "))
        _ = try await fixture.registered("bob")
        let none = try await fixture.tool(["device", "list", "bob", "--website", "shop"])
        #expect(none.output.contains("twoefay user activate bob --website shop"))
    }

    @Test(
        arguments: [
            (["user", "show", "ada"], 2, "--website is missing"),
            (["user", "show", "ada", "--website", "bank"], 3, "there is no website bank"),
            (["user", "show", "Ada", "--website", "shop"], 3, "shop has no user Ada"),
            (["user", "lock", "bob", "--website", "shop"], 3, "shop has no user bob"),
            (["user", "unlock", "ada", "--website", "shop"], 4, "is neither locked nor frozen"),
            (["user", "activate", "bob", "--website", "shop"], 3, "shop has no user bob"),
            (["device", "list", "bob", "--website", "shop"], 3, "shop has no user bob"),
            (["device", "show", "ada"], 2, "DEVICE must be the 32 digits"),
            (["device", "revoke", String(repeating: "0", count: 32)], 3, "there is no phone 000"),
            (["device", "revoke"], 2, "DEVICE is missing"), (["device"], 2, "device needs a subcommand"),
        ] as [([String], Int32, String)])
    func impossibleAccountChangeIsRefused(arguments: [String], status: Int32, message: String) async throws {
        let installed = try await Installed()
        let add = ["website", "add", "shop", "--out", installed.directory.path]
        _ = try await Child.run(try BuiltProgram.twoefay.path, ["--config", installed.settings] + add)
        try Fixture.execute(
            """
            INSERT INTO user (id, token, website_id, username, state, created_at, operation)
            SELECT x'00112233445566778899aabbccddeeff', x'00112233445566778899aabbccddeeff', w.id, 'ada', 'active',
            w.created_at, w.operation FROM website w
            """, in: installed)
        let refused = try await Child.run(
            try BuiltProgram.twoefay.path, ["--config", installed.settings] + arguments)
        #expect(refused.status == status)
        #expect(refused.errors.contains(message), "\(refused.errors)")
        #expect(refused.errors.split(separator: "\n").count >= 2, "says nothing of what to do: \(refused.errors)")
    }
}
