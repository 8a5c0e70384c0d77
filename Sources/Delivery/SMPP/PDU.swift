import Bytes

/// The role in which the relay binds to the gateway.
public enum BindMode: String, Sendable, Equatable, CaseIterable {
    /// The relay only sends.
    case transmitter
    /// The relay sends and receives delivery receipts.
    case transceiver
}

/// A protocol data unit (SMPP 3.4 §4). Only the commands that a sender of text messages needs have
/// a typed body.
package struct PDU: Sendable, Equatable {
    package var status: SMPPStatus
    package var sequence: UInt32
    package var body: Body

    package init(_ body: Body, sequence: UInt32, status: SMPPStatus = .ok) {
        self.body = body
        self.sequence = sequence
        self.status = status
    }

    package enum Body: Sendable, Equatable {
        case bind(BindMode, Bind)
        case bindResponse(BindMode, systemID: String)
        case submit(ShortMessage)
        case submitResponse(messageID: String)
        case deliver(ShortMessage)
        case deliverResponse
        /// data_sm, which some gateways use for receipts. It has fewer fixed fields and more
        /// optional parameters.
        case data(ShortMessage)
        case dataResponse
        case enquireLink
        case enquireLinkResponse
        case unbind
        case unbindResponse
        case genericNack
        case other(UInt32)
    }

    package struct Bind: Sendable, Equatable {
        package var systemID: String
        package var password: Secret
        package var systemType: String
        package var version: UInt8
        package var ton: UInt8
        package var npi: UInt8
        package var range: String

        package init(
            systemID: String, password: Secret, systemType: String, version: UInt8 = 0x34, ton: UInt8 = 0,
            npi: UInt8 = 0, range: String = ""
        ) {
            self.systemID = systemID
            self.password = password
            self.systemType = systemType
            self.version = version
            self.ton = ton
            self.npi = npi
            self.range = range
        }

        package static func == (a: Bind, b: Bind) -> Bool {
            func rest(_ bind: Bind) -> [String] {
                [bind.systemID, bind.systemType, bind.range, "\(bind.version) \(bind.ton) \(bind.npi)"]
            }
            return rest(a) == rest(b) && Secret.matches(a.password.reveal(), b.password.reveal())
        }
    }

    /// Command ids. A response has the id of its request with the highest bit set.
    package enum Command {
        package static let genericNack: UInt32 = 0x8000_0000
        package static let bindTransmitter: UInt32 = 0x02
        package static let submit: UInt32 = 0x04
        package static let deliver: UInt32 = 0x05
        package static let unbind: UInt32 = 0x06
        package static let bindTransceiver: UInt32 = 0x09
        package static let outbind: UInt32 = 0x0b
        package static let enquireLink: UInt32 = 0x15
        package static let data: UInt32 = 0x103
        package static let alertNotification: UInt32 = 0x102
        package static let response: UInt32 = 0x8000_0000
    }

    package var command: UInt32 {
        switch body {
        case .bind(.transmitter, _): Command.bindTransmitter
        case .bind(.transceiver, _): Command.bindTransceiver
        case .bindResponse(.transmitter, _): Command.bindTransmitter | Command.response
        case .bindResponse(.transceiver, _): Command.bindTransceiver | Command.response
        case .submit: Command.submit
        case .submitResponse: Command.submit | Command.response
        case .deliver: Command.deliver
        case .deliverResponse: Command.deliver | Command.response
        case .data: Command.data
        case .dataResponse: Command.data | Command.response
        case .enquireLink: Command.enquireLink
        case .enquireLinkResponse: Command.enquireLink | Command.response
        case .unbind: Command.unbind
        case .unbindResponse: Command.unbind | Command.response
        case .genericNack: Command.genericNack
        case .other(let command): command
        }
    }
}

/// The common body of submit_sm and deliver_sm.
package struct ShortMessage: Sendable, Equatable {
    package var serviceType = ""
    package var source = SMPPAddress.none
    package var destination = SMPPAddress.none
    package var esmClass: UInt8 = 0
    package var protocolID: UInt8 = 0
    package var priority: UInt8 = 0
    package var schedule = ""
    package var validity = ""
    package var registeredDelivery: UInt8 = 0
    package var replaceIfPresent: UInt8 = 0
    package var dataCoding: UInt8 = 0
    package var defaultMessage: UInt8 = 0
    /// The text, at most 254 octets; a longer text is sent as `message_payload`.
    package var text: [UInt8] = []
    package var parameters: [Parameter] = []

    package init() {}

    package func parameter(_ tag: UInt16) -> [UInt8]? { parameters.first { $0.tag == tag }?.value }

    /// The text, from the field or from `message_payload`.
    package var octets: [UInt8] { text.isEmpty ? parameter(Parameter.messagePayload) ?? [] : text }
}

/// An optional parameter: tag, length, value.
package struct Parameter: Sendable, Equatable {
    package static let receiptedMessageID: UInt16 = 0x001e
    package static let sarReference: UInt16 = 0x020c
    package static let sarTotal: UInt16 = 0x020e
    package static let sarPart: UInt16 = 0x020f
    package static let networkErrorCode: UInt16 = 0x0423
    package static let messagePayload: UInt16 = 0x0424
    package static let messageState: UInt16 = 0x0427

    package var tag: UInt16
    package var value: [UInt8]

    package init(_ tag: UInt16, _ value: [UInt8]) {
        self.tag = tag
        self.value = value
    }
}
