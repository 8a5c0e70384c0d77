import Bytes
import JSON
import TestSupport
import Testing

/// The commands `twoefay directory …`, with a real slapd.
@Suite("twoefay directory", .timeLimit(.minutes(15)), .mayBlock, .enabled(if: Slapd.canRun))
struct DirectoryCommandTests {
    /// An installation with a website, whose users come from a slapd.
    private struct Staff {
        let installed: Installed
        let slapd: Slapd

        /// - Parameter lines: further keys of the directory.
        init(_ slapd: Slapd, _ lines: String = "") async throws {
            self.slapd = slapd
            installed = try await Installed()
            try TextFile.write(Slapd.password + "\n", to: installed.directory("relay/staff.password"))
            let settings = """

                directories:
                  - name: staff
                    website: shop
                    kind: ldap
                    url: \(slapd.secureURL)
                    ca: \(slapd.authority)
                    bind_dn: \(Slapd.admin)
                    password_file: staff.password
                    base: \(Slapd.suffix)
                """
            let indented = lines.split(separator: "\n").map { "\n    \($0)" }.joined()
            try TextFile.write(try text(installed.settings) + settings + indented + "\n", to: installed.settings)
            let added = try await BuiltProgram.twoefay(
                "--config", installed.settings, "website", "add", "shop", "--out", installed.directory.path)
            try #require(added.status == 0, "\(added.errors)")
        }

        func run(_ arguments: String...) async throws -> Child.Ended {
            try await Child.run(try BuiltProgram.twoefay.path, ["--config", installed.settings] + arguments)
        }

        /// Returns the output of a successful command with --json.
        func json(_ arguments: String...) async throws -> JSONObject {
            let ended = try await Child.run(
                try BuiltProgram.twoefay.path, ["--config", installed.settings, "--json"] + arguments)
            try #require(ended.status == 0, "\(ended.errors)")
            return try ended.json
        }

        func show(_ user: String) async throws -> JSONObject {
            try await json("user", "show", user, "--website", "shop")
        }
    }

    @Test func usersFollowTheDirectory() async throws {
        let slapd = try await Slapd()
        try await slapd.add("ada", [("mail", "ada@example.org"), ("mobile", "+49 151 12345678")])
        try await slapd.add("bob", [("mail", "bob@example.org")])
        let staff = try await Staff(slapd)

        let tested = try await staff.json("directory", "test", "staff")
        #expect(tested["entries"]?.integer == 2 && tested["conflicts"]?.array?.isEmpty == true)
        let planned = try await staff.run("directory", "sync", "staff", "--dry-run")
        #expect(planned.status == 0 && planned.output.contains("2 added, 0 changed, 0 disabled"))
        #expect(planned.output.contains("add     ada   email: ada@example.org, phone: +4915112345678"))
        #expect(try await staff.run("user", "show", "ada", "--website", "shop").status == 3)

        let synced = try await staff.json("directory", "sync", "staff")
        #expect(synced["added"]?.integer == 2 && synced["dry_run"]?.bool == false)
        let ada = try await staff.show("ada")
        #expect(ada["phone"]?.string == "+4915112345678" && ada["directory"]?.string == "staff")

        // A rename, a new address, and a leaver.
        try await slapd.apply(
            """
            dn: uid=ada,\(Slapd.people)
            changetype: modrdn
            newrdn: uid=ada.king
            deleteoldrdn: 1

            dn: uid=ada.king,\(Slapd.people)
            changetype: modify
            replace: mail
            mail: king@example.org

            """)
        try await slapd.delete("bob")
        let changes = try await staff.json("directory", "sync", "staff", "--dry-run")
        #expect(changes["changed"]?.integer == 1 && changes["disabled"]?.integer == 1)
        _ = try await staff.json("directory", "sync", "staff")
        let renamed = try await staff.show("ada.king")
        #expect(renamed["id"] == ada["id"] && renamed["email"]?.string == "king@example.org")
        #expect(try await staff.show("bob")["state"]?.string == "disabled")
        let listed = try await staff.json("directory", "list")["directories"]?.array?.first?.object
        #expect(listed?["users"]?.integer == 1 && listed?["disabled"]?.integer == 1 && listed?["error"]?.isNull == true)

        let enabled = try await staff.json("user", "enable", "bob", "--website", "shop")
        #expect(enabled["state"]?.string == "active" && enabled["directory_before"]?.string == "staff")
        let refused = try await staff.run("user", "enable", "bob", "--website", "shop")
        #expect(refused.status == 4 && refused.errors.contains("is not disabled"))
        let verified = try await staff.run("rows", "verify")
        #expect(verified.status == 0, "\(verified.output)")
    }

