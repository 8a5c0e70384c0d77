import Daemon
import JSON
import Storage
import World

extension Tool {
    static let websiteUsage = Subcommand(
        command: Command(
            "website usage", "Shows what the websites used in each month, and what it costs.",
            operands: [.init("NAME", "A website's name, as in 'website list' (default: all websites).", isMany: true)],
            options: [
                .init("month", .one("YYYY-MM"), "Only this month (default: all that are kept)."),
                .init("csv", .nothing, "Print a table with commas, for bookkeeping."),
            ],
            notes: """
                Months are in UTC. Users are the most of a day. A relay writes its counts every five seconds. Costs are shown
                if the settings have prices; text messages have those of their gateways, whose invoice is authoritative.
                """)
    ) { invocation throws(Failure) in
        let settings = try Settings.load(invocation)
        let month = invocation.value("month")
        guard month.map({ Timestamp(rfc3339: $0 + "-01T00:00:00Z") != nil }) != false else {
            throw Failure(
                .usage, "--month must be a month such as 2026-11", next: "Run 'twoefay website usage --help' for usage."
            )
        }
        let store = try OperatorStore(invocation)
        defer { store.close() }
        let names = invocation.operands
        for name in names { _ = try store.website(named: name) }
        let lines = try store.read(WebsiteUsageReport.query(of: names.count == 1 ? names[0] : nil, in: month))
            .filter { names.isEmpty || names.contains($0.website) }
        let costs = settings.prices
        let json = JSONValue.object(["usage": .array(lines.map { $0.json(costs) })])
        if invocation.has("csv") {
            let rows = [WebsiteUsageReport.Line.columns] + lines.map { $0.cells(costs) }
            return Report(rows.map { $0.joined(separator: ",") }.joined(separator: "\n"), json: json)
        }
        guard !lines.isEmpty else { return Report("No relay has counted anything yet.", json: json) }
        let headings = WebsiteUsageReport.Line.columns.map {
            String($0.map { $0 == "_" ? " " : $0 }).uppercased()
        }
        return Report(Table(headings, lines.map { $0.cells(costs) }).text, json: json)
    }
}

extension Prices {
    /// The cost of one month in millionths; nil if there is no price, and no text message cost
    /// anything.
    func cost(of line: WebsiteUsageReport.Line) -> Int64? {
        let parts: [(Price?, Int64)] = [
            (login, line.logins), (push, line.pushes), (mail, line.mails), (user, line.users ?? 0),
        ]
        guard line.textCost > 0 || parts.contains(where: { $0.0 != nil }) else { return nil }
        return parts.reduce(line.textCost) { sum, part in
            let (price, count) = (part.0?.millionths ?? 0, part.1)
            let (cost, isTooMuch) = price.multipliedReportingOverflow(by: count)
            let (total, overflows) = sum.addingReportingOverflow(cost)
            return isTooMuch || overflows ? .max : total
        }
    }
}

extension WebsiteUsageReport.Line {
    fileprivate static let columns = [
        "month", "website", "logins", "pushes", "texts", "segments", "mails", "users", "cost",
    ]

    fileprivate func cells(_ prices: Prices) -> [String] {
        [
            month, website, String(logins), String(pushes), String(texts), String(segments), String(mails),
            users.map { String($0) } ?? "", prices.cost(of: self).map { Settings.amount($0) } ?? "",
        ]
    }

    fileprivate func json(_ prices: Prices) -> JSONValue {
        .object([
            "month": .string(month), "website": .string(website), "logins": .integer(logins),
            "pushes": .integer(pushes), "texts": .integer(texts), "segments": .integer(segments),
            "mails": .integer(mails), "users": users.map { .integer($0) } ?? .null,
            "text_cost": .string(Settings.amount(textCost)),
            "cost": .text(prices.cost(of: self).map { Settings.amount($0) }),
        ])
    }
}
