import Domain
import Relay
import World

/// The use that websites made in a month, for people and for bills.
public enum WebsiteUsageReport {
    public struct Line: Sendable, Equatable {
        public let website: String
        public let month: String
        public let logins: Int64
        public let pushes: Int64
        public let mails: Int64
        /// Text messages that were begun, and the segments and the cost of those that were sent.
        public let texts: Int64
        public let segments: Int64
        /// In millionths of the currency of the settings.
        public let textCost: Int64
        /// The most users of a day; nil if no relay has counted them.
        public let users: Int64?

        public init(
            website: String, month: String, logins: Int64, pushes: Int64, mails: Int64, texts: Int64, segments: Int64,
            textCost: Int64, users: Int64?
        ) {
            self.website = website
            self.month = month
            self.logins = logins
            self.pushes = pushes
            self.mails = mails
            self.texts = texts
            self.segments = segments
            self.textCost = textCost
            self.users = users
        }
    }

    /// Returns the months of websites, the newest first.
    ///
    /// - Parameters:
    ///   - website: a name; nil for all websites.
    ///   - month: such as `2026-11`; nil for all months.
    public static func query(of website: String?, in month: String?) -> Query<[Line]> {
        let read = readUsage(website: .text(website), month: .text(month))
        return Query(script: Script("website usage", reads: [read])) { rows throws(StoreFailure) in
            var lines: [Line] = []
            for row in rows[0] {
                lines.append(
                    Line(
                        website: try row.text("website"), month: try row.text("month"),
                        logins: try row.integer("logins"), pushes: try row.integer("pushes"),
                        mails: try row.integer("mails"), texts: try row.integer("texts"),
                        segments: try row.integer("segments"), textCost: try row.integer("text_cost"),
                        users: try row.optionalInteger("users")))
            }
            return lines
        }
    }
}

private let readUsage = Statement(
    """
    SELECT website, month, logins, pushes, mails, texts, segments, text_cost, users FROM WebsiteUsage
    WHERE (:website IS NULL OR website = :website) AND (:month IS NULL OR month = :month)
    ORDER BY month DESC, website
    """)
