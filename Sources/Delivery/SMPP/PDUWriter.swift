import Bytes

extension PDU {
    /// The encoded PDU.
    package var bytes: [UInt8] {
        var writer = Writer()
        writer.number(0)
        writer.number(command)
        writer.number(status.code)
        writer.number(sequence)
        switch body {
        case .bind(_, let bind):
            writer.string(bind.systemID)
            writer.string(bind.password.reveal())
            writer.string(bind.systemType)
            writer.bytes += [bind.version, bind.ton, bind.npi]
            writer.string(bind.range)
        case .bindResponse(_, let systemID): if status == .ok { writer.string(systemID) }
        // A response to a failed request has no body.
        case .submitResponse(let messageID): if status == .ok { writer.string(messageID) }
        case .submit(let message), .deliver(let message): writer.message(message)
        case .data(let message): writer.data(message)
        case .deliverResponse, .dataResponse: writer.string("")
        case .enquireLink, .enquireLinkResponse, .unbind, .unbindResponse, .genericNack, .other: break
        }
        let length = UInt32(writer.bytes.count)
        for at in 0..<4 { writer.bytes[at] = UInt8(truncatingIfNeeded: length >> (24 - 8 * UInt32(at))) }
        return writer.bytes
    }

    private struct Writer {
        var bytes: [UInt8] = []

        mutating func number(_ value: UInt32) {
            for shift in [24, 16, 8, 0] { bytes.append(UInt8(truncatingIfNeeded: value >> UInt32(shift))) }
        }

        /// Writes a C string, cut at the first zero byte, which would end it for the reader.
        mutating func string(_ text: String) { string(Array(text.utf8)) }

        mutating func string(_ text: [UInt8]) {
            bytes += text.prefix { $0 != 0 }
            bytes.append(0)
        }

        mutating func address(_ address: SMPPAddress) {
            bytes += [address.ton, address.npi]
            bytes += address.text.utf8.prefix { $0 != 0 }.prefix(20)
            bytes.append(0)
        }

        mutating func message(_ message: ShortMessage) {
            string(message.serviceType)
            address(message.source)
            address(message.destination)
            bytes += [message.esmClass, message.protocolID, message.priority]
            string(message.schedule)
            string(message.validity)
            bytes += [
                message.registeredDelivery, message.replaceIfPresent, message.dataCoding, message.defaultMessage,
            ]
            let text = message.text.prefix(254)
            bytes.append(UInt8(text.count))
            bytes += text
            parameters(message.parameters)
        }

        mutating func data(_ message: ShortMessage) {
            string(message.serviceType)
            address(message.source)
            address(message.destination)
            bytes += [message.esmClass, message.registeredDelivery, message.dataCoding]
            parameters(message.parameters)
        }

        private mutating func parameters(_ parameters: [Parameter]) {
            for parameter in parameters {
                for half in [parameter.tag, UInt16(clamping: parameter.value.count)] {
                    bytes += [UInt8(half >> 8), UInt8(truncatingIfNeeded: half)]
                }
                bytes += parameter.value.prefix(Int(UInt16.max))
            }
        }
    }
}
