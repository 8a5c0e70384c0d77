import Daemon
import Domain
import JSON
import Storage
import World

/// The wishes of an operator at `twoefay user temporary-code`.
struct WantedTemporaryCode {
    let life: Duration
    let uses: Int
    let mayEnrol: Bool

    init(_ invocation: Invocation) throws(Failure) {
        let help = "Run 'twoefay user temporary-code --help' for usage."
        guard let life = Self.duration(invocation.value("valid") ?? "24h"), TemporaryCode.lives.contains(life) else {
            throw Failure(.usage, "--valid must be 5m to 24h, such as 30m or 8h", next: help)
        }
        guard let uses = Int(invocation.value("uses") ?? "1"), TemporaryCode.uses.contains(uses) else {
            throw Failure(
                .usage,
                "--uses must be a number from \(TemporaryCode.uses.lowerBound) to \(TemporaryCode.uses.upperBound)",
                next: help)
        }
        self.life = life
        self.uses = uses
        mayEnrol = invocation.has("may-enrol")
    }

    /// Reads a number of minutes or hours, such as `30m` or `8h`; nil for another text.
    private static func duration(_ text: String) -> Duration? {
        guard let unit = text.last, let number = Int(text.dropLast()), (1...1440).contains(number),
            text.dropLast().utf8.allSatisfy({ (0x30...0x39).contains($0) })
        else { return nil }
        return switch unit {
        case "m": .seconds(number * 60)
        case "h": .seconds(number * 3600)
        default: nil
        }
    }
}

extension TemporaryCodes.Shown {
    /// The state of the code, as a sentence.
    func text(of user: Accounts.User, at now: Timestamp) -> String {
        let used = "\(uses - usesLeft) of \(uses) uses"
        guard isUsable(at: now) else {
            return usesLeft > 0
                ? "The temporary code has expired at \(expiresAt.rfc3339), after \(used)."
                : "The temporary code of \(createdAt.rfc3339) is used up."
        }
        return "A temporary code is valid until \(expiresAt.rfc3339), after \(used). It "
            + (mayEnrol ? "may bind a phone" : "binds no phone") + ". To revoke it: \(user.revokingTemporaryCode)"
    }

    func json(at now: Timestamp) -> JSONValue {
        .object([
            "state": .string(isUsable(at: now) ? "active" : usesLeft > 0 ? "expired" : "used"),
            "created_at": .string(createdAt.rfc3339), "expires_at": .string(expiresAt.rfc3339),
            "uses": .integer(Int64(uses)), "uses_left": .integer(Int64(usesLeft)), "may_enrol": .bool(mayEnrol),
            "last_used_at": .text(lastUsedAt?.rfc3339),
        ])
    }
}

extension Accounts.User {
    var revokingTemporaryCode: String {
        "twoefay user temporary-code \(username.asShellWord) --website \(website) --revoke"
    }
}
