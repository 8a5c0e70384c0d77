/// The relay's time. It counts for this relay only: for the dates of its certificate, for proofs
/// and for its codes. The clock of the phone stays as it is.
extension Phone {
    /// The difference of the clocks above which the phone asks for the time by itself.
    static let tolerance: Int64 = 3_600_000

    /// Asks the relay for its time, and corrects the clock of this relay, also to an earlier time.
    ///
    /// Call it only if the person requests it: the key of an expired certificate of the relay would
    /// be enough to set the clock back. Say by how much the clock was wrong.
    public func synchronise() async throws(PhoneError) -> SignedTime {
        let signed = try await signedTime(.unchecked)
        try await adopt(signed)
        return signed
    }

    /// Corrects the clock once a day, for codes, if it is off by less than an hour. The connection
    /// has its dates checked, so the time may also be earlier.
    public func refreshTime() async throws(PhoneError) {
        let signed = try await signedTime(.checked(offset: enrolment.clockOffset))
        guard abs(signed.offset - enrolment.clockOffset) <= Self.tolerance else { return }
        try change { $0.clockOffset = signed.offset }
    }

    /// Corrects a clock that is behind, after the dates of the relay's certificate did not fit. A
    /// clock that is ahead stays: only the person can know that.
    func hasAdvancedClock(after reason: String) async throws(PhoneError) -> Bool {
        guard let signed = try? await signedTime(.unchecked) else { return false }
        guard signed.offset > enrolment.clockOffset else {
            let ahead = enrolment.clockOffset - signed.offset
            guard ahead > Self.tolerance else { return false }
            throw .untrusted("\(reason); the phone's clock is \(ahead / 1000) s ahead of the relay's: set the clock")
        }
        return (try? await adopt(signed)) != nil
    }

    /// Corrects the clock if the `date` of an answer shows that it is wrong. The dates of the
    /// connection's certificate were checked, so the time may be earlier; but the signed time comes
    /// over another connection, and must not be much earlier than the date.
    ///
    /// - Parameter least: the difference in milliseconds from which the phone asks.
    func hasCorrectedClock(by answer: RelayAnswer, above least: Int64 = tolerance) async -> Bool {
        guard let date = answer.date else { return false }
        let difference = date.milliseconds - now.milliseconds
        let before = enrolment.clockOffset
        guard abs(difference) > least, let signed = try? await signedTime(.unchecked),
            signed.offset > before + difference - Self.tolerance
        else { return false }
        return (try? await adopt(signed)) != nil
    }

    /// Stores the offset if the relay's certificate is valid at the relay's own time.
    private func adopt(_ signed: SignedTime) async throws(PhoneError) {
        // Any request will do: nothing is sent unless the dates fit.
        _ = try await transmit(RelayRequest("GET", "/push"), .checked(offset: signed.offset), isFresh: true)
        try change { $0.clockOffset = signed.offset }
    }

    /// Asks on a connection of its own, over which nothing else is sent.
    private func signedTime(_ dates: ServerTrust.Dates) async throws(PhoneError) -> SignedTime {
        let nonce = Base64URL.encode(cryptography.random(16))
        var request = RelayRequest("GET", "/time")
        request.fields["nonce"] = nonce
        let (sent, start) = (parts.clock.now(), parts.clock.monotonic())
        let answer = try await transmit(request, dates, isFresh: true)
        return try SignedTime(
            try answer.text("time"), by: answer.certificate, origin: enrolment.relay, nonce: nonce, sent: sent,
            roundTrip: parts.clock.monotonic() - start, cryptography)
    }
}
