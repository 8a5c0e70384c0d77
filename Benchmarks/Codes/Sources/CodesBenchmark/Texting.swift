import Bytes
import Couriers
import Curl
import Domain
import EventLoop
import Log
import Measuring
import Relay
import SMS
import Storage
import Templates
import World

/// Measures codes by text message: the relay takes them from the outbox, gives them to a gateway over
/// HTTP, and records the result. In turn with it, the gateway's client sends as many messages by
/// itself, over as many connections. Prints the messages per second of both.
func texts(_ url: String, on loop: EventLoop, count: Int, port: UInt16) async throws {
    guard let place = TransferURL("http://127.0.0.1:\(port)/cgi-bin/sendsms") else { throw Unmeasured("no gateway") }
    let rig = try await Rig(url, on: loop)
    defer { rig.store.close() }
    let (time, options) = (SystemTime(), HTTPGateway.Options())
    let log = Log(minimum: .warning, time: time)
    let gateway = HTTPGateway(
        name: "gateway",
        dialect: Kannel(url: place, username: "twoefay", password: Secret(utf8: "password"), from: "Example"),
        options: options)
    let dispatcher = SMSDispatcher(
        SMSDispatcher.Setup([gateway], routing: SMSRouting([SMSRouting.Route(gateway: "gateway")])), time: time,
        log: log)
    let limits = SMSLimits()
    let courier = SMSCourier(
        dispatcher, limits: limits, catalog: CurrentCatalog(), usage: rig.store, time: time, log: log
    ) { work in loop.spawn(work) }
    let text = SMSMessage(
        id: String(repeating: "0", count: 32), to: "+4915112345678", text: "123456 is your code for The Shop.")
    try await sending(
        .sms, rig, count: count, atOnce: options.transfers,
        couriers: MessageCouriers(texts: courier, smsLimits: limits)
    ) {
        let outcome = await gateway.send(text, within: .seconds(10))
        guard outcome == .accepted else { throw Unmeasured("\(outcome)") }
    }
    try await Rig.on(loop) { await courier.close() }
}
