import Daemon
import Glibc

/// Turns the echo of the terminal off while a person types a PIN or PUK, so that it stays neither
/// on the screen nor in what the terminal has recorded.
struct HiddenInput {
    private let former: termios

    /// Turns the echo off. Returns nil if standard input is no terminal.
    ///
    /// - Parameter takesInterrupts: whether Ctrl-C still interrupts the program. Otherwise it is
    ///   read as a character, so that a program that would end restores the echo first.
    init?(takesInterrupts: Bool) {
        var attributes = termios()
        guard tcgetattr(0, &attributes) == 0 else { return nil }
        former = attributes
        attributes.c_lflag &= ~tcflag_t(takesInterrupts ? ECHO : ECHO | ISIG)
        tcsetattr(0, TCSANOW, &attributes)
    }

    /// Turns the echo on again.
    func end() {
        var former = former
        tcsetattr(0, TCSANOW, &former)
    }
}

extension Keyboard {
    /// Asks for a PIN or PUK, which is not shown. Returns nil at the end of the input, and if the
    /// person presses Ctrl-C.
    static func askHidden(_ question: String) -> String? {
        let hidden = HiddenInput(takesInterrupts: false)
        let line = ask(question)
        hidden?.end()
        // The end of the line was not shown either.
        if hidden != nil { Program.say("\n") }
        guard let line, !line.contains("\u{3}") else { return nil }
        return line
    }
}
