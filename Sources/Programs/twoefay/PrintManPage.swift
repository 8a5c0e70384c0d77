import Commands
import Daemon
import JSON
import World

extension Tool {
    static let printManPage = Subcommand(
        command: Command(
            "man", "Prints the man page of a program or of the settings file.",
            operands: [
                .init(
                    "PAGE", "One of: \(ManPage.allCases.map(\.rawValue).joined(separator: ", ")).",
                    choices: ManPage.allCases.map(\.rawValue))
            ],
            options: [.init("date", .one("DATE"), "The date in the page, such as 2026-11-27 (default: today).")],
            notes: "The Debian package installs these pages. To read one without it: twoefay man twoefay | man -l -")
    ) { invocation throws(Failure) in
        guard let page = ManPage(rawValue: invocation.operand(0)) else {
            throw Failure(
                .usage, "there is no man page \(invocation.operand(0))",
                next: "Give one of: \(ManPage.allCases.map(\.rawValue).joined(separator: ", ")).")
        }
        let date = invocation.value("date") ?? String(SystemTime().now().rfc3339.prefix(10))
        guard date.wholeMatch(of: /[0-9]{4}-[0-9]{2}-[0-9]{2}/) != nil else {
            throw Failure(
                .usage, "--date \(date) is not a date", next: "Give a year, month and day, such as 2026-11-27.")
        }
        let text = page.text(tool: reader, date: date)
        return Report(String(text.dropLast()), json: .object(["page": .string(text)]))
    }
}
