/// The limits on connections for each kind of caller. The shares add up to the total, so no kind
/// can use the share of another. Unidentified callers never take connections from websites and
/// identified phones.
public struct AdmissionLimits: Sendable, Equatable {
    /// All connections together.
    public let total: Int
    /// Connections of callers with neither a certificate nor an accepted DPoP proof. This includes
    /// all connections that are still in their handshake.
    public let unidentified: Int
    /// Unidentified connections of one source: an IPv4 address or an IPv6 /64.
    public var perSource: Int
    /// Connections of phones, by certificate or by an accepted proof.
    public let phones: Int
    public var perPhone = 32
    /// Connections reserved for websites.
    public let websites: Int
    public let perWebsite: Int
    /// Connections of balancers that have not sent their PROXY header yet.
    public let introductions: Int
    /// Connections that were ended to make room, while their loop has not closed them yet.
    public let closing: Int
    /// Handshakes that one source may begin per second; `handshakesAtOnce` is the size of a burst.
    public var handshakesPerSecond = 200
    public var handshakesAtOnce: Int { handshakesPerSecond * 10 }
    /// The time from the beginning of a connection to the end of its first request.
    public var firstRequest: Duration = .seconds(30)
    /// The time from the first request of a connection to its end, if it does not identify itself.
    public var unidentifiedLife: Duration = .seconds(120)

    /// Divides the total among the kinds of callers.
    /// - Parameter perSource: nil is half of the unidentified connections.
    public init(total: Int, perSource: Int? = nil) {
        self.total = max(total, 16)
        unidentified = self.total / 4
        websites = self.total / 4
        perWebsite = max(websites / 2, 1)
        introductions = max(self.total / 16, 1)
        closing = max(self.total / 16, 1)
        phones = self.total - unidentified - websites - introductions - closing
        self.perSource = min(max(perSource ?? unidentified / 2, 1), unidentified)
    }
}
