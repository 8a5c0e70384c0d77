import Bytes
import JSON
import World

extension RelayClient {
    /// A newly registered user, with the activation of the first phone.
    public struct Registered: Sendable, Equatable {
        /// The opaque id by which the relay knows the user.
        public let token: String
        /// The code and URI that bind the first phone; nil if the website does not get them
        /// (policies `enrolment: letter` and `confirmed`).
        public let activation: Activation?
        /// The mail that the relay sends to the user instead; nil if it sends none now.
        public let mailed: MailedActivation?
        /// Whether an operator must confirm the user's identity before the relay mails a code.
        public let awaitsIdentity: Bool
    }

    /// Registers a user.
    ///
    /// If the answer was lost, the repetition throws `.shownOnce`. The user is then registered, and
    /// `activation(for:)` returns another code.
    ///
    /// - Parameter expiresAt: the time from which no login of the user succeeds; nil if the user does
    ///   not expire.
    public func register(
        _ username: String, email: String? = nil, phone: String? = nil, displayName: String? = nil,
        language: String? = nil, expiresAt: Timestamp? = nil
    ) async throws(CallFault) -> Registered {
        let body = Self.registration(
            username, email: email, phone: phone, displayName: displayName, language: language, expiresAt: expiresAt)
        let answer = try await call("POST", "/register", body)
        let activation = try answer.object("activation")
        let isMailed = activation["sent_to"] != nil
        let awaits: EnrolmentStep? = activation.word(ifAny: "awaits")
        return Registered(
            token: try answer.text("token"),
            activation: isMailed || awaits != nil ? nil : try Activation(activation),
            mailed: isMailed ? try MailedActivation(activation) : nil, awaitsIdentity: awaits == .identity)
    }

    /// Returns the body of `POST /register`.
    static func registration(
        _ username: String, email: String?, phone: String?, displayName: String?, language: String?,
        expiresAt: Timestamp?
    ) -> JSONObject {
        var body: JSONObject = ["username": .string(username)]
        for (name, value) in [
            ("email", email), ("phone", phone), ("display_name", displayName), ("language", language),
        ] {
            body.set(name, value.map { .string($0) })
        }
        body.set("expires_at", expiresAt.map { .string($0.rfc3339) })
        return body
    }

    /// Creates an activation for another phone. Under the policies `enrolment: letter` and
    /// `confirmed`, call `mailActivation` instead.
    ///
    /// - Parameter approval: the challenge with which the user approved this.
    /// - Throws: `.approvalRequired` if the user must approve first: see `Problem.approval`.
    public func activation(for username: String, approval: String? = nil) async throws(CallFault) -> Activation {
        try Activation(try await call("POST", Self.path(username, "activation"), Self.body(approval)))
    }

    /// Has the relay mail an activation to the user, under the policies `enrolment: letter` and
    /// `confirmed`. Codes that were mailed earlier become void.
    ///
    /// - Parameters:
    ///   - approval: the challenge with which the user approved this, after `.approvalRequired`.
    ///   - languages: the visitor's `Accept-Language`, for a user without a language.
    public func mailActivation(
        to username: String, approval: String? = nil, languages: String? = nil
    ) async throws(CallFault) -> MailedActivation {
        let fields = languages.map { ["accept-language": $0] } ?? [:]
        return try MailedActivation(
            try await call("POST", Self.path(username, "activation"), Self.body(approval), fields: fields))
    }

    /// Returns a user with all factors and phones.
    public func user(_ username: String) async throws(CallFault) -> RelayUser {
        try RelayUser(try await call("GET", Self.path(username)))
    }

    /// Deletes a user. The relay keeps only ids of the user.
    public func forget(_ username: String) async throws(CallFault) {
        try await call("DELETE", Self.path(username))
    }

    /// Lifts a lock, or a freeze if the website may do so.
    ///
    /// If the user's codes are locked, it throws `.approvalRequired`: the user must approve on a
    /// phone, see `Problem.approval`. A recovery code does not lift that lock (`.codesLocked`).
    ///
    /// - Parameters:
    ///   - recoveryCode: a recovery code, which also lifts a freeze after the user reported fraud.
    ///   - approval: the challenge with which the user approved that codes are accepted again.
    ///   - isKnown: whether the browser is known for this user, as in `LoginRequest`.
    /// - Returns: false if the recovery code is not a code of the user, which the relay adds to the
    ///   failure count.
    @discardableResult
    public func unlock(
        _ username: String, recoveryCode: String? = nil, approval: String? = nil, isKnown: Bool = false
    ) async throws(CallFault) -> Bool {
        var body = Self.body(approval)
        if isKnown { body.set("known", true) }
        body.set("otp", recoveryCode.map { .string($0) })
        return try await call("POST", Self.path(username, "unlock"), body)["unlocked"]?.bool ?? true
    }

    // MARK: Names and addresses

