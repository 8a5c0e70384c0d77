import CMicroHTTPD
import HTTP

/// The callbacks of libmicrohttpd. They run on the loop, from within `MHD_run`,
/// `MHD_add_connection` and `MHD_stop_daemon`.
enum MicroHTTPDCallbacks {
    /// Called several times for each request: with its head, with each part of its body, at its
    /// end, and again after it was suspended. `slot` is our pointer, empty at the first call.
    static let access: MHD_AccessHandlerCallback = { context, handle, _, method, _, part, count, slot in
        guard let handle, let method, let count, let slot else { return .NO }
        guard let known = slot.pointee else {
            guard let server: HTTP1Server = object(context), let connection = connection(of: handle) else {
                return .NO
            }
            let exchange = PageExchange(
                server, handle, method: String(cString: method), connection, fields(of: handle))
            slot.pointee = Unmanaged.passRetained(exchange).toOpaque()
            return exchange.begin()
        }
        guard let exchange: PageExchange = object(known) else { return .NO }
        guard count.pointee > 0 else { return exchange.proceed() }
        exchange.receive(UnsafeRawBufferPointer(start: part, count: count.pointee))
        count.pointee = 0
        return .YES
    }

    /// Called when the request is over, for any reason.
    static let completed: MHD_RequestCompletedCallback = { _, handle, slot, _ in
        guard let known = slot?.pointee else { return }
        slot?.pointee = nil
        let exchange = Unmanaged<PageExchange>.fromOpaque(known)
        exchange.takeUnretainedValue().ended()
        exchange.release()
        handle.flatMap { connection(of: $0) }?.startClock()
    }

    /// Called when a connection begins and when it has ended.
    static let connection: MHD_NotifyConnectionCallback = { context, _, slot, what in
        switch what {
        case .CONNECTION_NOTIFY_STARTED:
            guard let server: HTTP1Server = object(context) else { return }
            slot?.pointee = Unmanaged.passRetained(PageConnection(server)).toOpaque()
        default:
            guard let known = slot?.pointee else { return }
            slot?.pointee = nil
            let connection = Unmanaged<PageConnection>.fromOpaque(known)
            connection.takeUnretainedValue().stopClock()
            connection.release()
        }
    }

    /// Called with the first line of a request. It gives the target before anything in it is
    /// decoded.
    static let target:
        @convention(c) (UnsafeMutableRawPointer?, UnsafePointer<CChar>?, OpaquePointer?) -> UnsafeMutableRawPointer? = {
            _, target, handle in
            if let target, let handle { connection(of: handle)?.target = String(cString: target) }
            return nil
        }

    private static func object<Object: AnyObject>(_ pointer: UnsafeMutableRawPointer?) -> Object? {
        pointer.map { Unmanaged<Object>.fromOpaque($0).takeUnretainedValue() }
    }

    private static func connection(of handle: OpaquePointer) -> PageConnection? {
        object(cmicrohttpd_connection_context(handle))
    }

    private static func fields(of handle: OpaquePointer) -> Fields {
        var fields = Fields()
        withUnsafeMutablePointer(to: &fields) { fields in
            _ = MHD_get_connection_values_n(handle, .HEADER_KIND, append, fields)
        }
        return fields
    }

    private static let append: MHD_KeyValueIteratorN = { fields, _, name, nameCount, value, valueCount in
        guard let fields, let name else { return .NO }
        fields.assumingMemoryBound(to: Fields.self).pointee.add(
            lowercased(name, nameCount), text(value, valueCount))
        return .YES
    }

    /// Field names are ASCII. The lower-case form of a Unicode character may be an ASCII letter, and the
    /// name then that of another field.
    private static func lowercased(_ start: UnsafePointer<CChar>, _ count: Int) -> String {
        String(
            decoding: UnsafeRawBufferPointer(start: start, count: count).map { byte in
                UInt8(ascii: "A")...UInt8(ascii: "Z") ~= byte ? byte | 0x20 : byte
            }, as: UTF8.self)
    }

    private static func text(_ start: UnsafePointer<CChar>?, _ count: Int) -> String {
        String(decoding: UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : count), as: UTF8.self)
    }
}
