import Domain

/// The party on whose behalf work is done. The store's queue divides its places fairly between
/// tenants.
///
/// A website is identified by its row once it was looked up, and before that by its key. The
/// websites' authority has signed that key. So a caller with a revoked key has a queue separate
/// from the website's. There are too many phones and strangers for a queue each, so they share a
/// few. A random hash selects the queue, so that no caller can choose it.
public enum Tenant: Hashable, Sendable {
    /// The relay itself: leases, heartbeats, retention, settlements, and the operators' tool.
    case relay
    case website(WebsiteID)
    /// A website that has not been looked up yet.
    case key(Int)
    /// A phone with a certificate that has not been looked up yet.
    case phones(Int)
    /// Callers without a certificate.
    case strangers(Int)

    /// The number of queues that all phones share. Strangers share the same number of other queues.
    static let shared = 16

    public static func key(_ thumbprint: [UInt8]) -> Tenant { .key(HashedBytes(thumbprint).hashValue) }

    public static func phone(_ id: DeviceID) -> Tenant { .phones(share(id)) }

    public static func anonymous(_ address: String) -> Tenant { .strangers(share(SenderThrottle.network(address))) }

    /// Selects the shared queue of a value. Swift seeds its hashes with a new random value in each
    /// process.
    private static func share(_ value: some Hashable) -> Int { Int(UInt(bitPattern: value.hashValue) % UInt(shared)) }

    private static let local = TaskLocal<Tenant>(wrappedValue: .relay)

    /// The tenant of the running task; `relay` if none was set.
    public static var current: Tenant { local.get() }

    /// Runs work, and all tasks that it starts, on behalf of this tenant.
    public func run<Value>(_ work: () async -> Value) async -> Value {
        await Self.local.withValue(self) { await work() }
    }
}
