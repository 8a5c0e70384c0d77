import Domain
import Testing

@testable import Directory

/// The values of an entry, as they become those of a user.
@Suite struct DirectoryMappingTests {
    private func content(_ values: [String: [String]], _ mapping: DirectoryMapping = .standard) -> DirectoryContent {
        var entry = ["entryuuid": ["1"], "uid": ["ada"]]
        entry.merge(values) { $1 }
        return content(bytes: entry.mapValues { $0.map { Array($0.utf8) } }, mapping)
    }

    private func content(
        bytes values: [String: [[UInt8]]], _ mapping: DirectoryMapping = .standard, tooLong: [String] = []
    ) -> DirectoryContent {
        var content = DirectoryContent()
        content.add(DirectoryEntry(name: "uid=ada", values: values, tooLong: tooLong), as: mapping) { _ in nil }
        return content
    }

    @Test func valuesOfAnEntryBecomeARecord() {
        let read = content([
            "mail": ["ada@example.org"], "mobile": ["+4915112345678"], "displayname": ["Ada Lovelace"],
            "preferredlanguage": ["de-AT, de;q=0.8"],
        ])
        #expect(
            read.records == [
                DirectoryRecord(
                    id: "1", username: "ada", email: "ada@example.org", phone: "+4915112345678",
                    displayName: "Ada Lovelace", language: "de-AT, de;q=0.8")
            ])
        #expect(read.count == 1 && read.conflicts.isEmpty)
    }

    @Test func onlyUsernameAndIDAreRequired() {
        #expect(content([:]).records == [DirectoryRecord(id: "1", username: "ada")])
        #expect(content(["uid": []]).conflicts.map(\.message) == ["uid is missing"])
        #expect(content(["uid": [""]]).conflicts.map(\.message) == ["uid is missing"])
    }

    @Test func entryWithoutIDHidesWhoLeft() {
        let without = content(["entryuuid": []])
        #expect(without.hasUnknownIDs && without.unusableIDs.isEmpty)
        let unusable = content(["mail": ["no address"]])
        #expect(!unusable.hasUnknownIDs && unusable.unusableIDs == [[0x31]])
    }

    /// The numbers of ITU-T E.123 and of DIN 5008, and how people write them.
    @Test(arguments: [
        ("+49 151 12345678", "+4915112345678"), ("+49 (151) 123-456/78", "+4915112345678"),
        ("0049 151 12345678", "+4915112345678"), ("0151 12345678", "+4915112345678"),
        ("+1.415.555.0123", "+14155550123"),
    ])
    func numbersAreConvertedToE164(written: String, expected: String) {
        var mapping = DirectoryMapping.standard
        mapping.country = "+49"
        #expect(content(["mobile": [written]], mapping).records.map(\.phone) == [expected])
    }

    @Test func numberWithoutCountryIsRefused() {
        let read = content(["mobile": ["0151 12345678"]])
        #expect(read.records.isEmpty)
        #expect(read.conflicts.map(\.message) == ["mobile must be a number in E.164 form such as +4915112345678"])
    }

    /// Each value that the API would refuse from a website is refused from a directory, too.
    @Test(arguments: [
        ("uid", "ad\u{0}a"), ("uid", "ada\n"), ("uid", "\u{202E}ada"), ("uid", "ada\u{200B}"),
        ("uid", String(repeating: "a", count: 65)), ("mail", "ada"),
        ("mail", "ada@example.org\r\nBcc: eve@example.org"),
        ("mobile", "extension 12"), ("mobile", "+49123'); DROP TABLE user; --"), ("displayname", "Ada\u{1B}[31m"),
        ("displayname", String(repeating: "a", count: 129)), ("preferredlanguage", "de'--"),
        ("entryuuid", String(repeating: "1", count: 65)), ("entryuuid", "1\u{1B}"),
    ])
    func valueThatTheAPIRefusesIsRefused(attribute: String, value: String) {
        let read = content([attribute: [value]])
        #expect(read.records.isEmpty)
        #expect(read.conflicts.count == 1)
        #expect(read.conflicts.allSatisfy { $0.message.unicodeScalars.allSatisfy { $0.value >= 0x20 } })
    }

    @Test(arguments: ["entryuuid", "uid", "mail", "mobile", "displayname", "preferredlanguage"])
    func bytesThatAreNotUTF8AreRefused(attribute: String) {
        var values: [String: [[UInt8]]] = ["entryuuid": [[0x31]], "uid": [[0x61]]]
        values[attribute] = [[0x61, 0xff, 0x62]]
        #expect(content(bytes: values).records.isEmpty)
    }

    @Test func valueBeyondTheLimitIsRefused() {
        let read = content(bytes: ["entryuuid": [[0x31]], "uid": [[0x61]]], tooLong: ["mail"])
        #expect(read.conflicts.map(\.message) == ["mail is too long"])
    }

    @Test func firstOfSeveralAddressesIsUsedInAnyOrder() {
        let addresses = ["b@example.org", "a@example.org", "c@example.org"]
        for order in [addresses, addresses.reversed()] {
            #expect(content(["mail": order]).records.map(\.email) == ["a@example.org"])
        }
    }

    @Test func severalUsernamesAreRefused() {
        #expect(
            content(["uid": ["ada", "lovelace"]]).conflicts.map(\.message) == ["uid has 2 values, but must have one"])
    }

    @Test func attributeThatIsNotMappedIsNotRead() {
        var mapping = DirectoryMapping.standard
        (mapping.email, mapping.phone) = (nil, nil)
        let read = content(["mail": ["no address"], "mobile": ["no number"]], mapping)
        #expect(read.records == [DirectoryRecord(id: "1", username: "ada")])
    }

    @Test func usernamesAreLoweredOnRequest() {
        var mapping = DirectoryMapping.standard
        mapping.lowercases = true
        #expect(content(["uid": ["Ada.ÄRGER"]], mapping).records.map(\.username) == ["ada.ärger"])
    }

    /// The example of MS-DTYP §2.3.4.2: the structure's first three fields are little-endian.
    @Test func objectGUIDIsWrittenAsActiveDirectoryWritesIt() {
        let bytes: [UInt8] = [
            0xff, 0x19, 0x96, 0x6f, 0x86, 0x8b, 0x11, 0xd0, 0xb4, 0x2d, 0x00, 0xc0, 0x4f, 0xc9, 0x64, 0xff,
        ]
        let read = content(bytes: ["objectguid": [bytes], "samaccountname": [[0x61]]], .activeDirectory)
        #expect(read.records.map(\.id) == ["6f9619ff-8b86-d011-b42d-00c04fc964ff"])
        #expect(content(bytes: ["objectguid": [[1]], "samaccountname": [[0x61]]], .activeDirectory).hasUnknownIDs)
    }

    @Test func namesOfEntriesCannotControlATerminal() {
        let conflict = DirectoryConflict("uid=\u{1B}]0;x\u{7},dc=\u{202E}", "")
        #expect(conflict.entry == "uid=U+001B]0;xU+0007,dc=U+202E")
        // U+009B begins a control sequence, as U+001B and a bracket do. JSON does not escape it.
        var content = DirectoryContent()
        let name = "uid=ada\u{9B}2J," + String(repeating: "x", count: 10_000)
        content.add(DirectoryEntry(name: name, values: ["entryuuid": [[0x31]], "uid": [[0x61]]]), as: .standard) { _ in
            nil
        }
        #expect(content.entries.map { $0.hasPrefix("uid=adaU+009B2J,xxx") && $0.count < 300 } == [true])
    }
}
