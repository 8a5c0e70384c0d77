/// The store of pinned keys, secrets of open enrolments and open requests. It is what makes the relay
/// untrusted, so keep it in the website's own database: see `SQLStore`.
///
/// Each function is atomic, for all processes of the website. Names of users are compared byte by
/// byte. Times are seconds since 1970. Invariants: a key is never replaced, each request is spent once,
/// and a user who ever had a phone stays one until `forget`. Tested in `StoreTests.swift`.
public protocol Store: Sendable {
    /// Stores the user's id at the relay. A later one replaces it.
    func addUser(_ username: String, token: String) async throws
    /// Returns the user's id at the relay, or nil.
    func token(of username: String) async throws -> String?

    /// Stores the `k` of an open enrolment. A user may have several.
    func addSecret(_ k: [UInt8], of username: String, at now: Int64) async throws
    /// Returns the user's `k`s of the last day. A code that somebody kept for longer must not count.
    func secrets(of username: String, at now: Int64) async throws -> [[UInt8]]

    /// Pins a key, and deletes every `k` of the user. Of two calls that run at once, one pins.
    ///
    /// - Returns: false, and nothing changes, if this `k` is not there any more, or if the phone has a
    ///   key already.
    func pin(_ phone: PinnedPhone, of username: String, with k: [UInt8]) async throws -> Bool
    /// Returns the pinned phones of this user, and of nobody else. Unpinned ones are left out.
    func pins(of username: String) async throws -> [PinnedPhone]
    /// Whether a phone of this user was ever pinned, even if it was unpinned since.
    func wasPinned(_ username: String) async throws -> Bool
    /// Revokes a key for ever, but keeps its row: `wasPinned` must stay true.
    ///
    /// It also deletes every `k` of the user: the phone may have read one, and be pinned later. If the
    /// phone was unpinned before, they stay: the relay's webhook may come after a new code.
    func unpin(_ device: String, of username: String) async throws
    /// Does the same for the user with this id at the relay, and nothing if there is none.
    func unpin(_ device: String, ofToken token: String) async throws
    /// Deletes everything about the user, also that a phone was pinned.
    func forget(_ username: String) async throws

    /// Stores the request of a new login.
    func open(_ request: String, at now: Int64) async throws
    /// Removes a request. Returns true only for the one call that removed it.
    func spend(_ request: String) async throws -> Bool

    /// Whether a webhook with this id was handled.
    func hasSeen(_ event: String) async throws -> Bool
    /// Stores the id of a webhook that was handled.
    func see(_ event: String, at now: Int64) async throws
}

/// The times after which a store forgets, in seconds.
enum StoreLife {
    /// The life of an open request and of the `k` of an enrolment: a day.
    static let day: Int64 = 86_400
    /// The time for which the id of a webhook is kept.
    static let event: Int64 = 30 * day
}