    @Test func failuresChangeNothingAndSayWhatToDo() async throws {
        let slapd = try await Slapd()
        for name in ["ada", "bob", "carl"] { try await slapd.add(name) }
        let staff = try await Staff(slapd)
        _ = try await staff.json("directory", "sync", "staff")
        for name in ["ada", "bob"] { try await slapd.delete(name) }
        let many = try await staff.run("directory", "sync", "staff")
        #expect(many.status == 4 && many.errors.contains("--allow-many"), "\(many.errors)")
        #expect(try await staff.show("ada")["state"]?.string == "active")

        await slapd.stop()
        let gone = try await staff.run("directory", "sync", "staff", "--allow-many")
        #expect(gone.status == 1 && gone.errors.contains("cannot connect"), "\(gone.errors)")
        #expect(try await staff.show("ada")["state"]?.string == "active")
        let listed = try await staff.run("directory", "list")
        #expect(listed.output.contains("failed: the directory staff: cannot connect"), "\(listed.output)")

        let unknown = try await staff.run("directory", "sync", "stuff")
        #expect(unknown.status == 3 && unknown.errors.contains("The directories are staff."), "\(unknown.errors)")
    }

    @Test func membersOfGroupsAreCounted() async throws {
        let slapd = try await Slapd()
        for name in ["ada", "bob", "carl"] { try await slapd.add(name) }
        try await slapd.addGroup("admins", ["ada", "bob"])
        let staff = try await Staff(
            slapd,
            """
            groups:
              - {group: "cn=admins,\(Slapd.suffix)", policy: {min_uv: biometric}}
              - {filter: "(uid=nobody)", policy: {number: 6}}
            """)
        let tested = try await staff.run("directory", "test", "staff")
        #expect(tested.output.contains("cn=admins,\(Slapd.suffix)  2"), "\(tested.output)")
        #expect(tested.output.contains("(uid=nobody)                 0"), "\(tested.output)")
        let groups = try await staff.json("directory", "test", "staff")["groups"]?.array
        #expect(groups?.compactMap { $0.object?["members"]?.integer } == [2, 0])
        _ = try await staff.json("directory", "sync", "staff")
        // The group is renamed, and the settings still have its former name.
        try await slapd.apply(
            "dn: cn=admins,\(Slapd.suffix)\nchangetype: modrdn\nnewrdn: cn=administrators\ndeleteoldrdn: 1\n")
        let planned = try await staff.run("directory", "sync", "staff", "--dry-run")
        #expect(planned.output.contains("Users who lose the policy of their group: 2"), "\(planned.output)")
        #expect(planned.output.contains("The sync would be refused: 2 of 3 users"), "\(planned.output)")
        #expect(try await staff.run("directory", "sync", "staff").status == 4)
    }

