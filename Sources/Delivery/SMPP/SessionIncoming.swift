import World

/// Handling of the PDUs that the gateway sends.
extension SMPPSession {
    mutating func handle(_ received: PDUReader.Received, _ now: Instant) {
        switch received {
        case .pdu(let pdu): handle(pdu, now)
        case .malformed(let command, let status, let sequence, let reason):
            switch command {
            // The status says what happened to the submit; only the id is unreadable.
            case PDU.Command.submit | PDU.Command.response: answered(sequence, status, messageID: "", now)
            case PDU.Command.bindTransmitter | PDU.Command.response, PDU.Command.bindTransceiver | PDU.Command.response:
                bindAnswered(sequence, status, now)
            case let command where command & PDU.Command.response == 0:
                write(PDU(.genericNack, sequence: sequence, status: .wrongLength))
            default: abandon("the gateway sent a malformed answer: \(reason)", now)
            }
        }
    }

    private mutating func handle(_ pdu: PDU, _ now: Instant) {
        switch pdu.body {
        case .bindResponse: bindAnswered(pdu.sequence, pdu.status, now)
        case .submitResponse(let messageID): answered(pdu.sequence, pdu.status, messageID: messageID, now)
        case .genericNack:
            if isAnswerToBind(pdu.sequence) {
                bindAnswered(pdu.sequence, pdu.status == .ok ? .bindFailed : pdu.status, now)
            } else {
                // A submit that the gateway did not understand was not accepted.
                answered(pdu.sequence, pdu.status == .ok ? .wrongCommand : pdu.status, messageID: "", now)
            }
        case .deliver(let message): delivered(message, .deliverResponse, pdu.sequence)
        case .data(let message): delivered(message, .dataResponse, pdu.sequence)
        case .enquireLink: write(PDU(.enquireLinkResponse, sequence: pdu.sequence))
        case .enquireLinkResponse: backoff.succeeded()
        case .unbind:
            write(PDU(.unbindResponse, sequence: pdu.sequence))
            abandon("the gateway ended the session", now)
        case .unbindResponse: if phase == .unbinding { finish() }
        case .deliverResponse, .dataResponse: break
        // A client that sends messages does not serve these requests.
        case .bind, .submit: write(PDU(.genericNack, sequence: pdu.sequence, status: .wrongCommand))
        case .other(let command):
            let wantsNoAnswer = [PDU.Command.outbind, PDU.Command.alertNotification].contains(command)
            guard command & PDU.Command.response == 0, !wantsNoAnswer else { break }
            write(PDU(.genericNack, sequence: pdu.sequence, status: .wrongCommand))
        }
    }

    private mutating func bindAnswered(_ sequence: UInt32, _ status: SMPPStatus, _ now: Instant) {
        guard isAnswerToBind(sequence) else { return }
        if status == .ok { bound(now) } else { abandon("the gateway refused the bind: \(status)", now) }
    }

    private mutating func answered(_ sequence: UInt32, _ status: SMPPStatus, messageID: String, _ now: Instant) {
        guard let answer = queue.answered(sequence, status, messageID: messageID, now) else { return }
        backoff.succeeded()
        if status == .ok, !messageID.isEmpty, options.wantsReceipts { receipts.sent(messageID, of: answer.id) }
        if let outcome = answer.outcome { settle([(answer.ticket, outcome)]) }
    }

    private mutating func delivered(_ message: ShortMessage, _ answer: PDU.Body, _ sequence: UInt32) {
        guard phase != .binding else {
            write(PDU(answer, sequence: sequence, status: .notBound))
            return
        }
        // Everything is acknowledged, since the gateway repeats unanswered PDUs.
        write(PDU(answer, sequence: sequence))
        if let receipt = SMPPReceipt(message), let fresh = receipts.takeNew(receipt) { act(.receipt(fresh)) }
    }
}
