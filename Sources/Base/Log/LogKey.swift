/// The keys that may occur in the log, in addition to time, level and event. This list keeps
/// secrets out of the log: no key exists for tokens, codes, proofs, bodies, cryptographic keys, or
/// the addresses and numbers of users, and none may be added.
public enum LogKey: String, Sendable, CaseIterable {
    /// The id that the relay gave to a request, never a value that a peer chose.
    case request
    /// The trace-id of a request's `traceparent`. The caller chose it: 32 hexadecimal digits.
    case trace
    case website
    case user
    case device
    case challenge
    /// The `apns-id` of a push.
    case push
    /// A mail or text message, by the id of its outbox entry.
    case message
    case factor
    case operation
    /// A row of the store, by its table and primary key.
    case row
    case activation

    case outcome
    case reason
    case state
    case kind
    case decision
    case assurance

    case method
    case route
    case status
    case stream
    case connection
    /// The address that a request came from.
    case remote
    /// The address that this program listens on or connects to.
    case address
    case port
    case host
    case endpoint
    case gateway
    case environment

    /// The counts of a sync of users.
    case users, added, changed, disabled, conflicts
    case milliseconds
    case days
    case count
    case limit
    case bytes
    case attempt
    case depth
    case since
    case due

    case error
    case code
    case path
    case setting
    case line
    case name
    case version
    case signal
    case process
    case loop
    case lane
    case relay
    case authority
    case serial
    case subject
    case issuer
    case keyID = "key_id"
    /// The number of a rolling key.
    case era
    case expiresAt = "expires_at"
}