    /// The connection is cut in the middle of the entries of a sync that would change every user.
    @Test func directoryThatDiesInTheMiddleChangesNothing() async throws {
        let slapd = try await Slapd()
        let names = (0..<40).map { "user\($0)" }
        try await slapd.apply(
            names.map { name in
                "dn: uid=\(name),\(Slapd.people)\nobjectClass: inetOrgPerson\ncn: \(name)\nsn: \(name)\nmail: \(name)@example.org\n"
            }.joined(separator: "\n"))
        let staff = try await Staff(slapd, "page_size: 5")
        let server = try #require(UInt16(slapd.secureURL.split(separator: ":").last ?? ""))
        let settings = try text(staff.installed.settings)
        func sync(cutAfter limit: Int?) async throws -> (ended: Child.Ended, passed: Int) {
            let proxy = try await CuttingProxy(to: server, limit: limit)
            try TextFile.write(
                settings.replacing(":\(server)\n", with: ":\(proxy.port)\n"), to: staff.installed.settings)
            let ended = try await staff.run("directory", "sync", "staff")
            return (ended, try await proxy.passed())
        }
        let (first, whole) = try await sync(cutAfter: nil)
        #expect(first.status == 0, "\(first.errors)")
        try await slapd.apply(
            names.map { name in
                "dn: uid=\(name),\(Slapd.people)\nchangetype: modify\nreplace: mail\nmail: new-\(name)@example.org\n"
            }.joined(separator: "\n"))
        for part in [3, 2] {
            let (cut, passed) = try await sync(cutAfter: whole * part / 4)
            #expect(cut.status != 0 && passed == whole * part / 4, "\(cut.output)")
            for name in [names[0], names[39]] {
                #expect(try await staff.show(name)["email"]?.string == "\(name)@example.org")
            }
        }
        #expect(try await sync(cutAfter: nil).ended.status == 0)
        for name in [names[0], names[39]] {
            #expect(try await staff.show(name)["email"]?.string == "new-\(name)@example.org")
        }
    }

    /// Every person can edit the own entry. Each value here would do harm in a filter, in SQL, in a
    /// log or on a terminal.
    @Test(arguments: [
        "*", "*)(uid=*))(|(uid=*", "\u{1B}[2J\u{1B}]0;pwned\u{7}", "x'); DROP TABLE user; --", "a\" OR \"1\"=\"1",
        "\u{202E}gro.elpmaxe@ada", "ada\r\nevent=user.registered", "%s%n%x", "${jndi:ldap://x}",
        "<script>alert(1)</script>",
        "=cmd|'/c calc'!A1", "\\2a\\29",
    ])
    func valueOfAnEntryIsNeverMoreThanAValue(value: String) async throws {
        let slapd = try await Slapd()
        try await slapd.add("ada", [("mail", "ada@example.org")])
        let fields = ["mail", "mobile", "displayName", "preferredLanguage"]
        var stored: [String] = []
        for (number, field) in fields.enumerated() {
            // An attribute whose syntax the server checks itself refuses some values, which then
            // never arrive here.
            do {
                try await slapd.add("eve\(number)", [(field, value)])
                stored.append(field)
            } catch {}
        }
        // The server accepts any text as a name.
        #expect(stored.contains("displayName"), "\(stored)")
        try? await slapd.apply(
            """
            dn: cn=named,\(Slapd.people)
            objectClass: inetOrgPerson
            cn: named
            sn: named
            uid:: \(Base64.encode(Array(value.utf8)))

            """)
        let staff = try await Staff(slapd)
        for arguments in [["--dry-run"], [], ["--dry-run"]] {
            let ended = try await Child.run(
                try BuiltProgram.twoefay.path,
                ["--config", staff.installed.settings, "directory", "sync", "staff"] + arguments)
            #expect(ended.status == 0, "\(ended.errors)")
            let scalars = (ended.output + ended.errors).unicodeScalars
            #expect(!scalars.contains { $0.value < 0x20 && $0 != "\n" || $0.value == 0x202E })
        }
        #expect(try await staff.show("ada")["email"]?.string == "ada@example.org")
        #expect(try await staff.run("rows", "verify").status == 0)
        // A search for one user finds no other one.
        let found = try await staff.json("directory", "test", "staff", "--user", value)
        let names = found["users"]?.array?.compactMap { $0.object?["user"]?.string } ?? []
        #expect(names.allSatisfy { $0.utf8.elementsEqual(value.utf8) })
    }

    @Test func namesOfEntriesCannotControlTheTerminal() async throws {
        let slapd = try await Slapd()
        try await slapd.apply(
            """
            dn:: \(Base64.encode(Array("cn=\u{1B}[31mred,\(Slapd.people)".utf8)))
            objectClass: inetOrgPerson
            cn:: \(Base64.encode(Array("\u{1B}[31mred".utf8)))
            sn: red
            uid: red
            mail: no address

            """)
        let tested = try await Staff(slapd).run("directory", "test", "staff")
        #expect(tested.output.contains("red") && !tested.output.contains("\u{1B}"), "\(tested.output)")
    }
}
