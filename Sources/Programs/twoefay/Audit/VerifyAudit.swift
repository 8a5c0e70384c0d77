import Bytes
import Commands
import Daemon
import JSON
import Relay
import Storage
import World

extension Tool {
    static let verifyAudit = Subcommand(
        command: Command(
            "audit verify", "Checks that nobody has changed the audit, and finds rows that are older than it.",
            options: [
                .init("heads", .many("FILE"), "The heads that relays wrote outside of the store (audit.heads).")
            ],
            notes: """
                It checks the chains of all writers, and names each row and link that was changed, deleted or inserted. Without
                --heads it cannot see that the end of a chain was deleted. Name all files that the relays wrote, also former ones.
                It also finds websites, users, phones, their attestations and tagged certificates, and logins that are older than
                their last change in the audit: somebody has restored such a row, or a part of a backup was restored. It cannot see a
                counter of assertions that was turned back.
                """)
    ) { invocation throws(Failure) in
        let store = try OperatorStore(try Settings.load(invocation))
        defer { store.close() }
        let input = AuditHeadsInput(invocation.values("heads"))
        let progress = invocation.progress()
        let check: AuditVerification
        do throws(Failure) {
            check = try store.verifyAudit(heads: input.reader) { progress.show("\($0) rows checked") }
        } catch {
            throw input.problem ?? error
        }
        let outdated = try store.read(OutdatedRow.all)
        return AuditReport(check: check, outdated: outdated, unread: input.unread).report
    }
}

/// The heads in files. The files may be of any size.
private final class AuditHeadsInput {
    /// Lines that are not heads: a line was cut when its relay ended or its disk was full, or somebody
    /// has written something else.
    struct Unread {
        var count = 0
        /// The place of the first one.
        var first = ""
    }

    private static let beginning = Array("{\"writer\":".utf8)

    private let paths: [String]
    private(set) var unread = Unread()
    /// The problem of a file that cannot be read.
    private(set) var problem: Failure?

    init(_ paths: [String]) { self.paths = paths }

    var reader: AuditHeadReader? {
        guard !paths.isEmpty else { return nil }
        return { body throws(StoreFailure) in try self.read(body) }
    }

    private func read(_ body: (AuditHead) -> Void) throws(StoreFailure) {
        unread = Unread()
        for path in paths {
            do throws(Files.Problem) {
                try Files.eachLine(path) { number, line in add(line, at: "\(path):\(number)", body) }
            } catch {
                problem = Failure(
                    .failed, "--heads: \(error.text)",
                    next: "audit.heads in the settings names the file that relays write, or syslog.")
                throw .internal(error.text)
            }
        }
    }

    private func add(_ line: ArraySlice<UInt8>, at place: String, _ body: (AuditHead) -> Void) {
        guard !line.isEmpty else { return }
        // A syslog service writes the time, the host and the program before each head.
        let start = line.firstRange(of: Self.beginning)?.lowerBound ?? line.startIndex
        if let head = AuditHead(line: String(decoding: line[start...], as: UTF8.self)) { return body(head) }
        if unread.count == 0 { unread.first = place }
        unread.count += 1
    }
}

/// The report of `audit verify`.
private struct AuditReport {
    let check: AuditVerification
    let outdated: [OutdatedRow]
    let unread: AuditHeadsInput.Unread

    var report: Report {
        let isRight = check.findings.isEmpty && outdated.isEmpty && check.heads?.isOfThisStore != false
        return Report(
            parts.filter { !$0.isEmpty }.joined(separator: "\n\n"), json: json, code: isRight ? .ok : .failed)
    }

    private var parts: [String] {
        [
            check.findings.isEmpty
                ? "" : Table(["KIND", "WRITER", "LINK", "ROW", "OPERATION", "WHAT"], check.findings.map(cells)).text,
            outdated.isEmpty
                ? ""
                : Table(
                    ["TABLE", "KEY", "WRITTEN", "MISSING EVENT", "EVENT TIME"],
                    outdated.map {
                        [$0.table, Hex.encode($0.key), $0.writtenAt.rfc3339, $0.event, $0.changedAt.rfc3339]
                    }
                ).text,
            summary, aboutHeads,
        ]
    }

    private var aboutHeads: String {
        let missing = "Not checked: whether the end of a chain is missing."
        guard let heads = check.heads else {
            return "\(missing) This needs --heads FILE, the file of audit.heads."
        }
        let unread =
            unread.count == 0
            ? "" : "\n\(unread.count) lines are not heads, the first one is \(unread.first). A cut line is normal."
        guard heads.isOfThisStore, let newest = heads.newest else {
            return "\(missing) The files of --heads name no chain of this store.\(unread)"
        }
        return """
            \(heads.count) heads name \(heads.chains) chains, until \(newest) (UTC).
            \(heads.linksBeyond) links are newer than the heads: nobody can tell whether further ones were there.\(unread)
            """
    }

    private var summary: String {
        let deleted =
            check.deletedDetails > 0 ? " The words of \(check.deletedDetails) were deleted with their users." : ""
        let checked = "\(check.rows) rows in \(check.links) links of \(check.writers) writers checked.\(deleted)"
        let chains =
            check.findings.isEmpty
            ? "All are as they were written." : "\(check.findings.count) findings: see docs/operators/audit.md."
        let rows = outdated.isEmpty ? "No row is older than its last change in the audit." : ""
        return [checked, chains, rows].filter { !$0.isEmpty }.joined(separator: "\n")
    }

    private func cells(_ finding: AuditFinding) -> [String] {
        [
            finding.kind.rawValue, finding.writer.map { Hex.encode($0) } ?? "", finding.link.map { String($0) } ?? "",
            finding.id.map { String($0) } ?? "", finding.operation.map { Hex.encode($0) } ?? "", finding.text,
        ]
    }

    private var json: JSONValue {
        .object([
            "rows": .integer(Int64(check.rows)), "links": .integer(Int64(check.links)),
            "writers": .integer(Int64(check.writers)), "deleted_details": .integer(Int64(check.deletedDetails)),
            "heads": check.heads.map { .integer(Int64($0.count)) } ?? .null,
            "heads_chains": check.heads.map { .integer(Int64($0.chains)) } ?? .null,
            "heads_until": check.heads?.newest.map { .string($0) } ?? .null,
            "links_beyond_heads": check.heads.map { .integer($0.linksBeyond) } ?? .null,
            "unread_lines": .integer(Int64(unread.count)),
            "findings": .array(
                check.findings.map { finding in
                    var object: JSONObject = ["kind": .string(finding.kind.rawValue), "text": .string(finding.text)]
                    object.set("writer", finding.writer.map { .string(Hex.encode($0)) })
                    object.set("link", finding.link.map { .integer($0) })
                    object.set("row", finding.id.map { .integer($0) })
                    object.set("operation", finding.operation.map { .string(Hex.encode($0)) })
                    return .object(object)
                }),
            "found": .array(
                outdated.map { row in
                    .object([
                        "table": .string(row.table), "key": .string(Hex.encode(row.key)),
                        "written_at": .string(row.writtenAt.rfc3339), "event": .string(row.event),
                        "changed_at": .string(row.changedAt.rfc3339),
                    ])
                }),
        ])
    }
}
