/// Everything that may stand in the log beside time, level and event. This is the one place where secrets are banned:
/// there is no key for tokens, codes, proofs, addresses and numbers of users, bodies, or keys, and none may be added.
public enum LogKey: String, Sendable, CaseIterable {
    /// Which request: the id that the relay gave it, never anything a peer chose.
    case request
    case website
    case user
    case device
    case challenge
    /// Its `apns-id`.
    case push
    /// A mail or text message: its row of the outbox.
    case message
    case factor
    case operation
    /// A row of the store: its table and its primary key.
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
    /// Where a request came from.
    case remote
    /// Where this program listens, or what it connects to.
    case address
    case port
    case host
    case endpoint
    case gateway
    case environment

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
    case keyID = "key_id"
    case expiresAt = "expires_at"
}
