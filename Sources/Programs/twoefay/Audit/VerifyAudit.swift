import Bytes
import Commands
import Daemon
import Glibc
import JSON
import Storage
import World

extension Tool {
    static let verifyAudit = Subcommand(
        command: Command(
            "audit verify", "Checks that nobody has changed the audit, and finds rows that are older than it.",
            options: [
                .init("heads", .one("FILE"), "The heads that relays wrote outside of the store (audit.heads).")
            ],
            notes: """
                It checks the chains of all writers, and names each row and link that was changed, deleted or inserted. Without
                --heads it cannot see that the end of a chain was deleted.
                It also finds websites, users, phones, their attestations and tagged certificates, and logins that are older than
                their last change in the audit: somebody has restored such a row, or a part of a backup was restored. It cannot see a
                counter of assertions that was turned back.
                """)
    ) { invocation throws(Failure) in
        let store = try OperatorStore(try Settings.load(invocation))
        defer { store.close() }
        let heads = try invocation.value("heads").map { path throws(Failure) in try AuditHeadsInput.read(path) }
        var progress = AuditProgress()
        let check = try store.verifyAudit(heads: heads ?? []) { progress.show($0) }
        let outdated = try store.read(OutdatedRow.all)
        return AuditReport(check: check, outdated: outdated, heads: heads?.count).report
    }
}

/// The heads in a file.
private enum AuditHeadsInput {
    static func read(_ path: String) throws(Failure) -> [AuditHead] {
        let bytes: [UInt8]
        do throws(Files.Problem) {
            bytes = try Files.read(path, atMost: 1 << 30)
        } catch {
            throw Failure(
                .failed, "--heads: \(error.text)", next: "audit.heads in the settings names the file that relays write."
            )
        }
        var heads: [AuditHead] = []
        for (number, line) in bytes.split(separator: UInt8(ascii: "\n")).enumerated() {
            guard let head = AuditHead(line: String(decoding: line, as: UTF8.self)) else {
                // A line may have been cut when its relay ended, or its disk was full.
                if line.first == UInt8(ascii: "{"), line.last != UInt8(ascii: "}") { continue }
                throw Failure(
                    .failed, "\(path):\(number + 1): this line is not a head",
                    next: "Each line is an object of JSON, as the relays wrote it. Remove other lines.")
            }
            heads.append(head)
        }
        return heads
    }
}

/// Shows the progress at a terminal.
private struct AuditProgress {
    private let isTerminal = isatty(STDERR_FILENO) == 1
    private var shown = 0

    mutating func show(_ rows: Int) {
        guard isTerminal, rows >= shown + 50_000 else { return }
        shown = rows
        Program.printProgress("\(rows) rows checked")
    }
}

/// The report of `audit verify`.
private struct AuditReport {
    let check: AuditVerification
    let outdated: [OutdatedRow]
    /// The number of heads; nil without `--heads`.
    let heads: Int?

    var report: Report {
        let isRight = check.findings.isEmpty && outdated.isEmpty
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
            summary,
            heads == nil
                ? "Not checked: whether the end of a chain is missing. This needs --heads FILE, the file of audit.heads."
                : "",
        ]
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
            "heads": heads.map { .integer(Int64($0)) } ?? .null,
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
