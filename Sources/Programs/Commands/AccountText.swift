import Crypto
import Domain
import JSON
import Relay
import Storage
import World

/// The output of users and phones for operators.

extension Accounts.Device {
    static let headings = [
        "DEVICE", "NAME", "PLATFORM", "STATE", "BY", "ATTESTED", "BOUND", "LAST SEEN", "APPROVED", "FAILED",
        "WRONG NUMBERS",
    ]

    func row(at now: Timestamp) -> [String] {
        [
            view.id.text, view.name ?? "", view.platform.rawValue,
            view.stateText(at: now) + (view.verifySince == nil ? "" : ", verify"), stoppedBy?.rawValue ?? "",
            attestation?.verdict.rawValue ?? "", view.createdAt.rfc3339,
            view.lastSeenAt?.rfc3339 ?? "never", String(view.counts.successes), String(view.counts.failures),
            String(failures),
        ]
    }

    /// The owner of the phone, such as `ada at shop`.
    var owner: String { "\(username) at \(website)" }

    /// The thumbprint of the phone's key; nil if the website keeps the phone, which then has no
    /// key. The phone shows it, and the website has pinned it.
    var thumbprint: String? { view.publicKey.flatMap { try? P256PublicKey(x963: $0) }?.thumbprint }

    func json(at now: Timestamp) -> JSONValue {
        .object([
            "device": .string(view.id.text), "user": .string(username), "website": .string(website),
            "name": .text(view.name), "platform": .string(view.platform.rawValue),
            "state": .string(view.stateText(at: now)), "expires_at": .text(view.expiresAt?.rfc3339),
            "stopped_by": .text(stoppedBy?.rawValue),
            "thumbprint": .text(thumbprint), "login_successes": .integer(view.counts.successes),
            "login_failures": .integer(view.counts.failures), "failures": .integer(failures),
            "failed_at": .text(failedAt?.rfc3339), "created_at": .string(view.createdAt.rfc3339),
            "last_seen_at": .text(view.lastSeenAt?.rfc3339), "report": view.report?.json ?? .null,
            "report_forged": .bool(view.isReportForged),
            "attestation": attestation.map { .object($0.json) } ?? .null, "pin": .string(view.pin.state.rawValue),
            "pin_tries_left": .integer(Int64(view.pin.triesLeft)),
            "puk_tries_left": .integer(Int64(view.pin.pukTriesLeft)),
            "verify_since": .text(view.verifySince?.rfc3339),
        ])
    }

    /// The state of the phone's PIN, for people; nil if it has none.
    var pinText: String? {
        let pin = view.pin
        let puk = pin.isPUKLocked ? "The PUK is locked, too" : "The PUK has \(pin.pukTriesLeft) tries left"
        switch pin.state {
        case .none: return nil
        case .set: return "It has a PIN with \(pin.triesLeft) of \(PhonePIN.tries) tries left. \(puk)."
        case .locked: return "Its PIN is locked after \(PhonePIN.tries) wrong ones: it cannot approve. \(puk)."
        }
    }

    /// The doubt about a phone after a restore, for people; nil if there is none.
    var verifyText: String? {
        view.verifySince.map {
            "The store was restored at \($0.rfc3339), and the phone may have been unbound before. "
                + "If its user still has it: twoefay device verify \(view.id.text)"
        }
    }

    /// The last report of the phone, for people; nil if it has sent none.
    func reportText(at now: Timestamp) -> String? {
        if view.isReportForged {
            return "Its stored report is not genuine, and is not shown. 'twoefay rows verify' lists such rows."
        }
        guard let report = view.report else { return nil }
        let age = (now - report.receivedAt).components.seconds
        return "Its report of \(report.receivedAt.rfc3339) (\(Self.ago(age))): "
            + (report.texts.isEmpty ? "nothing" : report.texts.joined(separator: ", "))
            + ". Only the phone's software says so."
    }

    private static func ago(_ seconds: Int64) -> String {
        switch seconds {
        case ..<120: "now"
        case ..<7200: "\(seconds / 60) minutes ago"
        case ..<172_800: "\(seconds / 3600) hours ago"
        default: "\(seconds / 86_400) days ago"
        }
    }

    /// The verdict on the attestation and the attested facts, a line each; empty if none was
    /// recorded.
    var attestationText: String {
        guard let attestation else { return "" }
        let faults = attestation.faults.isEmpty ? "" : ", because of \(attestation.faults.joined(separator: ", "))"
        let verdict = "\(attestation.verdict.rawValue)\(faults)."
        var lines = ["\n\nIts attestation was judged at \(attestation.judgedAt.rfc3339): \(verdict)"]
        for member in attestation.facts?.members ?? [] {
            lines.append("  \(member.name): \(JSONWriter.text(member.value))")
        }
        return lines.joined(separator: "\n")
    }
}

