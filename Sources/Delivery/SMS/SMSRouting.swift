import GSM

/// Which gateways a number goes to. A pure value.
public struct SMSRouting: Sendable, Equatable {
    public struct Route: Sendable, Equatable {
        public let gateway: String
        public let prefixes: [NumberPrefix]
        /// Of two that know a number equally well, the smaller one comes first.
        public let priority: Int
        /// What a part of a message costs, in millionths, by the beginning of its number.
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

    /// All that take the number, the one with the longest prefix first; then by priority, then as they were given.
    public func gateways(for number: String) -> [Route] {
        routes.enumerated().compactMap { place, route in
            route.prefixes.longest(of: number).map { (route: route, length: $0.length, place: place) }
        }
        .sorted { ($1.length, $0.route.priority, $0.place) < ($0.length, $1.route.priority, $1.place) }
        .map(\.route)
    }
}
