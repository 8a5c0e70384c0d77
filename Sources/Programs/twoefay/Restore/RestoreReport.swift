import Bytes
import Commands
import Daemon
import JSON
import Storage
import World

/// The result of a restore for people and programs: what is void, what was replayed, and what cannot
/// be known.
struct RestoreReport {
    let work: RestoreWork
    let url: StorageURL
    let former: String?

    var report: Report {
        let effects = RestoreEffect.allCases.compactMap { effect in
            work.voided[effect].map { [effect.words, String($0)] }
        }
        let kept = former.map { "The former store is \($0)." } ?? ""
        let parts = [
            "\(work.file.path) is the store \(url) now. \(kept)",
            Table(["WHAT IS VOID", "NUMBER"], effects).text,
            replay,
            "What cannot be known:\n" + unknown.map { "- \($0)" }.joined(separator: "\n"),
            "Look through this list before you start a relay. docs/operators/backup.md says what to do.",
        ]
        return Report(parts.compactMap(\.self).joined(separator: "\n\n"), json: json)
    }

    private var replay: String? {
        guard let until = work.plan.until else { return nil }
        let losses = work.replayed.sorted { $0.key < $1.key }.map {
            [$0.key.replacing("_", with: " "), String($0.value)]
        }
        let rest = work.plan.notReplayed.sorted { $0.key < $1.key }.map { [$0.key, String($0.value)] }
        var parts = ["The export has \(work.plan.rows) rows that the copy does not have, until \(until.rfc3339)."]
        if !losses.isEmpty { parts.append(Table(["WHAT WAS REPLAYED", "NUMBER"], losses).text) }
        if work.absent > 0 {
            parts.append("\(work.absent) more are about users, phones or websites that the copy does not have.")
        }
        if !rest.isEmpty { parts.append(Table(["WHAT COULD NOT BE REPLAYED", "ROWS"], rest).text) }
        return parts.joined(separator: "\n\n")
    }

    /// The facts that nobody can know from the copy, as sentences.
    private var unknown: [String] {
        var sentences = [
            "Phones that were bound, and factors, users, websites and keys that were added since the copy was made: they are "
                + "unknown, and have to be added again.",
            "Addresses, policies, PINs and expiries that were changed since the copy was made: they have the former values.",
            "Counters of phones' assertions (App Attest): a copied key can repeat one assertion.",
        ]
        if let until = work.plan.until {
            sentences.append("Everything that happened after \(until.rfc3339), the time of the export's newest row.")
        } else {
            sentences += [
                "Phones that were unbound or suspended since the copy was made: they can answer again, and are marked "
                    + "(verify_since) until their website or 'device verify' lifts the mark.",
                "Users who were locked, frozen, disabled or deleted, and websites' keys that were revoked since: they have "
                    + "the former state. Compare with an export of the audit, if there is one.",
            ]
        }
        return sentences
    }

    private var json: JSONValue {
        func counts(_ counts: [(String, Int64)]) -> JSONValue {
            .object(JSONObject(counts.sorted { $0.0 < $1.0 }.map { ($0.0, .integer($0.1)) }))
        }
        return .object([
            "file": .string(work.file.path), "storage": .string("\(url)"), "former": .text(former),
            "epoch": .text(work.epoch.map { Hex.encode($0.id) }), "since": .text(work.export?.path),
            "until": .text(work.plan.until?.rfc3339), "new_rows": .integer(Int64(work.plan.rows)),
            "voided": counts(work.voided.map { ($0.key.rawValue, $0.value) }),
            "replayed": counts(work.replayed.map { ($0.key, Int64($0.value)) }),
            "absent": .integer(Int64(work.absent)),
            "not_replayed": counts(work.plan.notReplayed.map { ($0.key, Int64($0.value)) }),
            "unknown": .array(unknown.map { .string($0) }),
        ])
    }
}

extension RestoreEffect {
    fileprivate var words: String {
        switch self {
        case .logins: "open logins"
        case .approvals: "unused approvals"
        case .recoveries: "open recoveries"
        case .unlockCodes: "codes of the help desk for PINs"
        case .temporaryCodes: "temporary codes of the help desk"
        case .sentCodes: "addresses whose sent codes are void"
        case .totp: "apps whose codes up to now are used up"
        case .hotp: "hardware tokens to be resynchronised"
        case .recoveryCodes: "recovery codes"
        case .activations: "activation codes"
        case .phones: "phones to be verified"
        }
    }
}
