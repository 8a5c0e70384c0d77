import Directory
import DirectorySources
import Testing

@Suite struct CSVSourceTests {
    private func read(
        _ text: String, _ mapping: DirectoryMapping = .columns, groups: [CSVSource.Group] = [], user: String? = nil,
        limit: Int = 100
    ) throws(DirectoryFailure) -> DirectoryContent {
        try CSVSource(mapping: mapping, groups: groups, user: user, limit: limit) { Array(text.utf8) }.read()
    }

    private static let header = "id,username,email,phone,display_name,language,groups\n"

    @Test func rowsBecomeRecords() throws {
        let content = try read(
            Self.header + "1,ada,ada@example.org,+49 151 12345678,\"Lovelace, Ada\",en,\n2,bob,,,,,\n")
        #expect(
            content.records == [
                DirectoryRecord(
                    id: "1", username: "ada", email: "ada@example.org", phone: "+4915112345678",
                    displayName: "Lovelace, Ada", language: "en"), DirectoryRecord(id: "2", username: "bob"),
            ])
        #expect(content.entries == ["line 2", "line 3"])
    }

    @Test func firstGroupOfTheSettingsDecides() throws {
        let groups = [CSVSource.Group(name: "admins", policy: "A"), CSVSource.Group(name: "staff", policy: "S")]
        let rows = "1,ada,,,,,staff; admins\n2,bob,,,,,staff\n3,carl,,,,,guests;staffers\n"
        let content = try read(Self.header + rows, groups: groups)
        #expect(content.records.map(\.policy) == ["A", "S", nil])
        #expect(content.members == [1, 2])
    }

    /// Without the column, nobody would be in a group, and everybody would lose its policy.
    @Test func fileWithoutGroupsIsRefusedIfTheSettingsHaveSome() throws {
        let text = "id,username,email,phone,display_name,language\n1,ada,,,,\n"
        #expect(try read(text).records.map(\.username) == ["ada"])
        let groups = [CSVSource.Group(name: "admins", policy: "A")]
        #expect { try read(text, groups: groups) } throws: {
            ($0 as? DirectoryFailure)?.message
                == "line 1: the column groups is missing, but the settings have policies of groups"
        }
    }

    @Test func columnsAreMapped() throws {
        var mapping = DirectoryMapping.columns
        (mapping.id, mapping.username, mapping.phone) = ("number", "login", nil)
        (mapping.displayName, mapping.language) = (nil, nil)
        let content = try read("Login;Number;email\nada;7;a@example.org\n", mapping)
        #expect(content.records == [DirectoryRecord(id: "7", username: "ada", email: "a@example.org")])
    }

    @Test func namesOfColumnsIgnoreCase() throws {
        var mapping = DirectoryMapping.columns
        mapping.username = "Login"
        let groups = [CSVSource.Group(name: "admins", policy: "A")]
        let text = "ID,LOGIN,Email,PHONE,Display_Name,language,Groups\n1,Ada,A@example.org,,,,admins\n"
        let records = [DirectoryRecord(id: "1", username: "Ada", email: "A@example.org", policy: "A")]
        #expect(try read(text, mapping, groups: groups).records == records)
        #expect(try read(text, mapping, groups: groups, user: "Ada").records == records)
        #expect(throws: DirectoryFailure.self) { try read("id," + text, mapping) }
    }

    @Test func singleUserIsRead() throws {
        let content = try read(Self.header + "1,ada,,,,,\n2,bob,,,,,\n", user: "bob")
        #expect(content.records.map(\.username) == ["bob"])
    }

    /// A file that is cut off must not look like one that some people have left.
    @Test(arguments: [
        ("", "line 1: the file is empty; line 1 must name the columns"),
        ("id,username\n1,ada\n", "line 1: the column email is missing; name it, or map its value to another column"),
        (header + "1,ada,,,,,\n2,bo", "line 3: has 2 fields, but the first line names 7 columns"),
        (header + "1,\"ada", "line 2: a quote opens here and is never closed"),
        ("id,id,username,email,phone,display_name,language\n", "line 1: a column appears twice"),
    ])
    func brokenFileIsRefusedAsAWhole(text: String, message: String) {
        #expect { try read(text) } throws: { ($0 as? DirectoryFailure)?.message == message }
    }

    @Test func fileBeyondTheLimitIsRefused() {
        #expect(throws: DirectoryFailure.self) { try read(Self.header + "1,a,,,,,\n2,b,,,,,\n", limit: 1) }
    }
}
