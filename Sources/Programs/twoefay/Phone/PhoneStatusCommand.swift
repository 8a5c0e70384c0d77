import Commands
import Daemon
import EventLoop
import Glibc
import JSON
import Phone
import World

extension Tool {
    static let phoneStatus = Subcommand(
        command: Command(
            "phone status", "Reports the system, the app and the state of the phone to the relay.",
            options: [
                Keyring.option, Keyring.choice, PhoneOptions.dpop,
                .init("os", .one("TEXT"), "The operating system (default: that of this machine)."),
                .init("os-version", .one("TEXT"), "Its version (default: that of this machine)."),
                .init("patch-level", .one("YYYYMM"), "Year and month of Android's security patches."),
                .init("app-version", .one("TEXT"), "The version of the app (default: that of this program)."),
                .init("model", .one("TEXT"), "The model of the phone."),
                .init("battery", .one("PERCENT"), "The charge of the battery, 0 to 100."),
                .init("screen-lock", .one("YES|NO"), "Whether the phone has a screen lock."),
                .init("rooted", .one("YES|NO"), "Whether the phone is rooted."),
            ],
            notes: """
                The relay keeps the report with the latest time, and the website and the operator see it. The value -
                leaves a default out. The values are reported as given: a report is a hint and no proof.
                """)
    ) { invocation throws(Failure) in
        let status = try reported(invocation)
        let entry = try Keyring(invocation).chosen(invocation)
        let identity = PhoneOptions.identity(invocation)
        let stored = try onLoop { loop throws(Failure) in
            do throws(CallFailure) {
                let phone = try Responder(entry.enrolment, by: identity, language: PhoneOptions.language, loop: loop)
                defer { phone.close() }
                return try await phone.report(status)
            } catch {
                throw Failure(error)
            }
        }
        let values = stored.json.members.filter { !$0.value.isNull }
        let lines = values.map {
            "\($0.name): \($0.value.string.map { ScreenText.visible($0) } ?? JSONWriter.text($0.value))"
        }
        let head =
            stored.status == status
            ? "The relay has stored the report:" : "The relay keeps another report, which is not older:"
        return Report(
            ([head] + lines).joined(separator: "\n"),
            json: .object(["report": .object(stored.json), "stored": .bool(stored.status == status)]))
    }

    /// The value of an option that reports nothing.
    private static let leftOut = "-"

    private static func reported(_ invocation: Invocation) throws(Failure) -> PhoneStatus {
        let machine = machine()
        var status = PhoneStatus()
        status.os = value("os", of: invocation, or: machine.system)
        status.osVersion = value("os-version", of: invocation, or: machine.release)
        status.patchLevel = try number("patch-level", of: invocation)
        status.appVersion = value("app-version", of: invocation, or: Program.version)
        status.model = value("model", of: invocation, or: "")
        status.battery = try number("battery", of: invocation)
        status.hasScreenLock = try flag("screen-lock", of: invocation)
        status.isRooted = try flag("rooted", of: invocation)
        return status
    }

    /// Returns the value of an option, or the default; nil if it is left out.
    private static func value(_ name: String, of invocation: Invocation, or usual: String) -> String? {
        let text = invocation.value(name) ?? usual
        return text.isEmpty || text == leftOut ? nil : text
    }

    private static func number(_ name: String, of invocation: Invocation) throws(Failure) -> Int64? {
        guard let text = invocation.value(name), text != leftOut else { return nil }
        guard let number = Int64(text) else { throw wrong(name, "a whole number", text, invocation) }
        return number
    }

    private static func flag(_ name: String, of invocation: Invocation) throws(Failure) -> Bool? {
        switch invocation.value(name) {
        case nil, leftOut: return nil
        case "yes": return true
        case "no": return false
        case let text?: throw wrong(name, "yes or no", text, invocation)
        }
    }

    private static func wrong(_ name: String, _ wanted: String, _ text: String, _ invocation: Invocation) -> Failure {
        Failure(
            .usage, "--\(name) must be \(wanted), not \(ScreenText.visible(text))",
            next: "Run 'twoefay \(invocation.command.name) --help' for usage.")
    }

    /// The name and the release of this machine's system.
    private static func machine() -> (system: String, release: String) {
        var names = utsname()
        guard uname(&names) == 0 else { return ("", "") }
        func text(_ field: some Any) -> String {
            withUnsafeBytes(of: field) { bytes in
                String(String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self).prefix(32))
            }
        }
        return (text(names.sysname), text(names.release))
    }
}

extension PhoneStatus.Stored {
    fileprivate var json: JSONObject {
        [
            "os": .text(status.os), "os_version": .text(status.osVersion),
            "patch_level": status.patchLevel.map { .integer($0) } ?? .null, "app_version": .text(status.appVersion),
            "model": .text(status.model), "battery": status.battery.map { .integer($0) } ?? .null,
            "screen_lock": status.hasScreenLock.map { .bool($0) } ?? .null,
            "rooted": status.isRooted.map { .bool($0) } ?? .null,
            "reported_at": .string(reportedAt.rfc3339), "received_at": .string(receivedAt.rfc3339),
        ]
    }
}
