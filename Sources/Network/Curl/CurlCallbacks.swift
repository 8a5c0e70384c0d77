import CCurl

/// The callbacks of libcurl. They run on the loop, from within `curl_multi_socket_action`, and some
/// from within adding and removing a transfer. None of them may call libcurl.
enum CurlCallbacks {
    static let open: curl_opensocket_callback = { context, _, address in
        guard let running: RunningTransfer = object(context), let address else { return -1 }
        return running.open(address)
    }

    static let isAboutToSend: curl_prereq_callback = { context, _, _, _, _ in
        let running: RunningTransfer? = object(context)
        running?.isAboutToSend()
        return CURL_PREREQFUNC_OK
    }

    static let head: curl_write_callback = { bytes, size, count, context in
        let running: RunningTransfer? = object(context)
        return running?.receive(head: UnsafeRawBufferPointer(start: bytes, count: size * count)) ?? 0
    }

    static let body: curl_write_callback = { bytes, size, count, context in
        let running: RunningTransfer? = object(context)
        return running?.receive(body: UnsafeRawBufferPointer(start: bytes, count: size * count)) ?? 0
    }

    static let socket: curl_socket_callback = { _, socket, what, context, _ in
        let client: WebClient? = object(context)
        client?.watch(socket, what)
        return 0
    }

    static let timer: curl_multi_timer_callback = { _, milliseconds, context in
        let client: WebClient? = object(context)
        client?.setTimer(milliseconds)
        return 0
    }

    private static func object<Object: AnyObject>(_ pointer: UnsafeMutableRawPointer?) -> Object? {
        pointer.map { Unmanaged<Object>.fromOpaque($0).takeUnretainedValue() }
    }
}
