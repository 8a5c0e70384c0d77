import JSON
import World

/// Calls for the way back from a lost factor: an authenticator app, a hardware token, or all
/// phones.
extension RelayClient {
    /// The factors that a user can lose.
    public enum LostFactor: String, Sendable {
        case totp, hotp
        /// All phones of the user.
        case phones = "push"
    }

    /// A recovery as the relay sees it now.
    public struct Recovery: Sendable, Equatable {
        /// The state of a recovery.
        public struct State: RelayWord {
            public let rawValue: String
            public init(rawValue: String) { self.rawValue = rawValue }

            /// The link was not handed in yet.
            public static let sent = State(rawValue: "sent")
            /// The second proof is missing: call `proveRecovery`.
            public static let opened = State(rawValue: "opened")
            /// The change is announced, and possible from `readyAt` on.
            public static let waiting = State(rawValue: "waiting")
            /// The change is possible: call one of the `finishRecovery` functions.
            public static let ready = State(rawValue: "ready")
            /// The lost factor was replaced.
            public static let done = State(rawValue: "done")
            /// Somebody has cancelled the recovery.
            public static let cancelled = State(rawValue: "cancelled")
            /// The recovery was not finished in time.
            public static let expired = State(rawValue: "expired")
        }

        /// The id of the recovery.
        public let id: String
        /// The user who recovers the factor.
        public let username: String
        /// The lost factor; `push` stands for all phones.
        public let factor: Factor
        /// The state of the recovery.
        public let state: State
        /// The time from which the change is possible; nil before the second proof.
        public let readyAt: Timestamp?
        /// The time at which the recovery ends without a change.
        public let expiresAt: Timestamp
        /// The factors that can give the second proof. If it is empty in the state `opened`, only
        /// the relay's operator can.
        public let proofs: [Factor]
        /// The code that the user reads out to the help desk, which then vouches for this recovery.
        /// It is nil in other states than `opened`.
        public let spokenCode: String?
        /// The challenge that asks the user's phones, while it is open.
        public let challenge: String?
        /// The number to show for that challenge; nil if there is none.
        public let number: String?

        init(_ object: JSONObject) throws(CallFault) {
            id = try object.text("recovery")
            username = try object.text("username")
            factor = try object.word("factor")
            state = try object.word("state")
            readyAt = try object.timestamp(ifAny: "ready_at")
            expiresAt = try object.timestamp("expires_at")
            proofs = try object.words(ifAny: "proofs")
            spokenCode = object["spoken_code"]?.string
            challenge = object["challenge"]?.string
            number = object["number"]?.string
        }
    }

    /// Has a link mailed to a user who has lost a factor. The answer is the same whether there is
    /// such a user or not: tell the visitor that a mail comes if the account is known.
    ///
    /// - Returns: the end of the link's validity.
    @discardableResult
    public func startRecovery(of factor: LostFactor, for username: String) async throws(CallFault) -> Timestamp {
        try await call("POST", Self.path(username, "recovery"), ["factor": .string(factor.rawValue)])
            .timestamp("expires_at")
    }

    /// Hands in the token of a link, which works once.
    ///
    /// - Parameter token: the text after `#recovery=` in the address that the user opened.
    /// - Returns: the handle for all further calls, which is a secret, and the recovery.
    public func openRecovery(_ token: String) async throws(CallFault) -> (handle: String, recovery: Recovery) {
        let answer = try await call("POST", "/recovery", ["token": .string(token)])
        return (try answer.text("handle"), try Recovery(answer))
    }

    /// Returns the state of a recovery.
    public func recovery(_ handle: String) async throws(CallFault) -> Recovery {
        try Recovery(try await call("POST", "/recovery/state", ["handle": .string(handle)]))
    }

    /// Gives the second proof.
    ///
    /// - Parameter approval: the challenge that another factor of the user answered, after
    ///   `.approvalRequired`.
    public func proveRecovery(_ handle: String, approval: String? = nil) async throws(CallFault) -> Recovery {
        var body = Self.body(approval)
        body.set("handle", .string(handle))
        return try Recovery(try await call("POST", "/recovery/proof", body))
    }

    /// Asks the user's phones once more to end the wait.
    public func askPhones(about handle: String) async throws(CallFault) -> Recovery {
        try Recovery(try await call("POST", "/recovery/approval", ["handle": .string(handle)]))
    }

    /// Creates the secret of the new authenticator app. The former one counts until `confirmTOTP`.
    public func finishRecoveryOfTOTP(
        _ handle: String, _ shape: CodeShape = CodeShape()
    ) async throws(CallFault) -> TOTPSetup {
        var body: JSONObject = ["handle": .string(handle)]
        shape.add(to: &body)
        return try Self.setup(try await call("POST", "/recovery/finish", body))
    }

    /// Replaces the lost hardware token.
    public func finishRecoveryOfHOTP(
        _ handle: String, secret: String, counter: Int64 = 0, _ shape: CodeShape = CodeShape()
    ) async throws(CallFault) {
        var body: JSONObject = [
            "handle": .string(handle), "secret": .string(secret), "counter": .integer(counter),
        ]
        shape.add(to: &body)
        try await call("POST", "/recovery/finish", body)
    }

    /// Creates the activation of a phone that replaces all others.
    public func finishRecoveryOfPhones(_ handle: String) async throws(CallFault) -> Activation {
        try Activation(try await call("POST", "/recovery/finish", ["handle": .string(handle)]))
    }

    /// Cancels a recovery with the token of the announcement: the text after `#cancel=`.
    public func cancelRecovery(token: String) async throws(CallFault) {
        try await call("POST", "/recovery/cancel", ["token": .string(token)])
    }

    /// Cancels a recovery for a user who is logged in.
    public func cancelRecovery(_ id: String, of username: String) async throws(CallFault) {
        try await call("DELETE", Self.path(username, "recovery", id))
    }

    /// An entry of the list of a user's open recoveries.
    public struct OpenRecovery: Sendable, Equatable {
        /// The id of the recovery.
        public let id: String
        /// The lost factor; `push` stands for all phones.
        public let factor: Factor
        /// The state of the recovery.
        public let state: Recovery.State
        /// Whether the relay's operator started it; otherwise a visitor of the website did.
        public let isByOperator: Bool
        /// The time at which the recovery began.
        public let createdAt: Timestamp
        /// The time from which the change is possible; nil before the second proof.
        public let readyAt: Timestamp?

        init(_ object: JSONObject) throws(CallFault) {
            id = try object.text("recovery")
            factor = try object.word("factor")
            state = try object.word("state")
            isByOperator = try object.text("started_by") == "operator"
            createdAt = try object.timestamp("created_at")
            readyAt = try object.timestamp(ifAny: "ready_at")
        }
    }

    /// Returns the recoveries of a user that have not ended, the newest first.
    public func recoveries(of username: String) async throws(CallFault) -> [OpenRecovery] {
        var recoveries: [OpenRecovery] = []
        for object in try await call("GET", Self.path(username, "recovery")).objects("recoveries") {
            recoveries.append(try OpenRecovery(object))
        }
        return recoveries
    }
}
