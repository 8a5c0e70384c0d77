/// A value that may be passed between threads, but is accessed only on its loop.
///
/// `@unchecked Sendable`: a precondition checks that the current thread runs the loop.
///
/// The code can be inlined, because other modules would look up the type of the value at run time.
@frozen public struct LoopBound<Value>: @unchecked Sendable {
    public let loop: EventLoop
    @usableFromInline let bound: Value

    @inlinable public init(_ value: Value, on loop: EventLoop) {
        loop.preconditionCurrent("LoopBound")
        self.loop = loop
        self.bound = value
    }

    @inlinable public var value: Value {
        loop.preconditionCurrent("LoopBound.value")
        return bound
    }
}
