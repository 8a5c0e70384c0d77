import JSON
import TestSupport
import Testing
import World

/// Codes that users keep themselves: an app, played by oathtool, and recovery codes.
@Suite("Codes from an app and recovery codes", .timeLimit(.minutes(15)), .mayBlock) struct OwnCodeTests {
    /// Returns the code that an app with this secret shows, some seconds from now.
    private func shown(_ secret: String, in seconds: Int64 = 0) async throws -> String {
        let moment = Timestamp(seconds: SystemTime().now().seconds + seconds).rfc3339.prefix(19)
        let shown = try await Child.run("oathtool", ["--totp", "--base32", "--now=\(moment)Z", secret])
        #expect(shown.status == 0, "\(shown.errors)")
        return String(shown.output.prefix { $0 != "\n" })
    }

    @Test(arguments: [StoreKind.file, .mariadb]) func totpAndRecoveryCodesLogInApproveAndUnlock(_ kind: StoreKind)
        async throws
    {
        try await Fixture.run(kind) { fixture in
            let shop = try await fixture.website("shop", ["--guesses", "1"])
            try await shop.register("ana.app", with: [:])
            let given = try await shop.curl("POST", "/user/ana.app/recovery-codes", [:])
            let codes = given["codes"]?.array?.compactMap(\.string) ?? []
            #expect(given.status == 201 && Set(codes).count == 10, "\(given)")
            for code in codes { fixture.record(code) }
            // The app is waiting until its first code has proved that it has the secret.
            let made = try await shop.curl("POST", "/user/ana.app/totp", [:])
            let secret = try #require(made["secret"]?.string)
            #expect(try await CodeLogin(shop, "ana.app").asked["factor"] == .null)
            let first = try await shown(secret)
            let confirmed = try await shop.curl("POST", "/user/ana.app/totp/confirm", ["otp": .string(first)])
            #expect(confirmed.text == #"{"confirmed":true}"#, "\(confirmed)")
            let login = try await CodeLogin(shop, "ana.app")
            #expect(login.factor == "totp" && login.asked["login"] == "unverified")
            // The next code, because the first is used up.
            try await login.succeeds(by: "totp", worth: "substantial", try await shown(secret, in: 30))

            // A new app in place of a removed one needs the user's approval, which a recovery code
            // can give.
            #expect(try await shop.curl("DELETE", "/user/ana.app/totp").status == 204)
            let refused = try await shop.curl("POST", "/user/ana.app/totp", [:])
            #expect(refused.status == 403 && refused["code"] == "approval_required", "\(refused)")
            let approval = try #require(refused["challenge"]?.string)
            let repeated: JSONObject = ["approval": .string(approval)]
            #expect(try await shop.curl("POST", "/user/ana.app/totp", repeated).status == 403)
            let approved = try await shop.curl(
                "POST", "/backup", ["challenge": .string(approval), "otp": .string(codes[0].uppercased())])
            #expect(approved["login"] == "success" && approved["factor"] == "recovery", "\(approved)")
            let second = try await shop.curl("POST", "/user/ana.app/totp", repeated)
            #expect(second.status == 201 && second["secret"]?.string != secret, "\(second)")
            let other = try #require(second["secret"]?.string)
            fixture.record(other)
            let active = try await shop.curl(
                "POST", "/user/ana.app/totp/confirm", ["otp": .string(try await shown(other))])
            #expect(active["confirmed"] == true, "\(active)")

            // A wrong code locks all codes, including recovery codes. Without a phone, an operator
            // has to unlock them.
            func unlock() async throws {
                try await fixture.relay.tool("user", "unlock", "ana.app", "--website", "shop")
            }
            #expect(try await CodeLogin(shop, "ana.app").handIn("000000")["reason"] == "locked")
            let locked = try await CodeLogin(shop, "ana.app")
            #expect(try await locked.result()["reason"] == "locked")
            #expect(try await locked.handIn(codes[1]).status == 409)
            #expect(try await shop.curl("GET", "/user/ana.app")["codes"] == "locked")
            try fixture.relay.execute("UPDATE user SET state = 'frozen', stopped_by = 'phone'")
            let locking = try await shop.curl("POST", "/user/ana.app/unlock", ["otp": .string(codes[1])])
            #expect(locking.status == 403 && locking["code"] == "codes_locked", "\(locking)")
            try await unlock()
            #expect(try await shop.curl("GET", "/user/ana.app")["codes"] == "open")
            // A recovery code lifts a freeze, and another one logs in; each works once.
            try fixture.relay.execute("UPDATE user SET state = 'frozen', stopped_by = 'phone'")
            let unlocked = try await shop.curl("POST", "/user/ana.app/unlock", ["otp": .string(codes[1])])
            #expect(unlocked.status == 204, "\(unlocked)")
            try await CodeLogin(shop, "ana.app").succeeds(by: "recovery", worth: "substantial", codes[2])
            for used in codes[0...2] {
                let again = try await CodeLogin(shop, "ana.app").handIn(used)
                #expect(again["login"] == "failure", "\(again)")
                try await unlock()
            }
        }
    }
}
