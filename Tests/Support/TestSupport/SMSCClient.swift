import Bytes
import EventLoop
import GSM
import SMPP
import World

/// A client connection of `FakeSMSC`. It must be used on its loop only.
final class SMSCClient {
    private let smsc: FakeSMSC
    private let number: Int
    private let wire: Transport
    private var reader = PDUReader()
    private var mode: BindMode?
    private var unanswered = 0
    private var lastSequence: UInt32 = 0
    private var left: () -> Void = {}

    init(_ smsc: FakeSMSC, number: Int, wire: Transport) {
        self.smsc = smsc
        self.number = number
        self.wire = wire
    }

    func serve(left: @escaping () -> Void) {
        self.left = left
        wire.received = { [weak self] in self?.received($0) }
        wire.ended = { [weak self] _ in self?.gone() }
        wire.start()
    }

    func cut() {
        wire.close()
        gone()
    }

    func unbind() { write(.unbind, nextSequence()) }

    private func gone() {
        let left = left
        self.left = {}
        smsc.change { $0.ends += 1 }
        left()
    }

    private func received(_ bytes: [UInt8]) {
        reader.feed(bytes)
        do throws(PDUReader.Lost) {
            while let next = try reader.next() {
                switch next {
                case .pdu(let pdu): handle(pdu)
                case .malformed(_, _, let sequence, _): write(.genericNack, sequence, .wrongLength)
                }
            }
        } catch {
            cut()
        }
    }

    private func handle(_ pdu: PDU) {
        switch pdu.body {
        case .bind(let mode, let bind): bound(mode, bind, pdu.sequence)
        case .submit(let message): submitted(message, pdu.sequence)
        case .enquireLink:
            smsc.change { $0.enquiries += 1 }
            if smsc.script.answersEnquiries { write(.enquireLinkResponse, pdu.sequence) }
        case .unbind:
            mode = nil
            write(.unbindResponse, pdu.sequence)
            smsc.change { $0.unbinds += 1 }
        case .unbindResponse: cut()
        case .deliverResponse, .dataResponse: smsc.change { $0.receiptsAnswered += 1 }
        case .genericNack: smsc.change { $0.nacks += 1 }
        case .deliver, .data, .other: write(.genericNack, pdu.sequence, .wrongCommand)
        case .bindResponse, .submitResponse, .enquireLinkResponse: break
        }
    }

    private func bound(_ mode: BindMode, _ bind: PDU.Bind, _ sequence: UInt32) {
        let script = smsc.script
        guard script.answersBind else {
            smsc.change { $0.binds.append((mode, bind.systemID, bind.systemType)) }
            return
        }
        let isRight = Secret.matches(bind.password.reveal(), Array(script.password.utf8))
        write(.bindResponse(mode, systemID: script.systemID), sequence, isRight ? .ok : .wrongPassword)
        if isRight { self.mode = mode }
        smsc.change { $0.binds.append((mode, bind.systemID, bind.systemType)) }
    }

    // MARK: Text messages

    private func submitted(_ message: ShortMessage, _ sequence: UInt32) {
        guard mode != nil else { return write(.submitResponse(messageID: ""), sequence, .notBound) }
        unanswered += 1
        let submit = smsc.change { record in
            let submit = read(message, number: record.submits.count + 1)
            record.mostUnanswered = max(record.mostUnanswered, unanswered)
            record.submits.append(submit)
            return submit
        }
        switch smsc.script.answer(submit) {
        case .accept: accept(submit, sequence)
        case .late(let duration): smsc.loop.schedule(after: duration) { [weak self] in self?.accept(submit, sequence) }
        case .status(let code):
            unanswered -= 1
            write(.submitResponse(messageID: ""), sequence, SMPPStatus(code))
        case .silence: break
        case .cut: cut()
        case .bytes(let bytes): wire.write(bytes)
        }
    }

    private func read(_ message: ShortMessage, number: Int) -> FakeSMSC.Submit {
        var octets = message.octets
        var part: [UInt8]?
        if message.esmClass & 0x40 != 0, octets.starts(with: [5, 0, 3]), octets.count >= 6 {
            part = Array(octets[3..<6])
            octets.removeFirst(6)
        }
        let text: String
        if message.dataCoding == 8 {
            let units = stride(from: 0, to: octets.count - 1, by: 2).map {
                UInt16(octets[$0]) << 8 | UInt16(octets[$0 + 1])
            }
            text = String(decoding: units, as: UTF16.self)
        } else {
            text = GSMText.decode(octets)
        }
        return FakeSMSC.Submit(
            number: number, connection: self.number, messageID: "m\(number)", source: message.source,
            destination: message.destination, text: text, part: part, dataCoding: message.dataCoding,
            validity: message.validity, wantsReceipt: message.registeredDelivery & 3 == 1)
    }

    private func accept(_ submit: FakeSMSC.Submit, _ sequence: UInt32) {
        unanswered -= 1
        write(.submitResponse(messageID: submit.messageID), sequence)
        guard submit.wantsReceipt, mode == .transceiver else { return }
        let script = smsc.script
        for _ in 0..<script.receipts { write(.deliver(receipt(of: submit, script.state)), nextSequence()) }
    }

    /// Returns a delivery receipt (SMPP 3.4, appendix B), from the addressed number back to the
    /// sender.
    private func receipt(of submit: FakeSMSC.Submit, _ state: String) -> ShortMessage {
        var message = ShortMessage()
        message.esmClass = 0x04
        message.source = submit.destination
        message.destination = submit.source
        let done = state == "DELIVRD"
        let text =
            "id:\(submit.messageID) sub:001 dlvrd:00\(done ? 1 : 0) submit date:2611220100 done date:2611220101 "
            + "stat:\(state) err:\(done ? "000" : "027") text:\(submit.text.prefix(20))"
        message.text = GSMText.encode(text) ?? Array(text.utf8.prefix(100))
        return message
    }

    private func write(_ body: PDU.Body, _ sequence: UInt32, _ status: SMPPStatus = .ok) {
        wire.write(PDU(body, sequence: sequence, status: status).bytes)
    }

    private func nextSequence() -> UInt32 {
        lastSequence += 1
        return lastSequence
    }
}
