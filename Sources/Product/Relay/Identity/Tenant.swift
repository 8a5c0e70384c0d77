import Domain

/// On whose behalf work is done: what the store's queue shares its places between.
///
/// A website is known by its row once it has been looked up. Until then it is known by its key,
/// which the authority of the websites has signed, so that whoever holds a revoked key queues
/// beside the website and not in its line. Phones and strangers are too many for a line each: they
/// share a few, and which one is a matter of chance that nobody outside can steer.
public enum Tenant: Hashable, Sendable {
    /// The relay itself: leases, heartbeats, housekeeping, settling, and operators' tools.
    case relay
    case website(WebsiteID)
    /// A website that is being looked up.
    case key(Int)
    /// A phone with a certificate that is being looked up.
    case phones(Int)
    /// Callers without a certificate.
    case strangers(Int)

    /// Lines that all phones share, and as many for all strangers.
    static let shared = 16

    public static func key(_ thumbprint: [UInt8]) -> Tenant { .key(thumbprint.hashValue) }

    public static func phone(_ id: DeviceID) -> Tenant { .phones(share(id)) }

    public static func anonymous(_ address: String) -> Tenant { .strangers(share(SenderThrottle.network(address))) }

    /// Swift's hashes are seeded anew in each process.
    private static func share(_ value: some Hashable) -> Int { Int(UInt(bitPattern: value.hashValue) % UInt(shared)) }

    private static let local = TaskLocal<Tenant>(wrappedValue: .relay)

    /// On whose behalf the running task works; the relay's where nobody said so.
    public static var current: Tenant { local.get() }

    /// Runs work, and all that it spawns, on behalf of this tenant.
    public func run<Value>(_ work: () async -> Value) async -> Value {
        await Self.local.withValue(self) { await work() }
    }
}
