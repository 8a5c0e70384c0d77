import Bytes
import Testing

@testable import Storage

/// The decision which rows a transaction signs.
struct RowCheckTests {
    /// A table without other columns.
    private static let codes = SignedTable(
        "recovery_code", key: ["user_id", "digest"], granting: [], rights: ["used_at IS NULL"])
    private let table = codes
    private let authenticator: RowAuthenticator
    private let search = RowSearch(codes, where: "1 = 1")()

    init() throws {
        authenticator = try RowAuthenticator(keys: [RowAuthenticator.Key(id: "1", secret: Secret(utf8: "secret"))])
    }

    /// Rows as a check reads them. Without a MAC a row is forged.
    private func found(_ rows: (key: [SQLValue], rights: Int64, mac: [UInt8]?)...) -> Rows {
        let values = rows.flatMap { $0.key + [.integer($0.rights), $0.mac.map { .blob($0) } ?? .null] }
        return Rows(ResultColumns(table.covered + ["rights", "mac"], of: "test"), values)
    }

    private func check(_ scripts: Script...) -> RowCheck { RowCheck(scripts, .writing, authenticator) }

    /// SQLite stores a text beside a blob that has the same bytes.
    @Test func rowWithAKeyOfAnotherTypeIsAnotherRow() throws {
        let key: [SQLValue] = [.blob([0xAB]), .blob([0xCD])]
        let twin: [SQLValue] = [.text("ab"), .text("cd")]
        let mac = authenticator.mac(of: key, in: table, rights: 1)
        var check = check(Script("test", rows: [search.lenient]))
        try check.check([found((twin, 1, nil), (key, 1, mac))])
        // The script has used up the codes.
        let signed = try check.signatures(
            check.written(without: []), [found((twin, 0, nil), (key, 0, mac))])
        #expect(signed.map { Array($0.values.dropFirst()) } == [key])
    }

    @Test func sharedRowIsReadOnceAndStopsAllItsScripts() throws {
        let key: [SQLValue] = [.blob([1]), .blob([2])]
        var check = check(
            Script("one", rows: [search.signed]), Script("two", rows: [search]), Script("three", rows: [search.signed]))
        #expect(check.steps.count == 2)
        try check.check([found((key, 1, nil)), found((key, 1, nil))])
        #expect(Set(check.forged.keys) == [0, 1, 2])
        #expect(check.written(without: []).isEmpty)
    }

    /// MariaDB pads the marker of an INSERT with zeros if the row already existed.
    @Test(arguments: [[], [UInt8](repeating: 0, count: 36)]) func insertMarkerIsNoMAC(mark: [UInt8]) throws {
        let row = try CheckedRow(found(([.blob([1]), .blob([2])], 1, mark))[0], of: table)
        #expect(row.mac == nil)
    }
}
