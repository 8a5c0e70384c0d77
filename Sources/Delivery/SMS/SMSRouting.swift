import GSM

/// The rules that rank gateways for a number, as a pure value.
///
/// A route takes the numbers that begin with one of its prefixes. Routes are ranked by the length
/// of the matching prefix, then by priority (smaller first), then by their order in the settings.
/// The most specific route thus wins, and the others are the fallbacks. A number that matches no
/// route cannot be delivered. Tests: `SMSRoutingTests`.
public struct SMSRouting: Sendable, Equatable {
    public struct Route: Sendable, Equatable {
        public let gateway: String
        public let prefixes: [NumberPrefix]
        /// The rank among routes with equally long prefixes; smaller comes first.
        public let priority: Int
        /// The price of one segment in millionths, by prefix of the number.
        public let tariff: [NumberPrefix: Int64]

        public init(
            gateway: String, prefixes: [NumberPrefix] = [.all], priority: Int = 0, tariff: [NumberPrefix: Int64] = [:]
        ) {
            self.gateway = gateway
            self.prefixes = prefixes
            self.priority = priority
            self.tariff = tariff
        }

        public func cost(of parts: Int, to number: String) -> Int64 {
            guard let prefix = tariff.keys.longest(of: number), let price = tariff[prefix] else { return 0 }
            let (cost, isTooMuch) = price.multipliedReportingOverflow(by: Int64(parts))
            return isTooMuch ? .max : cost
        }
    }

    public let routes: [Route]

    public init(_ routes: [Route]) { self.routes = routes }

    /// Returns the routes that take the number: the longest prefix first, then by priority, then in
    /// the given order.
    public func gateways(for number: String) -> [Route] {
        routes.enumerated().compactMap { place, route in
            route.prefixes.longest(of: number).map { (route: route, length: $0.length, place: place) }
        }
        .sorted { ($1.length, $0.route.priority, $0.place) < ($0.length, $1.route.priority, $1.place) }
        .map(\.route)
    }
}