    /// The properties to change. A property that is nil stays as it is.
    public struct Change: Sendable, Equatable {
        /// A new value, or the removal of the old one.
        public enum Value: Sendable, Equatable {
            /// The new value.
            case to(String)
            /// The removal of the current value.
            case removed
        }

        /// The mail address.
        public var email: Value?
        /// The phone number for text messages.
        public var phone: Value?
        /// The name that phones show.
        public var displayName: Value?
        /// The language of mails and text messages, as a tag such as `de`.
        public var language: Value?
        /// The expiry of the user.
        public var expiry: Expiry?

        /// The time from which no login of the user succeeds, or none.
        public enum Expiry: Sendable, Equatable {
            /// The user expires at this time, which may have passed.
            case at(Timestamp)
            /// The user does not expire.
            case never
        }

        /// Creates a change of the properties that are not nil.
        public init(
            email: Value? = nil, phone: Value? = nil, displayName: Value? = nil, language: Value? = nil,
            expiry: Expiry? = nil
        ) {
            self.expiry = expiry
            self.email = email
            self.phone = phone
            self.displayName = displayName
            self.language = language
        }

        var body: JSONObject {
            var body = JSONObject()
            for (name, value) in [
                ("email", email), ("phone", phone), ("display_name", displayName), ("language", language),
            ] {
                switch value {
                case .to(let text): body[name] = .string(text)
                case .removed: body[name] = .null
                case nil: break
                }
            }
            switch expiry {
            case .at(let time): body["expires_at"] = .string(time.rfc3339)
            case .never: body["expires_at"] = .null
            case nil: break
            }
            return body
        }
    }

    /// Changes properties of a user.
    ///
    /// A change with a new address or an approval is not repeated if no answer arrives; it throws
    /// `.unanswered` instead. To find out whether it was done, call `user` for changes that take
    /// effect at once. For an address that awaits confirmation, see whether its code arrived.
    ///
    /// - Returns: the new addresses that wait for the code that was sent to them: see `confirm`.
    @discardableResult
    public func change(
        _ username: String, _ change: Change, approval: String? = nil
    ) async throws(CallFault) -> [String] {
        var body = change.body
        body.set("approval", approval.map { .string($0) })
        return try await call("PATCH", Self.path(username), body).texts("waiting")
    }

    /// Confirms a new address with the code that was sent to it.
    ///
    /// - Returns: false for a wrong code, which the relay adds to the failure count.
    public func confirm(_ address: String, of username: String, code: String) async throws(CallFault) -> Bool {
        try await call(
            "POST", Self.path(username, "confirm"), ["address": .string(address), "otp": .string(code)]
        ).flag("confirmed")
    }

    /// Sends another code to a new address.
    public func sendCode(to address: String, of username: String) async throws(CallFault) {
        try await call("POST", Self.path(username, "confirm"), ["address": .string(address)])
    }

    // MARK: Phones

    /// Disables a phone until `resume`. The phone stays bound to the user.
    @discardableResult
    public func suspend(_ device: String, of username: String) async throws(CallFault) -> Device {
        try await change(device, of: username, ["state": "suspended"])
    }

    /// Enables a suspended phone again.
    @discardableResult
    public func resume(_ device: String, of username: String) async throws(CallFault) -> Device {
        try await change(device, of: username, ["state": "active"])
    }

    /// Notes that the user still has a phone that is in doubt since the relay's store was restored
    /// (`verifySince` of `Device`).
    @discardableResult
    public func markVerified(_ device: String, of username: String) async throws(CallFault) -> Device {
        try await change(device, of: username, ["verified": true])
    }

    /// Gives a phone another name.
    @discardableResult
    public func rename(_ device: String, of username: String, to name: String) async throws(CallFault) -> Device {
        try await change(device, of: username, ["name": .string(name)])
    }

    /// Removes a phone permanently. To use it again, the user must bind it again with a new key.
    public func unbind(_ device: String, of username: String) async throws(CallFault) {
        try await call("DELETE", Self.path(username, "devices", device))
    }

    private func change(
        _ device: String, of username: String, _ body: JSONObject
    ) async throws(CallFault) -> Device {
        try Device(try await call("PATCH", Self.path(username, "devices", device), body))
    }

    static func path(_ username: String, _ rest: String...) throws(CallFault) -> String {
        try path(["user", username] + rest)
    }

    /// Returns the path of these segments. HTTP clients and proxies resolve "." and "..".
    static func path(_ segments: [String]) throws(CallFault) -> String {
        var path = ""
        for segment in segments {
            guard !["", ".", ".."].contains(segment) else {
                throw .unable("'\(segment)' cannot be a segment of a path")
            }
            path += "/" + PercentEncoding.encode(segment)
        }
        return path
    }

    static func body(_ approval: String?) -> JSONObject {
        var body = JSONObject()
        body.set("approval", approval.map { .string($0) })
        return body
    }
}
