import JSON

extension TwoefayRelay {
    /// A factor of a user, as the relay says.
    public struct UserFactor: Sendable, Equatable {
        /// The kind of the factor.
        public let kind: Factor
        /// The state of the factor.
        public let state: AccountState
        /// The address to which codes are sent, masked.
        public let address: String?
        /// The phone that shows the codes itself.
        public let device: String?
    }

    /// Whether a phone of the user was ever pinned, by the website's own store. Decide by this whether a
    /// login needs the second factor.
    ///
    /// The relay is not asked: neither a 404 nor the unbinding of a phone makes this false, only
    /// `forget` and `reset` do. With `acceptCodes` or `allowUnpinned` it is not enough, since it is
    /// false for a user who has only codes, or only a phone that was never pinned: keep your own mark
    /// for such users. If the store fails, this throws: let nobody in then.
    public func isEnrolled(_ username: String) async throws -> Bool { try await store.wasPinned(username) }

    /// Returns the whole answer of `GET /user/{username}`, unchecked.
    public func user(_ username: String) async throws(CallFault) -> JSONObject {
        try await client.call("GET", try RelayClient.path(username), expecting: [200])
    }

    /// Returns the user's factors, as the relay says.
    ///
    /// - Throws: a refusal with the code `.notFound` for an unknown user.
    public func factors(of username: String) async throws(CallFault) -> [UserFactor] {
        var factors: [UserFactor] = []
        for entry in try await user(username).objects("factors") {
            factors.append(
                UserFactor(
                    kind: try entry.word("kind"), state: try entry.word("state"),
                    address: try entry.text(ifAny: "address"), device: try entry.text(ifAny: "device")))
        }
        return factors
    }

    /// Unpins and unbinds a phone, for example a lost one. The user stays enrolled.
    public func unbind(_ device: String, of username: String) async throws {
        let path = try RelayClient.path(username, "devices", device)
        // First here: the phone must not count even if the relay cannot be reached.
        try await store.unpin(device, of: username)
        try await delete(path)
    }

    /// Deletes a user, at the relay and in the store.
    public func forget(_ username: String) async throws {
        try await delete(try RelayClient.path(username))
        try await store.forget(username)
    }

    /// Forgets in the store that the user ever had a phone, so that the password alone suffices to bind
    /// a first one. It is for a help desk that has identified the user.
    public func reset(_ username: String) async throws { try await store.forget(username) }

    private func delete(_ path: String) async throws(CallFault) {
        do throws(CallFault) {
            try await client.call("DELETE", path, expecting: [204])
        } catch  where error.problem?.code == .notFound {
            // Deleted before, or by an attempt whose answer was lost.
        }
    }
}