extension DeviceReport {
    /// The reported values for people, such as `iOS 26.1`.
    fileprivate var texts: [String] {
        let system = [os, osVersion].compactMap(\.self).joined(separator: " ")
        return [
            system.isEmpty ? nil : system, patchLevel.map { "patches of \($0)" }, appVersion.map { "app \($0)" },
            model.map { "model \($0)" }, battery.map { "battery \($0) %" },
            hasScreenLock.map { $0 ? "screen lock" : "no screen lock" }, isRooted.map { $0 ? "rooted" : "not rooted" },
        ].compactMap(\.self)
    }

    fileprivate var json: JSONValue {
        .object([
            "os": .text(os), "os_version": .text(osVersion),
            "patch_level": patchLevel.map { .integer(Int64($0)) } ?? .null, "app_version": .text(appVersion),
            "model": .text(model), "battery": battery.map { .integer(Int64($0)) } ?? .null,
            "screen_lock": hasScreenLock.map { .bool($0) } ?? .null, "rooted": isRooted.map { .bool($0) } ?? .null,
            "reported_at": .string(reportedAt.rfc3339), "received_at": .string(receivedAt.rfc3339),
        ])
    }
}

extension CodeFactor {
    static let headings = ["FACTOR", "STATE", "ADDRESS OR PHONE", "ADDED", "CONFIRMED", "LAST CODE", "WRONG CODES"]

    var row: [String] {
        [
            kind.rawValue, needsResync ? "to be resynchronised" : state.rawValue, address ?? device?.text ?? "",
            createdAt.rfc3339,
            confirmedAt?.rfc3339 ?? "never",
            lastCodeAt?.rfc3339 ?? "never", String(failures),
        ]
    }

    var json: JSONValue {
        .object([
            "kind": .string(kind.rawValue), "state": .string(state.rawValue), "address": .text(address),
            "device": .text(device?.text),
            "failures": .integer(Int64(failures)), "failed_at": .text(failedAt?.rfc3339),
            "created_at": .string(createdAt.rfc3339), "confirmed_at": .text(confirmedAt?.rfc3339),
            "last_code_at": .text(lastCodeAt?.rfc3339), "needs_resync": .bool(needsResync),
        ])
    }
}

extension Accounts.User {
    /// The user's name with the website, such as `ada of shop`.
    public var fullName: String { "\(username) of \(website)" }

    func json(at now: Timestamp) -> JSONValue {
        .object([
            "user": .string(username), "website": .string(website), "id": .string(id.text),
            "state": .string(state.seen(expiresAt, at: now).rawValue), "expires_at": .text(expiresAt?.rfc3339),
            "expires_by": .text(expiresBy?.rawValue), "stopped_by": .text(stoppedBy?.rawValue),
            "prior_state": .text(priorState?.rawValue), "directory": .text(directory),
            "directory_id": .text(directoryID), "policy": .text(policy), "email": .text(email), "phone": .text(phone),
            "codes": .string(codes.isLocked ? "locked" : "open"),
            "code_failures": .integer(Int64(codes.failures)), "code_failed_at": .text(codes.failedAt?.rfc3339),
            "codes_locked_at": .text(codes.lockedAt?.rfc3339),
            "display_name": .text(displayName), "language": .text(language), "forged": .bool(isForged),
            "proved_at": .text(provedAt?.rfc3339), "identity": identity?.json ?? .null,
            "created_at": .string(createdAt.rfc3339),
            "last_code_at": .text(factors.compactMap(\.lastCodeAt).max()?.rfc3339),
            "challenge": challenge?.json(at: now) ?? .null, "devices": .array(devices.map { $0.json(at: now) }),
            "factors": .array(factors.map(\.json)),
        ])
    }
}

extension Identities.Confirmation {
    /// The check for operators, such as `at 2026-11-22T01:02:03.000Z by Ben (passport)`.
    var text: String { "at \(at.rfc3339) by \(by) (\(document))" }

    var json: JSONValue {
        .object(["confirmed_at": .string(at.rfc3339), "by": .string(by), "document": .string(document)])
    }
}

extension Accounts.Challenge {
    /// The result of the challenge, such as `failure, denied`.
    func outcome(at now: Timestamp) -> String {
        let seen = life.seen(at: now)
        return [seen.result.rawValue, seen.reason?.rawValue].compactMap(\.self).joined(separator: ", ")
    }

    func json(at now: Timestamp) -> JSONValue {
        let seen = life.seen(at: now)
        return .object([
            "challenge": .string(id.text), "login": .string(seen.result.rawValue),
            "reason": .text(seen.reason?.rawValue), "asked_at": .string(askedAt.rfc3339),
            "expires_at": .string(life.expiresAt.rfc3339),
        ])
    }
}
